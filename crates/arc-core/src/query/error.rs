//! From DataFusion's errors to ours: who is to blame, in words a caller can use.

use std::{any::Any, io, sync::Arc, time::Duration};

use arrow::error::ArrowError;
use datafusion::common::DataFusionError;
use parquet::errors::ParquetError;
use tokio::task::JoinError;

use super::account::{ENDED, OVER_ITS_LIMIT};
use crate::{
    Error,
    store::{EXPIRED, UNANSWERED},
};

/// When a query that ran out of something is worth a second try.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What errors say that name a damaged data file, before they do.
pub(super) const ROTTEN: &str = "damaged data file";

/// Returns the error for a query that ran longer than `timeout`.
pub(super) fn timed_out(timeout: Duration) -> Error {
    Error::Timeout { after: timeout }
}

/// Returns the error for a query that found some limit exhausted.
pub(super) fn busy(reason: &'static str) -> Error {
    Error::Busy { reason, retry_after: RETRY_AFTER }
}

/// Returns the error for a panic, which would be a bug of a library: input is checked where it is
/// ours.
pub(super) fn panicked(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    tracing::error!(text, "a query panicked");
    Error::internal(format!("a query panicked: {text}"))
}

/// Returns our error for DataFusion's.
///
/// What a statement causes is the statement's error; what memory, disk and our own files cause is
/// not.
pub(super) fn from_datafusion(error: DataFusionError) -> Error {
    match error {
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => from_datafusion(*inner),
        DataFusionError::Collection(errors) => match errors.into_iter().next() {
            Some(first) => from_datafusion(first),
            None => Error::internal("a query failed without saying why"),
        },
        DataFusionError::External(external) => from_external(external),
        DataFusionError::ArrowError(arrow, _) => from_arrow(*arrow),
        other => from_leaf(other.find_root()),
    }
}

/// Returns an error of ours as one that passes through DataFusion.
pub(super) fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Refuses a statement while it is planned or runs, below DataFusion.
pub(super) fn refuse<T>(reason: impl Into<String>) -> datafusion::common::Result<T> {
    Err(external(Error::Sql { reason: reason.into() }))
}

/// An error that passed through DataFusion in a box: ours, one of its own, or one of a library such
/// as that of regular expressions, which a statement's values cause.
fn from_external(error: Box<dyn std::error::Error + Send + Sync>) -> Error {
    let error = match error.downcast::<Error>() {
        Ok(ours) => return *ours,
        Err(other) => other,
    };
    match error.downcast::<DataFusionError>() {
        Ok(inner) => from_datafusion(*inner),
        Err(other) if is_about_storage(&*other) => storage(&other.to_string()),
        Err(other) if is_of_a_task(&*other) => task_failed(&other.to_string()),
        Err(other) => Error::Sql { reason: other.to_string() },
    }
}

/// Returns whether an error is the end of a task: a panic. Several that wait for one task share it.
fn is_of_a_task(error: &(dyn std::error::Error + 'static)) -> bool {
    error.is::<JoinError>() || error.is::<Arc<JoinError>>()
}

fn task_failed(message: &str) -> Error {
    Error::internal(format!("a query task failed: {message}"))
}

fn is_about_storage(error: &(dyn std::error::Error + 'static)) -> bool {
    error.is::<ParquetError>() || error.is::<object_store::Error>() || error.is::<io::Error>()
}

/// What is said of spilled data that would be more than there may be, and by the system of more than it has room for.
const SPILLED_ENOUGH: &str = "used disk space during the spilling process has exceeded";
const NO_SPACE: &str = "No space left on device";

/// What the reader of Parquet says when a condition that it looks at fails of a row.
const IN_CONDITION: &str = "Error evaluating filter predicate: ";

fn storage(message: &str) -> Error {
    // By its text, for that is all that is left of some errors on their way through DataFusion.
    if let Some((_, reason)) = message.split_once(IN_CONDITION) {
        return Error::Sql { reason: format!("a condition cannot be computed: {reason}") };
    }
    if message.contains(UNANSWERED) {
        tracing::warn!(message, "a query met an object store that does not answer");
        return busy("the object store does not answer");
    }
    if message.contains(EXPIRED) {
        return Error::Expired;
    }
    if message.contains(SPILLED_ENOUGH) {
        tracing::warn!(message, "queries have spilled as much as they may");
        return busy("queries have spilled half of what was free on the disk");
    }
    if message.contains(NO_SPACE) {
        return Error::io("spill to", "tmp/query", io::ErrorKind::StorageFull.into());
    }
    if let Some(rotten) = rotten(message) {
        tracing::error!(error = %rotten, "a query met a damaged data file");
        return rotten;
    }
    Error::internal(format!("cannot read or spill data: {message}"))
}

/// Returns the damage that a message tells of, in the words of [`Error::Corrupt`].
fn rotten(message: &str) -> Option<Error> {
    let (_, named) = message.split_once(ROTTEN)?;
    let (_, named) = named.split_once(": ")?;
    let (path, found) = named.split_once(" is damaged at byte ")?;
    let (offset, reason) = found.split_once(": ")?;
    Some(Error::corrupt(path, offset.parse().ok()?, reason.lines().next().unwrap_or_default()))
}

fn from_arrow(error: ArrowError) -> Error {
    match error {
        ArrowError::ExternalError(external) => from_external(external),
        ArrowError::MemoryError(_) => busy("a query ran out of memory"),
        ArrowError::IoError(..) | ArrowError::IpcError(_) | ArrowError::ParquetError(_) => storage(&error.to_string()),
        ArrowError::ComputeError(reason)
        | ArrowError::CastError(reason)
        | ArrowError::ParseError(reason)
        | ArrowError::ArithmeticOverflow(reason)
        | ArrowError::InvalidArgumentError(reason) => Error::Sql { reason },
        other => Error::Sql { reason: other.to_string() },
    }
}

fn from_leaf(error: &DataFusionError) -> Error {
    match error {
        // Of several that wait for one thing each gets a part in its error.
        DataFusionError::External(shared) if shared.is::<Error>() || is_about_storage(&**shared) => {
            match shared.downcast_ref() {
                Some(Error::Busy { reason, .. }) => busy(reason),
                Some(Error::Sql { reason }) => Error::Sql { reason: reason.clone() },
                _ => storage(&shared.to_string()),
            }
        }
        DataFusionError::ResourcesExhausted(reason) if reason.contains(OVER_ITS_LIMIT) => {
            Error::Sql { reason: OVER_ITS_LIMIT.to_owned() }
        }
        DataFusionError::ResourcesExhausted(reason) if reason.contains(ENDED) => busy(ENDED),
        DataFusionError::ResourcesExhausted(reason) => {
            tracing::warn!(reason, "a query ran out of memory");
            busy("a query ran out of memory")
        }
        DataFusionError::ObjectStore(_) | DataFusionError::IoError(_) | DataFusionError::ParquetError(_) => {
            storage(&error.message())
        }
        DataFusionError::External(shared) if is_of_a_task(&**shared) => task_failed(&shared.to_string()),
        DataFusionError::ExecutionJoin(_) => task_failed(&error.message()),
        DataFusionError::Internal(reason) => {
            tracing::error!(reason, "a statement met a bug of the query engine");
            Error::Sql { reason: format!("the statement cannot be run: {reason}") }
        }
        DataFusionError::NotImplemented(reason) => Error::Sql { reason: format!("not supported: {}", unknown(reason)) },
        DataFusionError::SQL(parser, _) => Error::Sql { reason: parser.to_string() },
        other => Error::Sql { reason: tidy(&other.message()) },
    }
}

/// Returns what a plan cannot have, without the tree of the expression.
fn unknown(reason: &str) -> &str {
    let Some((_, expression)) = reason.split_once("does not support logical expression ") else {
        return match reason.split_once("in sqltorel: ") {
            Some((_, node)) => named(node),
            None => reason,
        };
    };
    match named(expression) {
        "InSubquery" => "IN (SELECT …) as a value: it can be a condition of WHERE, or of a JOIN",
        "Exists" => "EXISTS as a value: it can be a condition of WHERE, or (SELECT count(*) FROM …) > 0",
        "ScalarSubquery" => "a subquery that is compared with the row outside by more than =: a JOIN says the same",
        name => name,
    }
}

/// Returns the name that the text of an expression begins with.
fn named(expression: &str) -> &str {
    expression.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or(expression)
}

/// Returns a message without what is meant for the library's own developers.
fn tidy(message: &str) -> String {
    // Says which overloads were tried and why each failed, before it says what to do.
    let no_match = message.find("No function matches").and_then(|start| message.get(start..));
    let message = no_match.unwrap_or(message);
    // Quotes change nothing here, as names are taken as they are written, and the setting is not one of ours.
    match message.split_once(" You can use double quotes to refer to the ") {
        Some((before, advice)) => {
            let after = advice.split_once(" configuration.").map_or("", |(_, after)| after);
            format!("{before}{after}")
        }
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[tokio::test]
    async fn a_task_that_ends_is_no_fault_of_a_statement() {
        let task = tokio::spawn(std::future::pending::<()>());
        task.abort();
        let ended = Arc::new(task.await.unwrap_err());
        let external = || DataFusionError::External(Box::new(Arc::clone(&ended)));
        let in_context = DataFusionError::Context("Join Error".to_owned(), Box::new(external()));
        let shared = DataFusionError::Shared(Arc::new(external()));
        for error in [external(), in_context, shared] {
            assert_eq!(from_datafusion(error).kind(), ErrorKind::Internal);
        }
    }
}
