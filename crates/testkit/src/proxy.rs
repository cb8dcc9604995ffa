//! A way to a server that can be cut and mended: a proxy on loopback.

use std::io::{self, Read, Write};
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
    /// The answer that is lost next.
    losing: Option<&'static [u8]>,
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

    /// Ends the connection over which the next answer comes that contains these bytes, instead of passing it on: the
    /// server has carried out the request, and the client cannot know.
    pub fn lose_answer(&self, with: &'static [u8]) {
        lock(&self.state).losing = Some(with);
    }

    /// Lets connections through again.
    pub fn mend(&self) {
        lock(&self.state).cut = false;
    }
}

fn pass_on(shared: &Arc<Mutex<State>>, client: TcpStream, server: SocketAddr) -> io::Result<()> {
    let mut state = lock(shared);
    if state.cut {
        return Ok(());
    }
    let server = TcpStream::connect(server)?;
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        // However it ends, the other side hears of it.
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

/// Passes the server's answers on, until one side is gone or an answer is to be lost.
fn answer(state: &Mutex<State>, from: &mut TcpStream, to: &mut TcpStream) -> io::Result<()> {
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

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
