//! Traces: spans sent to a collector over OTLP. Built with the feature `otel`. Without it the same names do nothing,
//! and a configuration that asks for traces is refused.

#[cfg_attr(feature = "otel", path = "otlp.rs")]
#[cfg_attr(not(feature = "otel"), path = "absent.rs")]
mod traces;

pub(crate) use traces::{Traces, continued};
