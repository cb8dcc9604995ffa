//! Errors of this crate, and whether a retry can help.
//!
//! A stale branch, dirty files or a conflict is an outcome of its call, not an error. An error means that we
//! could not find out or could not act.

use std::path::PathBuf;

use crate::git::GitVersion;

/// A git call that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// No git program was found.
    #[error("could not find git: install git {} or later and make sure that it is in PATH", GitVersion::MIN)]
    Missing,
    /// The git program is too old.
    #[error("{} is git {found}, but {} or later is needed", program.display(), GitVersion::MIN)]
    TooOld {
        /// Path of the program.
        program: PathBuf,
        /// The version that it printed.
        found: String,
    },
    /// The process could not be started.
    #[error("could not {attempt}: git did not start")]
    Start {
        /// The attempted action.
        attempt: String,
        /// Why the process did not start.
        source: std::io::Error,
    },
    /// The call exceeded its time limit and was ended.
    #[error("could not {attempt}: git did not finish within {limit_s} s")]
    TimedOut {
        /// The attempted action.
        attempt: String,
        /// The limit, in seconds.
        limit_s: u64,
    },
    /// Git ended, and its exit status could not be read.
    #[error("could not {attempt}: the exit status of git could not be read")]
    Lost {
        /// The attempted action.
        attempt: String,
        /// Why the status could not be read.
        source: std::io::Error,
    },
    /// The call was ended because a stop was requested.
    #[error("could not {attempt}: stopped before it was done")]
    Stopped {
        /// The attempted action.
        attempt: String,
    },
    /// This version of git does not support an option that was passed.
    #[error("could not {attempt}: this version of git does not support an option: {detail}")]
    UnknownOption {
        /// The attempted action.
        attempt: String,
        /// Git's message.
        detail: String,
    },
    /// Another git process holds the index lock, or left it behind when it died.
    #[error("could not {attempt}: the index is locked: {detail}")]
    IndexLocked {
        /// The attempted action.
        attempt: String,
        /// Git's message, which names the lock.
        detail: String,
    },
    /// Another git process holds a ref lock, or left it behind when it died.
    #[error("could not {attempt}: a ref is locked: {detail}")]
    RefLocked {
        /// The attempted action.
        attempt: String,
        /// Git's message, which names the lock.
        detail: String,
    },
    /// Another operation on this repository's worktrees did not finish in time.
    #[error("could not {attempt}: {} is held by {holder}", lock.display())]
    Busy {
        /// The attempted action.
        attempt: String,
        /// The lock file.
        lock: PathBuf,
        /// The process that holds the lock.
        holder: String,
    },
    /// The remote has several push addresses, so none of them alone shows whether a landing took effect.
    #[error(
        "{remote} has {} push addresses ({}), but a plan can land at one only; keep one of them: `git -C \
         '{}' \
         config \
         --replace-all remote.{remote}.pushurl '{}'`",
        addresses.len(), addresses.join(", "), root.display(), addresses.first().map_or("", String::as_str)
    )]
    ManyAddresses {
        /// Name of the remote.
        remote: String,
        /// The addresses, without passwords.
        addresses: Vec<String>,
        /// Directory of the repository.
        root: PathBuf,
    },
    /// The remote could not be reached, or the connection broke.
    #[error("could not {attempt}: {detail}")]
    Remote {
        /// The attempted action.
        attempt: String,
        /// Git's message.
        detail: String,
    },
    /// A path uses a filter that is defined only in the repository's own configuration.
    #[error(
        "could not {attempt}: filters from the repository's own configuration are not run; define the \
         filter in your configuration: {detail}"
    )]
    FilterRefused {
        /// The attempted action.
        attempt: String,
        /// Git's message.
        detail: String,
    },
    /// Git failed for any other reason.
    #[error("could not {attempt}: {detail}")]
    Failed {
        /// The attempted action.
        attempt: String,
        /// The exit code, or `None` if a signal ended git.
        code: Option<i32>,
        /// Git's message.
        detail: String,
    },
    /// Git's output could not be parsed.
    #[error("could not {attempt}: unexpected output of git: {detail}")]
    Unexpected {
        /// The attempted action.
        attempt: String,
        /// The part that could not be parsed.
        detail: String,
    },
    /// A file could not be read or written.
    #[error("could not {attempt}: {}", path.display())]
    File {
        /// The attempted action.
        attempt: String,
        /// Path of the file.
        path: PathBuf,
        /// Why the file could not be read or written.
        source: std::io::Error,
    },
    /// A path in the repository is not UTF-8.
    #[error("the name {path:?} is not UTF-8: rename the file, drydock supports only UTF-8 names")]
    PathNotUtf8 {
        /// The path, with replacement characters.
        path: String,
    },
    /// The directory contains another repository, which a commit cannot include.
    #[error("{path:?} is a nested git repository: remove its .git, or add it as a submodule first")]
    NestedRepository {
        /// Path of the nested repository, relative to the worktree.
        path: String,
    },
    /// The files or the recorded commit of a submodule changed. A commit of this repository cannot include
    /// such a change.
    #[error(
        "{path:?} is a submodule and has changes that cannot be captured: change it in its own repository, \
         or remove it with `git rm` first"
    )]
    SubmoduleChanged {
        /// Path of the submodule, relative to the worktree.
        path: String,
    },
    /// Git would block on a file that is not a regular file.
    #[error("{path:?} is a {kind}, and reading it would block git: remove it")]
    SpecialFile {
        /// Path of the file, relative to the worktree.
        path: String,
        /// The file type, such as `pipe`.
        kind: &'static str,
    },
    /// A changed file is too large.
    #[error(
        "{path:?} has {size} bytes, limit {limit} per changed file: remove it, add it to .gitignore, \
         or raise file_max of \
         [capture] in the configuration"
    )]
    FileTooLarge {
        /// Path of the file, relative to the worktree.
        path: String,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The total size of the changed files is too large.
    #[error(
        "the changed files have {size} bytes in total, limit {limit}; the largest is {path:?}: remove \
         files that are not part of the work, add them to .gitignore, or raise total_max of [capture] in \
         the configuration"
    )]
    ChangeTooLarge {
        /// The largest of the files, relative to the worktree.
        path: String,
        /// Total size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// Too many files changed.
    #[error(
        "{count} files differ from the base, limit {limit}; most of them are in {path:?}: remove files \
         that are not part of the work, add them to .gitignore, or raise files_max of [capture] in the \
         configuration"
    )]
    TooManyFiles {
        /// The folder that contains most of them, relative to the worktree.
        path: String,
        /// Number of changed files.
        count: u64,
        /// Maximum number of changed files.
        limit: u64,
    },
    /// A branch is checked out in a worktree that drydock must not modify.
    #[error("branch {branch} is checked out in {}, which is not drydock's", worktree.display())]
    BranchInUse {
        /// Name of the branch.
        branch: String,
        /// The worktree in which it is checked out.
        worktree: PathBuf,
    },
    /// The path is occupied by files that are not a checkout of this repository.
    #[error("{} contains files that are not a checkout of this repository: move them away", path.display())]
    Occupied {
        /// The occupied directory.
        path: PathBuf,
    },
    /// The landing would drop commits.
    #[error("{to} does not contain {from}: landing it would drop commits")]
    NotForward {
        /// Current commit of the branch.
        from: String,
        /// Commit to land.
        to: String,
    },
    /// The name of a branch, ref or remote is not allowed.
    #[error("{name:?} is not a usable name: {reason}")]
    BadName {
        /// The rejected name.
        name: String,
        /// Why it was rejected.
        reason: &'static str,
    },
}

impl GitError {
    /// Returns true if a retry of the same call can succeed without anyone fixing something first.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::TimedOut { .. }
            | Self::Lost { .. }
            | Self::Stopped { .. }
            | Self::IndexLocked { .. }
            | Self::RefLocked { .. }
            | Self::Busy { .. }
            | Self::Remote { .. }
            // Ended by a signal.
            | Self::Failed { code: None, .. } => true,
            Self::Missing
            | Self::TooOld { .. }
            | Self::Start { .. }
            | Self::UnknownOption { .. }
            | Self::ManyAddresses { .. }
            | Self::FilterRefused { .. }
            | Self::Failed { .. }
            | Self::Unexpected { .. }
            | Self::File { .. }
            | Self::PathNotUtf8 { .. }
            | Self::NestedRepository { .. }
            | Self::SubmoduleChanged { .. }
            | Self::SpecialFile { .. }
            | Self::FileTooLarge { .. }
            | Self::ChangeTooLarge { .. }
            | Self::TooManyFiles { .. }
            | Self::BranchInUse { .. }
            | Self::Occupied { .. }
            | Self::NotForward { .. }
            | Self::BadName { .. } => false,
        }
    }

    /// Returns true if a signal ended git.
    pub fn is_by_signal(&self) -> bool {
        matches!(self, Self::Failed { code: None, .. })
    }

    /// Returns true if git ran out of disk space, memory or file descriptors, or was killed. In these cases
    /// the input of the call is not the cause.
    pub fn is_starved(&self) -> bool {
        const WORDS: [&str; 5] = [
            "No space left on device",
            "Disk quota exceeded",
            "Out of memory",
            "Cannot allocate memory",
            "Too many open files",
        ];
        match self {
            Self::Failed { code: None, .. } => true,
            Self::Failed { detail, .. } => WORDS.iter().any(|words| detail.contains(words)),
            _ => false,
        }
    }

    /// Returns the next step for the user, if more is needed than reading git's message.
    pub fn hint(&self) -> Option<String> {
        if let Self::ManyAddresses { remote, root, .. } = self {
            let list = format!("git -C '{}' remote get-url --push --all {remote}", root.display());
            return Some(format!("`{list}` lists them"));
        }
        let Self::FilterRefused { detail, .. } = self else { return None };
        let name = detail.split_once("filter '").map_or(detail.as_str(), |(_, rest)| rest);
        let name =
            name.split(|c: char| !c.is_alphanumeric() && !"-_.".contains(c)).next().unwrap_or_default();
        Some(format!(
            "if you trust the filter, copy it into your own configuration, in the repository: `git config \
             --local \
             --get-regexp '^filter\\.{}\\.' | while read -r key value; do git config --global \"$key\" \"$value\"; done`",
            name.replace('.', "\\.")
        ))
    }

    pub(crate) fn file(attempt: &str, path: &std::path::Path, source: std::io::Error) -> Self {
        Self::File { attempt: attempt.to_owned(), path: path.to_owned(), source }
    }

    pub(crate) fn unexpected(attempt: &str, detail: impl Into<String>) -> Self {
        Self::Unexpected { attempt: attempt.to_owned(), detail: detail.into() }
    }
}

/// Why a directory cannot be used as a project's repository.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The directory does not exist.
    #[error("directory {} does not exist", path.display())]
    Missing {
        /// The given path.
        path: PathBuf,
    },
    /// The directory is not in a repository.
    #[error("{} is not in a git repository", path.display())]
    NotARepository {
        /// The given path.
        path: PathBuf,
    },
    /// The repository has no working tree.
    #[error("{} is a bare repository", path.display())]
    Bare {
        /// The given path.
        path: PathBuf,
    },
    /// The repository has no commits.
    #[error("{} has no commits", path.display())]
    NoCommits {
        /// The given path.
        path: PathBuf,
    },
    /// The history is incomplete.
    #[error("{} is a shallow clone", path.display())]
    Shallow {
        /// The given path.
        path: PathBuf,
    },
    /// A branch is named `drydock`, which prevents branches named `drydock/…`.
    #[error("{} has a branch named drydock, which prevents plan branches named drydock/…", path.display())]
    NameTaken {
        /// The root of the repository.
        path: PathBuf,
    },
    /// A git call failed.
    #[error("could not open {}", path.display())]
    Git {
        /// The given path.
        path: PathBuf,
        /// The failed call.
        #[source]
        source: GitError,
    },
}

impl OpenError {
    /// Returns the next step for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "check the path, or create the directory and run git init in it",
            Self::NotARepository { .. } => "run git init there, or name a directory of a repository",
            Self::Bare { .. } => "clone it and name the clone",
            Self::NoCommits { .. } => "make a first commit, e.g. git commit --allow-empty -m start",
            Self::Shallow { .. } => "run git fetch --unshallow in it",
            Self::NameTaken { .. } => "rename that branch, e.g. git branch -m drydock drydock-work",
            Self::Git { .. } => "run git status there and check its output",
        }
    }

    /// Returns true if a retry of the same call can succeed without anyone fixing something first.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Git { source, .. } => source.is_transient(),
            Self::Missing { .. }
            | Self::NotARepository { .. }
            | Self::Bare { .. }
            | Self::NoCommits { .. }
            | Self::Shallow { .. }
            | Self::NameTaken { .. } => false,
        }
    }
}
