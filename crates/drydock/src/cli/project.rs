//! `drydock project`: add, list, show, remove.

use std::path::PathBuf;

use clap::Subcommand;
use drydock_api::{Code, NewProject, NewValidation, OnDivergence, OneProject, Problem};
use serde_json::json;

use super::report::{CliResult, Level, Report};
use super::session::Invocation;
use crate::render;

/// Subcommands of `drydock project`.
#[derive(Debug, Subcommand)]
pub(crate) enum ProjectCommand {
    /// Add a repository
    Add {
        /// Project name
        name: String,
        /// Path of the repository
        #[arg(long, value_name = "PATH")]
        repo: PathBuf,
        /// Branch that plans land on [default: the branch that is checked out]
        #[arg(long, value_name = "BRANCH")]
        target: Option<String>,
        /// Remote that landed work is pushed to and plan branches are synced with
        #[arg(long, value_name = "NAME")]
        remote: Option<String>,
        /// Policy for a divergence, overriding the profile: recover or pause
        #[arg(long, value_name = "POLICY")]
        on_divergence: Option<OnDivergence>,
        /// Shell command that every result must pass; may be given more than once
        #[arg(long, value_name = "CMD")]
        validation: Vec<String>,
    },
    /// List projects
    List,
    /// Show a project
    Show {
        /// Project name
        name: String,
    },
    /// Remove a project; the repository is not touched
    Remove {
        /// Project name
        name: String,
    },
}

impl ProjectCommand {
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            ProjectCommand::Add { .. } => "add",
            ProjectCommand::List => "list",
            ProjectCommand::Show { .. } => "show",
            ProjectCommand::Remove { .. } => "remove",
        }
    }
}

pub(crate) async fn run(session: &Invocation, command: ProjectCommand) -> CliResult {
    let client = session.client();
    match command {
        ProjectCommand::Add { name, repo, target, remote, on_divergence, validation } => {
            let validations = validation
                .into_iter()
                .map(|command| NewValidation { command, ..NewValidation::default() })
                .collect();
            let new = NewProject { name, repo: absolute(&repo)?, target, remote, on_divergence, validations };
            let project = client.project_add(&new).await?;
            let text = render::project::show(&project, session.now());
            Ok(Report::new(OneProject { project }, text))
        }
        ProjectCommand::List => {
            let projects = client.projects().await?;
            let text = render::project::list(&projects.projects);
            Ok(Report::new(projects, text).or_say("no projects; add one with `drydock project add`"))
        }
        ProjectCommand::Show { name } => {
            let project = client.project(&name).await?;
            let text = render::project::show(&project, session.now());
            Ok(Report::new(OneProject { project }, text))
        }
        ProjectCommand::Remove { name } => {
            client.project_remove(&name).await?;
            let said = format!("removed project {name}; its repository was not changed");
            Ok(Report::new(json!({ "removed": name }), "").note(Level::Info, said))
        }
    }
}

/// Returns the absolute path. A server may run in another directory.
pub(crate) fn absolute(path: &std::path::Path) -> Result<String, Box<Problem>> {
    let whole = std::path::absolute(path).map_err(|error| {
        Problem::new(Code::Usage, format!("{} is not a valid path: {error}", path.display()))
    })?;
    let text = whole.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        let text = format!("the path {} is not valid UTF-8", whole.display());
        Box::new(Problem::new(Code::Usage, text).hint("use a path that is valid UTF-8"))
    })
}
