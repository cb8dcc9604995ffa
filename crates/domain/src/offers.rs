//! The actions that a plan accepts. Offers are computed by trying sample commands against `decide`. There is
//! no second list of the commands of each stage: an action is offered exactly if it would be accepted.
//!
//! A command needs facts that are known only when it is sent. The samples are chosen so that the plan alone
//! decides:
//! - the invariants have the result of the latest enforcement that is still valid for the plan, or hold if
//!   there is none;
//! - the clock is at the plan's latest change, so that a wait is not over;
//! - files were changed, unless the open gate states that none were;
//! - the checkpoint, the draft, the note and the guidance from a person exist and are new.

use crate::{
    Act, Advance, Answer, Authority, Changes, Choice, Command, Context, Decided, DecisionId, DecisionKind,
    DecisionOption, Enforcement, Need, NextPhase, Offer, OptionEffect, Phase, Plan, Question, Refusal,
    Remains, State, StoredPlan, TakeOverCause, decide, next_effect,
};

/// The commit of the checkpoint that a sample rolls back to. No repository contains it.
const SAMPLE_COMMIT: &str = "0000000000000000000000000000000000000000";

/// Returns the actions that this authority can take, most useful first. A plan in state `processing` is
/// assumed to be held by a live process, so that it can only be cancelled.
pub fn offers(snapshot: &StoredPlan, enforcement: Option<&Enforcement>, authority: Authority) -> Vec<Offer> {
    let trial = Trial { snapshot, enforcement, authority };
    let acts = match snapshot.plan.stage.state() {
        State::Processing => vec![Act::Cancel],
        State::Queued
        | State::Waiting
        | State::Complete
        | State::Errored
        | State::Cancelled
        | State::Applied
        | State::Constrained => trial.candidates(),
    };
    trial.accepted(acts)
}

/// Returns the actions that this authority can take on a plan in state `processing` whose holder is gone.
pub fn offers_unheld(snapshot: &StoredPlan, authority: Authority) -> Vec<Offer> {
    let trial = Trial { snapshot, enforcement: None, authority };
    trial.accepted(vec![Act::Move(snapshot.plan.stage.phase()), Act::TakeOver, Act::Revert, Act::Cancel])
}

/// One plan, tried with the commands of one authority.
struct Trial<'a> {
    snapshot: &'a StoredPlan,
    enforcement: Option<&'a Enforcement>,
    authority: Authority,
}

impl Trial<'_> {
    fn plan(&self) -> &Plan {
        &self.snapshot.plan
    }

    /// Returns the actions to try, in the order in which they are offered.
    fn candidates(&self) -> Vec<Act> {
        let moves =
            [Act::Move(self.plan().stage.phase()), Act::Move(Phase::Execute), Act::Move(Phase::Apply)];
        let mut moves: Vec<_> = moves.into_iter().collect();
        moves.dedup();
        let answers = self.answers();
        let is_gate =
            self.snapshot.pending.as_ref().is_some_and(|open| open.question.kind == DecisionKind::Gate);
        let mut acts = Vec::new();
        // A result that a rule or the target refused would be refused again: the plan needs another result
        // first.
        let refused = self.is_blocked() || self.plan().stage.state() == State::Constrained;
        acts.extend(refused.then_some(Act::Revert));
        match is_gate {
            true => acts.extend(moves.into_iter().chain(answers)),
            false => acts.extend(answers.into_iter().chain(moves)),
        }
        acts.extend([Act::Retry, Act::Accept]);
        acts.extend((!refused).then_some(Act::Revert));
        acts.extend([Act::RollBack, Act::Adopt, Act::Prompt, Act::Sync, Act::Cancel]);
        acts
    }

    fn answers(&self) -> Vec<Act> {
        let Some(open) = &self.snapshot.pending else { return Vec::new() };
        let answer =
            |option: &DecisionOption| Act::Answer { decision: open.id.clone(), option: option.id.clone() };
        open.question.options.iter().map(answer).collect()
    }

    fn accepted(&self, acts: Vec<Act>) -> Vec<Offer> {
        let mut offers: Vec<Offer> = Vec::new();
        for act in acts {
            if offers.iter().all(|offer| offer.act != act) && self.is_accepted(&act) {
                offers.push(self.offer(act));
            }
        }
        offers
    }

    /// Returns true if the invariants block the plan until a rule or the result changes.
    fn is_blocked(&self) -> bool {
        self.enforcement.is_some_and(Enforcement::is_lasting)
    }

    fn is_accepted(&self, act: &Act) -> bool {
        let does = |command| matches!(self.tries(command), Ok(Decided::Change(_)));
        match act {
            Act::Move(phase) => self.moves(*phase),
            Act::Answer { decision, option } => self.answered(decision, option).is_some_and(does),
            Act::Retry => does(Command::Retry),
            Act::Accept => does(Command::Accept),
            Act::Revert => does(Command::Revert { reason: sample() }),
            Act::RollBack => does(Command::RollBack { commit: SAMPLE_COMMIT.to_owned() }),
            Act::Adopt => {
                let draft = Choice { question: sample(), chosen: sample(), ..Choice::default() };
                does(Command::Adopt { choices: vec![draft], fanout: None }) && self.plan().run.is_some()
            }
            Act::Prompt => does(Command::Prompt { text: sample() }),
            // A sync records nothing itself.
            Act::Sync => self.tries(Command::Sync).is_ok(),
            Act::Cancel => does(Command::Cancel { reason: sample() }),
            Act::TakeOver => does(Command::TakeOver(TakeOverCause::OwnerGone, Remains::Work(None))),
        }
    }

    /// Returns true if requesting the phase moves the plan there or lets the phase start.
    fn moves(&self, phase: Phase) -> bool {
        let plan = self.plan();
        match (plan.stage.state(), plan.stage.phase() == phase) {
            (State::Queued, true) if plan.gate.is_some() => {
                !self.blocks_strategize() && self.changes(self.approve())
            }
            // No transition is needed: the caller's process performs the effect that is due.
            (State::Queued, true) => {
                next_effect(plan).is_some()
                    && !self.blocks_strategize()
                    && self.tries(self.advance(phase)).is_ok()
            }
            (State::Processing, true) => {
                self.changes(Command::TakeOver(TakeOverCause::OwnerGone, Remains::Work(None)))
            }
            (_, false) => self.changes(self.advance(phase)),
            (_, true) => false,
        }
    }

    fn blocks_strategize(&self) -> bool {
        self.is_blocked() && self.plan().stage.phase() == Phase::Strategize
    }

    fn changes(&self, command: Command) -> bool {
        matches!(self.tries(command), Ok(Decided::Change(_)))
    }

    fn approve(&self) -> Command {
        let phase = self.plan().stage.phase();
        let known = self.enforcement.filter(|known| known.is_lasting() && known.at == phase);
        let enforcement = known.cloned().unwrap_or_else(|| Enforcement::nothing(phase));
        Command::Approve { note: None, enforcement }
    }

    /// Returns the command that requests a phase.
    fn advance(&self, phase: Phase) -> Command {
        let to = match phase {
            Phase::Strategize => return self.approve(),
            Phase::Execute => NextPhase::Execute,
            Phase::Apply => NextPhase::Apply,
        };
        // A block that may pass when it is checked again does not prevent the offer.
        let lasting = self.enforcement.filter(|enforcement| enforcement.is_lasting());
        let enforcement = lasting.cloned().unwrap_or_else(|| Enforcement::nothing(phase));
        Command::Advance(Advance { to, enforcement, note: None, changes: self.changed() })
    }

    /// Infers whether files were changed: a gate without an approve option was opened because none were.
    fn changed(&self) -> Changes {
        let open = self.snapshot.pending.as_ref().filter(|open| self.plan().gate.as_ref() == Some(&open.id));
        let approvable = |question: &Question| {
            question.options.iter().any(|option| option.effect == OptionEffect::Approve)
        };
        match open.is_none_or(|open| approvable(&open.question)) {
            true => Changes::Something,
            false => Changes::Nothing,
        }
    }

    /// Returns the command for an answer. Approving a complete phase is an advance.
    fn answered(&self, decision: &DecisionId, option: &str) -> Option<Command> {
        let open = self.snapshot.pending.as_ref().filter(|open| open.id == *decision)?;
        let chosen = open.question.options.iter().find(|one| one.id == option)?;
        let answer =
            || Answer { decision: decision.clone(), option: option.to_owned(), note: Some(sample()) };
        if chosen.effect != OptionEffect::Approve {
            return Some(Command::Resolve(answer()));
        }
        let plan = self.plan();
        match (plan.stage.phase(), plan.stage.state()) {
            (Phase::Strategize, State::Complete) => Some(self.advance(Phase::Execute)),
            (Phase::Execute, State::Complete) => Some(self.advance(Phase::Apply)),
            _ if self.blocks_strategize() => None,
            _ => Some(self.approve()),
        }
    }

    fn tries(&self, command: Command) -> Result<Decided, Refusal> {
        let context = Context {
            now: self.plan().updated_at,
            by: sample(),
            via: sample(),
            authority: self.authority,
            spent: None,
            fresh_decision: DecisionId::from_random(0),
        };
        decide(self.snapshot, command, &context)
    }

    fn offer(&self, act: Act) -> Offer {
        let (label, effect) = self.words(&act);
        let reason = match &act {
            Act::Revert => self.enforcement.map(reasons).filter(|reason| !reason.is_empty()),
            _ => None,
        };
        let needs = self.needs(&act);
        Offer { act, label, effect, needs, reason }
    }

    fn needs(&self, act: &Act) -> Vec<Need> {
        match act {
            Act::RollBack => vec![Need::Checkpoint],
            Act::Adopt => vec![Need::Draft],
            Act::Prompt => vec![Need::Text],
            Act::Answer { option, .. } => {
                let pending = self.snapshot.pending.as_ref();
                let note = pending.is_some_and(|open| open.question.needs_note(option));
                if note { vec![Need::Note] } else { Vec::new() }
            }
            Act::Move(_)
            | Act::Retry
            | Act::Accept
            | Act::Revert
            | Act::Sync
            | Act::TakeOver
            | Act::Cancel => Vec::new(),
        }
    }

    fn words(&self, act: &Act) -> (String, String) {
        let plan = self.plan();
        let phase = plan.stage.phase();
        let effect = match act {
            Act::Move(to) => return self.move_words(*to),
            Act::Answer { option, .. } => return self.answer_words(option),
            Act::Retry if plan.waits().is_some() => {
                return ("Retry now".to_owned(), "retries without waiting".to_owned());
            }
            Act::Retry if plan.stage.state() == State::Constrained => {
                "merges again with the current target".to_owned()
            }
            Act::Retry if plan.stage.failure().is_some_and(|failure| failure.work.is_some()) => {
                format!("continues {phase} from the kept work")
            }
            Act::Retry => format!("tries {phase} again"),
            Act::Accept => "validates and reviews the kept work unchanged, without an agent".to_owned(),
            Act::Revert => "goes back to strategize with a reason; the work is kept".to_owned(),
            Act::RollBack => "continues from an earlier checkpoint of the work".to_owned(),
            Act::Adopt => "makes the draft in the worktree the strategy".to_owned(),
            Act::Prompt => "adds guidance that the next run reads".to_owned(),
            Act::Sync => "syncs the branch with its remote".to_owned(),
            Act::TakeOver => format!("queues {phase} again"),
            Act::Cancel if plan.stage.state() == State::Processing => {
                "stops the run and ends the plan; its work is kept".to_owned()
            }
            Act::Cancel => "ends the plan; its work is kept".to_owned(),
        };
        (act.label().to_owned(), effect)
    }

    fn move_words(&self, to: Phase) -> (String, String) {
        let plan = self.plan();
        let queued = plan.stage.phase() == to && plan.gate.is_none();
        let may_pass = self.enforcement.is_some_and(|seen| seen.at == to && !seen.blocking().is_empty());
        let start = to.start_label(&plan.spec.target);
        let (label, effect) = match (queued, to) {
            _ if may_pass => ("Check again", "checks the rules again, and continues if they hold".to_owned()),
            (true, _) if plan.stage.state() == State::Processing => {
                ("Run again", format!("takes {to} over and runs it again"))
            }
            (true, _) => ("Run now", format!("runs {to} now")),
            (false, Phase::Strategize | Phase::Execute) => return (start, format!("starts {to}")),
            (false, Phase::Apply) => return (start, "lands the result".to_owned()),
        };
        (label.to_owned(), effect)
    }

    fn answer_words(&self, id: &str) -> (String, String) {
        let options = self.snapshot.pending.iter().flat_map(|open| &open.question.options);
        let label = options.into_iter().find(|option| option.id == id).map(|option| option.label.clone());
        (label.clone().unwrap_or_default(), label.unwrap_or_default())
    }
}

/// Returns the blocking findings as text, for the agent that is asked for another result.
fn reasons(enforcement: &Enforcement) -> String {
    let blocking = enforcement.blocking();
    let lines = blocking.iter().map(|finding| format!("{}: {}", finding.invariant, finding.reason()));
    lines.collect::<Vec<_>>().join("; ")
}

fn sample() -> String {
    "sample".to_owned()
}
