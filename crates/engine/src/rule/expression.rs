//! CEL expressions. They always terminate but have no cost limit, so nesting is capped when a rule is saved,
//! and each evaluation has a deadline. Any error blocks (INV-RULE): a rule never passes silently.

use std::time::Duration;

use cel::common::ast::{EntryExpr, Expr};
use cel::{Context, IdedExpr, Program, Value};
use drydock_domain::{InvariantCheck, Measure};
use serde::Serialize;

use super::measure::measure;
use super::schema::refuse_unknown;
use crate::task;

/// How deep comprehensions (`all`, `exists`, …) may be nested.
const NESTING_MAX: usize = 2;
/// The timeout of one evaluation.
const EVALUATION_MAX: Duration = Duration::from_secs(3);

/// Returns an error text if an expression cannot be a rule. Only a new rule is checked against the known
/// facts: a rule that an earlier version accepted is still read, and blocks when it is evaluated.
pub(crate) fn refuse_unusable(source: &str) -> Result<(), String> {
    refuse_unknown(usable(source)?.expression())
}

/// Parses an expression, or returns why it cannot be a rule.
fn usable(source: &str) -> Result<Program, String> {
    let program = compile(source)?;
    match nesting(program.expression()) {
        depth if depth > NESTING_MAX => Err(format!("it nests {depth} comprehensions, limit {NESTING_MAX}")),
        _ => Ok(program),
    }
}

fn compile(source: &str) -> Result<Program, String> {
    // The parser panics for some inputs; a rule must never crash the process.
    match std::panic::catch_unwind(|| Program::compile(source)) {
        Ok(Ok(program)) => Ok(program),
        Ok(Err(errors)) => Err(format!("it is not a CEL expression: {errors}")),
        Err(_) => Err("it is not a CEL expression".to_owned()),
    }
}

/// The result of a rule: the check, and the measure if the rule is violated.
pub(crate) type RuleResult = (InvariantCheck, Option<Measure>);

/// Evaluates a rule over facts, off the event loop and with a deadline.
pub(crate) async fn check<F: Serialize + Send + 'static>(source: String, facts: F) -> RuleResult {
    let evaluation = task::blocking(move || evaluate(&source, &facts));
    match tokio::time::timeout(EVALUATION_MAX, evaluation).await {
        Ok(judged) => judged,
        Err(_) => {
            (InvariantCheck::Unknown(format!("it took longer than {} s", EVALUATION_MAX.as_secs())), None)
        }
    }
}

fn evaluate<F: Serialize>(source: &str, facts: &F) -> RuleResult {
    let program = match usable(source) {
        Ok(program) => program,
        Err(reason) => return (InvariantCheck::Unknown(reason), None),
    };
    let context = match context(facts) {
        Ok(context) => context,
        Err(reason) => return (InvariantCheck::Unknown(reason), None),
    };
    let check = executed(source, &program, &context);
    // The evaluator panics for some errors; a panic here must not discard the result of the rule.
    let measured = || measure(program.expression(), &context);
    let measure = matches!(check, InvariantCheck::Violated(_))
        .then(|| std::panic::catch_unwind(std::panic::AssertUnwindSafe(measured)).ok().flatten());
    (check, measure.flatten())
}

fn executed(source: &str, program: &Program, context: &Context<'_, '_>) -> InvariantCheck {
    let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| program.execute(context)));
    match answer {
        Ok(Ok(Value::Bool(true))) => InvariantCheck::Held,
        Ok(Ok(Value::Bool(false))) => InvariantCheck::Violated(format!("{source} is false")),
        Ok(Ok(other)) => InvariantCheck::Unknown(format!("{source} returns {other:?}, not true or false")),
        Ok(Err(error)) => InvariantCheck::Unknown(format!("{source}: {error}")),
        Err(_) => InvariantCheck::Unknown(format!("{source} could not be evaluated")),
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

/// Returns how deep comprehensions are nested. Counts in the parsed expression, because the same expression
/// can be spelled in many ways. The recursion is as deep as the parser's.
fn nesting(expression: &IdedExpr) -> usize {
    let deepest = |parts: &[&IdedExpr]| parts.iter().map(|part| nesting(part)).max().unwrap_or(0);
    match &expression.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => 0,
        Expr::Select(select) => nesting(&select.operand),
        Expr::Call(call) => {
            call.target.as_deref().into_iter().chain(&call.args).map(nesting).max().unwrap_or(0)
        }
        Expr::List(list) => list.elements.iter().map(nesting).max().unwrap_or(0),
        Expr::Map(map) => map.entries.iter().map(|entry| entry_nesting(&entry.expr)).max().unwrap_or(0),
        Expr::Struct(of) => of.entries.iter().map(|entry| entry_nesting(&entry.expr)).max().unwrap_or(0),
        // The range, the initial value and the result are evaluated once, the other parts for each element.
        Expr::Comprehension(inner) => {
            let each = deepest(&[&inner.loop_cond, &inner.loop_step]);
            (each + 1).max(deepest(&[&inner.iter_range, &inner.accu_init, &inner.result]))
        }
    }
}

fn entry_nesting(entry: &EntryExpr) -> usize {
    match entry {
        EntryExpr::StructField(field) => nesting(&field.value),
        EntryExpr::MapEntry(entry) => nesting(&entry.key).max(nesting(&entry.value)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judged(source: &str) -> RuleResult {
        evaluate(
            source,
            &json!({ "phase": "apply", "diff": { "lines_changed": 7_i64, "paths": ["a.rs", "b.md"] } }),
        )
    }

    fn answer(source: &str) -> InvariantCheck {
        judged(source).0
    }

    /// Page B6: breaks when a rule that compares a fact with a literal blocks without the measured value.
    #[test]
    fn a_comparison_that_is_false_gives_value_and_limit() {
        for (source, said) in [
            ("diff.lines_changed < 3", "7 lines changed, limit 3"),
            ("3 >= diff.lines_changed", "7 lines changed, limit 3"),
            ("phase == 'execute'", "phase is \"apply\", \"execute\" required"),
            ("phase == 'apply' && diff.lines_changed > 9", "7 lines changed, more than 9 required"),
        ] {
            let (check, measure) = judged(source);
            assert!(matches!(check, InvariantCheck::Violated(_)), "{source}");
            assert_eq!(measure.map(|measure| measure.describe()).as_deref(), Some(said), "{source}");
        }
        for source in ["diff.paths.all(p, p == 'a.rs')", "diff.lines_changed < 3 || phase == 'x'", "!true"] {
            let (check, measure) = judged(source);
            assert!(matches!(check, InvariantCheck::Violated(_)) && measure.is_none(), "{source}");
        }
        assert_eq!(judged("diff.lines_changed < 9"), (InvariantCheck::Held, None));
    }

    #[test]
    fn a_rule_holds_is_violated_or_blocks_and_says_why() {
        assert_eq!(answer("diff.lines_changed < 10"), InvariantCheck::Held);
        assert_eq!(answer("diff.paths.all(p, p.endsWith('.rs') || p.endsWith('.md'))"), InvariantCheck::Held);
        assert!(matches!(answer("diff.lines_changed < 5"), InvariantCheck::Violated(_)));
        for source in ["diff.lines", "nothing > 1", "1 +", "'text'", "diff.lines_changed < 'a'", ""] {
            assert!(
                matches!(answer(source), InvariantCheck::Unknown(_)),
                "{source:?} gave {:?}",
                answer(source)
            );
        }
    }

    /// Breaks when the limit depends on spelling: a space, a quote in a text, or the position of the
    /// comprehension.
    #[test]
    fn deep_nesting_is_refused_however_it_is_written() {
        for refused in [
            "[1].all(a, [1].all(b, [1].all(c, a == b)))",
            "[1].all (a, [1].all (b, [1] . all (c, a == b)))",
            r"'\'' == '' || [1].all(a, [1].all(b, [1].all(c, a == b)))",
            "[1].map(a, [[1].filter(b, {'k': [1].exists(c, a == b)}['k'])]) == []",
        ] {
            let refusal = refuse_unusable(refused).expect_err(refused);
            assert!(refusal.contains("nests 3"), "{refused}: {refusal}");
        }
        for taken in [
            "[1].all(a, [1].all(b, a == b))",
            "'.all(.all(.all(' == ''",
            "[1].map(a, a).map(b, b).map(c, c).all(d, d == 1)",
        ] {
            assert_eq!(refuse_unusable(taken), Ok(()), "{taken}");
        }
    }
}
