//! Executing a continuous query: its rows are written as they come, and then the window counts as done.
//!
//! A crash in between has the window computed again, which writes the same rows once more: the same tags and times, so that
//! there are no more of them.

use std::{sync::Arc, time::Instant};

use arc_core::{Access, AccessScope, Statement, WriteOptions, time_of_text};
use arrow::{
    array::RecordBatch,
    datatypes::{DataType, SchemaRef},
};
use futures::StreamExt;
use serde_json::{Map, Value, json};

use super::{
    blocking,
    query::{ContinuousQuery, Window},
    store::Written,
};
use crate::{app::App, auth::Caller, errors::Failure, timestamp};

const HOUR_NS: i64 = 3_600_000_000_000;

/// The part of the store that a query reads.
#[derive(Debug)]
struct WithinDatabase(String);

impl Access for WithinDatabase {
    fn sees(&self, database: &str) -> bool {
        database == self.0
    }

    fn reads(&self, database: &str, _table: &str) -> bool {
        database == self.0
    }

    fn writes(&self, _database: &str, _table: &str) -> bool {
        false
    }
}

/// Executes a query as a request says: for a window of its own, or from where it has come to until now.
pub(super) async fn on_request(app: &Arc<App>, query: ContinuousQuery, request: &Value) -> Result<Value, Failure> {
    let wanted = WantedWindow::read(request)?;
    let now_ns = timestamp::now_ns();
    let end_ns = wanted.end_ns.unwrap_or(now_ns);
    let start_ns = wanted.start_ns.or(query.processed_ns(now_ns)).unwrap_or_else(|| end_ns.saturating_sub(HOUR_NS));
    if start_ns >= end_ns {
        let text = "start_time is not before end_time; without one it is the end of the window before";
        return Err(Failure::bad_request(text));
    }
    let (started, window) = (Instant::now(), Window { start_ns, end_ns });
    let (number, rows) = match wanted.dry_run {
        true => (None, rows(app, &query, window, None).await?),
        false => {
            // Done to its end even if the client leaves.
            let (app, query) = (Arc::clone(app), query.clone());
            let done = tokio::spawn(async move { execute(&app, &query, window).await });
            let (number, rows) = done.await.map_err(|_| Failure::bug())??;
            (Some(number), rows)
        }
    };
    Ok(json!({
        "query_id": query.id,
        "query_name": query.name,
        "execution_id": number.map_or_else(String::new, |number| number.to_string()),
        "status": if wanted.dry_run { "dry_run" } else { "completed" },
        "start_time": timestamp::format(start_ns),
        "end_time": timestamp::format(end_ns),
        "records_read": null,
        "records_written": rows,
        "execution_time_seconds": started.elapsed().as_secs_f64(),
        "destination_measurement": query.destination_measurement,
        "dry_run": wanted.dry_run,
        "executed_at": timestamp::format(now_ns),
        "executed_query": query.statement(window),
    }))
}

/// Executes a query for a window, and notes what came of it; returns the number of the execution and the rows.
pub(super) async fn execute(app: &Arc<App>, query: &ContinuousQuery, window: Window) -> Result<(u64, u64), Failure> {
    let started = Instant::now();
    let noted = (Arc::clone(app), query.id);
    let number = blocking(move || noted.0.continuous.begin(noted.1, window)).await?;
    let options = WriteOptions::new();
    let done = rows(app, query, window, Some(options)).await;
    let done = match done {
        Ok(rows) => {
            let (engine, query) = (app.engine.clone(), query.clone());
            blocking(move || query.put_in_force(&engine).map_err(Failure::from)).await.map(|()| rows)
        }
        failed => failed,
    };
    let error = done.as_ref().err().map(|failure| failure.message.clone());
    tracing::info!(query = query.id, rows = done.as_ref().ok(), error, "executed a continuous query");
    let outcome = Written { rows: *done.as_ref().unwrap_or(&0), took: started.elapsed(), error };
    let noted = (Arc::clone(app), query.id);
    blocking(move || noted.0.continuous.end(noted.1, number, outcome)).await?;
    done.map(|rows| (number, rows))
}

/// Has a statement see what its query may read.
pub(super) fn within(query: &ContinuousQuery, statement: Statement) -> Statement {
    statement.within(Some(AccessScope::new(Arc::new(WithinDatabase(query.database.clone())))))
}

/// Runs a query like any other one, and writes its rows if there are options for that; returns how many there are.
async fn rows(
    app: &Arc<App>,
    query: &ContinuousQuery,
    window: Window,
    options: Option<WriteOptions>,
) -> Result<u64, Failure> {
    let sql = query.statement(window);
    let statement = within(query, Statement::parse(&sql)?);
    let listed = app.list_query("continuous query", &Caller::anybody(), &query.database, &sql);
    let slot = app.query_slot(&listed).await?;
    let (engine, database, at_work) = (app.engine.clone(), query.database.clone(), Arc::clone(&listed));
    let mut running = app.runner.run(slot, listed, |batches| async move {
        let mut answer = engine.query(&database, &statement, None).await?;
        at_work.computes(&answer);
        while let Some(batch) = answer.next().await {
            // Who has given up needs no more of them.
            if batches.send(Ok(Some(batch?))).await.is_err() {
                return Ok(());
            }
        }
        let _ = batches.send(Ok(None)).await;
        Ok(())
    });
    let mut rows = 0;
    while let Some(batch) = running.next().await? {
        rows += match &options {
            Some(options) => write(app, query, batch, options.clone()).await?,
            None => u64::try_from(batch.num_rows()).unwrap_or(u64::MAX),
        };
    }
    Ok(rows)
}

async fn write(
    app: &Arc<App>,
    query: &ContinuousQuery,
    batch: RecordBatch,
    options: WriteOptions,
) -> Result<u64, Failure> {
    let tags = query.tag_columns.clone().unwrap_or_else(|| texts(&batch.schema()));
    let (engine, options) = (app.engine.clone(), options.tags(tags));
    let query = query.clone();
    // Waiting for room blocks.
    let submit = move || {
        query.make_destination(&engine)?;
        Ok(engine.submit_batches(&query.database, &query.destination_measurement, &[batch], &options)?)
    };
    let pending = blocking(submit).await?;
    Ok(pending.await?.points)
}

/// Returns the columns of text: what a statement groups by beside the time, mostly.
fn texts(schema: &SchemaRef) -> Vec<String> {
    let is_text = |data_type: &DataType| match data_type {
        DataType::Dictionary(_, values) => values.is_string(),
        data_type => data_type.is_string(),
    };
    let fields = schema.fields().iter().filter(|field| is_text(field.data_type()));
    fields.map(|field| field.name().clone()).collect()
}

/// How a query is to be executed.
#[derive(Debug, Default)]
struct WantedWindow {
    start_ns: Option<i64>,
    end_ns: Option<i64>,
    dry_run: bool,
}

impl WantedWindow {
    fn read(request: &Value) -> Result<Self, Failure> {
        let expected = "expected {\"start_time\": \"2026-01-31T00:00:00Z\", \"end_time\": \"…\", \"dry_run\": false}";
        let request: &Map<_, _> = request.as_object().ok_or_else(|| Failure::bad_request(expected))?;
        let mut wanted = Self::default();
        for (key, value) in request {
            let wrong = || Failure::bad_request(format!("the key {key:?} is not understood; {expected}"));
            let time = || match value {
                Value::Null => Ok(None),
                value => {
                    let time = value.as_str().and_then(time_of_text);
                    time.map(Some).ok_or_else(wrong)
                }
            };
            match key.as_str() {
                "start_time" => wanted.start_ns = time()?,
                "end_time" => wanted.end_ns = time()?,
                "dry_run" => wanted.dry_run = value.as_bool().ok_or_else(wrong)?,
                _ => return Err(wrong()),
            }
        }
        Ok(wanted)
    }
}
