//! Handles the signals of an agent while it runs. Its output goes to the log of the run. Its messages and
//! actions become events, choices, checkpoints and questions, within bounds.

use std::collections::HashSet;
use std::time::Duration;

use drydock_agent::{
    Activity, AgentSpec, Message, OutputStream, PermissionAsked, Resets, SessionUsage, Signal, means_to_ask,
    verdict_in,
};
use drydock_domain::{CHOICES_MAX, Choice, Event, Question, ResourceUsage, check_tree, counted, put_choice};
use drydock_worktree::{Checkout, TreeId};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::agents::{AgentAssignment, AgentRole, ReviewerVerdict};
use super::carried::EarlierOutput;
use super::scope::RunContext;
use super::spend::{UsageReporter, usage};
use crate::error::EngineError;
use crate::tree::SubplanDraft;

/// Time limit of a checkpoint while the agent is running. A running agent can delay a capture indefinitely,
/// so a checkpoint that takes longer is skipped.
const LIVE_CAPTURE_MAX: Duration = Duration::from_secs(20);
/// How often to check whether the agent's usage has to be recorded.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// Maximum number of messages handled per run of an agent. Further messages are only counted.
const MESSAGES_MAX: usize = 1_000;
/// Maximum number of checkpoints around tool calls per run of an agent, and of checks whether one is needed.
const TOOL_SNAPSHOTS_MAX: usize = 100;
const TOOL_LOOKS_MAX: usize = 1_000;
/// Maximum number of tool calls that are counted.
const TOOLS_MAX: usize = 100_000;
/// Maximum number of characters of an unreadable question that a person is shown.
const UNREAD_MAX: usize = 2_000;
/// Size of the end of a reviewer's output that is searched for a verdict.
const REVIEW_MAX: usize = 64 * 1024;
/// Maximum number of characters of a line that is quoted in an error.
const LINE_MAX: usize = 500;

/// The results of an agent's messages, used after it has ended.
pub(super) struct AgentReport {
    pub(super) choices: Vec<Choice>,
    /// The subplans that earlier runs reported and this run did not.
    pub(super) carried: Vec<SubplanDraft>,
    pub(super) subplans: Vec<SubplanDraft>,
    /// The error in a subplan that was reported in an output line, to which no reply is possible.
    pub(super) mistake: Option<String>,
    pub(super) verdict: Option<ReviewerVerdict>,
    pub(super) question: Option<Question>,
    /// When the rate limit ends that the agent reported.
    pub(super) limited: Option<Resets>,
    /// True if the agent was stopped because the budget is used up.
    pub(super) exhausted: bool,
}

/// Turns the signals of an agent into events while it runs.
pub(super) struct AgentListener<'a> {
    scope: &'a RunContext<'a>,
    agent: &'a str,
    role: AgentRole,
    checkout: &'a Checkout,
    choices: Vec<Choice>,
    carried: EarlierOutput,
    subplans: Vec<SubplanDraft>,
    /// The subplans reported since the agent was last started.
    named: HashSet<String>,
    mistake: Option<String>,
    verdict: Option<ReviewerVerdict>,
    question: Option<Question>,
    limited: Option<Resets>,
    exhausted: bool,
    tools: HashSet<String>,
    told: UsageReporter,
    unsaid: usize,
    messages: usize,
    /// The tree of the worktree when it was last captured around a tool call.
    seen: Option<TreeId>,
    tool_snapshots: usize,
    tool_looks: usize,
    /// The output of a reviewer since its last verdict. It may contain a verdict that spans several lines.
    review: String,
}

impl<'a> AgentListener<'a> {
    pub(super) fn new(
        scope: &'a RunContext<'a>,
        errand: &AgentAssignment<'a>,
        mut carried: EarlierOutput,
    ) -> Self {
        let AgentAssignment { name: agent, role, checkout, .. } = *errand;
        // A choice made in Execute may depend on one from the strategy.
        let mut choices = scope.plan.choices.clone();
        std::mem::take(&mut carried.choices).into_iter().for_each(|choice| put_choice(&mut choices, choice));
        Self {
            scope,
            agent,
            role,
            checkout,
            choices,
            carried,
            subplans: Vec::new(),
            named: HashSet::new(),
            mistake: None,
            verdict: None,
            question: None,
            limited: None,
            exhausted: false,
            tools: HashSet::new(),
            told: UsageReporter::nothing(),
            unsaid: 0,
            messages: 0,
            seen: None,
            tool_snapshots: 0,
            tool_looks: 0,
            review: String::new(),
        }
    }

    pub(super) async fn listen(
        &mut self,
        mut heard: mpsc::Receiver<Signal>,
        stop: &tokio_util::sync::CancellationToken,
    ) -> Result<(), EngineError> {
        self.told.begin_session(None);
        self.named.clear();
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                signal = heard.recv() => match signal {
                    Some(signal) => self.handle_signal(signal).await?,
                    None => break,
                },
                _ = look.tick() => self.scope.emit_usage(self.agent, &mut self.told).await?,
            }
            // Lines that arrive together are written together.
            if heard.is_empty() || self.scope.log.is_full() {
                self.scope.flush_log().await?;
            }
            self.exhausted |= self.scope.is_exhausted();
            if self.has_ended() {
                stop.cancel();
            }
        }
        let unsaid = std::mem::take(&mut self.unsaid);
        if unsaid > 0 {
            let text = format!(
                "message limit reached: no event for {} beyond {MESSAGES_MAX}",
                counted(unsaid, "message")
            );
            self.scope.log.notice(&text);
        }
        self.scope.flush_log().await?;
        self.scope.tell_last_usage(self.agent, &mut self.told).await
    }

    /// Returns true if the run has to end: because of a question, a rate limit or the budget.
    pub(super) fn has_ended(&self) -> bool {
        self.question.is_some() || self.limited.is_some() || self.exhausted
    }

    /// Returns the results of all messages.
    pub(super) fn heard(mut self) -> AgentReport {
        // A verdict sent as a message takes precedence: a verdict in other output may be a quotation.
        if self.verdict.is_none()
            && let Some(Message::Verdict { verdict: opinion, version, reason }) = verdict_in(&self.review)
        {
            self.verdict = Some(ReviewerVerdict { opinion, version, reason });
        }
        let Self { choices, carried, subplans, mistake, verdict, question, limited, exhausted, .. } = self;
        AgentReport {
            choices,
            carried: carried.subplans,
            subplans,
            mistake,
            verdict,
            question,
            limited,
            exhausted,
        }
    }

    async fn handle_signal(&mut self, signal: Signal) -> Result<(), EngineError> {
        self.count(&signal);
        self.print(&signal);
        match signal {
            // The message limit does not apply, because usage is only counted.
            Signal::Message(Message::Usage { tokens, cost_usd, tool_calls }) => {
                drop(self.used(tokens, cost_usd.as_ref(), tool_calls).await?);
            }
            Signal::Called(Message::Usage { tokens, cost_usd, tool_calls }, reply) => {
                let outcome = self.used(tokens, cost_usd.as_ref(), tool_calls).await?;
                reply.say(outcome);
            }
            Signal::Log { stream, line } => self.reviewed(stream, &line),
            Signal::Activity(_) if self.messages >= MESSAGES_MAX => {
                self.unsaid += 1;
            }
            Signal::Message(message) if self.messages >= MESSAGES_MAX && !decides(&message) => {
                self.unsaid += 1;
                if let Message::Subplan(asked) = message {
                    self.mistaken(
                        &asked.to_string(),
                        &format!("message limit reached: at most {MESSAGES_MAX} per run"),
                    );
                }
            }
            Signal::Permission(asked) => self.permission(asked).await?,
            Signal::Garbled { line, reason } => self.unread(&line, reason).await?,
            Signal::Called(message, reply) if self.messages >= MESSAGES_MAX && !decides(&message) => {
                reply.say(Err(format!("message limit reached: at most {MESSAGES_MAX} per run")));
            }
            // A rejected message becomes an event. The sender of an output line gets no reply.
            Signal::Message(message) => {
                self.messages += 1;
                let piece = match &message {
                    Message::Subplan(asked) => Some(asked.to_string()),
                    _ => None,
                };
                if let (Err(reason), Some(line)) = (self.handle_message(message).await?, piece) {
                    self.mistaken(&line, &reason);
                }
            }
            Signal::Called(message, reply) => {
                self.messages += 1;
                let outcome = self.handle_message(message).await?;
                reply.say(outcome);
            }
            Signal::Keep { label, reply } => {
                let outcome = self.checkpoint_around_tool(&label).await?;
                reply.say(outcome);
            }
            Signal::Session { id, begun, told } => self.session(id, begun, told).await?,
            Signal::Used { more, session } => {
                let SessionUsage { tokens, cost_micros } = more;
                self.scope.hold.tally().add(ResourceUsage {
                    tokens,
                    cost_micros,
                    ..ResourceUsage::default()
                });
                self.told.session_used(session);
            }
            Signal::Stalled { quiet } => self.stalled(quiet).await?,
            Signal::Activity(activity) => {
                self.messages += 1;
                self.scope.emit(told(self.agent, &activity)).await?;
            }
        }
        Ok(())
    }

    /// Asks a person about a tool call, unless a question is already open.
    async fn permission(&mut self, asked: PermissionAsked) -> Result<(), EngineError> {
        self.messages += 1;
        let PermissionAsked { tool, matches, question } = asked;
        let details = json!({ "agent": self.agent, "question": question });
        self.question.get_or_insert_with(|| Question::permission(question, &tool, &matches));
        self.scope.emit(Event::Agent { what: "asked", details }).await
    }

    /// Checkpoints the worktree around a tool call if it changed. A failure is reported and does not end the
    /// run.
    async fn checkpoint_around_tool(&mut self, label: &str) -> Result<Result<(), String>, EngineError> {
        // Only changes of a writer are part of the work.
        if self.role != AgentRole::Writer || self.tool_looks >= TOOL_LOOKS_MAX {
            return Ok(Ok(()));
        }
        self.tool_looks += 1;
        if self.tool_snapshots == TOOL_SNAPSHOTS_MAX || self.tool_looks == TOOL_LOOKS_MAX {
            self.tool_looks = TOOL_LOOKS_MAX;
            let reason =
                format!("checkpoint limit reached: at most {TOOL_SNAPSHOTS_MAX} around the tools of a run");
            return self.unkept(label, reason).await.map(Err);
        }
        match self.scope.keep_change(&self.checkout.within(LIVE_CAPTURE_MAX), label, &mut self.seen).await {
            Ok(None) => Ok(Ok(())),
            Ok(Some(kept)) => {
                self.tool_snapshots += 1;
                let details = json!({ "agent": self.agent, "label": label, "ref": kept });
                self.scope.emit(Event::Agent { what: "checkpoint", details }).await.map(Ok)
            }
            Err(error) => self.unkept(label, drydock_domain::error_chain(&error)).await.map(Err),
        }
    }

    /// Emits that a checkpoint failed. The agent continues.
    async fn unkept(&self, label: &str, reason: String) -> Result<String, EngineError> {
        let details = json!({ "agent": self.agent, "label": label, "reason": reason });
        self.scope.emit(Event::Agent { what: "checkpoint_failed", details }).await?;
        Ok(reason)
    }

    /// Records the session, so that a later run can resume it. Sessions of reviewers are not resumed.
    async fn session(
        &mut self,
        id: String,
        begun: Option<String>,
        told: SessionUsage,
    ) -> Result<(), EngineError> {
        if self.role == AgentRole::Reviewer {
            return Ok(());
        }
        let phase = self.scope.plan.stage.phase().name();
        let loaded = begun.is_none();
        let reason = begun.filter(|why| !why.is_empty());
        let mut details =
            json!({ "agent": self.agent, "phase": phase, "session": id, "loaded": loaded, "reason": reason });
        if loaded {
            self.carried.session_loaded();
            details["told"] = json!(told);
        }
        self.told.begin_session(Some((id, told)));
        self.scope.emit(Event::Agent { what: "session", details }).await
    }

    /// Counts a tool call when it is first reported.
    fn count(&mut self, signal: &Signal) {
        if let Signal::Activity(Activity::Tool { id, .. }) = signal
            && self.tools.len() < TOOLS_MAX
            && self.tools.insert(id.clone())
        {
            self.scope.hold.tally().add(ResourceUsage { tool_calls: 1, ..ResourceUsage::default() });
        }
    }

    /// Counts the usage that the agent reports. Returns the reason if the report is not valid.
    async fn used(
        &mut self,
        tokens: Option<u64>,
        cost_usd: Option<&Value>,
        tool_calls: Option<u64>,
    ) -> Result<Result<(), String>, EngineError> {
        let tally = self.scope.hold.tally();
        match usage(tokens, cost_usd, tool_calls) {
            Ok(used) => {
                tally.add(used);
                Ok(Ok(()))
            }
            Err(reason) => {
                // The valid parts count anyway.
                let (tokens, tool_calls) = (tokens.unwrap_or(0), tool_calls.unwrap_or(0));
                tally.add(ResourceUsage { tokens, tool_calls, ..ResourceUsage::default() });
                self.uncounted(reason.clone()).await?;
                Ok(Err(reason))
            }
        }
    }

    /// Emits an event about a usage report that is not valid.
    async fn uncounted(&mut self, reason: String) -> Result<(), EngineError> {
        if self.messages >= MESSAGES_MAX {
            self.unsaid += 1;
            return Ok(());
        }
        self.messages += 1;
        self.emit_rejected(reason).await.map(drop)
    }

    /// Alerts people to an agent that shows no sign of life, so that they can decide what to do.
    async fn stalled(&self, quiet: Duration) -> Result<(), EngineError> {
        let (agent, plan, seconds) = (self.agent, &self.scope.plan.id, quiet.as_secs());
        let rule = self.scope.engine.settings().agents.get(agent);
        let next = if rule.is_some_and(AgentSpec::stops_stalled) {
            format!(
                "if it stays silent for {seconds} s more, it is stopped and restarted by its restart \
                     rule"
            )
        } else {
            format!("it continues until its timeout; to stop it: `drydock plan cancel {plan}`")
        };
        let text = format!(
            "agent {agent} of {plan} has been silent for {seconds} s: no output, no CPU use, no changed \
             file; {next}"
        );
        let details = json!({ "agent": agent, "quiet_s": seconds });
        let events = vec![Event::Agent { what: "stalled", details }, Event::Alert { priority: "high", text }];
        self.scope.note_all(events).await
    }

    /// Buffers a line of a reviewer, which may contain a verdict. Drops the oldest output beyond the limit.
    fn reviewed(&mut self, stream: OutputStream, line: &str) {
        if self.role != AgentRole::Reviewer || stream != OutputStream::Stdout {
            return;
        }
        self.review.push_str(line);
        self.review.push('\n');
        let excess = self.review.len().saturating_sub(REVIEW_MAX);
        if excess > 0 {
            self.review.drain(..self.review.ceil_char_boundary(excess));
        }
    }

    /// Writes the agent's output to the log: every line, including messages.
    fn print(&self, signal: &Signal) {
        let (stream, text) = match signal {
            Signal::Log { stream: OutputStream::Stdout, line } | Signal::Garbled { line, .. } => {
                ("stdout", line.clone())
            }
            Signal::Log { stream: OutputStream::Stderr, line } => ("stderr", line.clone()),
            Signal::Message(message) => ("message", json!(message).to_string()),
            Signal::Permission(_)
            | Signal::Called(..)
            | Signal::Keep { .. }
            | Signal::Session { .. }
            | Signal::Used { .. }
            | Signal::Activity(_)
            | Signal::Stalled { .. } => return,
        };
        match self.role {
            AgentRole::Strategist | AgentRole::Writer => self.scope.log.line(stream, &text),
            AgentRole::Reviewer => self.scope.log.line(&format!("reviewer:{}", self.agent), &text),
        }
    }

    /// Adds a choice to those of the run, if it fits into their tree.
    fn choose(&mut self, choice: Choice) -> Result<Choice, String> {
        let mut choices = self.choices.clone();
        put_choice(&mut choices, choice.clone());
        if let Some(tangle) = check_tree(&choices) {
            return Err(format!("the choice {:?} cannot be recorded: {tangle}", choice.question));
        }
        if choices.len() > CHOICES_MAX {
            return Err(format!("choice limit reached: at most {CHOICES_MAX} per plan"));
        }
        self.choices = choices;
        Ok(choice)
    }

    /// Adds a subplan that the strategist reports. Whether it can be done is checked when the strategy is
    /// complete.
    fn subplan(&mut self, asked: Value) -> Result<Event, String> {
        let piece: SubplanDraft =
            serde_json::from_value(asked.clone()).map_err(|error| format!("subplan: {error}"))?;
        let details =
            json!({ "agent": self.agent, "name": piece.name, "after": piece.after, "piece": asked });
        // If a restarted agent or a later run reports a subplan again, the newer report counts.
        let again = !self.named.insert(piece.name.clone());
        if again && self.subplans.iter().any(|one| one.name == piece.name && *one != piece) {
            return Err(format!("two subplans are named {} and differ", piece.name));
        }
        match self.subplans.iter_mut().find(|one| one.name == piece.name) {
            Some(one) => *one = piece,
            None => {
                self.carried.forget(&piece.name);
                self.subplans.push(piece);
            }
        }
        Ok(Event::Agent { what: "subplan", details })
    }

    /// Remembers the first subplan that could not be read from an output line. The strategist gets no reply
    /// to a line, so the strategy fails.
    fn mistaken(&mut self, line: &str, reason: &str) {
        if self.role == AgentRole::Strategist && self.mistake.is_none() {
            let shown: String = line.chars().take(LINE_MAX).collect();
            self.mistake = Some(format!("could not read a subplan from the line {shown}: {reason}"));
        }
    }

    /// Like `mistaken`, for a line that is not a valid message but seems to contain a subplan.
    fn garbled_piece(&mut self, line: &str, reason: &str) {
        if line.contains("\"subplan\"") {
            self.mistaken(line, reason);
        }
    }

    /// Handles a line that was meant as a message but cannot be parsed. A question is shown to a person as
    /// written, even beyond the message limit: if it were dropped, the work would continue without an answer.
    async fn unread(&mut self, line: &str, reason: String) -> Result<(), EngineError> {
        let asks = self.question.is_none() && means_to_ask(line);
        if self.messages >= MESSAGES_MAX && !asks {
            self.unsaid += 1;
            return Ok(());
        }
        self.reviewed(OutputStream::Stdout, line);
        self.messages += 1;
        self.garbled_piece(line, &reason);
        let reason = self.emit_rejected(reason).await?;
        if asks {
            let shown: String = line.trim().chars().take(UNREAD_MAX).collect();
            let cut = if shown.len() < line.trim().len() { " …" } else { "" };
            let question = format!(
                "Agent {} asked a question that could not be parsed: {reason}. It wrote: \
                         {shown}{cut}",
                self.agent
            );
            drop(self.handle_message(Message::Ask { question, options: Vec::new() }).await?);
        }
        Ok(())
    }

    /// Handles a message. Returns the reason if the message is rejected.
    async fn handle_message(&mut self, message: Message) -> Result<Result<(), String>, EngineError> {
        let (agent, resets) = (self.agent, message.resets());
        let event = match message {
            Message::Choice { question, chosen, alternatives, rationale, confidence, id, under } => {
                let choice = Choice { question, chosen, alternatives, rationale, confidence, id, under };
                match self.choose(choice) {
                    Ok(choice) => Event::ChoiceRecorded(choice),
                    Err(reason) => return self.emit_rejected(reason).await.map(Err),
                }
            }
            Message::Progress { text, percent } => Event::Agent {
                what: "progress",
                details: json!({ "agent": agent, "text": text, "percent": percent }),
            },
            Message::Checkpoint { label } => {
                let kept = match self.scope.keep(&self.checkout.within(LIVE_CAPTURE_MAX), &label).await {
                    Ok(kept) => kept,
                    Err(error) => {
                        return self.unkept(&label, drydock_domain::error_chain(&error)).await.map(Err);
                    }
                };
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
            // A rate limit is handled when the run ends; usage is counted before this call.
            Message::RateLimited { .. } | Message::Usage { .. } => {
                self.limited = self.limited.or(resets);
                return Ok(Ok(()));
            }
            // The last verdict counts. It is emitted when the review is recorded.
            Message::Verdict { verdict: opinion, version, reason } if self.role == AgentRole::Reviewer => {
                self.verdict = Some(ReviewerVerdict { opinion, version, reason });
                self.review.clear();
                return Ok(Ok(()));
            }
            Message::Subplan(asked) if self.role == AgentRole::Strategist => match self.subplan(asked) {
                Ok(event) => event,
                Err(reason) => return self.emit_rejected(reason).await.map(Err),
            },
            Message::Subplan(_) => {
                let reason = "subplans can be requested only in Strategize".to_owned();
                return self.emit_rejected(reason).await.map(Err);
            }
            Message::Verdict { .. } => {
                return self.emit_rejected("only reviewers can give verdicts".to_owned()).await.map(Err);
            }
        };
        self.scope.emit(event).await.map(Ok)
    }

    /// Emits that a message was rejected, and returns the reason.
    async fn emit_rejected(&self, reason: String) -> Result<String, EngineError> {
        let details = json!({ "agent": self.agent, "reason": reason });
        self.scope.emit(Event::Agent { what: "garbled", details }).await?;
        Ok(reason)
    }
}

/// Returns true for a message that decides how the run ends. The message limit does not apply to it.
fn decides(message: &Message) -> bool {
    matches!(message, Message::Ask { .. } | Message::Verdict { .. } | Message::RateLimited { .. })
}

/// Returns the event for an activity that the agent's protocol reports.
fn told(agent: &str, activity: &Activity) -> Event {
    let what = activity.name();
    let mut details = json!(activity);
    details["agent"] = json!(agent);
    Event::Agent { what, details }
}
