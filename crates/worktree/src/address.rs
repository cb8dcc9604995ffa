//! Resolves the address of a remote. A landing and a sync read from and write to one address: the push
//! address.
//!
//! A remote may have different addresses for fetch and push (`pushurl`, `pushInsteadOf`). Both may be the
//! same repository, over https and ssh, or two repositories, such as the original and a fork. Reading one and
//! writing the other would compare a landing with a branch that it does not move. Calls that read are
//! therefore sent to the push address, where git sends pushes anyway.

use std::path::Path;

use crate::error::GitError;
use crate::guard::ConfigEntry;
use crate::run::GitContext;

/// Name that read calls use instead of the remote. An `insteadOf` rule passed with the call rewrites it to
/// the push address. The push address itself is not used as the name because another rule of the user could
/// rewrite it.
const STAND_IN: &str = "drydock://push-address";

/// A configured remote in the form that read calls need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FetchSource {
    /// Passed to git as the remote.
    pub(crate) name: String,
    /// Settings that make git resolve `name` to the push address.
    pub(crate) settings: Vec<(String, String)>,
}

impl GitContext {
    /// Returns how to read a remote at its push address, or `None` if no remote with this name is configured.
    pub(crate) fn source(&self, remote: &str) -> Result<Option<FetchSource>, GitError> {
        source(&self.configuration()?, remote, &self.work_tree)
    }
}

fn source(entries: &[ConfigEntry], remote: &str, root: &Path) -> Result<Option<FetchSource>, GitError> {
    let Addresses { fetch, push } = addresses(entries, remote);
    match (fetch, push.as_slice()) {
        (None, _) => Ok(None),
        (Some(fetch), [push]) if fetch == *push => {
            Ok(Some(FetchSource { name: remote.to_owned(), settings: Vec::new() }))
        }
        (Some(_), [push]) => {
            let rule = (format!("url.{push}.insteadOf"), STAND_IN.to_owned());
            Ok(Some(FetchSource { name: STAND_IN.to_owned(), settings: vec![rule] }))
        }
        (Some(_), push) => Err(GitError::ManyAddresses {
            remote: remote.to_owned(),
            addresses: push.iter().map(|address| shown(address)).collect(),
            root: root.to_owned(),
        }),
    }
}

/// The fetch and push addresses of a remote, after rewriting.
#[derive(Debug, PartialEq, Eq)]
struct Addresses {
    fetch: Option<String>,
    push: Vec<String>,
}

/// Applies git's rules: `insteadOf` rewrites every address; `pushInsteadOf` only applies to remotes without
/// `pushurl`.
fn addresses(entries: &[ConfigEntry], remote: &str) -> Addresses {
    let given = |variable: &str| {
        let key = format!("remote.{remote}.{variable}");
        let mut found = Vec::new();
        for entry in entries.iter().filter(|entry| entry.key == key) {
            // An empty value resets the list.
            match entry.value.is_empty() {
                true => found.clear(),
                false => found.push(entry.value.as_str()),
            }
        }
        found
    };
    let (urls, pushurls) = (given("url"), given("pushurl"));
    let rewritten = |url: &&str| rewrite(entries, "insteadof", url).unwrap_or_else(|| (*url).to_owned());
    let fetch: Vec<String> = urls.iter().map(rewritten).collect();
    let mut push: Vec<String> = pushurls.iter().map(rewritten).collect();
    if push.is_empty() {
        push = urls.iter().filter_map(|url| rewrite(entries, "pushinsteadof", url)).collect();
    }
    if push.is_empty() {
        push.clone_from(&fetch);
    }
    Addresses { fetch: fetch.into_iter().next(), push }
}

/// Replaces the longest prefix that a rule names. If several rules have the same length, the first one wins.
fn rewrite(entries: &[ConfigEntry], variable: &str, url: &str) -> Option<String> {
    let mut best: Option<(&str, &str)> = None;
    for entry in entries.iter().filter(|entry| url.starts_with(entry.value.as_str())) {
        let base = entry.key.strip_prefix("url.").and_then(|rest| rest.strip_suffix(variable));
        let Some(base) = base.and_then(|base| base.strip_suffix('.')) else { continue };
        if best.is_none_or(|(_, beginning)| beginning.len() < entry.value.len()) {
            best = Some((base, &entry.value));
        }
    }
    best.map(|(base, beginning)| format!("{base}{}", &url[beginning.len()..]))
}

/// Returns the address without a password. The user name is kept only for ssh, which needs it; elsewhere it
/// may be a token.
fn shown(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let end = rest.find('/').unwrap_or(rest.len());
    let Some(at) = rest[..end].rfind('@') else { return address.to_owned() };
    let (user, host) = (&rest[..at], &rest[at + 1..]);
    let name = user.split(':').next().unwrap_or_default();
    if scheme.contains("ssh") { format!("{scheme}://{name}@{host}") } else { format!("{scheme}://{host}") }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Addresses, STAND_IN, addresses, shown, source};
    use crate::git::Git;
    use crate::run::{GitCall, GitContext};

    /// Breaks when an address is resolved differently from git.
    #[test]
    fn addresses_are_those_that_git_names() {
        let cases: [&[(&str, &str)]; 9] = [
            &[("remote.o.url", "/a")],
            &[("remote.o.url", "/a"), ("remote.o.pushurl", "/b")],
            &[("remote.o.url", "/a"), ("remote.o.pushurl", "/b"), ("remote.o.pushurl", "/c")],
            &[("remote.o.url", "/a"), ("remote.o.url", "/b")],
            &[
                ("remote.o.url", "h:a"),
                ("url.https://h/.insteadOf", "h:"),
                ("url.ssh://h/.pushInsteadOf", "h:"),
            ],
            &[("remote.o.url", "h:a"), ("remote.o.pushurl", "h:b"), ("url.ssh://h/.pushInsteadOf", "h:")],
            &[("remote.o.url", "h:a"), ("remote.o.pushurl", "h:b"), ("url.ssh://h/.insteadOf", "h:")],
            // The longest rule wins; among rules of equal length, the first.
            &[
                ("remote.o.url", "h:a/b"),
                ("url.x:.insteadOf", "h:"),
                ("url.y:.insteadOf", "h:a"),
                ("url.z:.insteadOf", "h:a"),
            ],
            // A mirror for fetches, with pushes still sent to the original.
            &[
                ("remote.o.url", "https://h/a"),
                ("url./m/.insteadOf", "https://h/"),
                ("url.https://h/.pushInsteadOf", "https://h/"),
            ],
        ];
        let folder = tempfile::tempdir().unwrap();
        let git = Git::find().unwrap().with_home(folder.path());
        for (nth, case) in cases.iter().enumerate() {
            let root = folder.path().join(nth.to_string());
            std::fs::create_dir(&root).unwrap();
            let call = |args: &[&str]| {
                let call = args.iter().fold(GitCall::new(&git, &root, "test"), |call, arg| call.arg(arg));
                String::from_utf8(call.run().unwrap().stdout).unwrap()
            };
            call(&["init", "-q"]);
            for (key, value) in *case {
                call(&["config", "--add", key, value]);
            }
            let git_dir = root.join(".git");
            let place = GitContext {
                git: git.clone(),
                common_dir: git_dir.clone(),
                git_dir,
                work_tree: root.clone(),
            };
            let entries = place.configuration().unwrap();
            let lines = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>();
            let fetch = lines(call(&["remote", "get-url", "o"])).into_iter().next();
            let push = lines(call(&["remote", "get-url", "--push", "--all", "o"]));
            assert_eq!(addresses(&entries, "o"), Addresses { fetch, push: push.clone() }, "{case:?}");
            assert_eq!(addresses(&entries, "p"), Addresses { fetch: None, push: Vec::new() });
            // Read calls use the push address.
            match source(&entries, "o", Path::new("/")) {
                Ok(source) => {
                    let source = source.unwrap();
                    let read = GitCall::new(&git, &root, "test").settings(&source.settings);
                    let read = read.args(["ls-remote", "--get-url", &source.name]).run().unwrap();
                    assert_eq!(lines(String::from_utf8(read.stdout).unwrap()), push, "{case:?}");
                }
                Err(error) => assert!(push.len() == 2 && !error.is_transient(), "{case:?}: {error}"),
            }
        }
        assert!(!STAND_IN.contains(".."));
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        assert_eq!(shown("https://me:secret@h/a@b"), "https://h/a@b");
        assert_eq!(shown("https://h/a@b"), "https://h/a@b");
        assert_eq!(shown("https://token@h/a"), "https://h/a");
        assert_eq!(shown("git@h:a"), "git@h:a");
        // An ssh address without its user name points elsewhere (N12).
        assert_eq!(shown("ssh://git@h:22/x"), "ssh://git@h:22/x");
        assert_eq!(shown("git+ssh://git:secret@h/x"), "git+ssh://git@h/x");
    }
}
