//! Signs landed commits if the user's or the system's configuration requires it.
//!
//! The repository's own configuration is ignored: git would run a program that it names, and sign on behalf
//! of the user with a key that it names. The signer has no terminal and prompts are not answered, so the key
//! must be usable without one. A signer that does not finish in time is ended. Only landed commits are
//! signed; checkpoints and commits on work branches are not.

use std::time::Duration;

use crate::error::GitError;
use crate::guard::{ConfigEntry, Origin};
use crate::id::{CommitId, TreeId};
use crate::merge::{Signature, commit_call, commit_of, commit_tree};
use crate::repository::Repository;

/// Time limit of a call that signs.
const LIMIT: Duration = Duration::from_secs(30);
/// Settings that name a signing program, with git's defaults.
const PROGRAMS: [(&str, &str); 3] =
    [("gpg.openpgp.program", "gpg"), ("gpg.x509.program", "gpgsm"), ("gpg.ssh.program", "ssh-keygen")];

/// The outcome of writing a commit that is signed if the user wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signed {
    /// The commit was written.
    Written(CommitId),
    /// The signer failed, and nothing was written.
    Refused {
        /// The signing program.
        program: String,
        /// The program's message.
        reason: String,
    },
}

/// Git 2.39's message for a gpg failure; that version does not print gpg's own message.
const UNQUOTED: &str = "error: gpg failed to sign the data";

/// The user's signing settings.
#[derive(Debug, PartialEq, Eq)]
struct Signer {
    program: String,
    /// The key, or `None` if a command configured by the user provides it.
    key: Option<String>,
    settings: Vec<(String, String)>,
}

impl Repository {
    /// Writes a commit and signs it if the user's or the system's configuration requires it
    /// (`commit.gpgSign`).
    pub fn commit_signed(
        &self,
        tree: &TreeId,
        parents: &[CommitId],
        message: &str,
        author: &Signature,
    ) -> Result<Signed, GitError> {
        let place = self.place();
        let signer = match signer(&place.configuration()?, author) {
            Ok(Some(signer)) => signer,
            Ok(None) => return commit_tree(place, tree, parents, message, author).map(Signed::Written),
            Err(refused) => return Ok(refused),
        };
        let option = format!("-S{}", signer.key.as_deref().unwrap_or_default());
        let call = commit_call(place, tree, parents, message, author).arg(option);
        match commit_of(call.settings(&signer.settings).signing().limit(LIMIT)) {
            Ok(commit) => Ok(Signed::Written(commit)),
            Err(GitError::TimedOut { limit_s, .. }) => {
                let reason = format!("it did not finish within {limit_s} s; it cannot prompt here");
                Ok(Signed::Refused { program: signer.program, reason })
            }
            Err(GitError::Failed { attempt, code, detail }) => {
                let failed = GitError::Failed { attempt, code, detail: detail.clone() };
                if failed.is_starved() {
                    return Err(failed);
                }
                let mut reason = words(&detail);
                if reason == UNQUOTED {
                    let key = signer.key.as_deref().unwrap_or_default();
                    let (program, key) = (quoted(&signer.program), quoted(key));
                    reason.push_str(&format!("; see its message with: {program} -bsau {key} </dev/null"));
                }
                Ok(Signed::Refused { program: signer.program, reason })
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns the user's signing settings, or `None` if commits are not signed. Fails if the signer cannot be
/// determined.
fn signer(entries: &[ConfigEntry], author: &Signature) -> Result<Option<Signer>, Signed> {
    // As in git, the last of several values wins.
    let own = |keys: &[&str]| {
        let named = |entry: &&ConfigEntry| entry.origin == Origin::User && keys.contains(&entry.key.as_str());
        entries.iter().rfind(named).map(|entry| entry.value.as_str())
    };
    let format = own(&["gpg.format"]).unwrap_or("openpgp");
    let named = PROGRAMS.map(|(key, default)| {
        // `gpg.program` is the older name of the first.
        let older = if key == PROGRAMS[0].0 { "gpg.program" } else { key };
        (key, own(&[key, older]).unwrap_or(default).to_owned())
    });
    let of_format = |(key, _): &&(&str, String)| key.split('.').nth(1) == Some(format);
    let program = named.iter().find(of_format).map_or(format, |(_, program)| program).to_owned();
    let refused = |reason: String| Signed::Refused { program: program.clone(), reason };
    match own(&["commit.gpgsign"]).map(truth) {
        None | Some(Some(false)) => return Ok(None),
        Some(Some(true)) => {}
        Some(None) => return Err(refused("commit.gpgSign is neither true nor false".to_owned())),
    }
    let command = own(&["gpg.ssh.defaultkeycommand"]);
    let foreign_key = entries.iter().any(|e| e.origin == Origin::Repository && e.key == "user.signingkey");
    let key = match (own(&["user.signingkey"]), format, command) {
        (Some(key), ..) if !key.is_empty() => Some(key.to_owned()),
        (_, "ssh", Some(_)) if !foreign_key => None,
        (_, "ssh", _) => {
            let text = "user.signingKey is not set in the user's or the system's configuration; the \
                        repository's own setting is ignored";
            return Err(refused(text.to_owned()));
        }
        _ => Some(format!("{} <{}>", author.name, author.email)),
    };
    let mut settings = vec![("gpg.format".to_owned(), format.to_owned())];
    settings.push(("gpg.program".to_owned(), named[0].1.clone()));
    settings.extend(named.into_iter().map(|(key, program)| (key.to_owned(), program)));
    settings.extend(command.map(|command| ("gpg.ssh.defaultKeyCommand".to_owned(), command.to_owned())));
    Ok(Some(Signer { program, key, settings }))
}

/// Parses a boolean like git.
fn truth(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" | "" => Some(false),
        number => number.parse::<i64>().ok().map(|number| number != 0),
    }
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Returns the signer's message, without git's own lines and gpg's machine-readable lines.
fn words(detail: &str) -> String {
    let is_noise =
        |line: &str| line.starts_with("[GNUPG:]") || line == "fatal: failed to write commit object";
    let said: Vec<&str> =
        detail.lines().map(str::trim).filter(|line| !line.is_empty() && !is_noise(line)).collect();
    if said.is_empty() { detail.to_owned() } else { said.join("; ") }
}
