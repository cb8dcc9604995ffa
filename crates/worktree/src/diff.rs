//! Compares two commits or trees: list of changes, patch, statistics.

use crate::error::GitError;
use crate::id::{Treeish, is_object_name};
use crate::repository::Repository;
use crate::run::{GitCall, GitContext, path_text};
use drydock_domain::ChangeOp;

/// One changed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeChange {
    /// The path after the change, or before it if the file was deleted.
    pub path: String,
    /// The kind of change.
    pub op: ChangeOp,
    /// The old path of a rename.
    pub from: Option<String>,
    /// Object id of the blob before.
    pub before: Option<String>,
    /// Object id of the blob after.
    pub after: Option<String>,
    /// File mode before, such as `0o100644`.
    pub mode_before: Option<u32>,
    /// File mode after.
    pub mode_after: Option<u32>,
}

/// The size of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiffStat {
    /// Changed files.
    pub files: u64,
    /// Lines added, in text files.
    pub lines_added: u64,
    /// Lines deleted, in text files.
    pub lines_deleted: u64,
    /// Number of binary files, whose lines are not counted.
    pub binary_files: u64,
}

impl Repository {
    /// Lists the changed paths, with a rename as one change.
    pub fn changes(&self, from: &impl Treeish, to: &impl Treeish) -> Result<Vec<TreeChange>, GitError> {
        if from.object() == to.object() {
            return Ok(Vec::new());
        }
        let attempt = attempt(from, to);
        let output =
            diff_tree(self.place(), from, to, &attempt).args(["--raw", "--no-abbrev", "-z", "-M"]).run()?;
        parse_raw(output.fields(), &attempt)?.iter().map(TreeChange::read).collect()
    }

    /// Returns the full unified diff with renames. Its size is not limited.
    pub fn patch(&self, from: &impl Treeish, to: &impl Treeish) -> Result<Vec<u8>, GitError> {
        let call = diff_tree(self.place(), from, to, &attempt(from, to)).args([
            "--patch",
            "-M",
            "--binary",
            "--full-index",
        ]);
        Ok(call.args(["--src-prefix=a/", "--dst-prefix=b/"]).run()?.stdout)
    }

    /// Counts changed files and lines.
    pub fn stat(&self, from: &impl Treeish, to: &impl Treeish) -> Result<DiffStat, GitError> {
        let attempt = attempt(from, to);
        let output = diff_tree(self.place(), from, to, &attempt).args(["--numstat", "-z", "-M"]).run()?;
        parse_numstat(output.fields(), &attempt)
    }

    /// Returns the content of a blob. Its size is not limited.
    pub fn blob(&self, id: &str) -> Result<Vec<u8>, GitError> {
        if !is_object_name(id) {
            return Err(GitError::BadName { name: id.to_owned(), reason: "it is not a full object name" });
        }
        Ok(self.call(format!("read blob {id}")).args(["cat-file", "blob", id]).run()?.stdout)
    }
}

/// A change as git prints it; an absent side has mode 0 and an all-zero id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawChange {
    pub(crate) mode_before: u32,
    pub(crate) mode_after: u32,
    pub(crate) before: String,
    pub(crate) after: String,
    status: u8,
    pub(crate) from: Option<Vec<u8>>,
    pub(crate) path: Vec<u8>,
}

/// Lists the changed paths, with a rename as a deletion and a creation.
pub(crate) fn raw_changes(
    place: &GitContext,
    from: &impl Treeish,
    to: &impl Treeish,
) -> Result<Vec<RawChange>, GitError> {
    let attempt = attempt(from, to);
    let call = diff_tree(place, from, to, &attempt).args(["--raw", "--no-abbrev", "-z", "--no-renames"]);
    parse_raw(call.run()?.fields(), &attempt)
}

/// Lists the changed paths, with a rename as one change. Uses the rename limit that merges use by default.
pub(crate) fn raw_renames(
    place: &GitContext,
    from: &impl Treeish,
    to: &impl Treeish,
) -> Result<Vec<RawChange>, GitError> {
    let attempt = attempt(from, to);
    let call = diff_tree(place, from, to, &attempt).args(["--raw", "--no-abbrev", "-z", "-M", "-l7000"]);
    parse_raw(call.run()?.fields(), &attempt)
}

impl TreeChange {
    fn read(raw: &RawChange) -> Result<TreeChange, GitError> {
        let op = match raw.status {
            b'A' => ChangeOp::Create,
            b'D' => ChangeOp::Delete,
            b'R' => ChangeOp::Rename,
            _ => ChangeOp::Modify,
        };
        let mode = |mode: u32| Some(mode).filter(|mode| *mode != 0);
        let blob = |mode: u32, id: &str| (mode != 0).then(|| id.to_owned());
        Ok(TreeChange {
            path: path_text(&raw.path)?,
            op,
            from: raw.from.as_deref().map(path_text).transpose()?,
            before: blob(raw.mode_before, &raw.before),
            after: blob(raw.mode_after, &raw.after),
            mode_before: mode(raw.mode_before),
            mode_after: mode(raw.mode_after),
        })
    }
}

fn attempt(from: &impl Treeish, to: &impl Treeish) -> String {
    format!("compare {} with {}", from.object(), to.object())
}

fn diff_tree(place: &GitContext, from: &impl Treeish, to: &impl Treeish, attempt: &str) -> GitCall {
    let call = place.call_without_files(attempt).args(["diff-tree", "-r", from.object(), to.object()]);
    call.args(["--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=none"])
}

/// Reads records such as `:100644 100755 <id> <id> R090<NUL>from<NUL>to<NUL>`.
fn parse_raw<'a>(
    mut fields: impl Iterator<Item = &'a [u8]>,
    attempt: &str,
) -> Result<Vec<RawChange>, GitError> {
    let mut changes = Vec::new();
    while let Some(head) = fields.next() {
        let change = read_raw(head, &mut fields);
        changes.push(change.ok_or_else(|| GitError::unexpected(attempt, String::from_utf8_lossy(head)))?);
    }
    Ok(changes)
}

fn read_raw<'a>(head: &[u8], rest: &mut impl Iterator<Item = &'a [u8]>) -> Option<RawChange> {
    let head = std::str::from_utf8(head).ok()?.strip_prefix(':')?;
    let parts: [&str; 5] = head.split(' ').collect::<Vec<_>>().try_into().ok()?;
    let [mode_before, mode_after, before, after, status] = parts;
    let status = *status.as_bytes().first()?;
    let first = rest.next()?.to_vec();
    let (from, path) = match status {
        b'R' | b'C' => (Some(first), rest.next()?.to_vec()),
        b'A' | b'D' | b'M' | b'T' => (None, first),
        _ => return None,
    };
    Some(RawChange {
        mode_before: u32::from_str_radix(mode_before, 8).ok()?,
        mode_after: u32::from_str_radix(mode_after, 8).ok()?,
        before: before.to_owned(),
        after: after.to_owned(),
        status,
        from,
        path,
    })
}

/// Reads records such as `1<TAB>2<TAB>path<NUL>`, or `1<TAB>2<TAB><NUL>from<NUL>to<NUL>`.
fn parse_numstat<'a>(
    mut fields: impl Iterator<Item = &'a [u8]>,
    attempt: &str,
) -> Result<DiffStat, GitError> {
    let mut stat = DiffStat::default();
    while let Some(record) = fields.next() {
        let wrong = || GitError::unexpected(attempt, String::from_utf8_lossy(record));
        let mut parts = record.splitn(3, |b| *b == b'\t');
        let (Some(added), Some(deleted), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(wrong());
        };
        if path.is_empty() {
            fields.next().and_then(|_| fields.next()).ok_or_else(wrong)?;
        }
        stat.files += 1;
        if (added, deleted) == (b"-", b"-") {
            stat.binary_files += 1;
            continue;
        }
        let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse::<u64>().ok();
        stat.lines_added += number(added).ok_or_else(wrong)?;
        stat.lines_deleted += number(deleted).ok_or_else(wrong)?;
    }
    Ok(stat)
}
