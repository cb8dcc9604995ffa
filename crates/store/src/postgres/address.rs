//! The server's address and the TLS mode of its connections. Without `sslmode` the connection is not
//! encrypted. With `require`, `verify-ca` or `verify-full` TLS is mandatory. With `prefer` TLS is used if the
//! server offers it; an attacker on the network path can therefore force an unencrypted connection. With TLS
//! the certificate is always verified, because encryption without authentication does not protect against
//! such an attacker.

use std::str::FromStr;
use std::time::Duration;

use drydock_domain::error_chain;
use tokio_postgres::config::{Config, Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::StoreError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const PORT: u16 = 5432;
/// Maximum time until a broken connection is detected while a response is awaited.
const TCP_SILENCE_MAX: Duration = Duration::from_secs(15);
/// Limits that the server enforces on a session that waits too long for a row, or stops in the middle of a
/// transaction. Without them, a process that is suspended between two round trips would hold its lock row
/// forever.
const SESSION_LIMITS: &str = "-c lock_timeout=10000 -c idle_in_transaction_session_timeout=10000";
/// The same limits, in milliseconds.
pub(crate) const SESSION_LIMIT_MS: i64 = 10_000;

#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) config: Config,
    pub(crate) tls: Option<MakeRustlsConnect>,
    /// Host and port, for people; never a password.
    pub(crate) shown: String,
}

impl Address {
    pub(crate) fn parse(url: &str) -> Result<Self, StoreError> {
        let (address, options) = url.split_once('?').unwrap_or((url, ""));
        let (mut mode, mut roots, mut rest) = (None, None, Vec::new());
        for option in options.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value),
                Some(("sslrootcert", value)) => roots = Some(value),
                Some(_) | None => rest.push(option),
            }
        }
        let plain = format!("{address}?{}", rest.join("&"));
        let parsed = Config::from_str(plain.trim_end_matches('?'));
        // The parser's message never contains the address, only the part that it does not understand.
        let mut config = parsed.map_err(|error| unreachable("the given address", error_chain(&error)))?;
        let shown = place(&config);
        let ssl = match mode {
            None | Some("disable") => SslMode::Disable,
            Some("prefer") => SslMode::Prefer,
            Some("require" | "verify-ca" | "verify-full") => SslMode::Require,
            Some(other) => return Err(unreachable(&shown, format!("sslmode {other:?} is not supported"))),
        };
        config.ssl_mode(ssl);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("drydock");
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(TCP_SILENCE_MAX);
        }
        // The options of the address come last, and so override ours.
        let asked = config.get_options().unwrap_or_default();
        let limited = format!("{SESSION_LIMITS} {asked}");
        config.options(limited.trim_end());
        let tls = match ssl {
            SslMode::Disable => None,
            _ => Some(tls(roots).map_err(|reason| unreachable(&shown, reason))?),
        };
        Ok(Self { config, tls, shown })
    }
}

fn unreachable(place: &str, reason: String) -> StoreError {
    StoreError::Unavailable { place: place.to_owned(), reason }
}

/// Names every server of the address: it is unknown which of them an error is about.
fn place(config: &Config) -> String {
    let ports = config.get_ports();
    let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(PORT);
    let shown = config.get_hosts().iter().enumerate().map(|(at, host)| match host {
        Host::Tcp(host) => format!("{host}:{}", port(at)),
        #[cfg(unix)]
        Host::Unix(path) => format!("{}:{}", path.display(), port(at)),
    });
    let shown: Vec<_> = shown.collect();
    if shown.is_empty() { format!("localhost:{}", port(0)) } else { shown.join(" or ") }
}

fn tls(roots: Option<&str>) -> Result<MakeRustlsConnect, String> {
    let config = match roots {
        Some(path) => drydock_trust::by_file(path)?,
        None => drydock_trust::by_system()?,
    };
    Ok(MakeRustlsConnect::new((*config).clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// BUG-12: fails if an error names only one of several servers, which may be the wrong one.
    #[test]
    fn every_server_of_an_address_is_named() {
        let shown = |url: &str| Address::parse(url).unwrap().shown;
        assert_eq!(shown("postgres://u@h/d"), "h:5432");
        assert_eq!(shown("postgres://u@h:1,i:2/d?target_session_attrs=read-write"), "h:1 or i:2");
    }

    #[test]
    fn a_session_has_limits_that_the_address_can_change() {
        let plain = Address::parse("postgres://u@h/d").unwrap().config;
        assert_eq!(plain.get_options(), Some(SESSION_LIMITS));
        assert_eq!(plain.get_tcp_user_timeout(), Some(&TCP_SILENCE_MAX));
        let asked = Address::parse("postgres://u@h/d?options=-c%20lock_timeout%3D5").unwrap().config;
        assert_eq!(asked.get_options(), Some(format!("{SESSION_LIMITS} -c lock_timeout=5").as_str()));
    }
}
