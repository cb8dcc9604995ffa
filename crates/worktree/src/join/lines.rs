//! Merges files line by line, using one side's lines where both changed the same ones.
//!
//! Git's tree merge can prefer a side only in versions later than the oldest supported one, and then only for
//! lines. `merge-file` can do it in every version, and does not run a merge driver from a configuration.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::error::GitError;
use crate::id::is_object_name;
use crate::join::favour::WinningSide;
use crate::join::order::FILES_AT_ONCE;
use crate::objects::objects;
use crate::run::GitContext;

/// Exit code of `merge-file` if it cannot merge.
const REFUSED: i32 = 255;

/// Blob ids of three versions of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Versions {
    pub(super) base: String,
    pub(super) ours: String,
    pub(super) theirs: String,
}

/// Merges files and returns their blob ids, in the same order.
pub(super) fn merge_lines(
    place: &GitContext,
    side: WinningSide,
    files: &[Versions],
    attempt: &str,
) -> Result<Vec<String>, GitError> {
    let mut ids = Vec::new();
    for some in files.chunks(FILES_AT_ONCE) {
        let wanted = some.iter().flat_map(|file| [&file.base, &file.ours, &file.theirs]);
        let texts = objects(place, &wanted.map(String::as_str).collect::<Vec<_>>(), attempt)?;
        let bench = MergeDir::new(place, attempt)?;
        let mut merged = Vec::new();
        for file in some {
            for (name, id) in [("base", &file.base), ("ours", &file.ours), ("theirs", &file.theirs)] {
                let text = texts.get(id);
                let text = text.ok_or_else(|| GitError::unexpected(attempt, format!("{id} is missing")))?;
                bench.write(name, text)?;
            }
            let name = format!("merged-{}", merged.len());
            match bench.merge(side)? {
                Some(text) => bench.write(&name, &text)?,
                None => bench.write(&name, &texts[side.of(&file.ours, &file.theirs)])?,
            }
            merged.push(name);
        }
        ids.extend(bench.keep(&merged)?);
    }
    Ok(ids)
}

/// A private directory for the files to merge.
struct MergeDir<'a> {
    place: &'a GitContext,
    folder: TempDir,
    attempt: &'a str,
}

impl<'a> MergeDir<'a> {
    fn new(place: &'a GitContext, attempt: &'a str) -> Result<MergeDir<'a>, GitError> {
        let folder = tempfile::Builder::new().prefix("drydock-join-").tempdir_in(&place.git_dir);
        let folder = folder.map_err(|source| GitError::file(attempt, &place.git_dir, source))?;
        Ok(MergeDir { place, folder, attempt })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &[u8]) -> Result<(), GitError> {
        let path = self.at(name);
        fs::write(&path, text).map_err(|source| GitError::file(self.attempt, &path, source))
    }

    /// Merges the three files, or returns `None` if one of them is binary.
    fn merge(&self, side: WinningSide) -> Result<Option<Vec<u8>>, GitError> {
        let favour = side.of("--ours", "--theirs");
        let call = self.place.call_without_files(self.attempt).args(["merge-file", "-p", favour]);
        let call = call.arg(self.at("ours")).arg(self.at("base")).arg(self.at("theirs"));
        let output = call.accept(&[0, REFUSED]).run()?;
        match output.code {
            0 => Ok(Some(output.stdout)),
            _ if output.stderr.contains("Cannot merge binary files") => Ok(None),
            _ => Err(GitError::unexpected(self.attempt, output.stderr)),
        }
    }

    /// Writes files as blobs.
    fn keep(&self, names: &[String]) -> Result<Vec<String>, GitError> {
        let mut paths = Vec::new();
        for name in names {
            paths.extend_from_slice(self.at(name).as_os_str().as_encoded_bytes());
            paths.push(b'\n');
        }
        let call = self.place.call_without_files(self.attempt).args(["hash-object", "-w"]);
        let text = call.args(["--no-filters", "--stdin-paths"]).stdin(paths).run()?.text(self.attempt)?;
        let ids: Vec<String> = text.lines().map(str::to_owned).collect();
        if ids.len() == names.len() && ids.iter().all(|id| is_object_name(id)) {
            Ok(ids)
        } else {
            Err(GitError::unexpected(self.attempt, text))
        }
    }
}
