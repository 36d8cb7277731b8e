//! Waiting that Ctrl-C ends: Python runs its signal handlers on its main thread only, and not while that waits here.

use std::{future::Future, sync::OnceLock, thread::ThreadId, time::Duration};

use arc_core::Error;
use pyo3::prelude::*;
use tokio::{runtime::Runtime, time::timeout};

use crate::errors::Raise as _;

/// How often the main thread looks for signals while it waits.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The main thread of the interpreter, once one of its calls was seen.
static MAIN: OnceLock<ThreadId> = OnceLock::new();

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

/// Waits for `work` without the interpreter's lock; on the main thread, ends it when a signal handler raises.
///
/// # Errors
///
/// What the handler raised, `KeyboardInterrupt` for one.
pub(crate) fn wait<T: Send + 'static>(
    runtime: &Runtime,
    work: impl Future<Output = T> + Send + 'static,
) -> PyResult<T> {
    if !is_main_thread() {
        return Ok(runtime.block_on(work));
    }
    // On a thread of the runtime: computing that does not pause leaves this one free to look.
    let mut task = runtime.spawn(work);
    loop {
        match runtime.block_on(async { timeout(LOOK_EVERY, &mut task).await }) {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(_)) => {
                let reason = "a panic while a statement was run".to_owned();
                return Python::attach(|py| Err(Error::Internal { reason }).raise(py));
            }
            Err(_) => {
                if let Some(Err(raised)) = Python::try_attach(|py| py.check_signals()) {
                    task.abort();
                    return Err(raised);
                }
            }
        }
    }
}
