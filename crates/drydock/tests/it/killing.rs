//! `kill -9` at random moments of every phase; any other process finishes the plan.

use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::world::{Kind, LIMIT, World};

/// How many plans are killed on their way; many more with `DRYDOCK_SOAK=1`.
const ROUNDS: u64 = 6;
const ROUNDS_SOAK: u64 = 40;
const AT_ONCE: usize = 6;
/// A phase of these plans takes about this long undisturbed.
const KILL_WITHIN_MS: u64 = 600;

/// Numbers that look random and come again with the same seed (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

#[allow(clippy::disallowed_methods, reason = "a seed nobody chose; it is printed")]
fn seed() -> u64 {
    match std::env::var("DRYDOCK_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64,
    }
}

/// A machine whose agents leave children behind, as agents do, and write the file that the plan names.
fn untidy(kind: Kind) -> World {
    let world = World::new(kind);
    let name = r#"name=$(printf %s "$DRYDOCK_TASK" | sed 's/.*"name":"\([a-z0-9]*\)".*/\1/')"#;
    let draft = r#"{"choices":[{"question":"how","chosen":"so"}]}"#;
    world.agent(
        "thinker",
        &format!("sleep 300 & mkdir -p .drydock; sleep 0.1; echo '{draft}' > .drydock/strategy.json"),
    );
    world.agent(
        "writer",
        &format!("{name}; sleep 300 & echo half > $name.txt; sleep 0.2; echo \"whole $name\" > $name.txt"),
    );
    let agents = "[agents]\nstrategize = \"thinker\"\nexecute = \"writer\"";
    world.action("fix", &format!("{agents}\n[arguments.name]\nrequired = true"));
    world
}

/// Takes one plan to its landing, killing whoever works on it at random moments.
fn round(world: &World, name: &str, dice: &mut Dice) {
    let id = world.plan(&["--arg", &format!("name={name}")]);
    for phase in ["strategize", "execute", "apply"] {
        for _ in 0..=dice.below(2) {
            let running = world.spawn(&["plan", phase, &id]);
            // Not waiting for anything: the moment itself is what is tried.
            thread::sleep(Duration::from_millis(dice.below(KILL_WITHIN_MS)));
            running.kill();
            running.wait(LIMIT);
        }
        world.wait_dead(&id);
        world.insist(&["plan", phase, &id]);
    }
    world.assert_landed_once(&id);
    assert_eq!(world.repo.git(&["show", &format!("main:{name}.txt")]), format!("whole {name}"));
    world.assert_sound(&id);
    world.wait_dead(&id);
}

on_both! {
    /// S0.1, S0.3, S1.7, S2.3, S3.3. Breaks when any of the steps cannot be done again by somebody else.
    fn a_plan_that_is_killed_anywhere_is_finished_by_another_process(kind: Kind) {
        let seed = seed();
        println!("DRYDOCK_SEED={seed}");
        let rounds = if std::env::var_os("DRYDOCK_SOAK").is_some() { ROUNDS_SOAK } else { ROUNDS };
        let world = untidy(kind);
        // Side by side: most of the time is waiting for locks to run out, and plans get into each other's way as well.
        for batch in (0..rounds).collect::<Vec<_>>().chunks(AT_ONCE) {
            thread::scope(|scope| {
                for number in batch {
                    let (world, mut dice) = (&world, Dice(seed.wrapping_add(*number)));
                    scope.spawn(move || round(world, &format!("r{number}"), &mut dice));
                }
            });
        }
        assert_eq!(world.repo.git(&["status", "--porcelain"]), "");
        assert_eq!(world.repo.log_subjects("main").len() as u64, rounds + 1);
        assert_eq!(world.locks().into_iter().filter(|lock| lock["stale"] == false).count(), 0);
    }
}
