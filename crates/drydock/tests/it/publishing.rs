//! Landing at a remote that others push to: `applied` means that the remote has the commit (N2).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::thread;

use drydock_testkit::http_git::HttpGit;
use drydock_testkit::{proc, wait};
use serde_json::Value;

use crate::shared::{Shared, commit_in, git};
use crate::world::{Answer, Kind, LIMIT, list, stage, text};

/// A plan that is ready to land.
fn executed(shared: &Shared) -> String {
    let id = shared.plan("fix");
    shared.world.ok(&["plan", "strategize", &id]);
    shared.world.ok(&["plan", "execute", &id]);
    id
}

fn remote(shared: &Shared) -> PathBuf {
    shared.world.path("remote.git")
}

/// The commits of the remote's target, newest first.
fn remote_log(shared: &Shared) -> Vec<String> {
    git(&remote(shared), &["log", "--format=%s", "main"]).lines().map(str::to_owned).collect()
}

fn hook(shared: &Shared, name: &str, script: &str) {
    let path = remote(shared).join("hooks").join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Requires that the plan landed once at the remote, that everybody agrees on it, and that nothing is left over.
#[track_caller]
fn assert_published(shared: &Shared, id: &str) {
    let grep = format!("--grep=^Drydock-Plan: {id}$");
    let landings = git(&remote(shared), &["log", "--format=%H", &grep, "main"]);
    assert_eq!(landings.lines().count(), 1, "{landings}");
    let plan = shared.world.show(id);
    assert_eq!((stage(&plan), text(&plan["landed_commit"])), ("apply/applied".into(), landings));
    assert_eq!(shared.world.count(id, "plan.applied"), 1);
    let below = ["for-each-ref", "--format=%(refname)", "refs/drydock/intent", "refs/heads/drydock/intent"];
    assert_eq!(git(&remote(shared), &below), "", "intents at the remote");
    assert_eq!(shared.world.repo.git(&below), "", "intents here");
    shared.world.assert_sound(id);
}

fn warnings(answer: &Answer) -> Vec<String> {
    let warns = |message: &&Value| message["level"] == "warn";
    let messages = list(&answer.json["messages"]);
    messages.iter().filter(warns).map(|message| text(&message["text"])).collect()
}

on_both! {
    /// N2, B2, D9, BUG-2. Breaks when a plan lands on a target that is behind its remote, and the two part for good.
    fn what_a_colleague_pushed_is_merged_and_the_remote_has_the_landing(kind: Kind) {
        let shared = Shared::new(kind, "echo plan > plan.txt");
        let id = executed(&shared);
        shared.others_land("theirs.txt");
        let answer = shared.world.drydock(&["plan", "apply", &id]).expect(0);
        assert_eq!((&answer.json["status"], warnings(&answer)), (&"ok".into(), vec![]));
        assert_published(&shared, &id);
        assert_eq!(remote_log(&shared), ["Do fix", "others change theirs.txt", "first"]);
        assert_eq!(shared.world.repo.head("main"), git(&remote(&shared), &["rev-parse", "main"]));
        assert_eq!(shared.world.repo.git(&["status", "--porcelain"]), "", "the files followed");
        let trailers = git(&remote(&shared), &["log", "-1", "--format=%(trailers:only)", "main"]);
        assert!(trailers.contains(&format!("Drydock-Plan: {id}\nDrydock-Run: run-")), "{trailers}");
        // The next plan begins where the remote is.
        shared.others_land("more.txt");
        shared.world.agent("writer", "cat more.txt > seen.txt");
        let next = executed(&shared);
        shared.world.ok(&["plan", "apply", &next]);
        assert_eq!(git(&remote(&shared), &["show", "main:seen.txt"]), "theirs");
    }
}

/// N2, B2. Breaks when a conflict with what a colleague pushed is not seen, or moves something.
#[test]
fn a_conflict_with_the_remote_constrains_the_plan() {
    let shared = Shared::new(Kind::Sqlite, "echo plan > README.md");
    let id = executed(&shared);
    shared.others_land("README.md");
    let (before, here) = (remote_log(&shared), shared.world.repo.head("main"));
    let answer = shared.world.drydock(&["plan", "apply", &id]).expect(5);
    assert_eq!(answer.error_code(), "constrained");
    assert_eq!((remote_log(&shared), shared.world.repo.head("main")), (before, here));
}

/// N2. Breaks when commits that a person has not published are published by a landing, or the way out is not named.
#[test]
fn unpushed_commits_are_named_and_never_published() {
    let shared = Shared::new(Kind::Sqlite, "echo plan > plan.txt");
    commit_in(shared.world.repo.path(), "mine.txt", "mine\n");
    let id = executed(&shared);
    let alerts: Vec<_> = shared.world.events(&id).into_iter().filter(|one| one["kind"] == "alert").collect();
    let told = alerts.iter().map(|alert| text(&alert["data"]["text"])).collect::<Vec<_>>().join("\n");
    assert!(told.contains("by hand: mine.txt") && told.contains("`git push origin main`"), "{told}");
    let answer = shared.world.drydock(&["plan", "apply", &id]).expect(5);
    let said = text(&answer.json["error"]["text"]);
    assert!(said.contains("by hand: mine.txt") && said.contains("`git push origin main`"), "{said}");
    assert_eq!(remote_log(&shared), ["first"]);
    shared.world.repo.git(&["push", "-q", "origin", "main"]);
    shared.world.ok(&["plan", "retry", &id]);
    shared.world.ok(&["plan", "apply", &id]);
    assert_published(&shared, &id);
    assert_eq!(remote_log(&shared), ["Do fix", "by hand: mine.txt", "first"]);
}

/// N2, D3. Breaks when a local branch that cannot follow fails the landing, costs edits, or is not told.
#[test]
fn a_local_branch_that_cannot_follow_is_told_and_stays() {
    let shared = Shared::new(Kind::Sqlite, "echo plan > README.md");
    let id = executed(&shared);
    shared.world.repo.write("README.md", "mine\n");
    let answer = shared.world.drydock(&["plan", "apply", &id]).expect(0);
    let warned = warnings(&answer);
    assert_eq!((&answer.json["status"], warned.len()), (&"warn".into(), 1), "{warned:?}");
    assert!(
        warned[0].contains("README.md") && warned[0].contains("git pull --ff-only origin main"),
        "{warned:?}"
    );
    assert_published(&shared, &id);
    assert_eq!(fs::read_to_string(shared.world.repo.path().join("README.md")).unwrap(), "mine\n");
    // What a person committed meanwhile and did not push is in the way of following, and of nothing else.
    shared.world.repo.git(&["checkout", "-q", "--", "README.md"]);
    shared.world.repo.git(&["pull", "-q", "--ff-only", "origin", "main"]);
    shared.world.agent("writer", "echo more > more.txt");
    let next = executed(&shared);
    commit_in(shared.world.repo.path(), "mine.txt", "mine\n");
    let answer = shared.world.drydock(&["plan", "apply", &next]).expect(0);
    assert!(warnings(&answer)[0].contains("git pull --rebase origin main"), "{:?}", warnings(&answer));
    assert_published(&shared, &next);
    assert!(!remote_log(&shared).contains(&"by hand: mine.txt".to_owned()));
}

/// N2. Breaks when a protected branch is reported as success, or as something that passes.
#[test]
fn a_remote_that_refuses_constrains_the_plan_with_its_words() {
    let shared = Shared::new(Kind::Sqlite, "echo plan > plan.txt");
    let id = executed(&shared);
    hook(&shared, "update", "[ $1 != refs/heads/main ] || { echo main is protected >&2; exit 1; }");
    let answer = shared.world.drydock(&["plan", "apply", &id]).expect(5);
    assert!(text(&answer.json["error"]["text"]).contains("main is protected"), "{:#}", answer.json);
    assert_eq!(
        (shared.world.stage(&id), remote_log(&shared)),
        ("apply/constrained".into(), vec!["first".into()])
    );
    fs::remove_file(remote(&shared).join("hooks/update")).unwrap();
    shared.world.ok(&["plan", "retry", &id]);
    shared.world.ok(&["plan", "apply", &id]);
    assert_published(&shared, &id);
}

/// N2. Breaks when a remote that is away fails a plan, is waited for without an end at the prompt, or keeps a lock.
#[test]
fn a_remote_that_is_away_is_waited_for() {
    let shared = Shared::new(Kind::Sqlite, "echo plan > plan.txt");
    let id = executed(&shared);
    let (bare, away) = (remote(&shared), shared.world.path("away.git"));
    fs::rename(&bare, &away).unwrap();
    let apply = ["plan", "apply", &id];
    let answer = Answer::of(shared.world.drydock_with("DRYDOCK_REMOTE_PATIENCE_MS", "300", &apply)).expect(1);
    assert_eq!(answer.error_code(), "remote_unreachable");
    let plan = shared.world.show(&id);
    assert_eq!(
        (stage(&plan), &plan["waits"]["cause"]),
        ("apply/queued".into(), &"remote_unreachable".into())
    );
    assert!(text(&plan["waits"]["reason"]).contains("origin cannot be reached"), "{plan:#}");
    assert_eq!(shared.world.locks().len(), 0, "{:?}", shared.world.locks());
    // A remote that comes back while somebody waits is landed on.
    let waiting = shared.world.spawn(&apply);
    fs::rename(&away, &bare).unwrap();
    assert_eq!(waiting.wait(LIMIT).code(), Some(0));
    assert_published(&shared, &id);
}

/// N2. Breaks when a landing whose end is not known is cancelled or sent back before the remote says how it ended.
#[test]
fn a_landing_of_unknown_end_is_found_out_before_the_plan_is_ended() {
    let shared = Shared::new(Kind::Sqlite, "echo plan > plan.txt");
    let id = executed(&shared);
    let (bare, away) = (remote(&shared), shared.world.path("away.git"));
    shared.world.drydock_with("DRYDOCK_CRASH_AT", "land.pushed", &["plan", "apply", &id]);
    fs::rename(&bare, &away).unwrap();
    shared.world.wait_stale(&id);
    for verb in [["plan", "cancel", &id], ["plan", "revert", &id]] {
        let answer = shared.world.drydock(&verb).expect(4);
        assert_eq!(answer.error_code(), if verb[1] == "cancel" { "intent_open" } else { "wrong_state" });
    }
    fs::rename(&away, &bare).unwrap();
    assert_eq!(shared.world.drydock(&["plan", "cancel", &id]).expect(4).error_code(), "intent_open");
    shared.world.insist(&["plan", "apply", &id]);
    assert_published(&shared, &id);
}

/// S2.3, B8, BUG-7. Breaks when an apply that the store forgot is done again.
#[test]
fn a_restored_store_does_not_land_again() {
    for project in ["app", "team"] {
        let shared = Shared::new(Kind::Sqlite, "echo plan > plan.txt");
        let made = shared.world.ok(&["plan", "use", "fix", "--project", project]);
        let id = text(&made["plan"]["id"]);
        shared.world.ok(&["plan", "strategize", &id]);
        shared.world.ok(&["plan", "execute", &id]);
        let copy = shared.world.place("copy.db");
        shared.world.ok(&["store", "backup", &copy]);
        shared.world.ok(&["plan", "apply", &id]);
        let first = text(&shared.world.show(&id)["landed_commit"]);
        for rest in ["-wal", "-shm"] {
            drop(fs::remove_file(format!("{}{rest}", shared.world.store())));
        }
        fs::copy(&copy, shared.world.store()).unwrap();
        // Somebody took the change back meanwhile.
        shared.world.repo.git(&["revert", "--no-edit", "main"]);
        if project == "team" {
            shared.world.repo.git(&["push", "-q", "origin", "main"]);
        }
        let head = shared.world.repo.head("main");
        let answer = shared.world.drydock(&["plan", "apply", &id]).expect(0);
        let plan = &answer.json["data"]["plan"];
        assert_eq!((stage(plan), text(&plan["landed_commit"])), ("apply/applied".into(), first));
        assert_eq!(shared.world.repo.head("main"), head, "nothing landed");
    }
}

/// S2.3. Breaks when a plan that changes nothing, or nothing that the target lacks, makes a commit.
#[test]
fn no_commit_is_made_that_changes_nothing() {
    let shared = Shared::new(Kind::Sqlite, "echo theirs > theirs.txt");
    let id = executed(&shared);
    shared.others_land("theirs.txt");
    shared.world.ok(&["plan", "apply", &id]);
    assert_eq!(remote_log(&shared), ["others change theirs.txt", "first"]);
    let landed = text(&shared.world.show(&id)["landed_commit"]);
    assert_eq!(landed, git(&remote(&shared), &["rev-parse", "main"]));
    assert_eq!(shared.world.repo.head("main"), landed);
}

/// The kill points of a landing: each is died at once, and somebody else finishes the plan.
fn dies_at(shared: &Shared, points: &[&str]) {
    for (number, point) in points.iter().enumerate() {
        let id = executed(shared);
        shared.others_land(&format!("theirs{number}.txt"));
        let died = shared.world.drydock_with("DRYDOCK_CRASH_AT", point, &["plan", "apply", &id]);
        assert_eq!(died.code(), None, "{point} was not passed: {}", died.stderr);
        shared.others_land(&format!("more{number}.txt"));
        shared.world.insist(&["plan", "apply", &id]);
        assert_published(shared, &id);
    }
}

/// N2, S0.1, S2.3. Breaks when a landing that is killed anywhere is done twice, lost, or leaves an intent behind.
#[test]
fn a_landing_that_is_killed_anywhere_is_finished_once() {
    let points = [
        ["land.announced", "land.push", "land.pushed"],
        ["land.followed", "before_commit:1", "before_commit:2"],
        ["before_commit:3", "after_commit:2", "after_commit:3"],
    ];
    // Side by side: most of the time is waiting for others.
    thread::scope(|scope| {
        for points in &points {
            scope.spawn(|| dies_at(&Shared::new(Kind::Sqlite, "echo hi > $DRYDOCK_PLAN.txt"), points));
        }
    });
}

/// Lets a project's remote be reached over smart HTTP.
fn over_http(shared: &Shared) {
    let served = HttpGit::serve(remote(shared).parent().unwrap()).unwrap();
    shared.world.repo.git(&["remote", "set-url", "origin", &served.url("remote.git")]);
}

/// N2, S2.3, BUG-3. Breaks when a landing over HTTP that dies around its push is lost or done twice.
#[test]
fn a_landing_over_http_that_is_killed_around_its_push_is_finished_once() {
    let shared = Shared::new(Kind::Postgres, "echo hi > $DRYDOCK_PLAN.txt");
    over_http(&shared);
    let all = ["land.announced", "land.push", "land.pushed", "land.followed"];
    let soak = std::env::var_os("DRYDOCK_SOAK").is_some();
    dies_at(&shared, if soak { &all } else { &all[..3] });
    // One that nothing happens to: what a colleague pushed is merged.
    let id = executed(&shared);
    shared.others_land("last.txt");
    shared.world.ok(&["plan", "apply", &id]);
    assert_published(&shared, &id);
}

/// N2. Breaks when a remote where others are always quicker fails the plan, or keeps a process busy.
#[test]
fn a_target_that_never_stands_still_is_waited_for() {
    let shared = Shared::new(Kind::Sqlite, "echo plan > plan.txt");
    let id = executed(&shared);
    let lock = remote(&shared).join("refs/heads/main.lock");
    fs::write(&lock, "").unwrap();
    let apply = ["plan", "apply", &id];
    let answer = Answer::of(shared.world.drydock_with("DRYDOCK_REMOTE_PATIENCE_MS", "1", &apply)).expect(1);
    assert_eq!(answer.error_code(), "remote_unreachable");
    let plan = shared.world.show(&id);
    assert_eq!((stage(&plan), &plan["waits"]["cause"]), ("apply/queued".into(), &"target_contended".into()));
    assert_eq!(shared.world.count(&id, "apply.forgone"), 10);
    fs::remove_file(lock).unwrap();
    shared.world.ok(&apply);
    assert_published(&shared, &id);
}

/// BUG-3. Breaks when an intent whose commit is not in this clone ends the plan with an error of git.
#[test]
fn an_intent_whose_commit_is_not_here_is_not_contained() {
    let shared = Shared::new(Kind::Sqlite, "echo plan > plan.txt");
    let id = executed(&shared);
    shared.world.drydock_with("DRYDOCK_CRASH_AT", "land.push", &["plan", "apply", &id]);
    let repo = &shared.world.repo;
    let refs = repo.git(&["for-each-ref", "--format=%(refname)", "refs/drydock/intent"]);
    let commit = repo.head(&refs);
    repo.git(&["update-ref", "-d", &refs]);
    repo.git(&["prune", "--expire=now"]);
    assert!(repo.git(&["rev-parse", "--verify", "-q", "HEAD"]) != commit);
    shared.world.insist(&["plan", "apply", &id]);
    assert_published(&shared, &id);
}

/// N2, S1.3. Breaks when a process that comes back after its plan was ended by somebody else can still land it.
#[test]
fn a_landing_that_comes_back_late_moves_nothing() {
    let shared = Shared::new(Kind::Sqlite, "echo plan > plan.txt");
    let id = executed(&shared);
    let stall = format!("land.push:{}", shared.world.place("go"));
    let late = proc::spawn(shared.world.command(&["plan", "apply", &id]).env("DRYDOCK_STALL_AT", stall));
    let intended = || (shared.world.count(&id, "apply.intended") == 1).then_some(());
    wait::until("the intent is recorded", LIMIT, intended);
    for lock in shared.world.locks() {
        shared.world.ok(&["lock", "break", &text(&lock["id"]), "--reason", "it hangs"]);
    }
    shared.world.insist(&["plan", "cancel", &id]);
    shared.world.write("go", "");
    assert_eq!(late.wait(LIMIT).code(), Some(4), "it lost the lock");
    assert_eq!(
        (shared.world.stage(&id), remote_log(&shared)),
        ("apply/cancelled".into(), vec!["first".into()])
    );
}

/// Issue 12, N2. Breaks when a landing or a sync reads the address that is fetched from and writes to the one that is pushed to:
/// `origin` is fetched from an original that goes its own way and pushed to a fork, which colleagues push to as well.
#[test]
fn a_landing_is_judged_and_recorded_where_a_push_goes() {
    let shared = Shared::new(Kind::Sqlite, "echo plan >> plan.txt");
    let (fork, original) = (remote(&shared), shared.world.path("original.git"));
    git(&fork, &["clone", "-q", "--bare", ".", original.to_str().unwrap()]);
    let elsewhere = commit_in(&shared.world.path("other"), "elsewhere.txt", "original\n");
    git(&shared.world.path("other"), &["push", "-q", original.to_str().unwrap(), "HEAD:main"]);
    shared.world.repo.git(&["config", "remote.origin.pushurl", fork.to_str().unwrap()]);
    shared.world.repo.git(&["config", "remote.origin.url", original.to_str().unwrap()]);
    for name in ["theirs.txt", "more.txt"] {
        let id = executed(&shared);
        assert_eq!(shared.world.ok(&["plan", "sync", &id])["sync"]["outcome"], "in_sync");
        shared.others_land(name);
        shared.world.ok(&["plan", "apply", &id]);
        assert_published(&shared, &id);
    }
    let landed = ["Do fix", "others change more.txt", "Do fix", "others change theirs.txt", "first"];
    assert_eq!(remote_log(&shared), landed);
    assert_eq!(shared.world.repo.head("main"), git(&fork, &["rev-parse", "main"]));
    assert_eq!(git(&original, &["rev-parse", "main"]), elsewhere, "nothing is written there");

    // Two addresses to push to: which of them would say what landed?
    shared.world.repo.git(&["config", "--add", "remote.origin.pushurl", original.to_str().unwrap()]);
    let root = shared.world.repo.path().to_str().unwrap();
    let add = ["project", "add", "second", "--repo", root, "--remote", "origin"];
    let said = shared.world.drydock(&add).json["error"]["text"].to_string();
    let (_, command) = said.split_once('`').unwrap_or_else(|| panic!("{said}"));
    let (command, _) = command.split_once('`').unwrap();
    proc::run(std::process::Command::new("sh").args(["-c", command]), LIMIT).expect_code(0);
    shared.world.ok(&add);
}
