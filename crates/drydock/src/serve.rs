//! `serve` and `worker`: the engine as a long-running process. When stopped, both return their plans to the queue and
//! release their locks.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use drydock_api::{BoxFuture, Code, Problem};
use drydock_domain::{Token, TokenKind, TokenRole, TokenState};
use drydock_engine::{Engine, EngineError};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::cli::Interrupts;
use crate::config::{Config, ServeConfig, StoreLocation, TokenPolicy};
use crate::embedded;
use crate::http::{
    Bounds, ConnectionSecurity, Cookie, Exposure, Hosts, ServerPolicy, TcpService, Tls, link_path, listen,
    problem,
};
use crate::local_token::LocalToken;

/// How long requests in progress may take after a stop was requested.
const GRACE: Duration = Duration::from_secs(10);

/// The default address of a server.
pub(crate) const AT_DEFAULT: &str = "http://127.0.0.1:7717";

/// Options of a server.
#[derive(Debug)]
pub(crate) struct ServeOptions<'a> {
    /// The address to listen on.
    pub(crate) listen: &'a str,
    /// The number of plans to run at once.
    pub(crate) workers: usize,
    /// Whether requests need a token, overriding the configuration.
    pub(crate) tokens: Option<TokenPolicy>,
    /// A certificate and its key, overriding the configuration.
    pub(crate) tls: Option<(PathBuf, PathBuf)>,
    pub(crate) link: LinkPolicy,
}

/// Whether to create a sign-in link at startup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkPolicy {
    /// Create one, if the browser can be on this machine and needs to sign in.
    Wanted,
    /// Create none.
    Unasked,
}

/// The startup message of a server.
#[derive(Debug)]
pub(crate) struct ServerStarted {
    pub(crate) at: String,
    pub(crate) tokens: TokenPolicy,
    /// True if other machines can reach the server and the connection is not encrypted.
    pub(crate) is_open_to_listeners: bool,
    /// The sign-in link.
    pub(crate) link: Option<String>,
}

/// Serves HTTP and works on plans until stopped.
pub(crate) async fn serve(
    place: &StoreLocation,
    config: Config,
    wish: ServeOptions<'_>,
    say: impl Fn(&ServerStarted),
) -> Result<(), Box<Problem>> {
    let address = address(wish.listen)?;
    let (tokens, hosts) = terms(address, wish.tokens, config.server.clone());
    let tls = tls(wish.tls, &config.server)?;
    let reread = tls.clone().map(reread).transpose()?;
    // With a certificate, SIGHUP means to read it again.
    let interrupts = if tls.is_some() { Interrupts::without_hangup()? } else { Interrupts::listen()? };
    let engine = embedded::engine(place, config).await?;
    if !address.ip().is_loopback() {
        require_person(&engine, wish.listen).await?;
    }
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let text = format!("could not listen on {address}: {error}");
        Box::new(Problem::new(Code::Usage, text).hint("choose another address with --listen"))
    })?;
    let bound = listener.local_addr().unwrap_or(address);
    let wire = if tls.is_some() { ConnectionSecurity::Tls } else { ConnectionSecurity::Plain };
    let reach = if address.ip().is_loopback() { Exposure::ThisMachine } else { Exposure::Others };
    let terms = ServerPolicy { tokens, hosts, cookie: Cookie::of(bound.port(), wire), reach };
    begin_hooks(&engine).await?;
    if let Some(url) = inside(bound, wire) {
        engine.served_at(url);
    }
    let (began, mut own) = begin(&engine, bound, wire, tokens, wish.link).await?;
    say(&began);
    let drained = CancellationToken::new();
    let work = async {
        let working = async {
            let works = async { tokio::join!(engine.work(wish.workers), engine.deliver(engine.stopping())) };
            let stops = async {
                works.await;
                // The listener stays open until the workers have stopped; meanwhile `/readyz` answers "stopping".
                engine.stopping().cancelled().await;
            };
            known_while(&engine, &mut own, stops).await;
            drained.cancel();
        };
        let door = ServerSocket { listener, tls, reread, bounds: Bounds::of_this_machine(), grace: GRACE };
        let (served, ()) = tokio::join!(answer(door, &engine, terms, &drained), working);
        if let Some(own) = own {
            own.end(&engine).await;
        }
        release(&engine).await?;
        served.map_err(|error| {
            let text = format!("the server failed: {error}");
            Box::new(Problem::new(Code::Internal, text).hint("restart it"))
        })
    };
    until_told(&engine, interrupts, work).await
}

/// Keeps the local token valid while the work runs. Removes it before another process can listen on our address.
async fn known_while(engine: &Engine, own: &mut Option<LocalToken>, done: impl Future<Output = ()>) {
    let Some(own) = own else { return done.await };
    tokio::select! {
        () = done => {}
        never = own.renew(engine) => match never {},
    }
    own.hide();
}

/// Returns the URL by which programs on this machine reach the server. None with TLS, because the certificate is for
/// the public names; `[server] url` gives one of those.
fn inside(bound: SocketAddr, wire: ConnectionSecurity) -> Option<String> {
    let at = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), bound.port()),
        IpAddr::V6(ip) if ip.is_unspecified() => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), bound.port()),
        IpAddr::V4(_) | IpAddr::V6(_) => bound,
    };
    match wire {
        ConnectionSecurity::Plain => Some(format!("http://{at}")),
        ConnectionSecurity::Tls => None,
    }
}

/// Reads the certificate from the options or the configuration.
fn tls(wish: Option<(PathBuf, PathBuf)>, config: &ServeConfig) -> Result<Option<Tls>, Box<Problem>> {
    match wish.or_else(|| config.tls_cert.clone().zip(config.tls_key.clone())) {
        Some((certificate, key)) => Tls::from_files(&certificate, &key).map(Some),
        None if config.tls_cert.is_some() != config.tls_key.is_some() => {
            let text = "[server] sets only one of tls_cert and tls_key";
            Err(Box::new(Problem::new(Code::ConfigInvalid, text).hint("set both tls_cert and tls_key")))
        }
        None => Ok(None),
    }
}

/// Starts to listen for the signal that the certificate changed.
fn reread(tls: Tls) -> Result<BoxFuture<'static, ()>, Box<Problem>> {
    let listening = tls.reread().map_err(|error| {
        let text = format!("could not listen for signals: {error}");
        Box::new(Problem::new(Code::Internal, text).hint("check the limit on open files"))
    })?;
    Ok(Box::pin(listening))
}

/// Gives the user who runs the server access: a local token for the command line, and a sign-in link for the browser.
/// On a server for other machines, people have tokens and create links themselves.
async fn begin(
    engine: &Engine,
    at: SocketAddr,
    wire: ConnectionSecurity,
    tokens: TokenPolicy,
    link: LinkPolicy,
) -> Result<(ServerStarted, Option<LocalToken>), Box<Problem>> {
    let refused = |error: EngineError| Box::new(problem(&error));
    let (bare, is_open_to_listeners) = match wire {
        ConnectionSecurity::Plain => (format!("http://{at}"), !at.ip().is_loopback()),
        ConnectionSecurity::Tls => (format!("https://{at}"), false),
    };
    let (own, link) = match (at.ip().is_loopback(), tokens, link) {
        (true, TokenPolicy::Required, link) => {
            let own = LocalToken::keep(engine, at).await?;
            match link {
                LinkPolicy::Wanted => {
                    let (_, secret) = engine.link_create(&embedded::person(), None).await.map_err(refused)?;
                    (own, Some(format!("{bare}{}", link_path(&secret))))
                }
                LinkPolicy::Unasked => (own, None),
            }
        }
        (true, TokenPolicy::Optional, _) | (false, _, _) => (None, None),
    };
    Ok((ServerStarted { at: bare, tokens, is_open_to_listeners, link }, own))
}

/// Works on plans until stopped.
pub(crate) async fn work(place: &StoreLocation, config: Config, workers: usize) -> Result<(), Box<Problem>> {
    let interrupts = Interrupts::listen()?;
    let engine = embedded::engine(place, config).await?;
    begin_hooks(&engine).await?;
    let work = async {
        tokio::join!(engine.work(workers), engine.deliver(engine.stopping()));
        release(&engine).await
    };
    until_told(&engine, interrupts, work).await
}

/// The listener, its limits, and how long requests may take after a stop.
struct ServerSocket {
    listener: TcpListener,
    tls: Option<Tls>,
    reread: Option<BoxFuture<'static, ()>>,
    bounds: Bounds,
    grace: Duration,
}

/// Answers requests until all plans are back in the queue, and those in progress for the grace period. A client that
/// never finishes its request must not keep the process alive.
async fn answer(
    door: ServerSocket,
    engine: &Engine,
    terms: ServerPolicy,
    drained: &CancellationToken,
) -> io::Result<()> {
    let everything = TcpService::new(engine, terms);
    let minding = async {
        let rereading = async {
            match door.reread {
                Some(reread) => reread.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = rereading => {}
            () = everything.mind() => {}
        }
    };
    let listening = listen(door.listener, door.tls, everything.service(), door.bounds, drained);
    let served = async { tokio::join!(listening, minding).0 };
    let overdue = async {
        drained.cancelled().await;
        tokio::time::sleep(door.grace).await;
    };
    let served = tokio::select! {
        served = served => served,
        () = overdue => Ok(()),
    };
    // Stop the workers too: workers without a server would look like a server that does not answer.
    engine.stopping().cancel();
    served
}

/// Stops the engine at the first signal, and ends the process at the second.
async fn until_told<T>(engine: &Engine, mut interrupts: Interrupts, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    let interrupt = tokio::select! {
        done = &mut work => return done,
        interrupt = interrupts.next() => interrupt,
    };
    engine.stopping().cancel();
    interrupts.wind_up(interrupt, work).await
}

/// Starts the delivery of new events to new hooks.
async fn begin_hooks(engine: &Engine) -> Result<(), Box<Problem>> {
    engine.hooks_begin().await.map_err(|error| Box::new(problem(&error.into())))
}

async fn release(engine: &Engine) -> Result<(), Box<Problem>> {
    engine.shut_down().await.map_err(|error| Box::new(problem(&error)))
}

fn address(listen: &str) -> Result<SocketAddr, Box<Problem>> {
    listen.parse().map_err(|_| {
        let text = format!("{listen:?} is not an address and a port");
        Box::new(
            Problem::new(Code::Usage, text)
                .hint("use 127.0.0.1:PORT, [::1]:PORT, or 0.0.0.0:PORT for others"),
        )
    })
}

/// Decides whether tokens are required, and which hosts are allowed. A server that other machines can reach always
/// requires tokens. Configured host names are allowed only with tokens: a request without a token is trusted because
/// it comes from this machine, and only its `Host` proves that.
fn terms(address: SocketAddr, wish: Option<TokenPolicy>, config: ServeConfig) -> (TokenPolicy, Hosts) {
    match (address.ip().is_loopback(), wish.or(config.tokens)) {
        (true, Some(TokenPolicy::Optional)) => (TokenPolicy::Optional, Hosts::Loopback),
        (true, None | Some(TokenPolicy::Required)) => (TokenPolicy::Required, Hosts::Named(config.hosts)),
        (false, _) => (TokenPolicy::Required, Hosts::Addresses(config.hosts)),
    }
}

/// Refuses to listen for other machines before a person can access the server, that is, has a token created by a
/// user. Tokens that a server creates for its own machine and its browsers do not count.
async fn require_person(engine: &Engine, listen: &str) -> Result<(), Box<Problem>> {
    let tokens = engine.tokens().await.map_err(|error| Box::new(problem(&error)))?;
    let is_a_persons = |token: &Token| {
        (&token.role, token.kind, token.state) == (&TokenRole::Human, TokenKind::Bearer, TokenState::Valid)
    };
    if tokens.iter().any(is_a_persons) {
        return Ok(());
    }
    let text = format!("{listen} can be reached from other machines, but no token with role human exists");
    let hint = "create one with `drydock token create NAME --role human`, or listen on 127.0.0.1:PORT";
    Err(Box::new(Problem::new(Code::Usage, text).hint(hint)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    const LIMIT: Duration = Duration::from_secs(60);

    /// Breaks if stopping waits for a client that sent half of a request and then nothing.
    #[tokio::test]
    async fn a_half_sent_request_does_not_hold_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let place = StoreLocation::Default(folder.path().join("drydock.db"));
        let engine = embedded::engine(&place, Config::default()).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let drained = CancellationToken::new();
        let half = "POST /api/v1/gc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                    Content-Length: 99\r\nExpect: 100-continue\r\n\r\n{";
        let asked = async {
            client.write_all(half.as_bytes()).await.unwrap();
            // The server waits for the rest of the body after `100 Continue`.
            let mut begun = [0; 12];
            client.read_exact(&mut begun).await.unwrap();
            assert_eq!(&begun, b"HTTP/1.1 100");
            engine.stopping().cancel();
            drained.cancel();
        };
        let (bounds, grace) = (Bounds::of_this_machine(), Duration::from_millis(1));
        let door = ServerSocket { listener, tls: None, reread: None, bounds, grace };
        let (cookie, reach) = (Cookie::of(0, ConnectionSecurity::Plain), Exposure::ThisMachine);
        let terms = ServerPolicy { tokens: TokenPolicy::Optional, hosts: Hosts::Loopback, cookie, reach };
        let both = async { tokio::join!(answer(door, &engine, terms, &drained), asked).0 };
        tokio::time::timeout(LIMIT, both).await.expect("it stops").unwrap();
    }

    /// Breaks if a server that other machines can reach answers without a token.
    #[test]
    fn only_on_loopback_a_token_is_a_choice() {
        let tokens = |listen: &str, wish, configured| {
            let config = ServeConfig { tokens: configured, ..ServeConfig::default() };
            terms(address(listen).unwrap(), wish, config).0
        };
        let (optional, required) = (Some(TokenPolicy::Optional), Some(TokenPolicy::Required));
        for listen in ["127.0.0.1:0", "127.9.9.9:1", "[::1]:7717"] {
            assert_eq!(tokens(listen, None, None), TokenPolicy::Required, "{listen}");
            assert_eq!(tokens(listen, optional, None), TokenPolicy::Optional, "{listen}");
            assert_eq!(tokens(listen, None, optional), TokenPolicy::Optional, "{listen}");
            assert_eq!(tokens(listen, required, None), TokenPolicy::Required, "{listen}");
            assert_eq!(tokens(listen, None, required), TokenPolicy::Required, "{listen}");
            assert_eq!(tokens(listen, optional, required), TokenPolicy::Optional, "{listen}");
        }
        for listen in ["0.0.0.0:7717", "192.0.2.1:80", "[::]:1", "[::ffff:127.0.0.1]:1"] {
            assert_eq!(tokens(listen, optional, optional), TokenPolicy::Required, "{listen}");
        }
        for refused in ["localhost", "7717", ""] {
            assert!(address(refused).is_err(), "{refused}");
        }
    }
}
