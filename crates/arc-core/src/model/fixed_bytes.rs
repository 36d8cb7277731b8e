//! How many bytes a value of a type takes whatever it is, also where it is NULL.

use arrow::datatypes::DataType;

/// Most such bytes: those of an embedding of 8,192 numbers.
pub(crate) const MAX_FIXED_BYTES: usize = 1 << 16;
/// Most bytes of one row of a table, of all its columns together. Tables of former versions may
/// have more.
const MAX_ROW_BYTES: usize = 1 << 20;
/// Bytes that a value of any other column counts for.
const VALUE_BYTES: usize = 8;

/// Returns the bytes that each value has. Of a list of any length, and of a dictionary,
/// they are those of one item.
pub(crate) fn fixed_bytes(data_type: &DataType) -> usize {
    let length = |length: &i32| usize::try_from(*length).unwrap_or(usize::MAX);
    match data_type {
        DataType::FixedSizeBinary(bytes) => length(bytes),
        DataType::FixedSizeList(item, items) => fixed_bytes(item.data_type()).saturating_mul(length(items)),
        DataType::Struct(fields) => {
            fields.iter().map(|field| fixed_bytes(field.data_type())).fold(0, usize::saturating_add)
        }
        DataType::Union(fields, _) => {
            fields.iter().map(|(_, field)| fixed_bytes(field.data_type())).fold(0, usize::saturating_add)
        }
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::Map(item, _)
        | DataType::RunEndEncoded(_, item) => fixed_bytes(item.data_type()),
        DataType::Dictionary(_, value) => fixed_bytes(value),
        other => other.primitive_width().unwrap_or(1),
    }
}

/// Returns the bytes that a row has in columns of these types, whatever is in it.
pub(crate) fn row_bytes<'t>(types: impl IntoIterator<Item = &'t DataType>) -> usize {
    types.into_iter().map(|data_type| fixed_bytes(data_type).max(VALUE_BYTES)).fold(0, usize::saturating_add)
}

/// Returns how many rows of so many bytes make up `bytes`: at least one, and at most `rows`.
pub(crate) fn rows_within(bytes: usize, row_bytes: usize, rows: usize) -> usize {
    (bytes / row_bytes.max(1)).clamp(1, rows.max(1))
}

/// Checks that a table can have a column whose values have this type.
pub(crate) fn check_type(column: &str, data_type: &DataType) -> Result<(), String> {
    #[cfg(feature = "query")]
    if let Some(zone) = unknown_zone(data_type) {
        return Err(format!("column {column:?} has times of {zone:?}, which is no time zone"));
    }
    let bytes = fixed_bytes(data_type);
    if bytes <= MAX_FIXED_BYTES {
        return Ok(());
    }
    Err(format!("column {column:?} has {bytes} bytes a value, also where it is NULL; at most {MAX_FIXED_BYTES}"))
}

/// Returns a zone of a type that nobody knows: its times could not be shown.
#[cfg(feature = "query")]
fn unknown_zone(data_type: &DataType) -> Option<&str> {
    match data_type {
        DataType::Timestamp(_, Some(zone)) => zone.parse::<arrow::array::timezone::Tz>().is_err().then_some(zone),
        DataType::Struct(fields) => fields.iter().find_map(|field| unknown_zone(field.data_type())),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => unknown_zone(item.data_type()),
        DataType::Dictionary(_, value) => unknown_zone(value),
        _ => None,
    }
}

/// Checks that a table can have columns of all these types.
pub(crate) fn check_row_bytes<'t>(table: &str, types: impl IntoIterator<Item = &'t DataType>) -> Result<(), String> {
    let bytes = row_bytes(types);
    if bytes <= MAX_ROW_BYTES {
        return Ok(());
    }
    Err(format!("table {table:?} would have {bytes} bytes a row, also where all is NULL; at most {MAX_ROW_BYTES}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_sizes_multiply_and_fields_add_up() {
        let list = |item, items| DataType::new_fixed_size_list(item, items, true);
        let pair = DataType::Struct(
            vec![("a", DataType::Int64, true), ("b", DataType::Float32, true)]
                .into_iter()
                .map(|(name, data_type, nullable)| arrow::datatypes::Field::new(name, data_type, nullable))
                .collect(),
        );
        for (data_type, expected) in [
            (DataType::Int64, 8),
            (DataType::Boolean, 1),
            (DataType::Utf8, 1),
            (DataType::FixedSizeBinary(100), 100),
            (list(DataType::Float32, 1_024), 4_096),
            (list(list(DataType::Int8, i32::MAX), i32::MAX), (i32::MAX as usize).pow(2)),
            (list(list(list(DataType::Int8, i32::MAX), i32::MAX), i32::MAX), usize::MAX),
            (pair.clone(), 12),
            (DataType::Dictionary(Box::new(DataType::Int32), Box::new(list(pair.clone(), 10))), 120),
            (DataType::new_list(list(pair, 10), true), 120),
        ] {
            assert_eq!(fixed_bytes(&data_type), expected, "{data_type}");
        }
    }

    #[test]
    fn rows_are_as_wide_as_all_their_columns() {
        let wide = DataType::FixedSizeBinary(1 << 16);
        assert_eq!(row_bytes([&wide, &DataType::Boolean, &DataType::Utf8]), (1 << 16) + 16);
        assert_eq!(check_type("x", &wide), Ok(()));
        check_type("x", &DataType::FixedSizeBinary((1 << 16) + 1)).unwrap_err();
        assert_eq!(check_row_bytes("t", std::iter::repeat_n(&wide, 16)), Ok(()));
        check_row_bytes("t", std::iter::repeat_n(&wide, 16).chain([&DataType::Int64])).unwrap_err();
        for (bytes, row_bytes, rows, expected) in
            [(100, 10, 50, 10), (100, 10, 5, 5), (100, usize::MAX, 5, 1), (100, 0, 5, 5), (0, 1, 0, 1)]
        {
            assert_eq!(rows_within(bytes, row_bytes, rows), expected, "{bytes} {row_bytes} {rows}");
        }
    }
}
