//! Finds a landing in the history of a branch by its commit message.

use drydock_domain::{is_landing_of, trailer};

use crate::error::GitError;
use crate::id::CommitId;
use crate::repository::Repository;

impl Repository {
    /// Returns the oldest commit between two commits, along first parents, that landed a plan.
    pub fn landing_of(
        &self,
        plan: &str,
        base: &CommitId,
        tip: &CommitId,
    ) -> Result<Option<CommitId>, GitError> {
        let attempt = format!("look for a landing of {plan}");
        let call = self.call(attempt.as_str()).args(["log", "--first-parent", "--no-notes", "--no-decorate"]);
        let call = call.args(["--reverse", "--fixed-strings"]).arg(format!("--grep={}", trailer(plan)));
        let call = call.args(["--format=%H%n%B%x00", "--end-of-options"]);
        let text = call.arg(tip.as_str()).arg(format!("^{base}")).run()?.text(&attempt)?;
        let mut landings = text.split('\0').filter_map(|record| record.trim_start().split_once('\n'));
        match landings.find(|(_, message)| is_landing_of(message, plan)) {
            Some((id, _)) => id.parse().map(Some).map_err(|_| GitError::unexpected(&attempt, id)),
            None => Ok(None),
        }
    }

    /// Returns commits of `tip` that are not in `known`, newest first and at most `most`, as `id subject`.
    pub fn commits_beyond(
        &self,
        tip: &CommitId,
        known: &CommitId,
        most: usize,
    ) -> Result<Vec<String>, GitError> {
        let attempt = format!("list the commits of {tip} that are not in {known}");
        let call = self.call(attempt.as_str()).args(["log", "--no-notes", "--no-decorate", "--format=%h %s"]);
        let call = call.arg(format!("--max-count={most}")).args(["--end-of-options", tip.as_str()]);
        let text = call.arg(format!("^{known}")).run()?.text(&attempt)?;
        Ok(text.lines().map(str::to_owned).collect())
    }
}
