//! Runs git: fixed environment, fixed settings, a time limit, and an error for every exit code that the
//! caller did not accept. All git calls use this module.
//!
//! Keeps S4.13: an option that git does not know is an error. Git reports it with exit code 129, except
//! `rev-parse`, which echoes the option with code 0; `Output::rev_parse` checks for that.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tracing::Span;

use crate::child::{self, Conversation, ProcessError, ProcessOutput};
use crate::error::GitError;
use crate::git::Git;
use crate::patience::Patience;

/// Time limit of an ordinary call.
const LIMIT: Duration = Duration::from_secs(120);
/// Time limit of a call that writes the files of a whole worktree.
pub(crate) const LIMIT_FILES: Duration = Duration::from_secs(600);
/// Maximum length of git's message in an error.
const DETAIL_MAX: usize = 4096;
/// Git's exit code for an unknown option.
const USAGE: i32 = 129;

/// Settings for every call, which override the configuration of the repository.
const SETTINGS: &[(&str, &str)] = &[
    ("advice.addEmbeddedRepo", "false"),
    ("color.ui", "false"),
    ("commit.gpgSign", "false"),
    // The program `true`, which prints no refs of an alternate.
    ("core.alternateRefsCommand", "true"),
    ("core.editor", "false"),
    ("core.fsmonitor", "false"),
    // By default loose objects are not synced; a ref that survives a power failure must point to an existing
    // commit.
    ("core.fsync", "committed,derived-metadata"),
    ("core.fsyncMethod", "batch"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.quotePath", "false"),
    // A warning about line endings must not lose an agent's work.
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
/// All directories are passed to git explicitly, so that neither a rewritten `.git` file in a worktree nor a
/// `commondir` can lead a call to another repository and its configuration.
#[derive(Debug, Clone)]
pub(crate) struct GitContext {
    pub(crate) git: Git,
    pub(crate) git_dir: PathBuf,
    pub(crate) common_dir: PathBuf,
    pub(crate) work_tree: PathBuf,
}

impl GitContext {
    /// Builds a call in this worktree.
    pub(crate) fn call(&self, attempt: impl Into<String>) -> GitCall {
        GitCall::new(&self.git, &self.work_tree, attempt)
            .env("GIT_DIR", &self.git_dir)
            .env("GIT_COMMON_DIR", &self.common_dir)
            .env("GIT_WORK_TREE", &self.work_tree)
    }

    /// Builds a call that needs no files, and therefore works even if the worktree is missing.
    pub(crate) fn call_without_files(&self, attempt: impl Into<String>) -> GitCall {
        GitCall::new(&self.git, &self.common_dir, attempt)
            .env("GIT_DIR", &self.git_dir)
            .env("GIT_COMMON_DIR", &self.common_dir)
    }
}

/// A git call: built step by step, then run.
#[must_use]
pub(crate) struct GitCall {
    git: Git,
    attempt: String,
    folder: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    settings: Vec<(String, String)>,
    stdin: Vec<u8>,
    limit: Duration,
    /// Replaces the limit if several calls share their time.
    patience: Option<Patience>,
    accepted: &'static [i32],
    repeats: Repeats,
    /// The private index on which the call works.
    private_index: Option<PathBuf>,
}

/// Whether a call is repeated after a signal ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeats {
    Once,
    Never,
}

/// The output of an accepted call.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl GitCall {
    pub(crate) fn new(git: &Git, folder: &Path, attempt: impl Into<String>) -> GitCall {
        GitCall {
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

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> GitCall {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub(crate) fn args<const N: usize>(mut self, args: [&str; N]) -> GitCall {
        self.args.extend(args.iter().map(OsString::from));
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> GitCall {
        self.env.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Uses a private index instead of the worktree's.
    pub(crate) fn index(mut self, path: &Path) -> GitCall {
        self.private_index = Some(path.to_owned());
        self.env("GIT_INDEX_FILE", path)
    }

    /// Disables the repeat after a signal: a second call would misinterpret the effects of the first.
    pub(crate) fn once(mut self) -> GitCall {
        self.repeats = Repeats::Never;
        self
    }

    pub(crate) fn settings(mut self, settings: &[(String, String)]) -> GitCall {
        self.settings.extend_from_slice(settings);
        self
    }

    pub(crate) fn stdin(mut self, bytes: Vec<u8>) -> GitCall {
        self.stdin = bytes;
        self
    }

    pub(crate) fn limit(mut self, limit: Duration) -> GitCall {
        self.limit = limit;
        self
    }

    /// Limits the call to the remaining time of `patience`, which it shares with other calls.
    pub(crate) fn patience(mut self, patience: &Patience) -> GitCall {
        self.patience = Some(patience.clone());
        self
    }

    /// Sets the exit codes that are accepted; any other is an error.
    pub(crate) fn accept(mut self, codes: &'static [i32]) -> GitCall {
        self.accepted = codes;
        self
    }

    /// Allows the call to contact remotes, with the variables that ssh and proxies need.
    pub(crate) fn remote(mut self) -> GitCall {
        self.env.extend_from_slice(self.git.remote_environment());
        self.env("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh").unproxied()
    }

    /// Allows the call to sign, with the variables that locate keys. A passphrase prompt runs a program that
    /// fails, because there is no user to answer it.
    pub(crate) fn signing(mut self) -> GitCall {
        self.env.extend_from_slice(self.git.signer_environment());
        self.env("SSH_ASKPASS", "false").env("SSH_ASKPASS_REQUIRE", "force")
    }

    /// Allows the call to contact remotes, but only by protocols that start no program from a configuration.
    pub(crate) fn remote_without_programs(self) -> GitCall {
        self.env("GIT_ALLOW_PROTOCOL", "file:git").unproxied()
    }

    /// Set to an empty value, this variable prevents git from running the program that `core.gitProxy` names.
    /// No setting can do that.
    fn unproxied(self) -> GitCall {
        self.env("GIT_PROXY_COMMAND", "")
    }

    /// Runs the call. If a signal ended git (for example the kernel's out-of-memory killer), the call is
    /// repeated once (BUG-10). This is safe: reads can be repeated, objects are named by their content, and
    /// refs are compared before they change.
    pub(crate) fn run(self) -> Result<Output, GitError> {
        let _span = self.span().entered();
        let answer = self.run_once();
        match answer {
            Err(GitError::Failed { code: None, .. }) if self.repeats == Repeats::Once => {
                if let Some(index) = &self.private_index {
                    // A killed git leaves this lock file. No other process uses this index.
                    fs::remove_file(index.with_extension("lock")).ok();
                }
                tracing::warn!(attempt = self.attempt, "a signal killed git; starting it again");
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

    /// Returns the tracing span of this call. It contains only git's subcommand, not the arguments, which may
    /// include an address with a password.
    fn span(&self) -> Span {
        let verb = || self.args.first().map_or_else(String::new, |verb| verb.to_string_lossy().into_owned());
        tracing::info_span!(target: "drydock::trace", "git", otel.name = format!("git {}", verb()))
    }

    /// Starts the call as a dialog with output split at `end`, instead of waiting until it ends.
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
        // Reading an object must never fetch it: the configuration names the program that would serve it.
        command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "");
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

impl ProcessError {
    pub(crate) fn named(self, attempt: &str, limit: Duration) -> GitError {
        let attempt = attempt.to_owned();
        match self {
            ProcessError::Start(source) => GitError::Start { attempt, source },
            ProcessError::TimedOut => GitError::TimedOut { attempt, limit_s: limit.as_secs() },
            ProcessError::Lost(source) => GitError::Lost { attempt, source },
            ProcessError::Stopped => GitError::Stopped { attempt },
        }
    }
}

/// Converts the exit status and output of a child into an output or an error.
pub(crate) fn judge(attempt: &str, ended: ProcessOutput, accepted: &[i32]) -> Result<Output, GitError> {
    let code = ended.status.code();
    let stderr = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
    match code {
        Some(code) if accepted.contains(&code) => Ok(Output { code, stdout: ended.stdout, stderr }),
        Some(USAGE) => {
            let detail = stderr.lines().next().unwrap_or("no details were given").to_owned();
            Err(GitError::UnknownOption { attempt: attempt.to_owned(), detail })
        }
        code => Err(failure(attempt, code, stderr)),
    }
}

/// Classifies a failure by git's message, which `LC_ALL=C` fixes, because git uses one exit code for most
/// failures.
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
            None => "git was killed by a signal".to_owned(),
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
    /// Returns the output as text.
    pub(crate) fn text(&self, attempt: &str) -> Result<String, GitError> {
        let text = std::str::from_utf8(&self.stdout);
        text.map(str::to_owned).map_err(|_| GitError::unexpected(attempt, "it is not UTF-8"))
    }

    /// Returns the lines of a `rev-parse` call, which echoes options that it does not know.
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

    /// Returns the fields of an output in which each field ends with NUL.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &[u8]> {
        let body = self.stdout.strip_suffix(b"\0").unwrap_or(&self.stdout);
        let none = self.stdout.is_empty();
        body.split(|b| *b == 0).filter(move |_| !none)
    }
}

/// Reads a path of the repository; returns an error if it is not UTF-8.
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

    use super::GitCall;
    use crate::error::GitError;
    use crate::git::Git;

    fn call(folder: &Path, args: &[&str]) -> GitCall {
        let git = Git::find().unwrap();
        args.iter().fold(GitCall::new(&git, folder, "test"), |call, arg| call.arg(arg))
    }

    fn repository() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        call(folder.path(), &["init", "-q"]).run().unwrap();
        folder
    }

    /// Breaks when a full disk is blamed on the files, so that work which the next run could use is moved
    /// away.
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
