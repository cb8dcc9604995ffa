//! The report of a command that moved a plan: the plan, and the exit code for its state.

use drydock_api::{Code, OnePlan, Phase, Plan, Problem, State, exit};

use super::report::{Level, Report, ReportStatus};
use crate::render;
use crate::render::next::go_on;

/// Returns the report on a plan that was asked to finish a phase.
pub(crate) fn of_move(plan: Plan, asked: Phase) -> Report {
    let ending = ending(&plan, asked);
    let text = match ending {
        // The error contains the reason; print it once.
        ReportStatus::Failed(_) => render::plan::place(&plan),
        ReportStatus::Done | ReportStatus::Attention(_) => render::plan::line(&plan),
    };
    let next = render::next::command(&plan);
    let level = match ending {
        ReportStatus::Attention(_) => Level::Warn,
        ReportStatus::Done | ReportStatus::Failed(_) => Level::Info,
    };
    // The hint of the failure contains the next step.
    let next = next.filter(|_| !matches!(ending, ReportStatus::Failed(_)));
    let warning = plan.landing_warning.clone();
    let report = Report::new(OnePlan { plan }, text).ending(ending).go_on(level, next);
    match warning {
        Some(warning) if matches!(report.ending, ReportStatus::Done) => {
            report.note(Level::Warn, warning).ending(ReportStatus::Attention(exit::OK))
        }
        Some(warning) => report.note(Level::Warn, warning),
        None => report,
    }
}

/// Returns the report on a plan that had landed before the command started, so the command did nothing.
pub(crate) fn landed_before(plan: Plan) -> Report {
    let text = render::plan::line(&plan);
    let commit = plan.landed_commit.clone();
    let report = Report::new(OnePlan { plan }, text);
    match commit {
        Some(commit) => report.note(Level::Info, format!("already landed as {commit}")),
        None => report,
    }
}

/// Returns the report on a plan that was only queued.
pub(crate) fn of_steering(plan: Plan) -> Report {
    let text = render::plan::line(&plan);
    let next = render::next::command(&plan);
    Report::new(OnePlan { plan }, text).go_on(Level::Info, next)
}

/// Returns the problem of a plan whose driver released it before its phase ended.
pub(crate) fn stopped(plan: &Plan) -> Box<Problem> {
    let text = format!("{} of {} was stopped before it finished", plan.phase, plan.id);
    let hint = go_on(&format!("drydock plan {} {}", plan.phase, plan.id));
    Box::new(Problem::new(Code::LeaseLost, text).hint(hint).with("plan", plan.id.clone()))
}

/// Returns true if the plan has finished this phase.
pub(crate) fn is_reached(plan: &Plan, asked: Phase) -> bool {
    match plan.state {
        State::Cancelled => false,
        State::Complete | State::Applied => plan.phase == asked || is_later(plan, asked),
        State::Queued | State::Processing | State::Waiting | State::Errored | State::Constrained => {
            is_later(plan, asked)
        }
    }
}

/// Returns true if the plan is in a later phase, which means that this one was completed before.
pub(crate) fn is_later(plan: &Plan, asked: Phase) -> bool {
    let place = |phase| Phase::ALL.iter().position(|one| *one == phase);
    place(plan.phase) > place(asked)
}

fn ending(plan: &Plan, asked: Phase) -> ReportStatus {
    let later = is_later(plan, asked);
    let failed = |code, text: String| {
        let hint = match render::next::command(plan) {
            Some(next) => go_on(&next),
            None => format!("see `drydock plan show {}`; to try again, create a new plan", plan.id),
        };
        ReportStatus::Failed(Box::new(Problem::new(code, text).hint(hint).with("plan", plan.id.clone())))
    };
    match plan.state {
        State::Cancelled => {
            let reason = plan.cancel_reason.as_deref().map(|reason| format!(": {reason}"));
            failed(Code::PlanCancelled, format!("{} was cancelled{}", plan.id, reason.unwrap_or_default()))
        }
        _ if later => ReportStatus::Done,
        State::Complete | State::Applied => ReportStatus::Done,
        State::Waiting => ReportStatus::Attention(exit::UNDECIDED),
        State::Constrained => {
            let reasons = plan.constrained_by.join("; ");
            failed(Code::Constrained, format!("{} cannot land: {reasons}", plan.id))
        }
        State::Errored => {
            let (class, text) = match &plan.error {
                Some(error) => (error.class.as_str(), error.text.as_str()),
                None => ("", "no reason was recorded"),
            };
            let asked = plan.pending_decision.is_some();
            failed(code(class, asked), format!("{} of {} failed: {text}", plan.phase, plan.id))
        }
        State::Queued | State::Processing => ReportStatus::Failed(stopped(plan)),
    }
}

/// Returns the error code of a failure. A failure that is a block has the code of the block. A failure with an open
/// decision has the code of an open decision.
fn code(class: &str, asked: bool) -> Code {
    match class {
        "diverged" => Code::SyncRecovered,
        "reset_failed" => Code::SyncUnreconciled,
        _ if asked => Code::DecisionOpen,
        "validation_failed" => Code::ValidationFailed,
        _ => Code::PlanErrored,
    }
}

/// Returns the problem of a plan whose invariants block the next phase.
pub(crate) fn blocked(plan: &Plan) -> Option<Box<Problem>> {
    let blocked = plan.blocked.as_ref()?;
    let text = format!("{} of {} is blocked: {}", blocked.phase, plan.id, blocked.text());
    let hint = match render::next::command(plan) {
        Some(next) => go_on(&next),
        None => format!("`drydock invariant list --effective {}` shows the rules", plan.id),
    };
    Some(Box::new(Problem::new(Code::InvariantBlocked, text).hint(hint).with("plan", plan.id.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::plan::tests::plan;
    use drydock_api::PlanError;

    fn exit_of(plan: Plan, asked: Phase) -> u8 {
        of_move(plan, asked).exit_code()
    }

    #[test]
    fn each_end_of_a_phase_has_its_exit_code() {
        for (phase, state, code) in [
            (Phase::Strategize, State::Complete, 0),
            (Phase::Execute, State::Complete, 0),
            (Phase::Apply, State::Applied, 0),
            (Phase::Execute, State::Errored, 1),
            (Phase::Execute, State::Cancelled, 1),
            (Phase::Apply, State::Constrained, 5),
            (Phase::Execute, State::Waiting, 6),
            (Phase::Execute, State::Queued, 4),
            (Phase::Apply, State::Processing, 4),
        ] {
            assert_eq!(exit_of(plan(phase, state), phase), code, "{phase}/{state}");
        }
    }

    /// Breaks if a bad exit code has no error with a reason, or a person gets no next step.
    #[test]
    fn each_bad_end_says_why_and_what_to_do() {
        for state in State::ALL {
            let mut ended = plan(Phase::Execute, *state);
            ended.pending_decision = (*state == State::Waiting).then(|| "dec-1".into());
            let report = of_move(ended, Phase::Execute);
            let code = report.exit_code();
            match report.ending {
                ReportStatus::Failed(problem) => assert!(problem.hint.is_some(), "{state}"),
                ReportStatus::Attention(_) => assert_eq!((code, report.notes.len()), (6, 1), "{state}"),
                ReportStatus::Done => assert_eq!(code, 0, "{state}"),
            }
        }
    }

    /// D4: breaks if repeating a phase that the plan has finished is a conflict.
    #[test]
    fn a_repeated_move_is_done_when_its_end_is_behind_the_plan() {
        assert!(is_reached(&plan(Phase::Apply, State::Applied), Phase::Apply));
        assert!(is_reached(&plan(Phase::Apply, State::Applied), Phase::Execute));
        assert!(is_reached(&plan(Phase::Apply, State::Applied), Phase::Strategize));
        assert!(is_reached(&plan(Phase::Apply, State::Constrained), Phase::Execute));
        assert!(!is_reached(&plan(Phase::Apply, State::Constrained), Phase::Apply));
        assert!(!is_reached(&plan(Phase::Execute, State::Errored), Phase::Execute));
        assert!(!is_reached(&plan(Phase::Execute, State::Complete), Phase::Apply));
        assert!(!is_reached(&plan(Phase::Apply, State::Cancelled), Phase::Execute));
    }

    /// long-day: breaks if a failed run prints its reason more than once.
    #[test]
    fn a_failed_validation_is_a_block() {
        let mut failed = plan(Phase::Execute, State::Errored);
        failed.error = Some(PlanError { class: "validation_failed".into(), text: "tests".into() });
        let report = of_move(failed, Phase::Execute);
        assert_eq!(report.exit_code(), 5);
        assert!(!report.text.contains("tests"), "{}", report.text);
        let ReportStatus::Failed(problem) = report.ending else { panic!("it failed") };
        assert!(problem.to_string().contains("tests"), "{problem}");
    }

    /// D2, B11 and the long day: breaks if a failure that left a question open exits with the code of the failure.
    #[test]
    fn an_open_question_is_exit_6_whatever_failed() {
        for class in
            ["validation_failed", "subplan_failed", "subplan_conflict", "diverged", "reset_failed", "git"]
        {
            let mut asked = plan(Phase::Execute, State::Errored);
            asked.error = Some(PlanError { class: class.into(), text: "it broke".into() });
            asked.pending_decision = Some("dec-1".into());
            assert_eq!(exit_of(asked, Phase::Execute), 6, "{class}");
        }
    }

    #[test]
    fn a_phase_that_was_passed_is_done_whatever_came_after() {
        assert_eq!(exit_of(plan(Phase::Execute, State::Errored), Phase::Strategize), 0);
        assert_eq!(exit_of(plan(Phase::Apply, State::Applied), Phase::Execute), 0);
        assert_eq!(exit_of(plan(Phase::Execute, State::Cancelled), Phase::Strategize), 1);
    }
}
