//! The client that commands are: one request after the other to a running server, with a token if there is one.

mod credentials;

use std::io;

use arc_core::{Error, ErrorKind, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    HeaderMap, Request, Response, StatusCode,
    header::{self, HeaderValue},
    http::request::Builder,
};
use hyper_util::{
    client::legacy::{Client as HttpClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::errors::chain;

pub(crate) use credentials::{Credentials, arguments};

/// A server, as commands talk to it.
#[derive(Debug)]
pub(crate) struct Client {
    url: String,
    http: HttpClient<HttpConnector, Full<Bytes>>,
    runtime: Runtime,
    token: Option<HeaderValue>,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// Returns the body as JSON, null if it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Returns what the server says is wrong.
    pub(crate) fn error(&self) -> String {
        let json = self.json();
        json.get("error").and_then(Value::as_str).map_or_else(|| self.status.to_string(), str::to_owned)
    }
}

impl Client {
    /// Asks the server at `url` whether it is there.
    pub(crate) fn connect(url: &str, credentials: &Credentials) -> Result<Self> {
        let url = url.trim_end_matches('/').to_owned();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|source| Error::Io { action: "connect to", path: (&url).into(), source })?;
        let http = HttpClient::builder(TokioExecutor::new()).build_http();
        let client = Self { url, http, runtime, token: credentials.header()? };
        if !client.url.starts_with("http://") {
            return Err(client.failed(ErrorKind::InvalidInput, "expected http://HOST:PORT"));
        }
        let answer = client.send(client.request("GET", "/health"), Bytes::new())?;
        match answer.status {
            StatusCode::OK => Ok(client),
            status => {
                Err(client.failed(ErrorKind::InvalidInput, format!("it answers {status}, and is no such server")))
            }
        }
    }

    /// Begins a request of this server.
    pub(crate) fn request(&self, method: &str, path: &str) -> Builder {
        Request::builder().method(method).uri(format!("{}{path}", self.url))
    }

    /// Sends a request, and reads its answer.
    pub(crate) fn send(&self, request: Builder, body: impl Into<Bytes>) -> Result<Answer> {
        let request = match &self.token {
            Some(token) => request.header(header::AUTHORIZATION, token),
            None => request,
        };
        let request = request.body(Full::from(body.into()));
        let request = request.map_err(|error| self.failed(ErrorKind::InvalidInput, chain(&error)))?;
        let broken = |error: &dyn std::error::Error| {
            let source = io::Error::other(chain(error));
            Error::Io { action: "send to", path: (&self.url).into(), source }
        };
        self.runtime.block_on(async {
            let response: Response<_> = self.http.request(request).await.map_err(|error| broken(&error))?;
            let (parts, body) = response.into_parts();
            let body = body.collect().await.map_err(|error| broken(&error))?.to_bytes();
            Ok(Answer { status: parts.status, headers: parts.headers, body })
        })
    }

    /// Returns an error that names the server.
    pub(crate) fn failed(&self, kind: ErrorKind, reason: impl Into<String>) -> Error {
        let reason = format!("{}: {}", self.url, reason.into());
        match kind {
            ErrorKind::InvalidInput => Error::InvalidPayload { format: "request", reason },
            _ => Error::Internal { reason },
        }
    }
}
