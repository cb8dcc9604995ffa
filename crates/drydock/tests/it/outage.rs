//! A database that is away for a moment: agents at work go on, and so do those who watch them.

use std::net::ToSocketAddrs;

use drydock_testkit::proxy::Proxy;
use drydock_testkit::wait;

use crate::world::{Answer, Kind, LIMIT, World};

/// Writes a line each time it looks, until it may end.
fn chatty(world: &World) -> String {
    let (lines, go) = (world.place("lines"), world.place("go"));
    format!("until [ -e {go} ]; do echo at work; echo line >> {lines}; sleep 0.1; done; echo hi > hello.txt")
}

/// Returns a way to the store that can be cut, and the address that leads over it.
fn over_proxy(world: &World) -> (Proxy, String) {
    let (user, rest) = world.store().split_once('@').unwrap();
    let (server, database) = rest.split_once('/').unwrap();
    let proxy = Proxy::start(server.to_socket_addrs().unwrap().next().unwrap()).unwrap();
    let address = format!("{user}@{}/{database}", proxy.address());
    (proxy, address)
}

/// Breaks when an agent is stopped, or its run is repeated, because the database was away for less time than the plan's lock
/// lasts; or when the command that follows a worker ends for it.
#[test]
fn a_moment_without_a_database_stops_nobody() {
    let world = World::with_writer(Kind::Postgres, "");
    world.agent("writer", &chatty(&world));
    world.settings("[locks]\nttl = \"60s\"\n");
    let id = world.plan_after("strategize");
    let (proxy, store) = over_proxy(&world);
    let written = || world.lines("lines").len();
    world.ok(&["plan", "execute", &id, "--detach"]);
    let worker = world.spawn(&["--store", &store, "worker"]);
    wait::until("the agent to write", LIMIT, || (written() > 5).then_some(()));
    let following = world.spawn(&["--store", &store, "plan", "execute", &id]);
    let follows = "running in another process";
    wait::until(follows, LIMIT, || following.stderr().contains(follows).then_some(()));
    let before = written();
    proxy.cut();
    wait::until("the agent to go on", LIMIT, || (written() > before + 30).then_some(()));
    wait::until("the follower to say so", LIMIT, || following.stderr().contains("retrying").then_some(()));
    proxy.mend();
    let mended = written();
    wait::until("the agent to go on", LIMIT, || (written() > mended + 5).then_some(()));
    world.write("go", "");
    Answer::of(following.wait(LIMIT)).expect(0);
    worker.terminate();
    Answer::of(worker.wait(LIMIT)).expect(0);
    assert_eq!(world.stage(&id), "execute/complete");
    assert_eq!((world.count(&id, "plan.started"), world.count(&id, "plan.taken_over")), (2, 0));
}
