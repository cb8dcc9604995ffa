//! Groups git's messages about a merge into conflicts, and classifies each.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::join::favour::WinningSide;
use crate::join::order::{ConflictKind, MergeRequest};
use crate::merge::{ConflictMessage, ConflictVersion, MergeConflict};
use crate::private_index::GITLINK;

const LINK: u32 = 0o120_000;

/// One conflict: paths that have to be resolved together.
#[derive(Default)]
pub(super) struct Group<'a> {
    paths: BTreeSet<&'a [u8]>,
    pub(super) stages: Vec<&'a ConflictVersion>,
    said: Vec<&'a ConflictMessage>,
    /// Names that git generated for files that were in the way, with the side they belong to and their
    /// original names.
    aside: BTreeMap<&'a [u8], (WinningSide, &'a [u8])>,
}

/// Groups messages and versions that share a path.
pub(super) fn groups<'a>(conflict: &'a MergeConflict, order: &MergeRequest<'_>) -> Vec<Group<'a>> {
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

/// Recognises a generated name. Git moves a file that is in the way to `path~<commit>`, with `_<n>` appended
/// if that name is taken.
fn aside<'a>(
    path: &'a [u8],
    paths: &BTreeSet<&[u8]>,
    order: &MergeRequest<'_>,
) -> Option<(WinningSide, &'a [u8])> {
    let sides = [(order.ours, WinningSide::Ours), (order.theirs, WinningSide::Theirs)];
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

    /// Returns the path that git names first, excluding generated names.
    pub(super) fn main_path(&self) -> &'a [u8] {
        let said = self.said.iter().flat_map(|said| &said.paths).map(Vec::as_slice);
        let mut named = said.chain(self.paths.iter().copied());
        named.find(|path| !self.aside.contains_key(path)).expect("a group is made of at least one path")
    }

    /// Returns the generated name of a side's file that was moved out of the way, and its original name.
    pub(super) fn moved_aside(&self, side: WinningSide) -> Option<(&'a [u8], &'a [u8])> {
        let aside = self.aside.iter().find(|(_, (whose, _))| *whose == side);
        match aside {
            Some((path, (_, own))) => Some((path, own)),
            // If the types differ and the base determines which file keeps its name, git moves only the other one.
            None if self.is("distinct modes") => Some((self.main_path(), self.main_path())),
            None => None,
        }
    }

    /// Returns the version of a stage if there is exactly one.
    pub(super) fn stage(&self, stage: u8) -> Option<&'a ConflictVersion> {
        let mut found = self.stages.iter().filter(|one| one.stage == stage);
        found.next().copied().filter(|_| found.next().is_none())
    }

    pub(super) fn at(&self, path: &[u8], stage: u8) -> Option<&'a ConflictVersion> {
        self.stages.iter().copied().find(|one| one.path == path && one.stage == stage)
    }

    pub(super) fn holds(&self, path: &[u8]) -> bool {
        self.stages.iter().any(|one| one.path == path)
    }

    /// Returns true if git reports this kind, given as the text within the parentheses.
    pub(super) fn is(&self, kind: &str) -> bool {
        self.said.iter().any(|said| words(said) == kind)
    }

    /// Returns true if git reports this kind and no other.
    pub(super) fn is_only(&self, kind: &str) -> bool {
        !self.said.is_empty() && self.said.iter().all(|said| words(said) == kind)
    }

    /// Returns true if the files can have conflict markers.
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

    /// Returns git's messages with `base`, `ours` and `theirs` instead of the commit ids.
    pub(super) fn message(&self, order: &MergeRequest<'_>) -> String {
        let text = self.said.iter().map(|said| said.text.as_str()).collect::<Vec<_>>().join("\n");
        let named = [(order.base, "base"), (order.ours, "ours"), (order.theirs, "theirs")];
        named.iter().fold(text, |text, (commit, word)| {
            // An id in a generated file name stays, because it is part of the name.
            let kept = text.replace(&format!("~{commit}"), "~\0");
            kept.replace(commit.as_str(), word).replace("~\0", &format!("~{commit}"))
        })
    }
}

/// Returns the kind within the parentheses, such as `contents` for `CONFLICT (contents)`; in some of git's
/// messages the space is missing.
fn words(said: &ConflictMessage) -> &str {
    let inside = said.kind.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')'));
    inside.map_or(said.kind.as_str(), |(inside, _)| inside)
}

/// Returns true for the mode of a regular file, executable or not.
pub(super) fn is_file(mode: u32) -> bool {
    mode & 0o170_000 == 0o100_000
}
