//! Checks the files that may enter a capture before `git add` reads them.
//!
//! The check rejects special files on which git would block, repositories created by the agent, and changes
//! beyond the capture limits. Only differences from the base count against the limits. A running agent can
//! still change everything after the check; the time limit of the capture covers that case.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::capture::{Links, OWN_FOLDER, OwnFolder};
use crate::checkout::Checkout;
use crate::error::GitError;
use crate::id::CommitId;
use crate::patience::{CaptureBounds, Patience};
use crate::private_index::PrivateIndex;
use crate::run::GitCall;
use crate::walk::{WorktreeTotals, walk};

/// A capture before it adds files.
pub(crate) struct Intake<'a> {
    pub(crate) checkout: &'a Checkout,
    /// Contains no gitlinks.
    pub(crate) index: &'a PrivateIndex,
    pub(crate) parent: &'a CommitId,
    pub(crate) own: OwnFolder,
    pub(crate) links: &'a Links,
    pub(crate) patience: &'a Patience,
    /// Passed to every call; without them git would run filters from the repository's own configuration.
    pub(crate) settings: &'a [(String, String)],
}

impl Intake<'_> {
    /// Returns the pathspecs of everything that may be added, each terminated by NUL.
    pub(crate) fn pathspecs(&self) -> Vec<u8> {
        let mut pathspecs = b":/\0".to_vec();
        let own = (self.own == OwnFolder::AsInParent).then_some(OWN_FOLDER.as_bytes());
        for path in own.into_iter().chain(self.links.stay.iter().map(|link| link.path.as_slice())) {
            pathspecs.extend_from_slice(b":(exclude,top,literal)");
            pathspecs.extend_from_slice(path);
            pathspecs.push(0);
        }
        pathspecs
    }

    /// Returns an error if there are files that git must not read.
    pub(crate) fn admit(&self, attempt: &str) -> Result<(), GitError> {
        let left_out: HashSet<_> = self.links.stay.iter().map(|link| link.path.clone()).collect();
        let mut total = WorktreeTotals::default();
        let mut folders = vec![Vec::new()];
        while !folders.is_empty() {
            let root = self.checkout.path();
            let walked = walk(root, folders, &left_out, self.patience);
            let walked = walked.map_err(|blocked| blocked.named(root, attempt))?;
            total.files += walked.files;
            total.bytes = total.bytes.saturating_add(walked.bytes);
            total.largest = total.largest.max(walked.largest);
            folders = self.folders_with_files(walked.repositories, attempt)?;
        }
        let CaptureBounds { file_max, total_max, files_max } = self.checkout.terms.bounds;
        // If all files together are within the limits, so are the changed ones.
        if total.largest <= file_max && total.bytes <= total_max && total.files <= files_max {
            return Ok(());
        }
        self.measure(attempt)
    }

    /// Rejects repositories created by the agent. Ignored ones are left out, as git does. Returns those at
    /// whose path the index has files: git treats such a directory as part of this repository.
    fn folders_with_files(&self, nested: Vec<Vec<u8>>, attempt: &str) -> Result<Vec<Vec<u8>>, GitError> {
        if nested.is_empty() {
            return Ok(nested);
        }
        let paths = nested.iter().flat_map(|path| [path.as_slice(), b"\0"].concat()).collect();
        let call = self.call(attempt).args(["check-ignore", "-z", "--stdin"]).stdin(paths);
        let output = call.accept(&[0, 1]).run()?;
        let ignored: HashSet<&[u8]> = output.fields().collect();
        let mut with_files = Vec::new();
        for path in nested.into_iter().filter(|path| !ignored.contains(path.as_slice())) {
            let literal = [b":(top,literal)".as_slice(), &path].concat();
            let call = self.call(attempt).args(["ls-files", "-z", "--"]).arg(OsStr::from_bytes(&literal));
            if call.run()?.stdout.is_empty() {
                return Err(GitError::NestedRepository { path: String::from_utf8_lossy(&path).into_owned() });
            }
            with_files.push(path);
        }
        Ok(with_files)
    }

    /// Compares the changed files with the limits.
    fn measure(&self, attempt: &str) -> Result<(), GitError> {
        let CaptureBounds { file_max, total_max, files_max } = self.checkout.terms.bounds;
        let (mut count, mut total) = (0_u64, 0_u64);
        let mut largest = (0, Vec::new());
        let mut folders: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        for path in self.changed(attempt)? {
            // A file removed in the meantime is not added.
            let Ok(meta) = fs::symlink_metadata(self.checkout.path().join(OsStr::from_bytes(&path))) else {
                continue;
            };
            if meta.is_dir() {
                continue;
            }
            let size = meta.len();
            if size > file_max {
                return Err(GitError::FileTooLarge { path: lossy(&path), size, limit: file_max });
            }
            count += 1;
            total = total.saturating_add(size);
            *folders.entry(folder_of(&path)).or_default() += 1;
            if size >= largest.0 {
                largest = (size, path);
            }
        }
        if total > total_max {
            return Err(GitError::ChangeTooLarge { path: lossy(&largest.1), size: total, limit: total_max });
        }
        if count > files_max {
            let most = folders.iter().max_by_key(|(_, files)| **files);
            let path = most.map_or_else(|| ".".to_owned(), |(folder, _)| lossy(folder));
            return Err(GitError::TooManyFiles { path, count, limit: files_max });
        }
        Ok(())
    }

    /// Lists the files that differ from the base, including new files but not ignored ones. Git compares
    /// names, sizes and times, and does not read files that are larger than the index records.
    fn changed(&self, attempt: &str) -> Result<Vec<Vec<u8>>, GitError> {
        let with_pathspecs = |call: GitCall| {
            let pathspecs = self.pathspecs();
            let specs = pathspecs.split(|b| *b == 0).filter(|spec| !spec.is_empty());
            specs.fold(call.arg("--"), |call, spec| call.arg(OsStr::from_bytes(spec)))
        };
        let differ = self.call(attempt).args(["diff-index", "-z", "--name-only", "--no-renames"]);
        let differ = differ.args(["--diff-filter=d", "--ignore-submodules=all", self.parent.as_str()]);
        let new = self.call(attempt).args(["ls-files", "-z", "--others", "--exclude-standard"]);
        let mut paths: Vec<Vec<u8>> = with_pathspecs(differ).run()?.fields().map(<[u8]>::to_vec).collect();
        paths.extend(with_pathspecs(new).run()?.fields().map(<[u8]>::to_vec));
        paths.sort_unstable();
        paths.dedup();
        Ok(paths)
    }

    fn call(&self, attempt: &str) -> GitCall {
        let call = self.checkout.place.call(attempt).index(&self.index.path());
        call.settings(self.settings).patience(self.patience)
    }
}

/// Returns the first component of a path.
fn folder_of(path: &[u8]) -> Vec<u8> {
    let end = path.iter().position(|b| *b == b'/');
    end.map_or_else(|| b".".to_vec(), |end| path[..end].to_vec())
}

fn lossy(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
