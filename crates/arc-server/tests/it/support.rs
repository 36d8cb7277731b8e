//! A server without a socket, and what tests send to it.

use std::{
    io::Write,
    panic, process,
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
    },
};

use arc_core::Engine;
use arc_server::{App, Config, router};
use arrow::{array::RecordBatch, ipc::reader::StreamReader};
use axum::{Router, body::Body};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{HeaderMap, Method, Request, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;

/// A server over a data directory of its own.
pub(crate) struct Server {
    pub(crate) router: Router,
    pub(crate) engine: Engine,
    dir: TempDir,
}

/// What a request was answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Whether a panic of a library is put up with, because it is Arrow's over a body that is damaged.
static ARE_CAUGHT: AtomicBool = AtomicBool::new(false);

/// Lets the rest of this process's tests go on after a panic that was caught.
pub(crate) fn put_up_with_panics() {
    ARE_CAUGHT.store(true, Ordering::Relaxed);
}

/// Has the process end where a library panics: that is a fault, whoever catches it.
fn end_at_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            print(info);
            if !ARE_CAUGHT.load(Ordering::Relaxed)
                && info
                    .location()
                    .is_some_and(|at| at.file().contains("/registry/") && !at.file().contains("/proptest-"))
            {
                process::abort();
            }
        }));
    });
}

impl Server {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::default();
        // Most tests are about something else than tokens.
        config.no_auth = true;
        change(&mut config);
        end_at_panics();
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::builder(dir.path().join("data")).options(config.engine.clone()).open().unwrap();
        Self { router: router(App::new(engine.clone(), &config).unwrap()), engine, dir }
    }

    /// Closes the engine and opens the directory again.
    pub(crate) fn reopened(self) -> Self {
        self.reopened_with(|_| {})
    }

    pub(crate) fn reopened_with(self, change: impl FnOnce(&mut Config)) -> Self {
        let Self { router: closed, engine, dir } = self;
        engine.close().unwrap();
        drop((closed, engine));
        let engine = Engine::open(dir.path().join("data")).unwrap();
        let mut config = Config::default();
        config.no_auth = true;
        change(&mut config);
        Self { router: router(App::new(engine.clone(), &config).unwrap()), engine, dir }
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Reply {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, value.as_bytes());
        }
        let response = self.router.clone().oneshot(request.body(body.into()).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        Reply { status: parts.status, headers: parts.headers, body: body.collect().await.unwrap().to_bytes() }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, &[], Body::empty()).await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Body>) -> Reply {
        self.send(Method::POST, path, &[], body).await
    }

    /// Writes line protocol to database `t`, which has to be stored as a whole.
    pub(crate) async fn lines(&self, lines: impl Into<Body>) {
        let reply = self.post("/write?db=t", lines).await;
        assert_eq!(reply.status, 204, "{reply:?}");
    }

    /// Writes MessagePack to database `t`.
    pub(crate) async fn pack(&self, value: &Value) -> Reply {
        self.post("/api/v1/write/msgpack?db=t", packed(value)).await
    }

    /// Runs SQL in database `t`.
    pub(crate) async fn ask(&self, sql: &str) -> Reply {
        self.post("/api/v1/query?db=t", json!({ "sql": sql }).to_string()).await
    }

    /// Runs SQL in database `t`, which has to succeed, and returns its rows.
    pub(crate) async fn rows(&self, sql: &str) -> Value {
        let reply = self.ask(sql).await;
        assert_eq!(reply.status, 200, "{sql}: {reply:?}");
        let answer = reply.json();
        assert_eq!(answer["success"], true);
        assert_eq!(answer["row_count"], answer["data"].as_array().unwrap().len());
        answer["data"].clone()
    }
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// Asserts the status, and that `error` (and so `message`) says `text`.
    #[track_caller]
    pub(crate) fn is(&self, status: u16, text: &str) {
        assert_eq!(self.status, status, "{self:?}");
        let answer = self.json();
        let error = answer["error"].as_str().unwrap_or_else(|| panic!("no error in {answer}"));
        assert!(error.contains(text), "{text:?} is not in {error:?}");
        assert_eq!(answer["message"], answer["error"]);
    }

    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no {name} in {self:?}")).to_str().unwrap()
    }

    pub(crate) fn batches(&self) -> Vec<RecordBatch> {
        assert_eq!(self.status, 200, "{self:?}");
        assert_eq!(self.header("content-type"), "application/vnd.apache.arrow.stream");
        StreamReader::try_new(&*self.body, None).unwrap().collect::<Result<_, _>>().unwrap()
    }
}

pub(crate) fn packed(value: &Value) -> Vec<u8> {
    rmp_serde::to_vec_named(value).unwrap()
}

pub(crate) fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zstd(data: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(data, 1).unwrap()
}

pub(crate) fn parquet(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = parquet::arrow::ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}
