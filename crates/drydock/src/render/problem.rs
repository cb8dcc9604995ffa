//! Problems as text: the error and the next step.

use drydock_api::{Code, Problem};
use jiff::Timestamp;
use serde_json::Value;

use super::style::{BAD, BUSY, paint, plain};
use super::time::ago;

/// Returns the lines for stderr.
pub(crate) fn lines(problem: &Problem, now: Timestamp) -> String {
    let mut text = format!("{} {}\n", paint(BAD, "error:"), plain(&problem.detail));
    if problem.code == Code::LockHeld
        && let Some(holder) = holder(problem, now)
    {
        text.push_str(&format!("{} {}\n", paint(BUSY, "held by:"), plain(&holder)));
    }
    if let Some(hint) = &problem.hint {
        text.push_str(&format!("{} {}\n", paint(BUSY, "hint:"), plain(hint)));
    }
    text
}

/// Returns the holder of the lock, from the details of a conflict.
fn holder(problem: &Problem, now: Timestamp) -> Option<String> {
    let pid = problem.details.get("pid").and_then(Value::as_u64)?;
    let (owner, host) = (problem.text("owner")?, problem.text("host")?);
    let purpose = problem.text("purpose").map(|purpose| format!(", {purpose}")).unwrap_or_default();
    let until = problem.text("expires_at").map(|at| format!("; expires {} unless renewed", ago(at, now)));
    Some(format!("{owner} (process {pid} on {host}{purpose}){}", until.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::columns::bare;

    #[test]
    fn a_conflict_names_the_holder_and_the_next_step() {
        let now = "2026-03-10T12:00:00Z".parse().unwrap();
        let problem = Problem::new(Code::LockHeld, "plan pln-1 is held by another process")
            .hint("wait, or `drydock lock list`")
            .with("owner", "h/7/1")
            .with("host", "h")
            .with("pid", 7)
            .with("purpose", "execute")
            .with("expires_at", "2026-03-10T12:00:40Z");
        assert_eq!(
            bare(&lines(&problem, now)),
            "error: plan pln-1 is held by another process\n\
             held by: h/7/1 (process 7 on h, execute); expires in 40 s unless renewed\n\
             hint: wait, or `drydock lock list`\n"
        );
    }
}
