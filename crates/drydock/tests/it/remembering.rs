//! Sessions that outlive a conversation: an agent that can goes on where it was, and one that cannot is told everything.

use drydock_testkit::program::acp_agent;
use drydock_testkit::wait;
use serde_json::Value;

use crate::world::{Kind, LIMIT, World, list, text};

/// A machine whose writer remembers its sessions in a directory of its own outside the worktree.
fn world(kind: Kind, behaviour: &str) -> World {
    let world = World::new(kind);
    std::fs::create_dir(world.path("sessions")).unwrap();
    let sessions = world.place("sessions");
    world.write("behaviour", behaviour);
    let script = format!("exec {} remember {sessions} $(cat {})", acp_agent(), world.place("behaviour"));
    world.settings(&format!(
        "[agents.writer]\nprotocol = \"acp\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n"
    ));
    world.action("fix", "[agents]\nexecute = \"writer\"");
    world
}

/// Returns the sessions of a plan's agents in order, and whether each was loaded.
fn sessions(world: &World, plan: &str) -> Vec<(String, bool)> {
    let events = world.events(plan);
    let told = events.iter().filter(|event| event["kind"] == "agent.session");
    told.map(|event| (text(&event["data"]["session"]), event["data"]["loaded"] == true)).collect()
}

fn answer(world: &World, id: &str) {
    let open = list(&world.ok(&["decision", "list", "--open", "--plan", id])["decisions"]);
    world.ok(&["decision", "resolve", &text(&open[0]["id"]), "--option", "answered", "--note", "elm"]);
}

/// Returns what a plan spent by now: tokens and dollars.
fn spent(world: &World, plan: &str) -> (Value, Value) {
    let spent = world.show(plan)["spent"].clone();
    (spent["tokens"].clone(), spent["cost_usd"].clone())
}

on_both! {
    /// Breaks when what a session told in an earlier run is counted again, or what it says when it is stopped is not.
    fn a_session_that_goes_on_counts_only_what_it_used_since(kind: Kind) {
        let world = world(kind, "spend-ask");
        let id = world.plan_after("strategize");
        world.drydock(&["plan", "execute", &id]).expect(6);
        assert_eq!(spent(&world, &id).1, "0.05");
        answer(&world, &id);
        world.drydock(&["plan", "execute", &id]).expect(0);
        assert_eq!(sessions(&world, &id)[1], ("s1".to_owned(), true));
        assert_eq!(spent(&world, &id), (200.into(), "0.10".into()));
        world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when what a stopped agent says that it used, in its last answer, is dropped.
    fn what_a_stopped_agent_says_it_used_counts(kind: Kind) {
        let world = world(kind, "spend-ask");
        let id = world.plan_after("strategize");
        world.drydock(&["plan", "execute", &id]).expect(6);
        assert_eq!(spent(&world, &id), (100.into(), "0.05".into()));
    }
}

on_both! {
    /// Breaks when a process that dies takes with it what its agent's session had told, so that it counts again.
    fn what_a_session_told_outlives_the_process_that_heard_it(kind: Kind) {
        let world = world(kind, "spend-stall");
        let id = world.plan_after("strategize");
        let running = world.spawn(&["plan", "execute", &id]);
        wait::until("the use to be told", LIMIT, || (world.count(&id, "agent.usage") > 0).then_some(()));
        running.kill();
        world.wait_stale(&id);
        world.insist(&["plan", "takeover", &id]).expect(0);
        assert_eq!(spent(&world, &id).1, "0.05");
        world.drydock(&["plan", "execute", &id]).expect(0);
        assert_eq!(spent(&world, &id), (200.into(), "0.10".into()));
    }
}

on_both! {
    /// Breaks when a later run begins anew though it could go on, hears again what it heard before, or is not told the
    /// answer.
    fn a_later_run_goes_on_in_the_session_of_the_earlier_one(kind: Kind) {
        let world = world(kind, "ask");
        let id = world.plan_after("strategize");
        world.drydock(&["plan", "execute", &id]).expect(6);
        answer(&world, &id);
        world.drydock(&["plan", "execute", &id]).expect(0);
        world.ok(&["plan", "apply", &id]);
        assert_eq!(sessions(&world, &id), [("s1".to_owned(), false), ("s1".to_owned(), true)]);
        assert_eq!(world.repo.git(&["show", "main:done.txt"]), "again 2");
        assert_eq!(world.count(&id, "agent.progress"), 2, "what was said before is not heard again");
        world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when a session that is gone keeps a plan from going on, or a plan from knowing why.
    fn a_session_that_cannot_be_loaded_is_begun_anew(kind: Kind) {
        let world = world(kind, "ask");
        let id = world.plan_after("strategize");
        world.drydock(&["plan", "execute", &id]).expect(6);
        answer(&world, &id);
        std::fs::rename(world.path("sessions/s1"), world.path("sessions/gone")).unwrap();
        world.drydock(&["plan", "execute", &id]).expect(0);
        assert_eq!(sessions(&world, &id), [("s1".to_owned(), false), ("s2".to_owned(), false)]);
        let last = world.events(&id).into_iter().rfind(|event| event["kind"] == "agent.session").unwrap();
        assert!(text(&last["data"]["reason"]).contains("no such session"), "{last}");
        world.ok(&["plan", "apply", &id]);
        assert_eq!(world.repo.git(&["show", "main:done.txt"]), "anew 1");
    }
}

/// Breaks when work that was sent back in the same run is not taken up in the same session.
#[test]
fn a_round_of_mending_goes_on_in_the_same_session() {
    let world = world(Kind::Sqlite, "spend");
    world.action("mended", "[agents]\nexecute = \"writer\"\n[[validations]]\nname = \"twice\"\ncommand = \"grep -q 'again 2' done.txt\"");
    let id = text(&world.ok(&["plan", "use", "mended", "--project", "app"])["plan"]["id"]);
    world.ok(&["plan", "strategize", &id]);
    world.drydock(&["plan", "execute", &id]).expect(0);
    assert_eq!(sessions(&world, &id), [("s1".to_owned(), false), ("s1".to_owned(), true)]);
    assert_eq!(spent(&world, &id), (200.into(), "0.10".into()), "each round counts what it used itself");
}
