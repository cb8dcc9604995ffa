//! `kill -9` of drydock between any two messages of a conversation with an agent: the plan goes on or asks, nothing is lost
//! and nothing happens twice.

use std::fs;
use std::thread;

use drydock_testkit::program::acp_agent;
use drydock_testkit::wait;

use crate::world::{Kind, LIMIT, World, list, text};

/// Places in the conversation, by phase and by the number that the agent gives them (`acp-agent.rs`): before and after the
/// greeting, the session, the prompt, each update, a write, the request for a permission, its answer, and the end. All of
/// them with `DRYDOCK_SOAK=1`.
const STRATEGIZE: [u64; 8] = [0, 1, 2, 3, 4, 5, 6, 14];
const EXECUTE: [u64; 14] = [0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14];
const FEW: [(&str, u64); 6] =
    [("strategize", 6), ("execute", 1), ("execute", 4), ("execute", 9), ("execute", 11), ("execute", 13)];
/// The first place behind the write, and the first that only a run with the answer comes to.
const WRITTEN: u64 = 9;
const ANSWERED: u64 = 12;

fn world(kind: Kind) -> World {
    let world = World::new(kind);
    fs::create_dir(world.path("armed")).unwrap();
    let script = format!("exec {} talk {}", acp_agent(), world.place("armed"));
    world.settings(&format!(
        "[agents.writer]\nprotocol = \"acp\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n\
         permissions = {{ execute = \"ask\", other = \"allow\" }}\n"
    ));
    world.action(
        "fix",
        "[agents]\nstrategize = \"writer\"\nexecute = \"writer\"\n[arguments.place]\nrequired = true",
    );
    world
}

/// Kills whoever drives the plan as soon as its agent is at the place, and returns the run that was cut short.
fn cut_short(world: &World, id: &str, phase: &str, place: u64) -> String {
    let armed = world.path("armed").join(format!("{phase}-{place}"));
    fs::write(&armed, "").unwrap();
    let driving = world.spawn(&["plan", phase, id]);
    wait::until("the agent to come to the place", LIMIT, || {
        let runs = fs::read_dir(world.worktrees().join(id)).ok()?;
        runs.flatten().any(|run| run.path().join("temp/reached").exists()).then_some(())
    });
    driving.kill();
    driving.wait(LIMIT);
    fs::remove_file(armed).unwrap();
    world.wait_dead(id);
    text(&world.show(id)["run"])
}

fn answer(world: &World, id: &str) {
    let open = list(&world.ok(&["decision", "list", "--open", "--plan", id])["decisions"]);
    let asked: Vec<_> = open.iter().filter(|one| one["kind"] == "permission").collect();
    assert_eq!(asked.len(), 1, "{open:#?}");
    world.ok(&["decision", "resolve", &text(&asked[0]["id"]), "--option", "allow"]);
}

/// Takes a plan to its landing, with a death of drydock at one place.
fn round(world: &World, phase: &str, place: u64) {
    let id = world.plan(&["--arg", &format!("place={phase}-{place}")]);
    if phase == "strategize" {
        cut_short(world, &id, phase, place);
    }
    world.insist(&["plan", "strategize", &id]).expect(0);
    let choices = list(&world.ok(&["plan", "tree", &id])["tree"]["choices"]);
    assert_eq!(choices.len(), 1, "{phase} {place}: {choices:#?}");
    let mut lost = None;
    if phase == "execute" && place < ANSWERED {
        lost = Some(cut_short(world, &id, phase, place));
    }
    world.insist(&["plan", "execute", &id]).expect(6);
    answer(world, &id);
    if phase == "execute" && place >= ANSWERED {
        lost = Some(cut_short(world, &id, phase, place));
    }
    world.insist(&["plan", "execute", &id]).expect(0);
    if let Some(run) = lost.filter(|_| place >= WRITTEN) {
        let kept = list(&world.ok(&["checkpoint", "list", &id])["checkpoints"]);
        let file = format!("{id}.txt");
        let wrote = |commit: &str| {
            let there = world.repo.git(&["ls-tree", "--name-only", commit]).lines().any(|line| line == file);
            if there { world.repo.git(&["show", &format!("{commit}:{file}")]) } else { String::new() }
        };
        assert!(
            kept.iter().any(|one| wrote(&text(&one["commit"])) == run),
            "{phase} {place}: the work of {run} is lost"
        );
    }
    world.drydock(&["plan", "apply", &id]).expect(0);
    world.assert_landed_once(&id);
    world.assert_sound(&id);
    let asked = world
        .events(&id)
        .iter()
        .filter(|event| event["kind"] == "decision.opened" && event["data"]["kind"] == "permission")
        .count();
    assert_eq!(asked, 1, "{phase} {place}: a person is asked once");
    world.wait_dead(&id);
}

on_both! {
    /// Breaks when a death between two messages loses work or a plan, asks twice, records a choice twice, lands twice, or
    /// leaves an agent running.
    fn a_conversation_cut_short_anywhere_is_taken_up_again(kind: Kind) {
        let all = STRATEGIZE.map(|place| ("strategize", place)).into_iter().chain(EXECUTE.map(|place| ("execute", place)));
        let places: Vec<_> = if std::env::var_os("DRYDOCK_SOAK").is_some() { all.collect() } else { FEW.to_vec() };
        let world = world(kind);
        // Side by side: most of the time is waiting for locks to run out.
        for some in places.chunks(6) {
            thread::scope(|scope| {
                for (phase, place) in some {
                    let world = &world;
                    scope.spawn(move || round(world, phase, *place));
                }
            });
        }
    }
}
