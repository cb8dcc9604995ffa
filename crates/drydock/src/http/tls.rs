//! TLS from certificate files. The handshake runs when a connection is first read, in the task of that connection. So
//! a client that does not finish it blocks no other client, and is disconnected like other idle clients.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use drydock_api::{Code, Problem};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{Accept, TlsAcceptor};

/// The TLS configuration. All clones share one configuration.
#[derive(Clone)]
pub(crate) struct Tls {
    certificate: Arc<Path>,
    key: Arc<Path>,
    acceptor: Arc<Mutex<TlsAcceptor>>,
}

impl Tls {
    /// Reads the certificate chain and its key.
    pub(crate) fn from_files(certificate: &Path, key: &Path) -> Result<Self, Box<Problem>> {
        let acceptor = Arc::new(Mutex::new(Self::read(certificate, key)?));
        Ok(Self { certificate: certificate.into(), key: key.into(), acceptor })
    }

    /// Returns a future that reads the files again on each SIGHUP. New connections use the new certificate. If the
    /// files are not valid, the previous certificate stays in use.
    pub(crate) fn reread(self) -> io::Result<impl Future<Output = ()>> {
        let mut told = signal(SignalKind::hangup())?;
        Ok(async move {
            while told.recv().await.is_some() {
                match Self::read(&self.certificate, &self.key) {
                    Ok(acceptor) => {
                        *self.acceptor.lock().unwrap_or_else(PoisonError::into_inner) = acceptor;
                        tracing::info!("reloaded the certificate");
                    }
                    Err(problem) => {
                        tracing::error!(%problem, "could not reload the certificate; the old one stays in use")
                    }
                }
            }
        })
    }

    fn read(certificate: &Path, key: &Path) -> Result<TlsAcceptor, Box<Problem>> {
        let unread = |path: &Path, error: String| {
            let text = format!("could not read {}: {error}", path.display());
            Box::new(Problem::new(Code::Usage, text).hint("pass PEM files with --tls-cert and --tls-key"))
        };
        let chain: Vec<_> = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect)
            .map_err(|error| unread(certificate, error.to_string()))?;
        if chain.is_empty() {
            return Err(unread(certificate, "it contains no certificate".to_owned()));
        }
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| unread(key, error.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, secret));
        let mut config = config.map_err(|error| unread(certificate, error.to_string()))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// A connection, with or without TLS.
pub(crate) enum MaybeTlsStream {
    /// Without TLS.
    Plain(TcpStream),
    /// During the TLS handshake.
    Greeting(Box<Accept<TcpStream>>),
    /// After the TLS handshake.
    Private(Box<TlsStream<TcpStream>>),
}

impl MaybeTlsStream {
    /// Returns the connection, with TLS if it is configured.
    pub(super) fn over(stream: TcpStream, tls: Option<&Tls>) -> Self {
        match tls {
            None => MaybeTlsStream::Plain(stream),
            Some(tls) => {
                let acceptor = tls.acceptor.lock().unwrap_or_else(PoisonError::into_inner);
                MaybeTlsStream::Greeting(Box::new(acceptor.accept(stream)))
            }
        }
    }

    fn greet(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let MaybeTlsStream::Greeting(accept) = self {
            let agreed = ready!(Pin::new(accept.as_mut()).poll(context))?;
            *self = MaybeTlsStream::Private(Box::new(agreed));
        }
        Poll::Ready(Ok(()))
    }
}

/// Applies the same code to either kind of connection, after the handshake.
macro_rules! either {
    ($speech:expr, $context:expr, $stream:ident => $deed:expr) => {{
        let speech = $speech.get_mut();
        ready!(speech.greet($context))?;
        match speech {
            MaybeTlsStream::Plain($stream) => {
                let $stream = Pin::new($stream);
                $deed
            }
            MaybeTlsStream::Private($stream) => {
                let $stream = Pin::new($stream.as_mut());
                $deed
            }
            MaybeTlsStream::Greeting(_) => unreachable!("checked above"),
        }
    }};
}

impl AsyncRead for MaybeTlsStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        either!(self, context, stream => stream.poll_read(context, into))
    }
}

impl AsyncWrite for MaybeTlsStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        either!(self, context, stream => stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, context, stream => stream.poll_write_vectored(context, parts))
    }

    fn is_write_vectored(&self) -> bool {
        matches!(self, MaybeTlsStream::Plain(stream) if stream.is_write_vectored())
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, context, stream => stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, context, stream => stream.poll_shutdown(context))
    }
}
