//! Work that is no result yet: whoever is asked about it, or comes back to it, sees what it changes.

use crate::world::{World, list, text};

/// Returns what `plan diff` says it shows, and the files of it.
pub(crate) fn seen(world: &World, plan: &str) -> (String, Vec<String>) {
    let diff = world.ok(&["plan", "diff", plan])["diff"].clone();
    let patch = text(&diff["text"]);
    let files = patch.lines().filter_map(|line| line.strip_prefix("+++ b/")).map(str::to_owned);
    (diff["of"]["kind"].as_str().unwrap_or("nothing").to_owned(), files.collect())
}

fn saw(kind: &str, files: &[&str]) -> (String, Vec<String>) {
    (kind.to_owned(), files.iter().map(|file| (*file).to_owned()).collect())
}

/// Returns what `plan diff` remarks.
fn remark(world: &World, plan: &str) -> String {
    let answer = world.drydock(&["plan", "diff", plan]).expect(0);
    list(&answer.json["messages"]).iter().map(|one| text(&one["text"])).collect::<Vec<_>>().join("\n")
}

on_both! {
    /// Breaks when the changes that a person is asked about, or goes back to, are said to be none.
    fn work_that_a_person_is_asked_about_can_be_seen(kind: Kind) {
        let world = World::new(kind);
        let starts = world.place("starts");
        world.agent("writer", &format!("echo x >> {starts}; echo work > $(wc -l < {starts}).txt"));
        world.agent("critic", r#"echo '{"drydock":"verdict","verdict":"refuse","reason":"never"}'"#);
        world.action("fix", "reviewers = [{ agent = \"critic\", critical = true }]\n[agents]\nexecute = \"writer\"");
        let id = world.plan_after("strategize");
        assert_eq!(seen(&world, &id), saw("nothing", &[]));
        assert!(remark(&world, &id).contains("checkpoint list"), "{}", remark(&world, &id));
        world.drydock(&["plan", "execute", &id]).expect(6);
        assert_eq!(seen(&world, &id), saw("goes_on", &["1.txt", "2.txt", "3.txt", "4.txt", "5.txt"]));
        assert!(remark(&world, &id).contains("5 files changed"), "{}", remark(&world, &id));
        assert!(remark(&world, &id).contains("not complete"), "{}", remark(&world, &id));
        world.ok(&["plan", "rollback", &id, "2"]);
        assert_eq!(seen(&world, &id), saw("goes_on", &["1.txt", "2.txt"]));
        world.agent("critic", r#"echo '{"drydock":"verdict","verdict":"ack"}'"#);
        world.drydock(&["plan", "execute", &id]).expect(0);
        assert_eq!(seen(&world, &id), saw("result", &["1.txt", "2.txt", "6.txt"]));
        world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when what a run wrote that used up the budget, or failed, cannot be seen or is not recorded.
    fn work_that_was_cut_short_can_be_seen(kind: Kind) {
        let usage = r#"echo '{"drydock":"usage","tokens":150}'; sleep 300"#;
        for (ends, code, of) in [(usage, 6, "goes_on"), ("exit 3", 1, "snapshot")] {
            let world = World::with_writer(kind, &format!("echo half > half.txt; {ends}"));
            let id = world.plan(&["--budget", "tokens=100"]);
            world.ok(&["plan", "strategize", &id]);
            world.drydock(&["plan", "execute", &id]).expect(code);
            assert_eq!(seen(&world, &id), saw(of, &["half.txt"]), "{ends}");
            let changesets = list(&world.ok(&["changeset", "list", &id])["changesets"]);
            assert_eq!(changesets[0]["entries"][0]["path"], "half.txt", "{ends}");
            world.assert_sound(&id);
        }
    }
}

on_both! {
    /// Breaks when an agent is not told why its work could not be kept, or a person not where it is.
    fn what_no_commit_can_hold_is_told_to_the_next_agent_and_where_it_is(kind: Kind) {
        let world = World::with_writer(kind, "");
        let told = world.place("told");
        world.agent("writer", &format!("printf %s \"$DRYDOCK_TASK\" > {told}; git init -q inner; echo x > inner/x.txt; git -C inner add .; git -C inner -c user.name=a -c user.email=a@b.c commit -qm x"));
        let id = world.plan_after("strategize");
        world.drydock(&["plan", "execute", &id]).expect(1);
        let error = world.show(&id)["error"].clone();
        assert_eq!(error["class"], "uncapturable", "{error}");
        let said = text(&error["text"]);
        let place = said.rsplit("kept in ").next().unwrap();
        assert!(std::path::Path::new(place).join("tree/inner/x.txt").exists(), "{said}");
        world.ok(&["plan", "retry", &id]);
        world.drydock(&["plan", "execute", &id]).expect(1);
        assert!(world.lines("told").concat().contains("is a nested git repository"), "{:?}", world.lines("told"));
        world.assert_sound(&id);
    }
}
