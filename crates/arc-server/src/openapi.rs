//! The description of all endpoints: shapes, units, errors and where a token goes, as OpenAPI 3.1.
//!
//! Kept by hand in `openapi.json`, and true by two tests: `tests/it/openapi.rs` compares it with the routes, and
//! `scripts/clients/test_openapi.py` sends what it allows and what it forbids. Never says anything about data.

use axum::response::Response;
use hyper::StatusCode;

use crate::errors::json_response;

const DOCUMENT: &str = include_str!("../openapi.json");

/// `GET /api/openapi.json`.
pub(crate) async fn document() -> Response {
    json_response(StatusCode::OK, DOCUMENT)
}
