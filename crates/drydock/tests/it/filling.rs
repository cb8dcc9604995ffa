//! A store that cannot grow: it is called full, with what to do, and the plan continues when there is room.

use std::process::Command;
use std::time::{Duration, Instant};

use drydock_testkit::proc;

use crate::world::{Answer, Kind, LIMIT, World, text};

/// Less than a process waits at its end for work under its locks.
const END_MAX: Duration = Duration::from_secs(10);

/// Runs the binary with a limit on the size of files, which it meets as it meets a full disk.
fn limited(world: &World, kib: usize, args: &[&str]) -> Answer {
    let command = world.command(args);
    // A shell counts blocks of 512 bytes. Without the trap, a signal would end the process at its first write.
    let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$@\"", 2 * kib);
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, "sh"]).arg(command.get_program()).args(command.get_args());
    shell.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Answer::of(proc::run(shell.current_dir(command.get_current_dir().unwrap()), LIMIT))
}

/// B12. Breaks when a process that could not release its lock for want of room conflicts with itself or waits for that lock
/// before it ends, or when the answer is not that the store is full.
#[test]
fn a_store_without_room_is_called_full_by_whoever_meets_it() {
    let world = World::with_writer(Kind::Sqlite, "echo hi > hello.txt");
    let id = world.plan_after("strategize");
    // First the store cannot be opened, then nothing committed; in the end the phase is queued, and the lock not released.
    let sizes = [8].into_iter().chain((36..200).step_by(4));
    let found = sizes.into_iter().find(|kib| {
        let began = Instant::now();
        let answer = limited(&world, *kib, &["plan", "execute", &id]).expect(1);
        assert!(began.elapsed() < END_MAX, "{kib} KiB: {:?}", began.elapsed());
        assert_eq!(answer.error_code(), "store_full", "{kib} KiB: {:#}", answer.json);
        let error = &answer.json["error"];
        assert!(text(&error["text"]).contains("drydock.db is full"), "{error:#}");
        assert!(text(&error["hint"]).contains("free some space, then try again"), "{error:#}");
        world.stage(&id) == "execute/queued"
    });
    assert!(found.is_some() && world.locks().len() == 1, "{found:?}: {:?}", world.locks());
    world.ok(&["plan", "execute", &id]);
    assert_eq!((world.stage(&id), world.locks().len()), ("execute/complete".into(), 0));
}
