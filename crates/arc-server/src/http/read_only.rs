//! What is different in a server that only reads. It turns away what would change something, before anything of its body is
//! read; what a statement would change the engine refuses. And it has to look at files to know what there is, where a
//! server that writes knows: what asks for that runs on a thread that may wait.

use axum::{extract::Request, middleware::Next, response::Response};
use hyper::{Method, StatusCode};
use tokio::{runtime::Handle, task::JoinError};

use crate::errors::Failure;

/// What is asked by `POST` or `DELETE` and changes nothing that is stored.
const QUESTIONS: [&str; 9] = [
    "/api/v1/query",
    "/api/v1/query/arrow",
    "/api/v1/query/msgpack",
    "/api/v1/query/estimate",
    "/query",
    "/api/v3/query_sql",
    "/ping",
    "/api/v1/auth/verify",
    "/api/v1/auth/cache/invalidate",
];

/// Paths below which the same holds: queries under way, which can be ended, and Arrow Flight, whose calls go to the engine.
const BELOW: [&str; 2] = ["/api/v1/queries/", "/arrow.flight.protocol.FlightService/"];

/// What is answered from what there is, without a statement: such a path, and all below it. Statements are planned on
/// threads that may wait, and what only probes whether the server lives asks for the last look.
const CATALOG: [&str; 6] = [
    "/api/v1/databases",
    "/api/v1/measurements",
    "/api/v1/retention",
    "/api/v2/buckets",
    "/api/v3/configure",
    "/query",
];

/// Returns whether a request asks what there is.
pub(super) fn looks(path: &str) -> bool {
    let is_below = |of: &str| path.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    CATALOG.iter().any(|of| is_below(of))
}

/// Runs a request on a thread that may wait; those that serve connections may not.
pub(super) async fn run_aside(next: Next, request: Request) -> Result<Response, JoinError> {
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || runtime.block_on(next.run(request))).await
}

/// Returns whether a server that only reads refuses a request.
pub(crate) fn is_refused(method: &Method, path: &str) -> bool {
    !method.is_safe() && !QUESTIONS.contains(&path) && !BELOW.iter().any(|below| path.starts_with(below))
}

/// What such a request is answered.
pub(super) fn refusal() -> Failure {
    let text = "this server only reads what another process writes (--reader): send writes and changes to the server that \
                has the data directory";
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_pass_and_changes_do_not() {
        for (method, path, is_asked) in [
            (Method::GET, "/api/v1/databases", true),
            (Method::POST, "/api/v1/databases", false),
            (Method::POST, "/write", false),
            (Method::POST, "/api/v1/query", true),
            (Method::GET, "/api/v1/query/cpu", true),
            (Method::DELETE, "/api/v1/queries/7", true),
            (Method::POST, "/api/v1/auth/tokens", false),
            (Method::POST, "/api/v1/query/x", false),
            (Method::POST, "/arrow.flight.protocol.FlightService/GetFlightInfo", true),
        ] {
            assert_eq!(!is_refused(&method, path), is_asked, "{method} {path}");
        }
        assert_eq!(refusal().status, 405);
    }

    #[test]
    fn what_asks_for_tables_may_wait_and_probes_and_statements_do_not() {
        for (path, is_aside) in [
            ("/api/v1/databases", true),
            ("/api/v1/databases/d/measurements", true),
            ("/api/v1/databasesx", false),
            ("/query", true),
            ("/api/v1/query", false),
            ("/health", false),
            ("/ready", false),
            ("/metrics", false),
            ("/debug/vars", false),
        ] {
            assert_eq!(looks(path), is_aside, "{path}");
        }
    }
}
