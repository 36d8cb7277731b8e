//! All that a data directory has, as text: each value with its type and all of its bits.

use std::collections::{BTreeMap, HashSet};

use arrow::{
    array::{Array, ArrayRef, AsArray, RecordBatch},
    compute::cast,
    datatypes::{DataType, Float64Type, TimestampNanosecondType},
    util::display::array_value_to_string,
};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::{
    Engine, TableView,
    buffer::converted,
    datafile::read_whole,
    model::{ColumnKind, DataFile, TableSchema, live},
    registry::Registry,
};

/// A row as its primary key (only of a primary-key table), and its fields by name.
type Row = (String, BTreeMap<String, String>);

/// Returns the contents of all tables, a line for each table, column and row; rows in an order of
/// their own.
pub(super) fn contents(engine: &Engine) -> Vec<String> {
    contents_of(engine, &engine.registry().unwrap())
}

/// Returns the contents of the tables of a registry, whose files are those of the engine.
pub(super) fn contents_of(engine: &Engine, registry: &Registry) -> Vec<String> {
    let mut lines = Vec::new();
    for database in registry.databases() {
        lines.push(format!("database {:?}", database.name));
        for table in database.tables() {
            let view = table.view().unwrap();
            let kind = if view.schema.has_primary_key { "keyed" } else { "appending" };
            lines.push(format!("table {:?} {kind}", view.schema.table));
            let columns = view.schema.columns.iter();
            lines.extend(
                columns.map(|column| format!("column {:?} {:?} {}", column.name, column.kind, column.data_type)),
            );
            lines.extend(rows(engine, &view));
        }
    }
    lines
}

fn rows(engine: &Engine, view: &TableView) -> Vec<String> {
    let schema = &view.schema;
    let mut files: Vec<&DataFile> = view.files.iter().map(AsRef::as_ref).collect();
    files.sort_by_key(|file| (file.late, if file.late { (file.max_seq, file.min_seq) } else { (0, 0) }));
    let in_file = |file: &&DataFile| -> Vec<RecordBatch> {
        let due = || view.tombstones.iter().filter(|tombstone| tombstone.applies_to(file));
        batches(engine, file).into_iter().map(|batch| live(typed(batch, schema), due()).unwrap()).collect()
    };
    let buffered =
        |late: bool| view.buffers.iter().filter(move |part| part.late == late).map(|part| part.batch().unwrap());
    let (late, on_time): (Vec<&DataFile>, Vec<&DataFile>) = files.into_iter().partition(|file| file.late);
    let rows_of = |batch: RecordBatch| batch_rows(schema, &batch);
    let on_time: Vec<Row> = on_time.iter().flat_map(in_file).chain(buffered(false)).flat_map(rows_of).collect();
    let late = late.iter().flat_map(in_file).chain(buffered(true)).flat_map(rows_of);
    if schema.has_primary_key {
        let mut known = HashSet::new();
        let twice = on_time.iter().find(|(primary_key, _)| !known.insert(primary_key));
        assert_eq!(twice, None, "a row on time is there once: nothing compares it with others");
    }
    let rows = on_time.iter().cloned().chain(late);
    let mut lines: Vec<String> = if schema.has_primary_key {
        let mut merged: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        rows.for_each(|(primary_key, fields)| merged.entry(primary_key).or_default().extend(fields));
        merged.into_iter().map(shown).collect()
    } else {
        rows.map(shown).collect()
    };
    lines.sort_unstable();
    lines
}

fn shown((primary_key, fields): Row) -> String {
    let fields: String = fields.iter().map(|(name, value)| format!(" {name:?}={value}")).collect();
    format!("row {primary_key}{fields}")
}

/// Reads a data file by the stock Parquet reader, its checksum compared.
fn batches(engine: &Engine, file: &DataFile) -> Vec<RecordBatch> {
    let shared = &engine.writer().unwrap();
    let bytes = Bytes::from(read_whole(shared.vfs.as_ref(), &shared.root, file).unwrap());
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap().build().unwrap();
    reader.map(Result::unwrap).collect()
}

/// Returns the columns of a file in the types that the table has by now.
fn typed(batch: RecordBatch, schema: &TableSchema) -> RecordBatch {
    let wanted = schema.arrow();
    let column = |(field, array): (&arrow::datatypes::FieldRef, &ArrayRef)| {
        let data_type = wanted.field_with_name(field.name()).unwrap().data_type();
        let array = match array.data_type() {
            same if same == data_type => array.clone(),
            DataType::Timestamp(..) => cast(array, data_type).unwrap(),
            _ => converted(array, data_type).unwrap(),
        };
        (field.name().clone(), array, true)
    };
    let schema = batch.schema();
    RecordBatch::try_from_iter_with_nullable(schema.fields().iter().zip(batch.columns()).map(column)).unwrap()
}

fn batch_rows(schema: &TableSchema, batch: &RecordBatch) -> Vec<Row> {
    let times = batch.column_by_name("time").unwrap().as_primitive::<TimestampNanosecondType>().clone();
    let column = |kind: ColumnKind| {
        let columns = schema.columns.iter().filter(move |column| column.kind == kind);
        let columns = columns.filter_map(|column| Some((column.name.to_string(), batch.column_by_name(&column.name)?)));
        columns.map(|(name, array)| (name, plain(array))).collect::<Vec<_>>()
    };
    let (tags, fields) = (column(ColumnKind::Tag), column(ColumnKind::Field));
    let of = |columns: &[(String, ArrayRef)], row: usize| {
        let columns = columns.iter().filter(|(_, array)| array.is_valid(row));
        columns.map(|(name, array)| (name.clone(), value(array, row))).collect::<BTreeMap<_, _>>()
    };
    let primary_key = |row: usize| {
        let tags: String = of(&tags, row).iter().map(|(name, value)| format!(" {name:?}={value}")).collect();
        format!("{:020}{tags}", times.value(row))
    };
    (0..batch.num_rows()).map(|row| (primary_key(row), of(&fields, row))).collect()
}

fn plain(array: &ArrayRef) -> ArrayRef {
    if matches!(array.data_type(), DataType::Dictionary(..)) {
        cast(array, &DataType::Utf8).unwrap()
    } else {
        array.clone()
    }
}

fn value(array: &ArrayRef, row: usize) -> String {
    match array.data_type() {
        DataType::Float64 => {
            let value = array.as_primitive::<Float64Type>().value(row);
            if value.is_nan() { format!("NaN:{:016x}", value.to_bits()) } else { format!("{value:?}") }
        }
        DataType::Int64 => format!("{}i", array_value_to_string(array, row).unwrap()),
        DataType::UInt64 => format!("{}u", array_value_to_string(array, row).unwrap()),
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Utf8 => format!("{:?}", array.as_string::<i32>().value(row)),
        other => format!("{other}:{}", array_value_to_string(array, row).unwrap()),
    }
}
