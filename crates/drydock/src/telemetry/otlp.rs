//! Traces over OTLP/HTTP. Spans are selected by their target, so no log line is exported by accident. A separate
//! thread sends them in batches with the HTTP client that this program already has. If the collector is unreachable,
//! spans are dropped. Only the end of the program waits for it, for a bounded time.

use std::env;
use std::fmt;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, Request, Response, Uri};
use drydock_api::{Code, Problem, Remote, Transport};
use drydock_domain::told;
use drydock_engine::TRACE;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::{Builder, Runtime};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::{Layer, Registry};

use crate::config;

/// The variable with the collector's address, if the configuration has none.
const ADDRESS: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// The standard variable with the service name.
const NAME: &str = "OTEL_SERVICE_NAME";
/// The path below the collector's address.
const PATH: &str = "/v1/traces";
/// The timeout of sending a batch.
const SEND_TIME: Duration = Duration::from_secs(5);
/// How long the end of the program may wait for the last batch.
const LAST_TIME: Duration = Duration::from_secs(6);

/// The export of traces.
#[derive(Debug)]
pub(crate) struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// Starts the export if a collector is configured.
    pub(crate) fn begin(config: Option<&Path>) -> Result<Option<Self>, Box<Problem>> {
        // An invalid configuration is reported by the command that needs it.
        let named = config::load(config, config::config_path().as_deref()).ok();
        let named = named.and_then(|config| config.telemetry.otlp);
        let address = named.or_else(|| env::var(ADDRESS).ok().filter(|address| !address.is_empty()));
        address.map(|address| Self::told_to(&address)).transpose()
    }

    fn told_to(address: &str) -> Result<Self, Box<Problem>> {
        let refused = |reason: &dyn fmt::Display| {
            let text = format!("cannot send traces to {address:?}: {reason}");
            let hint =
                format!("set [telemetry] otlp or {ADDRESS} to an address such as http://127.0.0.1:4318");
            Box::new(Problem::new(Code::ConfigInvalid, text).hint(hint))
        };
        let address = address.trim_end_matches('/');
        let uri: Uri = address.parse().map_err(|error| refused(&error))?;
        let server = format!(
            "{}://{}",
            uri.scheme_str().unwrap_or_default(),
            uri.authority().map_or("", |authority| authority.as_str())
        );
        let remote = Remote::new(&server).map_err(|error| refused(&error))?;
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| refused(&error))?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Sender { remote, runtime })
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{address}{PATH}"))
            .with_timeout(SEND_TIME)
            .build()
            .map_err(|error| refused(&error))?;
        let mut resource = Resource::builder();
        if env::var_os(NAME).is_none() {
            resource = resource.with_service_name("drydock");
        }
        let provider = SdkTracerProvider::builder().with_batch_exporter(exporter);
        Ok(Self { provider: provider.with_resource(resource.build()).build() })
    }

    /// Returns the layer that collects spans.
    pub(crate) fn layer(&self) -> Box<dyn Layer<Registry> + Send + Sync> {
        let layer = tracing_opentelemetry::layer().with_tracer(self.provider.tracer("drydock"));
        let layer = layer.with_location(false).with_threads(false).with_target(false);
        let layer = layer.with_tracked_inactivity(false).with_context_activation(false);
        layer.with_filter(filter_fn(|about| about.is_span() && about.target() == TRACE)).boxed()
    }

    /// Sends the last batch. It blocks, so do not call it from async code.
    pub(crate) fn end(self) {
        if let Err(error) = self.provider.shutdown_with_timeout(LAST_TIME) {
            tracing::warn!(error = %told(&error), "could not send the last traces");
        }
    }
}

/// Makes a span part of the trace in a request's headers (W3C `traceparent`).
pub(crate) fn continued(span: &Span, headers: &HeaderMap) {
    if span.is_disabled() {
        return;
    }
    let context = TraceContextPropagator::new().extract(&Headers(headers));
    // This fails for a span that is not collected, which does not matter.
    span.set_parent(context).ok();
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(|key| key.as_str()).collect()
    }
}

/// Sends a batch from the exporter's thread, on its own runtime: the program's runtime may have ended by then.
#[derive(Debug)]
struct Sender {
    remote: Remote,
    runtime: Runtime,
}

type Sent<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for Sender {
    fn send_bytes<'a, 'b>(&'a self, request: Request<Bytes>) -> Sent<'b>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let sent = async { tokio::time::timeout(SEND_TIME, self.remote.send(request)).await };
            let failed = |reason: &dyn fmt::Display| tracing::warn!(%reason, "could not send traces");
            match self.runtime.block_on(sent) {
                Ok(Ok(answer)) => {
                    if !answer.status().is_success() {
                        failed(&answer.status());
                    }
                    Ok(answer)
                }
                Ok(Err(error)) => {
                    failed(&error);
                    Err(error.into())
                }
                Err(late) => {
                    failed(&late);
                    Err(late.into())
                }
            }
        })
    }
}
