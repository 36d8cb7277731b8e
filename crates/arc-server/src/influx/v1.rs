//! What InfluxDB 1.x clients ask for beside writing: `/ping`, and `/query` with the statements that manage databases.
//!
//! Never answers a query for points: that is for SQL, and says so.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use hyper::{Method, StatusCode, header};
use serde_json::{Value, json};

use crate::{
    admin,
    app::App,
    auth::{Caller, Rights},
    body,
    delete::{self, blocking},
    errors::{Failure, json_response},
    http::params::Params,
    influx::influxql::{self, RetentionClause, Statement},
    retention::check_period,
};

/// InfluxDB refuses less, too: what is meant is mostly another unit, and points that are too old are gone at once.
const SHORTEST_RETENTION: Duration = Duration::from_secs(3_600);

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
    let statements = influxql::statements(text).map_err(Failure::bad_request)?;
    if parts.method == Method::GET && statements.iter().any(Statement::is_change) {
        return Err(Failure::method_not_allowed("GET changes nothing: send CREATE, ALTER and DROP with POST", "POST"));
    }
    let mut results = Vec::with_capacity(statements.len());
    for (id, statement) in statements.into_iter().enumerate() {
        let mut result = json!({ "statement_id": id });
        let series = run(app, &caller, statement, params.get("db")).await?;
        if let (Some(result), Some(series)) = (result.as_object_mut(), series) {
            result.insert("series".to_owned(), series);
        }
        results.push(result);
    }
    Ok(results)
}

/// Runs one statement; returns what it shows.
async fn run(
    app: &Arc<App>,
    caller: &Caller,
    statement: Statement,
    database: Option<&str>,
) -> Result<Option<Value>, Failure> {
    let named = |on: Option<String>| {
        let missing = || Failure::bad_request("no database is named; expected ON \"name\", or the parameter db");
        on.or_else(|| database.map(str::to_owned)).ok_or_else(missing)
    };
    match statement {
        Statement::ShowDatabases => return Ok(Some(databases(app, caller))),
        Statement::ShowMeasurements(on) => return measurements(app, caller, &named(on)?),
        Statement::ShowRetentionPolicies(on) => return retention_policies(app, caller, &named(on)?).map(Some),
        Statement::CreateDatabase(name, policy) => create(app, caller, name, &policy).await?,
        Statement::CreateRetentionPolicy(name, policy) => {
            if !policy.is_default {
                return Err(Failure::bad_request(
                    "a database has one retention policy; expected DEFAULT, which makes it that of all points",
                ));
            }
            keep(app, caller, name, &policy).await?;
        }
        Statement::AlterRetentionPolicy(name, policy) => keep(app, caller, name, &policy).await?,
        Statement::DropDatabase(name) => {
            caller.check_all_of(Rights::DELETE, &name)?;
            delete::check_enabled(app)?;
            let engine = app.engine.clone();
            is_gone(blocking(move || engine.drop_database(&name)).await)?;
        }
        Statement::DropMeasurement(table) => {
            let database = named(None)?;
            caller.check_target(Rights::DELETE, &database, Some(&table))?;
            delete::check_enabled(app)?;
            let engine = app.engine.clone();
            blocking(move || engine.drop_table(&database, &table)).await?;
        }
    }
    Ok(None)
}

/// As in InfluxDB, what is to go may be gone.
fn is_gone(dropped: Result<(), Failure>) -> Result<(), Failure> {
    match dropped {
        Err(failure) if failure.status == StatusCode::NOT_FOUND => Ok(()),
        dropped => dropped,
    }
}

fn databases(app: &App, caller: &Caller) -> Value {
    let seen = app.engine.databases().into_iter().filter(|database| caller.sees(&database.name));
    let names: Vec<_> = seen.map(|database| [database.name]).collect();
    json!([{ "name": "databases", "columns": ["name"], "values": names }])
}

fn measurements(app: &App, caller: &Caller, database: &str) -> Result<Option<Value>, Failure> {
    caller.check_sees(database)?;
    let tables = app.engine.tables(database)?.into_iter().map(|table| table.schema.table.to_string());
    let names: Vec<_> = tables.filter(|table| caller.sees_table(database, table)).map(|table| [table]).collect();
    // InfluxDB has no series where there is nothing.
    let series = json!([{ "name": "measurements", "columns": ["name"], "values": names }]);
    Ok((!names.is_empty()).then_some(series))
}

/// Shows how long points are kept as the one policy that a database has, by the name that InfluxDB gives to its first.
fn retention_policies(app: &App, caller: &Caller, database: &str) -> Result<Value, Failure> {
    caller.check_sees(database)?;
    let kept = app.engine.retention(database, None)?.filter(|kept| kept.as_nanos() < u128::from(u64::MAX));
    let seconds = kept.map_or(0, |kept| kept.as_secs());
    let duration = match seconds {
        0 => "0s".to_owned(),
        _ => format!("{}h{}m{}s", seconds / 3600, seconds / 60 % 60, seconds % 60),
    };
    let columns = ["name", "duration", "shardGroupDuration", "replicaN", "default"];
    Ok(json!([{ "columns": columns, "values": [["autogen", duration, "24h0m0s", 1, true]] }]))
}

/// Creates a database; as in InfluxDB it may exist. Clients ask for that before they write to what is there.
async fn create(app: &Arc<App>, caller: &Caller, name: String, policy: &RetentionClause) -> Result<(), Failure> {
    if caller.sees(&name) && app.engine.databases().iter().any(|database| database.name == name) {
        let Some(wanted) = policy.duration else { return Ok(()) };
        if app.engine.retention(&name, None)?.unwrap_or(Duration::MAX) == wanted {
            return Ok(());
        }
        let differs = "it keeps its points for another time; change it by ALTER RETENTION POLICY";
        return Err(Failure::new(StatusCode::CONFLICT, format!("database {name:?} exists, and {differs}")));
    }
    caller.check_all_of(Rights::WRITE, &name)?;
    check_policy(app, caller, &name, policy)?;
    match admin::create(app, &name).await {
        Err(failure) if failure.status != StatusCode::CONFLICT => return Err(failure),
        _ => {}
    }
    keep(app, caller, name, policy).await
}

/// Keeps the points of a database as long as a policy says, if it says so.
async fn keep(app: &Arc<App>, caller: &Caller, name: String, policy: &RetentionClause) -> Result<(), Failure> {
    check_policy(app, caller, &name, policy)?;
    let Some(duration) = policy.duration else { return Ok(()) };
    let engine = app.engine.clone();
    // What is kept for ever is what has no setting.
    blocking(move || engine.set_retention(&name, None, (duration < Duration::MAX).then_some(duration))).await
}

fn check_policy(app: &App, caller: &Caller, name: &str, policy: &RetentionClause) -> Result<(), Failure> {
    let Some(duration) = policy.duration else { return Ok(()) };
    caller.check_target(Rights::ADMIN, name, None)?;
    delete::check_enabled(app)?;
    if duration < SHORTEST_RETENTION {
        return Err(Failure::bad_request("points are kept for one hour or longer; expected a DURATION such as 30d"));
    }
    check_period(name, duration)
}
