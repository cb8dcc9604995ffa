//! A git remote over smart HTTP: `git http-backend` behind a server on loopback, with one request per connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// The maximum time without data from a client.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Serves all repositories in a directory until the process ends. Every client may push.
#[derive(Debug)]
pub struct HttpGit {
    address: SocketAddr,
}

impl HttpGit {
    /// Listens on loopback.
    pub fn serve(directory: &Path) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let (address, root) = (listener.local_addr()?, directory.to_owned());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let root = root.clone();
                // A client that is disconnected notices it, so the error is ignored.
                thread::spawn(move || answer(client, &root).ok());
            }
        });
        Ok(Self { address })
    }

    /// Returns the URL of a repository in the directory.
    pub fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }
}

/// The parts of a request that `git http-backend` needs.
#[derive(Default)]
struct Head {
    method: String,
    path: String,
    query: String,
    kind: String,
    encoding: String,
    protocol: String,
    length: u64,
    chunked: bool,
}

fn answer(mut client: TcpStream, root: &PathBuf) -> io::Result<()> {
    client.set_read_timeout(Some(SILENCE_MAX))?;
    let mut reader = BufReader::new(client.try_clone()?);
    let head = head(&mut reader)?;
    let body = body(&mut reader, &head)?;
    let mut backend = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        // A user name is required for pushes.
        .env("REMOTE_USER", "tester")
        .env("REQUEST_METHOD", &head.method)
        .env("PATH_INFO", &head.path)
        .env("QUERY_STRING", &head.query)
        .env("CONTENT_TYPE", &head.kind)
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", &head.encoding)
        .env("GIT_PROTOCOL", &head.protocol)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut stdin = backend.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let writer = thread::spawn(move || stdin.write_all(&body));
    let mut said = Vec::new();
    backend.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?.read_to_end(&mut said)?;
    backend.wait()?;
    drop(writer.join());
    client.write_all(&response(&said))?;
    client.shutdown(std::net::Shutdown::Both)
}

fn head(reader: &mut impl BufRead) -> io::Result<Head> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split(' ').map(str::to_owned);
    let method = words.next().unwrap_or_default();
    let target = words.next().unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut head = Head { method, path: path.to_owned(), query: query.to_owned(), ..Head::default() };
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            return Ok(head);
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { continue };
        let value = value.trim().to_owned();
        match name.to_ascii_lowercase().as_str() {
            "content-type" => head.kind = value,
            "content-encoding" => head.encoding = value,
            "content-length" => head.length = value.parse().unwrap_or(0),
            "git-protocol" => head.protocol = value,
            "transfer-encoding" => head.chunked = value.eq_ignore_ascii_case("chunked"),
            _ => {}
        }
    }
}

fn body(reader: &mut impl BufRead, head: &Head) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if !head.chunked {
        reader.take(head.length).read_to_end(&mut body)?;
        return Ok(body);
    }
    loop {
        let mut size = String::new();
        reader.read_line(&mut size)?;
        let size = u64::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
        reader.by_ref().take(size).read_to_end(&mut body)?;
        // Skips the line end after each chunk.
        reader.read_line(&mut String::new())?;
        if size == 0 {
            return Ok(body);
        }
    }
}

/// Converts a CGI response, which has the status as a header, to an HTTP response.
fn response(said: &[u8]) -> Vec<u8> {
    let end = said.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap_or(said.len());
    let head = String::from_utf8_lossy(&said[..end]).into_owned();
    let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    let headers: Vec<_> = head.lines().filter(|line| !line.starts_with("Status:")).collect();
    let body = said.get(end + 4..).unwrap_or_default();
    let text = format!(
        "HTTP/1.1 {status}\r\n{}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        headers.join("\r\n"),
        body.len()
    );
    [text.as_bytes(), body].concat()
}
