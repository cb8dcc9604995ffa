//! Landing at a remote: the target there moves by one atomic push that compares the target and the intent.
//!
//! An *intent* is a ref of the remote that names the commit about to land. The push that moves the target deletes it, and
//! compares both, so a process that comes back after its plan was taken over moves nothing: the take-over deleted the
//! intent first. The abilities of a remote are found out by trying: where it refuses `refs/drydock/*`, intents are
//! branches below `drydock/intent/`; where it refuses to delete them, or has no atomic push, the target is pushed alone,
//! which still compares where it was. The commit descends from that place, so no history is ever replaced.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use drydock_domain::told;

use crate::crash;
use crate::error::GitError;
use crate::id::CommitId;
use crate::land::Landing;
use crate::name;
use crate::push::{Verdict, verdict_of};
use crate::repository::Repository;
use crate::run::Output;
use crate::sync::{Fetched, RemoteBranch, fetch_at_once, tracking_name};

/// Where intents are, by preference.
const INTENTS: [&str; 2] = ["refs/drydock/intent/", "refs/heads/drydock/intent/"];
/// How often a fetch is tried that another process of ours gets in the way of.
const FETCHES_MAX: usize = 5;
const FETCH_AGAIN: Duration = Duration::from_millis(50);
/// How often the list of a plan's intents is looked at until it is empty.
const REVOCATIONS_MAX: usize = 3;

/// Where a branch of a remote is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteTip {
    /// At this commit, which is here now.
    At(CommitId),
    /// The remote has no such branch.
    Absent,
    /// It could not be found out.
    Away {
        /// Why.
        reason: String,
    },
}

/// The result of announcing a landing to a remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntentPushed {
    /// The remote keeps it under this ref.
    As(String),
    /// The remote takes no such ref.
    Refused,
    /// The remote did not answer.
    Away {
        /// Why.
        reason: String,
    },
}

/// A landing at a remote.
#[derive(Debug, Clone, Copy)]
pub struct RemoteLanding<'a> {
    /// The remote.
    pub remote: &'a str,
    /// The target branch.
    pub branch: &'a str,
    /// Where it must be; none when the remote must not have it.
    pub from: Option<&'a CommitId>,
    /// Where it is to move: a descendant.
    pub to: &'a CommitId,
    /// The intent that must be there, if the remote keeps one.
    pub intent: Option<&'a str>,
    /// The plan's branch at the remote, which the same push removes: its commits land.
    pub removes: Option<&'a SentBranch>,
}

/// A plan's branch as it was last seen at the remote, with no commit that does not land.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentBranch {
    pub(crate) full: String,
    pub(crate) tracking: String,
    pub(crate) seen: CommitId,
}

/// The result of a landing at a remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteLanded {
    /// The remote's target is at the commit.
    Moved,
    /// The target or the intent was not where it was expected, or another push was under way.
    Again {
        /// What git said.
        text: String,
    },
    /// The remote does not want it.
    Refused {
        /// The remote's message.
        text: String,
    },
    /// The remote did not answer; whether the target moved is not known.
    Away {
        /// Why.
        reason: String,
    },
}

/// The result of taking back the intents of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revoked {
    /// The remote has none of them.
    Gone,
    /// The remote keeps them.
    Refused {
        /// The remote's message.
        text: String,
    },
    /// The remote did not answer.
    Away {
        /// Why.
        reason: String,
    },
}

/// The result of bringing the local branch to the commit that landed at its remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Followed {
    /// The local branch contains it, or there is none.
    Done,
    /// The intent is gone: the plan was taken over.
    Revoked,
    /// The local branch has commits of its own.
    Diverged,
    /// Files of the user would be overwritten.
    Dirty(Vec<String>),
    /// The worktree that has it is in the middle of something.
    Occupied(&'static str),
}

/// The known abilities of remotes: where they take intents, and which have no atomic push.
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
    /// Fetches a branch of a remote. The user's own refs stay as they are.
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
                // Two processes that look at the same time want to write the same ref.
                Fetched::Failed { reason } if reason.contains("cannot lock ref") && tries < FETCHES_MAX => {
                    thread::sleep(FETCH_AGAIN);
                }
                Fetched::Failed { reason } => return Ok(RemoteTip::Away { reason }),
            }
        }
    }

    /// Announces a landing of a plan's run to the remote, under a unique name.
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
                Said::Line(Verdict::Taken, _) => {
                    self.remotes().learn(remote, |known| known.intents = Some(prefix));
                    crash::hit("land.announced");
                    return Ok(IntentPushed::As(full));
                }
                Said::Line(Verdict::Again { .. } | Verdict::Refused { .. }, _) => {}
                Said::Nothing(reason) => return Ok(IntentPushed::Away { reason }),
            }
        }
        Ok(IntentPushed::Refused)
    }

    /// Moves the target of a remote, if it and the intent are as expected.
    pub fn land_remote(&self, landing: &RemoteLanding<'_>) -> Result<RemoteLanded, GitError> {
        crash::hit("land.push");
        let landed = match landing.intent.filter(|_| !self.remotes().of(landing.remote).lacks_atomic) {
            Some(intent) => self.land_atomic(landing, intent)?,
            None => self.land_plain(landing)?,
        };
        crash::hit("land.pushed");
        Ok(landed)
    }

    /// Returns a plan's branch at the remote if it was seen there and this head, which is about to land, has its commits.
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
            Said::Line(Verdict::Taken, _) => {
                // The target has moved, whatever becomes of our note about the branch; `gc` removes that later.
                if let Some(removed) = removes {
                    drop(self.forget_sent(removed));
                }
                Ok(RemoteLanded::Moved)
            }
            Said::Line(Verdict::Again { text }, _) => Ok(RemoteLanded::Again { text }),
            // The remote may have refused the branch: others pushed to it, or a rule forbids deleting it.
            Said::Line(Verdict::Refused { .. }, _) if removes.is_some() => {
                self.land_atomic(&RemoteLanding { removes: None, ..*landing }, intent)
            }
            Said::Line(Verdict::Refused { text }, answer) if text.contains("atomic push fail") => {
                // The target was given up because of the intent.
                match verdict_of(&answer, "", intent) {
                    Some(Verdict::Refused { .. }) => self.land_plain(landing),
                    Some(Verdict::Taken | Verdict::Again { .. }) | None => Ok(RemoteLanded::Again { text }),
                }
            }
            Said::Line(Verdict::Refused { text }, _) => Ok(RemoteLanded::Refused { text }),
            Said::Nothing(reason) if reason.contains("does not support --atomic") => {
                self.remotes().learn(remote, |known| known.lacks_atomic = true);
                self.land_plain(landing)
            }
            Said::Nothing(reason) => Ok(RemoteLanded::Away { reason }),
        }
    }

    /// Pushes the target alone. The intent cannot be compared in the same step, so it is looked at just before.
    fn land_plain(&self, landing: &RemoteLanding<'_>) -> Result<RemoteLanded, GitError> {
        let RemoteLanding { remote, branch, to, intent, .. } = landing;
        let attempt = format!("land {to} on {branch} of {remote}");
        if let Some(intent) = intent {
            match self.remote_refs(remote, &[intent])? {
                Ok(refs) if refs.iter().any(|(name, commit)| name == intent && commit == *to) => {}
                Ok(_) => return Ok(RemoteLanded::Again { text: "the intent is gone".to_owned() }),
                Err(reason) => return Ok(RemoteLanded::Away { reason }),
            }
        }
        let full = name::branch_ref(branch)?;
        let call = self.push_call(&attempt, remote)?.arg(landing.lease(&full)).args(["--", remote]);
        match self.said(call.arg(format!("{to}:{full}")).run(), &full)? {
            Said::Line(Verdict::Taken, _) => {
                if let Some(intent) = intent {
                    // A remote that keeps it keeps a ref that nothing looks at any more.
                    drop(self.delete_refs(remote, &[((*intent).to_owned(), (*to).clone())]));
                }
                Ok(RemoteLanded::Moved)
            }
            Said::Line(Verdict::Again { text }, _) => Ok(RemoteLanded::Again { text }),
            Said::Line(Verdict::Refused { text }, _) => Ok(RemoteLanded::Refused { text }),
            Said::Nothing(reason) => Ok(RemoteLanded::Away { reason }),
        }
    }

    /// Deletes all intents of a plan at its remote, so that nothing lands under them any more.
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

    /// Brings the local branch forward to a commit that its remote has; its files too where it is checked out.
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
                Landing::Moved | Landing::Already => {
                    crash::hit("land.followed");
                    return Ok(Followed::Done);
                }
                Landing::Revoked => return Ok(Followed::Revoked),
                Landing::Dirty { paths, .. } => return Ok(Followed::Dirty(paths)),
                Landing::Occupied { operation, .. } => return Ok(Followed::Occupied(operation)),
                Landing::Stale { .. } => {}
            }
        }
        Ok(Followed::Occupied("it keeps moving"))
    }

    fn delete_refs(&self, remote: &str, refs: &[(String, CommitId)]) -> Result<String, GitError> {
        let mut call = self.push_call("take back intents", remote)?;
        for (name, commit) in refs {
            call = call.arg(format!("--force-with-lease={name}:{commit}"));
        }
        call = call.args(["--", remote]);
        for (name, _) in refs {
            call = call.arg(format!(":{name}"));
        }
        Ok(match call.run() {
            Ok(output) => output.stderr,
            Err(error) => told(&error),
        })
    }

    /// Lists refs of a remote by patterns; or why it did not answer.
    fn remote_refs(
        &self,
        remote: &str,
        patterns: &[&str],
    ) -> Result<Result<Vec<(String, CommitId)>, String>, GitError> {
        let attempt = format!("look for refs of {remote}");
        let Some(source) = self.place().source(name::remote(remote)?)? else {
            return Ok(Err(format!("no remote called {remote} is configured")));
        };
        let mut call = self.remote_call(&attempt)?.settings(&source.settings).args(["ls-remote", "--refs"]);
        call = call.args(["--upload-pack=git-upload-pack", "--", &source.name]);
        for pattern in patterns {
            call = call.arg(pattern);
        }
        let text = match call.run() {
            Ok(output) => output.text(&attempt)?,
            Err(error @ GitError::UnknownOption { .. }) => return Err(error),
            Err(error) => return Ok(Err(told(&error))),
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
    fn said(&self, output: Result<Output, GitError>, full: &str) -> Result<Said, GitError> {
        let output = match output {
            Ok(output) => output,
            Err(error @ (GitError::UnknownOption { .. } | GitError::BadName { .. })) => return Err(error),
            Err(error) => return Ok(Said::Nothing(told(&error))),
        };
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(match verdict_of(&answer, &output.stderr, full) {
            Some(verdict) => Said::Line(verdict, answer),
            None => Said::Nothing(output.stderr),
        })
    }
}

impl RemoteLanding<'_> {
    fn lease(&self, full: &str) -> String {
        let from = self.from.map_or("", CommitId::as_str);
        format!("--force-with-lease={full}:{from}")
    }
}

/// The answer of a push about one ref.
enum Said {
    /// Its line, and the whole answer.
    Line(Verdict, String),
    /// No line: the remote did not get to it.
    Nothing(String),
}
