//! Tells people at a terminal or a notebook how far a call is that takes long.
//!
//! Owns when that is told. What it looks like, and whether anybody wants to see it, is `arc/progress.py`.

use std::{borrow::Cow, time::Duration};

use pyo3::prelude::*;
use tokio::time::Instant;

use crate::interrupt;

/// What is done sooner is not shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often it is shown anew.
const EVERY: Duration = Duration::from_millis(200);

/// How far one call is.
#[derive(Debug)]
pub(crate) struct Progress {
    what: Cow<'static, str>,
    rows: u64,
    began: Instant,
    shown: Option<Instant>,
}

impl Progress {
    /// Begins now; `what` is a phrase such as "query".
    pub(crate) fn new(what: impl Into<Cow<'static, str>>) -> Self {
        Self { what: what.into(), rows: 0, began: Instant::now(), shown: None }
    }

    /// Counts rows that are done.
    pub(crate) fn count(&mut self, rows: usize) {
        self.rows += rows as u64;
    }

    /// Returns whether it is time to show it: then the caller takes the interpreter's lock for it.
    pub(crate) fn is_due(&self) -> bool {
        self.began.elapsed() >= PATIENCE && self.shown.is_none_or(|at| at.elapsed() >= EVERY)
    }

    /// Shows it, if it is time. On the main thread only, where output belongs to what the user runs.
    ///
    /// # Errors
    ///
    /// What a signal handler raised meanwhile.
    pub(crate) fn show(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.is_due() {
            self.shown = Some(Instant::now());
            let state = (&*self.what, self.began.elapsed().as_secs_f64(), self.rows);
            py.import("arc.progress")?.call_method1("show", state)?;
        }
        Ok(())
    }

    /// Takes away what is shown.
    pub(crate) fn clear(&mut self) {
        if self.shown.take().is_some() && interrupt::is_main_thread() {
            // That output fails is nobody's error.
            let _ = Python::try_attach(|py| py.import("arc.progress")?.call_method0("clear").map(drop));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
