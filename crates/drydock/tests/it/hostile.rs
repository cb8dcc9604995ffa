//! Agents that leave files or processes to hold drydock up, or to have it run something: each is a clear error or a marked gap, and
//! other plans go on.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use drydock_testkit::proc;
use drydock_testkit::wait;

use crate::world::{Kind, LIMIT, World, text};

/// Long before a capture that waits is ended.
const AT_ONCE: Duration = Duration::from_secs(60);

/// F5. Breaks when a pipe that git reads, or a file that is larger than a capture takes, holds a run up, or when the error does
/// not say what to remove.
#[test]
fn files_that_git_would_wait_for_or_read_for_minutes_are_refused_by_name() {
    let world = World::with_writer(Kind::Sqlite, "");
    for (script, named) in [
        ("mkfifo .gitignore; echo work > new.txt", [".gitignore", "pipe"]),
        ("mkdir d; mkfifo d/.gitattributes; echo work > new.txt", ["d/.gitattributes", "pipe"]),
        ("truncate -s 3G big.bin; echo work > new.txt", ["big.bin", "3221225472"]),
    ] {
        world.agent("writer", script);
        let id = world.plan_after("strategize");
        let begun = Instant::now();
        world.drydock(&["plan", "execute", &id]).expect(1);
        assert!(begun.elapsed() < AT_ONCE, "{script}: {:?}", begun.elapsed());
        let plan = world.show(&id);
        assert_eq!(plan["error"]["class"], "uncapturable", "{plan:#}");
        let said = text(&plan["error"]["text"]);
        assert!(named.iter().all(|name| said.contains(name)) && said.contains("kept in"), "{said}");
    }
    world.agent("writer", "echo hi > hello.txt");
    world.assert_landed_once(&world.plan_after("apply"));
}

/// F5. Breaks when a checkpoint that cannot be made ends the run, or leaves no trace.
#[test]
fn a_checkpoint_that_a_pipe_prevents_is_a_marked_gap() {
    let world = World::with_writer(Kind::Sqlite, "");
    let message = r#"echo '{"drydock":"checkpoint","label":"half"}'"#;
    let go = world.path("go");
    let wait = format!("until [ -e {} ]; do sleep 0.02; done", go.display());
    world.agent(
        "writer",
        &format!("mkfifo .gitignore; {message}; {wait}; rm .gitignore; echo hi > hello.txt"),
    );
    let id = world.plan_after("strategize");
    let running = world.spawn(&["plan", "execute", &id]);
    wait::until("the gap", LIMIT, || (world.count(&id, "agent.checkpoint_failed") > 0).then_some(()));
    fs::write(&go, "").unwrap();
    running.wait(LIMIT).expect_code(0);
    let events = world.events(&id);
    let failed: Vec<_> = events.iter().filter(|event| event["kind"] == "agent.checkpoint_failed").collect();
    assert!(failed.len() == 1 && text(&failed[0]["data"]["reason"]).contains(".gitignore"), "{events:#?}");
    assert_eq!(world.stage(&id), "execute/complete");
}

/// F8. Breaks when a repository of the agent's stays in its worktree as `.git`, or no one is told.
#[test]
fn the_git_file_of_a_worktree_is_put_back_after_the_run() {
    let world = World::with_writer(Kind::Sqlite, "rm .git; git init -q .; echo work > new.txt");
    let id = world.plan_after("strategize");
    world.drydock(&["plan", "execute", &id]).expect(1);
    let run = fs::read_dir(world.worktrees().join(&id)).unwrap().next().unwrap().unwrap().path();
    let link = fs::read_to_string(run.join("tree/.git")).unwrap();
    assert!(link.starts_with("gitdir: "), "{link}");
    assert!(run.join("replaced-git-tree/HEAD").exists());
    let events = world.events(&id);
    let alert = events.iter().find(|event| event["kind"] == "alert").unwrap();
    assert!(text(&alert["data"]["text"]).contains("replaced-git-tree"), "{alert:#}");
}

/// F8. Breaks when no one learns that `.git` was replaced because the work could not be captured, or that it could not be restored.
#[test]
fn alerts_name_a_git_file_of_work_that_is_kept_apart_and_one_that_stays() {
    let alerts = |script: &str| {
        let world = World::with_writer(Kind::Sqlite, script);
        let id = world.plan_after("strategize");
        world.drydock(&["plan", "execute", &id]).expect(1);
        let alerts = world.events(&id).into_iter().filter(|event| event["kind"] == "alert");
        let alerts: Vec<String> = alerts.map(|event| text(&event["data"]["text"])).collect();
        (world, alerts)
    };
    let (_world, apart) = alerts("rm .git; git init -q .; mkfifo .gitignore");
    let kept = apart.iter().find_map(|text| text.split_once("the replacement is kept in "));
    let Some((_, kept)) = kept else { panic!("{apart:?}") };
    assert!(Path::new(kept).join("HEAD").exists(), "{apart:?}");
    let (_world, stays) =
        alerts("mkdir -p ../replaced-git-tree/x; rm .git; git init -q .; echo work > new.txt");
    assert!(stays.iter().any(|text| text.contains("could not be restored")), "{stays:?}");
}

/// F8. Breaks when no one learns that `gc` found a repository of the agent's in place of `.git`, in work that no commit can hold.
#[test]
fn gc_alerts_to_a_git_file_that_it_puts_back() {
    let world = World::with_writer(Kind::Sqlite, "");
    let began = world.place("began");
    world.agent("writer", &format!("rm .git; git init -q .; mkfifo .gitignore; touch {began}; sleep 600"));
    let id = world.plan_after("strategize");
    let running = world.spawn(&["plan", "execute", &id]);
    world.wait_file("began");
    running.kill();
    running.wait(LIMIT);
    world.wait_dead(&id);
    world.insist(&["plan", "takeover", &id]).expect(0);
    world.ok(&["plan", "cancel", &id, "--reason", "enough"]);
    world.ok(&["gc"]);
    let alerts = world.events(&id).into_iter().filter(|event| event["kind"] == "alert");
    let alerts: Vec<String> = alerts.map(|event| text(&event["data"]["text"])).collect();
    let kept = alerts.iter().find_map(|text| text.split_once("the replacement is kept in "));
    let Some((_, kept)) = kept else { panic!("{alerts:?}") };
    assert!(Path::new(kept).join("HEAD").exists(), "{alerts:?}");
}

/// F5, N11. Breaks when a process that is asked to end waits for a capture that lasts, be it of its own run or of one that it takes
/// over, or when work whose capture was cut short is not continued. A filter of the user's stands for a git that is busy for minutes.
#[test]
fn a_capture_that_lasts_does_not_hold_up_the_end_of_the_process() {
    let world =
        World::with_writer(Kind::Sqlite, "echo '*.slow filter=slow' > .gitattributes; echo x > a.slow");
    let began = world.path("began");
    let clean = format!("touch {}; sleep 600", began.display());
    world.write(".gitconfig", &format!("[filter \"slow\"]\n\tclean = \"{clean}\"\n"));
    let id = world.plan_after("strategize");
    for _ in ["its own run", "the run that it takes over"] {
        let mut command = world.command(&["plan", "execute", &id]);
        let running = proc::spawn(command.env("GIT_CONFIG_GLOBAL", world.path(".gitconfig")));
        world.wait_file("began");
        let asked = Instant::now();
        running.terminate();
        running.wait(LIMIT);
        assert!(asked.elapsed() < AT_ONCE, "{:?}", asked.elapsed());
        // Whoever takes it over has more time to capture what is there.
        assert_eq!((world.stage(&id).as_str(), world.locks().len()), ("execute/processing", 0));
        let runs = fs::read_dir(world.worktrees().join(&id)).unwrap();
        assert!(runs.flatten().any(|run| run.path().join("tree/a.slow").exists()));
        fs::remove_file(&began).unwrap();
    }
    world.ok(&["plan", "execute", &id]);
    let events = world.events(&id);
    let taken_over: Vec<_> = events.iter().filter(|event| event["kind"] == "plan.taken_over").collect();
    assert_eq!(taken_over.len(), 1, "{taken_over:#?}");
    assert_eq!(taken_over[0]["data"]["checkpoint"], 1, "{taken_over:#?}");
}

/// F12. Breaks when an agent gets a descriptor that the starter of drydock had open.
#[test]
fn descriptors_of_the_starter_do_not_reach_the_agent() {
    let script = "echo leaked >&7 || true; if [ -e /dev/fd/7 ]; then echo 7 > open.txt; fi; \
                  if [ -e /dev/fd/12 ]; then echo 12 > open.txt; fi; echo hi > hello.txt";
    let world = World::with_writer(Kind::Sqlite, script);
    for open in ["exec 7>>\"$0\"", "exec 7>>\"$0\" 12>>\"$0\""] {
        let id = world.plan_after("strategize");
        let drydock = world.command(&["plan", "execute", &id]);
        let leaked = world.path("leaked");
        let mut command = Command::new("bash");
        command.args(["-c", &format!("{open}; exec \"$@\"")]).arg(&leaked).arg(drydock.get_program());
        command.args(drydock.get_args()).env_clear();
        command.envs(drydock.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(folder) = drydock.get_current_dir() {
            command.current_dir(folder);
        }
        proc::run(&mut command, LIMIT).expect_code(0);
        assert_eq!(fs::read_to_string(&leaked).unwrap(), "");
        let changes = world.ok(&["changeset", "list", &id]);
        assert_eq!(changes["changesets"][0]["entries"][0]["path"], "hello.txt", "{changes:#}");
    }
}
