//! A line between browser and server that can be cut: connections are dropped, and new ones are, too, until it is mended.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The connections that are open, and whether the line is whole.
#[derive(Default)]
struct Wires {
    open: Vec<TcpStream>,
    is_cut: bool,
}

pub(crate) struct Proxy {
    at: String,
    wires: Arc<Mutex<Wires>>,
}

impl Proxy {
    /// Lays a line to a server.
    pub(crate) fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap().to_string();
        let wires = Arc::new(Mutex::new(Wires::default()));
        let (known, server) = (wires.clone(), server.to_owned());
        // Ends with the test's process.
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let mut wires = known.lock().unwrap();
                let Ok(far) = TcpStream::connect(&server) else { continue };
                if wires.is_cut {
                    continue;
                }
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    thread::spawn(move || carry(from, to));
                }
                wires.open.extend([near, far]);
            }
        });
        Self { at, wires }
    }

    pub(crate) fn address(&self, path: &str) -> String {
        format!("http://{}{path}", self.at)
    }

    pub(crate) fn cut(&self) {
        let mut wires = self.wires.lock().unwrap();
        wires.is_cut = true;
        for wire in wires.open.drain(..) {
            // One that is closed already is as cut as it gets.
            drop(wire.shutdown(Shutdown::Both));
        }
    }

    pub(crate) fn mend(&self) {
        self.wires.lock().unwrap().is_cut = false;
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    drop(to.shutdown(Shutdown::Both));
}
