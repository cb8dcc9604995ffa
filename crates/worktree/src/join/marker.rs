//! Parses conflict markers: the regions they enclose, and whether any remain.
//!
//! The merge writes markers with full commit ids, so that a line which only looks like a marker is not
//! mistaken for one. Only the line between base and theirs has no id; if several lines could be it, the text
//! of the base decides.

use crate::id::is_object_name;
use crate::join::order::Hunk;
use drydock_domain::counted;

/// Maximum number of regions reported per file.
const HUNKS_MAX: usize = 20;
/// Maximum size of the text of the regions of one file.
const TEXT_MAX: usize = 4096;

/// The commit ids in the markers.
#[derive(Clone, Copy)]
pub(super) struct Labels<'a> {
    pub(super) ours: &'a str,
    pub(super) theirs: &'a str,
}

/// Returns true if a text contains a marker written by a merge.
pub(super) fn is_marked(text: &[u8]) -> bool {
    let names_a_commit = |label: &[u8]| {
        let end = label.iter().position(|b| *b == b':').unwrap_or(label.len());
        std::str::from_utf8(&label[..end]).is_ok_and(is_object_name)
    };
    text.split(|b| *b == b'\n').any(|line| {
        b"<|>".iter().filter_map(|sign| marker(line, *sign)).any(|(_, label)| names_a_commit(label))
    })
}

/// Returns the conflict regions up to the limits, and the number of regions left out.
pub(super) fn hunks(text: &[u8], labels: Labels<'_>, base: Option<&[u8]>) -> (Vec<Hunk>, usize) {
    let lines: Vec<&[u8]> = text.split_inclusive(|b| *b == b'\n').collect();
    let (mut hunks, mut left_out, mut room, mut at) = (Vec::new(), 0, TEXT_MAX, 0);
    while at < lines.len() {
        let Some(place) = place_at(&lines, at, labels, base) else {
            at += 1;
            continue;
        };
        let parts = [place.ours, place.base, place.theirs];
        let size: usize = parts.iter().flat_map(|part| part.iter()).map(|line| line.len()).sum();
        // The first region is always reported. If it is too large, its parts share the space, so that a long
        // part does not hide the others.
        if hunks.is_empty() || hunks.len() < HUNKS_MAX && size <= room && left_out == 0 {
            let share = if size <= room { room } else { room / 3 };
            let [ours, was, theirs] = parts.map(|part| cut(part, share));
            room = room.saturating_sub(size);
            hunks.push(Hunk { line: at + 1, ours, base: base.map(|_| was), theirs });
        } else {
            left_out += 1;
        }
        at = place.end + 1;
    }
    (hunks, left_out)
}

struct ConflictRegion<'a> {
    ours: &'a [&'a [u8]],
    base: &'a [&'a [u8]],
    theirs: &'a [&'a [u8]],
    /// The line of its last marker.
    end: usize,
}

fn place_at<'a>(
    lines: &'a [&'a [u8]],
    start: usize,
    labels: Labels<'_>,
    base: Option<&[u8]>,
) -> Option<ConflictRegion<'a>> {
    let (size, label) = marker(lines[start], b'<')?;
    if !names(label, labels.ours) {
        return None;
    }
    let find = |from: usize, sign: u8, fits: &dyn Fn(&[u8]) -> bool| {
        let is = |line: &[u8]| marker(line, sign).is_some_and(|(long, label)| long == size && fits(label));
        (from..lines.len()).find(|at| is(lines[*at]))
    };
    let end = find(start + 1, b'>', &|label| names(label, labels.theirs))?;
    let old = find(start + 1, b'|', &|label| !label.is_empty()).filter(|old| *old < end)?;
    let mut splits = Vec::new();
    let mut next = old + 1;
    while let Some(at) = find(next, b'=', &<[u8]>::is_empty).filter(|at| *at < end) {
        splits.push(at);
        next = at + 1;
    }
    let held = |at: &&usize| {
        let part = lines[old + 1..**at].concat();
        base.is_some_and(|base| part.is_empty() || base.windows(part.len()).any(|there| there == part))
    };
    let split = match splits.as_slice() {
        [only] => only,
        // The base may itself contain such a line. Its part then extends as far as the text of the base
        // matches.
        several => several.iter().rev().find(held).or(several.first())?,
    };
    let (ours, base) = (&lines[start + 1..old], &lines[old + 1..*split]);
    Some(ConflictRegion { ours, base, theirs: &lines[split + 1..end], end })
}

/// Returns the length of a marker's sign, and the label after it.
fn marker(line: &[u8], sign: u8) -> Option<(usize, &[u8])> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let size = line.iter().take_while(|b| **b == sign).count();
    match &line[size..] {
        _ if size == 0 => None,
        [] => Some((size, &[])),
        [b' ', label @ ..] => Some((size, label)),
        _ => None,
    }
}

/// Returns true if a label names the commit. A label is the commit id, followed by the path if it differs
/// between the sides.
fn names(label: &[u8], commit: &str) -> bool {
    label.strip_prefix(commit.as_bytes()).is_some_and(|rest| rest.is_empty() || rest.starts_with(b":"))
}

/// Returns the whole lines that fit, and a line with the number of missing ones.
fn cut(lines: &[&[u8]], room: usize) -> String {
    let mut length = 0;
    let fitting = lines.iter().take_while(|line| {
        length += line.len();
        length <= room
    });
    let fitting = fitting.count();
    let mut text = String::from_utf8_lossy(&lines[..fitting].concat()).into_owned();
    match lines.len() - fitting {
        0 => {}
        more => text.push_str(&format!("… {}\n", counted(more, "more line"))),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Labels, hunks, is_marked};

    const OURS: &str = "1111111111111111111111111111111111111111";
    const THEIRS: &str = "2222222222222222222222222222222222222222";
    const LABELS: Labels<'_> = Labels { ours: OURS, theirs: THEIRS };

    fn place(ours: &str, base: &str, theirs: &str) -> String {
        format!("<<<<<<< {OURS}\n{ours}||||||| base\n{base}=======\n{theirs}>>>>>>> {THEIRS}\n")
    }

    #[test]
    fn lines_that_look_like_markers_are_text() {
        let base = "Title\n=======\n<<<<<<< HEAD\n=======\n>>>>>>> x\n";
        let text = format!("<<<<<<< HEAD\n{}", place("a\n=======\n", base, "b\n=======\nc\n"));
        let (found, left_out) = hunks(text.as_bytes(), LABELS, Some(base.as_bytes()));
        assert_eq!((found.len(), left_out, found[0].line), (1, 0, 2));
        assert_eq!(found[0].base.as_deref(), Some(base));
        assert_eq!((found[0].ours.as_str(), found[0].theirs.as_str()), ("a\n=======\n", "b\n=======\nc\n"));
    }

    #[test]
    fn only_markers_that_name_a_commit_are_left_over() {
        for text in ["<<<<<<< HEAD\n", "=======\n", "||||||| base\n", ">>>>>>>\n", OURS] {
            assert!(!is_marked(text.as_bytes()), "{text}");
        }
        for sign in ["<<<<<<<", "|||||||", ">>>>>>>>>"] {
            for end in ["", "\n", "\r\n", ":a b.txt\n"] {
                assert!(is_marked(format!("x\n{sign} {OURS}{end}").as_bytes()), "{sign} {end:?}");
            }
        }
    }

    #[test]
    fn what_is_told_of_a_file_is_bounded_and_the_rest_is_counted() {
        let many = place("a\n", "b\n", "c\n").repeat(23);
        let (found, left_out) = hunks(many.as_bytes(), LABELS, Some(b"b\n"));
        assert_eq!((found.len(), left_out), (20, 3));
        let long = "long line of a hunk\n".repeat(1000);
        let text = place(&long, "b\n", "c\n").repeat(9);
        let (found, left_out) = hunks(text.as_bytes(), LABELS, Some(b"b\n"));
        assert_eq!((found.len(), left_out), (1, 8));
        assert!(found[0].ours.len() < 2000, "{}", found[0].ours.len());
        assert!(found[0].ours.ends_with("more lines\n") && found[0].theirs == "c\n", "{:?}", found[0]);
        let one = format!("{}\n", "x".repeat(100_000));
        let (found, _) = hunks(place(&one, "", "ü\n").as_bytes(), LABELS, None);
        assert_eq!((found[0].ours.as_str(), found[0].theirs.as_str()), ("… 1 more line\n", "ü\n"));
        assert_eq!(found[0].base, None);
    }
}
