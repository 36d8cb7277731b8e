//! The tour's HTTP client: two requests, as any client would send them.

use arrow::{array::RecordBatch, ipc::reader::StreamReader};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, StatusCode};
use hyper_util::{
    client::legacy::{Client as HttpClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::json;

use super::Error;

/// A client of one server.
#[derive(Debug)]
pub(super) struct Client {
    url: String,
    http: HttpClient<HttpConnector, Full<Bytes>>,
}

impl Client {
    pub(super) fn new(url: String) -> Self {
        Self { url, http: HttpClient::builder(TokioExecutor::new()).build_http() }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Writes line protocol.
    pub(super) async fn write(&self, database: &str, lines: String) -> Result<(), Error> {
        self.post(&format!("/write?db={database}"), lines.into()).await.map(drop)
    }

    /// Runs SQL.
    pub(super) async fn query(&self, database: &str, sql: &str) -> Result<Vec<RecordBatch>, Error> {
        let path = "/api/v1/query/arrow";
        let body = json!({ "sql": sql, "database": database }).to_string();
        let answer = self.post(path, body.into()).await?;
        let batches = StreamReader::try_new(&*answer, None).and_then(Iterator::collect);
        batches.map_err(|error| self.failed(path, error))
    }

    async fn post(&self, path: &str, body: Bytes) -> Result<Bytes, Error> {
        let request = Request::post(format!("{}{path}", self.url)).body(Full::new(body));
        let request = request.map_err(|error| self.failed(path, error))?;
        let response =
            self.http.request(request).await.map_err(|error| self.failed(path, crate::errors::chain(&error)))?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|error| self.failed(path, error))?.to_bytes();
        match status {
            StatusCode::OK | StatusCode::NO_CONTENT => Ok(body),
            _ => Err(self.failed(path, format!("{status}: {}", String::from_utf8_lossy(&body)))),
        }
    }

    fn failed(&self, path: &str, reason: impl ToString) -> Error {
        Error::Request { url: format!("{}{path}", self.url), reason: reason.to_string() }
    }
}
