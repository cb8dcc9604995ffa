//! The strategy draft: what a strategizing agent leaves in `.drydock/strategy.json`.

use drydock_domain::Choice;
use serde::Deserialize;

/// Where the draft is, from the root of the worktree.
pub(crate) const DRAFT: &str = ".drydock/strategy.json";

/// A strategy as an agent drafts it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StrategyDraft {
    /// What it chose.
    #[serde(default)]
    pub(crate) choices: Vec<Choice>,
    /// The pieces it wants done on their own.
    #[serde(default)]
    pub(crate) subplans: Vec<SubplanDraft>,
    /// How their results shall be merged.
    #[serde(default)]
    pub merge: Option<String>,
}

/// A piece of work that a strategy wants done on its own.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubplanDraft {
    /// Its name.
    pub(crate) name: String,
    /// The task in words, or
    #[serde(default)]
    pub task: Option<String>,
    /// an action.
    #[serde(default)]
    pub action: Option<String>,
    /// On which project; else the parent's.
    #[serde(default)]
    pub project: Option<String>,
    /// With which agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// After which others.
    #[serde(default)]
    pub after: Vec<String>,
    /// What it will touch.
    #[serde(default)]
    pub paths: Vec<String>,
}

/// Reads a draft; what cannot be carried out is refused, not passed over.
pub(crate) fn parse(text: &str) -> Result<StrategyDraft, String> {
    let draft: StrategyDraft = serde_json::from_str(text).map_err(|error| format!("{DRAFT}: {error}"))?;
    if let Some(confidence) =
        draft.choices.iter().filter_map(|choice| choice.confidence).find(|it| !(0.0..=1.0).contains(it))
    {
        return Err(format!("{DRAFT}: a confidence of {confidence} is not between 0 and 1"));
    }
    if let Some(subplan) = draft.subplans.first() {
        return Err(format!(
            "{DRAFT}: it asks for the subplan {:?}, and subplans are not built yet",
            subplan.name
        ));
    }
    Ok(draft)
}
