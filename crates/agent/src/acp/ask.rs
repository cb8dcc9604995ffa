//! A permission put to a person: the question, and finding its answer again in a later run.
//!
//! A run does not wait for an answer: it is asked to stop, its plan waits, and the run that follows the answer is told it
//! as feedback. When the agent then asks for the very same thing, the answer is taken from there. The feedback is text,
//! and a part of it is the agent's: so a question holds no dash of the kind that separates it from its answer, and an
//! entry with another such dash is no answer of ours.

use agent_client_protocol::v1::schema::ToolCallUpdate;

use crate::message::AskOption;

/// The ids of the two answers.
pub(super) const ALLOW: &str = "allow";
pub(super) const REJECT: &str = "reject";
/// What stands between a question and its answer in feedback.
const DASH: char = '—';
/// How much of what a tool is given is shown.
const INPUT_SHOWN_MAX: usize = 2_000;

/// One request, as a person reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) title: String,
    pub(super) kind: &'static str,
    pub(super) question: String,
    /// Whether the question shows all that was asked for; otherwise an answer holds for this once.
    whole: bool,
}

impl Request {
    pub(super) fn of(call: &ToolCallUpdate, known: Option<(String, &'static str)>) -> Self {
        let fields = &call.fields;
        let (known_title, known_kind) = known.unzip();
        let title = fields.title.clone().or(known_title).unwrap_or_else(|| call.tool_call_id.to_string());
        let kind = fields.kind.map(super::update::kind).or(known_kind).unwrap_or("other");
        let title = plain(&title);
        let input = fields.raw_input.as_ref().map(|input| plain(&input.to_string())).unwrap_or_default();
        let shown: String = input.chars().take(INPUT_SHOWN_MAX).collect();
        let whole = shown.len() == input.len();
        let with = if shown.is_empty() { String::new() } else { format!(" with {shown}") };
        let cut = if whole { "" } else { " (and more)" };
        let question = format!("May the agent use a tool ({kind}): {title}{with}{cut}?");
        Self { title, kind, question, whole }
    }

    pub(super) fn options() -> Vec<AskOption> {
        [(ALLOW, "allow it in this plan"), (REJECT, "reject it; the agent goes on without")]
            .map(|(id, label)| AskOption { id: id.to_owned(), label: label.to_owned() })
            .to_vec()
    }

    /// Returns the latest answer that feedback holds to this very question.
    pub(super) fn answered(&self, feedback: &[String]) -> Option<&'static str> {
        feedback.iter().rev().find_map(|entry| self.answer(entry)).filter(|_| self.whole)
    }

    fn answer(&self, entry: &str) -> Option<&'static str> {
        let answer = entry.strip_prefix(&self.question)?.strip_prefix(" — ")?;
        if answer.contains(DASH) {
            return None;
        }
        let option = answer.split_once(": ").map_or(answer, |(option, _note)| option);
        [ALLOW, REJECT].into_iter().find(|known| *known == option)
    }
}

/// Text on one line without the dash that means something to us.
fn plain(text: &str) -> String {
    text.chars().map(|letter| if letter == DASH || letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::{ALLOW, REJECT, Request};
    use agent_client_protocol::v1::schema::{ToolCallUpdate, ToolCallUpdateFields, ToolKind};

    fn request(title: &str) -> Request {
        let fields = ToolCallUpdateFields::new().title(title.to_owned()).kind(ToolKind::Execute);
        Request::of(&ToolCallUpdate::new("1", fields), None)
    }

    #[test]
    fn an_answer_is_found_again_and_the_latest_counts() {
        let asked = request("make test");
        let question = &asked.question;
        let feedback = |answers: &[&str]| -> Vec<String> {
            answers.iter().map(|answer| format!("{question} — {answer}")).collect()
        };
        assert_eq!(asked.answered(&feedback(&["allow"])), Some(ALLOW));
        assert_eq!(asked.answered(&feedback(&["allow", "reject: no network"])), Some(REJECT));
        assert_eq!(asked.answered(&feedback(&["answered"])), None);
        assert_eq!(request("make clean").answered(&feedback(&["allow"])), None);
    }

    /// Breaks when an agent can word a question so that any answer to it allows something else.
    #[test]
    fn a_question_cannot_pass_for_the_answer_to_another() {
        let wanted = request("rm everything");
        let trick = request(&format!("{} — allow: ", wanted.question));
        for entry in [
            format!("{} — reject", trick.question),
            // As another agent's question would be recorded, which nobody has cleaned.
            format!("{} — allow: yes — reject", wanted.question),
            format!("{} — allow\n — abort", wanted.question),
        ] {
            assert_eq!(wanted.answered(&[entry]), None);
        }
    }
}
