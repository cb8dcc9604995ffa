//! The script of the model: some tool calls, one at a time, and then a sentence.
//!
//! The model has no state. A request carries its whole conversation, and the number of tool results in it determines
//! the next step. So an agent that is restarted goes through the same steps.

use serde_json::Value;

/// The answer to a request that is not the task, such as for a title.
const ASIDE: &str = "A small task";

/// The tool calls of a model and its last sentence.
#[derive(Debug, Clone)]
pub struct Script {
    calls: Vec<(String, Value)>,
    last: String,
    fails: Option<(usize, u16)>,
}

impl Script {
    /// Returns a script that only says this sentence.
    pub fn saying(last: &str) -> Self {
        Self { calls: Vec::new(), last: last.to_owned(), fails: None }
    }

    /// Adds a tool call, by the name under which the agent offers the tool.
    pub fn calling(mut self, tool: &str, arguments: Value) -> Self {
        self.calls.push((tool.to_owned(), arguments));
        self
    }

    /// Makes the model answer with this status after so many tool calls, until it is repaired.
    pub fn failing_after(mut self, calls: usize, status: u16) -> Self {
        self.fails = Some((calls, status));
        self
    }

    /// Returns the error status for this conversation, if it fails now. Requests without the tools, such as for a
    /// title, do not fail.
    pub(super) fn failure(&self, heard: &ModelQuery) -> Option<u16> {
        let (calls, status) = self.fails?;
        let offered = self.calls.iter().any(|(tool, _)| heard.tools.contains(tool));
        (offered && heard.results >= calls).then_some(status)
    }

    /// Returns the next step of this conversation.
    pub(super) fn next(&self, heard: &ModelQuery) -> ModelStep {
        match self.calls.get(heard.results) {
            None if heard.results > 0 || self.calls.is_empty() => ModelStep::Say(self.last.clone()),
            Some((tool, arguments)) if heard.tools.contains(tool) => ModelStep::Call {
                // Ids are unique within a conversation, as those of real models are.
                id: format!("call_{}", heard.results + 1),
                tool: tool.clone(),
                arguments: arguments.clone(),
            },
            None | Some(_) => ModelStep::Say(ASIDE.to_owned()),
        }
    }
}

/// Whether a script's failure is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    Failing,
    Repaired,
}

/// The content of a request, independent of the API.
#[derive(Debug, Default)]
pub(super) struct ModelQuery {
    /// The names of the tools it offers.
    pub(super) tools: Vec<String>,
    /// The number of tool results in its conversation.
    pub(super) results: usize,
}

impl ModelQuery {
    /// Reads the field `name` of each tool, with the number of results.
    pub(super) fn of(body: &Value, name: &str, results: usize) -> Self {
        let tools = body["tools"].as_array().into_iter().flatten();
        let names = tools.filter_map(|tool| tool.pointer(name)?.as_str().map(str::to_owned));
        Self { tools: names.collect(), results }
    }
}

/// One answer of the model.
#[derive(Debug)]
pub(super) enum ModelStep {
    Call { id: String, tool: String, arguments: Value },
    Say(String),
}
