//! Numbers and booleans as texts that say exactly the same.
//!
//! Integers keep every digit. Floats are written with as many digits as it takes to read the same
//! bits back. Booleans are `true` and `false`. Used by the Parquet writer, and by the engine for
//! columns of text that are given other values.

use std::{io::Write as _, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, StringArray},
    buffer::{Buffer, OffsetBuffer, ScalarBuffer},
    compute::cast,
    datatypes::{
        ArrowPrimitiveType, DataType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
        UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    },
};

use crate::{Error, Result};

/// How floats look that are whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Floats {
    /// So that they can be told from integers: `200.0`, `1e16`, `-0.0`, `NaN`, `inf`.
    Marked,
    /// As the integer that they are, with all digits of what 64 bits can hold: `200`,
    /// `10000000000000000`, `-0`, `NaN`, `+Inf`. The text of an integer is the same whether it was
    /// a float in between or not, which the log's replay needs (decision 023). A narrower float is
    /// taken for the `Float64` that it is.
    Plain,
}

/// Returns whether columns of a type are made texts.
pub(crate) fn becomes_text(data_type: &DataType) -> bool {
    data_type.is_integer() || data_type.is_floating() || *data_type == DataType::Boolean
}

/// Returns the values as texts; nulls stay nulls. The array's type is one that [`becomes_text`].
pub(crate) fn to_texts(array: &ArrayRef, floats: Floats) -> Result<ArrayRef> {
    let integer = |text: &mut NumberTexts| match array.data_type() {
        DataType::Int8 => text.of_integers::<Int8Type>(array),
        DataType::Int16 => text.of_integers::<Int16Type>(array),
        DataType::Int32 => text.of_integers::<Int32Type>(array),
        DataType::Int64 => text.of_integers::<Int64Type>(array),
        DataType::UInt8 => text.of_integers::<UInt8Type>(array),
        DataType::UInt16 => text.of_integers::<UInt16Type>(array),
        DataType::UInt32 => text.of_integers::<UInt32Type>(array),
        _ => text.of_integers::<UInt64Type>(array),
    };
    let mut texts = NumberTexts::with_capacity(array.len());
    match array.data_type() {
        data_type if data_type.is_integer() => integer(&mut texts)?,
        data_type if data_type.is_floating() && floats == Floats::Plain => {
            let wide = cast(array, &DataType::Float64)?;
            texts.of_values(wide.as_primitive::<Float64Type>().iter(), push_plain_float)?;
        }
        DataType::Float16 => {
            let array = array.as_primitive::<Float16Type>();
            texts.of_values(array.iter().map(|value| value.map(|value| value.to_f32())), push_float)?;
        }
        DataType::Float32 => texts.of_values(array.as_primitive::<Float32Type>().iter(), push_float)?,
        DataType::Float64 => texts.of_values(array.as_primitive::<Float64Type>().iter(), push_float)?,
        DataType::Boolean => texts.of_values(array.as_boolean().iter(), push_boolean)?,
        data_type => return Err(Error::internal(format!("no texts are made of {data_type}"))),
    }
    texts.finish(array)
}

/// Appends an integer.
pub(crate) fn push_integer(value: impl std::fmt::Display, out: &mut Vec<u8>) {
    // Writing to a vector does not fail.
    let _ = write!(out, "{value}");
}

/// Appends a float, [marked](Floats::Marked). The form for programmers is the shortest that reads
/// back the same, with a point or an exponent.
pub(crate) fn push_float(value: impl std::fmt::Debug, out: &mut Vec<u8>) {
    let _ = write!(out, "{value:?}");
}

/// Appends a float, [plain](Floats::Plain), with an exponent where it would be long.
#[expect(clippy::cast_possible_truncation, reason = "only whole numbers that fit")]
pub(crate) fn push_plain_float(value: f64, out: &mut Vec<u8>) {
    let is_long = !(1e-5..1e16).contains(&value.abs());
    let _ = match value {
        f64::INFINITY => out.write_all(b"+Inf"),
        f64::NEG_INFINITY => out.write_all(b"-Inf"),
        _ if value == 0.0 || value.is_nan() || !is_long => write!(out, "{value}"),
        _ if (I64_LEAST..U64_END).contains(&value) && value.fract() == 0.0 => write!(out, "{}", value as i128),
        _ => write!(out, "{value:e}"),
    };
}

/// The least `i64`, and what is just above the greatest `u64`.
const I64_LEAST: f64 = -9_223_372_036_854_775_808.0;
const U64_END: f64 = 18_446_744_073_709_551_616.0;

/// Appends a boolean.
pub(crate) fn push_boolean(value: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

struct NumberTexts {
    offsets: Vec<i32>,
    bytes: Vec<u8>,
}

impl NumberTexts {
    fn with_capacity(rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Self { offsets, bytes: Vec::new() }
    }

    fn of_integers<T: ArrowPrimitiveType>(&mut self, array: &ArrayRef) -> Result<()>
    where
        T::Native: std::fmt::Display,
    {
        self.of_values(array.as_primitive::<T>().iter(), push_integer)
    }

    fn of_values<V>(&mut self, values: impl Iterator<Item = Option<V>>, push: impl Fn(V, &mut Vec<u8>)) -> Result<()> {
        for value in values {
            if let Some(value) = value {
                push(value, &mut self.bytes);
            }
            let end = i32::try_from(self.bytes.len());
            self.offsets.push(end.map_err(|_| Error::internal("the texts of a piece take over 2 GiB"))?);
        }
        Ok(())
    }

    fn finish(self, array: &ArrayRef) -> Result<ArrayRef> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        let texts = StringArray::try_new(offsets, Buffer::from_vec(self.bytes), array.nulls().cloned())?;
        Ok(Arc::new(texts))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        BooleanArray, Float32Array, Float64Array, Int8Array, Int64Array, TimestampNanosecondArray, UInt64Array,
    };

    use super::*;

    #[test]
    fn texts_have_every_digit() {
        let cases: [(ArrayRef, &[Option<&str>]); 6] = [
            (
                Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(9_007_199_254_740_993), Some(0)])),
                &[Some("-9223372036854775808"), None, Some("9007199254740993"), Some("0")],
            ),
            (Arc::new(Int8Array::from(vec![-128, 127])), &[Some("-128"), Some("127")]),
            (Arc::new(UInt64Array::from(vec![u64::MAX])), &[Some("18446744073709551615")]),
            (
                Arc::new(Float64Array::from(vec![
                    Some(200.0),
                    Some(0.1 + 0.2),
                    Some(-0.0),
                    Some(1e300),
                    None,
                    Some(f64::NAN),
                    Some(f64::NEG_INFINITY),
                ])),
                &[
                    Some("200.0"),
                    Some("0.30000000000000004"),
                    Some("-0.0"),
                    Some("1e300"),
                    None,
                    Some("NaN"),
                    Some("-inf"),
                ],
            ),
            (Arc::new(Float32Array::from(vec![0.1, 16_777_216.0])), &[Some("0.1"), Some("16777216.0")]),
            (Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])), &[Some("true"), None, Some("false")]),
        ];
        for (array, expected) in cases {
            let texts = to_texts(&array, Floats::Marked).unwrap();
            let texts: Vec<Option<&str>> = texts.as_string::<i32>().iter().collect();
            assert_eq!(texts, expected);
        }
        let time: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![1]));
        assert!(!becomes_text(time.data_type()) && to_texts(&time, Floats::Marked).is_err());
    }

    #[test]
    fn plain_floats_look_like_the_integers_that_they_are() {
        let plain = |value: f64| {
            let mut text = Vec::new();
            push_plain_float(value, &mut text);
            String::from_utf8(text).unwrap()
        };
        for integer in [0, 1, -1, 1 << 53, -(1 << 53), 1 << 60, i64::MIN, 10_000_000_000_000_000] {
            assert_eq!(plain(integer as f64), integer.to_string());
        }
        let cases = [
            (0.1, "0.1"),
            (-0.0, "-0"),
            (1e-5, "0.00001"),
            (1e-6, "1e-6"),
            (1e19, "10000000000000000000"),
            (1e20, "1e20"),
            (-1e19, "-1e19"),
            (1e300, "1e300"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
        ];
        for (value, text) in cases {
            assert_eq!(plain(value), text);
        }
        let narrow: ArrayRef = Arc::new(Float32Array::from(vec![Some(0.1), None, Some(7.0)]));
        let texts = to_texts(&narrow, Floats::Plain).unwrap();
        let texts: Vec<Option<&str>> = texts.as_string::<i32>().iter().collect();
        assert_eq!(texts, [Some("0.10000000149011612"), None, Some("7")]);
    }

    proptest::proptest! {
        #[test]
        fn a_plain_float_reads_back_with_the_same_bits(bits: u64) {
            let value = f64::from_bits(bits);
            let mut text = Vec::new();
            push_plain_float(value, &mut text);
            let back: f64 = String::from_utf8(text).unwrap().parse().unwrap();
            proptest::prop_assert!(back.to_bits() == bits || value.is_nan());
        }

        #[test]
        fn an_integer_that_a_float_holds_has_one_text(integer: i64, shift in 0..63_u32) {
            let integer = integer >> shift;
            let mut text = Vec::new();
            push_plain_float(integer as f64, &mut text);
            if crate::buffer::Scalar::Integer(integer).exact_float().is_some() {
                proptest::prop_assert_eq!(String::from_utf8(text).unwrap(), integer.to_string());
            }
        }

        #[test]
        fn a_float_reads_back_with_the_same_bits(bits: u64) {
            let value = f64::from_bits(bits);
            let mut text = Vec::new();
            push_float(value, &mut text);
            let back: f64 = String::from_utf8(text).unwrap().parse().unwrap();
            proptest::prop_assert!(back.to_bits() == bits || value.is_nan());
        }
    }
}
