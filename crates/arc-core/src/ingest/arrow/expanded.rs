//! How many bytes an array takes once every value stands for itself.
//!
//! Dictionaries and views name the same bytes as often as they like, so that a small body can mean
//! terabytes of text. Everything else takes what its buffers have.

use arrow::{
    array::{Array, AsArray, GenericByteArray},
    datatypes::{BinaryType, ByteArrayType, DataType, LargeBinaryType, LargeUtf8Type, Utf8Type},
};

/// Returns the bytes that `array` has beyond its buffers when it is written out.
pub(super) fn expanded_bytes(array: &dyn Array) -> usize {
    match array.data_type() {
        DataType::Utf8View => array.as_string_view().lengths().map(|bytes| bytes as usize).sum(),
        DataType::BinaryView => array.as_binary_view().lengths().map(|bytes| bytes as usize).sum(),
        DataType::Dictionary(..) => array.as_any_dictionary_opt().map_or(0, |dictionary| {
            let lengths = lengths(dictionary.values().as_ref());
            // Keys that are null have some place all the same.
            if lengths.is_empty() {
                return 0;
            }
            #[expect(clippy::disallowed_methods, reason = "there are values")]
            let keys = dictionary.normalized_keys();
            keys.into_iter().filter_map(|key| lengths.get(key)).sum()
        }),
        DataType::List(_) => expanded_bytes(array.as_list::<i32>().values().as_ref()),
        DataType::LargeList(_) => expanded_bytes(array.as_list::<i64>().values().as_ref()),
        DataType::FixedSizeList(..) => expanded_bytes(array.as_fixed_size_list().values().as_ref()),
        DataType::Map(..) => array.as_map().entries().columns().iter().map(|column| expanded_bytes(column)).sum(),
        DataType::Struct(_) => array.as_struct().columns().iter().map(|column| expanded_bytes(column)).sum(),
        _ => 0,
    }
}

/// Returns the length of each value of a dictionary.
fn lengths(values: &dyn Array) -> Vec<usize> {
    match values.data_type() {
        DataType::Utf8 => of_bytes::<Utf8Type>(values),
        DataType::LargeUtf8 => of_bytes::<LargeUtf8Type>(values),
        DataType::Binary => of_bytes::<BinaryType>(values),
        DataType::LargeBinary => of_bytes::<LargeBinaryType>(values),
        DataType::Utf8View => values.as_string_view().lengths().map(|bytes| bytes as usize).collect(),
        _ => Vec::new(),
    }
}

fn of_bytes<T: ByteArrayType>(values: &dyn Array) -> Vec<usize> {
    let values: &GenericByteArray<T> = values.as_bytes();
    values.offsets().lengths().collect()
}
