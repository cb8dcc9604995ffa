//! `[telemetry]`: where traces are sent.

use serde::Deserialize;

/// Settings of traces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Telemetry {
    /// The OTLP/HTTP endpoint of a collector.
    pub(crate) otlp: Option<String>,
}

impl Telemetry {
    /// Returns an error if traces are configured but not built in.
    pub(super) fn check(self) -> Result<Self, String> {
        match &self.otlp {
            Some(_) if cfg!(not(feature = "otel")) => {
                Err("[telemetry] otlp: this drydock was built without traces; \
                 build one with `cargo build --release -p drydock --features otel`, or remove the key"
                    .to_owned())
            }
            Some(_) | None => Ok(self),
        }
    }
}
