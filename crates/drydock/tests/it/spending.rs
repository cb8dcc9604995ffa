//! Budgets: what agents use is counted and kept, and a plan that has nothing left stops with its work kept and asks.

use drydock_testkit::program::acp_agent;
use drydock_testkit::wait;
use serde_json::Value;

use crate::world::{Answer, Kind, LIMIT, World, list, text};

/// Makes a machine whose writer says this on its first run and stays; on later ones it does its work.
fn world(kind: Kind, says: &str) -> World {
    let world = World::with_writer(kind, "");
    let starts = world.place("starts");
    let script = format!(
        "echo x >> {starts}\nif [ $(wc -l < {starts}) -le 1 ]; then echo half > half.txt\n\
         echo '{says}'; sleep 60; fi\necho hi > hello.txt"
    );
    world.agent("writer", &script);
    world
}

fn decision(world: &World, plan: &str) -> Value {
    list(&world.ok(&["decision", "list", "--open", "--plan", plan])["decisions"])[0].clone()
}

on_both! {
    /// Breaks when a limit is not kept, when the work or what was spent is lost by it, or when a person cannot raise it.
    fn a_plan_that_reaches_its_budget_asks_and_goes_on_with_its_work(kind: Kind) {
        let world = world(kind, "{\"drydock\":\"usage\",\"tokens\":150,\"cost_usd\":\"0.12\"}");
        let id = world.plan(&["--budget", "tokens=100"]);
        world.ok(&["plan", "strategize", &id]);
        world.drydock(&["plan", "execute", &id]).expect(6);
        let shown = world.show(&id);
        assert_eq!((world.stage(&id).as_str(), &shown["budget"]["tokens"]), ("execute/waiting", &100.into()));
        assert_eq!((&shown["spent"]["tokens"], &shown["spent"]["cost_usd"]), (&150.into(), &"0.12".into()));
        let asked = decision(&world, &id);
        assert_eq!(asked["kind"], "budget");
        assert!(text(&asked["question"]).contains("150 tokens of 100 tokens"), "{asked}");
        let refused = world.drydock(&["plan", "execute", &id]).expect(6);
        assert_eq!(refused.error_code(), "budget_spent", "{:#}", refused.json);
        world.ok(&["decision", "resolve", &text(&asked["id"]), "--option", "raise"]);
        assert_eq!(world.show(&id)["budget"]["tokens"], 250);
        world.drydock(&["plan", "execute", &id]).expect(0);
        world.drydock(&["plan", "apply", &id]).expect(0);
        world.assert_landed_once(&id);
        let landed = world.repo.git(&["diff", "--name-only", "main~1", "main"]);
        assert_eq!(landed.lines().collect::<Vec<_>>(), ["half.txt", "hello.txt"], "the work so far is kept");
        assert_eq!(world.show(&id)["spent"]["tokens"], 150);
        world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when a process that dies takes what its run used with it.
    fn what_was_spent_outlives_the_process_that_spent_it(kind: Kind) {
        let world = world(kind, "{\"drydock\":\"usage\",\"tokens\":150,\"tool_calls\":3}");
        let id = world.plan(&["--budget", "tokens=100000"]);
        world.ok(&["plan", "strategize", &id]);
        let running = world.spawn(&["plan", "execute", &id]);
        wait::until("the use to be told", LIMIT, || (world.count(&id, "agent.usage") > 0).then_some(()));
        assert_eq!(world.show(&id)["reserved"]["tokens"], 100_000);
        running.kill();
        world.wait_stale(&id);
        world.insist(&["plan", "takeover", &id]).expect(0);
        assert_eq!(world.show(&id)["reserved"], Value::Null);
        let spent = world.show(&id)["spent"].clone();
        assert_eq!((&spent["tokens"], &spent["tool_calls"]), (&150.into(), &3.into()));
        world.drydock(&["plan", "execute", &id]).expect(0);
        assert_eq!(world.show(&id)["spent"]["tokens"], 150, "counted once");
        world.assert_sound(&id);
    }
}

/// Breaks when time is not limited, or a plan without anything left begins a run.
#[test]
fn time_is_limited_and_nothing_begins_without_any_left() {
    let world = world(Kind::Sqlite, "I think");
    let id = world.plan(&["--budget", "wall=1s"]);
    world.ok(&["plan", "strategize", &id]);
    world.drydock(&["plan", "execute", &id]).expect(6);
    assert!(text(&decision(&world, &id)["question"]).contains("of 1s"), "{}", decision(&world, &id));
    world.ok(&["decision", "resolve", &text(&decision(&world, &id)["id"]), "--option", "unlimited"]);
    world.drydock(&["plan", "execute", &id]).expect(0);
    assert_eq!(world.show(&id)["budget"], Value::Null);
}

on_both! {
    /// Breaks when the time of a plan does not bound its validations and reviewers, when one that was cut short counts
    /// against the work, or when the work is lost.
    fn time_bounds_validations_and_reviewers_too(kind: Kind) {
        let world = World::with_writer(kind, "echo hi > hello.txt");
        let slow = format!("test ! -e {} || sleep 600", world.place("slow"));
        let verdict = r#"echo '{"drydock":"verdict","verdict":"ack"}'"#;
        world.agent("critic", &format!("{slow}; {verdict}"));
        world.action("validated", &format!("[agents]\nexecute = \"writer\"\n[[validations]]\nname = \"slow\"\ncommand = \"{slow}\""));
        world.action("reviewed", "reviewers = [{ agent = \"critic\", critical = true }]\n[agents]\nexecute = \"writer\"");
        for action in ["validated", "reviewed"] {
            world.write("slow", "");
            let made = world.ok(&["plan", "use", action, "--project", "app", "--budget", "wall=10s"]);
            let id = text(&made["plan"]["id"]);
            world.ok(&["plan", "strategize", &id]);
            world.drydock(&["plan", "execute", &id]).expect(6);
            let asked = decision(&world, &id);
            assert_eq!(asked["kind"], "budget", "{action}: {asked}");
            assert_eq!((world.count(&id, "validation.failed"), world.count(&id, "review.silent")), (0, 0), "{action}");
            std::fs::remove_file(world.path("slow")).unwrap();
            world.agent("writer", "test -e hello.txt && echo more > more.txt");
            world.ok(&["decision", "resolve", &text(&asked["id"]), "--option", "unlimited"]);
            world.drydock(&["plan", "execute", &id]).expect(0);
            world.assert_sound(&id);
            world.agent("writer", "echo hi > hello.txt");
        }
    }
}

on_both! {
    /// Breaks when a plan that used up its budget goes on because it was an advisory reviewer that used it.
    fn an_advisory_reviewer_that_uses_up_the_budget_is_asked_about(kind: Kind) {
        let world = World::with_writer(kind, "echo hi > hello.txt");
        world.agent("adviser", r#"echo '{"drydock":"usage","tokens":150}'; sleep 300"#);
        world.action("advised", "reviewers = [{ agent = \"adviser\" }]\n[agents]\nexecute = \"writer\"");
        let made = world.ok(&["plan", "use", "advised", "--project", "app", "--budget", "tokens=100"]);
        let id = text(&made["plan"]["id"]);
        world.ok(&["plan", "strategize", &id]);
        world.drydock(&["plan", "execute", &id]).expect(6);
        let asked = decision(&world, &id);
        assert_eq!((asked["kind"].as_str(), world.count(&id, "review.silent")), (Some("budget"), 0), "{asked}");
        world.agent("adviser", "true");
        world.ok(&["decision", "resolve", &text(&asked["id"]), "--option", "raise"]);
        world.drydock(&["plan", "execute", &id]).expect(0);
        world.assert_sound(&id);
    }
}

/// Breaks when what the protocol tells of tools, tokens and money is not counted.
#[test]
fn what_the_protocol_tells_is_counted() {
    let world = World::new(Kind::Sqlite);
    world.settings(&format!(
        "[agents.writer]\nprotocol = \"acp\"\ncommand = [\"{}\", \"usage\"]\n",
        acp_agent()
    ));
    world.action("fix", "[agents]\nexecute = \"writer\"");
    let id = world.plan_after("execute");
    let spent = world.show(&id)["spent"].clone();
    let told = (&spent["tokens"], &spent["cost_usd"], &spent["tool_calls"]);
    assert_eq!(told, (&1234.into(), &"0.045".into(), &1.into()));
}

/// Breaks when not the smallest limit holds, or a limit that makes no sense is taken.
#[test]
fn the_smallest_limit_holds_and_a_wrong_one_is_refused() {
    let world = World::with_writer(Kind::Sqlite, "echo hi > hello.txt");
    world.settings("[profiles.thrifty]\nextends = \"auto\"\nbudget = { tokens = 300, cost = \"2.00\" }\n");
    world.action("limited", "[agents]\nexecute = \"writer\"\n[budget]\ntokens = 500\nwall = \"1h\"");
    let args = [
        "plan",
        "use",
        "limited",
        "--project",
        "app",
        "--profile",
        "thrifty",
        "--budget",
        "tokens=400,cost=1.5",
    ];
    let made = world.ok(&args)["plan"]["budget"].clone();
    let limits = (&made["tokens"], &made["cost_usd"], &made["wall_s"], &made["tool_calls"]);
    assert_eq!(limits, (&300.into(), &"1.50".into(), &3600.into(), &Value::Null));
    let shown = world.ok(&["action", "show", "limited"])["action"]["budget"].clone();
    assert_eq!((&shown["tokens"], &shown["wall_s"]), (&500.into(), &3600.into()), "the action says its own");
    for wrong in ["tokens=0", "patience=3", "cost=1e9", "wall=soon", ""] {
        let refused = world.drydock(&["plan", "use", "fix", "--project", "app", "--budget", wrong]);
        assert_eq!(refused.error_code(), "invalid", "{wrong}: {:#}", refused.json);
        assert!(text(&refused.json["error"]["text"]).contains("budget"), "{:#}", refused.json);
    }
}

on_both! {
    /// Breaks when an automatic plan whose agent changed nothing stands still without a word, or without a way on.
    fn a_plan_that_changed_nothing_says_so_and_can_run_again(kind: Kind) {
        let world = World::with_writer(kind, "true");
        let id = world.plan(&["--profile", "auto"]);
        let worker = world.spawn(&["worker"]);
        let asked = wait::until("the question", LIMIT, || {
            list(&world.ok(&["decision", "list", "--open", "--plan", &id])["decisions"]).first().cloned()
        });
        assert!(text(&asked["question"]).contains("changed nothing"), "{asked}");
        let options: Vec<_> = list(&asked["options"]).iter().map(|option| text(&option["id"])).collect();
        assert_eq!(options, ["run_again", "finish"]);
        worker.terminate();
        Answer::of(worker.wait(LIMIT)).expect(0);
        world.agent("writer", "echo hi > hello.txt");
        world.ok(&["decision", "resolve", &text(&asked["id"]), "--option", "run_again", "--note", "write hello.txt"]);
        world.drydock(&["plan", "execute", &id]).expect(0);
        world.drydock(&["plan", "apply", &id]).expect(0);
        world.assert_landed_once(&id);
        world.assert_sound(&id);
    }
}
