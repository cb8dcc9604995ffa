//! Converts an engine error to a problem document: the code, the object and the reason, the next step, and the
//! details of that code.

use drydock_api::{Code, Problem};
use drydock_domain::{Decision, Lock, LockScope, PINS, Refusal, error_chain, shell_word};
use drydock_engine::{EngineError, MissingItem};
use drydock_worktree::GitError;
use serde_json::json;

use super::view::time;

/// Returns the problem of an error that does not concern a plan.
pub(crate) fn problem(error: &EngineError) -> Problem {
    problem_of(error, None)
}

/// Returns the problem of an error, with hints that name the plan.
pub(crate) fn problem_of(error: &EngineError, plan: Option<&str>) -> Problem {
    let text = error_chain(error);
    match error {
        EngineError::Refused(refusal) => refused(refusal, text, plan),
        EngineError::LockHeld { lock } => held(lock, text),
        EngineError::LeaseLost { .. } => Problem::new(Code::LeaseLost, text).hint(format!(
            "repeat the command; {}",
            typed(plan, "why", "shows which process holds the lock")
        )),
        EngineError::StaleRevision { expected, found } => Problem::new(Code::StaleRevision, text)
            .hint("read the plan again, then repeat the request")
            .with("expected", *expected)
            .with("found", *found),
        EngineError::Absent(absent) => Problem::new(Code::NotFound, text)
            .hint(listing(absent, plan))
            .with("kind", absent.kind)
            .with("name", absent.name.clone()),
        EngineError::Ambiguous { candidates, .. } => Problem::new(Code::AmbiguousId, text)
            .hint("use a longer prefix")
            .with("candidates", candidates.clone()),
        EngineError::Exists { .. } => {
            Problem::new(Code::Exists, text).hint("use another name, or remove the existing one first")
        }
        EngineError::InUse { by, .. } => {
            Problem::new(Code::InUse, text).hint("finish or cancel these first").with("by", by.clone())
        }
        EngineError::BackupNeeded { backup } => {
            let name = backup.name.strip_prefix(PINS).unwrap_or(&backup.name);
            Problem::new(Code::BackupNeeded, text)
                .hint(format!(
                    "`drydock backup restore {name}` restores it as a branch; to delete it permanently: `drydock backup \
                     prune {name} --discard`"
                ))
                .with("backup_ref", backup.name.clone())
                .with("commits", json!(backup.commits))
                .with("uncommitted", backup.uncommitted)
        }
        EngineError::BackupGone { decision, others, .. } => Problem::new(Code::BackupGone, text)
            .hint(match others.first() {
                Some(other) => {
                    format!("choose another option: `drydock decision resolve {decision} --option {other}`")
                }
                None => format!("`drydock decision show {decision}` shows the question"),
            })
            .with("decision_id", decision.as_str())
            .with("offered", others.clone()),
        EngineError::Diverged { decision } => diverged(decision, text),
        EngineError::Unsynced { outcome } => {
            Problem::new(Code::SyncFailed, text).hint(outcome.hint()).with("sync", outcome.to_json())
        }
        EngineError::Invalid { hint, .. } => Problem::new(Code::Invalid, text).hint(hint.clone()),
        EngineError::NoAgent { usable } => Problem::new(Code::Invalid, text).hint(agent_wanted(usable)),
        EngineError::Interrupted => Problem::new(Code::Interrupted, text).hint("repeat the command"),
        EngineError::Repository(error) => Problem::new(Code::RepositoryUnusable, text).hint(error.hint()),
        EngineError::Git(GitError::BadName { .. }) => {
            Problem::new(Code::Invalid, text).hint("use a valid git ref name")
        }
        EngineError::Git(error) => Problem::new(Code::GitFailed, text)
            .hint(error.hint().unwrap_or_else(|| "`drydock doctor` checks git".to_owned())),
        EngineError::Store(error) => {
            Problem::new(Code::from(error.code().to_owned()), text).hint(error.hint())
        }
        EngineError::File { .. } => {
            Problem::new(Code::Internal, text).hint("check the directory's permissions")
        }
    }
}

/// Returns a hint that names a command on the plan.
fn typed(plan: Option<&str>, verb: &str, says: &str) -> String {
    match plan {
        Some(id) => format!("`drydock plan {verb} {id}` {says}"),
        None => "`drydock plan list` shows the plans".to_owned(),
    }
}

fn refused(refusal: &Refusal, text: String, plan: Option<&str>) -> Problem {
    let typed = |verb: &str, says: &str| typed(plan, verb, says);
    match refusal {
        Refusal::WrongStage { phase, state, .. } => Problem::new(Code::WrongState, text)
            .hint(typed("why", "shows the available actions"))
            .with("phase", phase.name())
            .with("state", state.name()),
        Refusal::NotAllowed { .. } => Problem::new(Code::Forbidden, text)
            .hint("use a token with role human, or run the command on the machine of the store"),
        Refusal::Blocked(enforcement) => Problem::new(Code::InvariantBlocked, text)
            .hint(enforcement.advice())
            .with("findings", json!(enforcement.findings)),
        Refusal::Undecided { decision, .. } => Problem::new(Code::DecisionOpen, text)
            .hint(format!("`drydock decision show {decision}` shows the question"))
            .with("decision_id", decision.as_str()),
        Refusal::BudgetSpent { used_up, decision } => {
            let problem = Problem::new(Code::BudgetSpent, text).with("used_up", used_up.clone());
            match decision {
                Some(decision) => problem
                    .hint(format!("`drydock decision show {decision}` shows how to continue"))
                    .with("decision_id", decision.as_str()),
                None => problem.hint(typed("why", "shows how to continue")),
            }
        }
        Refusal::StaleRun { .. } => Problem::new(Code::WrongState, text)
            .hint(format!("another run has started; {}", typed("show", "shows it"))),
        Refusal::DecisionClosed(decision) => Problem::new(Code::DecisionClosed, text)
            .hint("`drydock decision list --open` shows the open ones")
            .with("decision_id", decision.as_str()),
        Refusal::UnknownOption { decision, offered, .. } => Problem::new(Code::UnknownOption, text)
            .hint(format!("choose one of: {}", offered.join(", ")))
            .with("decision_id", decision.as_str())
            .with("offered", offered.clone()),
        Refusal::EmptyAnswer(decision) => Problem::new(Code::Invalid, text)
            .hint(format!("answer with --note; `drydock decision show {decision}` shows the question"))
            .with("decision_id", decision.as_str()),
        Refusal::NothingChanged => {
            let again = typed("revert", "tries another strategy");
            let hint = format!("{again}; an action with allow_empty can land without changes");
            Problem::new(Code::NothingToApply, text).hint(hint)
        }
        Refusal::Unvalidated(_) => {
            Problem::new(Code::ValidationFailed, text).hint(typed("why", "shows the details"))
        }
        Refusal::Unreviewed(reviewers) => Problem::new(Code::ReviewMissing, text)
            .hint(typed("events", "shows the verdict of each reviewer"))
            .with("reviewers", reviewers.clone()),
        Refusal::TooManyReversions { .. } => {
            Problem::new(Code::TooManyReversions, text).hint("cancel it and create a new plan")
        }
        Refusal::NotCalled { parent } => Problem::new(Code::WrongState, text)
            .hint(format!("`drydock plan why {parent}` shows the reason"))
            .with("parent", parent.as_str()),
        Refusal::SubplansOpen => {
            Problem::new(Code::WrongState, text).hint(typed("tree", "shows the progress of each subplan"))
        }
        Refusal::IntentOpen => {
            Problem::new(Code::IntentOpen, text).hint(typed("retry", "finds out whether it landed"))
        }
    }
}

/// Returns the problem of S4.6: the reason, the backup, the commits and the decision, all read from the stored
/// decision.
fn diverged(decision: &Decision, text: String) -> Problem {
    let details = &decision.question.details;
    let code = match details["outcome"].as_str() {
        Some("recovered_by_reset") => Code::SyncRecovered,
        Some(_) | None => Code::SyncUnreconciled,
    };
    Problem::new(code, text)
        .hint(format!("`drydock decision show {}` shows the question", decision.id))
        .with("decision_id", decision.id.as_str())
        .with("backup_ref", details["backup_ref"].clone())
        .with("discarded_commits", details["discarded_commits"].clone())
        .with("outcome", details["outcome"].clone())
}

fn held(lock: &Lock, text: String) -> Problem {
    let wait = format!(
        "wait until it finishes or its lock expires at {}; if that process is dead or stuck, `drydock lock break {} --reason gone` \
         frees it now",
        time(lock.expires_at),
        lock.id
    );
    let hint = match lock.scope {
        LockScope::Plan => {
            format!("{wait}; `drydock plan cancel {}` stops this run and cancels the plan", lock.key)
        }
        LockScope::Project => wait,
    };
    Problem::new(Code::LockHeld, text)
        .hint(hint)
        .with("owner", lock.holder.owner.clone())
        .with("host", lock.holder.process.host.clone())
        .with("pid", lock.holder.process.pid)
        .with("purpose", lock.holder.purpose.clone())
        .with("worker", lock.holder.is_worker())
        .with("expires_at", time(lock.expires_at))
}

/// Returns the hint how to get an agent: name one that exists, or configure one.
fn agent_wanted(usable: &[String]) -> String {
    if !usable.is_empty() {
        let names = usable.join(", ");
        return format!("choose one with --agent ({names}), or set [defaults] agent in the configuration");
    }
    let path = crate::config::config_path();
    let path = path.map_or("the configuration file".to_owned(), |path| path.display().to_string());
    format!(
        "install an agent from `drydock agent list`, or add this to {path}:\n[agents.writer]\nprotocol = \"command\"\n\
         command = [\"your-agent\", \"--flag\"]\n[defaults]\nagent = \"writer\""
    )
}

fn listing(absent: &MissingItem, plan: Option<&str>) -> String {
    let git = match &absent.repository {
        Some(repository) => format!("git -C {}", shell_word(repository)),
        None => "git".to_owned(),
    };
    match absent.kind {
        "plan" => "`drydock plan list` shows all plans".to_owned(),
        "project" => "`drydock project list` shows all projects; `drydock project add` adds one".to_owned(),
        "action" => {
            "`drydock action list` shows all actions; `drydock action create --file F` adds one".to_owned()
        }
        "agent" => {
            "add [agents.NAME] to the configuration; `drydock agent list` shows all agents".to_owned()
        }
        "profile" => {
            "use manual, supervised, trusted, auto, or a profile configured as [profiles.NAME]".to_owned()
        }
        "checkpoint" => match plan {
            Some(id) => format!("`drydock checkpoint list {id}` shows all checkpoints"),
            None => "`drydock plan list` shows the plans".to_owned(),
        },
        "decision" => "`drydock decision list` shows all decisions".to_owned(),
        "log of run" => "a log is a file on the machine that ran it: use the server there, or let all machines share \
                         the folder `logs` beside the store; `drydock gc` removes logs of finished plans ([logs] keep_days)"
            .to_owned(),
        "backup" => "`drydock backup list` shows all backups".to_owned(),
        "token" => "`drydock token list` shows all tokens".to_owned(),
        "run under way" => "`drydock plan list --state processing` shows the running plans".to_owned(),
        "branch" => format!("`{git} branch` lists its branches"),
        "remote" => format!("`{git} remote` lists its remotes"),
        other => format!("check the name of the {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drydock_store::StoreError;

    /// code 8.3: breaks if a store error has a code that is not in the table. A new kind of error does not compile
    /// here until it has a sample.
    #[test]
    fn every_error_of_the_store_has_a_code_of_the_table() {
        let (place, reason, remedy, attempt) = (String::new, String::new, "", "write");
        let source = || std::sync::Arc::from(Box::from("no"));
        let samples = [
            StoreError::Missing { place: place(), reason: reason(), remedy },
            StoreError::ReadOnly { place: place(), remedy, source: source() },
            StoreError::Busy { place: place(), attempt, holder: None },
            StoreError::Full { place: place(), source: source() },
            StoreError::Corrupt { place: place(), source: source() },
            StoreError::Newer { place: place(), found: 2, known: 1 },
            StoreError::NotDrydock { place: place(), reason: reason() },
            StoreError::Unavailable { place: place(), reason: reason() },
            StoreError::Crowded { place: place(), reason: reason() },
            StoreError::Pooled { place: place(), reason: reason() },
            StoreError::Damaged { table: "plans", key: String::new(), reason: reason() },
            StoreError::Unsupported { attempt, reason: "no" },
            StoreError::Injected,
            StoreError::Database { attempt, source: source() },
        ];
        for error in samples {
            match &error {
                StoreError::Missing { .. }
                | StoreError::ReadOnly { .. }
                | StoreError::Busy { .. }
                | StoreError::Full { .. }
                | StoreError::Corrupt { .. }
                | StoreError::Newer { .. }
                | StoreError::NotDrydock { .. }
                | StoreError::Unavailable { .. }
                | StoreError::Crowded { .. }
                | StoreError::Pooled { .. }
                | StoreError::Damaged { .. }
                | StoreError::Unsupported { .. }
                | StoreError::Injected
                | StoreError::Database { .. } => {}
            }
            let told = problem(&EngineError::Store(error.clone()));
            assert!(Code::ALL.contains(&told.code), "{error:?} is {}", told.code);
        }
    }
}
