//! The session cookie of a browser. Browsers send a cookie to every port of a host, so its name contains the port.
//! Otherwise two servers on one machine would overwrite each other's sessions.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderValue};

/// Whether the server uses TLS, which decides whether the cookie is marked `Secure`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionSecurity {
    /// Without encryption.
    Plain,
    /// Over TLS.
    Tls,
}

/// The cookie of one server.
#[derive(Clone)]
pub(crate) struct Cookie {
    name: Arc<str>,
    wire: ConnectionSecurity,
}

impl Cookie {
    /// Returns the cookie of the server on a port.
    pub(crate) fn of(port: u16, wire: ConnectionSecurity) -> Self {
        Self { name: format!("drydock-{port}").into(), wire }
    }

    /// Returns the secret in the browser's cookie.
    pub(crate) fn shown<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let lines = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(name, _)| *name == &*self.name).map(|(_, value)| value)
    }

    /// Returns the `Set-Cookie` header. Scripts cannot read the cookie, and browsers send it only from our own pages.
    pub(super) fn set(&self, secret: &str, life: Duration) -> HeaderValue {
        let secure = match self.wire {
            ConnectionSecurity::Plain => "",
            ConnectionSecurity::Tls => "; Secure",
        };
        let text = format!(
            "{}={secret}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}{secure}",
            self.name,
            life.as_secs()
        );
        let mut value = HeaderValue::from_str(&text).expect("a secret and a name are plain text");
        value.set_sensitive(true);
        value
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cookie({})", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_cookie_of_this_server_is_read() {
        let cookie = Cookie::of(7717, ConnectionSecurity::Plain);
        for (sent, shown) in [
            ("drydock-7717=a", Some("a")),
            ("x=1; drydock-7717=b;y=2", Some("b")),
            ("drydock-7718=a", None),
            ("drydock-7717", None),
            ("", None),
        ] {
            let headers = HeaderMap::from_iter([(COOKIE, HeaderValue::from_static(sent))]);
            assert_eq!(cookie.shown(&headers), shown, "{sent}");
        }
    }

    /// Breaks if a script can read the session cookie, or a page of another site can use it.
    #[test]
    fn a_session_is_out_of_the_reach_of_scripts_and_other_sites() {
        let set = |wire| Cookie::of(1, wire).set("s", Duration::from_secs(9)).to_str().unwrap().to_owned();
        assert_eq!(
            set(ConnectionSecurity::Plain),
            "drydock-1=s; Path=/; HttpOnly; SameSite=Strict; Max-Age=9"
        );
        assert!(set(ConnectionSecurity::Tls).ends_with("; Secure"));
    }
}
