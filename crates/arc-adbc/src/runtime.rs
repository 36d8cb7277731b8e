//! Where the engine's work is done: on threads of the driver, so that callers may be on any thread, also on one of
//! another async runtime, and a panic does not reach C.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::sync_channel,
    },
};

use adbc_core::{
    CancelHandle,
    error::{Error, Result, Status},
};
use arc_core::AnswerEnder;
use tokio::{
    runtime::{Builder, Runtime},
    sync::Notify,
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

/// Waits for work that does not block a thread.
pub(crate) fn wait<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Result<T> {
    check_process().or_adbc()?;
    let (sender, receiver) = sync_channel(1);
    drop(runtime()?.spawn(async move {
        let _ = sender.send(work.await);
    }));
    receiver.recv().map_err(|_| defect())
}

/// As [`wait`], until `cancel` ends it.
pub(crate) fn wait_or_cancel<T: Send + 'static>(
    cancel: &Arc<Cancel>,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let cancel = Arc::clone(cancel);
    wait(async move {
        tokio::select! {
            done = work => done,
            () = cancel.asked.notified() => Err(cancelled()),
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
