//! Request and result of a detailed merge.
//!
//! Files, index and refs stay unchanged. A clean merge takes two processes. Describing a conflict takes two
//! more. Resolving it in favour of a side takes a few more in total, and one per file that is merged line by
//! line.

use std::collections::HashMap;

use crate::error::GitError;
use crate::id::{CommitId, TreeId};
use crate::join::favour::{WinningSide, settle};
use crate::join::group::{Group, groups};
use crate::join::marker::{self, Labels};
use crate::merge::{MergeConflict, merge_trees};
use crate::objects::{blob_ids, objects};
use crate::repository::Repository;
use crate::run::path_text;

/// Number of files held in memory at the same time.
pub(super) const FILES_AT_ONCE: usize = 64;

/// The side that wins if both changed the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Prefer {
    /// Neither: the place is a conflict.
    Neither,
    /// The version of `ours`.
    Ours,
    /// The version of `theirs`.
    Theirs,
}

/// The commits to merge, and how.
#[derive(Debug, Clone, Copy)]
pub struct MergeRequest<'a> {
    /// The common base of both sides.
    pub base: &'a CommitId,
    /// The side into which the other is merged.
    pub ours: &'a CommitId,
    /// The side that is merged.
    pub theirs: &'a CommitId,
    /// The preferred side.
    pub favour: Prefer,
}

/// The outcome of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DetailedMerge {
    /// The merged tree. With a preferred side, this is always the outcome.
    Clean(TreeId),
    /// Both sides changed the same place.
    Conflict {
        /// The merge with conflict markers in its files, as a starting point for resolving it.
        tree: TreeId,
        /// The conflicts, sorted by path.
        files: Vec<ConflictFile>,
    },
}

/// One file in conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictFile {
    /// The path of the conflict; for a rename, the path that git names first.
    pub path: String,
    /// Other paths of the same conflict: old and new names, and names that git generated for files in the
    /// way. Sorted.
    pub others: Vec<String>,
    /// The kind of conflict.
    pub kind: ConflictKind,
    /// Git's message, with `base`, `ours` and `theirs` instead of the commit ids.
    pub message: String,
    /// The conflict regions, at most 20 and about 4 KiB. A longer region is shortened and shows the number of
    /// missing lines.
    pub hunks: Vec<Hunk>,
    /// Number of further regions.
    pub left_out: usize,
}

impl ConflictFile {
    /// Returns all paths of the conflict, as `Repository::unresolved` expects them.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.path).chain(&self.others).map(String::as_str)
    }
}

/// One conflict region of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// Line of its first marker in the file of the tree, counted from 1.
    pub line: usize,
    /// The lines of `ours`.
    pub ours: String,
    /// The lines of the base, or `None` if the base does not have the file.
    pub base: Option<String>,
    /// The lines of `theirs`.
    pub theirs: String,
}

/// The kind of a conflict.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConflictKind {
    /// Both sides changed the same lines.
    Content,
    /// Both sides changed a binary file.
    Binary,
    /// One side changed a file that the other deleted.
    ModifyDelete,
    /// Both sides renamed a file, to different names.
    RenameRename,
    /// One side renamed a file that the other deleted.
    RenameDelete,
    /// Both sides added a file with the same name.
    AddAdd,
    /// Both sides changed the mode or type.
    Mode,
    /// One side has a directory where the other has a file.
    DirectoryFile,
    /// Any other kind, with git's name for it, such as `submodule`.
    Other(String),
}

impl Repository {
    /// Merges two commits with a base. The result is deterministic for the same commits and configuration.
    ///
    /// With a preferred side, overlapping changes are resolved to that side's version, and changes without
    /// conflict are kept from both sides. Conflicts that are not about lines (binary files, links, types,
    /// deletions, names, directories) are resolved to that side's version too.
    pub fn merge_detailed(&self, order: &MergeRequest<'_>) -> Result<DetailedMerge, GitError> {
        let mut settings = self.place().guard()?;
        settings.push(("merge.conflictStyle".to_owned(), "zdiff3".to_owned()));
        let MergeRequest { base, ours, theirs, favour } = *order;
        let conflict = match merge_trees(self.place(), &settings, base, ours, theirs)? {
            Ok(tree) => return Ok(DetailedMerge::Clean(tree)),
            Err(conflict) => conflict,
        };
        match favour {
            Prefer::Neither => self.tell(order, conflict),
            Prefer::Ours => {
                settle(self.place(), &settings, order, conflict, WinningSide::Ours).map(DetailedMerge::Clean)
            }
            Prefer::Theirs => settle(self.place(), &settings, order, conflict, WinningSide::Theirs)
                .map(DetailedMerge::Clean),
        }
    }

    /// Returns the files of a tree that still contain conflict markers written by a merge.
    ///
    /// Such a marker contains a full commit id, which distinguishes it from text that looks like a marker.
    pub fn unresolved(&self, tree: &TreeId, paths: &[String]) -> Result<Vec<String>, GitError> {
        let attempt = format!("look for conflict markers in {tree}");
        let mut found = Vec::new();
        // A file name cannot contain NUL, and git would read it as two names.
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

    /// Describes a conflict: its kind, paths and regions.
    fn tell(&self, order: &MergeRequest<'_>, conflict: MergeConflict) -> Result<DetailedMerge, GitError> {
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
        Ok(DetailedMerge::Conflict { tree: conflict.tree, files })
    }
}

impl Group<'_> {
    fn told(
        &self,
        order: &MergeRequest<'_>,
        ids: &HashMap<&[u8], String>,
        texts: &HashMap<String, Vec<u8>>,
    ) -> Result<ConflictFile, GitError> {
        let labels = Labels { ours: order.ours.as_str(), theirs: order.theirs.as_str() };
        let base = self.stage(1).and_then(|stage| texts.get(&stage.id)).map(Vec::as_slice);
        let here = self.paths().filter_map(|path| texts.get(ids.get(path)?));
        // A file that both sides renamed exists in two copies with the same conflict regions.
        let mut found = here.map(|text| marker::hunks(text, labels, base));
        let (hunks, left_out) = found.find(|(hunks, _)| !hunks.is_empty()).unwrap_or_default();
        let path = path_text(self.main_path())?;
        let others = self.paths().filter(|other| *other != path.as_bytes()).map(path_text);
        let others = others.collect::<Result<Vec<_>, _>>()?;
        Ok(ConflictFile { path, others, kind: self.kind(), message: self.message(order), hunks, left_out })
    }
}
