//! `/api/v3/configure/database` and `/api/v3/configure/table`: what the tools of InfluxDB 3 make and drop.

use std::sync::Arc;

use arc_core::catalog::{Column, ColumnKind, TableSchema};
use arrow::datatypes::DataType;
use axum::{
    extract::{Request, State},
    response::Response,
};
use hyper::StatusCode;
use serde_json::{Value, json};

use crate::{
    admin::{self, parse},
    app::App,
    auth::{Caller, Rights},
    body,
    delete::{blocking, check_enabled},
    errors::{Failure, json_response},
    http::params::Params,
};

/// `GET /api/v3/configure/database?format=json`.
pub(crate) async fn databases(State(app): State<Arc<App>>, caller: Caller) -> Response {
    let seen = app.engine.databases().into_iter().filter(|database| caller.sees(&database.name));
    let rows: Vec<Value> = seen.map(|database| json!({ "iox::database": database.name })).collect();
    json_response(StatusCode::OK, Value::from(rows).to_string())
}

/// `POST /api/v3/configure/database` with `{"db": "…"}`.
pub(crate) async fn create_database(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Failure> {
    caller.check(Rights::WRITE)?;
    let request = read(&app, request).await?;
    let name = text(&request, "db")?;
    if request.get("retention_period").is_some_and(|period| !period.is_null()) {
        return Err(Failure::bad_request("retention_period is set with PUT /api/v1/retention/{database} here"));
    }
    caller.check_all_of(Rights::WRITE, name)?;
    admin::create(&app, name).await?;
    Ok(json_response(StatusCode::OK, "{}"))
}

/// `DELETE /api/v3/configure/database?db=`.
pub(crate) async fn drop_database(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Failure> {
    let params = Params::of(request.uri())?;
    let name = required(&params, "db")?.to_owned();
    caller.check_all_of(Rights::DELETE, &name)?;
    check_enabled(&app)?;
    let engine = app.engine.clone();
    blocking(move || engine.drop_database(&name)).await?;
    Ok(json_response(StatusCode::OK, "{}"))
}

/// `POST /api/v3/configure/table` with `{"db": "…", "table": "…", "tags": ["…"], "fields": [{"name": "…", "type": "float64"}]}`.
pub(crate) async fn create_table(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Failure> {
    caller.check(Rights::WRITE)?;
    let request = read(&app, request).await?;
    let (database, table) = (text(&request, "db")?, text(&request, "table")?);
    caller.check_target(Rights::WRITE, database, Some(table))?;
    let columns = columns(&request)?;
    let schema = TableSchema { database: database.into(), table: table.into(), has_primary_key: true, columns };
    let engine = app.engine.clone();
    blocking(move || engine.create_table(&schema)).await?;
    Ok(json_response(StatusCode::OK, "{}"))
}

/// `DELETE /api/v3/configure/table?db=&table=`.
pub(crate) async fn drop_table(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Failure> {
    let params = Params::of(request.uri())?;
    let (database, table) = (required(&params, "db")?.to_owned(), required(&params, "table")?.to_owned());
    caller.check_target(Rights::DELETE, &database, Some(&table))?;
    check_enabled(&app)?;
    let engine = app.engine.clone();
    blocking(move || engine.drop_table(&database, &table)).await?;
    Ok(json_response(StatusCode::OK, "{}"))
}

fn columns(request: &Value) -> Result<Vec<Column>, Failure> {
    let wrong = || {
        Failure::bad_request("expected \"tags\": [\"…\"] and \"fields\": [{\"name\": \"…\", \"type\": \"float64\"}]")
    };
    let list = |key: &str| match request.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => Ok(items.clone()),
        Some(_) => Err(wrong()),
    };
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let mut columns = Vec::new();
    for tag in list("tags")? {
        let name = tag.as_str().ok_or_else(wrong)?.into();
        columns.push(Column { name, kind: ColumnKind::Tag, data_type: dictionary.clone() });
    }
    for field in list("fields")? {
        let name = field.get("name").and_then(Value::as_str).ok_or_else(wrong)?;
        let data_type = match field.get("type").and_then(Value::as_str) {
            Some("utf8") => DataType::Utf8,
            Some("int64") => DataType::Int64,
            Some("uint64") => DataType::UInt64,
            Some("float64") => DataType::Float64,
            Some("bool") => DataType::Boolean,
            other => {
                let text = format!(
                    "the type {other:?} of {name:?} is not known; expected utf8, int64, uint64, float64 or bool"
                );
                return Err(Failure::bad_request(text));
            }
        };
        columns.push(Column { name: name.into(), kind: ColumnKind::Field, data_type });
    }
    Ok(columns)
}

async fn read(app: &App, request: Request) -> Result<Value, Failure> {
    let (parts, body) = request.into_parts();
    parse(&body::read(app, body, &parts.headers).await?)
}

fn text<'a>(request: &'a Value, key: &str) -> Result<&'a str, Failure> {
    let text = request.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    text.ok_or_else(|| Failure::bad_request(format!("the key {key} is missing or no text")))
}

fn required<'a>(params: &'a Params, name: &str) -> Result<&'a str, Failure> {
    params.get(name).ok_or_else(|| Failure::bad_request(format!("missing required parameter {name:?}")))
}
