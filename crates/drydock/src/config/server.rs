//! `[server]`: what `drydock serve` asks of those who ask it.

use std::path::PathBuf;

use clap::ValueEnum;
use serde::Deserialize;

/// What is configured for `drydock serve`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Server {
    /// Whether requests need a token, where that is a choice.
    pub(crate) tokens: Option<Tokens>,
    /// The names by which others address it, where requests need a token.
    #[serde(default)]
    pub(crate) hosts: Vec<String>,
    /// The address at which agents can ask it about their plan.
    pub(crate) url: Option<String>,
    /// The certificate that it shows, with those behind it.
    pub(crate) tls_cert: Option<PathBuf>,
    /// The key of the certificate.
    pub(crate) tls_key: Option<PathBuf>,
}

/// Whether a request needs a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Tokens {
    /// A request without one counts as that of the person at this machine; on loopback only
    Optional,
    /// Every request needs one
    Required,
}
