//! `[server]`: settings of `drydock serve`.

use std::path::PathBuf;

use clap::ValueEnum;
use serde::Deserialize;

/// Settings of `drydock serve`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServeConfig {
    /// Whether requests need a token, on loopback.
    pub(crate) tokens: Option<TokenPolicy>,
    /// The host names by which clients address it, if requests need a token.
    #[serde(default)]
    pub(crate) hosts: Vec<String>,
    /// The URL at which agents can read their plan.
    pub(crate) url: Option<String>,
    /// The file with the certificate chain.
    pub(crate) tls_cert: Option<PathBuf>,
    /// The file with the certificate's key.
    pub(crate) tls_key: Option<PathBuf>,
}

/// Whether a request needs a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TokenPolicy {
    /// A request without a token counts as one of the person at this machine; on loopback only
    Optional,
    /// Every request needs a token
    Required,
}
