//! `/api/v3/configure/token…`: tokens as the tools of InfluxDB 3 make them.
//!
//! Its rights are those for databases; what it says of other resources is refused.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use hyper::StatusCode;
use serde_json::{Value, json};

use super::{
    Caller, Rights,
    endpoints::{admin, blocking, change, read},
    grant::{Grant, Patterns},
    limits::TokenLimits,
    request::{invalid, time},
    secret::Secret,
    store::NewToken,
    token::{Token, now_ms},
};
use crate::{
    app::App,
    errors::{Failure, json_response},
    http::params::Params,
};

/// The name that its first administrator has.
const ADMIN: &str = "_admin";

/// `POST /api/v3/configure/token/admin`, which takes no body.
pub(crate) async fn create_admin(State(app): State<Arc<App>>, caller: Caller) -> Result<Response, Failure> {
    make(&app, &caller, named_admin(ADMIN.to_owned(), None)?).await
}

/// `POST /api/v3/configure/token/named_admin` with `{"token_name": "…", "expiry_secs": 3600}`.
pub(crate) async fn create_named_admin(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Failure> {
    caller.check_admin()?;
    let request = read(&app, request).await?;
    make(&app, &caller, named_admin(name(&request)?, expiry(&request)?)?).await
}

/// `POST /api/v3/configure/token` and `/api/v3/enterprise/configure/token` with `{"token_name": "…", "permissions":
/// [{"resource_type": "db", "resource_identifier": ["plant"], "actions": ["read"]}], "expiry_secs": 3600}`.
pub(crate) async fn create_scoped(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Failure> {
    caller.check_admin()?;
    let request = read(&app, request).await?;
    let missing = || Failure::bad_request("the key permissions is missing or no list");
    let permissions = request.get("permissions").and_then(Value::as_array).ok_or_else(missing)?;
    let grants = permissions.iter().map(grant).collect::<Result<_, _>>()?;
    let new = NewToken {
        name: name(&request)?,
        description: None,
        grants,
        expires_ms: expiry(&request)?,
        limits: TokenLimits::default(),
    };
    make(&app, &caller, new).await
}

/// `DELETE /api/v3/configure/token?token_name=`.
pub(crate) async fn delete_named(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Failure> {
    let store = admin(&app, &caller)?;
    let params = Params::of(request.uri())?;
    let missing = || Failure::bad_request("missing required parameter \"token_name\"");
    let name = params.get("token_name").ok_or_else(missing)?.to_owned();
    let token = blocking(move || store.delete(store.named(&name)?.id)).await?;
    caller.note(|| change("deleted", &token));
    Ok(json_response(StatusCode::OK, "{}"))
}

async fn make(app: &App, caller: &Caller, new: NewToken) -> Result<Response, Failure> {
    let store = admin(app, caller)?;
    let (token, secret) = blocking(move || store.create(new)).await?;
    caller.note(|| change("made", &token));
    Ok(json_response(StatusCode::CREATED, shown(&token, &secret).to_string()))
}

fn shown(token: &Token, secret: &Secret) -> Value {
    json!({
        "id": token.id,
        "name": token.name,
        "token": secret.text(),
        "created_at": time(token.created_ms),
        "expiry": token.expires_ms.map(time),
    })
}

fn named_admin(name: String, expires_ms: Option<i64>) -> Result<NewToken, Failure> {
    let grants = vec![Grant::everywhere(Rights::named(["admin"]).map_err(invalid)?)];
    Ok(NewToken { name, description: None, grants, expires_ms, limits: TokenLimits::default() })
}

fn name(request: &Value) -> Result<String, Failure> {
    let missing = || Failure::bad_request("the key token_name is missing or no string");
    request.get("token_name").and_then(Value::as_str).map(str::to_owned).ok_or_else(missing)
}

fn expiry(request: &Value) -> Result<Option<i64>, Failure> {
    match request.get("expiry_secs") {
        None | Some(Value::Null) => Ok(None),
        Some(seconds) => {
            let seconds = seconds.as_i64().filter(|seconds| *seconds > 0);
            let seconds = seconds.ok_or_else(|| Failure::bad_request("expiry_secs is no number of seconds from 1"))?;
            Ok(Some(now_ms().saturating_add(seconds.saturating_mul(1_000))))
        }
    }
}

fn grant(permission: &Value) -> Result<Grant, Failure> {
    let texts = |key: &str| {
        let wrong = || Failure::bad_request(format!("the key {key} of a permission is missing or no list of strings"));
        let items = permission.get(key).and_then(Value::as_array).ok_or_else(wrong)?;
        items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong)).collect::<Result<Vec<_>, _>>()
    };
    match permission.get("resource_type").and_then(Value::as_str) {
        Some("db") => {}
        other => {
            let text = format!("the resource type {:?} is not known; expected db", other.unwrap_or_default());
            return Err(Failure::bad_request(text));
        }
    }
    let rights = Rights::named(texts("actions")?.iter().map(String::as_str)).map_err(invalid)?;
    let databases = Patterns::new(texts("resource_identifier")?).map_err(invalid)?;
    Ok(Grant { rights, databases, tables: Patterns::all() })
}
