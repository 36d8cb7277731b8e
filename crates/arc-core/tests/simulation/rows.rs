//! Reading all points of an engine without SQL: files, then buffers, later versions over earlier
//! ones.

use std::{path::Path, sync::Arc};

use arc_core::{
    Comparison, Engine, ErrorKind, Literal, Predicate, Tombstone,
    datafile::DataFile,
    vfs::{CrashFs, Vfs},
};
use arrow::{
    array::{Array, AsArray, RecordBatch},
    compute::cast,
    datatypes::{DataType, Int64Type},
};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::model::{Id, Rows};

/// What the second field of a row is given, which so changes its type, and the text of it.
pub(crate) const KINDS: [(&str, &str); 8] = [
    ("1i", "1"),
    ("2i", "2"),
    ("1.5", "1.5"),
    ("2.5", "2.5"),
    ("0.5", "0.5"),
    ("9007199254740993i", "9007199254740993"),
    ("9007199254740995i", "9007199254740995"),
    ("\"text\"", "text"),
];
/// Moments after which another column is the second field.
const MOMENTS: usize = 6;

/// Returns the second field of the row that has this number in `n`: its name, its value in line protocol, and the text of
/// that.
pub(crate) fn other_field(value: i64) -> (String, &'static str, &'static str) {
    let value = usize::try_from(value).unwrap();
    let (line, text) = KINDS[value % KINDS.len()];
    (format!("y{}", value / KINDS.len() / MOMENTS), line, text)
}

/// One row as it lies somewhere.
struct Row {
    writer: u64,
    slot: u64,
    time: i64,
    value: i64,
}

/// Returns all points of an engine. The error says what is wrong with them.
pub(crate) fn of(engine: &Engine, fs: &CrashFs) -> Result<Rows, String> {
    let mut rows = Rows::new();
    for database in engine.databases() {
        let tables = match engine.tables(&database.name) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            tables => tables.map_err(|error| error.to_string())?,
        };
        for table in tables {
            of_table(engine, fs, &database.name, &table.schema.table, &mut rows)?;
        }
    }
    Ok(rows)
}

fn of_table(engine: &Engine, fs: &CrashFs, database: &str, table: &str, rows: &mut Rows) -> Result<(), String> {
    let view = match engine.view(database, table) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        view => view.map_err(|error| error.to_string())?,
    };
    let id = |row: &Row| Id { database: database.into(), table: table.into(), writer: row.writer, slot: row.slot };
    let mut files = view.files.clone();
    files.sort_by_key(|file| (file.late, if file.late { (file.max_seq, file.min_seq) } else { (0, 0) }));
    for file in files {
        let takes = |row: &Row| view.tombstones.iter().any(|tombstone| is_taken(tombstone, &file, row));
        let in_file = of_file(&file, engine.path(), fs)?;
        for row in of_batches(&in_file)?.iter().filter(|row| !takes(row)) {
            let before = rows.insert(id(row), row.value);
            if before.is_some() && !file.late {
                return Err(format!("{:?} is in two files on time", id(row)));
            }
        }
    }
    for part in &view.buffers {
        let in_buffer = part.batch().map_err(|error| error.to_string())?;
        for row in &of_batches(&[in_buffer])? {
            let before = rows.insert(id(row), row.value);
            if before.is_some() && !part.late {
                return Err(format!("{:?} is on time in a buffer, and somewhere else", id(row)));
            }
        }
    }
    Ok(())
}

/// Returns the rows of a table that no thread deletes from, as they lie in files and buffers.
pub(crate) fn batches(engine: &Engine, fs: &CrashFs, database: &str, table: &str) -> Result<Vec<RecordBatch>, String> {
    let view = engine.view(database, table).map_err(|error| error.to_string())?;
    let mut batches = Vec::new();
    for file in &view.files {
        batches.extend(of_file(file, engine.path(), fs)?);
    }
    for part in &view.buffers {
        batches.push(part.batch().map_err(|error| error.to_string())?);
    }
    Ok(batches)
}

fn of_file(file: &DataFile, root: &Path, fs: &CrashFs) -> Result<Vec<RecordBatch>, String> {
    let path = file.packed().map_or(file.path.as_str(), |(pack, _)| pack);
    let bytes = fs.read(&root.join(path)).map_err(|error| format!("{path}: {error}"))?;
    let range = file.packed().map_or(0..bytes.len() as u64, |(_, range)| range);
    let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
    let bytes = bytes.get(range).ok_or_else(|| format!("{} is not all there", file.path))?;
    if crc32c::crc32c(bytes) != file.crc32c {
        return Err(format!("{} has another checksum", file.path));
    }
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::copy_from_slice(bytes)).and_then(|b| b.build());
    let batches = reader.map_err(|error| format!("{}: {error}", file.path))?;
    batches.collect::<Result<_, _>>().map_err(|error| format!("{}: {error}", file.path))
}

fn of_batches(batches: &[RecordBatch]) -> Result<Vec<Row>, String> {
    batches.iter().map(of_batch).collect::<Result<Vec<_>, _>>().map(|rows| rows.into_iter().flatten().collect())
}

/// Returns the rows of a batch, in which each `y` is what `n` says.
fn of_batch(batch: &RecordBatch) -> Result<Vec<Row>, String> {
    let column = |name: &str, of_type: &DataType| cast(batch.column_by_name(name).unwrap(), of_type).unwrap();
    let (writers, slots) = (column("w", &DataType::Utf8), column("k", &DataType::Utf8));
    let (times, values) = (column("time", &DataType::Int64), column("n", &DataType::Int64));
    let text = |array: &Arc<dyn Array>, row: usize| array.as_string::<i32>().value(row).parse().unwrap();
    let integer = |array: &Arc<dyn Array>, row: usize| array.as_primitive::<Int64Type>().value(row);
    let row = |row: usize| Row {
        writer: text(&writers, row),
        slot: text(&slots, row),
        time: integer(&times, row),
        value: integer(&values, row),
    };
    let rows: Vec<Row> = (0..batch.num_rows()).map(row).collect();
    for (at, row) in rows.iter().enumerate() {
        let (field, _, expected) = other_field(row.value);
        let texts = column(&field, &DataType::Utf8);
        let text = texts.as_string::<i32>().value(at);
        // As arrow writes a float that is an integer.
        if text.strip_suffix(".0").unwrap_or(text) != expected {
            return Err(format!("{field} was written as {expected} with n={}, and is {text:?}", row.value));
        }
    }
    Ok(rows)
}

fn is_taken(tombstone: &Tombstone, file: &DataFile, row: &Row) -> bool {
    tombstone.applies_to(file) && is_met(&tombstone.predicate, row)
}

/// As far as the simulation's own deletes go.
fn is_met(predicate: &Predicate, row: &Row) -> bool {
    match predicate {
        Predicate::True => true,
        Predicate::And(all) => all.iter().all(|one| is_met(one, row)),
        Predicate::Compare { column, comparison, value } => match (column.as_str(), comparison, value) {
            ("w", Comparison::Equal, Literal::Text(writer)) => *writer == row.writer.to_string(),
            ("time", Comparison::GreaterOrEqual, Literal::Time(time)) => row.time >= *time,
            ("time", Comparison::Less, Literal::Time(time)) => row.time < *time,
            other => unreachable!("{other:?}"),
        },
        other => unreachable!("{other}"),
    }
}
