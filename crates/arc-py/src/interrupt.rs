//! Waiting that Ctrl-C ends: Python runs its signal handlers on its main thread only, and not while that waits here.

use std::{
    borrow::Cow,
    future::Future,
    sync::{
        Condvar, Mutex, OnceLock, PoisonError,
        mpsc::{RecvTimeoutError, sync_channel},
    },
    thread::ThreadId,
    time::Duration,
};

use arc_core::Error;
use pyo3::{exceptions::PyKeyboardInterrupt, prelude::*};
use tokio::runtime::Runtime;

use crate::{errors::Raise as _, progress::Progress, runtime};

/// How often the main thread looks for signals while it waits.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The main thread of the interpreter, once one of its calls was seen.
static MAIN: OnceLock<ThreadId> = OnceLock::new();

/// The process that makes writes on threads of their own, and how many there are.
static WRITES: Mutex<(u32, usize)> = Mutex::new((0, 0));
static WRITE_DONE: Condvar = Condvar::new();

/// Remembers this thread, if it is the main one. The interpreter's lock is at hand here, and not where rows are pulled.
pub(crate) fn note_thread(py: Python<'_>) -> PyResult<()> {
    if MAIN.get().is_none() {
        let threading = py.import("threading")?;
        let main = threading.call_method0("main_thread")?.getattr("ident")?;
        if main.eq(threading.call_method0("get_ident")?)? {
            let _ = MAIN.set(std::thread::current().id());
        }
    }
    Ok(())
}

/// Returns whether signals come to this thread.
pub(crate) fn is_main_thread() -> bool {
    MAIN.get() == Some(&std::thread::current().id())
}

/// Returns whether a signal handler raised on this thread, for waiting that cannot raise it: what runs in Python next does then.
pub(crate) fn interrupted() -> bool {
    if !is_main_thread() {
        return false;
    }
    let look = |py: Python<'_>| match py.check_signals() {
        Err(raised) => {
            raise_again(py, &raised);
            true
        }
        Ok(()) => false,
    };
    Python::try_attach(look).unwrap_or(false)
}

/// Has an interrupt come once more, after a reader in C that raises something of its own.
pub(crate) fn raise_again(py: Python<'_>, raised: &PyErr) {
    if raised.is_instance_of::<PyKeyboardInterrupt>(py) {
        let again = py.import("_thread").and_then(|thread| thread.call_method0("interrupt_main"));
        let _ = again.map(drop);
    }
}

/// Waits for `work` without the interpreter's lock; on the main thread, shows how far it is, and ends it when a signal
/// handler raises.
///
/// # Errors
///
/// What the handler raised, `KeyboardInterrupt` for one.
pub(crate) fn wait<T: Send + 'static>(
    runtime: &Runtime,
    work: impl Future<Output = T> + Send + 'static,
    progress: &mut Progress,
) -> PyResult<T> {
    if !is_main_thread() {
        return Ok(runtime.block_on(work));
    }
    // On a thread of the runtime, and without its timers, which stand still while all of its threads compute: this one
    // is free to look.
    let (done, value) = sync_channel(1);
    let task = runtime.spawn(async move {
        // Fails once nobody waits any more.
        let _ = done.send(work.await);
    });
    loop {
        match value.recv_timeout(LOOK_EVERY) {
            Ok(value) => return Ok(value),
            Err(RecvTimeoutError::Disconnected) => {
                let reason = "a defect: a thread that did the work ended".to_owned();
                return Python::attach(|py| Err(Error::Internal { reason }).raise(py));
            }
            Err(RecvTimeoutError::Timeout) => {
                let look = |py: Python<'_>| py.check_signals().and_then(|()| progress.show(py));
                if let Some(Err(raised)) = Python::try_attach(look) {
                    task.abort();
                    return Err(raised);
                }
            }
        }
    }
}

/// Does `work`, which blocks, without the interpreter's lock. On the main thread a signal handler that raises ends the
/// waiting, and the work goes on while the process does.
///
/// # Errors
///
/// What the handler raised.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    what: impl Into<Cow<'static, str>>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    note_thread(py)?;
    let runtime = if is_main_thread() { runtime::get().ok() } else { None };
    let Some(runtime) = runtime else { return Ok(py.detach(work)) };
    let task = runtime.spawn_blocking(work);
    let mut progress = Progress::new(what);
    let lost = || Error::Internal { reason: "a defect: a thread that did the work ended".to_owned() };
    py.detach(|| wait(&runtime, task, &mut progress))?.map_err(|_| lost()).raise(py)
}

/// Does `work` as [`run`] does; the interpreter's end waits for it, for it has rows of Python's.
///
/// # Errors
///
/// What the handler raised.
pub(crate) fn run_write<T: Send + 'static>(
    py: Python<'_>,
    what: String,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let write = Write::begin();
    run(py, what, move || {
        let _write = write;
        work()
    })
}

/// A write on a thread of its own.
struct Write;

impl Write {
    fn begin() -> Self {
        let mut writes = WRITES.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        // Those of the process that this one was forked from are not here.
        let others = if writes.0 == process { writes.1 } else { 0 };
        *writes = (process, others + 1);
        Self
    }
}

impl Drop for Write {
    fn drop(&mut self) {
        WRITES.lock().unwrap_or_else(PoisonError::into_inner).1 -= 1;
        WRITE_DONE.notify_all();
    }
}

/// Waits for the writes that Ctrl-C left to itself. Called once at the end of the interpreter, which the rows still belong to.
#[pyfunction]
pub(crate) fn finish(py: Python<'_>) {
    py.detach(|| {
        let mut writes = WRITES.lock().unwrap_or_else(PoisonError::into_inner);
        while writes.0 == std::process::id() && writes.1 > 0 {
            writes = WRITE_DONE.wait(writes).unwrap_or_else(PoisonError::into_inner);
        }
    });
}
