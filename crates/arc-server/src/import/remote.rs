//! A running server as the target of an import: each piece is one request, as any client would send it.
//!
//! One request after the other, so that pieces are stored in order. A request that gets no answer is sent again under its
//! key, and so is one that finds the server busy.

use std::time::Duration;

use arc_core::{
    ColumnTypes, Error, ErrorKind, Rejected, Result,
    catalog::{Column, ColumnKind},
    import::{ImportAnswer, ImportBody, ImportReceipt, ImportTarget, ImportWrite},
};
use arc_edge::{ApiAnswer, ApiClient, Credentials};
use arrow::{
    datatypes::DataType,
    ipc::{reader::StreamReader, writer::StreamWriter},
};
use bytes::Bytes;
use hyper::{
    StatusCode,
    header::{self, HeaderName, HeaderValue},
    http::request::Builder,
};
use serde_json::Value;

/// When a server that does not answer is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// A server.
#[derive(Debug)]
pub(super) struct Remote(ApiClient);

impl Remote {
    /// Asks the server at `url` whether it is there.
    pub(super) fn connect(url: &str, credentials: &Credentials) -> Result<Self> {
        ApiClient::connect(url, credentials).map(Self)
    }

    /// Turns an answer that is no success into an error.
    fn refused(&self, answer: &ApiAnswer) -> Error {
        let text = answer.error();
        let after = answer.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        match answer.status {
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::REQUEST_TIMEOUT | StatusCode::INSUFFICIENT_STORAGE => {
                tracing::warn!(reason = text, "the server takes nothing now");
                Error::Busy {
                    reason: "the server takes nothing now",
                    retry_after: after.map_or(PAUSE, Duration::from_secs),
                }
            }
            status if status.is_client_error() => self.0.failed(ErrorKind::InvalidInput, text),
            _ => self.0.failed(ErrorKind::Internal, text),
        }
    }

    fn store(&self, write: &ImportWrite) -> Result<ImportReceipt> {
        let (request, body) = self.request(write);
        let answer = match self.0.send(request, body) {
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
        let request = with(self.0.request("POST", "/api/v1/query/arrow"), "x-arc-arrow-dictionary", "true");
        let answer = self.0.send(with(request, "x-arc-database", database), body)?;
        match answer.status {
            StatusCode::OK => {}
            // A token that may write alone knows as little of a table as there is of one that is not there.
            StatusCode::NOT_FOUND | StatusCode::FORBIDDEN => return Ok(Vec::new()),
            _ => return Err(self.refused(&answer)),
        }
        let schema = StreamReader::try_new(&*answer.body, None)
            .map_err(|error| self.0.failed(ErrorKind::Internal, error.to_string()))?
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
        let path = format!("/api/v1/databases/{database}/measurements/{table}/column-types");
        let answer = self.0.send(self.0.request("GET", &path), Bytes::new())?;
        match answer.status {
            StatusCode::OK => serde_json::from_slice(&answer.body)
                .map_err(|error| self.0.failed(ErrorKind::Internal, error.to_string())),
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

impl Remote {
    /// Makes the request that stores a piece, and its body.
    fn request(&self, write: &ImportWrite) -> (Builder, Bytes) {
        let options = &write.options;
        let (path, body) = match &write.body {
            ImportBody::Lines(lines) => ("/api/v1/write/line-protocol", lines.clone()),
            // What cannot be encoded is an empty body, which no server takes.
            ImportBody::Rows { batch, .. } => ("/api/v1/write/arrow", encode(batch).unwrap_or_default()),
        };
        let mut request = with(self.0.request("POST", path), "x-arc-database", &write.database);
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
        (request, body)
    }
}

fn encode(batch: &arrow::array::RecordBatch) -> Result<Bytes, arrow::error::ArrowError> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
    writer.write(batch)?;
    writer.into_inner().map(Bytes::from)
}

/// Sets a header whose value may be any UTF-8; one that cannot be fails the request.
fn with(request: Builder, name: &'static str, value: &str) -> Builder {
    match HeaderValue::from_bytes(value.as_bytes()) {
        Ok(value) => request.header(HeaderName::from_static(name), value),
        Err(_) => request.header(name, value),
    }
}
