//! Finds Debian's git if a newer git comes first in `PATH`, so that the oldest supported version is tested too.
//!
//! It is the installed `/usr/bin/git`, or else the package, extracted below `target/` and not installed.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use drydock_worktree::{Git, GitError, GitVersion};

use crate::machine;
use crate::say::{self, CommandError};

/// The program of Debian's package.
const INSTALLED: &str = "/usr/bin/git";

/// The test programs to run with it, by the folder of their crate, with their arguments.
pub(crate) const TRIED: [(&str, &[&str]); 2] = [("crates/worktree", &[]), ("crates/drydock", &PROGRAM)];
/// A landing and a sync through the binary.
const PROGRAM: [&str; 3] = [
    "--exact",
    "publishing::what_a_colleague_pushed_is_merged_and_the_remote_has_the_landing::sqlite",
    "diverging::what_others_push_without_a_conflict_is_joined_and_lands_with_the_plan::sqlite",
];

/// The git to test in addition to the one that is first in `PATH`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Older {
    /// This one: the value for `PATH`, and its version.
    At { path: OsString, version: String },
    /// None, for this reason.
    None(String),
}

/// Finds a git that is older than the first one in `PATH`, and downloads Debian's package if possible.
pub(crate) fn prepare(root: &Path) -> Result<Older, CommandError> {
    let front = Git::find().map_err(|error| CommandError::failed(error.to_string()))?;
    if front.version_numbers() == GitVersion::MIN {
        return Ok(Older::None(format!("git {} is already the first in PATH", front.version())));
    }
    let folder = root.join("target/debian-git");
    let bin = folder.join("bin");
    let failed =
        |error: std::io::Error| CommandError::failed(format!("could not write {}: {error}", bin.display()));
    if Path::new(INSTALLED).exists() {
        fs::create_dir_all(&bin).map_err(failed)?;
        let link = bin.join("git");
        fs::remove_file(&link).ok();
        symlink(INSTALLED, &link).map_err(failed)?;
    } else if !machine::has_apt() {
        return Ok(Older::None("this machine has no Debian packages".to_owned()));
    } else if !bin.join("git").exists() {
        extract(&folder)
            .map_err(|trouble| CommandError::failed(format!("could not download Debian's git: {trouble}")))?;
    }
    let older = match usable(bin.join("git"))? {
        Ok(older) => older,
        Err(reason) => return Ok(Older::None(reason)),
    };
    if older.version_numbers() >= front.version_numbers() {
        return Ok(Older::None(format!("git {} is not older than {}", older.version(), front.version())));
    }
    let rest = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([bin].into_iter().chain(env::split_paths(&rest)));
    let path = path.map_err(|error| CommandError::failed(error.to_string()))?;
    Ok(Older::At { path, version: older.version().to_owned() })
}

/// Returns the git at a path, or the reason why it is too old.
fn usable(program: PathBuf) -> Result<Result<Git, String>, CommandError> {
    match Git::at(program) {
        Ok(git) => Ok(Ok(git)),
        Err(error @ GitError::TooOld { .. }) => Ok(Err(error.to_string())),
        Err(error) => Err(CommandError::failed(error.to_string())),
    }
}

/// Downloads and unpacks the package. A wrapper script sets git's directories, because it was built for others.
fn extract(folder: &Path) -> Result<(), String> {
    say::note("xtask: downloading Debian's git to target/debian-git");
    let failed = |error: std::io::Error| error.to_string();
    fs::remove_dir_all(folder).ok();
    fs::create_dir_all(folder).map_err(failed)?;
    let run =
        |program: &str, args: &[&str]| match Command::new(program).args(args).current_dir(folder).output() {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim_end())),
            Err(error) => Err(format!("{program}: {error}")),
        };
    if run("apt-get", &["download", "git"]).is_err() {
        // A new machine has no package lists yet.
        run("apt-get", &["update"])?;
        run("apt-get", &["download", "git"])?;
    }
    let files = fs::read_dir(folder).map_err(failed)?;
    let files: Vec<PathBuf> =
        files.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().map_err(failed)?;
    let package = files.iter().find(|path| path.extension().is_some_and(|end| end == "deb"));
    let package = package.ok_or("apt-get downloaded no package")?;
    run("dpkg-deb", &["--extract", &package.to_string_lossy(), "package"])?;
    let (unpacked, bin) = (folder.join("package/usr"), folder.join("bin"));
    fs::create_dir_all(&bin).map_err(failed)?;
    let script = format!(
        "#!/bin/sh\nexport GIT_EXEC_PATH={0}/lib/git-core GIT_TEMPLATE_DIR={0}/share/git-core/templates\nexec {0}/bin/git \"$@\"\n",
        unpacked.display()
    );
    fs::write(bin.join("git"), script).map_err(failed)?;
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks if an installed git that is older than the oldest supported version fails the step.
    #[test]
    fn a_git_that_is_too_old_is_not_tried() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("git");
        fs::write(&program, "#!/bin/sh\necho git version 2.30.2\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let reason = usable(program).unwrap().unwrap_err();
        assert!(reason.contains("2.30.2"), "{reason}");
    }

    /// Breaks if a test that is selected by name was renamed, and is therefore not run.
    #[test]
    fn the_tests_that_are_chosen_exist() {
        for name in &PROGRAM[1..] {
            let mut parts = name.split("::");
            let (file, test) = (parts.next().unwrap(), parts.next().unwrap());
            let path = crate::root().join(format!("crates/drydock/tests/it/{file}.rs"));
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.contains(&format!("fn {test}(")), "{} has no {test}", path.display());
        }
    }
}
