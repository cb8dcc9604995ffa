//! Checks that nothing is lost: all earlier content must still be reachable, from a ref or as a file.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use drydock_testkit::proc;

use crate::scene::Scene;

const LIMIT: Duration = Duration::from_secs(60);

/// All commits and all file contents at some moment.
pub(crate) struct Ledger {
    commits: BTreeSet<String>,
    contents: BTreeSet<String>,
}

impl Ledger {
    /// Records everything committed in repository and remote, staged, and in the worktree, including ignored
    /// files.
    pub(crate) fn of(scene: &Scene) -> Ledger {
        let contents = files(scene).union(&staged(scene)).cloned().collect();
        Ledger { commits: commits(scene, &scene.fixture.repo()), contents }
    }

    /// Returns everything that no longer exists anywhere.
    pub(crate) fn lost(&self, scene: &Scene) -> Vec<String> {
        let repo = scene.fixture.repo();
        let kept = scene.fixture.user(&["rev-list", "--all", "--objects"], &repo);
        let mut found: BTreeSet<String> =
            kept.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
        let remote = scene.fixture.path("remote");
        if remote.exists() {
            found.extend(commits(scene, &remote));
        }
        found.extend(files(scene));
        found.extend(staged(scene));
        self.commits.iter().chain(&self.contents).filter(|id| !found.contains(*id)).cloned().collect()
    }
}

fn staged(scene: &Scene) -> BTreeSet<String> {
    if !scene.tree().exists() {
        return BTreeSet::new();
    }
    let listed = scene.fixture.user(&["ls-files", "--stage"], &scene.tree());
    // Gitlinks are not content of this repository.
    let blobs = listed.lines().filter(|line| !line.starts_with("160000"));
    blobs.filter_map(|line| line.split(' ').nth(1)).map(str::to_owned).collect()
}

fn commits(scene: &Scene, folder: &Path) -> BTreeSet<String> {
    scene.fixture.user(&["rev-list", "--all"], folder).lines().map(str::to_owned).collect()
}

/// Returns the object ids of all files in the worktree.
fn files(scene: &Scene) -> BTreeSet<String> {
    let mut paths = Vec::new();
    collect(&scene.tree(), &mut paths);
    let names: String = paths.iter().map(|path| format!("{}\n", path.to_str().unwrap())).collect();
    let args = ["hash-object", "--no-filters", "--stdin-paths"];
    let mut command = scene.fixture.user_command(&args, &scene.fixture.repo());
    proc::run_with_input(&mut command, &names, LIMIT)
        .expect_code(0)
        .stdout
        .lines()
        .map(str::to_owned)
        .collect()
}

fn collect(folder: &Path, paths: &mut Vec<std::path::PathBuf>) {
    // A missing worktree has no files.
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.file_name().is_some_and(|name| name == ".git") {
            continue;
        }
        if fs::symlink_metadata(&path).unwrap().is_dir() { collect(&path, paths) } else { paths.push(path) }
    }
}
