//! Subplans that do nothing, of which a tree may have many.

use serde_json::json;

use crate::fanning::{piece, subplan, world};
use crate::world::text;

on_both! {
    /// Breaks when a piece that did nothing leaves a directory, a snapshot or a ref behind, when it spoils what others did, or
    /// when a piece is taken for one of these that did something.
    fn a_piece_that_does_nothing_leaves_nothing_behind(kind: Kind) {
        let pieces = [
            piece("idle", "true", &[]),
            piece("busy", "echo busy > busy.txt", &[]),
            piece("late", "cat busy.txt", &["idle", "busy"]),
        ];
        let world = world(kind, &json!({ "subplans": pieces }));
        let id = world.plan(&["--profile", "auto"]);
        world.ok(&["plan", "strategize", &id]);
        world.ok(&["plan", "execute", &id]);
        for (name, does) in [("idle", false), ("busy", true), ("late", false)] {
            let child = text(&subplan(&world, &id, name)["plan"]);
            let kept = format!("refs/drydock/snap/{child}");
            let joined = format!("refs/drydock/join/{id}/{child}");
            let refs = world.repo.git(&["for-each-ref", "--format=%(refname)", &kept, &joined]);
            assert_eq!(refs.lines().count(), if does { 2 } else { 0 }, "{name}: {refs}");
            assert_eq!(world.worktrees().join(&child).exists(), does, "{name}");
            let shown = world.show(&child);
            assert_eq!(shown["head_commit"] == shown["base_commit"], !does, "{name}: {shown:#}");
            assert_eq!(world.count(&child, "changeset.sealed"), 1, "{name}");
            // Called, driven through both phases, joined: each took the lock once.
            let fence = world.query(&format!("SELECT fence FROM locks WHERE scope = 'plan' AND key = '{child}'"));
            assert_eq!(fence, "3", "{name}");
            world.assert_sound(&child);
        }
        assert_eq!(world.repo.git(&["fsck", "--no-dangling"]), "");
        world.ok(&["plan", "apply", &id]);
        world.assert_landed_once(&id);
        assert_eq!(world.repo.git(&["show", "main:busy.txt"]), "busy");
        assert_eq!(world.ok(&["store", "check"])["problems"], json!([]));
    }
}
