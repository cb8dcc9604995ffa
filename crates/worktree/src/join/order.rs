//! What can be asked of a join, and what it answers.
//!
//! No file, index or ref is touched. A clean join is two processes; a conflict that is told adds two, and one that is
//! settled for a side adds some for all files and one for each file that is merged line by line.

use std::collections::HashMap;

use crate::error::GitError;
use crate::id::{CommitId, TreeId};
use crate::join::favour::{Side, settle};
use crate::join::group::{Group, groups};
use crate::join::marker::{self, Labels};
use crate::merge::{Conflict, merge_trees};
use crate::objects::{blob_ids, objects};
use crate::repository::Repository;
use crate::run::path_text;

/// How many files are in memory at once.
pub(super) const FILES_AT_ONCE: usize = 64;

/// Which side wins where both changed the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Favour {
    /// None: such a place is a conflict.
    Neither,
    /// Ours.
    Ours,
    /// Theirs.
    Theirs,
}

/// Which commits to join, and how.
#[derive(Debug, Clone, Copy)]
pub struct JoinOrder<'a> {
    /// What both sides started from.
    pub base: &'a CommitId,
    /// The side that the other one is brought into.
    pub ours: &'a CommitId,
    /// The side that is brought in.
    pub theirs: &'a CommitId,
    /// Which side wins.
    pub favour: Favour,
}

/// What a join came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Join {
    /// The joined tree; always this when a side is favoured.
    Clean(TreeId),
    /// Both sides changed the same places.
    Conflict {
        /// The merge with conflict markers in its files, as a starting point for whoever resolves it.
        tree: TreeId,
        /// What does not fit, sorted by path.
        files: Vec<ConflictFile>,
    },
}

/// One file that both sides changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictFile {
    /// The path that the conflict is about; of a rename, the one that git names first.
    pub path: String,
    /// Other paths of the same conflict: older and newer names, and where git put what is in the way. Sorted.
    pub others: Vec<String>,
    /// What kind of conflict it is.
    pub kind: ConflictKind,
    /// What git says about it, with the words `base`, `ours` and `theirs` for the commits.
    pub message: String,
    /// The places in conflict, at most 20 and about 4 KiB; of a longer one the lines that are missing are counted.
    pub hunks: Vec<Hunk>,
    /// How many more places there are.
    pub left_out: usize,
}

impl ConflictFile {
    /// Returns all paths of the conflict, as `Repository::unresolved` takes them.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.path).chain(&self.others).map(String::as_str)
    }
}

/// One place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The line of its first marker in the file of the tree, counted from 1.
    pub line: usize,
    /// The lines that ours has.
    pub ours: String,
    /// The lines that the base has; none when the base has no such file.
    pub base: Option<String>,
    /// The lines that theirs has.
    pub theirs: String,
}

/// What kind of conflict it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConflictKind {
    /// Both changed the same lines.
    Content,
    /// Both changed a file that has no lines to merge.
    Binary,
    /// One changed what the other deleted.
    ModifyDelete,
    /// Both renamed it, to different names.
    RenameRename,
    /// One renamed what the other deleted.
    RenameDelete,
    /// Both put a file there that was not there before.
    AddAdd,
    /// Both gave it another mode, or made it a thing of another type.
    Mode,
    /// One has a directory where the other has a file.
    DirectoryFile,
    /// Any other kind, in git's words, such as `submodule`.
    Other(String),
}

impl Repository {
    /// Joins two commits by a base. The same commits give the same answer, under the same configuration.
    ///
    /// With a side favoured, places that overlap are as that side has them, and what fits of either side stays. What
    /// has no lines to choose from (binary files, links, types, a deletion, a name, a directory) is as that side has it.
    pub fn join(&self, order: &JoinOrder<'_>) -> Result<Join, GitError> {
        let mut settings = self.place().guard()?;
        settings.push(("merge.conflictStyle".to_owned(), "zdiff3".to_owned()));
        let JoinOrder { base, ours, theirs, favour } = *order;
        let conflict = match merge_trees(self.place(), &settings, base, ours, theirs)? {
            Ok(tree) => return Ok(Join::Clean(tree)),
            Err(conflict) => conflict,
        };
        match favour {
            Favour::Neither => self.tell(order, conflict),
            Favour::Ours => settle(self.place(), &settings, order, conflict, Side::Ours).map(Join::Clean),
            Favour::Theirs => settle(self.place(), &settings, order, conflict, Side::Theirs).map(Join::Clean),
        }
    }

    /// Returns those of these files of a tree that still hold conflict markers which a join wrote.
    ///
    /// Such a marker names a commit by its full id, which tells it from text that looks like one.
    pub fn unresolved(&self, tree: &TreeId, paths: &[String]) -> Result<Vec<String>, GitError> {
        let attempt = format!("look for conflict markers in {tree}");
        let mut found = Vec::new();
        // No file can be called by a name with NUL in it, and git would take it for two names.
        let paths: Vec<&String> = paths.iter().filter(|path| !path.contains('\0')).collect();
        for some in paths.chunks(FILES_AT_ONCE) {
            let names: Vec<&[u8]> = some.iter().map(|path| path.as_bytes()).collect();
            let ids = blob_ids(self.place(), tree, &names, &attempt)?;
            let wanted: Vec<&str> = ids.iter().flatten().map(String::as_str).collect();
            let texts = objects(self.place(), &wanted, &attempt)?;
            let marked = |id: &Option<String>| {
                id.as_ref().and_then(|id| texts.get(id)).is_some_and(|text| marker::is_marked(text))
            };
            found
                .extend(some.iter().zip(&ids).filter(|(_, id)| marked(id)).map(|(path, _)| path.to_string()));
        }
        Ok(found)
    }

    /// Tells a conflict: what it is about, and the places in the files.
    fn tell(&self, order: &JoinOrder<'_>, conflict: Conflict) -> Result<Join, GitError> {
        let attempt = format!("read the conflict of {} and {}", order.ours, order.theirs);
        let mut files = Vec::new();
        for some in groups(&conflict, order).chunks(FILES_AT_ONCE) {
            let telling = some.iter().filter(|group| group.has_lines());
            let paths: Vec<&[u8]> = telling.flat_map(Group::paths).collect();
            let ids = blob_ids(self.place(), &conflict.tree, &paths, &attempt)?;
            let ids: HashMap<&[u8], String> =
                paths.into_iter().zip(ids).filter_map(|(path, id)| Some((path, id?))).collect();
            let bases = some.iter().filter_map(|group| group.stage(1)).map(|stage| stage.id.as_str());
            let wanted: Vec<&str> = ids.values().map(String::as_str).chain(bases).collect();
            let texts = objects(self.place(), &wanted, &attempt)?;
            for group in some {
                files.push(group.told(order, &ids, &texts)?);
            }
        }
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(Join::Conflict { tree: conflict.tree, files })
    }
}

impl Group<'_> {
    fn told(
        &self,
        order: &JoinOrder<'_>,
        ids: &HashMap<&[u8], String>,
        texts: &HashMap<String, Vec<u8>>,
    ) -> Result<ConflictFile, GitError> {
        let labels = Labels { ours: order.ours.as_str(), theirs: order.theirs.as_str() };
        let base = self.stage(1).and_then(|stage| texts.get(&stage.id)).map(Vec::as_slice);
        let here = self.paths().filter_map(|path| texts.get(ids.get(path)?));
        // Of a file that both renamed there are two copies with the same places in conflict.
        let mut found = here.map(|text| marker::hunks(text, labels, base));
        let (hunks, left_out) = found.find(|(hunks, _)| !hunks.is_empty()).unwrap_or_default();
        let path = path_text(self.main_path())?;
        let others = self.paths().filter(|other| *other != path.as_bytes()).map(path_text);
        let others = others.collect::<Result<Vec<_>, _>>()?;
        Ok(ConflictFile { path, others, kind: self.kind(), message: self.message(order), hunks, left_out })
    }
}
