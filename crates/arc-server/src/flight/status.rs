//! What a call that fails is answered: the one mapping from failures to the codes of gRPC.

use hyper::StatusCode;
use tonic::{Code, Status};

use crate::errors::Failure;

/// Says in gRPC's standard way when a retry is worth while.
const RETRY: &str = "grpc-retry-pushback-ms";

impl From<Failure> for Status {
    fn from(failure: Failure) -> Self {
        let mut status = Self::new(code_of(failure.status), failure.message);
        if let Some(after) = failure.retry_after {
            status.metadata_mut().insert(RETRY, u64::try_from(after.as_millis()).unwrap_or(u64::MAX).into());
        }
        status
    }
}

fn code_of(status: StatusCode) -> Code {
    match status {
        StatusCode::NOT_FOUND => Code::NotFound,
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::FORBIDDEN => Code::PermissionDenied,
        StatusCode::CONFLICT => Code::AlreadyExists,
        StatusCode::UNPROCESSABLE_ENTITY => Code::FailedPrecondition,
        StatusCode::NOT_IMPLEMENTED => Code::Unimplemented,
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::INSUFFICIENT_STORAGE => Code::ResourceExhausted,
        StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT => Code::DeadlineExceeded,
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => Code::Unavailable,
        // What a query that was cancelled is answered over HTTP.
        status if status.as_u16() == 499 => Code::Cancelled,
        status if status.is_client_error() => Code::InvalidArgument,
        _ => Code::Internal,
    }
}

/// Returns the failure for something that Flight has and this server has not.
pub(super) fn unsupported(what: &str) -> Failure {
    Failure::new(StatusCode::NOT_IMPLEMENTED, what)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use arc_core::Error;

    use super::*;

    #[test]
    fn each_failure_has_its_code() {
        let sql = || Error::Sql { reason: "x".into() };
        let table = || Error::TableNotFound { database: "d".into(), table: "t".into() };
        for (failure, code) in [
            (sql().into(), Code::InvalidArgument),
            (table().into(), Code::NotFound),
            (Failure::busy("x", Duration::from_millis(1_500)), Code::Unavailable),
            (Error::Timeout { after: Duration::ZERO }.into(), Code::DeadlineExceeded),
            (Failure::too_large("x"), Code::ResourceExhausted),
            (Failure::new(StatusCode::FORBIDDEN, "x"), Code::PermissionDenied),
            (Failure::new(StatusCode::UNAUTHORIZED, "x"), Code::Unauthenticated),
            (unsupported("x"), Code::Unimplemented),
            (Failure::bug(), Code::Internal),
        ] {
            let failure: Failure = failure;
            assert_eq!(Status::from(failure).code(), code);
        }
        let busy = Status::from(Failure::busy("x", Duration::from_millis(1_500)));
        assert_eq!(busy.metadata().get(RETRY).unwrap(), "1500");
    }
}
