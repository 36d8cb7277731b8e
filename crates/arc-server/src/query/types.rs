//! The names of types, in the vocabulary of the existing server's MessagePack answers.

use std::fmt::Write as _;

use arrow::datatypes::{DataType, TimeUnit};

/// Returns the name of a type.
///
/// How a value is laid out in memory does not matter here: a dictionary of strings is `utf8`, as is a view.
pub(super) fn type_name(data_type: &DataType) -> String {
    let name = match data_type {
        DataType::Null => "null",
        DataType::Boolean => "bool",
        DataType::Int8 => "int8",
        DataType::Int16 => "int16",
        DataType::Int32 => "int32",
        DataType::Int64 => "int64",
        DataType::UInt8 => "uint8",
        DataType::UInt16 => "uint16",
        DataType::UInt32 => "uint32",
        DataType::UInt64 => "uint64",
        DataType::Float16 | DataType::Float32 => "float32",
        DataType::Float64 => "float64",
        DataType::Utf8 | DataType::Utf8View => "utf8",
        DataType::LargeUtf8 => "large_utf8",
        DataType::Binary | DataType::BinaryView | DataType::FixedSizeBinary(_) => "binary",
        DataType::LargeBinary => "large_binary",
        DataType::Date32 | DataType::Date64 => "date32",
        DataType::Timestamp(TimeUnit::Second, _) => "timestamp[s]",
        DataType::Timestamp(TimeUnit::Millisecond, _) => "timestamp[ms]",
        DataType::Timestamp(TimeUnit::Microsecond, _) => "timestamp[us]",
        DataType::Timestamp(TimeUnit::Nanosecond, _) => "timestamp[ns]",
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::FixedSizeList(..) => "list",
        DataType::Struct(_) => "struct",
        DataType::Map(..) => "map",
        DataType::Dictionary(_, values) => return type_name(values),
        DataType::Decimal32(p, s) | DataType::Decimal64(p, s) => return decimal(*p, *s),
        DataType::Decimal128(p, s) | DataType::Decimal256(p, s) => return decimal(*p, *s),
        // Times of day, durations, intervals and unions are sent as text.
        _ => "string_encoded",
    };
    name.to_owned()
}

fn decimal(precision: u8, scale: i8) -> String {
    let mut name = String::new();
    // Writing to a string cannot fail.
    let _ = write!(name, "decimal({precision}, {scale})");
    name
}
