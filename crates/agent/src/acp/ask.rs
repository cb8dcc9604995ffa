//! A permission request to a person: the question, and the lookup of its answer in a later run.
//!
//! A run does not wait for an answer: it is stopped and its plan waits. The run that follows the answer
//! receives people's permissions as data. If the agent makes exactly the same request again, the answer is
//! taken from there. The text sent to the agent is not used for this.

use agent_client_protocol::v1::schema::ToolCallUpdate;

use crate::signal::PermissionAsked;
use crate::task::Permits;

/// Maximum length of a tool's input in the question.
const INPUT_SHOWN_MAX: usize = 2_000;
/// Maximum length of a request that is kept for comparison; an answer to a longer request never matches.
const MATCH_MAX: usize = 64 * 1024;

/// One request, in a form readable for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PermissionQuestion {
    pub(super) title: String,
    pub(super) kind: &'static str,
    question: String,
    /// The request for comparison, including the parts that are not shown to the person.
    matches: String,
    /// Whether `matches` contains the complete request.
    whole: bool,
}

impl PermissionQuestion {
    pub(super) fn of(call: &ToolCallUpdate, known: Option<(String, &'static str)>) -> Self {
        let fields = &call.fields;
        let (known_title, known_kind) = known.unzip();
        let title = fields.title.clone().or(known_title).unwrap_or_else(|| call.tool_call_id.to_string());
        let kind = fields.kind.map(super::update::kind).or(known_kind).unwrap_or("other");
        let input = fields.raw_input.as_ref().map(ToString::to_string).unwrap_or_default();
        let mut matches = serde_json::json!([title, input]).to_string();
        let whole = matches.len() <= MATCH_MAX;
        matches.truncate(matches.floor_char_boundary(MATCH_MAX));
        let (title, input) = (plain(&title), plain(&input));
        let shown: String = input.chars().take(INPUT_SHOWN_MAX).collect();
        let cut = if shown.len() == input.len() { "" } else { " (and more)" };
        let with = if shown.is_empty() { String::new() } else { format!(" with {shown}") };
        let question = format!("May the agent use a tool ({kind}): {title}{with}{cut}?");
        Self { title, kind, question, matches, whole }
    }

    pub(super) fn asked(&self) -> PermissionAsked {
        PermissionAsked {
            tool: self.kind.to_owned(),
            matches: self.matches.clone(),
            question: self.question.clone(),
        }
    }

    /// Returns the answer to exactly this request, if a person gave one.
    pub(super) fn answer(&self, permitted: &Permits) -> Option<bool> {
        if self.whole { permitted.answer(self.kind, &self.matches) } else { None }
    }
}

/// Returns text on one line.
fn plain(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::{MATCH_MAX, PermissionQuestion};
    use crate::task::{Permits, Permitted};
    use agent_client_protocol::v1::schema::{ToolCallUpdate, ToolCallUpdateFields, ToolKind};

    fn request(title: &str, input: &str) -> PermissionQuestion {
        let input = serde_json::json!({ "command": input });
        let fields =
            ToolCallUpdateFields::new().title(title.to_owned()).kind(ToolKind::Execute).raw_input(input);
        PermissionQuestion::of(&ToolCallUpdate::new("1", fields), None)
    }

    fn permitted(request: &PermissionQuestion, allowed: bool, once: bool) -> Permitted {
        let asked = request.asked();
        Permitted { tool: asked.tool, matches: asked.matches, allowed, once }
    }

    #[test]
    fn the_latest_answer_counts_and_one_for_once_is_used_up() {
        let asked = request("make", "test");
        let known = Permits::from_iter([permitted(&asked, false, false), permitted(&asked, true, true)]);
        let of_next_start = known.clone();
        assert_eq!(asked.answer(&known), Some(true));
        assert_eq!(asked.answer(&of_next_start), Some(false));
        assert_eq!(asked.answer(&known), Some(false), "an answer for the plan stays");
        assert_eq!(request("make", "clean").answer(&known), None);
    }

    /// code 8.1: breaks when an answer covers more than was asked, such as an input whose end was not shown.
    #[test]
    fn an_answer_holds_for_the_whole_of_what_was_asked() {
        let long = "x".repeat(5_000);
        let asked = request("write", &long);
        let known = Permits::from_iter([permitted(&asked, true, false)]);
        assert_eq!(asked.answer(&known), Some(true));
        assert_eq!(request("write", &format!("{long}; rm")).answer(&known), None);
        let other = PermissionQuestion { kind: "read", ..asked };
        assert_eq!(other.answer(&known), None);
        // For a request that is too long only a part is kept, which is not enough for a comparison.
        let endless = request("write", &"x".repeat(MATCH_MAX));
        assert_eq!(endless.answer(&Permits::from_iter([permitted(&endless, true, false)])), None);
    }
}
