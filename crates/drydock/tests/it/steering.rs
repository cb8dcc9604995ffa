//! Questions and answers: what an agent asks, what a gate asks, and which answers count.

use serde_json::Value;

use crate::world::{CONFLICT, LIMIT, World, list, stage, text};

fn open_decision(world: &World, plan: &str) -> Value {
    let open = list(&world.ok(&["decision", "list", "--open", "--plan", plan])["decisions"]);
    assert_eq!(open.len(), 1, "{open:?}");
    open[0].clone()
}

on_both! {
    /// Breaks when a question is lost, or when its answer does not reach the next run.
    fn an_agents_question_waits_for_a_person_and_the_answer_reaches_the_next_run(kind: Kind) {
        let world = World::with_writer(kind, "");
        let ask = r#"{"drydock":"ask","question":"Which colour?","options":[{"id":"red","label":"Red"}]}"#;
        let task = world.place("task");
        world.agent("writer", &format!(
            "[ -e {task} ] && {{ printf %s \"$DRYDOCK_TASK\" > {task}; echo red > colour.txt; exit; }}; \
             touch {task}; echo '{ask}'; sleep 300"
        ));
        let id = world.plan_after("strategize");
        let asked = world.drydock(&["plan", "execute", &id]).expect(6);
        assert_eq!(stage(asked.plan()), "execute/waiting");
        world.wait_dead(&id);
        let decision = open_decision(&world, &id);
        assert_eq!((&decision["question"], &decision["kind"]), (&"Which colour?".into(), &"agent".into()));
        assert_eq!(world.show(&id)["pending_decision"], decision["id"]);
        let resolved = ["decision", "resolve", &text(&decision["id"]), "--option", "red", "--note", "bright"];
        assert_eq!(stage(world.drydock(&resolved).expect(0).plan()), "execute/queued");
        world.drydock(&["plan", "execute", &id]).expect(0);
        let given: Value = serde_json::from_str(&world.lines("task").join("\n")).unwrap();
        assert_eq!(given["feedback"], serde_json::json!(["Which colour? — Red: bright"]));
        world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when the run after an answer begins anew, and the work before the question is only a checkpoint.
    /// page B4: or when nothing is taken for the answer.
    fn the_run_after_an_answer_goes_on_with_the_work_before_it(kind: Kind) {
        let world = World::with_writer(kind, "");
        let ask = r#"{"drydock":"ask","question":"Which colour?"}"#;
        let script = format!("if [ -e half.txt ]; then echo red > colour.txt; else echo half > half.txt; echo '{ask}'; sleep 300; fi");
        world.agent("writer", &script);
        let id = world.plan_after("strategize");
        world.drydock(&["plan", "execute", &id]).expect(6);
        let decision = text(&open_decision(&world, &id)["id"]);
        for empty in [&[][..], &["--note", " "]] {
            let refused = world.drydock(&[&["decision", "resolve", &decision, "--option", "answered"], empty].concat()).expect(2);
            assert_eq!((&refused.json["error"]["code"], world.stage(&id).as_str()), (&"invalid".into(), "execute/waiting"));
        }
        world.ok(&["decision", "resolve", &decision, "--option", "answered", "--note", "red"]);
        world.drydock(&["plan", "execute", &id]).expect(0);
        world.drydock(&["plan", "apply", &id]).expect(0);
        world.assert_landed_once(&id);
        let landed = world.repo.git(&["diff", "--name-only", "main~1", "main"]);
        assert_eq!(landed.lines().collect::<Vec<_>>(), ["colour.txt", "half.txt"]);
        world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when a question, a limit or a used up budget is lost because the worktree cannot be captured, or nobody is
    /// told that the next run begins without the work.
    fn why_a_run_ended_is_not_lost_with_work_that_cannot_be_kept(kind: Kind) {
        let nested = "git init -q sub; echo x > sub/x; git -C sub add x; \
                      git -C sub -c user.name=a -c user.email=a@example.org commit -q -m x";
        for (says, decision, option) in [
            (r#"{"drydock":"ask","question":"Which colour?"}"#, "agent", "answered"),
            (r#"{"drydock":"usage","tokens":150}"#, "budget", "raise"),
            (r#"{"drydock":"rate_limited","retry_after":"90h"}"#, "rate_limit", "retry"),
        ] {
            let world = World::with_writer(kind, &format!("{nested}; echo '{says}'; sleep 300"));
            let id = world.plan(&["--budget", "tokens=100"]);
            world.ok(&["plan", "strategize", &id]);
            world.drydock(&["plan", "execute", &id]).expect(6);
            let asked = open_decision(&world, &id);
            assert_eq!((asked["kind"].as_str(), world.count(&id, "alert")), (Some(decision), 1));
            let run = text(&world.show(&id)["run"]);
            world.agent("writer", "test ! -e sub && echo hi > hello.txt");
            world.ok(&["decision", "resolve", &text(&asked["id"]), "--option", option, "--note", "red"]);
            world.drydock(&["plan", "execute", &id]).expect(0);
            let kept = world.worktrees().join("kept").join(&id).join(run).join("tree/sub/x");
            assert!(kept.exists(), "{decision}: {} is gone", kept.display());
        }
    }
}

on_both! {
    /// S4.8. Breaks when an answer that was not offered, or a second one, has any effect.
    fn only_an_answer_that_was_offered_counts_and_only_the_first(kind: Kind) {
        let world = World::with_writer(kind, "echo hi > hello.txt");
        let id = world.plan_after("strategize");
        let gate = text(&open_decision(&world, &id)["id"]);
        let seen = world.show(&id);
        let refused = world.drydock(&["decision", "resolve", &gate, "--option", "perhaps"]).expect(2);
        assert_eq!(refused.error_code(), "unknown_option");
        assert_eq!(world.count(&id, "alert"), 1);
        assert_eq!((text(&open_decision(&world, &id)["id"]), world.show(&id)), (gate.clone(), seen));

        let approve = ["decision", "resolve", &gate, "--option", "approve"];
        assert_eq!(stage(world.drydock(&approve).expect(0).plan()), "execute/queued");
        let revision = world.show(&id)["revision"].clone();
        assert_eq!(stage(world.drydock(&approve).expect(0).plan()), "execute/queued");
        let other = world.drydock(&["decision", "resolve", &gate, "--option", "reject"]).expect(CONFLICT);
        assert_eq!(other.error_code(), "decision_closed");
        assert_eq!(world.show(&id)["revision"], revision);
        world.drydock(&["plan", "execute", &id]).expect(0);
        world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when a rejected gate lets the phase start.
    fn a_rejected_gate_ends_the_plan(kind: Kind) {
        let world = World::with_writer(kind, "echo hi > hello.txt");
        let id = world.plan_after("execute");
        let gate = text(&open_decision(&world, &id)["id"]);
        let rejected = world.drydock(&["decision", "resolve", &gate, "--option", "reject"]).expect(0);
        assert_eq!(stage(rejected.plan()), "execute/cancelled");
        assert_eq!(world.drydock(&["plan", "apply", &id]).expect(CONFLICT).error_code(), "wrong_state");
        assert_eq!(world.landings(&id).len(), 0);
    }
}

on_both! {
    /// Breaks when a rollback leaves newer files, loses them for good, or lands something else than was rolled back to.
    fn a_rollback_restores_exactly_that_state_and_keeps_what_is_newer(kind: Kind) {
        let script = "echo one > work.txt; echo old > old.txt; echo '{\"drydock\":\"checkpoint\",\"label\":\"first\"}'; sleep 1; echo two > work.txt; rm old.txt; echo new > new.txt";
        let world = World::with_writer(kind, script);
        let id = world.plan_after("execute");
        let checkpoints = list(&world.ok(&["checkpoint", "list", &id])["checkpoints"]);
        let first = checkpoints.iter().find(|one| one["label"] == "first").unwrap()["commit"].as_str().unwrap();
        world.drydock(&["plan", "rollback", &id, "deadbeef99"]).expect(3);
        world.ok(&["plan", "rollback", &id, first]);
        assert_eq!(world.stage(&id), "execute/queued");
        world.agent("writer", "ls > seen.txt");
        world.ok(&["plan", "execute", &id]);
        // A landing takes the checkpoints away.
        let kept = world.repo.git(&["for-each-ref", "--format=%(objectname)", "refs/drydock/snap"]);
        assert!(kept.lines().any(|commit| world.repo.git(&["ls-tree", "--name-only", commit]).contains("new.txt")));
        world.ok(&["plan", "apply", &id]);
        let show = |path: &str| world.repo.git(&["show", &format!("main:{path}")]);
        assert_eq!((show("work.txt"), show("old.txt")), ("one".to_owned(), "old".to_owned()));
        assert!(!show("seen.txt").contains("new.txt"), "newer files are gone");
        world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when somebody who saw a plan at rest is refused because of a lock that is about to be let go of.
    fn a_command_waits_for_the_one_before_it(kind: Kind) {
        let world = World::with_writer(kind, "echo hi > hello.txt");
        let id = world.plan_after("execute");
        let judging = world.place("judging");
        world.ok(&["invariant", "add", "slow", "--command", &format!("touch {judging}; sleep 1; false"), "--at", "apply"]);
        let blocked = world.spawn(&["plan", "apply", &id]);
        world.wait_file(&judging);
        world.ok(&["plan", "prompt", &id, "be brief"]);
        blocked.wait(LIMIT);
        assert_eq!(world.stage(&id), "execute/complete");
        world.assert_sound(&id);
    }
}
