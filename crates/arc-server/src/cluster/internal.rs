//! What a node answers to other nodes. All of it asks for the cluster's token first, and for the same store.

use std::{sync::Arc, time::Duration};

use arc_core::store::OwnerLog;
use axum::{
    Router,
    body::Body,
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
    routing::{get, put},
};
use base64::Engine as _;
use hyper::{
    HeaderMap, StatusCode,
    header::{ETAG, HeaderValue, IF_NONE_MATCH},
};
use serde_json::json;

use super::{
    Cluster,
    report::{HOLD, HOPS, INTERNAL, KEPT, NodeReport, PROTOCOL, READ, REPORT, SEGMENTS, TOKEN, TOKENS},
};
use crate::{
    app::App,
    delete::blocking,
    errors::{Failure, json_response},
    http::params::Params,
    kept,
};

/// Longest time that files are held for another node at once.
const LONGEST_HOLD: Duration = Duration::from_secs(600);

/// What another node sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Between {
    /// A question of its own: no client's token is asked for.
    Question,
    /// A request of a client, which that node has let in.
    HandedOn,
}

/// Returns what another node sends here, if it does; an error if it says so and does not belong to this cluster.
pub(crate) fn between_nodes(app: &App, request: &Request) -> Option<Result<Between, Failure>> {
    let cluster = app.cluster.as_ref()?;
    let (headers, is_internal) = (request.headers(), request.uri().path().starts_with(INTERNAL));
    if !is_internal && !headers.contains_key(&TOKEN) {
        return None;
    }
    let checked = cluster.check(headers).inspect_err(|_| cluster.counters.refused.add(1));
    if checked.is_ok() && !is_internal {
        cluster.counters.received.add(1);
    }
    Some(checked.map(|()| if is_internal { Between::Question } else { Between::HandedOn }))
}

/// Returns through how many nodes a request has come.
pub(super) fn hops(headers: &HeaderMap) -> u32 {
    headers.get(&HOPS).and_then(|hops| hops.to_str().ok()?.parse().ok()).unwrap_or(0)
}

impl Cluster {
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), Failure> {
        if !self.token.is_in(headers) {
            let text = "this is for the nodes of one cluster, which know each other by a secret: give all of them a \
                        cluster_token_file with the same one";
            return Err(Failure::new(StatusCode::UNAUTHORIZED, text));
        }
        self.identity.check_request(headers)
    }

    /// Returns what this node says of itself.
    pub(super) fn report(&self, app: &App) -> Result<NodeReport, Failure> {
        let log = if app.engine.is_reader() { None } else { Some(app.engine.state(None)?) };
        let (committed, seen) = app.engine.progress();
        Ok(NodeReport {
            name: self.name.clone(),
            role: self.role.name().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            protocol: PROTOCOL,
            store: self.identity.store.clone(),
            owns: log.is_some() && app.engine.closed_to_writes().is_none(),
            opening: log.as_ref().map_or(0, |log| log.opening),
            acknowledged: log.as_ref().map_or(seen, |log| log.acknowledged.0),
            committed,
            directory: log.map(|log| log.directory),
            is_ready: app.not_ready().is_none(),
        })
    }
}

/// Returns the paths that other nodes ask for; there are none where a server is alone.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route(REPORT, get(report))
        .route(SEGMENTS, get(segments))
        .route(READ, get(read))
        .route(&format!("{HOLD}/{{reader}}"), put(hold).delete(release))
        .route(TOKENS, get(tokens))
        .route(KEPT, get(kept_files))
}

fn cluster(app: &App) -> Result<&Arc<Cluster>, Failure> {
    app.cluster.as_ref().ok_or_else(Failure::bug)
}

async fn report(State(app): State<Arc<App>>) -> Result<Response, Failure> {
    let report = serde_json::to_string(&cluster(&app)?.report(&app)?).map_err(|_| Failure::bug())?;
    Ok(json_response(StatusCode::OK, report))
}

/// Refuses what is asked of another opening than this one: frames that were in the log then may not be now.
fn check_opening(app: &App, params: &Params) -> Result<(), Failure> {
    let asked: u64 = number(params, "opening")?;
    let is = app.engine.state(None)?.opening;
    if asked == is { Ok(()) } else { Err(gone(format!("this log was opened with commit {is}, and not {asked}"))) }
}

async fn segments(State(app): State<Arc<App>>, request: Request) -> Result<Response, Failure> {
    check_opening(&app, &Params::of(request.uri())?)?;
    let engine = app.engine.clone();
    let segments = blocking(move || engine.segments()).await?;
    let segments: Vec<(String, u64)> = segments.into_iter().map(|segment| (segment.name, segment.bytes)).collect();
    Ok(json_response(StatusCode::OK, json!(segments).to_string()))
}

async fn read(State(app): State<Arc<App>>, request: Request) -> Result<Response, Failure> {
    let params = Params::of(request.uri())?;
    check_opening(&app, &params)?;
    let segment = params.get("segment").ok_or_else(|| Failure::bad_request("segment is missing"))?.to_owned();
    let (offset, len) = (number(&params, "offset")?, number(&params, "len")?);
    let engine = app.engine.clone();
    let bytes = blocking(move || OwnerLog::read(&engine, &segment, offset, len)).await?;
    let bytes = bytes.ok_or_else(|| gone("there is no such segment any more".to_owned()))?;
    cluster(&app)?.counters.log_bytes_sent.add(bytes.len() as u64);
    Ok(Body::from(bytes).into_response())
}

async fn hold(State(app): State<Arc<App>>, Path(reader): Path<u64>, request: Request) -> Result<StatusCode, Failure> {
    let params = Params::of(request.uri())?;
    let (commit, seconds) = (number(&params, "commit")?, number(&params, "seconds")?);
    let time = Duration::from_secs(seconds).min(LONGEST_HOLD);
    let engine = app.engine.clone();
    blocking(move || engine.hold(reader, commit, time)).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn release(State(app): State<Arc<App>>, Path(reader): Path<u64>) -> Result<StatusCode, Failure> {
    let engine = app.engine.clone();
    blocking(move || {
        engine.release(reader);
        Ok(())
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Answers with the tokens that let clients in, as the file of the data directory has them: secrets as hashes.
async fn tokens(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Failure> {
    if app.auth.is_owners() {
        let text = "this node has the tokens of the owner, and keeps none: ask the owner";
        return Err(Failure::new(StatusCode::MISDIRECTED_REQUEST, text));
    }
    let Some(revision) = app.auth.revision() else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    if headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == revision.as_bytes()) {
        return Ok(StatusCode::NOT_MODIFIED.into_response());
    }
    let mut response = json_response(StatusCode::OK, app.auth.shared_tokens()?);
    let revision = HeaderValue::from_str(&revision).map_err(|_| Failure::bug())?;
    response.headers_mut().insert(ETAG, revision);
    Ok(response)
}

/// Answers with the small files of the data directory that are not the engine's, by name, for a node that may take over.
async fn kept_files(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Failure> {
    let engine = app.engine.clone();
    let files = blocking(move || kept::read_all(engine.path())).await?;
    let text = serde_json::to_string(&files).map_err(|_| Failure::bug())?;
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let revision = base64::engine::general_purpose::STANDARD.encode(digest);
    if headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == revision.as_bytes()) {
        return Ok(StatusCode::NOT_MODIFIED.into_response());
    }
    let mut response = json_response(StatusCode::OK, text);
    let revision = HeaderValue::from_str(&revision).map_err(|_| Failure::bug())?;
    response.headers_mut().insert(ETAG, revision);
    Ok(response)
}

fn number<T: std::str::FromStr>(params: &Params, name: &str) -> Result<T, Failure> {
    let value = params.get(name).and_then(|text| text.parse().ok());
    value.ok_or_else(|| Failure::bad_request(format!("{name} is missing, or no number")))
}

fn gone(text: String) -> Failure {
    Failure::new(StatusCode::GONE, text)
}
