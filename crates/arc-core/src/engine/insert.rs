//! Rows of a statement as a write: each value takes the type of its column as that of a query would,
//! or the statement is refused.

use std::{collections::HashMap, sync::Arc};

use arrow::{
    array::{
        Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
        TimestampNanosecondArray, UInt64Array, new_null_array,
    },
    compute::{concat, concat_batches, take},
    datatypes::{DataType, Field, Schema, TimeUnit, TimestampNanosecondType},
};

use super::{Engine, fitting::fitted};
use crate::{
    Error, FileTimeUnit, Literal, Result, WriteOptions, Written,
    arrays::numbers_as_text::{push_boolean, push_integer, push_plain_float},
    model::{TIME_COLUMN, TableSchema, predicate::fit, time_type},
    query::InsertedRows,
};

impl Engine {
    /// Writes rows to a table that is there, all or nothing.
    pub(super) fn insert(
        &self,
        database: &str,
        table: &str,
        rows: &InsertedRows,
        options: &WriteOptions,
    ) -> Result<Written> {
        let schema = self.table(database, table)?.schema();
        let columns = target_columns(&schema, &rows.columns)?;
        let types = self.effective_column_types(database, Some(table));
        if let Some(row) = rows.values.iter().find(|row| row.len() != columns.len()) {
            return refuse(format!("INSERT has a row of {} values for {} columns", row.len(), columns.len()));
        }
        let given = columns.iter().enumerate().map(|(at, name)| {
            let data_type = type_of(&schema, name)?;
            let given = || rows.values.iter().map(|row| row.get(at).and_then(Option::as_ref));
            let values: Option<_> =
                given().map(|given| given.map_or(Some(None), |given| fit(given, &data_type).map(Some))).collect();
            let array = match values {
                Some(values) => array(&data_type, values)?,
                None => {
                    let fit = given().map(|value| fitted(&own_array(&[value])?, &data_type, table, name));
                    match fit.collect::<Result<Vec<_>>>() {
                        // Made text, or the column something else, by those who do it for all writes.
                        Err(_) if types.gives_way(name, &data_type) => own_array(&given().collect::<Vec<_>>())?,
                        arrays => concat(&arrays?.iter().map(|array| &**array).collect::<Vec<_>>())?,
                    }
                }
            };
            Ok((Field::new(name, array.data_type().clone(), true), array))
        });
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = given.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let options = write_options(&schema, &columns, options);
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?;
        let (batches, merged_rows) = one_for_each_time(vec![batch], &schema, types.rounds_to(), &options)?;
        let mut written = self.submit_batches(database, table, &batches, &options)?.wait()?;
        written.points += merged_rows;
        Ok(written)
    }
}

/// Merges rows that have no tags in a table that identifies rows by these, and returns how many fewer there are: of each time,
/// which becomes a whole `unit`, a field has its last value. A write without tags expects its rows to append, and refuses two
/// of one time.
pub(super) fn one_for_each_time(
    batches: Vec<RecordBatch>,
    schema: &TableSchema,
    unit: FileTimeUnit,
    options: &WriteOptions,
) -> Result<(Vec<RecordBatch>, u64)> {
    let Some(first) = batches.first().filter(|_| schema.has_primary_key && options.tags.is_empty()) else {
        return Ok((batches, 0));
    };
    let batch = concat_batches(&first.schema(), &batches)?;
    let time = batch.column_by_name(TIME_COLUMN).and_then(|time| time.as_primitive_opt::<TimestampNanosecondType>());
    let Some(time) = time.filter(|time| time.null_count() == 0) else { return Ok((batches, 0)) };
    let mut places = HashMap::new();
    let rows = time.values().iter().map(|time_ns| {
        let next = places.len();
        *places.entry(unit.floor(*time_ns)).or_insert(next)
    });
    let rows: Vec<usize> = rows.collect();
    let fewer = rows.len() - places.len();
    if fewer == 0 {
        return Ok((batches, 0));
    }
    let columns = batch.columns().iter().map(|column| {
        let mut last = vec![None; places.len()];
        for (row, place) in rows.iter().enumerate().filter(|(row, _)| column.is_valid(*row)) {
            if let Some(last) = last.get_mut(*place) {
                *last = Some(u64::try_from(row).unwrap_or(u64::MAX));
            }
        }
        Ok(take(column, &UInt64Array::from(last), None)?)
    });
    let merged = RecordBatch::try_new(batch.schema(), columns.collect::<Result<_>>()?)?;
    Ok((vec![merged], u64::try_from(fewer).unwrap_or(u64::MAX)))
}

/// Returns the columns that rows are for: those that were named, or else all.
pub(super) fn target_columns(schema: &TableSchema, named: &[String]) -> Result<Vec<String>> {
    let all = || schema.arrow().fields().iter().map(|field| field.name().clone()).collect();
    let columns: Vec<String> = if named.is_empty() { all() } else { named.to_vec() };
    if !columns.iter().any(|column| column == TIME_COLUMN) {
        return refuse(format!("INSERT needs the column {TIME_COLUMN}"));
    }
    Ok(columns)
}

/// Returns the settings of a write of these columns: those of them that are tags say which rows
/// merge.
pub(super) fn write_options(schema: &TableSchema, columns: &[String], options: &WriteOptions) -> WriteOptions {
    let is_given = |name: &str| columns.iter().any(|column| column == name);
    let tags = schema.tags().filter(|tag| is_given(&tag.name)).map(|tag| tag.name.to_string());
    let options = WriteOptions { durability: options.durability, ..WriteOptions::new() };
    options.tags(tags.collect::<Vec<_>>())
}

/// Returns the type that values of a column have: of a tag, plain text.
pub(super) fn type_of(schema: &TableSchema, name: &str) -> Result<DataType> {
    if let Ok(field) = schema.arrow().field_with_name(name) {
        return Ok(match field.data_type() {
            DataType::Dictionary(_, value) => value.as_ref().clone(),
            other => other.clone(),
        });
    }
    refuse(format!("table {:?} has no column {name:?}; new columns come with other writes", schema.table))
}

fn array(data_type: &DataType, values: Vec<Option<Literal>>) -> Result<ArrayRef> {
    macro_rules! of {
        ($variant:ident, $array:ty) => {
            Arc::new(
                values
                    .into_iter()
                    .map(|value| match value {
                        Some(Literal::$variant(value)) => Some(value),
                        _ => None,
                    })
                    .collect::<$array>(),
            )
        };
    }
    Ok(match data_type {
        DataType::Utf8 => of!(Text, StringArray),
        DataType::Int64 => of!(Integer, Int64Array),
        DataType::UInt64 => of!(Unsigned, UInt64Array),
        DataType::Float64 => of!(Float, Float64Array),
        DataType::Boolean => of!(Boolean, BooleanArray),
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            let times = values.into_iter().map(|value| match value {
                Some(Literal::Time(time_ns)) => Some(time_ns),
                _ => None,
            });
            Arc::new(times.collect::<TimestampNanosecondArray>().with_timezone_opt(zone.clone()))
        }
        // What fits is of the types above.
        other => new_null_array(other, values.len()),
    })
}

/// Returns values in the type that they have themselves: of several, text.
fn own_array(values: &[Option<&Literal>]) -> Result<ArrayRef> {
    let of = |data_type: &DataType| -> Option<Vec<Option<Literal>>> {
        values.iter().map(|value| value.map_or(Some(None), |value| fit(value, data_type).map(Some))).collect()
    };
    let own = [DataType::Int64, DataType::UInt64, DataType::Float64, DataType::Boolean, time_type()];
    match own.into_iter().find_map(|data_type| Some((of(&data_type)?, data_type))) {
        Some((values, data_type)) => array(&data_type, values),
        None => array(&DataType::Utf8, values.iter().map(|value| value.map(text).transpose()).collect::<Result<_>>()?),
    }
}

fn text(value: &Literal) -> Result<Literal> {
    let mut text = Vec::new();
    match value {
        Literal::Integer(value) => push_integer(value, &mut text),
        Literal::Unsigned(value) => push_integer(value, &mut text),
        Literal::Float(value) => push_plain_float(*value, &mut text),
        Literal::Boolean(value) => push_boolean(*value, &mut text),
        Literal::Text(_) => return Ok(value.clone()),
        Literal::Time(_) => return refuse(format!("{value} is no value of a column that holds others")),
    }
    Ok(Literal::Text(String::from_utf8(text).unwrap_or_default()))
}

pub(super) fn refuse<T>(reason: String) -> Result<T> {
    Err(Error::Sql { reason })
}
