//! Checks where a request over TCP comes from. An action runs commands, so no foreign web page may reach the router,
//! even with a valid token. Browsers name the page in `Origin`. If an attacker's host name resolves to our address,
//! that name is in `Host`. Requests to the router in this process need no such check.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::extract::Request;
use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use drydock_api::Code;

use super::extract::{ApiError, refused};

/// The hosts by which a request may address this server, in addition to those of loopback.
#[derive(Debug, Clone)]
pub(crate) enum Hosts {
    /// None.
    Loopback,
    /// These names.
    Named(Vec<String>),
    /// These names, and any IP address: unlike a name, an address cannot be made to resolve elsewhere.
    Addresses(Vec<String>),
}

/// Accepts a request whose `Host` and `Origin` are allowed.
pub(super) fn allowed(request: &Request, hosts: &Hosts) -> Result<(), ApiError> {
    let named: Option<Authority> =
        only(request.headers(), &HOST).and_then(|host| host.to_str().ok()?.parse().ok());
    let is_ours = |authority: &Authority| hosts.include(authority);
    let Some(host) = named.filter(is_ours).filter(|_| request.uri().authority().is_none_or(is_ours)) else {
        let text = "the Host of the request is not this server";
        let hint = match hosts {
            Hosts::Loopback => "use 127.0.0.1, [::1] or localhost",
            Hosts::Named(_) | Hosts::Addresses(_) => {
                "use the server's IP address, or add its name to [server] hosts"
            }
        };
        return Err(refused(Code::Forbidden, text, hint));
    };
    if request.headers().contains_key(ORIGIN) && !is_of(only(request.headers(), &ORIGIN), &host) {
        let hint = "use a program that is not a web page, such as `drydock --server` or curl";
        return Err(refused(
            Code::Forbidden,
            "pages of other servers cannot send requests to this server",
            hint,
        ));
    }
    Ok(())
}

/// Returns the value of a header that occurs exactly once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut given = headers.get_all(name).iter();
    given.next().filter(|_| given.next().is_none())
}

/// Returns true if the page was served by the server it sends the request to. The scheme may differ because another
/// program may terminate TLS for us.
fn is_of(origin: Option<&HeaderValue>, host: &Authority) -> bool {
    let origin = origin.and_then(|origin| origin.to_str().ok()).unwrap_or_default();
    let server = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    server.is_some_and(|server| server.eq_ignore_ascii_case(host.as_str()))
}

impl Hosts {
    fn include(&self, authority: &Authority) -> bool {
        let host = authority.host();
        let address = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(inner) => inner.parse::<Ipv6Addr>().map(IpAddr::from),
            None => host.parse::<Ipv4Addr>().map(IpAddr::from),
        };
        let is_loopback = host.eq_ignore_ascii_case("localhost")
            || address.as_ref().is_ok_and(|address| address.is_loopback());
        let is_named = |names: &[String]| names.iter().any(|name| name.eq_ignore_ascii_case(host));
        let is_ours = match self {
            Hosts::Loopback => is_loopback,
            Hosts::Named(names) => is_loopback || is_named(names),
            Hosts::Addresses(names) => is_loopback || address.is_ok() || is_named(names),
        };
        is_ours && !authority.as_str().contains('@')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::http::request::Builder;

    fn status(request: Builder) -> u16 {
        status_at(Hosts::Loopback, request)
    }

    fn status_at(hosts: Hosts, request: Builder) -> u16 {
        let request = request.method("POST").body(Body::empty()).unwrap();
        allowed(&request, &hosts).map_or_else(|refused| refused.0.status, |()| 200)
    }

    /// Breaks if a foreign web page can run commands on a user's machine, or our own page cannot.
    #[test]
    fn a_web_page_is_refused_unless_it_is_ours() {
        let from = |origins: &[&str]| {
            let request = Request::builder().uri("/").header(HOST, "127.0.0.1:7717");
            let request = origins.iter().fold(request, |request, origin| request.header(ORIGIN, *origin));
            status(request)
        };
        let others = ["https://evil.example", "null", "", "http://127.0.0.1:7718", "http://127.0.0.1"];
        let nearly =
            ["http://localhost:7717", "127.0.0.1:7717", "ftp://127.0.0.1:7717", "http://127.0.0.1:7717/"];
        for origin in others.into_iter().chain(nearly) {
            assert_eq!(from(&[origin]), 403, "{origin}");
        }
        let ours = "http://127.0.0.1:7717";
        assert_eq!(from(&[ours, "https://evil.example"]), 403);
        assert_eq!(from(&[ours, ours]), 403);
        assert_eq!(from(&[ours]), 200);
        assert_eq!(from(&["https://127.0.0.1:7717"]), 200, "behind a proxy that speaks TLS");
    }

    /// Breaks if an attacker's host name that resolves to loopback is accepted as a name of this machine.
    #[test]
    fn only_requests_to_this_machine_by_its_own_names_are_answered() {
        for host in ["127.0.0.1:7717", "127.8.9.1", "[::1]:7717", "localhost", "LOCALHOST:1"] {
            assert_eq!(status(Request::builder().uri("/").header(HOST, host)), 200, "{host}");
        }
        let foreign = ["evil.example:7717", "127.0.0.1.nip.io", "localhost.evil.example", "0.0.0.0", ""];
        for host in foreign.into_iter().chain(["[::2]:1", "::1", "127.0.0.1@evil.example", "me@127.0.0.1"]) {
            assert_eq!(status(Request::builder().uri("/").header(HOST, host)), 403, "{host}");
        }
        let absolute = Request::builder().uri("http://evil.example/").header(HOST, "127.0.0.1");
        assert_eq!(status(absolute), 403);
        let twice = Request::builder().uri("/").header(HOST, "127.0.0.1").header(HOST, "evil.example");
        assert_eq!(status(twice), 403);
        assert_eq!(status(Request::builder().uri("/")), 403, "no host at all");
    }

    /// Breaks if a server on a public address accepts any host name, or refuses its own.
    #[test]
    fn a_server_for_others_answers_to_addresses_and_to_its_own_names() {
        let names = || vec!["drydock.example".to_owned()];
        let at = |hosts: Hosts, host: &str| status_at(hosts, Request::builder().uri("/").header(HOST, host));
        for host in ["192.0.2.7:7717", "[2001:db8::7]:1", "Drydock.Example:7717", "localhost"] {
            assert_eq!(at(Hosts::Addresses(names()), host), 200, "{host}");
        }
        for host in ["evil.example", "drydock.example.evil.example", "me@192.0.2.7", "192.0.2.7.nip.io"] {
            assert_eq!(at(Hosts::Addresses(names()), host), 403, "{host}");
        }
        assert_eq!(at(Hosts::Named(names()), "drydock.example"), 200);
        assert_eq!(at(Hosts::Named(names()), "192.0.2.7"), 403);
    }
}
