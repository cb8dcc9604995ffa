//! Reads many objects with one process.

use std::collections::HashMap;

use crate::error::GitError;
use crate::id::TreeId;
use crate::run::GitContext;

/// Reads many objects in one call. Missing objects are absent from the result.
pub(crate) fn objects(
    place: &GitContext,
    ids: &[&str],
    attempt: &str,
) -> Result<HashMap<String, Vec<u8>>, GitError> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let asked: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let call = place.call_without_files(attempt).args(["cat-file", "--batch"]);
    let output = call.stdin(asked.into_bytes()).run()?;
    let cut = || GitError::unexpected(attempt, "the list of objects is cut short");
    let mut found = HashMap::new();
    let mut rest = output.stdout.as_slice();
    while let Some(end) = rest.iter().position(|b| *b == b'\n') {
        let head = std::str::from_utf8(&rest[..end]).map_err(|_| cut())?;
        rest = &rest[end + 1..];
        // Either `<id> <type> <size>` and the content, or `<id> missing`.
        let [id, _, size]: [&str; 3] = match head.split(' ').collect::<Vec<_>>().try_into() {
            Ok(fields) => fields,
            Err(_) => continue,
        };
        let size: usize = size.parse().map_err(|_| cut())?;
        found.insert(id.to_owned(), rest.get(..size).ok_or_else(cut)?.to_vec());
        rest = rest.get(size + 1..).ok_or_else(cut)?;
    }
    Ok(found)
}

/// Returns the blob ids at these paths of a tree, in the same order; `None` for a path without a file.
pub(crate) fn blob_ids(
    place: &GitContext,
    tree: &TreeId,
    paths: &[&[u8]],
    attempt: &str,
) -> Result<Vec<Option<String>>, GitError> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let asked: Vec<Vec<u8>> =
        paths.iter().map(|path| [tree.as_str().as_bytes(), b":", *path].concat()).collect();
    let input: Vec<u8> = asked.iter().flat_map(|name| [name.as_slice(), b"\0"].concat()).collect();
    let call = place.call_without_files(attempt).args(["cat-file", "-z"]);
    let output = call.arg("--batch-check=%(objectname) %(objecttype)").stdin(input).run()?;
    let cut = || GitError::unexpected(attempt, "the list of blobs is cut short");
    let mut rest = output.stdout.as_slice();
    let mut ids = Vec::new();
    for name in &asked {
        // For a missing object git repeats the requested name, which may span several lines.
        let missing = [name.as_slice(), b" missing\n"].concat();
        if let Some(after) = rest.strip_prefix(missing.as_slice()) {
            rest = after;
            ids.push(None);
            continue;
        }
        let end = rest.iter().position(|b| *b == b'\n').ok_or_else(cut)?;
        let line = std::str::from_utf8(&rest[..end]).map_err(|_| cut())?;
        ids.push(line.strip_suffix(" blob").map(str::to_owned));
        rest = &rest[end + 1..];
    }
    Ok(ids)
}
