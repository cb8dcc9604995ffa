//! The tree that the rules check: every text file with its path, Rust files scanned, and which of them are production
//! code.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use super::source::SourceFile;

/// Directories that are not part of the tree, at any depth.
const SKIPPED: [&str; 3] = [".git", "node_modules", "target"];

/// Files by path, with `/` between names, relative to the root.
#[derive(Debug, Default)]
pub(crate) struct SourceTree {
    texts: Vec<Text>,
    paths: BTreeSet<String>,
}

/// A text file.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) path: String,
    pub(crate) text: String,
    /// Its scanned source, if it is Rust.
    rust: Option<SourceFile>,
}

/// The role of a Rust file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Production,
    Test,
}

impl SourceTree {
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.read_directory(root, "")?;
        Ok(tree)
    }

    /// Returns a tree of the given files, to test that a rule refuses it.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            let parents = path.match_indices('/').map(|(at, _)| path[..at].to_owned());
            tree.paths.extend(parents);
            tree.add((*path).to_owned(), (*text).to_owned());
        }
        tree
    }

    pub(crate) fn texts(&self) -> impl Iterator<Item = &Text> {
        self.texts.iter()
    }

    /// Returns every Rust file of the workspace, including tests.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&str, &SourceFile)> {
        self.texts.iter().filter_map(|text| Some((text.path.as_str(), text.rust.as_ref()?)))
    }

    /// Returns every Rust file that is part of a program or library.
    pub(crate) fn production(&self) -> impl Iterator<Item = (&str, &SourceFile)> {
        self.rust().filter(|(path, _)| purpose(path) == Purpose::Production)
    }

    /// Returns true if a file or directory of this path exists.
    pub(crate) fn has(&self, path: &str) -> bool {
        path.is_empty() || self.paths.contains(path)
    }

    fn read_directory(&mut self, directory: &Path, prefix: &str) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            let kind = entry.file_type()?;
            if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
                self.read_directory(&entry.path(), &format!("{path}/"))?;
                self.paths.insert(path);
            } else if kind.is_file() {
                match String::from_utf8(fs::read(entry.path())?) {
                    Ok(text) => self.add(path, text),
                    Err(_) => _ = self.paths.insert(path),
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, path: String, text: String) {
        let rust = path.ends_with(".rs").then(|| SourceFile::scan(&text));
        self.paths.insert(path.clone());
        self.texts.push(Text { path, text, rust });
    }
}

/// Returns the crate that a path belongs to: the folder below `crates`, or `xtask`.
pub(crate) fn crate_of(path: &str) -> Option<&str> {
    let mut names = path.split('/');
    match names.next()? {
        "crates" => names.next(),
        "xtask" => Some("xtask"),
        _ => None,
    }
}

fn purpose(path: &str) -> Purpose {
    let after_crate =
        path.strip_prefix("crates/").and_then(|path| path.split_once('/')).map(|(_, inside)| inside);
    let inside = after_crate.or_else(|| path.strip_prefix("xtask/")).unwrap_or(path);
    let Some(module) = inside.strip_prefix("src/") else { return Purpose::Test };
    match module.split('/').any(|name| name == "tests" || name == "tests.rs") {
        true => Purpose::Test,
        false => Purpose::Production,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sources_outside_tests_are_production() {
        for path in ["crates/a/src/x.rs", "xtask/src/tidy/mod.rs", "crates/a/src/contests.rs"] {
            assert_eq!(purpose(path), Purpose::Production, "{path}");
        }
        for path in
            ["crates/a/tests/x.rs", "crates/a/src/x/tests.rs", "crates/a/src/tests/x.rs", "crates/a/build.rs"]
        {
            assert_eq!(purpose(path), Purpose::Test, "{path}");
        }
    }
}
