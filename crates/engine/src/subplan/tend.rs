//! Tending: one look at all pieces of a plan, and whatever is due for them. It holds the parent's lock for as long as
//! that takes and no worker in between; a piece that comes to rest makes it due again in its own commit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use drydock_domain::{
    Call, Command, Fanout, Fate, News, Phase, Piece, Plan, PlanId, Seen, Stage, State, Timestamp,
};

use crate::clock;
use crate::engine::{Engine, WORKER};
use crate::error::EngineError;
use crate::hold::Hold;

/// When a piece that somebody held is to be joined again.
const JOIN_AGAIN: Duration = Duration::from_secs(1);

/// Steps of one turn. A plan that has more to do releases its lock first, and its outbox row is due again.
const TEND_STEPS_MAX: usize = 256;

/// What tending came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tended {
    /// Something was done, and there may be more.
    Moved,
    /// There is nothing to do before this time, or before a piece moves.
    Rests(Option<Timestamp>),
}

/// The plans of a fan-out's pieces, as they are stored.
#[derive(Debug, Clone, Default)]
pub(crate) struct Children {
    by_id: BTreeMap<PlanId, Arc<Plan>>,
}

impl Children {
    pub(super) fn of(&self, piece: &Piece) -> Option<&Plan> {
        self.by_id.get(piece.child.as_ref()?).map(Arc::as_ref)
    }

    /// Returns all of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &Plan> {
        self.by_id.values().map(Arc::as_ref)
    }

    /// Takes in plans as they are now.
    pub(super) fn take_in(&mut self, plans: Vec<Plan>) {
        self.by_id.extend(plans.into_iter().map(|plan| (plan.id.clone(), Arc::new(plan))));
    }

    /// Returns which of those that their parent handed something on to are over.
    pub(super) fn ends(&self, parent: &Plan) -> impl Iterator<Item = News> {
        parent.handed.keys().filter_map(|id| self.by_id.get(id)).filter_map(|child| News::of_end(child))
    }

    pub(super) fn seen(&self, fanout: &Fanout) -> Vec<Seen> {
        fanout.pieces.iter().map(|piece| self.of(piece).map_or(Seen::Unborn, Seen::of)).collect()
    }
}

impl Engine {
    /// Looks after the subplans of a plan once.
    pub(crate) async fn tend(&self, plan: &PlanId) -> Result<Tended, EngineError> {
        let hold = self.hold(plan, "tend its subplans").await?;
        let tended = self.tend_held(&hold, plan).await;
        hold.release().await;
        tended
    }

    async fn tend_held(&self, hold: &Hold, id: &PlanId) -> Result<Tended, EngineError> {
        let mut moved = false;
        for _ in 0..TEND_STEPS_MAX {
            let step = self.tend_once(hold, id).await?;
            match step {
                Tended::Moved if !self.stopping().is_cancelled() => moved = true,
                // The commits above made it due again; the next look finds it resting and lets it rest.
                Tended::Moved | Tended::Rests(_) if moved => return Ok(Tended::Moved),
                Tended::Moved | Tended::Rests(_) => return Ok(step),
            }
        }
        Ok(Tended::Moved)
    }

    async fn tend_once(&self, hold: &Hold, id: &PlanId) -> Result<Tended, EngineError> {
        let plan = self.plan_stored(id).await?;
        if !plan.winding.is_empty() {
            return self.wind(hold, &plan).await;
        }
        let (Some(fanout), State::Queued, None) = (&plan.fanout, plan.stage.state(), &plan.gate) else {
            return Ok(Tended::Rests(None));
        };
        match &plan.stage {
            Stage::Execute(_) if fanout.is_open() => self.tend_pieces(hold, &plan, fanout).await,
            Stage::Apply(_) if fanout.is_ready() => self.land_ready(hold, &plan, fanout).await,
            Stage::Strategize(_) | Stage::Execute(_) | Stage::Apply(_) => Ok(Tended::Rests(None)),
        }
    }

    async fn tend_pieces(&self, hold: &Hold, plan: &Plan, fanout: &Fanout) -> Result<Tended, EngineError> {
        if self.bear(hold, plan, fanout).await? {
            return Ok(Tended::Moved);
        }
        let children = self.children_followed(&plan.id).await?;
        let seen = children.seen(fanout);
        if self.record_news(hold, plan, &children, fanout.news(&seen)).await? {
            return Ok(Tended::Moved);
        }
        let acts = fanout.acts(&seen, clock::now());
        let (mut moved, mut wake_at) = (false, acts.wake_at);
        for index in &acts.retry {
            if let Some(child) = children.of(&fanout.pieces[*index]) {
                moved |= self.issue_child(hold, child, Command::Retry).await?;
            }
        }
        for index in &acts.call {
            moved |= self.call(hold, plan, fanout, *index, &children).await?;
        }
        if let Some(index) = acts.join {
            let joined = self.join_piece(hold, plan, fanout, index, &children).await?;
            // Somebody holds it just now.
            let soon = (!joined).then(|| clock::now().plus(JOIN_AGAIN));
            (moved, wake_at) = (moved || joined, [wake_at, soon].into_iter().flatten().min());
        }
        Ok(if moved { Tended::Moved } else { Tended::Rests(wake_at) })
    }

    /// Records what was seen of the pieces and not recorded yet, if there is anything; says whether there was.
    pub(super) async fn record_news(
        &self,
        hold: &Hold,
        plan: &Plan,
        children: &Children,
        mut news: Vec<News>,
    ) -> Result<bool, EngineError> {
        if news.is_empty() {
            return Ok(false);
        }
        news.extend(children.ends(plan));
        self.issue(hold, Command::Tend(news), WORKER).await?;
        Ok(true)
    }

    /// Calls a subplan to work; says whether it was. One whose beginning cannot be told yet waits.
    async fn call(
        &self,
        hold: &Hold,
        plan: &Plan,
        fanout: &Fanout,
        index: usize,
        children: &Children,
    ) -> Result<bool, EngineError> {
        let piece = &fanout.pieces[index];
        let Some(child) = children.of(piece) else { return Ok(false) };
        let call = match &piece.mends {
            Some(mends) => Call { base: mends.onto.clone(), from: Some(mends.marked.clone()) },
            None => match self.ground(plan, fanout, index, children).await? {
                Some(base) => Call { base, from: None },
                None => return Ok(false),
            },
        };
        self.issue_child(hold, child, Command::Call(call)).await
    }

    pub(super) async fn children(&self, plan: &PlanId) -> Result<Children, EngineError> {
        let mut children = Children::default();
        children.take_in(self.store().plan_children(plan).await?);
        Ok(children)
    }

    /// The same, for who looks again and again: only those are read that changed since the last look of this process.
    pub(super) async fn children_followed(&self, plan: &PlanId) -> Result<Children, EngineError> {
        let mut children = self.families().last_seen(plan);
        let known = children.all().map(|child| (child.id.to_string(), child.revision)).collect();
        children.take_in(self.store().plan_children_changed(plan, known).await?);
        self.families().remember(plan, &children);
        Ok(children)
    }

    /// Commits a command of a subplan, under its parent's lock and its own. One that somebody else holds is left for
    /// the next look; so is one that moved meanwhile.
    pub(super) async fn issue_child(
        &self,
        parent: &Hold,
        child: &Plan,
        command: Command,
    ) -> Result<bool, EngineError> {
        match self.issue_below(parent, child, command, WORKER).await {
            Ok(_) => Ok(true),
            Err(EngineError::LockHeld { .. }) => Ok(false),
            Err(EngineError::Refused(refusal)) => {
                tracing::debug!(plan = %child.id, %refusal, "a subplan moved while it was tended");
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

/// Says whether a plan is moved on by tending rather than by a run of its own.
pub(crate) fn is_tended(plan: &Plan) -> bool {
    let pieces = |fanout: &Fanout| match plan.stage.phase() {
        Phase::Strategize => false,
        Phase::Execute => fanout.is_open(),
        Phase::Apply => fanout.pieces.iter().any(|piece| piece.fate == Fate::Ready),
    };
    let waits = plan.stage.state() == State::Queued && plan.fanout.as_ref().is_some_and(pieces);
    !plan.winding.is_empty() || waits
}
