//! One open question: its text, the details that a person needs, and a button for each answer.

use drydock_api::{Decision, DecisionOption, Phase, Plan};
use maud::{Markup, html};

use super::mark::{self, icon};
use super::words::{commit, sentence, short_id, title, when};
use super::{act, conflict};
use crate::render::decision::details;

/// Where a question is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spot {
    /// On the page of its plan.
    ItsPlan,
    /// In a list with questions of other plans, so it names its own.
    AmongOthers,
}

/// Returns the question with its answers. Without the plan if that cannot be read.
pub(super) fn card(decision: &Decision, plan: Option<&Plan>, spot: Spot) -> Markup {
    let named = format!("question-{}", decision.id);
    // The text of the question names the phase of a gate, and the files of a conflict are shown separately.
    let is_said = |name: &str| name == "before" || decision.kind == "conflict";
    let told: Vec<_> = details(decision).into_iter().filter(|(name, _)| !is_said(name)).collect();
    html! {
        article.question data-id=(decision.id) aria-labelledby=(named) {
            p.question-head {
                span.mark.tone-ask { (icon("waiting")) span { (kind(&decision.kind)) } }
                @if let Some(plan) = plan.filter(|_| spot == Spot::AmongOthers) {
                    a href={ "/plans/" (plan.id) } data-item { (title(plan)) }
                    span { (plan.project) }
                }
                span { (mark::phase(decision.phase)) }
                code { (short_id(&decision.id)) }
                (when(&decision.created_at))
            }
            h2 id=(named) { (sentence(&decision.question)) }
            @if !told.is_empty() {
                dl.facts { @for (name, line) in &told { div { dt { (name.replace('_', " ")) } dd { (line) } } } }
            }
            @if decision.kind == "conflict" { (conflict::files(&decision.details)) }
            form.answer.script data-post={ "/api/v1/decisions/" (decision.id) "/resolve" } data-seen=[plan.map(|plan| plan.revision)] data-done="Answered." {
                (note(decision))
                p.problem role="alert" {}
                div.row {
                    @for (at, option) in offered(decision, plan).enumerate() {
                        @match plan.filter(|_| does_land(decision, option)) {
                            Some(plan) => (landing(decision, option, plan)),
                            None => (answer(option, at == 0)),
                        }
                    }
                    @if spot == Spot::AmongOthers && decision.phase == Phase::Execute { a.aside href={ "/plans/" (decision.plan) "/diff" } { "Show changes" } }
                }
            }
            p.no-script.hint { "Answer with " code { "drydock decision resolve " (decision.id) " --option " (ids(decision)) } }
        }
    }
}

/// Returns the text field: open and required if the text is the answer, collapsed if it is an addition.
fn note(decision: &Decision) -> Markup {
    let field = format!("note-{}", decision.id);
    html! {
        @if decision.options.iter().any(|option| option.needs_note) {
            label.unseen for=(field) { "Your answer" }
            textarea id=(field) name="note" rows="2" placeholder="Your answer" required {}
        } @else {
            details { summary { "Add a note" }
                label.unseen for=(field) { "Note, recorded with the answer" }
                textarea id=(field) name="note" rows="2" placeholder="Recorded with the answer" {}
            }
        }
    }
}

/// Returns the options that can succeed now. An invariant may block a phase that the gate would allow.
fn offered<'a>(decision: &'a Decision, plan: Option<&'a Plan>) -> impl Iterator<Item = &'a DecisionOption> {
    let offers = plan.and_then(|plan| plan.offers.as_deref());
    let works = move |option: &&DecisionOption| {
        offers.is_none_or(|all| all.iter().any(|offer| offer.option.as_ref() == Some(&option.id)))
    };
    decision.options.iter().filter(works)
}

fn answer(option: &DecisionOption, is_first: bool) -> Markup {
    // Cancelling the plan cannot be undone, so it needs a second press.
    let sure = (option.effect == "cancel").then_some("This cancels the plan. Press again to confirm.");
    let class = match (sure, is_first) {
        (Some(_), _) => "button danger",
        (None, true) => "button primary",
        (None, false) => "button",
    };
    html! {
        button class=(class) name="option" value=(option.id) data-sure=[sure] formnovalidate[!option.needs_note] { (sentence(&option.label)) }
    }
}

/// Returns true if an answer lets a result land.
fn does_land(decision: &Decision, option: &DecisionOption) -> bool {
    option.effect == "approve" && decision.details["before"] == "apply"
}

/// Returns an answer that opens a dialog first, because a landing cannot be undone here.
fn landing(decision: &Decision, option: &DecisionOption, plan: &Plan) -> Markup {
    let dialog = format!("dialog-land-{}", decision.id);
    let named = format!("{dialog}-title");
    html! {
        button.button.primary type="button" data-dialog=(dialog) { (sentence(&option.label)) "…" }
        dialog id=(dialog) aria-labelledby=(named) {
            h2 id=(named) { (act::LANDING) }
            p { strong { (title(plan)) } @if let Some(head) = &plan.head_commit { " " code { (commit(head)) } } }
            p { (act::lands(plan)) " " a href={ "/plans/" (plan.id) "/diff" } { "Show changes" } }
            p.problem role="alert" {}
            div.row.end {
                button.button type="button" data-close { "Back" }
                button.button.primary name="option" value=(option.id) { (sentence(&option.label)) }
            }
        }
    }
}

fn ids(decision: &Decision) -> String {
    let ids: Vec<_> = decision.options.iter().map(|option| option.id.as_str()).collect();
    ids.join("|")
}

fn kind(kind: &str) -> &str {
    match kind {
        "gate" => "Gate",
        "agent" => "Agent",
        "permission" => "Permission",
        "divergence" => "Divergence",
        "apply_outcome" => "Landing",
        "validation" => "Validation",
        "review" => "Review",
        "conflict" => "Conflict",
        "subplans" => "Subplans",
        "rate_limit" => "Rate limit",
        "budget" => "Budget",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::{Spot, card};
    use drydock_api::{Decision, DecisionOption, DecisionStatus, Phase};

    /// page B4: breaks if a question that takes any text can be answered without one, or hides the field for it.
    #[test]
    fn the_field_for_words_is_open_and_required_where_they_are_the_answer() {
        let option = |id: &str, needs_note| DecisionOption {
            id: id.into(),
            label: id.into(),
            effect: id.into(),
            needs_note,
        };
        let page = |needs_note| {
            let decision = Decision {
                id: "dec-1".into(),
                plan: "pln-1".into(),
                phase: Phase::Execute,
                run: None,
                kind: "agent".into(),
                question: "What should the button say?".into(),
                options: vec![option("answered", needs_note), option("abort", false)],
                status: DecisionStatus::Open,
                resolution: None,
                details: serde_json::json!({}),
                created_at: "2026-03-10T11:57:00Z".into(),
            };
            card(&decision, None, Spot::ItsPlan).into_string()
        };
        let (free, fixed) = (page(true), page(false));
        assert!(free.contains(" required>") && !free.contains("<details>"), "{free}");
        // Cancelling needs no text.
        assert_eq!(
            (free.matches("formnovalidate").count(), free.matches("<button").count()),
            (1, 2),
            "{free}"
        );
        assert!(!fixed.contains(" required>") && fixed.contains("<details>"), "{fixed}");
    }
}
