//! Runs `cargo test`, and runs the few tests that failed once more.
//!
//! Most tests run several real programs at once on few cores. A test that fails there and passes alone is reported as
//! flaky, by name and with its output above, instead of as broken. It is a race that must be found
//! (docs/decisions/0020).

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// The maximum number of failures that may be flaky.
const FEW: usize = 3;

/// The parsed output of a test run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Heard {
    failed: BTreeSet<String>,
    passed: BTreeSet<String>,
    begun: usize,
    ended: usize,
}

impl Heard {
    fn line(&mut self, line: &str) {
        if line.starts_with("running ") && (line.ends_with(" tests") || line.ends_with(" test")) {
            self.begun += 1;
        } else if line.starts_with("test result: ") {
            self.ended += 1;
        } else if let Some((name, verdict)) =
            line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... "))
        {
            match verdict {
                "FAILED" => drop(self.failed.insert(name.to_owned())),
                "ok" => drop(self.passed.insert(name.to_owned())),
                _ => {}
            }
        }
    }

    /// Returns the tests to run again. None if too many failed, or if a test program did not finish, because then it
    /// is unknown which others would have failed.
    fn to_look_at(&self) -> Option<Vec<&str>> {
        let few = (1..=FEW).contains(&self.failed.len()) && self.begun == self.ended;
        few.then(|| self.failed.iter().map(String::as_str).collect())
    }
}

/// How a run of tests ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SuiteResult {
    Passed,
    /// These failed together with the others and passed alone.
    Flaky(Vec<String>),
    Failed(String),
}

/// Runs tests and forwards their output. `command` builds cargo's command from the words after `--`.
pub(crate) fn run(command: impl Fn(&[&str]) -> Command, out: &mut impl Write) -> SuiteResult {
    let (first, heard) = match listen(command(&[]), out) {
        Ok((None, heard)) if heard.passed.is_empty() => return SuiteResult::Failed("no test ran".to_owned()),
        Ok((None, _)) => return SuiteResult::Passed,
        Ok((Some(trouble), heard)) => (trouble, heard),
        Err(error) => return SuiteResult::Failed(format!("could not start: {error}")),
    };
    let Some(names) = heard.to_look_at() else { return SuiteResult::Failed(first) };
    // A reader that closed the pipe is not a failure of the tests.
    writeln!(out, "\nrunning failed tests again, alone: {}", names.join(", ")).ok();
    let again = listen(command(&[&["--exact", "--test-threads", "1"], names.as_slice()].concat()), out);
    match again {
        Ok((None, heard)) if names.iter().all(|name| heard.passed.contains(*name)) => {
            SuiteResult::Flaky(names.into_iter().map(str::to_owned).collect())
        }
        Ok(_) | Err(_) => SuiteResult::Failed(first),
    }
}

/// A test program that cargo has built.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Built {
    /// The folder of its package, in which cargo runs it.
    pub(crate) folder: PathBuf,
    /// The name of its target, such as `it`.
    pub(crate) target: String,
    pub(crate) program: PathBuf,
}

/// Returns the test programs that cargo built. The command must have `--message-format=json`.
pub(crate) fn built(mut command: Command) -> Result<Vec<Built>, String> {
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(output.status.to_string());
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(artifact).collect())
}

/// Parses a line of cargo's output. Returns none for lines of another kind.
fn artifact(line: &str) -> Option<Built> {
    let line: Value = serde_json::from_str(line).ok()?;
    let folder = Path::new(line["manifest_path"].as_str()?).parent()?.to_owned();
    let tests = line["reason"] == "compiler-artifact" && line["profile"]["test"] == true;
    let (target, program) =
        (line["target"]["name"].as_str()?.to_owned(), line["executable"].as_str()?.into());
    tests.then_some(Built { folder, target, program })
}

/// Runs a command. Returns how it failed, if it did, and its parsed output.
fn listen(mut command: Command, out: &mut impl Write) -> io::Result<(Option<String>, Heard)> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut heard = Heard::default();
    if let Some(printed) = child.stdout.take() {
        let mut printed = BufReader::new(printed);
        let mut line = Vec::new();
        while printed.read_until(b'\n', &mut line)? > 0 {
            out.write_all(&line).ok();
            heard.line(String::from_utf8_lossy(&line).trim_end());
            line.clear();
        }
    }
    let status = child.wait()?;
    Ok(((!status.success()).then(|| status.to_string()), heard))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A test program whose test fails the given number of times.
    fn program(folder: &std::path::Path, fails: usize) -> impl Fn(&[&str]) -> Command {
        let calls = folder.join("calls");
        move |words: &[&str]| {
            let script = format!(
                "echo called >> {calls}; echo 'running 1 test'; \
                 if [ $(wc -l < {calls}) -gt {fails} ]; then echo 'test a ... ok'; echo 'test result: ok.'; \
                 else echo 'test a ... FAILED'; echo 'test result: FAILED.'; exit 101; fi",
                calls = calls.display()
            );
            let mut command = Command::new("sh");
            command.args(["-c", &script, "sh"]).args(words);
            command
        }
    }

    /// Breaks if a test that fails twice passes, or one that fails once fails the run.
    #[test]
    fn what_fails_twice_has_failed() {
        let flaky = SuiteResult::Flaky(vec!["a".to_owned()]);
        let failed = SuiteResult::Failed("exit status: 101".to_owned());
        for (fails, verdict) in [(0, SuiteResult::Passed), (1, flaky), (2, failed)] {
            let folder = tempfile::tempdir().unwrap();
            assert_eq!(run(program(folder.path(), fails), &mut Vec::new()), verdict);
        }
    }

    #[test]
    fn programs_of_tests_are_read_from_what_cargo_prints() {
        let line = |test: bool, program: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/crates/a/Cargo.toml","target":{{"name":"it"}},"profile":{{"test":{test}}},"executable":{program}}}"#
            )
        };
        let built =
            Built { folder: "/w/crates/a".into(), target: "it".to_owned(), program: "/t/it-1".into() };
        assert_eq!(artifact(&line(true, r#""/t/it-1""#)), Some(built));
        assert_eq!(artifact(&line(false, r#""/t/a""#)), None);
        assert_eq!(artifact(&line(true, "null")), None);
        assert_eq!(artifact(r#"{"reason":"build-finished","success":true}"#), None);
    }

    /// Breaks if a selection that matches no test passes.
    #[test]
    fn a_run_without_a_test_has_failed() {
        let none = |_: &[&str]| {
            let mut command = Command::new("sh");
            command.args(["-c", "echo 'running 0 tests'; echo 'test result: ok. 0 passed'"]);
            command
        };
        assert_eq!(run(none, &mut Vec::new()), SuiteResult::Failed("no test ran".to_owned()));
    }

    #[test]
    fn a_second_look_is_for_few_tests_of_programs_that_came_to_their_end() {
        let heard = |lines: &[&str]| {
            let mut heard = Heard::default();
            lines.iter().for_each(|line| heard.line(line));
            heard
        };
        let one =
            ["running 2 tests", "test a ... ok", "test b::c ... FAILED", "test result: FAILED. 1 passed"];
        assert_eq!(heard(&one).to_look_at(), Some(vec!["b::c"]));
        assert_eq!(heard(&one[..3]).to_look_at(), None, "cut short");
        assert_eq!(heard(&["running 1 test", "test a ... ok", "test result: ok."]).to_look_at(), None);
        let many = ["running 4 tests", "test a ... FAILED", "test b ... FAILED", "test c ... FAILED"];
        let rest = ["test d ... FAILED", "test result: FAILED."];
        assert_eq!(heard(&[&many[..], &rest].concat()).to_look_at(), None, "more than a few");
        assert_eq!(heard(&[]).to_look_at(), None, "what did not build");
    }
}
