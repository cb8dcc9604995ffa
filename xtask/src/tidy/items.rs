//! The outermost items of scanned code. Their ends are found by brackets and semicolons, without a grammar.

use super::source::{closing, line_at};

/// An item with its attributes.
pub(crate) struct Item<'a> {
    pub(crate) text: &'a str,
    pub(crate) line: usize,
}

impl<'a> Item<'a> {
    /// Returns the item without its attributes and visibility.
    pub(crate) fn declaration(&self) -> &'a str {
        let mut rest = self.text;
        while rest.starts_with("#[") {
            let end = closing(rest, 1).unwrap_or(rest.len());
            rest = rest[end..].trim_start();
        }
        if let Some(exported) = rest.strip_prefix("pub") {
            let open = exported.starts_with('(').then(|| closing(exported, 0)).flatten().unwrap_or(0);
            rest = exported[open..].trim_start();
        }
        rest
    }
}

/// Returns the outermost items, including attributes; each ends with `;` or a closing brace.
pub(crate) fn items(code: &str) -> Vec<Item<'_>> {
    let mut found = Vec::new();
    let mut start = 0;
    loop {
        start += code[start..].len() - code[start..].trim_start().len();
        if start == code.len() {
            return found;
        }
        let end = item_end(code, start).unwrap_or(code.len());
        found.push(Item { text: &code[start..end], line: line_at(code, start) });
        start = end;
    }
}

fn item_end(code: &str, start: usize) -> Option<usize> {
    let imports = code[start..].starts_with("use ") || code[start..].starts_with("pub");
    let mut at = start;
    loop {
        at += code[at..].find(['(', '[', '{', ';'])?;
        match code.as_bytes()[at] {
            b';' => return Some(at + 1),
            // An inner attribute is a separate item.
            b'[' if code[start..at].ends_with("#!") => return closing(code, at),
            b'{' if !imports || !code[start..at].contains("use ") => return closing(code, at),
            _ => at = closing(code, at)?,
        }
    }
}
