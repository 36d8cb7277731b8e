//! `/api/v1/console/documents`: saved queries, notebooks and dashboards.
//!
//! A caller sees documents of their own and those that are shared; one changes their own, administrators all.

use std::sync::Arc;

use axum::{
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
};
use hyper::StatusCode;
use serde_json::{Value, json};

use super::request::{DocumentKind, WantedDocument};
use crate::{
    admin::parse,
    app::App,
    auth::Caller,
    body,
    errors::{Failure, json_response},
    http::params::Params,
};

/// A document's number in the path.
pub(crate) type DocumentId = Result<Path<u64>, PathRejection>;

/// `GET /api/v1/console/documents?kind=`: without bodies.
pub(crate) async fn list(State(app): State<Arc<App>>, caller: Caller, request: Request) -> Result<Response, Failure> {
    let kind = Params::of(request.uri())?.get("kind").map(DocumentKind::read).transpose()?;
    let all = app.documents.all(&caller).into_iter().filter(|document| kind.is_none_or(|kind| kind == document.kind));
    let documents: Vec<Value> = all.map(|document| document.describe(&caller, false)).collect();
    Ok(ok(&json!({ "count": documents.len(), "documents": documents })))
}

/// `POST /api/v1/console/documents` with `{"kind", "name", "body", "shared"}`.
pub(crate) async fn create(State(app): State<Arc<App>>, caller: Caller, request: Request) -> Result<Response, Failure> {
    caller.check_statements()?;
    let wanted = read(&app, request).await?;
    let (kept, owner) = (Arc::clone(&app), caller.clone());
    let document = blocking(move || kept.documents.create(&owner, wanted)).await?;
    Ok(json_response(StatusCode::CREATED, document.describe(&caller, true).to_string()))
}

/// `GET /api/v1/console/documents/{id}`.
pub(crate) async fn get(State(app): State<Arc<App>>, caller: Caller, id: DocumentId) -> Result<Response, Failure> {
    Ok(ok(&app.documents.get(&caller, id?.0)?.describe(&caller, true)))
}

/// `PUT /api/v1/console/documents/{id}` with the `version` that was changed, and what is to be different.
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    caller: Caller,
    id: DocumentId,
    request: Request,
) -> Result<Response, Failure> {
    let (id, wanted) = (id?.0, read(&app, request).await?);
    let (kept, owner) = (Arc::clone(&app), caller.clone());
    let document = blocking(move || kept.documents.put(&owner, id, wanted)).await?;
    Ok(ok(&document.describe(&caller, true)))
}

/// `DELETE /api/v1/console/documents/{id}?version=`.
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    id: DocumentId,
    request: Request,
) -> Result<Response, Failure> {
    let (id, version) = (id?.0, Params::of(request.uri())?.number("version", 0..=u64::MAX)?);
    let kept = Arc::clone(&app);
    let document = blocking(move || kept.documents.delete(&caller, id, version)).await?;
    Ok(ok(&json!({ "message": format!("Document {:?} deleted", document.name) })))
}

async fn read(app: &App, request: Request) -> Result<WantedDocument, Failure> {
    let (parts, body) = request.into_parts();
    WantedDocument::read(&parse(&body::read(app, body, &parts.headers).await?)?)
}

/// Waits for the disk on a thread that may.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Failure> + Send + 'static) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Failure::bug())?
}

fn ok(body: &Value) -> Response {
    json_response(StatusCode::OK, body.to_string())
}
