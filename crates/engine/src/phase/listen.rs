//! Listening to an agent while it runs: what it says and does becomes events, choices, snapshots and questions, within
//! bounds.

use std::time::Duration;

use drydock_agent::{Activity, Message, Signal};
use drydock_domain::{Choice, Event, Question};
use drydock_worktree::Checkout;
use serde_json::json;
use tokio::sync::mpsc;

use super::agents::{Errand, Role, Verdict};
use super::scope::Scope;
use crate::error::EngineError;

/// How often what the agent wrote becomes an event.
const FLUSH: Duration = Duration::from_millis(300);
/// How many lines one event carries at the most; what is beyond is counted.
const LINES_PER_EVENT_MAX: usize = 40;
/// How many events one run's output makes at the most.
const OUTPUT_EVENTS_MAX: usize = 200;
/// How many messages of one run are heard; what is beyond is counted.
const MESSAGES_MAX: usize = 1_000;
/// How many choices a plan keeps.
const CHOICES_MAX: usize = 200;
/// How long a line in an event is at the most.
const LINE_MAX: usize = 500;

/// What an agent said that counts when it has ended.
pub(super) struct Heard {
    pub(super) choices: Vec<Choice>,
    pub(super) verdict: Option<Verdict>,
    pub(super) question: Option<Question>,
}

/// Turns what an agent says into events while it runs.
pub(super) struct Listener<'a> {
    scope: &'a Scope<'a>,
    agent: &'a str,
    role: Role,
    checkout: &'a Checkout,
    choices: Vec<Choice>,
    verdict: Option<Verdict>,
    question: Option<Question>,
    lines: Vec<String>,
    unsaid: usize,
    output_events: usize,
    messages: usize,
}

impl<'a> Listener<'a> {
    pub(super) fn new(scope: &'a Scope<'a>, errand: &Errand<'a>) -> Self {
        let Errand { name: agent, role, checkout, .. } = *errand;
        let (choices, lines) = (Vec::new(), Vec::new());
        Self {
            scope,
            agent,
            role,
            checkout,
            choices,
            verdict: None,
            question: None,
            lines,
            unsaid: 0,
            output_events: 0,
            messages: 0,
        }
    }

    pub(super) async fn listen(
        &mut self,
        mut heard: mpsc::Receiver<Signal>,
        stop: &tokio_util::sync::CancellationToken,
    ) -> Result<(), EngineError> {
        let mut flush = tokio::time::interval(FLUSH);
        flush.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                signal = heard.recv() => match signal {
                    Some(signal) => self.hear(signal).await?,
                    None => break,
                },
                _ = flush.tick() => self.flush().await?,
            }
            if self.question.is_some() {
                stop.cancel();
            }
        }
        // The end is always told, with how much was left out on the way.
        self.output_events = self.output_events.min(OUTPUT_EVENTS_MAX - 1);
        self.flush().await
    }

    /// Says whether a question was asked, which ends the run.
    pub(super) fn has_asked(&self) -> bool {
        self.question.is_some()
    }

    /// Returns what counts of what was said.
    pub(super) fn heard(self) -> Heard {
        Heard { choices: self.choices, verdict: self.verdict, question: self.question }
    }

    async fn hear(&mut self, signal: Signal) -> Result<(), EngineError> {
        match signal {
            Signal::Log { line, .. } => self.line(&line),
            Signal::Garbled { .. } | Signal::Message(_) | Signal::Activity(_)
                if self.messages >= MESSAGES_MAX =>
            {
                self.unsaid += 1;
            }
            Signal::Garbled { line, reason } => {
                self.messages += 1;
                self.line(&line);
                let details = json!({ "agent": self.agent, "reason": reason });
                self.scope.note(Event::Agent { what: "garbled", details }).await?;
            }
            Signal::Message(message) => {
                self.messages += 1;
                self.message(message).await?;
            }
            Signal::Stalled { quiet } => self.stalled(quiet).await?,
            Signal::Activity(activity) => {
                self.messages += 1;
                self.flush().await?;
                self.scope.note(told(self.agent, &activity)).await?;
            }
        }
        Ok(())
    }

    /// Tells people of an agent that shows no sign of life; what to do about it is theirs to say.
    async fn stalled(&self, quiet: Duration) -> Result<(), EngineError> {
        let (agent, plan, seconds) = (self.agent, &self.scope.plan.id, quiet.as_secs());
        let text = format!(
            "agent {agent} of {plan} has shown no sign of life for {seconds} s: it wrote nothing, computed nothing and \
             changed no file; it goes on until its timeout, or `drydock plan cancel {plan}`"
        );
        let details = json!({ "agent": agent, "quiet_s": seconds });
        let events = vec![Event::Agent { what: "stalled", details }, Event::Alert { priority: "high", text }];
        self.scope.engine.note(self.scope.hold, events).await
    }

    fn line(&mut self, line: &str) {
        if self.lines.len() < LINES_PER_EVENT_MAX {
            self.lines.push(line.chars().take(LINE_MAX).collect());
        } else {
            self.unsaid += 1;
        }
    }

    async fn flush(&mut self) -> Result<(), EngineError> {
        if self.lines.is_empty() || self.output_events >= OUTPUT_EVENTS_MAX {
            return Ok(());
        }
        self.output_events += 1;
        let lines = std::mem::take(&mut self.lines);
        let unsaid = std::mem::take(&mut self.unsaid);
        let details = json!({ "agent": self.agent, "lines": lines, "left_out": unsaid });
        self.scope.note(Event::Agent { what: "output", details }).await
    }

    async fn message(&mut self, message: Message) -> Result<(), EngineError> {
        self.flush().await?;
        let agent = self.agent;
        let event = match message {
            Message::Choice { question, chosen, alternatives, rationale, confidence } => {
                let choice = Choice { question, chosen, alternatives, rationale, confidence };
                if self.choices.len() < CHOICES_MAX {
                    self.choices.push(choice.clone());
                }
                Event::ChoiceRecorded(choice)
            }
            Message::Progress { text, percent } => Event::Agent {
                what: "progress",
                details: json!({ "agent": agent, "text": text, "percent": percent }),
            },
            Message::Checkpoint { label } => {
                let kept = self.scope.keep(self.checkout, &label).await?;
                Event::Agent {
                    what: "checkpoint",
                    details: json!({ "agent": agent, "label": label, "ref": kept }),
                }
            }
            Message::Ask { question, options } => {
                let offered = options.into_iter().map(|option| (option.id, option.label)).collect();
                self.question.get_or_insert_with(|| Question::from_agent(question.clone(), offered));
                Event::Agent { what: "asked", details: json!({ "agent": agent, "question": question }) }
            }
            // The last word counts; it is told when the review is recorded.
            Message::Verdict { verdict: opinion, version, reason } if self.role == Role::Reviewer => {
                self.verdict = Some(Verdict { opinion, version, reason });
                return Ok(());
            }
            Message::Subplan(_) | Message::Verdict { .. } => {
                let reason = "only reviewers give verdicts, and subplans are not built yet";
                Event::Agent { what: "garbled", details: json!({ "agent": agent, "reason": reason }) }
            }
        };
        self.scope.note(event).await
    }
}

/// What an agent does, as its protocol tells, as an event.
fn told(agent: &str, activity: &Activity) -> Event {
    let what = activity.name();
    let mut details = json!(activity);
    details["agent"] = json!(agent);
    Event::Agent { what, details }
}
