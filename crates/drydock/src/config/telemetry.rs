//! `[telemetry]`: who is told of what this program does.

use serde::Deserialize;

/// What is configured for traces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Telemetry {
    /// Where a collector takes them over OTLP/HTTP.
    pub(crate) otlp: Option<String>,
}

impl Telemetry {
    /// Refuses to be asked for what was not built in.
    pub(super) fn check(self) -> Result<Self, String> {
        match &self.otlp {
            Some(_) if cfg!(not(feature = "otel")) => {
                Err("[telemetry] otlp: this drydock was built without traces; \
                 build one with `cargo build --release -p drydock --features otel`, or take the key out"
                    .to_owned())
            }
            Some(_) | None => Ok(self),
        }
    }
}
