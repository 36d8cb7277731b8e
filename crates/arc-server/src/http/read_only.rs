//! Which requests a server turns away that only reads: all that would change something, before anything of their bodies is
//! read. What a statement would change the engine refuses.

use hyper::{Method, StatusCode};

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

/// Returns whether a server that only reads refuses a request.
pub(super) fn is_refused(method: &Method, path: &str) -> bool {
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
}
