//! Runs Schemathesis against the OpenAPI document. It is installed from PyPI into an environment below the target
//! directory, and tests a server on its own store.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::machine;
use crate::say::{self, CommandError};

const PACKAGE: &str = "schemathesis==4.32.5";
/// The timeout of the whole run.
const TIME_MAX: Duration = Duration::from_secs(600);
/// The number of examples per operation.
const EXAMPLES: &str = "10";
/// The checks on every response.
const CHECKS: &str =
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

/// Whether the drydock binary is up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BinaryState {
    /// The tests before have built it.
    Built,
    /// It may be outdated or missing.
    Unbuilt,
}

/// The ids of the objects on the server.
struct SeededIds {
    plan: String,
    decision: String,
    changeset: String,
}

/// Installs Schemathesis, builds the binary, and runs it against a server with a plan.
pub(crate) fn run(root: &Path, program: BinaryState) -> Result<(), CommandError> {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |path| root.join(path));
    let tool = install(&target.join("schemathesis"))?;
    if program == BinaryState::Unbuilt {
        build(root)?;
    }
    let world = target.join("schemathesis-world");
    // Remove the files of an earlier run.
    fs::remove_dir_all(&world).ok();
    fs::create_dir_all(&world)
        .map_err(|error| CommandError::failed(format!("could not create {}: {error}", world.display())))?;
    let drydock = |words: &[&str]| {
        let mut command = Command::new(target.join("debug/drydock"));
        command
            .args(words)
            .env("HOME", &world)
            .env("DRYDOCK_STORE", world.join("drydock.db"))
            .env_remove("DRYDOCK_TOKEN");
        command
            .env("XDG_STATE_HOME", world.join("state"))
            .env("XDG_CONFIG_HOME", world.join("config"))
            .stdin(Stdio::null());
        command
    };
    let made = drydock(&["token", "create", "tester", "--role", "human"]).output();
    let made = made.map_err(|error| CommandError::failed(format!("could not create a token: {error}")))?;
    let secret = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    let there = furnish(&world, &drydock)?;
    let (server, at) = serve(drydock(&["serve", "--listen", "127.0.0.1:0", "--workers", "0", "--no-link"]))?;
    let known = |path: &str, id: &str| {
        format!(
            "[[operations]]\ninclude-path-regex = \"^/{path}/\"\nparameters = {{ \"path.id\" = \"{id}\" }}\n"
        )
    };
    let config = known("plans", &there.plan)
        + &known("decisions", &there.decision)
        + &known("changesets", &there.changeset);
    fs::write(world.join("schemathesis.toml"), config)
        .map_err(|error| CommandError::failed(format!("could not configure schemathesis: {error}")))?;
    let outcome = hunt(&tool, &at, &secret, &world);
    stop(server);
    outcome
}

/// Creates a project, an action and a plan that has finished Execute and has an open decision, so that requests find
/// objects.
fn furnish(world: &Path, drydock: &dyn Fn(&[&str]) -> Command) -> Result<SeededIds, CommandError> {
    let done = |command: &mut Command| match command.output() {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => Err(CommandError::failed(String::from_utf8_lossy(&output.stderr).into_owned())),
        Err(error) => Err(CommandError::failed(format!("could not set up the test data: {error}"))),
    };
    let (repository, action) = (world.join("app"), world.join("fix.toml"));
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=x", "-c", "user.email=x@example.org"]).args(words).current_dir(world);
        command
    };
    done(git(&["init", "--quiet", "app"]).arg("--initial-branch=main"))?;
    done(git(&["commit", "--quiet", "--allow-empty", "--message=first"]).current_dir(&repository))?;
    done(&mut drydock(&["project", "add", "app", "--repo", &repository.to_string_lossy()]))?;
    let unwritten = |error| CommandError::failed(format!("could not write an action: {error}"));
    fs::create_dir_all(world.join("config/drydock")).map_err(unwritten)?;
    let agent =
        "[agents.writer]\nprotocol = \"command\"\ncommand = [\"sh\", \"-c\", \"echo hi > hello.txt\"]\n";
    fs::write(world.join("config/drydock/config.toml"), agent).map_err(unwritten)?;
    let fix = "name = \"fix\"\ndescription = \"Fix it\"\n[agents]\nexecute = \"writer\"\n";
    fs::write(&action, fix).map_err(unwritten)?;
    done(&mut drydock(&["action", "create", "--file", &action.to_string_lossy()]))?;
    let named = |told: String, prefix: &str| {
        let id = told.split('"').find(|word| word.starts_with(prefix)).map(str::to_owned);
        id.ok_or_else(|| CommandError::failed(format!("there is no {prefix} in {told}")))
    };
    let plan = named(done(&mut drydock(&["--json", "plan", "use", "fix", "--project", "app"]))?, "pln-")?;
    done(&mut drydock(&["plan", "strategize", &plan]))?;
    done(&mut drydock(&["plan", "execute", &plan]))?;
    let decision = named(done(&mut drydock(&["--json", "decision", "list", "--open"]))?, "dec-")?;
    let changeset = named(done(&mut drydock(&["--json", "changeset", "list", &plan]))?, "chg-")?;
    Ok(SeededIds { plan, decision, changeset })
}

/// Runs Schemathesis, which searches for responses that do not match the document.
fn hunt(tool: &Path, at: &str, secret: &str, world: &Path) -> Result<(), CommandError> {
    let mut command = Command::new(tool);
    command.arg("run").arg(format!("{at}/api/v1/openapi.json")).args([
        "--checks",
        CHECKS,
        "--phases",
        "coverage,fuzzing",
    ]);
    command.args(["--max-examples", EXAMPLES, "--seed", "7", "--request-timeout", "60", "--no-color"]);
    command.args(["--suppress-health-check", "all"]);
    // It must not revoke its own token.
    command.args(["--exclude-operation-id", "post_tokens_id_revoke"]);
    command.args(["-H", &format!("Authorization: Bearer {secret}")]).current_dir(world);
    let began = Instant::now();
    let mut child = command
        .spawn()
        .map_err(|error| CommandError::failed(format!("could not run schemathesis: {error}")))?;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => {
                return Err(CommandError::failed(format!("schemathesis found problems ({status})")));
            }
            Ok(None) if began.elapsed() < TIME_MAX => std::thread::sleep(Duration::from_millis(200)),
            Ok(None) => {
                stop(child);
                return Err(CommandError::failed(format!(
                    "schemathesis took longer than {} s",
                    TIME_MAX.as_secs()
                )));
            }
            Err(error) => {
                return Err(CommandError::failed(format!("could not wait for schemathesis: {error}")));
            }
        }
    }
}

fn serve(mut command: Command) -> Result<(Child, String), CommandError> {
    let failed = |error: std::io::Error| CommandError::failed(format!("could not start the server: {error}"));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().map_err(failed)?;
    let Some(said) = child.stderr.take() else {
        return Err(CommandError::failed("the server printed nothing"));
    };
    let mut line = String::new();
    BufReader::new(said).read_line(&mut line).map_err(failed)?;
    match line.split_whitespace().find(|word| word.starts_with("http://")) {
        Some(at) => Ok((child, at.to_owned())),
        None => {
            stop(child);
            Err(CommandError::failed(format!("the server did not print its address: {line}")))
        }
    }
}

fn stop(mut child: Child) {
    // An error means that the process has already ended.
    child.kill().ok();
    child.wait().ok();
}

fn build(root: &Path) -> Result<(), CommandError> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    match Command::new(cargo).args(["build", "--package", "drydock"]).current_dir(root).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(CommandError::failed(format!("`cargo build` failed ({status})"))),
        Err(error) => Err(CommandError::failed(format!("could not run cargo: {error}"))),
    }
}

/// Returns the program, and installs it if it is missing.
fn install(place: &Path) -> Result<PathBuf, CommandError> {
    let tool = place.join("bin/schemathesis");
    let mark = place.join(PACKAGE);
    if tool.exists() && mark.exists() {
        return Ok(tool);
    }
    machine::require(&[machine::PYTHON])?;
    say::note(&format!("xtask: installing {PACKAGE} with pip"));
    let run = |program: &Path, words: &[&str]| match Command::new(program).args(words).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(CommandError::failed(format!(
            "`{} {}` failed ({status})",
            program.display(),
            words.join(" ")
        ))),
        Err(error) => Err(CommandError::failed(format!(
            "could not run {} ({error}); install Python 3 with venv",
            program.display()
        ))),
    };
    run(Path::new("python3"), &["-m", "venv", &place.to_string_lossy()])?;
    run(&place.join("bin/pip"), &["install", "--quiet", PACKAGE])?;
    fs::write(&mark, "")
        .map_err(|error| CommandError::failed(format!("could not write {}: {error}", mark.display())))?;
    Ok(tool)
}
