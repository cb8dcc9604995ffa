//! Finds the project of a task and the branch that the result lands on.

use std::env;
use std::ffi::OsString;
use std::path::Path;

use drydock_api::{Client, Code, NewProject, Problem, Project};
use drydock_domain::{BRANCHES, shell_word};
use drydock_engine::EngineError;
use drydock_worktree::{Git, GitError};

use super::repository::{Stand, name_of, stand};
use super::screen::Screen;
use crate::http::problem;

/// A project, and the branch of it that a task lands on.
pub(crate) struct TaskTarget {
    pub(crate) project: Project,
    pub(crate) target: String,
}

/// Returns the project and the branch of a task. The project is the named one, or the one of the current directory,
/// which is added if it is new. The branch is the named one, or the one checked out in the current directory. Nothing
/// is added before both are known.
pub(crate) async fn ground(
    client: Client<'_>,
    screen: &Screen,
    named: Option<&str>,
    target: Option<&str>,
) -> Result<TaskTarget, Box<Problem>> {
    if let Some(name) = named {
        let project = client.project(name).await?;
        let target = match (target, stand().ok().filter(|stand| stand.is_in(&project))) {
            (Some(target), _) => target.to_owned(),
            (None, Some(stand)) => branch_at(&stand.root, Some(&project))?,
            (None, None) => project.target.clone(),
        };
        return Ok(TaskTarget { project, target });
    }
    let stand = stand()?;
    let known = client.projects().await?.projects;
    let project = known.iter().find(|project| stand.is_in(project));
    let target = match target {
        Some(target) => target.to_owned(),
        None => branch_at(&stand.root, project)?,
    };
    let project = match project {
        Some(project) => project.clone(),
        None => added(client, screen, &known, &stand, &target).await?,
    };
    Ok(TaskTarget { project, target })
}

async fn added(
    client: Client<'_>,
    screen: &Screen,
    known: &[Project],
    stand: &Stand,
    target: &str,
) -> Result<Project, Box<Problem>> {
    let main = stand.main.display().to_string();
    let name = name_of(&stand.main);
    if let Some(other) = known.iter().find(|project| project.name == name) {
        let text = format!("the project name {name} is already used for {}", other.repo);
        let hint = format!(
            "add this repository under another name: `drydock project add NAME --repo {}`",
            shell_word(&main)
        );
        return Err(Box::new(Problem::new(Code::Exists, text).hint(hint)));
    }
    let git = Git::find().map_err(failed)?;
    // The task's branch becomes the project's target only if the main worktree has no branch checked out.
    let detached = git.branch_at(&stand.main).map_err(failed)?.is_none();
    let own = detached.then(|| target.to_owned());
    let repo = super::project::absolute(&stand.main)?;
    let project =
        client.project_add(&NewProject { name, repo, target: own, ..NewProject::default() }).await?;
    screen.info(&format!("added project {} for {}; this task lands on {target}", project.name, project.repo));
    Ok(project)
}

/// Returns the branch that is checked out, or an error that suggests to name one: with a detached HEAD there is no
/// branch to land on.
fn branch_at(root: &Path, project: Option<&Project>) -> Result<String, Box<Problem>> {
    let git = Git::find().map_err(failed)?;
    if let Some(branch) = git.branch_at(root).map_err(failed)? {
        return Ok(branch);
    }
    let branches = git.branches_at(root).map_err(failed)?;
    let is_known = |target: &&str| branches.iter().any(|branch| branch == target);
    let first = || branches.iter().map(String::as_str).find(|branch| !branch.starts_with(BRANCHES));
    let other = project.map(|project| project.target.as_str()).filter(is_known).or_else(first);
    let hint = match other {
        Some(other) => format!("name a branch: `{}`", again(env::args_os(), other)),
        None => format!("create a branch: `git -C {} switch -c main`", shell_word(&root.to_string_lossy())),
    };
    let text = format!("no branch to land on: none is checked out in {}", root.display());
    Err(Box::new(Problem::new(Code::Usage, text).hint(hint)))
}

/// Returns the command as it was typed, with `--target` added.
fn again(words: impl Iterator<Item = OsString>, target: &str) -> String {
    let mut shown = vec!["drydock".to_owned()];
    let mut missing = true;
    for word in words.skip(1) {
        let word = word.to_string_lossy();
        shown.push(shell_word(&word).into_owned());
        if missing && word == "run" {
            shown.extend(["--target".to_owned(), shell_word(target).into_owned()]);
            missing = false;
        }
    }
    shown.join(" ")
}

fn failed(error: GitError) -> Box<Problem> {
    Box::new(problem(&EngineError::Git(error)))
}

#[cfg(test)]
mod tests {
    use super::again;

    /// Breaks if the command suggested on a detached HEAD is not the one that was typed (N12).
    #[test]
    fn a_command_is_repeated_with_a_target() {
        let typed = ["/usr/bin/drydock", "--store", "a b", "run", "run", "--", "-x it's"];
        let shown = again(typed.iter().map(Into::into), "main");
        assert_eq!(shown, r"drydock --store 'a b' run --target main run -- '-x it'\''s'");
    }
}
