//! Follows a plan until its phase settles, and drives it if this process has to. Progress output never blocks the
//! work: if the feed cannot be read, the work continues without output.

use std::pin::pin;
use std::time::{Duration, Instant};

use drydock_api::{
    ClientError, Code, Event, EventQuery, Phase, Plan, PlanMove, Problem, RequestOptions, State, Waits,
};
use jiff::Timestamp;

use super::backend::DriveOutcome;
use super::events;
use super::outcome;
use super::progress::ProgressDisplay;
use super::session::{Driver, FollowedPlan, Invocation};
use super::tail::LogTail;
use crate::render;
use crate::render::event::sentence;

const PAGE: u32 = 200;
/// How long one read of the feed waits: short if the work runs in this process, long over a network.
const WAIT_HERE_MS: u64 = 1_000;
const WAIT_SERVER_MS: u64 = 10_000;
/// How often a phase is requested again while a worker holds the plan and has not started, and the delay between
/// requests.
const ASKS_MAX: u32 = 100;
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// How long a store or a server may be unreachable while a plan is followed, and the delay between attempts.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long a command waits for a remote that a landing cannot reach. Workers keep retrying after that.
const REMOTE_PATIENCE: Duration = Duration::from_secs(60);

/// When to stop following a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FollowUntil {
    /// This phase has ended, or a later one has started.
    Settled(Phase),
    /// Nothing continues automatically. An end after which the profile continues without a gate does not count.
    Resting,
}

/// Reads the feed of one plan. It starts from a position taken before the plan is moved, so every event it returns is
/// new. When the plan is moved again, it continues after the last event.
pub(crate) struct PlanFeed<'s> {
    session: &'s Invocation,
    after: i64,
    tail: LogTail<'s>,
    /// When the plan started to wait for its remote.
    away_since: Option<Instant>,
}

impl<'s> PlanFeed<'s> {
    /// Starts at the current end of a plan's feed.
    pub(crate) async fn from_here(session: &'s Invocation, plan: &str) -> Result<Self, Box<Problem>> {
        let after = session.client().events_last(plan).await?;
        Ok(Self { session, after, tail: LogTail::new(session), away_since: None })
    }

    /// Returns the feed of a plan that was just created, from its first event.
    pub(crate) fn from_start(session: &'s Invocation) -> Self {
        Self { session, after: 0, tail: LogTail::new(session), away_since: None }
    }

    /// Requests a phase of a plan. If a worker has already started or finished that phase, this is not a conflict:
    /// the call returns the plan as it is. A lock held by another foreground process is a conflict (S1.6).
    pub(crate) async fn request_phase(&mut self, id: &str, to: PlanMove) -> Result<Plan, Box<Problem>> {
        let client = self.session.client();
        let mut asked = 1;
        loop {
            let refused = match client.plan_move(id, to, &RequestOptions::default()).await {
                Ok(plan) => return Ok(plan),
                Err(ClientError::Problem(refused)) => refused,
                Err(error) => return Err(error.into()),
            };
            let by_worker = match refused.code {
                Code::WrongState => false,
                Code::LockHeld => refused.details.get("worker").is_some_and(|worker| worker == true),
                _ => return Err(refused),
            };
            let plan = client.plan(id).await?;
            let begun = plan.phase == to.phase() && plan.state != State::Queued;
            if outcome::is_reached(&plan, to.phase()) || by_worker && begun {
                return Ok(plan);
            }
            if !by_worker || asked >= ASKS_MAX {
                return Err(refused);
            }
            // The worker is about to start the phase or to release the plan.
            asked += 1;
            tokio::time::sleep(ASK_AGAIN).await;
        }
    }

    /// Follows a plan until it settles. `resume` is the command that continues the plan after an interruption.
    pub(crate) async fn follow(
        &mut self,
        plan: Plan,
        until: FollowUntil,
        resume: &str,
    ) -> Result<Plan, Box<Problem>> {
        if until != FollowUntil::Resting && is_over(&plan, until) {
            return Ok(plan);
        }
        self.tail.join(&plan);
        let session = self.session;
        let progress = ProgressDisplay::begin(session.screen(), plan.phase);
        let by = session.driver();
        session.set_driving(Some(FollowedPlan { plan: plan.id.clone(), by, resume: resume.to_owned() }));
        let followed = loop {
            session.driven_by(by);
            let Some(drive) = session.backend().drive(&plan.id, plan.phase) else {
                break self.while_served(&plan.id, until, &progress).await;
            };
            let due = match self.while_driving(&plan.id, drive, &progress).await {
                Ok((plan, DriveOutcome::Postponed)) => self.until_due(plan, until, &progress).await,
                Ok((plan, DriveOutcome::ByWorker)) => self.until_free(plan, until, &progress).await,
                Ok((plan, DriveOutcome::Over)) => break Ok(plan),
                Err(problem) => break Err(problem),
            };
            match due {
                Ok(Due::Now) => {}
                Ok(Due::Elsewhere(plan)) => break Ok(*plan),
                Err(problem) => break Err(problem),
            }
        };
        session.set_driving(None);
        progress.end();
        followed
    }

    async fn while_driving(
        &mut self,
        plan: &str,
        drive: impl Future<Output = Result<DriveOutcome, Problem>>,
        progress: &ProgressDisplay<'_>,
    ) -> Result<(Plan, DriveOutcome), Box<Problem>> {
        let mut drive = pin!(drive);
        loop {
            let driven = tokio::select! {
                driven = &mut drive => driven,
                page = self.news(plan) => {
                    self.tell(plan, page, progress).await;
                    continue;
                }
                lines = self.tail.next(plan) => {
                    progress.print(&lines);
                    continue;
                }
            };
            let driven = driven?;
            self.rest(plan, progress).await;
            return Ok((self.session.client().plan(plan).await?, driven));
        }
    }

    /// Waits until a postponed plan is due, a person ends the postponement, or another process drives the plan. Any
    /// of these may have happened since the drive ended.
    async fn until_due(
        &mut self,
        mut plan: Plan,
        until: FollowUntil,
        progress: &ProgressDisplay<'_>,
    ) -> Result<Due, Box<Problem>> {
        self.session.driven_by(Driver::Waiting);
        while plan.state == State::Queued {
            self.refuse_unreachable(&plan)?;
            let Some((due, left_ms)) = plan.waits.as_ref().and_then(|due| Some((due, left_ms(due)?))) else {
                return Ok(Due::Now);
            };
            progress.wait(&format!("waiting {}; Ctrl-C stops watching", render::plan::waits(due)));
            plan = self.look_again(&plan, left_ms.min(WAIT_HERE_MS), progress).await?.plan;
        }
        self.until_free(plan, until, progress).await
    }

    /// Prints what another process does with a plan until the plan settles or this process may drive it: the plan is
    /// queued again, or there are no events and its holder may have died. The lock decides which.
    async fn until_free(
        &mut self,
        mut plan: Plan,
        until: FollowUntil,
        progress: &ProgressDisplay<'_>,
    ) -> Result<Due, Box<Problem>> {
        self.session.driven_by(Driver::Worker);
        loop {
            if is_over(&plan, until) {
                self.rest(&plan.id, progress).await;
                return Ok(Due::Elsewhere(Box::new(plan)));
            }
            progress.wait("running in another process; Ctrl-C stops watching");
            let look = self.look_again(&plan, WAIT_HERE_MS, progress).await?;
            plan = look.plan;
            refuse_blocked(&plan, look.blocked)?;
            if !is_over(&plan, until) && (look.quiet || plan.state == State::Queued) {
                return Ok(Due::Now);
            }
        }
    }

    /// Waits for events of a plan that another process drives, prints them, and reads the plan again. Ctrl-C ends the
    /// wait.
    async fn look_again(
        &mut self,
        plan: &Plan,
        wait_ms: u64,
        progress: &ProgressDisplay<'_>,
    ) -> Result<PlanPoll, Box<Problem>> {
        let look = self.look(&plan.id, wait_ms, progress).await;
        if let Some(interrupt) = self.session.interrupted() {
            return Err(interrupt.problem(Some(format!("drydock plan {} {}", plan.phase, plan.id))));
        }
        look
    }

    /// Prints new events of a plan and reads it again. Retries while the store or the server is unreachable, as the
    /// process that drives the plan does.
    async fn look(
        &mut self,
        id: &str,
        wait_ms: u64,
        progress: &ProgressDisplay<'_>,
    ) -> Result<PlanPoll, Box<Problem>> {
        let patience = Instant::now() + PATIENCE;
        loop {
            let problem = match self.look_once(id, wait_ms, progress).await {
                Err(problem) if is_away(&problem) => problem,
                looked => return looked,
            };
            if Instant::now() >= patience || self.session.interrupted().is_some() {
                let hint = format!("when this is fixed, `drydock plan show {id}` shows its progress");
                return Err(Box::new(problem.with("plan", id.to_owned()).hint(hint)));
            }
            progress.wait(&format!("{problem}; retrying"));
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    async fn look_once(
        &mut self,
        id: &str,
        wait_ms: u64,
        progress: &ProgressDisplay<'_>,
    ) -> Result<PlanPoll, Box<Problem>> {
        let page = {
            let mut page = pin!(self.next_page(id, wait_ms));
            loop {
                tokio::select! {
                    page = &mut page => break page?,
                    lines = self.tail.next(id) => progress.print(&lines),
                }
            }
        };
        let quiet = page.is_empty();
        let blocked = self.tell(id, page, progress).await;
        Ok(PlanPoll { plan: self.session.client().plan(id).await?, quiet, blocked })
    }

    /// Waits for events of a plan that this process drives. An error is ignored here because the drive reports it.
    async fn news(&self, plan: &str) -> Vec<Event> {
        match self.next_page(plan, WAIT_HERE_MS).await {
            Ok(page) => page,
            Err(_) => {
                tokio::time::sleep(LOOK_AGAIN).await;
                Vec::new()
            }
        }
    }

    async fn while_served(
        &mut self,
        id: &str,
        until: FollowUntil,
        progress: &ProgressDisplay<'_>,
    ) -> Result<Plan, Box<Problem>> {
        loop {
            let look = self.look(id, WAIT_SERVER_MS, progress).await?;
            if is_over(&look.plan, until) {
                self.rest(id, progress).await;
                return Ok(look.plan);
            }
            refuse_blocked(&look.plan, look.blocked)?;
            self.refuse_unreachable(&look.plan)?;
        }
    }

    /// Stops waiting for an unreachable remote after [`REMOTE_PATIENCE`]. The plan stays queued and workers retry it.
    fn refuse_unreachable(&mut self, plan: &Plan) -> Result<(), Box<Problem>> {
        let remote = ["remote_unreachable", "target_contended"];
        let Some(waits) = plan.waits.as_ref().filter(|waits| remote.contains(&waits.cause.as_str())) else {
            // An attempt in progress may fail the same way, so the time is not reset.
            if plan.state != State::Processing {
                self.away_since = None;
            }
            return Ok(());
        };
        let since = *self.away_since.get_or_insert_with(Instant::now);
        if since.elapsed() < patience() {
            return Ok(());
        }
        let text = format!("{} has not landed: {}", plan.id, waits.reason);
        let hint = format!("a worker will retry; to retry now: `drydock plan apply {}`", plan.id);
        Err(Box::new(Problem::new(Code::RemoteUnreachable, text).hint(hint).with("plan", plan.id.clone())))
    }

    /// Waits for events and never spins. During shutdown the feed returns at once without waiting; requesting it
    /// again at once would starve the work, which must be polled.
    async fn next_page(&self, plan: &str, wait_ms: u64) -> Result<Vec<Event>, Box<Problem>> {
        let page = self.page(plan, wait_ms).await?;
        events::breathe(&page).await;
        Ok(page)
    }

    async fn page(&self, plan: &str, wait_ms: u64) -> Result<Vec<Event>, Box<Problem>> {
        let query = EventQuery {
            after: Some(self.after),
            limit: Some(PAGE),
            plan: Some(plan.to_owned()),
            wait_ms: Some(wait_ms),
            ..EventQuery::default()
        };
        Ok(self.session.client().events(&query).await?.events)
    }

    /// Prints the events of a page, and returns what blocked the plan, if anything.
    async fn tell(&mut self, plan: &str, page: Vec<Event>, progress: &ProgressDisplay<'_>) -> Option<String> {
        let mut blocked = None;
        for event in page {
            self.after = event.seq;
            // First print the lines that were logged before this event.
            if event.kind == "agent.ended" || event.kind.starts_with("validation.") {
                progress.print(&self.tail.rest(plan).await);
            }
            self.tail.notice(&event);
            progress.tell(&event);
            blocked = (event.kind == "invariant.blocked").then(|| sentence(&event)).or(blocked);
        }
        blocked
    }

    /// Prints the events that were committed together with the end of the phase.
    async fn rest(&mut self, plan: &str, progress: &ProgressDisplay<'_>) {
        while let Ok(page) = self.page(plan, 0).await {
            if page.is_empty() {
                break;
            }
            self.tell(plan, page, progress).await;
        }
        progress.print(&self.tail.rest(plan).await);
    }
}

/// A plan and what one read of its feed returned.
struct PlanPoll {
    plan: Plan,
    /// True if no event was new.
    quiet: bool,
    /// What blocked the plan, if anything.
    blocked: Option<String>,
}

/// How the wait for a plan ended.
enum Due {
    /// This process may drive the plan.
    Now,
    /// Another process drove the plan to its end.
    Elsewhere(Box<Plan>),
}

/// Returns true if the problem may go away without action from this process.
fn is_away(problem: &Problem) -> bool {
    matches!(problem.code, Code::StoreUnavailable | Code::StoreBusy | Code::ServerUnreachable)
}

/// [`REMOTE_PATIENCE`], or the shorter time that tests set.
fn patience() -> Duration {
    let shorter = std::env::var("DRYDOCK_REMOTE_PATIENCE_MS").ok().filter(|_| cfg!(debug_assertions));
    shorter.and_then(|ms| ms.parse().ok()).map_or(REMOTE_PATIENCE, Duration::from_millis)
}

/// Returns the time until a plan is due, or none if it is due now.
fn left_ms(due: &Waits) -> Option<u64> {
    let until = due.until.parse::<Timestamp>().ok()?;
    u64::try_from(until.as_millisecond() - Timestamp::now().as_millisecond())
        .ok()
        .filter(|left_ms| *left_ms > 0)
}

/// Returns an error that names what blocked the plan. The process that drives the plan retries it from time to time,
/// but a person at the prompt needs the reason now.
fn refuse_blocked(plan: &Plan, blocked: Option<String>) -> Result<(), Box<Problem>> {
    let Some(reason) = blocked.filter(|_| plan.state != State::Processing) else { return Ok(()) };
    let problem = Problem::new(Code::InvariantBlocked, reason).with("plan", plan.id.clone());
    Err(Box::new(problem.hint(format!("see `drydock plan why {}`", plan.id))))
}

fn is_over(plan: &Plan, until: FollowUntil) -> bool {
    let goes_on = plan.state == State::Complete && plan.gate.is_none();
    match until {
        FollowUntil::Settled(asked) => plan.is_settled() || outcome::is_later(plan, asked),
        FollowUntil::Resting => plan.is_settled() && !goes_on,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::plan::tests::plan;
    use drydock_api::Phase;

    #[test]
    fn an_end_that_the_profile_lets_pass_is_no_resting_place() {
        let mut complete = plan(Phase::Strategize, State::Complete);
        assert!(is_over(&complete, FollowUntil::Settled(Phase::Strategize)));
        assert!(!is_over(&complete, FollowUntil::Resting));
        complete.gate = Some("dec-1".into());
        assert!(is_over(&complete, FollowUntil::Resting));
        assert!(!is_over(&plan(Phase::Execute, State::Processing), FollowUntil::Settled(Phase::Execute)));
        assert!(is_over(&plan(Phase::Execute, State::Processing), FollowUntil::Settled(Phase::Strategize)));
        assert!(is_over(&plan(Phase::Execute, State::Errored), FollowUntil::Resting));
    }
}
