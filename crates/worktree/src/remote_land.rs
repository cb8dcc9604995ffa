//! Lands at a remote: one atomic push moves the remote's target branch, comparing the target and the intent.
//!
//! An *intent* is a ref at the remote that names the commit about to land. The push that moves the target
//! compares both refs and deletes the intent. A process that resumes after its plan was taken over therefore
//! moves nothing, because the takeover deleted the intent first.
//!
//! The features of a remote are discovered by trying. If it rejects `refs/drydock/*`, intents are branches
//! below `drydock/intent/`. If it does not allow deleting them or has no atomic push, the target is pushed
//! alone, which still compares its old position. The new commit descends from that position, so history is
//! never replaced.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use drydock_domain::error_chain;

use crate::crash;
use crate::error::GitError;
use crate::id::CommitId;
use crate::land::LandOutcome;
use crate::name;
use crate::push::{RefPushResult, verdict_of};
use crate::repository::Repository;
use crate::run::Output;
use crate::sync::{Fetched, RemoteBranch, fetch_at_once, tracking_name};

/// Prefixes of intents, in order of preference.
const INTENTS: [&str; 2] = ["refs/drydock/intent/", "refs/heads/drydock/intent/"];
/// Maximum number of attempts for a fetch that conflicts with another drydock process.
const FETCHES_MAX: usize = 5;
const FETCH_AGAIN: Duration = Duration::from_millis(50);
/// Maximum number of attempts to delete all intents of a plan.
const REVOCATIONS_MAX: usize = 3;

/// The position of a remote's branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteTip {
    /// The branch is at this commit, which has been fetched.
    At(CommitId),
    /// The remote does not have the branch.
    Absent,
    /// The position could not be read.
    Away {
        /// Why it could not be read.
        reason: String,
    },
}

/// The outcome of pushing an intent to a remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntentPushed {
    /// The remote stores the intent under this ref.
    As(String),
    /// The remote does not accept such refs.
    Refused,
    /// The remote did not respond.
    Away {
        /// Why it did not respond.
        reason: String,
    },
}

/// A landing at a remote.
#[derive(Debug, Clone, Copy)]
pub struct RemoteLanding<'a> {
    /// Name of the remote.
    pub remote: &'a str,
    /// The target branch.
    pub branch: &'a str,
    /// Expected commit of the target, or `None` if the branch must not exist.
    pub from: Option<&'a CommitId>,
    /// The commit to land, a descendant of `from`.
    pub to: &'a CommitId,
    /// The intent that must exist, if the remote stores one.
    pub intent: Option<&'a str>,
    /// The plan's branch at the remote, which the same push removes because its commits land.
    pub removes: Option<&'a SentBranch>,
}

/// A plan's branch as last seen at the remote. All its commits are part of the landing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentBranch {
    pub(crate) full: String,
    pub(crate) tracking: String,
    pub(crate) seen: CommitId,
}

/// The outcome of a landing at a remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteLanded {
    /// The remote's target is at the commit.
    Moved,
    /// The target or the intent was not at the expected commit, or another push was in progress. A retry may
    /// succeed.
    Again {
        /// Git's message.
        text: String,
    },
    /// The remote rejects the landing.
    Refused {
        /// The remote's message.
        text: String,
    },
    /// The remote did not respond; it is unknown whether the target moved.
    Away {
        /// Why it did not respond.
        reason: String,
    },
}

/// The outcome of deleting the intents of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revoked {
    /// The remote has no intent of the plan.
    Gone,
    /// The remote does not allow deleting them.
    Refused {
        /// The remote's message.
        text: String,
    },
    /// The remote did not respond.
    Away {
        /// Why it did not respond.
        reason: String,
    },
}

/// The outcome of moving the local branch to the commit that landed at its remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Followed {
    /// The local branch contains the commit, or does not exist.
    Done,
    /// The intent was deleted: the plan was taken over.
    Revoked,
    /// The local branch has commits that the remote does not have.
    Diverged,
    /// The move would overwrite files of the user.
    Dirty(Vec<String>),
    /// An operation is in progress in the worktree in which the branch is checked out.
    Occupied(&'static str),
}

/// Features of remotes learned so far: where they accept intents, and whether they lack atomic push.
#[derive(Debug, Default)]
pub(crate) struct Remotes(Mutex<BTreeMap<String, Known>>);

#[derive(Debug, Clone, Copy, Default)]
struct Known {
    intents: Option<&'static str>,
    lacks_atomic: bool,
}

impl Remotes {
    fn of(&self, remote: &str) -> Known {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(remote).copied().unwrap_or_default()
    }

    fn learn(&self, remote: &str, learn: impl FnOnce(&mut Known)) {
        learn(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(remote.to_owned()).or_default());
    }
}

impl Repository {
    /// Fetches a branch of a remote. The user's own refs stay unchanged.
    pub fn remote_tip(&self, remote: &str, branch: &str) -> Result<RemoteTip, GitError> {
        let (full, tracking) = (name::branch_ref(branch)?, tracking_name(remote, branch)?);
        let wanted = RemoteBranch { branch: &full, tracking: &tracking };
        let mut tries = 0;
        loop {
            tries += 1;
            if let Some(tip) = fetch_at_once(self.place(), remote, &wanted) {
                return Ok(RemoteTip::At(tip));
            }
            match self.ask_remote(&wanted, remote)? {
                Fetched::At(tip) => return Ok(RemoteTip::At(tip)),
                Fetched::Absent => return Ok(RemoteTip::Absent),
                // Two processes that fetch at the same time write the same ref.
                Fetched::Failed { reason } if reason.contains("cannot lock ref") && tries < FETCHES_MAX => {
                    thread::sleep(FETCH_AGAIN);
                }
                Fetched::Failed { reason } => return Ok(RemoteTip::Away { reason }),
            }
        }
    }

    /// Pushes an intent for a plan's run to the remote, under a unique name.
    pub fn intent_push(
        &self,
        remote: &str,
        plan: &str,
        run: &str,
        to: &CommitId,
    ) -> Result<IntentPushed, GitError> {
        let attempt = format!("announce the landing of {plan} to {remote}");
        let known = self.remotes().of(remote).intents;
        for prefix in INTENTS.into_iter().filter(|prefix| known.is_none_or(|known| known == *prefix)) {
            let full = format!("{prefix}{plan}/{run}");
            name::full_ref(&full)?;
            let call = self.push_call(&attempt, remote)?.arg(format!("--force-with-lease={full}:"));
            let output = call.args(["--", remote]).arg(format!("{to}:{full}")).run();
            match self.said(output, &full)? {
                RefReply::Line(RefPushResult::Taken, _) => {
                    self.remotes().learn(remote, |known| known.intents = Some(prefix));
                    crash::hit("land.announced");
                    return Ok(IntentPushed::As(full));
                }
                RefReply::Line(RefPushResult::Again { .. } | RefPushResult::Refused { .. }, _) => {}
                RefReply::Nothing(reason) => return Ok(IntentPushed::Away { reason }),
            }
        }
        Ok(IntentPushed::Refused)
    }

    /// Moves the remote's target if the target and the intent are at the expected commits.
    pub fn land_remote(&self, landing: &RemoteLanding<'_>) -> Result<RemoteLanded, GitError> {
        crash::hit("land.push");
        let landed = match landing.intent.filter(|_| !self.remotes().of(landing.remote).lacks_atomic) {
            Some(intent) => self.land_atomic(landing, intent)?,
            None => self.land_plain(landing)?,
        };
        crash::hit("land.pushed");
        Ok(landed)
    }

    /// Returns a plan's branch at the remote if it was seen there and `head`, which is about to land,
    /// contains its commits.
    pub fn sent_branch(
        &self,
        remote: &str,
        branch: &str,
        head: &CommitId,
    ) -> Result<Option<SentBranch>, GitError> {
        let (full, tracking) = (name::branch_ref(branch)?, tracking_name(remote, branch)?);
        let Some(seen) = self.ref_read(&tracking)? else { return Ok(None) };
        Ok(self.is_ancestor(&seen, head)?.then_some(SentBranch { full, tracking, seen }))
    }

    fn land_atomic(&self, landing: &RemoteLanding<'_>, intent: &str) -> Result<RemoteLanded, GitError> {
        let RemoteLanding { remote, branch, to, removes, .. } = landing;
        let attempt = format!("land {to} on {branch} of {remote}");
        let full = name::branch_ref(branch)?;
        let mut call = self.push_call(&attempt, remote)?.args(["--atomic"]).arg(landing.lease(&full));
        call = call.arg(format!("--force-with-lease={intent}:{to}"));
        if let Some(SentBranch { full, seen, .. }) = removes {
            call = call.arg(format!("--force-with-lease={full}:{seen}"));
        }
        call = call.args(["--", remote]).arg(format!("{to}:{full}")).arg(format!(":{intent}"));
        if let Some(SentBranch { full, .. }) = removes {
            call = call.arg(format!(":{full}"));
        }
        match self.said(call.run(), &full)? {
            RefReply::Line(RefPushResult::Taken, _) => {
                // The target has moved, so a failure to delete the tracking ref is ignored; `gc` removes it
                // later.
                if let Some(removed) = removes {
                    drop(self.forget_sent(removed));
                }
                Ok(RemoteLanded::Moved)
            }
            RefReply::Line(RefPushResult::Again { text }, _) => Ok(RemoteLanded::Again { text }),
            // The remote may have rejected the removal of the plan's branch: others pushed to it, or a rule
            // does not allow deletion.
            RefReply::Line(RefPushResult::Refused { .. }, _) if removes.is_some() => {
                self.land_atomic(&RemoteLanding { removes: None, ..*landing }, intent)
            }
            RefReply::Line(RefPushResult::Refused { text }, answer) if text.contains("atomic push fail") => {
                // The atomic push failed because of the intent.
                match verdict_of(&answer, "", intent) {
                    Some(RefPushResult::Refused { .. }) => self.land_plain(landing),
                    Some(RefPushResult::Taken | RefPushResult::Again { .. }) | None => {
                        Ok(RemoteLanded::Again { text })
                    }
                }
            }
            RefReply::Line(RefPushResult::Refused { text }, _) => Ok(RemoteLanded::Refused { text }),
            RefReply::Nothing(reason) if reason.contains("does not support --atomic") => {
                self.remotes().learn(remote, |known| known.lacks_atomic = true);
                self.land_plain(landing)
            }
            RefReply::Nothing(reason) => Ok(RemoteLanded::Away { reason }),
        }
    }

    /// Pushes the target alone. The intent cannot be compared in the same step, so it is checked immediately
    /// before.
    fn land_plain(&self, landing: &RemoteLanding<'_>) -> Result<RemoteLanded, GitError> {
        let RemoteLanding { remote, branch, to, intent, .. } = landing;
        let attempt = format!("land {to} on {branch} of {remote}");
        if let Some(intent) = intent {
            match self.remote_refs(remote, &[intent])? {
                Ok(refs) if refs.iter().any(|(name, commit)| name == intent && commit == *to) => {}
                Ok(_) => return Ok(RemoteLanded::Again { text: "the intent was deleted".to_owned() }),
                Err(reason) => return Ok(RemoteLanded::Away { reason }),
            }
        }
        let full = name::branch_ref(branch)?;
        let call = self.push_call(&attempt, remote)?.arg(landing.lease(&full)).args(["--", remote]);
        match self.said(call.arg(format!("{to}:{full}")).run(), &full)? {
            RefReply::Line(RefPushResult::Taken, _) => {
                if let Some(intent) = intent {
                    // If the remote does not delete the intent, the leftover ref has no effect.
                    drop(self.delete_refs(remote, &[((*intent).to_owned(), (*to).clone())]));
                }
                Ok(RemoteLanded::Moved)
            }
            RefReply::Line(RefPushResult::Again { text }, _) => Ok(RemoteLanded::Again { text }),
            RefReply::Line(RefPushResult::Refused { text }, _) => Ok(RemoteLanded::Refused { text }),
            RefReply::Nothing(reason) => Ok(RemoteLanded::Away { reason }),
        }
    }

    /// Deletes all intents of a plan at its remote, so that nothing can land under them any more.
    pub fn intents_revoke(&self, remote: &str, plan: &str) -> Result<Revoked, GitError> {
        let prefixes = INTENTS.map(|prefix| format!("{prefix}{plan}/"));
        let patterns = prefixes.each_ref().map(|prefix| format!("{prefix}*"));
        let patterns = patterns.each_ref().map(String::as_str);
        let mut said = String::new();
        for _ in 0..REVOCATIONS_MAX {
            let mut found = match self.remote_refs(remote, &patterns)? {
                Ok(found) => found,
                Err(reason) => return Ok(Revoked::Away { reason }),
            };
            found.retain(|(name, _)| prefixes.iter().any(|prefix| name.starts_with(prefix.as_str())));
            if found.is_empty() {
                return Ok(Revoked::Gone);
            }
            said = self.delete_refs(remote, &found)?;
        }
        Ok(Revoked::Refused { text: said })
    }

    /// Moves the local branch forward to a commit that its remote has, and updates the files of the worktree
    /// in which it is checked out.
    pub fn follow(&self, branch: &str, to: &CommitId, permit: &str) -> Result<Followed, GitError> {
        for _ in 0..FETCHES_MAX {
            let Some(tip) = self.branch_tip(branch)? else { return Ok(Followed::Done) };
            if self.is_ancestor(to, &tip)? {
                return Ok(Followed::Done);
            }
            if !self.is_ancestor(&tip, to)? {
                return Ok(Followed::Diverged);
            }
            match self.land(branch, &tip, to, permit)? {
                LandOutcome::Moved | LandOutcome::Already => {
                    crash::hit("land.followed");
                    return Ok(Followed::Done);
                }
                LandOutcome::Revoked => return Ok(Followed::Revoked),
                LandOutcome::Dirty { paths, .. } => return Ok(Followed::Dirty(paths)),
                LandOutcome::Occupied { operation, .. } => return Ok(Followed::Occupied(operation)),
                LandOutcome::Stale { .. } => {}
            }
        }
        Ok(Followed::Occupied("it moved again and again"))
    }

    fn delete_refs(&self, remote: &str, refs: &[(String, CommitId)]) -> Result<String, GitError> {
        let mut call = self.push_call("delete intents", remote)?;
        for (name, commit) in refs {
            call = call.arg(format!("--force-with-lease={name}:{commit}"));
        }
        call = call.args(["--", remote]);
        for (name, _) in refs {
            call = call.arg(format!(":{name}"));
        }
        Ok(match call.run() {
            Ok(output) => output.stderr,
            Err(error) => error_chain(&error),
        })
    }

    /// Lists refs of a remote by patterns. The inner error is the reason why the remote did not respond.
    fn remote_refs(
        &self,
        remote: &str,
        patterns: &[&str],
    ) -> Result<Result<Vec<(String, CommitId)>, String>, GitError> {
        let attempt = format!("look for refs of {remote}");
        let Some(source) = self.place().source(name::remote(remote)?)? else {
            return Ok(Err(format!("no remote named {remote} is configured")));
        };
        let mut call = self.remote_call(&attempt)?.settings(&source.settings).args(["ls-remote", "--refs"]);
        call = call.args(["--upload-pack=git-upload-pack", "--", &source.name]);
        for pattern in patterns {
            call = call.arg(pattern);
        }
        let text = match call.run() {
            Ok(output) => output.text(&attempt)?,
            Err(error @ GitError::UnknownOption { .. }) => return Err(error),
            Err(error) => return Ok(Err(error_chain(&error))),
        };
        let read = |line: &str| {
            let (id, name) = line.split_once('\t')?;
            Some((name.to_owned(), id.parse().ok()?))
        };
        text.lines()
            .map(|line| read(line).ok_or_else(|| GitError::unexpected(&attempt, line)))
            .collect::<Result<_, _>>()
            .map(Ok)
    }

    /// Finds the line of a ref in the output of a push.
    fn said(&self, output: Result<Output, GitError>, full: &str) -> Result<RefReply, GitError> {
        let output = match output {
            Ok(output) => output,
            Err(error @ (GitError::UnknownOption { .. } | GitError::BadName { .. })) => return Err(error),
            Err(error) => return Ok(RefReply::Nothing(error_chain(&error))),
        };
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(match verdict_of(&answer, &output.stderr, full) {
            Some(verdict) => RefReply::Line(verdict, answer),
            None => RefReply::Nothing(output.stderr),
        })
    }
}

impl RemoteLanding<'_> {
    fn lease(&self, full: &str) -> String {
        let from = self.from.map_or("", CommitId::as_str);
        format!("--force-with-lease={full}:{from}")
    }
}

/// The response of a push for one ref.
enum RefReply {
    /// The line of the ref, and the whole output.
    Line(RefPushResult, String),
    /// Without a line, the push failed before the remote handled the ref.
    Nothing(String),
}
