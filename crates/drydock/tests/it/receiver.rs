//! Somebody on the other end of a webhook: a server of its own that remembers what it was sent and answers as told.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use drydock_testkit::wait;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

use crate::world::LIMIT;

/// What was sent once.
#[derive(Debug, Clone)]
pub(crate) struct Post {
    pub(crate) line: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Post {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(String::as_str).unwrap_or_default()
    }

    pub(crate) fn event(&self) -> Value {
        serde_json::from_str::<Value>(&self.body).unwrap()["event"].clone()
    }

    /// Says whether the signature is the body's under this secret.
    pub(crate) fn is_signed(&self, secret: &str) -> bool {
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret.as_bytes());
        let hex = self.header("drydock-signature").strip_prefix("sha256=").unwrap_or_default();
        let tag: Vec<u8> =
            (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect();
        ring::hmac::verify(&key, self.body.as_bytes(), &tag).is_ok()
    }
}

pub(crate) struct Receiver {
    address: SocketAddr,
    posts: Arc<Mutex<Vec<Post>>>,
}

impl Receiver {
    /// Answers each request with the next of these status lines, and with 204 from then on.
    pub(crate) fn answering(answers: &[&str]) -> Self {
        Self::start(answers, |stream| Box::new(stream))
    }

    /// The same behind TLS, with a certificate that the authority in `directory` vouches for.
    pub(crate) fn encrypted(directory: &Path) -> Self {
        let (chain, key) = certify(directory);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = Arc::new(config.with_no_client_auth().with_single_cert(chain, key).unwrap());
        Self::start(&[], move |stream| {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            Box::new(StreamOwned::new(connection, stream))
        })
    }

    fn start(answers: &[&str], dress: impl Fn(TcpStream) -> Box<dyn Stream> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let posts = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&posts);
        let mut answers: VecDeque<String> = answers.iter().map(|&answer| answer.to_owned()).collect();
        // It ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut stream = BufReader::new(dress(stream));
                let Some(post) = read(&mut stream) else { continue };
                kept.lock().unwrap().push(post);
                let answer = answers.pop_front().unwrap_or_else(|| "204 No Content".to_owned());
                // Who does not wait for the answer is not ours to judge.
                write!(stream.get_mut(), "HTTP/1.1 {answer}\r\nConnection: close\r\n\r\n").ok();
            }
        });
        Self { address, posts }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn posts(&self) -> Vec<Post> {
        self.posts.lock().unwrap().clone()
    }

    /// Waits until it was sent so many, and returns them.
    #[track_caller]
    pub(crate) fn wait(&self, count: usize) -> Vec<Post> {
        wait::until("what is posted", LIMIT, || Some(self.posts()).filter(|posts| posts.len() >= count))
    }
}

trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

/// Reads one request; nothing when it is cut short, as by a client that does not trust us.
fn read(stream: &mut impl BufRead) -> Option<Post> {
    let mut line = || {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|length| *length > 0).map(|_| line.trim_end().to_owned())
    };
    let first = line()?;
    let mut headers = BTreeMap::new();
    loop {
        let header = line()?;
        let Some((name, value)) = header.split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(Post { line: first, headers, body: String::from_utf8(body).unwrap() })
}

/// Makes an authority, `ca.crt`, and a certificate for 127.0.0.1.
pub(crate) fn certify(directory: &Path) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let script = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca -keyout ca.key -out ca.crt && \
        openssl req -newkey rsa:2048 -nodes -subj /CN=server -keyout server.key -out server.csr && \
        echo subjectAltName=IP:127.0.0.1 > ext && \
        openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out server.crt";
    let made = Command::new("sh").args(["-c", script]).current_dir(directory).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let chain = CertificateDer::from_pem_file(directory.join("server.crt")).unwrap();
    (vec![chain], PrivateKeyDer::from_pem_file(directory.join("server.key")).unwrap())
}
