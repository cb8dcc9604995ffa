//! Every relation of branch and remote with every state of the worktree. After each sync nothing is lost, the
//! outcome is the expected one for the pair, and a second sync reports the same or nothing to do (S4.1, S4.2,
//! S4.4, S4.7).

use std::fs;
use std::path::Path;

use drydock_domain::{OnDivergence, SyncOutcome};
use drydock_worktree::CommitId;

use crate::fixture::{Fixture, write};
use crate::ledger::Ledger;
use crate::scene::{BRANCH, Scene};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Same,
    Ahead,
    Behind,
    Diverged,
    Clash,
    Missing,
    MissingAndNothingToSend,
    Deleted,
    Rewritten,
    Replaced,
    Away,
}

const RELATIONS: [Relation; 11] = [
    Relation::Same,
    Relation::Ahead,
    Relation::Behind,
    Relation::Diverged,
    Relation::Clash,
    Relation::Missing,
    Relation::MissingAndNothingToSend,
    Relation::Deleted,
    Relation::Rewritten,
    Relation::Replaced,
    Relation::Away,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Clean,
    Edited,
    EditedTheSame,
    Untracked,
    UntrackedInTheWay,
    IgnoredInTheWay,
    Staged,
    StagedAndTakenBack,
    Deleted,
    Submodule,
    SubmoduleAdded,
    Detached,
    OnAnotherBranch,
    MidRebase,
    MidMerge,
    Unmerged,
    IndexLocked,
    RefLocked,
    NoWorktree,
}

impl Relation {
    /// Returns the remote's tip that should be replaced, if any.
    fn arrange(self, fixture: Fixture) -> (Scene, Option<CommitId>) {
        let scene = match self {
            Relation::Missing | Relation::MissingAndNothingToSend => Scene::on(fixture),
            _ => Scene::on(fixture).push(),
        };
        let mut replaces = None;
        match self {
            Relation::Same | Relation::MissingAndNothingToSend => {}
            Relation::Ahead | Relation::Missing => drop(scene.commit("b.txt", "mine\n", "mine")),
            Relation::Behind => theirs(&scene),
            Relation::Diverged => {
                scene.commit("b.txt", "mine\n", "mine");
                theirs(&scene);
            }
            Relation::Clash => {
                scene.commit("a.txt", "mine\n", "mine");
                theirs(&scene);
            }
            Relation::Replaced => {
                scene.commit("a.txt", "mine\n", "mine");
                theirs(&scene);
                replaces = scene.remote_tip();
            }
            Relation::Deleted => {
                scene.commit("b.txt", "mine\n", "mine");
                scene.fixture.user(&["branch", "-q", "-D", BRANCH], &scene.fixture.path("remote"));
            }
            Relation::Rewritten => {
                scene.remote_commit("b.txt", "once theirs\n", "to be rewritten");
                assert_eq!(scene.sync().name(), "fast_forwarded");
                scene.rewrite_remote(&scene.base, "dir/new.txt", "rewritten\n");
            }
            Relation::Away => {
                scene.commit("b.txt", "mine\n", "mine");
                let remote = scene.fixture.path("remote");
                fs::rename(&remote, scene.fixture.path("away")).unwrap();
            }
        }
        (scene, replaces)
    }
}

/// Changes a file and adds two, as another user.
fn theirs(scene: &Scene) {
    let other = scene.other();
    write(&other.join("a.txt"), "theirs\n");
    write(&other.join("added.txt"), "added by them\n");
    write(&other.join("ignored/file.log"), "added by them\n");
    scene.fixture.user(&["add", "-f", "."], &other);
    scene.fixture.user(&["commit", "-q", "-m", "theirs"], &other);
    scene.fixture.user(&["push", "-q", "origin", &format!("HEAD:{BRANCH}")], &other);
}

impl State {
    fn fixture(self) -> Fixture {
        let fixture = Fixture::new();
        if self == State::Submodule {
            add_submodule(&fixture, &fixture.repo());
            fixture.commit_all("with a submodule");
        }
        fixture
    }

    fn arrange(self, scene: &Scene) {
        let tree = scene.tree();
        let git = |args: &[&str]| scene.fixture.user(args, &tree);
        match self {
            State::Clean => {}
            State::Edited => write(&tree.join("dir/c.txt"), "edited\n"),
            State::EditedTheSame => write(&tree.join("a.txt"), "edited\n"),
            State::Untracked => write(&tree.join("dir/untracked.txt"), "untracked\n"),
            State::UntrackedInTheWay => write(&tree.join("added.txt"), "mine, and untracked\n"),
            State::IgnoredInTheWay => {
                let exclude = scene.fixture.repo().join(".git/info/exclude");
                write(&exclude, "ignored\n");
                write(&tree.join("ignored/file.log"), "mine, and ignored\n");
            }
            State::Staged => {
                write(&tree.join("dir/c.txt"), "staged\n");
                git(&["add", "."]);
                write(&tree.join("dir/c.txt"), "staged, then edited\n");
            }
            State::StagedAndTakenBack => {
                write(&tree.join("dir/c.txt"), "staged\n");
                git(&["add", "."]);
                write(&tree.join("dir/c.txt"), "c\n");
            }
            State::Deleted => fs::remove_file(tree.join("dir/c.txt")).unwrap(),
            State::Submodule => {
                git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init"]);
                write(&tree.join("sub/file"), "in the submodule\n");
            }
            State::SubmoduleAdded => add_submodule(&scene.fixture, &tree),
            State::Detached => drop(git(&["checkout", "-q", "--detach"])),
            State::OnAnotherBranch => drop(git(&["checkout", "-q", "-b", "aside"])),
            State::MidRebase => {
                let args = ["rebase", "-q", "--root", "--no-ff", "--exec", "false"];
                assert!(!scene.fixture.user_command(&args, &tree).output().unwrap().status.success());
            }
            State::MidMerge => {
                let base = scene.base.clone();
                let aside = scene.fixture.build(&base, |folder| write(&folder.join("dir/c.txt"), "aside\n"));
                git(&["merge", "-q", "--no-ff", "--no-commit", aside.as_str()]);
            }
            State::Unmerged => unmerged(scene),
            State::IndexLocked => write(&scene.git_dir().join("index.lock"), ""),
            State::RefLocked => write(&scene.ref_lock(), ""),
            State::NoWorktree => scene.repository().checkout_remove(&tree).unwrap(),
        }
    }
}

fn add_submodule(fixture: &Fixture, tree: &Path) {
    let inner = fixture.path("inner");
    fs::create_dir(&inner).unwrap();
    fixture.user(&["init", "-q"], &inner);
    fixture.commit_in(&inner, "inner");
    let inner = inner.to_str().unwrap();
    let args = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner, "sub"];
    fixture.user(&args, tree);
}

/// Leaves an index with a conflict and no other sign of it, as an autostash can.
fn unmerged(scene: &Scene) {
    let tree = scene.tree();
    let blob = scene.fixture.user(&["hash-object", "a.txt"], &tree);
    let entries: String = (1..=3).map(|stage| format!("100644 {blob} {stage}\tdir/c.txt\n")).collect();
    let records = format!("0 {}\tdir/c.txt\n{entries}", "0".repeat(40));
    let mut command = scene.fixture.user_command(&["update-index", "--index-info"], &tree);
    let limit = std::time::Duration::from_secs(60);
    drydock_testkit::proc::run_with_input(&mut command, &records, limit).expect_code(0);
}

/// Returns the expected outcome of the pair.
fn expected(state: State, relation: Relation, policy: OnDivergence) -> &'static str {
    match state {
        State::Detached | State::OnAnotherBranch => return "detached",
        State::MidRebase | State::MidMerge => return "mid_operation",
        _ => {}
    }
    let clash = match policy {
        OnDivergence::Recover => "recovered_by_reset",
        OnDivergence::Pause => "unreconciled",
    };
    let moves =
        matches!(relation, Relation::Behind | Relation::Diverged | Relation::Clash | Relation::Rewritten);
    match (state, relation) {
        (State::IndexLocked | State::Unmerged, _) if moves => "mid_operation",
        // A gitlink that was never committed cannot be backed up, so nothing is moved.
        (State::SubmoduleAdded, _) if moves => "unknown",
        (State::RefLocked, Relation::Clash) if policy == OnDivergence::Recover => "reset_failed",
        (
            State::RefLocked,
            Relation::Behind | Relation::Diverged | Relation::Rewritten | Relation::Replaced,
        ) => "unknown",
        (
            State::EditedTheSame | State::UntrackedInTheWay | State::IgnoredInTheWay,
            Relation::Behind | Relation::Diverged,
        ) => clash,
        (_, Relation::Same) => "in_sync",
        (_, Relation::Ahead | Relation::Missing | Relation::Replaced) => "pushed",
        (_, Relation::Behind) => "fast_forwarded",
        (_, Relation::Diverged | Relation::Rewritten) => "rebased",
        (_, Relation::Clash) => clash,
        (_, Relation::MissingAndNothingToSend | Relation::Deleted) => "no_remote_branch",
        (_, Relation::Away) => "fetch_failed",
    }
}

/// Returns the policies to test; they matter only where something may have to be given up.
fn policies(state: State, relation: Relation) -> &'static [OnDivergence] {
    match (state, relation) {
        (State::Detached | State::OnAnotherBranch | State::MidRebase | State::MidMerge, _) => {
            &[OnDivergence::Recover]
        }
        (_, Relation::Behind | Relation::Diverged | Relation::Clash) => {
            &[OnDivergence::Recover, OnDivergence::Pause]
        }
        (_, _) => &[OnDivergence::Recover],
    }
}

fn every_relation(state: State) {
    for relation in RELATIONS {
        for policy in policies(state, relation) {
            let told = format!("{state:?}, {relation:?}, {policy:?}");
            let (scene, replaces) = relation.arrange(state.fixture());
            state.arrange(&scene);
            let ledger = Ledger::of(&scene);
            let sync = || {
                scene.sync_with(|order| {
                    order.on_divergence = *policy;
                    order.replaces = replaces.as_ref();
                    order.worktree = order.worktree.filter(|_| state != State::NoWorktree);
                })
            };
            let outcome = sync();
            assert_eq!(outcome.name(), expected(state, relation, *policy), "{told}: {outcome:?}");
            assert_eq!(ledger.lost(&scene), [""; 0], "{told}: {outcome:?}");
            check_place(&scene, &outcome, &told);
            let again = sync();
            assert_eq!(ledger.lost(&scene), [""; 0], "{told}, again: {again:?}");
            settles(&outcome, &again, &told);
        }
    }
}

/// Checks that after a step branch, index and worktree are at the same commit.
fn check_place(scene: &Scene, outcome: &SyncOutcome, told: &str) {
    let to = match outcome {
        SyncOutcome::FastForwarded { to, .. }
        | SyncOutcome::Rebased { to, .. }
        | SyncOutcome::RecoveredByReset { to, .. }
        | SyncOutcome::Pushed { to, .. } => to,
        _ => return,
    };
    assert_eq!(scene.local().as_str(), to, "{told}");
    if !scene.tree().exists() {
        return;
    }
    assert_eq!(scene.fixture.head(&scene.tree()).as_str(), to, "{told}");
    if let SyncOutcome::RecoveredByReset { .. } = outcome {
        let left = scene.status();
        // Content of a submodule belongs to the submodule.
        assert!(left.lines().all(|line| line == " M sub"), "{told}: {left}");
    }
}

/// Checks that a second sync changes nothing more: it reports the same divergence, or nothing to do.
fn settles(first: &SyncOutcome, second: &SyncOutcome, told: &str) {
    match first {
        SyncOutcome::RecoveredByReset { .. }
        | SyncOutcome::ResetFailed { .. }
        | SyncOutcome::Unreconciled { .. }
        | SyncOutcome::NoRemoteBranch
        | SyncOutcome::Detached { .. }
        | SyncOutcome::MidOperation { .. }
        | SyncOutcome::InSync { .. } => assert_eq!(first, second, "{told}"),
        SyncOutcome::FastForwarded { .. } | SyncOutcome::Pushed { .. } | SyncOutcome::Rebased { .. } => {
            assert_eq!(second.name(), "in_sync", "{told}: {second:?}");
        }
        SyncOutcome::FetchFailed { .. } | SyncOutcome::Unknown { .. } => {}
        SyncOutcome::NoRemote | SyncOutcome::PushFailed { .. } | SyncOutcome::KeptLocal { .. } => {
            panic!("{told}: {first:?}")
        }
    }
}

/// Creates a test for each state, so that they run in parallel.
macro_rules! states {
    ($($name:ident: $state:ident,)*) => {$(
        #[test]
        fn $name() {
            every_relation(State::$state);
        }
    )*};
}

states! {
    a_clean_worktree: Clean,
    an_edited_file: Edited,
    an_edit_where_the_remote_changed: EditedTheSame,
    an_untracked_file: Untracked,
    an_untracked_file_where_the_remote_adds_one: UntrackedInTheWay,
    an_ignored_file_where_the_remote_adds_one: IgnoredInTheWay,
    a_staged_file_that_was_edited_since: Staged,
    a_staged_file_that_was_taken_back_since: StagedAndTakenBack,
    a_deleted_file: Deleted,
    a_submodule: Submodule,
    a_submodule_that_is_not_committed: SubmoduleAdded,
    a_detached_head: Detached,
    another_branch: OnAnotherBranch,
    a_rebase_under_way: MidRebase,
    a_merge_under_way: MidMerge,
    files_that_are_not_merged: Unmerged,
    a_locked_index: IndexLocked,
    a_locked_branch: RefLocked,
    no_worktree: NoWorktree,
}

/// Breaks when the ledger does not detect a loss.
#[test]
fn the_ledger_notices_a_loss() {
    let (scene, _) = Relation::Clash.arrange(Fixture::new());
    State::Staged.arrange(&scene);
    write(&scene.tree().join("new.txt"), "new\n");
    let ledger = Ledger::of(&scene);
    let SyncOutcome::RecoveredByReset { pin, .. } = scene.sync() else { panic!("a conflict") };
    assert_eq!(ledger.lost(&scene), [""; 0]);
    let _ = scene.repository().backup_drop(&pin.name, true).unwrap();
    // The commit, the file that it changed, the staged content, the edited file and the new file.
    assert_eq!(ledger.lost(&scene).len(), 5);
}
