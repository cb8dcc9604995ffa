//! The token that the command line finds by itself: a server on loopback keeps one in a file of its user's, named after
//! its address, and nobody else may read it. It is sent to that address and to no other, and it ends with the server:
//! whoever listens there next gets nothing that counts. What a crash leaves behind ends by itself.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use drydock_api::{Code, Problem, http};
use drydock_domain::{TokenId, TokenKind, told};
use drydock_engine::{Engine, EngineError, Recognised, Secret};

use crate::http::problem;
use crate::{config, embedded};

/// How long one is kept before the next is made: both count for the rest of the first's life.
const RENEW_EVERY: Duration = Duration::from_secs(Engine::MACHINE_LIFE.as_secs() / 2);
/// How long to wait after the next could not be made.
const RENEW_AGAIN: Duration = Duration::from_secs(60 * 60);
/// How many made by one server can count at once.
const ALIVE_MAX: usize = 3;

/// The token of a server that runs.
#[derive(Debug)]
pub(crate) struct LocalToken {
    folder: PathBuf,
    file: PathBuf,
    secret: Secret,
    made: VecDeque<TokenId>,
}

impl LocalToken {
    /// Makes the token by which the command line of whoever serves finds this server, where there is a place for it. What
    /// a server before left there is ended.
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
            if let Recognised::Bearer(token) = left
                && token.kind == TokenKind::Machine
            {
                engine.token_end(&token.id).await.map_err(refused)?;
            }
        }
        let (token, secret) = made(engine, &folder, &file).await?;
        Ok(Self { folder, file, secret, made: [token].into() })
    }

    /// Makes the next one in time, for as long as it is polled. The one before is left to end by itself: somebody may be
    /// reading a stream with it.
    pub(crate) async fn renew(&mut self, engine: &Engine) -> Infallible {
        let mut wait = RENEW_EVERY;
        loop {
            tokio::time::sleep(wait).await;
            wait = match self.renew_now(engine).await {
                Ok(()) => RENEW_EVERY,
                Err(problem) => {
                    tracing::warn!(%problem, "could not renew the token of this machine's command line");
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

    /// Takes the file away, unless it is another's by now. To be done while the address is still ours.
    pub(crate) fn hide(&self) {
        let removed = match fs::read_to_string(&self.file) {
            Ok(text) if text.trim() == self.secret.reveal() => fs::remove_file(&self.file),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(error = %told(&error), file = %self.file.display(), "could not remove the token of this server");
            }
            Ok(()) | Err(_) => {}
        }
    }

    /// Ends all that were made. Whoever was signed in by a link of one stays so: a restart is no reason to end that.
    pub(crate) async fn end(self, engine: &Engine) {
        for token in &self.made {
            match engine.token_end(token).await {
                // Somebody else may have tidied it away when its time was over.
                Ok(_) | Err(EngineError::Absent(_)) => {}
                Err(error) => {
                    tracing::warn!(error = %told(&error), %token, "could not end the token of this server")
                }
            }
        }
    }
}

/// Makes a token and puts it where it is looked for.
async fn made(engine: &Engine, folder: &Path, file: &Path) -> Result<(TokenId, Secret), Box<Problem>> {
    let minted = engine.token_mint(&embedded::person()).await;
    let (token, secret) = minted.map_err(|error| Box::new(problem(&error)))?;
    write(folder, file, secret.reveal()).map_err(|error| {
        let text = format!("could not keep a token in {}: {error}", file.display());
        let hint = "make the directory writable, or set XDG_STATE_HOME";
        Box::new(Problem::new(Code::Usage, text).hint(hint))
    })?;
    Ok((token.id, secret))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, StorePlace};
    use drydock_domain::TokenState;

    /// Breaks when the next token ends the one before while somebody may use it, or when any of them outlives the server.
    #[tokio::test]
    async fn a_renewed_token_leaves_the_one_before_until_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let place = StorePlace::Default(folder.path().join("drydock.db"));
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
        // What ended is forgotten with the next, and the file of another stays.
        let token = LocalToken::keep_in(servers, &engine, at).await.unwrap();
        assert_eq!(states().await, [TokenState::Valid]);
        fs::write(&file, "another").unwrap();
        token.hide();
        assert!(file.exists());
    }
}
