//! Parses the script of a scripted agent: a TOML file of `[[steps]]`, checked as a whole before the first
//! step runs.
//!
//! ```toml
//! [[steps]]
//! message = { drydock = "choice", question = "Which file?", chosen = "hello.txt" }
//! only_in = "strategize"        # optional: a phase, or a list of phases
//!
//! [[steps]]
//! write = { path = "hello.txt", content = "hello\n" }
//! ```
//!
//! Besides `message` and `write`, a step is one of `append = { path, content }`, `delete = { path }`,
//! `rename = { from, to }`, `log = "text"`, `sleep = "100ms"`, `run = "shell command"`, `fail = "text"`,
//! `exit = code`.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::duration;
use crate::message::{self, Message};

/// One checked step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScriptStep {
    only_in: Vec<String>,
    pub(crate) action: ScriptOp,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ScriptOp {
    Write { path: PathBuf, content: String },
    Append { path: PathBuf, content: String },
    Delete { path: PathBuf },
    Rename { from: PathBuf, to: PathBuf },
    Log(String),
    Message(Message),
    Sleep(Duration),
    Run(String),
    Fail(String),
    Exit(i32),
}

impl ScriptStep {
    /// Returns true if the step applies to this phase.
    pub(crate) fn is_for(&self, phase: &str) -> bool {
        self.only_in.is_empty() || self.only_in.iter().any(|only| only == phase)
    }
}

/// Parses a whole script, or returns which step is wrong and why.
pub(crate) fn parse(text: &str) -> Result<Vec<ScriptStep>, String> {
    let file: RawScript = toml::from_str(text).map_err(|error| error.to_string())?;
    let numbered = file.steps.into_iter().enumerate();
    numbered
        .map(|(at, written)| step(written).map_err(|reason| format!("step {}: {reason}", at + 1)))
        .collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScript {
    #[serde(default)]
    steps: Vec<RawStep>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    only_in: Option<Phases>,
    write: Option<RawWrite>,
    append: Option<RawWrite>,
    delete: Option<RawPath>,
    rename: Option<RawRename>,
    log: Option<String>,
    message: Option<Value>,
    sleep: Option<String>,
    run: Option<String>,
    fail: Option<String>,
    exit: Option<u8>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Phases {
    One(String),
    Several(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWrite {
    path: PathBuf,
    content: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPath {
    path: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRename {
    from: PathBuf,
    to: PathBuf,
}

fn step(written: RawStep) -> Result<ScriptStep, String> {
    let only_in = match written.only_in {
        None => Vec::new(),
        Some(Phases::One(phase)) => vec![phase],
        Some(Phases::Several(phases)) => phases,
    };
    let known = ["strategize", "execute", "apply"];
    if let Some(unknown) = only_in.iter().find(|phase| !known.contains(&phase.as_str())) {
        return Err(format!("only_in: {unknown:?} is not a phase; phases are {}", known.join(", ")));
    }
    let candidates = [
        written.write.map(|w| inside(w.path).map(|path| ScriptOp::Write { path, content: w.content })),
        written.append.map(|w| inside(w.path).map(|path| ScriptOp::Append { path, content: w.content })),
        written.delete.map(|place| inside(place.path).map(|path| ScriptOp::Delete { path })),
        written.rename.map(|m| Ok(ScriptOp::Rename { from: inside(m.from)?, to: inside(m.to)? })),
        written.log.map(|text| Ok(ScriptOp::Log(text))),
        written.message.map(|value| message::from_value(value).map(ScriptOp::Message)),
        written.sleep.map(|text| duration::parse(&text).map(ScriptOp::Sleep)),
        written.run.map(|command| Ok(ScriptOp::Run(command))),
        written.fail.map(|text| Ok(ScriptOp::Fail(text))),
        written.exit.map(|code| Ok(ScriptOp::Exit(i32::from(code)))),
    ];
    let mut given = candidates.into_iter().flatten();
    match (given.next(), given.next()) {
        (Some(action), None) => Ok(ScriptStep { only_in, action: action? }),
        (None, _) => {
            Err("it does nothing; add one of write, append, delete, rename, log, message, sleep, run, \
                 fail, exit"
                .into())
        }
        (Some(_), Some(_)) => Err("it does more than one thing; split it into several steps".into()),
    }
}

/// Returns an error for a path that leaves the worktree, or that names the worktree or git's own files.
fn inside(path: PathBuf) -> Result<PathBuf, String> {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    let shown = path.display();
    if path.is_absolute() || !path.components().all(plain) {
        return Err(format!("the path {shown} leaves the worktree; write it relative and without '..'"));
    }
    let names: PathBuf = path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
    if names.as_os_str().is_empty() {
        return Err(format!("the path {shown:?} does not name a file"));
    }
    if names.starts_with(Path::new(".git")) {
        return Err(format!("the path {shown} belongs to git"));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::{ScriptOp, parse};
    use crate::message::Message;
    use std::time::Duration;

    #[test]
    fn every_kind_of_step_is_read() {
        let script = "
            [[steps]]\nwrite = { path = './a/b.txt', content = 'x' }\nonly_in = 'execute'
            [[steps]]\nappend = { path = 'a', content = 'x' }\nonly_in = ['strategize', 'apply']
            [[steps]]\ndelete = { path = 'a' }
            [[steps]]\nrename = { from = 'a', to = 'b' }
            [[steps]]\nlog = 'hello'
            [[steps]]\nmessage = { drydock = 'progress', text = 'half', percent = 50 }
            [[steps]]\nsleep = '100ms'
            [[steps]]\nrun = 'true'
            [[steps]]\nfail = 'no'
            [[steps]]\nexit = 3
        ";
        let steps = parse(script).unwrap();
        assert_eq!(steps.len(), 10);
        assert_eq!(steps[0].action, ScriptOp::Write { path: "a/b.txt".into(), content: "x".into() });
        assert!(steps[0].is_for("execute") && !steps[0].is_for("apply"));
        assert!(steps[1].is_for("apply") && !steps[1].is_for("execute") && steps[2].is_for("execute"));
        assert_eq!(
            steps[5].action,
            ScriptOp::Message(Message::Progress { text: "half".into(), percent: Some(50.0) })
        );
        assert_eq!(steps[6].action, ScriptOp::Sleep(Duration::from_millis(100)));
    }

    #[test]
    fn a_wrong_step_is_named_with_its_reason() {
        for (step, reason) in [
            ("write = { path = '/etc/passwd', content = '' }", "leaves the worktree"),
            ("write = { path = 'a/../../b', content = '' }", "leaves the worktree"),
            ("rename = { from = 'a', to = '../b' }", "leaves the worktree"),
            ("delete = { path = '.' }", "does not name a file"),
            ("delete = { path = '.git/config' }", "belongs to git"),
            ("sleep = 'long'", "not a duration"),
            ("message = { drydock = 'sing' }", "sing"),
            ("log = 'a'\nfail = 'b'", "more than one thing"),
            ("only_in = 'execute'", "does nothing"),
            ("log = 'a'\nonly_in = 'lunch'", "lunch"),
        ] {
            let error = parse(&format!("[[steps]]\nlog = 'first'\n[[steps]]\n{step}\n")).expect_err(step);
            assert!(error.starts_with("step 2: ") && error.contains(reason), "{step}: {error}");
        }
        assert!(parse("[[steps]]\nshout = 'a'").expect_err("unknown key").contains("shout"));
        assert!(parse("step = []").expect_err("unknown key").contains("step"));
    }
}
