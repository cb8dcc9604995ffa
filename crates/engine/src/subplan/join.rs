//! Joining: the result of a subplan becomes part of its parent's branch. It is merged in memory, kept by a
//! ref, and recorded first on the subplan and then on its parent. After a crash in between, the next
//! scheduling step continues: the same merge produces the same commit, and the subplan records which commit
//! that is.

use drydock_domain::{
    Command, ConflictMarkers, ConflictReport, ConflictSide, ConflictSummary, ErrorClass, Failure, Fanout,
    JOINS, MergeStrategy, Plan, PlanId, Project, Question, ResolvesConflict, Subplan, SubplanStatus,
    SubplanUpdate, trailer, without_trailers,
};
use drydock_worktree::{
    CommitId, ConflictFile, ConflictKind, DetailedMerge, MergeRequest, Prefer, RefCreated, RefDeleted,
    Repository, Signature, TreeId,
};
use serde_json::{Value, json};

use super::tend::Children;
use crate::engine::{Engine, WORKER};
use crate::error::EngineError;
use crate::hold::PlanLockGuard;
use crate::phase::commit_id;
use crate::task;

/// The work of a subplan: the commits from `base` to `head`.
#[derive(Debug, Clone)]
struct ChildWork {
    base: CommitId,
    head: CommitId,
    favour: Prefer,
    style: Style,
    message: String,
    at_seconds: i64,
}

/// How the commits of a subplan are applied on top of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// All as one commit.
    Squashed,
    /// One by one.
    Replayed,
}

/// The result of applying work on top of a commit.
enum JoinResult {
    Clean(CommitId),
    Conflict { tree: TreeId, files: Vec<ConflictFile> },
}

impl Engine {
    /// Joins a finished subplan with the results joined before it, or asks about the conflict. Returns false
    /// if nothing was recorded, for example because another process holds the subplan.
    pub(super) async fn join_piece(
        &self,
        hold: &PlanLockGuard,
        plan: &Plan,
        fanout: &Fanout,
        index: usize,
        children: &Children,
    ) -> Result<bool, EngineError> {
        let piece = &fanout.pieces[index];
        let Some(child) = children.of(piece) else { return Ok(false) };
        let onto = commit_id(fanout.head.as_ref().unwrap_or(&plan.base_commit))?;
        let (work, parent, marks) =
            (ChildWork::of(plan, fanout, piece, child)?, plan.id.clone(), piece.mends.clone());
        let (child_id, top) = (child.id.clone(), onto.clone());
        let project = self.project(plan.spec.project.as_str()).await?;
        if let Some(news) = self.kept_out(index, child, &project).await? {
            return self.record_news(hold, plan, children, vec![news]).await;
        }
        let repository = self.repository(&project).await?;
        let put = task::blocking(move || {
            if let Some(mends) = &marks
                && let Some(left) = work.left_open(&repository, mends)?
            {
                return Ok::<_, EngineError>(Err(left));
            }
            work.put_and_keep(&repository, &top, (&parent, &child_id)).map(Ok)
        })
        .await?;
        let news = match put {
            Err(left) => unresolved(index, child, left),
            Ok(JoinResult::Clean(commit)) => {
                let joined = Command::Join { commit: commit.to_string() };
                // The subplan whose conflict this one resolved has joined too, unless it was handled in
                // another way since.
                let resolved = piece.mends.as_ref().and_then(|mends| fanout.position(&mends.piece));
                if let Some(resolved) = resolved.and_then(|at| children.of(&fanout.pieces[at])) {
                    self.issue_child(hold, resolved, joined.clone()).await?;
                }
                if !self.issue_child(hold, child, joined).await? {
                    return Ok(false);
                }
                SubplanUpdate::Joined { piece: index, commit: commit.to_string() }
            }
            Ok(JoinResult::Conflict { files, .. })
                if fanout.merge == MergeStrategy::FailOnConflict && !piece.asks_about_conflict() =>
            {
                conflicting(index, child, &files)
            }
            Ok(JoinResult::Conflict { tree, files }) => {
                let marked = self.marked(plan, child, tree, &onto).await?;
                let clash = ConflictReport {
                    clashes: files.iter().map(clashed).collect(),
                    files: files.iter().map(told).collect(),
                    onto: onto.to_string(),
                    marked: marked.to_string(),
                };
                let agent = plan.spec.agents.execute.clone();
                SubplanUpdate::Conflict {
                    piece: index,
                    question: Box::new(Question::conflict(fanout, piece, clash, agent)),
                }
            }
        };
        let news = std::iter::once(news).chain(children.ends(plan)).collect();
        self.issue(hold, Command::Tend(news), WORKER).await?;
        Ok(true)
    }

    /// Checks the invariants of the subplan's own action. The parent's landing checks only those of the
    /// parent.
    async fn kept_out(
        &self,
        piece: usize,
        child: &Plan,
        project: &Project,
    ) -> Result<Option<SubplanUpdate>, EngineError> {
        let enforcement = self.enforce_own(child, project, self.stopping()).await?;
        let found: Vec<_> = enforcement.blocking().iter().map(|finding| finding.describe()).collect();
        if found.is_empty() {
            return Ok(None);
        }
        let text = format!("it must not be joined: {}", found.join("; "));
        let failure = Failure::new(ErrorClass::SubplanFailed, text);
        Ok(Some(SubplanUpdate::Failed { piece, run: child.run.clone(), failure }))
    }

    /// Returns the base commit for a subplan: the combined results of all subplans that it waits for. Returns
    /// `None` while these results conflict and the conflict is not resolved.
    pub(super) async fn child_base(
        &self,
        plan: &Plan,
        fanout: &Fanout,
        index: usize,
        children: &Children,
    ) -> Result<Option<String>, EngineError> {
        if let Some(project) = &fanout.pieces[index].project {
            let project = self.project(project.as_str()).await?;
            return self.target_tip(&project, plan.target(&project)).await.map(Some);
        }
        let before = fanout.predecessors(index);
        let pieces: Vec<_> =
            before.iter().map(|at| &fanout.pieces[*at]).filter(|it| it.project.is_none()).collect();
        if pieces.is_empty() {
            return Ok(Some(plan.base_commit.clone()));
        }
        if pieces.iter().all(|piece| matches!(piece.fate, SubplanStatus::Joined { .. })) {
            return Ok(fanout.head.clone().or_else(|| Some(plan.base_commit.clone())));
        }
        // An earlier subplan is still running, so these have not joined yet: merge the results that exist.
        let mut works = Vec::new();
        for piece in pieces {
            let Some(child) = children.of(piece) else { return Ok(None) };
            works.push(ChildWork::of(plan, fanout, piece, child)?);
        }
        let project = self.project(plan.spec.project.as_str()).await?;
        let (repository, mut tip) = (self.repository(&project).await?, commit_id(&plan.base_commit)?);
        task::blocking(move || {
            for work in works {
                match work.put(&repository, &tip)? {
                    JoinResult::Clean(commit) => tip = commit,
                    JoinResult::Conflict { .. } => return Ok(None),
                }
            }
            Ok(Some(tip.to_string()))
        })
        .await
    }

    /// Keeps a merge with its conflict markers, for the agent or person that resolves the conflict.
    async fn marked(
        &self,
        plan: &Plan,
        child: &Plan,
        tree: TreeId,
        onto: &CommitId,
    ) -> Result<CommitId, EngineError> {
        let project = self.project(plan.spec.project.as_str()).await?;
        let (repository, onto) = (self.repository(&project).await?, onto.clone());
        let text = format!("Conflicts of {}\n\n{}\n", name_of(child), trailer(plan.id.as_str()));
        let (parent, child_id, at) = (plan.id.clone(), child.id.clone(), seconds(child));
        task::blocking(move || {
            let author = Signature { at_seconds: at, ..repository.signature(at) };
            let commit = repository.commit(&tree, std::slice::from_ref(&onto), &text, &author)?;
            keep(&repository, &parent, &child_id, &commit)?;
            Ok(commit)
        })
        .await
    }
}

impl ChildWork {
    fn of(plan: &Plan, fanout: &Fanout, piece: &Subplan, child: &Plan) -> Result<ChildWork, EngineError> {
        let favour = match (piece.favour, fanout.merge) {
            (Some(ConflictSide::Parent), _) | (None, MergeStrategy::PreferParent) => Prefer::Ours,
            (Some(ConflictSide::Child), _) | (None, MergeStrategy::PreferChild) => Prefer::Theirs,
            (None, MergeStrategy::ThreeWay | MergeStrategy::Sequential | MergeStrategy::FailOnConflict) => {
                Prefer::Neither
            }
        };
        let style = match fanout.merge {
            MergeStrategy::Sequential => Style::Replayed,
            MergeStrategy::ThreeWay
            | MergeStrategy::FailOnConflict
            | MergeStrategy::PreferParent
            | MergeStrategy::PreferChild => Style::Squashed,
        };
        Ok(ChildWork {
            base: commit_id(&child.base_commit)?,
            head: commit_id(child.head_commit.as_ref().unwrap_or(&child.base_commit))?,
            favour,
            style,
            message: message(plan, child),
            at_seconds: seconds(child),
        })
    }

    /// Applies the work on top of a commit. The same work on the same commit produces the same commit id.
    fn put(&self, repository: &Repository, onto: &CommitId) -> Result<JoinResult, EngineError> {
        if self.base == self.head {
            return Ok(JoinResult::Clean(onto.clone()));
        }
        let steps = match self.style {
            Style::Squashed => vec![(self.base.clone(), self.head.clone())],
            Style::Replayed => repository.line(&self.base, &self.head)?,
        };
        let author = Signature { at_seconds: self.at_seconds, ..repository.signature(self.at_seconds) };
        let mut tip = onto.clone();
        for (base, theirs) in steps {
            let order = MergeRequest { base: &base, ours: &tip, theirs: &theirs, favour: self.favour };
            let tree = match repository.merge_detailed(&order)? {
                DetailedMerge::Clean(tree) => tree,
                DetailedMerge::Conflict { tree, files } => return Ok(JoinResult::Conflict { tree, files }),
            };
            if tree != repository.tree_of(&tip)? {
                tip = repository.commit(&tree, std::slice::from_ref(&tip), &self.message, &author)?;
            }
        }
        Ok(JoinResult::Clean(tip))
    }

    /// Applies the work on top of the joined results, and keeps the resulting commit for the parent.
    fn put_and_keep(
        &self,
        repository: &Repository,
        onto: &CommitId,
        (parent, child): (&PlanId, &PlanId),
    ) -> Result<JoinResult, EngineError> {
        let put = self.put(repository, onto)?;
        match &put {
            // The refs of earlier joins keep this commit, or, if it is the base, the branches that started
            // there.
            JoinResult::Clean(commit) if commit == onto => {}
            JoinResult::Clean(commit) => keep(repository, parent, child, commit)?,
            // `marked` keeps it with its markers when the question is asked.
            JoinResult::Conflict { .. } => {}
        }
        Ok(put)
    }

    /// Returns the unresolved part of a conflict that this work had to resolve: markers in files, and paths
    /// without markers that it did not change. An unchanged path does not show whether the agent looked at
    /// it.
    fn left_open(
        &self,
        repository: &Repository,
        mends: &ResolvesConflict,
    ) -> Result<Option<String>, EngineError> {
        let changed = repository.changes(&self.base, &self.head)?;
        let paths: Vec<_> = changed.into_iter().map(|change| change.path).collect();
        let marked = repository.unresolved(&repository.tree_of(&self.head)?, &paths)?;
        if !marked.is_empty() {
            return Ok(Some(format!("it left conflict markers in {}", marked.join(", "))));
        }
        let touched: Vec<_> = repository
            .changes(&commit_id(&mends.marked)?, &self.head)?
            .into_iter()
            .flat_map(|change| [Some(change.path), change.from])
            .flatten()
            .collect();
        let untouched =
            mends.unmarked.iter().filter(|paths| paths.iter().all(|path| !touched.contains(path)));
        let named: Vec<_> = untouched.filter_map(|paths| paths.first()).map(String::as_str).collect();
        let left = format!("it did not change {}, whose conflict has no markers", named.join(", "));
        Ok((!named.is_empty()).then_some(left))
    }
}

/// Keeps the commit of a subplan's joined result for as long as its parent needs it.
fn keep(
    repository: &Repository,
    parent: &PlanId,
    child: &PlanId,
    commit: &CommitId,
) -> Result<(), EngineError> {
    let name = format!("{JOINS}{parent}/{child}");
    match repository.ref_create(&name, commit)? {
        RefCreated::Created => return Ok(()),
        RefCreated::Exists(found) if found == *commit => return Ok(()),
        // An earlier attempt kept another commit. A person has since decided how to resolve the conflict.
        RefCreated::Exists(found) => match repository.ref_delete(&name, &found)? {
            RefDeleted::Deleted | RefDeleted::Absent => {}
            RefDeleted::Moved { .. } => return Err(EngineError::LeaseLost { key: parent.to_string() }),
        },
    }
    match repository.ref_create(&name, commit)? {
        RefCreated::Created => Ok(()),
        RefCreated::Exists(_) => Err(EngineError::LeaseLost { key: parent.to_string() }),
    }
}

/// Removes the join refs of a plan after it has landed. A failure is only logged: the refs do no harm.
pub(crate) async fn forget_joins(repository: &Repository, plan: &PlanId) {
    let (repository, prefix) = (repository.clone(), format!("{JOINS}{plan}/"));
    let done = task::blocking(move || -> Result<(), EngineError> {
        for (name, commit) in repository.refs(&prefix)? {
            repository.ref_delete(&name, &commit)?;
        }
        Ok(())
    })
    .await;
    if let Err(error) = done {
        tracing::warn!(%plan, error = %drydock_domain::error_chain(&error), "could not remove the refs that were kept for joining");
    }
}

fn message(plan: &Plan, child: &Plan) -> String {
    let task = without_trailers(&child.spec.task);
    let first: String = task.lines().next().unwrap_or_default().chars().take(60).collect();
    let plan = trailer(plan.id.as_str());
    format!("{}: {first}\n\n{plan}\nDrydock-Subplan: {}\n", name_of(child), child.id)
}

fn name_of(child: &Plan) -> String {
    child.place.as_ref().map_or_else(|| child.id.to_string(), |place| place.name.to_string())
}

/// Returns when the work of the subplan was complete. This time never changes, so the merge produces the same
/// commit each time.
fn seconds(child: &Plan) -> i64 {
    child.phase_completed_at.unwrap_or(child.created_at).as_micros() / 1_000_000
}

fn conflicting(piece: usize, child: &Plan, files: &[ConflictFile]) -> SubplanUpdate {
    let paths: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
    let text = format!("its result conflicts with already merged work in {}", paths.join(", "));
    let failure = Failure::new(ErrorClass::SubplanConflict, text);
    SubplanUpdate::Failed { piece, run: child.run.clone(), failure }
}

fn unresolved(piece: usize, child: &Plan, text: String) -> SubplanUpdate {
    let failure = Failure::new(ErrorClass::SubplanConflict, text);
    SubplanUpdate::Failed { piece, run: child.run.clone(), failure }
}

/// Describes one file of a conflict for the agent that resolves it.
fn clashed(file: &ConflictFile) -> ConflictSummary {
    let marks = if file.hunks.is_empty() && file.left_out == 0 {
        ConflictMarkers::None
    } else {
        ConflictMarkers::InFile
    };
    let about = format!("{}: {}", kind(file), file.message.trim());
    ConflictSummary { paths: file.paths().map(str::to_owned).collect(), about, marks }
}

/// Describes one file of a conflict for people and programs, as JSON.
fn told(file: &ConflictFile) -> Value {
    let hunks: Vec<_> = file
        .hunks
        .iter()
        .map(|hunk| json!({ "line": hunk.line, "parent": hunk.ours, "child": hunk.theirs }))
        .collect();
    json!({ "path": file.path, "kind": kind(file), "text": file.message, "hunks": hunks, "left_out": file.left_out })
}

fn kind(file: &ConflictFile) -> String {
    match &file.kind {
        ConflictKind::Content => "content".to_owned(),
        ConflictKind::Binary => "binary".to_owned(),
        ConflictKind::ModifyDelete => "modify_delete".to_owned(),
        ConflictKind::RenameRename => "rename_rename".to_owned(),
        ConflictKind::RenameDelete => "rename_delete".to_owned(),
        ConflictKind::AddAdd => "add_add".to_owned(),
        ConflictKind::Mode => "mode".to_owned(),
        ConflictKind::DirectoryFile => "directory_file".to_owned(),
        ConflictKind::Other(words) => words.clone(),
        _ => "other".to_owned(),
    }
}
