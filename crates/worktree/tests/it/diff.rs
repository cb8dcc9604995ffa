//! Lists, patches and statistics of changes.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use drydock_domain::ChangeOp;
use drydock_worktree::{DiffStat, GitError};

use crate::fixture::{Fixture, write};

#[test]
fn every_kind_of_change_is_listed() {
    let fixture = Fixture::new();
    fixture.write("long.txt", &"one line of many\n".repeat(20));
    fixture.write("run.sh", "#!/bin/sh\n");
    let base = fixture.commit_all("more");
    let next = fixture.build(&base, |folder| {
        write(&folder.join("a.txt"), "a\nmore\n");
        fs::remove_file(folder.join("b.txt")).unwrap();
        write(&folder.join("new name\n.txt"), "new\n");
        fs::rename(folder.join("long.txt"), folder.join("dir/moved.txt")).unwrap();
        fs::set_permissions(folder.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::remove_file(folder.join("dir/c.txt")).unwrap();
        symlink("../a.txt", folder.join("dir/c.txt")).unwrap();
        fs::write(folder.join("image"), [0, 1, 2]).unwrap();
    });
    let repository = fixture.open();
    let changes = repository.changes(&base, &next).unwrap();
    let seen: Vec<_> =
        changes.iter().map(|c| (c.path.as_str(), c.op, c.from.as_deref(), c.mode_after)).collect();
    let expected = [
        ("a.txt", ChangeOp::Modify, None, Some(0o100_644)),
        ("b.txt", ChangeOp::Delete, None, None),
        ("dir/c.txt", ChangeOp::Modify, None, Some(0o120_000)),
        ("dir/moved.txt", ChangeOp::Rename, Some("long.txt"), Some(0o100_644)),
        ("image", ChangeOp::Create, None, Some(0o100_644)),
        ("new name\n.txt", ChangeOp::Create, None, Some(0o100_644)),
        ("run.sh", ChangeOp::Modify, None, Some(0o100_755)),
    ];
    assert_eq!(seen, expected);
    assert_eq!(changes[1].after, None);
    assert_eq!(changes[4].before, None);
    assert_eq!(repository.blob(changes[0].after.as_ref().unwrap()).unwrap(), b"a\nmore\n");
    assert_eq!(repository.blob(changes[0].before.as_ref().unwrap()).unwrap(), b"a\n");
    assert!(repository.blob(&"1".repeat(40)).is_err());
    let stat = repository.stat(&repository.tree_of(&base).unwrap(), &next).unwrap();
    let expected = DiffStat { files: 7, lines_added: 3, lines_deleted: 2, binary_files: 1 };
    assert_eq!(stat, expected);
    let patch = String::from_utf8(repository.patch(&base, &next).unwrap()).unwrap();
    for part in ["+more\n", "rename from long.txt\n", "new mode 100755\n", "--- a/b.txt\n"] {
        assert!(patch.contains(part), "{part} in {patch}");
    }
    assert_eq!(repository.changes(&base, &base).unwrap(), []);
    assert_eq!(repository.stat(&base, &base).unwrap(), DiffStat::default());
    assert_eq!(repository.patch(&base, &base).unwrap(), b"");
}

#[test]
fn a_name_that_is_not_utf_8_is_refused_by_name() {
    let fixture = Fixture::new();
    let base = fixture.tip("main");
    let next = fixture.build(&base, |folder| {
        fs::write(folder.join(std::ffi::OsStr::from_bytes(b"caf\xe9.txt")), "x").unwrap();
    });
    let error = fixture.open().changes(&base, &next).unwrap_err();
    assert!(matches!(&error, GitError::PathNotUtf8 { path } if path.starts_with("caf")), "{error:?}");
}
