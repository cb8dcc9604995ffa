//! `drydock serve` and `drydock worker`.

use clap::{Args, value_parser};
use serde_json::json;

use super::args::Global;
use super::report::{Outcome, Report};
use super::screen::Screen;
use crate::{config, serve};

/// Serves the HTTP interface on loopback, and works.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where to listen; loopback only
    #[arg(long, default_value = "127.0.0.1:7717", value_name = "ADDRESS")]
    listen: String,
    /// How many plans to run at once; 0 only serves
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = value_parser!(u8).range(0..=64))]
    workers: u8,
}

/// Works on queued plans until told to stop.
#[derive(Debug, Args)]
pub(crate) struct Worker {
    /// How many plans to run at once
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = value_parser!(u8).range(1..=64))]
    workers: u8,
}

pub(crate) async fn serve(global: &Global, screen: &Screen, args: Serve) -> Outcome {
    let (place, config) = config::both(global.store.as_deref(), global.config.as_deref())?;
    let say =
        |link: &str| screen.tell(&format!("serving on {link} with {} workers; Ctrl-C stops", args.workers));
    serve::serve(&place, config, &args.listen, usize::from(args.workers), say).await?;
    Ok(Report::new(json!({}), "").or_say("stopped; every lock is released"))
}

pub(crate) async fn worker(global: &Global, screen: &Screen, args: Worker) -> Outcome {
    let (place, config) = config::both(global.store.as_deref(), global.config.as_deref())?;
    screen.tell(&format!("working with {} workers; Ctrl-C stops", args.workers));
    serve::work(&place, config, usize::from(args.workers)).await?;
    Ok(Report::new(json!({}), "").or_say("stopped; every lock is released"))
}
