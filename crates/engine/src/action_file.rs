//! Parses action files (TOML). An unknown key is an error that names its line.

use std::collections::BTreeMap;

use drydock_domain::{
    Action, ActionArgument, Invariant, InvariantScope, Name, Phase, PlanAgents, RawBudget, ReviewerSpec,
    Rule, Timestamp, Validation,
};
use serde::Deserialize;

use crate::rule::refuse_unusable;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ActionFileError(String);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAction {
    name: Name,
    description: String,
    #[serde(default)]
    definition_of_done: Option<String>,
    #[serde(default)]
    profile: Option<String>,
    #[serde(default)]
    allow_empty: bool,
    #[serde(default)]
    budget: RawBudget,
    #[serde(default)]
    arguments: BTreeMap<Name, ActionArgument>,
    #[serde(default)]
    agents: PlanAgents,
    #[serde(default)]
    reviewers: Vec<ReviewerSpec>,
    #[serde(default)]
    validations: Vec<Validation>,
    #[serde(default)]
    invariants: Vec<RawInvariant>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawInvariant {
    name: Name,
    #[serde(default)]
    cel: Option<String>,
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    at: Option<Vec<Phase>>,
}

pub(crate) fn parse(text: &str, now: Timestamp) -> Result<Action, ActionFileError> {
    let refuse = |text: String| ActionFileError(text);
    refuse_nul(text).map_err(refuse)?;
    let file: RawAction =
        toml::from_str(text).map_err(|error| refuse(error.to_string().trim_end().to_owned()))?;
    let mut agents = file.agents;
    agents.reviewers.extend(file.reviewers);
    let scope = InvariantScope::Action(file.name.clone());
    let mut invariants = Vec::new();
    for rule in file.invariants {
        if invariants.iter().any(|known: &Invariant| known.name == rule.name) {
            return Err(refuse(format!("invariant {} is defined twice in the file", rule.name)));
        }
        invariants.push(invariant(rule, scope.clone()).map_err(refuse)?);
    }
    render_check(&file.description, "description").map_err(refuse)?;
    if let Some(done) = &file.definition_of_done {
        render_check(done, "definition_of_done").map_err(refuse)?;
    }
    Ok(Action {
        name: file.name,
        description: file.description,
        definition_of_done: file.definition_of_done,
        profile: file.profile,
        arguments: file.arguments,
        agents,
        validations: file.validations,
        invariants,
        allow_empty: file.allow_empty,
        budget: file.budget.read().map_err(|error| refuse(error.to_string()))?,
        created_at: now,
    })
}

/// Refuses the NUL character. It cannot be passed to a program, and not every store can hold it, so every run
/// would fail.
fn refuse_nul(text: &str) -> Result<(), String> {
    fn within(value: &toml::Value) -> bool {
        match value {
            toml::Value::String(text) => text.contains('\0'),
            toml::Value::Array(values) => values.iter().any(within),
            toml::Value::Table(fields) => {
                fields.iter().any(|(name, value)| name.contains('\0') || within(value))
            }
            toml::Value::Integer(_)
            | toml::Value::Float(_)
            | toml::Value::Boolean(_)
            | toml::Value::Datetime(_) => false,
        }
    }
    // The caller's typed parse reports syntax errors, with the line.
    let Ok(file) = text.parse::<toml::Table>() else { return Ok(()) };
    match file.iter().find(|(name, value)| name.contains('\0') || within(value)) {
        Some((name, _)) => {
            Err(format!("{name:?} contains the character NUL (\\u0000), which cannot be stored"))
        }
        None => Ok(()),
    }
}

fn invariant(rule: RawInvariant, scope: InvariantScope) -> Result<Invariant, String> {
    let name = rule.name;
    let parsed = rule_of(&name, rule.cel, rule.command, rule.text)?;
    Ok(Invariant {
        name,
        scope,
        rule: parsed,
        // Without a phase, the rule is enforced in every phase: a rule that is never enforced would pass
        // silently.
        at: rule.at.filter(|at| !at.is_empty()).unwrap_or_else(|| Phase::ALL.to_vec()),
        locked: false,
    })
}

/// Returns the one rule that is given, or an error text.
pub(crate) fn rule_of(
    name: &Name,
    cel: Option<String>,
    command: Option<String>,
    text: Option<String>,
) -> Result<Rule, String> {
    match (cel, command, text) {
        (Some(source), None, None) => match refuse_unusable(&source) {
            Ok(()) => Ok(Rule::Cel(source)),
            Err(reason) => Err(format!("invariant {name}: {reason}")),
        },
        (None, Some(command), None) if !command.trim().is_empty() => Ok(Rule::Command(command)),
        (None, None, Some(text)) if !text.trim().is_empty() => Ok(Rule::Text(text)),
        (_, _, _) => Err(format!(
            "invariant {name} needs exactly one of cel, command and text, and it must not be \
                         empty"
        )),
    }
}

fn render_check(template: &str, key: &str) -> Result<(), String> {
    minijinja::Environment::new()
        .template_from_str(template)
        .map(|_| ())
        .map_err(|error| format!("{key} is not a valid template: {error}"))
}

/// Renders a template over arguments. A name without an argument is an error, not an empty text.
pub(crate) fn render(template: &str, arguments: &BTreeMap<String, String>) -> Result<String, String> {
    let mut environment = minijinja::Environment::new();
    environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    environment.render_str(template, arguments).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Timestamp = Timestamp::from_micros(1);

    #[test]
    fn an_unknown_key_is_named_with_its_line() {
        let error =
            parse("name = \"fix\"\ndescription = \"x\"\ndefinition_of_dome = \"y\"\n", AT).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("definition_of_dome") && text.contains("line 3"), "{text}");
    }

    /// Breaks when an action is stored whose text makes every run fail.
    #[test]
    fn the_character_nul_is_refused_wherever_it_stands() {
        for with in [
            "description = \"a\\u0000b\"",
            "description = 'd'\n[[validations]]\nname = 'v'\ncommand = \"a\\u0000\"",
        ] {
            let text = parse(&format!("name = 'fix'\n{with}\n"), AT).unwrap_err().to_string();
            assert!(text.contains("NUL"), "{text}");
        }
        // In single quotes, TOML reads a backslash and letters.
        assert!(parse("name = 'fix'\ndescription = 'a\\u0000b'\n", AT).is_ok());
    }

    #[test]
    fn a_rule_is_exactly_one_of_three() {
        let with =
            |rule: &str| parse(&format!("name='a'\ndescription='b'\n[[invariants]]\nname='r'\n{rule}"), AT);
        assert!(with("cel = 'true'").is_ok());
        assert!(with("").is_err());
        assert!(with("cel = 'true'\ntext = 'x'").is_err());
        assert!(with("cel = '1 +'").is_err());
    }

    #[test]
    fn a_budget_is_read_and_a_wrong_one_is_named() {
        let with = |budget: &str| parse(&format!("name='a'\ndescription='b'\n[budget]\n{budget}"), AT);
        let read = with("tokens = 5000\ncost = '1.50'\nwall = '30m'").unwrap().budget;
        assert_eq!(read.to_string(), "tokens=5000,cost=1.50,wall=30m");
        for (wrong, said) in
            [("tokens = 0", "tokens=0"), ("patience = 1", "patience"), ("cost = 1.5", "a string such as")]
        {
            let error = with(wrong).unwrap_err().to_string();
            assert!(error.contains(said), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_template_with_an_unknown_name_is_refused_when_rendered() {
        let arguments = BTreeMap::from([("what".to_owned(), "it".to_owned())]);
        assert_eq!(render("Fix {{ what }}", &arguments), Ok("Fix it".to_owned()));
        assert!(render("Fix {{ whom }}", &arguments).is_err());
    }
}
