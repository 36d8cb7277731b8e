//! Values that belong to one process.
//!
//! A fork copies the memory of the engine but none of its threads: a call in the child would wait for ever, and dropping
//! the engine there would wait for threads that do not exist. Never shared between processes, so never dropped there. Nor
//! can another engine be opened there: the lists of who waits for a lock have threads whose memory new ones are given.

use pyo3::prelude::*;

use crate::errors::Raise as _;

/// Raises `ClosedError` in a fork of a process that had opened an engine.
pub(crate) fn check_process(py: Python<'_>) -> PyResult<()> {
    adbc_driver_arc::check_process().raise(py)
}

/// Why nothing is to be had of it in another process.
pub(crate) const FORKED: &str = "this process is a fork of the one that opened it; fork before that, or start it with \
                                 multiprocessing.get_context(\"spawn\")";

/// A value that only the process that made it may use or drop.
#[derive(Debug)]
pub(crate) struct Owned<T: Send> {
    value: Option<T>,
    process: u32,
}

impl<T: Send> Owned<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Some(value), process: std::process::id() }
    }

    /// Returns the value, or raises `ClosedError` in a forked child.
    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<&T> {
        let own = self.value.as_ref().filter(|_| self.process == std::process::id());
        let closed = || arc_core::Error::Closed { reason: FORKED.into() };
        own.ok_or_else(closed).raise(py)
    }
}

impl<T: Send> Drop for Owned<T> {
    fn drop(&mut self) {
        let value = self.value.take();
        if self.process != std::process::id() {
            std::mem::forget(value);
            return;
        }
        // Python drops with its lock held, and the last engine waits for its threads. The lock cannot be taken any more
        // once the interpreter ends; there is nobody to wait for it then.
        let mut value = Some(value);
        let dropped = Python::try_attach(|py| {
            let value = value.take();
            py.detach(|| drop(value));
        });
        if dropped.is_none() {
            drop(value);
        }
    }
}
