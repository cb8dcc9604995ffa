//! The subset of HTTP that agents need to call a model: one request per connection, with a known and bounded length.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

use serde_json::Value;

/// Far larger than the conversations of tests.
const BODY_MAX: u64 = 16 << 20;
const HEAD_MAX: u64 = 64 << 10;

/// A request of an agent.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// `GET`, `POST`, …
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The headers, with their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body, or null if there is none.
    pub body: Value,
}

/// Why there is no request: the client has disconnected, or the answer is a status and a message.
#[derive(Debug)]
pub(super) enum Unread {
    Gone,
    Refused(&'static str, String),
}

impl From<io::Error> for Unread {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// Reads one request.
pub(super) fn read(stream: &mut impl BufRead) -> Result<ModelRequest, Unread> {
    let (first, headers) = head(&mut stream.take(HEAD_MAX))?;
    let mut words = first.split(' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err(Unread::Refused("400 Bad Request", format!("`{first}` is not a request")));
    };
    if headers.contains_key("transfer-encoding") {
        return Err(Unread::Refused(
            "411 Length Required",
            "a request with a body needs a Content-Length".to_owned(),
        ));
    }
    let length = headers.get("content-length").map_or(Ok(0), |length| length.parse::<u64>());
    let length = match length {
        Ok(length) if length <= BODY_MAX => length,
        _ => return Err(Unread::Refused("413 Content Too Large", format!("more than {BODY_MAX} bytes"))),
    };
    let mut bytes = Vec::new();
    if stream.take(length).read_to_end(&mut bytes)? as u64 != length {
        return Err(Unread::Gone);
    }
    let body = match bytes.as_slice() {
        [] => Value::Null,
        bytes => serde_json::from_slice(bytes)
            .map_err(|error| Unread::Refused("400 Bad Request", format!("the body is not JSON: {error}")))?,
    };
    let path = target.split('?').next().unwrap_or(target).to_owned();
    Ok(ModelRequest { method: method.to_owned(), path, headers, body })
}

fn head(stream: &mut impl BufRead) -> Result<(String, BTreeMap<String, String>), Unread> {
    let mut first = None;
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 || !line.ends_with('\n') {
            return Err(Unread::Gone);
        }
        let line = line.trim_end();
        match (first.take(), line.split_once(':')) {
            (None, _) => first = Some(line.to_owned()),
            (Some(request), Some((name, value))) => {
                headers.insert(name.to_lowercase(), value.trim().to_owned());
                first = Some(request);
            }
            (Some(request), None) => return Ok((request, headers)),
        }
    }
}
