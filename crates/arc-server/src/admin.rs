//! Databases, measurements, health and metrics.
//!
//! Lists what the engine lists, in the shapes that clients of the existing Arc server read. A list is `[]` when it is
//! empty, never `null`.

use std::{sync::Arc, time::Instant};

use arc_core::{ColumnTypes, DatabaseInfo, Durability, Error, TableInfo};
use axum::{
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
};
use hyper::{HeaderMap, StatusCode, header};
use serde_json::{Map, Value, json};

use crate::{
    app::App,
    auth::{Caller, Rights, check_internal},
    body, column_types,
    delete::blocking,
    errors::{Failure, json_response},
    http::params::Params,
    timestamp,
};

/// Longest body of a request that is not a write.
pub(crate) const MAX_REQUEST_BYTES: usize = 1 << 20;

/// `GET /api/v1/databases`.
pub(crate) async fn databases(State(app): State<Arc<App>>, caller: Caller) -> Response {
    let seen = seen(&app, &caller);
    let databases: Vec<Value> = seen.iter().map(|database| describe(&app, &caller, database)).collect();
    ok(&json!({ "count": databases.len(), "databases": databases }))
}

/// `GET /api/v1/databases/{name}`.
pub(crate) async fn database(
    State(app): State<Arc<App>>,
    caller: Caller,
    name: DatabaseName,
) -> Result<Response, Failure> {
    let name = name?.0;
    caller.check_sees(&name)?;
    Ok(ok(&describe(&app, &caller, &find(&app, &name)?)))
}

/// `GET /api/v1/databases/{name}/measurements`.
pub(crate) async fn database_measurements(
    State(app): State<Arc<App>>,
    caller: Caller,
    name: DatabaseName,
) -> Result<Response, Failure> {
    let name = name?.0;
    caller.check_sees(&name)?;
    let tables = tables(&app, &caller, &name)?;
    let measurements: Vec<Value> = tables.iter().map(|t| json!({ "name": t.schema.table })).collect();
    Ok(ok(&json!({ "database": name, "count": measurements.len(), "measurements": measurements })))
}

/// `POST /api/v1/databases` with `{"name": "…"}`, and what it says of the types of columns.
pub(crate) async fn create_database(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Failure> {
    caller.check(Rights::WRITE)?;
    let (parts, body) = request.into_parts();
    let body = body::read(&app, body, &parts.headers).await?;
    let request: Value = parse(&body)?;
    let name = request.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| Failure::bad_request("the key name is missing; expected {\"name\": \"…\"}"))?;
    caller.check_all_of(Rights::WRITE, name)?;
    let types = column_types::changed(ColumnTypes::default(), request.as_object().unwrap_or(&Map::new()))?;
    types.check()?;
    create(&app, name).await?;
    if !types.is_empty() {
        let (engine, owned) = (app.engine.clone(), name.to_owned());
        blocking(move || engine.set_column_types(&owned, None, &types)).await?;
    }
    Ok(json_response(StatusCode::CREATED, describe(&app, &caller, &find(&app, name)?).to_string()))
}

/// `PATCH /api/v1/databases/{name}` with `{"durability": "…"}`, `string_columns`, `on_conflict`, `time_unit`,
/// `finer_times`; null to go by the server's.
pub(crate) async fn change_database(
    State(app): State<Arc<App>>,
    caller: Caller,
    name: DatabaseName,
    request: Request,
) -> Result<Response, Failure> {
    let name = name?.0;
    caller.check_all_of(Rights::ADMIN, &name)?;
    check_internal(Rights::WRITE, &name)?;
    let (parts, body) = request.into_parts();
    let body = body::read(&app, body, &parts.headers).await?;
    let request: Value = parse(&body)?;
    let expected = || Failure::bad_request("expected {\"durability\": \"memory\", \"process\", \"disk\" or null}");
    let durability = match request.as_object().and_then(|request| request.get("durability")) {
        Some(Value::Null) => Some(None),
        Some(Value::String(level)) => Some(Some(level.parse().map_err(Failure::bad_request)?)),
        None if request.as_object().is_some_and(|request| request.keys().any(|key| column_types::is_key(key))) => None,
        _ => return Err(expected()),
    };
    let types = column_types::changed(find(&app, &name)?.column_types, request.as_object().unwrap_or(&Map::new()))?;
    let (engine, owned) = (app.engine.clone(), name.clone());
    blocking(move || {
        if engine.column_types(&owned, None)? != types {
            engine.set_column_types(&owned, None, &types)?;
        }
        durability.map_or(Ok(()), |durability| engine.set_database_durability(&owned, durability))
    })
    .await?;
    Ok(ok(&describe(&app, &caller, &find(&app, &name)?)))
}

/// Creates a database; 409 if it exists.
pub(crate) async fn create(app: &App, name: &str) -> Result<(), Failure> {
    let (engine, owned) = (app.engine.clone(), name.to_owned());
    let created = tokio::task::spawn_blocking(move || engine.create_database(&owned)).await;
    match created.map_err(|_| Failure::bug())? {
        Err(error @ Error::DatabaseExists { .. }) => Err(Failure::new(StatusCode::CONFLICT, error.to_string())),
        other => other.map_err(Failure::from),
    }
}

/// `GET /api/v1/measurements?database=`; all databases if none is named.
pub(crate) async fn measurements(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Failure> {
    let started = Instant::now();
    let params = Params::of(request.uri())?;
    let databases = match params.get("database").or_else(|| params.get("db")) {
        Some(name) => {
            caller.check_sees(name)?;
            vec![name.to_owned()]
        }
        None => seen(&app, &caller).into_iter().map(|database| database.name).collect(),
    };
    let mut measurements = Vec::new();
    for database in databases {
        for table in tables(&app, &caller, &database)? {
            measurements.push(measurement(&app, &table)?);
        }
    }
    Ok(ok(&json!({
        "success": true,
        "count": measurements.len(),
        "measurements": measurements,
        "execution_time_ms": milliseconds(started),
    })))
}

/// `GET /health`: the process lives.
pub(crate) async fn health(State(app): State<Arc<App>>) -> Response {
    let uptime = app.started.elapsed();
    let is_reader = app.engine.is_reader() && app.cluster.is_none();
    let role = match &app.cluster {
        Some(cluster) => cluster.role.name(),
        None if is_reader => "reader",
        None => "writer",
    };
    ok(&json!({
        // The word of InfluxDB's clients, who take every other for a failure.
        "status": "pass",
        "name": "arc",
        "role": role,
        "node": app.cluster.as_ref().map(|cluster| &cluster.name),
        "message": if is_reader { "ready for queries" } else { "ready for queries and writes" },
        "checks": [],
        "time": timestamp::now(),
        "uptime": format!("{}s", uptime.as_secs()),
        "uptime_sec": uptime.as_secs(),
        "version": env!("CARGO_PKG_VERSION"),
    }))
}

/// `GET /ready`: requests are welcome.
pub(crate) async fn ready(State(app): State<Arc<App>>, request: Request) -> Response {
    let time = timestamp::now();
    // A node hands writes on.
    let only_reads = app.engine.is_reader() && app.cluster.is_none();
    let of_writes = || request.uri().path() == "/ready/write" && only_reads;
    let refused = of_writes().then(|| "this server only reads what another process writes".to_owned());
    if let Some(reason) = app.not_ready().or(refused) {
        let body = json!({ "status": "not_ready", "time": time, "reason": reason });
        return json_response(StatusCode::SERVICE_UNAVAILABLE, body.to_string());
    }
    // Writes to these may be lost although they were acknowledged, whatever the server's own setting is.
    let in_memory = |database: &DatabaseInfo| database.durability == Some(Durability::Memory);
    // Anybody may ask, and is told of the databases that they may know of.
    let caller = app.auth.caller(request.extensions());
    let sees = |database: &DatabaseInfo| caller.as_ref().is_ok_and(|caller| caller.sees(&database.name));
    let databases =
        app.engine.databases_last_seen().into_iter().filter(|database| in_memory(database) && sees(database));
    let in_memory: Vec<String> = databases.map(|database| database.name).collect();
    let uptime = app.started.elapsed().as_secs();
    let mut body = json!({ "status": "ready", "time": time, "uptime_sec": uptime });
    if let Some(body) = body.as_object_mut().filter(|_| !in_memory.is_empty()) {
        body.insert("memory_durability".to_owned(), in_memory.into());
    }
    ok(&body)
}

/// `GET /metrics`: Prometheus text, or JSON for those who accept nothing else.
pub(crate) async fn metrics(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    if headers.get(header::ACCEPT).is_some_and(|accept| accept == "application/json") {
        return metrics_as_json(State(app)).await;
    }
    let text = app.metrics.prometheus(&app.engine.stats(), app.started.elapsed());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

/// `GET /api/v1/metrics`: the same as one flat object.
pub(crate) async fn metrics_as_json(State(app): State<Arc<App>>) -> Response {
    ok(&app.metrics.json(&app.engine.stats(), app.started.elapsed()))
}

/// `GET /api/v1/metrics/endpoints`: the same, those of each part of the server together.
pub(crate) async fn metrics_by_part(State(app): State<Arc<App>>) -> Response {
    ok(&app.metrics.by_part(&app.engine.stats(), app.started.elapsed()))
}

/// Reads a request body that is JSON, whatever `Content-Type` says.
pub(crate) fn parse(body: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(without_mark(body)).map_err(|e| Failure::bad_request(format!("Invalid request body: {e}")))
}

/// Returns a text without the byte order mark that PowerShell and .NET put before one.
pub(crate) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

/// Returns the milliseconds since `started`, with three places.
pub(crate) fn milliseconds(started: Instant) -> f64 {
    (started.elapsed().as_secs_f64() * 1e6).round() / 1e3
}

/// A database's name in the path; the error is the client's.
pub(crate) type DatabaseName = Result<Path<String>, axum::extract::rejection::PathRejection>;

impl From<axum::extract::rejection::PathRejection> for Failure {
    fn from(rejection: axum::extract::rejection::PathRejection) -> Self {
        Self::bad_request(rejection.body_text())
    }
}

fn find(app: &App, name: &str) -> Result<DatabaseInfo, Failure> {
    let found = app.engine.databases().into_iter().find(|database| database.name == name);
    found.ok_or_else(|| Error::DatabaseNotFound { database: name.to_owned() }.into())
}

/// Returns the databases that a caller may know of.
fn seen(app: &App, caller: &Caller) -> Vec<DatabaseInfo> {
    app.engine.databases().into_iter().filter(|database| caller.sees(&database.name)).collect()
}

/// Returns the tables of a database that a caller has any right for.
fn tables(app: &App, caller: &Caller, database: &str) -> Result<Vec<TableInfo>, Failure> {
    let mut tables = app.engine.tables(database)?;
    tables.retain(|table| caller.sees_table(database, &table.schema.table));
    Ok(tables)
}

fn describe(app: &App, caller: &Caller, database: &DatabaseInfo) -> Value {
    let count = match caller.check_all_of(Rights::READ, &database.name) {
        Ok(()) => database.tables,
        // It may be dropped meanwhile.
        Err(_) => tables(app, caller, &database.name).map_or(0, |tables| tables.len()),
    };
    let described = json!({
        "name": database.name,
        "measurement_count": count,
        "created_at": timestamp::format(database.created_ns),
        "durability": database.durability.map(|level| level.to_string()),
    });
    column_types::describe(described, &database.column_types)
}

fn measurement(app: &App, table: &TableInfo) -> Result<Value, Failure> {
    let (database, name) = (&*table.schema.database, &*table.schema.table);
    // Before the first file of its own there is no folder to name.
    let files = app.engine.data_files(database, name)?;
    let folder = files
        .iter()
        .find(|file| file.packed().is_none())
        .and_then(|file| Some(file.path.rsplit_once('/')?.0.rsplit_once('/')?.0.to_owned()));
    Ok(json!({
        "database": database,
        "measurement": name,
        "file_count": table.files,
        "total_size_mb": megabytes(table.file_bytes),
        "row_count": table.file_rows + table.buffered_rows,
        "storage_path": folder,
    }))
}

/// Returns mebibytes with two places.
fn megabytes(bytes: u64) -> f64 {
    // Rounded before it is divided, so that what is printed has no tail; exact up to 80 TiB.
    let hundredths = (u128::from(bytes) * 100) >> 20;
    f64::from(u32::try_from(hundredths).unwrap_or(u32::MAX)) / 100.0
}

fn ok(body: &Value) -> Response {
    json_response(StatusCode::OK, body.to_string())
}
