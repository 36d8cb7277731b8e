//! Answers of `SHOW DATABASES`, `SHOW TABLES` and `SHOW COLUMNS`, whose columns existing clients
//! expect, and what to ask for `SHOW SERIES`.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray},
    datatypes::{DataType, Field, Schema},
};

use super::{QueryTables, session::CATALOG};
use crate::{Error, Result, SnapshotInfo, model::time_type};

/// Bytes in the unit of `total_size_mb`.
const BYTES_PER_MB: f64 = 1_048_576.0;

/// Returns one row for each database, in order of name.
pub(super) fn databases(tables: &dyn QueryTables) -> Result<RecordBatch> {
    let mut names = tables.databases();
    names.sort_unstable();
    let schema = Schema::new(vec![Field::new("database", DataType::Utf8, false)]);
    Ok(RecordBatch::try_new(Arc::new(schema), vec![Arc::new(StringArray::from(names))])?)
}

/// Returns one row for each snapshot, in order of name.
///
/// What a snapshot keeps on disk is of the tables of everybody: NULL unless `reads_all`.
pub(super) fn snapshots(snapshots: &[SnapshotInfo], reads_all: bool) -> Result<RecordBatch> {
    let number = |of: fn(&SnapshotInfo) -> u64| {
        let numbers = snapshots.iter().map(|snapshot| i64::try_from(of(snapshot)).unwrap_or(i64::MAX));
        let known = numbers.map(|number| reads_all.then_some(number));
        Arc::new(known.collect::<Int64Array>()) as ArrayRef
    };
    let times = TimestampNanosecondArray::from_iter_values(snapshots.iter().map(|snapshot| snapshot.time_ns));
    let columns: [(&str, ArrayRef); 4] = [
        ("name", Arc::new(StringArray::from_iter_values(snapshots.iter().map(|snapshot| &snapshot.name)))),
        ("created_at", Arc::new(times.with_data_type(time_type()))),
        ("retired_files", number(|snapshot| snapshot.retired_files)),
        ("retired_bytes", number(|snapshot| snapshot.retired_bytes)),
    ];
    let fields = columns
        .iter()
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), !reads_all && name.starts_with("retired_")));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    Ok(RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, array)| array).collect())?)
}

/// Returns one row for each table of a database, in order of name.
///
/// Without `asked`, the default database need not exist: nothing was written to it yet.
pub(super) fn tables(tables: &dyn QueryTables, asked: Option<&str>, default: &str) -> Result<RecordBatch> {
    let database = asked.unwrap_or(default);
    let mut names = match (tables.tables(database), asked) {
        (Some(names), _) => names,
        (None, None) => Vec::new(),
        (None, Some(database)) => return Err(Error::DatabaseNotFound { database: database.to_owned() }),
    };
    names.sort_unstable();
    let totals: Vec<(usize, u64)> =
        names.iter().map(|table| tables.file_totals(database, table).unwrap_or_default()).collect();
    let folders = names.iter().map(|table| tables.folder(database, table));
    #[expect(clippy::cast_precision_loss, reason = "a size in megabytes, for people")]
    let megabytes = totals.iter().map(|(_, bytes)| *bytes as f64 / BYTES_PER_MB);
    let counts = totals.iter().map(|(files, _)| i64::try_from(*files).unwrap_or(i64::MAX));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(names.iter().map(|_| database))),
        Arc::new(StringArray::from_iter_values(&names)),
        Arc::new(StringArray::from_iter_values(folders)),
        Arc::new(Int64Array::from_iter_values(counts)),
        Arc::new(Float64Array::from_iter_values(megabytes)),
    ];
    Ok(RecordBatch::try_new(Arc::new(tables_schema()), columns)?)
}

/// Returns one row for each column of a table, in the table's order.
pub(super) fn columns(tables: &dyn QueryTables, database: &str, table: &str) -> Result<RecordBatch> {
    let not_found = || Error::TableNotFound { database: database.to_owned(), table: table.to_owned() };
    let schema = tables.schema(database, table).ok_or_else(not_found)?.arrow();
    let every = |text: &str| StringArray::from_iter_values(schema.fields().iter().map(|_| text.to_owned()));
    let each =
        |text: fn(&Field) -> String| StringArray::from_iter_values(schema.fields().iter().map(|field| text(field)));
    let named: [(&str, ArrayRef); 6] = [
        ("table_catalog", Arc::new(every(CATALOG))),
        ("table_schema", Arc::new(every(database))),
        ("table_name", Arc::new(every(table))),
        ("column_name", Arc::new(each(|field| field.name().clone()))),
        ("data_type", Arc::new(each(|field| field.data_type().to_string()))),
        ("is_nullable", Arc::new(each(|field| if field.is_nullable() { "YES" } else { "NO" }.to_owned()))),
    ];
    let fields: Vec<Field> = named.iter().map(|(name, _)| Field::new(*name, DataType::Utf8, false)).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), named.into_iter().map(|(_, array)| array).collect())?)
}

/// Returns the query that answers with the tags of each series of a table.
pub(super) fn series(tables: &dyn QueryTables, database: &str, table: &str) -> Result<String> {
    let not_found = || Error::TableNotFound { database: database.to_owned(), table: table.to_owned() };
    let schema = tables.schema(database, table).ok_or_else(not_found)?;
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let tags = schema.tags().map(|tag| quoted(&tag.name)).collect::<Vec<_>>().join(", ");
    if tags.is_empty() {
        return Err(Error::Sql { reason: format!("{table} has no tags, so it has no series") });
    }
    Ok(format!("SELECT DISTINCT {tags} FROM {}.{} ORDER BY {tags}", quoted(database), quoted(table)))
}

fn tables_schema() -> Schema {
    Schema::new(vec![
        Field::new("database", DataType::Utf8, false),
        Field::new("table_name", DataType::Utf8, false),
        Field::new("storage_path", DataType::Utf8, false),
        Field::new("file_count", DataType::Int64, false),
        Field::new("total_size_mb", DataType::Float64, false),
    ])
}
