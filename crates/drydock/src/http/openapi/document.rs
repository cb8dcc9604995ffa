//! The OpenAPI document, built once.

use std::sync::OnceLock;

use axum::body::Bytes;
use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use drydock_api::{Code, LogPage, Problem};
use drydock_domain::{PlanId, RunId, TokenRole};
use schemars::generate::{Contract, SchemaSettings};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::operations::{LOG, Operation, all};
use crate::http::rights::{may, right};
use crate::http::router::ROOT;

/// The error statuses of every request, and those of requests that change something.
const ALWAYS: &[u16] = &[400, 401, 403, 404, 405, 409, 422, 500, 503];
const CHANGING: &[u16] = &[408, 412, 413, 423, 429];

/// Answers with the document.
pub(in crate::http) async fn answer() -> Response {
    static DOCUMENT: OnceLock<Bytes> = OnceLock::new();
    let document = DOCUMENT.get_or_init(|| Bytes::from(document().to_string()));
    ([(CONTENT_TYPE, "application/json")], document.clone()).into_response()
}

pub(super) fn document() -> Value {
    let mut answers = generator(Contract::Serialize, Refer::ByName);
    let mut asked = generator(Contract::Deserialize, Refer::Inline);
    let mut paths = Map::new();
    for operation in all() {
        let told = describe(&operation, &mut answers, &mut asked);
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method.as_str().to_lowercase()] = told;
    }
    let problem = answers.subschema_for::<Problem>();
    let schemas = answers.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Drydock",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "A control plane for coding agents",
            "description": ABOUT,
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": ROOT }],
        "security": [{ "bearer": [] }, { "cookie": [], "page": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer", "description": "The secret printed by `drydock token create`." },
                "cookie": { "type": "apiKey", "in": "cookie", "name": "drydock-7717",
                    "description": "Set by the link that `drydock serve` or `drydock token link` prints; its name contains the server's port. \
                        It is not enough alone: requests also need `X-Drydock-Page`, and changes the page's Origin." },
                "page": { "type": "apiKey", "in": "header", "name": "X-Drydock-Page",
                    "description": "The other half of the session, stored in the browser by the page that the link opens." },
            },
            "schemas": schemas,
            "responses": refusals(&problem),
        },
    })
}

const ABOUT: &str = "The functions of the command line, over HTTP. Ids may be shortened to a unique prefix.\n\n\
    **Pages.** A list has `next`: if it is not null, pass it as `after` to get the next page.\n\n\
    **Idempotency.** Requests that change something accept an `Idempotency-Key`; a request repeated with the same key \
    within a day gets the same response and has no further effect.\n\n\
    **Revisions.** With `If-Match: REVISION`, a change to a plan is refused if the plan has another revision.\n\n\
    **Errors** are `application/problem+json` with a stable `code`.";

/// How a nested type is described.
enum Refer {
    ByName,
    Inline,
}

fn generator(contract: Contract, refer: Refer) -> SchemaGenerator {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    settings.contract = contract;
    settings.inline_subschemas = matches!(refer, Refer::Inline);
    settings.into_generator()
}

fn describe(operation: &Operation, answers: &mut SchemaGenerator, asked: &mut SchemaGenerator) -> Value {
    let changes = operation.method != Method::GET;
    let right = right(&operation.method, &format!("{ROOT}{}", operation.path));
    let roles: Vec<_> =
        roles().iter().filter(|role| may(role, right, Some(OWN))).map(TokenRole::name).collect();
    let mut told = json!({
        "operationId": name(operation),
        "summary": operation.summary,
        "tags": [operation.path.split('/').nth(1).unwrap_or_default()],
        "x-drydock-roles": roles,
        "parameters": parameters(operation, asked),
        "responses": responses(operation, answers),
    });
    if let Some(body) = operation.body {
        let schema = body(asked);
        // A body without required fields may be left out.
        let required = schema.get("required").is_some();
        told["requestBody"] =
            json!({ "required": required, "content": { "application/json": { "schema": schema } } });
    } else if changes && operation.method == Method::POST {
        told["requestBody"] = json!({ "required": false, "content": { "application/json": { "schema": { "type": "object", "maxProperties": 0 } } } });
    }
    told
}

/// The plan of an agent's token, to find out what such a token may do.
const OWN: &str = "pln-0000000000000000";

fn roles() -> [TokenRole; 4] {
    let (plan, run) = (PlanId::from_random(0), RunId::from_random(0));
    [TokenRole::Human, TokenRole::Operator, TokenRole::Reader, TokenRole::Agent { plan, run }]
}

fn name(operation: &Operation) -> String {
    let words = operation.path.split(['/', '.']).filter(|word| !word.is_empty());
    let words = words.map(|word| word.trim_matches(['{', '}']));
    let mut name = operation.method.as_str().to_lowercase();
    words.for_each(|word| name = format!("{name}_{word}"));
    name
}

fn parameters(operation: &Operation, asked: &mut SchemaGenerator) -> Vec<Value> {
    let mut found = Vec::new();
    let named = operation.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    for name in named {
        let schema = match name {
            "number" => json!({ "type": "integer", "minimum": 1 }),
            _ => json!({ "type": "string", "minLength": 1 }),
        };
        found.push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
    }
    if let Some(query) = operation.query {
        found.extend(query_parameters(&query(asked)));
    }
    if operation.method != Method::GET {
        let schema = json!({ "type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$" });
        found.push(json!({ "name": "Idempotency-Key", "in": "header", "schema": schema,
            "description": "A key chosen by the client for this request; a repeated request with the same key has no further effect." }));
    }
    if operation.moves_plan {
        found.push(json!({ "name": "If-Match", "in": "header", "schema": { "type": "string", "pattern": "^\"?[0-9]{1,18}\"?$" },
            "description": "The expected revision of the plan; if it differs, the response is 412 `stale_revision`." }));
    }
    if operation.path == LOG {
        found.push(json!({ "name": "Last-Event-ID", "in": "header", "schema": { "type": "string", "pattern": "^[0-9]{1,18}(@run-[0-9a-z]+)?$" },
            "description": "For a stream: the `id` of the last line received, which is the offset after it, with the run if the URL does not name one; overrides `offset`." }));
    }
    if operation.path == "/events" {
        found.push(json!({ "name": "Last-Event-ID", "in": "header", "schema": { "type": "string", "pattern": "^[0-9]{1,18}$" },
            "description": "For a stream: the `id` of the last event received; overrides `after`." }));
    }
    found
}

fn query_parameters(schema: &Schema) -> Vec<Value> {
    let empty = Map::new();
    let fields = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let parameter = |(name, field): (&String, &Value)| {
        let mut field = field.clone();
        let description = field.as_object_mut().and_then(|field| field.remove("description"));
        json!({ "name": name, "in": "query", "required": required.contains(&json!(name)),
            "description": description, "schema": present(field) })
    };
    fields.iter().map(parameter).collect()
}

/// Removes null from the type: a query has no null, it leaves the parameter out.
fn present(mut schema: Value) -> Value {
    if let Some(types) = schema.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|one| one != "null");
    }
    let real = schema
        .get("anyOf")
        .and_then(Value::as_array)
        .and_then(|any| any.iter().find(|one| one.get("type") != Some(&json!("null"))).cloned());
    let mut schema = real.unwrap_or(schema);
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("default");
    }
    schema
}

fn responses(operation: &Operation, answers: &mut SchemaGenerator) -> Value {
    let schema = (operation.answer)(answers);
    let mut content = json!({ "application/json": { "schema": schema } });
    if operation.path == "/events" {
        content["text/event-stream"] = json!({ "schema": { "type": "string" } });
    }
    let mut answer = json!({ "description": "Success.", "content": content });
    if operation.path == LOG {
        answer["content"] = json!({
            LogPage::MEDIA_TYPE: { "schema": { "type": "string", "description": "One JSON object per line: `at`, `stream`, \
                `text`, and `dropped` where lines are missing." } },
            "text/event-stream": { "schema": { "type": "string" } },
        });
        answer["headers"] = json!({
            "X-Next-Offset": { "schema": { "type": "integer" }, "description": "The offset to continue from." },
            "X-Run": { "schema": { "type": "string" }, "description": "The run of the log." },
            "X-Run-Over": { "schema": { "type": "string" }, "description": "`true` if the run has ended and its log was read to the end." },
        });
    }
    let mut all = json!({ "200": answer });
    let changing = if operation.method == Method::GET { &[][..] } else { CHANGING };
    for status in ALWAYS.iter().chain(changing) {
        all[status.to_string()] = json!({ "$ref": format!("#/components/responses/{status}") });
    }
    all
}

/// Returns a response for each status that a code is sent with, with its codes.
fn refusals(problem: &Schema) -> Value {
    let mut all = json!({});
    for status in ALWAYS.iter().chain(CHANGING) {
        let codes = Code::ALL.iter().filter(|code| code.status() == *status);
        let said: Vec<_> = codes.map(|code| format!("`{code}`: {}", code.title())).collect();
        all[status.to_string()] = json!({
            "description": said.join("; "),
            "content": { Problem::MEDIA_TYPE: { "schema": problem } },
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::rights::tests::routes;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    /// Breaks if a route is not described, or a described route does not exist.
    #[test]
    fn every_route_is_described_and_no_other() {
        let described: BTreeSet<_> = all().iter().map(|one| (one.method.to_string(), one.path)).collect();
        let there: BTreeSet<_> = routes().map(|(method, path)| (method.to_string(), path)).collect();
        assert_eq!(described, there);
    }

    /// Breaks if a code is sent with a status that the document does not list.
    #[test]
    fn every_code_is_an_answer_that_is_described() {
        // Codes with this status only end commands and are never sent as an answer.
        let never = [499];
        for code in Code::ALL.iter().filter(|code| !never.contains(&code.status())) {
            assert!([ALWAYS, CHANGING].concat().contains(&code.status()), "{code} is {}", code.status());
        }
    }

    /// Breaks if docs/openapi.json differs from the served document. `DRYDOCK_WRITE_DOCS=1 cargo test` regenerates
    /// it.
    #[test]
    fn the_document_in_docs_is_the_one_that_is_served() {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        let made = serde_json::to_string_pretty(&document()).unwrap() + "\n";
        if std::env::var_os("DRYDOCK_WRITE_DOCS").is_some() {
            fs::write(&kept, &made).unwrap();
        }
        let kept = fs::read_to_string(kept).unwrap_or_default();
        assert!(kept == made, "run `DRYDOCK_WRITE_DOCS=1 cargo test -p drydock openapi` and review the diff");
    }
}
