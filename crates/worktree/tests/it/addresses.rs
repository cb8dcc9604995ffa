//! A remote with different fetch and push addresses: everything is read from the push address (issue 12, N2).

use drydock_worktree::{GitError, IntentPushed, RemoteLanded, RemoteLanding, RemoteTip, Revoked};

use crate::fixture::{Fixture, write};
use crate::scene::{BRANCH, Scene};

/// Gives `origin` another fetch repository, which has the same history so far.
fn fetch_elsewhere(fixture: &Fixture) {
    let push = fixture.user(&["config", "remote.origin.url"], &fixture.repo());
    fixture.user(&["clone", "-q", "--bare", "remote", "original"], &fixture.path(""));
    fixture.user(&["config", "remote.origin.pushurl", &push], &fixture.repo());
    fixture.user(&["config", "remote.origin.url", "../original"], &fixture.repo());
}

/// Breaks when a landing reads its target or its intents at an address to which it does not push.
#[test]
fn a_landing_looks_where_it_pushes() {
    let fixture = Fixture::new();
    fixture.user(&["init", "-q", "--bare", "remote"], &fixture.path(""));
    fixture.user(&["remote", "add", "origin", "../remote"], &fixture.repo());
    fixture.user(&["push", "-q", "origin", "main"], &fixture.repo());
    let first = fixture.tip("main");
    let ours = fixture.build(&first, |folder| write(&folder.join("a.txt"), "landed\n"));
    let theirs = fixture.build(&first, |folder| write(&folder.join("b.txt"), "elsewhere\n"));
    let repository = fixture.open();
    // A user's rule for the push address itself: git does not apply it to the result of `pushInsteadOf`, so
    // drydock must not either.
    let remote = fixture.path("remote").display().to_string();
    fetch_elsewhere(&fixture);
    fixture.user(&["config", "--unset", "remote.origin.pushurl"], &fixture.repo());
    fixture.user(&["config", &format!("url.{remote}.pushInsteadOf"), "../original"], &fixture.repo());
    fixture.user(&["config", "url.../original.insteadOf", &remote], &fixture.repo());
    let original = fixture.path("original").display().to_string();
    fixture.user(&["push", "-q", &original, &format!("{theirs}:main")], &fixture.repo());

    let tip = || repository.remote_tip("origin", "main").unwrap();
    assert_eq!(tip(), RemoteTip::At(first.clone()));
    let announced = repository.intent_push("origin", "pln-1", "run-1", &ours).unwrap();
    assert!(matches!(announced, IntentPushed::As(_)), "{announced:?}");
    assert_eq!(repository.intents_revoke("origin", "pln-1").unwrap(), Revoked::Gone);
    let IntentPushed::As(intent) = repository.intent_push("origin", "pln-1", "run-2", &ours).unwrap() else {
        panic!("it was taken before")
    };
    let landing = RemoteLanding {
        remote: "origin",
        branch: "main",
        from: Some(&first),
        to: &ours,
        intent: Some(&intent),
        removes: None,
    };
    assert_eq!(repository.land_remote(&landing).unwrap(), RemoteLanded::Moved);
    assert_eq!(tip(), RemoteTip::At(ours.clone()));
    let at = |folder: &str| {
        let refs = ["for-each-ref", "--format=%(objectname) %(refname)"];
        fixture.user(&refs, &fixture.path(folder))
    };
    assert_eq!(at("remote"), format!("{ours} refs/heads/main"), "no intent is left");
    assert_eq!(at("original"), format!("{theirs} refs/heads/main"));
}

/// Breaks when a pushed branch is read at another address, and counts as deleted or foreign.
#[test]
fn a_sync_reads_the_branch_that_it_sends() {
    let scene = Scene::new();
    fetch_elsewhere(&scene.fixture);
    scene.commit("a.txt", "mine\n", "mine");
    assert_eq!(scene.sync().name(), "pushed");
    assert_eq!(scene.sync().name(), "in_sync");
    scene.remote_commit("b.txt", "theirs\n", "theirs");
    assert_eq!(scene.sync().name(), "fast_forwarded");
    assert_eq!(scene.remote_tip(), Some(scene.local()));
    let there = scene.fixture.user(&["for-each-ref", "refs/heads/drydock"], &scene.fixture.path("original"));
    assert_eq!(there, "", "{BRANCH} is sent to one place");
}

/// N12. Breaks when only one of several push addresses is checked, or when the hint does not help.
#[test]
fn several_addresses_to_push_to_are_refused_with_a_next_step() {
    let scene = Scene::pushed();
    let (repo, add) = (scene.fixture.repo(), ["config", "--add", "remote.origin.url"]);
    scene.fixture.user(&[&add[..], &["https://me:secret@example.org/x"]].concat(), &repo);
    scene.commit("a.txt", "mine\n", "mine");
    let repository = scene.repository();
    let error = repository.remote_tip("origin", "main").unwrap_err();
    assert!(matches!(error, GitError::ManyAddresses { .. }), "{error:?}");
    assert!(repository.push("origin", BRANCH, &scene.local()).is_err());
    let outcome = scene.sync();
    let drydock_domain::SyncOutcome::Unknown { reason, .. } = &outcome else { panic!("{outcome:?}") };
    assert!(reason.contains("2 push addresses") && reason.contains("https://example.org/x"), "{reason}");
    assert!(!reason.contains("secret"), "{reason}");
    let command = reason.split('`').nth(1).unwrap();
    let ran = std::process::Command::new("sh").args(["-c", command]).status().unwrap();
    assert!(ran.success(), "{command}");
    assert_eq!(scene.sync().name(), "pushed");
}
