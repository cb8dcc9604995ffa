//! The address of a webhook. Its path and query are often a secret of the receiver, and it may contain a user
//! and a password, so only scheme, host and port are ever shown.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Uri;
use hyper::header::HeaderValue;

/// The address of a webhook.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookUrl {
    pub(super) channel: WebhookScheme,
    pub(super) host: String,
    pub(super) port: u16,
    /// The value of the `Host` header.
    pub(super) named: HeaderValue,
    pub(super) target: Uri,
    /// The value of the `Authorization` header.
    pub(super) credentials: Option<HeaderValue>,
}

/// The transport of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WebhookScheme {
    Plain,
    Tls,
}

/// Why a text is not a valid webhook address. The error does not repeat the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is not the address of a webhook: {0}")]
pub struct WebAddressError(&'static str);

impl FromStr for WebhookUrl {
    type Err = WebAddressError;

    fn from_str(text: &str) -> Result<Self, WebAddressError> {
        let uri: Uri = text.parse().map_err(|_| WebAddressError("it is not a URL"))?;
        let (channel, usual) = match uri.scheme_str() {
            Some("http") => (WebhookScheme::Plain, 80),
            Some("https") => (WebhookScheme::Tls, 443),
            Some(_) | None => return Err(WebAddressError("it must start with https:// or http://")),
        };
        let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
        let (user, named) = match authority.rsplit_once('@') {
            Some((user, named)) => (Some(user), named),
            None => (None, authority),
        };
        let host = uri.host().unwrap_or_default();
        if host.is_empty() {
            return Err(WebAddressError("it has no host"));
        }
        // The parser treats a port number that is too large as a missing port.
        let port = match named.strip_prefix(host).and_then(|rest| rest.strip_prefix(':')) {
            Some(port) => port.parse().ok().filter(|port| *port > 0),
            None => Some(usual),
        };
        let port = port.ok_or(WebAddressError("its port is not a number from 1 to 65535"))?;
        let header = |text: &str| HeaderValue::from_str(text).map_err(|_| WebAddressError("it is not a URL"));
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        Ok(Self {
            channel,
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port,
            named: header(named)?,
            target: target.parse().map_err(|_| WebAddressError("it is not a URL"))?,
            credentials: user.map(|user| header(&basic(user))).transpose()?,
        })
    }
}

impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.channel {
            WebhookScheme::Plain => "http",
            WebhookScheme::Tls => "https",
        };
        write!(f, "{scheme}://{}", self.named.to_str().unwrap_or(&self.host))
    }
}

impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WebAddress").field(&self.to_string()).finish()
    }
}

/// Returns the `Authorization` header for the user part of an address: `user:password`, with escapes.
fn basic(user: &str) -> String {
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let mut plain = unescaped(name);
    plain.push(b':');
    plain.extend(unescaped(password));
    format!("Basic {}", STANDARD.encode(plain))
}

/// Decodes `%41` escapes; invalid escapes stay as they are.
fn unescaped(text: &str) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let escape = match rest {
            [b'%', high, low, ..] => char::from(*high).to_digit(16).zip(char::from(*low).to_digit(16)),
            _ => None,
        };
        match escape {
            Some((high, low)) => {
                plain.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            None => {
                plain.push(*first);
                rest = after;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart() {
        let address: WebhookUrl = "https://me:p%40ss@[::1]:8443/a/b?token=x".parse().unwrap();
        assert_eq!((address.host.as_str(), address.port, address.channel), ("::1", 8443, WebhookScheme::Tls));
        assert_eq!(
            (address.named.to_str().unwrap(), address.target.to_string()),
            ("[::1]:8443", "/a/b?token=x".into())
        );
        assert_eq!(address.credentials.unwrap().to_str().unwrap(), "Basic bWU6cEBzcw==");
        let plain: WebhookUrl = "http://h".parse().unwrap();
        assert_eq!((plain.port, plain.target.to_string(), plain.credentials), (80, "/".into(), None));
    }

    /// Breaks when a log line or a health check can show secrets of the address.
    #[test]
    fn nothing_secret_is_shown() {
        let address: WebhookUrl = "https://me:s3cret@example.org:99/s3cret?s3cret".parse().unwrap();
        let shown = format!("{address} {address:?}");
        assert!(
            !shown.contains("s3cret") && !shown.contains("me:") && shown.contains("https://example.org:99"),
            "{shown}"
        );
        for wrong in
            ["s3cret", "ftp://s3cret", "https://", "/s3cret", "https://h:0/s3cret", "https://h:99999/s3cret"]
        {
            let error = wrong.parse::<WebhookUrl>().expect_err(wrong).to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
