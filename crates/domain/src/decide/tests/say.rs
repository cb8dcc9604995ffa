//! Sample commands, one for each use of a command, built to fit the plan they are sent to.

use super::world::World;
use crate::{
    Advance, Answer, Authority, BackupRef, CallSubplan, Changes, Choice, ClashCause, Command, CommitLine,
    Completion, DecisionId, DecisionOption, Delay, Enforcement, ErrorClass, Failure, Finding, Intent,
    InvariantCheck, InvariantScope, Landed, LandingProof, NextPhase, Obstacle, OnDivergence, Phase,
    PublishResult, Question, RateLimit, Remains, RemoteAway, ReplayConflict, RuleKind, RunId, Start,
    SyncOutcome, TakeOverCause, Timestamp, Uncommitted,
};

/// A sample command. The order is the order of the columns in `table.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Say {
    Start,
    StartAgain,
    Strategized,
    Executed,
    Fail,
    FailAsking,
    Ask,
    Recover,
    Pause,
    TakeOver,
    Approve,
    Execute,
    ExecuteAlone,
    Apply,
    ApplyAlone,
    Intend,
    Forgo,
    Land,
    Constrain,
    AnswerFirst,
    AnswerLast,
    Retry,
    Revert,
    Cancel,
    Prompt,
    HoldBack,
    Adopt,
    Reconcile,
    RollBack,
    Postpone,
    Exhaust,
    Spawn,
    Tend,
    WoundUp,
    Call,
    Join,
    Sync,
    CancelBelow,
    Reexamine,
    StartOver,
    Accept,
}

impl Say {
    pub(super) const ALL: [Say; 41] = [
        Say::Start,
        Say::StartAgain,
        Say::Strategized,
        Say::Executed,
        Say::Fail,
        Say::FailAsking,
        Say::Ask,
        Say::Recover,
        Say::Pause,
        Say::TakeOver,
        Say::Approve,
        Say::Execute,
        Say::ExecuteAlone,
        Say::Apply,
        Say::ApplyAlone,
        Say::Intend,
        Say::Forgo,
        Say::Land,
        Say::Constrain,
        Say::AnswerFirst,
        Say::AnswerLast,
        Say::Retry,
        Say::Revert,
        Say::Cancel,
        Say::Prompt,
        Say::HoldBack,
        Say::Adopt,
        Say::Reconcile,
        Say::RollBack,
        Say::Postpone,
        Say::Exhaust,
        Say::Spawn,
        Say::Tend,
        Say::WoundUp,
        Say::Call,
        Say::Join,
        Say::Sync,
        Say::CancelBelow,
        Say::Reexamine,
        Say::StartOver,
        Say::Accept,
    ];

    /// Returns the samples of a command. A new command does not compile here until it has one.
    pub(super) fn samples(command: &Command) -> &'static [Say] {
        match command {
            Command::Start(_) => &[Say::Start, Say::StartAgain],
            Command::Complete(_, Completion::Strategized { .. }) => &[Say::Strategized],
            Command::Complete(_, Completion::Executed { .. }) => &[Say::Executed],
            Command::Fail(_, _, None) => &[Say::Fail],
            Command::Fail(_, _, Some(_)) => &[Say::FailAsking],
            Command::Ask(..) => &[Say::Ask],
            Command::Diverge(divergence) => match divergence.policy() {
                OnDivergence::Recover => &[Say::Recover],
                OnDivergence::Pause => &[Say::Pause],
            },
            Command::Postpone(..) => &[Say::Postpone],
            Command::Reconcile(_) => &[Say::Reconcile],
            Command::Sync => &[Say::Sync],
            Command::CancelBelow { .. } => &[Say::CancelBelow],
            Command::RollBack { .. } => &[Say::RollBack],
            Command::Adopt { .. } => &[Say::Adopt],
            Command::TakeOver(..) => &[Say::TakeOver],
            Command::Approve { .. } => &[Say::Approve],
            Command::Advance(Advance { to: NextPhase::Execute, .. }) => &[Say::Execute, Say::ExecuteAlone],
            Command::Advance(Advance { to: NextPhase::Apply, .. }) => &[Say::Apply, Say::ApplyAlone],
            Command::Intend(..) => &[Say::Intend],
            Command::Forgo => &[Say::Forgo],
            Command::Land(..) => &[Say::Land],
            Command::Constrain(..) => &[Say::Constrain],
            Command::Resolve(_) => &[Say::AnswerFirst, Say::AnswerLast],
            Command::Retry => &[Say::Retry],
            Command::StartOver => &[Say::StartOver],
            Command::Accept => &[Say::Accept],
            Command::Revert { .. } => &[Say::Revert],
            Command::Cancel { .. } => &[Say::Cancel],
            Command::Prompt { .. } => &[Say::Prompt],
            Command::HoldBack(_) => &[Say::HoldBack],
            Command::Exhaust { .. } => &[Say::Exhaust],
            Command::Spawn(_) => &[Say::Spawn],
            Command::Tend(_) => &[Say::Tend],
            Command::WoundUp(_) => &[Say::WoundUp],
            Command::Call(_) => &[Say::Call],
            Command::Join { .. } => &[Say::Join],
            Command::Reexamine { .. } => &[Say::Reexamine],
        }
    }

    /// Returns the authority that the sample is sent with.
    pub(super) fn authority(self) -> Authority {
        match self {
            Say::ExecuteAlone | Say::ApplyAlone | Say::CancelBelow => Authority::Engine,
            _ => Authority::Person,
        }
    }

    /// Returns the command, as the plan's current run or a person would send it.
    pub(super) fn to(self, world: &World) -> Command {
        self.of_run(world, world.run())
    }

    /// Returns the command, with reports sent in the name of `run`.
    pub(super) fn of_run(self, world: &World, run: RunId) -> Command {
        match self {
            Say::Start => start(world.fresh_run(), nothing(world)),
            Say::StartAgain => start(run, nothing(world)),
            Say::Strategized => {
                Command::Complete(run, Completion::Strategized { choices: vec![choice()], fanout: None })
            }
            Say::Executed => Command::Complete(
                run,
                Completion::Executed { head: "head".into(), validations: Vec::new(), reviews: Vec::new() },
            ),
            Say::Fail => Command::Fail(run, failure(ErrorClass::AgentFailed), None),
            Say::FailAsking => Command::Fail(run, failure(ErrorClass::Inconsistent), Some(lost_track())),
            Say::Ask => Command::Ask(run, Question::from_agent("Tabs?".into(), Vec::new())),
            Say::Recover => diverge(&recovered("refs/drydock/pin/a/1")),
            Say::Pause => diverge(&unreconciled("refs/drydock/pin/a/2")),
            Say::Postpone => Command::Postpone(run, Delay::RateLimit(limit(None))),
            Say::Reconcile => reconcile("c9"),
            Say::Sync => Command::Sync,
            Say::CancelBelow => cancel_below(Authority::Person),
            Say::RollBack => Command::RollBack { commit: "snapshot".into() },
            Say::Adopt => Command::Adopt { choices: vec![adopted()], fanout: None },
            Say::TakeOver => Command::TakeOver(TakeOverCause::OwnerGone, Remains::Work(None)),
            Say::Approve => approve(nothing(world)),
            Say::Execute | Say::ExecuteAlone => advance(NextPhase::Execute, None),
            Say::Apply | Say::ApplyAlone => advance(NextPhase::Apply, None),
            Say::Intend => Command::Intend(run, intent("merged")),
            Say::Forgo => Command::Forgo,
            Say::Land => Command::Land(run, landed("merged")),
            Say::Constrain => Command::Constrain(run, vec!["conflict in a.txt".into()]),
            Say::AnswerFirst => answer(world, <[DecisionOption]>::first),
            Say::AnswerLast => answer(world, <[DecisionOption]>::last),
            Say::Retry => Command::Retry,
            Say::StartOver => Command::StartOver,
            Say::Accept => Command::Accept,
            Say::Revert => Command::Revert { reason: "another way".into() },
            Say::Cancel => Command::Cancel { reason: "enough".into() },
            Say::Prompt => Command::Prompt { text: "mind the tests".into() },
            Say::HoldBack => Command::HoldBack(Obstacle::Obstacle("the repository is gone".into())),
            Say::Exhaust => Command::Exhaust { run: Some(run), work: Remains::Work(None) },
            Say::Spawn => Command::Spawn(Vec::new()),
            Say::Tend => Command::Tend(Vec::new()),
            Say::WoundUp => Command::WoundUp(Vec::new()),
            Say::Call => Command::Call(CallSubplan { base: "base".into(), from: None }),
            Say::Join => Command::Join { commit: "joined".into() },
            Say::Reexamine => Command::Reexamine { tip: "c2".into(), commits: vec![commit("c2", "theirs")] },
        }
    }
}

pub(super) fn start(run: RunId, enforcement: Enforcement) -> Command {
    let (from, replaces) = (None, None);
    Command::Start(Start { run, base: "tip".to_owned(), from, replaces, enforcement })
}

pub(super) fn approve(enforcement: Enforcement) -> Command {
    Command::Approve { note: None, enforcement }
}

pub(super) fn advance(to: NextPhase, note: Option<&str>) -> Command {
    let enforcement = Enforcement::nothing(to.phase());
    let note = note.map(str::to_owned);
    Command::Advance(Advance { to, enforcement, note, changes: Changes::Something })
}

/// Returns an enforcement with one violated rule.
pub(super) fn violated(at: Phase) -> Enforcement {
    let check = InvariantCheck::Violated("too long".into());
    let (rule, measure) = (RuleKind::Cel, None);
    let (invariant, scope) = ("small".parse().unwrap(), InvariantScope::Global);
    let finding = Finding { invariant, scope, rule, check, measure };
    Enforcement { at, findings: vec![finding] }
}

pub(super) fn nothing(world: &World) -> Enforcement {
    Enforcement::nothing(world.plan().stage.phase())
}

pub(super) fn intent(to: &str) -> Intent {
    Intent { target: "main".into(), from: "base".into(), to: to.into(), remote: None, creates: false }
}

pub(super) fn landed(commit: &str) -> Landed {
    Landed { commit: commit.into(), proof: LandingProof::Intended, warning: None }
}

pub(super) fn failure(class: ErrorClass) -> Failure {
    Failure::new(class, "it broke")
}

/// Returns the question about a landing whose end is unknown.
pub(super) fn lost_track() -> Question {
    Question::apply_outcome("main", "base", "merged")
}

/// Returns the report of a landing whose remote does not respond.
pub(super) fn remote_away(world: &World) -> Command {
    let away = RemoteAway { remote: "origin".into(), text: "connection refused".into(), contended: false };
    Command::Postpone(world.run(), Delay::remote(world.plan(), away))
}

pub(super) fn limit(resets: Option<Timestamp>) -> RateLimit {
    RateLimit { agent: "writer".into(), resets, work: Remains::Work(None) }
}

pub(super) fn diverge(outcome: &SyncOutcome) -> Command {
    Command::Diverge(Box::new(outcome.divergence().expect("it is one")))
}

/// Returns the report that branch and remote are both at this commit.
pub(super) fn reconcile(head: &str) -> Command {
    Command::Reconcile(Box::new(SyncOutcome::InSync { head: head.into() }))
}

/// Returns the cancellation of a subplan whose parent was ended by this authority.
pub(super) fn cancel_below(ended_by: Authority) -> Command {
    Command::CancelBelow { reason: "not needed".into(), ended_by }
}

/// Returns a divergence resolved by a reset, whose commits are kept as backup `pin`.
pub(super) fn recovered(pin: &str) -> SyncOutcome {
    SyncOutcome::RecoveredByReset {
        pin: pinned(pin),
        discarded: vec![commit("b1", "mine")],
        to: "c2".into(),
        arrived: vec![commit("c1", "theirs"), commit("c2", "theirs too")],
        clash: clash(),
    }
}

/// Returns a divergence whose reset failed.
pub(super) fn reset_failed(pin: &str) -> SyncOutcome {
    SyncOutcome::ResetFailed {
        pin: pinned(pin),
        discarded: vec![commit("b1", "mine")],
        remote: "c1".into(),
        arrived: vec![commit("c1", "theirs")],
        clash: clash(),
        reason: "index.lock exists".into(),
    }
}

/// Returns a divergence that left both sides unchanged.
pub(super) fn unreconciled(pin: &str) -> SyncOutcome {
    SyncOutcome::Unreconciled {
        pin: pinned(pin),
        discarded: vec![commit("b1", "mine")],
        local: "b1".into(),
        remote: "c1".into(),
        arrived: vec![commit("c1", "theirs")],
        clash: clash(),
    }
}

/// Returns a divergence without a common commit.
pub(super) fn unrelated(pin: &str) -> SyncOutcome {
    let SyncOutcome::Unreconciled { pin, discarded, local, remote, arrived, .. } = unreconciled(pin) else {
        unreachable!("it is one")
    };
    let text = String::new();
    let clash = ReplayConflict { cause: ClashCause::NoCommonCommit, commit: None, paths: Vec::new(), text };
    SyncOutcome::Unreconciled { pin, discarded, local, remote, arrived, clash }
}

/// Returns a divergence that was rebased.
pub(super) fn rebased(publishing: PublishResult) -> SyncOutcome {
    SyncOutcome::Rebased {
        from: "b1".into(),
        to: "d1".into(),
        onto: "c1".into(),
        pin: pinned("p/1"),
        discarded: vec![commit("b1", "mine")],
        absorbed: Vec::new(),
        replayed: vec![commit("d1", "mine")],
        arrived: vec![commit("c1", "theirs")],
        publishing,
    }
}

fn pinned(name: &str) -> BackupRef {
    let uncommitted = Uncommitted::Kept;
    BackupRef { name: name.into(), commit: "p1".into(), head: "b1".into(), uncommitted }
}

fn clash() -> ReplayConflict {
    ReplayConflict {
        cause: ClashCause::Content,
        commit: Some(commit("b1", "mine")),
        paths: vec!["a.txt".into()],
        text: "content".into(),
    }
}

fn commit(id: &str, subject: &str) -> CommitLine {
    CommitLine { id: id.into(), subject: subject.into(), author: "ada".into() }
}

fn adopted() -> Choice {
    Choice { chosen: "by hand".into(), ..choice() }
}

pub(super) fn choice() -> Choice {
    Choice {
        question: "how".into(),
        chosen: "plainly".into(),
        alternatives: vec!["cleverly".into()],
        rationale: None,
        confidence: Some(0.3),
        ..Choice::default()
    }
}

fn answer(world: &World, pick: fn(&[DecisionOption]) -> Option<&DecisionOption>) -> Command {
    let (decision, option) = match &world.snapshot.pending {
        Some(open) => {
            (open.id.clone(), pick(&open.question.options).expect("a question has options").id.clone())
        }
        None => (DecisionId::from_random(0), "approve".to_owned()),
    };
    Command::Resolve(Answer { decision, option, note: Some("as you like".into()) })
}
