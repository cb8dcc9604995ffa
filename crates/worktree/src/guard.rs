//! Prevents git calls from running programs that a repository's own configuration names.
//!
//! An agent may be able to write the configuration of the repository in which it works. Every call disables
//! hooks, the file system monitor and external diffs (`run`), and signing except for landings (`sign`). The
//! remaining settings are legitimate in the *user's* configuration: filters (git-lfs), merge drivers, ssh
//! commands and credential helpers. Values from the user's or the system's configuration apply. Values from
//! the repository's own configuration are replaced:
//!
//! - a filter by an empty one marked as required, so that a path which uses it is an error instead of being
//!   silently stored or written unfiltered (for example with git-crypt);
//! - a merge driver by `false`, so that its paths conflict (an empty driver would drop one side);
//! - ssh command, password prompt and credential helpers by the user's, or git's defaults.
//!
//! This does not cover the following cases, which the sandbox must prevent: a configuration rewritten between
//! this check and the call; programs that a trusted filter starts after reading the repository's
//! configuration; a remote whose address was changed to a local repository with its own hooks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::error::GitError;
use crate::run::GitContext;

/// Settings that replace those of the repository's own configuration.
pub(crate) type Replacements = Vec<(String, String)>;

impl GitContext {
    /// Reads the current configuration and returns the replacements. Calls that touch files or remotes pass
    /// them to git.
    pub(crate) fn guard(&self) -> Result<Replacements, GitError> {
        Ok(replacements(&self.configuration()?))
    }

    /// Returns the current configuration. Git is called only if one of the configuration files changed since
    /// the last call.
    pub(crate) fn configuration(&self) -> Result<Arc<[ConfigEntry]>, GitError> {
        self.git.memory().configuration(self, || self.configuration_read())
    }

    fn configuration_read(&self) -> Result<Vec<ConfigEntry>, GitError> {
        let attempt = "read the configuration";
        let output =
            self.call_without_files(attempt).args(["config", "--list", "-z", "--show-scope"]).run()?;
        let mut fields = output.fields();
        let mut entries = Vec::new();
        while let Some(scope) = fields.next() {
            let entry =
                fields.next().ok_or_else(|| GitError::unexpected(attempt, "a scope without an entry"))?;
            let end = entry.iter().position(|b| *b == b'\n').unwrap_or(entry.len());
            // A key that is not UTF-8 could not be replaced, so this is an error.
            let key = std::str::from_utf8(&entry[..end])
                .map_err(|_| GitError::unexpected(attempt, "a key of the configuration is not UTF-8"))?;
            // A key without a value is git's short form of `true`.
            let value = String::from_utf8_lossy(entry.get(end + 1..).unwrap_or(b"true")).into_owned();
            let origin = match scope {
                b"local" | b"worktree" => Origin::Repository,
                b"system" | b"global" => Origin::User,
                b"command" => continue,
                other => return Err(GitError::unexpected(attempt, String::from_utf8_lossy(other))),
            };
            entries.push(ConfigEntry { origin, key: key.to_owned(), value });
        }
        Ok(entries)
    }
}

/// Where a configuration entry is set.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum Origin {
    User,
    Repository,
}

#[derive(Debug)]
pub(crate) struct ConfigEntry {
    pub(crate) origin: Origin,
    pub(crate) key: String,
    pub(crate) value: String,
}

fn replacements(entries: &[ConfigEntry]) -> Replacements {
    // As in git, the last of several values wins.
    let own: BTreeMap<&str, &str> = entries
        .iter()
        .filter(|e| e.origin == Origin::User)
        .map(|e| (e.key.as_str(), e.value.as_str()))
        .collect();
    let foreign: BTreeSet<&str> =
        entries.iter().filter(|e| e.origin == Origin::Repository).map(|e| e.key.as_str()).collect();
    let mut result = Replacements::new();
    let mut filters = BTreeMap::<&str, Vec<&str>>::new();
    for key in &foreign {
        let (section, rest) = key.split_once('.').unwrap_or((key, ""));
        let (name, variable) = rest.rsplit_once('.').unwrap_or(("", rest));
        match (section, variable) {
            ("filter", "clean" | "smudge" | "process") => filters.entry(name).or_default().push(variable),
            ("merge", "driver") => result.push(replaced(key, &own, "false")),
            ("core", "sshcommand") => result.push(replaced(key, &own, "ssh")),
            ("core", "askpass") => result.push(replaced(key, &own, "")),
            _ => {}
        }
    }
    for (name, variables) in filters {
        let key = |variable: &str| format!("filter.{name}.{variable}");
        if variables.iter().all(|variable| own.contains_key(key(variable).as_str())) {
            result.extend(variables.iter().map(|variable| replaced(&key(variable), &own, "")));
            result.push(replaced(&key("required"), &own, "false"));
        } else {
            result.extend(["clean", "smudge", "process"].map(|variable| (key(variable), String::new())));
            result.push((key("required"), "true".to_owned()));
        }
    }
    let is_helper = |key: &str| key.starts_with("credential.") && key.ends_with(".helper");
    if foreign.iter().any(|key| is_helper(key)) {
        // An empty value resets the list of helpers. The user's helpers follow in their original order.
        result.push(("credential.helper".to_owned(), String::new()));
        let users = entries.iter().filter(|e| e.origin == Origin::User && is_helper(&e.key));
        result.extend(users.map(|e| (e.key.clone(), e.value.clone())));
    }
    result
}

fn replaced(key: &str, own: &BTreeMap<&str, &str>, otherwise: &str) -> (String, String) {
    (key.to_owned(), own.get(key).copied().unwrap_or(otherwise).to_owned())
}

#[cfg(test)]
mod tests {
    use super::{ConfigEntry, Origin, replacements};

    fn look(entries: &[(Origin, &str, &str)]) -> Vec<(String, String)> {
        let entry = |(origin, key, value): &(Origin, &str, &str)| ConfigEntry {
            origin: *origin,
            key: (*key).to_owned(),
            value: (*value).to_owned(),
        };
        replacements(&entries.iter().map(entry).collect::<Vec<_>>())
    }

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    }

    #[test]
    fn the_users_filter_holds_and_the_repositorys_does_not() {
        let user = (Origin::User, "filter.lfs.clean", "git-lfs clean -- %f");
        assert_eq!(look(&[user]), vec![]);
        let both = look(&[user, (Origin::Repository, "filter.lfs.clean", "evil")]);
        assert_eq!(both, pairs(&[("filter.lfs.clean", user.2), ("filter.lfs.required", "false")]));
        let repository = look(&[user, (Origin::Repository, "filter.lfs.process", "evil")]);
        let off = [("clean", ""), ("smudge", ""), ("process", ""), ("required", "true")];
        let off = off.map(|(variable, value)| (format!("filter.lfs.{variable}"), value.to_owned()));
        assert_eq!(repository, off);
    }

    #[test]
    fn helpers_and_drivers_of_the_repository_are_replaced() {
        let seen = look(&[
            (Origin::User, "credential.helper", "store"),
            (Origin::Repository, "credential.https://x.y.helper", "!evil"),
            (Origin::Repository, "merge.a.b.driver", "evil %A"),
            (Origin::Repository, "core.sshcommand", "evil"),
        ]);
        let expected = [
            ("core.sshcommand", "ssh"),
            ("merge.a.b.driver", "false"),
            ("credential.helper", ""),
            ("credential.helper", "store"),
        ];
        assert_eq!(seen, pairs(&expected));
    }
}
