//! Accepts connections: limits their number, the time to send a request, and the time to read an answer. A connection
//! that does not send the head of a request in time is closed. When the limit is reached, the connection that has
//! been idle longest is closed, so idle connections never keep others from being served. `crowd` tracks which
//! connections are idle.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::response::Response;
use drydock_domain::error_chain;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::{Service, ServiceExt};

use super::crowd::{ConnectionSlot, IdleConnections, TrackedBody};
use super::patient::WriteTimeoutStream;
use super::tls::{MaybeTlsStream, Tls};

/// The maximum time to send the head of a request, and its maximum size.
const HEAD_TIME: Duration = Duration::from_secs(15);
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How long a client may leave an answer unread before it is disconnected.
const PATIENCE: Duration = Duration::from_secs(20);
/// The maximum number of open connections.
const CONNECTIONS_MAX: usize = 8_192;
/// The number of file descriptors reserved for the rest of the process.
const FILES_APART: u64 = 512;
/// The delay after `accept` failed.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Limits for connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// The maximum time to send the head of a request.
    pub(crate) head: Duration,
    /// The maximum time without reading the answer.
    pub(crate) patience: Duration,
    /// The maximum number of open connections.
    pub(crate) connections: usize,
}

impl Bounds {
    /// Returns the limits for this machine, after raising the soft limit of open files to the hard limit.
    pub(crate) fn of_this_machine() -> Self {
        let mut limit = getrlimit(Resource::Nofile);
        if limit.current < limit.maximum {
            match setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
                Ok(()) => limit.current = limit.maximum,
                Err(error) => {
                    tracing::warn!(error = %error_chain(&error), "could not raise the limit on open files")
                }
            }
        }
        let files = limit.current.map_or(CONNECTIONS_MAX, |files| {
            usize::try_from(files.saturating_sub(FILES_APART).max(files / 2)).unwrap_or(CONNECTIONS_MAX)
        });
        Self { head: HEAD_TIME, patience: PATIENCE, connections: files.clamp(1, CONNECTIONS_MAX) }
    }
}

/// A service that answers requests.
pub(crate) trait HttpService:
    Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + 'static
{
}

impl<S> HttpService for S where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + 'static
{
}

/// Serves a listener until stopped, then finishes the requests in progress.
pub(crate) async fn listen<S: HttpService>(
    listener: TcpListener,
    tls: Option<Tls>,
    service: S,
    bounds: Bounds,
    stop: &CancellationToken,
) -> io::Result<()> {
    let (crowd, mut open) = (IdleConnections::default(), JoinSet::new());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = open.join_next() => continue,
            () = stop.cancelled() => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(error = %error_chain(&error), "could not accept a connection");
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        if open.len() >= bounds.connections && !crowd.make_room() {
            tracing::warn!(connections = open.len(), "connection limit reached");
            continue;
        }
        // Events are small; without this they would be delayed to be sent together.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(error = %error_chain(&error), "could not set TCP_NODELAY");
        }
        let speech = MaybeTlsStream::over(stream, tls.as_ref());
        open.spawn(converse(speech, service.clone(), bounds, crowd.place(), stop.clone()));
    }
    drop(listener);
    while open.join_next().await.is_some() {}
    Ok(())
}

/// Serves the requests of one connection, one after the other.
async fn converse<S: HttpService>(
    speech: MaybeTlsStream,
    answering: S,
    bounds: Bounds,
    place: ConnectionSlot,
    stop: CancellationToken,
) {
    let put_off = place.put_off.clone();
    let place = Arc::new(place);
    let sent = Arc::clone(&place);
    let stream = WriteTimeoutStream::new(speech, bounds.patience, move || sent.flushed());
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        // The head of the request was received; until it is answered, the connection must not be closed to make room.
        let (may_ask, answering, place) = (place.ask(), answering.clone(), Arc::clone(&place));
        async move {
            if !may_ask {
                return Err(io::Error::from(io::ErrorKind::ConnectionAborted));
            }
            let answer = answering.oneshot(request.map(axum::body::Body::new) as Request).await;
            Ok(answer.unwrap_or_else(|never| match never {}).map(|body| TrackedBody::new(body, place)))
        }
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
        tracing::debug!(error = %error_chain(&error), "a connection ended with an error");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    use axum::Router;
    use axum::routing::{get, post};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    const LIMIT: Duration = Duration::from_secs(60);

    /// Runs a server with these limits while the work runs.
    async fn with<T>(bounds: Bounds, work: impl AsyncFnOnce(SocketAddr) -> T) -> T {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
        let router =
            Router::new().route("/", get(async || "here")).route("/echo", post(async |body: String| body));
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

    /// Breaks if a client that sends its request a byte at a time can hold a connection open without limit.
    #[tokio::test]
    async fn whoever_takes_too_long_to_ask_is_put_off() {
        let head = Duration::from_millis(200);
        with(Bounds { head, patience: LIMIT, connections: 9 }, async |address| {
            let mut slow = TcpStream::connect(address).await.unwrap();
            slow.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
            let mut answer = Vec::new();
            loop {
                // No byte extends the time limit.
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

    /// Breaks if connections without a request keep others from being served.
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

    /// Sends a request on a connection that stays open, and reads the answer.
    async fn ask_on(stream: &mut TcpStream) {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"here") {
            assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0, "it was put off");
        }
    }

    /// Breaks if idle connections that were answered once keep others out, or if another one is closed than the one
    /// that has been idle longest.
    #[tokio::test]
    async fn the_answered_make_room_and_the_longest_silent_first() {
        with(Bounds { head: LIMIT, patience: LIMIT, connections: 3 }, async |address| {
            let mut open = Vec::new();
            for _ in 0..3 {
                open.push(TcpStream::connect(address).await.unwrap());
                ask_on(open.last_mut().unwrap()).await;
            }
            // The first connection is no longer the one that has been idle longest.
            ask_on(&mut open[0]).await;
            assert!(ask(address).await.ends_with("here"));
            assert_eq!(open[1].read(&mut [0; 64]).await.unwrap(), 0, "it stays");
            for alive in [0, 2] {
                ask_on(&mut open[alive]).await;
            }
        })
        .await;
    }

    /// Breaks if a request in progress is aborted to make room for another connection.
    #[tokio::test]
    async fn a_request_under_way_is_not_put_off() {
        with(Bounds { head: LIMIT, patience: LIMIT, connections: 2 }, async |address| {
            let mut busy = TcpStream::connect(address).await.unwrap();
            ask_on(&mut busy).await;
            let half =
                "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\nhe";
            busy.write_all(half.as_bytes()).await.unwrap();
            // The server has accepted the request when it sends `100 Continue`.
            let mut begun = [0; 25];
            busy.read_exact(&mut begun).await.unwrap();
            assert!(begun.starts_with(b"HTTP/1.1 100"));
            let mut silent = Vec::new();
            for _ in 0..20 {
                silent.push(TcpStream::connect(address).await.unwrap());
                assert!(ask(address).await.ends_with("here"));
            }
            busy.write_all(b"re").await.unwrap();
            let mut answer = Vec::new();
            while !answer.ends_with(b"here") {
                assert_ne!(busy.read_buf(&mut answer).await.unwrap(), 0, "it was put off");
            }
        })
        .await;
    }
}
