//! The token that the command line finds by itself: a server on loopback keeps one in a file of its user's, named after
//! its address, and nobody else may read it. It is sent to that address and to no other.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use drydock_api::{Code, Problem, http};
use drydock_domain::TokenKind;
use drydock_engine::{Engine, EngineError, Recognised};

use crate::http::problem;
use crate::{config, embedded};

/// Makes sure that the command line of whoever serves finds a token for this server. One that still counts is kept:
/// somebody may be reading a stream with it across a restart.
pub(crate) async fn keep(engine: &Engine, server: SocketAddr) -> Result<(), Box<Problem>> {
    let Some(folder) = config::servers_path() else { return Ok(()) };
    let refused = |error: EngineError| Box::new(problem(&error));
    let file = folder.join(named(server));
    if let Ok(text) = fs::read_to_string(&file) {
        let known = engine.token_recognise(text.trim(), TokenKind::Bearer).await.map_err(refused)?;
        if matches!(known, Recognised::Bearer(_)) {
            return Ok(());
        }
    }
    let (_, secret) = engine.token_mint(&embedded::person()).await.map_err(refused)?;
    write(&folder, &file, secret.reveal()).map_err(|error| {
        let text = format!("could not keep a token in {}: {error}", file.display());
        let hint = "make the directory writable, or set XDG_STATE_HOME";
        Box::new(Problem::new(Code::Usage, text).hint(hint))
    })
}

/// Written beside and moved into place, so that nobody reads half of it, and readable by its owner from the beginning.
fn write(folder: &Path, file: &Path, secret: &str) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let beside = file.with_extension(format!("new-{}", std::process::id()));
    let mut new = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    new.write_all(format!("{secret}\n").as_bytes())?;
    fs::rename(&beside, file)
}

/// Returns the file that the server at this address keeps for its user, when there is one.
pub(crate) fn find(url: &str) -> Option<PathBuf> {
    let folder = config::servers_path()?;
    let uri: http::Uri = url.parse().ok()?;
    let port = uri.port_u16().or(if uri.scheme_str() == Some("https") { Some(443) } else { Some(80) })?;
    let host = uri.host()?.trim_start_matches('[').trim_end_matches(']');
    let addresses: Vec<IpAddr> = match host.parse() {
        Ok(address) => vec![address],
        Err(_) if host.eq_ignore_ascii_case("localhost") => {
            vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
        }
        Err(_) => Vec::new(),
    };
    let files = addresses.into_iter().map(|address| folder.join(named(SocketAddr::new(address, port))));
    files.into_iter().find(|file| file.exists())
}

fn named(server: SocketAddr) -> String {
    server.to_string()
}
