//! Which node a request of a client is for: this one, the one that takes writes, or one that answers queries.
//!
//! Goes by method and path alone. What a statement would change is found by running it: an engine that only reads refuses it,
//! before anything is done.

use hyper::Method;

use crate::{config::Role, http::read_only};

/// What the owner alone knows, or does: such a path, and all below it, whatever the method.
const OWNERS: [&str; 9] = [
    "/api/v1/retention",
    "/api/v1/continuous_queries",
    "/api/v1/console/documents",
    "/api/v1/backup",
    "/api/v1/compaction",
    "/api/v1/import",
    "/api/v1/delete",
    "/api/v1/write",
    "/api/v1/auth/tokens",
];

/// Statements: what they are about is in the body.
const STATEMENTS: [&str; 6] = [
    "/api/v1/query",
    "/api/v1/query/arrow",
    "/api/v1/query/msgpack",
    "/api/v1/query/estimate",
    "/query",
    "/api/v3/query_sql",
];

/// Where a request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Destination {
    /// It is answered here.
    Here,
    /// It is answered here, unless it turns out that it would change something.
    HereIfItReads,
    /// To the node that takes writes.
    Owner,
    /// To a node that answers queries, if there is one.
    Reader,
}

/// Returns where a request goes that has come to a node with this role; `was_handed_on` if another node has sent it.
pub(super) fn destination(role: Role, was_handed_on: bool, method: &Method, path: &str) -> Destination {
    let is_statement = STATEMENTS.contains(&path) || is_measurement(method, path);
    match role {
        Role::Query if is_statement => Destination::HereIfItReads,
        Role::Query if read_only::is_refused(method, path) || is_owners(path) => Destination::Owner,
        Role::Ingest if is_statement && !was_handed_on => Destination::Reader,
        _ => Destination::Here,
    }
}

fn is_owners(path: &str) -> bool {
    OWNERS.iter().any(|of| path.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

/// `GET /api/v1/query/{measurement}`.
fn is_measurement(method: &Method, path: &str) -> bool {
    method == Method::GET && path.strip_prefix("/api/v1/query/").is_some_and(|name| !name.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_goes_to_its_node() {
        for (method, path, at_query, at_ingest) in [
            ("POST", "/write", Destination::Owner, Destination::Here),
            ("POST", "/api/v1/write/msgpack", Destination::Owner, Destination::Here),
            ("GET", "/api/v1/write/line-protocol/stats", Destination::Owner, Destination::Here),
            ("POST", "/api/v1/import/csv", Destination::Owner, Destination::Here),
            ("POST", "/api/v1/delete", Destination::Owner, Destination::Here),
            ("POST", "/api/v1/databases", Destination::Owner, Destination::Here),
            ("GET", "/api/v1/databases", Destination::Here, Destination::Here),
            ("DELETE", "/api/v1/databases/d", Destination::Owner, Destination::Here),
            ("POST", "/api/v1/query", Destination::HereIfItReads, Destination::Reader),
            ("GET", "/api/v1/query/cpu", Destination::HereIfItReads, Destination::Reader),
            ("POST", "/query", Destination::HereIfItReads, Destination::Reader),
            ("DELETE", "/api/v1/queries/7", Destination::Here, Destination::Here),
            ("GET", "/api/v1/retention", Destination::Owner, Destination::Here),
            ("GET", "/api/v1/retentionx", Destination::Here, Destination::Here),
            ("PUT", "/api/v1/console/documents/7", Destination::Owner, Destination::Here),
            ("GET", "/api/v1/auth/tokens", Destination::Owner, Destination::Here),
            ("POST", "/api/v1/auth/verify", Destination::Here, Destination::Here),
            ("GET", "/health", Destination::Here, Destination::Here),
            ("GET", "/", Destination::Here, Destination::Here),
        ] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(destination(Role::Query, false, &method, path), at_query, "{method} {path}");
            assert_eq!(destination(Role::Ingest, false, &method, path), at_ingest, "{method} {path}");
            assert_eq!(destination(Role::Ingest, true, &method, path), Destination::Here, "{method} {path}");
            assert_eq!(destination(Role::All, false, &method, path), Destination::Here, "{method} {path}");
        }
    }
}
