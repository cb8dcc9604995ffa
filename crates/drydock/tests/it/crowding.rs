//! Many plans at once: a few workers take a long row of small agents to its end.

use drydock_testkit::wait;

use crate::working::Server;
use crate::world::{Kind, LIMIT, World};

/// How many plans, each with an agent of its own; two hundred with `DRYDOCK_SOAK=1`.
const PLANS: usize = 24;
const PLANS_SOAK: usize = 200;
const WORKERS: usize = 8;

/// Breaks when a plan of many is forgotten, run twice or landed over another, when more or fewer agents run at a
/// time than there are workers, or when work is over and a lock is left.
#[test]
fn many_agents_land_with_eight_at_a_time() {
    let plans = if std::env::var_os("DRYDOCK_SOAK").is_some() { PLANS_SOAK } else { PLANS };
    let world = World::new(Kind::Sqlite);
    // An agent marks itself while it runs. The first ones wait for each other, and then for one too many.
    let marks = world.place("marks");
    std::fs::create_dir(world.path("marks")).unwrap();
    world.agent(
        "writer",
        &format!(
            "mark=$(mktemp -p {marks}); echo >> {marks}.ran; number=$(wc -l < {marks}.ran); \
             until [ $(wc -l < {marks}.ran) -ge {WORKERS} ]; do sleep 0.05; done; \
             [ $number -gt {WORKERS} ] || sleep 2; ls {marks} | wc -l >> {marks}.seen; \
             echo hi > $(basename $mark).txt; rm $mark"
        ),
    );
    world.action("fix", "[agents]\nexecute = \"writer\"");
    let ids: Vec<String> = (0..plans).map(|_| world.plan(&["--profile", "auto"])).collect();
    let server = Server::start(&world, &["--workers", &WORKERS.to_string()]);
    let open = "SELECT count(*) FROM plans WHERE state IN ('queued', 'processing', 'complete')";
    wait::until("all plans to end", LIMIT * 3, || (world.query(open) == "0").then_some(()));
    let ends = world.query("SELECT phase, state, count(*) FROM plans GROUP BY phase, state");
    assert_eq!(ends, format!("apply|applied|{plans}"));
    let log = world.repo.git(&["log", "--format=%(trailers:key=Drydock-Plan,valueonly)", "main"]);
    let mut landed: Vec<&str> = log.lines().filter(|line| !line.is_empty()).collect();
    landed.sort_unstable();
    let mut wanted: Vec<&str> = ids.iter().map(String::as_str).collect();
    wanted.sort_unstable();
    assert_eq!(landed, wanted, "each once");
    let runs = world.lines("marks.seen");
    assert_eq!(runs.len(), plans, "each agent ran once");
    let most = runs.iter().map(|count| count.trim().parse::<usize>().unwrap()).max().unwrap();
    assert_eq!(most, WORKERS, "at a time");
    server.stop().expect(0);
    assert_eq!(world.locks().len(), 0);
}
