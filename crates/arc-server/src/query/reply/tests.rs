use arc_core::Error;
use std::time::Instant;

use super::*;
use crate::{
    config::Config,
    query::{
        encode::{CHUNK_BYTES, Encoding, STEP_ROWS},
        request::Dialect,
    },
};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use http_body_util::BodyExt;

/// An app over a data directory that lives as long as it.
fn app() -> (Arc<App>, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let engine = arc_core::Engine::open(dir.path().join("data")).unwrap();
    (App::new(engine, &Config { no_auth: true, ..Config::default() }).unwrap(), dir)
}

fn rows(count: i64) -> RecordBatch {
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..count));
    RecordBatch::try_from_iter([("v", values)]).unwrap()
}

fn failure() -> arc_core::Result<RecordBatch> {
    Err(Error::Sql { reason: "divided by zero".into() })
}

async fn reply(app: &Arc<App>, batches: Vec<arc_core::Result<RecordBatch>>) -> Result<Response, Failure> {
    reply_as(app, Form::Json, HeaderMap::new(), Version::HTTP_11, batches).await
}

async fn reply_as(
    app: &Arc<App>,
    form: Form,
    headers: HeaderMap,
    version: Version,
    batches: Vec<arc_core::Result<RecordBatch>>,
) -> Result<Response, Failure> {
    let shape = Shape::new(form, Dialect::Arc, &headers, version)?;
    let encoder = shape.open(app, &rows(0).schema(), Instant::now())?;
    let mut ticket = Ticket::new(app, form, Caller::anybody());
    let listed = ticket.list("d", "SELECT v");
    let slot = app.query_slot(&listed).await?;
    let encoding = Encoding::new(&listed, stream::iter(batches), encoder);
    let query = app.runner.run(slot, listed, |chunks| encoding.send(chunks));
    Reply::new(query, ticket).respond(shape).await
}

/// Returns how many queries succeeded, failed, were left, and how many rows were sent.
fn counted(app: &App) -> [u64; 4] {
    let json = app.metrics.json(&app.engine.stats(), app.started.elapsed());
    ["arc_query_success_total", "arc_query_errors_total", "arc_query_client_disconnects_total", "arc_query_rows_total"]
        .map(|name| json[name].as_u64().unwrap())
}

#[tokio::test]
async fn a_short_answer_is_sent_whole() {
    let (app, _dir) = app();
    let response = reply(&app, vec![Ok(rows(2)), Ok(rows(1))]).await.unwrap();
    let length = axum::body::HttpBody::size_hint(response.body()).exact();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(length, Some(body.len() as u64));
    let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(value["data"], serde_json::json!([[0], [1], [0]]));
    assert_eq!(counted(&app), [1, 0, 0, 3]);
}

#[tokio::test]
async fn an_early_failure_has_a_status() {
    let (app, _dir) = app();
    let failure = reply(&app, vec![Ok(rows(2)), failure()]).await.unwrap_err();
    assert_eq!((failure.status.as_u16(), failure.message.as_str()), (400, "divided by zero"));
    assert_eq!(counted(&app), [0, 1, 0, 2]);
}

#[tokio::test]
async fn a_late_failure_breaks_the_body() {
    let (app, _dir) = app();
    let response = reply(&app, vec![Ok(rows(100_000)), failure()]).await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.into_body().collect().await.is_err());
    assert_eq!(counted(&app)[..3], [0, 1, 0]);
}

#[tokio::test]
async fn a_long_answer_comes_in_parts() {
    let (app, _dir) = app();
    let mut body = reply(&app, vec![Ok(rows(100_000))]).await.unwrap().into_body();
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        let data = frame.unwrap().into_data().unwrap();
        assert!(data.len() < CHUNK_BYTES + STEP_ROWS * 10, "{}", data.len());
        whole.extend_from_slice(&data);
    }
    let value: serde_json::Value = serde_json::from_slice(&whole).unwrap();
    assert_eq!(value["row_count"], 100_000);
    assert!(value["data"].as_array().unwrap().iter().enumerate().all(|(n, row)| row[0] == n));
    assert_eq!(counted(&app), [1, 0, 0, 100_000]);
}

#[tokio::test]
async fn an_answer_that_is_left_frees_its_place() {
    let (app, _dir) = app();
    let response = reply(&app, vec![Ok(rows(100_000))]).await.unwrap();
    drop(response);
    assert_eq!(counted(&app)[..3], [0, 0, 1]);
    for _ in 0..app.limits.queries {
        reply(&app, vec![Ok(rows(100_000))]).await.unwrap();
    }
}

/// The forms that HTTP knows.
fn forms() -> impl Iterator<Item = Form> {
    Form::ALL.into_iter().filter(|form| *form != Form::Flight)
}

/// Numbers that do not compress, so that a chunk of any form is soon full.
fn noise(count: usize) -> RecordBatch {
    let next = |n: &i64| Some(n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
    let values = Int64Array::from_iter_values(std::iter::successors(Some(7), next).take(count));
    RecordBatch::try_from_iter([("v", Arc::new(values) as ArrayRef)]).unwrap()
}

#[tokio::test]
async fn a_late_failure_breaks_every_form_or_has_a_status() {
    let (app, _dir) = app();
    for (form, coding) in forms().flat_map(|form| ["identity", "gzip", "zstd"].map(|coding| (form, coding))) {
        if coding != "identity" && !form.is_compressible() {
            continue;
        }
        let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, coding.parse().unwrap())]);
        // A row group of Parquet is sent whole.
        let count = if form == Form::Parquet { 1_500_000 } else { 100_000 };
        let answer = reply_as(&app, form, headers, Version::HTTP_11, vec![Ok(noise(count)), failure()]).await;
        let is_whole_first = matches!(form, Form::MessagePack | Form::Text);
        assert_eq!(answer.is_err(), is_whole_first, "{form:?} {coding}: {answer:?}");
        if let Ok(response) = answer {
            assert!(axum::body::HttpBody::size_hint(response.body()).exact().is_none());
            assert!(response.into_body().collect().await.is_err(), "{form:?} {coding}");
        }
    }
    assert_eq!(counted(&app)[0], 0);
}

#[tokio::test]
async fn where_a_broken_answer_would_look_whole_there_is_none() {
    let (app, _dir) = app();
    for form in forms().filter(|form| *form != Form::Text) {
        let answer = reply_as(&app, form, HeaderMap::new(), Version::HTTP_10, vec![Ok(noise(100_000))]).await;
        match answer {
            Ok(_) => assert!(form.shows_its_end(), "{form:?}"),
            Err(failure) => assert!(failure.status.as_u16() == 505 && !form.shows_its_end(), "{form:?}: {failure:?}"),
        }
        let short = reply_as(&app, form, HeaderMap::new(), Version::HTTP_10, vec![Ok(noise(10))]).await;
        assert!(short.is_ok(), "{form:?}");
    }
}
