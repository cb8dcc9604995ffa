//! The program's own log, on stderr. `serve` and `worker` log what they do; other commands log nothing unless `DRYDOCK_LOG`
//! names what, because setting it up costs every start.

use std::io;

use clap::{Args, ValueEnum};
use drydock_engine::{TRACE, WORK};
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::telemetry::Traces;

/// What is logged when a format is asked for and nothing else.
const WITH_FORMAT: &str = "info";

/// What a command logs when nothing else is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByDefault {
    /// Nothing.
    Nothing,
    /// Errors.
    Errors,
    /// Warnings, and what workers do.
    Work,
}

impl ByDefault {
    fn filter(self) -> Option<String> {
        match self {
            ByDefault::Nothing => None,
            ByDefault::Errors => Some("error".to_owned()),
            ByDefault::Work => Some(format!("warn,{WORK}=info")),
        }
    }
}

/// How a server or a worker logs what it does.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Log {
    /// Log more on stderr, as lines of text or of JSON [default: warnings and the phases that workers claim, start and end, as text; DRYDOCK_LOG says what else]
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

/// Begins to log what `DRYDOCK_LOG` names, e.g. `drydock=debug`, or what a command logs by default; and to trace, when there
/// is a collector. Spans that are for traces are in no line of the log.
pub(crate) fn begin(by_default: ByDefault, format: Option<LogFormat>, traces: Option<&Traces>) {
    let wanted = std::env::var_os("DRYDOCK_LOG");
    let wanted = match (&wanted, format) {
        (Some(wanted), _) => Some(wanted.to_string_lossy().into_owned()),
        (None, Some(_)) => Some(WITH_FORMAT.to_owned()),
        (None, None) => by_default.filter(),
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
