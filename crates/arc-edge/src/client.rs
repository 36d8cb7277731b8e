//! The client that commands are: one request after the other to a running server, with a token if there is one.

use std::{io, path::Path, sync::Arc, time::Duration};

use arc_core::{Error, ErrorKind, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    HeaderMap, Request, Response, StatusCode,
    header::{self, HeaderValue},
    http::request::Builder,
};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client as HttpClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, pem::PemObject},
};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::{Credentials, chain};

/// How long a server may take to let a connection in, and to take what was sent.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server, as commands talk to it.
#[derive(Debug)]
pub struct ApiClient {
    url: String,
    http: HttpClient<HttpsConnector<HttpConnector>, Full<Bytes>>,
    runtime: Runtime,
    token: Option<HeaderValue>,
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct ApiAnswer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, whole.
    pub body: Bytes,
}

impl ApiAnswer {
    /// Returns the body as JSON, null if it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Returns what the server says is wrong.
    #[must_use]
    pub fn error(&self) -> String {
        let json = self.json();
        json.get("error").and_then(Value::as_str).map_or_else(|| self.status.to_string(), str::to_owned)
    }
}

impl ApiClient {
    /// Asks the server at `url` whether it is there.
    ///
    /// # Errors
    ///
    /// No server at that address, an address that is none, a certificate that cannot be read.
    pub fn connect(url: &str, credentials: &Credentials) -> Result<Self> {
        let url = url.trim_end_matches('/').to_owned();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|source| Error::Io { action: "connect to", path: (&url).into(), source })?;
        let http =
            HttpClient::builder(TokioExecutor::new()).build(connector(credentials, url.starts_with("https://"))?);
        let client = Self { url, http, runtime, token: credentials.header()? };
        if !["http://", "https://"].iter().any(|scheme| client.url.starts_with(scheme)) {
            return Err(client.failed(ErrorKind::InvalidInput, "expected http://HOST:PORT or https://HOST:PORT"));
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
    #[must_use]
    pub fn request(&self, method: &str, path: &str) -> Builder {
        Request::builder().method(method).uri(format!("{}{path}", self.url))
    }

    /// Sends a request, and reads its answer, whatever its status is.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if there is no answer.
    pub fn send(&self, request: Builder, body: impl Into<Bytes>) -> Result<ApiAnswer> {
        let request = match &self.token {
            Some(token) => request.header(header::AUTHORIZATION, token),
            None => request,
        };
        let request = request.body(Full::from(body.into()));
        let request = request.map_err(|error| self.failed(ErrorKind::InvalidInput, chain(&error)))?;
        let broken = |error: &dyn std::error::Error| {
            let mut text = chain(error);
            if text.contains("InvalidContentType") {
                text.push_str(" (it does not speak TLS; is it http://?)");
            }
            let source = io::Error::other(text);
            Error::Io { action: "send to", path: (&self.url).into(), source }
        };
        self.runtime.block_on(async {
            let response: Response<_> = self.http.request(request).await.map_err(|error| broken(&error))?;
            let (parts, body) = response.into_parts();
            let body = body.collect().await.map_err(|error| broken(&error))?.to_bytes();
            Ok(ApiAnswer { status: parts.status, headers: parts.headers, body })
        })
    }

    /// Returns an error that names the server.
    #[must_use]
    pub fn failed(&self, kind: ErrorKind, reason: impl Into<String>) -> Error {
        let (server, reason) = (self.url.clone(), reason.into());
        match kind {
            ErrorKind::InvalidInput => Error::RefusedByServer { server, reason },
            _ => Error::Internal { reason: format!("{server}: {reason}") },
        }
    }
}

/// Returns what connects to servers; who is trusted says the flag, or else the system.
fn connector(credentials: &Credentials, is_encrypted: bool) -> Result<HttpsConnector<HttpConnector>> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_connect_timeout(Some(PATIENCE));
    // A line that is cut off says nothing; what waits for an answer would wait for ever.
    http.set_keepalive(Some(PATIENCE));
    #[cfg(target_os = "linux")]
    http.set_tcp_user_timeout(Some(PATIENCE));
    connector_over(http, credentials, is_encrypted)
}

/// Returns the one implementation of cryptography that these programs have.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Reads the certificates of those who vouch for servers.
fn roots_of(path: &Path) -> Result<RootCertStore> {
    let wrong = |reason: String| Error::InvalidPayload { format: "certificate", reason };
    let read = |error: &dyn std::error::Error| wrong(format!("{}: {error}", path.display()));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| read(&error))? {
        let certificate = certificate.map_err(|error| read(&error))?;
        roots.add(certificate).map_err(|error| read(&error))?;
    }
    if roots.is_empty() {
        return Err(wrong(format!("{}: no certificate is in it", path.display())));
    }
    Ok(roots)
}

/// Returns the same over connections as `http` makes them.
///
/// # Errors
///
/// A certificate that cannot be read.
pub fn connector_over(
    http: HttpConnector,
    credentials: &Credentials,
    is_encrypted: bool,
) -> Result<HttpsConnector<HttpConnector>> {
    let wrong = |error: &dyn std::error::Error| Error::InvalidPayload { format: "certificate", reason: chain(error) };
    let builder = HttpsConnectorBuilder::new();
    let builder = if is_encrypted && credentials.authority().is_none() {
        let path = "the certificates that the system trusts";
        let native = builder.with_provider_and_native_roots(provider());
        native.map_err(|source| Error::Io { action: "read", path: path.into(), source })?
    } else {
        let roots = credentials.authority().map_or_else(|| Ok(RootCertStore::empty()), roots_of)?;
        let config = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let config = config.map_err(|error| wrong(&error))?;
        builder.with_tls_config(config.with_root_certificates(roots).with_no_client_auth())
    };
    Ok(builder.https_or_http().enable_http1().wrap_connector(http))
}
