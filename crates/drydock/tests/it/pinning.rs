//! What leaves a plan's branch, or does not reach where it should, is kept and told: pins, backups, and landings that a remote
//! refused.

use std::fs;

use serde_json::Value;

use crate::diverging::kinds;
use crate::shared::{Shared, commit_in, git};
use crate::world::{list, text};

/// Requires that every pin of a plan is named by an alert with what brings it back.
#[track_caller]
fn told_of_pins(shared: &Shared, id: &str) {
    let alerts: Vec<String> = shared
        .world
        .events(id)
        .iter()
        .filter(|event| event["kind"] == "alert")
        .map(|event| text(&event["data"]["text"]))
        .collect();
    assert!(!shared.pins(id).is_empty());
    for pin in shared.pins(id) {
        let restore =
            format!("drydock backup restore {} --branch", pin.trim_start_matches("refs/drydock/pin/"));
        assert!(alerts.iter().any(|alert| alert.contains(&restore)), "{restore}: {alerts:?}");
    }
}

on_both! {
    /// S4.1. Breaks when a repository that cannot be looked at counts as one without backups.
    fn a_repository_that_is_gone_does_not_pass_for_one_without_backups(kind: Kind) {
        let shared = Shared::new(kind, "true");
        let (id, tree) = shared.strategized();
        commit_in(&tree, "README.md", "by hand\n");
        shared.others_push(&id, "README.md", "theirs\n");
        shared.world.drydock(&["plan", "sync", &id]).expect(6);
        let (root, away) = (shared.world.repo.path().to_owned(), shared.world.path("away"));
        fs::rename(&root, &away).unwrap();
        let listed = shared.world.drydock(&["backup", "list"]).expect(0);
        assert_eq!(listed.json["status"], "warn", "{:#}", listed.json);
        assert!(text(&list(&listed.json["data"]["unseen"])[0]).contains("cannot read project"));
        let shown = shared.world.drydock(&["backup", "show", &format!("{id}/1")]);
        assert_ne!(shown.error_code(), "not_found", "nobody knows");
        let doctor = shared.world.drydock(&["doctor"]).json["data"]["doctor"].clone();
        let projects = list(&doctor["checks"]).into_iter().find(|check| check["name"] == "projects").unwrap();
        assert_eq!(projects["status"], "warn", "{projects:#}");
        fs::rename(&away, &root).unwrap();
        shared.world.ok(&["backup", "show", &format!("{id}/1")]);
    }
}

on_both! {
    /// Breaks when backups cannot be listed, looked at, brought back or pruned, or a prune removes the last copy (S4.3).
    fn backups_are_listed_restored_and_pruned_without_losing_the_last_copy(kind: Kind) {
        let shared = Shared::new(kind, "true");
        let (id, tree) = shared.strategized();
        let ours = commit_in(&tree, "README.md", "by hand\n");
        shared.others_push(&id, "README.md", "theirs\n");
        shared.world.drydock(&["plan", "sync", &id]).expect(6);
        let listed = list(&shared.world.ok(&["backup", "list"])["backups"]);
        assert_eq!(listed.len(), 1, "{listed:#?}");
        let name = text(&listed[0]["ref"]);
        assert_eq!((&listed[0]["commit"], &listed[0]["plan"]), (&ours.as_str().into(), &id.as_str().into()));
        assert_eq!(listed[0]["commits"][0]["subject"], "by hand: README.md");
        let pruned = shared.world.ok(&["backup", "prune"]);
        assert_eq!((list(&pruned["removed"]).len(), list(&pruned["kept"]).len()), (0, 1));
        let restored = shared.world.ok(&["backup", "restore", &name, "--branch", "mine"]);
        assert_eq!(restored["branch"], "mine");
        assert_eq!(shared.world.repo.head("mine"), ours);
        shared.world.drydock(&["backup", "restore", "pln-nope/1"]).expect(3);
        // N4: it is on a branch now, and the question still names it.
        assert_eq!(list(&shared.world.ok(&["backup", "prune"])["removed"]), [] as [Value; 0]);
        let decision = text(&shared.decision(&id)["id"]);
        shared.world.ok(&["decision", "resolve", &decision, "--option", "continue"]);
        let pruned = shared.world.ok(&["backup", "prune"]);
        assert_eq!(list(&pruned["removed"]).len(), 1, "it is on a branch now");
        assert_eq!(list(&shared.world.ok(&["backup", "list"])["backups"]), [] as [Value; 0]);
        assert_eq!(shared.world.repo.head("mine"), ours);
    }
}

on_both! {
    /// Breaks when setting a directory aside loses commits on no branch, or staged bytes that no file has (INV-PIN).
    fn a_directory_that_is_set_aside_loses_neither_commits_nor_staged_bytes(kind: Kind) {
        let shared = Shared::new(kind, "true");
        let (id, tree) = shared.strategized();
        git(&tree, &["checkout", "-q", "--detach"]);
        let loose = commit_in(&tree, "loose.txt", "loose\n");
        fs::write(tree.join("staged.txt"), "staged\n").unwrap();
        git(&tree, &["add", "staged.txt"]);
        let staged = git(&tree, &["rev-parse", ":staged.txt"]);
        fs::write(tree.join("staged.txt"), "newer\n").unwrap();
        shared.world.ok(&["plan", "execute", &id]);
        assert!(kinds(&shared, &id).contains(&"sync.detached".to_owned()));
        let kept = shared.world.repo.git(&["rev-list", "--all", "--objects"]);
        assert!(kept.contains(&loose) && kept.contains(&staged), "{loose} {staged}");
        told_of_pins(&shared, &id);
    }
}

on_both! {
    /// Breaks when what a person committed on the plan's branch is set aside without a word.
    fn commits_of_a_person_that_are_set_aside_are_told(kind: Kind) {
        let shared = Shared::new(kind, "echo work > work.txt");
        let (id, tree) = shared.strategized();
        let by_hand = commit_in(&tree, "by-hand.txt", "by hand\n");
        shared.world.ok(&["plan", "execute", &id]);
        told_of_pins(&shared, &id);
        let pin = shared.world.repo.git(&["rev-parse", &shared.pins(&id)[0]]);
        assert_eq!(pin, by_hand);
        // A run's own work that is replaced by the next one is no news to anybody.
        let alerts = shared.world.count(&id, "alert");
        shared.world.ok(&["plan", "revert", &id]);
        shared.world.ok(&["plan", "strategize", &id]);
        shared.world.ok(&["plan", "execute", &id]);
        assert_eq!(shared.world.count(&id, "alert"), alerts);
    }
}

on_both! {
    /// B1, N4, S4.7: breaks when the only copy of a person's commits goes unasked because the branch was pushed before, when
    /// it goes without what would be lost being named, or when an answer that begins on it is recorded after it went.
    fn the_last_copy_goes_by_a_persons_word_alone(kind: Kind) {
        let shared = Shared::new(kind, "echo plan > plan.txt");
        let id = shared.plan("fix");
        shared.world.ok(&["plan", "strategize", &id]);
        shared.world.ok(&["plan", "execute", &id]);
        // Pushed, so that git keeps a tracking ref, and forced away afterwards.
        let run = text(&shared.world.show(&id)["run"]);
        let tree = shared.world.worktrees().join(&id).join(run).join("tree");
        let mine = commit_in(&tree, "README.md", "by hand\n");
        shared.world.ok(&["plan", "sync", &id]);
        assert_eq!(shared.remote_tip(&id), Some(mine.clone()));
        shared.others_force(&id, "README.md", "forced\n");
        shared.world.drydock(&["plan", "sync", &id]).expect(6);
        let decision = shared.decision(&id);
        let name = text(&decision["details"]["backup_ref"]);
        let shown = shared.world.ok(&["backup", "show", &name])["backup"].clone();
        let ids: Vec<_> = list(&shown["commits"]).iter().map(|one| one["id"].clone()).collect();
        assert_eq!(Value::from(ids), decision["details"]["discarded_commits"], "D5");
        assert!(text(&shown["needed"]).contains("names it"), "{shown:#}");
        for sweep in [&["backup", "prune"][..], &["gc"]] {
            shared.world.ok(sweep);
            assert_eq!(shared.pins(&id), std::slice::from_ref(&name), "{sweep:?}");
        }
        let refused = shared.world.drydock(&["backup", "prune", &name]).expect(4);
        assert_eq!(refused.error_code(), "backup_needed");
        let lost = list(&refused.json["error"]["details"]["commits"]);
        assert!(lost.iter().any(|one| one["id"] == mine.as_str()), "{:#}", refused.json);
        shared.world.ok(&["backup", "prune", &name, "--discard"]);
        assert_eq!(shared.pins(&id), [""; 0]);
        let told = shared.world.events(&id).into_iter().find(|event| event["kind"] == "backup.discarded");
        assert_eq!(told.expect("an event")["data"]["backup_ref"], name.as_str());
        let decision = text(&decision["id"]);
        let answer = ["decision", "resolve", &decision, "--option", "restore_local"];
        let refused = shared.world.drydock(&answer).expect(4);
        assert_eq!(refused.error_code(), "backup_gone");
        let hint = text(&refused.json["error"]["hint"]);
        assert!(hint.contains(&format!("drydock decision resolve {decision} --option continue")), "{hint}");
        assert_eq!(shared.decision(&id)["status"], "open", "nothing was recorded");
        shared.world.ok(&["decision", "resolve", &decision, "--option", "continue"]);
    }
}

on_both! {
    /// Page B8: breaks when drydock's own commits of an earlier round are kept as the agent's, or an ordinary landing makes
    /// a backup.
    fn drydocks_own_rounds_make_no_backups(kind: Kind) {
        let world = crate::world::World::with_writer(kind, "echo round >> rounds.txt");
        world.action("twice", "[agents]\nexecute = \"writer\"\n[[validations]]\nname = \"two\"\ncommand = \"test $(wc -l < rounds.txt) -ge 2\"");
        let id = text(&world.ok(&["plan", "use", "twice", "--project", "app"])["plan"]["id"]);
        world.ok(&["plan", "strategize", &id]);
        world.ok(&["plan", "execute", &id]);
        assert_eq!(world.count(&id, "agent.sent_back"), 1);
        world.ok(&["plan", "apply", &id]);
        assert_eq!(list(&world.ok(&["backup", "list"])["backups"]), [] as [Value; 0]);
    }
}
