//! Parses a unified diff as git writes it: files, hunks and lines, each line with its numbers. The text may come from
//! any repository, so parsing never panics; input that is not a diff is left out.

/// How a file changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileChange {
    Changed,
    Added,
    Deleted,
    Renamed,
}

/// The part of a diff that concerns one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileDiff<'t> {
    pub(super) path: String,
    /// The old path of a renamed file.
    pub(super) from: Option<String>,
    pub(super) fate: FileChange,
    pub(super) is_binary: bool,
    /// The old and the new mode, if it changed, as `chmod` takes them.
    pub(super) mode: Option<(String, String)>,
    pub(super) added: usize,
    pub(super) deleted: usize,
    pub(super) lines: Vec<DiffLine<'t>>,
}

/// One line of a file's diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiffLine<'t> {
    /// The head of a hunk.
    Hunk(&'t str),
    /// A line on both sides, with its numbers.
    Same(usize, usize, &'t str),
    /// A removed line.
    Old(usize, &'t str),
    /// An added line.
    New(usize, &'t str),
    /// A remark by git, such as a missing line end.
    Note(&'t str),
}

/// Parses a diff.
pub(super) fn files(text: &str) -> Vec<FileDiff<'_>> {
    let mut all: Vec<FileDiff<'_>> = Vec::new();
    // The numbers of the next lines, and how many lines the hunk still has on each side.
    let (mut old, mut new, mut old_left, mut new_left) = (0, 0, 0, 0);
    for line in text.split('\n') {
        if old_left == 0 && new_left == 0 {
            if let Some(paths) = line.strip_prefix("diff --git ") {
                all.push(FileDiff::named(paths));
                continue;
            }
            let Some(file) = all.last_mut() else { continue };
            if let Some(head) = line.strip_prefix("@@ ").and_then(hunk) {
                (old, old_left, new, new_left) = head;
                file.lines.push(DiffLine::Hunk(line));
            } else if line.starts_with('\\') {
                file.lines.push(DiffLine::Note(line));
            } else {
                file.header(line);
            }
            continue;
        }
        let Some(file) = all.last_mut() else { continue };
        match line.as_bytes().first() {
            Some(b'+') if new_left > 0 => {
                file.lines.push(DiffLine::New(new, &line[1..]));
                file.added += 1;
                (new, new_left) = (new + 1, new_left - 1);
            }
            Some(b'-') if old_left > 0 => {
                file.lines.push(DiffLine::Old(old, &line[1..]));
                file.deleted += 1;
                (old, old_left) = (old + 1, old_left - 1);
            }
            Some(b'\\') => file.lines.push(DiffLine::Note(line)),
            Some(b' ') | None if old_left > 0 && new_left > 0 => {
                file.lines.push(DiffLine::Same(old, new, line.get(1..).unwrap_or_default()));
                (old, old_left, new, new_left) = (old + 1, old_left - 1, new + 1, new_left - 1);
            }
            Some(_) | None => (old_left, new_left) = (0, 0),
        }
    }
    all
}

impl FileDiff<'_> {
    fn named(paths: &str) -> Self {
        FileDiff {
            path: second_path(paths),
            from: None,
            fate: FileChange::Changed,
            is_binary: false,
            mode: None,
            added: 0,
            deleted: 0,
            lines: Vec::new(),
        }
    }

    fn header(&mut self, line: &str) {
        if let Some(old) = line.strip_prefix("old mode ") {
            self.mode = Some((permissions(old), String::new()));
        } else if let (Some(new), Some((_, mode))) = (line.strip_prefix("new mode "), &mut self.mode) {
            *mode = permissions(new);
        } else if line.starts_with("new file mode ") {
            self.fate = FileChange::Added;
        } else if line.starts_with("deleted file mode ") {
            self.fate = FileChange::Deleted;
        } else if let Some(path) = line.strip_prefix("rename from ") {
            (self.fate, self.from) = (FileChange::Renamed, Some(unquoted(path)));
        } else if let Some(path) = line.strip_prefix("rename to ") {
            self.path = unquoted(path);
        } else if let Some(path) = line.strip_prefix("+++ ").filter(|path| *path != "/dev/null") {
            self.path = side(path);
        } else if let Some(path) = line.strip_prefix("--- ").filter(|path| *path != "/dev/null") {
            self.path = side(path);
        } else if line.starts_with("Binary files ") || line == "GIT binary patch" {
            self.is_binary = true;
        }
    }
}

/// Returns the part of git's mode that `chmod` takes: 755 of 100755.
fn permissions(mode: &str) -> String {
    mode.trim().strip_prefix("100").unwrap_or(mode).to_owned()
}

/// Returns the numbers of a hunk: first line and count of the old side, then of the new.
fn hunk(head: &str) -> Option<(usize, usize, usize, usize)> {
    let mut parts = head.split(' ');
    let (old, new) = (parts.next()?.strip_prefix('-')?, parts.next()?.strip_prefix('+')?);
    let range = |text: &str| -> Option<(usize, usize)> {
        let (first, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((first.parse().ok()?, count.parse().ok()?))
    };
    let ((old, old_left), (new, new_left)) = (range(old)?, range(new)?);
    Some((old, old_left, new, new_left))
}

/// Returns the second of the two paths in the first line. Later lines are more precise if a name contains spaces.
fn second_path(paths: &str) -> String {
    let at = if paths.ends_with('"') { paths.rfind(" \"b/") } else { paths.rfind(" b/") };
    at.map_or_else(|| paths.to_owned(), |at| side(&paths[at + 1..]))
}

/// Returns a path without its `a/` or `b/` prefix. Git puts a tab behind a name with spaces.
fn side(path: &str) -> String {
    let path = unquoted(path.trim_end_matches('\t'));
    path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).map(str::to_owned).unwrap_or(path)
}

/// Returns a path that git may have quoted, with its bytes in octal.
fn unquoted(text: &str) -> String {
    let Some(inner) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
        return text.to_owned();
    };
    let (mut bytes, mut rest) = (Vec::new(), inner.as_bytes());
    while let [first, more @ ..] = rest {
        rest = more;
        match (first, more) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', left @ ..]) => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = left;
            }
            (b'\\', [escaped, left @ ..]) => {
                bytes.push(match escaped {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    other => *other,
                });
                rest = left;
            }
            (byte, _) => bytes.push(*byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks if a line gets a wrong number, or a line of a file is taken for a line of the patch syntax.
    #[test]
    fn each_line_has_its_numbers_and_signs_inside_a_hunk_mean_nothing() {
        let text = "diff --git a/x.sql b/x.sql\nindex 1..2 100644\n--- a/x.sql\n+++ b/x.sql\n@@ -3,3 +3,3 @@ head\n \
                    same\n--- a comment\n+++ another\n last\n\\ No newline at end of file\n";
        let files = files(text);
        assert_eq!(files.len(), 1);
        assert_eq!(
            files[0].lines,
            [
                DiffLine::Hunk("@@ -3,3 +3,3 @@ head"),
                DiffLine::Same(3, 3, "same"),
                DiffLine::Old(4, "-- a comment"),
                DiffLine::New(4, "++ another"),
                DiffLine::Same(5, 5, "last"),
                DiffLine::Note("\\ No newline at end of file"),
            ]
        );
        assert_eq!((files[0].path.as_str(), files[0].added, files[0].deleted), ("x.sql", 1, 1));
    }

    #[test]
    fn what_happened_to_a_file_is_read_whatever_its_name() {
        let text = "diff --git a/old name b/new name\nsimilarity index 90%\nrename from old name\nrename to new name\n\
                    diff --git \"a/\\303\\244.txt\" \"b/\\303\\244.txt\"\nnew file mode 100644\n--- /dev/null\n+++ \"b/\\303\\244.txt\"\n\
                    @@ -0,0 +1 @@\n+hi\ndiff --git a/p.png b/p.png\ndeleted file mode 100644\nBinary files a/p.png and /dev/null differ\n";
        let files = files(text);
        let seen: Vec<_> = files
            .iter()
            .map(|file| (file.path.as_str(), file.from.as_deref(), file.fate, file.is_binary))
            .collect();
        assert_eq!(
            seen,
            [
                ("new name", Some("old name"), FileChange::Renamed, false),
                ("ä.txt", None, FileChange::Added, false),
                ("p.png", None, FileChange::Deleted, true),
            ]
        );
    }

    /// Page B18: breaks if a change of mode is not shown.
    #[test]
    fn a_change_of_mode_is_told() {
        let text = "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n";
        assert_eq!(files(text)[0].mode, Some(("644".to_owned(), "755".to_owned())));
        assert_eq!(files("diff --git a/x b/x\nnew mode 100755\n")[0].mode, None);
    }

    #[test]
    fn what_is_no_diff_has_no_files_and_a_torn_one_no_panic() {
        assert_eq!(files("hello\n@@ -1 +1 @@\n"), []);
        let torn = files("diff --git a/x b/x\n@@ -1,9 +1,9 @@\n a\nwhat\n+b\n");
        assert_eq!(torn[0].lines.len(), 2);
        assert_eq!(files("diff --git \"a/\\ \"b/\\\"\n@@ -x +y @@")[0].lines, []);
    }
}
