//! What clients of Arc's Go server ask about compaction, and how they ask for it.
//!
//! There are no tiers here: hourly and daily are names that those clients know, and mean all there is to do.

use std::sync::{Arc, atomic::Ordering};

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use hyper::StatusCode;
use serde_json::json;

use crate::{app::App, auth::Caller, errors::json_response};

/// `GET /api/v1/compaction/status`.
pub(crate) async fn status(State(app): State<Arc<App>>) -> Response {
    let stats = app.engine.stats();
    let manager = json!({
        "active_jobs": u8::from(app.compaction.running.load(Ordering::Acquire)),
        "total_completed": stats.compactions,
        "total_failed": stats.compaction_failures,
    });
    json_response(StatusCode::OK, json!({ "manager": manager, "schedulers": {} }).to_string())
}

/// `GET /api/v1/compaction/stats`.
pub(crate) async fn stats(State(app): State<Arc<App>>) -> Response {
    let stats = app.engine.stats();
    let body = json!({
        "active_jobs": u8::from(app.compaction.running.load(Ordering::Acquire)),
        "total_jobs_completed": stats.compactions,
        "total_jobs_failed": stats.compaction_failures,
        "rows_read": stats.compaction_rows_in,
        "rows_written": stats.compaction_rows_out,
        "bytes_read": stats.compaction_bytes_in,
        "bytes_written": stats.compaction_bytes_out,
        "files_moved": stats.moved_files,
        "files_expired": stats.expired_files,
        "files_retired": stats.retired_files,
    });
    json_response(StatusCode::OK, body.to_string())
}

/// `POST /api/v1/compaction/trigger`: starts a round over everything and does not wait for it.
pub(crate) async fn trigger(State(app): State<Arc<App>>, caller: Caller) -> Response {
    if let Err(failure) = caller.check_admin() {
        return failure.into_response();
    }
    if app.compaction.running.swap(true, Ordering::AcqRel) {
        let cycle_id = app.compaction.cycles.load(Ordering::Acquire);
        let text = "a compaction that was asked for is still running";
        let body = json!({ "error": text, "message": text, "cycle_id": cycle_id, "is_running": true });
        return json_response(StatusCode::CONFLICT, body.to_string());
    }
    let cycle_id = app.compaction.cycles.fetch_add(1, Ordering::AcqRel) + 1;
    let running = Arc::clone(&app);
    tokio::task::spawn_blocking(move || {
        // Also when it panics.
        let _done = Done(&running);
        match running.engine.compact() {
            Ok(report) => tracing::info!(cycle_id, merges = report.merges, "compaction done"),
            Err(error) => tracing::error!(cycle_id, %error, "compaction failed"),
        }
    });
    let body = json!({
        "message": "compaction started", "status": "running", "tiers": ["hourly", "daily"], "cycle_id": cycle_id,
    });
    json_response(StatusCode::OK, body.to_string())
}

struct Done<'a>(&'a App);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.compaction.running.store(false, Ordering::Release);
    }
}
