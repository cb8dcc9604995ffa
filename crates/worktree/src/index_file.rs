//! Parses an index file just far enough to rule out special entries. An index with anything unknown counts as
//! special, and callers then use git to read it.

/// Number of hex digits of object ids in the supported index format.
pub(crate) const OBJECT_NAME: usize = 40;
/// File header: `DIRC`, the version and the number of entries.
const HEAD: usize = 12;
/// Length of an entry before its path, with an object id of 20 bytes.
const ENTRY: usize = 62;
const MODE_AT: usize = 24;
const FLAGS_AT: usize = 60;
/// Length of the checksum at the end of the file.
const CHECKSUM: usize = 20;
/// Flags of an entry: changes are ignored; more flags follow; length of the path.
const ASSUME_VALID: u16 = 0x8000;
const EXTENDED: u16 = 0x4000;
const PATH_LENGTH: u16 = 0x0fff;

/// Returns true if every entry is a file or a symbolic link without a flag that hides changes. Supports only
/// version 2 with object ids of 20 bytes; later versions have more flags that hide changes.
pub(crate) fn is_plain(index: &[u8]) -> bool {
    entries_plain(index).is_some()
}

fn entries_plain(index: &[u8]) -> Option<()> {
    let body = index.get(..index.len().checked_sub(CHECKSUM)?)?;
    if body.get(..4)? != b"DIRC" || number(body, 4)? != 2 {
        return None;
    }
    let mut at = HEAD;
    for _ in 0..number(body, 8)? {
        let flags = u16::from_be_bytes(body.get(at + FLAGS_AT..at + ENTRY)?.try_into().ok()?);
        let (file, link) = (0o100_000, 0o120_000);
        let kind = number(body, at + MODE_AT)? & 0o170_000;
        let length = usize::from(flags & PATH_LENGTH);
        let path = body.get(at + ENTRY..at + ENTRY + length)?;
        let ends = length > 0 && !path.contains(&0) && *body.get(at + ENTRY + length)? == 0;
        let long = flags & PATH_LENGTH == PATH_LENGTH;
        if flags & (ASSUME_VALID | EXTENDED) != 0 || (kind != file && kind != link) || long || !ends {
            return None;
        }
        // Entries are padded with zeros to a multiple of eight bytes.
        at += (ENTRY + length + 8) & !7;
    }
    // Extensions follow. Those whose name begins with a capital letter are optional and do not change the
    // meaning of entries.
    while at < body.len() {
        if !body.get(at)?.is_ascii_uppercase() {
            return None;
        }
        at = at.checked_add(8)?.checked_add(usize::try_from(number(body, at + 4)?).ok()?)?;
    }
    (at == body.len()).then_some(())
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use super::is_plain;

    fn git(folder: &Path, args: &[&str]) {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgSign=false"]);
        assert!(command.args(args).current_dir(folder).status().unwrap().success(), "git {args:?}");
    }

    fn plain(folder: &Path) -> bool {
        is_plain(&fs::read(folder.join(".git/index")).unwrap())
    }

    /// Breaks when an index with hidden changes or a gitlink is classified as plain.
    #[test]
    fn an_index_with_anything_special_in_it_is_not_plain() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        git(folder, &["init", "-q", "--object-format=sha1"]);
        for name in ["a", "bb", "ccc", "dddddddddd"] {
            fs::write(folder.join(name), name).unwrap();
        }
        std::os::unix::fs::symlink("a", folder.join("link")).unwrap();
        git(folder, &["add", "-A"]);
        git(folder, &["commit", "-q", "-m", "first"]);
        assert!(plain(folder));
        let special: [(&[&str], &[&str]); 5] = [
            (&["update-index", "--assume-unchanged", "bb"], &["update-index", "--no-assume-unchanged", "bb"]),
            (&["update-index", "--skip-worktree", "bb"], &["update-index", "--no-skip-worktree", "bb"]),
            (&["update-index", "--index-version", "4"], &["update-index", "--index-version", "2"]),
            (&["update-index", "--split-index"], &["update-index", "--no-split-index"]),
            (
                &[
                    "update-index",
                    "--add",
                    "--cacheinfo",
                    "160000,0123456789012345678901234567890123456789,sub",
                ],
                &["update-index", "--force-remove", "sub"],
            ),
        ];
        for (make, undo) in special {
            git(folder, make);
            assert!(!plain(folder), "{make:?}");
            git(folder, undo);
            assert!(plain(folder), "{undo:?}");
        }
    }

    /// Breaks when an index with another object format, or a truncated one, is classified as plain.
    #[test]
    fn an_index_that_is_not_understood_is_not_plain() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        git(folder, &["init", "-q", "--object-format=sha256"]);
        fs::write(folder.join("a"), "a").unwrap();
        git(folder, &["add", "-A"]);
        assert!(!plain(folder));
        assert!(!is_plain(b""));
        let plainest = [b"DIRC".as_slice(), &[0, 0, 0, 2, 0, 0, 0, 0], &[0; 20]].concat();
        assert!(is_plain(&plainest));
        assert!(!is_plain(&plainest[..plainest.len() - 1]));
    }
}
