//! How large the answer of a function will be, from its arguments alone.

use std::iter;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::{
    common::{Result, ScalarValue},
    logical_expr::ColumnarValue,
};

use super::{
    concat::ConcatOperator,
    sizes::{PerRow, bytes, elements, integers, steps, total_of},
};

/// Bytes that a character may take.
const CHARACTER_BYTES: u64 = 4;

/// Bytes that an element of a list takes besides what it holds.
const ELEMENT_BYTES: u64 = 8;

/// Bytes that one of a pattern for times may become, such as the name of a month.
const FORMATTED_BYTES: u64 = 8;

/// How the size of an answer follows from the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Growth {
    /// A text, this often.
    Repeat,
    /// A text, filled up to this many characters.
    Pad,
    /// An element, this often.
    RepeatElement,
    /// A list, filled up to this many elements.
    Resize,
    /// A list of numbers or times, from one to another.
    Series,
    /// A text, with two characters for each byte.
    Encode,
    /// All texts in a row.
    Concat,
    /// All texts in a row, with the first between each two.
    ConcatWith,
    /// A text, with a text for each match.
    Replace,
    /// A list, with an element for each match.
    ReplaceElements,
    /// All elements in a row, with a text between each two.
    Join,
    /// A list, with an element for each of a text's parts.
    Split,
    /// A text for each group of a pattern.
    Captures,
    /// A text, as a pattern says.
    Format,
    /// A number, for which each part of one text is compared with each of another.
    Compare,
    /// No more than the arguments, but of a type that may be much larger than theirs.
    Type,
}

impl Growth {
    /// Returns how the answer of a function grows, if it can become much larger than its arguments.
    pub(super) fn of(function: &str) -> Option<Self> {
        Some(match function {
            "repeat" => Self::Repeat,
            "lpad" | "rpad" => Self::Pad,
            "array_repeat" => Self::RepeatElement,
            "array_resize" => Self::Resize,
            "range" | "generate_series" => Self::Series,
            "concat" | ConcatOperator::NAME | "overlay" => Self::Concat,
            "array_append" | "array_prepend" | "array_concat" | "array_union" | "make_array" | "arrays_zip"
            | "flatten" | "map" => Self::Concat,
            "encode" => Self::Encode,
            "concat_ws" => Self::ConcatWith,
            "replace" | "regexp_replace" => Self::Replace,
            "array_replace" | "array_replace_n" | "array_replace_all" => Self::ReplaceElements,
            "array_to_string" => Self::Join,
            "string_to_array" => Self::Split,
            "regexp_match" => Self::Captures,
            "to_char" => Self::Format,
            "levenshtein" => Self::Compare,
            "struct" | "named_struct" => Self::Type,
            _ => return None,
        })
    }

    /// Returns whether a number says how large the answer is: a few bytes of a statement can ask
    /// for any size.
    pub(super) fn is_from_counts(self) -> bool {
        matches!(self, Self::Repeat | Self::Pad | Self::RepeatElement | Self::Resize | Self::Series)
    }

    /// Returns whether the estimate assumes a match everywhere, and is mostly far off.
    pub(super) fn is_loose(self) -> bool {
        matches!(self, Self::Replace | Self::ReplaceElements | Self::Captures)
    }

    /// Returns what is estimated.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Self::Compare => "comparisons",
            _ => "bytes",
        }
    }

    /// Returns about how many bytes the answer for `rows` rows takes.
    ///
    /// A constant counts once for each row, since a constant answer takes its size for each row
    /// soon after.
    pub(super) fn estimate(self, arguments: &[ColumnarValue], rows: usize) -> Result<u64> {
        match (self, arguments) {
            (Self::Repeat, [text, count]) => Ok(products(rows, &bytes(text)?, 0, &integers(count)?)),
            (Self::Pad, [_, count, ..]) => Ok(integers(count)?.total(rows).saturating_mul(CHARACTER_BYTES)),
            (Self::RepeatElement, [element, count]) => {
                Ok(products(rows, &bytes(element)?, ELEMENT_BYTES, &integers(count)?))
            }
            (Self::Resize, [_, count]) => Ok(integers(count)?.total(rows).saturating_mul(2 * ELEMENT_BYTES)),
            (Self::Resize, [_, count, element]) => {
                Ok(products(rows, &bytes(element)?, ELEMENT_BYTES, &integers(count)?))
            }
            (Self::Series, arguments) => series(arguments, rows),
            (Self::Encode, [text, ..]) => Ok(total_of(text, rows)?.saturating_mul(2)),
            (Self::Concat, arguments) => totals(arguments, rows),
            (Self::ConcatWith, [separator, parts @ ..]) => {
                let separators = iter::repeat_n(separator, parts.len());
                totals(separators.chain(parts), rows)
            }
            (Self::Replace, [text, _, new, ..]) => {
                let (text, new) = (bytes(text)?, bytes(new)?);
                // There is a match before each character and one at the end, if what is replaced is
                // empty.
                Ok(text.total(rows).saturating_add(products(rows, &new, 0, &text)).saturating_add(new.total(rows)))
            }
            (Self::ReplaceElements, [list, _, new, ..]) => Ok(products(rows, &bytes(new)?, 0, &elements(list)?)),
            (Self::Join, [list, texts @ ..]) => {
                let list = elements(list)?;
                texts.iter().try_fold(0, |total: u64, text| {
                    Ok(total.saturating_add(products(rows, &bytes(text)?, ELEMENT_BYTES, &list)))
                })
            }
            (Self::Split, [text, ..]) => Ok(total_of(text, rows)?.saturating_mul(ELEMENT_BYTES)),
            (Self::Captures, [text, pattern, ..]) => Ok(total_of(text, rows)?.saturating_mul(groups(pattern, rows)?)),
            (Self::Format, [_, pattern, ..]) => Ok(total_of(pattern, rows)?.saturating_mul(FORMATTED_BYTES)),
            (Self::Compare, [one, other, ..]) => Ok(products(rows, &bytes(one)?, 0, &bytes(other)?)),
            // The function itself says what is wrong.
            _ => Ok(0),
        }
    }
}

/// Returns the sum over all rows of `(size + extra) * count`.
pub(super) fn products(rows: usize, size: &PerRow, extra: u64, count: &PerRow) -> u64 {
    let product = |row| size.count(row).saturating_add(extra).saturating_mul(count.count(row));
    (0..rows).fold(0, |total, row| total.saturating_add(product(row)))
}

fn totals<'a>(arguments: impl IntoIterator<Item = &'a ColumnarValue>, rows: usize) -> Result<u64> {
    arguments.into_iter().try_fold(0, |total: u64, argument| Ok(total.saturating_add(total_of(argument, rows)?)))
}

/// Returns how many groups a pattern has at most.
fn groups(pattern: &ColumnarValue, rows: usize) -> Result<u64> {
    Ok(match pattern {
        ColumnarValue::Scalar(pattern) => match pattern.try_as_str() {
            Some(Some(text)) => text.matches('(').count() as u64 + 1,
            _ => 1,
        },
        patterns => total_of(patterns, rows)?.max(1),
    })
}

/// Returns the bytes of lists from one number or time to another.
fn series(arguments: &[ColumnarValue], rows: usize) -> Result<u64> {
    let zero = ColumnarValue::Scalar(ScalarValue::Int64(Some(0)));
    let one = ColumnarValue::Scalar(ScalarValue::Int64(Some(1)));
    let (start, stop, step) = match arguments {
        [stop] => (&zero, stop, &one),
        [start, stop] => (start, stop, &one),
        [start, stop, step] => (start, stop, step),
        _ => return Ok(0),
    };
    let steps = steps(step)?;
    let (start_unit, stop_unit) = (unit(&start.data_type()), unit(&stop.data_type()));
    let (start, stop) = (integers(start)?, integers(stop)?);
    let bytes = |row| {
        let span = (i128::from(stop.at(row)) * stop_unit - i128::from(start.at(row)) * start_unit).unsigned_abs();
        let elements = span / u128::from(steps.count(row).max(1)) + 1;
        u64::try_from(elements).unwrap_or(u64::MAX).saturating_mul(ELEMENT_BYTES)
    };
    Ok((0..rows).fold(0, |total, row| total.saturating_add(bytes(row))))
}

/// Returns the nanoseconds in one unit of a time, or 1 for a number.
fn unit(data_type: &DataType) -> i128 {
    match data_type {
        DataType::Date32 => 86_400_000_000_000,
        DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _) => 1_000_000,
        DataType::Timestamp(TimeUnit::Second, _) => 1_000_000_000,
        DataType::Timestamp(TimeUnit::Microsecond, _) => 1_000,
        _ => 1,
    }
}
