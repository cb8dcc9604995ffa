//! Agents that drydock knows: found or not, replaced or adapted, given what they need and nothing that is kept.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use drydock_testkit::proc;
use serde_json::Value;

use crate::tokens::{ask, knock};
use crate::working::Server;
use crate::world::{Answer, Kind, LIMIT, World, list, text};

const KEY: &str = "sk-this-must-not-be-seen";

/// A stand-in for a program that people have: it says its version, or leaves what it was given in the worktree.
const CODEX: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then echo "WARNING: no aliases" >&2; sleep 0.1; echo "codex-cli 9.9"; exit; fi
for word; do last=$word; done
printf '%s' "$last" > prompt.txt
cat ~/.codex/auth.json > login.txt
test -n "$OPENAI_API_KEY" && echo given > key.txt
echo "using $OPENAI_API_KEY"; echo "using $OPENAI_API_KEY" >&2
"#;

/// A machine with that program on its path, its login in the home, and a key in the environment.
struct Desk {
    world: World,
}

impl Desk {
    fn new(kind: Kind) -> Self {
        let world = World::new(kind);
        world.write("bin/codex", CODEX);
        fs::set_permissions(world.path("bin/codex"), fs::Permissions::from_mode(0o755)).unwrap();
        world.write(".codex/auth.json", "login");
        world.action("fix", "[agents]\nexecute = \"codex\"");
        Self { world }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.world.command(args);
        let path = format!("{}:{}", self.world.place("bin"), std::env::var("PATH").unwrap());
        command.env("PATH", path).env("OPENAI_API_KEY", KEY).env("DRYDOCK_LOG", "trace");
        command
    }

    #[track_caller]
    fn run(&self, args: &[&str]) -> Answer {
        Answer::of(proc::run(&mut self.command(args), LIMIT))
    }

    fn listed(&self, name: &str) -> Value {
        let agents = list(&self.run(&["agent", "list"]).expect(0).json["data"]["agents"]);
        agents.into_iter().find(|agent| agent["name"] == name).unwrap()
    }
}

on_both! {
    /// Breaks when a built-in agent does not get its task, key or login, or when the key can be found anywhere afterwards.
    fn a_built_in_agent_works_and_its_key_is_nowhere(kind: Kind) {
        let desk = Desk::new(kind);
        let id = text(&desk.run(&["plan", "use", "fix", "--project", "app"]).expect(0).plan()["id"]);
        let mut said = String::new();
        for phase in ["strategize", "execute", "apply"] {
            let answer = desk.run(&["plan", phase, &id]).expect(0);
            said += &format!("{} {}", answer.json, answer.stderr);
        }
        desk.world.assert_landed_once(&id);
        let landed = |file: &str| fs::read_to_string(desk.world.repo.path().join(file)).unwrap();
        assert_eq!((landed("login.txt").as_str(), landed("key.txt").as_str()), ("login", "given\n"));
        assert!(landed("prompt.txt").starts_with("Do fix\n"), "{}", landed("prompt.txt"));
        said += &format!("{:?}", desk.world.events(&id));
        let printed = desk.run(&["plan", "log", &id]).expect(0).json.to_string();
        assert!(printed.contains("using [hidden]"), "{printed}");
        said += &printed;
        assert!(!said.contains(KEY), "{said}");
        for (path, bytes) in crate::world::files(&desk.world.path("")) {
            let found = bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes());
            assert!(!found, "the key is in {}", path.display());
        }
    }
}

/// Breaks when the list does not tell what is there, where it comes from, or what a configuration replaced.
#[test]
fn the_list_says_where_agents_come_from_and_whether_they_are_there() {
    let desk = Desk::new(Kind::Sqlite);
    let (codex, aider) = (desk.listed("codex"), desk.listed("aider"));
    assert_eq!((&codex["source"], &codex["found"]), (&"built_in".into(), &true.into()));
    assert_eq!((&aider["source"], &aider["found"]), (&"built_in".into(), &false.into()));
    desk.world
        .settings("[agents.codex]\npreset = \"codex\"\ntimeout = \"2h\"\n[defaults]\nagent = \"goose\"\n");
    let (codex, goose) = (desk.listed("codex"), desk.listed("goose"));
    assert_eq!((&codex["source"], &codex["timeout_s"]), (&"configured".into(), &7200.into()));
    assert_eq!(goose["default"], true);
}

/// Breaks when a check gives the agent work, takes a complaint for its answer, or leaves a person without the next step.
#[test]
fn a_check_says_what_it_found_or_what_to_do() {
    let desk = Desk::new(Kind::Sqlite);
    let check = desk.run(&["agent", "check", "codex"]).expect(0).json["data"]["check"].clone();
    assert_eq!((&check["status"], &check["text"]), (&"ok".into(), &"it answered: codex-cli 9.9".into()));
    let missing = desk.run(&["agent", "check", "aider"]);
    assert!(text(&missing.json["error"]["hint"]).contains("pip install aider-chat"), "{:#}", missing.json);
    assert_ne!(missing.code, Some(0));
}

/// Breaks when somebody without any agent is told to choose among those that are not there.
#[test]
fn who_has_no_agent_is_shown_how_to_configure_one() {
    let world = World::new(Kind::Sqlite);
    let git = proc::run(Command::new("sh").args(["-c", "command -v git"]), LIMIT).stdout;
    fs::create_dir(world.path("bin")).unwrap();
    std::os::unix::fs::symlink(git.trim(), world.path("bin/git")).unwrap();
    let run =
        |args: &[&str]| Answer::of(proc::run(world.command(args).env("PATH", world.place("bin")), LIMIT));
    let listed = run(&["agent", "list"]).expect(0).json;
    assert!(listed["messages"].to_string().contains("none of these agents is installed"), "{listed:#}");
    let refused = run(&["run", "say hello"]).expect(2).json;
    let hint = text(&refused["error"]["hint"]);
    assert!(hint.contains("[agents.writer]"), "{refused:#}");
    // Page B12: the page and the interface refuse with the same hint.
    let mut serve = world.command(&["serve", "--listen", "127.0.0.1:0", "--tokens", "optional"]);
    let server = Server::of(proc::spawn(serve.env("PATH", world.place("bin"))));
    let new = serde_json::json!({ "task": "say hello", "project": "app" });
    let reply = ask(&server, None, "POST /plans", &new);
    assert_eq!((reply.seen(), &reply.body["hint"]), ((422, "invalid"), &hint.as_str().into()));
    for path in ["/", "/new"] {
        let headers = format!("Host: {}\r\nAccept: text/html\r\n", server.address());
        let page = text(&knock(&server, &headers, &format!("GET {path}"), &Value::Null).body);
        assert!(page.contains("No agents yet") && page.contains("[agents.writer]"), "{page}");
        assert!(!page.contains("data-post=\"/api/v1/plans\""), "{page}");
    }
    server.stop();
    assert_eq!(list(&world.ok(&["plan", "list"])["plans"]).len(), 0);
    world.settings("[agents.mine]\nprotocol = \"command\"\ncommand = [\"mine\"]\n");
    let refused = run(&["run", "say hello"]).expect(2).json;
    assert!(text(&refused["error"]["hint"]).contains("--agent (mine)"), "{refused:#}");
}

/// Page B15: breaks when a project, plan, branch or worktree is made for an agent that is not there, when the error is
/// printed more than once, or when the hint does not say how to get it.
#[test]
fn an_agent_that_is_not_there_is_refused_before_anything_is_made() {
    let world = World::new(Kind::Sqlite);
    world.ok(&["project", "remove", "app"]);
    let git = proc::run(Command::new("sh").args(["-c", "command -v git"]), LIMIT).stdout;
    fs::create_dir(world.path("bin")).unwrap();
    std::os::unix::fs::symlink(git.trim(), world.path("bin/git")).unwrap();
    let run = |args: &[&str]| {
        let mut command = world.command(args);
        Answer::of(proc::run(command.env("PATH", world.place("bin")).current_dir(world.repo.path()), LIMIT))
    };
    let branches = || run_git(&world, &["for-each-ref"]);
    let before = branches();
    let unknown = run(&["run", "x", "--agent", "nope"]).expect(2);
    assert!(text(&unknown.json["error"]["text"]).contains("\"nope\""), "{:#}", unknown.json);
    assert!(text(&unknown.json["error"]["hint"]).contains("drydock agent list"), "{:#}", unknown.json);
    let missing = run(&["run", "x", "--agent", "goose"]);
    assert_eq!(missing.error_code(), "agent_unusable", "{:#}", missing.json);
    let whole = format!("{}{}", missing.json, missing.stderr);
    let why = text(&missing.json["error"]["text"]);
    assert!(text(&missing.json["error"]["hint"]).contains("install goose"), "{:#}", missing.json);
    assert_eq!(whole.matches(Value::from(why.as_str()).to_string().trim_matches('"')).count(), 1, "{whole}");
    assert_eq!(list(&world.ok(&["project", "list"])["projects"]).len(), 0);
    assert_eq!(list(&world.ok(&["plan", "list"])["plans"]).len(), 0);
    assert_eq!(branches(), before);
    let made = fs::read_dir(world.worktrees()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(made.filter(|name| name.to_string_lossy().starts_with("pln-")).count(), 0);
    // Where a server works, its workers may have the program; a name that it does not know is refused there too.
    world.ok(&["project", "add", "app", "--repo", world.repo.path().to_str().unwrap()]);
    world.action("haunted", "[agents]\nexecute = \"writer\"\nreviewers = [{ agent = \"ghost\" }]");
    for args in [
        &["plan", "use", "haunted", "--project", "app", "--agent", "goose"][..],
        &["plan", "use", "haunted", "--project", "app"],
    ] {
        let refused = world.drydock(args).expect(2);
        assert_eq!(refused.error_code(), "invalid", "{:#}", refused.json);
    }
    world.action("fix", "[agents]\nexecute = \"goose\"");
    world.ok(&["plan", "use", "fix", "--project", "app"]);
}

fn run_git(world: &World, args: &[&str]) -> String {
    proc::run(Command::new("git").arg("-C").arg(world.repo.path()).args(args), LIMIT).stdout
}
