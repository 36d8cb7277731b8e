//! `GET /api/v1/query/{measurement}`: rows of one table, newest first, without a statement.
//!
//! Conditions and order are SQL, and reach what SQL reaches: nothing but tables, and those only to read.

use std::sync::Arc;

use arc_core::WriteOptions;
use axum::{
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
};
use hyper::http::request::Parts;

use super::{Query, asked_form, respond};
use crate::{
    app::App,
    errors::Failure,
    http::params::{self, Params},
};

/// Characters that an order, and a condition, may have.
const ORDER_LENGTH: usize = 256;
const CONDITION_LENGTH: usize = 4_096;

/// `GET /api/v1/query/{measurement}` with `database`, `limit`, `offset`, `order_by` and `where`.
pub(crate) async fn measurement(
    State(app): State<Arc<App>>,
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let query = async { read(&parts, &name?.0) };
    respond(&app, &parts, asked_form(&parts), query).await
}

fn read(parts: &Parts, name: &str) -> Result<Query, Failure> {
    let params = Params::of(&parts.uri)?;
    let database = params::database(&parts.headers, &params, &["database", "db"])?.into_owned();
    let limit = params.number("limit", 1..=1_000_000)?.unwrap_or(100);
    let offset = params.number("offset", 0..=u64::MAX >> 1)?.unwrap_or(0);
    let order = short(&params, "order_by", ORDER_LENGTH)?.unwrap_or("time DESC");
    let condition = short(&params, "where", CONDITION_LENGTH)?;
    // On lines of their own: they may end in a comment.
    let condition = condition.map_or_else(String::new, |condition| format!("WHERE (\n{condition}\n) "));
    let table = name.replace('"', "\"\"");
    let sql = format!("SELECT * FROM \"{table}\" {condition}ORDER BY {order}\nLIMIT {limit} OFFSET {offset}");
    Ok(Query { database, sql, values: None, options: WriteOptions::new(), may_change: false, reservation: None })
}

fn short<'a>(params: &'a Params, name: &str, most: usize) -> Result<Option<&'a str>, Failure> {
    match params.get(name) {
        Some(text) if text.chars().count() > most => {
            Err(Failure::bad_request(format!("{name} has more than {most} characters")))
        }
        text => Ok(text),
    }
}
