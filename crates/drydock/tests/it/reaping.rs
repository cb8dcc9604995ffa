//! A server that has finished many plans is as small as before: no zombies, no refs, no worktree records (N10, F13).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use drydock_testkit::wait;
use serde_json::json;

use crate::shared::{Shared, git};
use crate::tokens::ask_with;
use crate::working::Server;
use crate::world::{Kind, LIMIT, World, text};

const PLANS: usize = 30;
/// How many plans open what stays open: connections, threads of the runtime.
const WARM_UP: usize = 10;
const WORKERS: &str = "4";

/// What a process has, as the kernel counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Census {
    pub(crate) zombies: usize,
    pub(crate) descriptors: usize,
    pub(crate) threads: usize,
    pub(crate) resident_kb: usize,
}

impl Census {
    pub(crate) fn of(pid: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().next().unwrap().parse().unwrap()
        };
        Self {
            zombies: zombies(pid).values().sum(),
            descriptors: fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count(),
            threads: field("Threads:"),
            resident_kb: field("VmRSS:"),
        }
    }
}

/// Returns the dead children of a process that it has not waited for, by their program.
pub(crate) fn zombies(parent: u32) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let Some((name, rest)) = stat.rsplit_once(") ") else { continue };
        let mut fields = rest.split_whitespace();
        let (state, of) = (fields.next().unwrap(), fields.next().unwrap());
        if state == "Z" && of == parent.to_string() {
            *found.entry(name.rsplit('(').next().unwrap().to_owned()).or_default() += 1;
        }
    }
    found
}

/// Returns how many refs of plans a repository has.
pub(crate) fn refs_of_plans(repository: &Path) -> usize {
    let below = ["refs/drydock", "refs/heads/drydock", "refs/remotes/origin/drydock"];
    let refs = git(repository, &[&["for-each-ref", "--format=%(refname)"][..], &below].concat());
    // What the target of the remote was when it was last looked at is the project's, not a plan's.
    refs.lines().filter(|name| *name != "refs/drydock/remote/origin/main").count()
}

/// Returns how many worktrees a repository has on record besides its own.
pub(crate) fn worktree_records(repository: &Path) -> usize {
    let listed = git(repository, &["worktree", "list", "--porcelain"]);
    listed.lines().filter(|line| line.starts_with("worktree ")).count() - 1
}

pub(crate) fn applied(world: &World) -> usize {
    world.query("SELECT count(*) FROM plans WHERE state = 'applied'").parse().unwrap()
}

/// Makes a plan that needs no person, and returns its id.
pub(crate) fn queue(server: &Server, action: &str) -> String {
    let wanted = json!({ "project": "team", "action": action, "profile": "auto" });
    let headers = format!("Host: {}\r\n{}", server.address(), server.bearer());
    let reply = ask_with(server, &headers, "POST /plans", &wanted);
    assert_eq!(reply.status, 200, "{}", reply.body);
    text(&reply.body["plan"]["id"])
}

/// Waits until this many plans have landed and what comes after a landing is done, and returns what the server has then.
fn at_rest(shared: &Shared, server: &Server, landed: usize) -> Census {
    let (world, remote) = (&shared.world, shared.world.path("remote.git"));
    wait::until("the plans to land", LIMIT, || (applied(world) == landed).then_some(()));
    let left = || {
        let refs = refs_of_plans(world.repo.path()) + refs_of_plans(&remote);
        (zombies(server.pid()), refs, worktree_records(world.repo.path()))
    };
    let nothing = (BTreeMap::new(), 0, 0);
    // Refs go after the plan is recorded, and helpers of git may end after it.
    if wait::poll(LIMIT / 9, || (left() == nothing).then_some(())).is_none() {
        assert_eq!(left(), nothing, "zombies; refs of plans here and at the remote; worktree records");
    }
    Census::of(server.pid())
}

/// N10, F13. Breaks when a server keeps something of each plan that it has landed: dead processes, descriptors, threads, refs
/// or worktree records, here or at the remote.
#[test]
fn thirty_plans_later_a_server_has_what_it_had() {
    let shared = Shared::new(Kind::Sqlite, "echo hi > $DRYDOCK_PLAN.txt");
    let server = Server::start(&shared.world, &["--workers", WORKERS]);
    let mut ids: Vec<String> = (0..WARM_UP).map(|_| queue(&server, "fix")).collect();
    let before = at_rest(&shared, &server, WARM_UP);
    ids.extend((WARM_UP..PLANS).map(|_| queue(&server, "fix")));
    let after = at_rest(&shared, &server, PLANS);
    let log =
        git(&shared.world.path("remote.git"), &["log", "--format=%(trailers:key=Drydock-Plan,valueonly)"]);
    assert!(ids.iter().all(|id| log.matches(id.as_str()).count() == 1), "each landed once: {log}");
    // A connection of the store may be opened later, and threads for git come and go with what runs at a time.
    assert!(after.descriptors <= before.descriptors + 4, "{before:?} {after:?}");
    let threads = || Census::of(server.pid()).threads;
    let few = wait::poll(LIMIT / 9, || (threads() <= before.threads + 8).then_some(()));
    assert!(few.is_some(), "{} threads; {before:?} {after:?}", threads());
    server.stop().expect(0);
}
