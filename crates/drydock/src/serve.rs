//! `serve` and `worker`: the same engine, kept running. Both hand their plans back and let go of their locks when
//! they are told to stop.

use std::net::SocketAddr;

use drydock_api::{Code, Problem};
use drydock_engine::Engine;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::config::{Config, StorePlace};
use crate::embedded;
use crate::http::{problem, router};

/// Serves the HTTP interface and works with `workers` workers until told to stop.
pub(crate) async fn serve(
    place: &StorePlace,
    config: Config,
    listen: &str,
    workers: usize,
    say: impl Fn(&str),
) -> Result<(), Box<Problem>> {
    let address = loopback(listen)?;
    let engine = embedded::engine(place, config).await?;
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let text = format!("could not listen on {address}: {error}");
        Box::new(Problem::new(Code::Usage, text).hint("name another address with --listen"))
    })?;
    let bound = listener.local_addr().unwrap_or(address);
    say(&format!("http://{bound}"));
    let stopping = engine.stopping().clone();
    let served = axum::serve(listener, router(engine.clone(), "http"))
        .with_graceful_shutdown(async move { stopping.cancelled().await });
    let (served, (), ()) = tokio::join!(served.into_future(), engine.work(workers), told_to_stop(&engine));
    release(&engine).await?;
    served
        .map_err(|error| Box::new(Problem::new(Code::Internal, format!("could not go on serving: {error}"))))
}

/// Works until told to stop.
pub(crate) async fn work(place: &StorePlace, config: Config, workers: usize) -> Result<(), Box<Problem>> {
    let engine = embedded::engine(place, config).await?;
    tokio::join!(engine.work(workers), told_to_stop(&engine));
    release(&engine).await
}

async fn told_to_stop(engine: &Engine) {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        tracing::error!("signals cannot be listened to; stop this process with SIGKILL");
        return;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    engine.stopping().cancel();
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

    #[test]
    fn only_loopback_is_listened_on() {
        assert!(loopback("127.0.0.1:0").is_ok());
        assert!(loopback("[::1]:7717").is_ok());
        for refused in ["0.0.0.0:7717", "192.0.2.1:80", "localhost", "7717", ""] {
            assert!(loopback(refused).is_err(), "{refused}");
        }
    }
}
