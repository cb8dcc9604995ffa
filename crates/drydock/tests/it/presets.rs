//! Agents that drydock knows: found or not, replaced or adapted, given what they need and nothing that is kept.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use drydock_testkit::proc;
use serde_json::Value;

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
        let events = format!("{:?}", desk.world.events(&id));
        assert!(events.contains("using [hidden]"), "{events}");
        said += &events;
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
    assert!(listed["messages"].to_string().contains("none of them is found"), "{listed:#}");
    let refused = run(&["run", "say hello"]).expect(2).json;
    assert!(text(&refused["error"]["hint"]).contains("[agents.writer]"), "{refused:#}");
    world.settings("[agents.mine]\nprotocol = \"command\"\ncommand = [\"mine\"]\n");
    let refused = run(&["run", "say hello"]).expect(2).json;
    assert!(text(&refused["error"]["hint"]).contains("--agent (mine)"), "{refused:#}");
}
