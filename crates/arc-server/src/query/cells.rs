//! Arrow values as JSON values, one writer for each column.
//!
//! A column's type is looked at once for each batch; after that each cell is one call. Integers and floats are numbers
//! without exponent, NaN and infinities null, decimals numbers with all their digits, times RFC 3339 in UTC, bytes
//! lower-case hexadecimal, lists and structs what they are in JSON; whatever JSON has no form for is Arrow's text.

use std::{fmt::Display, io::Write as _};

use arrow::{
    array::{
        AnyDictionaryArray, Array, ArrowPrimitiveType, AsArray, FixedSizeListArray, GenericListArray, MapArray,
        OffsetSizeTrait, PrimitiveArray, StructArray,
    },
    datatypes::{
        DataType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType,
        Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit,
        TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type,
        UInt16Type, UInt32Type, UInt64Type,
    },
    error::ArrowError,
    util::display::{ArrayFormatter, FormatOptions},
};

use crate::timestamp;

/// Writes the value of one row of one column.
pub(super) type Cell<'a> = Box<dyn Fn(usize, &mut Vec<u8>) + 'a>;

/// How times are written, which are all in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeForm {
    /// `2026-01-31T12:00:00.5Z`.
    Zoned,
    /// `2026-01-31T12:00:00.500000000Z`: with as many digits as the column's unit has, for readers that expect one form in
    /// a column.
    Padded,
    /// `2026-01-31T12:00:00.500`, as InfluxDB 3 does.
    Bare,
}

impl TimeForm {
    fn write(self, out: &mut Vec<u8>, seconds: i64, nanoseconds: u32, per_second: i64) {
        match self {
            Self::Zoned => timestamp::write(out, seconds, nanoseconds),
            Self::Padded => timestamp::write_padded(out, seconds, nanoseconds, per_second.ilog10()),
            Self::Bare => timestamp::write_bare(out, seconds, nanoseconds),
        }
    }
}

/// Returns what writes the values of `array`.
pub(super) fn cell(array: &dyn Array, times: TimeForm) -> Result<Cell<'_>, ArrowError> {
    let value = value(array, times)?;
    // Logical nulls: those of a dictionary's values count as well.
    let Some(nulls) = array.logical_nulls().filter(|nulls| nulls.null_count() > 0) else { return Ok(value) };
    Ok(Box::new(move |row, out| {
        if nulls.is_null(row) {
            out.extend_from_slice(b"null");
        } else {
            value(row, out);
        }
    }))
}

/// Returns what writes the values of `array` where they are not null.
fn value(array: &dyn Array, times: TimeForm) -> Result<Cell<'_>, ArrowError> {
    Ok(match array.data_type() {
        DataType::Null => Box::new(|_, out| out.extend_from_slice(b"null")),
        DataType::Boolean => {
            let array = array.as_boolean();
            Box::new(|row, out| out.extend_from_slice(if array.value(row) { b"true" } else { b"false" }))
        }
        DataType::Int8 => number(array.as_primitive::<Int8Type>()),
        DataType::Int16 => number(array.as_primitive::<Int16Type>()),
        DataType::Int32 => number(array.as_primitive::<Int32Type>()),
        DataType::Int64 => number(array.as_primitive::<Int64Type>()),
        DataType::UInt8 => number(array.as_primitive::<UInt8Type>()),
        DataType::UInt16 => number(array.as_primitive::<UInt16Type>()),
        DataType::UInt32 => number(array.as_primitive::<UInt32Type>()),
        DataType::UInt64 => number(array.as_primitive::<UInt64Type>()),
        DataType::Float16 => float(array.as_primitive::<Float16Type>(), |v| v.to_f32().is_finite()),
        DataType::Float32 => float(array.as_primitive::<Float32Type>(), f32::is_finite),
        DataType::Float64 => float(array.as_primitive::<Float64Type>(), f64::is_finite),
        DataType::Decimal32(..) => decimal(array.as_primitive::<Decimal32Type>()),
        DataType::Decimal64(..) => decimal(array.as_primitive::<Decimal64Type>()),
        DataType::Decimal128(..) => decimal(array.as_primitive::<Decimal128Type>()),
        DataType::Decimal256(..) => decimal(array.as_primitive::<Decimal256Type>()),
        DataType::Utf8 => text(array.as_string::<i32>()),
        DataType::LargeUtf8 => text(array.as_string::<i64>()),
        DataType::Utf8View => text(array.as_string_view()),
        DataType::Binary => bytes(array.as_binary::<i32>()),
        DataType::LargeBinary => bytes(array.as_binary::<i64>()),
        DataType::BinaryView => bytes(array.as_binary_view()),
        DataType::FixedSizeBinary(_) => bytes(array.as_fixed_size_binary()),
        DataType::Timestamp(TimeUnit::Second, _) => moment(array.as_primitive::<TimestampSecondType>(), times, 1),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            moment(array.as_primitive::<TimestampMillisecondType>(), times, 1_000)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            moment(array.as_primitive::<TimestampMicrosecondType>(), times, 1_000_000)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            moment(array.as_primitive::<TimestampNanosecondType>(), times, 1_000_000_000)
        }
        DataType::Date32 => {
            let array = array.as_primitive::<Date32Type>();
            Box::new(move |row, out| quoted(out, |out| times.write(out, i64::from(array.value(row)) * 86_400, 0, 1)))
        }
        DataType::Date64 => moment(array.as_primitive::<Date64Type>(), times, 1_000),
        DataType::Dictionary(..) => {
            let array = array.as_any_dictionary();
            dictionary(array, cell(array.values(), times)?)
        }
        DataType::List(_) => list(array.as_list::<i32>(), times)?,
        DataType::LargeList(_) => list(array.as_list::<i64>(), times)?,
        DataType::FixedSizeList(..) => fixed_size_list(array.as_fixed_size_list(), times)?,
        DataType::Struct(_) => structure(array.as_struct(), times)?,
        DataType::Map(..) => map(array.as_map(), times)?,
        _ => arrow_text(array)?,
    })
}

fn number<T>(array: &PrimitiveArray<T>) -> Cell<'_>
where
    T: ArrowPrimitiveType<Native: Display>,
{
    Box::new(|row, out| display(out, array.value(row)))
}

fn float<T>(array: &PrimitiveArray<T>, is_finite: fn(T::Native) -> bool) -> Cell<'_>
where
    T: ArrowPrimitiveType<Native: Display>,
{
    Box::new(move |row, out| {
        let value = array.value(row);
        if is_finite(value) { display(out, value) } else { out.extend_from_slice(b"null") }
    })
}

fn decimal<T: DecimalType>(array: &PrimitiveArray<T>) -> Cell<'_> {
    Box::new(|row, out| {
        let digits = array.value_as_string(row);
        // Arrow shows zero with as many digits as a negative scale leaves out, and JSON has no such number.
        let is_zero = digits.bytes().all(|digit| digit == b'0');
        out.extend_from_slice(if is_zero { b"0" } else { digits.as_bytes() });
    })
}

fn moment<T: ArrowPrimitiveType<Native = i64>>(
    array: &PrimitiveArray<T>,
    times: TimeForm,
    per_second: i64,
) -> Cell<'_> {
    Box::new(move |row, out| {
        let (seconds, nanoseconds) = timestamp::split(array.value(row), per_second);
        quoted(out, |out| times.write(out, seconds, nanoseconds, per_second));
    })
}

fn text<'a>(array: impl arrow::array::ArrayAccessor<Item = &'a str> + 'a) -> Cell<'a> {
    Box::new(move |row, out| string(array.value(row), out))
}

fn bytes<'a>(array: impl arrow::array::ArrayAccessor<Item = &'a [u8]> + 'a) -> Cell<'a> {
    Box::new(move |row, out| {
        quoted(out, |out| {
            for byte in array.value(row) {
                out.extend_from_slice(&hex(*byte));
            }
        });
    })
}

/// Returns what writes the values of a dictionary, of which `values` writes each value.
///
/// A dictionary without values has rows that are null, and nothing else: the other side of an outer
/// join without a partner, a tag that no row of a batch has.
pub(super) fn dictionary<'a>(array: &'a dyn AnyDictionaryArray, values: Cell<'a>) -> Cell<'a> {
    #[expect(clippy::disallowed_methods, reason = "there are values")]
    let keys = if array.values().is_empty() { Vec::new() } else { array.normalized_keys() };
    Box::new(move |row, out| {
        if let Some(key) = keys.get(row) {
            values(*key, out);
        }
    })
}

fn list<O: OffsetSizeTrait>(array: &GenericListArray<O>, times: TimeForm) -> Result<Cell<'_>, ArrowError> {
    let values = cell(array.values().as_ref(), times)?;
    Ok(Box::new(move |row, out| {
        let mut bounds = array.value_offsets().iter().skip(row).map(|offset| offset.as_usize());
        items(out, bounds.next().unwrap_or(0)..bounds.next().unwrap_or(0), &values);
    }))
}

fn fixed_size_list(array: &FixedSizeListArray, times: TimeForm) -> Result<Cell<'_>, ArrowError> {
    let values = cell(array.values().as_ref(), times)?;
    let length = usize::try_from(array.value_length()).unwrap_or_default();
    Ok(Box::new(move |row, out| items(out, row * length..(row + 1) * length, &values)))
}

fn items(out: &mut Vec<u8>, rows: std::ops::Range<usize>, values: &Cell<'_>) {
    out.push(b'[');
    for (i, row) in rows.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        values(row, out);
    }
    out.push(b']');
}

fn structure(array: &StructArray, times: TimeForm) -> Result<Cell<'_>, ArrowError> {
    let fields: Vec<(&str, Cell<'_>)> = array
        .fields()
        .iter()
        .zip(array.columns())
        .map(|(field, column)| Ok((field.name().as_str(), cell(column.as_ref(), times)?)))
        .collect::<Result<_, ArrowError>>()?;
    Ok(Box::new(move |row, out| {
        out.push(b'{');
        for (i, (name, value)) in fields.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            string(name, out);
            out.push(b':');
            value(row, out);
        }
        out.push(b'}');
    }))
}

fn map(array: &MapArray, times: TimeForm) -> Result<Cell<'_>, ArrowError> {
    // JSON has only text for keys.
    let keys = arrow_text(array.keys().as_ref())?;
    let values = cell(array.values().as_ref(), times)?;
    Ok(Box::new(move |row, out| {
        let mut bounds = array.value_offsets().iter().skip(row).filter_map(|offset| usize::try_from(*offset).ok());
        out.push(b'{');
        for (i, entry) in (bounds.next().unwrap_or(0)..bounds.next().unwrap_or(0)).enumerate() {
            if i > 0 {
                out.push(b',');
            }
            keys(entry, out);
            out.push(b':');
            values(entry, out);
        }
        out.push(b'}');
    }))
}

/// Writes the text that Arrow itself has for a value.
fn arrow_text(array: &dyn Array) -> Result<Cell<'_>, ArrowError> {
    let formatter = ArrayFormatter::try_new(array, &FormatOptions::default())?;
    Ok(Box::new(move |row, out| string(&formatter.value(row).to_string(), out)))
}

fn display(out: &mut Vec<u8>, value: impl Display) {
    // Writing to a vector cannot fail.
    let _ = write!(out, "{value}");
}

fn quoted(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'"');
    write(out);
    out.push(b'"');
}

/// Writes a JSON string.
pub(super) fn string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    // Runs without anything to escape, which most strings are as a whole, are copied at once.
    while let Some(at) = rest.iter().position(|byte| matches!(byte, 0..0x20 | b'"' | b'\\')) {
        let (run, tail) = rest.split_at(at);
        out.extend_from_slice(run);
        if let Some((byte, tail)) = tail.split_first() {
            escape(*byte, out);
            rest = tail;
        }
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

fn escape(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
        _ => {
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&hex(byte));
        }
    }
}

fn hex(byte: u8) -> [u8; 2] {
    let digit = |nibble: u8| if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
    [digit(byte >> 4), digit(byte & 15)]
}

#[cfg(test)]
mod tests;
