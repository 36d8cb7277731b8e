//! Columns of a query in the types of a table: each value as it is, or the column is refused by its
//! name.
//!
//! Never rounds, cuts or wraps a value; a query that wants that says `CAST`.

use arrow::{
    array::{Array, ArrayRef, AsArray, new_null_array},
    compute::cast,
    datatypes::{DataType, TimeUnit},
    util::display::array_value_to_string,
};

use super::insert::refuse;
use crate::{
    Error, Result,
    arrays::exact::{self, Conversion, convert},
    ingest::type_name,
    model::{has_finer_digits, time_type},
};

/// Returns `array` in the type that `column` of `table` has.
pub(super) fn fitted(array: &ArrayRef, data_type: &DataType, table: &str, column: &str) -> Result<ArrayRef> {
    let array = plain(array)?;
    if array.data_type() == data_type {
        return Ok(array);
    }
    if *array.data_type() == DataType::Null {
        return Ok(new_null_array(data_type, array.len()));
    }
    let from = array.data_type().clone();
    let converted = match convert(&array, data_type)? {
        Conversion::Exact(converted) => Ok(converted),
        Conversion::Lossy(row) => Err(row),
        Conversion::Unrelated if from == DataType::Utf8 && is_moment(data_type) => {
            read(&array, data_type)?.and_then(|times| finer_text(&array, data_type).map_or(Ok(times), Err))
        }
        // Nanoseconds, as elsewhere.
        Conversion::Unrelated if from.is_integer() && matches!(data_type, DataType::Timestamp(..)) => {
            match read(&cast(&array, &DataType::Int64)?, &time_type())? {
                Ok(times) => match convert(&times, data_type)? {
                    Conversion::Exact(times) => Ok(times),
                    Conversion::Lossy(row) => Err(row),
                    Conversion::Unrelated => return Err(Error::internal("times are no times")),
                },
                Err(row) => Err(row),
            }
        }
        Conversion::Unrelated => {
            return Err(Error::SchemaConflict {
                table: table.to_owned(),
                column: column.to_owned(),
                existing: type_name(data_type),
                got: type_name(&from),
            });
        }
    };
    converted.or_else(|row| {
        let value = array_value_to_string(&array, row)?;
        refuse(format!("column {column:?} is {data_type} and cannot be {value}"))
    })
}

/// Converts what may have no value in the other type; `Err` is the first row that has none.
fn read(array: &ArrayRef, data_type: &DataType) -> Result<Result<ArrayRef, usize>> {
    let converted = cast(array, data_type)?;
    let lost = (0..array.len()).find(|&row| array.is_valid(row) && converted.is_null(row));
    Ok(lost.map_or(Ok(converted), Err))
}

/// Text becomes `Utf8` in any of its Arrow forms, and a dictionary its values.
pub(super) fn plain(array: &ArrayRef) -> Result<ArrayRef> {
    match array.as_any_dictionary_opt() {
        // A null among the values of a dictionary is one of the rows that have it.
        Some(dictionary) => plain(&cast(array, dictionary.values().data_type())?),
        None => Ok(exact::plain(array)?),
    }
}

fn is_moment(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64)
}

/// Returns the first row whose text is a finer time than those of a type are: reading it has cut
/// digits off.
fn finer_text(array: &ArrayRef, data_type: &DataType) -> Option<usize> {
    let digits = match data_type {
        DataType::Timestamp(TimeUnit::Second, _) => 0,
        DataType::Timestamp(TimeUnit::Millisecond, _) => 3,
        DataType::Timestamp(TimeUnit::Microsecond, _) => 6,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => 9,
        _ => return None,
    };
    array.as_string::<i32>().iter().position(|text| text.is_some_and(|text| has_finer_digits(text, digits)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array, StringArray,
        StringDictionaryBuilder, StringViewArray, TimestampMicrosecondArray, TimestampMillisecondArray,
        TimestampNanosecondArray, UInt64Array,
    };
    use arrow::datatypes::Int32Type;

    use super::*;

    fn utc() -> DataType {
        DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()))
    }

    fn micros() -> DataType {
        DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
    }

    fn of_micros(values: Vec<i64>) -> ArrayRef {
        Arc::new(TimestampMicrosecondArray::from(values).with_timezone("UTC"))
    }

    fn time(values: Vec<Option<i64>>) -> ArrayRef {
        Arc::new(TimestampNanosecondArray::from(values).with_timezone("UTC"))
    }

    #[test]
    fn values_stay_what_they_are_in_another_type() {
        let mut tags = StringDictionaryBuilder::<Int32Type>::new();
        tags.append_value("a");
        tags.append_null();
        let cases: Vec<(ArrayRef, DataType, ArrayRef)> = vec![
            (
                Arc::new(Float64Array::from(vec![Some(-2.0), None])),
                DataType::Int64,
                Arc::new(Int64Array::from(vec![Some(-2), None])),
            ),
            (
                Arc::new(Int64Array::from(vec![Some(1 << 53), None])),
                DataType::Float64,
                Arc::new(Float64Array::from(vec![Some(9_007_199_254_740_992.0), None])),
            ),
            (Arc::new(Int32Array::from(vec![7])), DataType::UInt64, Arc::new(UInt64Array::from(vec![7]))),
            (
                Arc::new(Decimal128Array::from(vec![10, -1]).with_precision_and_scale(38, 1).unwrap()),
                DataType::Float64,
                Arc::new(Float64Array::from(vec![1.0, -0.1])),
            ),
            (Arc::new(tags.finish()), DataType::Utf8, Arc::new(StringArray::from(vec![Some("a"), None]))),
            (Arc::new(StringViewArray::from(vec!["b"])), DataType::Utf8, Arc::new(StringArray::from(vec!["b"]))),
            (
                Arc::new(StringArray::from(vec![Some("1970-01-01T00:00:01.000000001Z"), Some("1969-12-31"), None])),
                utc(),
                time(vec![Some(1_000_000_001), Some(-86_400_000_000_000), None]),
            ),
            (Arc::new(Int64Array::from(vec![-5])), utc(), time(vec![Some(-5)])),
            (Arc::new(Int64Array::from(vec![-5_000])), micros(), of_micros(vec![-5])),
            (
                Arc::new(StringArray::from(vec!["9999-12-31T23:59:59.999999000Z", "1969-12-31 23:59:59.99"])),
                micros(),
                of_micros(vec![253_402_300_799_999_999, -10_000]),
            ),
            (Arc::new(TimestampMillisecondArray::from(vec![-1])), utc(), time(vec![Some(-1_000_000)])),
            (Arc::new(Date32Array::from(vec![-1])), utc(), time(vec![Some(-86_400_000_000_000)])),
            (new_null_array(&DataType::Null, 2), DataType::Int64, Arc::new(Int64Array::from(vec![None, None]))),
        ];
        for (array, data_type, expected) in cases {
            let fitted = fitted(&array, &data_type, "m", "c").unwrap();
            assert_eq!(&fitted, &expected, "{array:?}");
        }
    }

    #[test]
    fn what_would_be_another_value_is_refused_by_column_and_value() {
        let far = Arc::new(TimestampMillisecondArray::from(vec![1, i64::MAX / 1_000]));
        let cases: Vec<(ArrayRef, DataType, &str)> = vec![
            (Arc::new(Float64Array::from(vec![1.0, 2.5])), DataType::Int64, "column \"c\" is Int64 and cannot be 2.5"),
            (Arc::new(Float64Array::from(vec![f64::NAN])), DataType::Int64, "cannot be NaN"),
            (Arc::new(Float64Array::from(vec![1e300])), DataType::Int64, "cannot be 1e300"),
            (Arc::new(Int64Array::from(vec![(1 << 53) + 1])), DataType::Float64, "cannot be 9007199254740993"),
            (Arc::new(Int64Array::from(vec![-1])), DataType::UInt64, "cannot be -1"),
            (Arc::new(UInt64Array::from(vec![u64::MAX])), DataType::Int64, "cannot be 18446744073709551615"),
            (Arc::new(StringArray::from(vec!["noon"])), utc(), "cannot be noon"),
            (far, utc(), "cannot be"),
            (Arc::new(Int64Array::from(vec![-5_000, -5_001])), micros(), "cannot be -5001"),
            (Arc::new(StringArray::from(vec!["1970-01-01T00:00:00.0000001Z"])), micros(), "00.0000001Z"),
            (Arc::new(StringArray::from(vec!["9999-12-31T23:59:59.9999999+01:00"])), micros(), "59.9999999+01:00"),
            (Arc::new(StringArray::from(vec!["1970-01-01 00:00:00.0000000001"])), utc(), "00.0000000001"),
            (Arc::new(StringArray::from(vec!["1"])), DataType::Int64, "column \"c\" of table \"m\" is integer"),
            (Arc::new(Int64Array::from(vec![1])), DataType::Utf8, "is string, the write has integer"),
            (Arc::new(Int64Array::from(vec![1])), DataType::Boolean, "is boolean"),
            (Arc::new(BooleanArray::from(vec![true])), DataType::Float64, "is float"),
            (Arc::new(Float64Array::from(vec![1.0])), utc(), "the write has float"),
        ];
        for (array, data_type, expected) in cases {
            let error = fitted(&array, &data_type, "m", "c").unwrap_err().to_string();
            assert!(error.contains(expected), "{array:?}: {error}");
        }
    }
}
