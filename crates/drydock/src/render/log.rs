//! Lines of a run's log, for a terminal.

use drydock_api::LogLine;
use drydock_domain::counted;
use jiff::Timestamp;

use super::style::{FAINT, paint, plain, short};

const SHORT_CHARS_MAX: usize = 160;
/// The maximum number of lines shown at once while a plan is followed.
const TOGETHER_MAX: usize = 20;

/// Returns a line with its time and its stream.
pub(crate) fn line(line: &LogLine) -> String {
    let at = line.at.parse::<Timestamp>();
    let at = at.map_or_else(|_| line.at.clone(), |at| at.strftime("%H:%M:%S").to_string());
    let head = paint(FAINT, &format!("{at} {:<8}", line.stream));
    format!("{head} {}\n", plain(&line.text))
}

/// Returns the text of an agent or a command without drydock's additions. None for drydock's own lines.
pub(crate) fn raw(line: &LogLine) -> Option<String> {
    (line.stream != LogLine::NOTICE).then(|| format!("{}\n", line.text))
}

/// Returns the lines to show while a plan is followed. Messages are left out because their events are shown instead.
pub(crate) fn followed(lines: &[LogLine]) -> Vec<String> {
    let is_shown = |line: &&LogLine| match line.stream.as_str() {
        LogLine::NOTICE => line.dropped.is_some(),
        LogLine::MESSAGE => false,
        _ => !line.text.trim().is_empty(),
    };
    let shown: Vec<_> = lines.iter().filter(is_shown).collect();
    let more = shown.len().saturating_sub(TOGETHER_MAX);
    let newest = shown[more..].iter().map(|line| short(&line.text, SHORT_CHARS_MAX));
    (more > 0)
        .then(|| format!("({}; `drydock plan log` has all)", counted(more, "more line")))
        .into_iter()
        .chain(newest)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(stream: &str, text: &str) -> LogLine {
        LogLine {
            at: "2026-01-02T03:04:05.678Z".into(),
            stream: stream.into(),
            text: text.into(),
            dropped: None,
        }
    }

    #[test]
    fn a_line_has_time_and_stream_and_cannot_command_a_terminal() {
        let shown = anstream::adapter::strip_str(&line(&written("stdout", "a\u{1b}[2J"))).to_string();
        assert_eq!(shown, "03:04:05 stdout   a^[[2J\n");
        assert_eq!(raw(&written("stderr", "a\u{1b}[2J")).as_deref(), Some("a\u{1b}[2J\n"));
        assert_eq!(raw(&written("drydock", "execute begins")), None);
    }

    #[test]
    fn a_person_who_follows_gets_the_newest_lines_and_how_many_there_were_before() {
        let mut lines: Vec<_> = (1..=25).map(|number| written("stdout", &number.to_string())).collect();
        lines.push(written("message", "{}"));
        let shown = followed(&lines);
        assert_eq!((shown.len(), shown[1].as_str(), shown[20].as_str()), (21, "6", "25"));
        assert!(shown[0].starts_with("(5 more lines"), "{}", shown[0]);
    }
}
