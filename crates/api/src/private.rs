//! Connections to a server, private where its address says `https`. Certificates are always checked, against those of
//! the system or of `SSL_CERT_FILE`.

use std::sync::{Arc, OnceLock};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::TransportError;

/// How to speak to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    /// As it is.
    Plain,
    /// Over TLS.
    Tls,
}

/// A connection, whatever is between us.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Connects to a port of a host; `at` is how the server is told of.
pub(crate) async fn connect(
    channel: Channel,
    host: &str,
    port: u16,
    at: &str,
) -> Result<Box<dyn Stream>, TransportError> {
    let stream = TcpStream::connect((host, port))
        .await
        .map_err(|error| TransportError::caused(format!("could not connect to {at}"), error))?;
    match channel {
        Channel::Plain => Ok(Box::new(stream)),
        Channel::Tls => {
            let failed = || format!("could not speak to {at} in private");
            let name = ServerName::try_from(host.to_owned())
                .map_err(|error| TransportError::caused(failed(), error))?;
            let config = trusting().map_err(|error| TransportError::caused(failed(), error))?;
            let private = TlsConnector::from(config).connect(name, stream).await;
            Ok(Box::new(private.map_err(|error| TransportError::caused(failed(), error))?))
        }
    }
}

/// Returns what TLS needs, read once.
fn trusting() -> Result<Arc<ClientConfig>, String> {
    static CONFIG: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    let made = || {
        let mut trusted = RootCertStore::empty();
        // A certificate of the system that cannot be read is skipped, as every other program does.
        trusted.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|error| error.to_string())?;
        Ok(Arc::new(config.with_root_certificates(trusted).with_no_client_auth()))
    };
    CONFIG.get_or_init(made).clone()
}
