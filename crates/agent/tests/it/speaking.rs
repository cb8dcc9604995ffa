//! Conversations with agents that use the Agent Client Protocol: messages, responses, and every way in which
//! an agent can violate the protocol.

use std::fs;
use std::time::Duration;

use drydock_agent::{
    Activity, AgentSpec, Changed, Ending, ModelFailure, OutputStream, Permitted, Resets, Signal, TodoItem,
};
use drydock_testkit::program::acp_agent;

use crate::world::{World, alive, lines, until};

/// Returns the test agent with a behaviour, and further keys of its table.
fn agent(words: &[&str], keys: &str) -> AgentSpec {
    let mut command = vec![acp_agent()];
    command.extend(words);
    toml::from_str(&format!("protocol = 'acp'\ncommand = {command:?}\ntimeout = '60s'\n{keys}")).unwrap()
}

async fn run(world: &World, words: &[&str], keys: &str) -> (Ending, Vec<Signal>) {
    let (ending, signals) = world.run(&agent(words, keys)).await;
    (ending.unwrap(), signals)
}

fn activities(signals: &[Signal]) -> Vec<&Activity> {
    let mut told = Vec::new();
    for signal in signals {
        if let Signal::Activity(activity) = signal {
            told.push(activity);
        }
    }
    told
}

/// Breaks when an error that indicates a rate limit counts as a failure, or its reset time is lost.
#[tokio::test]
async fn an_error_that_says_it_is_a_limit_is_one() {
    let world = World::new();
    let mark = world.worktree().join("mark").display().to_string();
    let (ending, _) = run(&world, &["limited", "90", &mark], "").await;
    assert_eq!(ending, Ending::RateLimited { resets: Resets::After(Duration::from_secs(90)) });
}

/// Breaks when a step of the agent is lost or reported out of order, or the task does not reach it.
#[tokio::test]
async fn a_task_is_done_and_every_step_is_told() {
    let world = World::new();
    let (ending, signals) = run(&world, &["write"], "").await;
    assert_eq!(ending, Ending::Finished, "{signals:?}");
    assert_eq!(world.file("hello.txt"), "hello\n");
    assert!(world.file("prompt.txt").starts_with("fix the door\n"), "{}", world.file("prompt.txt"));
    let path = world.worktree().join("hello.txt").display().to_string();
    let tool = |status, paths, diffs| Activity::Tool {
        id: "t1".into(),
        title: "write hello.txt".into(),
        kind: "edit",
        status,
        paths,
        diffs,
    };
    let changed = Changed { path: path.clone(), lines_before: 0, lines_after: 1 };
    assert_eq!(
        activities(&signals),
        [
            &Activity::Plan { steps: vec![TodoItem { text: "write it".into(), status: "in_progress" }] },
            &tool("in_progress", vec![path], vec![changed]),
            &tool("completed", vec![], vec![]),
        ]
    );
    assert_eq!(lines(&signals, OutputStream::Stdout), ["I will write it.", "Now", "Done"]);
}

/// Breaks when drydock does not read or write files for the agent, or does so outside the worktree, where
/// only the agent is confined.
#[tokio::test]
async fn files_are_read_and_written_in_the_worktree_and_nowhere_else() {
    let world = World::new();
    let (ending, signals) = run(&world, &["fs"], "").await;
    assert_eq!(ending, Ending::Finished, "{signals:?}");
    assert_eq!(world.file("deep/hello.txt"), "a\nb\nc\n");
    let outside = tempfile::tempdir().unwrap();
    let precious = outside.path().join("precious");
    fs::write(&precious, "mine").unwrap();
    let (ending, signals) = run(&world, &["out", precious.to_str().unwrap()], "").await;
    assert_eq!(ending, Ending::Finished, "{signals:?}");
    assert_eq!(lines(&signals, OutputStream::Stdout), ["held"]);
    assert_eq!(fs::read_to_string(precious).unwrap(), "mine");
}

/// Breaks when the policy is not followed, or its answer is not reported.
#[tokio::test]
async fn permissions_are_given_and_refused_by_rule() {
    for (keys, file, answer) in [
        ("", "allowed.txt", "allowed"),
        ("permissions = 'reject'", "refused.txt", "rejected"),
        ("permissions = { execute = 'reject', other = 'allow' }", "refused.txt", "rejected"),
        ("permissions = { read = 'reject', other = 'allow' }", "allowed.txt", "allowed"),
    ] {
        let world = World::new();
        let (ending, signals) = run(&world, &["ask"], keys).await;
        assert_eq!(ending, Ending::Finished, "{keys}: {signals:?}");
        assert_eq!(world.file(file), "x", "{keys}");
        let told = Activity::Permission { title: "make it".into(), kind: "execute", answer };
        assert_eq!(activities(&signals), [&told], "{keys}");
    }
}

/// Breaks when a permission is reported as given although the agent got a rejection.
#[tokio::test]
async fn a_permission_that_could_not_be_given_is_not_told_as_given() {
    let world = World::new();
    let (ending, signals) = run(&world, &["ask_without_yes"], "").await;
    assert_eq!(ending, Ending::Finished, "{signals:?}");
    let told = Activity::Permission { title: "make it".into(), kind: "execute", answer: "cancelled" };
    assert_eq!(activities(&signals), [&told]);
    assert!(!signals.iter().any(|signal| matches!(signal, Signal::Keep { .. })), "{signals:?}");
}

/// code 8.1: breaks when a question is not asked, other text counts as its answer, or the next run does not
/// find its answer.
#[tokio::test]
async fn a_permission_that_is_asked_for_becomes_a_question_and_its_answer_holds() {
    let mut world = World::new();
    let words = r#"May the agent use a tool (execute): make it with {"command":"make"}?"#;
    world.task.feedback = vec![format!("{words} — allow")];
    let spec = agent(&["ask"], "permissions = 'ask'");
    let (sender, mut heard) = tokio::sync::mpsc::channel(100);
    let stop = tokio_util::sync::CancellationToken::new();
    let run = world.runner.agent(&spec, &world.task, &world.dirs(), sender, stop.clone());
    let listen = async {
        loop {
            if let Signal::Permission(asked) = heard.recv().await.expect("it asks") {
                stop.cancel();
                break asked;
            }
        }
    };
    let (ending, asked) = tokio::join!(run, listen);
    assert_eq!((ending.unwrap(), asked.question.as_str()), (Ending::Stopped, words));
    assert_eq!(world.file("allowed.txt") + &world.file("refused.txt"), "");

    for (allowed, file) in [(true, "allowed.txt"), (false, "refused.txt")] {
        let (tool, matches) = (asked.tool.clone(), asked.matches.clone());
        world.task.permitted = [Permitted { tool, matches, allowed, once: false }].into_iter().collect();
        let (ending, signals) = world.run(&spec).await;
        assert_eq!((ending.unwrap(), world.file(file).as_str()), (Ending::Finished, "x"), "{signals:?}");
    }
}

/// Breaks when a stop is not sent by the protocol, or an agent that ignores it stays.
#[tokio::test]
async fn a_stop_is_told_by_the_protocol_and_then_by_force() {
    for behaviour in ["stall", "deaf"] {
        let world = World::new();
        let script = format!("echo $$ > pid; exec {} {behaviour}", acp_agent());
        let spec: AgentSpec =
            toml::from_str(&format!("protocol = 'acp'\ncommand = ['sh', '-c', '{script}']\n")).unwrap();
        let asked = until("it was started", || !world.file("pid").is_empty());
        let (ending, _) = world
            .run_until(&spec, async {
                asked.await;
                // The pid is written before the agent gets the task; a stop at any moment must have the same
                // result.
                tokio::time::sleep(Duration::from_millis(300)).await;
            })
            .await;
        assert_eq!(ending.unwrap(), Ending::Stopped);
        assert!(!alive(&world.file("pid")));
        assert_eq!(world.file("cancelled.txt"), if behaviour == "stall" { "x" } else { "" });
    }
}

/// Breaks when one of these hangs, counts as success, or its reason does not name the violation.
#[tokio::test]
async fn every_way_to_break_off_is_named() {
    for (behaviour, reason) in [
        ("version", "uses protocol version 7"),
        ("auth", "requires a login"),
        ("die", "middle of a message, after 38 bytes"),
        ("leave", "ended without an answer to `session/prompt`"),
        ("garbage", "not a message: \"Welcome to the agent!\""),
        ("broken", "not valid JSON"),
        ("huge", "more than 8388608 bytes"),
        ("refuse", "refused to continue"),
        ("tokens", "token limit"),
        ("error", "answered `session/prompt` with an error: out of luck"),
    ] {
        let world = World::new();
        let (ending, signals) = run(&world, &[behaviour], "").await;
        let (cause, seen) = match &ending {
            Ending::Unfinished { reason, .. } => (None, reason),
            Ending::ModelFailed { cause, reason, .. } => (Some(*cause), reason),
            _ => panic!("{behaviour}: {ending:?} {signals:?}"),
        };
        let expected = match behaviour {
            "auth" => Some(ModelFailure::Auth),
            "refuse" => Some(ModelFailure::Refused),
            _ => None,
        };
        assert_eq!(cause, expected, "{behaviour}");
        assert!(seen.contains(reason), "{behaviour}: {seen}");
    }
    let world = World::new();
    let (ending, _) = run(&world, &["fail"], "").await;
    assert_eq!(ending, Ending::Failed { code: 3, tail: "no model today".into() });
}

/// Breaks when drydock keeps waiting for an agent that never ends its turn or never responds, or when an
/// agent that floods fills memory.
#[tokio::test]
async fn silence_runs_out_of_time_and_a_flood_out_of_room() {
    for behaviour in ["deaf", "silent"] {
        let world = World::new();
        let spec = agent(&[behaviour], "").with_timeout(Duration::from_millis(500));
        let (ending, _) = world.run(&spec).await;
        assert!(matches!(ending.unwrap(), Ending::TimedOut { .. }), "{behaviour}");
    }
    let world = World::new();
    let (ending, _) = run(&world, &["flood"], "output_max = 187500").await;
    assert_eq!(ending, Ending::OutputExceeded { limit: 3_000_000 });
}

/// Breaks when a program that does not use the protocol counts as an agent, or as one that did its work.
#[tokio::test]
async fn a_program_that_speaks_something_else_is_told_from_an_agent() {
    let world = World::new();
    for (program, reason) in [("true", "without an answer to `initialize`"), ("env", "not a message")] {
        let spec = AgentSpec::acp([program]).unwrap();
        let (ending, _) = world.run(&spec).await;
        let ending = ending.unwrap();
        assert!(
            matches!(&ending, Ending::Unfinished { reason: seen, .. } if seen.contains(reason)),
            "{program}: {ending:?}"
        );
    }
}

/// Breaks when a secret of an agent is quoted in the reason for its failure.
#[tokio::test]
async fn what_is_quoted_of_a_broken_conversation_holds_no_secret() {
    let world = World::new();
    let spec: AgentSpec = toml::from_str(
        "protocol = 'acp'\ncommand = ['sh', '-c', 'echo $KEY']\nenv = { KEY = 'sk-very-secret' }\n",
    )
    .unwrap();
    let (ending, _) = world.run(&spec).await;
    let ending = format!("{:?}", ending.unwrap());
    assert!(ending.contains("[hidden]") && !ending.contains("sk-very-secret"), "{ending}");
}
