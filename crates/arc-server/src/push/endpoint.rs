//! `/api/v1/push…`: what another data directory sends is taken here, piece by piece, and adopted by one call.
//!
//! Nothing that is sent is seen by any query before it is adopted, and nothing of what is said of it is believed. Every
//! request may be made again.

use std::sync::Arc;

use arc_core::{AdoptOutcome, Upload};
use axum::{
    extract::{Request, State},
    response::Response,
};
use hyper::{StatusCode, Uri};
use serde_json::json;

use crate::{
    app::App,
    auth::{Caller, Rights},
    body::{self, Caps},
    delete::blocking,
    errors::{Failure, json_response},
    http::params::Params,
};

/// `GET /api/v1/push?origin=…`: up to which cut the rows of a directory are here.
pub(crate) async fn status(State(app): State<Arc<App>>, caller: Caller, uri: Uri) -> Result<Response, Failure> {
    caller.check(Rights::WRITE)?;
    let origin = text(&Params::of(&uri)?, "origin")?;
    let engine = app.engine.clone();
    let cut = blocking(move || engine.adopted_cut(&origin)).await?;
    let cut = cut.map(|cut| json!({ "number": cut.number, "id": cut.id }));
    Ok(json_response(StatusCode::OK, json!({ "cut": cut }).to_string()))
}

/// `GET /api/v1/push/file?origin=…&cut=…&name=…&bytes=…`: how much of a file is here.
pub(crate) async fn received(State(app): State<Arc<App>>, caller: Caller, uri: Uri) -> Result<Response, Failure> {
    caller.check(Rights::WRITE)?;
    let (upload, engine) = (upload(&Params::of(&uri)?)?, app.engine.clone());
    Ok(answer(blocking(move || engine.received(&upload)).await?))
}

/// `PUT /api/v1/push/file?…&offset=…` with bytes of a file, at most 1 MiB: how much of it is here then.
pub(crate) async fn receive(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Failure> {
    caller.check(Rights::WRITE)?;
    let params = Params::of(request.uri())?;
    let upload = upload(&params)?;
    let offset = params.number("offset", 0..=u64::MAX)?.ok_or_else(|| missing("offset"))?;
    let (parts, body) = request.into_parts();
    let bytes = body::read(&app, body, &parts.headers).await?;
    let engine = app.engine.clone();
    Ok(answer(blocking(move || engine.receive(&upload, offset, &bytes)).await?))
}

/// `POST /api/v1/push/adopt` with what `Engine::push` says of a cut: all of its files are this server's, or none.
pub(crate) async fn adopt(State(app): State<Arc<App>>, caller: Caller, request: Request) -> Result<Response, Failure> {
    caller.check(Rights::WRITE)?;
    let (parts, body) = request.into_parts();
    let caps = Caps { limit: app.limits.body_bytes, pause: app.limits.read_timeout };
    let mut reservation = app.bodies.enter();
    let body = body::read_within(body, &parts.headers, caps, &mut reservation).await?;
    // Read into structures it takes more.
    reservation.grow_to(body.len().saturating_mul(4)).await?;
    // Files are read to their ends: no more of that at a time than of imports.
    let slot = app.import_slot().await?;
    let engine = app.engine.clone();
    let adopted = blocking(move || {
        let may_write = |database: &str, table: &str| {
            caller
                .check_table(Rights::WRITE, database, table)
                .and_then(|()| caller.check_makes(&engine, database))
                .is_ok()
        };
        let adopted = engine.adopt(&body, &may_write);
        drop((slot, reservation));
        adopted
    });
    let answer = match adopted.await? {
        AdoptOutcome::Adopted(report) => {
            json!({ "adopted": { "files": report.files, "rows": report.rows, "bytes": report.bytes } })
        }
        AdoptOutcome::Missing(names) => json!({ "missing": names }),
    };
    Ok(json_response(StatusCode::OK, answer.to_string()))
}

fn answer(received: u64) -> Response {
    json_response(StatusCode::OK, json!({ "received": received }).to_string())
}

fn upload(params: &Params) -> Result<Upload, Failure> {
    let bytes = params.number("bytes", 1..=u64::MAX)?.ok_or_else(|| missing("bytes"))?;
    Ok(Upload { origin: text(params, "origin")?, cut: text(params, "cut")?, name: text(params, "name")?, bytes })
}

fn text(params: &Params, name: &'static str) -> Result<String, Failure> {
    params.get(name).map(str::to_owned).ok_or_else(|| missing(name))
}

fn missing(name: &str) -> Failure {
    Failure::bad_request(format!("the parameter {name} is missing; expected those that arc-server push sends"))
}
