//! Run directories of earlier runs. The work in a directory becomes a checkpoint before the directory is
//! removed, so that a crash, a retry or a clean-up never loses an agent's work (INV-KEEP). A live run holds
//! an operating system lock on its directory, so that not even a process that lost its lease can remove it by
//! mistake. Only a holder of the plan with a newer fence may move the directory of a live run away: the
//! process of that run is frozen, or has not noticed yet that it lost the plan.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use drydock_domain::{
    BackupRef, Event, Fence, PINS, Phase, Plan, PlanId, RunId, SNAPSHOTS, error_chain, trailer,
};
use drydock_worktree::{BackupRequest, Checkout, CommitId, GitError, Repository, make_folder, remove_folder};

use super::link::{PutBack, restore_links};
use super::scope::{commit_id, is_checkpoint, kept_by, signature, write_checkpoint};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::hold::PlanLockGuard;
use crate::task;

/// The lock file of a live run.
const ALIVE: &str = "alive";
/// The worktree in a run directory.
pub(super) const TREE: &str = "tree";
/// The worktree in which the reviewers of a run read a proposal.
pub(super) const REVIEW: &str = "review";
/// The agent's home directory.
pub(super) const TEMP: &str = "temp";
/// The directory to which run directories are moved if their work cannot be captured.
const KEPT: &str = "kept";

/// The directory of an earlier run.
#[derive(Debug, Clone)]
pub(crate) struct OldRunDir {
    pub(crate) path: PathBuf,
    pub(crate) run: String,
}

/// How the work in a run directory was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeptWork {
    /// Nothing differed from the base.
    Nothing,
    /// This ref, a checkpoint or a backup, keeps the work.
    Snapshot(String),
    /// The work cannot be captured, so the directory itself was moved here.
    Directory { path: PathBuf, reason: String },
}

impl RemovedRunDir {
    /// Returns the alerts about `.git` files that were missing or replaced (F8).
    pub(crate) fn link_alerts(&self, plan: &PlanId, leftover: &OldRunDir) -> Vec<Event> {
        self.links.iter().map(|link| link.alert(&leftover.run, plan)).collect()
    }
}

/// The result of removing a run directory.
#[derive(Debug)]
pub(crate) struct RemovedRunDir {
    pub(crate) work: KeptWork,
    /// The backup of commits on no branch and of staged content, if there were any.
    pub(crate) pin: Option<BackupRef>,
    /// The `.git` files that were missing or replaced.
    pub(super) links: Vec<PutBack>,
}

/// How to keep work that no checkpoint has yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// As a checkpoint of the plan, which is removed when the plan lands.
    Checkpoint,
    /// As a backup: the run already had a result, so this work was written later and does not land.
    Backup,
}

/// The lock of a live run on its directory. It is released on drop and when the process dies.
#[derive(Debug)]
pub(crate) struct RunDirLock {
    file: File,
}

impl Drop for RunDirLock {
    /// Unlocks explicitly. Closing the file is not enough: a git process that another thread is just starting
    /// has a copy of the file, and with it the lock, until it executes (BUG-13).
    fn drop(&mut self) {
        if let Err(error) = self.file.unlock() {
            tracing::warn!(error = %error_chain(&error), "could not unlock the directory of a run");
        }
    }
}

/// The owner of an earlier run's directory.
enum RunDirOwner {
    /// This process, which took the lock of the run if there was one.
    Ours { _alive: Option<RunDirLock> },
    /// A run that is still alive under an older fence. It can no longer commit.
    Superseded,
}

/// The directory of a plan's latest run, if that run has ended.
pub(crate) enum LatestRunDir {
    /// Claimed by this process until the lock is dropped.
    Checkout { checkout: Checkout, _alive: Option<RunDirLock> },
    /// The directory is missing, or has another branch than the plan's.
    Nothing,
    /// The directory was moved to `kept`, which these alerts report.
    PutBy { alerts: Vec<Event> },
}

/// Claims the directory of an interrupted run. Returns `None` if it is not on this machine, or if a process
/// that lost the plan still writes there.
pub(super) fn claim_interrupted(
    worktrees: &Path,
    plan: &Plan,
    run: &RunId,
    fence: Fence,
    repository: &Repository,
) -> Result<Option<(OldRunDir, Option<RunDirLock>)>, EngineError> {
    let Some(leftover) = directory_of(worktrees, plan, run, repository) else { return Ok(None) };
    Ok(match claim(&leftover, fence)? {
        RunDirOwner::Ours { _alive } => Some((leftover, _alive)),
        RunDirOwner::Superseded => None,
    })
}

/// Finds the directory of a run: among ours, or else where another drydock on the same repository stores its
/// own.
fn directory_of(worktrees: &Path, plan: &Plan, run: &RunId, repository: &Repository) -> Option<OldRunDir> {
    let own = OldRunDir { path: worktrees.join(plan.id.as_str()).join(run.as_str()), run: run.to_string() };
    if own.path.exists() {
        return Some(own);
    }
    strays(repository.linked_trees(), worktrees, &plan.id).into_iter().find(|stray| stray.run == own.run)
}

/// Claims the directory of a plan's latest run, as holder of the plan with this fence. If a process that lost
/// the plan is still running there, the directory is moved to `kept` instead.
pub(crate) fn claim_latest(
    worktrees: &Path,
    plan: &Plan,
    fence: Fence,
    repository: &Repository,
) -> Result<LatestRunDir, EngineError> {
    let Some(run) = &plan.run else { return Ok(LatestRunDir::Nothing) };
    let Some(leftover) = directory_of(worktrees, plan, run, repository) else {
        return Ok(LatestRunDir::Nothing);
    };
    match claim(&leftover, fence)? {
        RunDirOwner::Superseded => {
            let reason = "the process that ran it lost the lock of the plan and has not ended".to_owned();
            let (work, links) = move_to_kept(repository, &plan.id, &leftover, reason)?;
            Ok(LatestRunDir::PutBy { alerts: put_by_alerts(&plan.id, &leftover, &work, &links) })
        }
        RunDirOwner::Ours { _alive } => {
            let checkout = repository.checkout_open(&leftover.path.join(TREE))?;
            Ok(match checkout.filter(|checkout| checkout.branch() == Some(plan.branch().as_str())) {
                Some(checkout) => LatestRunDir::Checkout { checkout, _alive },
                None => LatestRunDir::Nothing,
            })
        }
    }
}

/// Creates a run directory and takes its lock.
pub(crate) fn lock_run_dir(directory: &Path) -> io::Result<RunDirLock> {
    make_folder(&directory.join(TEMP))?;
    let file =
        File::options().create(true).truncate(true).write(true).mode(0o600).open(directory.join(ALIVE))?;
    match file.try_lock() {
        Ok(()) => Ok(RunDirLock { file }),
        Err(TryLockError::WouldBlock) => {
            Err(io::Error::new(ErrorKind::ResourceBusy, "another process runs it"))
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Returns true if a process holds the lock of a run directory. Writes nothing.
pub(crate) fn is_occupied(directory: &Path) -> io::Result<bool> {
    let file = match File::open(directory.join(ALIVE)) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Creates a run directory, takes its lock, and writes the fence into the lock file.
pub(crate) fn occupy_under(fence: Fence, directory: &Path) -> io::Result<RunDirLock> {
    let mut alive = lock_run_dir(directory)?;
    alive.file.write_all(fence.0.to_string().as_bytes())?;
    Ok(alive)
}

/// Lists the run directories of a plan.
pub(crate) fn leftovers(worktrees: &Path, plan: &PlanId) -> io::Result<Vec<OldRunDir>> {
    let entries = match fs::read_dir(worktrees.join(plan.as_str())) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        found.push(OldRunDir { path: entry.path(), run: entry.file_name().to_string_lossy().into_owned() });
    }
    Ok(found)
}

/// Returns the run directories of a plan that are not among ours: another drydock with the same store and
/// repository has its worktrees elsewhere, or ours were moved.
fn strays(trees: Vec<PathBuf>, worktrees: &Path, plan: &PlanId) -> Vec<OldRunDir> {
    let own = fs::canonicalize(worktrees).unwrap_or_else(|_| worktrees.to_owned());
    let stray = |tree: PathBuf| {
        let run = tree.parent().filter(|_| tree.ends_with(TREE))?;
        let (name, folder) = (run.file_name()?, run.parent()?);
        let home = folder.parent()?;
        // A directory in `kept` stays there, even if git lists it as a worktree.
        let is_stray =
            folder.ends_with(plan.as_str()) && home != own && !home.ends_with(KEPT) && tree.exists();
        is_stray.then(|| OldRunDir { path: run.to_owned(), run: name.to_string_lossy().into_owned() })
    };
    trees.into_iter().filter_map(stray).collect()
}

/// Keeps the work in a run directory and removes the directory, as holder of the plan with this fence. Fails
/// if the run is alive, unless its fence is older.
pub(crate) fn remove_leftover(
    repository: &Repository,
    plan: &PlanId,
    base: &CommitId,
    fence: Fence,
    leftover: &OldRunDir,
    rest: Rest,
) -> Result<RemovedRunDir, EngineError> {
    let alone = |(work, links)| RemovedRunDir { work, pin: None, links };
    let _alive = match claim(leftover, fence)? {
        RunDirOwner::Ours { _alive } => _alive,
        RunDirOwner::Superseded => {
            let reason = "the process that ran it lost the lock of the plan and has not ended".to_owned();
            return move_to_kept(repository, plan, leftover, reason).map(alone);
        }
    };
    forget_home(&leftover.path);
    let tree = leftover.path.join(TREE);
    match work_in(repository, plan, base, leftover, rest)? {
        Ok(removed) => {
            repository.checkout_remove(&tree)?;
            // An interrupted review left its own worktree.
            let review = leftover.path.join(REVIEW);
            if fs::symlink_metadata(&review).is_ok() {
                repository.checkout_remove(&review)?;
            }
            remove_directory(&leftover.path)?;
            Ok(removed)
        }
        Err(reason) => move_to_kept(repository, plan, leftover, reason).map(alone),
    }
}

/// Keeps the work in a worktree, or returns why the repository cannot keep it. A git process that was killed
/// or ran out of resources is an error: nothing is wrong with the work.
fn work_in(
    repository: &Repository,
    plan: &PlanId,
    base: &CommitId,
    leftover: &OldRunDir,
    rest: Rest,
) -> Result<Result<RemovedRunDir, String>, EngineError> {
    let tree = &leftover.path.join(TREE);
    let nothing = RemovedRunDir { work: KeptWork::Nothing, pin: None, links: Vec::new() };
    let Some(checkout) = repository.checkout_open(tree)? else {
        let lost = "git's record of the worktree is missing".to_owned();
        return Ok(if is_empty(tree) { Ok(nothing) } else { Err(lost) });
    };
    if repository.is_half_made(&checkout) {
        return Ok(Ok(nothing));
    }
    let kept = || -> Result<RemovedRunDir, EngineError> {
        let pin = keep_rest(repository, plan, leftover, &checkout)?;
        let is_there = fs::symlink_metadata(tree).is_ok();
        let work = if is_there {
            capture(repository, &checkout, plan, base, leftover, rest)?
        } else {
            KeptWork::Nothing
        };
        Ok(RemovedRunDir { work, pin, links: Vec::new() })
    };
    match kept() {
        Ok(removed) => Ok(Ok(removed)),
        Err(EngineError::Git(error)) if error.is_starved() => Err(error.into()),
        Err(error @ EngineError::Interrupted) => Err(error),
        Err(error) => Ok(Err(error_chain(&error))),
    }
}

/// Removes the directory of a run that changed nothing. If this fails, the next run or `gc` does it.
pub(super) fn remove_untouched(repository: &Repository, run: &Path) {
    let removed = || -> Result<(), EngineError> {
        repository.checkout_remove(&run.join(TREE))?;
        remove_directory(run)?;
        run.parent().map_or(Ok(()), remove_empty)
    };
    if let Err(error) = removed() {
        tracing::warn!(error = %error_chain(&error), run = %run.display(), "could not remove the directory of a run that did nothing");
    }
}

/// Removes the temporary directory of an ended run. It is the agent's home and may contain a copy of a login.
/// If this fails, the rest is removed with the run directory.
pub(crate) fn forget_home(run: &Path) {
    match remove_folder(&run.join(TEMP)) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::warn!(error = %error_chain(&error), run = %run.display(), "could not remove the home of a run's agent");
        }
        Ok(()) | Err(_) => {}
    }
}

/// Backs up content that a capture of the files lacks: commits on no branch, and staged content.
fn keep_rest(
    repository: &Repository,
    plan: &PlanId,
    leftover: &OldRunDir,
    checkout: &Checkout,
) -> Result<Option<BackupRef>, EngineError> {
    let signature = signature(repository);
    let reason = "a run ended and left more than its files";
    let order =
        BackupRequest { plan: plan.as_str(), run: Some(&leftover.run), reason, signature: &signature };
    Ok(repository.backup_checkout(&order, checkout)?)
}

fn claim(leftover: &OldRunDir, fence: Fence) -> Result<RunDirOwner, EngineError> {
    let mut file = match File::open(leftover.path.join(ALIVE)) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(RunDirOwner::Ours { _alive: None }),
        Err(source) => return Err(failed("open", &leftover.path, source)),
    };
    match file.try_lock() {
        Ok(()) => Ok(RunDirOwner::Ours { _alive: Some(RunDirLock { file }) }),
        Err(TryLockError::WouldBlock) => match fence_in(&mut file) {
            Some(theirs) if theirs < fence => Ok(RunDirOwner::Superseded),
            // The lock belongs to a newer holder, or to one that is just starting: this process lost the
            // plan.
            Some(_) | None => Err(EngineError::LeaseLost { key: leftover.run.clone() }),
        },
        Err(TryLockError::Error(source)) => Err(failed("lock", &leftover.path, source)),
    }
}

fn fence_in(file: &mut File) -> Option<Fence> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.parse().ok().map(Fence)
}

/// Keeps the files of a worktree as a checkpoint or backup, unless a checkpoint already has them.
fn capture(
    repository: &Repository,
    checkout: &Checkout,
    plan: &PlanId,
    base: &CommitId,
    leftover: &OldRunDir,
    rest: Rest,
) -> Result<KeptWork, EngineError> {
    let message = kept_by(&leftover.run, &format!("work of {} of {plan}", leftover.run), plan.as_str());
    let captured = checkout.capture_change(base, &message, &signature(repository))?;
    let Some(captured) = captured else { return Ok(KeptWork::Nothing) };
    // No run continues from it automatically, so any checkpoint with the same files is enough.
    let prefix = format!("{SNAPSHOTS}{plan}/");
    let kept = repository.ref_trees(&prefix)?;
    if let Some((name, ..)) = kept.into_iter().find(|(_, tree, _)| *tree == captured.tree) {
        return Ok(KeptWork::Snapshot(name));
    }
    match rest {
        Rest::Checkpoint => write_checkpoint(repository, plan.as_str(), &captured).map(KeptWork::Snapshot),
        Rest::Backup => {
            let signature = signature(repository);
            let reason = "files that were changed after the result of the plan";
            let order = BackupRequest {
                plan: plan.as_str(),
                run: Some(&leftover.run),
                reason,
                signature: &signature,
            };
            Ok(KeptWork::Snapshot(repository.backup_branch(&order, &captured.commit)?.name))
        }
    }
}

/// Moves a run directory with all its content to `kept`, and frees the branch that it had checked out. Also
/// returns the `.git` files that were missing or replaced.
pub(super) fn move_to_kept(
    repository: &Repository,
    plan: &PlanId,
    leftover: &OldRunDir,
    reason: String,
) -> Result<(KeptWork, Vec<PutBack>), EngineError> {
    let worktrees = leftover.path.parent().and_then(Path::parent).unwrap_or(Path::new("."));
    let path = worktrees.join(KEPT).join(plan.as_str()).join(&leftover.run);
    let parent = path.parent().unwrap_or(worktrees);
    make_folder(parent).map_err(|source| failed("make", parent, source))?;
    // A later git command in that directory must not run programs from a `.git` that the agent left.
    let links = restore_links(repository, &leftover.path);
    fs::rename(&leftover.path, &path).map_err(|source| failed("move", &leftover.path, source))?;
    repository.checkout_remove(&leftover.path.join(TREE))?;
    let links = links.into_iter().map(|link| link.moved(&leftover.path, &path)).collect();
    Ok((KeptWork::Directory { path, reason }, links))
}

fn is_empty(tree: &Path) -> bool {
    match fs::read_dir(tree) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

fn remove_directory(path: &Path) -> Result<(), EngineError> {
    match remove_folder(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed("remove", path, error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Removes the directory of a plan if it contains no run directories.
pub(crate) fn remove_empty(directory: &Path) -> Result<(), EngineError> {
    match fs::remove_dir(directory) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => {
            Err(failed("remove", directory, error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

fn failed(verb: &str, path: &Path, source: io::Error) -> EngineError {
    EngineError::File { attempt: format!("{verb} {}", path.display()), source }
}

/// Backs up the commits of a branch that nothing else keeps, because the next run starts elsewhere. Returns
/// the backup if drydock did not make all of its commits.
fn keep_branch(
    repository: &Repository,
    plan: &PlanId,
    base: &CommitId,
    branch: &str,
) -> Result<Option<BackupRef>, GitError> {
    let Some(tip) = repository.branch_tip(branch)? else { return Ok(None) };
    let likely = [format!("{SNAPSHOTS}{plan}/"), format!("{PINS}{plan}/")];
    if repository.branch_is_kept_elsewhere(branch, &likely)? {
        return Ok(None);
    }
    // A commit made by drydock whose files a checkpoint already has needs no backup.
    if is_checkpoint(repository, plan.as_str(), std::slice::from_ref(base), &tip)? {
        return Ok(None);
    }
    let signature = signature(repository);
    let reason = "a run ended and left commits on the branch";
    let order = BackupRequest { plan: plan.as_str(), run: None, reason, signature: &signature };
    let pin = repository.backup_branch(&order, &tip)?;
    // Commits of subplans have the same trailer with another plan.
    let by_others = repository.has_foreign_commits(std::slice::from_ref(base), &tip, &trailer(""))?;
    Ok(by_others.then_some(pin))
}

/// Returns the alert that names the backup of commits or staged content which no run recorded. The plan
/// continues without them.
fn set_aside_alert(place: &str, pin: &BackupRef) -> Event {
    let backup = pin.name.trim_start_matches(PINS);
    let text = format!(
        "commits or staged changes {place} were not made by drydock; they are not part of the plan's work \
         and are kept as backup {backup}; see `drydock backup show {backup}`, or restore with `drydock backup restore {backup} --branch NAME`"
    );
    Event::Alert { priority: "high", text }
}

/// Returns the alerts about a run directory: one for each `.git` that was missing or replaced (F8), and one
/// with the location of the work if no commit contains it.
pub(super) fn put_by_alerts(
    plan: &PlanId,
    leftover: &OldRunDir,
    work: &KeptWork,
    links: &[PutBack],
) -> Vec<Event> {
    let mut alerts: Vec<_> = links.iter().map(|link| link.alert(&leftover.run, plan)).collect();
    if let KeptWork::Directory { path, reason } = work {
        let text = format!("the work of {} is kept in {}: {reason}", leftover.run, path.display());
        alerts.push(Event::Alert { priority: "high", text });
    }
    alerts
}

/// Keeps the work of all earlier runs of a plan and removes their directories, so that a new run starts
/// clean. Emits alerts about directories that were kept as a whole and about commits that drydock did not
/// make, because a person should look at them.
pub(crate) async fn clear_earlier_runs(
    engine: &Engine,
    hold: &PlanLockGuard,
    plan: &Plan,
    repository: &Repository,
) -> Result<(), EngineError> {
    let (worktrees, fence) = (engine.settings().worktrees.clone(), hold.lease().fence());
    let (id, base, repository) = (plan.id.clone(), commit_id(&plan.base_commit)?, repository.clone());
    let branch = plan.branch();
    let result = plan.head_run.clone().filter(|_| plan.stage.phase() == Phase::Apply);
    let alerts = task::blocking(move || -> Result<Vec<Event>, EngineError> {
        let own = worktrees.join(id.as_str());
        let mut found = leftovers(&worktrees, &id).map_err(|source| failed("list", &own, source))?;
        let trees = repository.linked_trees();
        let home = fs::canonicalize(&own).unwrap_or_else(|_| own.clone());
        let gone: Vec<PathBuf> =
            trees.iter().filter(|tree| tree.starts_with(&home) && !tree.exists()).cloned().collect();
        found.extend(strays(trees, &worktrees, &id));
        let mut alerts = Vec::new();
        for leftover in found {
            let after_result = result.as_ref().is_some_and(|run| run.as_str() == leftover.run);
            let rest = if after_result { Rest::Backup } else { Rest::Checkpoint };
            let removed = remove_leftover(&repository, &id, &base, fence, &leftover, rest)?;
            let RemovedRunDir { work, pin, links } = removed;
            tracing::debug!(run = leftover.run, ?work, "cleared the directory of an ended run");
            alerts.extend(put_by_alerts(&id, &leftover, &work, &links));
            let place = format!("in the worktree of {}", leftover.run);
            alerts.extend(pin.map(|pin| set_aside_alert(&place, &pin)));
        }
        for tree in gone {
            // Git does not prune a locked worktree record, so each one is removed explicitly.
            repository.checkout_remove(&tree)?;
        }
        remove_empty(&own)?;
        let kept = keep_branch(&repository, &id, &base, &branch)?;
        alerts.extend(kept.map(|pin| set_aside_alert(&format!("on {branch}"), &pin)));
        Ok(alerts)
    })
    .await?;
    if alerts.is_empty() { Ok(()) } else { engine.emit(hold, alerts).await }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use drydock_domain::Fence;

    use super::{OldRunDir, RunDirOwner, claim, occupy_under};
    use crate::error::EngineError;

    /// BUG-13. Breaks when a copy of the lock file, as a starting process has for a moment, keeps the lock of
    /// an ended run.
    #[test]
    fn a_copy_of_its_file_does_not_keep_a_run_alive() {
        let folder = tempfile::tempdir().unwrap();
        let leftover = OldRunDir { path: folder.path().join("run"), run: "run".to_owned() };
        fs::create_dir(&leftover.path).unwrap();
        let alive = occupy_under(Fence(3), &leftover.path).unwrap();
        let copy = alive.file.try_clone().unwrap();
        assert!(matches!(claim(&leftover, Fence(3)), Err(EngineError::LeaseLost { .. })));
        drop(alive);
        let claimed = claim(&leftover, Fence(3));
        assert!(matches!(claimed, Ok(RunDirOwner::Ours { _alive: Some(_) })));
        drop((copy, claimed));
    }
}
