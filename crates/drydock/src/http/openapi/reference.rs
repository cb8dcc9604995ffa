//! The description as an HTML page without scripts or external resources.

use std::fmt::Write;
use std::sync::OnceLock;

use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::Value;

use super::document::document;
use crate::http::router::ROOT;

const STYLE: &str = include_str!("reference.css");

pub(in crate::http) fn routes() -> Router {
    Router::new().route("/reference", get(page)).route("/reference.css", get(style))
}

async fn page() -> Response {
    static PAGE: OnceLock<String> = OnceLock::new();
    let page = PAGE.get_or_init(|| rendered(&document()));
    ([(CONTENT_TYPE, "text/html; charset=utf-8")], page.as_str()).into_response()
}

async fn style() -> Response {
    ([(CONTENT_TYPE, "text/css; charset=utf-8"), (CACHE_CONTROL, "no-cache")], STYLE).into_response()
}

fn rendered(document: &Value) -> String {
    let mut page = String::from(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Drydock: reference</title><link rel=\"stylesheet\" href=\"/reference.css\"></head><body><main>\
         <h1>Drydock: reference</h1>",
    );
    for part in text(&document["info"]["description"]).split("\n\n") {
        add(&mut page, &format!("<p>{}</p>", marked(part)));
    }
    add(&mut page, &format!("<p>For programs: <a href=\"{ROOT}/openapi.json\">openapi.json</a></p>"));
    for (path, methods) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            section(&mut page, path, method, operation);
        }
    }
    add(&mut page, "<h2 id=\"codes\">Error codes</h2><dl>");
    for (status, response) in document["components"]["responses"].as_object().into_iter().flatten() {
        add(&mut page, &format!("<dt>{status}</dt><dd>{}</dd>", marked(text(&response["description"]))));
    }
    add(&mut page, "</dl><h2>Shapes</h2>");
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        add(&mut page, &format!("<h3 id=\"schema-{name}\">{name}</h3>"));
        fields(&mut page, schema);
    }
    page + "</main></body></html>\n"
}

fn section(page: &mut String, path: &str, method: &str, operation: &Value) {
    let id = text(&operation["operationId"]);
    let roles: Vec<_> = operation["x-drydock-roles"].as_array().into_iter().flatten().map(text).collect();
    add(
        page,
        &format!(
            "<section id=\"{id}\"><h2><span class=\"method\">{}</span> <code>{}</code></h2><p>{}</p><p class=\"roles\">roles: {}</p>",
            method.to_uppercase(),
            escaped(path),
            marked(text(&operation["summary"])),
            roles.join(", ")
        ),
    );
    let parameters: Vec<_> = operation["parameters"].as_array().into_iter().flatten().collect();
    if !parameters.is_empty() {
        add(page, "<table><thead><tr><th>parameter</th><th>in</th><th>what</th></tr></thead><tbody>");
        for one in parameters {
            let row = [text(&one["name"]), text(&one["in"]), text(&one["description"])];
            let row = row.map(|cell| format!("<td>{}</td>", marked(cell)));
            add(page, &format!("<tr>{}</tr>", row.concat()));
        }
        add(page, "</tbody></table>");
    }
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    if body["properties"].is_object() {
        add(page, "<h3>sent</h3>");
        fields(page, body);
    }
    let answer = &operation["responses"]["200"]["content"]["application/json"]["schema"];
    if let Some(name) = answer["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
        add(page, &format!("<p>returns <a href=\"#schema-{name}\">{name}</a></p>"));
    }
    add(page, "</section>");
}

fn fields(page: &mut String, schema: &Value) {
    let Some(fields) = schema["properties"].as_object() else {
        add(page, &format!("<p>{}</p>", marked(text(&schema["description"]))));
        return;
    };
    add(page, "<table><thead><tr><th>field</th><th>type</th><th>what</th></tr></thead><tbody>");
    let required = schema["required"].as_array();
    for (name, field) in fields {
        let must = required.is_some_and(|names| names.iter().any(|one| one == name));
        let mark = if must { "" } else { " <small>optional</small>" };
        let what = marked(text(&field["description"]));
        add(
            page,
            &format!(
                "<tr><td><code>{}</code>{mark}</td><td>{}</td><td>{what}</td></tr>",
                escaped(name),
                kind(field)
            ),
        );
    }
    add(page, "</tbody></table>");
}

/// Returns a short name for the type of a field.
fn kind(field: &Value) -> String {
    if let Some(name) = field["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
        return format!("<a href=\"#schema-{name}\">{name}</a>");
    }
    if let Some(any) = field["anyOf"].as_array().or(field["oneOf"].as_array()) {
        return any.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    if field["items"].is_object() {
        return format!("list of {}", kind(&field["items"]));
    }
    if let Some(word) = field["const"].as_str() {
        return format!("<code>{}</code>", escaped(word));
    }
    match &field["type"] {
        Value::Array(types) => types.iter().map(text).collect::<Vec<_>>().join(" or "),
        one => text(one).to_owned(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn add(page: &mut String, text: &str) {
    page.write_str(text).expect("writing to a String cannot fail");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Escapes a text and renders the marks for code and strong text.
fn marked(text: &str) -> String {
    let between = |text: &str, mark: &str, tag: &str| {
        let parts = text.split(mark).enumerate();
        let parts = parts
            .map(|(at, part)| if at % 2 == 1 { format!("<{tag}>{part}</{tag}>") } else { part.to_owned() });
        parts.collect::<String>()
    };
    between(&between(&escaped(text), "`", "code"), "**", "strong")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks if the page lacks a route or a code, or contains anything that could run.
    #[test]
    fn the_page_has_every_route_and_nothing_that_runs() {
        let (document, page) = (document(), rendered(&document()));
        for path in document["paths"].as_object().unwrap().keys() {
            assert!(page.contains(&escaped(path)), "{path}");
        }
        for code in drydock_api::Code::ALL.iter().filter(|code| code.status() != 499) {
            assert!(page.contains(&format!("<code>{code}</code>")), "{code}");
        }
        for foreign in ["<script", "style=", "http://", "https://", " on"] {
            let found = page
                .match_indices(foreign)
                .find(|(at, _)| foreign != " on" || page[*at..].starts_with(" onl"));
            assert!(found.is_none() || foreign == " on", "{foreign}");
        }
        assert_eq!(marked("a `<b>` **c**"), "a <code>&lt;b&gt;</code> <strong>c</strong>");
    }
}
