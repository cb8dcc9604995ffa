//! What the model does with a task: some calls of tools, one at a time, and then a sentence.
//!
//! Nothing is remembered between requests: a request carries its whole conversation, and how many results of tools are
//! in it says what comes next. So an agent that is started again is led through the same steps.

use serde_json::Value;

/// What a request that is not the task, such as for a title, is answered with.
const ASIDE: &str = "A small task";

/// The calls of a model and its last words.
#[derive(Debug, Clone)]
pub struct Script {
    calls: Vec<(String, Value)>,
    last: String,
    fails: Option<(usize, u16)>,
}

impl Script {
    /// Makes a script that says this and no more.
    pub fn saying(last: &str) -> Self {
        Self { calls: Vec::new(), last: last.to_owned(), fails: None }
    }

    /// Adds a call of a tool, by the name that the agent offers it under.
    pub fn calling(mut self, tool: &str, arguments: Value) -> Self {
        self.calls.push((tool.to_owned(), arguments));
        self
    }

    /// Makes it answer with this status once so many calls of tools were carried out, until the model is repaired.
    pub fn failing_after(mut self, calls: usize, status: u16) -> Self {
        self.fails = Some((calls, status));
        self
    }

    /// Returns the error status for this conversation, if it fails now. Requests without the tools, such as for a title, do not fail.
    pub(super) fn failure(&self, heard: &Heard) -> Option<u16> {
        let (calls, status) = self.fails?;
        let offered = self.calls.iter().any(|(tool, _)| heard.tools.contains(tool));
        (offered && heard.results >= calls).then_some(status)
    }

    /// Returns what comes next in this conversation.
    pub(super) fn next(&self, heard: &Heard) -> Turn {
        match self.calls.get(heard.results) {
            None if heard.results > 0 || self.calls.is_empty() => Turn::Say(self.last.clone()),
            Some((tool, arguments)) if heard.tools.contains(tool) => Turn::Call {
                // Ids differ within a conversation, as those of real models do.
                id: format!("call_{}", heard.results + 1),
                tool: tool.clone(),
                arguments: arguments.clone(),
            },
            None | Some(_) => Turn::Say(ASIDE.to_owned()),
        }
    }
}

/// Whether a script fails where it says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    Failing,
    Repaired,
}

/// What a request says, whatever its dialect.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// The names of the tools it offers.
    pub(super) tools: Vec<String>,
    /// How many results of tools are in its conversation.
    pub(super) results: usize,
}

impl Heard {
    /// Reads the names at `name` of each tool, and counts the results.
    pub(super) fn of(body: &Value, name: &str, results: usize) -> Self {
        let tools = body["tools"].as_array().into_iter().flatten();
        let names = tools.filter_map(|tool| tool.pointer(name)?.as_str().map(str::to_owned));
        Self { tools: names.collect(), results }
    }
}

/// One answer of the model.
#[derive(Debug)]
pub(super) enum Turn {
    Call { id: String, tool: String, arguments: Value },
    Say(String),
}
