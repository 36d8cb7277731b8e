//! `/api/v1/queries`: the statements that wait or run, and how one is ended.

use std::{sync::Arc, time::UNIX_EPOCH};

use axum::{
    extract::{Path, State},
    response::Response,
};
use hyper::StatusCode;
use serde_json::{Value, json};

use super::listed::Listed;
use crate::{
    app::App,
    auth::Caller,
    errors::{Failure, json_response},
    timestamp,
};

/// Most characters of a statement that the list has; the whole of it is at its own address.
const SHORT: usize = 200;

/// A query's name in the path; the error is the client's.
type Id = Result<Path<String>, axum::extract::rejection::PathRejection>;

/// `GET /api/v1/queries`, also `/api/v1/queries/active`: oldest first.
pub(crate) async fn list(State(app): State<Arc<App>>, caller: Caller) -> Response {
    let all = app.queries.all();
    let shown = all.iter().filter(|listed| listed.is_shown_to(&caller));
    let queries: Vec<Value> = shown.map(|listed| describe(listed, SHORT)).collect();
    ok(&json!({ "success": true, "count": queries.len(), "queries": queries }))
}

/// `GET /api/v1/queries/{id}`.
pub(crate) async fn get(State(app): State<Arc<App>>, caller: Caller, id: Id) -> Result<Response, Failure> {
    Ok(ok(&describe(&*find(&app, &caller, id)?, usize::MAX)))
}

/// `DELETE /api/v1/queries/{id}`: the statement ends at its next pause, and its client is told why.
pub(crate) async fn cancel(State(app): State<Arc<App>>, caller: Caller, id: Id) -> Result<Response, Failure> {
    let listed = find(&app, &caller, id)?;
    listed.cancel();
    tracing::info!(query = %listed.id, "a query is cancelled on request");
    Ok(ok(&json!({ "success": true, "id": listed.id.to_string(), "message": "the query is told to end" })))
}

fn find(app: &App, caller: &Caller, id: Id) -> Result<Arc<Listed>, Failure> {
    let id = id?.0;
    let listed = id.parse().ok().and_then(|id| app.queries.get(id)).filter(|listed| listed.is_shown_to(caller));
    listed.ok_or_else(|| Failure::new(StatusCode::NOT_FOUND, format!("no query {id:?} waits or runs")))
}

fn describe(listed: &Listed, most: usize) -> Value {
    let since = listed.since.duration_since(UNIX_EPOCH).unwrap_or_default();
    let cut = listed.sql.char_indices().nth(most).map_or(listed.sql.len(), |(at, _)| at);
    json!({
        "id": listed.id.to_string(),
        "database": listed.database,
        "statement": listed.sql.get(..cut),
        "since": timestamp::format(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)),
        "duration_ms": u64::try_from(listed.elapsed().as_millis()).unwrap_or(u64::MAX),
        "rows": listed.rows(),
        "files_read": listed.files().map(|files| files.read),
        "files_left_out": listed.files().map(|files| files.left_out),
        "state": listed.state().name(),
        "format": listed.door,
    })
}

fn ok(body: &Value) -> Response {
    json_response(StatusCode::OK, body.to_string())
}
