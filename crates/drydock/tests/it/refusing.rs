//! Bad input: each is a clear error that names the thing, with a next step and the documented exit code, and nothing
//! is lost or half-done.

use std::fs;

use drydock_testkit::proc;

use crate::world::{Answer, Kind, LIMIT, World, list};

/// Asserts that a command is refused with a code, names what it is about, and says what to do next.
fn refused(world: &World, args: &[&str], exit: i32, code: &str, names: &str) {
    let answer = world.drydock(args).expect(exit);
    let error = &answer.json["error"];
    assert_eq!(error["code"], code, "{args:?}: {error}");
    let text = error["text"].as_str().unwrap_or_default();
    assert!(text.contains(names), "{args:?} does not name {names}: {text}");
    assert!(!error["hint"].as_str().unwrap_or_default().is_empty(), "{args:?} has no next step: {error}");
}

on_both! {
    /// Breaks when a name or an id that is not there is guessed, or counts as usage.
    fn what_is_not_there_is_named_and_nothing_is_made(kind: Kind) {
        let world = World::with_writer(kind, "echo hi > hello.txt");
        let cases: &[(&[&str], &str)] = &[
            (&["plan", "use", "nope", "--project", "app"], "nope"),
            (&["plan", "use", "fix", "--project", "nope"], "nope"),
            (&["plan", "use", "fix", "--project", "app", "--profile", "nope"], "nope"),
            (&["plan", "show", "pln-0000"], "pln-0000"),
            (&["plan", "execute", "not an id"], "not an id"),
            (&["decision", "resolve", "dec-0000", "--option", "approve"], "dec-0000"),
            (&["changeset", "show", "chg-0000"], "chg-0000"),
            (&["lock", "break", "lck-0000", "--reason", "gone"], "lck-0000"),
            (&["project", "show", "nope"], "nope"),
            (&["action", "remove", "nope"], "nope"),
            (&["agent", "check", "nope"], "nope"),
            (&["invariant", "remove", "nope"], "nope"),
            (&["invariant", "add", "rule", "--cel", "true", "--scope", "project:nope"], "nope"),
        ];
        for (args, names) in cases {
            refused(&world, args, 3, "not_found", names);
        }
        assert_eq!(world.ok(&["plan", "list"])["plans"].as_array().unwrap().len(), 0);
    }
}

/// Breaks when an argument, option or rule that makes no sense is passed over.
#[test]
fn what_makes_no_sense_is_refused_before_anything_is_made() {
    let world = World::with_writer(Kind::Sqlite, "echo hi > hello.txt");
    let cases: &[(&[&str], &str, &str)] = &[
        (&["plan", "use", "fix", "--project", "app", "--arg", "whta=1"], "invalid", "whta"),
        (&["invariant", "add", "rule", "--cel", "1 +"], "invalid", "rule"),
        (&["invariant", "add", "rule", "--cel", "true", "--scope", "galaxy"], "invalid", "galaxy"),
        (&["plan", "list", "--phase", "sleep"], "usage", "sleep"),
        (&["frobnicate"], "usage", "frobnicate"),
    ];
    for (args, code, names) in cases {
        refused(&world, args, 2, code, names);
    }
    assert_eq!(world.ok(&["plan", "list"])["plans"].as_array().unwrap().len(), 0);
    assert_eq!(world.ok(&["invariant", "list"])["invariants"].as_array().unwrap().len(), 0);
}

/// Page B9: breaks when a rule that can never be evaluated is taken by any of the ways to add one, or when one that an
/// earlier version took cannot be read any more.
#[test]
fn a_rule_about_an_unknown_fact_is_refused_and_an_old_one_still_read() {
    let world = World::with_writer(Kind::Sqlite, "echo hi > hello.txt");
    let action = world.path("action.toml");
    fs::write(
        &action,
        "name = 'a'\ndescription = 'b'\n[[invariants]]\nname = 'r'\ncel = 'diff.lines_chanegd < 1'\n",
    )
    .unwrap();
    let cases: &[&[&str]] = &[
        &["invariant", "add", "small", "--cel", "diff.lines_chanegd < 1"],
        &["action", "create", "--file", action.to_str().unwrap()],
        &["plan", "use", "fix", "--project", "app", "--invariant", "small=diff.lines_chanegd < 1"],
    ];
    for args in cases {
        for names in ["`diff.lines_chanegd`", "`diff.lines_changed`"] {
            refused(&world, args, 2, "invalid", names);
        }
    }
    assert_eq!(world.ok(&["plan", "list"])["plans"].as_array().unwrap().len(), 0);
    world.ok(&["invariant", "add", "small", "--cel", "diff.lines_changed < 1", "--at", "execute"]);
    world.query("UPDATE invariants SET body = replace(body, 'lines_changed', 'nope')");
    let stored = world.ok(&["invariant", "list"]).to_string();
    assert!(stored.contains("diff.nope < 1"), "{stored}");
    let id = world.plan_after("strategize");
    let blocked = world.drydock(&["plan", "execute", &id]).expect(5);
    assert!(blocked.json.to_string().contains("diff.nope < 1"), "{}", blocked.json);
}

/// Breaks when an unknown key of a file is passed over.
#[test]
fn an_unknown_key_of_a_file_is_named_with_its_line() {
    let world = World::with_writer(Kind::Sqlite, "true");
    world.write("bad-action.toml", "name = \"x\"\ndescription = \"y\"\ndescripton = \"z\"\n");
    refused(
        &world,
        &["action", "create", "--file", &world.place("bad-action.toml")],
        2,
        "invalid",
        "descripton",
    );
    world.write("bad-config.toml", "[agents.w]\nprotocol = \"command\"\ncomand = [\"x\"]\n");
    refused(
        &world,
        &["--config", &world.place("bad-config.toml"), "plan", "list"],
        2,
        "config_invalid",
        "comand",
    );
    refused(
        &world,
        &["--config", &world.place("missing.toml"), "plan", "list"],
        2,
        "config_invalid",
        "missing.toml",
    );
    refused(
        &world,
        &["action", "create", "--file", &world.place("missing.toml")],
        3,
        "not_found",
        "missing.toml",
    );
}

/// Breaks when a repository that cannot be worked on is taken in.
#[test]
fn a_repository_that_cannot_be_used_says_why() {
    let world = World::new(Kind::Sqlite);
    world.repo.write("more.txt", "more\n");
    world.repo.commit("more");
    let (bare, empty, plain, shallow) =
        (world.place("bare"), world.place("empty"), world.place("plain"), world.place("shallow"));
    world.repo.git(&["init", "-q", "--bare", &bare]);
    world.repo.git(&["init", "-q", &empty]);
    fs::create_dir(&plain).unwrap();
    let origin = format!("file://{}", world.repo.path().display());
    world.repo.git(&["clone", "-q", "--depth", "1", &origin, &shallow]);
    let add = |path: &str, names: &str| {
        refused(&world, &["project", "add", "other", "--repo", path], 1, "repository_unusable", names);
    };
    add(&bare, "bare");
    add(&empty, "no commits");
    add(&plain, "not in a git repository");
    add(&shallow, "shallow");
    add(&world.place("nowhere"), "nowhere");
    let taken = world.place("taken");
    world.repo.git(&["clone", "-q", &origin, &taken]);
    world.repo.git(&["-C", &taken, "branch", "drydock"]);
    add(&taken, "branch named drydock");
    assert_eq!(world.ok(&["project", "list"])["projects"].as_array().unwrap().len(), 1);
}

/// Breaks when a branch that came to be in the way later is only met when the agent should begin.
#[test]
fn a_branch_in_the_way_of_those_of_plans_is_named_when_a_plan_is_made() {
    let world = World::with_writer(Kind::Sqlite, "echo hi > hello.txt");
    world.repo.git(&["branch", "drydock"]);
    let make = ["plan", "use", "fix", "--project", "app"];
    refused(&world, &make, 1, "repository_unusable", "branch named drydock");
    assert_eq!(world.ok(&["plan", "list"])["plans"].as_array().unwrap().len(), 0);
    world.repo.git(&["branch", "-m", "drydock", "drydock-work"]);
    world.plan_after("apply");
}

/// Breaks when a hint names no command that would help, or a word in place of what is known.
#[test]
fn a_hint_can_be_followed_as_it_stands() {
    let world = World::with_writer(Kind::Sqlite, "echo hi > hello.txt");
    let hint = |args: &[&str], exit: i32| {
        let answer = world.drydock(args).expect(exit);
        answer.json["error"]["hint"].as_str().unwrap().to_owned()
    };
    let id = world.plan(&[]);
    assert!(hint(&["plan", "rollback", &id, "1"], 3).contains(&format!("checkpoint list {id}`")));
    assert!(hint(&["plan", "revert", &id, "--reason", "no"], 4).contains(&format!("plan why {id}`")));
    for args in [&["plan", "show", ""][..], &["project", "remove", ""], &["plan", "diff", ""]] {
        refused(&world, args, 3, "not_found", "is empty");
    }
    refused(&world, &["backup", "show", "x"], 3, "not_found", "no backup \"x\"");
    let detached = world.place("detached");
    world.repo.git(&["clone", "-q", world.repo.path().to_str().unwrap(), &detached]);
    world.repo.git(&["-C", &detached, "switch", "-q", "--detach"]);
    let bare = world.place("bare");
    world.repo.git(&["init", "-q", "--bare", &bare]);
    for (place, hinted, named) in [
        (
            &detached,
            "drydock --json run --target main 'a task' --agent writer".to_owned(),
            "no branch to land on",
        ),
        (&bare, "in a clone of it".to_owned(), "is a bare repository"),
    ] {
        let run = ["run", "a task", "--agent", "writer"];
        let answer = Answer::of(proc::run(world.command(&run).current_dir(place), LIMIT));
        let error = &answer.json["error"];
        assert!(error["hint"].as_str().unwrap().contains(&hinted), "{error}");
        assert!(error["text"].as_str().unwrap().contains(named), "{error}");
    }
}

/// Breaks when somebody who cannot reach a plan that is being run is not told how to.
#[test]
fn a_plan_that_is_being_run_says_how_to_stop_it_and_says_it_once() {
    let world = World::with_writer(Kind::Sqlite, "");
    world.agent("writer", &format!("touch {}; sleep 300", world.place("began")));
    let id = world.plan_after("strategize");
    let running = world.spawn(&["plan", "execute", &id]);
    world.wait_file("began");
    let cancel = format!("drydock plan cancel {id}");
    let refused = world.drydock(&["plan", "prompt", &id, "more"]).expect(4);
    assert!(refused.json["error"]["hint"].as_str().unwrap().contains(&cancel), "{:#}", refused.json);
    let why = world.ok(&["plan", "why", &id])["why"].clone();
    let ways = list(&why["can_act"]);
    assert_eq!(ways.iter().filter(|way| way["command"] == cancel.as_str()).count(), 1, "{why:#}");
    running.interrupt();
    Answer::of(running.wait(LIMIT)).expect(130);
}

/// Breaks when a store that cannot be used is made up, overwritten or described by its password.
#[test]
fn a_store_that_cannot_be_used_says_why_and_is_left_alone() {
    let world = World::new(Kind::Sqlite);
    let junk = "this is not a database, and it is somebody's ".repeat(40);
    world.write("junk.db", &junk);
    let open = |store: &str, code: &str, names: &str| {
        refused(&world, &["--store", store, "plan", "list"], 1, code, names);
    };
    open(&world.place("junk.db"), "store_foreign", "junk.db");
    assert_eq!(fs::read_to_string(world.path("junk.db")).unwrap(), junk);
    open(&world.place("no/such/folder/x.db"), "store_missing", "no/such/folder");
    open("postgres://u:s3cret@127.0.0.1:1/d", "store_unavailable", "127.0.0.1:1");
    for store in ["postgres://u:s3cret@127.0.0.1:1/d", "postgress://u:s3cret@h/d"] {
        let answer = world.drydock(&["--store", store, "plan", "list"]);
        assert!(
            !format!("{} {}", answer.json, answer.stderr).contains("s3cret"),
            "{store} is told with its password"
        );
    }
    let newer = world.place("newer.db");
    world.ok(&["--store", &newer, "plan", "list"]);
    rusqlite::Connection::open(&newer).unwrap().pragma_update(None, "user_version", 99).unwrap();
    open(&newer, "store_newer", "99");
}
