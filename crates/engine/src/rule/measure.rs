//! The measure of a violated CEL rule: the first false comparison of a fact with a literal, among the
//! comparisons that must all be true. Any other expression has no measure; messages then show its text.

use cel::common::ast::{Expr, LiteralValue, operators};
use cel::{Context, IdedExpr, Value};
use drydock_domain::{Demand, Measure};
use serde_json::Value as Json;

/// Returns the measure of an expression that is false.
pub(super) fn measure(expression: &IdedExpr, context: &Context<'_, '_>) -> Option<Measure> {
    let Expr::Call(call) = &expression.expr else { return None };
    let [left, right] = call.args.as_slice() else { return None };
    if call.func_name == operators::LOGICAL_AND {
        return measure(left, context).or_else(|| measure(right, context));
    }
    let demand = demand(&call.func_name)?;
    if !matches!(context.resolve(expression), Ok(Value::Bool(false))) {
        return None;
    }
    let (fact, demand, operand, limit) = match (name(left), literal(right), literal(left), name(right)) {
        (Some(fact), Some(limit), _, _) => (fact, demand, left, limit),
        (_, _, Some(limit), Some(fact)) => (fact, demand.mirrored(), right, limit),
        _ => return None,
    };
    let value = scalar(&context.resolve(operand).ok()?)?;
    Some(Measure { fact, demand, value, limit })
}

fn demand(operator: &str) -> Option<Demand> {
    match operator {
        operators::LESS => Some(Demand::Below),
        operators::LESS_EQUALS => Some(Demand::AtMost),
        operators::GREATER => Some(Demand::Above),
        operators::GREATER_EQUALS => Some(Demand::AtLeast),
        operators::EQUALS => Some(Demand::Equal),
        operators::NOT_EQUALS => Some(Demand::NotEqual),
        _ => None,
    }
}

/// Returns the name of a fact, such as `diff.lines_changed`.
fn name(expression: &IdedExpr) -> Option<String> {
    match &expression.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => {
            name(&select.operand).map(|operand| format!("{operand}.{}", select.field))
        }
        _ => None,
    }
}

fn literal(expression: &IdedExpr) -> Option<Json> {
    let Expr::Literal(literal) = &expression.expr else { return None };
    match literal {
        LiteralValue::Boolean(value) => Some((*value.inner()).into()),
        LiteralValue::Double(value) => Some((*value.inner()).into()),
        LiteralValue::Int(value) => Some((*value.inner()).into()),
        LiteralValue::UInt(value) => Some((*value.inner()).into()),
        LiteralValue::String(value) => Some(value.inner().into()),
        LiteralValue::Bytes(_) | LiteralValue::Null => None,
    }
}

fn scalar(value: &Value) -> Option<Json> {
    match value {
        Value::Int(value) => Some((*value).into()),
        Value::UInt(value) => Some((*value).into()),
        Value::Float(value) => Some((*value).into()),
        Value::Bool(value) => Some((*value).into()),
        Value::String(value) => Some(value.as_str().into()),
        _ => None,
    }
}
