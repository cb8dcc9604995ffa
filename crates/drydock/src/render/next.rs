//! The next step: what a person types to move a plan on from where it stands.

use drydock_api::{Phase, Plan, State};

/// Returns the command that moves the plan on, or none when nothing can follow.
pub(crate) fn command(plan: &Plan) -> Option<String> {
    let id = &plan.id;
    if let Some(decision) = &plan.pending_decision
        && plan.gate.is_none()
    {
        return Some(format!("drydock decision show {decision}"));
    }
    match (plan.state, plan.phase) {
        (State::Queued | State::Processing, phase) => Some(format!("drydock plan {phase} {id}")),
        (State::Complete, Phase::Strategize) => Some(format!("drydock plan execute {id}")),
        (State::Complete, Phase::Execute | Phase::Apply) => Some(format!("drydock plan apply {id}")),
        (State::Errored, _) => Some(format!("drydock plan retry {id}")),
        (State::Constrained, _) => Some(format!("drydock plan revert {id} --reason …")),
        (State::Waiting, _) => Some(format!("drydock plan why {id}")),
        (State::Cancelled | State::Applied, _) => None,
    }
}

/// Returns the remark that names a command to go on with.
pub(crate) fn go_on(command: &str) -> String {
    format!("go on with: {command}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::plan::tests::plan;

    #[test]
    fn every_resting_place_but_the_last_has_a_way_on() {
        for (phase, state, way) in [
            (Phase::Strategize, State::Complete, Some("plan execute")),
            (Phase::Execute, State::Complete, Some("plan apply")),
            (Phase::Execute, State::Processing, Some("plan execute")),
            (Phase::Execute, State::Errored, Some("plan retry")),
            (Phase::Apply, State::Constrained, Some("plan revert")),
            (Phase::Apply, State::Applied, None),
            (Phase::Execute, State::Cancelled, None),
        ] {
            let said = command(&plan(phase, state));
            assert_eq!(said.is_some(), way.is_some(), "{phase}/{state}");
            assert!(way.is_none_or(|way| said.unwrap().contains(way)), "{phase}/{state}");
        }
    }

    #[test]
    fn an_open_question_comes_first_but_a_gate_is_passed_by_going_on() {
        let mut asked = plan(Phase::Execute, State::Waiting);
        asked.pending_decision = Some("dec-1".into());
        assert_eq!(command(&asked).unwrap(), "drydock decision show dec-1");
        let mut gated = plan(Phase::Strategize, State::Complete);
        (gated.pending_decision, gated.gate) = (Some("dec-1".into()), Some("dec-1".into()));
        assert!(command(&gated).unwrap().starts_with("drydock plan execute"));
    }
}
