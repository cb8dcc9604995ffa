//! The facts that a rule can refer to, by name. They are derived from the type that is bound when a rule is evaluated,
//! so the check of a new rule, the lists in help and documents, and the evaluation all use the same facts.

use cel::common::ast::{EntryExpr, Expr, LiteralValue, operators};
use cel::{Context, IdedExpr};
use drydock_domain::edits;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::facts::Facts;

/// The language's namespaces for functions: `optional.of(1)`.
const NAMESPACES: [&str; 1] = ["optional"];

/// A fact that a rule can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFact {
    /// The name in a rule, such as `diff.lines_changed`.
    pub name: String,
    /// The type, such as `integer`.
    pub kind: String,
    /// The description.
    pub about: String,
}

/// Returns all facts, in the order in which they are defined.
pub fn rule_facts() -> Vec<RuleFact> {
    let mut all = Vec::new();
    collect(&schema(), "", &mut all);
    all
}

fn schema() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.into_generator().into_root_schema_for::<Facts>().to_value()
}

fn collect(record: &Value, prefix: &str, all: &mut Vec<RuleFact>) {
    for (name, field) in record["properties"].as_object().into_iter().flatten() {
        let name = format!("{prefix}{name}");
        if field["properties"].is_object() {
            collect(field, &format!("{name}."), all);
            continue;
        }
        let about = field["description"].as_str().unwrap_or_default();
        let about = about.split_whitespace().collect::<Vec<_>>().join(" ");
        all.push(RuleFact { name, kind: kind(field), about });
    }
}

fn kind(field: &Value) -> String {
    match field["type"].as_str() {
        Some("array") => format!("list of {}s", kind(&field["items"])),
        Some("object") => format!("map of {}s", kind(&field["additionalProperties"])),
        Some(other) => other.to_owned(),
        None => "value".to_owned(),
    }
}

/// Refuses an expression with an unknown fact; the error names it and the most similar known fact.
pub(super) fn refuse_unknown(expression: &IdedExpr) -> Result<(), String> {
    let schema = schema();
    let walk = Walk { schema: &schema, builtin: Context::default() };
    walk.whole(expression, &[]).map_err(|unknown| {
        let facts = rule_facts();
        let known = facts.iter().map(|fact| fact.name.as_str());
        match known.min_by_key(|name| edits(&unknown, name)) {
            Some(near) => format!("unknown fact `{unknown}`; the nearest is `{near}`"),
            None => format!("unknown fact `{unknown}`"),
        }
    })
}

/// The meaning of a part of an expression.
enum ExpressionPart<'s> {
    /// A fact, or a record of facts.
    Fact(String, &'s Value),
    Other,
}

struct Walk<'s> {
    schema: &'s Value,
    builtin: Context<'static, 'static>,
}

impl<'s> Walk<'s> {
    /// Checks an expression in which these variables are bound; the error is the name of an unknown fact.
    fn whole(&self, expression: &IdedExpr, bound: &[&str]) -> Result<(), String> {
        self.part(expression, bound).map(drop)
    }

    fn part(&self, expression: &IdedExpr, bound: &[&str]) -> Result<ExpressionPart<'s>, String> {
        match &expression.expr {
            Expr::Unspecified | Expr::Literal(_) => {}
            Expr::Ident(name) if bound.contains(&name.as_str()) => {}
            Expr::Ident(name) => return self.variable(name, expression),
            Expr::Select(select) => return field(self.part(&select.operand, bound)?, &select.field),
            Expr::Call(call) => {
                if let (operators::INDEX, [record, key]) = (call.func_name.as_str(), call.args.as_slice()) {
                    let record = self.part(record, bound)?;
                    return match &key.expr {
                        Expr::Literal(LiteralValue::String(key)) => field(record, key.inner()),
                        _ => self.whole(key, bound).map(|()| ExpressionPart::Other),
                    };
                }
                let target = call.target.as_deref().filter(|target| !is_namespace(target));
                for part in target.into_iter().chain(&call.args) {
                    self.whole(part, bound)?;
                }
            }
            Expr::List(list) => list.elements.iter().try_for_each(|element| self.whole(element, bound))?,
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| self.entry(&entry.expr, bound))?,
            Expr::Struct(of) => of.entries.iter().try_for_each(|entry| self.entry(&entry.expr, bound))?,
            Expr::Comprehension(inner) => {
                self.whole(&inner.iter_range, bound)?;
                self.whole(&inner.accu_init, bound)?;
                let own = [Some(&inner.iter_var), inner.iter_var2.as_ref(), Some(&inner.accu_var)];
                let own = own.into_iter().flatten().map(String::as_str);
                let bound: Vec<&str> = bound.iter().copied().chain(own).collect();
                for part in [&inner.loop_cond, &inner.loop_step, &inner.result] {
                    self.whole(part, &bound)?;
                }
            }
        }
        Ok(ExpressionPart::Other)
    }

    fn variable(&self, name: &str, expression: &IdedExpr) -> Result<ExpressionPart<'s>, String> {
        match self.schema["properties"].get(name) {
            Some(fact) => Ok(ExpressionPart::Fact(name.to_owned(), fact)),
            // The names of types are part of the language.
            None if self.builtin.resolve(expression).is_ok() => Ok(ExpressionPart::Other),
            None => Err(name.to_owned()),
        }
    }

    fn entry(&self, entry: &EntryExpr, bound: &[&str]) -> Result<(), String> {
        match entry {
            EntryExpr::StructField(field) => self.whole(&field.value, bound),
            EntryExpr::MapEntry(entry) => {
                self.whole(&entry.key, bound)?;
                self.whole(&entry.value, bound)
            }
        }
    }
}

/// Returns a field of a part. A record has only its own fields; a map may have any.
fn field<'s>(of: ExpressionPart<'s>, name: &str) -> Result<ExpressionPart<'s>, String> {
    let ExpressionPart::Fact(path, fact) = of else { return Ok(ExpressionPart::Other) };
    let path = format!("{path}.{name}");
    match fact["properties"].get(name) {
        Some(field) => Ok(ExpressionPart::Fact(path, field)),
        None if fact["additionalProperties"].is_object() => Ok(ExpressionPart::Other),
        None => Err(path),
    }
}

fn is_namespace(target: &IdedExpr) -> bool {
    matches!(&target.expr, Expr::Ident(name) if NAMESPACES.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use cel::Program;

    use super::super::facts::Facts;
    use super::*;

    fn refusal(source: &str) -> Option<String> {
        refuse_unknown(Program::compile(source).expect(source).expression()).err()
    }

    /// Page B9: breaks when a rule that can never be evaluated is accepted, or when the error does not name
    /// the similar fact.
    #[test]
    fn a_fact_that_there_is_not_is_named_with_the_nearest() {
        for (source, unknown, near) in [
            ("diff.nope < 1", "diff.nope", "diff.files"),
            ("diff.lines_chnged < 1", "diff.lines_chnged", "diff.lines_changed"),
            ("dif.lines_changed < 1", "dif", "diff.files"),
            ("true || plan.tasks == ''", "plan.tasks", "plan.task"),
            ("has(diff.file)", "diff.file", "diff.files"),
            ("diff['paths_'].size() == 0", "diff.paths_", "diff.paths"),
            ("diff.paths.all(p, q == p)", "q", "args"),
            ("diff.paths.all(p, p == '') && p == ''", "p", "args"),
            ("[1].map(x, {'a': phas})[0] == {}", "phas", "phase"),
            ("phase.name == 'apply'", "phase.name", "plan.task"),
        ] {
            let said = refusal(source).unwrap_or_else(|| panic!("{source} was taken"));
            assert!(said.contains(&format!("unknown fact `{unknown}`;")), "{source}: {said}");
            // The suggestion is only checked if the unknown name is at most two edits away.
            if edits(unknown, near) <= 2 {
                assert!(said.ends_with(&format!("`{near}`")), "{source}: {said}");
            }
        }
    }

    /// Breaks when a rule that can be evaluated is refused.
    #[test]
    fn whatever_can_be_evaluated_is_taken() {
        for source in [
            "diff.lines_changed < 500",
            "diff.paths.all(p, p.endsWith('.rs') || p.endsWith('.md'))",
            "changed_paths.exists(p, changed_paths.filter(q, q != p).size() > 0)",
            "args.anything == 'x' || arguments['any thing'] == 'y' || has(args.z)",
            "diff['files'] == 1 && plan.target == project.target && project.name != plan.id",
            "type(diff.files) == int",
            "optional.of(diff.files).orValue(1) == 1",
            "phase in ['execute', 'apply'] ? size(plan.task) > 0 : plan.runs + plan.reversions < 9",
            "{'a': diff.binary_files}['a'] == 0",
            "matches(plan.action, '^fix') && string(diff.files) != '' && !false",
        ] {
            assert_eq!(refusal(source), None, "{source}");
        }
    }

    /// Breaks when the list differs from the facts that are bound, or a fact has no description.
    #[test]
    fn the_list_is_what_a_rule_sees() {
        fn names(value: &Value, prefix: &str, all: &mut Vec<String>) {
            for (name, value) in value.as_object().unwrap() {
                match value {
                    // `args` is an empty object here: each plan has its own arguments.
                    Value::Object(fields) if !fields.is_empty() => {
                        names(value, &format!("{prefix}{name}."), all);
                    }
                    _ => all.push(format!("{prefix}{name}")),
                }
            }
        }
        let mut bound = Vec::new();
        names(&serde_json::to_value(Facts::sample()).unwrap(), "", &mut bound);
        let facts = rule_facts();
        let mut listed: Vec<_> = facts.iter().map(|fact| fact.name.clone()).collect();
        bound.sort();
        listed.sort();
        assert_eq!(listed, bound);
        for fact in facts {
            assert!(fact.about.len() > 5 && fact.kind != "value", "{fact:?}");
        }
    }

    /// Breaks when docs/actions.md lacks a fact. `DRYDOCK_WRITE_DOCS=1 cargo test -p drydock-engine` writes its table.
    #[test]
    fn the_documented_facts_are_these() {
        let kept = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/actions.md");
        let text = std::fs::read_to_string(&kept).unwrap();
        let head = "| fact | type | meaning |\n|---|---|---|\n";
        let row = |fact: &RuleFact| format!("| `{}` | {} | {} |\n", fact.name, fact.kind, fact.about);
        let table = head.to_owned() + &rule_facts().iter().map(row).collect::<String>();
        let (before, rest) = text.split_once(head).expect("the page has the table");
        let after = rest.find("\n\n").map_or("", |at| &rest[at + 1..]);
        let made = format!("{before}{table}{after}");
        if std::env::var_os("DRYDOCK_WRITE_DOCS").is_some() {
            std::fs::write(&kept, &made).unwrap();
        }
        assert_eq!(std::fs::read_to_string(kept).unwrap(), made);
    }
}
