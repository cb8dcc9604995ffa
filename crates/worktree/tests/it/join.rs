//! Detailed merges without a preferred side: clean results, and the description of conflicts.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use drydock_worktree::{
    CommitId, ConflictFile, ConflictKind, DetailedMerge, Git, GitError, Hunk, MergeRequest, Prefer,
    Repository, TreeId,
};

use crate::fixture::{Fixture, ada, read, write};
use crate::joiner::{Joiner, lines};

fn executable(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Merges without a preferred side, and expects a conflict.
fn conflict(
    base: impl FnOnce(&Path),
    ours: impl FnOnce(&Path),
    theirs: impl FnOnce(&Path),
) -> (Joiner, TreeId, Vec<ConflictFile>) {
    let joiner = Joiner::new(base, ours, theirs);
    match joiner.join(Prefer::Neither) {
        DetailedMerge::Conflict { tree, files } => (joiner, tree, files),
        DetailedMerge::Clean(tree) => panic!("no conflict: {:?}", joiner.listing(&tree)),
    }
}

fn kinds(files: &[ConflictFile]) -> Vec<(&str, &ConflictKind)> {
    files.iter().map(|file| (file.path.as_str(), &file.kind)).collect()
}

#[test]
fn what_two_writers_did_in_different_places_is_joined_whoever_is_favoured() {
    let base = |at: &Path| {
        write(&at.join("a.txt"), &lines(1..=20));
        write(&at.join("run.sh"), "one\ntwo\nthree\nfour\nfive\n");
        write(&at.join("with space/ü name.txt"), &lines(1..=9));
        write(&at.join("crlf.txt"), &lines(1..=9).replace('\n', "\r\n"));
        write(&at.join("old.txt"), &lines(100..=120));
        write(&at.join("gone.txt"), "gone\n");
        write(&at.join("empty"), "");
        symlink("a.txt", at.join("link")).unwrap();
    };
    let ours = |at: &Path| {
        write(&at.join("a.txt"), &lines(1..=20).replace("line 2\n", "two\n"));
        executable(&at.join("run.sh"));
        write(&at.join("with space/ü name.txt"), &lines(1..=9).replace("line 1\n", "eins\n"));
        write(&at.join("crlf.txt"), &lines(1..=9).replace("line 1\n", "one\n").replace('\n', "\r\n"));
        fs::rename(at.join("old.txt"), at.join("new.txt")).unwrap();
        write(&at.join("empty"), "no longer\n");
        write(&at.join("added by ours"), "");
    };
    let theirs = |at: &Path| {
        write(&at.join("a.txt"), &lines(1..=20).replace("line 19\n", "nineteen\n"));
        write(&at.join("run.sh"), "one\ntwo\nthree\nfour\nFIVE\n");
        write(&at.join("with space/ü name.txt"), &lines(1..=9).replace("line 9\n", "neun\n"));
        write(&at.join("crlf.txt"), &lines(1..=9).replace("line 9\n", "nine\n").replace('\n', "\r\n"));
        write(&at.join("old.txt"), &lines(100..=120).replace("line 110\n", "edited\n"));
        fs::remove_file(at.join("gone.txt")).unwrap();
        fs::remove_file(at.join("link")).unwrap();
        symlink("run.sh", at.join("link")).unwrap();
    };
    let joiner = Joiner::new(base, ours, theirs);
    for favour in [Prefer::Neither, Prefer::Ours, Prefer::Theirs] {
        let DetailedMerge::Clean(tree) = joiner.join(favour) else { panic!("{favour:?} should be clean") };
        let listing = joiner.listing(&tree);
        assert_eq!(listing.len(), 8, "{listing:?}");
        assert!(listing["a.txt"].has("two\n") && listing["a.txt"].has("nineteen\n"));
        assert_eq!(listing["run.sh"].mode, "100755");
        assert!(listing["run.sh"].has("FIVE\n"));
        let umlaut = &listing["with space/ü name.txt"];
        assert!(umlaut.has("eins\n") && umlaut.has("neun\n"));
        assert!(listing["crlf.txt"].has("one\r\nline 2\r\n") && listing["crlf.txt"].has("nine\r\n"));
        assert!(listing["new.txt"].has("edited\n"), "an edit follows a rename");
        assert_eq!((listing["link"].mode.as_str(), listing["link"].text()), ("120000", "run.sh".to_owned()));
        assert_eq!(listing["empty"].text(), "no longer\n");
        assert_eq!(listing["added by ours"].text(), "");
    }
}

#[test]
fn a_conflict_tells_its_places_with_what_each_side_has() {
    let (joiner, tree, files) = conflict(
        |at| write(&at.join("dir/a b.txt"), &lines(1..=30)),
        |at| {
            let text = lines(1..=30).replace("line 5\n", "five\n").replace("line 25\n", "");
            write(&at.join("dir/a b.txt"), &text);
        },
        |at| {
            let text = lines(1..=30).replace("line 5\n", "FIVE\nfive and a half\n");
            write(
                &at.join("dir/a b.txt"),
                &text.replace("line 25\n", "TWENTY-FIVE\n").replace("line 15\n", "x\n"),
            );
        },
    );
    assert_eq!(kinds(&files), [("dir/a b.txt", &ConflictKind::Content)]);
    let part = |text: &str| text.to_owned();
    let expected = [
        Hunk {
            line: 5,
            ours: part("five\n"),
            base: Some(part("line 5\n")),
            theirs: part("FIVE\nfive and a half\n"),
        },
        Hunk { line: 32, ours: String::new(), base: Some(part("line 25\n")), theirs: part("TWENTY-FIVE\n") },
    ];
    assert_eq!((files[0].hunks.as_slice(), files[0].left_out), (expected.as_slice(), 0));
    assert_eq!(files[0].message, "CONFLICT (content): Merge conflict in dir/a b.txt");
    let listing = joiner.listing(&tree);
    let marked: Vec<String> = listing["dir/a b.txt"].text().lines().map(str::to_owned).collect();
    for hunk in &files[0].hunks {
        assert_eq!(marked[hunk.line - 1], format!("<<<<<<< {}", joiner.ours), "the line of the tree's file");
    }
    assert!(listing["dir/a b.txt"].has("\nx\n"), "what fits is merged");
}

#[test]
fn only_files_with_markers_of_a_join_are_unresolved() {
    let looks_like = "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n";
    let (joiner, tree, files) = conflict(
        |at| {
            write(&at.join("a.txt"), &lines(1..=9));
            write(&at.join("b\nb.txt"), "b\n");
            write(&at.join("text.txt"), "x\n");
            write(&at.join("dir/file"), "x\n");
        },
        |at| {
            write(&at.join("a.txt"), "ours\n");
            write(&at.join("b\nb.txt"), "ours\n");
            write(&at.join("text.txt"), looks_like);
        },
        |at| {
            write(&at.join("a.txt"), "theirs\n");
            write(&at.join("b\nb.txt"), "theirs\n");
        },
    );
    let mut paths: Vec<String> = files.iter().flat_map(ConflictFile::paths).map(str::to_owned).collect();
    assert_eq!(paths, ["a.txt", "b\nb.txt"]);
    let others = ["text.txt", "no such\nfile", "dir", "", "a.txt\0"].map(str::to_owned);
    // Missing paths come first, so that misparsing them would affect the rest.
    paths.splice(0..0, others);
    let repository = joiner.fixture.open();
    assert_eq!(repository.unresolved(&tree, &paths).unwrap(), ["a.txt", "b\nb.txt"]);
    let folder = joiner.fixture.path("resolve");
    let commit = repository.commit(&tree, std::slice::from_ref(&joiner.ours), "conflict", &ada()).unwrap();
    joiner.fixture.user(
        &["worktree", "add", "-q", "--detach", folder.to_str().unwrap(), commit.as_str()],
        &joiner.fixture.repo(),
    );
    write(&folder.join("b\nb.txt"), "both\n");
    let half = repository.tree_of(&joiner.fixture.commit_in(&folder, "half")).unwrap();
    assert_eq!(repository.unresolved(&half, &paths).unwrap(), ["a.txt"]);
    fs::remove_file(folder.join("a.txt")).unwrap();
    let done = repository.tree_of(&joiner.fixture.commit_in(&folder, "done")).unwrap();
    assert_eq!(repository.unresolved(&done, &paths).unwrap(), Vec::<String>::new());
}

#[test]
fn each_kind_of_conflict_is_told_by_its_name() {
    let link = format!("160000,{},", "1".repeat(40));
    let (joiner, _, files) = conflict(
        |at| {
            for (name, from) in
                [("both moved", 100), ("moved and deleted", 200), ("deleted", 300), ("type", 400)]
            {
                write(&at.join(name), &lines(from..=from + 20));
            }
            fs::write(at.join("binary"), b"a\0b").unwrap();
            symlink("x", at.join("link")).unwrap();
            joiner_index(at, &format!("{link}sub"));
        },
        |at| {
            fs::rename(at.join("both moved"), at.join("moved by ours")).unwrap();
            fs::rename(at.join("moved and deleted"), at.join("moved")).unwrap();
            write(&at.join("deleted"), "edited\n");
            fs::remove_file(at.join("type")).unwrap();
            symlink("deleted", at.join("type")).unwrap();
            fs::write(at.join("binary"), b"a\0ours").unwrap();
            write(&at.join("added"), "by ours\n");
            write(&at.join("mode"), "the same\n");
            write(&at.join("folder"), "a file\n");
            fs::remove_file(at.join("link")).unwrap();
            symlink("ours", at.join("link")).unwrap();
            joiner_index(at, &format!("160000,{},sub", "2".repeat(40)));
        },
        |at| {
            fs::rename(at.join("both moved"), at.join("moved by theirs")).unwrap();
            for name in ["moved and deleted", "deleted"] {
                fs::remove_file(at.join(name)).unwrap();
            }
            write(&at.join("type"), "edited\n");
            fs::write(at.join("binary"), b"a\0theirs").unwrap();
            write(&at.join("added"), "by theirs\n");
            write(&at.join("mode"), "the same\n");
            executable(&at.join("mode"));
            write(&at.join("folder/file"), "x\n");
            fs::remove_file(at.join("link")).unwrap();
            symlink("theirs", at.join("link")).unwrap();
            joiner_index(at, &format!("160000,{},sub", "3".repeat(40)));
        },
    );
    let links = files.iter().position(|file| file.path == "sub").unwrap();
    assert!(
        matches!(&files[links].kind, ConflictKind::Other(kind) if kind.starts_with("submodule")),
        "{files:?}"
    );
    let rest: Vec<ConflictFile> = files.iter().filter(|file| file.path != "sub").cloned().collect();
    let expected = [
        ("added", ConflictKind::AddAdd),
        ("binary", ConflictKind::Binary),
        ("both moved", ConflictKind::RenameRename),
        ("deleted", ConflictKind::ModifyDelete),
        ("folder", ConflictKind::DirectoryFile),
        ("link", ConflictKind::Other("symbolic link".to_owned())),
        ("mode", ConflictKind::Mode),
        ("moved", ConflictKind::RenameDelete),
        ("type", ConflictKind::Mode),
    ];
    assert_eq!(kinds(&rest), expected.iter().map(|(path, kind)| (*path, kind)).collect::<Vec<_>>());
    let file = |path: &str| files.iter().find(|file| file.path == path).unwrap();
    assert_eq!(file("both moved").others, ["moved by ours", "moved by theirs"]);
    let words = "CONFLICT (rename/rename): both moved renamed to moved by ours in ours and to moved by theirs in theirs.";
    assert_eq!(file("both moved").message, words);
    assert_eq!(file("folder").others, [format!("folder~{}", joiner.ours)]);
    assert!(
        file("folder").message.contains(&format!("folder~{}", joiner.ours)),
        "{}",
        file("folder").message
    );
    let added = Hunk { line: 1, ours: "by ours\n".to_owned(), base: None, theirs: "by theirs\n".to_owned() };
    assert_eq!(file("added").hunks, [added]);
    let others = files.iter().filter(|file| file.path != "added");
    assert!(others.clone().all(|file| file.hunks.is_empty()), "{:?}", others.collect::<Vec<_>>());
}

/// Stages a gitlink; the directory makes `git add` leave it alone.
fn joiner_index(at: &Path, entry: &str) {
    fs::create_dir_all(at.join("sub")).unwrap();
    let status = std::process::Command::new("git")
        .args(["update-index", "--add", "--cacheinfo", entry])
        .current_dir(at)
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn joining_changes_nothing_of_the_repository_and_gives_the_same_again() {
    let fixture = Fixture::new();
    let base = fixture.tip("main");
    let ours = fixture.build(&base, |at| {
        write(&at.join("a.txt"), "ours\n");
        fs::remove_file(at.join("b.txt")).unwrap();
    });
    let theirs = fixture.build(&base, |at| {
        write(&at.join("a.txt"), "theirs\n");
        write(&at.join("b.txt"), "theirs\n");
    });
    // Staged and edited files must not matter either.
    fixture.write("a.txt", "staged\n");
    fixture.user(&["add", "a.txt"], &fixture.repo());
    fixture.write("a.txt", "edited\n");
    let before = fixture.witness();
    let repository = fixture.open();
    for favour in [Prefer::Neither, Prefer::Ours, Prefer::Theirs] {
        let order = MergeRequest { base: &base, ours: &ours, theirs: &theirs, favour };
        let first = repository.merge_detailed(&order).unwrap();
        assert_eq!(repository.merge_detailed(&order).unwrap(), first, "{favour:?}");
        if let DetailedMerge::Conflict { tree, files } = &first {
            let paths: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
            assert_eq!(repository.unresolved(tree, &paths).unwrap(), ["a.txt"]);
        }
        assert_eq!(before, fixture.witness(), "{favour:?}");
    }
}

#[test]
fn a_join_takes_few_processes() {
    let fixture = Fixture::new();
    let base = fixture.tip("main");
    let ours = fixture.build(&base, |at| write(&at.join("a.txt"), "ours\n"));
    let theirs = fixture.build(&base, |at| write(&at.join("a.txt"), "theirs\n"));
    let apart = fixture.build(&base, |at| write(&at.join("b.txt"), "theirs\n"));
    let (program, log) = (fixture.path("git"), fixture.path("log"));
    let script = format!(
        "#!/bin/sh\necho \"$1 $2\" >> {}\nexec {} \"$@\"\n",
        log.display(),
        fixture.git.program().display()
    );
    write(&program, &script);
    executable(&program);
    let git = Git::at(program).unwrap().with_home(&fixture.path("home"));
    let repository = Repository::open(&git, &fixture.repo()).unwrap();
    let calls = |theirs: &CommitId, favour: Prefer| {
        write(&log, "");
        repository.merge_detailed(&MergeRequest { base: &base, ours: &ours, theirs, favour }).unwrap();
        // Git is called for the location of the configuration once per process.
        let finds = |line: &str| line.starts_with("var ") || line == "config --system";
        let calls = read(&log);
        let verbs = calls.lines().filter(|line| !finds(line)).filter_map(|line| line.split(' ').next());
        verbs.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(calls(&apart, Prefer::Neither), ["config", "merge-tree"]);
    assert_eq!(calls(&apart, Prefer::Ours), ["merge-tree"]);
    assert_eq!(calls(&theirs, Prefer::Neither), ["merge-tree", "cat-file", "cat-file"]);
    let settled = calls(&theirs, Prefer::Theirs);
    assert!(settled.len() <= 9, "{settled:?}");
}

#[test]
fn a_joined_commit_depends_on_nothing_but_what_it_is_made_of() {
    let make = |settings: &[&str]| {
        let fixture = Fixture::new();
        for setting in settings {
            let (key, value) = setting.split_once('=').unwrap();
            fixture.user(&["config", key, value], &fixture.repo());
        }
        let repository = fixture.open();
        let tree = repository.tree_of(&fixture.tip("main")).unwrap();
        let first = repository.commit(&tree, &[], "first", &ada()).unwrap();
        let second = repository.commit(&tree, std::slice::from_ref(&first), "über\n\nbody", &ada()).unwrap();
        let merged = repository.commit(&tree, &[first.clone(), second.clone()], "joined", &ada()).unwrap();
        assert_eq!(repository.commit(&tree, &[first, second.clone()], "joined", &ada()).unwrap(), merged);
        (second, merged)
    };
    let plain = make(&[]);
    assert_eq!(plain, make(&["user.name=Bob", "i18n.commitEncoding=latin1", "commit.gpgSign=true"]));
}

/// B15: breaks when control characters, which a terminal would interpret, get from a task into the log.
#[test]
fn a_commit_message_holds_no_control_characters() {
    let fixture = Fixture::new();
    let repository = fixture.open();
    let tree = repository.tree_of(&fixture.tip("main")).unwrap();
    let written = "\u{1b}[31mred\r\n\n\u{9b}body\u{7}\tand so on";
    let commit = repository.commit(&tree, &[], written, &ada()).unwrap();
    let read = fixture.user(&["log", "-1", "--format=%B", commit.as_str()], &fixture.repo());
    assert_eq!(read, "[31mred\n\nbody\tand so on");
}

#[test]
fn a_join_of_what_is_not_there_is_an_error() {
    let fixture = Fixture::new();
    let base = fixture.tip("main");
    let nothing = "1".repeat(40).parse().unwrap();
    let order = MergeRequest { base: &base, ours: &base, theirs: &nothing, favour: Prefer::Ours };
    let error = fixture.open().merge_detailed(&order).unwrap_err();
    assert!(matches!(error, GitError::Failed { .. } | GitError::Unexpected { .. }), "{error:?}");
}
