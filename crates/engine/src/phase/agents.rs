//! Running an agent in a worktree and listening to it: what it says becomes events, choices, snapshots and
//! questions; how it ends becomes the end of the run.

use std::path::Path;
use std::time::Duration;

use drydock_agent::{Ending, Message, Opinion, Proposal, RunDirs, Signal, StartError, Task};
use drydock_domain::{Choice, Command, ErrorClass, Event, Invariant, Question, Rule};
use drydock_worktree::Checkout;
use serde_json::json;
use tokio::sync::mpsc;

use super::scope::{End, Scope, signature, snapshot};
use crate::error::EngineError;
use crate::rule::effective_for;
use crate::task;

/// How many signals may wait before the agent is slowed down.
const SIGNALS_MAX: usize = 256;
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

/// What an agent is asked to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Strategist,
    Writer,
    Reviewer,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Role::Strategist => "strategist",
            Role::Writer => "writer",
            Role::Reviewer => "reviewer",
        }
    }
}

/// What an agent is sent to do.
#[derive(Clone, Copy)]
pub(super) struct Errand<'a> {
    pub(super) name: &'a str,
    pub(super) role: Role,
    pub(super) checkout: &'a Checkout,
    /// What was said of its work earlier in this run.
    pub(super) said: &'a [String],
    /// What it shall review: the number and the commit.
    pub(super) proposal: Option<(usize, &'a str)>,
}

impl<'a> Errand<'a> {
    pub(super) fn of(name: &'a str, role: Role, checkout: &'a Checkout) -> Self {
        Self { name, role, checkout, said: &[], proposal: None }
    }
}

/// What a reviewer said.
#[derive(Debug, Clone)]
pub(super) struct Verdict {
    pub(super) opinion: Opinion,
    pub(super) version: Option<String>,
    pub(super) reason: Option<String>,
}

/// How an agent's work ended.
pub(super) enum AgentEnd {
    /// It did its work, recorded these choices, and gave its verdict where it is a reviewer.
    Finished { choices: Vec<Choice>, verdict: Option<Verdict> },
    /// The run is over.
    Ended(End),
}

impl Scope<'_> {
    /// Runs an agent to its end. Whatever it wrote is kept, however it ended.
    pub(super) async fn agent(&self, errand: &Errand<'_>) -> Result<AgentEnd, EngineError> {
        let Errand { name, role, checkout, .. } = *errand;
        let Some(spec) = self.engine.settings().agents.get(name).cloned() else {
            let text = format!("there is no agent {name:?} in the configuration");
            return Ok(AgentEnd::Ended(self.failed(ErrorClass::AgentMissing, text)));
        };
        let author = self.git(|repository| Ok(signature(&repository))).await?;
        let spec = spec.as_author(&author.name, &author.email);
        let invariants = effective_for(self.engine, &self.plan).await?;
        let job = self.job(errand, &invariants);
        let runner = self.engine.runner_for(&self.plan);
        let sandbox = runner.confinement(&spec);
        let details = json!({ "agent": name, "role": role.name(), "sandbox": sandbox });
        self.note(Event::Agent { what: "started", details }).await?;
        let (signals, heard) = mpsc::channel(SIGNALS_MAX);
        let stop = self.stop.child_token();
        let running = runner.agent(&spec, &job, &self.dirs(checkout.path()), signals, stop.clone());
        let mut listener = Listener::new(self, errand);
        let (ending, listened) = tokio::join!(running, async {
            let listened = listener.listen(heard, &stop).await;
            if listened.is_err() {
                stop.cancel();
            }
            listened
        });
        listened?;
        let heard =
            Heard { choices: listener.choices, verdict: listener.verdict, question: listener.question };
        self.agent_ended(errand, ending, heard).await
    }

    /// Returns where an agent or a command of this run works.
    pub(super) fn dirs(&self, tree: &Path) -> RunDirs {
        // Git reads the repository from the worktree; nothing in there can be written.
        let reads = vec![self.repository.common_dir().to_owned()];
        RunDirs { worktree: tree.to_owned(), temp: self.temp(), reads }
    }

    fn job(&self, errand: &Errand<'_>, invariants: &[Invariant]) -> Task {
        let plan = &self.plan;
        Task {
            plan: plan.id.to_string(),
            run: self.run.to_string(),
            phase: plan.stage.phase().to_string(),
            role: errand.role.name().to_owned(),
            task: plan.spec.task.clone(),
            definition_of_done: plan.spec.definition_of_done.clone(),
            arguments: plan.spec.arguments.clone(),
            invariants: invariants.iter().map(describe).collect(),
            choices: plan.choices.iter().map(|choice| json!(choice)).collect(),
            feedback: plan.feedback.iter().chain(errand.said).cloned().collect(),
            worktree: errand.checkout.path().to_string_lossy().into_owned(),
            base: plan.base_commit.clone(),
            proposal: errand
                .proposal
                .map(|(version, commit)| Proposal { version, commit: commit.to_owned() }),
        }
    }

    async fn agent_ended(
        &self,
        errand: &Errand<'_>,
        ending: Result<Ending, StartError>,
        heard: Heard,
    ) -> Result<AgentEnd, EngineError> {
        let Errand { name, checkout, .. } = *errand;
        let Heard { choices, verdict, question } = heard;
        let how = match &ending {
            Ok(ending) => wording(ending),
            Err(error) => error.to_string(),
        };
        self.note(Event::Agent { what: "ended", details: json!({ "agent": name, "how": how }) }).await?;
        if let Some(question) = question {
            self.keep(checkout, "work before the question").await?;
            let ask = Command::Ask(self.run.clone(), question);
            return Ok(AgentEnd::Ended(End::Report(Box::new(ask))));
        }
        let failed = |class, text: String| Ok(AgentEnd::Ended(self.failed(class, text)));
        let said = |tail: &str| if tail.is_empty() { String::new() } else { format!("; it said:\n{tail}") };
        match ending {
            Ok(Ending::Finished) => Ok(AgentEnd::Finished { choices, verdict }),
            Ok(Ending::Stopped) => Ok(AgentEnd::Ended(End::Stopped)),
            Ok(
                Ending::Failed { tail, .. }
                | Ending::Killed { tail, .. }
                | Ending::LimitExceeded { tail, .. }
                | Ending::Unfinished { tail, .. },
            ) => failed(ErrorClass::AgentFailed, format!("agent {name} {how}{}", said(&tail))),
            Ok(Ending::TimedOut { tail, .. }) => {
                failed(ErrorClass::AgentTimedOut, format!("agent {name} {how}{}", said(&tail)))
            }
            Ok(Ending::OutputExceeded { .. }) => {
                failed(ErrorClass::AgentFailed, format!("agent {name} {how}"))
            }
            Err(error) => {
                failed(ErrorClass::AgentMissing, format!("agent {name}: {error}; {}", error.hint()))
            }
        }
    }

    /// Keeps what is in the worktree now as a snapshot, and returns its ref.
    pub(super) async fn keep(&self, checkout: &Checkout, label: &str) -> Result<String, EngineError> {
        let (checkout, base, plan) = (checkout.clone(), self.base()?, self.plan.id.clone());
        let (repository, label) = (self.repository.clone(), label.to_owned());
        task::blocking(move || {
            let captured = checkout.capture(&base, &label, &signature(&repository))?;
            snapshot(&repository, plan.as_str(), &captured)
        })
        .await
    }
}

/// Says how an agent ended, to go on after its name.
pub(crate) fn wording(ending: &Ending) -> String {
    match ending {
        Ending::Finished => "finished".to_owned(),
        Ending::Failed { code, .. } => format!("ended with exit code {code}"),
        Ending::Killed { signal, .. } => format!("was killed by signal {signal}"),
        Ending::TimedOut { after, .. } => format!("took longer than {} s", after.as_secs()),
        Ending::Stopped => "was stopped".to_owned(),
        Ending::OutputExceeded { limit } => format!("wrote more than {limit} bytes"),
        Ending::LimitExceeded { what, max, .. } => format!("used more than {max} {what}"),
        Ending::Unfinished { reason, .. } => reason.clone(),
    }
}

fn describe(invariant: &Invariant) -> String {
    let name = &invariant.name;
    match &invariant.rule {
        Rule::Cel(source) => format!("{name}: {source}"),
        Rule::Command(command) => format!("{name}: `{command}` must succeed"),
        Rule::Text(text) => format!("{name}: {text}"),
    }
}

/// What an agent said that counts when it has ended.
struct Heard {
    choices: Vec<Choice>,
    verdict: Option<Verdict>,
    question: Option<Question>,
}

/// Turns what an agent says into events while it runs.
struct Listener<'a> {
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
    fn new(scope: &'a Scope<'a>, errand: &Errand<'a>) -> Self {
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

    async fn listen(
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
            Signal::Activity(activity) => {
                self.messages += 1;
                self.flush().await?;
                self.scope.note(told(self.agent, &activity)).await?;
            }
        }
        Ok(())
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
fn told(agent: &str, activity: &drydock_agent::Activity) -> Event {
    let what = activity.name();
    let mut details = json!(activity);
    details["agent"] = json!(agent);
    Event::Agent { what, details }
}
