//! `drydock demo`.

use clap::Args;

use super::report::{CliResult, Report};
use super::screen::Screen;
use crate::demo;

/// Arguments of `drydock demo`.
#[derive(Debug, Args)]
pub(crate) struct Demo {}

pub(crate) async fn run(screen: &Screen, _args: Demo) -> CliResult {
    let mut said = Ok(());
    let mut say = |line: String| {
        if !screen.is_json()
            && let Err(problem) = screen.print(&format!("{line}\n"))
        {
            said = Err(problem);
        }
    };
    let shown = demo::run(&mut say).await?;
    said?;
    Ok(Report::new(shown.data, ""))
}
