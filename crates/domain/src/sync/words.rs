//! The texts about a sync: the sentence, the failure, the question and its options. All are built from the
//! outcome, so that they cannot disagree with it (S4.11). The command line, the HTTP responses and the page
//! use these texts and have none of their own.

use serde_json::{Value, json};

use super::outcome::{Clash, ClashCause, CommitLine, PinLine, Publishing, SyncOutcome, Uncommitted};
use crate::{
    DecisionKind, DecisionOption, ErrorClass, Failure, OnDivergence, OptionEffect, Phase, Plan, Question,
};

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
    pin: PinLine,
    own: Vec<CommitLine>,
    arrived: Vec<CommitLine>,
    remote: String,
    clash: Clash,
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
    pub fn told(&self) -> Value {
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
                format!("the branch took {} of the remote and is at {}", named(arrived), short(to))
            }
            SyncOutcome::Pushed { to, sent, .. } => {
                format!("the remote took {} of the branch and is at {}", named(sent), short(to))
            }
            SyncOutcome::PushFailed { branch, remote, head, reason } => {
                format!("{branch} is at {}, and sending it to {remote} failed: {reason}", short(head))
            }
            SyncOutcome::KeptLocal { head, local } if local.is_empty() => {
                format!(
                    "the branch is at {} and will replace what the remote has; it is not sent yet",
                    short(head)
                )
            }
            SyncOutcome::KeptLocal { head, local } => format!(
                "the branch is at {} with {} that the remote does not have; they are not sent",
                short(head),
                named(local)
            ),
            SyncOutcome::Rebased { to, replayed, absorbed, arrived, publishing, .. } => {
                let sent = match publishing {
                    Publishing::Done => String::new(),
                    Publishing::NotAsked => "; it is not sent".to_owned(),
                    Publishing::Failed { reason } => format!("; sending it failed: {reason}"),
                };
                let left = match absorbed.is_empty() {
                    true => String::new(),
                    false => format!(
                        "; {} left the branch, because the remote has the same changes",
                        named(absorbed)
                    ),
                };
                format!(
                    "{} of the branch now stand on {} of the remote, at {}{left}{sent}",
                    named(replayed),
                    named(arrived),
                    short(to)
                )
            }
            SyncOutcome::FetchFailed { reason } => {
                format!("it could not be found out where the remote is: {reason}")
            }
            SyncOutcome::Detached { on } => format!("the worktree is on {on} and not on the plan's branch"),
            SyncOutcome::MidOperation { operation } => match operation.as_str() {
                "files that are not merged" => format!("the worktree has {operation}"),
                lock if lock.ends_with(".lock") => format!("the index of the worktree is locked ({lock})"),
                _ => format!("a {operation} is under way in the worktree"),
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
            | SyncOutcome::Rebased { publishing: Publishing::Failed { .. }, .. } => {
                "see that the remote can be reached and lets you push, then ask again"
            }
            SyncOutcome::Detached { .. } => {
                "check the plan's branch out in its worktree again, then ask again"
            }
            SyncOutcome::MidOperation { .. } => "finish or abort it in the worktree, then ask again",
            SyncOutcome::Unknown { .. } => "remove the cause, then ask again",
            SyncOutcome::RecoveredByReset { .. }
            | SyncOutcome::ResetFailed { .. }
            | SyncOutcome::Unreconciled { .. } => "answer the decision",
            SyncOutcome::NoRemote
            | SyncOutcome::NoRemoteBranch
            | SyncOutcome::InSync { .. }
            | SyncOutcome::FastForwarded { .. }
            | SyncOutcome::Pushed { .. }
            | SyncOutcome::Rebased { publishing: Publishing::Done | Publishing::NotAsked, .. }
            | SyncOutcome::KeptLocal { .. } => "nothing needs to be done",
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

    pub(crate) fn question(&self, plan: &Plan) -> Question {
        Question {
            kind: DecisionKind::Divergence,
            text: format!("{} How shall the plan go on?", capitalised(&self.sentence())),
            options: self.options(plan),
            details: self.details(),
        }
    }

    fn sentence(&self) -> String {
        let Parts { pin, own, remote, clash, left, .. } = &self.parts;
        let kept = match pin.uncommitted {
            Uncommitted::Nothing => format!("kept as {}", pin.name),
            Uncommitted::Kept => format!("kept with the edits that were not committed as {}", pin.name),
        };
        let why = clash.describe();
        match left {
            Left::AtRemote => format!(
                "the branch and its remote diverged and could not be joined ({why}), so the branch was set to \
                 the remote's {}; {} left the branch, {kept}.",
                short(remote),
                named(own)
            ),
            Left::ResetFailed { reason } => format!(
                "the branch and its remote diverged and could not be joined ({why}), and setting the branch to \
                 the remote's {} failed too: {reason}; {} of the branch and all edits are {kept}.",
                short(remote),
                named(own)
            ),
            Left::Alone => format!(
                "the branch and its remote diverged and could not be joined ({why}); nothing was moved: the \
                 branch is where it was, with {}, {kept}, and the remote is at {}.",
                named(own),
                short(remote)
            ),
        }
    }

    fn options(&self, plan: &Plan) -> Vec<DecisionOption> {
        let phase = plan.stage.phase();
        let Parts { pin, own, arrived, remote, left, clash } = &self.parts;
        let option = |id: &str, label: String, effect| DecisionOption { id: id.to_owned(), label, effect };
        let theirs = match phase {
            Phase::Strategize | Phase::Execute => {
                format!("start {phase} anew on the remote's {}; {}", short(remote), stay(own))
            }
            Phase::Apply => format!("go back to execute on the remote's {}; {}", short(remote), stay(own)),
        };
        // The same condition as in `start_from`: only a validated and reviewed commit can land without
        // Execute.
        let begins = match phase {
            Phase::Apply if plan.head_commit.as_ref() != Some(&pin.commit) => "go back to execute".to_owned(),
            Phase::Strategize | Phase::Execute | Phase::Apply => format!("start {phase} anew"),
        };
        let ours = format!(
            "{begins} on {} of the branch, without the changes of {} of the remote, which stay in its history",
            counted(own),
            counted(arrived)
        );
        let take_theirs = || OptionEffect::StartFrom { commit: remote.clone(), replaces: None };
        let take_ours =
            || OptionEffect::StartFrom { commit: pin.commit.clone(), replaces: Some(remote.clone()) };
        // Starts from the branch in its current state: a merge that failed before may succeed now.
        let as_it_is = || OptionEffect::StartFrom { commit: pin.head.clone(), replaces: None };
        let label = format!("sync once more, and start {phase} on what comes of it");
        let again = || option(SYNC_AGAIN, label.clone(), as_it_is());
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
        let end = "cancel the plan; everything stays in the backup".to_owned();
        options.push(option("abort", end, OptionEffect::Cancel));
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
        let label = "go on: branch and remote are together again".to_owned();
        let goes_on = DecisionOption { id: SYNC_AGAIN.to_owned(), label, effect: OptionEffect::Requeue };
        match question.options.iter_mut().find(|option| option.id == SYNC_AGAIN) {
            Some(option) => *option = goes_on,
            None => question.options.insert(0, goes_on),
        }
        question
    }
}

impl Clash {
    fn describe(&self) -> String {
        if self.cause == ClashCause::NoCommonCommit {
            return "they have no commit in common".to_owned();
        }
        let what = match &self.commit {
            Some(commit) => format!("{} clashes", line(commit)),
            None => "the edits that were not committed clash".to_owned(),
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

fn counted(commits: &[CommitLine]) -> String {
    match commits.len() {
        1 => "the commit".to_owned(),
        many => format!("the {many} commits"),
    }
}

/// Returns a sentence part: the commits stay in the backup.
fn stay(commits: &[CommitLine]) -> String {
    let verb = if commits.len() == 1 { "stays" } else { "stay" };
    format!("{} of the branch {verb} in the backup", counted(commits))
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
