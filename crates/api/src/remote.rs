//! The transport to a server: HTTP/1.1 over TCP or TLS, one connection per request.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, HOST, HeaderValue};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;

use crate::private::{self, UrlScheme};
use crate::{BodyStream, BoxFuture, Transport, TransportError};

/// The maximum size of an answer.
const BODY_BYTES_MAX: usize = 256 * 1024 * 1024;

/// A server at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpTransport {
    channel: UrlScheme,
    host: String,
    port: u16,
    authority: HeaderValue,
    base: String,
    bearer: Option<HeaderValue>,
}

/// Why a text is not a valid server address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not a server address: {reason}")]
pub struct ServerUrlError {
    given: String,
    reason: &'static str,
}

impl HttpTransport {
    /// Parses an address such as `http://127.0.0.1:7717`. A path is kept as a prefix.
    pub fn new(url: &str) -> Result<Self, ServerUrlError> {
        let refused = |reason| ServerUrlError { given: url.to_owned(), reason };
        let uri: Uri = url.parse().map_err(|_| refused("it is not a URL"))?;
        let (channel, usual) = match uri.scheme_str() {
            Some("http") => (UrlScheme::Plain, 80),
            Some("https") => (UrlScheme::Tls, 443),
            Some(_) | None => return Err(refused("it must begin with http:// or https://")),
        };
        let authority = uri.authority().ok_or_else(|| refused("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(refused("a user name in the address is not supported"));
        }
        Ok(Self {
            host: authority.host().trim_start_matches('[').trim_end_matches(']').to_owned(),
            channel,
            port: authority.port_u16().unwrap_or(usual),
            authority: HeaderValue::from_str(authority.as_str()).map_err(|_| refused("it is not a URL"))?,
            base: uri.path().trim_end_matches('/').to_owned(),
            bearer: None,
        })
    }

    /// Returns the same server with a token for its requests. None if the text cannot be a token.
    #[must_use]
    pub fn with_token(self, secret: &str) -> Option<Self> {
        let mut bearer = HeaderValue::from_str(&format!("Bearer {secret}")).ok()?;
        // Keeps the token out of debug output.
        bearer.set_sensitive(true);
        Some(Self { bearer: Some(bearer), ..self })
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let (head, flow) = self.connect(request).await?.into_parts();
        let body = Limited::new(flow, BODY_BYTES_MAX).collect().await;
        let failed =
            |error| TransportError::caused(format!("could not read the response of {}", self.shown()), error);
        Ok(Response::from_parts(head, body.map_err(failed)?.to_bytes()))
    }

    /// Sends a request on its own connection and returns the answer when its head has been received.
    async fn connect(&self, request: Request<Bytes>) -> Result<Response<BodyStream>, TransportError> {
        let at = self.shown();
        let stream = private::connect(self.channel, &self.host, self.port, &at).await?;
        let broken =
            |error: hyper::Error| TransportError::caused(format!("could not exchange data with {at}"), error);
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let mut connection: BoxFuture<'static, _> = Box::pin(async move { connection.await.map_err(drop) });
        let mut answer = std::pin::pin!(sender.send_request(self.addressed(request, &at)?));
        // The connection moves bytes only while it is polled. If it ends first, the answer has the error.
        let (answer, connection) = tokio::select! {
            answer = &mut answer => (answer, Some(connection)),
            _ = &mut connection => (answer.await, None),
        };
        let (head, body) = answer.map_err(broken)?.into_parts();
        let driven = ConnectionBody { connection, body };
        let failed = move |error| {
            TransportError::caused(format!("could not read the rest of the response of {at}"), error)
        };
        Ok(Response::from_parts(head, driven.map_err(failed).boxed_unsync()))
    }

    fn shown(&self) -> String {
        format!("the server at {}:{}", self.host, self.port)
    }

    fn addressed(&self, request: Request<Bytes>, at: &str) -> Result<Request<Full<Bytes>>, TransportError> {
        let (mut head, body) = request.into_parts();
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        head.uri = format!("{}{path}", self.base)
            .parse()
            .map_err(|error| TransportError::caused(format!("could not build the URL for {at}"), error))?;
        head.headers.insert(HOST, self.authority.clone());
        if let Some(bearer) = &self.bearer {
            head.headers.insert(AUTHORIZATION, bearer.clone());
        }
        Ok(Request::from_parts(head, Full::new(body)))
    }
}

impl Transport for HttpTransport {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        Box::pin(self.exchange(request))
    }

    fn open(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<BodyStream>, TransportError>> {
        Box::pin(self.connect(request))
    }
}

/// The body of an answer together with its connection. Reading the body polls the connection.
struct ConnectionBody {
    connection: Option<BoxFuture<'static, Result<(), ()>>>,
    body: Incoming,
}

impl Body for ConnectionBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        // An error of the connection is also reported by the body to its reader.
        if this.connection.as_mut().is_some_and(|connection| connection.as_mut().poll(context).is_ready()) {
            this.connection = None;
        }
        Pin::new(&mut this.body).poll_frame(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_cannot_work_is_refused_with_its_reason() {
        for (url, reason) in [
            ("", "URL"),
            ("localhost:7717", "http://"),
            ("https://", "URL"),
            ("ftp://x", "http://"),
            ("http://me@x", "user name"),
        ] {
            let refusal = HttpTransport::new(url).expect_err(url).to_string();
            assert!(refusal.contains(reason), "{url}: {refusal}");
        }
        let remote = HttpTransport::new("http://[::1]:7/base/").unwrap();
        assert!(remote.clone().with_token("two\r\nlines").is_none());
        assert!(!format!("{:?}", remote.clone().with_token("s3cret")).contains("s3cret"));
        assert_eq!((remote.host.as_str(), remote.port, remote.base.as_str()), ("::1", 7, "/base"));
    }
}
