//! Following a plan until its phase settles, and driving it when that is this process's job. Telling what happens
//! never stands in the way of the work: when the feed cannot be read, the work goes on untold.

use std::pin::pin;

use drydock_api::{Code, Event, EventQuery, Plan, Problem, State};

use super::events;
use super::progress::Progress;
use super::session::{Driver, Driving, Session};
use crate::render::event::sentence;

const PAGE: u32 = 200;
/// How long one look at the feed waits: short beside our own work, long over a network.
const WAIT_HERE_MS: u64 = 1_000;
const WAIT_SERVER_MS: u64 = 10_000;

/// When to stop following a plan that a server moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// The phase has reached an end.
    Settled,
    /// Nothing goes on by itself: an end that the profile lets pass does not count.
    Resting,
}

/// Follows a plan to where it settles; `resume` is the command to go on with after an interruption.
pub(crate) async fn follow(
    session: &Session,
    plan: Plan,
    until: Until,
    resume: &str,
) -> Result<Plan, Box<Problem>> {
    if plan.is_settled() && until == Until::Settled {
        return Ok(plan);
    }
    let progress = Progress::begin(session.screen(), plan.phase);
    let drive = session.backend().drive(&plan.id);
    let by = if drive.is_some() { Driver::ThisProcess } else { Driver::Server };
    session.set_driving(Some(Driving { by, resume: resume.to_owned() }));
    let feed = Feed::of(session, &plan);
    let followed = match drive {
        Some(drive) => feed.while_driving(drive, &progress).await,
        None => feed.while_served(until, &progress).await,
    };
    session.set_driving(None);
    progress.end();
    followed
}

/// Reads the events of one plan from the point where it was when following began.
struct Feed<'s> {
    session: &'s Session,
    plan: String,
    revision: i64,
    after: i64,
}

impl<'s> Feed<'s> {
    fn of(session: &'s Session, plan: &Plan) -> Self {
        Self { session, plan: plan.id.clone(), revision: plan.revision, after: 0 }
    }

    async fn while_driving(
        mut self,
        drive: impl Future<Output = Result<(), Problem>>,
        progress: &Progress<'_>,
    ) -> Result<Plan, Box<Problem>> {
        let mut drive = pin!(drive);
        loop {
            let driven = tokio::select! {
                driven = &mut drive => driven,
                page = self.next_page(WAIT_HERE_MS) => match page {
                    Ok(page) => {
                        self.tell(page, progress);
                        continue;
                    }
                    Err(_) => drive.as_mut().await,
                },
            };
            driven?;
            self.rest(progress).await;
            return Ok(self.session.client().plan(&self.plan).await?);
        }
    }

    async fn while_served(mut self, until: Until, progress: &Progress<'_>) -> Result<Plan, Box<Problem>> {
        loop {
            let page = self.next_page(WAIT_SERVER_MS).await?;
            let blocked = self.tell(page, progress);
            let plan = self.session.client().plan(&self.plan).await?;
            if is_over(&plan, until) {
                self.rest(progress).await;
                return Ok(plan);
            }
            // The server tries again now and then; a person at the prompt wants to know now.
            if let Some(reason) = blocked {
                let problem = Problem::new(Code::InvariantBlocked, reason).with("plan", self.plan.as_str());
                return Err(Box::new(problem.hint(format!("drydock plan why {}", self.plan))));
            }
        }
    }

    /// Waits for news, and never spins: a feed that stops waiting because everything is being stopped answers at once,
    /// and asking it again at once would keep the work from ever being polled.
    async fn next_page(&self, wait_ms: u64) -> Result<Vec<Event>, Box<Problem>> {
        let page = self.page(wait_ms).await?;
        events::breathe(&page).await;
        Ok(page)
    }

    async fn page(&self, wait_ms: u64) -> Result<Vec<Event>, Box<Problem>> {
        let query = EventQuery {
            after: Some(self.after),
            limit: Some(PAGE),
            plan: Some(self.plan.clone()),
            wait_ms: Some(wait_ms),
        };
        Ok(self.session.client().events(&query).await?.events)
    }

    /// Tells the events of a page, and returns what blocked the plan if something did.
    fn tell(&mut self, page: Vec<Event>, progress: &Progress<'_>) -> Option<String> {
        let mut blocked = None;
        for event in page {
            self.after = event.seq;
            // What came before the command is history; `plan events` has it.
            if event.revision.is_none_or(|revision| revision >= self.revision) {
                self.revision = i64::MIN;
                progress.tell(&event);
                blocked = (event.kind == "invariant.blocked").then(|| sentence(&event)).or(blocked);
            }
        }
        blocked
    }

    /// Tells what was committed together with the end.
    async fn rest(&mut self, progress: &Progress<'_>) {
        while let Ok(page) = self.page(0).await {
            if page.is_empty() {
                break;
            }
            self.tell(page, progress);
        }
    }
}

fn is_over(plan: &Plan, until: Until) -> bool {
    let goes_on = plan.state == State::Complete && plan.gate.is_none();
    match until {
        Until::Settled => plan.is_settled(),
        Until::Resting => plan.is_settled() && !goes_on,
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
        assert!(is_over(&complete, Until::Settled));
        assert!(!is_over(&complete, Until::Resting));
        complete.gate = Some("dec-1".into());
        assert!(is_over(&complete, Until::Resting));
        assert!(!is_over(&plan(Phase::Execute, State::Processing), Until::Settled));
        assert!(is_over(&plan(Phase::Execute, State::Errored), Until::Resting));
    }
}
