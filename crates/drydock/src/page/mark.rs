//! Marks: a shape and a word for each state, so that no meaning rests on colour. The shapes are symbols of one sprite
//! that stands at the top of every page.

use drydock_api::{Phase, State};
use maud::{Markup, PreEscaped, html};

const SPRITE: &str = include_str!("assets/icons.svg");

/// Returns the sprite that all icons of a page refer to.
pub(super) fn sprite() -> Markup {
    PreEscaped(SPRITE.trim_end().to_owned())
}

/// Returns an icon that says nothing a word beside it does not say.
pub(super) fn icon(name: &str) -> Markup {
    html! { svg.icon aria-hidden="true" focusable="false" { use href={ "#i-" (name) } {} } }
}

/// Returns the mark of a state: shape, word, and a tone on top.
pub(super) fn state(state: State) -> Markup {
    html! {
        span class={ "mark tone-" (tone(state)) } { (icon(state.name())) span { (word(state)) } }
    }
}

/// Returns the tone of a state.
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

/// Returns the word of a state as a label.
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

/// Returns the word of a phase as a label.
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

    /// Breaks when a state is shown without a shape.
    #[test]
    fn every_state_has_a_shape_of_its_own() {
        for state in State::ALL {
            assert!(SPRITE.contains(&format!("id=\"i-{}\"", state.name())), "{state}");
        }
    }
}
