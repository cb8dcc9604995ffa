//! The single writer thread. It takes all waiting jobs, runs each in a savepoint, commits once, and answers
//! all callers. A durable commit costs one disk sync for the whole batch, and a single job does not wait for
//! others.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use drydock_domain::error_chain;
use futures_util::FutureExt;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::connection::{SqliteLocation, SqliteTx};
use super::gate::WriteQueue;
use super::lookout::ChangeDetector;
use super::schema::gate_error;
use crate::StoreError;
use crate::crash::{CrashPoint, Faults};
use crate::tx::{Tx, TxOutcome, WakeMode, WriteFn};

const BATCH_MAX: usize = 256;
const QUEUE_MAX: usize = 1024;
/// How long a job waits to be started before its caller gets a busy error.
const TURN_WAIT_MAX: Duration = Duration::from_secs(10);

/// The queue to the writer thread, which is started by the first job.
#[derive(Debug)]
pub(crate) struct Writer {
    place: SqliteLocation,
    faults: Faults,
    lookout: Arc<ChangeDetector>,
    queue: Mutex<Option<mpsc::Sender<Box<dyn WriteJob>>>>,
}

impl Writer {
    pub(crate) fn new(place: SqliteLocation, faults: Faults, lookout: Arc<ChangeDetector>) -> Self {
        Self { place, faults, lookout, queue: Mutex::new(None) }
    }

    /// Runs a job in a transaction and returns its result after the commit. Once queued, a job runs even if
    /// its caller is dropped.
    pub(crate) async fn submit<T: Send + 'static>(&self, work: impl WriteFn<T>) -> Result<T, StoreError> {
        let queue = self.queue()?;
        let deadline = Instant::now() + TURN_WAIT_MAX;
        let busy = || self.place.busy("write");
        let (reply, mut answer) = oneshot::channel();
        let turn = Arc::new(JobState::default());
        let job = Box::new(Queued { work, reply, turn: Arc::clone(&turn) });
        match timeout_at(deadline, queue.send(job)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(stopped()),
            Err(_) => return Err(busy()),
        }
        let answered = match timeout_at(deadline, &mut answer).await {
            Ok(answered) => answered,
            Err(_) if turn.give_up() => return Err(busy()),
            // The job is already running, so its result follows soon.
            Err(_) => answer.await,
        };
        answered.unwrap_or_else(|_| Err(stopped()))
    }

    fn queue(&self) -> Result<mpsc::Sender<Box<dyn WriteJob>>, StoreError> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        // If the thread died, its end of the channel is closed; a new thread is started.
        if let Some(running) = queue.as_ref().filter(|running| !running.is_closed()) {
            return Ok(running.clone());
        }
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        let worker = WriterThread {
            place: self.place.clone(),
            faults: self.faults.clone(),
            lookout: Arc::clone(&self.lookout),
            opened: None,
            receiver,
        };
        let thread = thread::Builder::new().name("drydock-writer".to_owned()).spawn(move || worker.run());
        thread.map_err(|error| StoreError::database("start the writer thread", error))?;
        Ok(queue.insert(sender).clone())
    }
}

fn stopped() -> StoreError {
    StoreError::database("write", "the job stopped before it was committed")
}

/// Decides whether a waiting job still runs: the writer takes it, or its caller gives up; never both.
#[derive(Debug, Default)]
struct JobState(AtomicU8);

impl JobState {
    const WAITING: u8 = 0;
    const TAKEN: u8 = 1;
    const GIVEN_UP: u8 = 2;

    fn take(&self) -> bool {
        self.change(Self::TAKEN)
    }

    fn give_up(&self) -> bool {
        self.change(Self::GIVEN_UP)
    }

    fn change(&self, to: u8) -> bool {
        self.0.compare_exchange(Self::WAITING, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// A job with an erased result type.
trait WriteJob: Send {
    fn turn(&self) -> &JobState;
    fn run(self: Box<Self>, tx: &mut Tx<'_>) -> Ran;
    fn refuse(self: Box<Self>, error: StoreError);
}

/// The result of a job, and the function that sends it to the caller once the commit has succeeded or failed.
struct Ran {
    writes: Writes,
    noise: WakeMode,
    answer: ReplyFn,
    /// Whether a test requested a fault in this job.
    faulty: bool,
}

enum Writes {
    Keep,
    Undo,
    /// The database failed, and may have ended the whole transaction.
    Failed(StoreError),
}

struct Queued<T, W> {
    work: W,
    reply: oneshot::Sender<Result<T, StoreError>>,
    turn: Arc<JobState>,
}

impl<T: Send + 'static, W: WriteFn<T>> WriteJob for Queued<T, W> {
    fn turn(&self) -> &JobState {
        &self.turn
    }

    fn run(self: Box<Self>, tx: &mut Tx<'_>) -> Ran {
        let Queued { work, reply, .. } = *self;
        // A panic in a job must not end the writer thread and the other jobs with it.
        let done = catch_unwind(AssertUnwindSafe(|| (work)(tx).now_or_never()));
        let done = match done {
            Ok(Some(Ok(TxOutcome::Keep(value)))) => {
                tx.point(CrashPoint::BeforeCommit).map(|()| TxOutcome::Keep(value))
            }
            Ok(Some(done)) => done,
            Ok(None) => Err(StoreError::database("write", "the job waited for something outside")),
            Err(_) => Err(StoreError::database("write", "the job panicked")),
        };
        let (writes, result) = match done {
            Ok(TxOutcome::Keep(value)) => (Writes::Keep, Ok(value)),
            Ok(TxOutcome::Undo(value)) => (Writes::Undo, Ok(value)),
            Err(error) => (Writes::Failed(error.clone()), Err(error)),
        };
        let answer = move |committed: Result<(), StoreError>| {
            // If the caller was dropped, the result is discarded.
            reply.send(committed.and(result)).ok();
        };
        Ran { writes, noise: tx.noise(), answer: Box::new(answer), faulty: tx.is_armed() }
    }

    fn refuse(self: Box<Self>, error: StoreError) {
        self.reply.send(Err(error)).ok();
    }
}

/// The state of the writer thread.
struct WriterThread {
    place: SqliteLocation,
    faults: Faults,
    lookout: Arc<ChangeDetector>,
    opened: Option<(WriteQueue, Connection)>,
    receiver: mpsc::Receiver<Box<dyn WriteJob>>,
}

impl WriterThread {
    fn run(mut self) {
        while let Some(first) = self.receiver.blocking_recv() {
            if let Err((job, error)) = self.serve(first) {
                job.refuse(error);
            }
        }
    }

    /// Runs one batch. Returns the first job with an error if the database or the gate could not be opened or
    /// locked.
    fn serve(&mut self, first: Box<dyn WriteJob>) -> Result<(), (Box<dyn WriteJob>, StoreError)> {
        if self.opened.is_none() {
            match open(&self.place) {
                Ok(opened) => self.opened = Some(opened),
                Err(error) => return Err((first, error)),
            }
        }
        let (gate, connection) = self.opened.as_mut().expect("it was opened above");
        let pass = match gate.wait_turn() {
            Ok(pass) => pass,
            Err(error) => return Err((first, gate_error(&self.place, error))),
        };
        // Jobs that arrived while we waited for the gate share the commit.
        let mut jobs = vec![first];
        while jobs.len() < BATCH_MAX {
            match self.receiver.try_recv() {
                Ok(job) => jobs.push(job),
                Err(_) => break,
            }
        }
        jobs.retain(|job| job.turn().take());
        let mut batch = Batch { place: &self.place, connection, faults: self.faults.clone() };
        let held = self.lookout.hold();
        let answers = batch.run(jobs);
        held.mark_seen();
        // Without the gate, a commit marked as seen may have been another process's.
        let alone = pass.is_some();
        drop(pass);
        for answer in answers.commit {
            answer(Ok(()));
        }
        match answers.noise {
            WakeMode::Quiet if alone => {}
            WakeMode::Quiet | WakeMode::Loud => self.lookout.ring(),
        }
        Ok(())
    }
}

fn open(place: &SqliteLocation) -> Result<(WriteQueue, Connection), StoreError> {
    let gate = WriteQueue::open(&place.path).map_err(|error| gate_error(place, error))?;
    Ok((gate, place.connect()?))
}

type ReplyFn = Box<dyn FnOnce(Result<(), StoreError>)>;

/// The answers to send after a successful commit. If the commit failed, the callers have already been
/// answered.
struct BatchReplies {
    commit: Vec<ReplyFn>,
    noise: WakeMode,
}

impl Default for BatchReplies {
    fn default() -> Self {
        Self { commit: Vec::new(), noise: WakeMode::Quiet }
    }
}

struct Batch<'a> {
    place: &'a SqliteLocation,
    connection: &'a mut Connection,
    faults: Faults,
}

impl Batch<'_> {
    fn run(&mut self, jobs: Vec<Box<dyn WriteJob>>) -> BatchReplies {
        if jobs.is_empty() {
            return BatchReplies::default();
        }
        if let Err(error) = self.execute("BEGIN IMMEDIATE") {
            jobs.into_iter().for_each(|job| job.refuse(error.clone()));
            return BatchReplies::default();
        }
        let (mut answers, mut armed) = (BatchReplies::default(), false);
        let mut jobs = jobs.into_iter();
        for job in jobs.by_ref() {
            let Ran { writes, noise, answer, faulty } = self.in_savepoint(job);
            armed |= faulty;
            answers.commit.push(answer);
            if let (Writes::Keep, WakeMode::Loud) = (&writes, noise) {
                answers.noise = WakeMode::Loud;
            }
            if let (Writes::Failed(error), true) = (&writes, self.connection.is_autocommit()) {
                // SQLite has rolled back the whole transaction, including the jobs before this one.
                answers.commit.drain(..).for_each(|answer| answer(Err(error.clone())));
                jobs.for_each(|job| job.refuse(error.clone()));
                return BatchReplies::default();
            }
        }
        let committed = self
            .execute("COMMIT")
            .and_then(|()| if armed { self.faults.hit(CrashPoint::AfterCommit) } else { Ok(()) });
        if let Err(error) = committed {
            self.roll_back();
            answers.commit.drain(..).for_each(|answer| answer(Err(error.clone())));
            answers.noise = WakeMode::Quiet;
        }
        answers
    }

    /// Runs a job so that its failure undoes only its own writes.
    fn in_savepoint(&mut self, job: Box<dyn WriteJob>) -> Ran {
        if let Err(error) = self.execute("SAVEPOINT job") {
            let told = error.clone();
            let answer = Box::new(move |_| job.refuse(told));
            return Ran { writes: Writes::Failed(error), noise: WakeMode::Quiet, answer, faulty: false };
        }
        let ran = {
            let sql = SqliteTx { connection: self.connection, place: self.place };
            job.run(&mut Tx::new(Box::new(sql), self.faults.clone()))
        };
        let closed = match &ran.writes {
            Writes::Keep => self.execute("RELEASE job"),
            Writes::Failed(_) if self.connection.is_autocommit() => Ok(()),
            Writes::Undo | Writes::Failed(_) => self.execute("ROLLBACK TO job; RELEASE job"),
        };
        match closed {
            Ok(()) => ran,
            Err(error) => {
                // The state of the savepoint is unknown, so the whole batch is rolled back.
                self.roll_back();
                Ran { writes: Writes::Failed(error), ..ran }
            }
        }
    }

    fn roll_back(&self) {
        if self.connection.is_autocommit() {
            return;
        }
        if let Err(error) = self.execute("ROLLBACK") {
            tracing::error!(error = %error_chain(&error), "could not roll back a failed batch");
        }
    }

    fn execute(&self, sql: &str) -> Result<(), StoreError> {
        self.connection.execute_batch(sql).map_err(|error| self.place.classify("commit", error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wake::Notifier;
    use drydock_domain::Timestamp;

    #[tokio::test]
    async fn a_writer_thread_that_died_is_started_again() {
        let directory = tempfile::TempDir::new().unwrap();
        let place =
            SqliteLocation { path: directory.path().join("drydock.db"), clock: || Timestamp::from_micros(0) };
        let lookout = Arc::new(ChangeDetector::new(place.clone(), Notifier::new()));
        let writer = Writer::new(place, Faults::default(), lookout);
        // The state after the writer thread panicked: a channel with a closed receiver.
        let (dead, _) = mpsc::channel(1);
        *writer.queue.lock().unwrap() = Some(dead);
        let answer = writer.submit(|_: &mut Tx<'_>| Box::pin(async { Ok(TxOutcome::Keep(7)) })).await;
        assert_eq!(answer.unwrap(), 7);
    }
}
