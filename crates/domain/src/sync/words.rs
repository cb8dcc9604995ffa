//! The texts about a sync: the sentence, the failure, the question and its options. All are built from the
//! outcome, so that they cannot disagree with it (S4.11). The command line, the HTTP responses and the page
//! use these texts and have none of their own.

use serde_json::{Value, json};

use super::outcome::{
    BackupRef, ClashCause, CommitLine, PublishResult, ReplayConflict, SyncOutcome, Uncommitted,
};
use crate::question::{cancels, option};
use crate::{DecisionKind, DecisionOption, ErrorClass, Failure, OnDivergence, OptionEffect, Question};

/// Maximum number of commits or files in a sentence.
const NAMED_MAX: usize = 5;
/// Maximum number of commits in the details of a decision.
const COMMITS_MAX: usize = 200;

/// An outcome that only a person can settle. It is built from a [`SyncOutcome`], and it is the only reason
/// for which a plan can diverge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    outcome: SyncOutcome,
    parts: Parts,
}

/// The data that the three diverged outcomes share, and the state in which the branch was left.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Parts {
    pin: BackupRef,
    own: Vec<CommitLine>,
    arrived: Vec<CommitLine>,
    remote: String,
    clash: ReplayConflict,
    left: Left,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Left {
    AtRemote,
    ResetFailed { reason: String },
    Alone,
}

impl SyncOutcome {
    /// Returns the divergence, if the outcome is one that a person must settle.
    pub fn divergence(&self) -> Option<Divergence> {
        let (pin, own, arrived, remote, clash, left) = match self.clone() {
            SyncOutcome::RecoveredByReset { pin, discarded, to, arrived, clash } => {
                (pin, discarded, arrived, to, clash, Left::AtRemote)
            }
            SyncOutcome::ResetFailed { pin, discarded, remote, arrived, clash, reason } => {
                (pin, discarded, arrived, remote, clash, Left::ResetFailed { reason })
            }
            SyncOutcome::Unreconciled { pin, discarded, local: _, remote, arrived, clash } => {
                (pin, discarded, arrived, remote, clash, Left::Alone)
            }
            SyncOutcome::NoRemote
            | SyncOutcome::NoRemoteBranch
            | SyncOutcome::InSync { .. }
            | SyncOutcome::FastForwarded { .. }
            | SyncOutcome::Pushed { .. }
            | SyncOutcome::PushFailed { .. }
            | SyncOutcome::KeptLocal { .. }
            | SyncOutcome::Rebased { .. }
            | SyncOutcome::FetchFailed { .. }
            | SyncOutcome::Detached { .. }
            | SyncOutcome::MidOperation { .. }
            | SyncOutcome::Unknown { .. } => return None,
        };
        Some(Divergence { outcome: self.clone(), parts: Parts { pin, own, arrived, remote, clash, left } })
    }

    /// Returns the JSON for events and responses: the name, the sentence and all data, with long lists
    /// truncated.
    pub fn to_json(&self) -> Value {
        let mut told = json!(self);
        told["text"] = json!(self.summary());
        told["standing"] = json!(self.standing().name());
        for list in ["arrived", "sent", "local", "replayed", "discarded", "absorbed"] {
            if let Some(Value::Array(commits)) = told.get_mut(list) {
                let total = commits.len();
                // The newest arrived commits are kept, because they show the author of the last change to the
                // branch.
                match list {
                    "arrived" => drop(commits.drain(..total.saturating_sub(COMMITS_MAX))),
                    _ => commits.truncate(COMMITS_MAX),
                }
                told[format!("{list}_total")] = json!(total);
            }
        }
        told
    }

    /// Describes the outcome in one sentence.
    pub fn summary(&self) -> String {
        match self {
            SyncOutcome::NoRemote => "the project has no remote, so there is nothing to sync with".to_owned(),
            SyncOutcome::NoRemoteBranch => "the remote has no branch for this plan".to_owned(),
            SyncOutcome::InSync { head } => format!("branch and remote are both at {}", short(head)),
            SyncOutcome::FastForwarded { to, arrived, .. } => {
                format!("pulled {}; the branch is at {}", named(arrived), short(to))
            }
            SyncOutcome::Pushed { to, sent, .. } => {
                format!("pushed {}; the remote is at {}", named(sent), short(to))
            }
            SyncOutcome::PushFailed { branch, remote, head, reason } => {
                format!("{branch} is at {}, and pushing it to {remote} failed: {reason}", short(head))
            }
            SyncOutcome::KeptLocal { head, local } if local.is_empty() => {
                format!(
                    "the branch is at {} and will replace the remote's branch; it is not pushed yet",
                    short(head)
                )
            }
            SyncOutcome::KeptLocal { head, local } => format!(
                "the branch is at {} with {} that the remote does not have; they are not pushed",
                short(head),
                named(local)
            ),
            SyncOutcome::Rebased { to, replayed, absorbed, arrived, publishing, .. } => {
                let sent = match publishing {
                    PublishResult::Done => String::new(),
                    PublishResult::NotAsked => "; not pushed".to_owned(),
                    PublishResult::Failed { reason } => format!("; pushing failed: {reason}"),
                };
                let left = match absorbed.is_empty() {
                    true => String::new(),
                    false => {
                        format!("; dropped {}, because the remote has the same changes", named(absorbed))
                    }
                };
                format!(
                    "rebased {} onto {} of the remote; the branch is at {}{left}{sent}",
                    named(replayed),
                    named(arrived),
                    short(to)
                )
            }
            SyncOutcome::FetchFailed { reason } => {
                format!("could not read the remote's branch: {reason}")
            }
            SyncOutcome::Detached { on } => format!("the worktree is on {on}, not on the plan's branch"),
            SyncOutcome::MidOperation { operation } => match operation.as_str() {
                "files that are not merged" => format!("the worktree has {operation}"),
                lock if lock.ends_with(".lock") => format!("the index of the worktree is locked ({lock})"),
                _ => format!("a {operation} is in progress in the worktree"),
            },
            SyncOutcome::Unknown { attempt, reason } => format!("could not {attempt}: {reason}"),
            SyncOutcome::RecoveredByReset { .. }
            | SyncOutcome::ResetFailed { .. }
            | SyncOutcome::Unreconciled { .. } => {
                self.divergence().map(|divergence| divergence.sentence()).unwrap_or_default()
            }
        }
    }

    /// Returns advice for an outcome that keeps the plan where it is.
    pub fn hint(&self) -> &'static str {
        match self {
            SyncOutcome::FetchFailed { .. }
            | SyncOutcome::PushFailed { .. }
            | SyncOutcome::Rebased { publishing: PublishResult::Failed { .. }, .. } => {
                "check that the remote is reachable and that you may push, then try again"
            }
            SyncOutcome::Detached { .. } => "check out the plan's branch in its worktree, then try again",
            SyncOutcome::MidOperation { .. } => "finish or abort it in the worktree, then try again",
            SyncOutcome::Unknown { .. } => "remove the cause, then try again",
            SyncOutcome::RecoveredByReset { .. }
            | SyncOutcome::ResetFailed { .. }
            | SyncOutcome::Unreconciled { .. } => "answer the decision",
            SyncOutcome::NoRemote
            | SyncOutcome::NoRemoteBranch
            | SyncOutcome::InSync { .. }
            | SyncOutcome::FastForwarded { .. }
            | SyncOutcome::Pushed { .. }
            | SyncOutcome::Rebased { publishing: PublishResult::Done | PublishResult::NotAsked, .. }
            | SyncOutcome::KeptLocal { .. } => "no action is needed",
        }
    }
}

impl Divergence {
    /// Returns the outcome.
    pub fn outcome(&self) -> &SyncOutcome {
        &self.outcome
    }

    /// Returns the name of the backup ref.
    pub fn pin(&self) -> &str {
        &self.parts.pin.name
    }

    /// Returns the policy that leads to this outcome: `recover` fails the plan, `pause` makes it wait.
    pub fn policy(&self) -> OnDivergence {
        match self.parts.left {
            Left::AtRemote | Left::ResetFailed { .. } => OnDivergence::Recover,
            Left::Alone => OnDivergence::Pause,
        }
    }

    pub(crate) fn failure(&self) -> Failure {
        let class = match self.parts.left {
            Left::AtRemote | Left::Alone => ErrorClass::Diverged,
            Left::ResetFailed { .. } => ErrorClass::ResetFailed,
        };
        Failure::new(class, self.sentence())
    }

    pub(crate) fn question(&self) -> Question {
        Question {
            kind: DecisionKind::Divergence,
            text: format!("{} What should happen next?", capitalised(&self.sentence())),
            options: self.options(),
            details: self.details(),
        }
    }

    fn sentence(&self) -> String {
        let Parts { pin, own, remote, clash, left, .. } = &self.parts;
        let kept = match pin.uncommitted {
            Uncommitted::Nothing => format!("kept as backup {}", pin.name),
            Uncommitted::Kept => format!("kept with the uncommitted edits as backup {}", pin.name),
        };
        let why = clash.describe();
        match left {
            Left::AtRemote => format!(
                "the branch and its remote diverged and could not be merged ({why}), so the branch was \
                 reset to the remote's {}; removed from the branch: {}, {kept}.",
                short(remote),
                named(own)
            ),
            Left::ResetFailed { reason } => format!(
                "the branch and its remote diverged and could not be merged ({why}), and resetting the \
                 branch to the remote's {} failed: {reason}; {} of the branch and all edits are {kept}.",
                short(remote),
                named(own)
            ),
            Left::Alone => format!(
                "the branch and its remote diverged and could not be merged ({why}); nothing was changed: \
                 the branch still has {}, {kept}, and the remote is at {}.",
                named(own),
                short(remote)
            ),
        }
    }

    fn options(&self) -> Vec<DecisionOption> {
        let Parts { pin, arrived, remote, left, clash, .. } = &self.parts;
        let theirs = match arrived.last() {
            Some(commit) => format!("Use {}'s", commit.author),
            None => "Use the remote's".to_owned(),
        };
        let ours = "Use the agent's".to_owned();
        let take_theirs = || OptionEffect::StartFrom { commit: remote.clone(), replaces: None };
        let take_ours =
            || OptionEffect::StartFrom { commit: pin.commit.clone(), replaces: Some(remote.clone()) };
        // Starts from the branch in its current state: a merge that failed before may succeed now.
        let as_it_is = || OptionEffect::StartFrom { commit: pin.head.clone(), replaces: None };
        let again = || option(SYNC_AGAIN, "Sync again".to_owned(), as_it_is());
        let mut options = match left {
            Left::AtRemote => {
                vec![option("continue", theirs, take_theirs()), option("restore_local", ours, take_ours())]
            }
            Left::ResetFailed { .. } => vec![again(), option("restore_local", ours, take_ours())],
            // A run needs a history that contains the base commit.
            Left::Alone if clash.cause == ClashCause::NoCommonCommit => {
                vec![option("restore_local", ours, take_ours()), again()]
            }
            Left::Alone => vec![
                option("continue", theirs, take_theirs()),
                option("restore_local", ours, take_ours()),
                again(),
            ],
        };
        options.push(option("abort", cancels(), OptionEffect::Cancel));
        options
    }

    /// Returns the data for decisions, events and HTTP responses.
    pub fn details(&self) -> Value {
        let Parts { pin, own, arrived, remote, clash, left } = &self.parts;
        let reason = match left {
            Left::ResetFailed { reason } => Some(reason),
            Left::AtRemote | Left::Alone => None,
        };
        json!({
            "outcome": self.outcome.name(),
            "backup_ref": pin.name,
            "backup_commit": pin.commit,
            "uncommitted": pin.uncommitted == Uncommitted::Kept,
            "discarded_commits": own.iter().take(COMMITS_MAX).map(|one| &one.id).collect::<Vec<_>>(),
            "discarded": own.iter().take(COMMITS_MAX).collect::<Vec<_>>(),
            "discarded_total": own.len(),
            "remote_commit": remote,
            "arrived": arrived.iter().rev().take(COMMITS_MAX).rev().collect::<Vec<_>>(),
            "arrived_total": arrived.len(),
            "conflict": clash,
            "reset_error": reason,
        })
    }
}

/// The option that retries the sync of a divergence.
const SYNC_AGAIN: &str = "sync_again";

impl Question {
    /// Returns the question with the fact that the divergence no longer exists, and with an option that
    /// continues from there.
    pub(crate) fn together(self, fact: &str) -> Question {
        let mut question = self.learning(fact);
        let label = "Continue: branch and remote are in sync again".to_owned();
        let goes_on = DecisionOption { id: SYNC_AGAIN.to_owned(), label, effect: OptionEffect::Requeue };
        match question.options.iter_mut().find(|option| option.id == SYNC_AGAIN) {
            Some(option) => *option = goes_on,
            None => question.options.insert(0, goes_on),
        }
        question
    }
}

impl ReplayConflict {
    fn describe(&self) -> String {
        if self.cause == ClashCause::NoCommonCommit {
            return "they have no commit in common".to_owned();
        }
        let what = match &self.commit {
            Some(commit) => format!("{} conflicts", line(commit)),
            None => "the uncommitted edits conflict".to_owned(),
        };
        if self.paths.is_empty() { what } else { format!("{what} in {}", listed(&self.paths)) }
    }
}

/// Lists some of the commits, with their number.
fn named(commits: &[CommitLine]) -> String {
    match commits {
        [] => "no commits".to_owned(),
        [one] => format!("1 commit ({})", line(one)),
        many => {
            let lines: Vec<_> = many.iter().map(line).collect();
            format!("{} commits ({})", many.len(), listed(&lines))
        }
    }
}

fn listed(items: &[String]) -> String {
    let mut text = items.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    if items.len() > NAMED_MAX {
        text.push_str(&format!(" and {} more", items.len() - NAMED_MAX));
    }
    text
}

fn line(commit: &CommitLine) -> String {
    format!("{} “{}”", short(&commit.id), commit.subject)
}

fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}
