//! The explanation of a plan, in sentences.

use drydock_api::{Answered, Explanation, NumberedChoice, Refused, Said};
use jiff::Timestamp;

use super::style::{STRONG, paint, plain, short};
use super::time::ago;

/// How many characters of a reason are shown; the output of a validation may be long.
const REASON_CHARS_MAX: usize = 300;

/// Returns the explanation of a plan, or of the requested choice.
pub(crate) fn explain(explanation: &Explanation, now: Timestamp) -> String {
    match &explanation.about {
        Some(number) => one(explanation, number),
        None => whole(explanation, now),
    }
}

fn whole(explanation: &Explanation, now: Timestamp) -> String {
    let mut text = format!(
        "{} ({}/{}): {}\n",
        paint(STRONG, &explanation.plan),
        explanation.phase,
        explanation.state,
        plain(&explanation.task)
    );
    if let Some(done) = &explanation.definition_of_done {
        text.push_str(&format!("Done when: {}\n", plain(done)));
    }
    text.push_str(&format!("Strategy: {}.\n", plain(&explanation.strategy)));
    explanation.choices.iter().for_each(|choice| text.push_str(&sentence(choice)));
    part(&mut text, "Choices made later by its agents", explanation.later.iter().map(in_words).collect());
    let said = |said: &Said| format!("“{}” ({})", plain(&said.text), ago(&said.at, now));
    part(&mut text, "Guidance", explanation.guidance.iter().map(said).collect());
    let answered = |one: &Answered| answer(one, now);
    part(&mut text, "Answered questions", explanation.answers.iter().map(answered).collect());
    let refused = |one: &Refused| refusal(one, now);
    part(&mut text, "Rejections of its work", explanation.refused.iter().map(refused).collect());
    part(&mut text, "Reverted to strategize because", explanation.reversions.iter().map(said).collect());
    text
}

fn one(explanation: &Explanation, number: &str) -> String {
    let depth = |number: &str| number.matches('.').count();
    let mut text = String::new();
    for choice in &explanation.choices {
        let heading = match choice.number.as_str() {
            same if same == number => "",
            above if depth(above) < depth(number) => "follows from ",
            _ => "leads to ",
        };
        text.push_str(&format!("{heading}{}. {}\n", choice.number, in_words(choice)));
    }
    text
}

fn part(text: &mut String, heading: &str, lines: Vec<String>) {
    if !lines.is_empty() {
        text.push_str(&format!("\n{heading}:\n"));
        lines.iter().for_each(|line| text.push_str(&format!("- {line}\n")));
    }
}

fn sentence(choice: &NumberedChoice) -> String {
    let indent = "   ".repeat(choice.number.matches('.').count());
    format!("{indent}{}. {}\n", choice.number, in_words(choice))
}

/// Returns the choice, its confidence, the alternatives and the reason.
fn in_words(choice: &NumberedChoice) -> String {
    let sure = choice.confidence.map(|sure| format!(", {:.0} % sure", sure * 100.0)).unwrap_or_default();
    let over = match choice.alternatives.as_slice() {
        [] => "; no alternatives".to_owned(),
        others => format!("; not chosen: {}", plain(&others.join(", "))),
    };
    let why = match &choice.rationale {
        Some(rationale) => format!(" Because {}", plain(rationale)),
        None => " No reason was given.".to_owned(),
    };
    // Numbers already show what a choice follows from.
    let under = choice.under.as_deref().filter(|_| choice.number.is_empty());
    let under = under.map(|under| format!(" (under “{}”)", plain(under))).unwrap_or_default();
    let (question, chosen) = (plain(&choice.question), paint(STRONG, &choice.chosen));
    format!("{question}{under} Chosen: {chosen}{sure}{over}.{why}")
}

fn answer(one: &Answered, now: Timestamp) -> String {
    let note = one.note.as_deref().map(|note| format!(": “{}”", plain(note))).unwrap_or_default();
    let question = short(&one.question, REASON_CHARS_MAX);
    let (question, option, by) = (plain(&question), plain(&one.option), plain(&one.by));
    format!("{question} {by} answered {option}{note} ({})", ago(&one.at, now))
}

fn refusal(one: &Refused, now: Timestamp) -> String {
    let of = one.proposal.map(|number| format!(", proposal {number}")).unwrap_or_default();
    let reason = short(&one.reason, REASON_CHARS_MAX);
    format!("{}{of}: {} ({})", plain(&one.by), plain(&reason), ago(&one.at, now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::columns::bare;
    use drydock_api::{Phase, State};

    fn choice(number: &str, question: &str) -> NumberedChoice {
        NumberedChoice {
            number: number.into(),
            question: question.into(),
            chosen: "a".into(),
            ..NumberedChoice::default()
        }
    }

    fn explained() -> Explanation {
        let first = NumberedChoice {
            alternatives: vec!["b".into(), "c".into()],
            rationale: Some("it is small".into()),
            confidence: Some(0.8),
            ..choice("1", "Which?")
        };
        Explanation {
            plan: "pln-1".into(),
            phase: Phase::Execute,
            state: State::Queued,
            task: "Fix it".into(),
            definition_of_done: Some("it works".into()),
            strategy: "ada planned it with 2 choices".into(),
            about: None,
            choices: vec![first, choice("1.1", "How?")],
            later: vec![],
            guidance: vec![Said { at: "2026-01-01T00:00:00Z".into(), text: "be kind".into() }],
            answers: vec![],
            reversions: vec![],
            refused: vec![Refused {
                at: "2026-01-01T00:00:00Z".into(),
                by: "reviewer critic".into(),
                proposal: Some(2),
                reason: "no tests".into(),
                ..Refused::default()
            }],
        }
    }

    #[test]
    fn all_of_it_is_said_and_nothing_empty_is() {
        let now = "2026-01-01T00:00:10Z".parse().unwrap();
        assert_eq!(
            bare(&explain(&explained(), now)),
            "pln-1 (execute/queued): Fix it\nDone when: it works\n\
             Strategy: ada planned it with 2 choices.\n\
             1. Which? Chosen: a, 80 % sure; not chosen: b, c. Because it is small\n   \
             1.1. How? Chosen: a; no alternatives. No reason was given.\n\n\
             Guidance:\n- “be kind” (10 s ago)\n\n\
             Rejections of its work:\n- reviewer critic, proposal 2: no tests (10 s ago)\n"
        );
        let about = Explanation { about: Some("1.1".into()), ..explained() };
        let text = bare(&explain(&about, now));
        assert!(text.starts_with("follows from 1. Which?") && text.contains("\n1.1. How?"), "{text}");
    }
}
