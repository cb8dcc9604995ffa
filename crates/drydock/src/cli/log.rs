//! The program's own log, on stderr: off unless `DRYDOCK_LOG` names what to tell, because setting it up costs every start.
//! `serve` and `worker` tell what they do when they are asked for it in a format.

use std::io;

use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;

/// What is told when a format is asked for and nothing else.
const USUAL: &str = "info";

/// How a server or a worker tells what it does.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Log {
    /// Tell on stderr what is done, as lines of text or of JSON [default: nothing, unless DRYDOCK_LOG says what]
    #[arg(long, value_enum, value_name = "FORMAT", env = "DRYDOCK_LOG_FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
}

/// What a line of the log looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// For programs: an object a line
    Json,
}

/// Begins to log when `DRYDOCK_LOG` is set, e.g. to `drydock=debug`, or a format is asked for.
pub(crate) fn begin(format: Option<LogFormat>) {
    let wanted = std::env::var_os("DRYDOCK_LOG");
    let wanted = match (&wanted, format) {
        (None, None) => return,
        (Some(wanted), _) => wanted.to_string_lossy(),
        (None, Some(_)) => USUAL.into(),
    };
    let log = tracing_subscriber::fmt().with_env_filter(EnvFilter::new(wanted)).with_writer(io::stderr);
    match format {
        Some(LogFormat::Json) => log.json().flatten_event(true).init(),
        Some(LogFormat::Text) | None => log.init(),
    }
}
