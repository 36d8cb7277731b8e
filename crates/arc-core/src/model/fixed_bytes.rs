//! How many bytes a value of a type takes whatever it is, also where it is NULL.

use arrow::datatypes::DataType;

/// Most such bytes: those of an embedding of 8,192 numbers.
pub(crate) const MAX_FIXED_BYTES: usize = 1 << 16;

/// Returns the bytes that each value has. Of a list of any length they are those of one item.
pub(crate) fn fixed_bytes(data_type: &DataType) -> usize {
    let length = |length: &i32| usize::try_from(*length).unwrap_or(usize::MAX);
    match data_type {
        DataType::FixedSizeBinary(bytes) => length(bytes),
        DataType::FixedSizeList(item, items) => fixed_bytes(item.data_type()).saturating_mul(length(items)),
        DataType::Struct(fields) => {
            fields.iter().map(|field| fixed_bytes(field.data_type())).fold(0, usize::saturating_add)
        }
        DataType::List(item) | DataType::LargeList(item) | DataType::Map(item, _) => fixed_bytes(item.data_type()),
        other => other.primitive_width().unwrap_or(1),
    }
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
            (DataType::new_list(list(pair, 10), true), 120),
        ] {
            assert_eq!(fixed_bytes(&data_type), expected, "{data_type}");
        }
    }
}
