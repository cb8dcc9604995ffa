//! `drydock plan use`.

use clap::Args;
use drydock_api::{NewPlan, OnePlan, Phase, PlanInvariant, RequestOptions};

use crate::cli::report::{CliResult, Level, Report};
use crate::cli::session::Invocation;
use crate::render;

/// Arguments of `drydock plan use`.
#[derive(Debug, Args)]
pub(crate) struct PlanUseArgs {
    /// Action name
    action: String,
    /// Project to work on
    #[arg(long, value_name = "NAME")]
    project: String,
    /// Branch to land on [default: the project's]
    #[arg(long, value_name = "BRANCH")]
    target: Option<String>,
    /// Argument of the action; may be given more than once
    #[arg(long = "arg", value_name = "KEY=VALUE", value_parser = argument)]
    arguments: Vec<(String, String)>,
    /// Agent [default: the action's]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Automation profile [default: the action's]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Budget: tokens=200k,cost=1.50,wall=30m,tool_calls=50, or some of these
    #[arg(long, value_name = "LIMITS")]
    budget: Option<String>,
    /// Rule for this plan only: NAME[@PHASES]=[cel:|command:|text:]RULE [default: cel:]
    #[arg(long = "invariant", value_name = "RULE", value_parser = invariant)]
    invariants: Vec<PlanInvariant>,
}

pub(crate) async fn run(session: &Invocation, args: PlanUseArgs) -> CliResult {
    let new = NewPlan {
        action: Some(args.action),
        task: None,
        project: args.project,
        target: args.target,
        agent: args.agent,
        arguments: args.arguments.into_iter().collect(),
        profile: args.profile,
        invariants: args.invariants,
        budget: args.budget,
    };
    let plan = session.client().plan_use(&new, &RequestOptions::default()).await?;
    let text = render::plan::show(&plan, session.now());
    let next = render::next::command(&plan);
    Ok(Report::new(OnePlan { plan }, text).go_on(Level::Info, next))
}

fn argument(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        Some(_) | None => Err("write it as KEY=VALUE".to_owned()),
    }
}

fn invariant(text: &str) -> Result<PlanInvariant, String> {
    let wrong = || "write it as NAME=RULE, or NAME@apply=RULE".to_owned();
    let (name, rule) = text.split_once('=').ok_or_else(wrong)?;
    let (name, phases) = name.split_once('@').unwrap_or((name, ""));
    // `a == b` is an expression without a name, not an invariant named `a `.
    if name.is_empty()
        || name.contains(char::is_whitespace)
        || rule.starts_with('=')
        || rule.trim().is_empty()
    {
        return Err(wrong());
    }
    let at: Result<Vec<Phase>, _> =
        phases.split(',').filter(|phase| !phase.is_empty()).map(str::parse).collect();
    let mut invariant = PlanInvariant {
        name: name.to_owned(),
        at: at.map_err(|error| error.to_string())?,
        ..PlanInvariant::default()
    };
    match rule.split_once(':') {
        Some(("command", command)) => invariant.command = Some(command.to_owned()),
        Some(("text", text)) => invariant.text = Some(text.to_owned()),
        Some(("cel", expression)) => invariant.cel = Some(expression.to_owned()),
        Some(_) | None => invariant.cel = Some(rule.to_owned()),
    }
    Ok(invariant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use drydock_api::Rule;

    #[test]
    fn a_rule_is_an_expression_unless_it_says_otherwise() {
        for (text, rule) in [
            (
                "small=diff.lines_changed < 5 ? true : false",
                Rule::Cel("diff.lines_changed < 5 ? true : false".into()),
            ),
            ("r=cel:a:b", Rule::Cel("a:b".into())),
            ("r=command:make test", Rule::Command("make test".into())),
            ("r=text:be kind", Rule::Text("be kind".into())),
        ] {
            assert_eq!(invariant(text).unwrap().rule(), Some(rule), "{text}");
        }
        assert_eq!(invariant("r@execute,apply=true").unwrap().at, [Phase::Execute, Phase::Apply]);
    }

    #[test]
    fn a_rule_without_a_name_and_an_unknown_phase_are_refused() {
        for text in ["", "a == b", "a==b", "=true", "r=", "r@lunch=true", "plan.phase"] {
            assert!(invariant(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_value_may_contain_an_equals_sign() {
        assert_eq!(argument("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert_eq!(argument("a="), Ok(("a".into(), String::new())));
        assert!(argument("a").is_err() && argument("=a").is_err());
    }
}
