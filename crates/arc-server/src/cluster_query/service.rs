//! The calls of other nodes whose queries this one computes parts of.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    response::{IntoResponse, Response},
    routing::post,
};
use hyper::StatusCode;
use tower::ServiceExt;

use crate::{app::App, errors::Failure, flight};

/// Where the service is found, whatever else the address serves.
const PATH: &str = "/worker.WorkerService/{*method}";

/// Returns `routes` with those of the service beside them, which know no tokens of clients.
pub(crate) fn beside(routes: Router, app: &Arc<App>) -> Router {
    Router::new().route(PATH, post(call)).with_state(Arc::clone(app)).fallback_service(routes)
}

/// Answers a call on the threads of queries: those of connections never compute.
async fn call(State(app): State<Arc<App>>, request: Request) -> Response {
    let Some(node) = app.query_node.get() else {
        let text = "this server is no node of a cluster: it computes nothing for others";
        return flight::failed(Failure::new(StatusCode::NOT_FOUND, text));
    };
    if !node.list.admits(request.headers()) {
        let text = "this is for the nodes of one cluster: give all of them the same secret, store and version";
        return flight::failed(Failure::new(StatusCode::UNAUTHORIZED, text));
    }
    let service = node.worker.routes().into_axum_router();
    let answer = app.runner.threads().spawn(service.oneshot(request));
    match answer.await {
        Ok(Ok(response)) => response,
        Ok(Err(impossible)) => match impossible {},
        Err(_) => Failure::bug().into_response(),
    }
}
