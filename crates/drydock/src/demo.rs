//! `demo`: shows whole plans in a scratch repository, through the same client, router, store, git and agents as every
//! command. An invariant blocks one plan and another one lands. The demo removes everything it created.

use std::collections::BTreeMap;
use std::path::Path;
use std::pin::pin;

use drydock_agent::AgentSpec;
use drydock_api::{
    Client, ClientError, Code, EventQuery, NewAction, NewPlan, NewProject, Plan, PlanMove, Problem,
    RequestOptions,
};
use drydock_domain::error_chain;
use drydock_engine::EngineError;
use serde_json::{Value, json};

use crate::cli::{Backend, Interrupts};
use crate::config::{Config, StoreLocation};
use crate::embedded::Embedded;

const GREET: &str = r#"
name = "greet"
description = "Add a greeting for {{ who }}"
definition_of_done = "greetings.txt greets {{ who }}"
[arguments.who]
required = true
[agents]
execute = "writer"
[[validations]]
name = "greets"
command = "grep -q Hello greetings.txt"
"#;

const SWEEP: &str = r#"
name = "sweep"
description = "Delete every file that looks unused"
[agents]
execute = "sweeper"
[[invariants]]
name = "keep-the-licence"
cel = "diff.paths.all(p, p != 'LICENSE')"
at = ["apply"]
"#;

const WRITER: &str = r#"
[[steps]]
message = { drydock = "choice", question = "Where does the greeting go?", chosen = "greetings.txt" }
[[steps]]
write = { path = "greetings.txt", content = "Hello, world!\n" }
"#;

/// The result of the demo.
pub(crate) struct DemoResult {
    pub(crate) data: Value,
}

/// Runs the demo and prints it line by line.
pub(crate) async fn run(say: &mut dyn FnMut(String)) -> Result<DemoResult, Box<Problem>> {
    let mut interrupts = Interrupts::listen()?;
    let world = tempfile::Builder::new().prefix("drydock-demo-").tempdir().map_err(|error| {
        Box::new(
            Problem::new(Code::Internal, format!("could not create a directory for the demo: {error}"))
                .hint("set TMPDIR to another directory"),
        )
    })?;
    let repo = world.path().join("repository");
    make_repository(&repo)?;
    let config = config(world.path())?;
    let backend = Embedded::open(&StoreLocation::Default(world.path().join("drydock.db")), config).await?;
    let mut story = pin!(story(&backend, &repo, say));
    let interrupt = tokio::select! {
        shown = &mut story => {
            backend.shutdown().await;
            return shown;
        }
        interrupt = interrupts.next() => interrupt,
    };
    // Poll the demo until it has stopped, so that nothing writes any more when its directory is removed.
    let stopped = async { tokio::join!(backend.shutdown(), story) };
    drop(interrupts.wind_up(interrupt, stopped).await);
    Err(interrupt.problem(None))
}

async fn story(
    backend: &Embedded,
    repo: &Path,
    say: &mut dyn FnMut(String),
) -> Result<DemoResult, Box<Problem>> {
    let client = Client::new(backend.transport());
    let project = NewProject {
        name: "demo".to_owned(),
        repo: repo.to_string_lossy().into_owned(),
        ..NewProject::default()
    };
    client.project_add(&project).await?;
    say("A repository with a LICENSE, and two actions: `greet` adds a file, `sweep` deletes too much."
        .to_owned());
    for toml in [GREET, SWEEP] {
        client.action_create(&NewAction { toml: toml.to_owned(), file: None }).await?;
    }

    say("\n1. A plan that an invariant blocks".to_owned());
    let blocked = make(&client, "sweep", &[]).await?;
    line(say, "plan use sweep", &blocked);
    for to in [PlanMove::Strategize, PlanMove::Execute] {
        line(say, to.name(), &go(backend, &client, &blocked.id, to).await?);
    }
    let before = client.plan(&blocked.id).await?;
    let refusal = match client.plan_move(&blocked.id, PlanMove::Apply, &RequestOptions::default()).await {
        Err(ClientError::Problem(problem)) => *problem,
        Err(other) => return Err(other.into()),
        Ok(_) => {
            return Err(wrong("the invariant did not block the landing"));
        }
    };
    say(format!("   apply        refused: {refusal}"));
    let after = client.plan(&blocked.id).await?;
    // The answer also contains the block and the available actions; the plan itself must not change.
    let plan_alone = |plan: &Plan| Plan { blocked: None, offers: Default::default(), ..plan.clone() };
    if plan_alone(&before) != plan_alone(&after) {
        return Err(wrong("the refused plan changed"));
    }
    say(format!("   the plan did not change: {}/{}, revision {}", after.phase, after.state, after.revision));

    say("\n2. A plan that lands".to_owned());
    let plan = make(&client, "greet", &[("who", "world")]).await?;
    line(say, "plan use greet", &plan);
    for to in [PlanMove::Strategize, PlanMove::Execute] {
        line(say, to.name(), &go(backend, &client, &plan.id, to).await?);
    }
    let diff = client.plan_diff(&plan.id).await?;
    for text in diff.text.lines().filter(|text| text.starts_with(['+', '-'])) {
        say(format!("     {text}"));
    }
    let landed = go(backend, &client, &plan.id, PlanMove::Apply).await?;
    line(say, "apply", &landed);
    say(format!("   landed as    {}", landed.landed_commit.as_deref().unwrap_or("nothing")));

    say("\n3. The events of the second plan".to_owned());
    let query = EventQuery { plan: Some(plan.id.clone()), ..EventQuery::default() };
    let events = client.events(&query).await?.events;
    for event in &events {
        say(format!("   {:>3}  {:<20} {}", event.seq, event.kind, summary(&event.data)));
    }
    say("\nIn your own repository: `drydock run \"your task\"`.".to_owned());
    Ok(DemoResult {
        data: json!({ "blocked": after, "refusal": refusal, "landed": landed, "events": events }),
    })
}

async fn make(client: &Client<'_>, action: &str, arguments: &[(&str, &str)]) -> Result<Plan, Box<Problem>> {
    let plan = NewPlan {
        action: Some(action.to_owned()),
        project: "demo".to_owned(),
        arguments: arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        ..NewPlan::default()
    };
    Ok(client.plan_use(&plan, &RequestOptions::default()).await?)
}

/// Requests a phase and drives it to its end, as the command of that name does.
async fn go(backend: &Embedded, client: &Client<'_>, id: &str, to: PlanMove) -> Result<Plan, Box<Problem>> {
    if backend.engine().stopping().is_cancelled() {
        return Err(Box::new(crate::http::problem(&EngineError::Interrupted)));
    }
    client.plan_move(id, to, &RequestOptions::default()).await?;
    if let Some(driving) = backend.drive(id, to.phase()) {
        driving.await?;
    }
    Ok(client.plan(id).await?)
}

fn line(say: &mut dyn FnMut(String), verb: &str, plan: &Plan) {
    say(format!("   {verb:<16} {} is {}/{}", plan.id, plan.phase, plan.state));
}

fn summary(data: &Value) -> String {
    let text = match data {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, value)| value.is_string() || value.is_number())
            .map(|(name, value)| {
                format!("{name}={}", value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            })
            .collect::<Vec<_>>()
            .join(" "),
        other => other.to_string(),
    };
    text.chars().take(70).collect()
}

fn config(world: &Path) -> Result<Config, Box<Problem>> {
    let script = world.join("writer.toml");
    std::fs::write(&script, WRITER)
        .map_err(|error| wrong(&format!("could not write the demo's script: {error}")))?;
    let writer = AgentSpec::scripted(script).map_err(|error| wrong(&error.to_string()))?;
    let sweeper =
        AgentSpec::command(["sh", "-c", "rm LICENSE"]).map_err(|error| wrong(&error.to_string()))?;
    let agents = BTreeMap::from([("writer".to_owned(), writer), ("sweeper".to_owned(), sweeper)]);
    Ok(Config { agents, ..Config::default() })
}

fn make_repository(path: &Path) -> Result<(), Box<Problem>> {
    let refused = |text: String| {
        Box::new(Problem::new(Code::RepositoryUnusable, text).hint("`drydock doctor` checks git"))
    };
    let git = drydock_worktree::Git::find().map_err(|error| refused(error_chain(&error)))?;
    let files = [("README.md", "# Demo\n"), ("LICENSE", "Do as you like.\n")];
    drydock_worktree::Repository::create(&git, path, "main", &files, "Begin")
        .map(drop)
        .map_err(|error| refused(error_chain(&error)))
}

fn wrong(text: &str) -> Box<Problem> {
    Box::new(Problem::new(Code::Internal, text).hint("run `drydock doctor`"))
}
