//! Arrow values as MessagePack values, one writer for each column.
//!
//! Each type has one form, whatever its value: integers take the width of their type, times are timestamps (extension -1),
//! bytes are bytes, decimals are integers where they have no fraction and fit, else floats, and what is nested is the text of
//! its JSON.

use arrow::{
    array::{Array, ArrayAccessor, ArrowPrimitiveType, AsArray, PrimitiveArray},
    compute::cast,
    datatypes::{
        DataType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType,
        Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit,
        TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type,
        UInt16Type, UInt32Type, UInt64Type,
    },
    error::ArrowError,
};

use super::cells::{self, Cell, TimeForm};
use crate::timestamp;

const NIL: u8 = 0xc0;
pub(super) const FALSE: u8 = 0xc2;
pub(super) const TRUE: u8 = 0xc3;
const FLOAT64: u8 = 0xcb;
const INT64: u8 = 0xd3;

/// Returns what writes the values of `array`.
pub(super) fn cell(array: &dyn Array) -> Result<Cell<'_>, ArrowError> {
    let value = value(array)?;
    let Some(nulls) = array.logical_nulls().filter(|nulls| nulls.null_count() > 0) else { return Ok(value) };
    Ok(Box::new(move |row, out| {
        if nulls.is_null(row) {
            out.push(NIL);
        } else {
            value(row, out);
        }
    }))
}

fn value(array: &dyn Array) -> Result<Cell<'_>, ArrowError> {
    Ok(match array.data_type() {
        DataType::Null => Box::new(|_, out| out.push(NIL)),
        DataType::Boolean => {
            let array = array.as_boolean();
            Box::new(|row, out| out.push(if array.value(row) { TRUE } else { FALSE }))
        }
        DataType::Int8 => number(array.as_primitive::<Int8Type>(), 0xd0, i8::to_be_bytes),
        DataType::Int16 => number(array.as_primitive::<Int16Type>(), 0xd1, i16::to_be_bytes),
        DataType::Int32 => number(array.as_primitive::<Int32Type>(), 0xd2, i32::to_be_bytes),
        DataType::Int64 => number(array.as_primitive::<Int64Type>(), INT64, i64::to_be_bytes),
        DataType::UInt8 => number(array.as_primitive::<UInt8Type>(), 0xcc, u8::to_be_bytes),
        DataType::UInt16 => number(array.as_primitive::<UInt16Type>(), 0xcd, u16::to_be_bytes),
        DataType::UInt32 => number(array.as_primitive::<UInt32Type>(), 0xce, u32::to_be_bytes),
        DataType::UInt64 => number(array.as_primitive::<UInt64Type>(), 0xcf, u64::to_be_bytes),
        DataType::Float16 => number(array.as_primitive::<Float16Type>(), 0xca, |v| v.to_f32().to_be_bytes()),
        DataType::Float32 => number(array.as_primitive::<Float32Type>(), 0xca, f32::to_be_bytes),
        DataType::Float64 => number(array.as_primitive::<Float64Type>(), FLOAT64, f64::to_be_bytes),
        DataType::Utf8 => strings(array.as_string::<i32>()),
        DataType::LargeUtf8 => strings(array.as_string::<i64>()),
        DataType::Utf8View => strings(array.as_string_view()),
        DataType::Binary => bytes(array.as_binary::<i32>()),
        DataType::LargeBinary => bytes(array.as_binary::<i64>()),
        DataType::BinaryView => bytes(array.as_binary_view()),
        DataType::FixedSizeBinary(_) => bytes(array.as_fixed_size_binary()),
        DataType::Decimal32(_, scale) => decimal::<Decimal32Type>(array, *scale)?,
        DataType::Decimal64(_, scale) => decimal::<Decimal64Type>(array, *scale)?,
        DataType::Decimal128(_, scale) => decimal::<Decimal128Type>(array, *scale)?,
        DataType::Decimal256(_, scale) => decimal::<Decimal256Type>(array, *scale)?,
        DataType::Dictionary(..) => {
            let array = array.as_any_dictionary();
            cells::dictionary(array, cell(array.values())?)
        }
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => moments(array)?,
        _ => text_of(array)?,
    })
}

/// Returns what writes times and dates.
fn moments(array: &dyn Array) -> Result<Cell<'_>, ArrowError> {
    Ok(match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => moment(array.as_primitive::<TimestampSecondType>(), 1),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            moment(array.as_primitive::<TimestampMillisecondType>(), 1_000)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            moment(array.as_primitive::<TimestampMicrosecondType>(), 1_000_000)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            moment(array.as_primitive::<TimestampNanosecondType>(), 1_000_000_000)
        }
        DataType::Date64 => moment(array.as_primitive::<Date64Type>(), 1_000),
        DataType::Date32 => {
            let array = array.as_primitive::<Date32Type>();
            Box::new(|row, out| timestamp(out, i64::from(array.value(row)) * 86_400, 0))
        }
        _ => text_of(array)?,
    })
}

fn number<T: ArrowPrimitiveType, const N: usize>(
    array: &PrimitiveArray<T>,
    mark: u8,
    bytes: fn(T::Native) -> [u8; N],
) -> Cell<'_> {
    Box::new(move |row, out| {
        out.push(mark);
        out.extend_from_slice(&bytes(array.value(row)));
    })
}

fn moment<T: ArrowPrimitiveType<Native = i64>>(array: &PrimitiveArray<T>, per_second: i64) -> Cell<'_> {
    Box::new(move |row, out| {
        let (seconds, nanoseconds) = timestamp::split(array.value(row), per_second);
        timestamp(out, seconds, nanoseconds);
    })
}

fn strings<'a>(array: impl ArrayAccessor<Item = &'a str> + 'a) -> Cell<'a> {
    Box::new(move |row, out| text(out, array.value(row)))
}

fn bytes<'a>(array: impl ArrayAccessor<Item = &'a [u8]> + 'a) -> Cell<'a> {
    Box::new(move |row, out| {
        let value = array.value(row);
        match u8::try_from(value.len()) {
            Ok(length) => out.extend_from_slice(&[0xc4, length]),
            Err(_) => long(out, 0xc5, value.len()),
        }
        out.extend_from_slice(value);
    })
}

/// Integers that fit are integers; everything else is the nearest float.
fn decimal<'a, T: DecimalType>(array: &'a dyn Array, scale: i8) -> Result<Cell<'a>, ArrowError> {
    let decimals = array.as_primitive::<T>();
    let floats = cast(array, &DataType::Float64)?;
    Ok(Box::new(move |row, out| {
        let integer = if scale == 0 { decimals.value_as_string(row).parse::<i64>().ok() } else { None };
        match integer {
            Some(integer) => {
                out.push(INT64);
                out.extend_from_slice(&integer.to_be_bytes());
            }
            None => {
                out.push(FLOAT64);
                out.extend_from_slice(&floats.as_primitive::<Float64Type>().value(row).to_be_bytes());
            }
        }
    }))
}

/// Returns what writes the JSON of values as text; that of a text without its quotes.
fn text_of(array: &dyn Array) -> Result<Cell<'_>, ArrowError> {
    let json = cells::cell(array, TimeForm::Zoned)?;
    Ok(Box::new(move |row, out| {
        let mut scratch = Vec::with_capacity(32);
        json(row, &mut scratch);
        let plain = scratch.strip_prefix(b"\"").and_then(|json| json.strip_suffix(b"\"")).unwrap_or(&scratch);
        text(out, &String::from_utf8_lossy(plain));
    }))
}

/// Writes a time in the shortest of its three forms.
fn timestamp(out: &mut Vec<u8>, seconds: i64, nanoseconds: u32) {
    let short = u32::try_from(seconds).ok().filter(|_| nanoseconds == 0);
    let packed = u64::try_from(seconds).ok().filter(|seconds| *seconds < 1 << 34);
    match (short, packed) {
        (Some(seconds), _) => {
            out.extend_from_slice(&[0xd6, 0xff]);
            out.extend_from_slice(&seconds.to_be_bytes());
        }
        (None, Some(seconds)) => {
            out.extend_from_slice(&[0xd7, 0xff]);
            out.extend_from_slice(&(u64::from(nanoseconds) << 34 | seconds).to_be_bytes());
        }
        (None, None) => {
            out.extend_from_slice(&[0xc7, 12, 0xff]);
            out.extend_from_slice(&nanoseconds.to_be_bytes());
            out.extend_from_slice(&seconds.to_be_bytes());
        }
    }
}

/// Writes a text.
pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    match u8::try_from(text.len()) {
        Ok(length) if length < 32 => out.push(0xa0 | length),
        Ok(length) => out.extend_from_slice(&[0xd9, length]),
        Err(_) => long(out, 0xda, text.len()),
    }
    out.extend_from_slice(text.as_bytes());
}

/// Begins a list.
pub(super) fn array(out: &mut Vec<u8>, length: u32) {
    match u8::try_from(length) {
        Ok(length) if length < 16 => out.push(0x90 | length),
        _ => long(out, 0xdc, usize::try_from(length).unwrap_or(usize::MAX)),
    }
}

/// Begins a map of less than 16 keys.
pub(super) fn map(out: &mut Vec<u8>, keys: u8) {
    out.push(0x80 | keys);
}

/// Writes a number, of eight bytes.
pub(super) fn unsigned(out: &mut Vec<u8>, number: u64) {
    out.push(0xcf);
    out.extend_from_slice(&number.to_be_bytes());
}

/// Writes a length of two bytes behind `mark`, or of four behind the one after it. No array of Arrow holds longer values.
fn long(out: &mut Vec<u8>, mark: u8, length: usize) {
    match u16::try_from(length) {
        Ok(length) => {
            out.push(mark);
            out.extend_from_slice(&length.to_be_bytes());
        }
        Err(_) => {
            out.push(mark + 1);
            out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests;
