//! Detects stalled runs. Signs of life are output (including protocol messages), CPU time of the run's
//! processes, and changed files. If all are missing for `stall_after`, a signal is emitted once per run. The
//! run is stopped only if configured, and after the same time again: a model may be slow, and the duration of
//! a run has its own limit.
//!
//! An agent that waits for its model uses a little CPU time (timers, spinners, polling: codex and claude use
//! 1.4 to 3.1 % of a processor, in bursts). A compiler or test that it runs uses most of a processor. CPU
//! time therefore counts from a tenth of a processor, both in the last sample and on average over several
//! seconds: one burst, or one tick of the kernel's clock within a short sample, does not count. Counting only
//! the descendants of the agent was rejected, because an agent is often started by a launcher.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::command::{OnStall, RunLimits};
use crate::keeper::processes;
use crate::output::SignalSink;
use crate::signal::Signal;

/// Number of samples within `stall_after`.
const LOOKS: u32 = 10;
const LOOK_SHORTEST: Duration = Duration::from_millis(10);
const LOOK_LONGEST: Duration = Duration::from_secs(30);
/// Fraction of one processor that counts as work.
const BUSY: f64 = 0.1;
/// Time over which CPU usage is averaged, so that a burst does not count. Shorter if `stall_after` is short.
const WINDOW: Duration = Duration::from_secs(10);
const WINDOW_LOOKS_MAX: u32 = LOOKS / 2;
/// Maximum number of files checked; a change in a larger tree may be missed.
const FILES_MAX: usize = 10_000;

/// The run to watch.
pub(crate) struct Watched<'a> {
    pub(crate) keeper: Option<u32>,
    pub(crate) worktree: &'a Path,
    pub(crate) output: &'a SignalSink,
    pub(crate) limits: RunLimits,
    /// Cancelled by [`watch`] if the run must be stopped.
    pub(crate) stalled: &'a CancellationToken,
}

/// One sample.
#[derive(Debug, Clone, Copy, PartialEq)]
struct LivenessSample {
    written: u64,
    computed: Duration,
    at: Instant,
}

/// Watches a run until it ends, or until no further reaction to a stall is due.
pub(crate) async fn watch(watched: Watched<'_>, over: &CancellationToken) {
    let RunLimits { stall_after, on_stall, .. } = watched.limits;
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
        // Files are checked last, because a large worktree takes a while.
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
            watched.output.send(Signal::Stalled { quiet }).await;
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

/// CPU time in each of the last samples.
struct Load {
    /// Elapsed time and CPU time of each sample, newest last.
    looks: VecDeque<(Duration, Duration)>,
    looks_max: usize,
}

impl Load {
    /// Averages over [`WINDOW`], with this pause between samples.
    fn over(pause: Duration) -> Self {
        let looks = WINDOW.as_millis().div_ceil(pause.as_millis().max(1));
        let looks = u32::try_from(looks).unwrap_or(u32::MAX).clamp(1, WINDOW_LOOKS_MAX);
        Self { looks: VecDeque::new(), looks_max: looks as usize }
    }

    /// Adds a sample. Returns true if the processes used enough CPU time in it, and on average over all kept
    /// samples.
    fn is_busy(&mut self, last: LivenessSample, now: LivenessSample) -> bool {
        // The total can shrink: the CPU time of a process that is not waited for is lost when it ends.
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
    async fn look(&self) -> LivenessSample {
        let keeper = self.keeper;
        let computed = blocking(move || keeper.map(processes::computed_below)).await.flatten();
        LivenessSample {
            written: self.output.written(),
            computed: computed.unwrap_or_default(),
            at: Instant::now(),
        }
    }

    async fn newest_change(&self) -> Option<SystemTime> {
        let root = self.worktree.to_owned();
        blocking(move || newest_below(root)).await.flatten()
    }
}

/// Returns the last modification time below a directory, among the files checked. Removing a file modifies
/// its directory.
fn newest_below(root: PathBuf) -> Option<SystemTime> {
    let mut newest = None;
    let mut directories = VecDeque::from([root]);
    let mut looked_at = 0;
    while let Some(directory) = directories.pop_front() {
        newest = newest.max(fs::metadata(&directory).ok().and_then(|seen| seen.modified().ok()));
        // Entries that cannot be read or are being removed are skipped.
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
    use super::{LivenessSample, Load};
    use std::time::Duration;
    use tokio::time::Instant;

    /// Returns the samples in which CPU time counts, given the milliseconds of CPU time in each sample of 2
    /// s.
    fn busy(computed_ms: &[u64]) -> Vec<usize> {
        let (start, pause) = (Instant::now(), Duration::from_secs(2));
        let mut load = Load::over(pause);
        let mut last = LivenessSample { written: 0, computed: Duration::ZERO, at: start };
        let mut found = Vec::new();
        for (number, ms) in computed_ms.iter().enumerate() {
            let computed = last.computed + Duration::from_millis(*ms);
            let now = LivenessSample { written: 0, computed, at: last.at + pause };
            if load.is_busy(last, now) {
                found.push(number);
            }
            last = now;
        }
        found
    }

    /// Issue 13, item 4. Breaks when an agent that waits for its model counts as alive because of wake-ups or
    /// one burst, or when a compiler does not count, or still counts long after its end.
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
