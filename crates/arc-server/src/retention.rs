//! How long points are kept, over HTTP: a setting for a database, or for one measurement of it.
//!
//! Owns the shape of a setting. What takes points away is only there with `delete_enabled`, as for deletes: so is setting and
//! removing one. Reading is always there. Never applies a setting: compaction does.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
};
use hyper::StatusCode;
use serde_json::{Map, Value, json};

use crate::{
    admin::parse,
    app::App,
    auth::{Caller, Rights},
    body,
    delete::{blocking, check_enabled},
    errors::{Failure, json_response},
};

const DAY_SECONDS: f64 = 86_400.0;

/// A database, and perhaps a measurement of it, in the path.
pub(crate) type RetentionPath = Result<Path<Vec<String>>, PathRejection>;

/// `GET /api/v1/retention`: all settings there are.
pub(crate) async fn list(State(app): State<Arc<App>>, caller: Caller) -> Result<Response, Failure> {
    let mut settings = Vec::new();
    for database in app.engine.databases().into_iter().filter(|database| caller.sees(&database.name)) {
        if let Some(retention) = database.retention {
            settings.push(describe(&database.name, None, retention));
        }
        // It may have been dropped meanwhile.
        let tables = app.engine.tables(&database.name).unwrap_or_default().into_iter();
        for table in tables.filter(|table| caller.sees_table(&database.name, &table.schema.table)) {
            if let Some(retention) = app.engine.retention(&database.name, Some(&table.schema.table)).unwrap_or_default()
            {
                settings.push(describe(&database.name, Some(&table.schema.table), retention));
            }
        }
    }
    Ok(ok(&settings.into()))
}

/// `GET /api/v1/retention/{database}` and `…/{measurement}`.
pub(crate) async fn get(State(app): State<Arc<App>>, caller: Caller, path: RetentionPath) -> Result<Response, Failure> {
    let (database, table) = split(path)?;
    match &table {
        Some(table) => caller.check_table(Rights::READ, &database, table)?,
        None => caller.check_sees(&database)?,
    }
    let retention = app.engine.retention(&database, table.as_deref())?;
    let retention = retention.ok_or_else(|| missing(&database, table.as_deref()))?;
    Ok(ok(&describe(&database, table.as_deref(), retention)))
}

/// `PUT` of the same with `{"retention_days": 30}`, or null to keep points for ever whatever the database says.
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: RetentionPath,
    request: Request,
) -> Result<Response, Failure> {
    let (database, table) = split(path)?;
    caller.check_target(Rights::ADMIN, &database, table.as_deref())?;
    check_enabled(&app)?;
    let (parts, body) = request.into_parts();
    let body = body::read(&app, body, &parts.headers).await?;
    let retention = wanted(&parse(&body)?)?;
    let (engine, owned) = (app.engine.clone(), (database.clone(), table.clone()));
    blocking(move || engine.set_retention(&owned.0, owned.1.as_deref(), Some(retention))).await?;
    Ok(ok(&describe(&database, table.as_deref(), retention)))
}

/// `DELETE` of the same: the measurement goes by its database, the database keeps its points.
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: RetentionPath,
) -> Result<Response, Failure> {
    let (database, table) = split(path)?;
    caller.check_target(Rights::ADMIN, &database, table.as_deref())?;
    check_enabled(&app)?;
    if app.engine.retention(&database, table.as_deref())?.is_none() {
        return Err(missing(&database, table.as_deref()));
    }
    let (engine, owned) = (app.engine.clone(), (database.clone(), table.clone()));
    blocking(move || engine.set_retention(&owned.0, owned.1.as_deref(), None)).await?;
    Ok(ok(&json!({ "message": format!("Retention of {} removed", name(&database, table.as_deref())) })))
}

fn split(path: RetentionPath) -> Result<(String, Option<String>), Failure> {
    let mut names = path?.0.into_iter();
    Ok((names.next().unwrap_or_default(), names.next()))
}

/// Reads a setting. A key that is not known could be one that was to keep points longer.
fn wanted(request: &Value) -> Result<Duration, Failure> {
    let expected = || Failure::bad_request("expected {\"retention_days\": 30}, or null to keep points for ever");
    let request: &Map<String, Value> = request.as_object().ok_or_else(expected)?;
    if let Some(unknown) = request.keys().find(|key| *key != "retention_days") {
        return Err(Failure::bad_request(format!("the key {unknown} is not known; {}", expected().message)));
    }
    match request.get("retention_days").ok_or_else(expected)? {
        Value::Null => Ok(Duration::MAX),
        days => {
            let days = days.as_f64().ok_or_else(expected)?;
            let wrong = |_| Failure::bad_request(format!("retention_days: {days} is no number of days from 0"));
            Duration::try_from_secs_f64(days * DAY_SECONDS).map_err(wrong)
        }
    }
}

fn describe(database: &str, table: Option<&str>, retention: Duration) -> Value {
    json!({ "database": database, "measurement": table, "retention_days": days(retention) })
}

/// Returns days, as a whole number where they are, and null for ever: more nanoseconds than a setting can have.
fn days(retention: Duration) -> Value {
    if retention.as_nanos() >= u128::from(u64::MAX) {
        Value::Null
    } else if retention.subsec_nanos() == 0 && retention.as_secs().is_multiple_of(86_400) {
        (retention.as_secs() / 86_400).into()
    } else {
        (retention.as_secs_f64() / DAY_SECONDS).into()
    }
}

fn missing(database: &str, table: Option<&str>) -> Failure {
    Failure::new(StatusCode::NOT_FOUND, format!("no retention is set for {}", name(database, table)))
}

fn name(database: &str, table: Option<&str>) -> String {
    match table {
        Some(table) => format!("measurement {table:?} of database {database:?}"),
        None => format!("database {database:?}"),
    }
}

fn ok(body: &Value) -> Response {
    json_response(StatusCode::OK, body.to_string())
}
