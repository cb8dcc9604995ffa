//! Copies the files of the user's home directory that an agent needs, such as its login, into the agent's own
//! home, because the agent may not write to the real one. The copies are removed when the run ends.
//!
//! Drydock does not run in the sandbox, and the agent may have put symbolic links into its home in an earlier
//! round of the run. Therefore no link is followed on the way to a copy, and a copy is removed through the
//! handle of the directory into which it was written.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use drydock_domain::error_chain;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;

use crate::error::StartError;
use crate::spec::AgentSpec;

/// Maximum size of a copied file.
const FILE_MAX: u64 = 1024 * 1024;

/// Copied files, removed on drop.
#[derive(Debug, Default)]
pub(crate) struct HomeFiles {
    copies: Vec<CopiedFile>,
}

/// A copy: its directory, and its name there.
#[derive(Debug)]
struct CopiedFile {
    directory: OwnedFd,
    name: OsString,
}

impl HomeFiles {
    /// Copies the configured files that exist. An agent with access to the real home needs no copies.
    pub(crate) async fn copied(spec: &AgentSpec, home: &Path) -> Result<Self, StartError> {
        let own_home = spec.env().contains_key("HOME") || spec.pass_env().iter().any(|name| name == "HOME");
        let Some(real) = std::env::home_dir().filter(|_| !own_home) else { return Ok(Self::default()) };
        let (files, home) = (spec.home_files().to_vec(), home.to_owned());
        let copying = tokio::task::spawn_blocking(move || {
            let mut copied = Self::default();
            for file in files {
                let from = real.join(&file);
                match copy(&from, &home, Path::new(&file)) {
                    Ok(copy) => copied.copies.push(copy),
                    // A configured file may be missing.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(source) => return Err(StartError::Directory { path: from, source }),
                }
            }
            Ok(copied)
        });
        copying.await.unwrap_or_else(|error| {
            Err(StartError::Directory { path: PathBuf::from("home_files"), source: io::Error::other(error) })
        })
    }
}

impl Drop for HomeFiles {
    fn drop(&mut self) {
        for CopiedFile { directory, name } in &self.copies {
            if let Err(error) = unlinkat(directory, name, AtFlags::empty()) {
                tracing::debug!(error = %error_chain(&error), ?name, "a copied file was already removed");
            }
        }
    }
}

fn copy(from: &Path, home: &Path, file: &Path) -> io::Result<CopiedFile> {
    let mut content = Vec::new();
    fs::File::open(from)?.take(FILE_MAX + 1).read_to_end(&mut content)?;
    if content.len() as u64 > FILE_MAX {
        return Err(io::Error::other(format!("it is larger than {FILE_MAX} bytes")));
    }
    let outside = || io::Error::other("it is not below the home directory");
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut directory = openat(CWD, home, flags, Mode::empty())?;
    for part in file.parent().into_iter().flat_map(Path::components) {
        let Component::Normal(part) = part else { return Err(outside()) };
        match mkdirat(&directory, part, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(Errno::EXIST) => directory = openat(&directory, part, flags, Mode::empty())?,
            Err(errno) => return Err(errno.into()),
        }
    }
    let name = file.file_name().ok_or_else(outside)?.to_owned();
    match unlinkat(&directory, &name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let copy = openat(&directory, &name, flags, Mode::from_raw_mode(0o600))?;
    File::from(copy).write_all(&content)?;
    Ok(CopiedFile { directory, name })
}

#[cfg(test)]
mod tests {
    use super::{HomeFiles, copy};
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    /// Breaks when a symbolic link left by an agent makes drydock, which is not sandboxed, write or remove a
    /// file elsewhere.
    #[test]
    fn no_link_of_an_agents_leads_a_copy_elsewhere() {
        let dock = tempfile::tempdir().unwrap();
        let (home, real) = (dock.path().join("home"), dock.path().join("real"));
        fs::create_dir(&home).unwrap();
        fs::create_dir(&real).unwrap();
        fs::write(real.join("auth.json"), "mine").unwrap();
        fs::write(dock.path().join("login"), "secret").unwrap();
        let from = dock.path().join("login");
        let file = Path::new(".codex/auth.json");
        let copies = HomeFiles { copies: vec![copy(&from, &home, file).unwrap()] };
        assert_eq!(fs::read_to_string(home.join(file)).unwrap(), "secret");
        // The agent replaces the directory by a link; the copy is still the file that is removed.
        fs::rename(home.join(".codex"), home.join("moved")).unwrap();
        symlink(&real, home.join(".codex")).unwrap();
        drop(copies);
        assert!(!home.join("moved/auth.json").exists());
        assert!(copy(&from, &home, file).is_err(), "no link is followed");
        fs::remove_file(home.join(".codex")).unwrap();
        fs::create_dir(home.join(".codex")).unwrap();
        symlink(real.join("auth.json"), home.join(file)).unwrap();
        copy(&from, &home, file).unwrap();
        assert_eq!(fs::read_to_string(real.join("auth.json")).unwrap(), "mine");
        assert!(copy(&from, &home, Path::new("../auth.json")).is_err());
    }
}
