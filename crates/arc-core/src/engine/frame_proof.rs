//! Proves the frame of a write before it is appended: what replay will decode of it is what the
//! write came to, bit by bit.
//!
//! Part of builds with debug assertions, so of all tests, and of the feature `check-frames`; never
//! of a plain release. Knows nothing of how frames are encoded, and decodes as replay does: into a
//! database that has just the tables as they will be.

use std::{collections::BTreeMap, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, RecordBatch, new_null_array},
    compute::{cast, concat},
    datatypes::{DataType, FieldRef},
};

use super::{
    frame::{self, WriteMeta},
    open::decode_write,
    queue::QueuedFrame,
    write::WriteRequest,
};
use crate::{
    Error, Result,
    buffer::{Chunk, ChunkReader, Rows},
    catalog::decode_schema,
    ingest::Staged,
    model::TableSchema,
    registry::{Database, Table},
};

/// Checks that a frame decodes to the rows that it was made for.
///
/// # Errors
///
/// [`Error::Internal`] with the first difference.
pub(super) fn check(frame: &QueuedFrame, staged: &Staged) -> Result<()> {
    // Such rows are not stored, but decoded again, by the types or for the tables that there are
    // then.
    let will_be_decoded_again = || staged.is_outdated() || staged.has_dropped();
    if will_be_decoded_again() {
        return Ok(());
    }
    match compare(frame, staged) {
        Err(reason) if !will_be_decoded_again() => differs(format!("the frame of a write is not its points: {reason}")),
        _ => Ok(()),
    }
}

/// Checks that the body of a frame is the schema that it was made for.
///
/// # Errors
///
/// As [`check`].
pub(super) fn check_schema(body: &[u8], schema: &TableSchema) -> Result<()> {
    match decode_schema(body) {
        Ok(decoded) if decoded == *schema => Ok(()),
        Ok(decoded) => differs(format!("the frame of a schema is another one: {schema:?} is {decoded:?}")),
        Err(reason) => differs(format!("the frame of a schema is none: {reason}")),
    }
}

/// Refuses what is not in its frame; a test fails at once, whatever it makes of an error.
fn differs(reason: String) -> Result<()> {
    tracing::error!(reason, "a frame does not prove itself");
    #[cfg(test)]
    assert_eq!(reason, "");
    Err(Error::internal(reason))
}

fn compare(frame: &QueuedFrame, staged: &Staged) -> Result<(), String> {
    let meta: WriteMeta = frame::decode(&frame.meta)?;
    let schemas = schemas(staged);
    let database = Arc::new(Database::new(&meta.database, 0, true));
    for schema in schemas.values() {
        database.add(Arc::new(Table::with_files(Arc::clone(schema), Vec::new(), false)));
    }
    let request = WriteRequest { kind: frame.kind, body: frame.body.clone(), meta };
    let decoded = decode_write(&request, &database)?;
    let failed = |e: Error| e.to_string();
    let (written, decoded) = (tables(staged).map_err(failed)?, tables(&decoded).map_err(failed)?);
    if let Some(name) =
        written.keys().chain(decoded.keys()).find(|name| !written.contains_key(*name) || !decoded.contains_key(*name))
    {
        return Err(format!("table {name:?} is not in both"));
    }
    for (((name, written), decoded), schema) in written.iter().zip(decoded.values()).zip(schemas.values()) {
        let (written, decoded) = (written.batches(schema).map_err(failed)?, decoded.batches(schema).map_err(failed)?);
        compare_table(schema, &written, &decoded).map_err(|reason| format!("table {name:?}: {reason}"))?;
    }
    Ok(())
}

/// Returns the schema of each table that has rows, as it will be when they are stored.
fn schemas(staged: &Staged) -> BTreeMap<Arc<str>, Arc<TableSchema>> {
    let staged_rows = staged.rows.tables().filter_map(|table| staged.row_tables.get(table)).map(|table| table.schema());
    let mut schemas: BTreeMap<_, _> = staged_rows.map(|schema| (Arc::clone(&schema.table), schema)).collect();
    for table in staged.tables.iter().filter(|table| !table.is_empty()) {
        let schema = table.grown_schema();
        let known = schemas.entry(Arc::clone(&schema.table)).or_insert_with(|| Arc::clone(&schema));
        // A table may come several times, and only once with what is new.
        if table.changes_schema() || schema.columns.len() > known.columns.len() {
            *known = schema;
        }
    }
    schemas
}

/// The rows of one table, in the order in which they are stored.
struct ProvenRows<'s> {
    table: &'s Arc<Table>,
    chunks: Vec<Arc<Chunk>>,
}

impl ProvenRows<'_> {
    fn batches(&self, schema: &Arc<TableSchema>) -> Result<Vec<RecordBatch>> {
        let reader = ChunkReader::new(Arc::clone(schema), Arc::clone(&self.table.series));
        self.chunks.iter().map(|chunk| reader.rows(chunk).all()).collect()
    }
}

fn tables<'s>(staged: &'s Staged) -> Result<BTreeMap<Arc<str>, ProvenRows<'s>>> {
    let mut tables: BTreeMap<Arc<str>, ProvenRows<'s>> = BTreeMap::new();
    let mut add = |table: &'s Arc<Table>, chunk| {
        let name = Arc::clone(&table.schema().table);
        tables.entry(name).or_insert_with(|| ProvenRows { table, chunks: Vec::new() }).chunks.push(Arc::new(chunk));
    };
    for (table, row) in staged.rows.tables().zip(staged.rows.rows()) {
        let mut rows = Rows::default();
        rows.append_staged(&row)?;
        let gone = || Error::internal("the table of a staged row is gone");
        add(staged.row_tables.get(table).ok_or_else(gone)?, rows.into_chunk()?);
    }
    for table in &staged.tables {
        for chunk in &table.kept.chunks {
            add(&table.table, chunk.copied()?);
        }
        if !table.rows.is_empty() {
            add(&table.table, table.rows.to_chunk()?);
        }
    }
    Ok(tables)
}

fn compare_table(schema: &TableSchema, written: &[RecordBatch], decoded: &[RecordBatch]) -> Result<(), String> {
    let rows = |batches: &[RecordBatch]| batches.iter().map(RecordBatch::num_rows).sum::<usize>();
    if rows(written) != rows(decoded) {
        return Err(format!("{} rows are {}", rows(written), rows(decoded)));
    }
    for field in schema.arrow().fields() {
        let name = field.name();
        if written.iter().chain(decoded).all(|batch| batch.column_by_name(name).is_none()) {
            continue;
        }
        let (written, decoded) = (column(written, field)?, column(decoded, field)?);
        // By their bytes: NaN is itself, and neither zero is the other.
        if *written != *decoded {
            let row = (0..written.len()).find(|row| written.slice(*row, 1) != decoded.slice(*row, 1));
            let row = row.unwrap_or_default();
            let (written, decoded) = (written.slice(row, 1), decoded.slice(row, 1));
            return Err(format!("column {name:?}, row {row}: {written:?} is {decoded:?}"));
        }
    }
    Ok(())
}

/// Returns a column of all rows; tags as texts, for each side has a dictionary of its own.
fn column(batches: &[RecordBatch], field: &FieldRef) -> Result<ArrayRef, String> {
    let is_tag = matches!(field.data_type(), DataType::Dictionary(..));
    let data_type = if is_tag { &DataType::Utf8 } else { field.data_type() };
    let of = |batch: &RecordBatch| match batch.column_by_name(field.name()) {
        Some(array) if is_tag => cast(array, data_type).map_err(|e| e.to_string()),
        Some(array) => Ok(Arc::clone(array)),
        None => Ok(new_null_array(data_type, batch.num_rows())),
    };
    let arrays = batches.iter().map(of).collect::<Result<Vec<_>, _>>()?;
    let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
    concat(&arrays).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Engine, WriteOptions,
        engine::{frame::FrameKind, write::decode_logged},
    };

    fn request(lines: &str) -> WriteRequest {
        let meta = WriteMeta::new("d", None, 0, &WriteOptions::new());
        // So much more than the rows that these are logged in columns, if there are several.
        let body = format!("{lines}\n# {}", "x".repeat(lines.lines().count() / 2 * 8192));
        WriteRequest { kind: FrameKind::LineProtocol, body: body.into(), meta }
    }

    #[test]
    fn a_frame_of_other_rows_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(dir.path().join("data")).unwrap();
        let database = Arc::new(Database::new("d", 0, true));
        let cases = [
            ("m,h=a x=0 1", "m,h=a x=-0 1", "column \"x\", row 0"),
            ("m,h=a x=1 1", "m,h=b x=1 1", "column \"h\", row 0"),
            ("m,h=a x=1 1", "m x=1 1", "table \"m\""),
            ("m,h=a x=1 1", "m,h=a x=1 2", "column \"time\", row 0"),
            ("m,h=a x=1 1", "m,h=a x=1 1\nm,h=a x=1 2", "rows are"),
            ("m x=1 1\nm x=1,y=t 2", "m x=1 1\nm x=1,y=f 2", "column \"y\", row 1"),
            ("m x=1 1\nm x=1,y=t 2", "m x=1,y=t 1\nm x=1,y=t 2", "column \"y\", row 0"),
            ("m x=1 1\nm s=\"\" 2", "m x=1 1\nm s=\"a\" 2", "column \"s\", row 1"),
            ("m x=1 1\nn x=1 1", "m x=1 1\nn x=2 1", "table \"n\": column \"x\""),
            ("m x=1 1\nn x=1 1", "m x=1 1\no x=1 1", "table"),
        ];
        for (written, other, expected) in cases {
            let (written, other) = (request(written), request(other));
            let staged = decode_logged(&written, &database).unwrap();
            let frame = engine.writer().unwrap().write_frame(&written, &staged, Vec::new()).unwrap();
            assert_eq!(compare(&frame, &staged), Ok(()));
            let reason = compare(&frame, &decode_logged(&other, &database).unwrap()).unwrap_err();
            assert!(reason.contains(expected), "{reason}");
        }
    }
}
