//! Detailed merges with a preferred side: always clean, nothing of that side lost, and of the other only what
//! conflicts.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use drydock_worktree::{CommitId, DetailedMerge, MergeOutcome, MergeRequest, Prefer};

use crate::fixture::{Fixture, ada, write};
use crate::joiner::{Joiner, Listed, lines, listing};

const SIDES: [(Prefer, &str); 2] = [(Prefer::Ours, "ours"), (Prefer::Theirs, "theirs")];

fn executable(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn names(listing: &BTreeMap<String, Listed>) -> Vec<&str> {
    listing.keys().map(String::as_str).collect()
}

/// Merges the work of three writers, one after another.
fn join_in_turn(fixture: &Fixture, base: &CommitId, writers: &[CommitId], favour: Prefer) -> DetailedMerge {
    let repository = fixture.open();
    let mut so_far = base.clone();
    let mut last = None;
    for writer in writers {
        let order = MergeRequest { base, ours: &so_far, theirs: writer, favour };
        match repository.merge_detailed(&order).unwrap() {
            DetailedMerge::Clean(tree) => {
                so_far = repository.commit(&tree, &[so_far, writer.clone()], "joined", &ada()).unwrap();
                last = Some(DetailedMerge::Clean(tree));
            }
            conflict => return conflict,
        }
    }
    last.unwrap()
}

fn three_writers(edits: [&[(&str, &str)]; 3]) -> (Fixture, CommitId, Vec<CommitId>) {
    let fixture = Fixture::new();
    let base = fixture.tip("main");
    let base = fixture.build(&base, |at| write(&at.join("a.txt"), &lines(1..=30)));
    let edit = |edits: &[(&str, &str)]| {
        let start = lines(1..=30);
        let text = edits
            .iter()
            .fold(start, |text, (from, to)| text.replace(&format!("{from}\n"), &format!("{to}\n")));
        fixture.build(&base, |at| write(&at.join("a.txt"), &text))
    };
    let writers = edits.map(edit).to_vec();
    (fixture, base, writers)
}

#[test]
fn three_writers_in_different_places_of_a_file_are_all_in_the_result() {
    let (fixture, base, writers) =
        three_writers([&[("line 2", "one")], &[("line 15", "two")], &[("line 28", "three")]]);
    let expected = lines(1..=30).replace("line 2\n", "one\n").replace("line 15\n", "two\n");
    let expected = expected.replace("line 28\n", "three\n");
    for favour in [Prefer::Neither, Prefer::Ours, Prefer::Theirs] {
        let DetailedMerge::Clean(tree) = join_in_turn(&fixture, &base, &writers, favour) else {
            panic!("{favour:?}")
        };
        assert_eq!(listing(&fixture, tree.as_str())["a.txt"].text(), expected, "{favour:?}");
    }
}

#[test]
fn of_three_writers_in_one_place_the_first_or_the_last_stays_with_what_else_they_all_did() {
    let (fixture, base, writers) = three_writers([
        &[("line 15", "first"), ("line 2", "one")],
        &[("line 15", "second"), ("line 22", "two")],
        &[("line 15", "third"), ("line 28", "three")],
    ]);
    for (favour, stays) in [(Prefer::Ours, "first\n"), (Prefer::Theirs, "third\n")] {
        let DetailedMerge::Clean(tree) = join_in_turn(&fixture, &base, &writers, favour) else {
            panic!("{favour:?}")
        };
        let text = lines(1..=30).replace("line 2\n", "one\n").replace("line 22\n", "two\n");
        let text = text.replace("line 28\n", "three\n").replace("line 15\n", stays);
        assert_eq!(listing(&fixture, tree.as_str())["a.txt"].text(), text, "{favour:?}");
    }
    let DetailedMerge::Conflict { files, .. } = join_in_turn(&fixture, &base, &writers, Prefer::Neither)
    else {
        panic!("they overlap")
    };
    assert_eq!((files.len(), files[0].hunks.len()), (1, 1), "{files:?}");
    assert_eq!((files[0].hunks[0].ours.as_str(), files[0].hunks[0].theirs.as_str()), ("first\n", "second\n"));
}

#[test]
fn an_edit_and_a_rename_meet_under_the_new_name() {
    let joiner = Joiner::new(
        |at| write(&at.join("old.txt"), &lines(1..=30)),
        |at| {
            fs::remove_file(at.join("old.txt")).unwrap();
            let text = lines(1..=30).replace("line 5\n", "by ours\n").replace("line 2\n", "two\n");
            write(&at.join("dir/new.txt"), &text);
        },
        |at| {
            let text = lines(1..=30).replace("line 5\n", "by theirs\n").replace("line 28\n", "rest\n");
            write(&at.join("old.txt"), &text);
            executable(&at.join("old.txt"));
        },
    );
    for (favour, side) in SIDES {
        let listing = joiner.favour(favour);
        assert_eq!(names(&listing), ["dir/new.txt"], "{side}");
        let text = lines(1..=30).replace("line 5\n", &format!("by {side}\n")).replace("line 2\n", "two\n");
        assert_eq!(listing["dir/new.txt"].text(), text.replace("line 28\n", "rest\n"), "{side}");
        assert_eq!(listing["dir/new.txt"].mode, "100755", "{side}");
    }
}

#[test]
fn of_two_names_for_a_file_one_stays_with_the_lines_of_both() {
    let side = |name: &'static str, own: (&'static str, &'static str)| {
        move |at: &Path| {
            fs::remove_file(at.join("old.txt")).unwrap();
            let text = lines(1..=30).replace("line 15\n", &format!("by {name}\n")).replace(own.0, own.1);
            write(&at.join(format!("{name}.txt")), &text);
        }
    };
    let joiner = Joiner::new(
        |at| write(&at.join("old.txt"), &lines(1..=30)),
        side("ours", ("line 2\n", "two\n")),
        side("theirs", ("line 28\n", "rest\n")),
    );
    for (favour, side) in SIDES {
        let listing = joiner.favour(favour);
        assert_eq!(names(&listing), [format!("{side}.txt")]);
        let text = lines(1..=30).replace("line 15\n", &format!("by {side}\n")).replace("line 2\n", "two\n");
        assert_eq!(listing[&format!("{side}.txt")].text(), text.replace("line 28\n", "rest\n"));
    }
}

#[test]
fn a_deletion_and_an_edit_are_as_the_side_has_them() {
    let joiner = Joiner::new(
        |at| {
            for (name, from) in [("by ours", 1), ("by theirs", 100), ("moved", 200), ("kept", 300)] {
                write(&at.join(name), &lines(from..=from + 20));
            }
        },
        |at| {
            fs::remove_file(at.join("by ours")).unwrap();
            write(&at.join("by theirs"), "edited by ours\n");
            fs::rename(at.join("moved"), at.join("new name")).unwrap();
            write(&at.join("added by ours"), "x\n");
        },
        |at| {
            fs::remove_file(at.join("by theirs")).unwrap();
            write(&at.join("by ours"), "edited by theirs\n");
            fs::remove_file(at.join("moved")).unwrap();
            write(&at.join("added by theirs"), "x\n");
        },
    );
    let ours = joiner.favour(Prefer::Ours);
    assert_eq!(names(&ours), ["added by ours", "added by theirs", "by theirs", "kept", "new name"]);
    assert_eq!(ours["by theirs"].text(), "edited by ours\n");
    let theirs = joiner.favour(Prefer::Theirs);
    assert_eq!(names(&theirs), ["added by ours", "added by theirs", "by ours", "kept"]);
    assert_eq!(theirs["by ours"].text(), "edited by theirs\n");
}

#[test]
fn what_has_no_lines_is_as_the_side_has_it() {
    let side = |name: &'static str| {
        move |at: &Path| {
            fs::write(at.join("binary"), [b"\0by ", name.as_bytes()].concat()).unwrap();
            fs::write(at.join("moved binary"), [vec![0; 900], name.as_bytes().to_vec()].concat()).unwrap();
            fs::remove_file(at.join("link")).unwrap();
            symlink(name, at.join("link")).unwrap();
            write(&at.join("mode"), "the same\n");
            write(&at.join("added"), &format!("by {name}\n"));
            write(&at.join("emptied"), if name == "ours" { "" } else { "by theirs\n" });
            fs::remove_file(at.join("type")).unwrap();
            if name == "ours" {
                symlink("ours", at.join("type")).unwrap();
                executable(&at.join("mode"));
                fs::rename(at.join("moved binary"), at.join("moved by ours")).unwrap();
            } else {
                write(&at.join("type"), "by theirs\n");
                executable(&at.join("binary"));
            }
        }
    };
    let joiner = Joiner::new(
        |at| {
            fs::write(at.join("binary"), b"\0base").unwrap();
            fs::write(at.join("moved binary"), vec![0; 900]).unwrap();
            symlink("base", at.join("link")).unwrap();
            write(&at.join("type"), "base\n");
            write(&at.join("emptied"), "base\n");
        },
        side("ours"),
        side("theirs"),
    );
    for (favour, side) in SIDES {
        let listing = joiner.favour(favour);
        let expected = ["added", "binary", "emptied", "link", "mode", "moved by ours", "type"];
        assert_eq!(names(&listing), expected, "{side}");
        assert_eq!(listing["binary"].text(), format!("\0by {side}"));
        assert_eq!(listing["binary"].mode, "100755", "a mode that only one side changed: {side}");
        assert!(listing["moved by ours"].has(side), "{side}");
        assert_eq!((listing["link"].mode.as_str(), listing["link"].text()), ("120000", side.to_owned()));
        assert_eq!(listing["added"].text(), format!("by {side}\n"));
        let (mode, of_type) = if side == "ours" { ("100755", "120000") } else { ("100644", "100644") };
        assert_eq!((listing["mode"].mode.as_str(), listing["type"].mode.as_str()), (mode, of_type), "{side}");
        assert!(
            listing["type"].has(side) && (side == "ours") == listing["emptied"].bytes.is_empty(),
            "{side}"
        );
    }
}

#[test]
fn a_file_and_a_directory_of_one_name_are_as_the_side_has_them_and_moves_are_undone() {
    let joiner = Joiner::new(
        |at| {
            write(&at.join("moved in"), &lines(1..=20));
            write(&at.join("moved onto"), &lines(100..=120));
            write(&at.join("kept"), "kept\n");
        },
        |at| {
            write(&at.join("one"), "a file of ours\n");
            fs::create_dir(at.join("two")).unwrap();
            write(&at.join("two/x"), "x of ours\n");
        },
        |at| {
            write(&at.join("one/y"), "y of theirs\n");
            fs::rename(at.join("moved in"), at.join("one/moved")).unwrap();
            fs::rename(at.join("moved onto"), at.join("two")).unwrap();
        },
    );
    let ours = joiner.favour(Prefer::Ours);
    assert_eq!(names(&ours), ["kept", "moved in", "moved onto", "one", "two/x"]);
    assert_eq!((ours["moved in"].text(), ours["moved onto"].text()), (lines(1..=20), lines(100..=120)));
    let theirs = joiner.favour(Prefer::Theirs);
    assert_eq!(names(&theirs), ["kept", "one/moved", "one/y", "two"]);
    assert_eq!(theirs["two"].text(), lines(100..=120));
}

#[test]
fn a_moved_file_keeps_the_edits_of_both_where_something_of_the_other_side_has_to_go() {
    let joiner = Joiner::new(
        |at| {
            write(&at.join("apart"), &lines(1..=20));
            write(&at.join("together"), &lines(100..=120));
            symlink("base", at.join("link")).unwrap();
        },
        |at| {
            write(&at.join("apart"), &lines(1..=20).replace("line 3\n", "three of ours\n"));
            let text = lines(100..=120).replace("line 103\n", "by ours\n").replace("line 118\n", "rest\n");
            write(&at.join("together"), &text);
            write(&at.join("one/x"), "in the way\n");
            write(&at.join("two/x"), "in the way\n");
            fs::remove_file(at.join("link")).unwrap();
            symlink("ours", at.join("link")).unwrap();
            write(&at.join("three"), "in the way\n");
        },
        |at| {
            fs::remove_file(at.join("apart")).unwrap();
            write(&at.join("one"), &lines(1..=20).replace("line 18\n", "18 of theirs\n"));
            fs::remove_file(at.join("together")).unwrap();
            write(&at.join("two"), &lines(100..=120).replace("line 103\n", "by theirs\n"));
            fs::rename(at.join("link"), at.join("three")).unwrap();
        },
    );
    let theirs = joiner.favour(Prefer::Theirs);
    assert_eq!(names(&theirs), ["one", "three", "two"]);
    assert!(theirs["one"].has("three of ours\n") && theirs["one"].has("18 of theirs\n"));
    let text = lines(100..=120).replace("line 103\n", "by theirs\n").replace("line 118\n", "rest\n");
    assert_eq!(theirs["two"].text(), text);
    assert_eq!(theirs["three"].text(), "ours", "an edit of a link follows it");
    let ours = joiner.favour(Prefer::Ours);
    assert_eq!(names(&ours), ["apart", "link", "one/x", "three", "together", "two/x"]);
    assert!(ours["apart"].has("three of ours\n") && ours["together"].has("by ours\n"));
}

#[test]
fn what_comes_back_makes_room_for_itself_and_nothing_that_was_moved_there_is_lost() {
    let joiner = Joiner::new(
        |at| {
            write(&at.join("d/e"), &lines(1..=20));
            write(&at.join("d/f"), &lines(100..=120));
            write(&at.join("b"), &lines(200..=220));
        },
        |at| {
            write(&at.join("c"), "a file of ours\n");
            write(&at.join("b"), &lines(200..=220).replace("line 210\n", "b of ours\n"));
        },
        |at| {
            fs::rename(at.join("d/f"), at.join("f")).unwrap();
            fs::rename(at.join("d/e"), at.join("e")).unwrap();
            fs::remove_dir(at.join("d")).unwrap();
            fs::rename(at.join("e"), at.join("d")).unwrap();
            fs::create_dir(at.join("c")).unwrap();
            fs::rename(at.join("f"), at.join("c/f")).unwrap();
            fs::remove_file(at.join("b")).unwrap();
            write(&at.join("c/b"), &lines(200..=220).replace("line 210\n", "b of theirs\n"));
        },
    );
    let ours = joiner.favour(Prefer::Ours);
    assert_eq!(names(&ours), ["b", "c", "d/e", "d/f"]);
    assert!(ours["b"].has("b of ours\n") && ours["c"].has("a file of ours\n"));
    assert_eq!((ours["d/e"].text(), ours["d/f"].text()), (lines(1..=20), lines(100..=120)));
    let theirs = joiner.favour(Prefer::Theirs);
    assert_eq!(names(&theirs), ["c/b", "c/f", "d"]);
    assert!(theirs["c/b"].has("b of theirs\n"));
}

#[test]
fn two_files_moved_to_one_name_leave_the_loser_where_it_was() {
    for overlap in [false, true] {
        let joiner = Joiner::new(
            |at| {
                write(&at.join("a"), &lines(1..=30));
                write(&at.join("b"), &lines(100..=130));
            },
            |at| {
                fs::remove_file(at.join("a")).unwrap();
                write(&at.join("c"), &lines(1..=30).replace("line 5\n", "by ours\n"));
                write(&at.join("b"), &lines(100..=130).replace("line 120\n", "b of ours\n"));
            },
            |at| {
                fs::remove_file(at.join("b")).unwrap();
                write(&at.join("c"), &lines(100..=130).replace("line 105\n", "by theirs\n"));
                let place = if overlap { "line 5\n" } else { "line 20\n" };
                write(&at.join("a"), &lines(1..=30).replace(place, "a of theirs\n"));
            },
        );
        let ours = joiner.favour(Prefer::Ours);
        assert_eq!(names(&ours), ["b", "c"], "{overlap}");
        assert!(ours["c"].has("line 1\n") && ours["c"].has("by ours\n") && ours["b"].has("b of ours\n"));
        let theirs = joiner.favour(Prefer::Theirs);
        assert_eq!(names(&theirs), ["a", "c"], "{overlap}");
        assert!(theirs["c"].has("line 130\n") && theirs["c"].has("by theirs\n"));
        assert!(theirs["a"].has("a of theirs\n"), "{overlap}");
        for listing in [ours, theirs] {
            assert!(!listing.values().any(|file| file.has("<<<<<<<")), "{overlap}: {listing:?}");
        }
    }
}

#[test]
fn a_file_added_to_a_directory_that_moved_is_never_lost() {
    let base = |at: &Path| {
        for n in 0..3 {
            write(&at.join(format!("old/{n}")), &lines(n * 100..=n * 100 + 20));
        }
        write(&at.join("a.txt"), "base\n");
    };
    let ours = |at: &Path| fs::rename(at.join("old"), at.join("new")).unwrap();
    let theirs = |at: &Path| write(&at.join("old/added"), "added\n");
    let joiner = Joiner::new(base, ours, theirs);
    let DetailedMerge::Conflict { files, .. } = joiner.join(Prefer::Neither) else {
        panic!("git asks where it belongs")
    };
    assert_eq!((files[0].path.as_str(), &files[0].others), ("new/added", &vec!["old/added".to_owned()]));
    for (favour, side) in SIDES {
        assert_eq!(
            names(&joiner.favour(favour)),
            ["a.txt", "new/0", "new/1", "new/2", "new/added"],
            "{side}"
        );
    }
    // With another conflict, the file stays where its writer put it.
    let more = |name: &'static str| move |at: &Path| write(&at.join("a.txt"), &format!("{name}\n"));
    let joiner = Joiner::new(
        base,
        |at| {
            ours(at);
            more("ours")(at)
        },
        |at| {
            theirs(at);
            more("theirs")(at)
        },
    );
    for (favour, side) in SIDES {
        let listing = joiner.favour(favour);
        assert_eq!(names(&listing), ["a.txt", "new/0", "new/1", "new/2", "old/added"], "{side}");
        assert_eq!(listing["a.txt"].text(), format!("{side}\n"));
    }
}

#[test]
fn lines_that_look_like_markers_survive_a_favoured_join() {
    let text = |heading: &str, end: &str| {
        format!("{heading}\n=======\n<<<<<<< HEAD\nx\n=======\ny\n>>>>>>> z\nmiddle\nmore\n{end}\r\nlast")
    };
    let joiner = Joiner::new(
        |at| write(&at.join("doc.rst"), &text("Base", "end")),
        |at| write(&at.join("doc.rst"), &text("Ours", "end of ours")),
        |at| write(&at.join("doc.rst"), &text("Theirs", "end")),
    );
    assert_eq!(joiner.favour(Prefer::Ours)["doc.rst"].text(), text("Ours", "end of ours"));
    assert_eq!(joiner.favour(Prefer::Theirs)["doc.rst"].text(), text("Theirs", "end of ours"));
}

#[test]
fn links_to_other_repositories_stay_and_a_conflict_of_them_is_as_the_side_has_it() {
    let fixture = Fixture::new();
    let link = |name: &str, digit: &str| {
        let entry = format!("160000,{},{name}", digit.repeat(40));
        fixture.user(&["update-index", "--add", "--cacheinfo", &entry], &fixture.repo());
    };
    let commit = |text: &str| {
        fixture.write("a.txt", text);
        fixture.user(&["add", "a.txt"], &fixture.repo());
        fixture.user(&["commit", "-q", "-m", "x"], &fixture.repo());
        fixture.head(&fixture.repo())
    };
    link("same", "1");
    link("both", "1");
    let base = commit("base\n");
    link("both", "2");
    let ours = commit("ours\n");
    fixture.user(&["reset", "-q", "--hard", base.as_str()], &fixture.repo());
    link("both", "3");
    let theirs = commit("theirs\n");
    for (favour, digit, text) in [(Prefer::Ours, "2", "ours\n"), (Prefer::Theirs, "3", "theirs\n")] {
        let order = MergeRequest { base: &base, ours: &ours, theirs: &theirs, favour };
        let DetailedMerge::Clean(tree) = fixture.open().merge_detailed(&order).unwrap() else {
            panic!("{favour:?}")
        };
        let listing = listing(&fixture, tree.as_str());
        assert_eq!((listing["same"].id.clone(), listing["same"].mode.as_str()), ("1".repeat(40), "160000"));
        assert_eq!(
            (listing["both"].id.clone(), listing["a.txt"].text()),
            (digit.repeat(40), text.to_owned())
        );
    }
}

#[test]
fn a_thousand_files_are_joined_with_all_that_both_sides_did() {
    let name = |n: usize| format!("dir {}/file-{n}.txt", n % 10);
    let side = |word: &'static str, own: usize| {
        move |at: &Path| {
            for n in (own..1000).step_by(2) {
                write(&at.join(name(n)), &format!("{n}\n{word}\n"));
            }
            for n in 0..40 {
                write(&at.join(name(n)), &format!("{n}\nboth: {word}\n"));
            }
        }
    };
    let base = |at: &Path| (0..1000).for_each(|n| write(&at.join(name(n)), &format!("{n}\nbase\n")));
    let joiner = Joiner::new(base, side("ours", 0), side("theirs", 1));
    for (favour, word) in SIDES {
        let listing = joiner.favour(favour);
        assert_eq!(listing.len(), 1000);
        for n in 0..1000 {
            let by = if n % 2 == 0 { "ours" } else { "theirs" };
            let expected = if n < 40 { format!("{n}\nboth: {word}\n") } else { format!("{n}\n{by}\n") };
            assert_eq!(listing[&name(n)].text(), expected);
        }
    }
    let DetailedMerge::Conflict { files, .. } = joiner.join(Prefer::Neither) else {
        panic!("forty files conflict")
    };
    assert_eq!(files.len(), 40);
    let merge = joiner.fixture.open().merge(&joiner.base, &joiner.ours, &joiner.theirs).unwrap();
    let MergeOutcome::Conflict { paths, .. } = merge else { panic!("the merge conflicts as well") };
    assert!(files.iter().map(|file| &file.path).eq(&paths), "the same, in the same order");
}
