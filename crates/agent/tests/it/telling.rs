//! The task and the environment of an agent.

use std::collections::BTreeSet;

use drydock_agent::{AgentSpec, Ending, Message, OutputStream, Signal};
use serde_json::Value;

use crate::world::{World, lines, sh};

/// Breaks when the task is not written to standard input, or differs from the variable.
#[tokio::test]
async fn the_task_arrives_on_standard_input_and_in_the_environment() {
    let world = World::new();
    let (ending, _) = world.sh("cat > stdin; printf %s \"$DRYDOCK_TASK\" > variable").await;
    assert_eq!(ending, Ending::Finished);
    assert_eq!(world.file("stdin"), world.file("variable"));
    let told: Value = serde_json::from_str(&world.file("stdin")).unwrap();
    assert_eq!(told, serde_json::to_value(&world.task).unwrap());
    assert_eq!((&told["task"], &told["feedback"][0]), (&"fix the door".into(), &"the hinge too".into()));
}

/// Breaks when a long task is passed in one variable, which Linux rejects.
#[tokio::test]
async fn a_task_too_long_for_a_variable_is_in_a_file() {
    let mut world = World::new();
    world.task.task = "long ".repeat(100_000);
    let script = "cat > stdin; cat \"$DRYDOCK_TASK_FILE\" > file; echo \"${DRYDOCK_TASK-unset}\" > variable";
    let (ending, _) = world.sh(script).await;
    assert_eq!((ending, world.file("variable").as_str()), (Ending::Finished, "unset\n"));
    assert!(world.file("stdin").len() > 500_000);
    assert_eq!(world.file("stdin"), world.file("file"));
}

/// Breaks at exactly one of the two sides of the kernel's limit if the length is miscounted.
#[tokio::test]
async fn the_longest_task_that_fits_a_variable_is_in_one() {
    let mut world = World::new();
    let frame = serde_json::to_string(&world.task).unwrap().len() - world.task.task.len();
    let room = 128 * 1024 - "DRYDOCK_TASK=".len() - 1 - frame;
    for (length, set) in [(room, "yes"), (room + 1, "no")] {
        world.task.task = "x".repeat(length);
        let (ending, signals) =
            world.sh("if [ -n \"$DRYDOCK_TASK\" ]; then echo yes; else echo no; fi").await;
        assert_eq!((ending, lines(&signals, OutputStream::Stdout)), (Ending::Finished, vec![set]));
    }
}

/// Breaks when anything from drydock's own environment is inherited.
#[tokio::test]
async fn the_environment_holds_nothing_but_what_was_meant() {
    assert!(
        std::env::var_os("CARGO_PKG_NAME").is_some(),
        "cargo test sets this variable, which must not leak"
    );
    let world = World::new();
    let (_, signals) = world.run(&AgentSpec::command(["env"]).unwrap()).await;
    let names: BTreeSet<&str> = lines(&signals, OutputStream::Stdout)
        .iter()
        .filter_map(|line| Some(line.split_once('=')?.0))
        .collect();
    let meant = [
        "DRYDOCK_KEEPER",
        "DRYDOCK_MCP_SECRET",
        "DRYDOCK_MCP_SOCKET",
        "DRYDOCK_PHASE",
        "DRYDOCK_PLAN",
        "DRYDOCK_RUN",
        "DRYDOCK_TASK",
        "DRYDOCK_WORKTREE",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_OPTIONAL_LOCKS",
        "GIT_TERMINAL_PROMPT",
        "HOME",
        "LANG",
        "PATH",
        "TMPDIR",
    ];
    assert_eq!(names, BTreeSet::from(meant));
}

/// Breaks when configured variables are lost, or the temporary directory is not created.
#[tokio::test]
async fn configured_and_passed_variables_are_there() {
    let world = World::new();
    let spec: AgentSpec = toml::from_str(
        "protocol = 'command'\ncommand = ['sh', '-c', 'echo $A $CARGO_PKG_NAME ${NOT_SET-none} > seen; touch \"$HOME/x\"']\n\
         env = { A = 'b' }\npass_env = ['CARGO_PKG_NAME', 'NOT_SET']\n",
    )
    .unwrap();
    let (ending, _) = world.run(&spec).await;
    assert_eq!(ending.unwrap(), Ending::Finished);
    assert_eq!(world.file("seen"), "b drydock-agent none\n");
    assert!(world.dirs().temp.join("x").exists());
}

/// Breaks when a secret of an agent appears in a log, message, error or ending.
#[tokio::test]
async fn what_an_agent_is_given_in_confidence_is_not_passed_on() {
    let world = World::new();
    let spec: AgentSpec = toml::from_str(
        r#"
        protocol = "command"
        command = ["sh", "-c", '''
            echo "key $KEY and $CARGO_PKG_NAME by $AIDER_MODEL"; echo "key $KEY" >&2
            echo '{"drydock":"progress","text":"'"$KEY"'"}'; echo '{"drydock":"'"$KEY"'"}'
            echo "$KEY" > kept; exit 3
        ''']
        env = { KEY = "sk-very-secret", AIDER_MODEL = "openai/some-model" }
        pass_env = ["CARGO_PKG_NAME"]
        hide_env = ["CARGO_PKG_NAME"]
        "#,
    )
    .unwrap();
    let (ending, signals) = world.run(&spec).await;
    let seen = format!("{:?} {signals:?}", ending.unwrap());
    assert!(!seen.contains("sk-very-secret") && !seen.contains("drydock-agent"), "{seen}");
    assert!(seen.contains("by openai/some-model"), "agents 11: {seen}");
    assert_eq!(signals.len(), 4, "{seen}");
    assert!(seen.matches("[hidden]").count() >= 5, "{seen}");
    assert_eq!(world.file("kept"), "sk-very-secret\n", "its own files are its own");
}

/// Breaks when a program that takes its task as an argument does not get it, or gets it twice.
#[tokio::test]
async fn a_task_can_be_an_argument_in_words() {
    let world = World::new();
    let spec =
        AgentSpec::command(["sh", "-c", "printf %s \"$1\" > said; cat > stdin", "sh", "{prompt}"]).unwrap();
    let (ending, _) = world.run(&spec).await;
    assert_eq!((ending.unwrap(), world.file("stdin").as_str()), (Ending::Finished, ""));
    assert!(
        world.file("said").starts_with("fix the door\n\nDefinition of done:\n- it opens\n"),
        "{}",
        world.file("said")
    );
}

/// Breaks when a line is misclassified, or two lines change places.
#[tokio::test]
async fn messages_are_told_from_log_and_garbled_ones_are_reported() {
    let world = World::new();
    let script = r#"
        echo hello
        echo '{"drydock":"progress","text":"half","percent":50}'
        echo '{"drydock":"choice","question":"q"}'
        echo '{"level":"info"}'
        printf '{"drydock":"checkpoint","label":"without an end of line"}'
    "#;
    let (ending, signals) = world.sh(script).await;
    assert_eq!(ending, Ending::Finished);
    let log = |line: &str| Signal::Log { stream: OutputStream::Stdout, line: line.into() };
    assert_eq!(signals[0], log("hello"));
    assert_eq!(signals[1], Signal::Message(Message::Progress { text: "half".into(), percent: Some(50.0) }));
    assert!(
        matches!(&signals[2], Signal::Garbled { line, reason } if line.contains("choice") && reason.contains("chosen"))
    );
    assert_eq!(signals[3], log(r#"{"level":"info"}"#));
    assert_eq!(signals[4], Signal::Message(Message::Checkpoint { label: "without an end of line".into() }));
}

/// Breaks when standard error is searched for messages.
#[tokio::test]
async fn standard_error_is_only_log() {
    let world = World::new();
    let (_, signals) = world.run(&sh(r#"echo '{"drydock":"checkpoint","label":"x"}' >&2"#)).await;
    assert_eq!(lines(&signals, OutputStream::Stderr), [r#"{"drydock":"checkpoint","label":"x"}"#]);
}
