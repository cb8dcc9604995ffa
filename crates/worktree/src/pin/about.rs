//! What a pin says about itself: a JSON blob under a ref beside the pin's own.

use drydock_domain::{PINS, Uncommitted};
use serde::{Deserialize, Serialize};

use crate::error::GitError;
use crate::run::Place;

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
