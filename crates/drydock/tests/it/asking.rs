//! Questions that agents ask in their own way: what is clear is taken, and what is not reaches a person as it came.

use serde_json::{Value, json};

use crate::tokens::knock;
use crate::working::Server;
use crate::world::{CONFLICT, World, list, stage, text};

const ACK: &str = r#"echo '{"drydock":"verdict","verdict":"ack"}'"#;

fn open_decision(world: &World, plan: &str) -> Value {
    let open = list(&world.ok(&["decision", "list", "--open", "--plan", plan])["decisions"]);
    assert_eq!(open.len(), 1, "{open:?}");
    open[0].clone()
}

on_both! {
    /// Breaks when texts are no options, when their answer does not reach the next run, or when the plan lands without it.
    fn texts_are_options_that_a_person_can_choose(kind: Kind) {
        let world = World::with_writer(kind, "");
        let (ask, task) = (r#"{"drydock":"ask","question":"red or blue?","options":["red","blue"]}"#, world.place("task"));
        world.agent("writer", &format!(
            "[ -e {task} ] && {{ printf %s \"$DRYDOCK_TASK\" > {task}; echo blue > colour.txt; exit; }}; \
             touch {task}; echo grey > colour.txt; echo '{ask}'"
        ));
        let id = world.plan(&["--profile", "auto"]);
        world.ok(&["plan", "strategize", &id]);
        assert_eq!(stage(world.drydock(&["plan", "execute", &id]).expect(6).plan()), "execute/waiting");
        let asked = open_decision(&world, &id);
        let offered: Vec<_> = list(&asked["options"]).iter().map(|one| (text(&one["id"]), text(&one["label"]))).collect();
        let both = |word: &str| (word.to_owned(), word.to_owned());
        assert_eq!(offered[..2], [both("red"), both("blue")]);
        assert_eq!((text(&asked["question"]), world.count(&id, "agent.garbled")), ("red or blue?".to_owned(), 0));
        world.ok(&["decision", "resolve", &text(&asked["id"]), "--option", "blue"]);
        world.drydock(&["plan", "execute", &id]).expect(0);
        let given: Value = serde_json::from_str(&world.lines("task").join("\n")).unwrap();
        assert_eq!(given["feedback"], json!(["red or blue? — blue"]));
        world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when a question that cannot be read is dropped and the plan goes on, whoever asks and whatever was said
    /// before; or when a person cannot see it as it came, or not answer it in words.
    fn a_question_that_cannot_be_read_is_put_to_a_person_as_it_came(kind: Kind) {
        let twice = r#"echo '{"drydock":"ask","question":"red or blue?","options":[{"id":"a","label":"red"},{"id":"a","label":"blue"}]}'"#;
        let broken = r#"echo '{"drydock":"ask","question":"red or blue?","options":['"#;
        let late = format!("yes '{{\"drydock\":\"progress\",\"text\":\"x\"}}' | head -n 1100; {broken}");
        for (asks, phase, says, wrong) in [
            ("thinker", "strategize", twice, "two options have the id"),
            ("writer", "execute", broken, "not valid JSON"),
            ("writer", "execute", late.as_str(), "not valid JSON"),
            ("critic", "execute", r#"echo '{"drydock":"ask","options":["red or blue?"]}'"#, "missing field `question`"),
        ] {
            let world = World::new(kind);
            let told = world.place("told");
            for (agent, does) in [("thinker", "true"), ("writer", "echo work > work.txt"), ("critic", ACK)] {
                let first = if agent == asks { says } else { does };
                world.agent(agent, &format!("if echo \"$DRYDOCK_TASK\" | grep -q 'take red'; then echo {agent} >> {told}; {does}; else {first}; fi"));
            }
            world.action("fix", "reviewers = [{ agent = \"critic\", critical = true }]\n[agents]\nstrategize = \"thinker\"\nexecute = \"writer\"");
            let id = world.plan(&["--profile", "auto"]);
            if phase == "execute" {
                world.ok(&["plan", "strategize", &id]);
            }
            assert_eq!(stage(world.drydock(&["plan", phase, &id]).expect(6).plan()), format!("{phase}/waiting"), "{asks}");
            let asked = open_decision(&world, &id);
            let question = text(&asked["question"]);
            for part in ["red or blue?", "\"drydock\":\"ask\"", wrong, asks] {
                assert!(question.contains(part), "{asks}: {part}: {question}");
            }
            assert_eq!(asked["kind"], "agent", "{asks}");
            world.ok(&["decision", "resolve", &text(&asked["id"]), "--option", "answered", "--note", "take red"]);
            world.drydock(&["plan", phase, &id]).expect(0);
            assert!(world.lines("told").iter().any(|line| line == asks), "{asks} was not told the answer");
            // More happened to one that says too much than is read at a time.
            if says != late {
                world.assert_sound(&id);
            }
        }
    }
}

on_both! {
    /// Breaks when `plan why` sends people to a worker, or to a command, though an open decision holds the plan.
    fn why_follows_the_open_decision(kind: Kind) {
        let world = World::with_writer(kind, "echo hi > hello.txt");
        let id = world.plan(&["--profile", "manual"]);
        let why = |world: &World| text(&world.ok(&["plan", "why", &id])["why"]["summary"]);
        assert_eq!(why(&world), "strategize is queued and waits for a person's answer");
        world.ok(&["plan", "strategize", &id]);
        assert_eq!(why(&world), "strategize is complete; execute waits for a person's answer");
        let free = world.plan(&["--profile", "auto"]);
        let summary = world.ok(&["plan", "why", &free])["why"]["summary"].clone();
        assert_eq!(summary, "strategize is queued and waits for a worker");
    }
}

on_both! {
    /// Breaks when asking for a phase of a failed plan does not say that a person must answer first, and what.
    fn a_failed_plan_that_waits_for_an_answer_says_which(kind: Kind) {
        let world = World::new(kind);
        world.agent("writer", "echo hi > hello.txt");
        world.action("fix", "[agents]\nexecute = \"writer\"\n[[validations]]\nname = \"never\"\ncommand = \"exit 1\"");
        let id = world.plan_after("strategize");
        world.drydock(&["plan", "execute", &id]).expect(6);
        assert_eq!(world.stage(&id), "execute/errored");
        let asked = text(&open_decision(&world, &id)["id"]);
        let server = Server::start(&world, &["--workers", "0"]);
        for phase in ["execute", "apply"] {
            let args = ["plan", phase, &id];
            for answer in [world.drydock(&args), server.drydock(&world, &args)] {
                let refused = answer.expect(6);
                assert_eq!(refused.error_code(), "decision_open");
                assert_eq!(refused.json["error"]["details"]["decision_id"], asked.as_str());
            }
            let refused = server.post(&format!("/api/v1/plans/{id}/{phase}"));
            assert!(refused.starts_with("HTTP/1.1 409") && refused.contains("\"decision_open\"") && refused.contains(&asked), "{refused}");
        }
        let why = world.ok(&["plan", "why", &id])["why"].clone();
        assert_eq!(why["summary"], "execute failed and waits for a person's answer");
    }
}

on_both! {
    /// Breaks when a second answer loses its note without a word, or the same answer again is refused.
    fn a_second_answer_with_another_note_is_refused_and_told_what_stands(kind: Kind) {
        let world = World::with_writer(kind, "echo hi > hello.txt");
        let id = world.plan_after("execute");
        let gate = text(&open_decision(&world, &id)["id"]);
        let approve = |note: &[&str]| world.drydock(&[&["decision", "resolve", &gate, "--option", "approve"], note].concat());
        approve(&["--note", "first"]).expect(0);
        let seen = world.show(&id);
        for again in [&[][..], &["--note", "first"]] {
            let same = approve(again).expect(0);
            assert_eq!(same.json["data"]["decision"]["resolution"]["note"], "first");
        }
        let refused = approve(&["--note", "only with docs"]).expect(CONFLICT);
        assert_eq!(refused.error_code(), "decision_closed");
        let error = &refused.json["error"];
        assert!(text(&error["text"]).contains("with the note \"first\""), "{error}");
        assert_eq!(error["details"]["resolution"]["option"], "approve");
        assert_eq!(world.show(&id), seen);
    }
}

/// Copies a plan and its open decision so many times, as if each had been made after the other.
fn copy(world: &World, plan: &str, decision: &str, times: u32) {
    let number = "substr('0000000000000000', 1, 16 - length(CAST(i AS TEXT))) || CAST(i AS TEXT)";
    let counted = format!(
        "WITH RECURSIVE counted(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM counted WHERE i < {times})"
    );
    let renamed =
        format!("replace(replace(body, '{plan}', 'pln-' || {number}), '{decision}', 'dec-' || {number})");
    world.query(&format!(
        "{counted} INSERT INTO plans (id, phase, state, project, action, parent, root, revision, created_at, updated_at, body) \
         SELECT 'pln-' || {number}, phase, state, project, action, parent, 'pln-' || {number}, revision, created_at, updated_at, {renamed} \
         FROM plans, counted WHERE id = '{plan}'"
    ));
    world.query(&format!(
        "{counted} INSERT INTO decisions (id, plan, kind, status, created_at, body) \
         SELECT 'dec-' || {number}, 'pln-' || {number}, kind, status, created_at, {renamed} FROM decisions, counted WHERE id = '{decision}'"
    ));
}

on_both! {
    /// Page B3: breaks when a question cannot be reached because 2,000 are open, when an agent's stands behind gates, when
    /// the board does not say that its plan asks, or when the count is wrong.
    fn no_question_is_lost_among_2_000(kind: Kind) {
        let world = World::with_writer(kind, r#"echo '{"drydock":"ask","question":"red or blue?"}'"#);
        let earliest = world.plan_after("strategize");
        let earliest = text(&world.show(&earliest)["pending_decision"]);
        let asking = world.plan(&["--profile", "auto"]);
        world.ok(&["plan", "strategize", &asking]);
        world.drydock(&["plan", "execute", &asking]).expect(6);
        let asked = text(&world.show(&asking)["pending_decision"]);
        let gated = world.plan_after("strategize");
        let gate = text(&world.show(&gated)["pending_decision"]);
        copy(&world, &gated, &gate, 1_997);
        let server = Server::start(&world, &["--workers", "0", "--tokens", "optional"]);
        let ask = |path: &str| {
            let headers = format!("Host: {}\r\nAccept: text/html\r\n", server.address());
            let reply = knock(&server, &headers, &format!("GET {path}"), &Value::Null);
            assert_eq!(reply.status, 200, "{path}: {}", reply.body);
            reply.body
        };
        let page = |path: &str| ask(path).as_str().unwrap().to_owned();
        let total = 2_000;
        let board = page("/");
        assert!(board.contains(&format!("<title>({total}) Board")) && board.contains("Question: Red or blue?"), "{board}");
        assert_eq!(board.matches("Question: ").count(), 21, "{board}");
        let first = page("/questions");
        let at = |id: &str| first.find(&format!("data-id=\"{id}\"")).unwrap_or(usize::MAX);
        assert!(at(&asked) < at(&earliest) && at(&earliest) < at(&gate) && at(&gate) < at("dec-0000000000000001"), "{first}");
        assert!(first.contains(&format!("{total} open")), "{first}");
        let mut seen = Vec::new();
        let mut after = String::new();
        loop {
            let answer = ask(&format!("/api/v1/decisions?open=true&order=need&limit=990{after}"));
            assert_eq!(answer["total"], total);
            seen.extend(list(&answer["decisions"]).iter().map(|one| text(&one["id"])));
            let Some(next) = answer["next"].as_str() else { break };
            // The page goes on where the interface does.
            if seen.len() == 1_980 {
                let last = page(&format!("/questions?after={next}"));
                assert!(last.contains("dec-0000000000001997") && !last.contains("Next page"), "{last}");
            }
            after = format!("&after={next}");
        }
        let copies = (1..=1_997).map(|number| format!("dec-{number:016}"));
        assert_eq!(seen, [asked, earliest, gate].into_iter().chain(copies).collect::<Vec<_>>());
    }
}
