//! Arrays in another type: each value as it is, or none of them.
//!
//! Never rounds, cuts or wraps a value. Times are moments: a zone is how they are shown, and one without is UTC.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, make_array},
    compute::cast,
    datatypes::{DataType, Field, FieldRef},
    error::ArrowError,
};

/// What became of an array in another type.
pub(crate) enum Conversion {
    /// All of its values.
    Exact(ArrayRef),
    /// The other type has no such value as that of this row, which is the first one.
    Lossy(usize),
    /// Values of one type are never values of the other.
    Unrelated,
}

/// Returns an array in another type.
///
/// # Errors
///
/// What Arrow cannot convert of what it said it could.
pub(crate) fn convert(array: &ArrayRef, to: &DataType) -> Result<Conversion, ArrowError> {
    let from = array.data_type();
    if from == to {
        return Ok(Conversion::Exact(Arc::clone(array)));
    }
    let (family, other) = (Family::of(from), Family::of(to));
    if family != other || (family == Family::Other && plain_type(from) != plain_type(to)) {
        return Ok(Conversion::Unrelated);
    }
    let converted = as_moments(array, to)?;
    let back = as_moments(&converted, from)?;
    if *back == **array {
        return Ok(Conversion::Exact(converted));
    }
    let differs = |row: &usize| array.slice(*row, 1) != back.slice(*row, 1);
    Ok((0..array.len()).find(differs).map_or(Conversion::Exact(converted), Conversion::Lossy))
}

/// Text in any of its Arrow forms becomes `Utf8`, also inside of lists and structures; lists count their items in 32 bits.
/// Every other type stays.
pub(crate) fn plain(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let plain = plain_type(array.data_type());
    if plain == *array.data_type() { Ok(Arc::clone(array)) } else { cast(array, &plain) }
}

fn plain_type(data_type: &DataType) -> DataType {
    let item = |field: &FieldRef| Arc::new(Field::new_list_field(plain_type(field.data_type()), true));
    let inner = |field: &FieldRef| Arc::new(Field::new(field.name(), plain_type(field.data_type()), true));
    match data_type {
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::Dictionary(_, values) if plain_type(values) == DataType::Utf8 => DataType::Utf8,
        DataType::List(field) | DataType::LargeList(field) => DataType::List(item(field)),
        DataType::FixedSizeList(field, size) => DataType::FixedSizeList(item(field), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        DataType::Map(entries, sorted) => DataType::Map(plain_entries(entries), *sorted),
        other => other.clone(),
    }
}

/// Keys are never null, and neither are entries.
fn plain_entries(entries: &FieldRef) -> FieldRef {
    let plain =
        |field: &FieldRef| Arc::new(Field::new(field.name(), plain_type(field.data_type()), field.is_nullable()));
    let data_type = match entries.data_type() {
        DataType::Struct(pair) => DataType::Struct(pair.iter().map(plain).collect()),
        other => other.clone(),
    };
    Arc::new(Field::new(entries.name(), data_type, entries.is_nullable()))
}

/// Types whose values may be values of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Number,
    Moment,
    TimeOfDay,
    Span,
    Bytes,
    Other,
}

impl Family {
    fn of(data_type: &DataType) -> Self {
        match data_type {
            _ if data_type.is_numeric() => Self::Number,
            DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => Self::Moment,
            DataType::Time32(_) | DataType::Time64(_) => Self::TimeOfDay,
            DataType::Duration(_) => Self::Span,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Self::Bytes,
            _ => Self::Other,
        }
    }
}

/// Casts, so that a time stays the same moment whatever the zones of both types are.
fn as_moments(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let without_zones = retyped(array, &without_zone(array.data_type()))?;
    retyped(&cast(&without_zones, &without_zone(to))?, to)
}

fn without_zone(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Timestamp(unit, Some(_)) => DataType::Timestamp(*unit, None),
        other => other.clone(),
    }
}

/// Returns the same bytes as another type.
fn retyped(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    Ok(make_array(array.to_data().into_builder().data_type(to.clone()).build()?))
}

#[cfg(test)]
mod tests {
    use arrow::{
        array::{
            BinaryViewArray, Date32Array, Date64Array, Decimal128Array, Float32Array, Float64Array, Int32Array,
            Int64Array, LargeListArray, ListArray, StringArray, StringViewArray, Time32SecondArray,
            TimestampMicrosecondArray, TimestampNanosecondArray, TimestampSecondArray, UInt8Array, UInt64Array,
        },
        buffer::OffsetBuffer,
        datatypes::TimeUnit,
    };

    use super::*;

    /// How the first value looks; else the first row that is lost, or none where no value is ever one of the other type.
    type Expected = Result<&'static str, Option<usize>>;

    fn array(array: impl Array + 'static) -> ArrayRef {
        Arc::new(array)
    }

    fn utc(unit: TimeUnit) -> DataType {
        DataType::Timestamp(unit, Some("UTC".into()))
    }

    #[test]
    fn values_are_what_they_were_or_the_first_other_one_is_found() {
        let day_ns = 86_400_000_000_000;
        let decimal = |value| array(Decimal128Array::from(vec![value]).with_precision_and_scale(5, 1).unwrap());
        let cases: Vec<(ArrayRef, DataType, Expected)> = vec![
            (array(UInt8Array::from(vec![Some(255), None])), DataType::Int64, Ok("255")),
            (array(Float64Array::from(vec![Some(2.0), None])), DataType::Int64, Ok("2")),
            (array(Float64Array::from(vec![2.0, 2.5])), DataType::Int64, Err(Some(1))),
            (array(Float64Array::from(vec![-0.0])), DataType::Int64, Err(Some(0))),
            (array(Float64Array::from(vec![f64::NAN])), DataType::Int64, Err(Some(0))),
            (array(Float32Array::from(vec![0.1])), DataType::Float64, Ok("0.10000000149011612")),
            (array(Float64Array::from(vec![0.1])), DataType::Float32, Err(Some(0))),
            (array(Int64Array::from(vec![1 << 53, (1 << 53) + 1])), DataType::Float64, Err(Some(1))),
            (array(UInt64Array::from(vec![7, u64::MAX])), DataType::Int64, Err(Some(1))),
            (decimal(15), DataType::Decimal128(10, 4), Ok("1.5000")),
            (decimal(15), DataType::Decimal128(10, 0), Err(Some(0))),
            (decimal(20), DataType::Int64, Ok("2")),
            (array(Date32Array::from(vec![1])), utc(TimeUnit::Nanosecond), Ok("1970-01-02T00:00:00Z")),
            (array(Date64Array::from(vec![86_400_000])), DataType::Date32, Ok("1970-01-02")),
            (array(TimestampNanosecondArray::from(vec![day_ns, 1])), DataType::Date32, Err(Some(1))),
            (
                array(TimestampMicrosecondArray::from(vec![1])),
                utc(TimeUnit::Nanosecond),
                Ok("1970-01-01T00:00:00.000001Z"),
            ),
            (array(TimestampNanosecondArray::from(vec![1_000, 1])), utc(TimeUnit::Microsecond), Err(Some(1))),
            (array(TimestampSecondArray::from(vec![0, i64::MAX])), utc(TimeUnit::Nanosecond), Err(Some(1))),
            (
                array(TimestampSecondArray::from(vec![0]).with_timezone("+02:00")),
                DataType::Timestamp(TimeUnit::Second, None),
                Ok("1970-01-01T00:00:00"),
            ),
            (
                array(TimestampSecondArray::from(vec![0])),
                DataType::Timestamp(TimeUnit::Second, Some("+02:00".into())),
                Ok("1970-01-01T02:00:00+02:00"),
            ),
            (array(Time32SecondArray::from(vec![61])), DataType::Time64(TimeUnit::Nanosecond), Ok("00:01:01")),
            (array(BinaryViewArray::from(vec![&b"x"[..]])), DataType::Binary, Ok("78")),
            (array(StringArray::from(vec!["1"])), DataType::Int64, Err(None)),
            (array(Int64Array::from(vec![1])), utc(TimeUnit::Nanosecond), Err(None)),
            (array(Int64Array::from(vec![1])), DataType::Boolean, Err(None)),
        ];
        for (from, to, expected) in cases {
            let name = format!("{} to {to}", from.data_type());
            match (convert(&from, &to).unwrap(), expected) {
                (Conversion::Exact(converted), Ok(first)) => {
                    assert_eq!(converted.data_type(), &to, "{name}");
                    let shown = arrow::util::display::array_value_to_string(&converted, 0).unwrap();
                    assert_eq!(shown, first, "{name}");
                }
                (Conversion::Lossy(row), Err(Some(expected))) => assert_eq!(row, expected, "{name}"),
                (Conversion::Unrelated, Err(None)) => {}
                _ => panic!("{name}: expected {expected:?}"),
            }
        }
    }

    #[test]
    fn texts_inside_of_others_are_plain_as_well_and_fit_into_what_was_kept_before() {
        let texts = || array(StringViewArray::from(vec!["a", "longer than twelve bytes"]));
        let field = Arc::new(Field::new("element", DataType::Utf8View, true));
        let large: ArrayRef = array(LargeListArray::new(field, OffsetBuffer::from_lengths([2]), texts(), None));
        let of_texts = plain(&large).unwrap();
        assert_eq!(of_texts.data_type(), &DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))));
        assert!(matches!(convert(&of_texts, large.data_type()).unwrap(), Conversion::Exact(back) if back == large));
        let field = Arc::new(Field::new_list_field(DataType::Int32, true));
        let numbers = ListArray::new(field, OffsetBuffer::from_lengths([1]), array(Int32Array::from(vec![1])), None);
        assert!(matches!(convert(&of_texts, numbers.data_type()).unwrap(), Conversion::Unrelated));
    }
}
