//! A way to a server that can be cut and mended: a proxy on loopback.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Passes connections on to a server, until it is cut.
pub struct Proxy {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    cut: bool,
    /// Both ends of all connections.
    open: Vec<TcpStream>,
}

impl Proxy {
    /// Listens on loopback, for as long as the process lives.
    pub fn start(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let proxy = Self { address: listener.local_addr()?, state: Arc::default() };
        let state = proxy.state.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // One that cannot be passed on is closed at once, which is all that its client has to know.
                pass_on(&state, client, server).ok();
            }
        });
        Ok(proxy)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections, and those that come.
    pub fn cut(&self) {
        let mut state = lock(&self.state);
        state.cut = true;
        for end in state.open.drain(..) {
            // One that is closed already is cut as well.
            end.shutdown(Shutdown::Both).ok();
        }
    }

    /// Lets connections through again.
    pub fn mend(&self) {
        lock(&self.state).cut = false;
    }
}

fn pass_on(state: &Mutex<State>, client: TcpStream, server: SocketAddr) -> io::Result<()> {
    let mut state = lock(state);
    if state.cut {
        return Ok(());
    }
    let server = TcpStream::connect(server)?;
    for (mut from, mut to) in
        [(client.try_clone()?, server.try_clone()?), (server.try_clone()?, client.try_clone()?)]
    {
        thread::spawn(move || {
            // However it ends, the other side hears of it.
            io::copy(&mut from, &mut to).ok();
            to.shutdown(Shutdown::Both).ok();
        });
    }
    state.open.extend([client, server]);
    Ok(())
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
