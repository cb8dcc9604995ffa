//! Delivery to a web address: one POST with the event as JSON, signed if the hook has a secret. A status from
//! 200 to 299 means success; every other status, including a redirect, is a failure. Each event opens its own
//! connection, because events are rare.

use drydock_domain::error_chain;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use ring::hmac;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::address::{WebhookScheme, WebhookUrl};
use super::deliver::DeliveryError;

/// An event, ready to be sent.
pub(super) struct WebhookPayload {
    pub(super) kind: String,
    pub(super) seq: i64,
    pub(super) body: Vec<u8>,
}

/// Posts an event and waits for the status. Errors name only host and port of the address.
pub(super) async fn post(
    address: &WebhookUrl,
    secret: Option<&[u8]>,
    letter: WebhookPayload,
) -> Result<(), DeliveryError> {
    let request = request(address, secret, letter)?;
    let place = (address.host.as_str(), address.port);
    let stream = TcpStream::connect(place).await;
    let stream = stream.map_err(|error| DeliveryError(format!("could not connect to {address}: {error}")))?;
    let status = match address.channel {
        WebhookScheme::Plain => exchange(address, stream, request).await?,
        WebhookScheme::Tls => {
            let failed =
                |error: String| DeliveryError(format!("could not establish TLS with {address}: {error}"));
            let name =
                ServerName::try_from(address.host.clone()).map_err(|error| failed(error_chain(&error)))?;
            let connector = TlsConnector::from(drydock_trust::by_system().map_err(failed)?);
            let stream =
                connector.connect(name, stream).await.map_err(|error| failed(error_chain(&error)))?;
            exchange(address, stream, request).await?
        }
    };
    if status.is_success() { Ok(()) } else { Err(DeliveryError(format!("{address} answered {status}"))) }
}

fn request(
    address: &WebhookUrl,
    secret: Option<&[u8]>,
    letter: WebhookPayload,
) -> Result<Request<Full<Bytes>>, DeliveryError> {
    let mut request = Request::post(address.target.clone())
        .header(HOST, &address.named)
        .header(USER_AGENT, concat!("drydock/", env!("CARGO_PKG_VERSION")))
        .header(CONTENT_TYPE, "application/json")
        .header("Drydock-Event", letter.kind)
        .header("Drydock-Delivery", letter.seq);
    if let Some(secret) = secret {
        request = request.header("Drydock-Signature", signature(secret, &letter.body));
    }
    if let Some(credentials) = &address.credentials {
        request = request.header(AUTHORIZATION, credentials);
    }
    let request = request.body(Full::new(Bytes::from(letter.body)));
    request.map_err(|error| DeliveryError(format!("could not write the request to {address}: {error}")))
}

/// Returns `sha256=` and the HMAC of the body in hexadecimal.
fn signature(secret: &[u8], body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let tag = hmac::sign(&key, body);
    tag.as_ref().iter().fold("sha256=".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

async fn exchange(
    address: &WebhookUrl,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Full<Bytes>>,
) -> Result<StatusCode, DeliveryError> {
    let broken = |error: hyper::Error| {
        DeliveryError(format!("the request to {address} failed: {}", error_chain(&error)))
    };
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let mut answer = std::pin::pin!(sender.send_request(request));
    // The connection only moves bytes while it is polled. If it ends first, the response future returns the
    // error.
    let answer = tokio::select! {
        answer = &mut answer => answer,
        _ = connection => answer.await,
    };
    Ok(answer.map_err(broken)?.status())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when receivers cannot check the signature with a standard HMAC; the case is RFC 4231's second.
    #[test]
    fn the_signature_is_the_hmac_of_the_body() {
        assert_eq!(
            signature(b"Jefe", b"what do ya want for nothing?"),
            "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }
}
