//! How many bytes an array takes once every value stands for itself.
//!
//! Dictionaries, views and run-ends name the same bytes as often as they like, so that a small body can mean
//! terabytes of text, and a small batch an answer of them. Everything else takes what its buffers have.

use arrow::{
    array::{Array, AsArray, OffsetSizeTrait, RunArray},
    datatypes::{DataType, Int16Type, Int32Type, Int64Type, RunEndIndexType},
};

/// Returns the bytes that the values of `array` have beyond those of its buffers when they are written out.
///
/// ```
/// use arrow::array::{StringArray, StringViewArray};
///
/// let text = "a".repeat(100);
/// let views = StringViewArray::from_iter_values([&text, &text]);
/// assert_eq!(arc_core::expanded_bytes(&views), 200);
/// assert_eq!(arc_core::expanded_bytes(&StringArray::from_iter_values([&text])), 0);
/// ```
#[must_use]
pub fn expanded_bytes(array: &dyn Array) -> usize {
    match array.data_type() {
        DataType::Utf8View => array.as_string_view().lengths().map(|bytes| bytes as usize).sum(),
        DataType::BinaryView => array.as_binary_view().lengths().map(|bytes| bytes as usize).sum(),
        DataType::Dictionary(..) => array.as_any_dictionary_opt().map_or(0, |dictionary| {
            let values = dictionary.values().as_ref();
            // Keys that are null have some place all the same.
            if values.is_empty() {
                return 0;
            }
            #[expect(clippy::disallowed_methods, reason = "there are values")]
            let keys = dictionary.normalized_keys();
            // Not of all values: there may be more of them than rows.
            keys.into_iter().map(|key| length(values, key)).fold(0, usize::saturating_add)
        }),
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => of_runs::<Int16Type>(array),
            DataType::Int32 => of_runs::<Int32Type>(array),
            _ => of_runs::<Int64Type>(array),
        },
        DataType::List(_) => within(array.as_list::<i32>().values(), array.as_list::<i32>().value_offsets()),
        DataType::LargeList(_) => within(array.as_list::<i64>().values(), array.as_list::<i64>().value_offsets()),
        DataType::FixedSizeList(..) => expanded_bytes(array.as_fixed_size_list().values().as_ref()),
        DataType::Map(..) => within(array.as_map().entries(), array.as_map().value_offsets()),
        DataType::Struct(_) => {
            array.as_struct().columns().iter().map(|column| expanded_bytes(column)).fold(0, usize::saturating_add)
        }
        _ => 0,
    }
}

/// Returns what the items between the first and the last offset of lists have.
fn within<O: OffsetSizeTrait>(items: &dyn Array, offsets: &[O]) -> usize {
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else { return 0 };
    expanded_bytes(&items.slice(first.as_usize(), last.as_usize() - first.as_usize()))
}

/// Returns what runs have at most: each of the longest value.
fn of_runs<R: RunEndIndexType>(array: &dyn Array) -> usize {
    let runs = array.as_any().downcast_ref::<RunArray<R>>();
    runs.map_or(0, |runs| {
        let values = runs.values().as_ref();
        let longest = (0..values.len()).map(|index| length(values, index)).max().unwrap_or_default();
        longest.saturating_mul(array.len())
    })
}

/// Returns the bytes of a text or of binary data, none of anything else.
fn length(values: &dyn Array, index: usize) -> usize {
    fn between<O: OffsetSizeTrait>(offsets: &[O], index: usize) -> usize {
        match offsets.get(index..index + 2) {
            Some([start, end]) => end.as_usize() - start.as_usize(),
            _ => 0,
        }
    }
    fn of_view(views: &[u128], index: usize) -> usize {
        // The length is the lowest 32 bits.
        views.get(index).map_or(0, |view| (view & u128::from(u32::MAX)).try_into().unwrap_or(usize::MAX))
    }
    match values.data_type() {
        DataType::Utf8 => between(values.as_string::<i32>().value_offsets(), index),
        DataType::LargeUtf8 => between(values.as_string::<i64>().value_offsets(), index),
        DataType::Binary => between(values.as_binary::<i32>().value_offsets(), index),
        DataType::LargeBinary => between(values.as_binary::<i64>().value_offsets(), index),
        DataType::Utf8View => of_view(values.as_string_view().views(), index),
        DataType::BinaryView => of_view(values.as_binary_view().views(), index),
        _ => 0,
    }
}
