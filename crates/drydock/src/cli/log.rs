//! The program's own log, on stderr. `serve` and `worker` log their work. Other commands log only if `DRYDOCK_LOG` is
//! set, because setting up the log costs time at every start.

use std::io;

use clap::{Args, ValueEnum};
use drydock_engine::{TRACE, WORK};
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::telemetry::Traces;

/// The filter when a log format is given and `DRYDOCK_LOG` is not set.
const WITH_FORMAT: &str = "info";

/// The log of a command when neither `DRYDOCK_LOG` nor a format is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByDefault {
    Nothing,
    Errors,
    /// Warnings, and the phases that workers claim, start and end.
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

/// Log options of a server or a worker.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct LogOptions {
    /// Log more on stderr, as lines of text or of JSON [default: warnings and the phases that workers claim, start
    /// and end, as text; DRYDOCK_LOG sets the filter]
    #[arg(long, value_enum, value_name = "FORMAT", env = "DRYDOCK_LOG_FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
}

/// Format of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// For programs: one object per line
    Json,
}

/// Starts to log, filtered by `DRYDOCK_LOG`, e.g. `drydock=debug`, or else by the default of the format or the
/// command. Starts to trace if a collector is configured. The log leaves out spans that exist only for traces.
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
