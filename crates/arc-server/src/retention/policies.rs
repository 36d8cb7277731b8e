//! `/api/v1/retention` by numbers: policies made, shown, changed and taken away, in the shapes of Arc's Go server.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use hyper::{HeaderMap, StatusCode, Uri};
use serde_json::{Value, json};

use super::{policy::Policy, request::WantedPolicy, settings, store::missing};
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

/// `GET /api/v1/retention`: all policies, and all settings that no policy has made.
pub(crate) async fn list(State(app): State<Arc<App>>, caller: Caller, headers: HeaderMap) -> Response {
    let policies = app.policies.all();
    let seen = policies.iter().filter(|policy| policy.target().check_sees(&caller).is_ok());
    let mut items: Vec<Value> = seen.map(|policy| describe(&app, policy)).collect();
    if is_python_client(&headers) {
        return ok(&json!({ "count": items.len(), "policies": items }));
    }
    let has_policy = |target: &super::Target, kept| {
        policies.iter().any(|policy| policy.is_active && policy.period() == kept && policy.target() == *target)
    };
    let by_name = settings::all(&app, &caller).into_iter().filter(|(target, kept)| !has_policy(target, *kept));
    items.extend(by_name.map(|(target, kept)| settings::describe(&target, kept)));
    ok(&items.into())
}

/// `GET /api/v1/retention/{id}`.
pub(super) fn get(app: &App, caller: &Caller, id: u64) -> Result<Response, Failure> {
    Ok(ok(&describe(app, &seen(app, caller, id)?)))
}

/// `POST /api/v1/retention` with `{"name", "database", "measurement", "retention_days", "buffer_days", "is_active"}`.
pub(crate) async fn create(State(app): State<Arc<App>>, caller: Caller, request: Request) -> Result<Response, Failure> {
    caller.check(Rights::ADMIN)?;
    check_enabled(&app)?;
    let wanted = WantedPolicy::read(&read(&app, request).await?)?;
    let database = wanted.database.as_deref().unwrap_or_default();
    caller.check_target(Rights::ADMIN, database, wanted.measurement.as_ref().and_then(Option::as_deref))?;
    let made = Arc::clone(&app);
    let policy = blocking(move || made.policies.create(&made.engine, wanted)).await?;
    Ok(json_response(StatusCode::CREATED, describe(&app, &policy).to_string()))
}

/// `PUT /api/v1/retention/{id}` with what is to be different; the rest stays.
pub(super) async fn put(app: &Arc<App>, caller: &Caller, id: u64, request: Request) -> Result<Response, Failure> {
    check_admin(app, caller, id)?;
    check_enabled(app)?;
    let wanted = WantedPolicy::read(&read(app, request).await?)?;
    let (changed, caller) = (Arc::clone(app), caller.clone());
    let may = move |target: &super::Target| target.check_admin(&caller);
    let policy = blocking(move || changed.policies.put(&changed.engine, id, wanted, may)).await?;
    Ok(ok(&describe(app, &policy)))
}

/// `DELETE /api/v1/retention/{id}`.
pub(super) async fn delete(app: &Arc<App>, caller: &Caller, id: u64) -> Result<Response, Failure> {
    check_admin(app, caller, id)?;
    check_enabled(app)?;
    let changed = Arc::clone(app);
    let policy = blocking(move || changed.policies.delete(&changed.engine, id)).await?;
    Ok(ok(&json!({ "message": format!("Retention policy {:?} deleted", policy.name) })))
}

/// `GET /api/v1/retention/{id}/executions?limit=`: the newest first.
pub(super) fn executions(app: &App, caller: &Caller, id: u64, uri: &Uri) -> Result<Response, Failure> {
    let policy = seen(app, caller, id)?;
    let limit = Params::of(uri)?.number("limit", 0..=u64::MAX)?;
    let limit = limit.map_or(EXECUTIONS, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let executions: Vec<Value> =
        policy.executions.iter().rev().take(limit).map(|execution| execution.describe(id)).collect();
    Ok(ok(&json!({ "policy_id": id, "executions": executions })))
}

/// Returns a policy that a caller may know of; any other is not there.
fn seen(app: &App, caller: &Caller, id: u64) -> Result<Policy, Failure> {
    let policy = app.policies.get(id)?;
    policy.target().check_sees(caller).map_err(|_| missing(&id.to_string()))?;
    Ok(policy)
}

/// Refuses who may not change a policy; who may change none is not told which there are.
pub(super) fn check_admin(app: &App, caller: &Caller, id: u64) -> Result<Policy, Failure> {
    caller.check(Rights::ADMIN)?;
    let policy = seen(app, caller, id)?;
    policy.target().check_admin(caller)?;
    Ok(policy)
}

fn describe(app: &App, policy: &Policy) -> Value {
    // It may have been dropped; then nothing of it is kept for any time.
    let in_force = app.engine.retention(&policy.database, policy.measurement.as_deref()).unwrap_or_default();
    policy.describe(in_force)
}

async fn read(app: &App, request: Request) -> Result<Value, Failure> {
    let (parts, body) = request.into_parts();
    parse(&body::read(app, body, &parts.headers).await?)
}

/// Waits for the disk on a thread that may.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Failure::bug())?
}

fn ok(body: &Value) -> Response {
    json_response(StatusCode::OK, body.to_string())
}
