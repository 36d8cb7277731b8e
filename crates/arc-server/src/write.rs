//! Writes over HTTP: line protocol and MessagePack in all the dialects their clients speak, and Arrow.
//!
//! Decodes the request, submits it to the engine, waits until the points are as durable as asked, and answers 204, or
//! names every point that was refused. Never parses a point: that is the engine's work.

use std::{sync::Arc, time::Duration};

use arc_core::{ErrorKind, PendingWrite, Rejected, WriteOptions, Written};
use axum::{
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use hyper::{
    HeaderMap, StatusCode, Uri,
    header::{self, HeaderValue},
};
use serde_json::json;

use crate::{
    admission::Reservation,
    app::App,
    auth::{Caller, Rights},
    body::{self, Caps},
    decompress::{decompress_within, decompressed_size, is_compressed},
    errors::{Failure, json_response},
    http::params::{self, Params},
    influx::precision,
};

/// Header that asks for a durability, and says which one was reached.
const DURABILITY: &str = "x-arc-durability";
/// Header that says how many points a write has stored.
const POINTS: &str = "x-arc-points";
/// Content types of Arrow, for streams and for files.
const ARROW_TYPES: &[u8] = b"application/vnd.apache.arrow.";
/// Header that names a write, so that it can be sent again; and the one that says that it had been.
const IDEMPOTENCY_KEY: &str = "idempotency-key";
const IDEMPOTENCY_REPLAYED: &str = "idempotency-replayed";
/// A plain body of no more bytes is decoded on the thread that has read it. It takes some 0.2 ms at most; to wake another
/// thread and be woken by it takes a tenth of the processor time of such a write.
const INLINE_BYTES: usize = 128 << 10;
/// Where the query string may name the database; InfluxDB 1.x says `db`, 2.x says `bucket`.
/// Where clients of InfluxDB write that know of no other answer to nothing than that it is stored.
const INFLUX_PATHS: [&str; 2] = ["/write", "/api/v2/write"];
const DATABASE: [&str; 3] = ["db", "bucket", "database"];

/// What the body of a write is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    LineProtocol,
    MessagePack,
    Arrow,
}

/// `POST /write`, `/api/v2/write`, `/api/v1/write/line-protocol` and their older names; they take Arrow as well.
pub(crate) async fn line_protocol(State(app): State<Arc<App>>, request: Request) -> Response {
    let is_arrow = |value: &HeaderValue| {
        value.as_bytes().get(..ARROW_TYPES.len()).is_some_and(|start| start.eq_ignore_ascii_case(ARROW_TYPES))
    };
    let format = match request.headers().get(header::CONTENT_TYPE).is_some_and(is_arrow) {
        true => Format::Arrow,
        false => Format::LineProtocol,
    };
    answer(&app, request, format).await
}

/// `POST /api/v1/write/arrow`: an Arrow IPC stream or file for one table.
pub(crate) async fn arrow(State(app): State<Arc<App>>, request: Request) -> Response {
    answer(&app, request, Format::Arrow).await
}

/// `POST /api/v1/write/msgpack` and its older names.
pub(crate) async fn message_pack(State(app): State<Arc<App>>, request: Request) -> Response {
    answer(&app, request, Format::MessagePack).await
}

async fn answer(app: &Arc<App>, request: Request, format: Format) -> Response {
    let (parts, body) = request.into_parts();
    let wanted = WantedWrite::read(&parts.headers, &parts.uri, format);
    let stored = match wanted.and_then(|wanted| wanted.of(&app.auth.caller(&parts.extensions)?)) {
        Ok(wanted) => store(app, &parts.headers, body, wanted).await,
        Err(failure) => {
            app.metrics.write_started(format);
            app.metrics.writes(format).errors.add(1);
            Err(failure)
        }
    };
    match stored {
        Ok(stored) => receipt(&stored.written, format, stored.suspicion.as_deref()),
        Err(failure) => failure.into_response(),
    }
}

/// What is asked of a write beside its body.
#[derive(Debug)]
pub(crate) struct WantedWrite {
    pub(crate) database: String,
    /// Of Arrow; the others name theirs in the body.
    pub(crate) table: String,
    pub(crate) options: WriteOptions,
    pub(crate) format: Format,
    /// Whether the unit of line protocol's timestamps is to be found out.
    pub(crate) guess: bool,
    /// Whether a body without points is stored as any other: InfluxDB's clients ask so whether they may
    /// write.
    pub(crate) may_be_empty: bool,
}

impl WantedWrite {
    fn read(headers: &HeaderMap, uri: &Uri, format: Format) -> Result<Self, Failure> {
        let params = Params::of(uri)?;
        let database = params::database(headers, &params, &DATABASE)?.into_owned();
        let options = options(headers, &params)?;
        let table = if format == Format::Arrow { table(headers, &params)? } else { String::new() };
        let may_be_empty = format == Format::LineProtocol && INFLUX_PATHS.contains(&uri.path());
        Ok(Self { database, table, options, format, guess: false, may_be_empty })
    }

    /// Has the write touch what its caller may write; refuses it where that is nothing of the database.
    pub(crate) fn of(mut self, caller: &Caller) -> Result<Self, Failure> {
        if self.format == Format::Arrow {
            caller.check_table(Rights::WRITE, &self.database, &self.table)?;
        }
        self.options = caller.limit(&self.database, self.options)?;
        Ok(self)
    }
}

/// A write that was answered by the engine.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) written: Written,
    /// What would explain points that are refused, if anything looks odd.
    pub(crate) suspicion: Option<String>,
    /// Decompressed.
    pub(crate) body: Bytes,
}

/// Reads a body and stores it.
pub(crate) async fn store(
    app: &Arc<App>,
    headers: &HeaderMap,
    body: Body,
    wanted: WantedWrite,
) -> Result<Stored, Failure> {
    let format = wanted.format;
    app.metrics.write_started(format);
    let limits = &app.limits;
    let caps = Caps { limit: limits.body_bytes, pause: limits.read_timeout };
    let mut reservation = app.bodies.enter();
    let body = body::read_within(body, headers, caps, &mut reservation).await?;
    reservation.grow_to(body.len() + decompressed_size(&body, limits.decompressed_bytes)).await?;
    let suspicion = body::broken_promise(headers, &body);
    let compressed = if is_compressed(&body) { body.len() } else { 0 };
    let counters = app.metrics.writes(format);
    match acknowledged(app, Job { wanted, body, reservation }).await {
        Ok((written, body)) => {
            app.metrics.write_ended(format, if written.replayed { 0 } else { written.points });
            counters.bytes.add(u64::try_from(body.len()).unwrap_or(u64::MAX));
            counters.compressed_bytes.add(u64::try_from(compressed).unwrap_or(u64::MAX));
            counters.errors.add(u64::from(written.rejected_points > 0));
            Ok(Stored { written, suspicion, body })
        }
        Err(mut failure) => {
            counters.errors.add(1);
            failure.message = explained(failure.message, suspicion.as_deref());
            Err(failure)
        }
    }
}

fn explained(message: String, suspicion: Option<&str>) -> String {
    match suspicion {
        Some(suspicion) => format!("{message} ({suspicion})"),
        None => message,
    }
}

/// One write, ready for the engine.
struct Job {
    wanted: WantedWrite,
    body: Bytes,
    /// Held until the engine counts the write itself.
    reservation: Reservation,
}

async fn acknowledged(app: &Arc<App>, mut job: Job) -> Result<(Written, Bytes), Failure> {
    let (format, may_be_empty) = (job.wanted.format, job.wanted.may_be_empty);
    let (pending, body) = match submit_here(app, &mut job)? {
        Some(pending) => (pending, job.body),
        None => submit_elsewhere(app, job).await?,
    };
    let written = pending.await?;
    if written.points == 0 && written.rejected_points == 0 && !may_be_empty {
        return Err(empty(format, "No valid records in request"));
    }
    Ok((written, body))
}

/// Submits what is decoded sooner than it is handed to another thread; `None` where that would take long, or where it
/// would have to wait for room.
fn submit_here(app: &App, job: &mut Job) -> Result<Option<PendingWrite>, Failure> {
    if job.body.len() > INLINE_BYTES.min(app.limits.decompressed_bytes) || is_compressed(&job.body) {
        return Ok(None);
    }
    job.wanted.options.max_wait = Some(Duration::ZERO);
    let body = job.body.clone();
    let pending = submit(app, &mut job.wanted, body)?;
    job.wanted.options.max_wait = None;
    match pending {
        Ok(pending) => {
            job.reservation.give_up();
            Ok(Some(pending))
        }
        Err(error) if error.kind() == ErrorKind::Busy => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Submits from a thread that may block: decompressing, decoding and waiting for room take their time. Also returns the
/// body as it was stored.
async fn submit_elsewhere(app: &Arc<App>, job: Job) -> Result<(PendingWrite, Bytes), Failure> {
    let slot = app.write_slot().await?;
    let blocking = Arc::clone(app);
    let pending = tokio::task::spawn_blocking(move || {
        let Job { mut wanted, body, mut reservation } = job;
        let sent = body.len();
        let mut grow = |bytes| reservation.grow_blocking(sent + bytes);
        let mut body = decompress_within(body, blocking.limits.decompressed_bytes, &mut grow)?;
        if wanted.format == Format::Arrow {
            body = body::tight(body);
        }
        let pending = submit(&blocking, &mut wanted, body.clone());
        drop((slot, reservation));
        Ok((pending??, body))
    });
    pending.await.map_err(|_| Failure::bug())?
}

fn submit(app: &App, wanted: &mut WantedWrite, body: Bytes) -> Result<arc_core::Result<PendingWrite>, Failure> {
    if body.is_empty() && !wanted.may_be_empty {
        return Err(empty(wanted.format, "Empty request body"));
    }
    if wanted.guess {
        wanted.options.precision = precision::guessed(&body)?;
    }
    Ok(match wanted.format {
        Format::LineProtocol => app.engine.submit_lp(&wanted.database, body, &wanted.options),
        Format::MessagePack => app.engine.submit_msgpack(&wanted.database, body, &wanted.options),
        Format::Arrow => app.engine.submit_arrow(&wanted.database, &wanted.table, body, &wanted.options),
    })
}

fn empty(format: Format, line_protocol: &str) -> Failure {
    Failure::bad_request(match format {
        Format::LineProtocol => line_protocol,
        Format::MessagePack => "Empty payload",
        Format::Arrow => "the stream has no rows",
    })
}

/// Returns the table that an Arrow body is for.
fn table(headers: &HeaderMap, params: &Params) -> Result<String, Failure> {
    let header = params::header(headers, "x-arc-measurement")?;
    let table = header.or_else(|| params.get("table")).or_else(|| params.get("measurement"));
    let missing = || Failure::bad_request("which table is missing: send table=… or the header x-arc-measurement");
    table.map(str::to_owned).ok_or_else(missing)
}

/// Reads what the points of a request are to survive; a header beats the query string.
pub(crate) fn durability(headers: &HeaderMap, params: &Params) -> Result<WriteOptions, Failure> {
    let options = WriteOptions::new();
    match params::header(headers, DURABILITY)?.or_else(|| params.get("durability")) {
        Some(durability) => Ok(options.durability(durability.parse().map_err(Failure::bad_request)?)),
        None => Ok(options),
    }
}

/// Reads what the request says about its points; a header beats the query string.
pub(crate) fn options(headers: &HeaderMap, params: &Params) -> Result<WriteOptions, Failure> {
    let given = |header: &str, param: &str| -> Result<Option<String>, Failure> {
        let header = params::header(headers, header)?;
        Ok(header.or_else(|| params.get(param)).map(str::to_owned))
    };
    let mut options = durability(headers, params)?;
    if let Some(column) = given("x-arc-time-column", "time_column")? {
        options = options.time_column(column);
    }
    if let Some(precision) = given("x-arc-precision", "precision")? {
        options = options.precision(precision.parse().map_err(Failure::bad_request)?);
    }
    if let Some(tags) = given("x-arc-tags", "tags")? {
        options = options.tags(tags.split(',').map(str::trim).filter(|tag| !tag.is_empty()));
    }
    if headers.contains_key(IDEMPOTENCY_KEY) {
        // An empty key is no key: the engine says so, rather than storing what the client believes to be safe to repeat.
        options = options.idempotency_key(params::header(headers, IDEMPOTENCY_KEY)?.unwrap_or_default());
    }
    Ok(options)
}

/// Says what was stored: 204 if everything was, else 400 with what was not.
fn receipt(written: &Written, format: Format, suspicion: Option<&str>) -> Response {
    let response = match written.rejected_points {
        0 => StatusCode::NO_CONTENT.into_response(),
        _ => partial(written, &explained(summary(written, format), suspicion)),
    };
    with_receipt(response, written)
}

/// Says in headers what was stored.
pub(crate) fn with_receipt(mut response: Response, written: &Written) -> Response {
    if let Ok(durability) = HeaderValue::try_from(written.durability.to_string()) {
        response.headers_mut().insert(DURABILITY, durability);
    }
    response.headers_mut().insert(POINTS, written.points.into());
    if written.replayed {
        response.headers_mut().insert(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

fn partial(written: &Written, message: &str) -> Response {
    let line = |r: &Rejected| json!({ "line": r.line, "column": r.column, "reason": r.reason });
    let body = json!({
        "error": message,
        "message": message,
        "code": "invalid",
        "stored": written.points,
        "rejected": written.rejected_points,
        "lines": written.rejected.iter().map(line).collect::<Vec<_>>(),
    });
    json_response(StatusCode::BAD_REQUEST, body.to_string())
}

fn summary(written: &Written, format: Format) -> String {
    let total = written.points + written.rejected_points;
    // Bytes of MessagePack have no lines; an item that is refused may be a block of many rows.
    let unit = match format {
        Format::LineProtocol => "line",
        Format::MessagePack | Format::Arrow => "item",
    };
    let first = written.rejected.first().map(|r| match r.column {
        0 => format!("; {unit} {}: {}", r.line, r.reason),
        column => format!("; {unit} {}, column {column}: {}", r.line, r.reason),
    });
    format!(
        "partial write: {} of {total} {unit}s rejected, {} stored{}",
        written.rejected_points,
        written.points,
        first.unwrap_or_default()
    )
}
