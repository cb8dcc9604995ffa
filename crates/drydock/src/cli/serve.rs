//! `drydock serve` and `drydock worker`.

use clap::{Args, value_parser};
use serde_json::json;

use super::args::Global;
use super::report::{Outcome, Report};
use super::screen::Screen;
use crate::config::Tokens;
use crate::serve::Wish;
use crate::{config, serve};

/// Serves the HTTP interface, and works.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where to listen; anything but loopback needs a token of a person to exist
    #[arg(long, default_value = "127.0.0.1:7717", value_name = "ADDRESS")]
    listen: String,
    /// How many plans to run at once; 0 only serves
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = value_parser!(u8).range(0..=64))]
    workers: u8,
    /// Whether requests need a token; always so when others can reach it [default: optional]
    #[arg(long, value_enum, value_name = "WHETHER")]
    tokens: Option<Tokens>,
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
    let say = |link: &str, tokens: Tokens| {
        let needed = match tokens {
            Tokens::Optional => "",
            Tokens::Required => ", for those with a token",
        };
        screen.tell(&format!("serving on {link} with {} workers{needed}; Ctrl-C stops", args.workers));
    };
    let wish = Wish { listen: &args.listen, workers: usize::from(args.workers), tokens: args.tokens };
    serve::serve(&place, config, wish, say).await?;
    Ok(Report::new(json!({}), "").or_say("stopped; every lock is released"))
}

pub(crate) async fn worker(global: &Global, screen: &Screen, args: Worker) -> Outcome {
    let (place, config) = config::both(global.store.as_deref(), global.config.as_deref())?;
    screen.tell(&format!("working with {} workers; Ctrl-C stops", args.workers));
    serve::work(&place, config, usize::from(args.workers)).await?;
    Ok(Report::new(json!({}), "").or_say("stopped; every lock is released"))
}
