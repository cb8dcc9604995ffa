//! Diffs with coloured lines. The sign at the start of a line has the same meaning without colour.

use anstyle::Style;
use drydock_api::{Diff, DiffKind};
use drydock_domain::counted;

use super::style::{BAD, BUSY, GOOD, STRONG, paint};

/// Returns the diff as git writes it, so that it can be applied. Control characters stay because changing a byte
/// would change the patch; see [`shown`] for the terminal. Text that is not UTF-8 was already replaced in JSON.
pub(crate) fn raw(diff: &Diff) -> &str {
    &diff.text
}

/// Returns the diff for a terminal.
pub(crate) fn shown(diff: &Diff) -> String {
    let mut in_hunk = false;
    let mut text = String::with_capacity(diff.text.len() * 2);
    for line in diff.text.lines() {
        in_hunk = line.starts_with("@@") || (in_hunk && !line.starts_with("diff "));
        text.push_str(&paint(style(line, in_hunk), line));
        text.push('\n');
    }
    text
}

/// Returns a note if the changes are not a result yet, or where to look if there are none.
pub(crate) fn unfinished(diff: &Diff, plan: &str) -> Option<String> {
    let Some(of) = &diff.of else {
        let nothing = format!("Execute is not complete; see `drydock checkpoint list {plan}`");
        return diff.text.is_empty().then_some(nothing);
    };
    let whose = match of.kind {
        DiffKind::Result => return None,
        DiffKind::GoesOn => "the work its run continues from",
        DiffKind::Snapshot => "the latest checkpoint",
    };
    let named = of.reference.as_deref().unwrap_or(&of.commit);
    let earlier = if of.earlier_run { " of an earlier run" } else { "" };
    let empty = if diff.text.is_empty() { ", which has no changes" } else { "" };
    Some(format!("Execute is not complete; this is {whose}, {named}{earlier} ({}){empty}", of.label))
}

fn style(line: &str, in_hunk: bool) -> Style {
    match line.as_bytes().first() {
        Some(b'@') => BUSY,
        Some(b'+') if in_hunk => GOOD,
        Some(b'-') if in_hunk => BAD,
        Some(b' ' | b'\\') | None if in_hunk => Style::new(),
        Some(_) | None => STRONG,
    }
}

/// Returns the size of a diff in words.
pub(crate) fn size(diff: &Diff) -> String {
    let (files, lines) = (counted(diff.files, "file"), counted(diff.lines_added, "line"));
    format!("{files} changed, {lines} added, {} deleted", diff.lines_deleted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::columns::bare;

    #[test]
    fn a_diff_without_its_colours_is_the_same_text() {
        let text = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-old\n+new\n same\n".to_owned();
        let diff = Diff { text: text.clone(), files: 1, lines_added: 1, lines_deleted: 1, of: None };
        assert_eq!(bare(&shown(&diff)), text);
        assert!(shown(&diff).contains(&paint(GOOD, "+new")));
        assert!(
            shown(&diff).contains(&paint(STRONG, "+++ b/x")),
            "the file name does not count as an added line"
        );
        assert_eq!(size(&diff), "1 file changed, 1 line added, 1 deleted");
    }
}
