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
        for row in in_file.iter().flat_map(of_batch).filter(|row| !takes(row)) {
            let before = rows.insert(id(&row), row.value);
            if before.is_some() && !file.late {
                return Err(format!("{:?} is in two files on time", id(&row)));
            }
        }
    }
    for part in &view.buffers {
        for row in of_batch(&part.batch().map_err(|error| error.to_string())?) {
            let before = rows.insert(id(&row), row.value);
            if before.is_some() && !part.late {
                return Err(format!("{:?} is on time in a buffer, and somewhere else", id(&row)));
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

fn of_batch(batch: &RecordBatch) -> Vec<Row> {
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
    (0..batch.num_rows()).map(row).collect()
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
