//! Connections to a server, with TLS if its URL starts with `https`. Certificates are always checked, against those
//! of the system or of `SSL_CERT_FILE`.

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::TransportError;

/// Whether a connection uses TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UrlScheme {
    /// Without TLS.
    Plain,
    /// With TLS.
    Tls,
}

/// A connection with or without TLS.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// Connects to a port of a host. `at` is the server's name in error messages.
pub(crate) async fn connect(
    channel: UrlScheme,
    host: &str,
    port: u16,
    at: &str,
) -> Result<Box<dyn ByteStream>, TransportError> {
    let stream = TcpStream::connect((host, port))
        .await
        .map_err(|error| TransportError::caused(format!("could not connect to {at}"), error))?;
    match channel {
        UrlScheme::Plain => Ok(Box::new(stream)),
        UrlScheme::Tls => {
            let failed = || format!("could not start TLS with {at}");
            let name = ServerName::try_from(host.to_owned())
                .map_err(|error| TransportError::caused(failed(), error))?;
            let config =
                drydock_trust::by_system().map_err(|error| TransportError::caused(failed(), error))?;
            let private = TlsConnector::from(config).connect(name, stream).await;
            Ok(Box::new(private.map_err(|error| TransportError::caused(failed(), error))?))
        }
    }
}
