//! How strict a database or a measurement is about types, over HTTP.
//!
//! Owns the shape of the setting in JSON: the keys `string_columns`, `on_conflict`, `time_unit` and
//! `finer_times`. What they mean is the engine's.

use std::sync::Arc;

use arc_core::{ColumnTypes, Error};
use axum::{
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
};
use hyper::StatusCode;
use serde_json::{Map, Value, json};

use crate::{
    admin::parse,
    app::App,
    auth::{Caller, Rights, check_internal},
    body,
    delete::blocking,
    errors::{Failure, json_response},
};

/// A database and a measurement of it in the path.
pub(crate) type TablePath = Result<Path<(String, String)>, PathRejection>;

/// `GET /api/v1/databases/{name}/measurements/{measurement}`.
pub(crate) async fn get(State(app): State<Arc<App>>, caller: Caller, path: TablePath) -> Result<Response, Failure> {
    let Path((database, table)) = path?;
    caller.check_table(Rights::READ, &database, &table)?;
    describe_measurement(&app, &database, &table)
}

/// `GET /api/v1/databases/{name}/measurements/{measurement}/column-types`: what holds for a measurement, which need not be
/// there, by its own setting, its database's or the server's.
pub(crate) async fn in_force(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: TablePath,
) -> Result<Response, Failure> {
    let Path((database, table)) = path?;
    // The importer asks, which may write alone.
    let writes = caller.check_table(Rights::WRITE, &database, &table);
    writes.or_else(|_| caller.check_table(Rights::READ, &database, &table))?;
    let types = app.engine.effective_column_types(&database, Some(&table));
    Ok(json_response(StatusCode::OK, json!(types).to_string()))
}

/// `PATCH /api/v1/databases/{name}/measurements/{measurement}` with `{"string_columns": ["attr_*"],
/// "on_conflict": "widen", "time_unit": "us", "finer_times": "reject"}`, or some of them; null to go by the database's.
pub(crate) async fn patch(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: TablePath,
    request: Request,
) -> Result<Response, Failure> {
    let Path((database, table)) = path?;
    caller.check_table(Rights::ADMIN, &database, &table)?;
    check_internal(Rights::WRITE, &database)?;
    let (parts, body) = request.into_parts();
    let body = body::read(&app, body, &parts.headers).await?;
    let request = parse(&body)?;
    let example = "{\"string_columns\": [\"attr_*\"], \"on_conflict\": \"widen\", \"time_unit\": \"us\", \
                   \"finer_times\": \"reject\"}";
    let expected = || Failure::bad_request(format!("expected {example}"));
    let request = request.as_object().filter(|request| !request.is_empty()).ok_or_else(expected)?;
    if let Some(unknown) = request.keys().find(|key| !is_key(key)) {
        return Err(Failure::bad_request(format!(
            "unknown key {unknown:?}; string_columns, on_conflict, time_unit and finer_times are known"
        )));
    }
    let types = changed(app.engine.column_types(&database, Some(&table))?, request)?;
    let (engine, of) = (app.engine.clone(), (database.clone(), table.clone()));
    blocking(move || engine.set_column_types(&of.0, Some(&of.1), &types)).await?;
    describe_measurement(&app, &database, &table)
}

/// Returns whether a key of a request is one of the setting's.
pub(crate) fn is_key(key: &str) -> bool {
    matches!(key, "string_columns" | "on_conflict" | "time_unit" | "finer_times")
}

/// Returns a setting with what a request says in place of what it said; null takes it away.
pub(crate) fn changed(mut types: ColumnTypes, request: &Map<String, Value>) -> Result<ColumnTypes, Failure> {
    match request.get("string_columns") {
        None => {}
        Some(Value::Null) => types.string_columns = None,
        Some(patterns) => {
            let read = |pattern: &Value| pattern.as_str().map(str::to_owned);
            let patterns: Option<Vec<String>> =
                patterns.as_array().and_then(|patterns| patterns.iter().map(read).collect());
            let expected = || Failure::bad_request("string_columns: expected an array of patterns like \"attr_*\"");
            types.string_columns = Some(patterns.ok_or_else(expected)?);
        }
    }
    match request.get("on_conflict") {
        None => {}
        Some(Value::Null) => types.on_conflict = None,
        Some(Value::String(name)) => types.on_conflict = Some(name.parse().map_err(Failure::bad_request)?),
        Some(_) => return Err(Failure::bad_request("on_conflict: expected \"reject\" or \"widen\"")),
    }
    match request.get("time_unit") {
        None => {}
        Some(Value::Null) => types.time_unit = None,
        Some(Value::String(name)) => types.time_unit = Some(name.parse().map_err(Failure::bad_request)?),
        Some(_) => return Err(Failure::bad_request("time_unit: expected \"ns\", \"us\" or \"ms\"")),
    }
    match request.get("finer_times") {
        None => {}
        Some(Value::Null) => types.finer_times = None,
        Some(Value::String(name)) => types.finer_times = Some(name.parse().map_err(Failure::bad_request)?),
        Some(_) => return Err(Failure::bad_request("finer_times: expected \"keep\", \"reject\" or \"round\"")),
    }
    Ok(types)
}

/// Adds the keys of a setting to a description.
pub(crate) fn describe(mut of: Value, types: &ColumnTypes) -> Value {
    if let Some(of) = of.as_object_mut() {
        of.insert("string_columns".to_owned(), json!(types.string_columns));
        of.insert("on_conflict".to_owned(), json!(types.on_conflict.map(|on_conflict| on_conflict.to_string())));
        of.insert("time_unit".to_owned(), json!(types.time_unit.map(|unit| unit.to_string())));
        of.insert("finer_times".to_owned(), json!(types.finer_times.map(|finer_times| finer_times.to_string())));
    }
    of
}

fn describe_measurement(app: &App, database: &str, name: &str) -> Result<Response, Failure> {
    let tables = app.engine.tables(database)?;
    let table = tables.into_iter().find(|table| &*table.schema.table == name);
    let missing = || Error::TableNotFound { database: database.to_owned(), table: name.to_owned() };
    let table = table.ok_or_else(missing)?;
    let columns = table.schema.arrow();
    let columns: Vec<Value> = (columns.fields().iter())
        .map(|field| json!({ "name": field.name(), "type": field.data_type().to_string() }))
        .collect();
    let described = json!({ "database": database, "measurement": name, "columns": columns });
    Ok(json_response(StatusCode::OK, describe(described, &table.column_types).to_string()))
}
