//! Statements that change data: those that take something away are allowed where the settings say so, as over HTTP.

use std::sync::Arc;

use arc_core::{Error, Executed, Statement, StatementKind, WriteOptions};
use arrow::array::RecordBatch;
use hyper::{HeaderMap, StatusCode};

use crate::{
    app::App,
    auth::Caller,
    delete::{self, Confirmed},
    errors::Failure,
    http::params::{Params, header},
    query::change,
    write,
};

/// Header that says that a delete of many points is meant.
const CONFIRM: &str = "x-arc-confirm";

/// A statement that changes data.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) database: String,
    pub(super) sql: String,
    /// Values for its placeholders, one row each, if there are any; it runs once for each of them.
    pub(super) values: Option<Vec<RecordBatch>>,
}

/// Runs a statement; returns how many points it took or wrote, where that is known.
pub(super) async fn run(
    app: &Arc<App>,
    caller: &Caller,
    asked: Asked,
    headers: &HeaderMap,
) -> Result<Option<u64>, Failure> {
    app.check_takes_changes()?;
    let statement = caller.statement(&asked.sql)?;
    caller.check_statement(&app.engine, &asked.database, &statement).await?;
    if statement.kind() == StatementKind::Insert {
        return insert(app, caller, asked, statement, headers).await.map(Some);
    }
    let Asked { database, values, .. } = asked;
    if values.is_some() {
        return Err(Failure::bad_request("of the statements that change data, INSERT alone takes values"));
    }
    if statement.kind().is_change() && !statement.kind().adds() {
        delete::check_enabled(app)?;
    }
    let engine = app.engine.clone();
    let (asked, read) = (database.clone(), statement.clone());
    let deletion = delete::blocking(move || engine.deletion(&asked, &read)).await?;
    if let Some(deletion) = deletion {
        let confirmed = header(headers, CONFIRM)? == Some("true");
        let how = format!("send the header {CONFIRM}: true");
        let deleted = delete::points(app, caller, deletion, Confirmed(confirmed, &how)).await;
        return deleted.map(|(count, _)| Some(count));
    }
    app.engine.run(&database, &statement, None, &WriteOptions::new()).await.map_err(failure)?;
    Ok(None)
}

/// Returns the failure of a change. A name that is taken has a code of its own in gRPC, as for an ingest.
fn failure(error: Error) -> Failure {
    match error {
        Error::DatabaseExists { .. } | Error::TableExists { .. } => {
            Failure::new(StatusCode::CONFLICT, error.to_string())
        }
        error => error.into(),
    }
}

/// Writes rows, with the threads and limits of queries, for it may be one.
async fn insert(
    app: &Arc<App>,
    caller: &Caller,
    asked: Asked,
    statement: Statement,
    headers: &HeaderMap,
) -> Result<u64, Failure> {
    let options = write::durability(headers, &Params::default())?;
    let listed = app.list_query("flight insert", caller, &asked.database, &asked.sql);
    let slot = app.query_slot(&listed).await?;
    let (engine, caller) = (app.engine.clone(), caller.clone());
    let mut running = app.runner.run(slot, listed, |done| async move {
        let Asked { database, values, .. } = asked;
        let rows = values.as_ref().map_or_else(|| vec![None], |rows| rows.iter().map(Some).collect());
        let mut points = 0;
        for row in rows {
            let executed = engine.run(&database, &statement, row, &options).await;
            if let Executed::Inserted(written) = executed.map_err(|error| caller.failure(stopped(error, points)))? {
                points += written.points;
            }
        }
        // Nobody may be there to hear it.
        let _ = done.send(Ok(points)).await;
        Ok(())
    });
    running.next().await
}

/// Says in an error how many rows are stored: those of the runs before, and what its own had stored when it failed.
fn stopped(error: Error, before: u64) -> Error {
    match error {
        Error::InsertStopped { rows, source } => Error::InsertStopped { rows: before + rows, source },
        error if before > 0 => Error::InsertStopped { rows: before, source: Box::new(error) },
        error => error,
    }
}

/// Returns the answer to a statement that a client runs like a query: how many points were taken or written.
pub(super) fn answer(count: Option<u64>) -> Result<RecordBatch, Failure> {
    change::count(count).map_err(|_| Failure::bug())
}
