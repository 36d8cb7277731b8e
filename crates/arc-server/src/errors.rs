//! What a request that fails is answered: status, text, and the three shapes that clients read it from.
//!
//! Owns the one mapping from [`ErrorKind`] to a status. Never decides that something is an error.

use std::{io, time::Duration};

use arc_core::{Error, ErrorKind};
pub(crate) use arc_edge::chain;
use axum::response::{IntoResponse, Response};
use hyper::{
    HeaderMap, StatusCode,
    header::{self, HeaderValue},
};
use serde_json::json;
use ulid::Ulid;

use crate::logging::without_tokens;

/// A request that failed, before it is put into a shape.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    pub(crate) retry_after: Option<Duration>,
    /// The methods that would do, if this one does not.
    allow: Option<&'static str>,
    needs_owner: bool,
}

/// What an answer has with it, beside its headers, where an engine that only reads has refused a change before any of it was
/// done: another node may take it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NeedsOwner;

/// What who asked is told where the disk, or a share of it, is full.
pub(crate) const DISK_FULL: &str = "the server's disk is full";

/// Returns the status that stands for a kind of engine error, here and nowhere else.
pub(crate) fn status_of(kind: ErrorKind) -> StatusCode {
    match kind {
        // A type conflict can never succeed as it is; InfluxDB answers 400 too, and clients drop the batch on it.
        ErrorKind::InvalidInput | ErrorKind::SchemaConflict => StatusCode::BAD_REQUEST,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Busy | ErrorKind::Closed => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        ErrorKind::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Returns the status that stands for what failed of a file that the server writes for a request.
pub(crate) fn status_of_io(error: &io::Error) -> StatusCode {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StatusCode::INSUFFICIENT_STORAGE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl Failure {
    /// A token in what a client sent, and is told of, is left out: proxies and clients keep answers.
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let message = without_tokens(message.into());
        Self { status, message, retry_after: None, allow: None, needs_owner: false }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    }

    pub(crate) fn busy(message: impl Into<String>, retry_after: Duration) -> Self {
        Self { retry_after: Some(retry_after), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, message) }
    }

    /// The request would do with one of the methods `allow`.
    pub(crate) fn method_not_allowed(message: &str, allow: &'static str) -> Self {
        Self { allow: Some(allow), ..Self::new(StatusCode::METHOD_NOT_ALLOWED, message) }
    }

    /// The request died of a bug of ours; what happened is in the log, not in the answer.
    pub(crate) fn bug() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error; the server's log has the details")
    }

    /// Returns the word that InfluxDB 2 clients look for in `code`.
    pub(crate) fn code(&self) -> &'static str {
        match self.status {
            StatusCode::NOT_FOUND => "not found",
            StatusCode::UNAUTHORIZED => "unauthorized",
            StatusCode::FORBIDDEN => "forbidden",
            StatusCode::METHOD_NOT_ALLOWED => "method not allowed",
            StatusCode::CONFLICT => "conflict",
            StatusCode::REQUEST_TIMEOUT | StatusCode::SERVICE_UNAVAILABLE => "unavailable",
            StatusCode::PAYLOAD_TOO_LARGE => "request too large",
            status if status.is_client_error() => "invalid",
            _ => "internal error",
        }
    }

    /// Answers with `body`, which is in whatever shape the endpoint promises.
    pub(crate) fn with_body(&self, body: &serde_json::Value) -> Response {
        let mut response = json_response(self.status, body.to_string());
        self.mark(&mut response);
        response
    }

    /// Answers with bytes whose type the caller sets.
    pub(crate) fn with_bytes(&self, bytes: Vec<u8>) -> Response {
        let mut response = (self.status, bytes).into_response();
        self.mark(&mut response);
        response
    }

    fn mark(&self, response: &mut Response) {
        if self.needs_owner {
            response.extensions_mut().insert(NeedsOwner);
        }
        let headers: &mut HeaderMap = response.headers_mut();
        if let Some(after) = self.retry_after {
            // Whole seconds, rounded up: 0 would invite clients to come back at once.
            let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
            headers.insert(header::RETRY_AFTER, seconds.max(1).into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            // Not Basic, though that is taken: browsers would keep what they are told, and send it along for other pages.
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"arc\""));
        }
        if let Some(allow) = self.allow {
            headers.insert(header::ALLOW, HeaderValue::from_static(allow));
        }
    }
}

impl IntoResponse for Failure {
    /// The shape of writes and of everything without a shape of its own; it has the keys of all InfluxDB versions.
    fn into_response(self) -> Response {
        let mut body = json!({ "error": self.message, "message": self.message, "code": self.code() });
        if [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&self.status) {
            // What clients of Arc's Go server look for there.
            body.as_object_mut().map(|body| body.insert("success".to_owned(), false.into()));
        }
        self.with_body(&body)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match &error {
            // What the draft of the header `Idempotency-Key` asks for; the request as such is a good one.
            Error::IdempotencyKeyReused { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Error::OutOfScope { .. } | Error::DatabaseOutOfScope { .. } => StatusCode::FORBIDDEN,
            Error::Diverged { .. } => StatusCode::CONFLICT,
            Error::ReadOnly => StatusCode::METHOD_NOT_ALLOWED,
            error => status_of(error.kind()),
        };
        let retry_after = match &error {
            Error::Expired | Error::OwnerUnreachable { .. } => Some(Duration::from_secs(1)),
            Error::Busy { retry_after, .. } => Some(*retry_after),
            // Closing takes moments; a failed log takes a restart. Either way a retry may find a working server.
            _ if status == StatusCode::SERVICE_UNAVAILABLE => Some(Duration::from_secs(5)),
            _ => None,
        };
        let needs_owner = matches!(error, Error::ReadOnly);
        Self { retry_after, needs_owner, ..Self::new(status, public(&error)) }
    }
}

/// Returns what a client is told of an error: all of it, unless it is about the server's own files or a bug. Then it names a
/// line of the log that has the rest, for that has paths and what libraries said.
pub(crate) fn public(error: &Error) -> String {
    let told = match error {
        Error::InsertStopped { rows, source } => {
            return format!("the INSERT stopped; {rows} rows are stored: {}", public(source));
        }
        Error::BadTarget { reason, .. } => return format!("cannot write to the folder on the server: {reason}"),
        Error::InUse { .. }
        | Error::NotADataDirectory { .. }
        | Error::OtherStore { .. }
        | Error::NewerFormat { .. } => "a directory on the server cannot be used",
        Error::NotInStore { .. } => {
            "it is on the disk of the server's machine, and whether it is in the object store, too, is not known yet; with an \
             Idempotency-Key it can be sent again to wait for that"
        }
        // What failed is in the log, and every write from then on is answered this.
        Error::Closed { .. } => return "the engine is closed to writes; GET /ready says why".to_owned(),
        error => match error.kind() {
            ErrorKind::Io => "the server cannot read or write one of its files",
            ErrorKind::StorageFull => DISK_FULL,
            ErrorKind::Corrupt => "one of the server's files is damaged",
            ErrorKind::Internal => "internal error",
            ErrorKind::Unknown => {
                "the log failed, and whether this request survives is known when the engine is opened again"
            }
            _ => return chain(error),
        },
    };
    let id = Ulid::new();
    tracing::error!(%id, error = chain(error), "{told}");
    format!("{told}; the server's log has the details under {id}")
}

/// Returns a response of type `application/json`.
pub(crate) fn json_response(status: StatusCode, body: impl Into<axum::body::Body>) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body.into()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_status() {
        for (kind, status) in [
            (ErrorKind::InvalidInput, 400),
            (ErrorKind::SchemaConflict, 400),
            (ErrorKind::NotFound, 404),
            (ErrorKind::Busy, 503),
            (ErrorKind::Closed, 503),
            (ErrorKind::Timeout, 504),
            (ErrorKind::StorageFull, 507),
            (ErrorKind::Unknown, 500),
            (ErrorKind::Io, 500),
            (ErrorKind::Corrupt, 500),
            (ErrorKind::Internal, 500),
        ] {
            assert_eq!(status_of(kind).as_u16(), status, "{kind:?}");
        }
    }

    #[test]
    fn retry_after_is_never_zero() {
        for (after, header) in [(0, "1"), (1, "1"), (1000, "1"), (1001, "2")] {
            let response = Failure::busy("full", Duration::from_millis(after)).into_response();
            assert_eq!(response.headers()[header::RETRY_AFTER], header);
        }
    }

    #[test]
    fn causes_are_part_of_the_text() {
        let cause = std::io::Error::other("disk on fire");
        let error = Error::Io { action: "sync", path: "wal/1".into(), source: cause };
        assert_eq!(chain(&error), "cannot sync wal/1: disk on fire");
    }

    #[test]
    fn clients_are_not_told_paths_and_panics() {
        let io = |kind| Error::Io { action: "open", path: "/srv/secret/x".into(), source: kind };
        let panicked = || Error::Internal { reason: "a query panicked: secret".into() };
        for (error, status, told) in [
            (io(std::io::Error::other("secret")), 500, "cannot read or write one of its files"),
            (io(std::io::ErrorKind::StorageFull.into()), 507, "disk is full"),
            (Error::Corrupt { path: "/srv/secret".into(), offset: 7, reason: "secret".into() }, 500, "damaged"),
            (panicked(), 500, "internal error"),
            (Error::OutcomeUnknown { reason: "cannot sync /srv/secret".into() }, 500, "whether this request survives"),
            (Error::Closed { reason: "cannot sync /srv/secret".into() }, 503, "closed to writes"),
            (Error::InsertStopped { rows: 7, source: Box::new(panicked()) }, 500, "7 rows are stored: internal error"),
        ] {
            let failure = Failure::from(error);
            assert_eq!(failure.status, status, "{failure:?}");
            assert!(failure.message.contains(told) && !failure.message.contains("secret"), "{failure:?}");
        }
        let sql = Failure::from(Error::Sql { reason: "no column a".into() });
        assert_eq!(sql.message, "no column a");
    }
}
