//! Converts domain values to API types. The words are the same; times become text.

use drydock_api as api;
use drydock_domain as domain;
use drydock_domain::{Progress, Settled, Stage, Timestamp};

/// Returns a time as RFC 3339 UTC text with microseconds. A time outside the years -9999 to 9999 cannot be
/// written in that format and is clamped: a wrong clock should not hide the rest of a record.
pub(crate) fn time(at: Timestamp) -> String {
    let (least, most) = (jiff::Timestamp::MIN.as_microsecond(), jiff::Timestamp::MAX.as_microsecond());
    jiff::Timestamp::from_microsecond(at.as_micros().clamp(least, most))
        .expect("the value is clamped to the valid range")
        .to_string()
}

pub(super) fn diff(diff: drydock_engine::PlanDiff) -> api::Diff {
    let kind = |kind| match kind {
        drydock_engine::DiffSourceKind::Result => api::DiffKind::Result,
        drydock_engine::DiffSourceKind::GoesOn => api::DiffKind::GoesOn,
        drydock_engine::DiffSourceKind::Snapshot => api::DiffKind::Snapshot,
    };
    api::Diff {
        text: diff.text,
        files: diff.files,
        lines_added: diff.lines_added,
        lines_deleted: diff.lines_deleted,
        of: diff.of.map(|of| api::DiffOf {
            kind: kind(of.kind),
            commit: of.commit,
            reference: of.reference,
            label: of.label,
            earlier_run: of.earlier_run,
        }),
    }
}

pub(super) fn phase(phase: domain::Phase) -> api::Phase {
    match phase {
        domain::Phase::Strategize => api::Phase::Strategize,
        domain::Phase::Execute => api::Phase::Execute,
        domain::Phase::Apply => api::Phase::Apply,
    }
}

pub(crate) fn phase_asked(phase: &api::Phase) -> domain::Phase {
    match phase {
        api::Phase::Strategize => domain::Phase::Strategize,
        api::Phase::Execute => domain::Phase::Execute,
        api::Phase::Apply => domain::Phase::Apply,
    }
}

pub(super) fn state(state: domain::State) -> api::State {
    match state {
        domain::State::Queued => api::State::Queued,
        domain::State::Processing => api::State::Processing,
        domain::State::Waiting => api::State::Waiting,
        domain::State::Complete => api::State::Complete,
        domain::State::Errored => api::State::Errored,
        domain::State::Cancelled => api::State::Cancelled,
        domain::State::Applied => api::State::Applied,
        domain::State::Constrained => api::State::Constrained,
    }
}

pub(super) fn state_asked(state: &api::State) -> domain::State {
    match state {
        api::State::Queued => domain::State::Queued,
        api::State::Processing => domain::State::Processing,
        api::State::Waiting => domain::State::Waiting,
        api::State::Complete => domain::State::Complete,
        api::State::Errored => domain::State::Errored,
        api::State::Cancelled => domain::State::Cancelled,
        api::State::Applied => domain::State::Applied,
        api::State::Constrained => domain::State::Constrained,
    }
}

/// Returns a plan with the actions that the caller can take and the invariants that block it.
pub(super) fn offered(plan: domain::Plan, offered: &drydock_engine::Offered) -> api::Plan {
    let offers = offered.offers.iter().map(|one| offer(&plan.id, one)).collect();
    let blocked = offered.blocked.as_ref().map(blocked);
    api::Plan { offers: Some(offers), blocked, ..self::plan(plan) }
}

fn offer(plan: &domain::PlanId, offer: &domain::Offer) -> api::Offer {
    let (decision, option) = match &offer.act {
        domain::Act::Answer { decision, option } => (Some(decision.to_string()), Some(option.clone())),
        _ => (None, None),
    };
    api::Offer {
        command: offer.act.name().to_owned(),
        label: offer.label.clone(),
        effect: offer.effect.clone(),
        needs: offer.needs.iter().map(|need| need.name().to_owned()).collect(),
        line: offer.line(plan),
        decision,
        option,
        reason: offer.reason.clone(),
    }
}

pub(super) fn blocked(enforcement: &domain::Enforcement) -> api::Blocked {
    let finding = |finding: &&domain::Finding| {
        let measure = finding.measure.as_ref();
        api::BlockedBy {
            invariant: finding.invariant.to_string(),
            scope: finding.scope.to_string(),
            text: finding.reason(),
            fact: measure.map(|measure| measure.fact.clone()),
            value: measure.and_then(|measure| quantity(&measure.value)),
            limit: measure.and_then(|measure| quantity(&measure.limit)),
        }
    };
    api::Blocked {
        phase: phase(enforcement.at),
        findings: enforcement.blocking().iter().map(finding).collect(),
    }
}

fn quantity(value: &serde_json::Value) -> Option<api::Quantity> {
    match value {
        serde_json::Value::Bool(value) => Some(api::Quantity::Flag(*value)),
        serde_json::Value::String(value) => Some(api::Quantity::Text(value.clone())),
        serde_json::Value::Number(value) => {
            value.as_i64().map(api::Quantity::Whole).or_else(|| value.as_f64().map(api::Quantity::Real))
        }
        serde_json::Value::Null | serde_json::Value::Array(_) | serde_json::Value::Object(_) => None,
    }
}

pub(super) fn plan(plan: domain::Plan) -> api::Plan {
    let error = plan.stage.failure().map(failure);
    let pending_decision = plan.pending_decision().map(ToString::to_string);
    let (constrained_by, cancel_reason) = ended(&plan.stage);
    let waits = plan.waits().map(waits);
    let interruption = plan.interruption.as_ref().map(|one| interruption(one, &plan));
    let budget = (!plan.budget.is_unlimited()).then(|| amounts(plan.budget));
    let spent = amounts(plan.used().into());
    let reserved = plan.reserved.map(amounts);
    let subplans = plan.fanout.as_ref().map(|fanout| api::SubplanCount {
        total: fanout.pieces.len().try_into().unwrap_or(u32::MAX),
        settled: fanout
            .pieces
            .iter()
            .filter(|piece| piece.is_settled())
            .count()
            .try_into()
            .unwrap_or(u32::MAX),
    });
    api::Plan {
        action: Some(plan.spec.action.to_string()),
        project: plan.spec.project.to_string(),
        target: plan.spec.target.named().map(str::to_owned),
        phase: phase(plan.stage.phase()),
        state: state(plan.stage.state()),
        revision: plan.revision,
        run: plan.run.as_ref().map(ToString::to_string),
        parent: plan.parent.as_ref().map(ToString::to_string),
        root: plan.root.to_string(),
        profile: plan.spec.profile.name.clone(),
        branch: plan.branch(),
        id: plan.id.to_string(),
        base_commit: plan.base_commit,
        head_commit: plan.head_commit,
        landed_commit: plan.landed_commit,
        error,
        pending_decision,
        reversions: plan.reversions,
        created_at: time(plan.created_at),
        updated_at: time(plan.updated_at),
        phase_started_at: plan.phase_started_at.map(time),
        phase_completed_at: plan.phase_completed_at.map(time),
        task: plan.spec.task,
        definition_of_done: plan.spec.definition_of_done,
        arguments: plan.spec.arguments,
        agents: roles(plan.spec.agents),
        runs: plan.runs,
        gate: plan.gate.map(|gate| gate.to_string()),
        constrained_by,
        cancel_reason,
        feedback: plan.feedback,
        landing_warning: plan.landing_warning,
        waits,
        interruption,
        budget,
        spent,
        reserved,
        subplans,
        blocked: None,
        offers: None,
    }
}

fn amounts(budget: domain::Budget) -> api::Amounts {
    api::Amounts {
        tokens: budget.tokens,
        cost_usd: budget.cost_micros.map(domain::dollars),
        wall_s: budget.wall_ms.map(|ms| ms / 1000),
        tool_calls: budget.tool_calls,
    }
}

fn waits(postponed: &domain::Postponed) -> api::Waits {
    api::Waits {
        until: time(postponed.until),
        cause: postponed.cause().to_owned(),
        reason: postponed.reason(),
        agent: postponed.agent.clone(),
        times: postponed.times,
    }
}

fn interruption(one: &domain::InterruptedRun, plan: &domain::Plan) -> api::Interruption {
    api::Interruption {
        run: one.run.to_string(),
        cause: one.cause.name().to_owned(),
        checkpoint: one.restart.as_ref().map(|restart| restart.checkpoint),
        commit: one.restart.as_ref().map(|restart| restart.commit.clone()),
        text: one.describe(plan),
    }
}

fn ended(stage: &Stage) -> (Vec<String>, Option<String>) {
    let cancelled = |reason: &String| (Vec::new(), Some(reason.clone()));
    match stage {
        Stage::Apply(Progress::Reached(Settled::Constrained { reasons })) => (reasons.clone(), None),
        Stage::Strategize(Progress::Cancelled { reason })
        | Stage::Execute(Progress::Cancelled { reason }) => cancelled(reason),
        Stage::Apply(Progress::Cancelled { reason }) => cancelled(reason),
        Stage::Strategize(_) | Stage::Execute(_) | Stage::Apply(_) => (Vec::new(), None),
    }
}

pub(super) fn failure(failure: &domain::Failure) -> api::PlanError {
    api::PlanError { class: failure.class.name().to_owned(), text: failure.text.clone() }
}

fn roles(roles: domain::PlanAgents) -> api::Roles {
    let reviewer = |one: domain::ReviewerSpec| api::Reviewer { agent: one.agent, critical: one.critical };
    api::Roles {
        strategize: roles.strategize,
        execute: roles.execute,
        reviewers: roles.reviewers.into_iter().map(reviewer).collect(),
    }
}

pub(super) fn choices(choices: &[domain::Choice]) -> Vec<api::NumberedChoice> {
    let choice = |(number, placed): (String, domain::Placed<'_>)| {
        let one = placed.choice.clone();
        api::NumberedChoice {
            number,
            id: one.id,
            under: one.under,
            question: one.question,
            chosen: one.chosen,
            alternatives: one.alternatives,
            rationale: one.rationale,
            confidence: one.confidence,
        }
    };
    domain::outline(choices).into_iter().map(choice).collect()
}

pub(super) fn tree(tree: drydock_engine::PlanTree) -> api::Tree {
    let drydock_engine::PlanTree { plan, branches } = tree;
    api::Tree {
        plan: plan.id.to_string(),
        phase: phase(plan.stage.phase()),
        state: state(plan.stage.state()),
        name: None,
        fate: None,
        after: Vec::new(),
        agent: plan.spec.agents.execute,
        waits_for: None,
        created_at: Some(time(plan.created_at)),
        updated_at: Some(time(plan.updated_at)),
        task: plan.spec.task,
        choices: choices(&plan.choices),
        subplans: branches.into_iter().map(branch).collect(),
    }
}

/// A subplan that is not spawned yet has no plan: its id is empty, and it shows the phase in which it will start.
fn branch(branch: drydock_engine::SubplanNode) -> api::Tree {
    let unborn = || api::Tree {
        plan: String::new(),
        task: String::new(),
        phase: api::Phase::Strategize,
        state: api::State::Queued,
        name: None,
        fate: None,
        after: Vec::new(),
        agent: None,
        waits_for: None,
        created_at: None,
        updated_at: None,
        choices: Vec::new(),
        subplans: Vec::new(),
    };
    api::Tree {
        name: Some(branch.name),
        fate: Some(branch.fate.to_owned()),
        after: branch.after,
        agent: branch.agent,
        waits_for: branch.waits_for,
        ..branch.tree.map_or_else(unborn, tree)
    }
}

pub(super) fn decision(decision: domain::Decision) -> api::Decision {
    let option = |one: &domain::DecisionOption| api::DecisionOption {
        id: one.id.clone(),
        label: one.label.clone(),
        effect: one.effect.name().to_owned(),
        needs_note: decision.question.needs_note(&one.id),
    };
    let options = decision.question.options.iter().map(option).collect();
    let (status, resolution) = match decision.status {
        domain::DecisionStatus::Open => (api::DecisionStatus::Open, None),
        domain::DecisionStatus::Withdrawn { .. } => (api::DecisionStatus::Withdrawn, None),
        domain::DecisionStatus::Resolved(answer) => (
            api::DecisionStatus::Resolved,
            Some(api::Resolution {
                option: answer.option,
                note: answer.note,
                by: answer.by,
                via: answer.via,
                at: time(answer.at),
            }),
        ),
    };
    api::Decision {
        id: decision.id.to_string(),
        plan: decision.plan.to_string(),
        phase: phase(decision.phase),
        run: decision.run.map(|run| run.to_string()),
        kind: decision.question.kind.name().to_owned(),
        question: decision.question.text,
        options,
        status,
        resolution,
        details: decision.question.details,
        created_at: time(decision.created_at),
    }
}

pub(super) fn lock(lock: domain::Lock) -> api::Lock {
    api::Lock {
        id: lock.id.to_string(),
        scope: match lock.scope {
            domain::LockScope::Plan => api::LockScope::Plan,
            domain::LockScope::Project => api::LockScope::Project,
        },
        key: lock.key,
        owner: lock.holder.owner,
        host: lock.holder.process.host,
        pid: lock.holder.process.pid,
        purpose: lock.holder.purpose,
        fence: lock.fence.0,
        acquired_at: time(lock.acquired_at),
        expires_at: time(lock.expires_at),
        stale: lock.stale,
    }
}

/// Returns an event in the form used by all answers and streams.
pub(crate) fn event_shape(recorded: domain::StoredEvent) -> serde_json::Value {
    serde_json::to_value(event(recorded)).expect("an event has text keys and finite numbers")
}

pub(super) fn event(event: domain::StoredEvent) -> api::Event {
    api::Event {
        seq: event.seq,
        at: time(event.at),
        kind: event.kind,
        plan: event.plan.map(|plan| plan.to_string()),
        run: event.run.map(|run| run.to_string()),
        revision: event.revision,
        data: event.details,
    }
}

pub(super) fn changeset(changeset: domain::Changeset) -> api::Changeset {
    api::Changeset {
        id: changeset.id.to_string(),
        plan: changeset.plan.to_string(),
        run: changeset.run.to_string(),
        writer: changeset.writer,
        state: match changeset.state {
            domain::ChangesetState::Open => api::ChangesetState::Open,
            domain::ChangesetState::Sealed => api::ChangesetState::Sealed,
        },
        entries: changeset.entries.into_iter().map(entry).collect(),
        opened_at: Some(time(changeset.opened_at)),
    }
}

fn entry(entry: domain::ChangesetEntry) -> api::Entry {
    api::Entry {
        seq: entry.seq,
        path: entry.change.path,
        op: match entry.change.op {
            domain::ChangeOp::Create => api::ChangeOp::Create,
            domain::ChangeOp::Modify => api::ChangeOp::Modify,
            domain::ChangeOp::Delete => api::ChangeOp::Delete,
            domain::ChangeOp::Rename => api::ChangeOp::Rename,
        },
        from: entry.change.from,
        before: entry.change.before,
        after: entry.change.after,
        at: time(entry.at),
    }
}

fn validation(one: domain::Validation) -> api::Validation {
    api::Validation {
        name: one.name.to_string(),
        command: one.command,
        required: one.required,
        timeout_s: one.timeout_s,
    }
}

fn on_divergence(policy: domain::OnDivergence) -> api::OnDivergence {
    match policy {
        domain::OnDivergence::Recover => api::OnDivergence::Recover,
        domain::OnDivergence::Pause => api::OnDivergence::Pause,
    }
}

pub(super) fn project(project: domain::Project) -> api::Project {
    api::Project {
        name: project.name.to_string(),
        repo: project.repo,
        target: project.target,
        remote: project.remote,
        on_divergence: project.on_divergence.map(on_divergence),
        validations: project.validations.into_iter().map(validation).collect(),
        created_at: time(project.created_at),
    }
}

pub(super) fn invariant(invariant: domain::Invariant) -> api::Invariant {
    api::Invariant {
        name: invariant.name.to_string(),
        scope: invariant.scope.to_string(),
        rule: invariant.rule,
        at: invariant.at.into_iter().map(phase).collect(),
        locked: invariant.locked,
    }
}

pub(super) fn action(action: domain::Action) -> api::Action {
    let argument = |one: domain::ActionArgument| api::Argument {
        required: one.required,
        default: one.default,
        description: one.description,
    };
    api::Action {
        name: action.name.to_string(),
        description: action.description,
        definition_of_done: action.definition_of_done,
        profile: action.profile,
        arguments: action
            .arguments
            .into_iter()
            .map(|(name, one)| (name.to_string(), argument(one)))
            .collect(),
        agents: roles(action.agents),
        validations: action.validations.into_iter().map(validation).collect(),
        invariants: action.invariants.into_iter().map(invariant).collect(),
        allow_empty: action.allow_empty,
        budget: (!action.budget.is_unlimited()).then(|| amounts(action.budget)),
        created_at: time(action.created_at),
    }
}
