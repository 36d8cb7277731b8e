//! Applying a predicate to rows.

use std::sync::Arc;

use arrow::{
    array::{
        Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, RecordBatch, Scalar, StringArray,
        TimestampNanosecondArray, UInt64Array,
    },
    compute::{
        and_kleene, cast, filter_record_batch, is_null,
        kernels::cmp::{eq, gt, gt_eq, lt, lt_eq, neq},
        not, or_kleene, prep_null_mask_filter,
    },
    datatypes::{DataType, Float64Type, TimeUnit},
};

use super::{Comparison, Literal, Predicate, one_zero};
use crate::{Error, Result};

/// Returns the rows of `batch` that do not meet the predicate. A column that the batch lacks is
/// null.
pub(crate) fn without(batch: RecordBatch, predicate: &Predicate) -> Result<RecordBatch> {
    match left(&batch, predicate)? {
        None => Ok(batch),
        Some(left) => Ok(filter_record_batch(&batch, &left)?),
    }
}

/// Returns which rows of `batch` do not meet the predicate: those that meet its opposite, and those
/// of which nothing can be said. `None` if none meets it.
pub(crate) fn left(batch: &RecordBatch, predicate: &Predicate) -> Result<Option<BooleanArray>> {
    let met = predicate.evaluate(batch)?;
    let met = if met.null_count() > 0 { prep_null_mask_filter(&met) } else { met };
    Ok(if met.has_true() { Some(not(&met)?) } else { None })
}

impl Predicate {
    /// Returns for each row whether it meets the predicate, null where nothing can be said.
    pub(crate) fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let rows = batch.num_rows();
        match self {
            Self::True => Ok(all(Some(true), rows)),
            Self::Compare { column, comparison, value } => compare(batch, column, *comparison, value),
            Self::In { column, values } => {
                let found = values.iter().map(|value| compare(batch, column, Comparison::Equal, value));
                fold(found, or_kleene, all(Some(false), rows))
            }
            Self::IsNull { column } => match batch.column_by_name(column) {
                Some(column) => Ok(is_null(column)?),
                None => Ok(all(Some(true), rows)),
            },
            Self::Not(inner) => Ok(not(&inner.evaluate(batch)?)?),
            Self::And(parts) => fold(parts.iter().map(|p| p.evaluate(batch)), and_kleene, all(Some(true), rows)),
            Self::Or(parts) => fold(parts.iter().map(|p| p.evaluate(batch)), or_kleene, all(Some(false), rows)),
        }
    }
}

fn all(value: Option<bool>, rows: usize) -> BooleanArray {
    match value {
        Some(value) => BooleanArray::from(vec![value; rows]),
        None => BooleanArray::new_null(rows),
    }
}

fn fold(
    mut parts: impl Iterator<Item = Result<BooleanArray>>,
    join: impl Fn(&BooleanArray, &BooleanArray) -> Result<BooleanArray, arrow::error::ArrowError>,
    of_nothing: BooleanArray,
) -> Result<BooleanArray> {
    let Some(first) = parts.next() else { return Ok(of_nothing) };
    parts.try_fold(first?, |joined, part| Ok(join(&joined, &part?)?))
}

fn compare(batch: &RecordBatch, column: &str, comparison: Comparison, value: &Literal) -> Result<BooleanArray> {
    let Some(column) = batch.column_by_name(column) else { return Ok(all(None, batch.num_rows())) };
    let column = &value.as_compared(column)?;
    let value = value.to_array(column.data_type())?;
    let (column, value) = (&beside(&value, column), Scalar::new(beside(&value, &value)));
    let compare = match comparison {
        Comparison::Equal => eq,
        Comparison::NotEqual => neq,
        Comparison::Less => lt,
        Comparison::LessOrEqual => lt_eq,
        Comparison::Greater => gt,
        Comparison::GreaterOrEqual => gt_eq,
    };
    Ok(compare(column, &value)?)
}

/// Returns a column as it compares with `value`: where that is a zero, with one in the place of
/// both, which Arrow tells apart.
fn beside(value: &ArrayRef, column: &ArrayRef) -> ArrayRef {
    let is_zero = value.as_primitive_opt::<Float64Type>().is_some_and(|value| value.values().contains(&0.0));
    match column.as_primitive_opt::<Float64Type>() {
        Some(floats) if is_zero => Arc::new(floats.unary::<_, Float64Type>(one_zero)),
        _ => Arc::clone(column),
    }
}

impl Literal {
    /// Returns a column that may have become text since a delete was accepted, with the values that
    /// it had then.
    fn as_compared(&self, column: &ArrayRef) -> Result<ArrayRef> {
        let was = match self {
            Self::Integer(_) => DataType::Int64,
            Self::Unsigned(_) => DataType::UInt64,
            Self::Float(_) => DataType::Float64,
            Self::Boolean(_) => DataType::Boolean,
            Self::Text(_) | Self::Time(_) => return Ok(Arc::clone(column)),
        };
        let is_text = match column.data_type() {
            DataType::Dictionary(_, values) => **values == DataType::Utf8,
            data_type => *data_type == DataType::Utf8,
        };
        Ok(if is_text { cast(&cast(column, &DataType::Utf8)?, &was)? } else { Arc::clone(column) })
    }

    /// Returns the value as an array of one row that compares with columns of `data_type`.
    fn to_array(&self, data_type: &DataType) -> Result<ArrayRef> {
        let plain = match data_type {
            DataType::Dictionary(_, inner) => inner.as_ref(),
            plain => plain,
        };
        Ok(match (self, plain) {
            (Self::Text(text), DataType::Utf8) => Arc::new(StringArray::from(vec![text.as_str()])),
            (Self::Integer(value), DataType::Int64) => Arc::new(Int64Array::from(vec![*value])),
            (Self::Unsigned(value), DataType::UInt64) => Arc::new(UInt64Array::from(vec![*value])),
            (Self::Float(value), DataType::Float64) => Arc::new(Float64Array::from(vec![*value])),
            (Self::Boolean(value), DataType::Boolean) => Arc::new(BooleanArray::from(vec![*value])),
            (Self::Time(time_ns), DataType::Timestamp(TimeUnit::Nanosecond, zone)) => {
                Arc::new(TimestampNanosecondArray::from(vec![*time_ns]).with_timezone_opt(zone.clone()))
            }
            // The column was one of integers when the delete was accepted, and all that it can take
            // were such.
            (Self::Integer(value), DataType::Float64) => Arc::new(Float64Array::from(vec![*value as f64])),
            (Self::Unsigned(value), DataType::Float64) => Arc::new(Float64Array::from(vec![*value as f64])),
            // Otherwise values have the columns' types since the delete was accepted.
            _ => return Err(Error::internal(format!("a delete compares {self} with a column of type {plain}"))),
        })
    }
}
