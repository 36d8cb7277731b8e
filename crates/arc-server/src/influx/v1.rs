//! The few things beside writing that InfluxDB 1.x clients ask for: `/ping`, and `/query` with statements about databases and
//! what is in them.
//!
//! Never answers a query for points: InfluxQL is not spoken here, and says so.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use hyper::{Method, StatusCode, header};
use serde_json::{Value, json};

use super::influxql::{Statement, statements};
use crate::{
    admin,
    app::App,
    auth::{Caller, Rights},
    body,
    delete::{blocking, check_enabled},
    errors::{Failure, json_response},
    http::params::Params,
};

/// The version that clients take for "speaks the 1.8 write API".
const INFLUXDB_VERSION: &str = "1.8.10";

/// `GET` or `POST /ping`; with `verbose=true` the version is in a body as well.
pub(crate) async fn ping(request: Request) -> Result<Response, Failure> {
    let headers = [("x-influxdb-version", INFLUXDB_VERSION), ("x-influxdb-build", "Arc")];
    if Params::of(request.uri())?.get("verbose") == Some("true") {
        let body = json!({ "version": INFLUXDB_VERSION });
        return Ok((headers, json_response(StatusCode::OK, body.to_string())).into_response());
    }
    Ok((StatusCode::NO_CONTENT, headers).into_response())
}

/// `GET` or `POST /query`, the statement in `q`.
pub(crate) async fn query(State(app): State<Arc<App>>, request: Request) -> Response {
    match answer(&app, request).await {
        Ok(result) => {
            let headers = [("x-influxdb-version", INFLUXDB_VERSION)];
            (headers, json_response(StatusCode::OK, json!({ "results": result }).to_string())).into_response()
        }
        Err(failure) => failure.into_response(),
    }
}

async fn answer(app: &Arc<App>, request: Request) -> Result<Vec<Value>, Failure> {
    let (parts, body) = request.into_parts();
    let caller = app.auth.caller(&parts.extensions)?;
    if parts.method != Method::GET && parts.method != Method::POST {
        return Err(Failure::method_not_allowed("expected GET or POST", "GET, POST"));
    }
    let mut params = Params::of(&parts.uri)?;
    let is_form = |value: &header::HeaderValue| value.as_bytes().starts_with(b"application/x-www-form-urlencoded");
    if params.get("q").is_none() && parts.headers.get(header::CONTENT_TYPE).is_some_and(is_form) {
        let body = body::read(app, body, &parts.headers).await?;
        let form = std::str::from_utf8(&body).map_err(|_| Failure::bad_request("the form is not UTF-8"))?;
        params = Params::parse(form)?;
    }
    let text = params.get("q").ok_or_else(|| Failure::bad_request("missing required parameter \"q\""))?;
    // All are understood before the first is run.
    let statements: Option<Vec<_>> = statements(text).map(Statement::parse).collect();
    let statements = statements.filter(|statements| !statements.is_empty()).ok_or_else(|| {
        Failure::bad_request(
            "InfluxQL is limited to CREATE DATABASE, DROP DATABASE, SHOW DATABASES, SHOW MEASUREMENTS and \
             SHOW RETENTION POLICIES; use SQL at /api/v1/query",
        )
    })?;
    if parts.method == Method::GET && statements.iter().any(Statement::is_change) {
        let text = "GET changes nothing: send CREATE DATABASE and DROP DATABASE with POST";
        return Err(Failure::method_not_allowed(text, "POST"));
    }
    let mut results = Vec::with_capacity(statements.len());
    for (id, statement) in statements.into_iter().enumerate() {
        let series = run(app, &caller, &statement, params.get("db")).await?;
        let mut result = json!({ "statement_id": id });
        if let (Some(result), Some(series)) = (result.as_object_mut(), series) {
            result.insert("series".to_owned(), series);
        }
        results.push(result);
    }
    Ok(results)
}

/// Runs a statement; `database` is the request's. Returns what it shows, if there is anything.
async fn run(
    app: &App,
    caller: &Caller,
    statement: &Statement,
    database: Option<&str>,
) -> Result<Option<Value>, Failure> {
    let named = |name: &Option<String>| {
        let name = name.as_deref().or(database);
        name.map(str::to_owned).ok_or_else(|| Failure::bad_request("database name required: send db=… or say ON …"))
    };
    match statement {
        Statement::ShowDatabases => Ok(Some(databases(app, caller))),
        Statement::ShowMeasurements { database, limit } => measurements(app, caller, &named(database)?, *limit),
        Statement::ShowRetentionPolicies { database } => retention_policies(app, caller, &named(database)?).map(Some),
        Statement::CreateDatabase(name) => create(app, caller, name).await.map(|()| None),
        Statement::DropDatabase(name) => drop_database(app, caller, name).await.map(|()| None),
    }
}

fn databases(app: &App, caller: &Caller) -> Value {
    let seen = app.engine.databases().into_iter().filter(|database| caller.sees(&database.name));
    let names: Vec<_> = seen.map(|database| [database.name]).collect();
    json!([{ "name": "databases", "columns": ["name"], "values": names }])
}

/// As in InfluxDB there is no series where there is no measurement.
fn measurements(app: &App, caller: &Caller, database: &str, limit: usize) -> Result<Option<Value>, Failure> {
    caller.check_sees(database)?;
    let tables = app.engine.tables(database)?.into_iter().map(|table| table.schema.table.to_string());
    let names: Vec<_> =
        tables.filter(|table| caller.sees_table(database, table)).take(limit).map(|name| [name]).collect();
    let series = || json!([{ "name": "measurements", "columns": ["name"], "values": names }]);
    Ok((!names.is_empty()).then(series))
}

/// There is one for each database: how long its points are kept, 0 for ever.
fn retention_policies(app: &App, caller: &Caller, database: &str) -> Result<Value, Failure> {
    caller.check_sees(database)?;
    let kept = app.engine.retention(database, None)?;
    let seconds = kept.filter(|kept| kept.as_nanos() < u128::from(u64::MAX)).map_or(0, |kept| kept.as_secs());
    let duration = format!("{}h{}m{}s", seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let columns = ["name", "duration", "shardGroupDuration", "replicaN", "default"];
    Ok(json!([{ "columns": columns, "values": [["autogen", duration, "24h0m0s", 1, true]] }]))
}

/// Creates a database; as in InfluxDB it may exist. Clients ask for that before they write to what is there.
async fn create(app: &App, caller: &Caller, name: &str) -> Result<(), Failure> {
    if caller.sees(name) && app.engine.databases().iter().any(|database| database.name == name) {
        return Ok(());
    }
    caller.check_all_of(Rights::WRITE, name)?;
    match admin::create(app, name).await {
        Err(failure) if failure.status != StatusCode::CONFLICT => Err(failure),
        _ => Ok(()),
    }
}

/// Drops a database; as in InfluxDB there need be none.
async fn drop_database(app: &App, caller: &Caller, name: &str) -> Result<(), Failure> {
    caller.check_all_of(Rights::DELETE, name)?;
    check_enabled(app)?;
    if !app.engine.databases().iter().any(|database| database.name == name) {
        return Ok(());
    }
    let (engine, name) = (app.engine.clone(), name.to_owned());
    blocking(move || engine.drop_database(&name)).await
}
