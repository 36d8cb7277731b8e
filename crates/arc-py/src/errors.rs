//! Turns errors of the engine into the exceptions of `arc.errors`: one class for each kind.

use std::error::Error as _;

use arc_core::{Error, ErrorKind};
use pyo3::prelude::*;

/// Raises an engine's error in Python.
pub(crate) trait Raise<T> {
    /// Returns the value, or the exception of the error's kind.
    fn raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> Raise<T> for arc_core::Result<T> {
    fn raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| exception(py, &error).unwrap_or_else(|failed| failed))
    }
}

/// Refuses the value of an argument.
pub(crate) fn invalid(option: &'static str, reason: impl Into<String>) -> Error {
    Error::InvalidOption { option, reason: reason.into() }
}

/// Returns what a use of an engine raises after its ``close``.
pub(crate) fn closed(py: Python<'_>) -> PyResult<PyErr> {
    let class = py.import("arc.errors")?.getattr("ClosedError")?;
    Ok(PyErr::from_value(class.call1(("the engine is closed",))?))
}

fn exception(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let class = py.import("arc.errors")?.getattr(class_name(error.kind()))?;
    let exception = class.call1((message(error),))?;
    match error {
        Error::Busy { retry_after, .. } => exception.setattr("retry_after", retry_after.as_secs_f64())?,
        Error::TableNotFound { database, table } => {
            exception.setattr("database", database)?;
            exception.setattr("table", table)?;
        }
        Error::Io { source, .. } => exception.setattr("errno", source.raw_os_error())?,
        _ => {}
    }
    Ok(PyErr::from_value(exception))
}

fn class_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidInput => "InvalidInputError",
        ErrorKind::NotFound => "NotFoundError",
        ErrorKind::SchemaConflict => "SchemaConflictError",
        ErrorKind::Busy => "BusyError",
        ErrorKind::Timeout => "QueryTimeoutError",
        ErrorKind::StorageFull => "StorageFullError",
        ErrorKind::Io => "IoError",
        ErrorKind::Corrupt => "CorruptError",
        ErrorKind::Closed => "ClosedError",
        ErrorKind::Unknown => "OutcomeUnknownError",
        ErrorKind::Internal => "InternalError",
        // A kind that this module does not know yet.
        _ => "Error",
    }
}

/// Returns what failed and why: the error and all its sources, outermost first.
pub(crate) fn message(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
