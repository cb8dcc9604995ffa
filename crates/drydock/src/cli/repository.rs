//! Which project a person means who stands in a directory: the one whose repository is there, or a new one.

use std::env;
use std::path::{Path, PathBuf};

use drydock_api::{Client, Code, NewProject, Problem, Project};

use super::screen::Screen;

/// Returns the named project, or that of the current directory, which is added when it is new.
pub(crate) async fn project(
    client: Client<'_>,
    screen: &Screen,
    named: Option<&str>,
) -> Result<Project, Box<Problem>> {
    if let Some(name) = named {
        return Ok(client.project(name).await?);
    }
    let here = here()?;
    let Some(root) = root_of(&here) else {
        let text = format!("{} is not in a git repository", here.display());
        let problem = Problem::new(Code::RepositoryUnusable, text);
        return Err(Box::new(problem.hint("go to one, or name a project with --project")));
    };
    let known = client.projects().await?.projects;
    if let Some(project) = known.iter().find(|project| same(Path::new(&project.repo), &root)) {
        return Ok(project.clone());
    }
    let name = name_of(&root);
    if let Some(other) = known.iter().find(|project| project.name == name) {
        let text = format!("the name {name} belongs to another project, at {}", other.repo);
        let hint = format!("add this one as `drydock project add NAME --repo {}`", root.display());
        return Err(Box::new(Problem::new(Code::Exists, text).hint(hint)));
    }
    let repo = super::project::absolute(&root)?;
    let project = client.project_add(&NewProject { name, repo, ..NewProject::default() }).await?;
    screen
        .tell(&format!("added project {} for {}, landing on {}", project.name, project.repo, project.target));
    Ok(project)
}

fn here() -> Result<PathBuf, Box<Problem>> {
    env::current_dir().and_then(|here| here.canonicalize()).map_err(|error| {
        let text = format!("could not tell the current directory: {error}");
        Box::new(Problem::new(Code::RepositoryUnusable, text).hint("name a project with --project"))
    })
}

/// Returns the nearest directory upwards that is the root of a checkout: `.git` is a folder there, or a file in a
/// linked worktree.
fn root_of(here: &Path) -> Option<PathBuf> {
    here.ancestors().find(|directory| directory.join(".git").exists()).map(Path::to_owned)
}

fn same(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().is_ok_and(|one| one == other)
}

/// Returns a project name made from a directory's: what names cannot hold becomes a dash.
fn name_of(root: &Path) -> String {
    let name = root.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name: String = name.chars().map(|c| if fits(c) { c } else { '-' }).take(100).collect();
    let name = name.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    if name.is_empty() { "project".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drydock_domain::Name;
    use std::fs;

    #[test]
    fn a_directory_makes_a_valid_name() {
        for (path, name) in [
            ("/a/my site", "my-site"),
            ("/a/.dot", "dot"),
            ("/", "project"),
            ("/a/ü", "project"),
            ("/a/x.y", "x.y"),
        ] {
            assert_eq!(name_of(Path::new(path)), name);
            assert!(name.parse::<Name>().is_ok());
        }
    }

    #[test]
    fn the_nearest_checkout_upwards_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b/c");
        fs::create_dir_all(&deep).unwrap();
        assert_eq!(root_of(&deep), root_of(folder.path()));
        fs::write(folder.path().join("a/.git"), "gitdir: elsewhere").unwrap();
        assert_eq!(root_of(&deep), Some(folder.path().join("a")));
    }
}
