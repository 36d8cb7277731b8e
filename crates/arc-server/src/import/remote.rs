//! A running server as the target of an import: each piece is one request, as any client would send it.
//!
//! One request after the other, so that pieces are stored in order. A request that gets no answer is sent again under its
//! key, and so is one that finds the server busy.

use std::{io, time::Duration};

use arc_core::{
    ColumnTypes, Error, ErrorKind, Rejected, Result,
    catalog::{Column, ColumnKind},
    import::{ImportAnswer, ImportBody, ImportReceipt, ImportTarget, ImportWrite},
};
use arrow::{
    datatypes::DataType,
    ipc::{reader::StreamReader, writer::StreamWriter},
};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    HeaderMap, Request, Response, StatusCode,
    header::{self, HeaderName, HeaderValue},
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::errors::chain;

/// When a server that does not answer is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// A server.
#[derive(Debug)]
pub(super) struct Remote {
    url: String,
    http: Client<HttpConnector, Full<Bytes>>,
    runtime: Runtime,
}

/// An answer, read to its end.
struct RemoteAnswer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Remote {
    /// Asks the server at `url` whether it is there.
    pub(super) fn connect(url: &str) -> Result<Self> {
        let url = url.trim_end_matches('/').to_owned();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|source| Error::Io { action: "connect to", path: (&url).into(), source })?;
        let http = Client::builder(TokioExecutor::new()).build_http();
        let remote = Self { url, http, runtime };
        if !remote.url.starts_with("http://") {
            return Err(remote.failed(ErrorKind::InvalidInput, "expected http://HOST:PORT"));
        }
        let request = Request::get(format!("{}/health", remote.url));
        let answer = remote.send(request.body(Full::default()))?;
        match answer.status {
            StatusCode::OK => Ok(remote),
            status => {
                Err(remote.failed(ErrorKind::InvalidInput, format!("it answers {status}, and is no such server")))
            }
        }
    }

    fn send(&self, request: hyper::http::Result<Request<Full<Bytes>>>) -> Result<RemoteAnswer> {
        let request = request.map_err(|error| self.failed(ErrorKind::InvalidInput, chain(&error)))?;
        let broken = |error: &dyn std::error::Error| {
            let source = io::Error::other(chain(error));
            Error::Io { action: "send to", path: (&self.url).into(), source }
        };
        self.runtime.block_on(async {
            let response: Response<_> = self.http.request(request).await.map_err(|error| broken(&error))?;
            let (parts, body) = response.into_parts();
            let body = body.collect().await.map_err(|error| broken(&error))?.to_bytes();
            Ok(RemoteAnswer { status: parts.status, headers: parts.headers, body })
        })
    }

    fn failed(&self, kind: ErrorKind, reason: impl Into<String>) -> Error {
        let reason = format!("{}: {}", self.url, reason.into());
        match kind {
            ErrorKind::InvalidInput => Error::InvalidPayload { format: "request", reason },
            _ => Error::Internal { reason },
        }
    }

    /// Turns an answer that is no success into an error.
    fn refused(&self, answer: &RemoteAnswer) -> Error {
        let json: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let text = json.get("error").and_then(Value::as_str).map_or_else(|| answer.status.to_string(), str::to_owned);
        let after = answer.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        match answer.status {
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::REQUEST_TIMEOUT | StatusCode::INSUFFICIENT_STORAGE => {
                tracing::warn!(reason = text, "the server takes nothing now");
                Error::Busy {
                    reason: "the server takes nothing now",
                    retry_after: after.map_or(PAUSE, Duration::from_secs),
                }
            }
            status if status.is_client_error() => self.failed(ErrorKind::InvalidInput, text),
            _ => self.failed(ErrorKind::Internal, text),
        }
    }

    fn store(&self, write: &ImportWrite) -> Result<ImportReceipt> {
        let answer = match self.send(request(&self.url, write)) {
            // Whether it arrived is not known; the key makes sending it again safe.
            Err(Error::Io { .. }) if write.options.idempotency_key.is_some() => {
                return Err(Error::Busy { reason: "the server does not answer", retry_after: PAUSE });
            }
            sent => sent?,
        };
        let points = answer.headers.get("x-arc-points").and_then(|value| value.to_str().ok()?.parse().ok());
        let mut receipt = ImportReceipt {
            points: points.unwrap_or_default(),
            replayed: answer.headers.contains_key("idempotency-replayed"),
            ..ImportReceipt::default()
        };
        match answer.status {
            StatusCode::NO_CONTENT => return Ok(receipt),
            StatusCode::BAD_REQUEST => {}
            _ => return Err(self.refused(&answer)),
        }
        let json: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if json.get("error").and_then(Value::as_str) == Some("No valid records in request") {
            // Blank lines and comments only.
            return Ok(receipt);
        }
        let number = |value: &Value, key: &str| value.get(key).and_then(Value::as_u64);
        receipt.refused = number(&json, "rejected").ok_or_else(|| self.refused(&answer))?;
        for line in json.get("lines").and_then(Value::as_array).into_iter().flatten() {
            let reason = line.get("reason").and_then(Value::as_str).unwrap_or_default();
            let (at, column) = (number(line, "line"), number(line, "column"));
            receipt.refusals.push(Rejected::new(at.unwrap_or_default(), column.unwrap_or_default(), reason));
        }
        Ok(receipt)
    }
}

impl ImportTarget for Remote {
    fn submit(&self, write: &ImportWrite) -> Result<ImportAnswer> {
        let receipt = self.store(write)?;
        Ok(Box::new(|| Ok(receipt)))
    }

    fn columns(&self, database: &str, table: &str) -> Result<Vec<Column>> {
        let quoted = table.replace('"', "\"\"");
        let body = serde_json::json!({ "sql": format!("SELECT * FROM \"{quoted}\" LIMIT 0") }).to_string();
        let request = Request::post(format!("{}/api/v1/query/arrow", self.url));
        let request = with(request, "x-arc-arrow-dictionary", "true");
        let answer = self.send(with(request, "x-arc-database", database).body(Full::from(body)))?;
        match answer.status {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => return Ok(Vec::new()),
            _ => return Err(self.refused(&answer)),
        }
        let schema = StreamReader::try_new(&*answer.body, None)
            .map_err(|error| self.failed(ErrorKind::Internal, error.to_string()))?
            .schema();
        let column = |field: &arrow::datatypes::FieldRef| {
            let data_type = field.data_type().clone();
            let kind = match data_type {
                DataType::Dictionary(..) => ColumnKind::Tag,
                _ => ColumnKind::Field,
            };
            Column { name: field.name().as_str().into(), kind, data_type }
        };
        Ok(schema.fields().iter().skip(1).map(column).collect())
    }

    /// Says nothing where the server is an older one.
    fn column_types(&self, database: &str, table: &str) -> Result<ColumnTypes> {
        let [database, table] = [database, table].map(in_path);
        let path = format!("{}/api/v1/databases/{database}/measurements/{table}/column-types", self.url);
        let answer = self.send(Request::get(path).body(Full::default()))?;
        match answer.status {
            StatusCode::OK => serde_json::from_slice(&answer.body)
                .map_err(|error| self.failed(ErrorKind::Internal, error.to_string())),
            StatusCode::NOT_FOUND => Ok(ColumnTypes::default()),
            _ => Err(self.refused(&answer)),
        }
    }
}

/// Encodes a name as a part of a path.
fn in_path(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~');
    name.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Makes the request that stores a piece.
fn request(url: &str, write: &ImportWrite) -> hyper::http::Result<Request<Full<Bytes>>> {
    let options = &write.options;
    let (path, body) = match &write.body {
        ImportBody::Lines(lines) => ("line-protocol", lines.clone()),
        // What cannot be encoded is an empty body, which no server takes.
        ImportBody::Rows { batch, .. } => ("arrow", encode(batch).unwrap_or_default()),
    };
    let mut request = with(Request::post(format!("{url}/api/v1/write/{path}")), "x-arc-database", &write.database);
    if let ImportBody::Rows { table, .. } = &write.body {
        request = with(request, "x-arc-measurement", table);
    }
    if let Some(key) = &options.idempotency_key {
        request = with(request, "idempotency-key", key);
    }
    if let Some(durability) = options.durability {
        request = with(request, "x-arc-durability", &durability.to_string());
    }
    if let Some(precision) = options.precision {
        request = with(request, "x-arc-precision", super::show::precision_name(precision));
    }
    if !options.tags.is_empty() {
        request = with(request, "x-arc-tags", &options.tags.join(","));
    }
    request.body(Full::new(body))
}

fn encode(batch: &arrow::array::RecordBatch) -> Result<Bytes, arrow::error::ArrowError> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
    writer.write(batch)?;
    writer.into_inner().map(Bytes::from)
}

/// Sets a header whose value may be any UTF-8; one that cannot be fails the request.
fn with(request: hyper::http::request::Builder, name: &'static str, value: &str) -> hyper::http::request::Builder {
    match HeaderValue::from_bytes(value.as_bytes()) {
        Ok(value) => request.header(HeaderName::from_static(name), value),
        Err(_) => request.header(name, value),
    }
}
