//! Signs of life: what an agent writes (its protocol's messages included), the time its processes compute, and the files
//! it changes. When all of them are missing for long, somebody is told, once a run. Nothing is stopped for it, unless a rule
//! says so and as long again goes by: a model may take its time, and how long a run may last is another limit.

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
/// The part of one processor that counts as work; programs that only wait still wake up now and then.
const BUSY: f64 = 0.01;
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
    let mut told = false;
    loop {
        tokio::select! {
            () = over.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        let now = watched.look().await;
        let mut alive = shows_life(last, now);
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

fn shows_life(last: Seen, now: Seen) -> bool {
    let computed = now.computed.saturating_sub(last.computed);
    now.written != last.written || computed > now.at.duration_since(last.at).mul_f64(BUSY)
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
    use super::{Seen, shows_life};
    use std::time::Duration;
    use tokio::time::Instant;

    #[test]
    fn writing_and_computing_are_life_and_waking_up_is_not() {
        let start = Instant::now();
        let seen = |written, computed_ms| Seen {
            written,
            computed: Duration::from_millis(computed_ms),
            at: start + Duration::from_secs(60 * u64::from(written > 0 || computed_ms > 0)),
        };
        assert!(shows_life(seen(0, 0), seen(1, 0)));
        assert!(shows_life(seen(0, 0), seen(0, 2_000)));
        assert!(!shows_life(seen(0, 0), seen(0, 100)));
    }
}
