//! Where the engine's work is done: on threads of the driver, so that callers may be on any thread, also on one of
//! another async runtime, and a panic does not reach C.

use std::{
    cell::Cell,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{RecvTimeoutError, sync_channel},
    },
    time::Duration,
};

use adbc_core::{
    CancelHandle,
    error::{Error, Result, Status},
};
use arc_core::AnswerEnder;
use tokio::{
    runtime::{Builder, Runtime},
    sync::Notify,
    task::AbortHandle,
    time::Instant,
};

use crate::{
    errors::{OrAdbc as _, cancelled},
    forks::check_process,
};

static RUNTIME: OnceLock<std::io::Result<Runtime>> = OnceLock::new();

fn runtime() -> Result<&'static Runtime> {
    let made = RUNTIME.get_or_init(|| Builder::new_multi_thread().enable_all().thread_name("arc-adbc").build());
    made.as_ref().map_err(|error| Error::with_message_and_status(format!("cannot start threads: {error}"), Status::IO))
}

fn defect() -> Error {
    Error::with_message_and_status("a defect: the thread that did the work ended", Status::Internal)
}

/// How often a thread that waits asks whether it is interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(20);

static INTERRUPTED: OnceLock<fn() -> bool> = OnceLock::new();

/// Has a thread that waits for rows ask `interrupted` now and then, and end the work once it is.
///
/// For the runtime of a language whose threads learn of signals by asking, and whose readers do not ask while they are in here.
pub fn look_for_interrupts(interrupted: fn() -> bool) {
    let _ = INTERRUPTED.set(interrupted);
}

/// Asks, unless this thread has just asked.
fn is_interrupted() -> bool {
    thread_local! {
        static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
    }
    let Some(interrupted) = INTERRUPTED.get() else { return false };
    if LAST.get().is_some_and(|last| last.elapsed() < LOOK_EVERY) {
        return false;
    }
    LAST.set(Some(Instant::now()));
    interrupted()
}

/// Waits for work that does not block a thread.
pub(crate) fn wait<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Result<T> {
    check_process().or_adbc()?;
    // No part of an answer may take long, and all of them do.
    if is_interrupted() {
        return Err(cancelled());
    }
    let (sender, receiver) = sync_channel(1);
    let task = runtime()?.spawn(async move {
        let _ = sender.send(work.await);
    });
    let _ended = AbortOnDrop(task.abort_handle());
    loop {
        match receiver.recv_timeout(LOOK_EVERY) {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Disconnected) => return Err(defect()),
            Err(RecvTimeoutError::Timeout) if is_interrupted() => return Err(cancelled()),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Ends a task that is not waited for any more. One that has ended does not mind.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// As [`wait`], until `cancel` ends it. The work itself is dropped as soon as it gives way.
pub(crate) fn wait_or_cancel<T: Send + 'static>(
    cancel: &Arc<Cancel>,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let (cancel, runtime) = (Arc::clone(cancel), runtime()?);
    wait(async move {
        let mut asked = pin!(cancel.asked.notified());
        asked.as_mut().enable();
        if cancel.was_asked() {
            return Err(cancelled());
        }
        let task = runtime.spawn(work);
        let _ended = AbortOnDrop(task.abort_handle());
        tokio::select! {
            done = task => done.map_err(|_| defect())?,
            () = asked => Err(cancelled()),
        }
    })?
}

/// Does work that blocks, on this thread.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    check_process().or_adbc()?;
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(defect()))
}

/// What ends a statement from another thread.
#[derive(Debug, Default)]
pub(crate) struct Cancel {
    asked: Notify,
    /// Of what began last: its answer, and whether it was cancelled.
    answer: Mutex<Option<AnswerEnder>>,
    was_asked: AtomicBool,
}

impl Cancel {
    /// Forgets what was asked before: from now on a cancel is about what begins.
    pub(crate) fn begin(&self) {
        *self.lock() = None;
        self.was_asked.store(false, Ordering::Relaxed);
    }

    /// Remembers the answer that a cancel is to end from now on.
    pub(crate) fn ends(&self, answer: AnswerEnder) {
        *self.lock() = Some(answer);
    }

    /// Returns whether what began last was cancelled.
    pub(crate) fn was_asked(&self) -> bool {
        self.was_asked.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Option<AnswerEnder>> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A [`Cancel`] as ADBC takes it.
#[derive(Debug)]
pub(crate) struct Canceller(pub(crate) Arc<Cancel>);

impl CancelHandle for Canceller {
    fn try_cancel(&self) -> Result<()> {
        self.0.was_asked.store(true, Ordering::Relaxed);
        self.0.asked.notify_waiters();
        if let Some(answer) = self.0.lock().take() {
            answer.end();
        }
        Ok(())
    }
}
