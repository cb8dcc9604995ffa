//! Resolves a conflict in favour of one side: that side loses nothing, and the other side loses only what
//! conflicts.
//!
//! Git has already merged everything without conflict. The remaining text files are merged again line by
//! line. For all other conflicts, the paths get the preferred side's version. If the other side had moved a
//! file to such a path, the move is undone; otherwise the file would be in neither place.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::diff::{RawChange, raw_changes, raw_renames};
use crate::error::GitError;
use crate::guard::Replacements;
use crate::id::TreeId;
use crate::join::group::{Group, groups, is_file};
use crate::join::lines::{Versions, merge_lines};
use crate::join::order::MergeRequest;
use crate::merge::{ConflictVersion, MergeConflict, merge_trees};
use crate::private_index::PrivateIndex;
use crate::run::GitContext;

/// A file added to a directory that the other side renamed; git has already put it into the new directory.
const SUGGESTED: &str = "directory rename suggested";
/// Kinds of conflict whose stages are not the sides' versions, because git moved or merged something first.
const WHOLE: &[&str] = &["rename/rename", "rename involved in collision", "file/directory", "distinct modes"];

/// The side that wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WinningSide {
    Ours,
    Theirs,
}

impl WinningSide {
    /// Selects the value of this side.
    pub(super) fn of<T>(self, ours: T, theirs: T) -> T {
        match self {
            WinningSide::Ours => ours,
            WinningSide::Theirs => theirs,
        }
    }
}

/// Returns the tree in which one side wins every conflict.
pub(super) fn settle(
    place: &GitContext,
    settings: &Replacements,
    order: &MergeRequest<'_>,
    conflict: MergeConflict,
    side: WinningSide,
) -> Result<TreeId, GitError> {
    if groups(&conflict, order).iter().all(|group| group.is_only(SUGGESTED)) {
        return Ok(conflict.tree);
    }
    // Without directory renames every path exists on one of the sides, so its versions can be looked up.
    let mut settings = settings.clone();
    settings.push(("merge.directoryRenames".to_owned(), "false".to_owned()));
    let MergeRequest { base, ours, theirs, .. } = *order;
    let conflict = match merge_trees(place, &settings, base, ours, theirs)? {
        Ok(tree) => return Ok(tree),
        Err(conflict) => conflict,
    };
    let groups = groups(&conflict, order);
    let mut settlement = Settlement { side, puts: BTreeMap::new(), lines: Vec::new() };
    let rest: Vec<&Group<'_>> = groups.iter().filter(|group| !settlement.take_lines(group)).collect();
    if !rest.is_empty() {
        let sides = SideChanges::read(place, order, side)?;
        let rest: Vec<_> =
            rest.into_iter().filter(|group| !settlement.take_renamed_lines(group, &sides)).collect();
        settlement.give_way(&rest, &sides);
    }
    settlement.write(place, &conflict.tree, &format!("resolve the conflict of {ours} and {theirs}"))
}

/// Mode and blob of a file.
type FileVersion = (u32, String);

/// The versions of each side where it differs from the base.
struct SideChanges {
    favoured: HashMap<Vec<u8>, Option<FileVersion>>,
    other: BTreeMap<Vec<u8>, Option<FileVersion>>,
    /// The base's versions where the other side differs.
    before: HashMap<Vec<u8>, Option<FileVersion>>,
    /// Files that the other side moved, from new to old path.
    moved: HashMap<Vec<u8>, Vec<u8>>,
}

impl SideChanges {
    fn read(
        place: &GitContext,
        order: &MergeRequest<'_>,
        side: WinningSide,
    ) -> Result<SideChanges, GitError> {
        let MergeRequest { base, ours, theirs, .. } = *order;
        let favoured = raw_changes(place, base, side.of(ours, theirs))?;
        let favoured = favoured.into_iter().map(|change| (change.path.clone(), after(&change))).collect();
        let (mut other, mut before, mut moved) = (BTreeMap::new(), HashMap::new(), HashMap::new());
        for change in raw_renames(place, base, side.of(theirs, ours))? {
            other.insert(change.path.clone(), after(&change));
            let was = Some((change.mode_before, change.before)).filter(|(mode, _)| *mode != 0);
            match change.from {
                Some(from) => {
                    other.insert(from.clone(), None);
                    before.insert(from.clone(), was);
                    before.insert(change.path.clone(), None);
                    moved.insert(change.path, from);
                }
                None => drop(before.insert(change.path, was)),
            }
        }
        Ok(SideChanges { favoured, other, before, moved })
    }

    /// Returns the preferred side's version of a path that one of the sides changed.
    fn at(&self, path: &[u8]) -> Option<Option<FileVersion>> {
        self.favoured.get(path).or_else(|| self.before.get(path)).cloned()
    }

    /// Returns the other side's paths that cannot coexist with a file: those below it, and files where it
    /// needs directories.
    fn other_in_the_way(&self, path: &[u8]) -> Vec<Vec<u8>> {
        let folder = [path, b"/"].concat();
        let below = self.other.range(folder.clone()..).map(|(path, _)| path);
        let below = below.take_while(|path| path.starts_with(&folder)).cloned();
        let slashes = path.iter().enumerate().filter(|(_, b)| **b == b'/');
        let above = slashes.map(|(at, _)| path[..at].to_vec());
        below.chain(above.filter(|path| matches!(self.other.get(path), Some(Some(_))))).collect()
    }
}

fn after(change: &RawChange) -> Option<FileVersion> {
    Some((change.mode_after, change.after.clone())).filter(|(mode, _)| *mode != 0)
}

/// A file to merge line by line, and its path.
struct LineMerge {
    path: Vec<u8>,
    mode: u32,
    versions: Versions,
}

/// The differences from git's own merge.
struct Settlement {
    side: WinningSide,
    puts: BTreeMap<Vec<u8>, Option<FileVersion>>,
    lines: Vec<LineMerge>,
}

impl Settlement {
    /// Handles a conflict between lines of one file.
    fn take_lines(&mut self, group: &Group<'_>) -> bool {
        group.is_only("contents") && self.merge_stages(group, group.main_path(), group.main_path())
    }

    /// Merges the versions at a path line by line, if all of them are files.
    fn merge_stages(&mut self, group: &Group<'_>, at: &[u8], to: &[u8]) -> bool {
        let [Some(base), Some(ours), Some(theirs)] = [1, 2, 3].map(|stage| group.at(at, stage)) else {
            return false;
        };
        if ![base, ours, theirs].iter().all(|stage| is_file(stage.mode)) {
            return false;
        }
        let mode = self.mode(base.mode, ours.mode, theirs.mode);
        let [base, ours, theirs] = [base, ours, theirs].map(|stage| stage.id.clone());
        self.lines.push(LineMerge { path: to.to_vec(), mode, versions: Versions { base, ours, theirs } });
        true
    }

    /// Handles a file that both sides renamed: it gets the preferred side's name and the lines of both.
    fn take_renamed_lines(&mut self, group: &Group<'_>, sides: &SideChanges) -> bool {
        let stages = (group.stage(1), group.stage(2), group.stage(3));
        let (Some(base), Some(ours), Some(theirs)) = stages else { return false };
        if !group.is_only("rename/rename") || group.stages.len() != 3 || group.paths().count() != 3 {
            return false;
        }
        let (name, dropped) = self.side.of((ours, theirs), (theirs, ours));
        let (Some(Some(won)), Some(Some(lost))) =
            (sides.at(&name.path), sides.other.get(&dropped.path).cloned())
        else {
            return false;
        };
        if ![base.mode, won.0, lost.0].iter().all(|mode| is_file(*mode)) {
            return false;
        }
        let (ours, theirs) = self.side.of((won.clone(), lost.clone()), (lost, won));
        let mode = self.mode(base.mode, ours.0, theirs.0);
        let versions = Versions { base: base.id.clone(), ours: ours.1, theirs: theirs.1 };
        self.puts.insert(dropped.path.clone(), None);
        self.lines.push(LineMerge { path: name.path.clone(), mode, versions });
        true
    }

    /// Sets paths to the preferred side's version.
    fn give_way(&mut self, groups: &[&Group<'_>], sides: &SideChanges) {
        let mut lost = Vec::new();
        for group in groups {
            let whole = WHOLE.iter().any(|kind| group.is(kind));
            for path in group.paths() {
                let staged = group.holds(path);
                let value = if staged && !whole {
                    Some(self.version(group, path))
                } else {
                    // A name generated by git exists on neither side.
                    sides.at(path).or(staged.then_some(None))
                };
                // If there is also a base version at this path, it is the same file on both sides, regardless
                // of which side renamed it.
                let same_file = group.at(path, 1).and(group.at(path, self.side.of(2, 3))).is_some();
                if whole || !same_file {
                    lost.push(path.to_vec());
                }
                if let Some(value) = value {
                    self.puts.insert(path.to_vec(), value);
                }
            }
            if !group.is("rename/rename") && !group.is("rename involved in collision") {
                self.bring_back(group);
            }
        }
        self.undo_moves(lost, sides);
    }

    /// Restores a file of the preferred side at a path that was blocked by a directory or file of the other
    /// side.
    fn bring_back(&mut self, group: &Group<'_>) {
        let Some((aside, own)) = group.moved_aside(self.side) else { return };
        // This side may have renamed the file while the other edited it: then git has merged it or lists its
        // versions.
        if !self.merge_stages(group, aside, own)
            && let Some(version) = group.at(aside, self.side.of(2, 3))
        {
            self.puts.insert(own.to_vec(), Some((version.mode, version.id.clone())));
        }
    }

    /// Returns the preferred side's version of a path. The mode is the other side's if only that side changed
    /// it.
    fn version(&self, group: &Group<'_>, path: &[u8]) -> Option<FileVersion> {
        let [base, ours, theirs] = [1, 2, 3].map(|stage| group.at(path, stage));
        let won = self.side.of(ours, theirs)?;
        let mode =
            |stage: Option<&ConflictVersion>| stage.map(|stage| stage.mode).filter(|mode| is_file(*mode));
        let mode = match (mode(base), mode(ours), mode(theirs)) {
            (Some(base), Some(ours), Some(theirs)) => self.mode(base, ours, theirs),
            _ => won.mode,
        };
        Some((mode, won.id.clone()))
    }

    /// Restores files that the other side moved to a path where its version is dropped.
    fn undo_moves(&mut self, mut lost: Vec<Vec<u8>>, sides: &SideChanges) {
        let mut seen = BTreeSet::new();
        while let Some(path) = lost.pop() {
            if !seen.insert(path.clone()) {
                continue;
            }
            if matches!(self.puts.get(&path), Some(Some(_))) {
                for other in sides.other_in_the_way(&path) {
                    self.puts.remove(&other);
                    self.lines.retain(|lines| lines.path != other);
                    lost.push(other);
                }
            }
            if let Some(from) = sides.moved.get(&path)
                && let Some(Some(entry)) = sides.at(from)
                && !self.puts.contains_key(from)
            {
                self.puts.insert(from.clone(), Some(entry));
                lost.push(from.clone());
            }
        }
    }

    fn mode(&self, base: u32, ours: u32, theirs: u32) -> u32 {
        match (ours == base, theirs == base) {
            (true, _) => theirs,
            (false, true) => ours,
            (false, false) => self.side.of(ours, theirs),
        }
    }

    fn write(mut self, place: &GitContext, tree: &TreeId, attempt: &str) -> Result<TreeId, GitError> {
        let versions: Vec<Versions> = self.lines.iter().map(|lines| lines.versions.clone()).collect();
        let ids = merge_lines(place, self.side, &versions, attempt)?;
        for (lines, id) in self.lines.into_iter().zip(ids) {
            self.puts.insert(lines.path, Some((lines.mode, id)));
        }
        let index = PrivateIndex::empty(place, attempt)?;
        place.call_without_files(attempt).index(&index.path()).args(["read-tree", tree.as_str()]).run()?;
        let none = "0".repeat(tree.as_str().len());
        let puts: Vec<(u32, &str, &[u8])> = self
            .puts
            .iter()
            .map(|(path, entry)| match entry {
                Some((mode, id)) => (*mode, id.as_str(), path.as_slice()),
                None => (0, none.as_str(), path.as_slice()),
            })
            .collect();
        index.put(place, &puts, attempt)?;
        index.write_tree(place, attempt)
    }
}
