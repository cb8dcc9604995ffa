//! A proxy on loopback that can interrupt and restore the connection to a server.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Forwards connections to a server until it is cut.
pub struct Proxy {
    address: SocketAddr,
    state: Arc<Mutex<ProxyState>>,
}

#[derive(Default)]
struct ProxyState {
    cut: bool,
    /// Both ends of all connections.
    open: Vec<TcpStream>,
    /// The next response that contains these bytes is lost.
    losing: Option<&'static [u8]>,
}

impl Proxy {
    /// Listens on loopback until the process ends.
    pub fn start(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let proxy = Self { address: listener.local_addr()?, state: Arc::default() };
        let state = proxy.state.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A connection that cannot be forwarded is closed at once.
                pass_on(&state, client, server).ok();
            }
        });
        Ok(proxy)
    }

    /// Returns the address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes all connections, and refuses new ones.
    pub fn cut(&self) {
        let mut state = lock(&self.state);
        state.cut = true;
        for end in state.open.drain(..) {
            // An error means that the connection is already closed.
            end.shutdown(Shutdown::Both).ok();
        }
    }

    /// Closes the connection of the next response that contains these bytes instead of forwarding it: the server has
    /// performed the request, and the client cannot know.
    pub fn lose_answer(&self, with: &'static [u8]) {
        lock(&self.state).losing = Some(with);
    }

    /// Accepts connections again.
    pub fn mend(&self) {
        lock(&self.state).cut = false;
    }
}

fn pass_on(shared: &Arc<Mutex<ProxyState>>, client: TcpStream, server: SocketAddr) -> io::Result<()> {
    let mut state = lock(shared);
    if state.cut {
        return Ok(());
    }
    let server = TcpStream::connect(server)?;
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        // On any end, the other side is closed too.
        io::copy(&mut from, &mut to).ok();
        to.shutdown(Shutdown::Both).ok();
    });
    let (mut from, mut to, shared) = (server.try_clone()?, client.try_clone()?, Arc::clone(shared));
    thread::spawn(move || {
        answer(&shared, &mut from, &mut to).ok();
        for end in [from, to] {
            end.shutdown(Shutdown::Both).ok();
        }
    });
    state.open.extend([client, server]);
    Ok(())
}

/// Forwards responses until one side is closed or a response must be lost.
fn answer(state: &Mutex<ProxyState>, from: &mut TcpStream, to: &mut TcpStream) -> io::Result<()> {
    let mut bytes = [0; 16 * 1024];
    loop {
        let length = from.read(&mut bytes)?;
        let said = &bytes[..length];
        let lost = |with: &mut &'static [u8]| said.windows(with.len()).any(|part| part == *with);
        if length == 0 || lock(state).losing.take_if(lost).is_some() {
            return Ok(());
        }
        to.write_all(said)?;
    }
}

fn lock(state: &Mutex<ProxyState>) -> MutexGuard<'_, ProxyState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
