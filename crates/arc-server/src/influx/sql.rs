//! `/api/v3/query_sql`: SQL with the parameters and answers of InfluxDB 3.
//!
//! Lists of objects without nulls, times without a zone (they are in UTC), and errors in `error`.

use std::{sync::Arc, time::Instant};

use arrow::array::RecordBatch;
use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use hyper::{HeaderMap, Method, http::request::Parts};

use crate::{
    admin::{self, MAX_REQUEST_BYTES},
    app::App,
    body,
    decompress::decompress,
    errors::Failure,
    http::params::Params,
    query::{
        self, Form, Query, Shape, Ticket,
        request::{Dialect, text},
        values,
    },
    write,
};

/// `GET` with a query string, or `POST` with the same as JSON: `db`, `q`, `format`, `params`.
pub(crate) async fn query(State(app): State<Arc<App>>, request: Request) -> Response {
    let started = Instant::now();
    let (parts, body) = request.into_parts();
    let caller = match app.auth.caller(&parts.extensions).and_then(|caller| caller.check_statements().map(|()| caller))
    {
        Ok(caller) => caller,
        Err(failure) => return failure.into_response(),
    };
    let asked = match asked(&app, &parts, body).await {
        Ok((query, form)) => {
            let shape = Shape::new(form, Dialect::InfluxDb3, &parts.headers, parts.version);
            shape.map(|shape| (query, shape, form))
        }
        Err(failure) => Err(failure),
    };
    let answer = match asked {
        Ok((query, shape, form)) => query::answer(&app, Ticket::new(&app, form, caller), query, shape, started).await,
        Err(failure) => {
            Ticket::new(&app, Form::Json, caller).failed(&failure);
            Err(failure)
        }
    };
    answer.unwrap_or_else(IntoResponse::into_response)
}

async fn asked(app: &App, parts: &Parts, body: axum::body::Body) -> Result<(Query, Form), Failure> {
    match parts.method {
        Method::GET => {
            let (query, form) = from_params(&parts.headers, &Params::of(&parts.uri)?)?;
            Ok((Query { may_change: false, ..query }, form))
        }
        Method::POST => {
            let body = body::read(app, body, &parts.headers).await?;
            let (query, form) = from_json(&parts.headers, &decompress(body.bytes, MAX_REQUEST_BYTES)?)?;
            Ok((Query { reservation: Some(body.reservation), ..query }, form))
        }
        _ => Err(Failure::method_not_allowed("expected GET or POST", "GET, POST")),
    }
}

fn from_params(headers: &HeaderMap, params: &Params) -> Result<(Query, Form), Failure> {
    let values = params.get("params").map_or(Ok(None), values::row)?;
    read(headers, params.get("db"), params.get("q"), params.get("format"), values)
}

fn from_json(headers: &HeaderMap, body: &[u8]) -> Result<(Query, Form), Failure> {
    let request = &admin::parse(body)?;
    read(headers, text(request, "db")?, text(request, "q")?, text(request, "format")?, values::of(body)?)
}

fn read(
    headers: &HeaderMap,
    database: Option<&str>,
    sql: Option<&str>,
    format: Option<&str>,
    values: Option<RecordBatch>,
) -> Result<(Query, Form), Failure> {
    let missing = |name: &str| Failure::bad_request(format!("missing required parameter {name:?}"));
    let filled = |text: Option<&str>, name| {
        text.filter(|text| !text.trim().is_empty()).map(str::to_owned).ok_or_else(|| missing(name))
    };
    let (database, sql) = (filled(database, "db")?, filled(sql, "q")?);
    let options = write::durability(headers, &Params::default())?;
    let query = Query { database, sql, values, options, may_change: true, reservation: None };
    let form = match format {
        Some(name) => Form::named(name)?,
        None => Form::accepted(headers).unwrap_or(Form::Json),
    };
    Ok((query, form))
}
