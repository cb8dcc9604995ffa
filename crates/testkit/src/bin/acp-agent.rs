//! An agent for the Agent Client Protocol, implemented by hand so that it can also violate the protocol. Its first
//! argument selects its behaviour on a task.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "its messages are its standard output")]

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio, exit};

use serde_json::{Value, json};

/// Longer than the maximum size of a message.
const HUGE: usize = 9 * 1024 * 1024;

fn main() {
    let mut words = std::env::args().skip(1);
    let behaviour = words.next().unwrap_or_else(|| "write".to_owned());
    let mut agent = AcpAgent {
        behaviour,
        words: words.collect(),
        cwd: String::new(),
        session: String::new(),
        server: Value::Null,
        last_id: 0,
        tokens: None,
    };
    agent.reach(0);
    while let Some(message) = agent.hear() {
        agent.obey(&message);
    }
}

struct AcpAgent {
    behaviour: String,
    words: Vec<String>,
    cwd: String,
    session: String,
    /// The MCP server that it was offered.
    server: Value,
    last_id: u64,
    /// The number of tokens its session used, if it reports them.
    tokens: Option<u64>,
}

impl AcpAgent {
    /// Returns the next message, or none at the end of the input.
    fn hear(&self) -> Option<Value> {
        let mut line = String::new();
        match io::stdin().lock().read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(serde_json::from_str(&line).expect("drydock sends JSON")),
        }
    }

    fn obey(&mut self, message: &Value) {
        let id = &message["id"];
        match message["method"].as_str() {
            Some("initialize") => {
                self.reach(1);
                self.greet(id);
                self.reach(2);
            }
            Some("session/new") if self.behaviour == "auth" => {
                say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "log in"}}));
            }
            Some("session/new") => {
                self.reach(3);
                self.cwd = message["params"]["cwd"].as_str().unwrap_or_default().to_owned();
                self.server = message["params"]["mcpServers"][0].clone();
                self.session = self.begin_session();
                answer(id, &json!({"sessionId": self.session}));
                self.reach(4);
            }
            Some("session/load") => {
                self.cwd = message["params"]["cwd"].as_str().unwrap_or_default().to_owned();
                self.server = message["params"]["mcpServers"][0].clone();
                self.session = message["params"]["sessionId"].as_str().unwrap_or_default().to_owned();
                self.load_session(id);
            }
            Some("session/prompt") => {
                let text = message["params"]["prompt"][0]["text"].as_str().unwrap_or_default().to_owned();
                self.reach(5);
                self.work(id, &text);
                self.reach(14);
            }
            _ => {}
        }
    }

    fn greet(&self, id: &Value) {
        let version = match self.behaviour.as_str() {
            "version" => 7,
            "silent" => return,
            _ => 1,
        };
        let loads = self.behaviour == "remember";
        answer(
            id,
            &json!({"protocolVersion": version, "agentInfo": {"name": "tester", "version": "1.2"},
                "agentCapabilities": {"loadSession": loads}}),
        );
    }

    fn work(&mut self, id: &Value, prompt: &str) {
        let mut reason = "end_turn";
        match self.behaviour.clone().as_str() {
            "write" => self.write_itself(prompt),
            "fs" => self.write_through_drydock(),
            "out" => self.try_out(),
            "ask" => self.ask(&["allow_once", "reject_once"]),
            "ask_without_yes" => self.ask(&["reject_once"]),
            "steps" => self.steps(),
            "many" => (0..105).for_each(|number| self.write_by_request(&format!("{number}.txt"))),
            "remember" => reason = self.remember(prompt),
            "talk" => self.talk(prompt),
            "nested" => self.nested(),
            "checkpoint" => self.checkpoint_and_go_on(),
            "tool" => reason = self.call_a_tool(),
            "socket" => self.speak_to_the_run(),
            "stall" => reason = self.stall(),
            "deaf" => loop {
                std::thread::park();
            },
            "flood" => loop {
                update(&json!({"sessionUpdate": "agent_message_chunk", "content": text("flood\n")}));
            },
            "die" => {
                print!("{{\"jsonrpc\":\"2.0\",\"method\":\"session/upd");
                drop(io::stdout().flush());
                exit(0);
            }
            "leave" => exit(0),
            "fail" => {
                eprintln!("no model today");
                exit(3);
            }
            "garbage" => println!("Welcome to the agent!"),
            "broken" => println!("{{\"jsonrpc\": nonsense}}"),
            "huge" => println!("{{\"x\":\"{}\"}}", "y".repeat(HUGE)),
            "report" => self.report_a_failed_model(),
            "refuse" => reason = "refusal",
            "tokens" => reason = "max_tokens",
            "usage" => self.write_and_count(prompt),
            "limited" => {
                // The first time it writes a marker file and reports a rate limit; after that it succeeds.
                let (after, mark) = (self.words[0].clone(), self.words[1].clone());
                if !Path::new(&mark).exists() {
                    fs::write(&mark, "x").expect("the mark can be written");
                    fs::write(Path::new(&self.cwd).join("half.txt"), "x")
                        .expect("its worktree can be written");
                    let data = json!({"retry_after": after});
                    say(&json!({"jsonrpc": "2.0", "id": id,
                        "error": {"code": -32603, "message": "slow down", "data": data}}));
                    return;
                }
                self.write_itself(prompt);
            }
            "error" => {
                say(
                    &json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": "out of luck"}}),
                );
                return;
            }
            other => panic!("no behaviour {other:?}"),
        }
        self.end(id, reason);
    }

    /// Ends its turn, and reports its tokens if it has a number.
    fn end(&self, id: &Value, reason: &str) {
        let mut result = json!({"stopReason": reason});
        if let Some(tokens) = self.tokens {
            result["usage"] = json!({"totalTokens": tokens, "inputTokens": tokens, "outputTokens": 0});
        }
        answer(id, &result);
    }

    /// Does a small piece of work and reports every step.
    fn write_itself(&self, prompt: &str) {
        let path = Path::new(&self.cwd).join("hello.txt");
        update(&json!({"sessionUpdate": "plan", "entries": [
            {"content": "write it", "priority": "high", "status": "in_progress"}]}));
        update(&json!({"sessionUpdate": "agent_message_chunk", "content": text("I will wr")}));
        update(&json!({"sessionUpdate": "agent_message_chunk", "content": text("ite it.\nNow")}));
        let content = [json!({"type": "diff", "path": path, "oldText": null, "newText": "hello\n"})];
        update(
            &json!({"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "write hello.txt", "kind": "edit",
            "status": "in_progress", "locations": [{"path": path}], "content": content}),
        );
        fs::write(&path, "hello\n").expect("its worktree can be written");
        fs::write(Path::new(&self.cwd).join("prompt.txt"), prompt).expect("its worktree can be written");
        update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed"}));
        update(&json!({"sessionUpdate": "agent_message_chunk", "content": text("Done")}));
    }

    /// Does its work and reports the cost twice and the tokens once.
    fn write_and_count(&mut self, prompt: &str) {
        self.write_itself(prompt);
        for amount in [0.03, 0.045] {
            let cost = json!({"amount": amount, "currency": "USD"});
            update(&json!({"sessionUpdate": "usage_update", "used": 10, "size": 100, "cost": cost}));
        }
        self.tokens = Some(1234);
    }

    /// Does half of its work and ends its turn as goose does when its model failed: in the middle of a sentence.
    fn report_a_failed_model(&self) {
        fs::write(Path::new(&self.cwd).join("half.txt"), "half\n").expect("its worktree can be written");
        update(&json!({"sessionUpdate": "agent_message_chunk", "content": text("Now I will")}));
        let report = format!("Ran into this error: {}.\n\nPlease retry.", self.words.join(" "));
        update(&json!({"sessionUpdate": "agent_message_chunk", "content": text(&report)}));
    }

    fn write_through_drydock(&mut self) {
        let path = Path::new(&self.cwd).join("deep/hello.txt");
        let written = self
            .request("fs/write_text_file", json!({"sessionId": "s1", "path": path, "content": "a\nb\nc\n"}));
        assert!(written.get("error").is_none(), "{written}");
        let read = self
            .request("fs/read_text_file", json!({"sessionId": "s1", "path": path, "line": 2, "limit": 1}));
        assert_eq!(read["result"]["content"], "b\n", "{read}");
    }

    /// Asks drydock, which is not sandboxed, to write and read paths that the agent cannot access.
    fn try_out(&mut self) {
        let target = self.words[0].clone();
        let link = Path::new(&self.cwd).join("link");
        std::os::unix::fs::symlink(&target, &link).expect("a link in the worktree");
        for path in [target.clone(), link.to_string_lossy().into_owned(), format!("{}/../x", self.cwd)] {
            let asked = json!({"sessionId": "s1", "path": path, "content": "theirs"});
            for method in ["fs/write_text_file", "fs/read_text_file"] {
                let answered = self.request(method, asked.clone());
                assert!(answered.get("error").is_some(), "{method} {path}: {answered}");
            }
        }
        let terminal = self.request("terminal/create", json!({"sessionId": "s1", "command": "true"}));
        assert!(terminal.get("error").is_some(), "{terminal}");
        fs::remove_file(link).expect("its own link");
        update(&json!({"sessionUpdate": "agent_message_chunk", "content": text("held\n")}));
    }

    /// Asks for permission with these kinds of options, and writes a file if it is granted.
    fn ask(&mut self, kinds: &[&str]) {
        let option = |kind: &&str| {
            let id = if kind.starts_with("allow") { "yes" } else { "no" };
            json!({"optionId": id, "name": id, "kind": kind})
        };
        let options: Vec<Value> = kinds.iter().map(option).collect();
        let call = json!({"toolCallId": "t1", "title": "make it", "kind": "execute", "rawInput": {"command": "make"}});
        let asked = json!({"sessionId": "s1", "toolCall": call, "options": options});
        let answered = self.request("session/request_permission", asked);
        let outcome = &answered["result"]["outcome"];
        let file = if outcome["optionId"] == "yes" { "allowed.txt" } else { "refused.txt" };
        if outcome["outcome"] == "selected" {
            fs::write(Path::new(&self.cwd).join(file), "x").expect("its worktree can be written");
        }
    }

    /// Changes files with and without tools, so that each state of the worktree is different.
    fn steps(&mut self) {
        let place = Path::new(&self.cwd).to_owned();
        let put = |name: &str| fs::write(place.join(name), name).expect("its worktree can be written");
        self.write_by_request("one.txt");
        update(
            &json!({"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "make it", "kind": "execute", "status": "pending"}),
        );
        let options = json!([{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]);
        let asked = json!({"sessionId": self.session, "toolCall": {"toolCallId": "t1"}, "options": options});
        self.request("session/request_permission", asked);
        put("two.txt");
        fs::remove_file(place.join("one.txt")).expect("its own file");
        update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed"}));
        self.write_by_request("three.txt");
        put("stray.txt");
        self.write_by_request("four.txt");
    }

    /// Starts a session. With the behaviour `remember`, the session is stored in a file.
    fn begin_session(&self) -> String {
        if self.behaviour != "remember" {
            return "s1".to_owned();
        }
        let sessions = Path::new(&self.words[0]);
        let name = format!("s{}", fs::read_dir(sessions).map_or(0, Iterator::count) + 1);
        fs::write(sessions.join(&name), "").expect("its sessions can be written");
        name
    }

    /// Repeats the messages of a stored session, as the protocol requires.
    fn load_session(&self, id: &Value) {
        let Ok(said) = fs::read_to_string(Path::new(&self.words[0]).join(&self.session)) else {
            let error = json!({"code": -32602, "message": "no such session"});
            return say(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
        };
        for line in said.lines() {
            update(&json!({"sessionUpdate": "agent_message_chunk", "content": text(&format!("{line}\n"))}));
        }
        answer(id, &json!({}));
    }

    /// Reports how often it was prompted in this session. The second word selects more: asks or stalls once, and
    /// reports the usage of the whole session so far. In the end it writes a file.
    fn remember(&mut self, prompt: &str) -> &'static str {
        let session = Path::new(&self.words[0]).join(&self.session);
        let times = fs::read_to_string(&session).expect("its session is there").lines().count() + 1;
        let line = format!("{{\"drydock\":\"progress\",\"text\":\"{} time {times}\"}}", self.session);
        let mut kept = fs::OpenOptions::new().append(true).open(&session).expect("its session is there");
        writeln!(kept, "{line}").expect("its sessions can be written");
        update(&json!({"sessionUpdate": "agent_message_chunk", "content": text(&format!("{line}\n"))}));
        let does = self.words[1].clone();
        if does.contains("spend") {
            self.tokens = Some(100 * times as u64);
            let cost = json!({"amount": 0.05 * times as f64, "currency": "USD"});
            update(&json!({"sessionUpdate": "usage_update", "used": 10, "size": 100, "cost": cost}));
        }
        if does.contains("stall") && times == 1 {
            return self.stall();
        }
        if does.contains("ask") && !prompt.contains("Which_wood") {
            fs::write(Path::new(&self.cwd).join("half.txt"), "x").expect("its worktree can be written");
            self.words = vec!["ask_human".to_owned(), r#"{"question":"Which_wood"}"#.to_owned()];
            return self.call_a_tool();
        }
        let again = if prompt.contains("worked on this before") { "again" } else { "anew" };
        fs::write(Path::new(&self.cwd).join("done.txt"), format!("{again} {times}\n"))
            .expect("its worktree can be written");
        "end_turn"
    }

    /// Holds a conversation with every kind of message. A test can stop it between any two of them.
    fn talk(&mut self, prompt: &str) {
        if prompt.contains("strategy.json") {
            let choice = "{\"drydock\":\"choice\",\"question\":\"how\",\"chosen\":\"so\"}\n";
            update(&json!({"sessionUpdate": "agent_message_chunk", "content": text(choice)}));
            self.reach(6);
            return;
        }
        let task: Value =
            serde_json::from_str(&std::env::var("DRYDOCK_TASK").expect("it has a task")).expect("it is JSON");
        let part = |key: &str| task[key].as_str().expect("plans and runs have ids").to_owned();
        let (plan, run) = (part("plan"), part("run"));
        update(&json!({"sessionUpdate": "plan", "entries": [
            {"content": "write it", "priority": "high", "status": "in_progress"}]}));
        self.reach(7);
        let call = json!({"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "write it", "kind": "edit", "status": "in_progress"});
        update(&call);
        self.reach(8);
        self.write_with(&format!("{plan}.txt"), &run);
        self.reach(9);
        update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed"}));
        self.reach(10);
        let options = json!([{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]);
        let call = json!({"toolCallId": "t2", "title": "make it", "kind": "execute"});
        let asked = json!({"sessionId": self.session, "toolCall": call, "options": options});
        self.last_id += 1;
        let id = self.last_id;
        say(&json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": asked}));
        self.reach(11);
        let answered = self.answer_to(id);
        self.reach(12);
        if answered["result"]["outcome"]["outcome"] == "selected" {
            fs::write(Path::new(&self.cwd).join(format!("{plan}-made.txt")), "made")
                .expect("its worktree can be written");
        }
        self.reach(13);
    }

    /// Waits forever at a point of the conversation if the plan's argument names the point and a file of that name
    /// exists. Writes a file to report that it got there.
    fn reach(&self, place: u64) {
        if self.behaviour != "talk" {
            return;
        }
        let task: Value =
            serde_json::from_str(&std::env::var("DRYDOCK_TASK").unwrap_or_default()).unwrap_or_default();
        let wanted = format!("{}-{place}", task["phase"].as_str().unwrap_or_default());
        if task["arguments"]["place"] == wanted && Path::new(&self.words[0]).join(&wanted).exists() {
            let temp = std::env::var("TMPDIR").expect("it has a directory of its own");
            fs::write(Path::new(&temp).join("reached"), "x").expect("its own directory can be written");
            loop {
                std::thread::park();
            }
        }
    }

    /// Creates a nested repository in the worktree, which makes captures fail, and removes it later.
    fn nested(&mut self) {
        let nested = Path::new(&self.cwd).join("nested");
        fs::create_dir(&nested).expect("its worktree can be written");
        for words in [&["init", "-q"][..], &["commit", "-q", "--allow-empty", "-m", "x"]] {
            let mut git = Command::new("git");
            git.args(["-c", "user.name=x", "-c", "user.email=x@x"]).args(words).current_dir(&nested);
            assert!(git.status().expect("git starts").success());
        }
        self.write_by_request("one.txt");
        fs::remove_dir_all(nested).expect("its own directory");
        self.write_by_request("two.txt");
    }

    /// Requests a checkpoint, and writes again as soon as it is confirmed.
    fn checkpoint_and_go_on(&mut self) {
        fs::write(Path::new(&self.cwd).join("early.txt"), "x").expect("its worktree can be written");
        self.words = vec!["checkpoint".to_owned(), r#"{"label":"early"}"#.to_owned()];
        self.call_a_tool();
    }

    fn write_by_request(&mut self, name: &str) {
        self.write_with(name, name);
    }

    fn write_with(&mut self, name: &str, content: &str) {
        let path = Path::new(&self.cwd).join(name);
        let asked = json!({"sessionId": self.session, "path": path, "content": content});
        let written = self.request("fs/write_text_file", asked);
        assert!(written.get("error").is_none(), "{written}");
    }

    /// Starts the MCP server it was offered, calls the given tool, and reports the result. After a question it waits
    /// until it is stopped.
    fn call_a_tool(&self) -> &'static str {
        let (name, arguments) = (self.words[0].clone(), self.words[1].clone());
        let listed = |key: &str| self.server[key].as_array().cloned().unwrap_or_default();
        let mut command = Command::new(self.server["command"].as_str().expect("a server was offered"));
        command.args(listed("args").iter().filter_map(Value::as_str));
        for variable in listed("env") {
            let part = |key: &str| variable[key].as_str().expect("a variable is two texts").to_owned();
            command.env(part("name"), part("value"));
        }
        let mut server =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the server starts");
        let mut input = server.stdin.take().expect("it was asked for");
        let mut output = BufReader::new(server.stdout.take().expect("it was asked for"));
        let mut request = |id: u64, method: &str, params: Value| {
            let sent = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            writeln!(input, "{sent}").expect("the server reads");
            let mut line = String::new();
            output.read_line(&mut line).expect("the server answers");
            line
        };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "tester", "version": "1"}});
        let greeted = request(1, "initialize", hello);
        let arguments: Value = serde_json::from_str(&arguments).expect("arguments are JSON");
        let called = request(2, "tools/call", json!({"name": name, "arguments": arguments}));
        if name == "checkpoint" {
            // Written at once: a checkpoint that is not finished yet would contain it.
            fs::write(Path::new(&self.cwd).join("late.txt"), "x").expect("its worktree can be written");
        }
        update(&json!({"sessionUpdate": "agent_message_chunk", "content": text(&(greeted + &called))}));
        drop(input);
        let ended = server.wait().expect("it was started here");
        assert!(ended.success(), "the server ended with {ended}");
        if name == "ask_human" { self.stall() } else { "end_turn" }
    }

    /// Sends a message directly to the socket of its tools, without an MCP server.
    fn speak_to_the_run(&self) {
        let variable = |name: &str| {
            let listed = self.server["env"].as_array().expect("a server was offered");
            let found = listed.iter().find(|one| one["name"] == name).expect("it leads somewhere");
            found["value"].as_str().expect("a variable is two texts").to_owned()
        };
        // Connects from the socket's directory, because the full path may be too long for a socket address.
        let socket = variable("DRYDOCK_MCP_SOCKET");
        let socket = Path::new(&socket);
        std::env::set_current_dir(socket.parent().expect("it lies in a directory")).expect("it is ours");
        let mut run = UnixStream::connect(socket.file_name().expect("it has a name")).expect("it is open");
        let mut answers = BufReader::new(run.try_clone().expect("it is open"));
        for said in [variable("DRYDOCK_MCP_SECRET"), self.words.join(" ")] {
            writeln!(run, "{said}").expect("the run hears");
            let mut line = String::new();
            answers.read_line(&mut line).expect("the run answers");
            update(&json!({"sessionUpdate": "agent_message_chunk", "content": text(&line)}));
        }
    }

    /// Waits until it is stopped.
    fn stall(&self) -> &'static str {
        while let Some(message) = self.hear() {
            if message["method"] == "session/cancel" {
                fs::write(Path::new(&self.cwd).join("cancelled.txt"), "x")
                    .expect("its worktree can be written");
                return "cancelled";
            }
        }
        exit(0)
    }

    /// Sends a request to drydock and waits for the answer.
    fn request(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        self.answer_to(id)
    }

    fn answer_to(&self, id: u64) -> Value {
        loop {
            match self.hear() {
                Some(message) if message["id"] == id && message.get("method").is_none() => return message,
                Some(_) => {}
                None => exit(0),
            }
        }
    }
}

fn text(words: &str) -> Value {
    json!({"type": "text", "text": words})
}

fn answer(id: &Value, result: &Value) {
    say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn update(update: &Value) {
    say(
        &json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s1", "update": update}}),
    );
}

fn say(message: &Value) {
    println!("{message}");
}
