//! The table of the bench, which runs too long to be a test itself.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use crate::measure::{Promise, Table};

/// What was written so far, for a reader who looks while it is written.
#[derive(Clone, Default)]
struct Screen(Rc<RefCell<Vec<u8>>>);

impl Screen {
    fn text(&self) -> String {
        String::from_utf8(self.0.borrow().clone()).unwrap()
    }
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Issue 13, item 10. Breaks when figures are printed only at the end, or when a part that fails loses those before or after it.
#[test]
fn a_part_of_the_bench_that_fails_loses_no_figure() {
    let screen = Screen::default();
    let mut table = Table::new(screen.clone());
    table.part("first", |table| {
        table.ratio("one", Promise::AtMost(1.0), &[0.5]);
        assert_eq!(screen.text(), "| one | ≤ 1 | 0.50 | 0.50 – 0.50 | yes |\n");
        panic!("on purpose");
    });
    table.part("second", |table| table.plain("two", "2".to_owned()));
    assert_eq!(table.failed(), ["first"]);
    assert!(screen.text().ends_with("first: failed\n| two | – | 2 | – | yes |\n"), "{}", screen.text());
    let shown = table.to_string();
    assert!(shown.contains("| one |") && shown.contains("| two |"), "{shown}");
}
