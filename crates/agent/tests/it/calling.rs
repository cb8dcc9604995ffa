//! Tools that an agent calls: handled like its lines, for its own run, within limits, and only while the run
//! lasts.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use drydock_agent::{
    AgentSpec, Ending, Message, OutputStream, Proposal, Reads, RunDirs, Sandbox, Signal, VerdictKind,
};
use drydock_testkit::program::acp_agent;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::world::{World, dealt, lines, sh, until};

/// How long a server may take to notice that its run has ended.
const PATIENCE: Duration = Duration::from_secs(15);
const SERVER: &str = env!("CARGO_BIN_EXE_drydock-agent-tests");

fn messages(signals: &[Signal]) -> Vec<&Message> {
    let mut heard = Vec::new();
    for signal in signals {
        if let Signal::Message(message) | Signal::Called(message, _) = signal {
            heard.push(message);
        }
    }
    heard
}

/// Breaks when an agent with a protocol is not offered the tools, cannot start their server where it may read
/// almost nothing, or a call is not handled as a message.
#[tokio::test]
async fn a_speaking_agent_is_offered_tools_and_a_call_is_heard() {
    let mut world = World::new();
    let read = Reads::Only(vec![acp_agent().into()]);
    world.runner = world.runner.clone().with_sandbox(Sandbox::default().with_read(read));
    let arguments = json!({"question": "Which door?", "chosen": "the left", "confidence": 0.5}).to_string();
    let command = [acp_agent(), "tool", "record_choice", &arguments];
    let spec: AgentSpec =
        toml::from_str(&format!("protocol = 'acp'\ncommand = {command:?}\ntimeout = '60s'\n")).unwrap();
    let (ending, signals) = world.run(&spec).await;
    assert_eq!(ending.unwrap(), Ending::Finished, "{signals:?}");
    let choice = Message::Choice {
        question: "Which door?".into(),
        chosen: "the left".into(),
        alternatives: vec![],
        rationale: None,
        confidence: Some(0.5),
        id: None,
        under: None,
    };
    assert_eq!(messages(&signals), [&choice]);
    let told = lines(&signals, OutputStream::Stdout);
    assert!(told[0].contains(r#""name":"drydock""#) && told[1].contains(r#""text":"recorded""#), "{told:?}");
}

/// Breaks when an invalid request gets no response with the reason, or is handled as a message.
#[tokio::test]
async fn what_cannot_be_understood_is_answered_and_not_heard() {
    let world = World::new();
    let call = |id: u64, name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
    };
    let requests = [
        "garbage".to_owned(),
        "[1]".to_owned(),
        "x".repeat(300_000),
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/list"}"#.to_owned(),
        call(10, "give_verdict", json!({"verdict": "ack"})),
        call(2, "resolve_decision", json!({"id": "dec-1", "option": "approve"})),
        call(3, "spawn_subplan", json!({"name": "docs"})),
        call(4, "record_choice", json!({"question": "q"})),
        call(5, "report_progress", json!({"text": "x".repeat(70_000)})),
        call(6, "report_progress", json!(["x"])),
        call(7, "report_progress", json!({"text": "half", "percent": 50, "drydock": "ask", "question": "q"})),
        call(8, "plan_status", json!({})),
        r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":9,"method":"tools/list"}"#.to_owned(),
    ];
    world.put("requests", &requests.join("\n"));
    let (ending, signals) = world.sh(&format!("{SERVER} mcp < requests > answers")).await;
    assert_eq!(ending, Ending::Finished, "{signals:?}");
    assert_eq!(messages(&signals), [&Message::Progress { text: "half".into(), percent: Some(50.0) }]);
    let answers: Vec<Value> =
        world.file("answers").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<String> = answers
        .iter()
        .map(|answer| match &answer["result"]["content"][0]["text"] {
            Value::String(text) => format!("{} {}", answer["result"]["isError"], text),
            _ => format!("{} {}", answer["id"], answer["error"]["code"]),
        })
        .collect();
    let starts = [
        "null -32700",
        "null -32600",
        "null -32600",
        "1 -32601",
        "10 -32602",
        "2 -32602",
        "true subplans can be requested only in Strategize",
        "true missing field `chosen`",
        "true a message is at most 65536 bytes",
        "6 -32602",
        "false reported",
        "false {",
        "\"p\" null",
        "9 null",
    ];
    assert_eq!(told.len(), starts.len(), "{told:#?}");
    for (told, start) in told.iter().zip(starts) {
        assert!(told.starts_with(start), "{told} does not start with {start}");
    }
    assert!(told[11].contains(r#""plan":"pln-1""#), "{}", told[11]);
    let tools = answers[13]["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let offered =
        ["record_choice", "ask_human", "report_progress", "checkpoint", "spawn_subplan", "plan_status"];
    assert_eq!(names, offered);
}

/// One connection to a run's socket.
struct Guest(BufReader<UnixStream>);

impl Guest {
    async fn at(socket: &Path) -> std::io::Result<Self> {
        // The path of a socket must be short; that of a directory need not be.
        let directory = File::open(socket.parent().unwrap())?;
        let name = socket.file_name().unwrap().to_str().unwrap();
        let stream = UnixStream::connect(format!("/proc/self/fd/{}/{name}", directory.as_raw_fd())).await?;
        Ok(Self(BufReader::new(stream)))
    }

    async fn say(&mut self, line: &str) -> String {
        self.0.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        self.0.read_line(&mut answer).await.unwrap();
        answer.trim().to_owned()
    }

    async fn is_sent_away(&mut self) -> bool {
        matches!(self.0.read(&mut [0]).await, Ok(0) | Err(_))
    }
}

/// Breaks when a message is handled without the run's secret, without limits, or after the run's end, when
/// the secret is forwarded, or when a long path keeps an agent from its tools.
#[tokio::test]
async fn only_who_knows_the_secret_is_heard_and_only_while_the_run_lasts() {
    let world = World::new();
    let temp = world.worktree().with_file_name("t".repeat(150));
    let dirs = RunDirs { temp: temp.clone(), ..world.dirs() };
    let script = "echo $DRYDOCK_MCP_SECRET; echo $DRYDOCK_MCP_SECRET $DRYDOCK_MCP_SOCKET > led; \
                  until [ -e done ]; do sleep 0.02; done";
    let (sender, mut receiver) = mpsc::channel(16);
    let run = world.runner.agent(&sh(script), &world.task, &dirs, sender, CancellationToken::new());
    let listening = async {
        let mut signals = Vec::new();
        while let Some(signal) = receiver.recv().await {
            dealt(&signal);
            signals.push(signal);
        }
        signals
    };
    let visiting = async {
        until("the agent was led", || world.file("led").ends_with('\n')).await;
        let led = world.file("led");
        let (secret, socket) = led.trim().split_once(' ').unwrap();
        let socket = PathBuf::from(socket);
        let progress = r#"{"drydock":"progress","text":"mine"}"#;
        for wrong in ["", "wrong", progress, &secret[1..], &"x".repeat(70_000)] {
            let mut guest = Guest::at(&socket).await.unwrap();
            assert!(guest.say(wrong).await.contains("wrong secret"), "{wrong}");
            assert!(guest.is_sent_away().await, "{wrong}");
        }
        let mut guest = Guest::at(&socket).await.unwrap();
        assert_eq!(guest.say(secret).await, r#"{"welcome":{"caller":"worker"}}"#);
        assert_eq!(guest.say(progress).await, r#""heard""#);
        assert!(guest.say("garbage").await.contains("not a valid message"));
        assert!(guest.say(r#"{"drydock":"decide","option":"approve"}"#).await.contains("unknown variant"));
        let mut calls = 3;
        while !guest.say("more").await.contains("at most 1000") {
            calls += 1;
        }
        assert_eq!(calls, 1000);
        let mut server = tokio::process::Command::new(SERVER);
        server.arg("mcp").env("DRYDOCK_MCP_SOCKET", &socket).env("DRYDOCK_MCP_SECRET", secret);
        let mut server =
            server.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        // Kept open: the server must end because of the run, not because of its input.
        let mut input = server.stdin.take().unwrap();
        input.write_all(b"{\"id\":1,\"method\":\"ping\"}\n").await.unwrap();
        assert!(server.stdout.as_mut().unwrap().read(&mut [0; 100]).await.unwrap() > 0);
        world.put("done", "");
        (socket, guest, server, input, secret.to_owned())
    };
    let (ending, signals, (socket, mut guest, mut server, _input, secret)) =
        tokio::join!(run, listening, visiting);
    assert_eq!(ending.unwrap(), Ending::Finished);
    assert_eq!(messages(&signals), [&Message::Progress { text: "mine".into(), percent: None }]);
    assert_eq!(lines(&signals, OutputStream::Stdout), ["[hidden]"]);
    assert!(!format!("{signals:?}").contains(&secret));
    assert!(guest.is_sent_away().await);
    let ended = tokio::time::timeout(PATIENCE, server.wait()).await.expect("the server ends with the run");
    assert!(ended.unwrap().success());
    assert!(Guest::at(&socket).await.is_err());
    assert_eq!(fs::read_dir(temp).unwrap().count(), 0);
}

/// Breaks when a server keeps running without a run, or with the secret of another one.
#[tokio::test]
async fn a_server_without_a_run_says_so_and_ends() {
    let world = World::new();
    let script = format!(
        "DRYDOCK_MCP_SECRET=wrong {SERVER} mcp; echo $?; \
         env -u DRYDOCK_MCP_SOCKET {SERVER} mcp; echo $?; \
         DRYDOCK_MCP_SOCKET=$HOME/none.sock {SERVER} mcp; echo $?"
    );
    let (_, signals) = world.sh(&script).await;
    assert_eq!(lines(&signals, OutputStream::Stdout), ["1", "1", "1"]);
    let said = lines(&signals, OutputStream::Stderr);
    for (said, part) in said.iter().zip(["wrong secret", "DRYDOCK_MCP_SOCKET is not set", "could not reach"])
    {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(said.len(), 3, "{said:?}");
}

/// Breaks when a reviewer has no tool for its verdict, or can give one about a version other than its own.
#[tokio::test]
async fn a_reviewer_gives_its_verdict_on_its_own_version_alone() {
    let mut world = World::new();
    world.task.proposal = Some(Proposal { version: 2, commit: "abc".into() });
    let call = |id: u64, arguments: Value| {
        let params = json!({"name": "give_verdict", "arguments": arguments});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
    };
    let requests = [
        call(1, json!({"verdict": "ack", "version": 1})),
        call(2, json!({"verdict": "perhaps"})),
        call(3, json!({"verdict": "refuse", "reason": "no tests"})),
        call(4, json!({"verdict": "ack", "version": "2"})),
    ];
    world.put("requests", &requests.join("\n"));
    let (ending, signals) = world.sh(&format!("{SERVER} mcp < requests > answers")).await;
    assert_eq!(ending, Ending::Finished, "{signals:?}");
    let verdict = |verdict, reason: Option<&str>| Message::Verdict {
        verdict,
        version: Some("2".into()),
        reason: reason.map(str::to_owned),
    };
    let heard = [&verdict(VerdictKind::Refuse, Some("no tests")), &verdict(VerdictKind::Ack, None)];
    assert_eq!(messages(&signals), heard);
    let answers = world.file("answers");
    assert!(answers.lines().next().unwrap().contains("you review version 2, not version 1"), "{answers}");
}
