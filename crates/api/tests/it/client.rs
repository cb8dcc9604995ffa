//! The bytes sent over the socket, and how the client parses answers.

use drydock_api::{
    Client, ClientError, Code, HttpTransport, NewToken, PlanMove, Problem, RequestOptions, Role, ScopeQuery,
    exit,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Answers one request with these bytes and returns the request.
async fn answering(bytes: &'static [u8], ask: impl AsyncFnOnce(Client<'_>)) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let remote = HttpTransport::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut asked = Vec::new();
        while !complete(&asked) {
            assert_ne!(stream.read_buf(&mut asked).await.unwrap(), 0, "the client hung up early");
        }
        stream.write_all(bytes).await.unwrap();
        String::from_utf8(asked).unwrap()
    };
    let (asked, ()) = tokio::join!(server, ask(Client::new(&remote)));
    asked
}

/// Returns true if a request is complete: its head, and as much body as the head announces.
fn complete(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |length| length.trim().parse().unwrap())
}

fn problem(error: ClientError) -> Problem {
    Problem::from(error)
}

#[tokio::test]
async fn a_move_carries_its_terms_and_an_escaped_id() {
    let asked = answering(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", async |client| {
        let terms = RequestOptions { if_match: Some(7), idempotency_key: Some("k-1".into()) };
        client.plan_move("a/b", PlanMove::Execute, &terms).await.unwrap_err();
    })
    .await;
    assert!(asked.starts_with("POST /api/v1/plans/a%2Fb/execute HTTP/1.1\r\n"), "{asked}");
    for header in ["if-match: 7\r\n", "idempotency-key: k-1\r\n", "host: 127.0.0.1:"] {
        assert!(asked.contains(header), "{header} is missing in {asked}");
    }
    assert!(asked.ends_with("\r\n\r\n{}"), "{asked}");
}

#[tokio::test]
async fn a_problem_comes_back_with_its_code_and_details() {
    let bytes = b"HTTP/1.1 409 Conflict\r\ncontent-type: application/problem+json\r\nconnection: close\r\n\r\n\
        {\"type\":\"x\",\"title\":\"t\",\"status\":409,\"code\":\"lock_held\",\"detail\":\"held\",\"hint\":\"wait\",\"pid\":7}";
    answering(bytes, async |client| {
        let problem = problem(client.plan("p").await.unwrap_err());
        assert_eq!((problem.code.clone(), problem.exit_code()), (Code::LockHeld, exit::CONFLICT));
        assert_eq!(problem.details["pid"], 7);
    })
    .await;
}

#[tokio::test]
async fn a_removal_without_a_body_is_a_success() {
    let asked = answering(b"HTTP/1.1 204 No Content\r\n\r\n", async |client| {
        let scope = ScopeQuery { scope: Some("project:x".into()) };
        client.invariant_remove("small", &scope).await.unwrap();
    })
    .await;
    assert!(asked.starts_with("DELETE /api/v1/invariants/small?scope=project%3Ax HTTP/1.1\r\n"), "{asked}");
}

#[tokio::test]
async fn what_no_drydock_server_says_is_named_as_such() {
    for bytes in [
        &b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>"[..],
        b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 6\r\n\r\n<html>",
    ] {
        answering(bytes, async |client| {
            let problem = problem(client.locks().await.unwrap_err());
            assert_eq!(problem.code, Code::ServerUnreachable);
            assert!(problem.detail.contains("GET /locks") && problem.detail.contains("<html>"), "{problem}");
        })
        .await;
    }
}

/// Breaks if the error about an unreadable answer of a newer server contains the secret.
#[tokio::test]
async fn a_secret_in_an_answer_that_cannot_be_read_is_not_shown() {
    let bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{\"secret\":\"dry_s3c\"}";
    answering(bytes, async |client| {
        let new = NewToken { name: "n".into(), role: Role::Human, run: None, expires_in_s: None };
        let problem = problem(client.token_create(&new).await.unwrap_err());
        assert!(problem.detail.contains("POST /tokens") && !problem.detail.contains("s3c"), "{problem}");
    })
    .await;
}

#[tokio::test]
async fn an_answer_cut_short_is_not_taken_for_a_whole_one() {
    let bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"locks\":[]}";
    answering(bytes, async |client| {
        let problem = problem(client.locks().await.unwrap_err());
        assert_eq!(problem.code, Code::ServerUnreachable);
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_with_its_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    drop(listener);
    let remote = HttpTransport::new(&format!("http://{at}")).unwrap();
    let problem = problem(Client::new(&remote).doctor().await.unwrap_err());
    assert_eq!(problem.code, Code::ServerUnreachable);
    assert!(problem.detail.contains(&at.to_string()), "{problem}");
}
