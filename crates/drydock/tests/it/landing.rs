//! Landing on a branch that the user has checked out: what is theirs stays theirs.

use crate::shared::Shared;
use crate::world::{Kind, World, files, list, text};

const TITLE: &str = "printf '# Changed by a plan\\n' > README.md";

fn ready(kind: Kind) -> (World, String) {
    let world = World::with_writer(kind, TITLE);
    let id = world.plan_after("execute");
    (world, id)
}

on_both! {
    /// Breaks when a conflict touches a file, or is taken for a landing.
    fn a_conflict_constrains_the_plan_and_leaves_every_file(kind: Kind) {
        let (world, id) = ready(kind);
        world.repo.write("README.md", "# Changed by the user\n");
        world.repo.commit("by the user");
        let (before, head) = (files(world.repo.path()), world.repo.head("main"));
        let refused = world.drydock(&["plan", "apply", &id]).expect(5);
        assert_eq!(refused.error_code(), "constrained");
        assert!(refused.json["error"]["text"].as_str().unwrap().contains("README.md"), "{:#}", refused.json);
        assert_eq!(world.stage(&id), "apply/constrained");
        assert_eq!((files(world.repo.path()), world.repo.head("main")), (before, head));
        assert_eq!(world.repo.git(&["status", "--porcelain"]), "");

        world.repo.git(&["revert", "--no-edit", "HEAD"]);
        world.ok(&["plan", "retry", &id]);
        world.drydock(&["plan", "apply", &id]).expect(0);
        world.assert_landed_once(&id);
        assert_eq!(world.repo.git(&["show", "main:README.md"]), "# Changed by a plan");
        world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when a plan whose landing is on the target is recorded as errored because git could not delete its intent, or when that
    /// intent stays for good.
    fn a_landing_whose_intent_cannot_be_deleted_is_recorded(kind: Kind) {
        let (world, id) = ready(kind);
        // Git deletes no ref while another process packs them; it makes and moves them.
        let lock = world.repo.path().join(".git/packed-refs.lock");
        std::fs::write(&lock, "").unwrap();
        world.drydock(&["plan", "apply", &id]).expect(0);
        assert_eq!((world.stage(&id).as_str(), &world.show(&id)["error"]), ("apply/applied", &serde_json::Value::Null));
        let intents = || world.repo.git(&["for-each-ref", "--format=%(refname)", "refs/drydock/intent"]);
        assert_eq!(intents().lines().count(), 1, "what the test is about");
        std::fs::remove_file(&lock).unwrap();
        world.ok(&["gc"]);
        assert_eq!(intents(), "");
        world.assert_landed_once(&id);
        world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when a landing writes over what the user has not committed.
    fn a_dirty_file_in_the_way_stops_the_landing_and_stays(kind: Kind) {
        let (world, id) = ready(kind);
        world.repo.write("README.md", "# Example\nnot committed\n");
        let (before, head) = (files(world.repo.path()), world.repo.head("main"));
        let refused = world.drydock(&["plan", "apply", &id]).expect(1);
        assert_eq!(refused.error_code(), "plan_errored");
        let plan = world.show(&id);
        assert_eq!((crate::world::stage(&plan), &plan["error"]["class"]), ("apply/errored".into(), &"target_dirty".into()));
        assert!(plan["error"]["text"].as_str().unwrap().contains("README.md"), "{plan}");
        assert_eq!((files(world.repo.path()), world.repo.head("main")), (before, head));

        world.repo.git(&["checkout", "--", "README.md"]);
        world.repo.write("mine.txt", "mine\n");
        world.repo.commit("mine");
        world.ok(&["plan", "retry", &id]);
        world.drydock(&["plan", "apply", &id]).expect(0);
        world.assert_landed_once(&id);
        assert_eq!(world.repo.git(&["show", "main:mine.txt"]), "mine");
    }
}

on_both! {
    /// Breaks when a landing refuses or drops edits that it has nothing to do with.
    fn dirty_files_elsewhere_survive_the_landing(kind: Kind) {
        let (world, id) = ready(kind);
        world.repo.write("src/main.txt", "one\ntwo\nthree\nfour\n");
        world.repo.write("untracked.txt", "mine\n");
        world.repo.write("src/other.txt", "staged\n");
        world.repo.git(&["add", "src/other.txt"]);
        let status = world.repo.git(&["status", "--porcelain"]);
        let mut before = files(world.repo.path());
        world.drydock(&["plan", "apply", &id]).expect(0);
        before.insert(world.repo.path().join("README.md"), b"# Changed by a plan\n".to_vec());
        assert_eq!(files(world.repo.path()), before);
        assert_eq!(world.repo.git(&["status", "--porcelain"]), status);
        assert_eq!(world.landings(&id).len(), 1);
    }
}

/// N10. Breaks when the refs of a landed plan that could not be removed at its landing stay forever, when a dry run removes
/// them, or when commits that did not land lose theirs.
#[test]
fn gc_removes_the_refs_that_a_landing_left() {
    let shared = Shared::new(Kind::Sqlite, "echo hi > hello.txt");
    let world = &shared.world;
    let (id, open) = (shared.plan("fix"), shared.plan("fix"));
    for plan in [&id, &open] {
        world.ok(&["plan", "strategize", plan]);
        world.ok(&["plan", "execute", plan]);
    }
    let refs = |plan: &str| {
        let all = world.repo.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
        // Those of git's own fetches and pushes are the user's.
        let ours = |name: &&str| name.contains(plan) && !name.starts_with("refs/remotes/");
        all.lines().filter(ours).map(str::to_owned).collect::<Vec<_>>()
    };
    let (left, other) = (refs(&id), refs(&open));
    let tracked = left.iter().find(|name| name.starts_with("refs/drydock/remote/")).unwrap().clone();
    world.ok(&["plan", "apply", &id]);
    assert_eq!(refs(&id), [] as [&str; 0]);
    // As a process that died right after the landing leaves them.
    for (name, commit) in left.iter().filter_map(|line| line.split_once(' ')) {
        world.repo.git(&["update-ref", name, commit]);
    }
    let removed = |args: &[&str]| {
        let removed = list(&world.ok(args)["gc"]["removed"]);
        removed.iter().filter(|one| text(&one["what"]).contains(&format!("refs of {id}"))).count()
    };
    assert_eq!((removed(&["gc", "--dry-run"]), refs(&id)), (1, left));
    assert_eq!((removed(&["gc"]), refs(&id)), (1, Vec::new()));
    assert_eq!((removed(&["gc"]), refs(&open)), (0, other));
    // As a remote that was away leaves its branch.
    let (name, commit) = tracked.split_once(' ').unwrap();
    world.repo.git(&["push", "-q", "origin", &format!("{commit}:refs/heads/drydock/{id}/work")]);
    world.repo.git(&["update-ref", name, commit]);
    assert_eq!((removed(&["gc"]), refs(&id), shared.remote_tip(&id)), (1, Vec::new(), None));
}

/// N10. Breaks when a dry run lists a branch that `gc` keeps because a worktree has it checked out.
#[test]
fn a_dry_run_lists_no_branch_that_gc_keeps() {
    let world = World::with_writer(Kind::Sqlite, "echo hi > hello.txt");
    let id = world.plan_after("execute");
    let (branch, tree) = (format!("drydock/{id}/work"), world.place("mine"));
    let commit = world.repo.git(&["rev-parse", &branch]);
    world.ok(&["plan", "apply", &id]);
    // As a person has it who looks at the result of a landing whose refs stayed.
    world.repo.git(&["worktree", "add", "-q", "-b", &branch, &tree, commit.trim()]);
    let removed = |args: &[&str]| {
        let removed = list(&world.ok(args)["gc"]["removed"]);
        removed.iter().filter(|one| text(&one["what"]) == format!("refs of {id}")).count()
    };
    assert_eq!((removed(&["gc", "--dry-run"]), removed(&["gc"])), (0, 0));
    assert_eq!(world.repo.git(&["rev-parse", &branch]), commit);
    world.repo.git(&["worktree", "remove", &tree]);
    assert_eq!((removed(&["gc", "--dry-run"]), removed(&["gc"])), (1, 1));
}

/// PERF-3. Breaks when refs of applied plans stay, here or at the remote, when what is asked about such a plan needs them, when
/// what a person wrote after the result goes with them, or when another plan loses its own.
#[test]
fn an_applied_plan_leaves_no_refs_and_still_answers() {
    let shared = Shared::new(Kind::Sqlite, "echo hi > hello.txt");
    let world = &shared.world;
    let (id, other) = (shared.plan("fix"), shared.plan("fix"));
    for plan in [&id, &other] {
        world.ok(&["plan", "strategize", plan]);
        world.ok(&["plan", "execute", plan]);
    }
    let refs = |plan: &str| {
        let all = world.repo.git(&["for-each-ref", "--format=%(refname)"]);
        all.lines().filter(|name| name.contains(plan)).map(str::to_owned).collect::<Vec<_>>()
    };
    let patch = |plan: &str| text(&world.ok(&["plan", "diff", plan])["diff"]["text"]);
    let before = patch(&id);
    assert!(before.contains("+hi") && shared.remote_tip(&id).is_some() && refs(&id).len() > 2, "{before}");
    let run = text(&world.show(&id)["run"]);
    std::fs::write(world.worktrees().join(&id).join(run).join("tree/late.txt"), "late\n").unwrap();
    let base = text(&world.show(&other)["base_commit"]);
    let others = refs(&other);
    assert!(others.iter().any(|name| name.starts_with("refs/drydock/snap/")), "{others:?}");
    world.ok(&["plan", "apply", &id]);

    assert_eq!(shared.remote_tip(&id), None, "the remote keeps no branch of it");
    let left = refs(&id);
    assert!(left.iter().all(|name| name.starts_with("refs/drydock/pin")), "{left:?}");
    assert!(!left.is_empty(), "what a person wrote after the result is a backup");
    assert_eq!(world.repo.git(&["worktree", "list"]).matches(&format!("{id}/")).count(), 0);
    world.repo.git(&["reflog", "expire", "--expire=now", "--all"]);
    world.repo.git(&["gc", "-q", "--prune=now"]);
    assert_eq!(patch(&id), before, "it comes from the landing");
    for args in [["plan", "tree"], ["changeset", "list"], ["checkpoint", "list"], ["plan", "why"]] {
        world.ok(&[args[0], args[1], &id]);
    }
    world.assert_sound(&id);

    assert_eq!(refs(&other), others, "another plan keeps all of its own");
    world.ok(&["plan", "cancel", &other]);
    assert_eq!(refs(&other), others, "a cancelled plan does too");
    assert!(shared.remote_tip(&other).is_some());
    assert_ne!(text(&world.show(&other)["head_commit"]), base);
}
