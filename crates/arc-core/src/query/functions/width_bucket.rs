//! `width_bucket(value, low, high, count)`: which of `count` buckets of one width a value is in, as
//! PostgreSQL counts them.
//!
//! The first is 1, a value below all of them is in 0 and one at `high` or above in `count + 1`.
//! With `low` above `high` the buckets go down.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, AsArray, Int64Array},
    datatypes::{DataType, Float64Type, Int64Type},
};
use datafusion::{
    common::{Result, exec_err, plan_err},
    logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility},
};

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct WidthBucket {
    signature: Signature,
}

impl Default for WidthBucket {
    fn default() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for WidthBucket {
    fn name(&self) -> &'static str {
        "width_bucket"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let is_number = |data_type: &DataType| data_type.is_numeric() || *data_type == DataType::Null;
        match arguments {
            [value, low, high, count] if [value, low, high].into_iter().all(is_number) && is_integer(count) => {
                Ok(vec![DataType::Float64, DataType::Float64, DataType::Float64, DataType::Int64])
            }
            _ => plan_err!("width_bucket takes a value, its bounds and the number of buckets"),
        }
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let [values, lows, highs, counts] = arrays.as_slice() else {
            return exec_err!("width_bucket takes four values");
        };
        let floats = |array: &ArrayRef| array.as_primitive::<Float64Type>().clone();
        let (values, lows, highs) = (floats(values), floats(lows), floats(highs));
        let bounds = lows.iter().zip(&highs).zip(counts.as_primitive::<Int64Type>());
        let buckets = values.iter().zip(bounds).map(|(value, ((low, high), count))| match (value, low, high, count) {
            (Some(value), Some(low), Some(high), Some(count)) => bucket(value, low, high, count).map(Some),
            _ => Ok(None),
        });
        let buckets: ArrayRef = Arc::new(buckets.collect::<Result<Int64Array>>()?);
        match is_scalar {
            true => Ok(ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(&buckets, 0)?)),
            false => Ok(ColumnarValue::Array(buckets)),
        }
    }
}

fn is_integer(data_type: &DataType) -> bool {
    data_type.is_integer() || *data_type == DataType::Null
}

fn bucket(value: f64, low: f64, high: f64, count: i64) -> Result<i64> {
    if count <= 0 || count == i64::MAX {
        return exec_err!("width_bucket cannot make {count} buckets");
    }
    if !low.is_finite() || !high.is_finite() || low == high {
        return exec_err!("width_bucket needs two different finite bounds, and not {low} and {high}");
    }
    if value.is_nan() {
        return exec_err!("width_bucket knows no bucket for NaN");
    }
    // Downwards it is the same with all signs changed.
    let (value, low, high) = if low < high { (value, low, high) } else { (-value, -low, -high) };
    if value < low {
        return Ok(0);
    }
    if value >= high {
        return Ok(count + 1);
    }
    // Halves, for the bounds may be further apart than any float.
    let part = (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "between 0 and the count")]
    let bucket = (part * count as f64) as i64;
    // What is just below the upper bound may be rounded up to it.
    Ok(bucket.min(count - 1) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_counted_from_one_and_what_is_outside_has_its_own() {
        let cases = [
            ((5.35, 0.024, 10.06, 5), 3),
            ((-1.0, 0.0, 10.0, 5), 0),
            ((0.0, 0.0, 10.0, 5), 1),
            ((1.999, 0.0, 10.0, 5), 1),
            ((2.0, 0.0, 10.0, 5), 2),
            ((10.0, 0.0, 10.0, 5), 6),
            ((f64::INFINITY, 0.0, 10.0, 5), 6),
            ((f64::NEG_INFINITY, 0.0, 10.0, 5), 0),
            ((10.0, 10.0, 0.0, 5), 1),
            ((8.0, 10.0, 0.0, 5), 2),
            ((0.0, 10.0, 0.0, 5), 6),
            ((11.0, 10.0, 0.0, 5), 0),
            ((0.0, f64::MIN, f64::MAX, 2), 2),
            ((10.0_f64.next_down(), 0.0, 10.0, 3), 3),
        ];
        for ((value, low, high, count), expected) in cases {
            assert_eq!(bucket(value, low, high, count).unwrap(), expected, "{value} {low} {high} {count}");
        }
    }
}
