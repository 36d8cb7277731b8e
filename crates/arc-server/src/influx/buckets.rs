//! What clients of InfluxDB 2 ask for beside writing: organizations, buckets, whether the server is set up, deletes.
//!
//! A bucket is a database. There is one organization, which everything belongs to, by whatever name it is asked for.

use std::sync::Arc;

use arc_core::{
    DatabaseInfo, Deletion, Engine, Predicate,
    catalog::{Column, ColumnKind},
};
use arrow::datatypes::DataType;
use axum::{
    extract::{Path, Request, State, rejection::PathRejection},
    response::{IntoResponse, Response},
};
use hyper::StatusCode;
use serde_json::{Value, json};

use super::predicate::{self, DeleteRange};
use crate::{
    admin::{self, parse},
    app::App,
    auth::{Caller, Rights},
    body,
    delete::{self, Confirmed, blocking, check_enabled},
    errors::{Failure, json_response},
    http::params::Params,
    timestamp,
};

/// The one organization.
const ORG: &str = "0000000000000001";

/// `GET /api/v2/orgs`.
pub(crate) async fn orgs(State(app): State<Arc<App>>, request: Request) -> Result<Response, Failure> {
    let name = Params::of(request.uri())?.get("org").unwrap_or("arc").to_owned();
    let since = started(&app);
    let org = json!({ "id": ORG, "name": name, "status": "active", "createdAt": since, "updatedAt": since });
    Ok(ok(&json!({ "links": { "self": "/api/v2/orgs" }, "orgs": [org] })))
}

/// `GET /api/v2/me`: the token of the request, as the user that clients ask for.
pub(crate) async fn me(caller: Caller) -> Response {
    ok(&user(&caller))
}

/// `GET /api/v2/users`.
pub(crate) async fn users(caller: Caller) -> Response {
    ok(&json!({ "links": { "self": "/api/v2/users" }, "users": [user(&caller)] }))
}

fn user(caller: &Caller) -> Value {
    let id = format!("{:016x}", caller.number().unwrap_or_default());
    let name = caller.token().map_or("arc", |token| token.name.as_str());
    json!({ "links": { "self": "/api/v2/me" }, "id": id, "name": name, "status": "active" })
}

/// `GET /api/v2/setup`: there is nothing to set up; the first start made a token.
pub(crate) async fn setup() -> Response {
    ok(&json!({ "allowed": false }))
}

/// `POST /api/v2/setup`.
pub(crate) async fn set_up() -> Failure {
    let text = "the server is set up already: its first token is in admin.token in its data directory";
    Failure::new(StatusCode::UNPROCESSABLE_ENTITY, text)
}

/// `GET /api/v2/ready`.
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Response {
    if let Some(reason) = app.not_ready() {
        return Failure::new(StatusCode::SERVICE_UNAVAILABLE, reason).into_response();
    }
    let up = format!("{}s", app.started.elapsed().as_secs());
    ok(&json!({ "status": "ready", "started": started(&app), "up": up }))
}

/// `GET /api/v2/buckets?name=&limit=&offset=`.
pub(crate) async fn list(State(app): State<Arc<App>>, caller: Caller, request: Request) -> Result<Response, Failure> {
    let params = Params::of(request.uri())?;
    let number = |name: &str| params.number(name, 0..=u64::MAX);
    let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let (offset, limit) = (number("offset")?.map_or(0, whole), number("limit")?.map_or(usize::MAX, whole));
    let named = |database: &DatabaseInfo| params.get("name").is_none_or(|name| name == database.name);
    let identified = |database: &DatabaseInfo| params.get("id").is_none_or(|wanted| wanted == id(&database.name));
    let databases = app.engine.databases().into_iter();
    let seen = databases.filter(|database| caller.sees(&database.name) && named(database) && identified(database));
    let page = seen.skip(offset).take(limit);
    let buckets: Vec<Value> = page.map(|database| describe(&database)).collect();
    Ok(ok(&json!({ "links": { "self": "/api/v2/buckets" }, "buckets": buckets })))
}

/// `POST /api/v2/buckets` with `{"name": "…", "retentionRules": [{"everySeconds": 86400}]}`.
pub(crate) async fn create(State(app): State<Arc<App>>, caller: Caller, request: Request) -> Result<Response, Failure> {
    caller.check(Rights::WRITE)?;
    let (parts, body) = request.into_parts();
    let request: Value = parse(&body::read(&app, body, &parts.headers).await?)?;
    let name = request.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| Failure::bad_request("the key name is missing"))?.to_owned();
    caller.check_all_of(Rights::WRITE, &name)?;
    let seconds = retention(&request)?;
    if seconds.is_some() {
        // Before anything is made: what takes points away has rules of its own.
        caller.check_all_of(Rights::ADMIN, &name)?;
        check_enabled(&app)?;
    }
    admin::create(&app, &name).await?;
    if let Some(seconds) = seconds {
        let (engine, name) = (app.engine.clone(), name.clone());
        let retention = std::time::Duration::from_secs(seconds);
        blocking(move || engine.set_retention(&name, None, Some(retention))).await?;
    }
    let made = app.engine.databases().into_iter().find(|database| database.name == name);
    let made = made.ok_or_else(Failure::bug)?;
    Ok(json_response(StatusCode::CREATED, describe(&made).to_string()))
}

/// A bucket's number in the path.
pub(crate) type BucketId = Result<Path<String>, PathRejection>;

/// `GET /api/v2/buckets/{id}`.
pub(crate) async fn get(State(app): State<Arc<App>>, caller: Caller, bucket: BucketId) -> Result<Response, Failure> {
    Ok(ok(&describe(&find(&app, &caller, &bucket?.0)?)))
}

/// `DELETE /api/v2/buckets/{id}`.
pub(crate) async fn drop(State(app): State<Arc<App>>, caller: Caller, bucket: BucketId) -> Result<Response, Failure> {
    let name = find(&app, &caller, &bucket?.0)?.name;
    caller.check_all_of(Rights::DELETE, &name)?;
    check_enabled(&app)?;
    let engine = app.engine.clone();
    blocking(move || engine.drop_database(&name)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /api/v2/delete?bucket=` with `{"start": "…", "stop": "…", "predicate": "_measurement=\"cpu\" AND host=\"a\""}`.
pub(crate) async fn delete(State(app): State<Arc<App>>, caller: Caller, request: Request) -> Result<Response, Failure> {
    caller.check(Rights::DELETE)?;
    check_enabled(&app)?;
    let (parts, body) = request.into_parts();
    let params = Params::of(&parts.uri)?;
    let database = match (params.get("bucket"), params.get("bucketID")) {
        (Some(name), _) => name.to_owned(),
        (None, Some(id)) => find(&app, &caller, id)?.name,
        (None, None) => return Err(Failure::bad_request("missing required parameter \"bucket\"")),
    };
    let request: Value = parse(&body::read(&app, body, &parts.headers).await?)?;
    let wanted = predicate::read(&request)?;
    caller.check_target(Rights::DELETE, &database, wanted.table.as_deref())?;
    let engine = app.engine.clone();
    let deletions = blocking(move || deletions(&engine, &database, &wanted)).await?;
    // There is no way to confirm it there; what is too much is refused all the same, before anything is gone.
    let confirmed = Confirmed(true, "");
    let mut due = Vec::new();
    for deletion in deletions {
        if delete::check(&app, &caller, &deletion, confirmed).await? > 0 {
            due.push(deletion);
        }
    }
    for deletion in due {
        delete::remove(&app, &caller, deletion).await?;
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Returns what is to be deleted of each table that has such points, all of it checked.
fn deletions(engine: &Engine, database: &str, wanted: &DeleteRange) -> arc_core::Result<Vec<Deletion>> {
    let schemas = match &wanted.table {
        Some(table) => vec![engine.schema(database, table)?],
        None => engine.tables(database)?.into_iter().map(|table| table.schema).collect(),
    };
    let mut deletions = Vec::new();
    for schema in schemas {
        let has_column = |name: &str| {
            // Which other columns cannot be compared is said of a table that is named.
            let is_text = |column: &Column| !schema.has_primary_key && column.data_type == DataType::Utf8;
            let mut columns = schema.columns.iter().filter(|column| *column.name == *name);
            columns.any(|column| column.kind == ColumnKind::Tag || wanted.table.is_some() || is_text(column))
        };
        if let Some(condition) = wanted.condition(has_column) {
            let predicate = engine.check_delete(database, &schema.table, &Predicate::from_sql(&condition)?)?;
            deletions.push(Deletion::new(database.to_owned(), schema.table.to_string(), predicate));
        }
    }
    Ok(deletions)
}

/// Reads for how many seconds the points of a bucket are kept; `None` is for ever.
fn retention(request: &Value) -> Result<Option<u64>, Failure> {
    let wrong = || Failure::bad_request("expected \"retentionRules\": [{\"everySeconds\": 86400}]; 0 is for ever");
    let rules = match request.get("retentionRules") {
        None | Some(Value::Null) => return Ok(None),
        Some(rules) => rules.as_array().ok_or_else(wrong)?,
    };
    let seconds = rules.iter().map(|rule| match rule.get("everySeconds") {
        None if rule.is_object() => Ok(0),
        seconds => seconds.and_then(Value::as_u64).ok_or_else(wrong),
    });
    Ok(seconds.collect::<Result<Vec<_>, _>>()?.into_iter().find(|seconds| *seconds > 0))
}

fn find(app: &App, caller: &Caller, wanted: &str) -> Result<DatabaseInfo, Failure> {
    let mut databases = app.engine.databases().into_iter().filter(|database| caller.sees(&database.name));
    let found = databases.find(|database| id(&database.name) == wanted);
    found.ok_or_else(|| Failure::new(StatusCode::NOT_FOUND, "bucket not found"))
}

fn describe(database: &DatabaseInfo) -> Value {
    let created = timestamp::format(database.created_ns);
    let rules = database.retention.map(|retention| json!({ "type": "expire", "everySeconds": retention.as_secs() }));
    json!({
        "id": id(&database.name),
        "orgID": ORG,
        "type": "user",
        "name": database.name,
        "retentionRules": rules.into_iter().collect::<Vec<_>>(),
        "createdAt": created,
        "updatedAt": created,
    })
}

/// Returns the number that a bucket goes by: 64 bits of its name (FNV-1a), as 16 hexadecimal digits.
fn id(name: &str) -> String {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", name.bytes().fold(0xcbf2_9ce4_8422_2325, mix))
}

#[expect(clippy::disallowed_methods, reason = "answers say since when the server runs")]
fn started(app: &App) -> String {
    let since = std::time::SystemTime::now().checked_sub(app.started.elapsed()).unwrap_or(std::time::UNIX_EPOCH);
    let since = since.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    timestamp::format(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

fn ok(body: &Value) -> Response {
    json_response(StatusCode::OK, body.to_string())
}
