//! Errors of the engine as ADBC has them: a status and one text.

use std::error::Error as _;

use adbc_core::error::{Error, Result, Status};
use arc_core::ErrorKind;
use arrow::error::ArrowError;

/// Returns an error of the engine with the status that fits, and with what lies under it.
pub(crate) fn of_engine(error: &arc_core::Error) -> Error {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    if matches!(error, arc_core::Error::InUse { .. }) {
        text.push_str(r#"; to read while another process writes, set the option "arc.mode" to "r""#);
    }
    Error::with_message_and_status(text, status(error))
}

fn status(error: &arc_core::Error) -> Status {
    match error {
        arc_core::Error::DatabaseExists { .. } | arc_core::Error::TableExists { .. } => Status::AlreadyExists,
        arc_core::Error::InUse { .. } => Status::InvalidState,
        _ => match error.kind() {
            ErrorKind::InvalidInput => Status::InvalidArguments,
            ErrorKind::NotFound => Status::NotFound,
            ErrorKind::SchemaConflict => Status::AlreadyExists,
            ErrorKind::Timeout => Status::Timeout,
            ErrorKind::Busy | ErrorKind::StorageFull | ErrorKind::Io => Status::IO,
            ErrorKind::Corrupt => Status::Integrity,
            ErrorKind::Closed => Status::InvalidState,
            ErrorKind::Internal => Status::Internal,
            _ => Status::Unknown,
        },
    }
}

pub(crate) fn invalid(text: impl Into<String>) -> Error {
    Error::with_message_and_status(text, Status::InvalidArguments)
}

pub(crate) fn state(text: impl Into<String>) -> Error {
    Error::with_message_and_status(text, Status::InvalidState)
}

pub(crate) fn unsupported(text: impl Into<String>) -> Error {
    Error::with_message_and_status(text, Status::NotImplemented)
}

pub(crate) fn cancelled() -> Error {
    Error::with_message_and_status("the statement was cancelled", Status::Cancelled)
}

/// Returns an error as a stream in C can carry it: a code and a text without NUL.
pub(crate) fn stream_error(error: &Error) -> ArrowError {
    let text = error.message.replace('\0', "\u{fffd}");
    match error.status {
        Status::IO => ArrowError::IoError(text, std::io::Error::other("see the message")),
        _ => ArrowError::ComputeError(text),
    }
}

/// Turns results of the engine into those of ADBC.
pub(crate) trait OrAdbc<T> {
    fn or_adbc(self) -> Result<T>;
}

impl<T> OrAdbc<T> for arc_core::Result<T> {
    fn or_adbc(self) -> Result<T> {
        self.map_err(|error| of_engine(&error))
    }
}
