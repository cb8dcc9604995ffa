//! The one way to call git: a fixed environment, fixed settings, a time limit, and an error for
//! every answer that was not asked for.
//!
//! Keeps S4.13: an option that git does not know is an error. Git says so by exit code 129, except
//! `rev-parse`, which prints such an option back with code 0; `Output::rev_parse` looks for that.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tracing::Span;

use crate::child::{self, Broken, Conversation, Ended};
use crate::error::GitError;
use crate::git::Git;
use crate::patience::Patience;

/// The limit of an ordinary call.
const LIMIT: Duration = Duration::from_secs(120);
/// The limit of a call that writes the files of a whole worktree.
pub(crate) const LIMIT_FILES: Duration = Duration::from_secs(600);
/// The most of git's words that an error carries.
const DETAIL_MAX: usize = 4096;
/// What git exits with when it does not know an option.
const USAGE: i32 = 129;

/// Settings that hold for every call, whatever a repository's configuration says.
const SETTINGS: &[(&str, &str)] = &[
    ("advice.addEmbeddedRepo", "false"),
    ("color.ui", "false"),
    ("commit.gpgSign", "false"),
    // The program `true`, which says nothing about the refs of an alternate.
    ("core.alternateRefsCommand", "true"),
    ("core.editor", "false"),
    ("core.fsmonitor", "false"),
    // Loose objects are not synced by default; a ref that outlives a power cut must find its commit.
    ("core.fsync", "committed,derived-metadata"),
    ("core.fsyncMethod", "batch"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.quotePath", "false"),
    // A warning about line ends must not lose an agent's work.
    ("core.safecrlf", "false"),
    ("core.splitIndex", "false"),
    ("gc.auto", "0"),
    ("i18n.commitEncoding", "UTF-8"),
    ("log.showSignature", "false"),
    ("maintenance.auto", "false"),
    ("protocol.ext.allow", "never"),
    ("push.gpgSign", "false"),
    ("submodule.recurse", "false"),
];

/// A repository as seen from one of its worktrees.
///
/// Every directory is named to git, so that neither a rewritten `.git` file in a worktree nor a
/// `commondir` can lead a call to another repository and its configuration.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) git: Git,
    pub(crate) git_dir: PathBuf,
    pub(crate) common_dir: PathBuf,
    pub(crate) work_tree: PathBuf,
}

impl Place {
    /// Starts a call in this worktree.
    pub(crate) fn call(&self, attempt: impl Into<String>) -> Call {
        Call::new(&self.git, &self.work_tree, attempt)
            .env("GIT_DIR", &self.git_dir)
            .env("GIT_COMMON_DIR", &self.common_dir)
            .env("GIT_WORK_TREE", &self.work_tree)
    }

    /// Starts a call that needs no files, so that a worktree which is gone is no obstacle.
    pub(crate) fn call_without_files(&self, attempt: impl Into<String>) -> Call {
        Call::new(&self.git, &self.common_dir, attempt)
            .env("GIT_DIR", &self.git_dir)
            .env("GIT_COMMON_DIR", &self.common_dir)
    }
}

/// One call of git, built up and then run.
#[must_use]
pub(crate) struct Call {
    git: Git,
    attempt: String,
    folder: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    settings: Vec<(String, String)>,
    stdin: Vec<u8>,
    limit: Duration,
    /// In place of the limit, where several calls share their time.
    patience: Option<Patience>,
    accepted: &'static [i32],
    repeats: Repeats,
    /// The index of our own that it works on.
    private_index: Option<PathBuf>,
}

/// Whether a call that a signal ended is made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeats {
    Once,
    Never,
}

/// What an accepted call answered.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Call {
    pub(crate) fn new(git: &Git, folder: &Path, attempt: impl Into<String>) -> Call {
        Call {
            git: git.clone(),
            attempt: attempt.into(),
            folder: folder.to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            settings: Vec::new(),
            stdin: Vec::new(),
            limit: LIMIT,
            patience: None,
            accepted: &[0],
            repeats: Repeats::Once,
            private_index: None,
        }
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Call {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub(crate) fn args<const N: usize>(mut self, args: [&str; N]) -> Call {
        self.args.extend(args.iter().map(OsString::from));
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Call {
        self.env.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Works on an index of our own instead of the worktree's.
    pub(crate) fn index(mut self, path: &Path) -> Call {
        self.private_index = Some(path.to_owned());
        self.env("GIT_INDEX_FILE", path)
    }

    /// Makes the call only once, also when a signal ended it: a second call would misread the effects of the first.
    pub(crate) fn once(mut self) -> Call {
        self.repeats = Repeats::Never;
        self
    }

    pub(crate) fn settings(mut self, settings: &[(String, String)]) -> Call {
        self.settings.extend_from_slice(settings);
        self
    }

    pub(crate) fn stdin(mut self, bytes: Vec<u8>) -> Call {
        self.stdin = bytes;
        self
    }

    pub(crate) fn limit(mut self, limit: Duration) -> Call {
        self.limit = limit;
        self
    }

    /// Limits the call to the remaining time of `patience`, which it shares with other calls.
    pub(crate) fn patience(mut self, patience: &Patience) -> Call {
        self.patience = Some(patience.clone());
        self
    }

    /// Names the exit codes that are answers; any other is an error.
    pub(crate) fn accept(mut self, codes: &'static [i32]) -> Call {
        self.accepted = codes;
        self
    }

    /// Lets the call reach remotes, with the variables that ssh and proxies need.
    pub(crate) fn remote(mut self) -> Call {
        self.env.extend_from_slice(self.git.remote_environment());
        self.env("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh").unproxied()
    }

    /// Lets the call sign, with the variables that find keys. A question for a passphrase is answered by a program that
    /// fails, since no one is there to answer it.
    pub(crate) fn signing(mut self) -> Call {
        self.env.extend_from_slice(self.git.signer_environment());
        self.env("SSH_ASKPASS", "false").env("SSH_ASKPASS_REQUIRE", "force")
    }

    /// Lets the call reach remotes only in ways that start no program which a configuration names.
    pub(crate) fn remote_without_programs(self) -> Call {
        self.env("GIT_ALLOW_PROTOCOL", "file:git").unproxied()
    }

    /// Set and empty, the variable keeps git from the program that `core.gitProxy` names; no setting could.
    fn unproxied(self) -> Call {
        self.env("GIT_PROXY_COMMAND", "")
    }

    /// Makes the call. A git that a signal ended, such as one that the kernel killed for want of memory, is started once more
    /// (BUG-10): reading can be repeated, objects are named by their content, and refs are compared before they change.
    pub(crate) fn run(self) -> Result<Output, GitError> {
        let _span = self.span().entered();
        let answer = self.run_once();
        match answer {
            Err(GitError::Failed { code: None, .. }) if self.repeats == Repeats::Once => {
                if let Some(index) = &self.private_index {
                    // A git that was killed leaves it. No other process uses this index.
                    fs::remove_file(index.with_extension("lock")).ok();
                }
                tracing::warn!(attempt = self.attempt, "a signal ended git; starting it once more");
                self.run_once()
            }
            answer => answer,
        }
    }

    fn run_once(&self) -> Result<Output, GitError> {
        let patience = self.patience.clone().unwrap_or_else(|| Patience::of(self.limit));
        match child::run(self.command(), self.stdin.clone(), &patience) {
            Ok(ended) => judge(&self.attempt, ended, self.accepted),
            Err(broken) => Err(broken.named(&self.attempt, patience.limit())),
        }
    }

    /// Returns the span of this call for a trace: which of git's commands it is, and nothing of what it is given, where
    /// an address with a password could be.
    fn span(&self) -> Span {
        let verb = || self.args.first().map_or_else(String::new, |verb| verb.to_string_lossy().into_owned());
        tracing::info_span!(target: "drydock::trace", "git", otel.name = format!("git {}", verb()))
    }

    /// Starts the call as a conversation, in parts that a byte ends, instead of waiting for its end.
    pub(crate) fn converse(self, end: u8) -> Result<(Conversation, Duration), GitError> {
        let limit = self.limit;
        Conversation::start(self.command(), end, limit)
            .map(|conversation| (conversation, limit))
            .map_err(|broken| broken.named(&self.attempt, limit))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.git.program());
        command.args(&self.args).current_dir(&self.folder).env_clear();
        command.envs(self.git.environment().iter().map(|(name, value)| (name, value)));
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
        // Reading an object must never fetch it: the configuration names the program that serves it.
        command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "");
        // Pathspecs of ours are marked where they are meant to be patterns.
        let fixed = SETTINGS.iter().map(|(key, value)| (*key, *value));
        let added = self.settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let mut count = 0;
        for (key, value) in fixed.chain(added) {
            command.env(format!("GIT_CONFIG_KEY_{count}"), key);
            command.env(format!("GIT_CONFIG_VALUE_{count}"), value);
            count += 1;
        }
        command.env("GIT_CONFIG_COUNT", count.to_string());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }
}

impl Broken {
    pub(crate) fn named(self, attempt: &str, limit: Duration) -> GitError {
        let attempt = attempt.to_owned();
        match self {
            Broken::Start(source) => GitError::Start { attempt, source },
            Broken::TimedOut => GitError::TimedOut { attempt, limit_s: limit.as_secs() },
            Broken::Lost(source) => GitError::Lost { attempt, source },
            Broken::Stopped => GitError::Stopped { attempt },
        }
    }
}

/// Turns what a child left into an answer or an error.
pub(crate) fn judge(attempt: &str, ended: Ended, accepted: &[i32]) -> Result<Output, GitError> {
    let code = ended.status.code();
    let stderr = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
    match code {
        Some(code) if accepted.contains(&code) => Ok(Output { code, stdout: ended.stdout, stderr }),
        Some(USAGE) => {
            let detail = stderr.lines().next().unwrap_or("no more was said").to_owned();
            Err(GitError::UnknownOption { attempt: attempt.to_owned(), detail })
        }
        code => Err(failure(attempt, code, stderr)),
    }
}

/// Git has one exit code for most failures; its words, fixed by `LC_ALL=C`, tell them apart.
fn failure(attempt: &str, code: Option<i32>, stderr: String) -> GitError {
    let attempt = attempt.to_owned();
    let mut detail = stderr;
    if detail.len() > DETAIL_MAX {
        let end = (0..=DETAIL_MAX).rev().find(|at| detail.is_char_boundary(*at)).unwrap_or(0);
        detail.truncate(end);
        detail.push('…');
    }
    if detail.is_empty() {
        detail = match code {
            Some(code) => format!("git exited with code {code}"),
            None => "git was ended by a signal".to_owned(),
        };
    }
    let says = |words: &str| detail.contains(words);
    if says("index.lock") && says("File exists") {
        GitError::IndexLocked { attempt, detail }
    } else if says("cannot lock ref") && says("File exists") || says(".lock': File exists") {
        GitError::RefLocked { attempt, detail }
    } else if (says("clean filter '") || says("smudge filter ")) && says("failed") {
        GitError::FilterRefused { attempt, detail }
    } else {
        GitError::Failed { attempt, code, detail }
    }
}

impl Output {
    /// Returns the answer as text.
    pub(crate) fn text(&self, attempt: &str) -> Result<String, GitError> {
        let text = std::str::from_utf8(&self.stdout);
        text.map(str::to_owned).map_err(|_| GitError::unexpected(attempt, "it is not UTF-8"))
    }

    /// Returns the lines of a `rev-parse`, which prints options that it does not know back.
    pub(crate) fn rev_parse(&self, attempt: &str) -> Result<Vec<Vec<u8>>, GitError> {
        let body = self.stdout.strip_suffix(b"\n").unwrap_or(&self.stdout);
        let lines: Vec<Vec<u8>> = body.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
        match lines.iter().find(|line| line.starts_with(b"-")) {
            Some(echo) => Err(GitError::UnknownOption {
                attempt: attempt.to_owned(),
                detail: String::from_utf8_lossy(echo).into_owned(),
            }),
            None => Ok(lines),
        }
    }

    /// Returns the fields of an answer in which NUL ends each field.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &[u8]> {
        let body = self.stdout.strip_suffix(b"\0").unwrap_or(&self.stdout);
        let none = self.stdout.is_empty();
        body.split(|b| *b == 0).filter(move |_| !none)
    }
}

/// Reads a path of the repository; other names than UTF-8 are refused.
pub(crate) fn path_text(bytes: &[u8]) -> Result<String, GitError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(GitError::PathNotUtf8 { path: String::from_utf8_lossy(bytes).into_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::{Duration, Instant};

    use super::Call;
    use crate::error::GitError;
    use crate::git::Git;

    fn call(folder: &Path, args: &[&str]) -> Call {
        let git = Git::find().unwrap();
        args.iter().fold(Call::new(&git, folder, "test"), |call, arg| call.arg(arg))
    }

    fn repository() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        call(folder.path(), &["init", "-q"]).run().unwrap();
        folder
    }

    /// Breaks when a full disk is blamed on the files, and work is put by that the next run could keep.
    #[test]
    fn want_of_room_is_told_from_what_git_refuses() {
        let said = |code, text: &str| super::failure("test", code, text.to_owned()).is_starved();
        assert!(said(Some(128), "error: unable to write file .git/objects/ab: No space left on device"));
        assert!(said(Some(128), "fatal: Out of memory, malloc failed"));
        assert!(said(None, ""), "killed");
        assert!(!said(Some(128), "error: open(\"a\"): Permission denied"));
    }

    #[test]
    fn an_option_unknown_to_git_is_an_error_of_every_command_we_call() {
        let folder = repository();
        let commands = [
            "add",
            "cat-file",
            "commit-tree",
            "config",
            "diff-files",
            "diff-tree",
            "fetch",
            "for-each-ref",
            "hash-object",
            "ls-files",
            "ls-remote",
            "merge-base",
            "merge-file",
            "merge-tree",
            "push",
            "read-tree",
            "rev-list",
            "status",
            "symbolic-ref",
            "update-index",
            "update-ref",
            "worktree",
            "write-tree",
        ];
        for command in commands {
            let error = call(folder.path(), &[command, "--no-such-option"]).run().unwrap_err();
            match command {
                "commit-tree" | "update-index" => assert!(!error.is_transient(), "{command}: {error:?}"),
                _ => assert!(matches!(error, GitError::UnknownOption { .. }), "{command}: {error:?}"),
            }
        }
        let error = call(folder.path(), &["--no-such-option", "version"]).run().unwrap_err();
        assert!(matches!(error, GitError::UnknownOption { .. }), "{error:?}");
        assert!(error.to_string().contains("no-such-option"), "{error}");
    }

    #[test]
    fn an_option_that_rev_parse_prints_back_is_an_error() {
        let folder = repository();
        let output = call(folder.path(), &["rev-parse", "--no-such-option"]).run().unwrap();
        assert!(matches!(output.rev_parse("test"), Err(GitError::UnknownOption { .. })), "{output:?}");
    }

    #[test]
    fn a_call_that_takes_too_long_is_ended_with_its_children() {
        let started = Instant::now();
        let alias = "alias.wait=!sleep 60";
        let error =
            call(Path::new("/"), &["-c", alias, "wait"]).limit(Duration::from_millis(100)).run().unwrap_err();
        assert!(matches!(error, GitError::TimedOut { .. }) && error.is_transient(), "{error:?}");
        assert!(started.elapsed() < Duration::from_secs(30));
    }
}
