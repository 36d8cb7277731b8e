//! The program `arc-server`, which the wheel brings along in this library.

use std::{ffi::OsString, io::Write as _, process::ExitCode};

use pyo3::prelude::*;

/// Runs ``arc-server`` with ``arguments``, its name first, and returns what a process ends with. For a process that does nothing
/// else: it takes the signals, and what it sets up stays.
#[pyfunction]
pub(crate) fn run_server(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    let ended = py.detach(|| arc_server::run(arguments, std::env::vars_os()));
    // A program of Rust does so at its end.
    let _ = std::io::stdout().flush();
    (0..=u8::MAX).find(|code| ExitCode::from(*code) == ended).unwrap_or(1)
}
