//! Syncing a branch against the bare git commands that it cannot do without.

use std::path::Path;
use std::process::{Command, Stdio};

use drydock_domain::{OnDivergence, Publish, SyncOutcome};
use drydock_testkit::repo::Repo;
use drydock_worktree::{BackupRequest, CommitId, Git, Repository, SyncRequest};
use tempfile::TempDir;

use crate::measure::{Promise, Table, seconds};

const ROUNDS: usize = 31;
const COMMITS: usize = 1_000;
const BRANCH: &str = "drydock/pln-bench/work";

pub(crate) fn run(table: &mut Table) {
    in_sync(table);
    diverged(table);
}

/// A repository with a branch, and a bare remote that has it too.
struct Pair {
    repo: Repo,
    repository: Repository,
    base: CommitId,
    _remote: TempDir,
}

impl Pair {
    fn new() -> Self {
        let repo = Repo::with_files(100);
        let remote = tempfile::tempdir().unwrap();
        let path = remote.path().join("remote.git");
        let path = path.to_str().unwrap();
        repo.git(&["branch", BRANCH]);
        repo.git(&["clone", "-q", "--bare", ".", path]);
        repo.git(&["remote", "add", "origin", path]);
        let repository = Repository::open(&Git::find().unwrap(), repo.path()).unwrap();
        let base = repo.head("main").parse().unwrap();
        Self { repo, repository, base, _remote: remote }
    }

    fn sync(&self, plan: &str) -> SyncOutcome {
        let signature = self.repository.signature(1);
        self.repository.sync(&SyncRequest {
            branch: BRANCH,
            base: &self.base,
            target: "main",
            remote: Some("origin"),
            worktree: None,
            on_divergence: OnDivergence::Pause,
            publish: Publish::No,
            replaces: None,
            pin: BackupRequest { plan, run: None, reason: "a bench", signature: &signature },
        })
    }

    /// Puts commits on a branch, each of which changes one file, and returns to main.
    fn commits(&self, branch: &str, word: &str) {
        let mut text = String::new();
        for number in 0..COMMITS {
            let from = if number == 0 { format!("from {}\n", self.base) } else { String::new() };
            let content = format!("{word} {number}\n");
            text += &format!(
                "commit refs/heads/{branch}\ncommitter B <b@example.org> {number} +0000\ndata 1\nx\n{from}M 100644 \
                 inline shared.txt\ndata {}\n{content}\n",
                content.len()
            );
        }
        let mut child = Command::new("git")
            .args(["fast-import", "--quiet", "--force"])
            .current_dir(self.repo.path())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), text.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
    }
}

/// Runs git as anybody would, without looking at what it says.
fn git(folder: &Path, args: &[&str]) {
    let status = Command::new("git").args(args).current_dir(folder).stdout(Stdio::null()).status().unwrap();
    assert!(matches!(status.code(), Some(0 | 1)), "git {args:?}");
}

fn in_sync(table: &mut Table) {
    let pair = Pair::new();
    let refspec = format!("+refs/heads/{BRANCH}:refs/remotes/bench/work");
    let bare = || git(pair.repo.path(), &["fetch", "-q", "--no-tags", "origin", &refspec]);
    let ours = || assert!(matches!(pair.sync("pln-bench"), SyncOutcome::InSync { .. }));
    bare();
    ours();
    let mut ratios = Vec::new();
    for round in 0..ROUNDS {
        let (bare_s, ours_s) = if round % 2 == 0 {
            let bare_s = seconds(bare);
            (bare_s, seconds(ours))
        } else {
            let ours_s = seconds(ours);
            (seconds(bare), ours_s)
        };
        ratios.push(ours_s / bare_s);
    }
    table.ratio("sync of an in-sync branch ÷ `git fetch`", Promise::AtMost(1.2), &ratios);
}

fn diverged(table: &mut Table) {
    let pair = Pair::new();
    pair.commits("theirs", "theirs");
    pair.repo.git(&["push", "-q", "--force", "origin", &format!("theirs:{BRANCH}")]);
    pair.commits(BRANCH, "ours");
    let refspec = format!("+refs/heads/{BRANCH}:refs/remotes/bench/work");
    // What git must do whoever asks: fetch, list the commits of both sides, try to join the first of them.
    let bare = || {
        let folder = pair.repo.path();
        git(folder, &["fetch", "-q", "--no-tags", "origin", &refspec]);
        git(folder, &["log", "--format=%H %an %s", &format!("theirs..{BRANCH}")]);
        git(folder, &["log", "--format=%H %an %s", &format!("{BRANCH}..theirs")]);
        let first = format!("{BRANCH}~{}", COMMITS - 1);
        git(folder, &["merge-tree", "--write-tree", "theirs", &first]);
    };
    let ours = |plan: &str| assert!(matches!(pair.sync(plan), SyncOutcome::Unreconciled { .. }));
    bare();
    let mut beyond = Vec::new();
    for round in 0..ROUNDS {
        let (bare_s, ours_s) = (seconds(bare), seconds(|| ours(&format!("pln-{round}"))));
        beyond.push((ours_s - bare_s) * 1_000.0);
    }
    table.milliseconds("1,000 and 1,000 diverged commits, beyond git's own time", 50.0, &beyond);
}
