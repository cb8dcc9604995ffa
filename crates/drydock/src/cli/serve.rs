//! `drydock serve` and `drydock worker`.

use std::path::PathBuf;

use clap::{Args, value_parser};
use drydock_domain::counted;
use serde_json::json;

use super::args::Global;
use super::log::LogOptions;
use super::report::{CliResult, Report};
use super::screen::Screen;
use crate::config::TokenPolicy;
use crate::serve::{LinkPolicy, ServeOptions, ServerStarted};
use crate::{config, serve};

/// Arguments of `drydock serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Address to listen on; any but loopback requires that a token with role human exists
    #[arg(long, default_value = "127.0.0.1:7717", value_name = "ADDRESS")]
    listen: String,
    /// Number of plans to run at once; 0 only serves
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = value_parser!(u8).range(0..=64))]
    workers: u8,
    /// Whether requests need a token; can be changed on loopback only [default: required]
    #[arg(long, value_enum, value_name = "WHETHER")]
    tokens: Option<TokenPolicy>,
    /// PEM file with the certificate chain; turns TLS on
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// PEM file with the certificate's key
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) log: LogOptions,
    /// Do not print the sign-in link, e.g. if others can read the output
    #[arg(long)]
    no_link: bool,
}

/// Arguments of `drydock worker`.
#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    #[command(flatten)]
    pub(crate) log: LogOptions,
    /// Number of plans to run at once
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = value_parser!(u8).range(1..=64))]
    workers: u8,
}

pub(crate) async fn serve(global: &Global, screen: &Screen, args: ServeArgs) -> CliResult {
    let (place, config) = config::both(global.store.as_deref(), global.config.as_deref())?;
    let say = |began: &ServerStarted| {
        let needed = match began.tokens {
            TokenPolicy::Optional => "; programs on this machine need no token",
            TokenPolicy::Required => "",
        };
        screen.info(&format!(
            "serving on {} with {}{needed}; Ctrl-C stops",
            began.at,
            counted(args.workers, "worker")
        ));
        if began.is_open_to_listeners {
            screen.info(
                "warning: without TLS, tokens can be read on the network; use --tls-cert and --tls-key",
            );
        }
        if let Some(link) = &began.link {
            screen.info(&format!("open {link} to sign in (works once, within ten minutes)"));
        }
    };
    let tls = args.tls_cert.zip(args.tls_key);
    let link = if args.no_link { LinkPolicy::Unasked } else { LinkPolicy::Wanted };
    let workers = usize::from(args.workers);
    let wish = ServeOptions { listen: &args.listen, workers, tokens: args.tokens, tls, link };
    serve::serve(&place, config, wish, say).await?;
    Ok(Report::new(json!({}), "").or_say("stopped; all locks are released"))
}

pub(crate) async fn worker(global: &Global, screen: &Screen, args: WorkerArgs) -> CliResult {
    let (place, config) = config::both(global.store.as_deref(), global.config.as_deref())?;
    screen.info(&format!("working with {}; Ctrl-C stops", counted(args.workers, "worker")));
    serve::work(&place, config, usize::from(args.workers)).await?;
    Ok(Report::new(json!({}), "").or_say("stopped; all locks are released"))
}
