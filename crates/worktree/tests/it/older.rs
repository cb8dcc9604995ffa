//! The oldest supported git gives the same results as a newer one (issue 13, item 10).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use drydock_worktree::{DetailedMerge, Git, GitVersion, MergeOutcome, MergeRequest, Prefer, Repository};

use crate::fixture::{Fixture, write};
use crate::scene::Scene;

/// Creates a git that reports version 2.39 and rejects options added later.
fn older(fixture: &Fixture) -> Git {
    let program: PathBuf = fixture.path("older");
    let real = Git::locate().unwrap();
    let script = format!(
        "#!/bin/sh\nverb=$1\n[ \"$verb\" = version ] && {{ echo git version 2.39.0; exit; }}\n[ \"$verb\" = var ] && exit 129\n\
         [ \"$verb\" = merge-tree ] && echo \"$GIT_GRAFT_FILE\" >> {}\n\
         for word; do\n  case $verb:$word in merge-tree:--merge-base*|fetch:--porcelain)\n    \
         echo \"error: unknown option $word\" >&2; exit 129;;\n  esac\ndone\nexec {} \"$@\"\n",
        fixture.path("grafts").display(),
        real.display()
    );
    write(&program, &script);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let git = Git::at(program).unwrap().with_home(&fixture.path("home"));
    assert_eq!(git.version_numbers(), GitVersion::MIN);
    git
}

/// Breaks when a base is not used by its id but found by history, which fails for a base that descends from a
/// side.
#[test]
fn an_older_git_merges_by_the_same_base() {
    let fixture = Fixture::new();
    let first = fixture.tip("main");
    let second = fixture.build(&first, |at| write(&at.join("a.txt"), "second\n"));
    let third = fixture.build(&second, |at| write(&at.join("b.txt"), "third\n"));
    let apart = fixture.build(&first, |at| write(&at.join("dir/c.txt"), "apart\n"));
    let clashing = fixture.build(&first, |at| write(&at.join("a.txt"), "clashing\n"));
    let (newer, git) = (fixture.open(), older(&fixture));
    let older = Repository::open(&git, &fixture.repo()).unwrap();
    let before = fixture.witness();
    let merges = [
        (&first, &third, &apart),
        (&first, &first, &apart),
        (&first, &third, &first),
        // Reverts the change of `second`.
        (&second, &third, &first),
        (&third, &first, &apart),
        (&apart, &third, &third),
        (&first, &third, &clashing),
        (&second, &clashing, &first),
    ];
    for (base, ours, theirs) in merges {
        let merged = |repository: &Repository| repository.merge(base, ours, theirs).unwrap();
        assert_eq!(merged(&older), merged(&newer), "{base} {ours} {theirs}");
        let order = |favour| MergeRequest { base, ours, theirs, favour };
        for favour in [Prefer::Neither, Prefer::Ours] {
            let joined = |repository: &Repository| repository.merge_detailed(&order(favour)).unwrap();
            assert_eq!(joined(&older), joined(&newer), "{base} {ours} {theirs} {favour:?}");
        }
    }
    let nothing = "1".repeat(40).parse().unwrap();
    let error = older.merge(&first, &third, &nothing).unwrap_err().to_string();
    assert!(error.contains(nothing.as_str()) && !error.contains("hint:"), "{error}");
    let taken_back = older.merge(&second, &third, &first).unwrap();
    let MergeOutcome::Clean(tree) = taken_back else { panic!("{taken_back:?}") };
    let show = |path: &str| fixture.user(&["show", &format!("{tree}:{path}")], &fixture.repo());
    assert_eq!((show("a.txt"), show("b.txt")), ("a".to_owned(), "third".to_owned()));
    let DetailedMerge::Conflict { files, .. } = older
        .merge_detailed(&MergeRequest {
            base: &first,
            ours: &third,
            theirs: &clashing,
            favour: Prefer::Neither,
        })
        .unwrap()
    else {
        panic!("both changed a.txt")
    };
    assert_eq!(files[0].hunks[0].base.as_deref(), Some("a\n"));
    assert_eq!(before, fixture.witness(), "nothing is left behind");
    // Nor does a killed process leave anything: the files of its calls are in the system's temporary
    // directory.
    let grafts = fs::read_to_string(fixture.path("grafts")).unwrap();
    let outside = |file: &str| !file.is_empty() && !Path::new(file).starts_with(fixture.repo());
    assert!(grafts.lines().all(outside), "{grafts}");
}

/// Breaks when a fetch for which an older git prints nothing is read as a position other than the remote's.
#[test]
fn an_older_git_syncs_what_it_does_not_print() {
    let scene = Scene::pushed();
    let git = older(&scene.fixture);
    let repository = Repository::open(&git, &scene.fixture.repo()).unwrap();
    let named = |wanted: &str| {
        let outcome = repository.sync(&scene.order());
        assert_eq!(outcome.name(), wanted, "{outcome:?}");
    };
    named("in_sync");
    // A packed ref is read as well.
    scene.fixture.user(&["pack-refs", "--all"], &scene.fixture.repo());
    named("in_sync");
    scene.remote_commit("a.txt", "theirs\n", "theirs");
    named("fast_forwarded");
    for name in ["b.txt", "d.txt"] {
        scene.commit(name, "mine\n", name);
    }
    let tip = scene.remote_commit("dir/c.txt", "theirs\n", "theirs again");
    named("rebased");
    let line =
        scene.fixture.user(&["log", "--format=%s", &format!("{tip}..{}", scene.local())], &scene.tree());
    assert_eq!(line, "d.txt\nb.txt");
    assert_eq!(scene.remote_tip(), Some(scene.local()));
}
