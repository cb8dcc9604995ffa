//! Who else on the machine can read what is ours, and that what lands has the user's own modes (F14).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use drydock_testkit::proc;

use crate::world::{Answer, Kind, LIMIT, World, text};

/// Returns the command as a user runs it whose files others may read.
fn at_a_shell(world: &World, args: &[&str]) -> Command {
    let plain = world.command(args);
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 022 && exec \"$0\" \"$@\""]).arg(plain.get_program()).args(plain.get_args());
    shell.env_clear().current_dir(world.path(""));
    shell.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    // The store is where it is by default, in a directory that is made for it.
    shell.env_remove("DRYDOCK_STORE");
    shell
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Returns the modes of a directory and of everything below, but of what `leaves` holds.
fn modes(root: &Path, leaves: &[&str]) -> BTreeMap<PathBuf, u32> {
    let mut found = BTreeMap::from([(root.to_owned(), mode(root))]);
    for entry in fs::read_dir(root).unwrap().flatten() {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() && !leaves.contains(&entry.file_name().to_str().unwrap()) {
            found.extend(modes(&path, leaves));
        } else {
            found.insert(path.clone(), mode(&path));
        }
    }
    found
}

/// F14. Breaks when another user of the machine can read the store, its log, a backup, a run's directory or its task, or when
/// files that land, or objects of git, get other modes than the user's own commits give them.
#[test]
fn what_is_ours_is_private_and_what_lands_is_not() {
    let world = World::new(Kind::Sqlite);
    let script = "mkdir made && echo hi > made/plain.txt && echo '#!/bin/sh' > tool.sh && chmod 755 tool.sh; \
        touch HOME/began; while [ ! -e HOME/go ]; do sleep 0.02; done";
    world.agent("writer", &script.replace("HOME/", &world.place("")));
    world.action("fix", "[agents]\nexecute = \"writer\"");
    let run = |args: &[&str]| {
        Answer::of(proc::run(&mut at_a_shell(&world, args), LIMIT)).expect(0).json["data"].clone()
    };
    let repo = world.repo.path().to_str().unwrap();
    run(&["project", "add", "app", "--repo", repo]);
    run(&["action", "create", "--file", &world.place("action.toml")]);
    let id = text(&run(&["plan", "use", "fix", "--project", "app", "--profile", "auto"])["plan"]["id"]);
    run(&["plan", "strategize", &id]);
    let execute = proc::spawn(&mut at_a_shell(&world, &["plan", "execute", &id]));
    world.wait_file("began");
    let ours = world.path("data/drydock");
    // A worktree in them is the user's, and no one gets past the directory above it.
    let seen = modes(&ours, &["tree"]);
    let expected = |path: &Path| if path.is_dir() { 0o700 } else { 0o600 };
    for (path, mode) in seen.iter().filter(|(path, _)| !path.ends_with("tree")) {
        let is_socket = !path.is_file() && !path.is_dir();
        assert!(*mode == expected(path) || is_socket, "{mode:o} {}", path.display());
    }
    for name in ["drydock.db", "drydock.db-wal", "drydock.db-shm", "drydock.db-gate", "worktrees"] {
        assert!(seen.contains_key(&ours.join(name)), "{name}: {seen:?}");
    }
    assert!(seen.keys().any(|path| path.ends_with("temp")), "{seen:?}");
    world.write("go", "");
    execute.wait(LIMIT).expect_code(0);
    run(&["store", "backup", &world.place("copy.db")]);
    assert_eq!(mode(&world.path("copy.db")), 0o600);
    run(&["plan", "apply", &id]);
    let checkout = world.repo.path();
    let landed = ["made", "made/plain.txt", "tool.sh"].map(|path| mode(&checkout.join(path)));
    assert_eq!(landed.map(|mode| format!("{mode:o}")), ["755", "644", "755"]);
    assert_eq!(mode(&checkout.join(".git/drydock.lock")), 0o600);
    // What git keeps of the landing is as after a commit of the user's.
    for (path, mode) in modes(&checkout.join(".git/objects"), &[]) {
        let expected = if path.is_dir() { 0o755 } else { 0o444 };
        assert_eq!(mode, expected, "{mode:o} {}", path.display());
    }
    assert_eq!(mode(&checkout.join(".git/index")), 0o644);
    assert_eq!(mode(&checkout.join(".git/refs/heads/main")), 0o644);
}
