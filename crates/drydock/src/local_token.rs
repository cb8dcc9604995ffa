//! The token that the command line finds automatically. A server on loopback writes it to a file named after its
//! address, which only the server's user can read. The command line sends the token only to that address. The token
//! ends when the server stops, so the next process that listens on the address receives nothing valid. After a crash
//! the token expires.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use drydock_api::{Code, Problem, http};
use drydock_domain::{TokenId, TokenKind, error_chain};
use drydock_engine::{Engine, EngineError, Secret, TokenCheck};

use crate::http::problem;
use crate::{config, embedded};

/// How long a token is used before the next one is created. Both are valid for the rest of the first one's life.
const RENEW_EVERY: Duration = Duration::from_secs(Engine::MACHINE_LIFE.as_secs() / 2);
/// The delay after the next token could not be created.
const RENEW_AGAIN: Duration = Duration::from_secs(60 * 60);
/// The maximum number of tokens of one server that can be valid at once.
const ALIVE_MAX: usize = 3;

/// The token of a running server.
#[derive(Debug)]
pub(crate) struct LocalToken {
    folder: PathBuf,
    file: PathBuf,
    secret: Secret,
    made: VecDeque<TokenId>,
}

impl LocalToken {
    /// Creates the token with which the command line of the same user finds this server, if there is a directory for
    /// it. Ends a token that an earlier server left there.
    pub(crate) async fn keep(engine: &Engine, server: SocketAddr) -> Result<Option<Self>, Box<Problem>> {
        match config::servers_path() {
            Some(folder) => Self::keep_in(folder, engine, server).await.map(Some),
            None => Ok(None),
        }
    }

    async fn keep_in(folder: PathBuf, engine: &Engine, server: SocketAddr) -> Result<Self, Box<Problem>> {
        let refused = |error: EngineError| Box::new(problem(&error));
        let file = folder.join(named(server));
        if let Ok(text) = fs::read_to_string(&file) {
            let left = engine.token_recognise(text.trim(), TokenKind::Bearer).await.map_err(refused)?;
            if let TokenCheck::Bearer(token) = left
                && token.kind == TokenKind::Machine
            {
                engine.token_end(&token.id).await.map_err(refused)?;
            }
        }
        let (token, secret) = made(engine, &folder, &file).await?;
        Ok(Self { folder, file, secret, made: [token].into() })
    }

    /// Creates new tokens in time while it is polled. The previous token is left to expire because a client may be
    /// reading a stream with it.
    pub(crate) async fn renew(&mut self, engine: &Engine) -> Infallible {
        let mut wait = RENEW_EVERY;
        loop {
            tokio::time::sleep(wait).await;
            wait = match self.renew_now(engine).await {
                Ok(()) => RENEW_EVERY,
                Err(problem) => {
                    tracing::warn!(%problem, "could not renew the local token of this server");
                    RENEW_AGAIN
                }
            };
        }
    }

    async fn renew_now(&mut self, engine: &Engine) -> Result<(), Box<Problem>> {
        let (token, secret) = made(engine, &self.folder, &self.file).await?;
        self.secret = secret;
        self.made.push_back(token);
        if self.made.len() > ALIVE_MAX {
            self.made.pop_front();
        }
        Ok(())
    }

    /// Removes the file, unless another server has replaced it. Call this while the address is still ours.
    pub(crate) fn hide(&self) {
        let removed = match fs::read_to_string(&self.file) {
            Ok(text) if text.trim() == self.secret.reveal() => fs::remove_file(&self.file),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(error = %error_chain(&error), file = %self.file.display(), "could not remove the token file of this server");
            }
            Ok(()) | Err(_) => {}
        }
    }

    /// Ends all tokens of this server. Sessions from their links remain, so that a restart does not sign
    /// users out.
    pub(crate) async fn end(self, engine: &Engine) {
        for token in &self.made {
            match engine.token_end(token).await {
                // An expired token may already have been removed by another process.
                Ok(_) | Err(EngineError::Absent(_)) => {}
                Err(error) => {
                    tracing::warn!(error = %error_chain(&error), %token, "could not revoke the local token of this server")
                }
            }
        }
    }
}

/// Creates a token and writes it to the file.
async fn made(engine: &Engine, folder: &Path, file: &Path) -> Result<(TokenId, Secret), Box<Problem>> {
    let minted = engine.token_mint(&embedded::person()).await;
    let (token, secret) = minted.map_err(|error| Box::new(problem(&error)))?;
    write(folder, file, secret.reveal()).map_err(|error| {
        let text = format!("could not write the token file {}: {error}", file.display());
        let hint = "make the directory writable, or set XDG_STATE_HOME";
        Box::new(Problem::new(Code::Usage, text).hint(hint))
    })?;
    Ok((token.id, secret))
}

/// Writes a temporary file and renames it, so that no process reads half of it. Only its owner can read it from the
/// start.
fn write(folder: &Path, file: &Path, secret: &str) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let beside = file.with_extension(format!("new-{}", std::process::id()));
    let mut new = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    new.write_all(format!("{secret}\n").as_bytes())?;
    fs::rename(&beside, file)
}

/// Returns the token file of the server at this address, if there is one.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, StoreLocation};
    use drydock_domain::TokenState;

    /// Breaks if a new token ends the previous one while it may still be in use, or if a token outlives the server.
    #[tokio::test]
    async fn a_renewed_token_leaves_the_one_before_until_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let place = StoreLocation::Default(folder.path().join("drydock.db"));
        let engine = embedded::engine(&place, Config::default()).await.unwrap();
        let servers = folder.path().join("servers");
        let at: SocketAddr = "127.0.0.1:7717".parse().unwrap();
        let states =
            async || -> Vec<_> { engine.tokens().await.unwrap().iter().map(|token| token.state).collect() };
        let mut token = LocalToken::keep_in(servers.clone(), &engine, at).await.unwrap();
        let file = servers.join("127.0.0.1:7717");
        let first = fs::read_to_string(&file).unwrap();
        token.renew_now(&engine).await.unwrap();
        assert_ne!(fs::read_to_string(&file).unwrap(), first);
        assert_eq!(states().await, [TokenState::Valid; 2]);
        token.hide();
        assert!(!file.exists());
        token.end(&engine).await;
        assert_eq!(states().await, [TokenState::Revoked; 2]);
        // Ended tokens are forgotten with the next one, and the file of another server stays.
        let token = LocalToken::keep_in(servers, &engine, at).await.unwrap();
        assert_eq!(states().await, [TokenState::Valid]);
        fs::write(&file, "another").unwrap();
        token.hide();
        assert!(file.exists());
    }
}
