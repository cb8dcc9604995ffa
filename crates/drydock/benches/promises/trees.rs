//! Making a worktree of 10,000 files against bare `git worktree add`.

use drydock_testkit::repo::Repo;
use drydock_worktree::{CommitId, Git, Repository};

use crate::measure::{Promise, Table, seconds};

const FILES: usize = 10_000;
const ROUNDS: usize = 9;

pub(crate) fn run(table: &mut Table) {
    let repo = Repo::with_files(FILES);
    let place = tempfile::tempdir().unwrap();
    let repository = Repository::open(&Git::find().unwrap(), repo.path()).unwrap();
    let base: CommitId = repo.head("main").parse().unwrap();
    let mut ratios = Vec::new();
    for round in 0..ROUNDS {
        let bare_path = place.path().join(format!("bare-{round}"));
        let branch = format!("bare-{round}");
        let bare = || {
            let path = bare_path.to_str().unwrap();
            repo.git(&["worktree", "add", "--quiet", "--no-track", "-b", &branch, path, "main"]);
        };
        let ours_path = place.path().join(format!("plan/run-{round}/tree"));
        let ours = || {
            std::fs::create_dir_all(ours_path.parent().unwrap()).unwrap();
            repository.checkout_add(&ours_path, &format!("drydock/plan-{round}/work"), &base).unwrap();
        };
        // Who goes first takes turns: the second finds warmer caches.
        let (bare_s, ours_s) = if round % 2 == 0 {
            let bare_s = seconds(bare);
            (bare_s, seconds(ours))
        } else {
            let ours_s = seconds(ours);
            (seconds(bare), ours_s)
        };
        ratios.push(ours_s / bare_s);
        repo.git(&["worktree", "remove", "--force", bare_path.to_str().unwrap()]);
        repository.checkout_remove(&ours_path).unwrap();
    }
    table.ratio("worktree of 10,000 files ÷ `git worktree add`", Promise::AtMost(1.15), &ratios);
}
