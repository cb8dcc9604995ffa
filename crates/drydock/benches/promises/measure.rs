//! Measuring in turns, and the table of the results.
//!
//! A figure is printed as soon as it is measured, and a part that panics does not keep the others from running: on a busy machine a
//! limit that one part passes must not lose the figures of an hour.

use std::fmt;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// One promise and what was measured of it.
struct Row {
    what: String,
    promised: String,
    seen: String,
    noise: String,
    kept: bool,
}

/// All rows, printed as Markdown.
pub(crate) struct Table {
    rows: Vec<Row>,
    failed: Vec<&'static str>,
    out: Box<dyn Write>,
}

/// How a ratio relates to its promise.
pub(crate) enum Promise {
    AtLeast(f64),
    AtMost(f64),
}

impl Table {
    /// Makes an empty table whose rows are also written one by one.
    pub(crate) fn new(out: impl Write + 'static) -> Self {
        Self { rows: Vec::new(), failed: Vec::new(), out: Box::new(out) }
    }

    /// Measures a part; a panic in it is recorded, and those that follow are measured.
    pub(crate) fn part(&mut self, name: &'static str, measure: impl FnOnce(&mut Table)) {
        if catch_unwind(AssertUnwindSafe(|| measure(self))).is_err() {
            self.failed.push(name);
            writeln!(self.out, "{name}: failed").ok();
        }
    }

    /// Returns the parts that failed.
    pub(crate) fn failed(&self) -> &[&'static str] {
        &self.failed
    }

    fn add(&mut self, row: Row) {
        // Measuring continues after a closed pipe.
        writeln!(self.out, "{row}").and_then(|()| self.out.flush()).ok();
        self.rows.push(row);
    }

    /// Adds a ratio: the median over rounds, with the smallest and largest of them.
    pub(crate) fn ratio(&mut self, what: &str, promise: Promise, rounds: &[f64]) {
        let seen = median(rounds);
        let (low, high) =
            rounds.iter().fold((f64::MAX, f64::MIN), |(low, high), one| (low.min(*one), high.max(*one)));
        let (promised, kept) = match promise {
            Promise::AtLeast(bound) => (format!("≥ {bound}"), seen >= bound),
            Promise::AtMost(bound) => (format!("≤ {bound}"), seen <= bound),
        };
        let (seen, noise) = (format!("{seen:.2}"), format!("{low:.2} – {high:.2}"));
        self.add(Row { what: what.to_owned(), promised, seen, noise, kept });
    }

    /// Adds a size in megabytes.
    pub(crate) fn megabytes(&mut self, what: &str, bound: f64, seen: f64) {
        let (promised, shown) = (format!("< {bound} MB"), format!("{seen:.1} MB"));
        self.add(Row {
            what: what.to_owned(),
            promised,
            seen: shown,
            noise: "–".to_owned(),
            kept: seen < bound,
        });
    }

    /// Adds a time in milliseconds: the median over rounds.
    pub(crate) fn milliseconds(&mut self, what: &str, bound: f64, rounds: &[f64]) {
        let seen = median(rounds);
        let (low, high) =
            rounds.iter().fold((f64::MAX, f64::MIN), |(low, high), one| (low.min(*one), high.max(*one)));
        self.add(Row {
            what: what.to_owned(),
            promised: format!("< {bound} ms"),
            seen: format!("{seen:.1} ms"),
            noise: format!("{low:.1} – {high:.1}"),
            kept: seen < bound,
        });
    }

    /// Adds a count that has to be exactly this.
    pub(crate) fn count(&mut self, what: &str, promised: usize, seen: usize) {
        let (promised, shown, kept) = (promised.to_string(), seen.to_string(), seen == promised);
        self.add(Row { what: what.to_owned(), promised, seen: shown, noise: "–".to_owned(), kept });
    }

    /// Adds a figure that nothing was promised of.
    pub(crate) fn plain(&mut self, what: &str, seen: String) {
        let (promised, noise) = ("–".to_owned(), "–".to_owned());
        self.add(Row { what: what.to_owned(), promised, seen, noise, kept: true });
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| what | promised | seen | rounds | kept |")?;
        writeln!(f, "|---|---|---|---|---|")?;
        self.rows.iter().try_for_each(|row| writeln!(f, "{row}"))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { what, promised, seen, noise, kept } = self;
        let kept = if *kept { "yes" } else { "**no**" };
        write!(f, "| {what} | {promised} | {seen} | {noise} | {kept} |")
    }
}

/// Returns the middle value.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Returns the middle of `count` timings of `work`, in seconds.
pub(crate) fn median_of(count: usize, mut work: impl FnMut()) -> f64 {
    let times: Vec<f64> = (0..count).map(|_| seconds(&mut work)).collect();
    median(&times)
}

/// Returns how long `work` takes, in seconds.
pub(crate) fn seconds(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64()
}

/// How long one side of a round is measured.
pub(crate) const SPELL: Duration = Duration::from_millis(1500);
