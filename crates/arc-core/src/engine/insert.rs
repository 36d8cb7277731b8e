//! Rows of a statement as a write: each value takes the type of its column, or the statement is
//! refused.

use std::sync::Arc;

use arrow::{
    array::{
        ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray,
        UInt64Array,
    },
    datatypes::{DataType, Field, Schema, TimeUnit},
};

use super::Engine;
use crate::{
    Error, Literal, Result, WriteOptions, Written,
    arrays::numbers_as_text::{push_boolean, push_integer, push_plain_float},
    model::{TIME_COLUMN, TableSchema, predicate::fit},
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
            let values: Result<_> = given().map(|given| value(given, name, &data_type)).collect();
            let array = match values {
                Ok(values) => array(&data_type, values)?,
                // Made text, or the column something else, by those who do it for all writes.
                Err(_) if types.gives_way(name, &data_type) => own_array(&given().collect::<Vec<_>>())?,
                Err(error) => return Err(error),
            };
            Ok((Field::new(name, array.data_type().clone(), true), array))
        });
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = given.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let options = write_options(&schema, &columns, options);
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?;
        self.submit_batches(database, table, &[batch], &options)?.wait()
    }
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

fn value(given: Option<&Literal>, column: &str, data_type: &DataType) -> Result<Option<Literal>> {
    let Some(given) = given else { return Ok(None) };
    match fit(given, data_type) {
        Some(value) => Ok(Some(value)),
        None => refuse(format!("column {column:?} is {data_type} and cannot be {given}")),
    }
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
        other => return refuse(format!("a column of type {other} cannot be written by SQL")),
    })
}

/// Returns values in the type that they have themselves: of several, text.
fn own_array(values: &[Option<&Literal>]) -> Result<ArrayRef> {
    let of = |data_type: &DataType| -> Option<Vec<Option<Literal>>> {
        values.iter().map(|value| value.map_or(Some(None), |value| fit(value, data_type).map(Some))).collect()
    };
    let own = [DataType::Int64, DataType::UInt64, DataType::Float64, DataType::Boolean];
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
