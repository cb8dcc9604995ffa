//! A plan's branch with its worktree, a remote, and another user who pushes there.

use std::path::PathBuf;

use drydock_domain::{OnDivergence, Publish, SyncOutcome};
use drydock_worktree::{BackupRequest, Checkout, CommitId, Repository, Signature, SyncRequest};

use crate::fixture::{Fixture, ada, write};

pub(crate) const BRANCH: &str = "drydock/p/work";

pub(crate) struct Scene {
    pub(crate) fixture: Fixture,
    pub(crate) base: CommitId,
    pub(crate) checkout: Checkout,
    pub(crate) signature: Signature,
}

impl Scene {
    /// The branch is checked out at its base; the remote is empty.
    pub(crate) fn new() -> Scene {
        Scene::on(Fixture::new())
    }

    /// The same, on a repository whose `main` is the base.
    pub(crate) fn on(fixture: Fixture) -> Scene {
        fixture.user(&["init", "-q", "--bare", "remote"], &fixture.path(""));
        let address = format!("file://{}", fixture.path("remote").display());
        fixture.user(&["remote", "add", "origin", &address], &fixture.repo());
        let base = fixture.tip("main");
        let checkout = fixture.open().checkout_add(&fixture.tree("p"), BRANCH, &base).unwrap();
        Scene { fixture, base, checkout, signature: ada() }
    }

    /// The remote has the branch at the same commit, and its position is recorded.
    pub(crate) fn pushed() -> Scene {
        Scene::new().push()
    }

    /// Pushes the branch, and records its position.
    pub(crate) fn push(self) -> Scene {
        let scene = self;
        scene.fixture.user(&["push", "-q", "origin", BRANCH], &scene.fixture.repo());
        assert_eq!(scene.sync(), SyncOutcome::InSync { head: scene.base.to_string() });
        scene
    }

    pub(crate) fn repository(&self) -> Repository {
        self.fixture.open()
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.checkout.path().to_owned()
    }

    pub(crate) fn sync(&self) -> SyncOutcome {
        self.sync_with(|_| {})
    }

    pub(crate) fn sync_with<'a>(&'a self, change: impl FnOnce(&mut SyncRequest<'a>)) -> SyncOutcome {
        let mut order = self.order();
        change(&mut order);
        self.repository().sync(&order)
    }

    pub(crate) fn order(&self) -> SyncRequest<'_> {
        SyncRequest {
            branch: BRANCH,
            base: &self.base,
            target: "main",
            remote: Some("origin"),
            worktree: Some(&self.checkout),
            on_divergence: OnDivergence::Recover,
            publish: Publish::Yes,
            replaces: None,
            pin: BackupRequest { plan: "p", run: Some("r"), reason: "sync", signature: &self.signature },
        }
    }

    /// Commits a file in the worktree.
    pub(crate) fn commit(&self, name: &str, text: &str, message: &str) -> CommitId {
        write(&self.tree().join(name), text);
        self.fixture.commit_in(&self.tree(), message)
    }

    /// Pushes a change of one file on top of the remote's branch, as another user.
    pub(crate) fn remote_commit(&self, name: &str, text: &str, message: &str) -> CommitId {
        let other = self.other();
        write(&other.join(name), text);
        let commit = self.fixture.commit_in(&other, message);
        self.fixture.user(&["push", "-q", "origin", &format!("HEAD:{BRANCH}")], &other);
        commit
    }

    /// Returns another user's clone, updated to the remote.
    pub(crate) fn other(&self) -> PathBuf {
        let other = self.fixture.path("other");
        if !other.exists() {
            self.fixture.user(&["clone", "-q", "--no-checkout", "remote", "other"], &self.fixture.path(""));
        }
        self.fixture.user(&["fetch", "-q", "origin", BRANCH], &other);
        self.fixture.user(&["checkout", "-q", "--detach", "FETCH_HEAD"], &other);
        other
    }

    /// Forces the remote's branch to a commit on top of another, as another user.
    pub(crate) fn rewrite_remote(&self, onto: &CommitId, name: &str, text: &str) {
        let other = self.other();
        self.fixture.user(&["checkout", "-q", "--detach", onto.as_str()], &other);
        write(&other.join(name), text);
        self.fixture.commit_in(&other, "rewritten");
        self.fixture.user(&["push", "-q", "--force", "origin", &format!("HEAD:{BRANCH}")], &other);
    }

    /// Returns the worktree's own git directory.
    pub(crate) fn git_dir(&self) -> PathBuf {
        self.fixture.user(&["rev-parse", "--absolute-git-dir"], &self.tree()).into()
    }

    /// Returns the file with which git locks the branch.
    pub(crate) fn ref_lock(&self) -> PathBuf {
        self.fixture.repo().join(format!(".git/refs/heads/{BRANCH}.lock"))
    }

    pub(crate) fn local(&self) -> CommitId {
        self.fixture.tip(BRANCH)
    }

    pub(crate) fn remote_tip(&self) -> Option<CommitId> {
        let full = format!("refs/heads/{BRANCH}");
        let args = ["for-each-ref", "--format=%(objectname)", &full];
        self.fixture.user(&args, &self.fixture.path("remote")).parse().ok()
    }

    pub(crate) fn status(&self) -> String {
        self.fixture.status(&self.tree())
    }
}
