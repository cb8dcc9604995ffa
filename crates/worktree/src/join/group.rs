//! Which of the things that git says about a conflict belong together, and what kind they are of.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::join::favour::Side;
use crate::join::order::{ConflictKind, JoinOrder};
use crate::merge::{Conflict, Said, Stage};
use crate::private_index::GITLINK;

const LINK: u32 = 0o120_000;

/// One conflict: paths that cannot be settled apart from each other.
#[derive(Default)]
pub(super) struct Group<'a> {
    paths: BTreeSet<&'a [u8]>,
    pub(super) stages: Vec<&'a Stage>,
    said: Vec<&'a Said>,
    /// Names that git gave to files which were in the way, whose they are, and their own names.
    aside: BTreeMap<&'a [u8], (Side, &'a [u8])>,
}

/// Puts what shares a path together.
pub(super) fn groups<'a>(conflict: &'a Conflict, order: &JoinOrder<'_>) -> Vec<Group<'a>> {
    let mut groups: Vec<Option<Group<'a>>> = Vec::new();
    let mut homes: HashMap<&'a [u8], usize> = HashMap::new();
    let mut home_of = |groups: &mut Vec<Option<Group<'a>>>, paths: &[&'a [u8]]| -> usize {
        let found: BTreeSet<usize> = paths.iter().filter_map(|path| homes.get(path).copied()).collect();
        let mut joined = Group::default();
        for group in found.iter().filter_map(|at| groups[*at].take()) {
            joined.paths.extend(group.paths);
            joined.stages.extend(group.stages);
            joined.said.extend(group.said);
        }
        joined.paths.extend(paths);
        let home = groups.len();
        homes.extend(joined.paths.iter().map(|path| (*path, home)));
        groups.push(Some(joined));
        home
    };
    for said in &conflict.said {
        let paths: Vec<&[u8]> = said.paths.iter().map(Vec::as_slice).collect();
        let home = home_of(&mut groups, &paths);
        groups[home].iter_mut().for_each(|group| group.said.push(said));
    }
    for stage in &conflict.stages {
        let home = home_of(&mut groups, &[stage.path.as_slice()]);
        groups[home].iter_mut().for_each(|group| group.stages.push(stage));
    }
    let mut groups: Vec<Group<'a>> = groups.into_iter().flatten().collect();
    for group in &mut groups {
        let aside = group.paths.iter().filter_map(|path| Some((*path, aside(path, &group.paths, order)?)));
        group.aside = aside.collect();
    }
    groups
}

/// Git moves a file that is in the way to `path~<commit>`, with `_<n>` after it if that is taken.
fn aside<'a>(path: &'a [u8], paths: &BTreeSet<&[u8]>, order: &JoinOrder<'_>) -> Option<(Side, &'a [u8])> {
    let sides = [(order.ours, Side::Ours), (order.theirs, Side::Theirs)];
    sides.into_iter().find_map(|(commit, side)| {
        let mark = format!("~{commit}");
        let at = path.windows(mark.len()).rposition(|part| part == mark.as_bytes())?;
        paths.contains(&path[..at]).then_some((side, &path[..at]))
    })
}

impl<'a> Group<'a> {
    pub(super) fn paths(&self) -> impl Iterator<Item = &'a [u8]> {
        self.paths.iter().copied()
    }

    /// The path that git names first, and that is a name of the writers'.
    pub(super) fn main_path(&self) -> &'a [u8] {
        let said = self.said.iter().flat_map(|said| &said.paths).map(Vec::as_slice);
        let mut named = said.chain(self.paths.iter().copied());
        named.find(|path| !self.aside.contains_key(path)).expect("a group is made of at least one path")
    }

    /// Where git has a side's file that could not be beside the other side's, and the name that it should have.
    pub(super) fn moved_aside(&self, side: Side) -> Option<(&'a [u8], &'a [u8])> {
        let aside = self.aside.iter().find(|(_, (whose, _))| *whose == side);
        match aside {
            Some((path, (_, own))) => Some((path, own)),
            // Of two types only one is moved where the base tells which.
            None if self.is("distinct modes") => Some((self.main_path(), self.main_path())),
            None => None,
        }
    }

    /// The only version of a stage, if there is just one.
    pub(super) fn stage(&self, stage: u8) -> Option<&'a Stage> {
        let mut found = self.stages.iter().filter(|one| one.stage == stage);
        found.next().copied().filter(|_| found.next().is_none())
    }

    pub(super) fn at(&self, path: &[u8], stage: u8) -> Option<&'a Stage> {
        self.stages.iter().copied().find(|one| one.path == path && one.stage == stage)
    }

    pub(super) fn holds(&self, path: &[u8]) -> bool {
        self.stages.iter().any(|one| one.path == path)
    }

    /// Tells whether git says this of it, in the words within the parentheses.
    pub(super) fn is(&self, kind: &str) -> bool {
        self.said.iter().any(|said| words(said) == kind)
    }

    /// Tells whether git says this of it and nothing else.
    pub(super) fn is_only(&self, kind: &str) -> bool {
        !self.said.is_empty() && self.said.iter().all(|said| words(said) == kind)
    }

    /// Tells whether the files can have places in conflict.
    pub(super) fn has_lines(&self) -> bool {
        !self.is("binary") && self.stages.iter().any(|stage| is_file(stage.mode))
    }

    pub(super) fn kind(&self) -> ConflictKind {
        let named = [
            ("rename/rename", ConflictKind::RenameRename),
            ("rename/delete", ConflictKind::RenameDelete),
            ("file/directory", ConflictKind::DirectoryFile),
            ("modify/delete", ConflictKind::ModifyDelete),
            ("distinct modes", ConflictKind::Mode),
            ("binary", ConflictKind::Binary),
            ("rename involved in collision", ConflictKind::AddAdd),
        ];
        if let Some((_, kind)) = named.into_iter().find(|(words, _)| self.is(words)) {
            return kind;
        }
        if let Some(other) = self.said.iter().find(|said| words(said) != "contents") {
            return ConflictKind::Other(words(other).to_owned());
        }
        match (self.stage(1), self.stage(2), self.stage(3)) {
            (_, Some(ours), Some(_)) if ours.mode == GITLINK => ConflictKind::Other("submodule".to_owned()),
            (_, Some(ours), Some(theirs)) if ours.id == theirs.id => ConflictKind::Mode,
            (None, Some(_), Some(_)) => ConflictKind::AddAdd,
            (Some(_), Some(ours), Some(_)) if ours.mode == LINK => {
                ConflictKind::Other("symbolic link".to_owned())
            }
            _ => ConflictKind::Content,
        }
    }

    /// What git says, in words for the commits where it has their ids.
    pub(super) fn message(&self, order: &JoinOrder<'_>) -> String {
        let text = self.said.iter().map(|said| said.text.as_str()).collect::<Vec<_>>().join("\n");
        let named = [(order.base, "base"), (order.ours, "ours"), (order.theirs, "theirs")];
        named.iter().fold(text, |text, (commit, word)| {
            // A name that git made of an id stays, for a file is called that.
            let kept = text.replace(&format!("~{commit}"), "~\0");
            kept.replace(commit.as_str(), word).replace("~\0", &format!("~{commit}"))
        })
    }
}

/// `CONFLICT (contents)` is about `contents`; some of git's words lack the space.
fn words(said: &Said) -> &str {
    let inside = said.kind.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')'));
    inside.map_or(said.kind.as_str(), |(inside, _)| inside)
}

/// Tells whether a mode is that of a file, executable or not.
pub(super) fn is_file(mode: u32) -> bool {
    mode & 0o170_000 == 0o100_000
}
