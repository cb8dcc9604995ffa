//! `serve` and `worker`: the same engine, kept running. Both hand their plans back and let go of their locks when
//! they are told to stop.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use drydock_api::{Code, Problem};
use drydock_domain::{Role, TokenState};
use drydock_engine::Engine;
use tokio::net::TcpListener;

use crate::cli::Interrupts;
use crate::config::{Config, Server, StorePlace, Tokens};
use crate::embedded;
use crate::http::{Hosts, Patient, authenticated, guarded, problem, router};

/// How long requests that are being answered may take after the word to stop.
const GRACE: Duration = Duration::from_secs(10);
/// How long a reader may leave what it asked for unread before it is disconnected.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long others may take.
#[derive(Debug, Clone, Copy)]
struct Limits {
    grace: Duration,
    patience: Duration,
}

const LIMITS: Limits = Limits { grace: GRACE, patience: PATIENCE };

/// How a server is asked for.
#[derive(Debug)]
pub(crate) struct Wish<'a> {
    /// Where it shall listen.
    pub(crate) listen: &'a str,
    /// How many plans it runs at once.
    pub(crate) workers: usize,
    /// Whether requests shall need a token, whatever the configuration says.
    pub(crate) tokens: Option<Tokens>,
}

/// What a server asks of those who ask it.
#[derive(Debug, Clone)]
struct Terms {
    tokens: Tokens,
    hosts: Hosts,
}

/// Serves the HTTP interface and works until told to stop.
pub(crate) async fn serve(
    place: &StorePlace,
    config: Config,
    wish: Wish<'_>,
    say: impl Fn(&str, Tokens),
) -> Result<(), Box<Problem>> {
    let address = address(wish.listen)?;
    let terms = terms(address, wish.tokens, config.server.clone());
    let interrupts = Interrupts::listen()?;
    let engine = embedded::engine(place, config).await?;
    if !address.ip().is_loopback() {
        require_person(&engine, wish.listen).await?;
    }
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let text = format!("could not listen on {address}: {error}");
        Box::new(Problem::new(Code::Usage, text).hint("name another address with --listen"))
    })?;
    let bound = listener.local_addr().unwrap_or(address);
    begin_hooks(&engine).await?;
    say(&format!("http://{bound}"), terms.tokens);
    let work = async {
        let (served, (), ()) = tokio::join!(
            answer(listener, &engine, terms, LIMITS),
            engine.work(wish.workers),
            engine.deliver(engine.stopping())
        );
        release(&engine).await?;
        served.map_err(|error| {
            let text = format!("could not go on serving: {error}");
            Box::new(Problem::new(Code::Internal, text).hint("start it again"))
        })
    };
    until_told(&engine, interrupts, work).await
}

/// Works until told to stop.
pub(crate) async fn work(place: &StorePlace, config: Config, workers: usize) -> Result<(), Box<Problem>> {
    let interrupts = Interrupts::listen()?;
    let engine = embedded::engine(place, config).await?;
    begin_hooks(&engine).await?;
    let work = async {
        tokio::join!(engine.work(workers), engine.deliver(engine.stopping()));
        release(&engine).await
    };
    until_told(&engine, interrupts, work).await
}

/// Answers requests until the engine stops, and those under way for the grace longer: a client that never finishes its
/// request must not hold the process.
async fn answer(listener: TcpListener, engine: &Engine, terms: Terms, limits: Limits) -> io::Result<()> {
    let stopping = engine.stopping().clone();
    let router = authenticated(router(engine.clone(), "http", "http"), engine.clone(), terms.tokens);
    let served = axum::serve(Patient::new(listener, limits.patience), guarded(router, terms.hosts))
        .with_graceful_shutdown(async move { stopping.cancelled().await });
    let overdue = async {
        engine.stopping().cancelled().await;
        tokio::time::sleep(limits.grace).await;
    };
    let served = tokio::select! {
        served = served.into_future() => served,
        () = overdue => Ok(()),
    };
    // Workers without a server would look like a server that does not answer.
    engine.stopping().cancel();
    served
}

/// Tells the engine to stop at the first signal, and ends the process at the second.
async fn until_told<T>(engine: &Engine, mut interrupts: Interrupts, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    let interrupt = tokio::select! {
        done = &mut work => return done,
        interrupt = interrupts.next() => interrupt,
    };
    engine.stopping().cancel();
    interrupts.wind_up(interrupt, work).await
}

/// Has hooks that are new told of what happens from now on.
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

/// Whoever can be reached by others asks everybody for a token. Names count only where tokens do: a request without one
/// is trusted for coming from this machine, and its name is what tells that.
fn terms(address: SocketAddr, wish: Option<Tokens>, config: Server) -> Terms {
    match (address.ip().is_loopback(), wish.or(config.tokens)) {
        (true, None | Some(Tokens::Optional)) => Terms { tokens: Tokens::Optional, hosts: Hosts::Loopback },
        (true, Some(Tokens::Required)) => {
            Terms { tokens: Tokens::Required, hosts: Hosts::Named(config.hosts) }
        }
        (false, _) => Terms { tokens: Tokens::Required, hosts: Hosts::Addresses(config.hosts) },
    }
}

/// Refuses to be reachable by others before there is a person who could ask.
async fn require_person(engine: &Engine, listen: &str) -> Result<(), Box<Problem>> {
    let tokens = engine.tokens().await.map_err(|error| Box::new(problem(&error)))?;
    if tokens.iter().any(|token| token.role == Role::Human && token.state == TokenState::Valid) {
        return Ok(());
    }
    let text = format!("{listen} can be reached by others, and no person has a token for it");
    let hint = "make one with `drydock token create NAME --role human`, or listen on 127.0.0.1:PORT";
    Err(Box::new(Problem::new(Code::Usage, text).hint(hint)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    const LIMIT: Duration = Duration::from_secs(60);

    /// Breaks when stopping waits for a client that sent half of a request and then nothing.
    #[tokio::test]
    async fn a_half_sent_request_does_not_hold_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let place = StorePlace::Default(folder.path().join("drydock.db"));
        let engine = embedded::engine(&place, Config::default()).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let half = "POST /api/v1/gc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                    Content-Length: 99\r\nExpect: 100-continue\r\n\r\n{";
        let asked = async {
            client.write_all(half.as_bytes()).await.unwrap();
            // The server waits for the rest of the body when it says that it may be sent.
            let mut begun = [0; 12];
            client.read_exact(&mut begun).await.unwrap();
            assert_eq!(&begun, b"HTTP/1.1 100");
            engine.stopping().cancel();
        };
        let limits = Limits { grace: Duration::from_millis(1), ..LIMITS };
        let terms = Terms { tokens: Tokens::Optional, hosts: Hosts::Loopback };
        let both = async { tokio::join!(answer(listener, &engine, terms, limits), asked).0 };
        tokio::time::timeout(LIMIT, both).await.expect("it stops").unwrap();
    }

    /// Breaks when a server that others can reach answers without a token.
    #[test]
    fn only_on_loopback_a_token_is_a_choice() {
        let tokens = |listen: &str, wish, configured| {
            let config = Server { tokens: configured, hosts: Vec::new() };
            terms(address(listen).unwrap(), wish, config).tokens
        };
        let (optional, required) = (Some(Tokens::Optional), Some(Tokens::Required));
        for listen in ["127.0.0.1:0", "127.9.9.9:1", "[::1]:7717"] {
            assert_eq!(tokens(listen, None, None), Tokens::Optional, "{listen}");
            assert_eq!(tokens(listen, required, None), Tokens::Required, "{listen}");
            assert_eq!(tokens(listen, None, required), Tokens::Required, "{listen}");
            assert_eq!(tokens(listen, optional, required), Tokens::Optional, "{listen}");
        }
        for listen in ["0.0.0.0:7717", "192.0.2.1:80", "[::]:1", "[::ffff:127.0.0.1]:1"] {
            assert_eq!(tokens(listen, optional, optional), Tokens::Required, "{listen}");
        }
        for refused in ["localhost", "7717", ""] {
            assert!(address(refused).is_err(), "{refused}");
        }
    }
}
