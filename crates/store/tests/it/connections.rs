//! Connections to a server: few connections only make the store slower, and an incompatible pooler is
//! detected.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use drydock_store::{Options, Renewed, Store, StoreError, StoreUrl};
use drydock_testkit::wait;

use crate::world::{LIMIT, LONG, World, free, lease, now, random, spawn, started};

/// The key of the advisory lock for numbering events.
const NUMBERING_KEY: i64 = 0x6472_7964_6f63_0002;

fn address(world: &World) -> String {
    let StoreUrl::Postgres(url) = world.url() else { unreachable!() };
    url
}

/// Makes a user with a connection limit the owner of the database, and returns the address for that user and
/// its name.
fn limited(world: &World, connections: usize) -> (String, String) {
    let user = format!("few_{:016x}", random() as u64);
    let name = world.query("SELECT current_database()");
    world.query(&format!("CREATE ROLE {user} LOGIN CONNECTION LIMIT {connections}"));
    world.query(&format!("ALTER DATABASE {name} OWNER TO {user}"));
    world.query(&format!("GRANT ALL ON SCHEMA public TO {user}"));
    let url = address(world);
    let (scheme, rest) = url.split_once("://").unwrap();
    let host = rest.split_once('@').map_or(rest, |(_, host)| host);
    (format!("{scheme}://{user}@{host}"), user)
}

/// One worker of a process: claims, locks, starts, renews and releases, until no effect is due. Returns the
/// number of effects.
async fn hand(store: Store, owner: String) -> usize {
    let mut done = 0;
    while let Some(claim) = store.effect_claim(&owner, LONG).await.unwrap() {
        let held = lease(&store, &claim.plan, &owner).await;
        started(&store, &held).await;
        assert!(matches!(store.plan_lease_renew(&held, LONG).await.unwrap(), Renewed::Until(_)));
        store.plan_lease_release(held).await.unwrap();
        done += 1;
    }
    done
}

/// BUG-4: fails if a call fails because the server has no free connection, while this process has one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn few_connections_make_it_slower_and_nothing_else() {
    const PLANS: usize = 30;
    let world = World::postgres();
    let (url, user) = limited(&world, 7);
    let open = async || Store::open(&url.parse().unwrap(), Options::new(now)).await.unwrap();
    let first = open().await;
    for _ in 0..PLANS {
        free(&first).await;
    }
    let processes = [first, open().await, open().await, open().await];
    let hands: Vec<_> = processes
        .iter()
        .enumerate()
        .flat_map(|(process, store)| (0..4).map(move |hand| (store.clone(), format!("{process}/{hand}."))))
        .map(|(store, owner)| spawn(hand(store, owner)))
        .collect();
    let mut done = 0;
    for hand in hands {
        done += hand.await.unwrap();
    }
    assert_eq!(done, PLANS);
    // A process that had to wait keeps only the connection that is reserved for its locks.
    let ours = format!("SELECT count(*) FROM pg_stat_activity WHERE usename = '{user}'");
    wait::until("idle connections to be closed", LIMIT, || (world.query(&ours) == "4").then_some(()));
    drop(processes);
    world.query(&format!("REASSIGN OWNED BY {user} TO CURRENT_USER"));
    world.query(&format!("DROP OWNED BY {user}"));
    world.query(&format!("DROP ROLE {user}"));
}

/// Forwards connections without their requested `options`, like a pooler that ignores them.
fn dropping_options(server: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let pass = move |mut client: TcpStream| -> io::Result<()> {
        let mut server = TcpStream::connect(&server)?;
        let mut length = [0; 4];
        client.read_exact(&mut length)?;
        let mut asked = vec![0; u32::from_be_bytes(length) as usize - 4];
        client.read_exact(&mut asked)?;
        // The protocol version, then names and values that each end with a zero byte.
        let mut passed = asked[..4].to_vec();
        let words: Vec<_> = asked[4..].split(|byte| *byte == 0).collect();
        for pair in words.chunks(2).filter(|pair| !pair[0].is_empty() && pair[0] != b"options") {
            passed.extend([pair[0], b"\0", pair[1], b"\0"].concat());
        }
        passed.push(0);
        server.write_all(&(passed.len() as u32 + 4).to_be_bytes())?;
        server.write_all(&passed)?;
        let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
        thread::spawn(move || io::copy(&mut from, &mut to));
        thread::spawn(move || io::copy(&mut server, &mut client));
        Ok(())
    };
    thread::spawn(move || listener.incoming().flatten().try_for_each(pass));
    at
}

/// BUG-5: fails if dropped session limits are not detected, if the error has no advice, or if following the
/// advice does not help.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_that_drops_what_is_asked_for_is_refused() {
    let world = World::postgres();
    let url = address(&world);
    let host = url.split_once('@').unwrap().1.split_once('/').unwrap().0.to_owned();
    let pooled: StoreUrl = url.replace(&host, &dropping_options(host.clone())).parse().unwrap();
    let refused = Store::open(&pooled, Options::new(now)).await.unwrap_err();
    assert!(matches!(refused, StoreError::Pooled { .. }), "{refused:?}");
    assert!(refused.to_string().contains("_timeout is 0 ms"), "{refused}");
    assert!(refused.hint().contains("ALTER ROLE user SET lock_timeout = '10s'"), "{}", refused.hint());
    let name = world.query("SELECT current_database()");
    for limit in ["lock_timeout", "idle_in_transaction_session_timeout"] {
        world.query(&format!("ALTER DATABASE {name} SET {limit} = '10s'"));
    }
    free(&Store::open(&pooled, Options::new(now)).await.unwrap()).await;
}

/// BUG-9: fails if events whose numbering failed stay unnumbered until a reader numbers them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_numbering_that_failed_is_tried_again() {
    let world = World::postgres();
    let url = address(&world);
    let join = if url.contains('?') { '&' } else { '?' };
    let impatient = format!("{url}{join}options=-c%20lock_timeout%3D100");
    let store = Store::open(&impatient.parse().unwrap(), Options::new(now)).await.unwrap();
    let unnumbered = "SELECT count(*) FROM events WHERE seq IS NULL";
    thread::scope(|scope| {
        let held =
            scope.spawn(|| world.query(&format!("SELECT pg_advisory_lock({NUMBERING_KEY}), pg_sleep(2)")));
        wait::until("the lock to be held", LIMIT, || {
            let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
            (world.query(locks) == "1").then_some(())
        });
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(free(&store)));
        assert_ne!(world.query(unnumbered), "0", "the numbering waits for the lock");
        held.join().unwrap();
        wait::until("the events to be numbered", LIMIT, || (world.query(unnumbered) == "0").then_some(()));
    });
}
