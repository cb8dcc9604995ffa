//! Branches that others push to: joined where they can be, recovered where not, and a person says how to go on (S4).

use std::fs;

use drydock_testkit::proc;
use serde_json::Value;

use crate::shared::{Shared, commit_in, git};
use crate::world::{Kind, LIMIT, list, stage, text};

/// Works until the test lets it go, so that others can push meanwhile.
fn slow_writer(world: &crate::world::World, work: &str) {
    let (begun, go) = (world.place("begun"), world.place("go"));
    world.agent("writer", &format!("touch {begun}; while [ ! -e {go} ]; do sleep 0.02; done; {work}"));
}

/// Runs Execute while somebody else pushes to the plan's branch, and returns the plan and where the remote is.
fn executed_while_others_push(
    shared: &Shared,
    work: &str,
    path: &str,
    content: &str,
) -> (String, String, i32) {
    slow_writer(&shared.world, work);
    let id = shared.plan("fix");
    shared.world.ok(&["plan", "strategize", &id]);
    let running = shared.world.spawn(&["plan", "execute", &id]);
    shared.world.wait_file("begun");
    let theirs = shared.others_push(&id, path, content);
    shared.world.write("go", "");
    let code = running.wait(LIMIT).code().unwrap();
    fs::remove_file(shared.world.path("begun")).unwrap();
    (id, theirs, code)
}

pub(crate) fn kinds(shared: &Shared, id: &str) -> Vec<String> {
    shared.world.events(id).iter().map(|event| text(&event["kind"])).collect()
}

fn options(decision: &Value) -> Vec<String> {
    list(&decision["options"]).iter().map(|option| text(&option["id"])).collect()
}

on_both! {
    /// Breaks when work that others added without a conflict is lost, not judged, or asked about (S4.1, S4.2).
    fn what_others_push_without_a_conflict_is_joined_and_lands_with_the_plan(kind: Kind) {
        let shared = Shared::new(kind, "true");
        let (id, theirs, code) =
            executed_while_others_push(&shared, "echo plan > plan.txt", "theirs.txt", "theirs\n");
        assert_eq!((code, shared.world.stage(&id)), (0, "execute/complete".to_owned()));
        assert!(kinds(&shared, &id).contains(&"sync.rebased".to_owned()), "{:?}", kinds(&shared, &id));
        let decision = shared.decision(&id);
        assert_eq!(decision["kind"], "gate", "a conflict-free divergence never becomes a question");
        let (local, remote) = (shared.local_tip(&id), shared.remote_tip(&id));
        assert_eq!(Some(&local), remote.as_ref(), "branch and remote are together");
        shared.world.repo.git(&["merge-base", "--is-ancestor", &theirs, &local]);
        shared.world.ok(&["plan", "apply", &id]);
        shared.world.assert_landed_once(&id);
        for (path, content) in [("plan.txt", "plan"), ("theirs.txt", "theirs")] {
            assert_eq!(shared.world.repo.git(&["show", &format!("main:{path}")]), content);
        }
        shared.world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when a divergence after a phase drops work, is told in two steps, or its answer does not go on (S4.2,
    /// S4.4, S4.5, S4.9).
    fn a_conflict_after_a_phase_is_pinned_reset_and_asked_about(kind: Kind) {
        let shared = Shared::new(kind, "true");
        let (id, theirs, code) =
            executed_while_others_push(&shared, "echo plan > README.md", "README.md", "theirs\n");
        assert_eq!(code, 6, "a person must decide");
        let plan = shared.world.show(&id);
        assert_eq!((stage(&plan), &plan["error"]["class"]), ("execute/errored".into(), &"diverged".into()));
        let decision = shared.decision(&id);
        assert_eq!((&decision["kind"], &decision["run"]), (&"divergence".into(), &plan["run"]));
        assert_eq!(plan["pending_decision"], decision["id"]);
        assert_eq!(options(&decision), ["continue", "restore_local", "abort"]);
        let pin = text(&decision["details"]["backup_ref"]);
        assert_eq!(shared.pins(&id), std::slice::from_ref(&pin));
        assert_eq!(shared.world.repo.git(&["show", &format!("{pin}:README.md")]), "plan");
        let discarded = list(&decision["details"]["discarded_commits"]);
        assert_eq!(discarded, [Value::from(shared.world.repo.git(&["rev-parse", &pin]))]);
        assert_eq!(shared.local_tip(&id), theirs, "the branch is where the remote is");
        let told = kinds(&shared, &id);
        let at = told.iter().position(|kind| kind == "sync.recovered_by_reset").unwrap();
        assert_eq!(told[at..at + 3], ["sync.recovered_by_reset", "plan.errored", "decision.opened"]);

        shared.world.agent("writer", "cat README.md >> seen.txt");
        let run = plan["run"].clone();
        shared.world.ok(&["decision", "resolve", &text(&decision["id"]), "--option", "continue"]);
        assert_eq!(shared.world.stage(&id), "execute/queued");
        shared.world.ok(&["plan", "execute", &id]);
        let plan = shared.world.show(&id);
        assert_eq!(stage(&plan), "execute/complete");
        assert_ne!(plan["run"], run, "a fresh run");
        shared.world.ok(&["plan", "apply", &id]);
        assert_eq!(shared.world.repo.git(&["show", "main:seen.txt"]), "theirs", "it began after the reset");
        assert_eq!(shared.pins(&id), [pin], "the backup stays");
        shared.world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when the pinned commits cannot be brought back, or bringing them back drops those of others.
    fn restoring_the_local_commits_goes_on_with_them_and_keeps_those_of_others(kind: Kind) {
        let shared = Shared::new(kind, "true");
        let (id, theirs, _) =
            executed_while_others_push(&shared, "echo plan > README.md", "README.md", "theirs\n");
        let decision = shared.decision(&id);
        let pin = text(&decision["details"]["backup_commit"]);
        shared.world.agent("writer", "cat README.md > seen.txt");
        shared.world.ok(&["decision", "resolve", &text(&decision["id"]), "--option", "restore_local"]);
        assert_eq!(shared.local_tip(&id), pin, "the answer took effect at once");
        shared.world.ok(&["plan", "execute", &id]);
        let (local, remote) = (shared.local_tip(&id), shared.remote_tip(&id));
        assert_eq!(Some(&local), remote.as_ref());
        for kept in [&theirs, &pin] {
            shared.world.repo.git(&["merge-base", "--is-ancestor", kept, &local]);
        }
        shared.world.ok(&["plan", "apply", &id]);
        assert_eq!(shared.world.stage(&id), "apply/applied", "what a person decided against is not judged again");
        for path in ["README.md", "seen.txt"] {
            assert_eq!(shared.world.repo.git(&["show", &format!("main:{path}")]), "plan");
        }
        shared.world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when the policy `pause` moves anything, or the question about a divergence that people settled by hand is
    /// closed by anything but their answer (S4.2, N5).
    fn pausing_moves_nothing_and_a_divergence_that_is_gone_is_a_fact_of_its_question(kind: Kind) {
        let shared = Shared::with(kind, "true", &["--on-divergence", "pause"]);
        let (id, theirs, code) =
            executed_while_others_push(&shared, "echo plan > README.md", "README.md", "theirs\n");
        assert_eq!((code, shared.world.stage(&id)), (6, "execute/waiting".to_owned()));
        let decision = shared.decision(&id);
        assert_eq!(options(&decision), ["continue", "restore_local", "sync_again", "abort"]);
        let ours = shared.local_tip(&id);
        assert_eq!(shared.remote_tip(&id), Some(theirs));
        assert_eq!(shared.world.repo.git(&["show", &format!("{ours}:README.md")]), "plan");
        shared.world.drydock(&["plan", "sync", &id]).expect(6);
        assert_eq!(shared.decision(&id)["id"], decision["id"], "the same divergence asks once");

        shared.others_merge(&id, &ours);
        let synced = shared.world.drydock(&["plan", "sync", &id]).expect(6);
        assert_eq!(synced.json["data"]["sync"]["outcome"], "fast_forwarded");
        let open = shared.decision(&id);
        assert_eq!((&open["id"], shared.world.stage(&id)), (&decision["id"], "execute/waiting".to_owned()));
        assert!(text(&open["question"]).contains("Since then: pulled"), "{open:#}");
        assert_eq!(shared.world.count(&id, "decision.amended"), 1);
        shared.world.ok(&["decision", "resolve", &text(&open["id"]), "--option", "sync_again"]);
        assert_eq!((shared.world.stage(&id), shared.open(&id).len()), ("execute/queued".to_owned(), 0));
        shared.world.ok(&["plan", "execute", &id]);
        shared.world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when the start of a phase handles a divergence otherwise than its end, or a phase that never started
    /// gets times or the run of another (S4.6, S4.10).
    fn a_conflict_at_the_start_of_a_phase_is_handled_the_same(kind: Kind) {
        let shared = Shared::new(kind, "true");
        let (id, tree) = shared.strategized();
        let ours = commit_in(&tree, "README.md", "by hand\n");
        fs::write(tree.join("draft.txt"), "not committed\n").unwrap();
        let theirs = shared.others_push(&id, "README.md", "theirs\n");
        shared.world.drydock(&["plan", "execute", &id]).expect(6);
        let plan = shared.world.show(&id);
        assert_eq!((stage(&plan), &plan["error"]["class"]), ("execute/errored".into(), &"diverged".into()));
        assert_eq!((&plan["phase_started_at"], &plan["phase_completed_at"]), (&Value::Null, &Value::Null));
        let decision = shared.decision(&id);
        assert_eq!((&decision["phase"], &decision["run"]), (&"execute".into(), &Value::Null));
        let pin = text(&decision["details"]["backup_ref"]);
        assert_eq!(shared.world.repo.git(&["show", &format!("{pin}:draft.txt")]), "not committed");
        shared.world.repo.git(&["merge-base", "--is-ancestor", &ours, &pin]);
        assert_eq!(git(&tree, &["rev-parse", "HEAD"]), theirs, "the worktree is where the remote is");
        shared.world.ok(&["decision", "resolve", &text(&decision["id"]), "--option", "abort"]);
        assert_eq!(shared.world.stage(&id), "execute/cancelled");
        assert_eq!(shared.world.count(&id, "plan.cancelled"), 1);
    }
}

on_both! {
    /// S4.9. Breaks when the run after `continue` has a base that its work does not contain, because the target moved before the
    /// answer: Execute would blame the agent for it.
    fn a_target_that_moves_before_the_answer_does_not_fail_the_next_run(kind: Kind) {
        let shared = Shared::new(kind, "echo plan > plan.txt");
        let pull = || shared.world.repo.git(&["pull", "-q", "--ff-only", "origin", "main"]);
        let first = shared.world.repo.head("main");
        shared.others_land("second.txt");
        pull();
        let (id, tree) = shared.strategized();
        commit_in(&tree, "README.md", "by hand\n");
        // The branch of the others does not contain the plan's base.
        git(&shared.other, &["checkout", "-q", "-B", "theirs", &first]);
        commit_in(&shared.other, "README.md", "theirs\n");
        git(&shared.other, &["push", "-q", "origin", &format!("theirs:drydock/{id}/work")]);
        shared.world.ok(&["plan", "execute", &id, "--detach"]);
        shared.world.ok(&["plan", "revert", &id, "--reason", "think again"]);
        shared.world.drydock(&["plan", "strategize", &id]).expect(6);
        assert_eq!(shared.world.stage(&id), "strategize/errored");
        shared.others_land("landed.txt");
        pull();
        let decision = text(&shared.decision(&id)["id"]);
        shared.world.ok(&["decision", "resolve", &decision, "--option", "continue"]);
        shared.world.ok(&["plan", "strategize", &id]);
        shared.world.ok(&["plan", "execute", &id]);
        shared.world.ok(&["plan", "apply", &id]);
        for (path, content) in [("README.md", "theirs"), ("plan.txt", "plan"), ("second.txt", "theirs"), ("landed.txt", "theirs")] {
            assert_eq!(shared.world.repo.git(&["show", &format!("main:{path}")]), content, "{path}");
        }
        shared.world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when the work before a question stands beside what others pushed before it began instead of upon it: it
    /// would be in conflict with what it was made from.
    fn work_before_a_question_stays_upon_what_others_pushed(kind: Kind) {
        let shared = Shared::new(kind, "true");
        let (keep, ask) = (r#"{"drydock":"checkpoint","label":"mine"}"#, r#"{"drydock":"ask","question":"Go on?"}"#);
        shared.world.agent("writer", &format!(
            "if grep -q mine README.md; then echo done > done.txt; else echo mine >> README.md; echo '{keep}'; echo '{ask}'; sleep 300; fi"
        ));
        let id = shared.plan("fix");
        shared.world.ok(&["plan", "strategize", &id]);
        let theirs = shared.others_push(&id, "README.md", "theirs\n");
        shared.world.drydock(&["plan", "execute", &id]).expect(6);
        let asked = shared.decision(&id);
        assert_eq!(asked["kind"], "agent");
        shared.world.ok(&["decision", "resolve", &text(&asked["id"]), "--option", "answered", "--note", "yes"]);
        shared.world.drydock(&["plan", "execute", &id]).expect(0);
        let head = text(&shared.world.show(&id)["head_commit"]);
        shared.world.repo.git(&["merge-base", "--is-ancestor", &theirs, &head]);
        assert_eq!(shared.world.repo.git(&["show", &format!("{head}:README.md")]), "theirs\nmine");
        shared.world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when a draft is adopted from a worktree that is not together with its remote, or the refusal does not
    /// say why and what to do (S4.6).
    fn adopting_a_draft_syncs_first_and_adopts_nothing_when_it_diverged(kind: Kind) {
        let shared = Shared::new(kind, "true");
        let (id, tree) = shared.strategized();
        fs::create_dir_all(tree.join(".drydock")).unwrap();
        let draft = r#"{"choices":[{"question":"how","chosen":"by hand"}]}"#;
        fs::write(tree.join(".drydock/strategy.json"), draft).unwrap();
        shared.world.ok(&["plan", "adopt", &id]);
        let chosen = |shared: &Shared| shared.world.ok(&["plan", "tree", &id])["tree"]["choices"].clone();
        assert_eq!(chosen(&shared)[0]["chosen"], "by hand");

        fs::write(tree.join(".drydock/strategy.json"), draft.replace("by hand", "otherwise")).unwrap();
        let ours = commit_in(&tree, "README.md", "by hand\n");
        shared.others_push(&id, "README.md", "theirs\n");
        for _ in 0..2 {
            let refused = shared.world.drydock(&["plan", "adopt", &id]).expect(6);
            assert_eq!(refused.error_code(), "sync_recovered_unacknowledged");
            let details = &refused.json["error"]["details"];
            assert_eq!(details["decision_id"], shared.decision(&id)["id"]);
            assert_eq!(details["discarded_commits"], serde_json::json!([ours]));
            assert_eq!(vec![text(&details["backup_ref"])], shared.pins(&id));
        }
        assert_eq!(shared.world.stage(&id), "strategize/errored");
        assert_eq!(chosen(&shared)[0]["chosen"], "by hand", "nothing was adopted");
    }
}

on_both! {
    /// Breaks when a remote that cannot be reached passes for one that is in sync (S4.1).
    fn what_could_not_be_found_out_is_never_success(kind: Kind) {
        let shared = Shared::new(kind, "echo plan > plan.txt");
        let id = shared.plan("fix");
        shared.world.ok(&["plan", "strategize", &id]);
        let (bare, away) = (shared.world.path("remote.git"), shared.world.path("away.git"));
        fs::rename(&bare, &away).unwrap();
        let synced = shared.world.drydock(&["plan", "sync", &id]).expect(1);
        assert_eq!(synced.json["data"]["sync"]["outcome"], "fetch_failed");
        let refused = shared.world.drydock(&["plan", "execute", &id]).expect(1);
        assert_eq!(refused.error_code(), "sync_failed");
        assert_eq!(shared.world.stage(&id), "execute/queued", "the phase has not started");
        fs::rename(&away, &bare).unwrap();
        shared.world.ok(&["plan", "execute", &id]);
        assert_eq!(Some(shared.local_tip(&id)), shared.remote_tip(&id), "it was sent");
        shared.world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when a crash at any step of a recovery loses work, asks twice, or leaves a branch that was reset
    /// without a question (S4.2, S4.5).
    fn a_crash_at_any_step_of_a_recovery_converges_to_one_question(kind: Kind) {
        for point in ["sync.fetched", "sync.pinned", "sync.files", "sync.index", "sync.moved", "before_commit"] {
            let shared = Shared::new(kind, "true");
            let (id, tree) = shared.strategized();
            let ours = commit_in(&tree, "README.md", "by hand\n");
            fs::write(tree.join("draft.txt"), "not committed\n").unwrap();
            let theirs = shared.others_push(&id, "README.md", "theirs\n");
            let crashed = shared.world.drydock_with("DRYDOCK_CRASH_AT", point, &["plan", "sync", &id]);
            assert_ne!(crashed.code(), Some(6), "{point} was not reached");
            let answer = shared.world.insist(&["plan", "sync", &id]);
            assert_eq!(answer.code, Some(6), "{point}: {:#}", answer.json);
            let decision = shared.decision(&id);
            let pin = text(&decision["details"]["backup_ref"]);
            shared.world.repo.git(&["merge-base", "--is-ancestor", &ours, &pin]);
            assert_eq!(shared.world.repo.git(&["show", &format!("{pin}:draft.txt")]), "not committed", "{point}");
            assert_eq!((shared.local_tip(&id), shared.pins(&id).len()), (theirs, 1), "{point}");
            let opened = shared.world.count(&id, "decision.opened");
            assert_eq!(opened, 2, "{point}: the gate and one divergence");
        }
    }
}

on_both! {
    /// Breaks when a phase that dies in the middle of its own recovery is begun again without a word about it.
    fn a_phase_that_dies_in_its_recovery_asks_when_it_is_begun_again(kind: Kind) {
        for point in ["sync.pinned", "sync.index", "sync.moved"] {
            let shared = Shared::new(kind, "true");
            slow_writer(&shared.world, "echo plan > README.md");
            let id = shared.plan("fix");
            shared.world.ok(&["plan", "strategize", &id]);
            let mut command = shared.world.command(&["plan", "execute", &id]);
            let running = proc::spawn(command.env("DRYDOCK_CRASH_AT", point));
            shared.world.wait_file("begun");
            let theirs = shared.others_push(&id, "README.md", "theirs\n");
            shared.world.write("go", "");
            assert_ne!(running.wait(LIMIT).code(), Some(6), "{point} was not reached");
            let told = shared.world.insist(&["plan", "execute", &id]);
            assert_eq!(told.code, Some(6), "{point}: {:#}", told.json);
            let decision = shared.decision(&id);
            let pin = text(&decision["details"]["backup_ref"]);
            assert_eq!(shared.world.repo.git(&["show", &format!("{pin}:README.md")]), "plan", "{point}");
            assert_eq!(shared.local_tip(&id), theirs, "{point}");
        }
    }
}

on_both! {
    /// Breaks when `sync_again` drops the commits that it was asked about.
    fn syncing_again_joins_what_can_be_joined_by_then(kind: Kind) {
        let shared = Shared::with(kind, "true", &["--on-divergence", "pause"]);
        let (id, _, _) = executed_while_others_push(&shared, "echo plan > README.md; echo more > more.txt", "README.md", "theirs\n");
        shared.others_push(&id, "README.md", "# Example\n");
        shared.world.agent("writer", "true");
        shared.world.ok(&["decision", "resolve", &text(&shared.decision(&id)["id"]), "--option", "sync_again"]);
        shared.world.ok(&["plan", "execute", &id]);
        shared.world.ok(&["plan", "apply", &id]);
        for (path, content) in [("README.md", "plan"), ("more.txt", "more")] {
            assert_eq!(shared.world.repo.git(&["show", &format!("main:{path}")]), content);
        }
        shared.world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when two answers at once are both carried out, or an unknown one closes the question (S4.8).
    fn one_answer_counts_and_an_unknown_one_changes_nothing(kind: Kind) {
        let shared = Shared::new(kind, "true");
        let (id, tree) = shared.strategized();
        commit_in(&tree, "README.md", "by hand\n");
        shared.others_push(&id, "README.md", "theirs\n");
        shared.world.drydock(&["plan", "sync", &id]).expect(6);
        let decision = text(&shared.decision(&id)["id"]);
        let unknown = shared.world.drydock(&["decision", "resolve", &decision, "--option", "sync_again"]).expect(2);
        assert_eq!(unknown.error_code(), "unknown_option");
        assert_eq!((shared.world.count(&id, "alert"), shared.open(&id).len()), (1, 1));

        let answers: Vec<_> = ["continue", "abort", "restore_local"]
            .iter()
            .map(|option| shared.world.spawn(&["decision", "resolve", &decision, "--option", option]))
            .collect();
        let codes: Vec<_> = answers.into_iter().map(|answer| answer.wait(LIMIT).code()).collect();
        assert_eq!(codes.iter().filter(|code| **code == Some(0)).count(), 1, "{codes:?}");
        assert!(codes.iter().all(|code| matches!(code, Some(0 | 4))), "{codes:?}");
        let resolved = shared.world.ok(&["decision", "show", &decision])["decision"].clone();
        let chosen = text(&resolved["resolution"]["option"]);
        assert_eq!((&resolved["resolution"]["by"], &resolved["resolution"]["via"]), (&"tester".into(), &"command line".into()));
        shared.world.ok(&["decision", "resolve", &decision, "--option", &chosen]);
        assert_eq!(shared.world.count(&id, "decision.resolved"), 1, "the same answer again changes nothing");
    }
}

on_both! {
    /// Breaks when an answer that was recorded before a crash is forgotten after it (S4.9).
    fn an_answer_given_before_a_crash_works_after_it(kind: Kind) {
        let shared = Shared::new(kind, "true");
        let (id, tree) = shared.strategized();
        let ours = commit_in(&tree, "README.md", "by hand\n");
        shared.others_push(&id, "README.md", "theirs\n");
        shared.world.drydock(&["plan", "sync", &id]).expect(6);
        let decision = text(&shared.decision(&id)["id"]);
        let answer = ["decision", "resolve", &decision, "--option", "restore_local"];
        let crashed = shared.world.drydock_with("DRYDOCK_CRASH_AT", "after_commit", &answer);
        assert_ne!(crashed.code(), Some(0), "it did not crash");
        assert_ne!(shared.local_tip(&id), ours, "the crash came before the branch was moved");
        let answer = shared.world.insist(&["plan", "strategize", &id]);
        assert_eq!(answer.code, Some(0), "{:#}", answer.json);
        assert_eq!(shared.local_tip(&id), ours, "the answer is carried out before the next run");
        shared.world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when a second attempt replaces the first on the remote by force, or is taken for a divergence.
    fn a_second_attempt_stands_beside_the_first_on_the_remote(kind: Kind) {
        let shared = Shared::new(kind, "echo one > plan.txt");
        let id = shared.plan("fix");
        shared.world.ok(&["plan", "strategize", &id]);
        shared.world.ok(&["plan", "execute", &id]);
        let first = shared.remote_tip(&id).unwrap();
        shared.world.agent("writer", "echo two > plan.txt");
        shared.world.ok(&["plan", "revert", &id, "--reason", "another way"]);
        shared.world.ok(&["plan", "strategize", &id]);
        shared.world.ok(&["plan", "execute", &id]);
        let second = shared.remote_tip(&id).unwrap();
        shared.world.repo.git(&["merge-base", "--is-ancestor", &first, &second]);
        assert_eq!(shared.world.repo.git(&["show", &format!("{second}:plan.txt")]), "two");
        assert_eq!(shared.open(&id)[0]["kind"], "gate");
        shared.world.ok(&["plan", "apply", &id]);
        assert_eq!(shared.world.repo.git(&["show", "main:plan.txt"]), "two");
        shared.world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when what others put into drydock's own folder lands, or nobody can tell who moved the branch.
    fn the_own_folder_never_lands_and_why_names_who_moved_the_branch(kind: Kind) {
        let shared = Shared::new(kind, "true");
        slow_writer(&shared.world, "echo plan > plan.txt");
        let id = shared.plan("fix");
        shared.world.ok(&["plan", "strategize", &id]);
        let running = shared.world.spawn(&["plan", "execute", &id]);
        shared.world.wait_file("begun");
        let theirs = shared.others_push(&id, ".drydock/strategy.json", "{}");
        shared.world.write("go", "");
        assert_eq!(running.wait(LIMIT).code(), Some(0));
        let why = shared.world.ok(&["plan", "why", &id])["why"]["holds"].to_string();
        assert!(why.contains(&theirs) && why.contains("by Other to the branch"), "{why}");
        shared.world.ok(&["plan", "apply", &id]);
        let landed = shared.world.repo.git(&["ls-tree", "-r", "--name-only", "main"]);
        assert!(landed.contains("plan.txt") && !landed.contains(".drydock"), "{landed}");
        shared.world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when what a run left that failed is joined with the work of others, lands with the next, or is sent.
    fn the_work_of_a_failed_run_is_neither_sent_nor_joined(kind: Kind) {
        let shared = Shared::new(kind, "echo junk > junk.txt");
        let rule = "[[validations]]\nname = \"judge\"\ncommand = \"test ! -e junk.txt\"";
        shared.world.action("judged", &format!("[agents]\nexecute = \"writer\"\n{rule}"));
        let id = shared.plan("judged");
        shared.world.ok(&["plan", "strategize", &id]);
        shared.world.drydock(&["plan", "execute", &id]).expect(6);
        shared.world.ok(&["plan", "retry", &id]);
        let synced = shared.world.ok(&["plan", "sync", &id]);
        assert_eq!((synced["sync"]["outcome"].as_str(), shared.remote_tip(&id)), (Some("kept_local"), None));
        shared.others_push(&id, "theirs.txt", "theirs\n");
        shared.world.agent("writer", "echo plan > plan.txt");
        shared.world.ok(&["plan", "execute", &id]);
        let kept = shared.world.repo.git(&["log", "--all", "--format=", "--name-only"]);
        assert!(kept.contains("junk.txt"), "it is kept all the same");
        shared.world.ok(&["plan", "apply", &id]);
        let landed = shared.world.repo.git(&["ls-tree", "-r", "--name-only", "main"]);
        assert!(landed.contains("theirs.txt") && landed.contains("plan.txt"), "{landed}");
        assert!(!landed.contains("junk.txt"), "{landed}");
        shared.world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when what a validation wrote is in the way of what others did, or an answer is carried out again after
    /// its run, which would take the branch back from what has been joined since.
    fn an_answer_is_carried_out_once_and_validations_are_in_nobodys_way(kind: Kind) {
        let shared = Shared::new(kind, "true");
        let (began, go) = (shared.world.place("judging"), shared.world.place("judged"));
        let waits = format!("echo x > report.txt; touch {began}; while test ! -e {go}; do sleep 0.02; done; test -e good.txt");
        shared.world.action("judged", &format!("[agents]\nexecute = \"writer\"\n[[validations]]\nname = \"judge\"\ncommand = {}", Value::from(waits)));
        let id = shared.plan("judged");
        shared.world.ok(&["plan", "strategize", &id]);
        shared.world.write("judged", "");
        shared.world.agent("writer", "echo plan > plan.txt");
        shared.world.drydock(&["plan", "execute", &id]).expect(6);
        shared.world.ok(&["decision", "resolve", &text(&shared.decision(&id)["id"]), "--option", "another_round"]);
        for mark in ["judged", "judging"] {
            fs::remove_file(shared.world.path(mark)).unwrap();
        }
        shared.world.agent("writer", "echo good > good.txt");
        let running = shared.world.spawn(&["plan", "execute", &id]);
        shared.world.wait_file("judging");
        shared.others_push(&id, "report.txt", "theirs\n");
        shared.world.write("judged", "");
        assert_eq!(running.wait(LIMIT).code(), Some(0));
        assert_eq!(shared.decision(&id)["kind"], "gate");
        shared.world.ok(&["plan", "apply", &id]);
        for (path, content) in [("report.txt", "theirs"), ("plan.txt", "plan"), ("good.txt", "good")] {
            assert_eq!(shared.world.repo.git(&["show", &format!("main:{path}")]), content);
        }
        shared.world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when a reset that failed offers what cannot work, or the recovery that follows is not told after a crash
    /// because the one before it had the same commits (S4.7).
    fn a_failed_reset_offers_what_can_work_and_the_next_recovery_is_told_too(kind: Kind) {
        let shared = Shared::new(kind, "true");
        let (id, tree) = shared.strategized();
        let ours = commit_in(&tree, "README.md", "by hand\n");
        let theirs = shared.others_push(&id, "README.md", "theirs\n");
        let lock = shared.world.repo.path().join(format!(".git/refs/heads/drydock/{id}/work.lock"));
        fs::write(&lock, "").unwrap();
        let refused = shared.world.drydock(&["plan", "adopt", &id]).expect(6);
        assert_eq!(refused.error_code(), "sync_unreconciled");
        fs::remove_file(&lock).unwrap();
        let decision = shared.decision(&id);
        assert_eq!(decision["details"]["outcome"], "reset_failed");
        assert_eq!(options(&decision), ["sync_again", "restore_local", "abort"]);
        assert_eq!(shared.local_tip(&id), ours, "nothing was moved");
        shared.world.ok(&["decision", "resolve", &text(&decision["id"]), "--option", "sync_again"]);
        shared.world.drydock_with("DRYDOCK_CRASH_AT", "sync.moved", &["plan", "strategize", &id]);
        let told = shared.world.insist(&["plan", "strategize", &id]);
        assert_eq!(told.code, Some(6), "{:#}", told.json);
        assert_eq!(shared.decision(&id)["details"]["outcome"], "recovered_by_reset");
        assert_eq!(shared.local_tip(&id), theirs);
    }
}

/// Breaks when an option that the git at hand does not know passes for an empty answer (S4.13).
#[test]
fn an_option_that_git_does_not_know_is_a_clear_error() {
    let shared = Shared::new(Kind::Sqlite, "true");
    let (id, _) = shared.strategized();
    let real = git(std::path::Path::new("/"), &["--exec-path"]);
    let stub = "#!/bin/sh\nfor word in \"$@\"; do\n  if [ \"$word\" = fetch ]; then\n    \
                echo \"error: unknown option \\`no-write-fetch-head'\" >&2; exit 129\n  fi\ndone\n";
    shared.world.write("bin/git", &format!("{stub}exec {real}/git \"$@\"\n"));
    let path = shared.world.path("bin/git");
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let search = format!("{}:{}", shared.world.place("bin"), std::env::var("PATH").unwrap());
    let mut command = shared.world.command(&["plan", "sync", &id]);
    let answer = crate::world::Answer::of(proc::run(command.env("PATH", search), LIMIT)).expect(1);
    let sync = &answer.json["data"]["sync"];
    assert!(text(&sync["text"]).contains("unknown option"), "{sync:#}");
    assert_ne!(sync["outcome"], "in_sync");
}
