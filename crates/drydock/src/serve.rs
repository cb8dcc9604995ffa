//! `serve` and `worker`: the same engine, kept running. Both hand their plans back and let go of their locks when
//! they are told to stop.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use drydock_api::{Code, Problem};
use drydock_engine::Engine;
use tokio::net::TcpListener;

use crate::cli::Interrupts;
use crate::config::{Config, StorePlace};
use crate::embedded;
use crate::http::{Patient, guarded, problem, router};

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

/// Serves the HTTP interface and works with `workers` workers until told to stop.
pub(crate) async fn serve(
    place: &StorePlace,
    config: Config,
    listen: &str,
    workers: usize,
    say: impl Fn(&str),
) -> Result<(), Box<Problem>> {
    let address = loopback(listen)?;
    let interrupts = Interrupts::listen()?;
    let engine = embedded::engine(place, config).await?;
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let text = format!("could not listen on {address}: {error}");
        Box::new(Problem::new(Code::Usage, text).hint("name another address with --listen"))
    })?;
    let bound = listener.local_addr().unwrap_or(address);
    begin_hooks(&engine).await?;
    say(&format!("http://{bound}"));
    let work = async {
        let (served, (), ()) = tokio::join!(
            answer(listener, &engine, LIMITS),
            engine.work(workers),
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
async fn answer(listener: TcpListener, engine: &Engine, limits: Limits) -> io::Result<()> {
    let stopping = engine.stopping().clone();
    let served =
        axum::serve(Patient::new(listener, limits.patience), guarded(router(engine.clone(), "http", "http")))
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

/// Refuses to be reachable from other machines: there are no tokens yet.
fn loopback(listen: &str) -> Result<SocketAddr, Box<Problem>> {
    let refuse =
        |text: String| Box::new(Problem::new(Code::Usage, text).hint("use 127.0.0.1:PORT or [::1]:PORT"));
    let address: SocketAddr =
        listen.parse().map_err(|_| refuse(format!("{listen:?} is not an address and a port")))?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err(refuse(format!(
            "{listen} can be reached by others, and that needs tokens, which are not built yet"
        )))
    }
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
        let both = async { tokio::join!(answer(listener, &engine, limits), asked).0 };
        tokio::time::timeout(LIMIT, both).await.expect("it stops").unwrap();
    }

    #[test]
    fn only_loopback_is_listened_on() {
        assert!(loopback("127.0.0.1:0").is_ok());
        assert!(loopback("[::1]:7717").is_ok());
        for refused in ["0.0.0.0:7717", "192.0.2.1:80", "localhost", "7717", ""] {
            assert!(loopback(refused).is_err(), "{refused}");
        }
    }
}
