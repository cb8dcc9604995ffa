//! A landing that is cut short: the repository says how it ended, and there is never a second one.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;

use drydock_testkit::proc::{self, RunningProcess};
use drydock_testkit::wait;

use crate::world::{Answer, CONFLICT, LIMIT, World};

const WRITE: &str = "echo hi > hello.txt";

on_both! {
    /// S2.3. Breaks when an intent counts as a landing, or stands in the way of one.
    fn a_crash_between_intent_and_landing_is_landed_by_another_process(kind: Kind) {
        let world = World::with_writer(kind, WRITE);
        let id = world.plan_after("execute");
        // The transitions of `plan apply`: advance, start, intend, land.
        world.drydock_with("DRYDOCK_CRASH_AT", "after_commit:3", &["plan", "apply", &id]);
        assert_eq!((world.stage(&id), world.landings(&id).len()), ("apply/processing".into(), 0));
        assert_eq!(world.count(&id, "apply.intended"), 1);
        world.insist(&["plan", "apply", &id]).expect(0);
        world.assert_landed_once(&id);
        assert_eq!((world.count(&id, "apply.forgone"), world.count(&id, "apply.intended")), (1, 2));
        world.assert_sound(&id);
    }
}

on_both! {
    /// S2.3. Breaks when recovery does not look at the target before it lands again.
    fn a_crash_between_landing_and_its_record_is_found_out_from_the_target(kind: Kind) {
        let world = World::with_writer(kind, WRITE);
        let id = world.plan_after("execute");
        world.drydock_with("DRYDOCK_CRASH_AT", "before_commit:4", &["plan", "apply", &id]);
        assert_eq!((world.stage(&id), world.landings(&id).len()), ("apply/processing".into(), 1));
        // The user goes on working on top of it.
        world.repo.write("mine.txt", "mine\n");
        let mine = world.repo.commit("mine");
        world.insist(&["plan", "apply", &id]).expect(0);
        world.assert_landed_once(&id);
        assert_eq!(world.repo.head("main"), mine);
        assert_eq!(world.count(&id, "apply.intended"), 1);
        world.assert_sound(&id);
    }
}

on_both! {
    /// S2.3, N2. Breaks when recovery records a landing that is on the target as errored, because git could not delete its intent.
    fn a_landing_whose_intent_cannot_be_deleted_is_recorded_by_another_process(kind: Kind) {
        let world = World::with_writer(kind, WRITE);
        let id = world.plan_after("execute");
        world.drydock_with("DRYDOCK_CRASH_AT", "before_commit:4", &["plan", "apply", &id]);
        assert_eq!((world.stage(&id), world.landings(&id).len()), ("apply/processing".into(), 1));
        // The intent of a process that died before it deleted it; git deletes no ref while another process packs them.
        let (name, landed) = (format!("refs/drydock/intent/{id}/run"), world.repo.head("main"));
        world.repo.git(&["update-ref", &name, &landed]);
        let lock = world.repo.path().join(".git/packed-refs.lock");
        fs::write(&lock, "").unwrap();
        world.insist(&["plan", "apply", &id]).expect(0);
        assert_eq!(world.repo.head(&name), landed, "what the test is about");
        fs::remove_file(&lock).unwrap();
        world.assert_landed_once(&id);
        assert_eq!(world.count(&id, "apply.forgone"), 0);
        world.assert_sound(&id);
    }
}

on_both! {
    /// S1.3, S2.3. Breaks when the target is read before the intents are deleted: the late process lands in between, and the plan
    /// is cancelled although its landing is on the target.
    fn a_landing_before_the_intents_are_deleted_is_seen(kind: Kind) {
        let world = World::with_writer(kind, WRITE);
        let id = world.plan_after("execute");
        let first = stopped_behind_its_intent(&world, &id);
        world.wait_stale(&id);
        // The git of the second process waits before it lists the intents to delete.
        let (deleting, go) = (world.place("deleting"), world.place("go"));
        let real = std::env::var("PATH").unwrap();
        let git = format!(
            "#!/bin/sh\nPATH='{real}'\ncase \"$*\" in *for-each-ref*refs/drydock/intent/*)\n\
             touch {deleting}; until [ -e {go} ]; do sleep 0.05; done;; esac\nexec git \"$@\"\n"
        );
        world.write("bin/git", &git);
        fs::set_permissions(world.path("bin/git"), fs::Permissions::from_mode(0o755)).unwrap();
        let mut cancel = world.command(&["plan", "cancel", &id]);
        let second = proc::spawn(cancel.env("PATH", format!("{}:{real}", world.place("bin"))));
        world.wait_file("deleting");
        first.resume();
        Answer::of(first.wait(LIMIT)).expect(CONFLICT);
        assert_eq!(world.landings(&id).len(), 1, "what the test is about");
        world.write("go", "");
        Answer::of(second.wait(LIMIT)).expect(CONFLICT);
        world.insist(&["plan", "apply", &id]).expect(0);
        world.assert_landed_once(&id);
        assert_eq!(world.count(&id, "apply.forgone"), 0);
        world.assert_sound(&id);
    }
}

on_both! {
    /// S1.3, S2.3. Breaks when a landing that was given up on can happen beside the one that replaced it.
    fn a_landing_that_wakes_up_late_is_not_repeated(kind: Kind) {
        let world = World::with_writer(kind, WRITE);
        let id = world.plan_after("execute");
        let first = stopped_behind_its_intent(&world, &id);
        world.wait_stale(&id);
        // The second process is made to judge for as long as the first one needs to wake up and land.
        let (judging, go) = (world.place("judging"), world.place("go"));
        let judge = format!("touch {judging}; while [ ! -e {go} ]; do sleep 0.05; done");
        world.ok(&["invariant", "add", "slow", "--command", &judge, "--at", "apply"]);
        let second = world.spawn(&["plan", "apply", &id]);
        world.wait_file("judging");
        assert_eq!((world.count(&id, "apply.forgone"), world.landings(&id).len()), (1, 0));
        first.resume();
        Answer::of(first.wait(LIMIT)).expect(CONFLICT);
        world.write("go", "");
        Answer::of(second.wait(LIMIT)).expect(0);
        world.assert_landed_once(&id);
        world.assert_sound(&id);
    }
}

/// Starts `plan apply` and freezes it between its intent and its landing, which begins by taking the lock held here.
fn stopped_behind_its_intent(world: &World, plan: &str) -> RunningProcess {
    // Removing the worktree of Execute would want the same lock.
    fs::remove_dir_all(world.worktrees().join(plan)).unwrap();
    fs::remove_dir_all(world.repo.path().join(".git/worktrees")).unwrap();
    let path = world.repo.path().join(".git/drydock.lock");
    let lock = File::options().create(true).truncate(false).write(true).open(path).unwrap();
    lock.lock().unwrap();
    let running = world.spawn(&["plan", "apply", plan]);
    wait::until("the intent", LIMIT, || (world.count(plan, "apply.intended") == 1).then_some(()));
    running.pause();
    lock.unlock().unwrap();
    running
}
