//! Validates names of branches, refs and remotes before they reach a command line.
//!
//! The rules are those of `git check-ref-format`. Checking here saves a process and ensures that git reads a
//! name neither as an option nor as a revision expression such as `a^{tree}`.

use crate::error::GitError;

/// Returns the full ref of a branch.
pub(crate) fn branch_ref(branch: &str) -> Result<String, GitError> {
    let name = format!("refs/heads/{branch}");
    if branch.starts_with('-') || branch == "HEAD" {
        return Err(bad(branch, "it is not a valid branch name"));
    }
    check(&name, branch)?;
    Ok(name)
}

/// Checks a full ref name, which starts with `refs/`.
pub(crate) fn full_ref(name: &str) -> Result<&str, GitError> {
    if !name.starts_with("refs/") {
        return Err(bad(name, "a full ref starts with refs/"));
    }
    check(name, name)?;
    Ok(name)
}

/// Checks the name of a configured remote; an address is rejected.
pub(crate) fn remote(name: &str) -> Result<&str, GitError> {
    if name.starts_with('-') || name.contains("::") || name.starts_with('/') || name.starts_with('.') {
        return Err(bad(name, "it is not a valid name of a remote"));
    }
    check(&format!("refs/remotes/{name}/x"), name)?;
    Ok(name)
}

fn check(full: &str, shown: &str) -> Result<(), GitError> {
    if full.contains("..") || full.contains("@{") {
        return Err(bad(shown, "it contains .. or @{"));
    }
    if full.bytes().any(|b| b <= b' ' || b == 0x7f || b"~^:?*[\\".contains(&b)) {
        return Err(bad(shown, "it contains a space, a control character or one of ~^:?*[\\"));
    }
    if full.ends_with('.') {
        return Err(bad(shown, "it ends with a dot"));
    }
    let wrong = |part: &str| part.is_empty() || part.starts_with('.') || part.ends_with(".lock");
    if full.split('/').any(wrong) {
        return Err(bad(shown, "a part of it is empty, starts with a dot or ends with .lock"));
    }
    Ok(())
}

fn bad(name: &str, reason: &'static str) -> GitError {
    GitError::BadName { name: name.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::{branch_ref, full_ref, remote};

    #[test]
    fn names_that_git_would_read_as_something_else_are_refused() {
        for good in ["main", "drydock/pln-1/work", "ümlaut", "a-b"] {
            assert_eq!(branch_ref(good).unwrap(), format!("refs/heads/{good}"));
        }
        let bad =
            ["", "-f", "a b", "a..b", "a^{tree}", "a@{1}", "x.lock", "/a", "a/", "a//b", ".a", "HEAD", "a."];
        for name in bad {
            assert!(branch_ref(name).is_err(), "{name}");
        }
        assert!(full_ref("heads/main").is_err());
        for name in ["ext::sh -c x", "--upload-pack=x", "/tmp/x", "../x", "host:path"] {
            assert!(remote(name).is_err(), "{name}");
        }
        remote("origin").unwrap();
    }
}
