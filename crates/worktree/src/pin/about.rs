//! What a pin says about itself: a JSON blob under a ref beside the pin's own.

use std::collections::HashMap;

use drydock_domain::Uncommitted;
use serde::{Deserialize, Serialize};

use crate::error::GitError;
use crate::run::Place;

/// Where the pins of all plans are.
pub(crate) const PINS: &str = "refs/drydock/pin/";
/// Where what is said about them is.
pub(crate) const ABOUTS: &str = "refs/drydock/pin-about/";

/// The facts about a pin that its commit does not tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) plan: String,
    pub(crate) run: Option<String>,
    pub(crate) reason: String,
    /// Seconds since 1970.
    pub(crate) created_at: i64,
    pub(crate) uncommitted: Uncommitted,
    /// The commit that the branch was at.
    pub(crate) head: String,
    /// Everything in the directory, if it differed from the head.
    pub(crate) tree: Option<String>,
    /// What was staged, if it was nowhere else.
    pub(crate) staged: Option<String>,
    /// The remote's commit that the branch had diverged from.
    pub(crate) remote: Option<String>,
}

impl About {
    /// Tells whether both keep the same, whenever and for whatever reason they were made.
    pub(crate) fn keeps_the_same(&self, other: &About) -> bool {
        let kept = |about: &About| {
            let About { head, tree, staged, remote, .. } = about.clone();
            (head, tree, staged, remote)
        };
        kept(self) == kept(other)
    }
}

/// Returns the name of what is said about a pin.
pub(crate) fn about_of(pin: &str) -> Option<String> {
    Some(format!("{ABOUTS}{}", pin.strip_prefix(PINS)?))
}

/// Returns plan and number of a pin.
pub(crate) fn parts(pin: &str) -> Option<(&str, u64)> {
    let (plan, number) = pin.strip_prefix(PINS)?.rsplit_once('/')?;
    Some((plan, number.parse().ok()?))
}

/// Writes a blob.
pub(crate) fn blob_write(place: &Place, bytes: Vec<u8>, attempt: &str) -> Result<String, GitError> {
    let call = place.call_without_files(attempt).args(["hash-object", "-w", "--no-filters", "--stdin"]);
    Ok(call.stdin(bytes).run()?.text(attempt)?.trim_end().to_owned())
}

/// Reads many objects at once; one that is not there is not in the result.
pub(crate) fn objects(
    place: &Place,
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
