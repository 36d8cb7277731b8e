//! Queries over HTTP: SQL in; JSON or Arrow out, batch by batch.
//!
//! Decodes the request, runs it in the engine, and encodes the answer while it comes, so that its size does not matter.
//! All but the decoding happens on threads of its own (`runner`). Of the SQL it knows only whether it drops something.

mod arrow;
mod cells;
mod encode;
mod json;
pub(crate) mod layout;
mod reply;
mod runner;
pub(crate) mod values;

use std::{sync::Arc, time::Instant};

use ::arrow::{
    array::{AsArray, RecordBatch},
    datatypes::{Int64Type, Schema},
};
use axum::{
    body::Body,
    extract::{Request, State},
    response::Response,
};
use futures::stream;
use hyper::http::request::Parts;
use serde_json::{Value, json};

use crate::{
    admin::{self, MAX_REQUEST_BYTES},
    app::App,
    body,
    decompress::decompress,
    delete,
    errors::Failure,
    http::params::{self, Params},
    timestamp,
};
use encode::{Encode, Encoding};
use reply::Reply;
use runner::Chunk;

pub(crate) use reply::Ticket;
pub(crate) use runner::{PieceSender, Runner, Running};

/// Where the query string may name the default database.
const DATABASE: [&str; 2] = ["database", "db"];

/// `POST /api/v1/query`.
pub(crate) async fn json(State(app): State<Arc<App>>, request: Request) -> Response {
    let started = Instant::now();
    answer::<json::Json>(&app, request, started).await.unwrap_or_else(|failure| envelope(&failure, started))
}

/// `POST /api/v1/query/arrow`.
pub(crate) async fn arrow(State(app): State<Arc<App>>, request: Request) -> Response {
    let answer = answer::<arrow::Ipc>(&app, request, Instant::now()).await;
    answer.unwrap_or_else(|failure| {
        failure.with_body(&json!({ "success": false, "error": failure.message, "message": failure.message }))
    })
}

async fn answer<E: Encode>(app: &Arc<App>, request: Request, started: Instant) -> Result<Response, Failure> {
    let mut ticket = Ticket::new(app, E::disconnects);
    let (parts, body) = request.into_parts();
    match start::<E>(app, parts, body, started).await {
        Ok(query) => Reply::new(query, ticket).respond(E::CONTENT_TYPE).await,
        Err(failure) => {
            ticket.failed();
            Err(failure)
        }
    }
}

async fn start<E: Encode>(
    app: &Arc<App>,
    parts: Parts,
    body: Body,
    started: Instant,
) -> Result<Running<Chunk>, Failure> {
    let body = body::read(body, &parts.headers, MAX_REQUEST_BYTES, app.limits.read_timeout).await?;
    let body = decompress(body, MAX_REQUEST_BYTES)?;
    let request = Query::read(&parts, &body)?;
    let is_drop = arc_core::is_drop(&request.sql);
    if is_drop {
        delete::check_enabled(app)?;
    }
    let slot = app.query_slot().await?;
    let owned = Arc::clone(app);
    Ok(app.runner.run(slot, move |chunks| async move {
        if is_drop {
            let engine = owned.engine.clone();
            delete::blocking(move || engine.execute(&request.database, &request.sql)).await?;
            // Nobody waits longer for it than for a query, but begun is done.
            let encoder = E::open(&parts.headers, &Arc::new(Schema::empty()), started)?;
            return Encoding::new(&owned, stream::empty(), encoder).send(chunks).await;
        }
        let answer = match &request.values {
            Some(values) => owned.engine.sql_with(&request.database, &request.sql, values).await?,
            None => owned.engine.sql(&request.database, &request.sql).await?,
        };
        let encoder = E::open(&parts.headers, &answer.schema(), started)?;
        Encoding::new(&owned, answer, encoder).send(chunks).await
    }))
}

/// Runs a query that answers one count, like any other query.
pub(crate) async fn count(app: &Arc<App>, sql: &str) -> Result<u64, Failure> {
    let slot = app.query_slot().await?;
    let (engine, sql) = (app.engine.clone(), sql.to_owned());
    let mut running = app.runner.run(slot, |chunks| async move {
        let batches = engine.sql("default", &sql).await?.collect().await?;
        let counted = batches.first().and_then(|batch| batch.columns().first());
        let counted = counted.and_then(|column| column.as_primitive_opt::<Int64Type>()?.iter().next()?);
        let bytes = counted.ok_or_else(Failure::bug)?.to_be_bytes().to_vec().into();
        // Nobody may be there to hear it.
        let _ = chunks.send(Ok(Chunk { bytes, is_last: true })).await;
        Ok(())
    });
    let counted = running.next().await?;
    let counted = <[u8; 8]>::try_from(&*counted.bytes).map_err(|_| Failure::bug())?;
    u64::try_from(i64::from_be_bytes(counted)).map_err(|_| Failure::bug())
}

/// What a query request asks for.
struct Query {
    database: String,
    sql: String,
    /// For its placeholders.
    values: Option<RecordBatch>,
}

impl Query {
    /// Reads `{"sql": "…", "database": "…", "params": {…}}`; the header `x-arc-database` and the query string come before the key
    /// `database`, and other keys are left to whoever knows them.
    fn read(parts: &Parts, body: &[u8]) -> Result<Self, Failure> {
        if body.is_empty() {
            return Err(Failure::bad_request("Empty request body; expected {\"sql\": \"…\"}"));
        }
        let request = admin::parse(body)?;
        let text = |key: &str| match request.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(Failure::bad_request(format!("the key {key} is not a string"))),
        };
        let sql =
            text("sql")?.ok_or_else(|| Failure::bad_request("the key sql is missing; expected {\"sql\": \"…\"}"))?;
        if sql.trim().is_empty() {
            return Err(Failure::bad_request("the key sql is empty"));
        }
        let params = Params::of(&parts.uri)?;
        let named = params::header(&parts.headers, "x-arc-database")?;
        let named = named.or_else(|| DATABASE.iter().find_map(|name| params.get(name)));
        let database = match named {
            Some(name) => name,
            None => text("database")?.filter(|name| !name.is_empty()).unwrap_or("default"),
        };
        let values = request.get("params").map_or(Ok(None), values::row)?;
        Ok(Self { database: database.to_owned(), sql: sql.to_owned(), values })
    }
}

/// The shape of a JSON query that failed: that of one that did not, with the lists empty.
fn envelope(failure: &Failure, started: Instant) -> Response {
    failure.with_body(&json!({
        "success": false,
        "columns": [],
        "data": [],
        "row_count": 0,
        "execution_time_ms": admin::milliseconds(started),
        "timestamp": timestamp::now(),
        "error": failure.message,
        "message": failure.message,
    }))
}
