//! Writes over HTTP, as Telegraf and InfluxDB's clients send them.
//!
//! Nobody has to log in, so that only this machine is listened to, and no web page that a browser has open is let in: what
//! names another host or comes from a page is refused. A few requests at a time are read, each no larger than a few
//! megabytes and within a time, so that nothing that is sent takes more memory than that.

use std::{
    convert::Infallible,
    io::{self, Read},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use arc_core::{ErrorKind, Precision, Result, WriteOptions, Written};
use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode,
    body::Incoming,
    header::{self, HeaderValue},
    http::uri::Authority,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::{
    net::TcpListener,
    sync::Semaphore,
    time::{sleep, timeout},
};

use super::Shared;
use crate::chain;

/// Most bytes of a body, as it comes and unpacked.
const MOST_BYTES: usize = 4 << 20;
/// Bodies that are read at a time.
const READS: usize = 4;
/// Connections at a time.
const CONNECTIONS: usize = 64;
/// How long a request's head, and its body, may take to come.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a client waits before it sends again what there was no memory for.
const RETRY_AFTER: &str = "1";

/// What is answered: a status, and the text of an error.
type Answer = std::result::Result<Response<Full<Bytes>>, (StatusCode, String)>;

/// Answers requests until it is dropped.
pub(super) async fn serve(shared: &Arc<Shared>, listener: TcpListener) {
    let (reads, connections) = (Arc::new(Semaphore::new(READS)), Arc::new(Semaphore::new(CONNECTIONS)));
    loop {
        // It is never closed.
        let Ok(place) = Arc::clone(&connections).acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "no connection could be taken in");
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (shared, reads) = (Arc::clone(shared), Arc::clone(&reads));
        tokio::spawn(async move {
            let service = service_fn(|request| answer(&shared, &reads, request));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(PATIENCE)
                .max_buf_size(64 << 10)
                .serve_connection(TokioIo::new(stream), service);
            // Clients leave as they like.
            let _ = connection.await;
            drop(place);
        });
    }
}

async fn answer(
    shared: &Shared,
    reads: &Semaphore,
    request: Request<Incoming>,
) -> std::result::Result<Response<Full<Bytes>>, Infallible> {
    let is_head = request.method() == Method::HEAD;
    let answered = match check_sender(request.headers()) {
        Ok(()) => route(shared, reads, request).await,
        Err(reason) => Err((StatusCode::FORBIDDEN, reason.to_owned())),
    };
    let mut response = answered.unwrap_or_else(|(status, reason)| {
        let mut response = json_response(status, &json!({ "error": reason }));
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
        }
        response
    });
    if is_head {
        *response.body_mut() = Full::default();
    }
    Ok(response)
}

/// Refuses what a web page may have sent.
fn check_sender(headers: &HeaderMap) -> std::result::Result<(), &'static str> {
    if headers.contains_key(header::ORIGIN) || headers.contains_key("sec-fetch-site") {
        return Err("web pages may not send requests here");
    }
    for host in headers.get_all(header::HOST) {
        let authority: Option<Authority> = host.to_str().ok().and_then(|host| host.parse().ok());
        let host = authority.as_ref().map_or("", Authority::host);
        let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if address.parse::<IpAddr>().is_err() && !host.eq_ignore_ascii_case("localhost") {
            return Err("the header Host names another host; expected an IP address or localhost");
        }
    }
    Ok(())
}

async fn route(shared: &Shared, reads: &Semaphore, request: Request<Incoming>) -> Answer {
    let path = request.uri().path().trim_end_matches('/').to_owned();
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    match path.as_str() {
        "/write" | "/api/v2/write" | "/api/v1/write/line-protocol" if request.method() == Method::POST => {
            write(shared, reads, request).await
        }
        "/health" if is_read => Ok(health(shared)),
        // What clients ask before they write.
        "/ping" if is_read => Ok(status_response(StatusCode::NO_CONTENT)),
        "/query" => {
            let _reading = reads.acquire().await;
            created(request).await
        }
        "/write" | "/api/v2/write" | "/api/v1/write/line-protocol" => {
            Err((StatusCode::METHOD_NOT_ALLOWED, "expected POST".to_owned()))
        }
        _ => Err((
            StatusCode::NOT_FOUND,
            "expected POST /write, /api/v2/write, /api/v1/write/line-protocol or GET /health".into(),
        )),
    }
}

/// Telegraf has its database made before it writes; a write makes it anyway.
async fn created(request: Request<Incoming>) -> Answer {
    let mut statement = Query::of(&request).first(&["q"]);
    if statement.is_none() {
        let form = timeout(PATIENCE, read(request)).await;
        statement = form.ok().and_then(|form| Query::parse(&form.ok()?).first(&["q"]));
    }
    if statement.is_some_and(|text| text.trim_start().to_ascii_uppercase().starts_with("CREATE DATABASE")) {
        return Ok(json_response(StatusCode::OK, &json!({ "results": [{ "statement_id": 0 }] })));
    }
    Err((StatusCode::BAD_REQUEST, "nothing is answered here: ask the server that rows are pushed to".to_owned()))
}

async fn write(shared: &Shared, reads: &Semaphore, request: Request<Incoming>) -> Answer {
    let query = Query::of(&request);
    let database =
        request.headers().get("x-arc-database").map(|name| String::from_utf8_lossy(name.as_bytes()).into_owned());
    let database = database.or_else(|| query.first(&["db", "bucket"])).unwrap_or_else(|| "default".to_owned());
    let mut options = WriteOptions::new();
    if let Some(text) = query.first(&["precision"]) {
        options.precision = Some(precision(&text).ok_or_else(|| {
            (StatusCode::BAD_REQUEST, format!("precision is {text:?}; expected ns, us, ms, s, m or h"))
        })?);
    }
    let key = request.headers().get("idempotency-key").map(|key| String::from_utf8_lossy(key.as_bytes()).into_owned());
    options.idempotency_key = key;
    let written = {
        // Before the first byte is taken in, and until the rows are the engine's.
        let _reading = reads.acquire().await;
        let body = timeout(PATIENCE, read(request)).await;
        let body =
            body.unwrap_or_else(|_| Err((StatusCode::REQUEST_TIMEOUT, "the body did not come in time".to_owned())))?;
        let body = unpacked(body).map_err(|error| too_large_or_damaged(&error))?;
        // Room is not waited for, as that would hold up all.
        options.max_wait = Some(Duration::ZERO);
        shared.engine.submit_lp(&database, body, &options)
    };
    let written: Result<Written> = match written {
        Ok(pending) => pending.await,
        Err(error) => Err(error),
    };
    match written {
        Ok(written) if written.rejected_points == 0 => Ok(status_response(StatusCode::NO_CONTENT)),
        Ok(written) => Ok(partial(&written)),
        Err(error) => {
            let status = match error.kind() {
                ErrorKind::InvalidInput | ErrorKind::SchemaConflict => StatusCode::BAD_REQUEST,
                ErrorKind::Busy | ErrorKind::Closed => StatusCode::SERVICE_UNAVAILABLE,
                ErrorKind::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
                _ => StatusCode::INTERNAL_SERVER_ERROR,
            };
            if status == StatusCode::INTERNAL_SERVER_ERROR {
                tracing::error!(error = chain(&error), "a write failed");
            }
            Err((status, chain(&error)))
        }
    }
}

/// Good lines are stored, and the first that are not are named.
fn partial(written: &Written) -> Response<Full<Bytes>> {
    let first = written.rejected.first();
    let first =
        first.map(|line| format!("line {}, column {}: {}", line.line, line.column, line.reason)).unwrap_or_default();
    let (stored, rejected) = (written.points, written.rejected_points);
    let lines = written.rejected.iter();
    let lines: Vec<_> =
        lines.map(|line| json!({ "line": line.line, "column": line.column, "reason": line.reason })).collect();
    let error = format!("partial write: {rejected} of {} lines rejected, {stored} stored; {first}", stored + rejected);
    let body = json!({ "error": error, "stored": stored, "rejected": rejected, "lines": lines });
    json_response(StatusCode::BAD_REQUEST, &body)
}

async fn read(request: Request<Incoming>) -> std::result::Result<Bytes, (StatusCode, String)> {
    let announced = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if announced.is_some_and(|bytes: usize| bytes > MOST_BYTES) {
        return Err(too_large());
    }
    match Limited::new(request.into_body(), MOST_BYTES).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(too_large()),
        Err(error) => Err((StatusCode::BAD_REQUEST, format!("the body broke off: {error}"))),
    }
}

fn too_large() -> (StatusCode, String) {
    (
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("a request may have {} MiB, unpacked as well; send fewer lines at a time", MOST_BYTES >> 20),
    )
}

fn too_large_or_damaged(error: &io::Error) -> (StatusCode, String) {
    match error.kind() {
        io::ErrorKind::FileTooLarge => too_large(),
        _ => (StatusCode::BAD_REQUEST, format!("the body begins as gzip does and is damaged: {error}")),
    }
}

/// Returns a body that begins as gzip does unpacked, whatever its headers say.
fn unpacked(body: Bytes) -> io::Result<Bytes> {
    if !body.starts_with(&[0x1f, 0x8b]) {
        return Ok(body);
    }
    let mut lines = Vec::new();
    let most = u64::try_from(MOST_BYTES).unwrap_or(u64::MAX);
    MultiGzDecoder::new(&*body).take(most + 1).read_to_end(&mut lines)?;
    if lines.len() > MOST_BYTES { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(lines.into()) }
}

fn precision(text: &str) -> Option<Precision> {
    Some(match text {
        "ns" | "n" | "nanosecond" => Precision::Nanosecond,
        "us" | "u" | "µ" | "µs" | "microsecond" => Precision::Microsecond,
        "ms" | "millisecond" => Precision::Millisecond,
        "s" | "second" => Precision::Second,
        "m" => Precision::Minute,
        "h" => Precision::Hour,
        _ => return None,
    })
}

/// Says that it runs, and what was pushed.
fn health(shared: &Shared) -> Response<Full<Bytes>> {
    let pushed = shared.pushed();
    let body = json!({
        "status": "pass",
        "name": "arc-edge",
        "version": env!("CARGO_PKG_VERSION"),
        "push": { "pushes": pushed.pushes, "rows": pushed.rows, "bytes": pushed.bytes, "failed": pushed.failed },
    });
    json_response(StatusCode::OK, &body)
}

fn json_response(status: StatusCode, body: &serde_json::Value) -> Response<Full<Bytes>> {
    let mut response = status_response(status);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    *response.body_mut() = Full::from(body.to_string());
    response
}

fn status_response(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

/// A query string, or a form.
struct Query(Vec<(String, String)>);

impl Query {
    fn of<B>(request: &Request<B>) -> Self {
        Self::parse(request.uri().query().unwrap_or_default().as_bytes())
    }

    fn parse(text: &[u8]) -> Self {
        let pairs = form_urlencoded::parse(text);
        Self(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    /// Returns the first value that one of these names has.
    fn first(&self, names: &[&str]) -> Option<String> {
        let found = self.0.iter().find(|(name, value)| names.contains(&name.as_str()) && !value.is_empty());
        found.map(|(_, value)| value.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (header::HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn web_pages_and_names_that_their_owners_chose_are_refused() {
        for host in ["127.0.0.1:8086", "[::1]:8086", "localhost", "LOCALHOST:1"] {
            assert!(check_sender(&headers(&[("host", host)])).is_ok(), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "", "a b"] {
            assert!(check_sender(&headers(&[("host", host)])).is_err(), "{host}");
        }
        assert!(check_sender(&headers(&[("host", "localhost"), ("origin", "null")])).is_err());
        assert!(check_sender(&headers(&[("host", "localhost"), ("sec-fetch-site", "none")])).is_err());
        assert!(check_sender(&headers(&[("host", "localhost"), ("host", "evil.example")])).is_err());
    }

    #[test]
    fn what_is_packed_is_unpacked_within_bounds() {
        let packed = |bytes: &[u8]| {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(bytes).unwrap();
            Bytes::from(gzip.finish().unwrap())
        };
        assert_eq!(unpacked(Bytes::from_static(b"m v=1")).unwrap(), "m v=1");
        assert_eq!(unpacked(packed(b"m v=1")).unwrap(), "m v=1");
        assert_eq!(unpacked(packed(&vec![b'x'; MOST_BYTES])).unwrap().len(), MOST_BYTES);
        let (status, _) = too_large_or_damaged(&unpacked(packed(&vec![b'x'; MOST_BYTES + 1])).unwrap_err());
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
        let (status, _) = too_large_or_damaged(&unpacked(packed(b"m v=1").slice(..12)).unwrap_err());
        assert_eq!(status, StatusCode::BAD_REQUEST);
    }

    #[test]
    fn settings_of_a_write_are_read() {
        let request = Request::builder().uri("/write?db=&bucket=a%20b&precision=ms").body(()).unwrap();
        let query = Query::of(&request);
        assert_eq!(query.first(&["db", "bucket"]).as_deref(), Some("a b"));
        assert_eq!(precision(&query.first(&["precision"]).unwrap()), Some(Precision::Millisecond));
        assert_eq!(precision("fortnight"), None);
    }
}
