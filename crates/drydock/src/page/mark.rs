//! Badges: a shape and a word for each state, so that no meaning depends on colour alone. Each icon contains its
//! shape. A reference to a sprite would make the browser create a styled copy per icon, which slows the first paint
//! of a board.

use std::collections::HashMap;
use std::sync::LazyLock;

use drydock_api::{Phase, Plan, State};
use maud::{Markup, PreEscaped, html};

const SHAPES: &str = include_str!("assets/icons.svg");

/// The drawing of each symbol, by name.
static DRAWN: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    let symbols = SHAPES.split("<symbol id=\"i-").skip(1);
    symbols.filter_map(|symbol| symbol.split_once("\" viewBox=\"0 0 16 16\">")).map(drawn).collect()
});

fn drawn((name, rest): (&'static str, &'static str)) -> (&'static str, &'static str) {
    (name, rest.split_once("</symbol>").map_or("", |(drawn, _)| drawn))
}

/// Returns a decorative icon; the word beside it has the meaning.
pub(super) fn icon(name: &str) -> Markup {
    let drawn = DRAWN.get(name).copied().unwrap_or_default();
    html! { svg.icon viewBox="0 0 16 16" aria-hidden="true" focusable="false" { (PreEscaped(drawn)) } }
}

/// Returns the badge of a plan: that of its state, or that of a block if invariants block it.
pub(super) fn of(plan: &Plan) -> Markup {
    match plan.blocked {
        Some(_) => html! { span.mark.tone-bad { (icon(State::Constrained.name())) span { "Blocked" } } },
        None => state(plan.state),
    }
}

/// Returns the colour class of a plan.
pub(super) fn tone_of(plan: &Plan) -> &'static str {
    if plan.blocked.is_some() { "bad" } else { tone(plan.state) }
}

/// Returns the badge of a state: shape, word and colour.
pub(super) fn state(state: State) -> Markup {
    html! {
        span class={ "mark tone-" (tone(state)) } { (icon(state.name())) span { (word(state)) } }
    }
}

/// Returns the colour class of a state.
pub(super) fn tone(state: State) -> &'static str {
    match state {
        State::Queued => "still",
        State::Processing => "busy",
        State::Waiting => "ask",
        State::Complete | State::Applied => "good",
        State::Errored | State::Constrained => "bad",
        State::Cancelled => "faint",
    }
}

/// Returns the label of a state.
pub(super) fn word(state: State) -> &'static str {
    match state {
        State::Queued => "Queued",
        State::Processing => "Processing",
        State::Waiting => "Waiting",
        State::Complete => "Complete",
        State::Errored => "Errored",
        State::Cancelled => "Cancelled",
        State::Applied => "Applied",
        State::Constrained => "Constrained",
    }
}

/// Returns the label of a phase.
pub(super) fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Strategize => "Strategize",
        Phase::Execute => "Execute",
        Phase::Apply => "Apply",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Breaks if a state has no shape, or two states look the same.
    #[test]
    fn every_state_has_a_shape_of_its_own() {
        let shapes: HashSet<_> = State::ALL.iter().map(|state| icon(state.name()).into_string()).collect();
        assert_eq!(shapes.len(), State::ALL.len());
        assert!(shapes.iter().all(|shape| shape.contains("currentColor")), "{shapes:?}");
    }

    /// Breaks if a shape is cut from the wrong part of the file, or an icon is missing from it.
    #[test]
    fn every_icon_that_is_asked_for_is_drawn() {
        assert_eq!(DRAWN.len(), SHAPES.matches("<symbol").count());
        for (name, drawn) in DRAWN.iter() {
            assert!(
                drawn.starts_with('<') && drawn.ends_with("/>") && !drawn.contains("symbol"),
                "{name}: {drawn}"
            );
        }
    }
}
