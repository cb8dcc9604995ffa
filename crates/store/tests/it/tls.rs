//! TLS connections: encrypted, and only to a server with a trusted certificate.

use std::path::Path;

use drydock_store::{Options, Store, StoreError, StoreUrl};
use drydock_testkit::postgres::{Database, PostgresServer, Programs};
use drydock_testkit::wait;

use crate::world::{LIMIT, World, now, queued};

/// Creates a certificate authority and a server certificate, as the server's own user, in its own directory.
const CERTIFY: &str = "COPY (SELECT 1) TO PROGRAM '\
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca -keyout ca.key -out ca.crt && \
    openssl req -newkey rsa:2048 -nodes -subj /CN=server -keyout server.key -out server.csr && \
    echo subjectAltName=IP:127.0.0.1 > ext && \
    openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out server.crt && \
    chmod 600 server.key'";

fn encrypting(server: &PostgresServer) -> Database {
    let database = server.database();
    for step in [CERTIFY, "ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()"] {
        database.query(step);
    }
    wait::until("the server to encrypt", LIMIT, || (database.query("SHOW ssl") == "on").then_some(()));
    database
}

async fn open(url: &str, options: &str) -> Result<Store, StoreError> {
    let url: StoreUrl = format!("{url}?{options}").parse().unwrap();
    Store::open(&url, Options::new(now)).await
}

/// Fails if a connection is not encrypted although required, or if an untrusted certificate is accepted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_is_encrypted_and_its_server_is_known() {
    let server = PostgresServer::start(&Programs::find().unwrap()).unwrap();
    let database = encrypting(&server);
    let authority = Path::new(&database.query("SHOW data_directory")).join("ca.crt");
    for mode in ["verify-full", "require", "prefer"] {
        let options = format!("sslmode={mode}&sslrootcert={}", authority.display());
        let store = open(&database.url(), &options).await.unwrap();
        queued(&store, "a").await;
        let plain = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
            WHERE application_name = 'drydock' AND NOT ssl";
        assert_eq!(database.query(plain), "0", "{mode}");
    }
    let stranger = open(&database.url(), "sslmode=require").await.unwrap_err();
    let StoreError::Unavailable { reason, .. } = &stranger else { panic!("{stranger:?}") };
    assert!(reason.contains("certificate"), "{reason}");
}

/// Fails if required encryption is silently omitted.
#[tokio::test]
async fn a_server_that_cannot_encrypt_is_refused_when_it_must() {
    let World::Postgres(database) = World::postgres() else { unreachable!() };
    let error = open(&database.url(), "sslmode=require").await.unwrap_err();
    assert_eq!(error.code(), "store_unavailable");
}

/// Fails if `prefer` rejects a server without TLS, which other clients accept.
#[tokio::test]
async fn a_server_that_cannot_encrypt_is_taken_when_it_may() {
    let World::Postgres(database) = World::postgres() else { unreachable!() };
    let store = open(&database.url(), "sslmode=prefer").await.unwrap();
    queued(&store, "a").await;
}
