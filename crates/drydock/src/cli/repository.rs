//! Finds the checkout that contains the current directory, by reading directories.

use std::path::{Path, PathBuf};
use std::{env, fs};

use drydock_api::{Code, Problem, Project};

/// The checkout that contains the current directory.
pub(crate) struct Stand {
    /// Its own directory, which may be a linked worktree.
    pub(crate) root: PathBuf,
    /// The main worktree, which identifies the project.
    pub(crate) main: PathBuf,
}

impl Stand {
    /// Returns true if this is a checkout of the project.
    pub(crate) fn is_in(&self, project: &Project) -> bool {
        same(Path::new(&project.repo), &self.main)
    }
}

/// Returns the checkout that contains the current directory.
pub(crate) fn stand() -> Result<Stand, Box<Problem>> {
    let here = here()?;
    let Some(root) = root_of(&here) else {
        let (what, hint) = match bare_of(&here) {
            Some(_) => ("a bare repository", "run this in a clone of it, or pass --project NAME"),
            None => ("not in a git repository", "run this in a git repository, or pass --project NAME"),
        };
        let text = format!("{} is {what}", here.display());
        return Err(Box::new(Problem::new(Code::RepositoryUnusable, text).hint(hint)));
    };
    let main = main_of(&root).unwrap_or_else(|| root.clone());
    Ok(Stand { root, main })
}

fn here() -> Result<PathBuf, Box<Problem>> {
    env::current_dir().and_then(|here| here.canonicalize()).map_err(|error| {
        let text = format!("could not find the current directory: {error}");
        Box::new(Problem::new(Code::RepositoryUnusable, text).hint("pass --project NAME"))
    })
}

/// Returns the nearest parent directory that is the root of a checkout. Its `.git` is a directory, or a file in a
/// linked worktree.
fn root_of(here: &Path) -> Option<PathBuf> {
    here.ancestors().find(|directory| directory.join(".git").exists()).map(Path::to_owned)
}

/// Returns the nearest parent directory that is a bare repository, recognised by the files git itself checks for.
fn bare_of(here: &Path) -> Option<&Path> {
    let is_bare = |directory: &&Path| {
        directory.join("HEAD").is_file()
            && directory.join("objects").is_dir()
            && directory.join("refs").is_dir()
    };
    here.ancestors().find(is_bare)
}

/// Returns the main worktree of a linked one, which identifies the project. Returns none for a main worktree, for a
/// submodule, and if the shared repository is bare.
fn main_of(root: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(root.join(".git")).ok()?;
    let git_dir = root.join(text.strip_prefix("gitdir:")?.trim());
    let shared = git_dir.join(fs::read_to_string(git_dir.join("commondir")).ok()?.trim());
    let shared = shared.canonicalize().ok()?;
    shared.file_name().filter(|name| *name == ".git").and(shared.parent()).map(Path::to_owned)
}

fn same(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().is_ok_and(|one| one == other)
}

/// Derives a project name from a directory name; characters that names cannot contain become dashes.
pub(crate) fn name_of(root: &Path) -> String {
    let name = root.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name: String = name.chars().map(|c| if fits(c) { c } else { '-' }).take(100).collect();
    let name = name.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    if name.is_empty() { "project".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drydock_domain::Name;
    use std::process::Command;

    #[test]
    fn a_directory_makes_a_valid_name() {
        for (path, name) in [
            ("/a/my site", "my-site"),
            ("/a/.dot", "dot"),
            ("/", "project"),
            ("/a/ü", "project"),
            ("/a/x.y", "x.y"),
        ] {
            assert_eq!(name_of(Path::new(path)), name);
            assert!(name.parse::<Name>().is_ok());
        }
    }

    #[test]
    fn the_nearest_checkout_upwards_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b/c");
        fs::create_dir_all(&deep).unwrap();
        assert_eq!(root_of(&deep), root_of(folder.path()));
        fs::write(folder.path().join("a/.git"), "gitdir: elsewhere").unwrap();
        assert_eq!(root_of(&deep), Some(folder.path().join("a")));
    }

    /// Breaks if a second task in a linked worktree is taken for a task in another repository.
    #[test]
    fn a_linked_worktree_belongs_to_its_main_one() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let git = |at: &Path, words: &[&str]| {
            let named = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
            let done = Command::new("git").arg("-C").arg(at).args(named).args(words).output().unwrap();
            assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
        };
        let main = folder.join("main");
        git(&folder, &["init", "-q", "main"]);
        git(&main, &["commit", "-q", "--allow-empty", "-m", "Begin"]);
        git(&main, &["worktree", "add", "-q", "../linked"]);
        assert_eq!(main_of(&folder.join("linked")), Some(main.clone()));
        assert_eq!(main_of(&main), None);
        git(&folder, &["clone", "-q", "--bare", "main", "bare"]);
        assert_eq!(bare_of(&folder.join("bare/refs")), Some(folder.join("bare").as_path()));
        assert_eq!(bare_of(&main), None);
        git(&folder.join("bare"), &["worktree", "add", "-q", "../alone"]);
        assert_eq!(main_of(&folder.join("alone")), None, "no main worktree");
        let sub = ["-c", "protocol.file.allow=always", "submodule", "add", "-q", "../main", "sub"];
        git(&folder, &["clone", "-q", "main", "super"]);
        git(&folder.join("super"), &sub);
        assert_eq!(main_of(&folder.join("super/sub")), None, "a submodule is a repository of its own");
    }
}
