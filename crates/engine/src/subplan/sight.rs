//! Shows a tree of plans: each subplan, its progress, and the reason why it waits. The texts are derived from
//! the stored records, so they always agree with them.

use drydock_domain::{ChildState, Fanout, Plan, State, Subplan, SubplanStatus};
use drydock_store::BoxFuture;

use super::tend::{Children, is_tended};
use crate::clock;
use crate::engine::Engine;
use crate::error::EngineError;

/// A plan and the subplans below it.
#[derive(Debug, Clone)]
pub struct PlanTree {
    /// The plan itself.
    pub plan: Plan,
    /// Its subplans, in the order in which the results join, followed by those of earlier strategies.
    pub branches: Vec<SubplanNode>,
}

/// One subplan of a plan.
#[derive(Debug, Clone)]
pub struct SubplanNode {
    /// The subplan's name.
    pub name: String,
    /// The status that its parent has recorded; `earlier` for a subplan of an abandoned strategy.
    pub fate: &'static str,
    /// The siblings that it waits for.
    pub after: Vec<String>,
    /// The agent that does it.
    pub agent: Option<String>,
    /// The reason why it waits, as text.
    pub waits_for: Option<String>,
    /// The child plan and the plans below it; `None` before the child is spawned.
    pub tree: Option<PlanTree>,
}

impl Engine {
    /// Returns a plan with all plans below it.
    pub fn tree(&self, plan: Plan) -> BoxFuture<'_, Result<PlanTree, EngineError>> {
        Box::pin(async move {
            let children = self.children(&plan.id).await?;
            let mut branches = Vec::new();
            if let Some(fanout) = &plan.fanout {
                let seen = children.seen(fanout);
                for (index, piece) in fanout.pieces.iter().enumerate() {
                    let child = children.of(piece);
                    let tree = match child {
                        Some(child) => Some(self.tree(child.clone()).await?),
                        None => None,
                    };
                    branches.push(SubplanNode {
                        name: piece.name.to_string(),
                        fate: fate_seen(piece, &seen[index]),
                        after: piece.after.iter().map(ToString::to_string).collect(),
                        agent: child
                            .and_then(|child| child.spec.agents.execute.clone())
                            .or(piece.agent.clone()),
                        waits_for: waits_for(fanout, index, &seen, child),
                        tree,
                    });
                }
            }
            for child in children.others(plan.fanout.as_ref()) {
                let name = child.place.as_ref().map_or_else(String::new, |place| place.name.to_string());
                let agent = child.spec.agents.execute.clone();
                let tree = Some(self.tree(child.clone()).await?);
                branches.push(SubplanNode {
                    name,
                    fate: "earlier",
                    after: Vec::new(),
                    agent,
                    waits_for: None,
                    tree,
                });
            }
            Ok(PlanTree { plan, branches })
        })
    }

    /// Returns sentences with the reasons why a plan with subplans, or a subplan, waits.
    pub(crate) fn why_waiting(&self, plan: Plan) -> BoxFuture<'_, Result<Vec<String>, EngineError>> {
        Box::pin(async move {
            let mut sentences = Vec::new();
            if let (Some(fanout), State::Queued | State::Waiting) = (&plan.fanout, plan.stage.state()) {
                let children = self.children(&plan.id).await?;
                let seen = children.seen(fanout);
                let unsettled = fanout.pieces.iter().enumerate().filter(|(_, piece)| !piece.is_settled());
                for (index, piece) in unsettled.take(SENTENCES_MAX) {
                    let child = children.of(piece);
                    let id = child.map_or_else(String::new, |child| format!(" ({})", child.id));
                    let state = match waits_for(fanout, index, &seen, child) {
                        Some(what) => format!("waits for {what}"),
                        None => child.map_or_else(
                            || "is not created yet".to_owned(),
                            |child| format!("is {}/{}", child.stage.phase(), child.stage.state()),
                        ),
                    };
                    sentences.push(format!("subplan {}{id} {state}", piece.name));
                    // Follow the chain down to the plan that blocks it.
                    if let Some(child) = child.filter(|child| is_tended(child)) {
                        sentences.extend(
                            self.why_waiting(child.clone())
                                .await?
                                .into_iter()
                                .filter(|line| line.starts_with("subplan")),
                        );
                    }
                }
            }
            if let (Some(parent), Some(place)) = (&plan.parent, &plan.place) {
                let parent = self.load_plan(parent).await?;
                let fanout = parent.fanout.as_ref();
                let index = fanout.and_then(|fanout| fanout.position(&place.name));
                if let (Some(fanout), Some(index)) = (fanout, index) {
                    let seen = self.children(&parent.id).await?.seen(fanout);
                    if let Some(what) = waits_for(fanout, index, &seen, Some(&plan)) {
                        sentences
                            .push(format!("as subplan {} of {}, it waits for {what}", place.name, parent.id));
                    }
                }
            }
            Ok(sentences)
        })
    }
}

/// Maximum number of subplans named in an explanation.
const SENTENCES_MAX: usize = 10;

impl Children {
    /// Returns the children that no subplan of this fan-out names.
    fn others(&self, fanout: Option<&Fanout>) -> Vec<&Plan> {
        let named = |child: &Plan| {
            let ids =
                fanout.into_iter().flat_map(|fanout| &fanout.pieces).filter_map(|piece| piece.child.as_ref());
            ids.into_iter().any(|id| *id == child.id)
        };
        self.all().filter(|child| !named(child)).collect()
    }
}

/// Returns the status of a subplan. If it has ended, that counts before its parent has recorded it.
fn fate_seen(piece: &Subplan, seen: &ChildState) -> &'static str {
    match (&piece.fate, seen) {
        (SubplanStatus::Open | SubplanStatus::Ready, ChildState::Cancelled { .. }) => "cancelled",
        (SubplanStatus::Ready, ChildState::Landed { .. }) => "joined",
        (fate, _) => fate.name(),
    }
}

/// Returns the reason why a subplan waits; `None` if it is running or settled.
fn waits_for(fanout: &Fanout, index: usize, seen: &[ChildState], child: Option<&Plan>) -> Option<String> {
    let piece = &fanout.pieces[index];
    match (&piece.fate, &seen[index]) {
        (SubplanStatus::Open, ChildState::Unborn) => Some("its parent to start".to_owned()),
        (SubplanStatus::Open, ChildState::Postponed { until, agent }) if *until > clock::now() => {
            Some(format!("the rate limit of {agent} to end at {until}"))
        }
        (SubplanStatus::Open, ChildState::InLine | ChildState::Postponed { .. }) => {
            Some(in_line(fanout, piece))
        }
        (SubplanStatus::Open, ChildState::Asking) => {
            let decision = child.and_then(Plan::pending_decision);
            Some(decision.map_or_else(|| "a person".to_owned(), |id| format!("a person to answer {id}")))
        }
        (SubplanStatus::Open, ChildState::Failed { .. }) => {
            Some(format!("another attempt ({} of {} failed)", piece.attempts(), piece.max_attempts))
        }
        (SubplanStatus::Open, ChildState::Finished { .. }) => {
            let before = fanout.pieces[..index].iter().filter(|piece| piece.fate == SubplanStatus::Open);
            let names: Vec<_> = before.map(|piece| piece.name.as_str()).collect();
            Some(if names.is_empty() {
                "joining".to_owned()
            } else {
                format!("{} to join first", names.join(", "))
            })
        }
        // It has ended, and its parent has not recorded that yet.
        (SubplanStatus::Ready, ChildState::Landed { .. } | ChildState::Cancelled { .. }) => None,
        (SubplanStatus::Ready, _) => Some("its parent to land".to_owned()),
        (SubplanStatus::Handed { to }, _) => Some(format!("{to} to resolve its conflict")),
        (
            SubplanStatus::Open,
            ChildState::Busy | ChildState::Landed { .. } | ChildState::Cancelled { .. },
        )
        | (
            SubplanStatus::Joined { .. }
            | SubplanStatus::Failed
            | SubplanStatus::Cancelled { .. }
            | SubplanStatus::Dropped,
            _,
        ) => None,
    }
}

fn in_line(fanout: &Fanout, piece: &Subplan) -> String {
    // A finished subplan counts only when it has joined, because it may still conflict.
    let is_awaited = |name: &&drydock_domain::Name| {
        let fate = fanout.position(name).map(|at| &fanout.pieces[at].fate);
        fate.is_some_and(|fate| !matches!(fate, SubplanStatus::Joined { .. } | SubplanStatus::Ready))
    };
    let names: Vec<_> = piece.after.iter().filter(is_awaited).map(|name| name.as_str()).collect();
    if names.is_empty() {
        format!(
            "a free slot (at most {} run at a time), or for a sibling that changes the same paths",
            fanout.max_parallel
        )
    } else {
        names.join(", ")
    }
}
