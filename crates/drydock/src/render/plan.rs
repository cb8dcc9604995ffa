//! Plans as text: one in full, many in a table.

use anstyle::Style;
use drydock_api::{Amounts, Plan, State, Waits};
use drydock_domain::counted;
use jiff::Timestamp;

use super::columns::{Block, Cell, table};
use super::next;
use super::style::{BAD, BUSY, CAUTION, FAINT, GOOD, STRONG, paint, short};
use super::time::{ago, moment};

const TASK_CHARS_MAX: usize = 60;
const COMMIT_CHARS: usize = 12;

/// Returns a table of plans.
pub(crate) fn list(plans: &[Plan], now: Timestamp) -> String {
    let rows = plans.iter().map(|plan| {
        [
            Cell::styled(STRONG, &plan.id),
            Cell::styled(colour(plan), stage(plan)),
            Cell::new(&plan.project),
            Cell::new(ago(&plan.updated_at, now)),
            Cell::new(short(&plan.task, TASK_CHARS_MAX)),
        ]
    });
    table(["ID", "STAGE", "PROJECT", "CHANGED", "TASK"], rows.collect())
}

/// Returns a plan in full.
pub(crate) fn show(plan: &Plan, now: Timestamp) -> String {
    let head = format!("{}  {}", paint(STRONG, &plan.id), paint(colour(plan), &stage(plan)));
    let mut block = Block::default()
        .line(head)
        .field("task", &plan.task)
        .maybe("done when", plan.definition_of_done.as_ref())
        .field("project", &plan.project)
        .maybe("lands on", plan.target.as_ref())
        .maybe("action", plan.action.as_ref());
    for (name, value) in &plan.arguments {
        block = block.field("argument", format!("{name} = {value}"));
    }
    block = block.field("profile", &plan.profile).maybe("agents", agents(plan));
    block = block.maybe("budget", plan.budget.as_ref().map(amounts));
    if plan.budget.is_some() || is_known(&plan.spent) {
        block = block.field("spent", amounts(&plan.spent));
    }
    for reason in &plan.constrained_by {
        block = block.styled("refused", BAD, reason);
    }
    for one in plan.blocked.iter().flat_map(|blocked| &blocked.findings) {
        block = block.styled("blocked", BAD, format!("{} (rule {}, {})", one.text, one.invariant, one.scope));
    }
    if let Some(error) = &plan.error {
        block = block.styled("failed", BAD, format!("{} ({})", error.text, error.class));
    }
    block = block.maybe("waits", plan.waits.as_ref().map(waits));
    block = block.maybe("restart", plan.interruption.as_ref().map(|one| one.text.clone()));
    block = block.maybe("cancelled", plan.cancel_reason.as_ref());
    if let Some(decision) = &plan.pending_decision {
        block = block.styled("decision", CAUTION, decision);
    }
    for text in &plan.feedback {
        block = block.field("guidance", text);
    }
    block = block
        .field("base", commit(&plan.base_commit))
        .maybe("result", plan.head_commit.as_deref().map(commit))
        .maybe("landed", plan.landed_commit.as_ref())
        .field("branch", &plan.branch)
        .maybe("parent", plan.parent.as_ref())
        .maybe("run", plan.run.as_ref().map(|run| format!("{run} (number {})", plan.runs)))
        .field("revision", plan.revision.to_string());
    if plan.reversions > 0 {
        block = block.field("reversions", plan.reversions.to_string());
    }
    block
        .field("created", ago(&plan.created_at, now))
        .field("changed", ago(&plan.updated_at, now))
        .maybe("next", next::command(plan))
        .done()
}

/// Returns the stage of a plan in a line, without the reason. For a report that ends with the error.
pub(crate) fn place(plan: &Plan) -> String {
    format!("{}  {}\n", paint(STRONG, &plan.id), paint(colour(plan), &stage(plan)))
}

/// Returns the stage of a plan in a line, with the reason.
pub(crate) fn line(plan: &Plan) -> String {
    let stage = paint(colour(plan), &stage(plan));
    let rest = match plan.state {
        _ if plan.blocked.is_some() => {
            plan.blocked.as_ref().map(|blocked| format!("{} is blocked: {}", blocked.phase, blocked.text()))
        }
        State::Applied => plan.landed_commit.as_ref().map(|commit| format!("landed as {commit}")),
        State::Errored => plan.error.as_ref().map(|error| error.text.clone()),
        State::Constrained => Some(plan.constrained_by.join("; ")),
        State::Cancelled => plan.cancel_reason.clone(),
        State::Waiting | State::Complete => {
            plan.pending_decision.as_ref().map(|decision| format!("waiting for decision {decision}"))
        }
        State::Queued | State::Processing => plan.waits.as_ref().map(|due| format!("waiting {}", waits(due))),
    };
    let rest = rest.map(|rest| format!("  {}", paint(Style::new(), &rest))).unwrap_or_default();
    format!("{}  {stage}{rest}\n", paint(STRONG, &plan.id))
}

/// Returns amounts as text, without unknown ones.
pub(super) fn amounts(amounts: &Amounts) -> String {
    let Amounts { tokens, cost_usd, wall_s, tool_calls } = amounts;
    let parts = [
        tokens.map(|tokens| counted(tokens, "token")),
        cost_usd.as_ref().map(|cost| format!("{cost} USD")),
        wall_s.map(|seconds| format!("{seconds} s")),
        tool_calls.map(|calls| counted(calls, "tool call")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns true if agents reported their usage.
fn is_known(spent: &Amounts) -> bool {
    let some = |number: Option<u64>| number.unwrap_or(0) > 0;
    some(spent.tokens) || some(spent.tool_calls) || spent.cost_usd.as_deref().unwrap_or("0.00") != "0.00"
}

/// Returns why a plan waits, and until when.
pub(crate) fn waits(waits: &Waits) -> String {
    format!("until {}: {}", moment(&waits.until), waits.reason)
}

/// Returns phase and state as one word, and whether an invariant blocks the next phase.
pub(crate) fn stage(plan: &Plan) -> String {
    let blocked = if plan.blocked.is_some() { " (blocked)" } else { "" };
    format!("{}/{}{blocked}", plan.phase, plan.state)
}

/// Returns the colour of a plan's stage.
fn colour(plan: &Plan) -> Style {
    if plan.blocked.is_some() { BAD } else { colour_of(plan.state) }
}

/// Returns the colour of a state.
pub(crate) fn colour_of(state: State) -> Style {
    match state {
        State::Queued | State::Processing => BUSY,
        State::Waiting => CAUTION,
        State::Complete | State::Applied => GOOD,
        State::Errored | State::Constrained => BAD,
        State::Cancelled => FAINT,
    }
}

fn commit(id: &str) -> String {
    id.chars().take(COMMIT_CHARS).collect()
}

fn agents(plan: &Plan) -> Option<String> {
    let roles = &plan.agents;
    let named = [("strategize", &roles.strategize), ("execute", &roles.execute)];
    let mut said: Vec<String> =
        named.into_iter().filter_map(|(role, agent)| Some(format!("{role} {}", agent.as_ref()?))).collect();
    said.extend(roles.reviewers.iter().map(|reviewer| {
        let weight = if reviewer.critical { "critical reviewer" } else { "reviewer" };
        format!("{weight} {}", reviewer.agent)
    }));
    (!said.is_empty()).then(|| said.join(", "))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::render::columns::bare;
    use drydock_api::{Amounts, Offer, Phase, PlanError, Roles};
    use std::collections::BTreeMap;

    /// Returns a plan at a stage, for tests of the functions that render one.
    pub(crate) fn plan(phase: Phase, state: State) -> Plan {
        Plan {
            id: "pln-7k3m9q2x5v8wz4t1".into(),
            action: Some("fix".into()),
            project: "site".into(),
            target: Some("main".into()),
            phase,
            state,
            revision: 3,
            run: Some("run-1".into()),
            parent: None,
            root: "pln-7k3m9q2x5v8wz4t1".into(),
            profile: "supervised".into(),
            branch: "drydock/pln-7k3m9q2x5v8wz4t1/work".into(),
            base_commit: "0123456789abcdef".into(),
            head_commit: None,
            landed_commit: None,
            error: None,
            pending_decision: None,
            reversions: 0,
            created_at: "2026-03-10T11:00:00Z".into(),
            updated_at: "2026-03-10T11:57:00Z".into(),
            phase_started_at: None,
            phase_completed_at: None,
            task: "Fix the door".into(),
            definition_of_done: None,
            arguments: BTreeMap::new(),
            agents: Roles { execute: Some("writer".into()), ..Roles::default() },
            runs: 1,
            gate: None,
            constrained_by: vec![],
            cancel_reason: None,
            feedback: vec![],
            landing_warning: None,
            waits: None,
            interruption: None,
            budget: None,
            spent: Amounts::default(),
            reserved: None,
            subplans: None,
            blocked: None,
            offers: None,
        }
    }

    fn now() -> Timestamp {
        "2026-03-10T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn a_list_has_whole_ids_and_short_tasks() {
        let mut one = plan(Phase::Execute, State::Complete);
        one.task = format!("Fix\n{}", "x".repeat(100));
        assert_eq!(
            bare(&list(&[one], now())),
            "ID                    STAGE             PROJECT  CHANGED    TASK\n\
             pln-7k3m9q2x5v8wz4t1  execute/complete  site     3 min ago  Fix…\n"
        );
    }

    #[test]
    fn one_plan_says_what_failed_and_how_to_go_on() {
        let mut one = plan(Phase::Execute, State::Errored);
        one.error = Some(PlanError { class: "agent_failed".into(), text: "exit 3".into() });
        let line = Some("drydock plan retry pln-7k3m9q2x5v8wz4t1".to_owned());
        one.offers = Some(vec![Offer { command: "retry".into(), line, ..Offer::default() }]);
        let text = bare(&show(&one, now()));
        for said in [
            "pln-7k3m9q2x5v8wz4t1  execute/errored\n",
            "  task        Fix the door\n",
            "  failed      exit 3 (agent_failed)\n",
            "  agents      execute writer\n",
            "  next        drydock plan retry pln-7k3m9q2x5v8wz4t1\n",
        ] {
            assert!(text.contains(said), "{said:?} is missing in\n{text}");
        }
    }

    #[test]
    fn a_line_says_the_essence_of_each_state() {
        let mut landed = plan(Phase::Apply, State::Applied);
        landed.landed_commit = Some("abc".into());
        assert_eq!(bare(&line(&landed)), "pln-7k3m9q2x5v8wz4t1  apply/applied  landed as abc\n");
        let mut refused = plan(Phase::Apply, State::Constrained);
        refused.constrained_by = vec!["a".into(), "b".into()];
        assert_eq!(bare(&line(&refused)), "pln-7k3m9q2x5v8wz4t1  apply/constrained  a; b\n");
    }
}
