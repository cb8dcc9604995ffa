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
    /// Breaks when a landing that the remote did not take looks like one that it did, or is undone.
    fn a_landing_that_the_remote_refuses_is_told_by_an_alert(kind: Kind) {
        let shared = Shared::new(kind, "echo hi > hello.txt");
        let id = shared.plan("fix");
        shared.world.ok(&["plan", "strategize", &id]);
        shared.world.ok(&["plan", "execute", &id]);
        shared.others_land("theirs.txt");
        shared.world.ok(&["plan", "apply", &id]);
        let alert = shared.world.events(&id).into_iter().find(|event| event["kind"] == "alert").expect("an alert");
        let said = text(&alert["data"]["text"]);
        assert!(said.contains("origin did not take it") && said.contains("git push origin main"), "{said}");
        assert_eq!(shared.world.count(&id, "sync.push_failed"), 1);
        shared.world.assert_landed_once(&id);
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
        assert!(text(&list(&listed.json["data"]["unseen"])[0]).contains("cannot look into project"));
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
