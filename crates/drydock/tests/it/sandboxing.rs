//! The sandbox as a person configures it, seen through the binary: agents and validations write in their worktree and
//! nowhere else, and the record says what held them.

use crate::world::{Kind, World, list, text};

/// An agent that tries the repository's own files and `.git`, and says what it could write.
fn intruder(world: &World) -> String {
    let repo = world.repo.path().display();
    format!(
        "echo in > hello.txt; echo x > {repo}/beside.txt && echo OUT > out1; echo x >> {repo}/.git/config && echo OUT > out2; \
         git update-ref refs/heads/mine HEAD && echo OUT > out3; true"
    )
}

fn sandbox_of(world: &World, plan: &str) -> Vec<String> {
    let started = world.events(plan).into_iter().filter(|event| event["kind"] == "agent.started");
    started.map(|event| text(&event["data"]["sandbox"])).collect()
}

on_both! {
    /// Breaks when an agent can write to the repository it works for, or the record does not say what held it.
    fn an_agent_changes_nothing_but_its_worktree(kind: Kind) {
        let world = World::new(kind);
        let config = std::fs::read(world.repo.path().join(".git/config")).unwrap();
        world.agent("writer", &intruder(&world));
        world.action("fix", "[agents]\nexecute = \"writer\"");
        let id = world.plan_after("apply");
        world.assert_landed_once(&id);
        let landed = world.repo.git(&["diff", "--name-only", "main~1", "main"]);
        assert_eq!(landed.trim(), "hello.txt");
        assert!(!world.repo.path().join("beside.txt").exists());
        assert_eq!(std::fs::read(world.repo.path().join(".git/config")).unwrap(), config);
        let said = sandbox_of(&world, &id);
        assert!(said.len() == 1 && said[0].starts_with("landlock "), "{said:?}");
    }
}

on_both! {
    /// Breaks when a validation or the command of an invariant runs outside.
    fn validations_and_rules_are_confined_too(kind: Kind) {
        let world = World::new(kind);
        let repo = world.repo.path().display().to_string();
        world.agent("writer", "echo hi > hello.txt");
        world.action("fix", &format!(
            "[agents]\nexecute = \"writer\"\n[[validations]]\nname = \"v\"\ncommand = \"! touch {repo}/v\"\n\
             [[invariants]]\nname = \"i\"\ncommand = \"! touch {repo}/i\"\nat = [\"apply\"]"
        ));
        let id = world.plan_after("apply");
        world.assert_landed_once(&id);
        assert!(!world.repo.path().join("v").exists() && !world.repo.path().join("i").exists());
    }
}

/// Breaks when `off` is not off, or when a profile that requires the sandbox can be talked out of it by an agent.
#[test]
fn a_profile_that_requires_the_sandbox_has_the_last_word() {
    let world = World::new(Kind::Sqlite);
    let outside = world.repo.path().join("beside.txt");
    let script = format!("echo in > hello.txt; echo x > {} || true", outside.display());
    world.settings(&format!(
        "[profiles.strict]\nextends = \"auto\"\nsandbox = \"required\"\n[agents.free]\nprotocol = \"command\"\n\
         command = [\"sh\", \"-c\", \"{script}\"]\nsandbox = \"off\"\n"
    ));
    world.action("fix", "[agents]\nexecute = \"free\"");
    let strict = world.plan(&["--profile", "strict"]);
    world.ok(&["plan", "strategize", &strict]);
    world.ok(&["plan", "execute", &strict]);
    assert!(!outside.exists() && sandbox_of(&world, &strict)[0].starts_with("landlock "));
    let free = world.plan(&[]);
    world.ok(&["plan", "strategize", &free]);
    world.ok(&["plan", "execute", &free]);
    assert!(outside.exists() && sandbox_of(&world, &free)[0].starts_with("none: "));
}

/// Breaks when a run goes on without the place it was promised, or leaves its plan where nobody can go on.
#[test]
fn a_sandbox_that_cannot_be_made_is_a_clear_error() {
    let world = World::with_writer(Kind::Sqlite, "echo hi > hello.txt");
    let id = world.plan_after("strategize");
    let config = world.path(".config/drydock/config.toml");
    let written = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, written.replace("write = [", "write = [\"/no/such/place\", ")).unwrap();
    let failed = world.drydock(&["plan", "execute", &id]);
    let said = text(&failed.json["error"]["text"]);
    assert!(said.contains("sandbox") && said.contains("/no/such/place"), "{:#}", failed.json);
    assert_eq!(world.stage(&id), "execute/errored");
    std::fs::write(&config, written).unwrap();
    world.ok(&["plan", "retry", &id]);
    world.ok(&["plan", "execute", &id]);
    assert_eq!(world.stage(&id), "execute/complete");
}

/// Breaks when `doctor` does not say what is in force.
#[test]
fn the_doctor_says_what_holds_agents() {
    let world = World::new(Kind::Sqlite);
    let seen = |world: &World| {
        let checks = list(&world.ok(&["doctor"])["doctor"]["checks"]);
        checks.into_iter().find(|check| check["name"] == "sandbox").unwrap()
    };
    let on = seen(&world);
    assert!(on["status"] == "ok" && text(&on["text"]).starts_with("Landlock "), "{on}");
    let config = world.path(".config/drydock/config.toml");
    let written = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, written.replace("[sandbox]\n", "[sandbox]\nmode = \"off\"\n")).unwrap();
    let off = seen(&world);
    assert!(off["status"] == "warn" && text(&off["text"]).starts_with("off"), "{off}");
}
