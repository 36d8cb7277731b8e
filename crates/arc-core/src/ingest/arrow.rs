//! Record batches into columns: whole arrays, checked once each.
//!
//! A write of batches is all or nothing: the first thing that does not fit refuses it.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, RecordBatch},
    compute::cast,
    datatypes::{DataType, Int64Type, TimeUnit, TimestampNanosecondType},
    ipc::reader::StreamReader,
};

use super::staged::{
    Context, Staged, StagedTable, TableIndex, check_column_name, check_distinct, no_tags_later, type_name,
};
use crate::{
    Error, Precision, Result,
    buffer::SeriesId,
    catalog::{ColumnKind, TIME_COLUMN, tag_type},
    datafile::is_storable,
    registry::{check_name, invalid_name},
};

/// Decodes an Arrow IPC stream into rows of `table`.
///
/// # Errors
///
/// [`Error::InvalidPayload`], [`Error::InvalidName`] or [`Error::SchemaConflict`]; nothing is stored then.
pub(crate) fn decode(body: &[u8], table: &str, time_column: Option<&str>, context: &Context<'_>) -> Result<Staged> {
    check_name(table).map_err(|reason| invalid_name("table", table, reason))?;
    let reader = StreamReader::try_new(body, None).map_err(|e| invalid(e.to_string()))?;
    let mut staged = Staged::new(context.database);
    let at = TableIndex::default().by_name(&mut staged, table, !context.tags.is_empty()).map_err(invalid)?;
    for batch in reader {
        let batch = batch.map_err(|e| invalid(e.to_string()))?;
        if let Some(table) = staged.tables.get_mut(at) {
            append(table, &batch, time_column.unwrap_or(TIME_COLUMN), context)?;
        }
    }
    Ok(staged)
}

fn invalid(reason: String) -> Error {
    Error::InvalidPayload { format: "Arrow", reason }
}

fn append(table: &mut StagedTable, batch: &RecordBatch, time_column: &str, context: &Context<'_>) -> Result<()> {
    let schema = batch.schema();
    let named = |name: &str| batch.column_by_name(name);
    let time = named(time_column).ok_or_else(|| invalid(format!("there is no column {time_column:?} for the time")))?;
    let time = time_values(time, time_column, context.precision)?;
    for (at, field) in schema.fields().iter().enumerate() {
        if schema.fields().iter().take(at).any(|other| other.name() == field.name()) {
            return Err(invalid(format!("column {:?} comes twice", field.name())));
        }
    }
    if !context.tags.is_empty() && !table.keyed() {
        return Err(invalid(no_tags_later(table.name())));
    }
    for tag in context.tags {
        named(tag).ok_or_else(|| invalid(format!("there is no column {tag:?}, which was declared a tag")))?;
    }
    let mut tags: Vec<(&str, ArrayRef)> = Vec::new();
    for (field, array) in schema.fields().iter().zip(batch.columns()) {
        let name = field.name().as_str();
        if name == time_column {
            continue;
        }
        let is_tag = context.tags.iter().any(|tag| tag == name)
            || table.position(name).and_then(|i| table.column(i)).is_some_and(|c| c.kind == ColumnKind::Tag);
        if is_tag && table.keyed() {
            tags.push((name, tag_values(table, name, array)?));
        } else {
            append_field(table, name, array)?;
        }
    }
    let series = if table.keyed() { resolve(table, &tags, batch.num_rows())? } else { Vec::new() };
    if context.tags.is_empty() {
        check_distinct(table.name(), &series, &time).map_err(invalid)?;
    }
    table.rows.time.extend_from_slice(&time);
    table.rows.series.extend(series);
    Ok(())
}

/// Converts the time column to nanoseconds, exactly or not at all.
pub(super) fn time_values(array: &ArrayRef, name: &str, precision: Option<Precision>) -> Result<Vec<i64>> {
    if array.null_count() > 0 {
        return Err(invalid(format!("the time column {name:?} has {} nulls", array.null_count())));
    }
    let unit_ns = match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => 1_000_000_000,
        DataType::Timestamp(TimeUnit::Millisecond, _) => 1_000_000,
        DataType::Timestamp(TimeUnit::Microsecond, _) => 1_000,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            return Ok(array.as_primitive::<TimestampNanosecondType>().values().to_vec());
        }
        DataType::Date32 | DataType::Date64 => {
            let cast =
                cast(array, &DataType::Timestamp(TimeUnit::Nanosecond, None)).map_err(|e| invalid(e.to_string()))?;
            return time_values(&cast, name, precision);
        }
        DataType::Int64 | DataType::Int32 | DataType::UInt32 => precision.unwrap_or_default().nanoseconds(),
        other => {
            return Err(invalid(format!("the time column {name:?} is {other}, expected a timestamp or integers")));
        }
    };
    let integers = cast(array, &DataType::Int64).map_err(|e| invalid(e.to_string()))?;
    let scaled: Option<Vec<i64>> =
        integers.as_primitive::<Int64Type>().values().iter().map(|value| value.checked_mul(unit_ns)).collect();
    scaled
        .ok_or_else(|| invalid(format!("the time column {name:?} has a value outside the range of 64-bit nanoseconds")))
}

/// Text in any of its Arrow forms becomes `Utf8`; every other type stays.
fn plain(array: &ArrayRef) -> Result<ArrayRef> {
    let text = match array.data_type() {
        DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => {
            matches!(values.as_ref(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
        }
        _ => false,
    };
    if text { cast(array, &DataType::Utf8).map_err(|e| invalid(e.to_string())) } else { Ok(Arc::clone(array)) }
}

fn conflict(table: &StagedTable, column: &str, existing: &DataType, got: &DataType) -> Error {
    Error::SchemaConflict {
        table: table.name().to_owned(),
        column: column.to_owned(),
        existing: type_name(existing),
        got: type_name(got),
    }
}

fn append_field(table: &mut StagedTable, name: &str, array: &ArrayRef) -> Result<()> {
    let mut array = plain(array)?;
    let index = match table.position(name) {
        Some(index) => index,
        // A column without any value decides nothing.
        None if *array.data_type() == DataType::Null => return Ok(()),
        None => {
            check_column_name("column", name).map_err(invalid)?;
            if !is_storable(array.data_type()) {
                return Err(invalid(format!(
                    "column {name:?} has the type {}, which Parquet cannot hold",
                    array.data_type()
                )));
            }
            table.add(name, ColumnKind::Field, array.data_type().clone())
        }
    };
    let Some(column) = table.column(index) else { return Err(Error::internal("a column is gone")) };
    let data_type = column.data_type.clone();
    let widened = data_type == DataType::Float64 && array.data_type().is_integer();
    if widened || *array.data_type() == DataType::Null {
        let given = array;
        array = cast(&given, &data_type).map_err(|e| invalid(e.to_string()))?;
        if widened && cast(&array, given.data_type()).ok().as_ref() != Some(&given) {
            return Err(invalid(format!(
                "column {name:?} is of floats, which cannot hold all of its integers exactly"
            )));
        }
    }
    if *array.data_type() != data_type {
        return Err(conflict(table, name, &data_type, array.data_type()));
    }
    let rows = table.rows.len();
    table.rows.column(index, &data_type, rows).append_array(&array)
}

/// Checks a tag column and returns it as text.
fn tag_values(table: &mut StagedTable, name: &str, array: &ArrayRef) -> Result<ArrayRef> {
    let text = plain(array)?;
    let text = if *text.data_type() == DataType::Null {
        cast(&text, &DataType::Utf8).map_err(|e| invalid(e.to_string()))?
    } else {
        text
    };
    if *text.data_type() != DataType::Utf8 {
        return Err(conflict(table, name, &tag_type(), text.data_type()));
    }
    match table.position(name).and_then(|index| table.column(index)) {
        Some(column) if column.kind == ColumnKind::Field => {
            let existing = column.data_type.clone();
            return Err(conflict(table, name, &existing, &tag_type()));
        }
        Some(_) => {}
        None => {
            check_column_name("tag", name).map_err(invalid)?;
            table.add(name, ColumnKind::Tag, tag_type());
        }
    }
    Ok(text)
}

/// Returns the series of each row. A null or empty tag is an absent one, as in line protocol.
fn resolve(table: &StagedTable, tags: &[(&str, ArrayRef)], rows: usize) -> Result<Vec<SeriesId>> {
    let tags: Vec<_> = tags.iter().map(|(name, array)| (*name, array.as_string::<i32>())).collect();
    let mut index = table.table.series.write();
    (0..rows)
        .map(|row| {
            let present = tags.iter().filter(|(_, array)| array.is_valid(row) && !array.value(row).is_empty());
            index.resolve(present.map(|(name, array)| (*name, array.value(row))))
        })
        .collect()
}
