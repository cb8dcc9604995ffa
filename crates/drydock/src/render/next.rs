//! The next step: the command that continues a plan from its current stage. It is the first of the plan's offers that
//! makes progress. `domain` decides which commands are offered.

use drydock_api::{Offer, Plan, State};

/// Returns the command that continues the plan, or none.
pub(crate) fn command(plan: &Plan) -> Option<String> {
    let question = |decision: &String| format!("drydock decision show {decision}");
    match plan.offers().iter().find(|offer| leads(offer)) {
        // Show the question before it is answered.
        Some(offer) if offer.decision.is_some() => offer.decision.as_ref().map(question),
        Some(offer) => offer.line.clone(),
        None if plan.state == State::Processing => Some(format!("drydock plan watch {}", plan.id)),
        None => plan.pending_decision.as_ref().map(question),
    }
}

/// Returns the message that names the next command.
pub(crate) fn go_on(command: &str) -> String {
    format!("next: {command}")
}

/// Returns true if an offer makes progress. The others end the plan or leave it where it is.
fn leads(offer: &Offer) -> bool {
    match offer.command.as_str() {
        "cancel" | "prompt" | "rollback" | "adopt" | "sync" | "accept" => false,
        _ => offer.line.is_some() || offer.decision.is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::plan::tests::plan;
    use drydock_api::Phase;

    fn offer(command: &str) -> Offer {
        let line = Some(format!("drydock plan {command} pln-1"));
        Offer { command: command.into(), line, ..Offer::default() }
    }

    #[test]
    fn the_next_step_is_the_first_offer_that_leads_somewhere() {
        let mut failed = plan(Phase::Execute, State::Errored);
        failed.offers = Some(vec![offer("prompt"), offer("retry"), offer("cancel")]);
        assert_eq!(command(&failed).as_deref(), Some("drydock plan retry pln-1"));
        failed.offers = Some(vec![offer("cancel")]);
        assert_eq!(command(&failed), None);
    }

    #[test]
    fn a_question_is_shown_before_it_is_answered_and_a_gate_is_passed_by_moving_on() {
        let answer = Offer { decision: Some("dec-1".into()), line: None, ..offer("resolve") };
        let mut asked = plan(Phase::Execute, State::Waiting);
        asked.offers = Some(vec![answer.clone(), offer("cancel")]);
        assert_eq!(command(&asked).as_deref(), Some("drydock decision show dec-1"));
        let mut gated = plan(Phase::Strategize, State::Complete);
        gated.offers = Some(vec![offer("execute"), answer]);
        assert_eq!(command(&gated).as_deref(), Some("drydock plan execute pln-1"));
    }

    /// Code 8.8, long day: breaks if a hint must be edited before it can be pasted.
    #[test]
    fn what_needs_more_than_its_line_is_no_next_step() {
        let mut refused = plan(Phase::Apply, State::Constrained);
        let needing = Offer { line: None, needs: vec!["checkpoint".into()], ..offer("takeover") };
        refused.offers = Some(vec![needing, offer("revert")]);
        assert_eq!(command(&refused).as_deref(), Some("drydock plan revert pln-1"));
    }
}
