//! From the manifest's statistics to DataFusion's.

use arrow::datatypes::{DataType, Field, FieldRef, SchemaRef, TimeUnit};
use datafusion::common::{ColumnStatistics as ScanColumn, ScalarValue, Statistics, stats::Precision};

use crate::model::{ColumnStatistics, DataFile, StatisticsValue, TIME_COLUMN};

/// Returns what is known of a file's rows, with a column for each field of `schema`: of the time,
/// and of those others that are asked for, by their index, or of all.
pub(super) fn of_file(file: &DataFile, schema: &SchemaRef, asked: Option<&Vec<usize>>) -> Statistics {
    // The columns of a file mostly have the order of its table's.
    let mut next = 0;
    let of_field = |(index, field): (usize, &FieldRef)| {
        if field.name() == TIME_COLUMN {
            return of_time(file.min_time, file.max_time);
        }
        if asked.is_some_and(|asked| !asked.contains(&index)) {
            return ScanColumn::new_unknown();
        }
        let is_it = |column: &ColumnStatistics| column.name == *field.name();
        let found = file.columns.get(next).is_some_and(is_it).then_some(next);
        let found = found.or_else(|| file.columns.iter().position(is_it));
        next = found.map_or(next, |found| found + 1);
        column(file, found, field)
    };
    let columns = schema.fields().iter().enumerate().map(of_field).collect();
    Statistics { num_rows: count(file.rows), total_byte_size: Precision::Absent, column_statistics: columns }
}

/// Returns what is known of the time column of rows between two times.
pub(super) fn of_time(min_time: i64, max_time: i64) -> ScanColumn {
    let mut scan = ScanColumn::new_unknown();
    scan.null_count = Precision::Exact(0);
    scan.min_value = Precision::Exact(time(min_time));
    scan.max_value = Precision::Exact(time(max_time));
    scan
}

/// Returns a time as a scalar of the time column's type.
pub(super) fn time(time_ns: i64) -> ScalarValue {
    ScalarValue::TimestampNanosecond(Some(time_ns), Some("UTC".into()))
}

/// Returns a manifest value as a bound of `data_type` and whether a row has exactly this value, or
/// `None` where the value says nothing about that type.
pub(super) fn bound(value: &StatisticsValue, data_type: &DataType) -> Option<(ScalarValue, bool)> {
    Some(match (value, data_type) {
        (_, DataType::Dictionary(key, inner)) => {
            let (scalar, exact) = bound(value, inner)?;
            (ScalarValue::Dictionary(key.clone(), Box::new(scalar)), exact)
        }
        (StatisticsValue::Text { value, exact }, DataType::Utf8) => (ScalarValue::Utf8(Some(value.clone())), *exact),
        (StatisticsValue::Integer(v), DataType::Int64) => (ScalarValue::Int64(Some(*v)), true),
        (StatisticsValue::Integer(v), DataType::Timestamp(TimeUnit::Nanosecond, zone)) => {
            (ScalarValue::TimestampNanosecond(Some(*v), zone.clone()), true)
        }
        (StatisticsValue::Integer(v), DataType::Date32) => (ScalarValue::Date32(Some(i32::try_from(*v).ok()?)), true),
        (StatisticsValue::Integer(v), DataType::Int32) => (ScalarValue::Int32(Some(i32::try_from(*v).ok()?)), true),
        (StatisticsValue::Integer(v), DataType::Int16) => (ScalarValue::Int16(Some(i16::try_from(*v).ok()?)), true),
        (StatisticsValue::Integer(v), DataType::Int8) => (ScalarValue::Int8(Some(i8::try_from(*v).ok()?)), true),
        (StatisticsValue::Unsigned(v), DataType::UInt32) => (ScalarValue::UInt32(Some(u32::try_from(*v).ok()?)), true),
        (StatisticsValue::Unsigned(v), DataType::UInt16) => (ScalarValue::UInt16(Some(u16::try_from(*v).ok()?)), true),
        (StatisticsValue::Unsigned(v), DataType::UInt8) => (ScalarValue::UInt8(Some(u8::try_from(*v).ok()?)), true),
        (StatisticsValue::Unsigned(v), DataType::UInt64) => (ScalarValue::UInt64(Some(*v)), true),
        (StatisticsValue::Boolean(v), DataType::Boolean) => (ScalarValue::Boolean(Some(*v)), true),
        // Of a file that is older than the column's type; the integers are such that floats are
        // exactly them.
        (StatisticsValue::Integer(v), DataType::Float64) => (ScalarValue::Float64(Some(*v as f64)), true),
        (StatisticsValue::Unsigned(v), DataType::Float64) => (ScalarValue::Float64(Some(*v as f64)), true),
        (StatisticsValue::Float(v), DataType::Float64) => (ScalarValue::Float64(Some(*v)), true),
        _ => return None,
    })
}

fn column(file: &DataFile, found: Option<usize>, field: &Field) -> ScanColumn {
    let mut scan = ScanColumn::new_unknown();
    match found.and_then(|index| file.columns.get(index)) {
        Some(column) => known_column(&mut scan, column, field.data_type()),
        None => scan.null_count = count(file.rows),
    }
    scan
}

fn known_column(scan: &mut ScanColumn, column: &ColumnStatistics, data_type: &DataType) {
    let precision = |value: &Option<StatisticsValue>| match value.as_ref().and_then(|v| bound(v, data_type)) {
        Some((scalar, true)) => Precision::Exact(scalar),
        Some((scalar, false)) => Precision::Inexact(scalar),
        None => Precision::Absent,
    };
    scan.null_count = count(column.null_count);
    scan.min_value = precision(&column.min);
    scan.max_value = precision(&column.max);
}

fn count(rows: u64) -> Precision<usize> {
    usize::try_from(rows).map_or(Precision::Absent, Precision::Exact)
}
