//! `drydock gc`.

use clap::Args;
use drydock_api::{GcRequest, OneGc};

use super::report::{CliResult, Report};
use super::session::Invocation;
use crate::render;

/// Arguments of `drydock gc`.
#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// Print what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(session: &Invocation, args: GcArgs) -> CliResult {
    let gc = session.client().gc(&GcRequest { dry_run: args.dry_run }).await?;
    let text = render::gc::report(&gc);
    Ok(Report::new(OneGc { gc }, text).or_say("nothing to remove"))
}
