//! How many rows tables have before and after an import: where there are fewer than it stored, rows merged with others.

use std::collections::BTreeMap;

use arc_core::{
    Engine,
    import::{ImportOptions, ImportReport},
};
use arrow::{array::AsArray, datatypes::Int64Type};

use super::dry_run::MAX_TABLES;

/// The rows of the tables that an import may meet, before it.
#[derive(Debug)]
pub(super) struct RowCounts(BTreeMap<String, u64>);

impl RowCounts {
    /// Counts the rows; nothing if there are too many tables, or they cannot be read.
    pub(super) fn before(engine: &Engine, options: &ImportOptions) -> Option<Self> {
        let tables = match (&options.table, engine.tables(&options.database)) {
            (Some(table), _) => vec![table.clone()],
            (None, Ok(tables)) => tables.iter().map(|table| table.schema.table.to_string()).collect(),
            (None, Err(_)) => Vec::new(),
        };
        let count = |table: String| Some((table.clone(), count(engine, &options.database, &table)?));
        (tables.len() <= MAX_TABLES).then(|| tables.into_iter().map(count).collect::<Option<_>>())?.map(Self)
    }

    /// Returns how many of the rows that an import stored are no rows of their own.
    pub(super) fn merged(&self, engine: &Engine, options: &ImportOptions, report: &ImportReport) -> Option<u64> {
        let added = |table: &String| {
            let after = count(engine, &options.database, table)?;
            after.checked_sub(self.0.get(table).copied().unwrap_or_default())
        };
        report.rows.checked_sub(report.tables.iter().map(added).sum::<Option<u64>>()?)
    }
}

/// Counts the rows of a table, which need not be there.
fn count(engine: &Engine, database: &str, table: &str) -> Option<u64> {
    if engine.schema(database, table).is_err() {
        return Some(0);
    }
    let sql = format!("SELECT count(*) FROM \"{}\"", table.replace('"', "\"\""));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let batches = runtime.block_on(async { engine.sql(database, &sql).await?.collect().await }).ok()?;
    let counts = batches.first()?.column(0).as_primitive_opt::<Int64Type>()?;
    counts.values().first().and_then(|count| u64::try_from(*count).ok())
}
