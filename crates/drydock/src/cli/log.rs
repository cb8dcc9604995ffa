//! The program's own log, on stderr: off unless `DRYDOCK_LOG` names what to tell, because setting it up costs every start.
//! `serve` and `worker` tell what they do when they are asked for it in a format.

use std::io;

use clap::{Args, ValueEnum};
use drydock_engine::TRACE;
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::telemetry::Traces;

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

/// Begins to log when `DRYDOCK_LOG` is set, e.g. to `drydock=debug`, or a format is asked for; and to trace, when there
/// is somebody to tell. Spans that are for traces are in no line of the log.
pub(crate) fn begin(format: Option<LogFormat>, traces: Option<&Traces>) {
    let wanted = std::env::var_os("DRYDOCK_LOG");
    let wanted = match (&wanted, format) {
        (None, None) => None,
        (Some(wanted), _) => Some(wanted.to_string_lossy()),
        (None, Some(_)) => Some(USUAL.into()),
    };
    let lines = wanted.map(|wanted| {
        let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
        let lines: Box<dyn Layer<Registry> + Send + Sync> = match format {
            Some(LogFormat::Json) => lines.json().flatten_event(true).boxed(),
            Some(LogFormat::Text) | None => lines.boxed(),
        };
        lines.with_filter(EnvFilter::new(wanted).and(filter_fn(|about| about.target() != TRACE))).boxed()
    });
    let layers: Vec<_> = lines.into_iter().chain(traces.map(Traces::layer)).collect();
    if !layers.is_empty() {
        tracing_subscriber::registry().with(layers).init();
    }
}
