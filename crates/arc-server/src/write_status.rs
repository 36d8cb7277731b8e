//! What clients of Arc's Go server ask about writes: how many there were, whether they are welcome, what MessagePack looks like,
//! and that everything be put into data files now.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use hyper::StatusCode;
use serde_json::json;

use crate::{
    app::App,
    auth::Caller,
    delete::blocking,
    errors::{Failure, json_response},
    timestamp,
    write::Format,
};

/// `GET /api/v1/write/line-protocol/stats`.
pub(crate) async fn line_protocol_stats(State(app): State<Arc<App>>) -> Response {
    let writes = app.metrics.writes(Format::LineProtocol);
    let stats = json!({
        "total_requests": writes.requests.get(),
        "total_records": writes.records.get(),
        "total_bytes": writes.bytes.get(),
        "total_bytes_gzipped": writes.compressed_bytes.get(),
        "total_errors": writes.errors.get(),
    });
    ok(&json!({ "status": "success", "stats": stats }))
}

/// `GET /api/v1/write/line-protocol/health`.
pub(crate) async fn health(State(app): State<Arc<App>>) -> Response {
    let service = "line_protocol_writer";
    if let Some(reason) = app.not_ready() {
        let body = json!({ "status": "unhealthy", "service": service, "reason": reason });
        return json_response(StatusCode::SERVICE_UNAVAILABLE, body.to_string());
    }
    ok(&json!({ "status": "healthy", "service": service }))
}

/// `POST /api/v1/write/line-protocol/flush`: puts all points there are into data files, and waits for it.
pub(crate) async fn flush(State(app): State<Arc<App>>, caller: Caller) -> Result<Response, Failure> {
    caller.check_admin()?;
    let engine = app.engine.clone();
    let report = blocking(move || engine.flush()).await?;
    let message = format!("{} points are in {} new data files", report.rows, report.files.len());
    Ok(ok(&json!({ "status": "success", "message": message })))
}

/// `GET /api/v1/write/msgpack/stats`.
pub(crate) async fn message_pack_stats(State(app): State<Arc<App>>) -> Response {
    let writes = app.metrics.writes(Format::MessagePack);
    let (requests, errors) = (writes.requests.get(), writes.errors.get());
    let (part, all) = (u32::try_from(errors).unwrap_or(u32::MAX), u32::try_from(requests).unwrap_or(u32::MAX));
    let decoder = json!({
        "total_decoded": writes.records.get(),
        "total_errors": errors,
        "error_rate": if all == 0 { 0.0 } else { f64::from(part) / f64::from(all) },
    });
    let stats = app.engine.stats();
    let buffer = json!({
        "records_buffered": stats.buffered_rows,
        "bytes_buffered": stats.buffered_bytes,
        "flushes_total": stats.flushes,
        "flush_failures_total": stats.flush_failures,
        "queue_depth": stats.queued_writes,
    });
    ok(&json!({ "decoder": decoder, "buffer": buffer, "timestamp": timestamp::now() }))
}

/// `GET /api/v1/write/msgpack/spec`: the shapes of MessagePack, for those who have no page of documentation at hand.
pub(crate) async fn spec() -> Response {
    ok(&json!({
        "version": "2.0",
        "endpoint": "/api/v1/write/msgpack",
        "content_type": "application/msgpack",
        "compression": ["gzip", "zstd"],
        "authentication": "Authorization: Bearer TOKEN, with the right write",
        "database": "the header x-arc-database, else default",
        "formats": {
            "columnar": {
                "description": "one measurement, column by column; all columns are of one length",
                "example": { "m": "cpu", "columns": { "time": [1_700_000_000_000_000_u64], "host": ["a"], "usage": [1.5] } },
            },
            "row": {
                "description": "one point; h is its tag host",
                "example": {
                    "m": "cpu", "t": 1_700_000_000_000_000_u64, "h": "a", "fields": { "usage": 1.5 }, "tags": { "region": "eu" },
                },
            },
            "batch": {
                "description": "several of both; a list of them without the map does as well",
                "example": { "batch": [{ "m": "cpu", "columns": { "time": [1_700_000_000_000_000_u64], "usage": [1.5] } }] },
            },
        },
        "time": "whole numbers; seconds, milliseconds, microseconds or nanoseconds by their size, or as x-arc-precision says",
    }))
}

fn ok(body: &serde_json::Value) -> Response {
    json_response(StatusCode::OK, body.to_string())
}
