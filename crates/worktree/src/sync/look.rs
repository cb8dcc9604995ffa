//! Reads the input of a sync: refs, configuration, the remote's branch.

use std::thread;

use crate::error::GitError;
use crate::id::CommitId;
use crate::refs::update;
use crate::repository::Repository;
use crate::sync::fetch::{Fetched, fetch, fetch_at_once};
use crate::sync::order::{RemoteBranch, SyncRefNames};

/// The current refs.
#[derive(Debug, Default)]
pub(crate) struct Refs {
    pub(crate) local: Option<CommitId>,
    pub(crate) tracking: Option<CommitId>,
    pub(crate) gone: Option<CommitId>,
    /// The object to which the recovery marker points.
    pub(crate) recovery: Option<String>,
}

/// The state of the remote's branch.
pub(crate) enum RemoteSeen {
    Unreachable(String),
    NeverThere,
    Deleted,
    Tip(CommitId),
}

impl Repository {
    /// Reads the refs, and at the same time tries a fetch that starts no program.
    pub(crate) fn look(
        &self,
        names: &SyncRefNames,
        remote: &str,
    ) -> Result<(Refs, Option<CommitId>), GitError> {
        // An unfinished recovery is completed first. It needs no remote and must not wait for one. If the
        // marker is not a loose ref, it is found later, when the refs are read.
        if self.common_dir().join(&names.recovery).exists() {
            return Ok((self.refs_of(names)?, None));
        }
        thread::scope(|scope| {
            let refs = scope.spawn(|| self.refs_of(names));
            let tip = fetch_at_once(self.place(), remote, &names.at_remote());
            let refs = refs.join().map_err(|_| GitError::unexpected("read the refs", "a thread failed"))?;
            Ok((refs?, tip))
        })
    }

    fn refs_of(&self, names: &SyncRefNames) -> Result<Refs, GitError> {
        let attempt = "read the refs of a branch";
        let call = self.call(attempt).args(["for-each-ref", "--format=%(objectname) %(refname)"]);
        let SyncRefNames { branch, tracking, gone, recovery } = names;
        let text = call.args([branch, tracking, gone, recovery]).run()?.text(attempt)?;
        let mut refs = Refs::default();
        for line in text.lines() {
            let unreadable = || GitError::unexpected(attempt, line);
            let (id, name) = line.split_once(' ').ok_or_else(unreadable)?;
            let commit = || id.parse().map(Some).map_err(|_| unreadable());
            // A pattern also matches refs below the name, which are not part of this sync.
            match name {
                _ if name == branch => refs.local = commit()?,
                _ if name == tracking => refs.tracking = commit()?,
                _ if name == gone => refs.gone = commit()?,
                _ if name == recovery => refs.recovery = Some(id.to_owned()),
                _ => {}
            }
        }
        Ok(refs)
    }

    /// Fetches the branch from the remote.
    pub(crate) fn ask_remote(&self, names: &RemoteBranch<'_>, remote: &str) -> Result<Fetched, GitError> {
        match self.place().source(remote)? {
            Some(source) => Ok(fetch(self.place(), &self.place().guard()?, remote, &source, names)),
            None => Ok(Fetched::Failed { reason: format!("no remote named {remote} is configured") }),
        }
    }

    /// Compares the fetched position with the last one, and records a branch that the remote had and deleted.
    pub(crate) fn remember(
        &self,
        names: &SyncRefNames,
        refs: &Refs,
        fetched: Fetched,
    ) -> Result<RemoteSeen, GitError> {
        let SyncRefNames { tracking, gone, .. } = names;
        let attempt = "record the position of the remote's branch";
        match (fetched, &refs.tracking, &refs.gone) {
            (Fetched::Failed { reason }, _, _) => Ok(RemoteSeen::Unreachable(reason)),
            (Fetched::At(tip), _, None) => Ok(RemoteSeen::Tip(tip)),
            (Fetched::At(tip), _, Some(before)) => {
                update(self.place(), attempt, format!("delete {gone}\0{before}\0"))?;
                Ok(RemoteSeen::Tip(tip))
            }
            (Fetched::Absent, None, None) => Ok(RemoteSeen::NeverThere),
            (Fetched::Absent, None, Some(_)) => Ok(RemoteSeen::Deleted),
            (Fetched::Absent, Some(seen), before) => {
                let old =
                    before.as_ref().map_or_else(|| "0".repeat(seen.as_str().len()), CommitId::to_string);
                let records = format!("delete {tracking}\0{seen}\0update {gone}\0{seen}\0{old}\0");
                update(self.place(), attempt, records)?;
                Ok(RemoteSeen::Deleted)
            }
        }
    }

    /// Records that the remote's branch is at a commit which it has just accepted.
    pub(crate) fn remember_pushed(&self, names: &SyncRefNames, commit: &CommitId) -> Result<(), GitError> {
        let record = format!("update {}\0{commit}\0\0", names.tracking);
        update(self.place(), "record the position of the remote's branch", record)
    }
}
