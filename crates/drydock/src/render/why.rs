//! Why a plan is not moving, in sentences, and the available actions.

use drydock_api::Why;

use super::columns::{Cell, table};
use super::style::{STRONG, plain};

/// Returns why a plan is not moving and how to continue it.
pub(crate) fn why(why: &Why) -> String {
    let mut text = format!("{}\n", plain(&why.summary));
    for held in &why.holds {
        text.push_str(&format!("- {}\n", plain(held)));
    }
    if !why.can_act.is_empty() {
        text.push('\n');
        let rows = why
            .can_act
            .iter()
            .map(|way| [Cell::new(&way.who), Cell::styled(STRONG, &way.command), Cell::new(&way.does)]);
        text.push_str(&table(["ACTOR", "COMMAND", "EFFECT"], rows.collect()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::columns::bare;
    use drydock_api::CanAct;

    #[test]
    fn the_summary_comes_first_and_the_ways_on_last() {
        let held = Why {
            summary: "The plan waits.".into(),
            holds: vec!["Decision dec-1 is open.".into()],
            can_act: vec![CanAct { who: "you".into(), command: "drydock x".into(), does: "answers".into() }],
            ..Why::default()
        };
        assert_eq!(
            bare(&why(&held)),
            "The plan waits.\n- Decision dec-1 is open.\n\nACTOR  COMMAND    EFFECT\n\
             you    drydock x  answers\n"
        );
    }
}
