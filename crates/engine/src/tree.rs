//! The strategy draft, which a strategizing agent writes to `.drydock/strategy.json`.
//!
//! The doc comments of the draft's types are the descriptions in `docs/strategy.schema.json`.

use std::collections::BTreeMap;

use drydock_domain::{CHOICES_MAX, Choice, MergeStrategy, OnFailure, check_tree, put_choice};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// The path of the draft in the worktree.
pub(crate) const DRAFT: &str = ".drydock/strategy.json";

/// A strategy as an agent drafts it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
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
    pub(crate) merge: Option<MergeStrategy>,
    /// What the failure of one means for the others.
    #[serde(default)]
    pub(crate) on_failure: Option<OnFailure>,
    /// How many are at work at the same time.
    #[serde(default)]
    pub(crate) max_parallel: Option<u32>,
}

/// A piece of work that a strategy wants done on its own.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubplanDraft {
    /// Its name.
    pub(crate) name: String,
    /// The task in words; either this or an action.
    #[serde(default)]
    pub(crate) task: Option<String>,
    /// The action to use; either this or a task.
    #[serde(default)]
    pub(crate) action: Option<String>,
    /// The action's arguments.
    #[serde(default)]
    pub(crate) arguments: BTreeMap<String, String>,
    /// On which project; else the parent's.
    #[serde(default)]
    pub(crate) project: Option<String>,
    /// With which agent.
    #[serde(default)]
    pub(crate) agent: Option<String>,
    /// After which others.
    #[serde(default)]
    pub(crate) after: Vec<String>,
    /// What it will touch.
    #[serde(default)]
    pub(crate) paths: Vec<String>,
    /// How often it may be tried.
    #[serde(default)]
    pub(crate) max_attempts: Option<u32>,
    /// How many seconds its agent may take.
    #[serde(default)]
    pub(crate) timeout_s: Option<u64>,
}

/// Parses a draft. An entry that cannot be carried out is refused, never skipped.
pub(crate) fn parse(text: &str) -> Result<StrategyDraft, String> {
    // Serde would accept a list as the values of an object in their order.
    if text.trim_start().starts_with('[') {
        return Err(wrong(".", "found a list, expected an object with `choices`"));
    }
    let draft: StrategyDraft =
        serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(text))
            .map_err(|error| wrong(&error.path().to_string(), &error.inner().to_string()))?;
    for (at, choice) in draft.choices.iter().enumerate() {
        let empty = |text: &String| text.trim().is_empty();
        if let Some(confidence) = choice.confidence.filter(|it| !(0.0..=1.0).contains(it)) {
            let seen = format!("found {confidence}, expected a number from 0 to 1");
            return Err(wrong(&format!("choices[{at}].confidence"), &seen));
        }
        for (key, text) in [("question", &choice.question), ("chosen", &choice.chosen)] {
            if empty(text) {
                return Err(wrong(
                    &format!("choices[{at}].{key}"),
                    "found an empty text, expected at least one word",
                ));
            }
        }
    }
    Ok(draft)
}

/// Merges the choices of a draft into those that messages recorded. For the same question, the draft wins.
pub(crate) fn join(mut recorded: Vec<Choice>, drafted: Vec<Choice>) -> Result<Vec<Choice>, String> {
    // Without recorded choices, the error can name the position in the draft.
    if recorded.is_empty()
        && let Some(tangle) = check_tree(&drafted)
    {
        return Err(wrong(&tangle.path(), &tangle.to_string()));
    }
    drafted.into_iter().for_each(|choice| put_choice(&mut recorded, choice));
    if let Some(tangle) = check_tree(&recorded) {
        return Err(wrong("choices", &tangle.to_string()));
    }
    if recorded.len() > CHOICES_MAX {
        let seen = format!("found {} choices, expected at most {CHOICES_MAX}", recorded.len());
        return Err(wrong("choices", &seen));
    }
    Ok(recorded)
}

/// Returns the JSON Schema of a draft.
pub fn strategy_schema() -> Value {
    let mut schema = schemars::schema_for!(StrategyDraft).to_value();
    schema["title"] = "Drydock strategy draft".into();
    schema["description"] = format!("The file {DRAFT} that an agent writes in Strategize.").into();
    schema
}

/// Returns an error text with the position, the value found, and where to find the schema.
fn wrong(path: &str, what: &str) -> String {
    let place = if path == "." { "at the top level".to_owned() } else { format!("at `{path}`") };
    // Serde names a number by its Rust type.
    let what = what.replace("expected f64", "expected a number from 0 to 1");
    format!("{DRAFT}, {place}: {what}; see `drydock schema strategy`")
}

#[cfg(test)]
mod tests {
    use super::{Choice, join, parse, strategy_schema};
    use serde_json::Value;

    const PUBLISHED: &str = include_str!("../../../docs/strategy.schema.json");

    /// Breaks when the draft changes and its published schema does not: `drydock schema strategy >
    /// docs/strategy.schema.json`.
    #[test]
    fn the_published_schema_is_that_of_the_code() {
        let published: Value = serde_json::from_str(PUBLISHED).unwrap();
        assert_eq!(published, strategy_schema());
    }

    /// Breaks when an error does not name the position in the draft, the value found or the expected one.
    #[test]
    fn a_wrong_draft_is_told_where_it_is_wrong() {
        for (draft, path, said) in [
            ("[]", "at the top level", "found a list, expected an object"),
            ("7", "at the top level", "integer `7`"),
            (r#"{"choices": 7}"#, "`choices`", "integer `7`, expected a sequence"),
            (r#"{"choices": [{"question": "q"}]}"#, "`choices[0]`", "missing field `chosen`"),
            (
                r#"{"choices": [{"question": "q", "chosen": ["a"]}]}"#,
                "`choices[0].chosen`",
                "expected a string",
            ),
            (
                r#"{"choices": [{"question": "q", "chosen": "a", "sure": 1}]}"#,
                "`choices[0].sure`",
                "expected one of",
            ),
            (
                r#"{"choices": [{"question": "q", "chosen": "a", "confidence": "high"}]}"#,
                "`choices[0].confidence`",
                "expected a number from 0 to 1",
            ),
            (
                r#"{"choices": [{"question": "q", "chosen": "a", "confidence": 7}]}"#,
                "`choices[0].confidence`",
                "found 7, expected",
            ),
            (r#"{"choices": [{"question": "q", "chosen": " "}]}"#, "`choices[0].chosen`", "empty"),
            (r#"{"choices": ["#, "`choices`", "EOF"),
            (
                r#"{"choices": [{"question": "q", "chosen": "a", "under": "z"}]}"#,
                "`choices[0].under`",
                "\"z\" is neither",
            ),
        ] {
            let told = parse(draft).and_then(|draft| join(Vec::new(), draft.choices)).unwrap_err();
            assert!(
                told.contains(path) && told.contains(said) && told.contains("drydock schema strategy"),
                "{draft}: {told}"
            );
        }
    }

    /// Breaks when a recorded choice is lost or duplicated, or when a draft's choice cannot refer to it.
    #[test]
    fn a_draft_is_put_to_what_was_recorded() {
        let choice = |question: &str, chosen: &str, under: Option<&str>| Choice {
            question: question.into(),
            chosen: chosen.into(),
            under: under.map(str::to_owned),
            ..Choice::default()
        };
        let recorded = vec![choice("a", "1", None), choice("b", "1", None)];
        let joined = join(recorded, vec![choice("b", "2", None), choice("c", "1", Some("a"))]).unwrap();
        let seen: Vec<_> = joined.iter().map(|one| (one.question.as_str(), one.chosen.as_str())).collect();
        assert_eq!(seen, [("a", "1"), ("b", "2"), ("c", "1")]);
        let many = (0..201).map(|number| choice(&number.to_string(), "1", None)).collect();
        assert!(join(Vec::new(), many).unwrap_err().contains("at most 200"));
    }
}
