//! From DataFusion's errors to ours: who is to blame, in words a caller can use.

use std::time::Duration;

use datafusion::common::DataFusionError;

use crate::Error;

/// When a query that ran out of memory is worth a second try.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Returns the error for a query that ran longer than `timeout`.
pub(super) fn timed_out(timeout: Duration) -> Error {
    Error::Sql { reason: format!("query timed out after {} s", timeout.as_secs_f64()) }
}

/// Returns our error for DataFusion's.
pub(super) fn from_datafusion(error: DataFusionError) -> Error {
    match error.find_root() {
        DataFusionError::ResourcesExhausted(_) => {
            Error::Busy { reason: "queries ran out of memory", retry_after: RETRY_AFTER }
        }
        DataFusionError::ObjectStore(_) | DataFusionError::IoError(_) | DataFusionError::ParquetError(_) => {
            Error::internal(error.strip_backtrace())
        }
        root => Error::Sql { reason: root.strip_backtrace() },
    }
}
