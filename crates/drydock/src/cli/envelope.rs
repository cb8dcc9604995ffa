//! The JSON envelope around every answer. Its field names are part of the contract.

use drydock_api::Problem;
use serde::Serialize;
use serde_json::{Map, Value};

use super::report::{CliResult, ReportMessage, ReportStatus};

/// When a command started and how long it took.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Timing {
    pub(crate) started: String,
    pub(crate) duration_ms: u64,
}

#[derive(Serialize)]
struct Envelope<'a> {
    command: &'a str,
    status: &'static str,
    exit_code: u8,
    data: &'a Value,
    messages: &'a [ReportMessage],
    timing: Timing,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Error<'a>>,
}

#[derive(Serialize)]
struct Error<'a> {
    code: &'a str,
    text: &'a str,
    hint: Option<&'a str>,
    details: &'a Map<String, Value>,
}

/// Returns the envelope as one line of JSON.
pub(crate) fn line(command: &str, outcome: &CliResult, timing: Timing) -> String {
    let envelope = match outcome {
        Ok(report) => {
            let (status, error) = match &report.ending {
                ReportStatus::Done => ("ok", None),
                ReportStatus::Attention(_) => ("warn", None),
                ReportStatus::Failed(problem) => ("error", Some(error(problem))),
            };
            let (data, messages) = (&report.data, report.notes.as_slice());
            Envelope { command, status, exit_code: report.exit_code(), data, messages, timing, error }
        }
        Err(problem) => {
            let (exit_code, error) = (problem.exit_code(), Some(error(problem)));
            Envelope { command, status: "error", exit_code, data: &Value::Null, messages: &[], timing, error }
        }
    };
    let mut line = serde_json::to_string(&envelope).expect("an envelope is maps, lists, text and numbers");
    line.push('\n');
    line
}

fn error(problem: &Problem) -> Error<'_> {
    Error {
        code: problem.code.text(),
        text: &problem.detail,
        hint: problem.hint.as_deref(),
        details: &problem.details,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::report::{Level, Report};
    use drydock_api::Code;
    use serde_json::json;

    fn written(outcome: CliResult) -> Value {
        let timing = Timing { started: "2026-03-10T12:00:00Z".into(), duration_ms: 5 };
        serde_json::from_str(&line("plan list", &outcome, timing)).unwrap()
    }

    #[test]
    fn a_success_has_data_and_no_error() {
        let report = Report::new(json!({"plans": []}), "").note(Level::Info, "none yet");
        assert_eq!(
            written(Ok(report)),
            json!({
                "command": "plan list", "status": "ok", "exit_code": 0, "data": {"plans": []},
                "messages": [{"level": "info", "text": "none yet"}],
                "timing": {"started": "2026-03-10T12:00:00Z", "duration_ms": 5},
            })
        );
    }

    #[test]
    fn a_refusal_has_an_error_and_null_data() {
        let problem = Problem::new(Code::LockHeld, "held").hint("wait").with("pid", 7);
        let envelope = written(Err(Box::new(problem)));
        assert_eq!(envelope["data"], Value::Null);
        assert_eq!((&envelope["status"], &envelope["exit_code"]), (&json!("error"), &json!(4)));
        assert_eq!(
            envelope["error"],
            json!({"code": "lock_held", "text": "held", "hint": "wait", "details": {"pid": 7}})
        );
    }

    #[test]
    fn what_needs_a_person_is_a_warning_with_its_exit_code() {
        let envelope = written(Ok(Report::new(json!({}), "").ending(ReportStatus::Attention(6))));
        assert_eq!((&envelope["status"], &envelope["exit_code"]), (&json!("warn"), &json!(6)));
        assert_eq!(envelope.get("error"), None);
    }
}
