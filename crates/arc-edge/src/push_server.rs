//! A running server as the target of a push.
//!
//! Each request may be made again, so one without an answer is, and one that finds the server busy.

use std::{thread::sleep, time::Duration};

use arc_core::{AdoptOutcome, AdoptReport, CutName, Error, ErrorKind, PushTarget, Result, Upload};
use bytes::Bytes;
use hyper::{
    StatusCode,
    header::{self, HeaderValue},
};
use serde_json::Value;

use crate::{ApiAnswer, ApiClient, Credentials};

/// How often a request is made, and when it is made again: twice as late each time.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(250);

/// A server.
#[derive(Debug)]
pub struct PushServer(ApiClient);

impl PushServer {
    /// Asks the server at `url` whether it is there.
    ///
    /// # Errors
    ///
    /// As [`ApiClient::connect`].
    pub fn connect(url: &str, credentials: &Credentials) -> Result<Self> {
        ApiClient::connect(url, credentials).map(Self)
    }

    #[expect(clippy::disallowed_methods, reason = "a command waits before it asks again, and nothing else runs in it")]
    fn ask(&self, method: &str, path: &str, body: &Bytes) -> Result<Value> {
        for attempt in 0..TRIES {
            match self.ask_once(method, path, body) {
                Err(error) if attempt + 1 < TRIES && matches!(error.kind(), ErrorKind::Io | ErrorKind::Busy) => {
                    tracing::debug!(%error, "asked again");
                    sleep(PAUSE * 2_u32.pow(attempt));
                }
                asked => return asked,
            }
        }
        Err(self.0.failed(ErrorKind::Internal, "it was never asked"))
    }

    fn ask_once(&self, method: &str, path: &str, body: &Bytes) -> Result<Value> {
        let request = self.0.request(method, path);
        let request = request.header(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        let answer = self.0.send(request, body.clone())?;
        if answer.status == StatusCode::OK { Ok(answer.json()) } else { Err(self.refused(&answer)) }
    }

    fn refused(&self, answer: &ApiAnswer) -> Error {
        let text = answer.error();
        match answer.status {
            StatusCode::CONFLICT => Error::Diverged { reason: text },
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
                tracing::warn!(reason = text, "the server takes nothing now");
                Error::Busy { reason: "the server takes nothing now", retry_after: PAUSE }
            }
            status if status.is_client_error() => self.0.failed(ErrorKind::InvalidInput, text),
            _ => self.0.failed(ErrorKind::Internal, text),
        }
    }

    fn number(&self, answer: &Value, key: &str) -> Result<u64> {
        let number = answer.get(key).and_then(Value::as_u64);
        number.ok_or_else(|| self.0.failed(ErrorKind::Internal, format!("its answer has no {key}")))
    }
}

/// Returns the path of a file. Nothing of it needs to be escaped.
fn file(Upload { origin, cut, name, bytes }: &Upload) -> String {
    format!("/api/v1/push/file?origin={origin}&cut={cut}&name={name}&bytes={bytes}")
}

impl PushTarget for PushServer {
    fn adopted(&self, origin: &str) -> Result<Option<CutName>> {
        let answer = self.ask("GET", &format!("/api/v1/push?origin={origin}"), &Bytes::new())?;
        let Some(cut) = answer.get("cut").filter(|cut| !cut.is_null()) else { return Ok(None) };
        let id = cut.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(Some(CutName { number: self.number(cut, "number")?, id }))
    }

    fn received(&self, upload: &Upload) -> Result<u64> {
        self.number(&self.ask("GET", &file(upload), &Bytes::new())?, "received")
    }

    fn send(&self, upload: &Upload, offset: u64, bytes: &Bytes) -> Result<u64> {
        self.number(&self.ask("PUT", &format!("{}&offset={offset}", file(upload)), bytes)?, "received")
    }

    fn adopt(&self, adoption: &Bytes) -> Result<AdoptOutcome> {
        let answer = self.ask("POST", "/api/v1/push/adopt", adoption)?;
        if let Some(names) = answer.get("missing").and_then(Value::as_array) {
            return Ok(AdoptOutcome::Missing(
                names.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect(),
            ));
        }
        if answer.get("adopted").is_none() {
            return Err(self.0.failed(ErrorKind::Internal, "its answer says neither adopted nor missing"));
        }
        Ok(AdoptOutcome::Adopted(AdoptReport::default()))
    }
}
