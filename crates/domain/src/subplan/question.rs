//! The questions about subplans. Their text is built from the stored record, so that the two cannot disagree.

use serde_json::{Value, json};

use crate::decide::REVERSIONS_MAX;
use crate::question::option;
use crate::{
    Act, ConflictResolution, ConflictSide, DecisionKind, ErrorClass, Fanout, Name, OptionEffect, Phase, Plan,
    Question, ResolvesConflict, Subplan, SubplanStatus, SubplanTask, counted,
};

/// A conflict between a subplan's result and the results joined so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictReport {
    /// The files as JSON, each with its kind and hunks.
    pub files: Value,
    /// The same conflicts, for the text of the question and for the agent that resolves them.
    pub clashes: Vec<ConflictSummary>,
    /// The commit with the results joined so far.
    pub onto: String,
    /// A commit with conflict markers in its files.
    pub marked: String,
}

/// One conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictSummary {
    /// The path, followed by the other paths of the same conflict.
    pub paths: Vec<String>,
    /// The kind of conflict and git's message.
    pub about: String,
    /// Whether the file has conflict markers.
    pub marks: ConflictMarkers,
}

/// Whether a conflict has markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictMarkers {
    /// The file has markers.
    InFile,
    /// There are none: the file is binary, or the conflict is not about lines.
    None,
}

impl ConflictSummary {
    fn path(&self) -> &str {
        self.paths.first().map_or("", String::as_str)
    }
}

/// Maximum number of paths in the question's text.
const PATHS_NAMED_MAX: usize = 5;
/// Maximum number of subplan names in a label.
const NAMES_MAX: usize = 3;

impl Fanout {
    /// Returns the failed subplans and the reasons as text.
    pub(crate) fn lost_text(&self) -> String {
        let sentences: Vec<_> = self.failed_subplans().map(sentence).collect();
        let (count, all) = (sentences.len(), self.pieces.len());
        format!("{count} of {} did not finish: {}", counted(all, "subplan"), sentences.join("; "))
    }
}

impl Question {
    /// Returns the question to ask when all subplans have ended and some failed.
    pub(crate) fn subplans_lost(fanout: &Fanout, plan: &Plan) -> Question {
        let lost: Vec<_> = fanout.failed_subplans().collect();
        let kept = fanout
            .pieces
            .iter()
            .filter(|piece| matches!(piece.fate, SubplanStatus::Joined { .. } | SubplanStatus::Ready))
            .count();
        let mut options = Vec::new();
        // During landing, only subplans that failed to land can be retried; a cancelled one is not run again.
        let failed = lost.iter().any(|piece| piece.fate == SubplanStatus::Failed);
        if plan.stage.phase() == Phase::Execute || failed {
            let asks = if lost.iter().any(|piece| conflicts(piece)) {
                ", and ask how to resolve the conflict"
            } else {
                ""
            };
            let label = format!("Retry {}{asks}", names_of(&lost));
            options.push(option("retry", label, OptionEffect::RetryLost));
        }
        if kept > 0 {
            let label = format!("Continue without {}", names_of(&lost));
            options.push(option("go_on", label, OptionEffect::DropLost));
        }
        if plan.reversions < REVERSIONS_MAX {
            let label = Act::Revert.label().to_owned();
            options.push(option("revise_strategy", label, OptionEffect::Revert));
        }
        options.push(abort());
        let details: Vec<_> = lost.iter().map(|piece| lost_details(piece)).collect();
        Question {
            kind: DecisionKind::Subplans,
            text: format!("{}. What should happen next?", fanout.lost_text()),
            options,
            details: json!({ "lost": details, "done": kept }),
        }
    }

    /// Returns the question to ask when the result of a subplan conflicts with the results joined so far.
    /// `agent` resolves it if a person chooses so.
    pub fn conflict(
        fanout: &Fanout,
        piece: &Subplan,
        clash: ConflictReport,
        agent: Option<String>,
    ) -> Question {
        let ConflictReport { files, clashes, onto, marked } = clash;
        let paths: Vec<_> = clashes.iter().map(ConflictSummary::path).collect();
        let name = piece.name.clone();
        let named = paths.iter().take(PATHS_NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
        let more = paths.len().saturating_sub(PATHS_NAMED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let take = |side| OptionEffect::Join(ConflictResolution::Take { piece: name.clone(), side });
        let mut options = Vec::new();
        // The conflict of a resolving subplan is not given to yet another one.
        if piece.mends.is_none() {
            let unmarked = clashes.iter().filter(|one| one.marks == ConflictMarkers::None);
            let unmarked = unmarked.map(|one| one.paths.clone()).collect();
            let mends = ResolvesConflict { piece: name.clone(), onto, marked, unmarked };
            let by = Box::new(resolver(fanout, piece, mends, agent, &clashes));
            let effect = OptionEffect::Join(ConflictResolution::Hand { piece: name.clone(), by });
            options.push(option("agent", "Merge both with an agent".to_owned(), effect));
        }
        options.push(option("take_parent", "Keep merged version".to_owned(), take(ConflictSide::Parent)));
        options.push(option("take_child", format!("Use {:?}", name.as_str()), take(ConflictSide::Child)));
        let drop = OptionEffect::Join(ConflictResolution::Drop { piece: name.clone() });
        options.push(option("drop", format!("Skip {:?}", name.as_str()), drop));
        options.push(abort());
        Question {
            kind: DecisionKind::Conflict,
            text: format!(
                "The result of subplan {name} conflicts with already merged work in {named}{more}. Which \
                 version should be used?"
            ),
            options,
            details: json!({ "subplan": piece.name, "plan": piece.child, "files": files }),
        }
    }
}

/// Returns the subplan that resolves the conflict of `piece`.
fn resolver(
    fanout: &Fanout,
    piece: &Subplan,
    mends: ResolvesConflict,
    agent: Option<String>,
    clashes: &[ConflictSummary],
) -> Subplan {
    let task = resolving(&piece.name, clashes);
    Subplan {
        name: resolver_name(fanout, &piece.name),
        task: SubplanTask::Words(task),
        project: None,
        agent: piece.agent.clone().or(agent),
        after: Vec::new(),
        paths: Vec::new(),
        max_attempts: piece.max_attempts,
        timeout_s: piece.timeout_s,
        mends: Some(mends),
        child: None,
        fate: SubplanStatus::Open,
        favour: None,
        failures: Vec::new(),
        forgiven: 0,
    }
}

/// Returns the task text for resolving a conflict.
fn resolving(name: &Name, clashes: &[ConflictSummary]) -> String {
    let told = |marks: ConflictMarkers, said: &dyn Fn(&ConflictSummary) -> String| {
        clashes.iter().filter(|one| one.marks == marks).map(said).collect::<Vec<_>>()
    };
    let marked = told(ConflictMarkers::InFile, &|one| one.path().to_owned());
    let unmarked = told(ConflictMarkers::None, &|one| format!("{} ({})", one.path(), one.about));
    let mut task = format!("Resolve the conflict between the work of {name} and the work before it.");
    if !marked.is_empty() {
        task += &format!(
            " In these files, the lines <<<<<<<, ======= and >>>>>>> mark places that both sides changed: \
             {}. Keep the intent of both sides and remove all markers.",
            marked.join(", ")
        );
    }
    if !unmarked.is_empty() {
        task += &format!(
            " These files have no markers; resolve each by editing, removing or renaming it: {}. A file \
             that you do not touch counts as not resolved.",
            unmarked.join("; ")
        );
    }
    task
}

/// Returns a name that no sibling has.
fn resolver_name(fanout: &Fanout, name: &Name) -> Name {
    let short: String = name.as_str().chars().take(80).collect();
    let numbered = |number: usize| match number {
        1 => format!("resolve-{short}"),
        _ => format!("resolve-{short}-{number}"),
    };
    let free = |name: &Name| fanout.position(name).is_none();
    (1..).filter_map(|number| numbered(number).parse().ok()).find(free).unwrap_or_else(|| name.clone())
}

/// Returns true if the subplan failed because of a conflict.
fn conflicts(piece: &Subplan) -> bool {
    let last = piece.failures.last().filter(|_| piece.fate == SubplanStatus::Failed);
    last.is_some_and(|record| record.failure.class == ErrorClass::SubplanConflict)
}

/// Returns the names of the subplans for a label, or their number if there are many.
fn names_of(pieces: &[&Subplan]) -> String {
    match pieces.len() {
        0..=NAMES_MAX => pieces.iter().map(|piece| piece.name.as_str()).collect::<Vec<_>>().join(", "),
        count => counted(count, "subplan"),
    }
}

fn sentence(piece: &Subplan) -> String {
    match (&piece.fate, piece.failures.last()) {
        (SubplanStatus::Failed, Some(record)) => {
            let first = record.failure.text.lines().next().unwrap_or_default().trim_end_matches("; it said:");
            let tries = piece.attempts();
            let tries = if tries > 1 { format!(" {tries} times") } else { String::new() };
            format!("{} failed{tries} ({}: {first})", piece.name, record.failure.class.name())
        }
        (SubplanStatus::Failed, None) => format!("{} failed (its conflict was not resolved)", piece.name),
        (SubplanStatus::Cancelled { reason }, _) => format!("{} was cancelled ({reason})", piece.name),
        (fate, _) => format!("{} is {}", piece.name, fate.name()),
    }
}

fn lost_details(piece: &Subplan) -> Value {
    let reason = match &piece.fate {
        SubplanStatus::Cancelled { reason } => Some(reason),
        SubplanStatus::Open
        | SubplanStatus::Ready
        | SubplanStatus::Joined { .. }
        | SubplanStatus::Handed { .. }
        | SubplanStatus::Failed
        | SubplanStatus::Dropped => None,
    };
    json!({
        "name": piece.name,
        "plan": piece.child,
        "fate": piece.fate.name(),
        "reason": reason,
        "failures": piece.failures,
    })
}

fn abort() -> crate::DecisionOption {
    option("abort", Act::Cancel.label().to_owned(), OptionEffect::Cancel)
}
