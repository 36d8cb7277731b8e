//! How many rows a statement would give, counted; and counts for others.

use std::{sync::Arc, time::Instant};

use ::arrow::{array::AsArray, datatypes::Int64Type};
use arc_core::{Statement, StatementKind, WriteOptions};
use axum::{
    extract::{Request, State},
    response::Response,
};
use hyper::StatusCode;
use serde_json::{Value, json};

use super::{Query, read, runner::Chunk};
use crate::{
    admin,
    app::App,
    auth::{Caller, Rights},
    errors::{Failure, json_response},
};

/// Rows from which on an answer deserves a warning, its level, and what is said; the most first.
const WARNINGS: [(u64, &str, &str); 3] = [
    (1_000_000, "high", "the answer has more than a million rows; add conditions, an aggregate or LIMIT"),
    (100_000, "medium", "the answer has more than 100,000 rows"),
    (10_000, "low", "the answer has more than 10,000 rows"),
];

/// `POST /api/v1/query/estimate`: a request as for a query. A statement that cannot be counted is no failed request.
pub(crate) async fn estimate(State(app): State<Arc<App>>, request: Request) -> Response {
    let started = Instant::now();
    let (parts, body) = request.into_parts();
    let asked = async {
        let caller = app.auth.caller(&parts.extensions)?;
        caller.check(Rights::READ)?;
        Ok((read(&app, &parts, body).await?, caller))
    };
    let counted = match asked.await {
        Ok((query, _)) if is_show(&query.sql) => Err(Failure::bad_request("SHOW cannot be estimated")),
        Ok((query, caller)) => Ok(counted(&app, query, caller).await),
        Err(failure) => Err(failure),
    };
    let body = |count: &Result<u64, Failure>| match count {
        Ok(count) => told(*count, started),
        Err(failure) => json!({
            "success": false,
            "estimated_rows": 0,
            "warning_level": "error",
            "warning_message": "",
            "execution_time_ms": admin::milliseconds(started),
            "error": failure.message,
            "message": failure.message,
        }),
    };
    match counted {
        Ok(count) => json_response(StatusCode::OK, body(&count).to_string()),
        Err(failure) => {
            let count = Err(failure);
            let body = body(&count);
            count.err().unwrap_or_else(Failure::bug).with_body(&body)
        }
    }
}

fn told(count: u64, started: Instant) -> Value {
    let warning = WARNINGS.into_iter().find(|(rows, ..)| count > *rows);
    let (level, message) = warning.map_or(("none", ""), |(_, level, message)| (level, message));
    json!({
        "success": true,
        "estimated_rows": count,
        "warning_level": level,
        "warning_message": message,
        "execution_time_ms": admin::milliseconds(started),
        "error": null,
    })
}

fn is_show(sql: &str) -> bool {
    Statement::parse(sql).is_ok_and(|statement| statement.kind() == StatementKind::Show)
}

async fn counted(app: &Arc<App>, query: Query, caller: Caller) -> Result<u64, Failure> {
    let asked = caller.statement(&query.sql)?;
    let sql = format!("SELECT count(*) FROM ({}) AS counted", asked.without_end());
    let statement = caller.statement(&sql)?;
    run(app, "estimate", caller, statement, Query { sql, ..query }).await
}

/// Runs a query that answers one count, like any other query. It sees all there is: what it is asked for has been looked at.
pub(crate) async fn count(app: &Arc<App>, caller: &Caller, sql: &str) -> Result<u64, Failure> {
    let (database, options) = ("default".to_owned(), WriteOptions::new());
    let query = Query { database, sql: sql.to_owned(), values: None, options, may_change: false, reservation: None };
    run(app, "delete", caller.clone(), Statement::parse(sql)?, query).await
}

async fn run(
    app: &Arc<App>,
    door: &'static str,
    caller: Caller,
    statement: Statement,
    query: Query,
) -> Result<u64, Failure> {
    let listed = app.list_query(door, &caller, &query.database, &query.sql);
    let slot = app.query_slot(&listed).await?;
    let engine = app.engine.clone();
    let at_work = Arc::clone(&listed);
    let mut running = app.runner.run(slot, listed, |chunks| async move {
        let answer = engine.query(&query.database, &statement, query.values.as_ref()).await;
        let answer = answer.map_err(|error| caller.failure(error))?;
        at_work.computes(&answer);
        let batches = answer.collect().await?;
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
