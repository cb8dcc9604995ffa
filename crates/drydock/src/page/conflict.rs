//! A conflict between the result of a subplan and the results joined before it: both sides of each place.

use drydock_domain::counted;
use maud::{Markup, html};
use serde_json::Value;

/// Returns the files that conflict, with both sides of each place.
pub(super) fn files(details: &Value) -> Markup {
    let name = details["subplan"].as_str().unwrap_or("the subplan");
    html! {
        @if let Some(plan) = details["plan"].as_str() {
            p { a href={ "/plans/" (plan) "/diff" } { "Show all changes of " (name) } }
        }
        @for file in list(&details["files"]) {
            div.clash {
                p { code { (text(file, "path")) } " " span.hint { (kind(text(file, "kind"))) } }
                @for hunk in list(&file["hunks"]) { (sides(hunk, name)) }
                @if let Some(more) = file["left_out"].as_u64().filter(|more| *more > 0) {
                    p.hint { "and " (counted(more, "more place")) }
                }
            }
        }
    }
}

fn sides(hunk: &Value, name: &str) -> Markup {
    let line = hunk["line"].as_u64().unwrap_or_default();
    let side = |title: &str, code: &str| {
        html! {
            div { p.hint { (title) }
                @if code.is_empty() { p.none { "Nothing" } }
                @else { pre tabindex="0" aria-label=(format!("Line {line}, {title}")) { (code) } }
            }
        }
    };
    html! {
        div.clash-sides {
            (side(&format!("Joined so far, line {line}"), text(hunk, "parent")))
            (side(&format!("From {name}"), text(hunk, "child")))
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// Returns the kind of a conflict in words.
fn kind(kind: &str) -> String {
    match kind {
        "content" => "both changed these lines".to_owned(),
        "add_add" => "both created this file".to_owned(),
        other => other.replace('_', " "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Breaks if a side of a conflict is missing, is rendered as markup, or an omission is not mentioned.
    #[test]
    fn both_sides_of_each_place_are_shown_as_text() {
        let hunk = json!({ "line": 7, "parent": "<b>one</b>\n", "child": "" });
        let file = json!({ "path": "src/a.rs", "kind": "content", "hunks": [hunk], "left_out": 3 });
        let shown = files(&json!({ "subplan": "parser", "files": [file] })).into_string();
        for said in ["src/a.rs", "line 7", "&lt;b&gt;one", "From parser", "Nothing", "and 3 more places"] {
            assert!(shown.contains(said), "{said} is missing in {shown}");
        }
    }
}
