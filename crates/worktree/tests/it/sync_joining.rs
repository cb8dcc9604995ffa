//! Replays: which commits, how, and what stays unchanged meanwhile (S4.2, S4.4).

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use drydock_domain::{
    ClashCause, CommitLine, OnDivergence, Publish, PublishResult, SyncOutcome, Uncommitted,
};
use drydock_testkit::proc;

use crate::fixture::{read, write};
use crate::ledger::Ledger;
use crate::scene::{BRANCH, Scene};

const LIMIT: Duration = Duration::from_secs(120);

/// Breaks when a commit is replayed with another author, date or message.
#[test]
fn a_replayed_commit_keeps_author_dates_and_message() {
    let scene = Scene::pushed();
    write(&scene.tree().join("b.txt"), "mine\n");
    scene.fixture.user(&["add", "."], &scene.tree());
    let mut command =
        scene.fixture.user_command(&["commit", "-q", "-m", "Grüße\n\nwith a body"], &scene.tree());
    command.env("GIT_AUTHOR_NAME", "Zoë").env("GIT_AUTHOR_DATE", "@1600000000 +0530");
    proc::run(command.env("GIT_COMMITTER_DATE", "@1600000100 -0300"), LIMIT).expect_code(0);
    scene.remote_commit("a.txt", "theirs\n", "theirs");
    let format = "--format=%an|%ae|%ad|%cn|%cd|%B";
    let log =
        |what: &str| scene.fixture.user(&["log", "-1", "--date=raw", format, what], &scene.fixture.repo());
    let before = log(BRANCH);
    let SyncOutcome::Rebased { replayed, .. } = scene.sync() else { panic!("no conflict here") };
    assert_eq!(log(BRANCH), before);
    assert_eq!((replayed[0].author.as_str(), replayed[0].subject.as_str()), ("Zoë", "Grüße"));
}

/// Breaks when commits that the remote has under another id are replayed as empty ones.
#[test]
fn what_the_remote_has_already_is_not_replayed_and_what_was_empty_stays() {
    let scene = Scene::pushed();
    scene.commit("b.txt", "the same\n", "the same");
    scene.commit("b.txt", "the same\n", "made empty");
    scene.commit("dir/c.txt", "mine\n", "mine");
    scene.remote_commit("b.txt", "the same\n", "the same, by others");
    let outcome = scene.sync();
    let SyncOutcome::Rebased { replayed, discarded, absorbed, .. } = &outcome else {
        panic!("no conflict here")
    };
    let subjects = |commits: &[CommitLine]| -> Vec<String> {
        commits.iter().map(|commit| commit.subject.clone()).collect()
    };
    assert_eq!(subjects(replayed), ["made empty", "mine"]);
    // S4.4, B4: commits that left the branch are listed, and so are those without a replacement.
    assert_eq!(subjects(discarded), ["the same", "made empty", "mine"]);
    assert_eq!(subjects(absorbed), ["the same"]);
    assert!(outcome.summary().contains("“the same”), because the remote has"), "{}", outcome.summary());
}

/// Lesson of foreign commits: breaks when the other side of a merge is replayed as the branch's own commits.
#[test]
fn a_merge_is_replayed_as_one_change_with_its_other_parent() {
    let scene = Scene::pushed();
    let aside = scene.fixture.build(&scene.base, |folder| write(&folder.join("aside.txt"), "aside\n"));
    scene.commit("b.txt", "mine\n", "mine");
    scene.fixture.user(&["merge", "-q", "--no-ff", "-m", "merged", aside.as_str()], &scene.tree());
    scene.commit("dir/c.txt", "mine\n", "after");
    scene.remote_commit("a.txt", "theirs\n", "theirs");
    let SyncOutcome::Rebased { replayed, .. } = scene.sync() else { panic!("no conflict here") };
    let subjects: Vec<&str> = replayed.iter().map(|commit| commit.subject.as_str()).collect();
    assert_eq!(subjects, ["mine", "merged", "after"]);
    assert!(scene.repository().contains(BRANCH, &aside).unwrap());
    assert_eq!(read(&scene.tree().join("aside.txt")), "aside\n");
    assert_eq!(scene.status(), "");
}

/// Breaks when a merge of the remote's own commits conflicts with the remote.
#[test]
fn a_merge_of_the_remotes_commits_is_no_conflict() {
    let scene = Scene::pushed();
    let first = scene.remote_commit("a.txt", "theirs\n", "theirs");
    scene.fixture.user(&["fetch", "-q", "origin", BRANCH], &scene.fixture.repo());
    scene.commit("b.txt", "mine\n", "mine");
    scene.fixture.user(&["merge", "-q", "--no-ff", "-m", "merged", first.as_str()], &scene.tree());
    scene.remote_commit("a.txt", "theirs again\n", "theirs again");
    let outcome = scene.sync();
    assert_eq!(outcome.name(), "rebased", "{outcome:?}");
    assert_eq!(read(&scene.tree().join("a.txt")), "theirs again\n");
    assert_eq!(read(&scene.tree().join("b.txt")), "mine\n");
}

/// Breaks when commits are given up because intermediate states conflict that do not conflict one by one.
#[test]
fn commits_that_replay_one_by_one_are_no_question() {
    let scene = Scene::pushed();
    scene.commit("a.txt", "x\n", "as theirs");
    scene.commit("a.txt", "y\n", "further");
    scene.remote_commit("a.txt", "x\n", "as ours");
    let outcome = scene.sync();
    assert_eq!(outcome.name(), "rebased", "{outcome:?}");
    assert_eq!(read(&scene.tree().join("a.txt")), "y\n");
}

/// Breaks when edits are lost, committed, or left partially merged.
#[test]
fn edits_in_a_file_that_the_remote_changed_elsewhere_are_kept_as_edits() {
    let scene = Scene::pushed();
    let lines = |first: &str, last: &str| {
        let middle: String = (0..20).map(|nth| format!("{nth}\n")).collect();
        format!("{first}\n{middle}{last}\n")
    };
    let start = scene.commit("a.txt", &lines("first", "last"), "long");
    assert_eq!(scene.sync().name(), "pushed");
    scene.remote_commit("a.txt", &lines("theirs", "last"), "theirs");
    write(&scene.tree().join("a.txt"), &lines("first", "edited"));
    let ledger = Ledger::of(&scene);
    let outcome = scene.sync();
    assert_eq!(outcome.name(), "fast_forwarded", "{outcome:?}");
    assert_eq!(read(&scene.tree().join("a.txt")), lines("theirs", "edited"));
    assert_eq!(scene.status(), " M a.txt");
    assert_eq!(ledger.lost(&scene), [""; 0]);
    let pins = scene.repository().backup_list(Some("p")).unwrap();
    assert_eq!((pins.len(), &pins[0].head, pins[0].uncommitted), (1, &start, Uncommitted::Kept));
}

/// Breaks when drydock's own files are captured, overwritten or removed.
#[test]
fn drydocks_own_folder_stays_in_place() {
    for (name, text) in [("b.txt", "rebased"), ("a.txt", "recovered_by_reset")] {
        let scene = Scene::pushed();
        scene.commit(name, "mine\n", "mine");
        write(&scene.tree().join(".drydock/strategy.json"), "ours\n");
        write(&scene.other().join("a.txt"), "theirs\n");
        scene.remote_commit(".drydock/strategy.json", "theirs\n", "theirs");
        assert_eq!(scene.sync_with(|order| order.publish = Publish::No).name(), text);
        assert_eq!(read(&scene.tree().join(".drydock/strategy.json")), "ours\n");
        let pins = scene.repository().backup_list(Some("p")).unwrap();
        assert_eq!((pins.len(), pins[0].uncommitted), (1, Uncommitted::Nothing));
    }
}

/// Breaks when a name that is not UTF-8 prevents a backup, or is changed by one.
#[test]
fn names_that_are_not_utf8_are_kept() {
    let scene = Scene::pushed();
    let name = OsStr::from_bytes(b"caf\xe9.txt");
    fs::write(scene.tree().join(name), "mine\n").unwrap();
    scene.fixture.commit_in(&scene.tree(), "mine");
    let other = scene.other();
    fs::write(other.join(name), "theirs\n").unwrap();
    scene.remote_commit("b.txt", "theirs\n", "theirs");
    fs::write(scene.tree().join(OsStr::from_bytes(b"\xff")), "untracked\n").unwrap();
    let outcome = scene.sync();
    let SyncOutcome::RecoveredByReset { pin, clash, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(clash.paths, ["caf\u{fffd}.txt"]);
    assert_eq!(fs::read(scene.tree().join(name)).unwrap(), b"theirs\n");
    let args = ["ls-tree", "-z", "--name-only", &pin.commit];
    let listed = scene.fixture.user_command(&args, &scene.fixture.repo()).output().unwrap().stdout;
    let names: Vec<&[u8]> = listed.split(|b| *b == 0).collect();
    assert!(names.contains(&b"caf\xe9.txt".as_slice()) && names.contains(&b"\xff".as_slice()));
}

/// Breaks when the history of a long plan is too long.
#[test]
fn a_thousand_commits_are_replayed_or_pinned() {
    const COMMITS: usize = 1000;
    for (theirs, expected) in [("theirs.txt", "rebased"), ("mine.txt", "recovered_by_reset")] {
        let scene = Scene::pushed();
        let mut stream = String::new();
        for nth in 0..COMMITS {
            let author = "Ada <ada@example.org> 1700000000 +0000";
            let (message, text) = (format!("commit {nth}"), format!("{nth}\n"));
            writeln!(stream, "commit refs/heads/{BRANCH}\ncommitter {author}\ndata {}", message.len())
                .unwrap();
            let from = if nth == 0 { format!("from {}\n", scene.base) } else { String::new() };
            writeln!(stream, "{message}\n{from}M 644 inline mine.txt\ndata {}\n{text}", text.len()).unwrap();
        }
        let mut import = scene.fixture.user_command(&["fast-import", "--quiet"], &scene.fixture.repo());
        proc::run_with_input(&mut import, &stream, LIMIT).expect_code(0);
        scene.fixture.user(&["reset", "-q", "--hard"], &scene.tree());
        scene.remote_commit(theirs, "theirs\n", "theirs");
        let ledger = Ledger::of(&scene);
        let outcome = scene.sync();
        assert_eq!(outcome.name(), expected, "{outcome:?}");
        match &outcome {
            SyncOutcome::Rebased { replayed, publishing, .. } => {
                assert_eq!((replayed.len(), publishing), (COMMITS, &PublishResult::Done));
                assert_eq!(replayed[COMMITS - 1].subject, format!("commit {}", COMMITS - 1));
            }
            SyncOutcome::RecoveredByReset { discarded, .. } => assert_eq!(discarded.len(), COMMITS),
            other => panic!("{other:?}"),
        }
        assert_eq!(scene.status(), "");
        assert_eq!(ledger.lost(&scene), [""; 0]);
    }
}

/// B6: breaks when histories without a common commit are combined by rewriting one from its first commit, or
/// when the branch or the remote is moved under any policy.
#[test]
fn unrelated_histories_are_left_alone_and_asked_about() {
    let scene = Scene::pushed();
    let mine = scene.commit("b.txt", "mine\n", "mine");
    let other = scene.other();
    scene.fixture.user(&["checkout", "-q", "--orphan", "new"], &other);
    scene.fixture.user(&["rm", "-q", "-r", "--cached", "."], &other);
    // Nothing in it conflicts with the branch's files.
    write(&other.join("other.txt"), "unrelated\n");
    scene.fixture.user(&["add", "other.txt"], &other);
    scene.fixture.user(&["commit", "-q", "-m", "unrelated"], &other);
    scene.fixture.user(&["push", "-q", "--force", "origin", &format!("HEAD:{BRANCH}")], &other);
    let ledger = Ledger::of(&scene);
    let theirs = scene.remote_tip();
    for policy in [OnDivergence::Pause, OnDivergence::Recover] {
        let outcome = scene.sync_with(|order| order.on_divergence = policy);
        let SyncOutcome::Unreconciled { pin, clash, .. } = &outcome else {
            panic!("{policy:?}: {outcome:?}")
        };
        assert_eq!((pin.commit.as_str(), clash.cause), (mine.as_str(), ClashCause::NoCommonCommit));
        assert_eq!((scene.local(), scene.remote_tip()), (mine.clone(), theirs.clone()));
    }
    assert_eq!(ledger.lost(&scene), [""; 0]);
}
