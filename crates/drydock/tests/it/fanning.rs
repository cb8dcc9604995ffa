//! Subplans, seen from outside: a strategy fans out, its pieces run side by side, and their results join and land once.
//! The writer's task is a shell command, so each piece says itself what it does.

use serde_json::{Value, json};

use drydock_testkit::wait;

use crate::working::Server;
use crate::world::{Kind, LIMIT, World, list, text};

/// Runs its task as a command.
const WRITER: &str =
    r#"task=$(printf %s "$DRYDOCK_TASK" | sed -n 's/.*"task":"\([^"]*\)".*/\1/p'); eval "$task""#;

/// Makes a machine whose action `fix` has this strategy.
pub(crate) fn world(kind: Kind, strategy: &Value) -> World {
    let world = World::new(kind);
    world.agent("writer", WRITER);
    draft(&world, strategy);
    world.action("fix", "[agents]\nstrategize = \"thinker\"\nexecute = \"writer\"");
    world
}

pub(crate) fn draft(world: &World, strategy: &Value) {
    world.write("strategy.json", &strategy.to_string());
    let drafted = world.place("strategy.json");
    world.agent("thinker", &format!("mkdir -p .drydock && cp {drafted} .drydock/strategy.json"));
}

pub(crate) fn piece(name: &str, task: &str, after: &[&str]) -> Value {
    json!({ "name": name, "task": task, "after": after })
}

/// Returns the subplans of a plan by name.
pub(crate) fn subplan(world: &World, id: &str, name: &str) -> Value {
    let tree = world.ok(&["plan", "tree", id])["tree"].clone();
    let found = list(&tree["subplans"]).into_iter().find(|one| one["name"] == name);
    found.unwrap_or_else(|| panic!("no subplan {name} in {tree:#}"))
}

pub(crate) fn decision(world: &World, id: &str) -> Value {
    let pending = text(&world.show(id)["pending_decision"]);
    world.ok(&["decision", "show", &pending])["decision"].clone()
}

pub(crate) fn answer(world: &World, id: &str, option: &str) {
    let pending = text(&world.show(id)["pending_decision"]);
    world.ok(&["decision", "resolve", &pending, "--option", option]);
}

on_both! {
    /// Breaks when what a piece did not use of its share is lost to its parent, or what it used is given back.
    fn what_a_piece_did_not_use_returns_to_its_parent(kind: Kind) {
        let world = world(kind, &json!({}));
        let mut pieces = Vec::new();
        for (name, tokens) in [("a", 10), ("b", 25)] {
            world.write(name, &format!("{{\"drydock\":\"usage\",\"tokens\":{tokens}}}\n"));
            pieces.push(piece(name, &format!("cat {}; echo {name} > {name}.txt", world.place(name)), &[]));
        }
        draft(&world, &json!({ "subplans": pieces }));
        let id = world.plan(&["--budget", "tokens=300"]);
        world.ok(&["plan", "strategize", &id]);
        world.drydock(&["plan", "execute", &id]).expect(0);
        for name in ["a", "b"] {
            let child = text(&subplan(&world, &id, name)["plan"]);
            assert_eq!(world.show(&child)["budget"]["tokens"], 100, "{name}");
        }
        assert_eq!(world.show(&id)["spent"]["tokens"], 35);
        world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when a budget that is too small to be shared makes pieces that have nothing, each of which asks, or when
    /// raising it does not suffice.
    fn a_budget_too_small_to_share_is_asked_about_once(kind: Kind) {
        let pieces = [piece("a", "echo a > a.txt", &[]), piece("b", "echo b > b.txt", &[])];
        let world = world(kind, &json!({ "subplans": pieces }));
        let id = world.plan(&["--budget", "tokens=2"]);
        world.ok(&["plan", "strategize", &id]);
        world.drydock(&["plan", "execute", &id]).expect(6);
        let asked = decision(&world, &id);
        assert_eq!((asked["kind"].as_str(), world.count(&id, "subplan.spawned")), (Some("budget"), 0));
        assert!(text(&asked["question"]).contains("too small for the plan and 2 subplans"), "{asked}");
        answer(&world, &id, "raise");
        world.drydock(&["plan", "execute", &id]).expect(0);
        for name in ["a", "b"] {
            let child = text(&subplan(&world, &id, name)["plan"]);
            assert_eq!(world.show(&child)["budget"]["tokens"], 1, "{name}");
        }
        world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when a piece runs twice or too early, when results join in another order than the strategy's, when the
    /// whole lands in parts, or when a lock or a worktree is left behind.
    fn five_pieces_run_side_by_side_and_land_as_one(kind: Kind) {
        let ran = |name: &str| format!("echo {name} >> $RAN");
        let mut pieces: Vec<_> = ["a", "b", "c", "d"].iter().map(|name| {
            piece(name, &format!("{}; echo {name} > {name}.txt", ran(name)), &[])
        }).collect();
        pieces.push(piece("e", &format!("{}; cat a.txt b.txt > e.txt", ran("e")), &["a", "b"]));
        let world = world(kind, &json!({ "subplans": pieces }));
        world.agent("writer", &format!("RAN={}; {WRITER}", world.place("ran")));
        let id = world.plan(&["--profile", "auto"]);
        for phase in ["strategize", "execute", "apply"] {
            world.ok(&["plan", phase, &id]);
        }
        world.assert_landed_once(&id);
        assert_eq!(world.count(&id, "alert"), 0, "what drydock itself made is nobody's to be told of");
        world.assert_sound(&id);
        assert_eq!(world.repo.git(&["show", "main:e.txt"]), "a\nb");
        let mut ran = world.lines("ran");
        assert_eq!(ran.pop().as_deref(), Some("e"), "the last one comes after the first two");
        ran.sort();
        assert_eq!(ran, ["a", "b", "c", "d"]);
        for name in ["a", "b", "c", "d", "e"] {
            let child = subplan(&world, &id, name);
            assert_eq!((&child["phase"], &child["state"], &child["fate"]), (&"apply".into(), &"applied".into(), &"joined".into()));
            world.assert_sound(&text(&child["plan"]));
            assert_eq!(world.show(&text(&child["plan"]))["parent"], id.as_str());
        }
        let joined: Vec<_> = world.events(&id).iter().filter(|event| event["kind"] == "subplan.joined").map(|event| text(&event["data"]["name"])).collect();
        assert_eq!(joined, ["a", "b", "c", "d", "e"]);
        assert_eq!(world.locks().len(), 0);
        assert_eq!(world.repo.git(&["for-each-ref", "refs/drydock/join"]), "");
        assert_eq!(world.ok(&["store", "check"])["problems"], json!([]));
    }
}

on_both! {
    /// Breaks when what waits for a failed piece runs, when a failure is lost, or when the rest cannot land.
    fn a_failed_piece_is_named_and_the_person_says_what_becomes_of_the_rest(kind: Kind) {
        let pieces = [piece("good", "echo good > good.txt", &[]), piece("bad", "echo no; exit 3", &[]), piece("late", "echo late > late.txt", &["bad"])];
        let world = world(kind, &json!({ "subplans": pieces, "on_failure": "continue" }));
        let id = world.plan(&["--profile", "auto"]);
        world.ok(&["plan", "strategize", &id]);
        // D2, B11, long day: the open question is exit 6, the first time as when the command is repeated.
        world.drydock(&["plan", "execute", &id]).expect(6);
        world.drydock(&["plan", "execute", &id]).expect(6);
        assert_eq!(world.stage(&id), "execute/errored");
        let asked = decision(&world, &id);
        assert_eq!(asked["kind"], "subplans");
        let question = text(&asked["question"]);
        assert!(question.contains("2 of 3 subplans") && question.contains("bad failed (agent_failed: agent writer ended with exit code 3"), "{question}");
        assert!(question.contains("late was cancelled (subplan bad failed)"), "{question}");
        assert_eq!(subplan(&world, &id, "late")["state"], "cancelled");
        assert_eq!(subplan(&world, &id, "bad")["state"], "errored");
        answer(&world, &id, "go_on");
        world.ok(&["plan", "execute", &id]);
        world.ok(&["plan", "apply", &id]);
        world.assert_landed_once(&id);
        assert_eq!(world.repo.git(&["ls-tree", "--name-only", "main", "--", "good.txt", "late.txt"]), "good.txt");
        assert_eq!(subplan(&world, &id, "bad")["state"], "cancelled");
    }
}

on_both! {
    /// Breaks when a conflict is guessed, when its files and hunks are not told, or when an answer does not count.
    fn a_conflict_is_asked_with_its_hunks_and_settled_as_answered(kind: Kind) {
        let all = [("agent", "both"), ("take_child", "two"), ("take_parent", "one")];
        // How an answer counts does not depend on the database; that it is kept does.
        let tried = match kind {
            Kind::Sqlite => &all[..],
            Kind::Postgres => &all[..1],
        };
        for (option, expected) in tried {
            let pieces = [piece("one", "echo one > same.txt", &[]), piece("two", "echo two > same.txt", &[])];
            let world = world(kind, &json!({ "subplans": pieces }));
            let id = world.plan(&["--profile", "auto"]);
            world.ok(&["plan", "strategize", &id]);
            world.drydock(&["plan", "execute", &id]).expect(6);
            assert_eq!(world.stage(&id), "execute/waiting");
            let asked = decision(&world, &id);
            assert_eq!(asked["kind"], "conflict");
            let file = &asked["details"]["files"][0];
            assert_eq!((&file["path"], &file["kind"]), (&"same.txt".into(), &"add_add".into()), "{asked:#}");
            assert_eq!((&file["hunks"][0]["parent"], &file["hunks"][0]["child"]), (&"one\n".into(), &"two\n".into()), "{file:#}");
            // Whoever is told to resolve it finds the marks, and leaves none.
            world.agent("writer", "grep -q '<<<<<<<' same.txt && echo both > same.txt");
            answer(&world, &id, option);
            world.ok(&["plan", "execute", &id]);
            world.ok(&["plan", "apply", &id]);
            world.assert_landed_once(&id);
            assert_eq!(subplan(&world, &id, "two")["state"], "applied", "{option}");
            assert_eq!(world.repo.git(&["show", "main:same.txt"]), *expected, "{option}");
        }
    }
}

on_both! {
    /// Breaks when a way of merging does not settle three writers of one file as it says: two of the same line, one of another.
    fn three_writers_of_one_file_join_as_the_strategy_says(kind: Kind) {
        let all = [("prefer_parent", "one"), ("prefer_child", "two"), ("fail_on_conflict", "one"), ("sequential", "two")];
        // How results join does not depend on the database.
        let tried = match kind {
            Kind::Sqlite => &all[..],
            Kind::Postgres => &all[..1],
        };
        for (merge, expected) in tried {
            let write = |name: &str, line: usize| piece(name, &format!("sed -i {line}s/.*/{name}/ lines.txt"), &[]);
            let pieces = [write("one", 1), write("two", 1), write("three", 9)];
            let world = world(kind, &json!({ "subplans": pieces, "merge": merge }));
            world.repo.write("lines.txt", "line\n".repeat(9));
            world.repo.commit("nine lines");
            let id = world.plan(&["--profile", "auto"]);
            world.ok(&["plan", "strategize", &id]);
            let ended = world.drydock(&["plan", "execute", &id]);
            match *merge {
                "fail_on_conflict" => {
                    ended.expect(6);
                    assert_eq!(subplan(&world, &id, "two")["fate"], "failed");
                    assert!(text(&decision(&world, &id)["question"]).contains("two failed"), "{:#}", decision(&world, &id));
                    answer(&world, &id, "go_on");
                    world.ok(&["plan", "execute", &id]);
                }
                "sequential" => {
                    ended.expect(6);
                    assert_eq!(decision(&world, &id)["kind"], "conflict");
                    answer(&world, &id, "take_child");
                    world.ok(&["plan", "execute", &id]);
                }
                _ => drop(ended.expect(0)),
            }
            world.ok(&["plan", "apply", &id]);
            world.assert_landed_once(&id);
            let landed = world.repo.git(&["show", "main:lines.txt"]);
            assert_eq!((landed.lines().next(), landed.lines().last()), (Some(*expected), Some("three")), "{merge}");
        }
    }
}

on_both! {
    /// Breaks when a strategy that cannot be carried out starts anything, or does not say what is wrong with it.
    fn a_strategy_that_cannot_be_carried_out_is_refused_before_anything_starts(kind: Kind) {
        let world = world(kind, &json!({}));
        world.action("haunted", "[agents]\nexecute = \"writer\"\nreviewers = [{ agent = \"ghost\" }]");
        for (strategy, said) in [
            (json!({ "subplans": [piece("a", "true", &["b"]), piece("b", "true", &["a"])] }), "wait for each other: a, b"),
            (json!({ "subplans": [piece("a", "true", &["z"])] }), "comes after z, which does not exist"),
            (json!({ "subplans": [piece("a", "true", &[]), piece("a", "true", &[])] }), "two subplans are named a"),
            (json!({ "subplans": [{ "name": "a", "task": "t", "agent": "nobody" }] }), "subplan a: there is no agent \"nobody\""),
            (json!({ "subplans": [{ "name": "a", "task": "t", "project": "nowhere" }] }), "subplan a: there is no project \"nowhere\""),
            (json!({ "subplans": [{ "name": "a" }] }), "needs either a task or an action"),
            (json!({ "subplans": [piece("a", "true", &[])], "merge": "octopus" }), "octopus"),
            (json!({ "subplans": [{ "name": "a", "action": "haunted" }] }), "subplan a: there is no agent \"ghost\""),
            (json!({ "subplans": [{ "name": "a", "task": "t", "timeout_s": 0 }] }), "has timeout_s = 0"),
            (json!({ "subplans": [piece("a", "true", &[])], "max_parallel": 0 }), "max_parallel is 0"),
        ] {
            draft(&world, &strategy);
            let id = world.plan(&["--profile", "auto"]);
            let failed = world.drydock(&["plan", "strategize", &id]).expect(1);
            assert!(failed.json["error"]["text"].as_str().unwrap_or_default().contains(said), "{said}: {:#}", failed.json);
            assert_eq!(world.show(&id)["error"]["class"], "strategy_invalid");
            assert_eq!(world.count(&id, "subplan.spawned"), 0);
        }
        assert_eq!(world.query("SELECT count(*) FROM plans WHERE parent IS NOT NULL"), "0");
    }
}

on_both! {
    /// Breaks when a cancel leaves a subplan of the tree alive, waiting, or its agent running.
    fn cancel_goes_down_the_tree(kind: Kind) {
        let world = world(kind, &json!({}));
        let mark = world.place("began");
        let pieces = [piece("slow", &format!("touch {mark}; sleep 600"), &[]), piece("next", "true", &["slow"])];
        draft(&world, &json!({ "subplans": pieces }));
        let id = world.plan(&["--profile", "auto"]);
        world.ok(&["plan", "strategize", &id]);
        let running = world.spawn(&["plan", "execute", &id]);
        world.wait_file("began");
        world.ok(&["plan", "cancel", &id, "--reason", "enough"]);
        running.wait(LIMIT);
        wait::until("the tree to be over", LIMIT, || {
            (world.query("SELECT count(*) FROM plans WHERE state <> 'cancelled'") == "0").then_some(())
        });
        world.wait_dead(&text(&subplan(&world, &id, "slow")["plan"]));
        assert_eq!(subplan(&world, &id, "next")["fate"], "cancelled");
    }
}

on_both! {
    /// S1.4, S2.3: breaks when the death of one of two processes loses a piece, runs one that was complete again, or
    /// lands the whole twice. Fifty pieces with `DRYDOCK_SOAK=1`.
    fn a_tree_survives_the_death_of_one_of_two_processes(kind: Kind) {
        let count = if std::env::var_os("DRYDOCK_SOAK").is_some() { 50 } else { 10 };
        let world = world(kind, &json!({}));
        let done = world.place("done");
        let pieces: Vec<_> = (0..count).map(|n| {
            let after: Vec<_> = (n > 5).then(|| format!("p{}", n - 5)).into_iter().collect();
            json!({ "name": format!("p{n}"), "task": format!("echo {n} > p{n}.txt; echo p{n} >> {done}; sleep 0.2"), "after": after })
        }).collect();
        draft(&world, &json!({ "subplans": pieces }));
        let id = world.plan(&["--profile", "auto"]);
        let victim = Server::start(&world, &["--workers", "3"]);
        let other = Server::start(&world, &["--workers", "3"]);
        wait::until("some pieces to be done", LIMIT, || (world.lines("done").len() >= 4).then_some(()));
        victim.kill();
        wait::until("the plan to land", LIMIT * 2, || (world.stage(&id) == "apply/applied").then_some(()));
        other.stop().expect(0);
        world.assert_landed_once(&id);
        world.assert_sound(&id);
        assert_eq!(world.query("SELECT count(*) FROM plans WHERE parent IS NOT NULL AND state = 'applied'"), count.to_string());
        for n in 0..count {
            let child = text(&subplan(&world, &id, &format!("p{n}"))["plan"]);
            assert_eq!(world.count(&child, "plan.applied"), 1, "p{n}");
            assert_eq!(world.repo.git(&["show", &format!("main:p{n}.txt")]), n.to_string());
        }
        assert_eq!(world.ok(&["store", "check"])["problems"], json!([]));
    }
}

on_both! {
    /// Breaks when a piece in another project begins at a commit of this one, does not land there, or lands when its
    /// parent does not.
    fn a_piece_of_another_project_lands_there_when_its_parent_does(kind: Kind) {
        let lib = drydock_testkit::repo::Repo::new();
        lib.git(&["commit", "--quiet", "--allow-empty", "-m", "another history"]);
        let world = world(kind, &json!({}));
        world.ok(&["project", "add", "lib", "--repo", lib.path().to_str().unwrap()]);
        let there = json!({ "name": "there", "task": "echo there > there.txt", "project": "lib" });
        draft(&world, &json!({ "subplans": [piece("here", "echo here > here.txt", &[]), there] }));
        let id = world.plan(&["--profile", "trusted"]);
        world.ok(&["plan", "strategize", &id]);
        world.ok(&["plan", "execute", &id]);
        assert_eq!(world.stage(&id), "execute/complete");
        assert_eq!(subplan(&world, &id, "there")["fate"], "ready");
        assert_eq!(lib.git(&["ls-tree", "--name-only", "main", "--", "there.txt"]), "");
        world.ok(&["plan", "apply", &id]);
        world.assert_landed_once(&id);
        assert_eq!(lib.git(&["show", "main:there.txt"]), "there");
        assert_eq!(world.repo.git(&["show", "main:here.txt"]), "here");
        assert_eq!(subplan(&world, &id, "there")["fate"], "joined");
    }
}

/// Breaks when what an agent leaves in place of a draft can hold drydock up, or is read from outside the worktree.
#[test]
fn a_draft_that_is_no_file_of_the_worktree_is_refused() {
    let world = world(Kind::Sqlite, &json!({}));
    let outside = world.place("outside.json");
    world.write("outside.json", r#"{"choices":[{"question":"q","chosen":"stolen"}]}"#);
    for script in [
        "mkdir -p .drydock; mkfifo .drydock/strategy.json".to_owned(),
        format!("mkdir -p .drydock; ln -s {outside} .drydock/strategy.json"),
    ] {
        world.agent("thinker", &script);
        let id = world.plan(&["--profile", "auto"]);
        world.drydock(&["plan", "strategize", &id]).expect(1);
        assert_eq!(list(&world.ok(&["plan", "tree", &id])["tree"]["choices"]).len(), 0);
    }
}

on_both! {
    /// Breaks when a piece that waits for a rate limit keeps its place, when it is not seen what it waits for and until when,
    /// or when nobody calls it again.
    fn a_piece_that_waits_for_a_rate_limit_lets_the_next_one_work(kind: Kind) {
        let world = world(kind, &json!({}));
        world.write("limit", "{\"drydock\":\"rate_limited\",\"retry_after\":\"20h\"}\n");
        let (met, limit) = (world.place("met"), world.place("limit"));
        let limited = format!("test -e {met} || {{ touch {met}; cat {limit}; sleep 60; }}; echo a > a.txt");
        let pieces = [piece("a", &limited, &[]), piece("b", "echo b > b.txt", &[])];
        draft(&world, &json!({ "subplans": pieces, "max_parallel": 1 }));
        let id = world.plan_after("strategize");
        world.ok(&["plan", "execute", &id, "--detach"]);
        let worker = world.spawn(&["worker"]);
        wait::until("the second piece to be done", LIMIT, || (subplan(&world, &id, "b")["state"] == "complete").then_some(()));
        let waiting = subplan(&world, &id, "a");
        let child = text(&waiting["plan"]);
        let until = text(&world.show(&child)["waits"]["until"]);
        let what = text(&waiting["waits_for"]);
        assert!(what.contains("the rate limit of writer") && what.contains(&until[..16]), "{what}");
        let holds = world.ok(&["plan", "why", &id])["why"]["holds"].to_string();
        assert!(holds.contains("subplan a") && holds.contains("the rate limit of writer"), "{holds}");
        let summary = text(&world.ok(&["plan", "why", &child])["why"]["summary"]);
        assert!(summary.contains("waits until") && summary.contains("rate limit"), "{summary}");
        world.ok(&["plan", "retry", &child]);
        wait::until("the whole", LIMIT, || (world.stage(&id) == "execute/complete").then_some(()));
        world.ok(&["plan", "apply", &id]);
        world.assert_landed_once(&id);
        assert_eq!(world.repo.git(&["show", "main:a.txt"]), "a");
        worker.terminate();
        crate::world::Answer::of(worker.wait(LIMIT)).expect(0);
    }
}

on_both! {
    /// Breaks when a piece that failed by its conflict is only merged again, so that whoever tries it again gets nowhere.
    fn a_conflict_that_failed_is_asked_about_when_it_is_tried_again(kind: Kind) {
        let pieces = [piece("one", "echo one > same.txt", &[]), piece("two", "echo two > same.txt", &[])];
        let world = world(kind, &json!({ "subplans": pieces, "merge": "fail_on_conflict" }));
        let id = world.plan_after("strategize");
        world.drydock(&["plan", "execute", &id]).expect(6);
        let asked = decision(&world, &id);
        let again = list(&asked["options"]).into_iter().find(|option| option["id"] == "retry").unwrap();
        assert!(text(&again["label"]).contains("ask how to resolve the conflict"), "{again:#}");
        world.ok(&["plan", "retry", &id]);
        world.drydock(&["plan", "execute", &id]).expect(6);
        let asked = decision(&world, &id);
        let options: Vec<_> = list(&asked["options"]).iter().map(|option| text(&option["id"])).collect();
        assert_eq!((asked["kind"].as_str(), options), (Some("conflict"), ["agent", "take_parent", "take_child", "drop", "abort"].map(str::to_owned).to_vec()));
        answer(&world, &id, "take_child");
        world.drydock(&["plan", "execute", &id]).expect(0);
        world.ok(&["plan", "apply", &id]);
        world.assert_landed_once(&id);
        assert_eq!(world.repo.git(&["show", "main:same.txt"]), "two");
    }
}

on_both! {
    /// Breaks when `gc` takes what a plan still needs, leaves what a cancelled one kept for joining, removes it without naming
    /// what keeps the work, or names something that does not.
    fn what_a_cancelled_plan_kept_for_joining_is_removed_with_proof(kind: Kind) {
        let world = world(kind, &json!({}));
        let mark = world.place("began");
        let pieces = [piece("quick", "echo quick > quick.txt", &[]), piece("slow", &format!("touch {mark}; sleep 600"), &["quick"])];
        draft(&world, &json!({ "subplans": pieces }));
        let id = world.plan_after("strategize");
        let running = world.spawn(&["plan", "execute", &id]);
        world.wait_file("began");
        let below = format!("refs/drydock/join/{id}/");
        let joins = || world.repo.git(&["for-each-ref", "--format=%(refname)", &below]);
        let quick = text(&subplan(&world, &id, "quick")["plan"]);
        wait::until("the first result to join", LIMIT, || (joins() == format!("{below}{quick}")).then_some(()));
        let gc = |args: &[&str]| world.ok(&[&["gc"], args].concat())["gc"].clone();
        let about = |gc: &Value, list_of: &str| -> Vec<Value> {
            list(&gc[list_of]).into_iter().filter(|one| text(&one["what"]).starts_with(&below)).collect()
        };
        let live = gc(&[]);
        assert_eq!((about(&live, "removed").len(), about(&live, "kept").len()), (0, 1), "{live:#}");
        assert_eq!(joins(), format!("{below}{quick}"));
        world.ok(&["plan", "cancel", &id, "--reason", "enough"]);
        running.wait(LIMIT);
        let told = wait::until("the tree to be over", LIMIT, || Some(about(&gc(&["--dry-run"]), "removed")).filter(|removed| !removed.is_empty()));
        assert_eq!(joins(), format!("{below}{quick}"), "telling removes nothing");
        let removed = about(&gc(&[]), "removed");
        assert_eq!((&removed, joins().as_str()), (&told, ""));
        let proof = text(&removed[0]["proof"]);
        let by = proof.split_whitespace().find(|word| word.starts_with("refs/")).unwrap_or_else(|| panic!("{proof}"));
        assert_eq!(world.repo.git(&["show", &format!("{by}:quick.txt")]), "quick", "{proof}");
        assert!(about(&gc(&[]), "removed").is_empty());
    }
}

/// Breaks when a conflict that no file can mark counts as resolved because an agent did nothing, or when the agent is told
/// to look for marks that are not there.
#[test]
fn a_conflict_without_marks_stays_open_until_somebody_touches_it() {
    let write =
        |name: &str| piece(name, &format!("head -c 99 /dev/zero > logo.bin; echo {name} >> logo.bin"), &[]);
    let world = world(Kind::Sqlite, &json!({ "subplans": [write("one"), write("two")] }));
    let id = world.plan(&["--profile", "auto"]);
    world.ok(&["plan", "strategize", &id]);
    world.drydock(&["plan", "execute", &id]).expect(6);
    world.agent("writer", "true");
    answer(&world, &id, "agent");
    world.drydock(&["plan", "execute", &id]).expect(6);
    let task = text(&subplan(&world, &id, "resolve-two")["task"]);
    assert!(task.contains("logo.bin (") && !task.contains("<<<<<<<"), "{task}");
    let asked = text(&decision(&world, &id)["question"]);
    assert!(asked.contains("it did not change logo.bin, whose conflict has no markers"), "{asked}");
    answer(&world, &id, "retry");
    world.drydock(&["plan", "execute", &id]).expect(6);
    assert_eq!(decision(&world, &id)["kind"], "conflict", "it is asked about again");
    world.agent("writer", "echo both > logo.bin");
    answer(&world, &id, "agent");
    world.ok(&["plan", "execute", &id]);
    world.ok(&["plan", "apply", &id]);
    assert_eq!(world.repo.git(&["show", "main:logo.bin"]), "both");
}
