//! Statements that change data: those that take something away are allowed where the settings say so, as over HTTP.

use std::sync::Arc;

use arc_core::Executed;
use arrow::{
    array::{RecordBatch, UInt64Array},
    datatypes::{DataType, Field, Schema},
};
use hyper::HeaderMap;

use crate::{app::App, delete, errors::Failure, http::params::header};

/// Header that says that a delete of many points is meant.
const CONFIRM: &str = "x-arc-confirm";

/// Runs a statement; returns how many points it took or wrote, where that is known.
pub(super) async fn run(
    app: &Arc<App>,
    database: &str,
    sql: &str,
    headers: &HeaderMap,
) -> Result<Option<u64>, Failure> {
    if arc_core::is_change(sql) && !arc_core::is_write(sql) {
        delete::check_enabled(app)?;
    }
    let (engine, database, sql) = (app.engine.clone(), database.to_owned(), sql.to_owned());
    let (asked, statement) = (database.clone(), sql.clone());
    let deletion = delete::blocking(move || engine.deletion(&asked, &statement)).await?;
    if let Some(deletion) = deletion {
        let confirmed = header(headers, CONFIRM)? == Some("true");
        let how = format!("send the header {CONFIRM}: true");
        return delete::points(app, deletion, confirmed, &how).await.map(|(count, _)| Some(count));
    }
    let engine = app.engine.clone();
    match delete::blocking(move || engine.execute(&database, &sql)).await? {
        Executed::Inserted(written) => Ok(Some(written.points)),
        _ => Ok(None),
    }
}

/// Returns the columns of the answer to a statement that a client runs like a query.
pub(super) fn columns() -> Schema {
    Schema::new(vec![Field::new("count", DataType::UInt64, true)])
}

/// Returns that answer: how many points were taken or written.
pub(super) fn answer(count: Option<u64>) -> Result<RecordBatch, Failure> {
    let column = Arc::new(UInt64Array::from(vec![count]));
    RecordBatch::try_new(Arc::new(columns()), vec![column]).map_err(|_| Failure::bug())
}
