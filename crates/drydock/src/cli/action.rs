//! `drydock action`: create, list, show, remove. The command line reads the file; the server parses it.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use drydock_api::{Code, NewAction, OneAction, Problem};
use serde_json::json;

use super::report::{CliResult, Level, Report};
use super::session::Invocation;
use crate::render;

/// Subcommands of `drydock action`.
#[derive(Debug, Subcommand)]
pub(crate) enum ActionCommand {
    /// Create an action from a TOML file
    Create {
        /// TOML file, - for stdin
        #[arg(long, value_name = "FILE")]
        file: PathBuf,
    },
    /// List actions
    List,
    /// Show an action
    Show {
        /// Action name
        name: String,
    },
    /// Remove an action; plans made from it keep their copy
    Remove {
        /// Action name
        name: String,
    },
}

impl ActionCommand {
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            ActionCommand::Create { .. } => "create",
            ActionCommand::List => "list",
            ActionCommand::Show { .. } => "show",
            ActionCommand::Remove { .. } => "remove",
        }
    }
}

pub(crate) async fn run(session: &Invocation, command: ActionCommand) -> CliResult {
    let client = session.client();
    match command {
        ActionCommand::Create { file } => {
            let new = NewAction { toml: read(&file)?, file: Some(file.display().to_string()) };
            let action = client.action_create(&new).await?;
            let text = render::action::show(&action);
            Ok(Report::new(OneAction { action }, text))
        }
        ActionCommand::List => {
            let actions = client.actions().await?;
            let text = render::action::list(&actions.actions);
            Ok(Report::new(actions, text)
                .or_say("no actions; create one with `drydock action create --file F`"))
        }
        ActionCommand::Show { name } => {
            let action = client.action(&name).await?;
            let text = render::action::show(&action);
            Ok(Report::new(OneAction { action }, text))
        }
        ActionCommand::Remove { name } => {
            client.action_remove(&name).await?;
            Ok(Report::new(json!({ "removed": name }), "")
                .note(Level::Info, format!("removed action {name}")))
        }
    }
}

fn read(file: &Path) -> Result<String, Box<Problem>> {
    let text = if file == Path::new("-") {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(file)
    };
    text.map_err(|error| {
        let text = format!("could not read the action file {}: {error}", file.display());
        let code = if error.kind() == io::ErrorKind::NotFound { Code::NotFound } else { Code::Unparsable };
        Box::new(Problem::new(code, text).hint("check the path given with --file"))
    })
}
