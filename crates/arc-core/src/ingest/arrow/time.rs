//! The time column of a record batch in nanoseconds, exactly or not at all.
//!
//! Takes timestamps of every unit and zone (they count from the same moment in all of them), dates,
//! and integers in a unit that the write declares.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, PrimitiveArray, RecordBatch, TimestampNanosecondArray},
    buffer::ScalarBuffer,
    compute::cast,
    datatypes::{ArrowPrimitiveType, DataType, Date32Type, Int64Type, Schema, TimeUnit, TimestampNanosecondType},
    error::ArrowError,
    ipc::writer::StreamWriter,
};
use bytes::Bytes;

use super::stream;
use crate::{
    FileTimeUnit, Precision,
    model::{TIME_COLUMN, time_type},
};

/// Milliseconds and seconds of a day, in nanoseconds.
const MILLISECOND: i64 = 1_000_000;
const DAY: i64 = 86_400_000 * MILLISECOND;

/// Returns the times of a column, where they lie if they are nanoseconds; the error says what it
/// has instead.
pub(super) fn time_values(
    array: &ArrayRef,
    name: &str,
    precision: Option<Precision>,
) -> Result<ScalarBuffer<i64>, String> {
    if array.null_count() > 0 {
        return Err(format!("the time column {name:?} has {} nulls", array.null_count()));
    }
    let unit = match array.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            return Ok(array.as_primitive::<TimestampNanosecondType>().values().clone());
        }
        DataType::Timestamp(TimeUnit::Second, _) => 1_000 * MILLISECOND,
        DataType::Timestamp(TimeUnit::Millisecond, _) | DataType::Date64 => MILLISECOND,
        DataType::Timestamp(TimeUnit::Microsecond, _) => 1_000,
        DataType::Date32 => return scaled(name, array.as_primitive::<Date32Type>(), DAY),
        other if other.is_integer() => precision.unwrap_or_default().nanoseconds(),
        other => return Err(format!("the time column {name:?} is {other}, expected a timestamp or integers")),
    };
    let integers = cast(array, &DataType::Int64).map_err(|error| error.to_string())?;
    // What does not fit has become null.
    if integers.null_count() > 0 {
        return Err(out_of_range(name));
    }
    let integers = integers.as_primitive::<Int64Type>();
    if unit == 1 { Ok(integers.values().clone()) } else { scaled(name, integers, unit) }
}

/// Returns a stream of the same batches, whose times are whole units.
///
/// # Errors
///
/// Says what is wrong with the stream, or with its time column.
pub(crate) fn with_whole_times(
    body: &Bytes,
    time_column: Option<&str>,
    precision: Option<Precision>,
    unit: FileTimeUnit,
) -> Result<Bytes, String> {
    let name = time_column.unwrap_or(TIME_COLUMN);
    let mut writer: Option<StreamWriter<Vec<u8>>> = None;
    let failed = |error: ArrowError| error.to_string();
    let write = |batch: &RecordBatch| -> Result<(), String> {
        let schema = batch.schema();
        let index = schema.index_of(name).map_err(failed)?;
        let times = time_values(batch.column(index), name, precision)?;
        let times: TimestampNanosecondArray = times.iter().map(|time| unit.floor(*time)).collect::<Vec<_>>().into();
        let (mut fields, mut columns) = (schema.fields().to_vec(), batch.columns().to_vec());
        if let (Some(field), Some(column)) = (fields.get_mut(index), columns.get_mut(index)) {
            *field = Arc::new(field.as_ref().clone().with_data_type(time_type()));
            *column = Arc::new(times.with_data_type(time_type()));
        }
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(failed)?;
        if writer.is_none() {
            writer = Some(StreamWriter::try_new(Vec::with_capacity(body.len()), &schema).map_err(failed)?);
        }
        writer.as_mut().map_or(Ok(()), |writer| writer.write(&batch)).map_err(failed)
    };
    stream::batches(body, usize::MAX, write)?;
    let writer = writer.ok_or("there is no record batch")?;
    writer.into_inner().map(Bytes::from).map_err(failed)
}

fn scaled<T>(name: &str, array: &PrimitiveArray<T>, unit: i64) -> Result<ScalarBuffer<i64>, String>
where
    T: ArrowPrimitiveType,
    T::Native: Into<i64>,
{
    let scaled = array.values().iter().map(|value| Into::<i64>::into(*value).checked_mul(unit));
    scaled.collect::<Option<_>>().ok_or_else(|| out_of_range(name))
}

fn out_of_range(name: &str) -> String {
    format!("the time column {name:?} has a value outside the range of 64-bit nanoseconds")
}
