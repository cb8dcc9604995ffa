//! Finds the git program once, checks its version and fixes its environment.
//!
//! Only this file compares versions. Callers check for a feature, such as `takes_merge_base`.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::GitError;
use crate::memory::GitCache;
use crate::run::GitCall;

/// Major and minor version of git.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GitVersion(u32, u32);

impl GitVersion {
    /// Oldest supported version, the one in Debian 12.
    pub const MIN: GitVersion = GitVersion(2, 39);
    /// First version whose `merge-tree` accepts a merge base.
    const MERGE_BASE: GitVersion = GitVersion(2, 40);
    /// First version with `fetch --porcelain`, which prints the position of the fetched branch.
    const FETCH_PORCELAIN: GitVersion = GitVersion(2, 41);

    /// Parses the first two numbers; the rest differs between builds (`2.39.5 (Apple Git-154)`).
    fn read(version: &str) -> Option<GitVersion> {
        let mut parts = version.split(|c: char| !c.is_ascii_digit());
        Some(GitVersion(parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }
}

impl fmt::Display for GitVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// Variables passed on from our own environment, which is trusted.
const HANDED_ON: &[&str] =
    &["HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "TMPDIR"];

/// Variables passed only to calls that contact a remote.
const HANDED_ON_TO_REMOTES: &[&str] = &[
    "SSH_AUTH_SOCK",
    "GIT_SSH_COMMAND",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
];

/// Variables passed only to calls that sign.
const HANDED_ON_TO_SIGNERS: &[&str] = &["SSH_AUTH_SOCK", "GNUPGHOME"];

/// A git program with a supported version.
#[derive(Debug, Clone)]
pub struct Git {
    inner: Arc<GitProgram>,
}

#[derive(Debug, Clone)]
struct GitProgram {
    path: PathBuf,
    version: String,
    numbers: GitVersion,
    environment: Vec<(OsString, OsString)>,
    remote_environment: Vec<(OsString, OsString)>,
    signer_environment: Vec<(OsString, OsString)>,
    memory: Arc<GitCache>,
}

impl Git {
    /// Finds git in PATH and checks its version.
    pub fn find() -> Result<Git, GitError> {
        Git::at(Git::locate()?)
    }

    /// Finds git in PATH without checking its version.
    pub fn locate() -> Result<PathBuf, GitError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        // With a relative entry in PATH, the program would depend on the current directory.
        let found = std::env::split_paths(&path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join("git"))
            .find(|candidate| is_program(candidate));
        found.ok_or(GitError::Missing)
    }

    /// Checks the version of the program at a path.
    pub fn at(program: PathBuf) -> Result<Git, GitError> {
        let mut environment = taken(HANDED_ON);
        environment.push(("PATH".into(), std::env::var_os("PATH").unwrap_or_default()));
        let program = GitProgram {
            path: program,
            version: String::new(),
            numbers: GitVersion::MIN,
            environment,
            remote_environment: taken(HANDED_ON_TO_REMOTES),
            signer_environment: taken(HANDED_ON_TO_SIGNERS),
            memory: Arc::default(),
        };
        let git = Git { inner: Arc::new(program) };
        let attempt = "ask git for its version";
        let answer = GitCall::new(&git, Path::new("/"), attempt).arg("version").run();
        let text = match answer {
            Ok(output) => output.text(attempt)?,
            Err(GitError::Start { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Err(GitError::Missing);
            }
            Err(error) => return Err(error),
        };
        let version = text.trim().strip_prefix("git version ").map(str::to_owned);
        let version = version.ok_or_else(|| GitError::unexpected(attempt, text))?;
        match GitVersion::read(&version) {
            None => Err(GitError::unexpected(attempt, version)),
            Some(found) if found < GitVersion::MIN => {
                Err(GitError::TooOld { program: git.inner.path.clone(), found: version })
            }
            Some(numbers) => {
                Ok(Git { inner: Arc::new(GitProgram { version, numbers, ..(*git.inner).clone() }) })
            }
        }
    }

    /// Returns the version as git prints it, such as `2.47.3`.
    pub fn version(&self) -> &str {
        &self.inner.version
    }

    /// Returns the major and minor version.
    pub fn version_numbers(&self) -> GitVersion {
        self.inner.numbers
    }

    /// Returns true if `merge-tree` accepts a merge base.
    pub(crate) fn takes_merge_base(&self) -> bool {
        self.inner.numbers >= GitVersion::MERGE_BASE
    }

    /// Returns true if `fetch` can print the position of the fetched branch.
    pub(crate) fn prints_fetched(&self) -> bool {
        self.inner.numbers >= GitVersion::FETCH_PORCELAIN
    }

    /// Returns the path of the program.
    pub fn program(&self) -> &Path {
        &self.inner.path
    }

    /// Returns the same program with another home directory, and therefore another user configuration.
    pub fn with_home(&self, home: &Path) -> Git {
        let mut program = (*self.inner).clone();
        let about_config = |name: &OsStr| HANDED_ON[..4].iter().any(|known| name == *known);
        program.environment.retain(|(name, _)| !about_config(name));
        program.environment.push(("HOME".into(), home.into()));
        program.memory = Arc::default();
        Git { inner: Arc::new(program) }
    }

    pub(crate) fn memory(&self) -> &GitCache {
        &self.inner.memory
    }

    pub(crate) fn environment(&self) -> &[(OsString, OsString)] {
        &self.inner.environment
    }

    pub(crate) fn signer_environment(&self) -> &[(OsString, OsString)] {
        &self.inner.signer_environment
    }

    pub(crate) fn remote_environment(&self) -> &[(OsString, OsString)] {
        &self.inner.remote_environment
    }
}

fn taken(names: &[&str]) -> Vec<(OsString, OsString)> {
    names.iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?))).collect()
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::GitVersion;

    #[test]
    fn versions_of_all_builds_are_read() {
        assert_eq!(GitVersion::read("2.47.3"), Some(GitVersion(2, 47)));
        assert_eq!(GitVersion::read("2.39.5 (Apple Git-154)"), Some(GitVersion(2, 39)));
        assert_eq!(GitVersion::read("2.45.windows.1"), Some(GitVersion(2, 45)));
        assert_eq!(GitVersion::read("3.0-rc1"), Some(GitVersion(3, 0)));
        assert_eq!(GitVersion::read("next"), None);
        assert!(GitVersion(2, 100) > GitVersion(2, 39) && GitVersion(3, 0) > GitVersion(2, 39));
    }
}
