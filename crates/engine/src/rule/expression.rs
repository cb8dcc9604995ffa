//! CEL expressions. They always end but have no cost limit of their own, so nesting is capped when a rule is saved
//! and each evaluation has a deadline. Any error means blocked (INV-RULE): a rule never passes silently.

use std::time::Duration;

use cel::{Context, Program, Value};
use drydock_domain::Check;
use serde::Serialize;

use crate::task;

/// How many comprehensions (`all`, `exists`, …) may be nested in each other.
const NESTING_MAX: usize = 2;
/// How long one evaluation may take.
const EVALUATION_MAX: Duration = Duration::from_secs(3);
const COMPREHENSIONS: [&str; 5] = [".all(", ".exists(", ".exists_one(", ".map(", ".filter("];

/// Says why an expression cannot be a rule, if it cannot.
pub(crate) fn refuse_unusable(source: &str) -> Result<(), String> {
    let depth = nesting(source);
    if depth > NESTING_MAX {
        return Err(format!("it nests {depth} comprehensions, and {NESTING_MAX} are the limit"));
    }
    compile(source).map(|_| ())
}

fn compile(source: &str) -> Result<Program, String> {
    // The parser reports through a panic for some inputs; a rule must never take the process down.
    match std::panic::catch_unwind(|| Program::compile(source)) {
        Ok(Ok(program)) => Ok(program),
        Ok(Err(errors)) => Err(format!("it is not a CEL expression: {errors}")),
        Err(_) => Err("it is not a CEL expression".to_owned()),
    }
}

/// Evaluates a rule over facts, off the event loop and under a deadline.
pub(crate) async fn check<F: Serialize + Send + 'static>(source: String, facts: F) -> Check {
    let evaluation = task::blocking(move || evaluate(&source, &facts));
    match tokio::time::timeout(EVALUATION_MAX, evaluation).await {
        Ok(check) => check,
        Err(_) => Check::Unknown(format!("it took longer than {} s", EVALUATION_MAX.as_secs())),
    }
}

fn evaluate<F: Serialize>(source: &str, facts: &F) -> Check {
    let program = match refuse_unusable(source).and_then(|()| compile(source)) {
        Ok(program) => program,
        Err(reason) => return Check::Unknown(reason),
    };
    let context = match context(facts) {
        Ok(context) => context,
        Err(reason) => return Check::Unknown(reason),
    };
    let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| program.execute(&context)));
    match answer {
        Ok(Ok(Value::Bool(true))) => Check::Held,
        Ok(Ok(Value::Bool(false))) => Check::Violated(format!("{source} is false")),
        Ok(Ok(other)) => Check::Unknown(format!("{source} gives {other:?}, not true or false")),
        Ok(Err(error)) => Check::Unknown(format!("{source}: {error}")),
        Err(_) => Check::Unknown(format!("{source} could not be evaluated")),
    }
}

/// Binds each field of the facts as a variable.
fn context<F: Serialize>(facts: &F) -> Result<Context<'static, 'static>, String> {
    let fields = match cel::to_value(facts) {
        Ok(Value::Map(map)) => map,
        Ok(_) => return Err("the facts are not a record".to_owned()),
        Err(error) => return Err(format!("the facts could not be bound: {error}")),
    };
    let mut context = Context::default();
    for (key, value) in fields.map.iter() {
        context.add_variable_from_value(key.to_string(), value.clone());
    }
    Ok(context)
}

/// Returns how deep comprehensions are nested, counting within their parentheses. Text in quotes is passed over.
fn nesting(source: &str) -> usize {
    let (mut stack, mut deepest, mut quote) = (Vec::new(), 0, None);
    for (at, character) in source.char_indices() {
        match (quote, character) {
            (Some(open), close) if open == close => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(character),
            (None, '(') => {
                let upto = &source[..=at];
                stack.push(COMPREHENSIONS.iter().any(|name| upto.ends_with(name)));
                deepest = deepest.max(stack.iter().filter(|comprehension| **comprehension).count());
            }
            (None, ')') => {
                stack.pop();
            }
            (None, _) => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(source: &str) -> Check {
        evaluate(
            source,
            &json!({ "phase": "apply", "diff": { "lines_changed": 7_i64, "paths": ["a.rs", "b.md"] } }),
        )
    }

    #[test]
    fn a_rule_holds_is_violated_or_blocks_and_says_why() {
        assert_eq!(answer("diff.lines_changed < 10"), Check::Held);
        assert_eq!(answer("diff.paths.all(p, p.endsWith('.rs') || p.endsWith('.md'))"), Check::Held);
        assert!(matches!(answer("diff.lines_changed < 5"), Check::Violated(_)));
        for source in ["diff.lines", "nothing > 1", "1 +", "'text'", "diff.lines_changed < 'a'", ""] {
            assert!(matches!(answer(source), Check::Unknown(_)), "{source:?} gave {:?}", answer(source));
        }
    }

    #[test]
    fn deep_nesting_is_refused_when_the_rule_is_saved() {
        assert!(refuse_unusable("[1].all(a, [1].all(b, a == b))").is_ok());
        assert!(refuse_unusable("[1].all(a, [1].all(b, [1].all(c, a == b)))").is_err());
        assert!(refuse_unusable("'.all(.all(.all(' == ''").is_ok());
    }
}
