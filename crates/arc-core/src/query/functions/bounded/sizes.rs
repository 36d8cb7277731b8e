//! One number for each row of an argument: its integer value, or the bytes or elements of its
//! value.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, Int64Array, OffsetSizeTrait, UInt64Array},
    compute::{cast, kernels::length::length, sum, take},
    datatypes::{DataType, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit},
};
use datafusion::{
    common::{DataFusionError, Result},
    logical_expr::ColumnarValue,
};

/// Bytes that a value without a width of its own takes in an array.
const SLOT_BYTES: i64 = 16;

/// Nanoseconds of a day.
const DAY_NS: i128 = 86_400_000_000_000;

/// Days of the shortest month.
const MONTH_DAYS: i128 = 28;

/// Numbers by row. A constant has the same one for every row, and null counts as zero.
pub(in crate::query) struct PerRow {
    values: Int64Array,
    is_constant: bool,
}

impl PerRow {
    /// Returns the number of one row.
    pub(super) fn at(&self, row: usize) -> i64 {
        let row = if self.is_constant { 0 } else { row };
        if row < self.values.len() && self.values.is_valid(row) { self.values.value(row) } else { 0 }
    }

    /// Returns the number of one row, or zero if it is negative.
    pub(in crate::query) fn count(&self, row: usize) -> u64 {
        u64::try_from(self.at(row)).unwrap_or(0)
    }

    /// Returns the sum over `rows` rows.
    pub(super) fn total(&self, rows: usize) -> u64 {
        (0..rows).fold(0, |total, row| total.saturating_add(self.count(row)))
    }

    fn of(argument: &ColumnarValue, numbers: impl Fn(&ArrayRef) -> Result<ArrayRef>) -> Result<Self> {
        let (array, is_constant) = match argument {
            ColumnarValue::Array(array) => (Arc::clone(array), false),
            ColumnarValue::Scalar(scalar) => (scalar.to_array()?, true),
        };
        let numbers = cast(&numbers(&array)?, &DataType::Int64)?;
        Ok(Self { values: numbers.as_primitive::<Int64Type>().clone(), is_constant })
    }
}

/// Returns integers, or times in their own unit.
pub(super) fn integers(argument: &ColumnarValue) -> Result<PerRow> {
    PerRow::of(argument, |array| Ok(Arc::clone(array)))
}

/// Returns how far one step goes, whatever its direction: in nanoseconds for an interval.
pub(super) fn steps(argument: &ColumnarValue) -> Result<PerRow> {
    PerRow::of(argument, |array| match array.data_type() {
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            Ok(Arc::new(array.as_primitive::<IntervalMonthDayNanoType>().unary::<_, Int64Type>(shortest_ns)))
        }
        _ => Ok(Arc::new(
            cast(array, &DataType::Int64)?.as_primitive::<Int64Type>().unary::<_, Int64Type>(i64::saturating_abs),
        )),
    })
}

fn shortest_ns(interval: IntervalMonthDayNano) -> i64 {
    let days = i128::from(interval.months) * MONTH_DAYS + i128::from(interval.days);
    let total_ns = days * DAY_NS + i128::from(interval.nanoseconds);
    i64::try_from(total_ns.abs()).unwrap_or(i64::MAX)
}

/// Returns how many elements lists have; what is no list has none.
pub(in crate::query) fn elements(argument: &ColumnarValue) -> Result<PerRow> {
    PerRow::of(argument, |array| match array.data_type() {
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => Ok(length(array)?),
        DataType::Map(..) => {
            let lengths = array.as_map().offsets().lengths();
            Ok(Arc::new(Int64Array::from_iter_values(lengths.map(|length| i64::try_from(length).unwrap_or(i64::MAX)))))
        }
        _ => Ok(same(0, array.len())),
    })
}

/// Returns how many bytes values have.
pub(in super::super) fn bytes(argument: &ColumnarValue) -> Result<PerRow> {
    PerRow::of(argument, bytes_of)
}

fn bytes_of(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Null => Ok(same(0, array.len())),
        // Not as plain texts: one that is long may be in every row.
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            Ok(take(&bytes_of(dictionary.values())?, dictionary.keys(), None)?)
        }
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView => Ok(length(array)?),
        other => match other.primitive_width() {
            Some(width) => Ok(same(i64::try_from(width).unwrap_or(SLOT_BYTES), array.len())),
            None if other.is_nested() => nested_bytes(array),
            None => Ok(same(SLOT_BYTES, array.len())),
        },
    }
}

/// Returns the bytes of an argument's values for `rows` rows, a constant in each of them.
pub(super) fn total_of(argument: &ColumnarValue, rows: usize) -> Result<u64> {
    Ok(match argument {
        ColumnarValue::Array(array) => total_bytes(array)?,
        ColumnarValue::Scalar(scalar) => total_bytes(&scalar.to_array()?)?.saturating_mul(rows as u64),
    })
}

/// Returns the bytes of all values of an array, whatever it is a part of.
pub(in crate::query) fn total_bytes(array: &ArrayRef) -> Result<u64> {
    let slots = (array.len() as u64).saturating_mul(size_of::<i64>() as u64);
    let inner =
        match array.data_type() {
            DataType::List(_) => total_within(array.as_list::<i32>().values(), array.as_list::<i32>().value_offsets())?,
            DataType::LargeList(_) => {
                total_within(array.as_list::<i64>().values(), array.as_list::<i64>().value_offsets())?
            }
            DataType::Map(..) => {
                let map = array.as_map();
                total_within(&(Arc::new(map.entries().clone()) as ArrayRef), map.value_offsets())?
            }
            DataType::FixedSizeList(_, width) => {
                let list = array.as_fixed_size_list();
                let width = usize::try_from(*width).unwrap_or(0);
                let start = list.value_offset(0);
                let start = usize::try_from(start).unwrap_or(0);
                total_bytes(&list.values().slice(start, width.saturating_mul(list.len())))?
            }
            DataType::Struct(_) => array.as_struct().columns().iter().try_fold(0, |total: u64, column| {
                Ok::<_, DataFusionError>(total.saturating_add(total_bytes(column)?))
            })?,
            DataType::Utf8 => return Ok(span(array.as_string::<i32>().value_offsets())),
            DataType::LargeUtf8 => return Ok(span(array.as_string::<i64>().value_offsets())),
            _ => {
                let bytes = cast(&bytes_of(array)?, &DataType::Int64)?;
                return Ok(sum(bytes.as_primitive::<Int64Type>()).and_then(|sum| u64::try_from(sum).ok()).unwrap_or(0));
            }
        };
    Ok(inner.saturating_add(slots))
}

fn total_within<O: OffsetSizeTrait>(values: &ArrayRef, offsets: &[O]) -> Result<u64> {
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else { return Ok(0) };
    total_bytes(&values.slice(first.as_usize(), last.as_usize().saturating_sub(first.as_usize())))
}

fn span<O: OffsetSizeTrait>(offsets: &[O]) -> u64 {
    match (offsets.first(), offsets.last()) {
        (Some(first), Some(last)) => last.as_usize().saturating_sub(first.as_usize()) as u64,
        _ => 0,
    }
}

/// Returns the bytes of nested values, each taken out so that what it shares with others does not
/// count.
fn nested_bytes(array: &ArrayRef) -> Result<ArrayRef> {
    let one = |row: usize| -> Result<i64> {
        let row = UInt64Array::from_iter_values(u64::try_from(row));
        let bytes = take(array, &row, None)?.to_data().get_slice_memory_size()?;
        Ok(i64::try_from(bytes).unwrap_or(i64::MAX))
    };
    Ok(Arc::new((0..array.len()).map(one).collect::<Result<Int64Array>>()?))
}

fn same(number: i64, rows: usize) -> ArrayRef {
    Arc::new(Int64Array::from_value(number, rows))
}
