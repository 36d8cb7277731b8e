//! `GET /api/v1/databases/{name}/measurements/{measurement}/files`: how the rows of a measurement lie on disk, day by day.
//!
//! Says what the manifest says. Never opens a data file.

use std::{collections::BTreeMap, sync::Arc};

use arc_core::{
    Error,
    datafile::{DataFile, PartitionDay},
};
use axum::{extract::State, response::Response};
use hyper::StatusCode;
use serde_json::{Value, json};

use crate::{
    app::App,
    auth::{Caller, Rights},
    column_types::TablePath,
    errors::{Failure, json_response},
};

/// Some data files together.
#[derive(Debug, Default)]
struct FileTotals {
    files: u64,
    bytes: u64,
    rows: u64,
    /// Files whose rows came out of order and are merged with older ones by each query, until a compaction has done so.
    late_files: u64,
    late_rows: u64,
}

impl FileTotals {
    fn add(&mut self, file: &DataFile) {
        self.files += 1;
        self.bytes += file.bytes;
        self.rows += file.rows;
        if file.late {
            self.late_files += 1;
            self.late_rows += file.rows;
        }
    }

    fn describe(&self) -> Value {
        json!({
            "files": self.files,
            "bytes": self.bytes,
            "rows": self.rows,
            "late_files": self.late_files,
            "late_rows": self.late_rows,
        })
    }
}

/// Answers the days that have data files, the newest first, and all of them together.
pub(crate) async fn by_day(State(app): State<Arc<App>>, caller: Caller, path: TablePath) -> Result<Response, Failure> {
    let axum::extract::Path((database, table)) = path?;
    caller.check_table(Rights::READ, &database, &table)?;
    let tables = app.engine.tables(&database)?;
    let info = tables.into_iter().find(|info| *info.schema.table == *table);
    let buffered = info.map(|info| info.buffered_rows).ok_or_else(|| absent(&database, &table))?;
    let mut all = FileTotals::default();
    let mut days: BTreeMap<PartitionDay, FileTotals> = BTreeMap::new();
    for file in app.engine.data_files(&database, &table)? {
        all.add(&file);
        days.entry(PartitionDay::from_time_ns(file.min_time)).or_default().add(&file);
    }
    let days = days.into_iter().rev().map(|(day, totals)| with(totals.describe(), "day", day.to_string().into()));
    let days: Vec<Value> = days.collect();
    let body = with(all.describe(), "days", days.into());
    let body = with(body, "buffered_rows", buffered.into());
    let body = with(with(body, "database", database.into()), "measurement", table.into());
    Ok(json_response(StatusCode::OK, body.to_string()))
}

fn absent(database: &str, table: &str) -> Error {
    Error::TableNotFound { database: database.to_owned(), table: table.to_owned() }
}

fn with(mut described: Value, key: &str, value: Value) -> Value {
    if let Some(described) = described.as_object_mut() {
        described.insert(key.to_owned(), value);
    }
    described
}
