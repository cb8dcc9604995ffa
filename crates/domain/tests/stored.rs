//! Stored and sent values keep their names. Each golden value is read as its type and written again, and the result must be
//! equal, so that stores and readers of earlier versions still work. A type, field or variant that is renamed in Rust
//! keeps its stored name by `#[serde(rename)]`.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue should stop")]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use drydock_domain as domain;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[path = "../../testkit/src/golden.rs"]
#[allow(unreachable_pub, reason = "a module of the test kit, which domain does not depend on")]
mod golden;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// Prints a value with sorted keys. Their order in a `Value` depends on the features that other crates enable.
fn pretty(value: &Value) -> String {
    format!("{:#}\n", sorted(value))
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(fields) => {
            let fields: BTreeMap<_, _> =
                fields.iter().map(|(name, value)| (name.clone(), sorted(value))).collect();
            fields.into_iter().collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Reads every value of a golden file, requires that it is written as it was read, and returns the values.
#[track_caller]
fn stored<T: Serialize + DeserializeOwned>(name: &str) -> Vec<T> {
    let text = fs::read_to_string(file(name)).unwrap();
    let values: Vec<Value> = serde_json::from_str(&text).unwrap();
    let read = |value: &Value| match serde_json::from_value(value.clone()) {
        Ok(read) => read,
        Err(error) => panic!("{name}: {error}: {value:#}"),
    };
    let read: Vec<T> = values.iter().map(read).collect();
    golden::assert_golden(file(name), &pretty(&json!(read)));
    read
}

/// Reads the first value of a golden file.
fn one<T: Serialize + DeserializeOwned>(name: &str) -> T {
    stored(name).swap_remove(0)
}

/// Requires a sample of every variant. A new variant does not compile here until it is listed.
macro_rules! every {
    ($samples:expr, $of:ident { $($variant:ident),+ $(,)? }) => {{
        let mut missing = vec![$(stringify!($variant)),+];
        for sample in $samples {
            let found = match sample { $(domain::$of::$variant { .. } => stringify!($variant)),+ };
            missing.retain(|variant| *variant != found);
        }
        assert!(missing.is_empty(), "no sample of {}::{missing:?}", stringify!($of));
    }};
}

/// S1, S6. Breaks when a stored plan loses a field, or a name in it changes.
#[test]
fn plans_keep_their_names() {
    let plans: Vec<domain::Plan> = stored("plans.json");
    let pieces = &plans[0].fanout.as_ref().unwrap().pieces;
    every!(
        pieces.iter().map(|piece| &piece.fate),
        SubplanStatus { Open, Ready, Joined, Handed, Failed, Cancelled, Dropped }
    );
    every!(pieces.iter().map(|piece| &piece.task), SubplanTask { Words, Action });
    every!(pieces.iter().filter_map(|piece| piece.favour), ConflictSide { Parent, Child });
    let places = || plans.iter().filter_map(|plan| plan.place.as_ref());
    every!(places().map(|place| place.turn), Turn { InLine, Called });
    every!(places().map(|place| place.lands), LandsOn { WithParent, ByItself });
    let fanouts = plans.iter().filter_map(|plan| plan.fanout.as_ref());
    every!(fanouts.map(|fanout| fanout.on_failure), OnFailure { Continue, FailFast });
    every!(
        stored("merge_strategies.json"),
        MergeStrategy { ThreeWay, Sequential, FailOnConflict, PreferParent, PreferChild }
    );
    every!(stored("take_over_causes.json"), TakeOverCause { OwnerGone, Interrupted, Stopped, StoppedAbove });
    every!(
        stored("take_up.json"),
        RestartReason {
            Answer,
            Work,
            RollBack,
            RateLimit,
            Interrupted,
            Budget,
            Retry,
            StartOver,
            Accepted,
            Review,
            Subplans,
            Conflict,
        }
    );
    let grants = || plans.iter().flat_map(|plan| &plan.grants);
    every!(grants().map(|grant| grant.terms.answer), GrantAnswer { Allow, Deny });
    every!(grants().map(|grant| grant.terms.scope), GrantScope { Once, Plan });
}

/// N11. Breaks when a plan with the fields of the first version only can no longer be read.
#[test]
fn a_plan_without_later_fields_is_read() {
    let text = fs::read_to_string(file("oldest_plan.json")).unwrap();
    let plan: domain::Plan = serde_json::from_str(&text).unwrap();
    assert!(plan.fanout.is_none() && plan.place.is_none() && plan.interruption.is_none());
}

/// S1, INV-STAGE. Breaks when a stored stage or error class is called otherwise.
#[test]
fn stages_and_errors_keep_their_names() {
    let stages: Vec<domain::Stage> = stored("stages.json");
    every!(&stages, Stage { Strategize, Execute, Apply });
    every!(
        stages.iter().map(domain::Stage::state),
        State { Queued, Processing, Waiting, Complete, Errored, Cancelled, Applied, Constrained }
    );
    let failures: Vec<domain::Failure> = stored("failures.json");
    every!(
        failures.iter().map(|failure| failure.class),
        ErrorClass {
            AgentMissing,
            AgentFailed,
            FailedModel,
            FailedAuth,
            Refused,
            Stalled,
            AgentTimedOut,
            ForbiddenChange,
            Uncapturable,
            StrategyInvalid,
            ValidationFailed,
            TargetDirty,
            Git,
            Filesystem,
            Diverged,
            ResetFailed,
            SubplanFailed,
            SubplanConflict,
            Inconsistent,
        }
    );
    for failure in failures {
        assert_eq!(json!(failure.class), failure.class.name());
    }
    for stage in stages {
        assert_eq!(json!(stage).as_object().unwrap().keys().next().unwrap(), stage.phase().name());
    }
}

/// S3, INV-PERSON. Breaks when a stored decision, an option or what it does is called otherwise.
#[test]
fn decisions_keep_their_names() {
    let decisions: Vec<domain::Decision> = stored("decisions.json");
    every!(
        decisions.iter().map(|decision| decision.question.kind),
        DecisionKind {
            Gate,
            Agent,
            Permission,
            Divergence,
            ApplyOutcome,
            Validation,
            Conflict,
            Subplans,
            Review,
            RateLimit,
            Budget,
        }
    );
    every!(decisions.iter().map(|decision| &decision.status), DecisionStatus { Open, Resolved, Withdrawn });
    let effects =
        || decisions.iter().flat_map(|decision| &decision.question.options).map(|option| &option.effect);
    every!(
        effects(),
        OptionEffect {
            Approve,
            Requeue,
            StartFrom,
            Review,
            Grant,
            WaitUntil,
            SetBudget,
            Join,
            RetryLost,
            DropLost,
            Revert,
            Cancel,
        }
    );
    let joins = effects().filter_map(|effect| match effect {
        domain::OptionEffect::Join(how) => Some(how),
        _ => None,
    });
    every!(joins, ConflictResolution { Take, Drop, Hand });
    for decision in &decisions {
        assert_eq!(json!(decision.question.kind), decision.question.kind.name());
    }
    for effect in effects() {
        let written = json!(effect);
        let name = written.as_str().or_else(|| written.as_object()?.keys().next().map(String::as_str));
        assert_eq!(name, Some(effect.name()));
    }
}

/// S4. Breaks when the outcome of a sync, which plans and markers in git hold, is called otherwise.
#[test]
fn sync_outcomes_keep_their_names() {
    let outcomes: Vec<domain::SyncOutcome> = stored("sync_outcomes.json");
    every!(
        &outcomes,
        SyncOutcome {
            NoRemote,
            NoRemoteBranch,
            InSync,
            FastForwarded,
            Pushed,
            PushFailed,
            KeptLocal,
            Rebased,
            RecoveredByReset,
            ResetFailed,
            Unreconciled,
            FetchFailed,
            Detached,
            MidOperation,
            Unknown,
        }
    );
    every!(outcomes.iter().map(domain::SyncOutcome::standing), SyncStatus { Settled, Unsettled, Diverged });
    let standings: Vec<_> =
        outcomes.iter().map(|outcome| format!("{} {}", outcome.name(), outcome.standing().name())).collect();
    golden::assert_golden(file("sync_standings.txt"), &(standings.join("\n") + "\n"));
}

/// S2. Breaks when an effect in the outbox is called otherwise; SQL compares the text of some.
#[test]
fn effects_keep_their_names() {
    let effects: Vec<domain::Effect> = stored("effects.json");
    every!(&effects, Effect { DrivePhase, Tend, AdvanceToExecute, AdvanceToApply });
    let texts: Vec<_> = effects.iter().map(|effect| serde_json::to_string(effect).unwrap()).collect();
    assert_eq!(texts[0], r#"{"drive_phase":"strategize"}"#);
}

/// S5, N7. Breaks when what is stored beside plans is called otherwise.
#[test]
fn rules_projects_actions_and_locks_keep_their_names() {
    let invariants: Vec<domain::Invariant> = stored("invariants.json");
    every!(invariants.iter().map(|one| &one.scope), InvariantScope { Global, Project, Action, Plan });
    every!(invariants.iter().map(|one| &one.rule), Rule { Cel, Command, Text });
    let enforced: domain::Enforced = one("enforced.json");
    let findings = &enforced.enforcement.findings;
    every!(
        findings.iter().map(|finding| &finding.check),
        InvariantCheck { Held, Violated, Unknown, NotChecked }
    );
    every!(findings.iter().map(|finding| finding.rule), RuleKind { Cel, Command, Text });
    let demands =
        findings.iter().filter_map(|finding| finding.measure.as_ref()).map(|measure| measure.demand);
    every!(demands, Demand { Below, AtMost, Above, AtLeast, Equal, NotEqual });
    let projects: Vec<domain::Project> = stored("projects.json");
    every!(projects.iter().filter_map(|project| project.on_divergence), OnDivergence { Recover, Pause });
    stored::<domain::Action>("actions.json");
    stored::<domain::ProcessIdentity>("processes.json");
    let changesets: Vec<domain::Changeset> = stored("changesets.json");
    every!(changesets.iter().map(|changeset| changeset.state), ChangesetState { Open, Sealed });
    every!(
        changesets.iter().flat_map(|changeset| &changeset.entries).map(|entry| entry.change.op),
        ChangeOp { Create, Modify, Delete, Rename }
    );
    let locks: Vec<domain::Lock> = stored("locks.json");
    every!(locks.iter().map(|lock| lock.scope), LockScope { Plan, Project });
    let reviews: Vec<domain::ReviewResult> = stored("reviews.json");
    every!(reviews.iter().map(|review| &review.opinion), ReviewOpinion { Acknowledged, Refused, Silent });
    stored::<domain::ValidationResult>("validations.json");
}

/// N5, S5. Breaks when a name that a column holds, or that is written into repositories, changes.
#[test]
fn names_in_columns_and_repositories_stay() {
    let (plan, run) = (one::<domain::Plan>("plans.json").id, domain::RunId::from_random(1));
    let roles = [
        domain::TokenRole::Human,
        domain::TokenRole::Operator,
        domain::TokenRole::Agent { plan, run },
        domain::TokenRole::Reader,
    ];
    every!(&roles, TokenRole { Human, Operator, Agent, Reader });
    let kinds = [
        domain::TokenKind::Bearer,
        domain::TokenKind::Machine,
        domain::TokenKind::Session,
        domain::TokenKind::Link,
    ];
    every!(&kinds, TokenKind { Bearer, Machine, Session, Link });
    let profiles = domain::Profile::built_in();
    let names = json!({
        "authorities": domain::Authority::ALL.map(domain::Authority::name),
        "token_roles": roles.iter().map(domain::TokenRole::name).collect::<Vec<_>>(),
        "token_kinds": kinds.map(domain::TokenKind::name),
        "profiles": profiles.iter().map(|profile| &profile.name).collect::<Vec<_>>(),
        "id_prefixes": [
            domain::PlanId::PREFIX, domain::RunId::PREFIX, domain::DecisionId::PREFIX,
            domain::ChangesetId::PREFIX, domain::LockId::PREFIX, domain::TokenId::PREFIX,
        ],
        "refs": [domain::BRANCHES, domain::SNAPSHOTS, domain::JOINS, domain::PINS],
        "trailers": [domain::CHECKPOINT, &domain::trailer("P"), &domain::run_trailer("R")],
    });
    golden::assert_golden(file("names.json"), &pretty(&names));
}

/// S6, F6. Breaks when the kind of an event, or a key of its details, changes.
#[test]
fn events_keep_their_kinds_and_details() {
    let events = events();
    every!(
        &events,
        Event {
            Created,
            Started,
            Completed,
            Advanced,
            Errored,
            Waiting,
            Resumed,
            Cancelled,
            Reverted,
            Retried,
            StartedOver,
            Accepted,
            TakenOver,
            Applied,
            Constrained,
            RolledBack,
            Reexamined,
            Committed,
            Prompted,
            ChoiceRecorded,
            InvariantEnforced,
            InvariantBlocked,
            DecisionOpened,
            DecisionAmended,
            DecisionResolved,
            DecisionWithdrawn,
            ChangesetOpened,
            ChangesetSealed,
            StrategyAdopted,
            Synced,
            TargetSent,
            BackupDiscarded,
            ApplyIntended,
            ApplyForgone,
            Agent,
            RateLimited,
            LandingPostponed,
            Subplan,
            Validated,
            Proposed,
            Reviewed,
            LockBroken,
            Alert,
        }
    );
    let written = events.iter().map(|event| {
        let mut details = event.details();
        // A sentence for people, made from the rest.
        if matches!(event, domain::Event::Synced(_)) {
            details["text"] = json!("(sentence)");
        }
        if matches!(event, domain::Event::LandingPostponed(_)) {
            details["reason"] = json!("(sentence)");
        }
        json!({ "kind": event.kind(), "details": details })
    });
    golden::assert_golden(file("events.json"), &pretty(&Value::from_iter(written)));
}

fn events() -> Vec<domain::Event> {
    use domain::{Event, Phase};
    let plan: domain::Plan = one("plans.json");
    let (choice, intent) = (plan.choices[0].clone(), plan.intent.clone().unwrap());
    let decisions: Vec<domain::Decision> = stored("decisions.json");
    let (decision, id) = (Box::new(decisions[0].clone()), decisions[0].id.clone());
    let domain::DecisionStatus::Resolved(resolution) = decisions[1].status.clone() else {
        panic!("it is resolved")
    };
    let enforcement = one::<domain::Enforced>("enforced.json").enforcement;
    let (changeset, restart) = (domain::ChangesetId::from_random(1), plan.interruption.unwrap().restart);
    let text = || "text".to_owned();
    let mut events = vec![
        Event::Created { task: text() },
        Event::Started(Phase::Strategize),
        Event::Completed(Phase::Execute),
        Event::Advanced(Phase::Apply),
        Event::Errored(one("failures.json"), Some(id.clone())),
        Event::Waiting(id.clone()),
        Event::Resumed,
        Event::Cancelled(text()),
        Event::Reverted { reason: text(), count: 1 },
        Event::Retried,
        Event::StartedOver,
        Event::Accepted { commit: text() },
        Event::TakenOver(domain::TakeOverCause::OwnerGone, domain::Remains::Work(None)),
        Event::TakenOver(domain::TakeOverCause::Interrupted, domain::Remains::Result(restart)),
        Event::Applied { commit: text() },
        Event::Constrained(vec![text()]),
        Event::RolledBack { commit: text() },
        Event::Reexamined { from: Some(text()), to: text(), commits: Vec::new() },
        Event::Committed { commit: text() },
        Event::Prompted(text()),
        Event::ChoiceRecorded(choice),
        Event::InvariantEnforced(enforcement.clone()),
        Event::InvariantBlocked(enforcement),
        Event::DecisionOpened(decision.clone()),
        Event::DecisionAmended(decision),
        Event::DecisionResolved(id.clone(), resolution),
        Event::DecisionWithdrawn { id, reason: text() },
        Event::ChangesetOpened { id: changeset.clone(), writer: text() },
        Event::ChangesetSealed { id: changeset, entries: 1 },
        Event::StrategyAdopted { choices: 1 },
    ];
    events.extend(stored("sync_outcomes.json").into_iter().map(Event::Synced));
    events.extend([
        Event::TargetSent { target: text(), remote: text(), commit: text() },
        Event::BackupDiscarded { backup_ref: text(), commit: text(), commits: Vec::new(), uncommitted: true },
        Event::ApplyIntended(intent.clone()),
        Event::ApplyForgone(intent),
        Event::Agent { what: "started", details: json!({ "agent": "writer" }) },
        Event::RateLimited(plan.postponed.clone().unwrap()),
        Event::LandingPostponed(plan.postponed.unwrap()),
        Event::Subplan { what: "joined", details: json!({ "name": "part1" }) },
        Event::Proposed { number: 1, commit: text() },
        Event::LockBroken { owner: text(), reason: text() },
        Event::Alert { priority: "high", text: text() },
    ]);
    let mut failed: domain::ValidationResult = one("validations.json");
    events.push(Event::Validated(failed.clone()));
    failed.passed = true;
    events.push(Event::Validated(failed));
    events.extend(stored("reviews.json").into_iter().map(|review| Event::Reviewed { number: 1, review }));
    events
}
