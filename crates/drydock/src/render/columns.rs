//! Tables without borders, and blocks of labelled lines.

use anstyle::Style;

use super::style::{FAINT, paint, plain};

/// One cell of a table: text in one style.
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// Returns a cell in the terminal's default colour.
    pub(crate) fn new(text: impl AsRef<str>) -> Self {
        Self::styled(Style::new(), text)
    }

    /// Returns a cell in a style.
    pub(crate) fn styled(style: Style, text: impl AsRef<str>) -> Self {
        // A cell is one line.
        Self { text: plain(text.as_ref()).replace(['\n', '\t'], " "), style }
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

/// Returns a table with its heading, or an empty text without rows.
pub(crate) fn table<const N: usize>(heading: [&str; N], rows: Vec<[Cell; N]>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let heading = heading.map(|text| Cell::styled(FAINT, text));
    let rows: Vec<_> = std::iter::once(heading).chain(rows).collect();
    let widths: [usize; N] =
        std::array::from_fn(|place| rows.iter().map(|row| row[place].width()).max().unwrap_or(0));
    rows.iter().map(|row| line(row, &widths)).collect()
}

fn line<const N: usize>(row: &[Cell; N], widths: &[usize; N]) -> String {
    let mut line = String::new();
    // Spaces are written before the next cell with text, so that no line ends with spaces.
    let mut gap = 0;
    for (cell, width) in row.iter().zip(widths) {
        if !cell.text.is_empty() {
            line.push_str(&" ".repeat(gap));
            line.push_str(&paint(cell.style, &cell.text));
            gap = 0;
        }
        gap += width - cell.width() + 2;
    }
    line.push('\n');
    line
}

/// A block of labelled lines, e.g. about one plan.
#[derive(Default)]
pub(crate) struct Block {
    text: String,
}

const LABEL_WIDTH: usize = 11;

impl Block {
    /// Adds a line as it is.
    #[must_use]
    pub(crate) fn line(mut self, line: impl AsRef<str>) -> Self {
        self.text.push_str(line.as_ref());
        self.text.push('\n');
        self
    }

    /// Adds a labelled value. Its further lines are indented.
    #[must_use]
    pub(crate) fn field(self, label: &str, value: impl AsRef<str>) -> Self {
        self.styled(label, Style::new(), value)
    }

    /// Adds a labelled value in a style.
    #[must_use]
    pub(crate) fn styled(mut self, label: &str, style: Style, value: impl AsRef<str>) -> Self {
        let mut label = label;
        for line in value.as_ref().trim_end().lines() {
            let pad = " ".repeat(LABEL_WIDTH.saturating_sub(label.chars().count()));
            self.text.push_str(&format!("  {}{pad} {}\n", paint(FAINT, label), paint(style, line)));
            label = "";
        }
        self
    }

    /// Adds a labelled value if there is one.
    #[must_use]
    pub(crate) fn maybe(self, label: &str, value: Option<impl AsRef<str>>) -> Self {
        match value {
            Some(value) => self.field(label, value),
            None => self,
        }
    }

    pub(crate) fn done(self) -> String {
        self.text
    }
}

#[cfg(test)]
pub(crate) fn bare(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_no_line_ends_with_spaces() {
        let row = |one: &str, two: &str, three: &str| [Cell::new(one), Cell::new(two), Cell::new(three)];
        let text = table(["ID", "NAME", "X"], vec![row("1", "a\nb", ""), row("22", "", "z")]);
        assert_eq!(bare(&text), "ID  NAME  X\n1   a b\n22        z\n");
        assert_eq!(table(["ID"], vec![]), "");
    }

    #[test]
    fn further_lines_of_a_value_are_set_in() {
        let text = Block::default().line("head").field("task", "one\ntwo").maybe("gone", None::<&str>).done();
        assert_eq!(bare(&text), "head\n  task        one\n              two\n");
    }
}
