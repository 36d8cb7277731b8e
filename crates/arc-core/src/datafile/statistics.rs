//! Bounds and null counts of a column, from its arrays as they pass by.

use arrow::{
    array::{Array, ArrayRef, AsArray, StringArray},
    compute::{max, max_boolean, max_string, min, min_boolean, min_string},
    datatypes::{
        ArrowNumericType, DataType, Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
        TimeUnit, TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    },
};

use super::{ColumnStatistics, StatisticsValue, encode::ChunkBounds};
use crate::FileTimeUnit;

/// Longest text bound in bytes (one character more where a maximum had to grow).
const MAX_TEXT_BYTES: usize = 64;

/// Collects the statistics of one column of one file.
#[derive(Debug)]
pub(crate) struct StatisticsBuilder {
    name: String,
    null_count: u64,
    /// Unit of times in chunks.
    unit: FileTimeUnit,
    bounds: ColumnBounds,
    nan: bool,
    nan_in_row_group: bool,
}

/// Smallest and largest value so far.
#[derive(Debug)]
enum ColumnBounds {
    Integer(Option<(i64, i64)>),
    Timestamp(Option<(i64, i64)>),
    Unsigned(Option<(u64, u64)>),
    /// Of narrower integers, or days.
    Narrow(fn(&ArrayRef) -> Option<(i64, i64)>, Option<(i64, i64)>),
    NarrowUnsigned(fn(&ArrayRef) -> Option<(u64, u64)>, Option<(u64, u64)>),
    Float(Option<(f64, f64)>),
    Boolean(Option<(bool, bool)>),
    Text(Option<(String, String)>),
    Tag(Option<(String, String)>),
    /// No bounds are kept, but whether there is any NaN.
    ShortFloat,
    /// A type whose values have no order here.
    None,
}

impl StatisticsBuilder {
    pub(crate) fn new(name: &str, data_type: &DataType) -> Self {
        let bounds = match data_type {
            DataType::Int64 => ColumnBounds::Integer(None),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => ColumnBounds::Timestamp(None),
            DataType::UInt64 => ColumnBounds::Unsigned(None),
            DataType::Int8 => ColumnBounds::Narrow(narrow_bounds::<Int8Type, _>, None),
            DataType::Int16 => ColumnBounds::Narrow(narrow_bounds::<Int16Type, _>, None),
            DataType::Int32 => ColumnBounds::Narrow(narrow_bounds::<Int32Type, _>, None),
            DataType::Date32 => ColumnBounds::Narrow(narrow_bounds::<Date32Type, _>, None),
            DataType::UInt8 => ColumnBounds::NarrowUnsigned(narrow_bounds::<UInt8Type, _>, None),
            DataType::UInt16 => ColumnBounds::NarrowUnsigned(narrow_bounds::<UInt16Type, _>, None),
            DataType::UInt32 => ColumnBounds::NarrowUnsigned(narrow_bounds::<UInt32Type, _>, None),
            DataType::Float64 => ColumnBounds::Float(None),
            DataType::Float32 => ColumnBounds::ShortFloat,
            DataType::Boolean => ColumnBounds::Boolean(None),
            DataType::Utf8 => ColumnBounds::Text(None),
            DataType::Dictionary(key, value) if **key == DataType::Int32 && **value == DataType::Utf8 => {
                ColumnBounds::Tag(None)
            }
            _ => ColumnBounds::None,
        };
        Self {
            name: name.to_owned(),
            null_count: 0,
            unit: FileTimeUnit::default(),
            bounds,
            nan: false,
            nan_in_row_group: false,
        }
    }

    /// Says in which unit chunks have times.
    pub(super) fn set_unit(&mut self, unit: FileTimeUnit) {
        self.unit = unit;
    }

    /// Takes in more values; `array` has the type given to `new`.
    pub(crate) fn update(&mut self, array: &ArrayRef) {
        self.null_count += array.logical_null_count() as u64;
        match &mut self.bounds {
            ColumnBounds::Integer(bounds) => widen(bounds, primitive_bounds::<Int64Type>(array)),
            ColumnBounds::Timestamp(bounds) => widen(bounds, primitive_bounds::<TimestampNanosecondType>(array)),
            ColumnBounds::Unsigned(bounds) => widen(bounds, primitive_bounds::<UInt64Type>(array)),
            ColumnBounds::Narrow(bounds_of, bounds) => widen(bounds, bounds_of(array)),
            ColumnBounds::NarrowUnsigned(bounds_of, bounds) => widen(bounds, bounds_of(array)),
            ColumnBounds::Boolean(bounds) => {
                let array = array.as_boolean();
                widen(bounds, min_boolean(array).zip(max_boolean(array)));
            }
            ColumnBounds::Float(bounds) => {
                let batch = primitive_bounds::<Float64Type>(array);
                // Arrow orders floats totally: a NaN of either sign is one of the two ends.
                self.nan_in_row_group |= batch.is_some_and(|(min, max)| min.is_nan() || max.is_nan());
                widen_with(bounds, batch, f64::total_cmp);
            }
            ColumnBounds::ShortFloat => {
                let batch = primitive_bounds::<Float32Type>(array);
                self.nan_in_row_group |= batch.is_some_and(|(min, max)| min.is_nan() || max.is_nan());
            }
            ColumnBounds::Text(bounds) => {
                let array = array.as_string::<i32>();
                widen_text(bounds, min_string(array).zip(max_string(array)));
            }
            ColumnBounds::Tag(bounds) => widen_text(bounds, tag_bounds(array)),
            ColumnBounds::None => {}
        }
        self.nan |= self.nan_in_row_group;
    }

    /// Takes in the bounds and nulls of a whole column chunk, in place of its arrays.
    pub(super) fn add_chunk(&mut self, null_count: u64, chunk: ChunkBounds) {
        self.null_count += null_count;
        match (&mut self.bounds, chunk) {
            (ColumnBounds::Integer(bounds), ChunkBounds::Words(words)) => {
                widen(bounds, words.map(|(min, max)| (min.cast_signed(), max.cast_signed())));
            }
            (ColumnBounds::Timestamp(bounds), ChunkBounds::Words(words)) => {
                // They were nanoseconds before they were divided.
                let time_ns = |word: u64| word.cast_signed().saturating_mul(self.unit.nanoseconds());
                widen(bounds, words.map(|(min, max)| (time_ns(min), time_ns(max))));
            }
            (ColumnBounds::Unsigned(bounds), ChunkBounds::Words(words)) => widen(bounds, words),
            (ColumnBounds::Float(bounds), ChunkBounds::Words(words)) => {
                let floats = words.map(|(min, max)| (f64::from_bits(min), f64::from_bits(max)));
                self.nan |= floats.is_some_and(|(min, max)| min.is_nan() || max.is_nan());
                widen_with(bounds, floats, f64::total_cmp);
            }
            (ColumnBounds::Boolean(bounds), ChunkBounds::Booleans(chunk)) => widen(bounds, chunk),
            (ColumnBounds::Text(bounds) | ColumnBounds::Tag(bounds), ChunkBounds::Texts(texts)) => {
                widen_text(bounds, texts.as_ref().map(|(min, max)| (min.as_str(), max.as_str())));
            }
            _ => {}
        }
    }

    /// Returns whether the row group that ends here may have a NaN in this column, and begins the
    /// next one.
    ///
    /// Known for columns of plain floats only; of all other types the answer means nothing.
    pub(super) fn end_row_group(&mut self) -> bool {
        std::mem::take(&mut self.nan_in_row_group)
    }

    /// Returns the bounds if the column is the time.
    pub(crate) fn time_bounds(&self) -> Option<(i64, i64)> {
        match self.bounds {
            ColumnBounds::Timestamp(bounds) if self.null_count == 0 => bounds,
            _ => None,
        }
    }

    pub(crate) fn finish(self) -> ColumnStatistics {
        let (min, max) = match self.bounds {
            ColumnBounds::Integer(bounds) | ColumnBounds::Timestamp(bounds) | ColumnBounds::Narrow(_, bounds) => {
                both(bounds, StatisticsValue::Integer)
            }
            ColumnBounds::Unsigned(bounds) | ColumnBounds::NarrowUnsigned(_, bounds) => {
                both(bounds, StatisticsValue::Unsigned)
            }
            ColumnBounds::Float(bounds) => both(bounds.filter(|_| !self.nan), StatisticsValue::Float),
            ColumnBounds::Boolean(bounds) => both(bounds, StatisticsValue::Boolean),
            ColumnBounds::Text(Some((min, max))) | ColumnBounds::Tag(Some((min, max))) => {
                let (lower, exact) = lower_text(&min);
                let lower = StatisticsValue::Text { value: lower.to_owned(), exact };
                (Some(lower), upper_text(&max).map(|(value, exact)| StatisticsValue::Text { value, exact }))
            }
            ColumnBounds::Text(None) | ColumnBounds::Tag(None) | ColumnBounds::ShortFloat | ColumnBounds::None => {
                (None, None)
            }
        };
        ColumnStatistics { name: self.name, null_count: self.null_count, min, max }
    }
}

fn primitive_bounds<T: ArrowNumericType>(array: &ArrayRef) -> Option<(T::Native, T::Native)> {
    let array = array.as_primitive::<T>();
    min(array).zip(max(array))
}

fn narrow_bounds<T: ArrowNumericType, W: From<T::Native>>(array: &ArrayRef) -> Option<(W, W)> {
    primitive_bounds::<T>(array).map(|(min, max)| (min.into(), max.into()))
}

/// Looks at each value that is used once: a dictionary may hold values that no row of this array
/// has.
fn tag_bounds(array: &ArrayRef) -> Option<(&str, &str)> {
    let array = array.as_dictionary::<Int32Type>();
    let values: &StringArray = array.values().as_string();
    let mut seen = vec![false; values.len()];
    let mut bounds: Option<(&str, &str)> = None;
    // Rows that are sorted by tags repeat them.
    let mut last = None;
    for key in array.keys_iter() {
        if key == last {
            continue;
        }
        last = key;
        let Some(key) = key else { continue };
        let first_time = seen.get_mut(key).is_some_and(|seen| !std::mem::replace(seen, true));
        if first_time && values.is_valid(key) {
            let value = values.value(key);
            let (min, max) = bounds.unwrap_or((value, value));
            bounds = Some((min.min(value), max.max(value)));
        }
    }
    bounds
}

fn widen<T: Copy + Ord>(bounds: &mut Option<(T, T)>, batch: Option<(T, T)>) {
    widen_with(bounds, batch, T::cmp);
}

fn widen_with<T: Copy>(
    bounds: &mut Option<(T, T)>,
    batch: Option<(T, T)>,
    compare: impl Fn(&T, &T) -> std::cmp::Ordering,
) {
    let Some((low, high)) = batch else { return };
    let (min, max) = bounds.unwrap_or((low, high));
    let min = if compare(&low, &min).is_lt() { low } else { min };
    let max = if compare(&high, &max).is_gt() { high } else { max };
    *bounds = Some((min, max));
}

fn widen_text(bounds: &mut Option<(String, String)>, batch: Option<(&str, &str)>) {
    let Some((low, high)) = batch else { return };
    match bounds {
        None => *bounds = Some((low.to_owned(), high.to_owned())),
        Some((min, max)) => {
            if low < min.as_str() {
                low.clone_into(min);
            }
            if high > max.as_str() {
                high.clone_into(max);
            }
        }
    }
}

fn both<T>(
    bounds: Option<(T, T)>,
    wrap: fn(T) -> StatisticsValue,
) -> (Option<StatisticsValue>, Option<StatisticsValue>) {
    bounds.map(|(min, max)| (wrap(min), wrap(max))).unzip()
}

/// Returns the text, or a lower one that is short, and whether it is the text itself.
pub(super) fn lower_text(text: &str) -> (&str, bool) {
    let cut = text.floor_char_boundary(MAX_TEXT_BYTES);
    (text.get(..cut).unwrap_or_default(), cut == text.len())
}

/// Returns the text itself, or the smallest text no longer than the limit that is larger than all
/// that begin like it; and whether it is the text itself.
pub(super) fn upper_text(text: &str) -> Option<(String, bool)> {
    let (start, exact) = lower_text(text);
    let mut value = start.to_owned();
    if exact {
        return Some((value, true));
    }
    while let Some(last) = value.pop() {
        if let Some(next) = next_char(last) {
            value.push(next);
            return Some((value, false));
        }
    }
    None
}

fn next_char(c: char) -> Option<char> {
    match c {
        char::MAX => None,
        // The surrogates between the two are no characters.
        '\u{d7ff}' => Some('\u{e000}'),
        _ => char::from_u32(u32::from(c) + 1),
    }
}
