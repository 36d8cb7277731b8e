//! Queries over HTTP: SQL in; JSON, CSV, MessagePack, Arrow or Parquet out, batch by batch.
//!
//! Decodes the request, runs it in the engine, and encodes the answer while it comes, so that its size does not matter.
//! All but the decoding happens on threads of its own (`runner`). Of the SQL it knows only whether it drops or writes something.

mod arrow;
mod cells;
pub(crate) mod change;
mod coding;
pub(crate) mod command;
pub(crate) mod control;
mod csv;
mod encode;
mod estimate;
pub(crate) mod form;
mod idle;
mod json;
pub(crate) mod layout;
mod lines;
mod listed;
mod measurement;
mod pack;
mod packed;
mod parquet;
mod reply;
pub(crate) mod request;
mod runner;
mod spool;
mod table;
mod tail;
mod types;
pub(crate) mod values;

use std::{sync::Arc, time::Instant};

use arc_core::StatementKind;
use axum::{
    body::Body,
    extract::{Request, State},
    response::Response,
};
use futures::stream;
use hyper::{header, http::request::Parts};
use serde_json::json;

use crate::{
    admin::{self, MAX_REQUEST_BYTES},
    app::App,
    body,
    decompress::decompress,
    delete,
    errors::Failure,
    http::params::Params,
    timestamp,
};
use encode::Encoding;
use reply::Reply;
use request::Dialect;
use runner::Chunk;

pub(crate) use estimate::{count, estimate};
pub(crate) use form::Form;
pub(crate) use listed::{List, Listed, NewQuery};
pub(crate) use measurement::measurement;
pub(crate) use reply::Ticket;
pub(crate) use request::{Query, Shape};
pub(crate) use runner::{PieceSender, Runner, Running};
pub(crate) use spool::Spools;
pub(crate) use tail::tail;

/// `POST /api/v1/query`: in whatever form the client asks for, else JSON.
pub(crate) async fn any(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let form = asked_form(&parts);
    respond(&app, &parts, form, read(&app, &parts, body)).await
}

/// `POST /api/v1/query/arrow`.
pub(crate) async fn arrow(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    respond(&app, &parts, Ok(Form::Arrow), read(&app, &parts, body)).await
}

/// `POST /api/v1/query/msgpack`.
pub(crate) async fn message_pack(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    respond(&app, &parts, Ok(Form::MessagePack), read(&app, &parts, body)).await
}

fn asked_form(parts: &Parts) -> Result<Form, Failure> {
    Form::asked(&parts.headers, &Params::of(&parts.uri)?, Form::Json)
}

async fn respond(
    app: &Arc<App>,
    parts: &Parts,
    form: Result<Form, Failure>,
    query: impl Future<Output = Result<Query, Failure>>,
) -> Response {
    let started = Instant::now();
    // What fails before that is known is told in the form that most understand.
    let told_in = *form.as_ref().unwrap_or(&Form::Json);
    let caller = match app.auth.caller(&parts.extensions) {
        Ok(caller) => caller,
        Err(failure) => return failed(&failure, told_in, started),
    };
    let mut ticket = Ticket::new(app, told_in, caller.clone());
    let asked = async {
        // Before the body is read.
        caller.check_statements()?;
        let shape = Shape::new(form?, Dialect::Arc, &parts.headers, parts.version)?;
        Ok((shape, query.await?))
    };
    let answer = match asked.await {
        Ok((shape, query)) => answer(app, ticket, query, shape, started).await,
        Err(failure) => {
            ticket.failed(&failure);
            Err(failure)
        }
    };
    answer.unwrap_or_else(|failure| failed(&failure, told_in, started))
}

async fn read(app: &Arc<App>, parts: &Parts, body: Body) -> Result<Query, Failure> {
    let body = body::read(app, body, &parts.headers).await?;
    let query = Query::read(&parts.headers, &parts.uri, &decompress(body.bytes, MAX_REQUEST_BYTES)?)?;
    Ok(Query { reservation: Some(body.reservation), ..query })
}

/// Runs a statement and answers it; a failure is what there is no answer but a status for.
pub(crate) async fn answer(
    app: &Arc<App>,
    mut ticket: Ticket,
    query: Query,
    shape: Shape,
    started: Instant,
) -> Result<Response, Failure> {
    match start(app, &mut ticket, query, shape, started).await {
        Ok(running) => Reply::new(running, ticket).respond(shape).await,
        Err(failure) => {
            ticket.failed(&failure);
            Err(failure)
        }
    }
}

async fn start(
    app: &Arc<App>,
    ticket: &mut Ticket,
    mut query: Query,
    shape: Shape,
    started: Instant,
) -> Result<Running<Chunk>, Failure> {
    let caller = ticket.caller().clone();
    let statement = caller.statement(&query.sql)?;
    let kind = statement.kind();
    let changes = kind.is_change() && kind != StatementKind::Delete;
    if changes && !query.may_change {
        // Whatever loads an address may send it: a page's image, a prefetch, a proxy that tries again.
        return Err(Failure::method_not_allowed("GET changes nothing: send this statement with POST", "POST"));
    }
    caller.check_statement(&app.engine, &query.database, &statement).await?;
    if matches!(kind, StatementKind::Drop | StatementKind::Restore) {
        delete::check_enabled(app)?;
    }
    let listed = ticket.list(&query.database, &query.sql);
    let slot = app.query_slot(&listed).await?;
    // What waits is counted as a body; what runs has memory of its own.
    drop(query.reservation.take());
    let (owned, at_work) = (Arc::clone(app), Arc::clone(&listed));
    Ok(app.runner.run(slot, listed, move |chunks| async move {
        let engine = owned.engine.clone();
        if changes {
            // First, so that what is refused for its shape is not done.
            let encoder = shape.open(&owned, &change::columns(kind), started)?;
            // Nobody waits longer for it than for a query, but what is not a query itself is done once it has begun.
            let executed = engine.run(&query.database, &statement, query.values.as_ref(), &query.options).await;
            let executed = executed.map_err(|error| caller.failure(error))?;
            return Encoding::new(&at_work, stream::iter(change::answer(&executed)), encoder).send(chunks).await;
        }
        let answer = engine.query(&query.database, &statement, query.values.as_ref()).await;
        let answer = answer.map_err(|error| caller.failure(error))?;
        at_work.computes(&answer);
        let encoder = shape.open(&owned, &answer.schema(), started)?;
        Encoding::new(&at_work, answer, encoder).send(chunks).await
    }))
}

/// Answers a query that failed, in the shape that its clients look for.
fn failed(failure: &Failure, form: Form, started: Instant) -> Response {
    match form {
        Form::Json => failure.with_body(&json!({
            "success": false,
            "columns": [],
            "data": [],
            "row_count": 0,
            "execution_time_ms": admin::milliseconds(started),
            "timestamp": timestamp::now(),
            "error": failure.message,
            "message": failure.message,
        })),
        Form::MessagePack => {
            let mut response = failure.with_bytes(pack::failed(failure, started));
            let content_type = header::HeaderValue::from_static(Form::MessagePack.content_type());
            response.headers_mut().insert(header::CONTENT_TYPE, content_type);
            response
        }
        _ => failure.with_body(&json!({ "success": false, "error": failure.message, "message": failure.message })),
    }
}
