//! Progress output while a plan runs: a spinner with the elapsed time, or plain lines, or nothing.

use std::cell::RefCell;
use std::time::Duration;

use drydock_api::{Event, LogLine, Phase};
use indicatif::{ProgressBar, ProgressStyle};

use super::screen::{Remarks, Screen};
use crate::render::event::{detail_lines, sentence};
use crate::render::log::followed;
use crate::render::style::{FAINT, paint, plain};

const TICK: Duration = Duration::from_millis(120);

/// Prints the progress of a plan.
pub(crate) struct ProgressDisplay<'s> {
    screen: &'s Screen,
    spinner: Option<ProgressBar>,
    /// The last wait message, so that it is printed once.
    waits: RefCell<Option<String>>,
}

impl<'s> ProgressDisplay<'s> {
    /// Starts the output for a phase.
    pub(crate) fn begin(screen: &'s Screen, phase: Phase) -> Self {
        let spinner = match screen.remarks() {
            Remarks::Live => Some(spinner(phase)),
            Remarks::Plain | Remarks::Silent => None,
        };
        Self { screen, spinner, waits: RefCell::new(None) }
    }

    /// Shows one event. On a terminal, agent output is only the spinner's text; every other event is a line.
    pub(crate) fn tell(&self, event: &Event) {
        if is_noise(event) {
            return;
        }
        match &self.spinner {
            Some(spinner) if is_chatter(&event.kind) => {
                spinner.set_message(plain(&sentence(event)).into_owned());
            }
            // The command's error contains the reason.
            _ if event.kind == "plan.errored" => self.over_spinner("failed"),
            Some(_) => self.over_spinner(&sentence(event)),
            None => detail_lines(event).iter().for_each(|said| self.screen.info(&line(said))),
        }
    }

    /// Shows the output of agents and commands: on a terminal the newest line as the spinner's text, else all lines.
    pub(crate) fn print(&self, lines: &[LogLine]) {
        let shown = followed(lines);
        match &self.spinner {
            Some(spinner) => {
                shown.last().into_iter().for_each(|last| spinner.set_message(plain(last).into_owned()))
            }
            None => shown.iter().for_each(|said| self.screen.info(&line(said))),
        }
    }

    fn over_spinner(&self, said: &str) {
        match &self.spinner {
            Some(spinner) => spinner.suspend(|| self.screen.info(&line(said))),
            None => self.screen.info(&line(said)),
        }
    }

    /// Shows why the plan waits: on a terminal as the spinner's text, else as a line, once.
    pub(crate) fn wait(&self, said: &str) {
        match &self.spinner {
            Some(spinner) => spinner.set_message(plain(said).into_owned()),
            None if self.waits.replace(Some(said.to_owned())).as_deref() == Some(said) => {}
            None => self.screen.info(&line(said)),
        }
    }

    /// Removes the spinner, so that later output starts on an empty line.
    pub(crate) fn end(&self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}

impl Drop for ProgressDisplay<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

fn line(said: &str) -> String {
    format!("{} {}", paint(FAINT, "·"), plain(said))
}

/// Returns true for bookkeeping events that a person at the prompt does not need. `plan events` prints them.
fn is_noise(event: &Event) -> bool {
    match event.kind.as_str() {
        "invariant.enforced" => event.data["findings"].as_array().is_none_or(Vec::is_empty),
        "decision.opened" => event.data["kind"] == "gate",
        "plan.created" | "changeset.opened" => true,
        _ => false,
    }
}

fn is_chatter(kind: &str) -> bool {
    matches!(kind, "agent.progress" | "agent.output" | "agent.usage")
}

fn spinner(phase: Phase) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {prefix} {elapsed} {wide_msg}")
        .expect("the template is a valid constant");
    let spinner = ProgressBar::new_spinner().with_style(style).with_prefix(phase.name());
    spinner.enable_steady_tick(TICK);
    spinner
}
