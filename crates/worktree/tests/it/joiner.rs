//! Two writers that started from one commit, and the content of their merge.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::RangeInclusive;
use std::path::Path;

use drydock_worktree::{CommitId, DetailedMerge, MergeRequest, Prefer, TreeId};

use crate::fixture::Fixture;

pub(crate) struct Joiner {
    pub(crate) fixture: Fixture,
    pub(crate) base: CommitId,
    pub(crate) ours: CommitId,
    pub(crate) theirs: CommitId,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) mode: String,
    pub(crate) id: String,
    pub(crate) bytes: Vec<u8>,
}

impl Listed {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.bytes.clone()).unwrap()
    }

    pub(crate) fn has(&self, part: &str) -> bool {
        self.bytes.windows(part.len()).any(|there| there == part.as_bytes())
    }
}

impl Joiner {
    /// Creates a base that replaces the fixture's files, and a commit of each writer on top of it.
    pub(crate) fn new(
        base: impl FnOnce(&Path),
        ours: impl FnOnce(&Path),
        theirs: impl FnOnce(&Path),
    ) -> Joiner {
        let fixture = Fixture::new();
        fixture.user(&["rm", "-q", "-r", "."], &fixture.repo());
        let root = fixture.commit_all("nothing");
        let base = fixture.build(&root, base);
        let (ours, theirs) = (fixture.build(&base, ours), fixture.build(&base, theirs));
        Joiner { fixture, base, ours, theirs }
    }

    pub(crate) fn join(&self, favour: Prefer) -> DetailedMerge {
        let Joiner { base, ours, theirs, .. } = self;
        self.fixture.open().merge_detailed(&MergeRequest { base, ours, theirs, favour }).unwrap()
    }

    /// Merges in favour of a side, and returns the files by path.
    pub(crate) fn favour(&self, favour: Prefer) -> BTreeMap<String, Listed> {
        match self.join(favour) {
            DetailedMerge::Clean(tree) => self.listing(&tree),
            DetailedMerge::Conflict { files, .. } => panic!("{favour:?} should settle it: {files:?}"),
        }
    }

    pub(crate) fn listing(&self, tree: &TreeId) -> BTreeMap<String, Listed> {
        listing(&self.fixture, tree.as_str())
    }
}

/// Returns all files of a commit or tree.
pub(crate) fn listing(fixture: &Fixture, tree: &str) -> BTreeMap<String, Listed> {
    let listed = fixture.user_command(&["ls-tree", "-r", "-z", tree], &fixture.repo()).output().unwrap();
    let mut files = BTreeMap::new();
    for record in String::from_utf8(listed.stdout).unwrap().split_terminator('\0') {
        let (head, path) = record.split_once('\t').unwrap();
        let [mode, _, id]: [&str; 3] = head.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let entry = Listed { mode: mode.to_owned(), id: id.to_owned(), bytes: Vec::new() };
        files.insert(path.to_owned(), entry);
    }
    let asked: String = files.values().map(|file| format!("{}\n", file.id)).collect();
    if asked.is_empty() {
        return files;
    }
    let input = fixture.path("asked");
    fs::write(&input, asked).unwrap();
    let mut command = fixture.user_command(&["cat-file", "--batch"], &fixture.repo());
    let output = command.stdin(File::open(&input).unwrap()).output().unwrap().stdout;
    let mut rest = output.as_slice();
    for file in files.values_mut() {
        let end = rest.iter().position(|b| *b == b'\n').unwrap();
        let head = std::str::from_utf8(&rest[..end]).unwrap();
        rest = &rest[end + 1..];
        // The commit of a gitlink is missing in this repository.
        if let Some(size) = head.split(' ').nth(2) {
            let size: usize = size.parse().unwrap();
            file.bytes = rest[..size].to_vec();
            rest = &rest[size + 1..];
        }
    }
    files
}

/// Returns lines that differ from each other.
pub(crate) fn lines(numbers: RangeInclusive<usize>) -> String {
    numbers.map(|n| format!("line {n}\n")).collect()
}
