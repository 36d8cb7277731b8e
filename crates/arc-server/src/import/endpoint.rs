//! `/api/v1/import/…`: a file in a form, stored as a whole or named row by row.
//!
//! The answers are those that clients of the existing Arc server read, with what was refused beside them. A request that
//! has an `Idempotency-Key` can be sent again: what of its file is stored already is passed over.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use arc_core::{
    Engine, Error, Options,
    import::{ImportFile, ImportFormat, ImportOptions, ImportReport, import},
};
use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use hyper::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::{
    dry_run::DryRun,
    row_counts::RowCounts,
    show,
    upload::{self, Reservations},
};
use crate::{
    app::App,
    auth::Rights,
    body::Caps,
    errors::{Failure, json_response},
    http::params::{self, Params},
    timestamp, write,
};

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct ImportCounters {
    requests: AtomicU64,
    records: AtomicU64,
    errors: AtomicU64,
}

/// `POST /api/v1/import/csv`.
pub(crate) async fn csv(State(app): State<Arc<App>>, request: Request) -> Response {
    answer(&app, request, ImportFormat::Csv).await
}

/// `POST /api/v1/import/parquet`.
pub(crate) async fn parquet(State(app): State<Arc<App>>, request: Request) -> Response {
    answer(&app, request, ImportFormat::Parquet).await
}

/// `POST /api/v1/import/lp`.
pub(crate) async fn line_protocol(State(app): State<Arc<App>>, request: Request) -> Response {
    answer(&app, request, ImportFormat::LineProtocol).await
}

/// `GET /api/v1/import/stats`.
pub(crate) async fn stats(State(app): State<Arc<App>>) -> Response {
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let body = json!({
        "status": "success",
        "stats": {
            "total_requests": count(&app.imports.requests),
            "total_records": count(&app.imports.records),
            "total_errors": count(&app.imports.errors),
        },
    });
    json_response(StatusCode::OK, body.to_string())
}

async fn answer(app: &Arc<App>, request: Request, format: ImportFormat) -> Response {
    let started = Instant::now();
    app.imports.requests.fetch_add(1, Ordering::Relaxed);
    match run(app, request, format).await {
        Ok(imported) => {
            let stored = if imported.is_check { 0 } else { imported.report.rows };
            app.imports.records.fetch_add(stored, Ordering::Relaxed);
            reply(&imported, format, started)
        }
        Err(failure) => {
            app.imports.errors.fetch_add(1, Ordering::Relaxed);
            failure.into_response()
        }
    }
}

/// What came of a request, or would.
struct Imported {
    options: ImportOptions,
    report: ImportReport,
    /// How many of the rows are no rows of their own, of a check.
    merged: Option<u64>,
    is_check: bool,
}

/// Memory of a store that is there for a check.
const CHECK_BYTES: usize = 64 << 20;

/// Imports into a store of its own, and returns how many rows merged there.
#[expect(clippy::disallowed_methods, reason = "the folder is for what nobody needs after a restart")]
fn checked(real: &Engine, file: ImportFile, options: &ImportOptions) -> Result<(ImportReport, Option<u64>), Error> {
    let below = real.path().join("tmp/query");
    std::fs::create_dir_all(&below).map_err(|source| Error::Io { action: "create", path: below.clone(), source })?;
    // What is resident is not the memory of this store alone.
    let mut limits = Options::default();
    (limits.memory_bytes, limits.max_resident_bytes) = (CHECK_BYTES, usize::MAX);
    let dry_run = DryRun::new(&below, limits)?;
    dry_run.copy_tables(real, options)?;
    let before = RowCounts::before(&dry_run.engine, options);
    let report = import(&dry_run.engine, file, options, &mut |_| {})?;
    let merged = before.and_then(|before| before.merged(&dry_run.engine, options, &report));
    dry_run.engine.close()?;
    Ok((report, merged))
}

fn is_check(params: &Params) -> Result<bool, Failure> {
    match params.get("check") {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => Err(Failure::bad_request(format!("check: {other:?} is not valid; expected true or false"))),
    }
}

async fn run(app: &Arc<App>, request: Request, format: ImportFormat) -> Result<Imported, Failure> {
    let (parts, body) = request.into_parts();
    let params = Params::of(&parts.uri)?;
    let mut options = options(&parts.headers, &params, format)?;
    let is_check = is_check(&params)?;
    // Of line protocol the file itself names the tables, unless one of them is asked for.
    let caller = app.auth.caller(&parts.extensions)?;
    caller.check_target(Rights::WRITE, &options.database, options.table.as_deref())?;
    caller.check_makes(&app.engine, &options.database)?;
    // As for a write from the command line: one piece may take a quarter of the memory with its points.
    options.chunk_bytes = options.chunk_bytes.min(app.engine_memory / 64);
    let root = app.engine.path().to_owned();
    options.unpack_in = Some(root.clone());
    options.unpacked_bytes = u64::try_from(app.limits.import_bytes).unwrap_or(u64::MAX);
    let file = blocking(move || tempfile::tempfile_in(root)).await?;
    let file = file.map_err(|error| {
        Failure::from(Error::Io { action: "create a file in", path: app.engine.path().into(), source: error })
    })?;
    let limits = Caps { limit: app.limits.import_bytes, pause: app.limits.read_timeout };
    let mut reservations = Reservations { memory: app.bodies.enter(), disk: app.uploads.enter() };
    let upload = upload::receive(&parts.headers, body, file, limits, &mut reservations).await?;
    reservations.memory.give_up();
    // Not before: who sends slowly would keep others from importing.
    let slot = app.import_slot().await?;
    if is_check {
        reservations.memory.grow_to(CHECK_BYTES).await?;
        options.chunk_bytes = options.chunk_bytes.min(CHECK_BYTES / 64);
        options.durability = None;
    }
    let engine = app.engine.clone();
    let imported = blocking(move || {
        let file = ImportFile::new(upload.name, upload.file);
        let done = match is_check {
            true => checked(&engine, file, &options),
            false => import(&engine, file, &options, &mut |_| {}).map(|report| (report, None)),
        };
        drop((slot, reservations));
        done.map(|(report, merged)| Imported { options, report, merged, is_check })
    });
    imported.await?.map_err(|error| match error {
        error @ Error::Import { .. } => Failure::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
        error => error.into(),
    })
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Failure::bug())
}

fn options(headers: &HeaderMap, params: &Params, format: ImportFormat) -> Result<ImportOptions, Failure> {
    let write = write::options(headers, params)?;
    // Its pieces have keys of their own, which are always good.
    write.check()?;
    let mut options = ImportOptions::new();
    options.format = Some(format);
    options.database = params::database(headers, params, &["db", "database"])?.into_owned();
    options.table = params.get("measurement").map(str::to_owned);
    options.durability = write.durability;
    options.precision = write.precision;
    options.tags = write.tags;
    options.id = write.idempotency_key;
    if format == ImportFormat::LineProtocol {
        return Ok(options);
    }
    if options.table.is_none() {
        return Err(Failure::bad_request("measurement is required"));
    }
    options.time_column = write.time_column.filter(|name| !name.is_empty());
    // The existing server takes an empty one for none.
    if let Some(format) = params.get("time_format").filter(|format| !format.is_empty()) {
        let unknown = |reason| Failure::bad_request(format!("time_format: {reason}"));
        options.time_format = Some(format.parse().map_err(unknown)?);
    }
    let names = |name: &str| -> Vec<String> {
        params.get(name).into_iter().flat_map(|names| names.split(',')).map(str::to_owned).collect()
    };
    options.exclude = names("exclude").into_iter().filter(|name| !name.is_empty()).collect();
    options.nulls = names("null");
    if let Some(delimiter) = params.get("delimiter") {
        options.delimiter = Some(match delimiter.as_bytes() {
            [byte] if byte.is_ascii() => *byte,
            b"\\t" | b"tab" => b'\t',
            _ => return Err(Failure::bad_request("delimiter has to be one character")),
        });
    }
    if let Some(rows) = params.number("skip_rows", 0..=u64::MAX)? {
        options.skip_rows = rows;
    }
    Ok(options)
}

fn reply(imported: &Imported, format: ImportFormat, started: Instant) -> Response {
    let Imported { options, report, merged, is_check } = imported;
    let mut result = json!({
        "database": options.database,
        // Rows that an earlier try had stored count: the client was not told then.
        "rows_imported": report.rows + report.rows_before,
        "rows_rejected": report.refused,
        "rejected": show::refusals(report),
        "partitions_created": report.days,
        "duration_ms": u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
    });
    let mut put = |key: &str, value: Value| {
        if let Some(result) = result.as_object_mut() {
            result.insert(key.to_owned(), value);
        }
    };
    if *is_check {
        put("check", true.into());
        put("rows_merged", (*merged).into());
    }
    if let Some((oldest, newest)) = report.times {
        put("time_range_min", timestamp::format(oldest).into());
        put("time_range_max", timestamp::format(newest).into());
    }
    match format {
        ImportFormat::LineProtocol => {
            put("measurements", report.tables.iter().cloned().collect::<Vec<_>>().into());
            put("precision", show::precision_name(options.precision.unwrap_or_default()).into());
        }
        _ => {
            put("measurement", options.table.clone().into());
            put("columns", report.columns.clone().into());
            put("types", show::types(report).into());
            put("time_form", report.time_form.clone().into());
        }
    }
    let status = if report.refused == 0 { "ok" } else { "partial" };
    json_response(StatusCode::OK, json!({ "status": status, "result": result }).to_string())
}
