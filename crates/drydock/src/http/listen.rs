//! Connections: how many at once, how long each may take to say what it wants, and how they end. Whoever connects and
//! says nothing, or a little at a time, is put off after a while; when there is no room, the one of them that has been
//! silent longest makes room, so that those who ask are answered however many do not.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::patient::Waiting;
use super::tls::{Speech, Tls};

/// How long a connection may take to say what it wants, and how much it may say for it.
const HEAD_TIME: Duration = Duration::from_secs(15);
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How long a reader may leave what it asked for unread before it is disconnected.
const PATIENCE: Duration = Duration::from_secs(20);
/// How many connections are open at once.
const CONNECTIONS_MAX: usize = 8_192;
/// How many files the rest of the process may need.
const FILES_APART: u64 = 512;
/// How long to wait after the system had no connection to give.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// How long those who connect may take, and how many they may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// For saying what they want.
    pub(crate) head: Duration,
    /// For reading what they asked for.
    pub(crate) patience: Duration,
    /// How many at once.
    pub(crate) connections: usize,
}

impl Bounds {
    /// Returns the bounds that this machine allows, after taking as many files as it gives.
    pub(crate) fn of_this_machine() -> Self {
        let mut limit = getrlimit(Resource::Nofile);
        if limit.current < limit.maximum {
            match setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
                Ok(()) => limit.current = limit.maximum,
                Err(error) => tracing::warn!(%error, "could not raise the limit on open files"),
            }
        }
        let files = limit.current.map_or(CONNECTIONS_MAX, |files| {
            usize::try_from(files.saturating_sub(FILES_APART).max(files / 2)).unwrap_or(CONNECTIONS_MAX)
        });
        Self { head: HEAD_TIME, patience: PATIENCE, connections: files.clamp(1, CONNECTIONS_MAX) }
    }
}

/// Answers on a listener until told to stop, and then those that are being answered.
pub(crate) async fn listen(
    listener: TcpListener,
    tls: Option<Tls>,
    router: Router,
    bounds: Bounds,
    stop: &CancellationToken,
) -> io::Result<()> {
    let (crowd, mut open) = (Crowd::default(), JoinSet::new());
    for number in 0_u64.. {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = open.join_next() => continue,
            () = stop.cancelled() => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        if open.len() >= bounds.connections && !crowd.make_room() {
            tracing::warn!(connections = open.len(), "no room for another connection");
            continue;
        }
        // An event is small and should arrive now, not with the next.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection sends when it likes");
        }
        let speech = Speech::over(stream, tls.as_ref());
        let stream = Waiting::new(speech, bounds.patience);
        open.spawn(converse(stream, router.clone(), bounds, crowd.place(number), stop.clone()));
    }
    drop(listener);
    while open.join_next().await.is_some() {}
    Ok(())
}

/// Answers what one connection asks, one request after the other.
async fn converse(
    stream: Waiting<Speech>,
    router: Router,
    bounds: Bounds,
    place: Place,
    stop: CancellationToken,
) {
    let put_off = place.put_off.clone();
    let place = Arc::new(place);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        // It has said what it wants; from now on it is not in anybody's way.
        place.leave();
        let answer = router.clone().oneshot(request.map(axum::body::Body::new) as Request);
        async move { Ok::<_, Infallible>(answer.await.unwrap_or_else(|never| match never {})) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(bounds.head).max_buf_size(HEAD_BYTES_MAX);
    let mut conversation = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = conversation.as_mut() => ended,
        () = put_off.cancelled() => return,
        () = stop.cancelled() => {
            conversation.as_mut().graceful_shutdown();
            conversation.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended badly");
    }
}

/// Those who have connected and not said yet what they want, by the order in which they came.
#[derive(Debug, Clone, Default)]
struct Crowd(Arc<Mutex<BTreeMap<u64, CancellationToken>>>);

/// A place among them.
struct Place {
    crowd: Crowd,
    number: u64,
    put_off: CancellationToken,
}

impl Crowd {
    fn place(&self, number: u64) -> Place {
        let put_off = CancellationToken::new();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(number, put_off.clone());
        Place { crowd: self.clone(), number, put_off }
    }

    /// Puts off the one that has waited longest; says whether there was one.
    fn make_room(&self) -> bool {
        let first = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_first();
        first.inspect(|(_, put_off)| put_off.cancel()).is_some()
    }
}

impl Place {
    fn leave(&self) {
        self.crowd.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    const LIMIT: Duration = Duration::from_secs(60);

    /// A server with these bounds, while something is done with it.
    async fn with<T>(bounds: Bounds, work: impl AsyncFnOnce(SocketAddr) -> T) -> T {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
        let router = Router::new().route("/", get(async || "here"));
        let worked = async {
            let done = tokio::time::timeout(LIMIT, work(address)).await.expect("it takes too long");
            stop.cancel();
            done
        };
        tokio::join!(listen(listener, None, router, bounds, &stop), worked).1
    }

    async fn ask(address: SocketAddr) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    /// Breaks when somebody who sends a request a byte at a time holds a connection for as long as they like.
    #[tokio::test]
    async fn whoever_takes_too_long_to_ask_is_put_off() {
        let head = Duration::from_millis(200);
        with(Bounds { head, patience: LIMIT, connections: 9 }, async |address| {
            let mut slow = TcpStream::connect(address).await.unwrap();
            slow.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
            let mut answer = Vec::new();
            loop {
                // Each byte is a sign of life, and none of them buys time.
                if slow.write_all(b"x").await.is_err() {
                    break;
                }
                let mut part = [0; 64];
                match tokio::time::timeout(head / 10, slow.read(&mut part)).await {
                    Ok(Ok(0) | Err(_)) => break,
                    Ok(Ok(read)) => answer.extend_from_slice(&part[..read]),
                    Err(_) => {}
                }
            }
            assert!(!String::from_utf8_lossy(&answer).contains("200 OK"));
            assert!(ask(address).await.ends_with("here"));
        })
        .await;
    }

    /// Breaks when those who connect and say nothing keep those who ask from being answered.
    #[tokio::test]
    async fn the_silent_make_room_for_those_who_ask() {
        with(Bounds { head: LIMIT, patience: LIMIT, connections: 4 }, async |address| {
            let mut silent = Vec::new();
            for _ in 0..40 {
                silent.push(TcpStream::connect(address).await.unwrap());
                if silent.len() % 8 == 0 {
                    assert!(ask(address).await.ends_with("here"));
                }
            }
        })
        .await;
    }
}
