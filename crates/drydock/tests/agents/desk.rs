//! A machine on which an agent is set up as its user would: its program on the path, its key in the environment.

use std::process::Command;

use drydock_testkit::model::{Script, ScriptedModel};
use drydock_testkit::proc;

use crate::world::{Answer, Kind, LIMIT, World, files, text};

/// The key of the agent's user.
pub(crate) const KEY: &str = "sk-this-must-not-be-seen";
/// What the model says when the work is done.
pub(crate) const LAST: &str = "The greeting is written.";

pub(crate) struct Desk {
    pub(crate) world: World,
    pub(crate) model: ScriptedModel,
    variables: Vec<(&'static str, String)>,
}

impl Desk {
    /// Makes a machine where this agent executes the action `fix`, and the model calls one tool.
    #[track_caller]
    pub(crate) fn new(agent: &str, script: Script) -> Self {
        let found = Command::new(agent).arg("--version").output();
        let found = found.is_ok_and(|output| output.status.success());
        assert!(found, "{agent} does not run; `cargo xtask test --agents` installs it");
        let world = World::new(Kind::Sqlite);
        world.action("fix", &format!("[agents]\nexecute = \"{agent}\""));
        let model = ScriptedModel::start(script);
        Self { world, model, variables: vec![("OPENAI_API_KEY", KEY.to_owned())] }
    }

    /// Sets a variable for everything that the user runs.
    pub(crate) fn variable(&mut self, name: &'static str, value: impl Into<String>) {
        self.variables.push((name, value.into()));
    }

    /// Takes a variable away again.
    pub(crate) fn unset(&mut self, name: &str) {
        self.variables.retain(|(set, _)| *set != name);
    }

    /// Starts a command that goes on by itself.
    pub(crate) fn spawn(&self, args: &[&str]) -> proc::RunningProcess {
        let mut command = self.world.command(args);
        proc::spawn(command.envs(self.variables.iter().map(|(name, value)| (name, value))))
    }

    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> Answer {
        let mut command = self.world.command(args);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        Answer::of(proc::run(&mut command, LIMIT))
    }

    /// Makes a plan and takes it to where the agent is needed.
    #[track_caller]
    pub(crate) fn plan(&self) -> String {
        let id = text(&self.run(&["plan", "use", "fix", "--project", "app"]).expect(0).plan()["id"]);
        self.run(&["plan", "strategize", &id]).expect(0);
        id
    }

    /// Requires that Execute completes and lands the greeting alone, that what the model said last is told, and that all
    /// of it was asked for as it should.
    #[track_caller]
    pub(crate) fn assert_works(&self, plan: &str) {
        self.run(&["plan", "execute", plan]).expect(0);
        self.run(&["plan", "apply", plan]).expect(0);
        self.world.assert_landed_once(plan);
        let landed = self.world.repo.git(&["show", "--name-only", "--format=", "main"]);
        assert_eq!(landed.lines().collect::<Vec<_>>(), ["greeting.txt"]);
        assert!(self.world.ok(&["plan", "log", plan]).to_string().contains(LAST));
        self.assert_asked(plan);
        self.world.assert_sound(plan);
    }

    /// Requires that a check of this agent finds it and costs nothing.
    #[track_caller]
    pub(crate) fn assert_checked(&self, agent: &str, says: &str) {
        let check = self.run(&["agent", "check", agent]).expect(0).json["data"]["check"].clone();
        assert!(text(&check["text"]).starts_with(says), "{check}");
        assert!(self.model.requests().is_empty());
    }

    /// Requires that the model was asked with the task and the key, and that the key stayed between the two.
    #[track_caller]
    pub(crate) fn assert_asked(&self, plan: &str) {
        let asked = self.model.requests();
        let bearer = format!("Bearer {KEY}");
        assert!(
            asked.iter().all(|request| request.headers.get("authorization") == Some(&bearer)),
            "{asked:?}"
        );
        assert!(asked.iter().any(|request| request.body.to_string().contains("Do fix")), "{asked:?}");
        assert!(!format!("{:?}", self.world.events(plan)).contains(KEY));
        for (path, bytes) in files(&self.world.path("")) {
            let found = bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes());
            assert!(!found, "the key is in {}", path.display());
        }
    }
}
