//! The threads that queries run on: one tokio runtime for the whole module, made by the first query.
//!
//! Never used for writes, which wait on the engine's own threads.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::runtime::{Builder, Runtime};

/// The runtime and the process whose threads it has.
static RUNTIME: Mutex<Option<(u32, Arc<Runtime>)>> = Mutex::new(None);

/// Returns the runtime; makes one if there is none in this process.
///
/// # Errors
///
/// That of the operating system, when it refuses the threads.
pub(crate) fn get() -> io::Result<Arc<Runtime>> {
    let mut current = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((owner, runtime)) = current.as_ref()
        && *owner == process
    {
        return Ok(Arc::clone(runtime));
    }
    let runtime = Arc::new(Builder::new_multi_thread().enable_all().thread_name("arc-query").build()?);
    let before = current.replace((process, Arc::clone(&runtime)));
    // That of the process this one was forked from: its threads are not here, so it could never end.
    std::mem::forget(before);
    Ok(runtime)
}
