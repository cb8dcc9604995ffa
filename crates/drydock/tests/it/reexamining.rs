//! Commits that others add to a plan's branch after its work was judged: they are judged too, and land or are asked about (B4).

use serde_json::Value;

use crate::diverging::kinds;
use crate::shared::Shared;
use crate::world::{list, stage, text};

/// Makes a plan under a profile and takes it to the end of Execute.
fn executed(shared: &Shared, action: &str, profile: &str) -> String {
    let made = ["plan", "use", action, "--project", "team", "--profile", profile];
    let id = text(&shared.world.ok(&made)["plan"]["id"]);
    for phase in ["strategize", "execute"] {
        shared.world.drydock(&["plan", phase, &id]);
    }
    assert_eq!(shared.world.stage(&id), "execute/complete");
    id
}

fn writers(shared: &Shared, id: &str) -> Vec<(String, Vec<String>)> {
    let run = shared.world.show(id)["run"].clone();
    let mut writers: Vec<_> = list(&shared.world.ok(&["changeset", "list", id])["changesets"])
        .into_iter()
        .filter(|changeset| changeset["run"] == run)
        .map(|changeset| {
            let shown = shared.world.ok(&["changeset", "show", &text(&changeset["id"])]);
            let paths =
                list(&shown["changeset"]["entries"]).iter().map(|entry| text(&entry["path"])).collect();
            (text(&changeset["writer"]), paths)
        })
        .collect();
    writers.sort();
    writers
}

on_both! {
    /// Long-day, item 9: breaks when a colleague's commit that a sync took in is left out of the landing, lands without being
    /// judged, is written over by another run of the writer, or lands by an approval of another head.
    fn what_a_colleague_adds_is_judged_asked_about_again_and_lands(kind: Kind) {
        let shared = Shared::new(kind, "echo plan > plan.txt");
        let id = executed(&shared, "fix", "manual");
        let gate = shared.decision(&id)["id"].clone();
        let started = shared.world.count(&id, "agent.started");
        shared.others_push(&id, "theirs.txt", "theirs\n");
        shared.world.drydock(&["plan", "apply", &id]);
        let plan = shared.world.show(&id);
        assert_eq!(stage(&plan), "execute/complete", "{:?}", kinds(&shared, &id));
        assert_eq!(plan["head_commit"], shared.local_tip(&id).as_str());
        assert_ne!(shared.decision(&id)["id"], gate, "the new head is asked about");
        assert_eq!(shared.world.count(&id, "agent.started"), started, "nobody writes");
        assert_eq!(shared.world.count(&id, "plan.reexamined"), 1);
        assert_eq!(
            writers(&shared, &id),
            [
                ("Other".to_owned(), vec!["theirs.txt".to_owned()]),
                ("writer".to_owned(), vec!["plan.txt".to_owned()]),
            ],
        );
        shared.world.ok(&["plan", "apply", &id]);
        shared.world.assert_landed_once(&id);
        for (path, content) in [("plan.txt", "plan"), ("theirs.txt", "theirs")] {
            assert_eq!(shared.world.repo.git(&["show", &format!("main:{path}")]), content);
        }
        shared.world.assert_sound(&id);
    }
}

on_both! {
    /// B4, S4.2: breaks when a colleague's amended commit, which bears the plan's line, counts as the plan's own and is dropped.
    fn an_amended_commit_is_the_colleagues_and_lands(kind: Kind) {
        let shared = Shared::new(kind, "echo plan > plan.txt");
        let id = executed(&shared, "fix", "auto");
        let amended = shared.others_amend(&id, "fix.txt", "fixed\n");
        shared.world.ok(&["plan", "apply", &id]);
        assert_eq!(shared.world.stage(&id), "apply/applied", "{:?}", kinds(&shared, &id));
        assert_eq!(shared.world.repo.git(&["show", "main:fix.txt"]), "fixed");
        let told = shared.world.events(&id).into_iter().find(|event| event["kind"] == "plan.reexamined");
        let commits = list(&told.expect("it is judged again")["data"]["commits"]);
        assert_eq!(commits[0]["id"], Value::from(amended));
    }
}

on_both! {
    /// B4: breaks when the next attempt writes over what a colleague amended, or what they add lands though it is refused.
    fn what_a_colleague_added_is_kept_by_a_revert_and_refused_by_a_validation(kind: Kind) {
        let shared = Shared::new(kind, "echo plan > plan.txt");
        let rule = "[[validations]]\nname = \"clean\"\ncommand = \"test ! -e bad.txt\"";
        shared.world.action("checked", &format!("[agents]\nexecute = \"writer\"\n{rule}"));
        let id = executed(&shared, "checked", "auto");
        shared.others_amend(&id, "fix.txt", "fixed\n");
        shared.world.ok(&["plan", "revert", &id]);
        shared.world.drydock(&["plan", "strategize", &id]);
        shared.world.drydock(&["plan", "execute", &id]);
        assert_eq!(shared.world.stage(&id), "execute/complete", "{:?}", kinds(&shared, &id));
        let branch = format!("drydock/{id}/work");
        assert_eq!(shared.world.repo.git(&["show", &format!("{branch}:fix.txt")]), "fixed");
        shared.others_push(&id, "bad.txt", "bad\n");
        shared.world.drydock(&["plan", "apply", &id]);
        assert_eq!(shared.world.stage(&id), "execute/errored", "{:?}", kinds(&shared, &id));
        assert_eq!(shared.decision(&id)["kind"], "validation");
        assert!(!shared.world.repo.git(&["ls-tree", "--name-only", "main"]).contains("bad.txt"));
    }
}
