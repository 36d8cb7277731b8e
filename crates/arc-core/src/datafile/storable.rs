//! Which Arrow types a data file can hold.

use arrow::datatypes::{DataType, IntervalUnit};

/// Returns whether columns of this type come back from a data file as they were written.
///
/// Asked before a column is accepted: a type that cannot be written would make every flush of its
/// table fail.
pub(crate) fn is_storable(data_type: &DataType) -> bool {
    match data_type {
        DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64
        | DataType::Float16
        | DataType::Float32
        | DataType::Float64
        | DataType::Timestamp(..)
        | DataType::Date32
        | DataType::Date64
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Duration(_)
        | DataType::Interval(IntervalUnit::YearMonth | IntervalUnit::DayTime)
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_)
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Null => true,
        // As Parquet has them.
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => u8::try_from(*scale).is_ok_and(|scale| scale <= *precision),
        DataType::Dictionary(_, value) => {
            matches!(**value, DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary)
        }
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => is_storable(field.data_type()),
        // Parquet has no struct without fields.
        DataType::Struct(fields) => !fields.is_empty() && fields.iter().all(|field| is_storable(field.data_type())),
        _ => false,
    }
}
