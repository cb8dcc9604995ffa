//! Signs of life: what an agent writes (its protocol's messages included), the time its processes compute, and the files
//! it changes. When all of them are missing for long, somebody is told, once a run. Nothing is stopped for it, unless a rule
//! says so and as long again goes by: a model may take its time, and how long a run may last is another limit.
//!
//! An agent that waits for its model computes a little (timers, spinners, polling: codex and claude use 1.4 to 3.1 % of a
//! processor, in bursts). A compiler or a test that it runs uses a processor or most of it. So computing counts from a tenth of
//! a processor on, in the last look and over several seconds: one burst, or one tick of the kernel's clock within a short look,
//! is not life. Counting only the processes below the agent was refused: agents are often a program below a launcher.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::command::{Limits, OnStall};
use crate::keeper::processes;
use crate::output::Sink;
use crate::signal::Signal;

/// How many looks make up the time without life after which somebody is told.
const LOOKS: u32 = 10;
const LOOK_SHORTEST: Duration = Duration::from_millis(10);
const LOOK_LONGEST: Duration = Duration::from_secs(30);
/// The part of one processor that counts as work.
const BUSY: f64 = 0.1;
/// Over which time computing is averaged, so that no burst counts, unless `stall_after` is too short for that.
const WINDOW: Duration = Duration::from_secs(10);
const WINDOW_LOOKS_MAX: u32 = LOOKS / 2;
/// How many files are looked at; a change in a tree that is larger may be missed.
const FILES_MAX: usize = 10_000;

/// What is watched.
pub(crate) struct Watched<'a> {
    pub(crate) keeper: Option<u32>,
    pub(crate) worktree: &'a Path,
    pub(crate) output: &'a Sink,
    pub(crate) limits: Limits,
    /// Cancelled by the watch when the run is to be stopped.
    pub(crate) stalled: &'a CancellationToken,
}

/// What one look showed.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Seen {
    written: u64,
    computed: Duration,
    at: Instant,
}

/// Watches a run until it is over, or until nothing more is to be done about its silence.
pub(crate) async fn watch(watched: Watched<'_>, over: &CancellationToken) {
    let Limits { stall_after, on_stall, .. } = watched.limits;
    let pause = (stall_after / LOOKS).clamp(LOOK_SHORTEST, LOOK_LONGEST);
    let mut last = watched.look().await;
    let mut newest = watched.newest_change().await;
    let mut alive_at = last.at;
    let mut load = Load::over(pause);
    let mut told = false;
    loop {
        tokio::select! {
            () = over.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        let now = watched.look().await;
        let is_busy = load.is_busy(last, now);
        let mut alive = is_busy || now.written != last.written;
        // Files are looked at last, because a large worktree takes a while.
        if !alive {
            let changed = watched.newest_change().await;
            alive = changed != newest;
            newest = changed;
        }
        if alive {
            alive_at = now.at;
        }
        last = now;
        let quiet = alive_at.elapsed();
        if quiet >= stall_after && !told {
            told = true;
            watched.output.tell(Signal::Stalled { quiet }).await;
            if on_stall == OnStall::Tell {
                return;
            }
        }
        if quiet >= stall_after.saturating_mul(2) {
            watched.stalled.cancel();
            return;
        }
    }
}

/// How much was computed in each of the last looks.
struct Load {
    /// The time between two looks, and how much of it was computed; the newest last.
    looks: VecDeque<(Duration, Duration)>,
    looks_max: usize,
}

impl Load {
    /// Averages over [`WINDOW`], with a pause of this length between looks.
    fn over(pause: Duration) -> Self {
        let looks = WINDOW.as_millis().div_ceil(pause.as_millis().max(1));
        let looks = u32::try_from(looks).unwrap_or(u32::MAX).clamp(1, WINDOW_LOOKS_MAX);
        Self { looks: VecDeque::new(), looks_max: looks as usize }
    }

    /// Adds a look. Returns whether the processes compute now, and did on average over the looks that are kept.
    fn is_busy(&mut self, last: Seen, now: Seen) -> bool {
        // A process that no one waits for takes its time with it when it ends.
        let newest = (now.at.duration_since(last.at), now.computed.saturating_sub(last.computed));
        self.looks.push_back(newest);
        while self.looks.len() > self.looks_max {
            self.looks.pop_front();
        }
        let add = |sum: (Duration, Duration), look: &(Duration, Duration)| (sum.0 + look.0, sum.1 + look.1);
        let whole = self.looks.iter().fold((Duration::ZERO, Duration::ZERO), add);
        [newest, whole].iter().all(|(elapsed, computed)| *computed > elapsed.mul_f64(BUSY))
    }
}

impl Watched<'_> {
    async fn look(&self) -> Seen {
        let keeper = self.keeper;
        let computed = blocking(move || keeper.map(processes::computed_below)).await.flatten();
        Seen { written: self.output.written(), computed: computed.unwrap_or_default(), at: Instant::now() }
    }

    async fn newest_change(&self) -> Option<SystemTime> {
        let root = self.worktree.to_owned();
        blocking(move || newest_below(root)).await.flatten()
    }
}

/// Returns when something below a directory was last changed, as far as it was looked at. Removing a file changes its
/// directory.
fn newest_below(root: PathBuf) -> Option<SystemTime> {
    let mut newest = None;
    let mut directories = VecDeque::from([root]);
    let mut looked_at = 0;
    while let Some(directory) = directories.pop_front() {
        newest = newest.max(fs::metadata(&directory).ok().and_then(|seen| seen.modified().ok()));
        // What cannot be read, or is just being removed, shows nothing.
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            looked_at += 1;
            if looked_at > FILES_MAX {
                return newest;
            }
            let Ok(seen) = entry.metadata() else { continue };
            if seen.is_dir() {
                directories.push_back(entry.path());
            }
            newest = newest.max(seen.modified().ok());
        }
    }
    newest
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

#[cfg(test)]
mod tests {
    use super::{Load, Seen};
    use std::time::Duration;
    use tokio::time::Instant;

    /// Returns at which looks computing counts, when so many milliseconds are computed in each look of 2 s.
    fn busy(computed_ms: &[u64]) -> Vec<usize> {
        let (start, pause) = (Instant::now(), Duration::from_secs(2));
        let mut load = Load::over(pause);
        let mut last = Seen { written: 0, computed: Duration::ZERO, at: start };
        let mut found = Vec::new();
        for (number, ms) in computed_ms.iter().enumerate() {
            let computed = last.computed + Duration::from_millis(*ms);
            let now = Seen { written: 0, computed, at: last.at + pause };
            if load.is_busy(last, now) {
                found.push(number);
            }
            last = now;
        }
        found
    }

    /// Issue 13, item 4. Breaks when an agent that waits for its model counts as alive for its wake-ups or one burst, or when
    /// a compiler does not, or counts long after its end.
    #[test]
    fn computing_is_life_and_waking_up_is_not() {
        assert_eq!(busy(&[62; 30]), [0; 0], "3.1 % all the time");
        assert_eq!(busy(&[20, 20, 20, 20, 20, 700, 20, 20, 20, 20, 20]), [0; 0], "one burst");
        assert_eq!(busy(&[20, 20, 20, 20, 20, 1_900, 1_900, 20, 20]), [5, 6], "it ends with the compiler");
        assert_eq!(busy(&[500; 4]), [0, 1, 2, 3], "a compiler that gets a quarter of a processor");
    }

    #[test]
    fn a_look_that_is_longer_than_the_window_is_judged_alone() {
        assert_eq!(Load::over(Duration::from_secs(30)).looks_max, 1);
        assert_eq!(Load::over(Duration::from_millis(100)).looks_max, 5);
    }
}
