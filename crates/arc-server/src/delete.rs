//! Deleting points over HTTP: counted first, and done if that is what the client has seen and wants.
//!
//! Owns the rules that points are taken away only where `delete_enabled` is set, and how many at a time; Flight asks here as
//! well. The count is that of a query right before the delete: points that are written between the two are deleted, too, if
//! they meet the condition, and are not counted.

use std::{sync::Arc, time::Instant};

use arc_core::{Deletion, Predicate};
use axum::{
    extract::{Request, State},
    response::Response,
};
use hyper::StatusCode;
use serde_json::{Value, json};

use crate::{
    admin::{DatabaseName, milliseconds, parse},
    app::App,
    auth::{Caller, Rights},
    body,
    errors::{Failure, json_response},
    http::params::Params,
    query,
};

/// `GET /api/v1/delete/config`.
pub(crate) async fn config(State(app): State<Arc<App>>) -> Response {
    let settings = &app.delete;
    let body = json!({
        "enabled": settings.enabled,
        "confirmation_threshold": settings.confirmation_threshold,
        "max_rows_per_delete": settings.max_rows,
        "implementation": "tombstone-based",
        "performance_impact": {
            "delete": "none: a delete is a line of the log",
            "query": "the files concerned are filtered until compaction has rewritten them",
            "disk": "compaction rewrites the files concerned",
        },
    });
    json_response(StatusCode::OK, body.to_string())
}

/// `POST /api/v1/delete` with `{"database", "measurement", "where", "dry_run", "confirm"}`.
pub(crate) async fn delete(State(app): State<Arc<App>>, request: Request) -> Response {
    let started = Instant::now();
    answer(&app, request, started).await.unwrap_or_else(|failure| {
        failure.with_body(&json!({
            "success": false,
            "deleted_count": 0,
            "affected_files": 0,
            "rewritten_files": 0,
            "execution_time_ms": milliseconds(started),
            "dry_run": false,
            "files_processed": [],
            "error": failure.message,
            "message": failure.message,
        }))
    })
}

/// `DELETE /api/v1/databases/{name}?confirm=true`.
pub(crate) async fn database(
    State(app): State<Arc<App>>,
    caller: Caller,
    name: DatabaseName,
    request: Request,
) -> Result<Response, Failure> {
    let name = name?.0;
    caller.check_all_of(Rights::DELETE, &name)?;
    check_enabled(&app)?;
    if Params::of(request.uri())?.get("confirm") != Some("true") {
        return Err(Failure::bad_request(format!("send confirm=true to drop database {name:?} with all its points")));
    }
    let (engine, dropped) = (app.engine.clone(), name.clone());
    let files = blocking(move || {
        let files: usize = engine.tables(&dropped)?.iter().map(|table| table.files).sum();
        engine.drop_database(&dropped)?;
        Ok(files)
    });
    let body = json!({ "message": format!("Database '{name}' deleted"), "files_deleted": files.await? });
    Ok(json_response(StatusCode::OK, body.to_string()))
}

/// Refuses what takes points away, unless the settings allow it.
pub(crate) fn check_enabled(app: &App) -> Result<(), Failure> {
    if !app.delete.enabled {
        return Err(Failure::new(StatusCode::FORBIDDEN, "deletes are not allowed; see the setting delete_enabled"));
    }
    Ok(())
}

async fn answer(app: &Arc<App>, request: Request, started: Instant) -> Result<Response, Failure> {
    let (parts, body) = request.into_parts();
    let caller = app.auth.caller(&parts.extensions)?;
    caller.check(Rights::DELETE)?;
    check_enabled(app)?;
    let body = body::read(app, body, &parts.headers).await?;
    let wanted = WantedDelete::read(&parse(&body)?)?;
    caller.check_table(Rights::DELETE, &wanted.database, &wanted.table)?;
    let (engine, asked) = (app.engine.clone(), wanted.clone());
    let predicate =
        blocking(move || engine.check_delete(&asked.database, &asked.table, &Predicate::from_sql(&asked.condition)?));
    let deletion = Deletion::new(wanted.database, wanted.table, predicate.await?);
    let (count, affected_files) = match wanted.dry_run {
        true => (counted(app, &caller, &deletion).await?, 0),
        false => points(app, &caller, deletion, Confirmed(wanted.confirm, "send \"confirm\": true")).await?,
    };
    let body = json!({
        "success": true,
        "deleted_count": count,
        "affected_files": affected_files,
        // Compaction does it later.
        "rewritten_files": 0,
        "execution_time_ms": milliseconds(started),
        "dry_run": wanted.dry_run,
        "files_processed": [],
    });
    Ok(json_response(StatusCode::OK, body.to_string()))
}

/// Whether a client has confirmed that it means many points, and how it would.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Confirmed<'a>(pub(crate) bool, pub(crate) &'a str);

/// Deletes points, if they are not too many. Returns how many they were before, and in how many files they may have been.
pub(crate) async fn points(
    app: &Arc<App>,
    caller: &Caller,
    deletion: Deletion,
    confirmed: Confirmed<'_>,
) -> Result<(u64, u64), Failure> {
    let count = check(app, caller, &deletion, confirmed).await?;
    Ok((count, remove(app, caller, deletion).await?))
}

/// Returns how many points a delete would take away now, or refuses it if these are too many.
pub(crate) async fn check(
    app: &Arc<App>,
    caller: &Caller,
    deletion: &Deletion,
    confirmed: Confirmed<'_>,
) -> Result<u64, Failure> {
    let count = counted(app, caller, deletion).await?;
    check_count(app, count, confirmed).map(|()| count)
}

/// Deletes points, however many. Returns in how many files they may have been.
pub(crate) async fn remove(app: &Arc<App>, caller: &Caller, deletion: Deletion) -> Result<u64, Failure> {
    let Deletion { database, table, predicate, .. } = &deletion;
    caller.note(|| format!("delete from {}.{} where {predicate}", quoted(database), quoted(table)));
    let engine = app.engine.clone();
    let deleted = blocking(move || engine.delete(&deletion.database, &deletion.table, &deletion.predicate)).await?;
    Ok(deleted.affected_files)
}

/// Returns how many points a delete would take away now.
pub(crate) async fn counted(app: &Arc<App>, caller: &Caller, deletion: &Deletion) -> Result<u64, Failure> {
    let Deletion { database, table, predicate, .. } = deletion;
    let from = format!("{}.{}", quoted(database), quoted(table));
    query::count(app, caller, &format!("SELECT count(*) FROM {from} WHERE {predicate}")).await
}

fn check_count(app: &App, count: u64, Confirmed(confirmed, how): Confirmed<'_>) -> Result<(), Failure> {
    let settings = &app.delete;
    if count > settings.max_rows {
        let most = settings.max_rows;
        let text = format!("{count} points meet the condition, and one delete takes at most {most} (delete_max_rows)");
        return Err(Failure::bad_request(text));
    }
    if count > settings.confirmation_threshold && !confirmed {
        let text = format!("{count} points meet the condition; {how} to delete that many");
        return Err(Failure::bad_request(text));
    }
    Ok(())
}

/// What a request asks for.
#[derive(Debug, Clone)]
struct WantedDelete {
    database: String,
    table: String,
    condition: String,
    dry_run: bool,
    confirm: bool,
}

impl WantedDelete {
    fn read(request: &Value) -> Result<Self, Failure> {
        let text = |key: &str| match request.get(key) {
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.clone()),
            _ => Err(Failure::bad_request(format!("the key {key} is missing or no text"))),
        };
        let switch = |key: &str| match request.get(key) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(value)) => Ok(*value),
            Some(_) => Err(Failure::bad_request(format!("the key {key} is neither true nor false"))),
        };
        Ok(Self {
            database: text("database")?,
            table: text("measurement")?,
            condition: text("where")?,
            dry_run: switch("dry_run")?,
            confirm: switch("confirm")?,
        })
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Makes a call of the engine that waits for the disk, on a thread that may wait.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> arc_core::Result<T> + Send + 'static,
) -> Result<T, Failure> {
    Ok(tokio::task::spawn_blocking(work).await.map_err(|_| Failure::bug())??)
}
