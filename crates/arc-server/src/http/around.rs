//! What happens around every request: whether it is let in at all, and who sends it; its path is tidied, panics are caught, the answer is
//! counted and gets headers.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Instant};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures::FutureExt;
use hyper::{
    HeaderMap, Method, StatusCode, Uri,
    header::{self, HeaderName, HeaderValue},
};

use super::{read_only, request_id};
use crate::{
    app::App,
    audit::Audited,
    auth::Caller,
    cluster::{self, Between},
    delete::blocking,
    errors::Failure,
    flight,
};

const SECURITY_HEADERS: [(HeaderName, HeaderValue); 6] = [
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::X_XSS_PROTECTION, HeaderValue::from_static("0")),
    (header::REFERRER_POLICY, HeaderValue::from_static("strict-origin-when-cross-origin")),
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'")),
    (
        HeaderName::from_static("permissions-policy"),
        HeaderValue::from_static("camera=(), geolocation=(), microphone=()"),
    ),
];
const CORS_METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE, OPTIONS");
const CORS_HEADERS: HeaderValue = HeaderValue::from_static(
    "Origin, Content-Type, Accept, Authorization, x-api-key, x-arc-database, x-arc-precision, x-arc-durability, \
     x-arc-tags, x-arc-time-column, x-arc-measurement, Idempotency-Key, x-arc-arrow-dictionary, x-arc-arrow-compression, Content-Encoding",
);

/// Runs one request.
pub(crate) async fn around(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let id = request_id::of(request.headers());
    let asked = request.uri().clone();
    if let Some(uri) = without_trailing_slash(&asked) {
        *request.uri_mut() = uri;
    }
    let preflight = method == Method::OPTIONS && app.cors_origin.is_some();
    let token = app.cluster.as_ref().and_then(|_| cluster::text_of_token(&request));
    let admitted = match cluster::between_nodes(&app, &request) {
        Some(Ok(Between::Question)) => Ok(None),
        Some(Ok(Between::HandedOn)) => app.auth.admit(&mut request).await,
        Some(Err(failure)) => Err(failure),
        None => match app.access.check(&request) {
            Ok(()) if !preflight => app.auth.admit(&mut request).await,
            checked => checked.map(|()| None),
        },
    };
    let mut caller = None;
    let mut response = match admitted {
        Err(failure) if flight::is_call(request.headers()) => flight::failed(failure),
        Err(failure) => failure.into_response(),
        Ok(_) if preflight => StatusCode::NO_CONTENT.into_response(),
        Ok(_)
            if app.engine.is_reader()
                && app.cluster.is_none()
                && read_only::is_refused(&method, request.uri().path()) =>
        {
            read_only::refusal().into_response()
        }
        Ok(usage) => {
            caller = request.extensions().get::<Caller>().cloned();
            let name = id.to_str().unwrap_or_default();
            let audited = Audited::begin(&app.engine, caller.as_ref(), (&method, asked.path()), name);
            let here = async |request| run(&app, next, request).await;
            let answer = match &app.cluster {
                Some(cluster) => cluster::answer(&app, cluster, (token, &id), request, here).await,
                None => here(request).await,
            };
            if let Some(audited) = audited {
                audited.end(answer.status()).await;
            }
            match usage {
                Some(usage) => answer.map(|body| usage.count(body)),
                None => answer,
            }
        }
    };
    app.metrics.refusals.count(&mut response, caller.as_ref());
    headers(&app, response.headers_mut());
    let name = id.to_str().unwrap_or_default();
    let (status, took) = (response.status(), started.elapsed());
    app.metrics.answered(status, took);
    if status.is_server_error() {
        tracing::warn!(request = name, %method, path = asked.path(), status = status.as_u16(), ?took, "request failed");
    } else {
        tracing::debug!(request = name, %method, path = asked.path(), status = status.as_u16(), ?took, "request");
    }
    response.headers_mut().insert(request_id::REQUEST_ID, id);
    response
}

/// Has a request answered, whatever comes of it.
async fn run(app: &App, next: Next, request: Request) -> Response {
    let bug = || Failure::bug().into_response();
    if app.engine.is_reader() && read_only::looks(request.uri().path()) {
        if app.cluster.is_some() {
            // Of lists, too, an old one is no answer.
            let engine = app.engine.clone();
            if let Err(failure) = blocking(move || engine.refresh()).await {
                return failure.into_response();
            }
        }
        return read_only::run_aside(next, request).await.unwrap_or_else(|_| bug());
    }
    AssertUnwindSafe(next.run(request)).catch_unwind().await.unwrap_or_else(|_| bug())
}

fn headers(app: &App, headers: &mut HeaderMap) {
    for (name, value) in SECURITY_HEADERS {
        // What the console says of its own files is narrower than this.
        headers.entry(name).or_insert(value);
    }
    if let Some(origin) = &app.cors_origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, CORS_METHODS);
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, CORS_HEADERS);
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
    }
}

/// Returns the address to route by, if the one asked for ends in a slash.
fn without_trailing_slash(uri: &Uri) -> Option<Uri> {
    let path = uri.path();
    let trimmed = path.trim_end_matches('/');
    if trimmed.len() == path.len() || trimmed.is_empty() {
        return None;
    }
    let mut parts = uri.clone().into_parts();
    let tidied = uri.query().map_or_else(|| trimmed.to_owned(), |query| format!("{trimmed}?{query}"));
    parts.path_and_query = Some(tidied.parse().ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, middleware, routing::get};
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn a_panic_is_a_500_and_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let engine = arc_core::Engine::open(dir.path().join("data")).unwrap();
        let app = App::new(engine, &crate::config::Config { no_auth: true, ..Default::default() }).unwrap();
        async fn handler() -> StatusCode {
            panic!("a bug")
        }
        let layer = middleware::from_fn_with_state(Arc::clone(&app), around);
        let router = Router::new().route("/", get(handler)).layer(layer);
        let response = router.oneshot(Request::get("/").body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(response.status(), 500);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
        let counted = app.metrics.json(&app.engine.stats(), app.started.elapsed());
        assert_eq!(counted["arc_http_requests_error_total"], 1);
    }

    #[test]
    fn trailing_slashes_go_and_queries_stay() {
        for (asked, routed) in [
            ("/write/", Some("/write")),
            ("/write//?db=a/", Some("/write?db=a/")),
            ("/write", None),
            ("/write?db=a/", None),
            ("/", None),
            ("//", None),
        ] {
            let uri = without_trailing_slash(&asked.parse().unwrap());
            assert_eq!(uri.map(|uri| uri.to_string()).as_deref(), routed, "{asked}");
        }
    }
}
