//! What can go wrong, and whether trying again can help.
//!
//! A refusal of the world (a stale branch, dirty files, a conflict) is an outcome of its call and
//! not found here; these are the cases in which we could not find out or could not act.

use std::path::PathBuf;

use crate::git::GitVersion;

/// A call of git that did not do what was attempted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// There is no git program.
    #[error("could not find git: install git {} or later and make sure that PATH names it", GitVersion::MIN)]
    Missing,
    /// The program is older than what is needed.
    #[error("{} is git {found}, but {} or later is needed", program.display(), GitVersion::MIN)]
    TooOld {
        /// The program that was asked.
        program: PathBuf,
        /// The version it names.
        found: String,
    },
    /// The process could not be started or talked to.
    #[error("could not {attempt}: git did not start")]
    Start {
        /// The attempted action.
        attempt: String,
        /// Why the process did not start.
        source: std::io::Error,
    },
    /// The call took too long and was ended.
    #[error("could not {attempt}: git did not end within {limit_s} s")]
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
        /// Why.
        source: std::io::Error,
    },
    /// The call was ended because a stop was asked for.
    #[error("could not {attempt}: it was asked to stop first")]
    Stopped {
        /// The attempted action.
        attempt: String,
    },
    /// This git does not know an option that was given.
    #[error("could not {attempt}: this git does not know an option: {detail}")]
    UnknownOption {
        /// The attempted action.
        attempt: String,
        /// What git said.
        detail: String,
    },
    /// Another git process holds the index, or one that died left its lock.
    #[error("could not {attempt}: the index is locked: {detail}")]
    IndexLocked {
        /// The attempted action.
        attempt: String,
        /// Which lock, in git's words.
        detail: String,
    },
    /// Another git process holds a ref, or one that died left its lock.
    #[error("could not {attempt}: a ref is locked: {detail}")]
    RefLocked {
        /// The attempted action.
        attempt: String,
        /// Which lock, in git's words.
        detail: String,
    },
    /// Other work on the worktrees of this repository did not end in time.
    #[error("could not {attempt}: {} is held by {holder}", lock.display())]
    Busy {
        /// The attempted action.
        attempt: String,
        /// The lock file waited for.
        lock: PathBuf,
        /// Who holds it.
        holder: String,
    },
    /// A push to the remote goes to several addresses, so that no single one says what landed.
    #[error(
        "{remote} is pushed to {} addresses ({}), and a plan lands at one; keep one of them: `git -C '{}' config \
         --replace-all remote.{remote}.pushurl '{}'`",
        addresses.len(), addresses.join(", "), root.display(), addresses.first().map_or("", String::as_str)
    )]
    ManyAddresses {
        /// The remote.
        remote: String,
        /// The addresses, without passwords.
        addresses: Vec<String>,
        /// The directory of the repository.
        root: PathBuf,
    },
    /// The remote could not be reached or broke off.
    #[error("could not {attempt}: {detail}")]
    Remote {
        /// The attempted action.
        attempt: String,
        /// What git said.
        detail: String,
    },
    /// A path uses a filter that only the repository's own configuration defines.
    #[error(
        "could not {attempt}: a filter of the repository's own configuration is not run; define it in yours: {detail}"
    )]
    FilterRefused {
        /// The attempted action.
        attempt: String,
        /// What git said.
        detail: String,
    },
    /// Git said no in some other way.
    #[error("could not {attempt}: {detail}")]
    Failed {
        /// The attempted action.
        attempt: String,
        /// The exit code; none when a signal ended it.
        code: Option<i32>,
        /// What git said.
        detail: String,
    },
    /// Git answered something that cannot be read.
    #[error("could not {attempt}: git's answer is not understood: {detail}")]
    Unexpected {
        /// The attempted action.
        attempt: String,
        /// The part that was not understood.
        detail: String,
    },
    /// A file beside git's could not be read or written.
    #[error("could not {attempt}: {}", path.display())]
    File {
        /// The attempted action.
        attempt: String,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A name in the repository is not UTF-8.
    #[error("the name {path:?} is not UTF-8: rename the file, drydock handles no other names")]
    PathNotUtf8 {
        /// The name, with replacement characters.
        path: String,
    },
    /// The directory contains another repository, which a commit cannot hold.
    #[error("{path:?} is a git repository of its own: remove its .git, or add it as a submodule first")]
    NestedRepository {
        /// Where it is, below the worktree.
        path: String,
    },
    /// A submodule was changed: its files, or the commit that is recorded of it. A commit of this repository cannot hold that.
    #[error(
        "{path:?} is a submodule and has changes that cannot be captured: change it in its own repository, or take it out with \
         `git rm` in yours first"
    )]
    SubmoduleChanged {
        /// Where it is, below the worktree.
        path: String,
    },
    /// Git would wait for a file that is not a regular one.
    #[error("{path:?} is a {kind}, and git would wait for its content: remove it")]
    SpecialFile {
        /// Where it is, below the worktree.
        path: String,
        /// Its type, such as `pipe`.
        kind: &'static str,
    },
    /// A changed file is too large.
    #[error(
        "{path:?} has {size} bytes, and a changed file may have {limit}: remove it, add it to .gitignore, or raise file_max of \
         [capture] in the configuration"
    )]
    FileTooLarge {
        /// Where it is, below the worktree.
        path: String,
        /// How large it is, in bytes.
        size: u64,
        /// How large it may be.
        limit: u64,
    },
    /// The changed files are too large together.
    #[error(
        "the changed files have {size} bytes together, and may have {limit}; the largest is {path:?}: remove what is not part \
         of the work, add it to .gitignore, or raise total_max of [capture] in the configuration"
    )]
    ChangeTooLarge {
        /// The largest of them, below the worktree.
        path: String,
        /// How large they are, in bytes.
        size: u64,
        /// How large they may be.
        limit: u64,
    },
    /// Too many files changed.
    #[error(
        "{count} files differ from the base, and at most {limit} may; most of them are in {path:?}: remove what is not part of \
         the work, add it to .gitignore, or raise files_max of [capture] in the configuration"
    )]
    TooManyFiles {
        /// The folder with the most of them, below the worktree.
        path: String,
        /// How many there are.
        count: u64,
        /// How many there may be.
        limit: u64,
    },
    /// A branch is checked out where drydock must not touch it.
    #[error("branch {branch} is checked out in {}, which is not drydock's", worktree.display())]
    BranchInUse {
        /// The branch.
        branch: String,
        /// The worktree that has it.
        worktree: PathBuf,
    },
    /// Something that is no checkout of this repository is in the way.
    #[error("{} holds files that are no checkout of this repository: move them away", path.display())]
    Occupied {
        /// The directory.
        path: PathBuf,
    },
    /// A landing that would drop commits was asked for.
    #[error("{to} does not contain {from}: landing it would drop commits")]
    NotForward {
        /// The commit the branch has.
        from: String,
        /// The commit it should get.
        to: String,
    },
    /// A branch, ref or remote cannot be called that.
    #[error("{name:?} is not a usable name: {reason}")]
    BadName {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl GitError {
    /// Tells whether the same call can succeed later without anybody doing something.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::TimedOut { .. }
            | Self::Lost { .. }
            | Self::Stopped { .. }
            | Self::IndexLocked { .. }
            | Self::RefLocked { .. }
            | Self::Busy { .. }
            | Self::Remote { .. }
            // A signal ended it.
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

    /// Tells whether a signal ended git.
    pub fn is_by_signal(&self) -> bool {
        matches!(self, Self::Failed { code: None, .. })
    }

    /// Tells whether git failed for want of room or memory, or was killed: nothing that it was asked about is to blame.
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

    /// Returns the next step for a person, where there is more to do than to look at git.
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
            "if you trust the filter, copy it into your own configuration, in the repository: `git config --local \
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
    /// There is no such directory.
    #[error("there is no directory {}", path.display())]
    Missing {
        /// The path that was given.
        path: PathBuf,
    },
    /// The directory belongs to no repository.
    #[error("{} is not in a git repository", path.display())]
    NotARepository {
        /// The path that was given.
        path: PathBuf,
    },
    /// The repository has no files checked out.
    #[error("{} is a bare repository", path.display())]
    Bare {
        /// The path that was given.
        path: PathBuf,
    },
    /// Nothing was ever committed.
    #[error("{} has no commits", path.display())]
    NoCommits {
        /// The path that was given.
        path: PathBuf,
    },
    /// A part of the history is missing.
    #[error("{} is a shallow clone", path.display())]
    Shallow {
        /// The path that was given.
        path: PathBuf,
    },
    /// A branch has the name that those of all plans begin with.
    #[error("{} has a branch named drydock, beside which no branch drydock/… of a plan can be made", path.display())]
    NameTaken {
        /// The root of the repository.
        path: PathBuf,
    },
    /// Git could not tell.
    #[error("could not open {}", path.display())]
    Git {
        /// The path that was given.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: GitError,
    },
}

impl OpenError {
    /// Returns what the person can do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "check the path, or create the directory and run git init in it",
            Self::NotARepository { .. } => "run git init there, or name a directory of a repository",
            Self::Bare { .. } => "clone it and name the clone",
            Self::NoCommits { .. } => "make a first commit, e.g. git commit --allow-empty -m start",
            Self::Shallow { .. } => "run git fetch --unshallow in it",
            Self::NameTaken { .. } => "rename that branch, e.g. git branch -m drydock drydock-work",
            Self::Git { .. } => "run git status there and see what it says",
        }
    }

    /// Tells whether the same call can succeed later without anybody doing something.
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
