//! Continuous queries over HTTP: a statement whose rows are written to another measurement, window of time by window, in the
//! shapes of Arc's Go server.
//!
//! A query that is active runs by itself at the end of each interval; any runs when it is told to. A window that is computed
//! again replaces what it gave before, for its rows have the same tags and times. A query reads its own database and no other:
//! it was made by somebody who may do everything there, and perhaps nowhere else.

mod execute;
mod query;
mod request;
mod schedule;
mod store;

use std::sync::Arc;

use arc_core::ErrorKind;
use axum::{
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
};
use hyper::{HeaderMap, StatusCode, Uri};
use serde_json::{Value, json};

use self::{query::ContinuousQuery, request::WantedQuery};
pub(crate) use self::{schedule::run, store::ContinuousQueries};
use crate::{
    admin::parse,
    app::App,
    auth::{Caller, Rights},
    body,
    delete::check_enabled,
    errors::{Failure, json_response},
    http::params::{Params, is_python_client},
};

/// Executions that are shown if nobody says how many.
const EXECUTIONS: usize = 50;

/// The number in a path.
type QueryId = Result<Path<String>, PathRejection>;

/// `GET /api/v1/continuous_queries?database=&is_active=`.
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let params = Params::of(&uri)?;
    let is_active = match params.get("is_active") {
        None | Some("") => None,
        Some(text) => {
            Some(text.parse().map_err(|_| Failure::bad_request("the parameter is_active is neither true nor false"))?)
        }
    };
    let database = params.get("database").filter(|name| !name.is_empty());
    let queries = app.continuous.all();
    let wanted = queries.iter().filter(|query| {
        caller.check_all_of(Rights::ADMIN, &query.database).is_ok()
            && database.is_none_or(|name| query.database == name)
            && is_active.is_none_or(|is_active: bool| query.is_active == is_active)
    });
    let items: Vec<Value> = wanted.map(ContinuousQuery::describe).collect();
    Ok(match is_python_client(&headers) {
        true => ok(&json!({ "count": items.len(), "queries": items })),
        false => ok(&items.into()),
    })
}

/// `POST /api/v1/continuous_queries`.
pub(crate) async fn create(State(app): State<Arc<App>>, caller: Caller, request: Request) -> Result<Response, Failure> {
    caller.check(Rights::ADMIN)?;
    let headers = request.headers().clone();
    let wanted = WantedQuery::read(&read(&app, request).await?)?;
    let made = Arc::clone(&app);
    let query = blocking(move || made.continuous.create(wanted, |query| check(&made, &caller, query))).await?;
    put_in_force(&app, &query).await?;
    Ok(json_response(StatusCode::CREATED, shown(&query, &headers).to_string()))
}

/// `GET /api/v1/continuous_queries/{id}`.
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    id: QueryId,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    Ok(ok(&shown(&of(&app, &caller, id)?, &headers)))
}

/// `PUT` of the same, with what is to be different.
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    caller: Caller,
    id: QueryId,
    request: Request,
) -> Result<Response, Failure> {
    let id = of(&app, &caller, id)?.id;
    let headers = request.headers().clone();
    let wanted = WantedQuery::read(&read(&app, request).await?)?;
    let changed = Arc::clone(&app);
    let query = blocking(move || changed.continuous.put(id, wanted, |query| check(&changed, &caller, query))).await?;
    put_in_force(&app, &query).await?;
    Ok(ok(&shown(&query, &headers)))
}

/// `DELETE` of the same: what it has written stays.
pub(crate) async fn delete(State(app): State<Arc<App>>, caller: Caller, id: QueryId) -> Result<Response, Failure> {
    let query = of(&app, &caller, id)?;
    let changed = Arc::clone(&app);
    blocking(move || changed.continuous.delete(query.id)).await?;
    Ok(ok(&json!({ "message": format!("Continuous query {:?} deleted", query.name) })))
}

/// `POST /api/v1/continuous_queries/{id}/execute` with `{"start_time", "end_time", "dry_run"}`, or nothing.
pub(crate) async fn execute(
    State(app): State<Arc<App>>,
    caller: Caller,
    id: QueryId,
    request: Request,
) -> Result<Response, Failure> {
    let query = of(&app, &caller, id)?;
    let (parts, body) = request.into_parts();
    let body = body::read(&app, body, &parts.headers).await?;
    let body = if body.is_empty() { json!({}) } else { parse(&body)? };
    execute::on_request(&app, query, &body).await.map(|answer| ok(&answer))
}

/// `GET /api/v1/continuous_queries/{id}/executions?limit=`: the newest first.
pub(crate) async fn executions(
    State(app): State<Arc<App>>,
    caller: Caller,
    id: QueryId,
    uri: Uri,
) -> Result<Response, Failure> {
    let query = of(&app, &caller, id)?;
    let limit = Params::of(&uri)?.number("limit", 0..=u64::MAX)?;
    let limit = limit.map_or(EXECUTIONS, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let executions: Vec<Value> =
        query.executions.iter().rev().take(limit).map(|execution| execution.describe(query.id)).collect();
    Ok(ok(&json!({ "query_id": query.id, "executions": executions })))
}

/// Shows a query. The Python client of Arc takes the statement in it for the query itself, unless it is in an object.
fn shown(query: &ContinuousQuery, headers: &HeaderMap) -> Value {
    if is_python_client(headers) { json!({ "query": query.describe() }) } else { query.describe() }
}

/// Returns a query that the caller may see and change; who may change none is not told which there are.
fn of(app: &App, caller: &Caller, id: QueryId) -> Result<ContinuousQuery, Failure> {
    caller.check(Rights::ADMIN)?;
    let Path(id) = id?;
    let query = app.continuous.get(id.parse().map_err(|_| store::missing(&id))?)?;
    caller.check_sees(&query.database).map_err(|_| store::missing(&id))?;
    caller.check_target(Rights::ADMIN, &query.database, None)?;
    Ok(query)
}

/// Refuses a query that its maker may not have, or that could not run.
fn check(app: &App, caller: &Caller, query: &ContinuousQuery) -> Result<(), Failure> {
    caller.check_target(Rights::ADMIN, &query.database, None)?;
    caller.check_target(Rights::WRITE, &query.database, Some(&query.destination_measurement))?;
    if query.retention_days.is_some() || query.delete_source_after_days.is_some() {
        check_enabled(app)?;
    }
    query.has_destination(&app.engine)?;
    let statement = query.check()?;
    match futures::executor::block_on(app.engine.describe(&query.database, &execute::within(query, statement), None)) {
        Ok(described) if !described.parameters.fields().is_empty() => {
            let name = described.parameters.field(0).name();
            Err(Failure::bad_request(format!("query: the placeholder {name} has no value when it runs")))
        }
        Ok(described) if described.columns.field_with_name("time").is_err() => {
            let text = "query: expected a column named time in its rows; they are written as points";
            Err(Failure::bad_request(text))
        }
        Ok(_) => Ok(()),
        // What it reads may come later.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == ErrorKind::InvalidInput => Err(Failure::bad_request(format!("query: {error}"))),
        Err(error) => Err(error.into()),
    }
}

/// Has the engine keep points for as long as a query says, of those of its measurements that there are.
async fn put_in_force(app: &Arc<App>, query: &ContinuousQuery) -> Result<(), Failure> {
    let (engine, query) = (app.engine.clone(), query.clone());
    blocking(move || query.put_in_force(&engine).map_err(Failure::from)).await
}

async fn read(app: &App, request: Request) -> Result<Value, Failure> {
    let (parts, body) = request.into_parts();
    parse(&body::read(app, body, &parts.headers).await?)
}

/// Waits for the disk on a thread that may.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Failure> + Send + 'static) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Failure::bug())?
}

fn ok(body: &Value) -> Response {
    json_response(StatusCode::OK, body.to_string())
}
