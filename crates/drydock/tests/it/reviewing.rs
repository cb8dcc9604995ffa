//! Reviews: critical reviewers agree on one commit, or a person is asked.

use crate::world::{Kind, World, text};

/// A world with a writer and a critical reviewer, each a script.
fn reviewed(kind: Kind, writer: &str, critic: &str) -> (World, String) {
    let world = World::new(kind);
    world.agent("writer", writer);
    world.agent("critic", critic);
    let reviewers = "reviewers = [{ agent = \"critic\", critical = true }]";
    world.action("fix", &format!("{reviewers}\n[agents]\nexecute = \"writer\""));
    let id = world.plan_after("strategize");
    (world, id)
}

const YES: &str = r#"echo '{"drydock":"verdict","verdict":"ack"}'"#;

on_both! {
    /// Breaks when a refusal does not go back with its reason, a proposal completes without the critic's yes, or a verdict that
    /// the critic quotes counts before the one it gave.
    fn a_refusal_goes_back_and_the_next_proposal_is_judged_anew(kind: Kind) {
        let critic = r#"if grep -q better work.txt; then echo '{"drydock":"verdict","verdict":"ack","version":2}'; else echo '{"drydock":"verdict","verdict":"refuse","version":1,"reason":"make it better"}'; printf 'The file says:\n{"drydock":"verdict",\n"verdict":"ack","version":1}\n'; fi"#;
        let writer = "cat > /dev/null; if echo \"$DRYDOCK_TASK\" | grep -q 'make it better'; then echo better > work.txt; else echo work > work.txt; fi";
        let (world, id) = reviewed(kind, writer, critic);
        world.drydock(&["plan", "execute", &id]).expect(0);
        let kinds: Vec<_> = world.events(&id).iter().map(|event| text(&event["kind"])).filter(|kind| kind.starts_with("review.")).collect();
        assert_eq!(kinds, ["review.proposed", "review.refused", "review.proposed", "review.acknowledged"]);
        world.ok(&["plan", "apply", &id]);
        assert_eq!(world.repo.git(&["show", "main:work.txt"]), "better");
        world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when reviews go on for ever, or end without a person (S4.12).
    fn after_five_refused_proposals_a_person_is_asked(kind: Kind) {
        let critic = r#"echo '{"drydock":"verdict","verdict":"refuse","reason":"never"}'"#;
        let (world, id) = reviewed(kind, "echo x >> work.txt", critic);
        world.drydock(&["plan", "execute", &id]).expect(6);
        assert_eq!((world.stage(&id), world.count(&id, "review.refused")), ("execute/waiting".to_owned(), 5));
        let decision = world.ok(&["decision", "list", "--open"])["decisions"][0].clone();
        assert_eq!(decision["kind"], "review");
        world.agent("critic", YES);
        world.ok(&["decision", "resolve", &text(&decision["id"]), "--option", "another_round"]);
        world.drydock(&["plan", "execute", &id]).expect(0);
        world.ok(&["plan", "apply", &id]);
        assert_eq!(world.repo.git(&["show", "main:work.txt"]).lines().count(), 6, "the work so far was kept");
        world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when a verdict about another version counts, or a reviewer's own edits do.
    fn a_verdict_on_another_version_and_a_reviewers_edits_count_for_nothing(kind: Kind) {
        let stale = r#"echo mine > work.txt; echo '{"drydock":"verdict","verdict":"ack","version":99}'"#;
        let (world, id) = reviewed(kind, "echo work > work.txt", stale);
        world.drydock(&["plan", "execute", &id]).expect(6);
        assert_eq!((world.count(&id, "review.acknowledged"), world.count(&id, "review.silent")), (0, 3));
        world.agent("critic", YES);
        let decision = world.ok(&["decision", "list", "--open"])["decisions"][0].clone();
        world.ok(&["decision", "resolve", &text(&decision["id"]), "--option", "another_round"]);
        world.drydock(&["plan", "execute", &id]).expect(0);
        world.ok(&["plan", "apply", &id]);
        assert_eq!(world.repo.git(&["show", "main:work.txt"]), "work");
    }
}

on_both! {
    /// Breaks when an advisory reviewer can hold a plan up, or is not heard.
    fn an_advisory_refusal_is_told_and_holds_nothing_up(kind: Kind) {
        let (world, id) = reviewed(kind, "echo work > work.txt", YES);
        world.agent("adviser", r#"echo '{"drydock":"verdict","verdict":"refuse","reason":"taste"}'"#);
        world.action("advised", "reviewers = [{ agent = \"adviser\" }]\n[agents]\nexecute = \"writer\"");
        let advised = text(&world.ok(&["plan", "use", "advised", "--project", "app"])["plan"]["id"]);
        for plan in [&id, &advised] {
            if plan == &advised {
                world.ok(&["plan", "strategize", plan]);
            }
            world.drydock(&["plan", "execute", plan]).expect(0);
        }
        assert_eq!(world.count(&advised, "review.refused"), 1);
        world.agent("adviser", "exit 3");
        let unheard = text(&world.ok(&["plan", "use", "advised", "--project", "app"])["plan"]["id"]);
        world.ok(&["plan", "strategize", &unheard]);
        world.drydock(&["plan", "execute", &unheard]).expect(0);
        assert_eq!(world.count(&unheard, "review.silent"), 1);
    }
}

on_both! {
    /// Breaks when what an advisory reviewer asks is lost, or holds the plan up.
    fn an_advisory_reviewers_question_is_told_and_holds_nothing_up(kind: Kind) {
        let world = World::with_writer(kind, "echo work > work.txt");
        world.agent("adviser", r#"echo '{"drydock":"ask","question":"Why so small?"}'; sleep 300"#);
        world.action("advised", "reviewers = [{ agent = \"adviser\" }]\n[agents]\nexecute = \"writer\"");
        let id = text(&world.ok(&["plan", "use", "advised", "--project", "app"])["plan"]["id"]);
        world.ok(&["plan", "strategize", &id]);
        world.drydock(&["plan", "execute", &id]).expect(0);
        let events = world.events(&id);
        let of = |kind: &str| events.iter().find(|event| event["kind"] == kind).unwrap_or_else(|| panic!("no {kind}"))["data"].clone();
        assert_eq!(text(&of("review.silent")["reason"]), "it asked: Why so small?");
        assert!(text(&of("alert")["text"]).contains("Why so small?"), "{}", of("alert"));
        world.assert_sound(&id);
    }
}

on_both! {
    /// Finding 8 of agents: breaks when a reviewer without a verdict has the writer work again, is not asked again, or no
    /// person is asked in the end; or when a verdict over several lines is none.
    fn a_reviewer_without_a_verdict_is_asked_again_and_the_writer_is_not(kind: Kind) {
        let (world, id) = reviewed(kind, "echo x >> work.txt", "echo I like it");
        world.drydock(&["plan", "execute", &id]).expect(6);
        assert_eq!((world.count(&id, "review.silent"), world.count(&id, "agent.sent_back")), (3, 0));
        let decision = world.ok(&["decision", "list", "--open"])["decisions"][0].clone();
        assert!(text(&decision["question"]).contains("critic was asked 3 times"), "{decision:#}");
        let verdict = r#"printf 'Good:\n```json\n{\n  "drydock": "verdict",\n  "verdict": "ack",\n  "version": 1\n}\n```\n'"#;
        world.agent("critic", &format!("if echo \"$DRYDOCK_TASK\" | grep -q 'was not valid'; then {verdict}; fi"));
        world.ok(&["decision", "resolve", &text(&decision["id"]), "--option", "ask_again"]);
        world.drydock(&["plan", "execute", &id]).expect(0);
        assert_eq!((world.count(&id, "review.silent"), world.count(&id, "review.acknowledged")), (4, 1));
        world.ok(&["plan", "apply", &id]);
        assert_eq!(world.repo.git(&["show", "main:work.txt"]), "x", "the writer worked once");
        world.assert_sound(&id);
    }
}
