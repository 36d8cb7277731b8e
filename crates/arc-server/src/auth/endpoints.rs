//! `/api/v1/auth/…`: tokens made, shown, changed and taken away, in the shapes of Arc's Go server.
//!
//! A token's text is in the answer that made it, and in no other.

use std::sync::Arc;

use axum::{
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
};
use hyper::StatusCode;
use serde_json::{Value, json};

use super::{
    AuthError, Caller,
    request::{self, describe},
    store::{Change, Store},
    token::Token,
};
use crate::{
    admin::parse,
    app::App,
    body,
    errors::{Failure, json_response},
};

/// A token's number in the path.
pub(crate) type TokenId = Result<Path<u64>, PathRejection>;

/// `GET /api/v1/auth/verify`: whether the request's token lets in, and what it may do.
pub(crate) async fn verify(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    match app.auth.verify(&parts.headers, &parts.uri, &parts.extensions).await {
        Some(token) => {
            let info = describe(&token);
            let permissions = info.get("permissions").cloned();
            ok(&json!({ "valid": true, "token_info": info, "permissions": permissions }))
        }
        None => {
            let body = json!({ "valid": false, "error": "Invalid or expired token" });
            json_response(StatusCode::UNAUTHORIZED, body.to_string())
        }
    }
}

/// `GET /api/v1/auth/tokens`.
pub(crate) async fn list(State(app): State<Arc<App>>, caller: Caller) -> Result<Response, Failure> {
    let store = admin(&app, &caller)?;
    let tokens: Vec<Value> = store.all().iter().map(|token| describe(token)).collect();
    Ok(ok(&json!({ "success": true, "count": tokens.len(), "tokens": tokens })))
}

/// `POST /api/v1/auth/tokens` with `{"name": "…", "permissions": [], "databases": [], "tables": [], "expires_in": "30d"}`.
pub(crate) async fn create(State(app): State<Arc<App>>, caller: Caller, request: Request) -> Result<Response, Failure> {
    let store = admin(&app, &caller)?;
    let new = request::new(&read(&app, request).await?)?;
    let (token, secret) = blocking(move || store.create(new)).await?;
    caller.note(|| change("made", &token));
    let body = json!({
        "success": true,
        "token": secret.text(),
        "message": "Token created. Keep it: it is not shown again",
        "id": token.id,
        "token_info": describe(&token),
    });
    Ok(json_response(StatusCode::CREATED, body.to_string()))
}

/// `GET /api/v1/auth/tokens/{id}`.
pub(crate) async fn get(State(app): State<Arc<App>>, caller: Caller, id: TokenId) -> Result<Response, Failure> {
    let token = admin(&app, &caller)?.get(id?.0)?;
    Ok(ok(&json!({ "success": true, "token": describe(&token) })))
}

/// `PATCH /api/v1/auth/tokens/{id}` with some of what makes a token.
pub(crate) async fn patch(
    State(app): State<Arc<App>>,
    caller: Caller,
    id: TokenId,
    request: Request,
) -> Result<Response, Failure> {
    let (store, id) = (admin(&app, &caller)?, id?.0);
    let change = request::change(&read(&app, request).await?)?;
    let token = blocking(move || store.change(id, change)).await?;
    caller.note(|| self::change("changed", &token));
    Ok(ok(&json!({ "success": true, "message": "Token changed", "token": describe(&token) })))
}

/// `DELETE /api/v1/auth/tokens/{id}`.
pub(crate) async fn delete(State(app): State<Arc<App>>, caller: Caller, id: TokenId) -> Result<Response, Failure> {
    let (store, id) = (admin(&app, &caller)?, id?.0);
    let token = blocking(move || store.delete(id)).await?;
    caller.note(|| change("deleted", &token));
    Ok(ok(&json!({ "success": true, "message": "Token deleted" })))
}

/// `POST /api/v1/auth/tokens/{id}/revoke`: it is still there, and lets nobody in.
pub(crate) async fn revoke(State(app): State<Arc<App>>, caller: Caller, id: TokenId) -> Result<Response, Failure> {
    let (store, id) = (admin(&app, &caller)?, id?.0);
    let off = Change { enabled: Some(false), ..Change::default() };
    let token = blocking(move || store.change(id, off)).await?;
    caller.note(|| change("revoked", &token));
    Ok(ok(&json!({ "success": true, "message": "Token revoked" })))
}

/// `POST /api/v1/auth/tokens/{id}/rotate`: another text for the same rights; the old one lets nobody in.
pub(crate) async fn rotate(State(app): State<Arc<App>>, caller: Caller, id: TokenId) -> Result<Response, Failure> {
    let (store, id) = (admin(&app, &caller)?, id?.0);
    let (token, secret) = blocking(move || store.rotate(id)).await?;
    caller.note(|| change("rotated", &token));
    let message = "Token rotated. Keep it: it is not shown again";
    Ok(ok(&json!({ "success": true, "new_token": secret.text(), "message": message })))
}

/// `GET /api/v1/auth/cache/stats`: nothing is cached, for a look at the tokens themselves costs no more.
pub(crate) async fn cache_stats(State(app): State<Arc<App>>, caller: Caller) -> Result<Response, Failure> {
    let tokens = admin(&app, &caller)?.all().len();
    let (accepted, refused) = (app.auth.accepted.get(), app.auth.refused.get());
    Ok(ok(&json!({ "success": true, "stats": { "size": tokens, "hits": accepted, "misses": refused } })))
}

/// `POST /api/v1/auth/cache/invalidate`: changes of tokens are in force at once.
pub(crate) async fn no_cache(State(app): State<Arc<App>>, caller: Caller) -> Result<Response, Failure> {
    admin(&app, &caller)?;
    Ok(ok(&json!({ "success": true, "message": "Nothing is cached: changes of tokens are in force at once" })))
}

/// Returns the tokens for a caller that may change them.
pub(super) fn admin(app: &App, caller: &Caller) -> Result<Arc<Store>, Failure> {
    caller.check_admin()?;
    app.auth.store()
}

/// Returns what the audit log says of a token that was changed.
pub(super) fn change(verb: &str, token: &Token) -> String {
    format!("{verb} token {} {:?}", token.id, token.name)
}

pub(super) async fn read(app: &App, request: Request) -> Result<Value, Failure> {
    let (parts, body) = request.into_parts();
    parse(&body::read(app, body, &parts.headers).await?)
}

/// Waits for the disk on a thread that may.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, AuthError> + Send + 'static,
) -> Result<T, Failure> {
    Ok(tokio::task::spawn_blocking(work).await.map_err(|_| Failure::bug())??)
}

fn ok(body: &Value) -> Response {
    json_response(StatusCode::OK, body.to_string())
}
