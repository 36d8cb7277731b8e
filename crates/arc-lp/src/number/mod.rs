//! Numbers of line protocol: exact or an error, never rounded silently out of range.
//!
//! No sign but `-`, no `_`, no hexadecimal, no NaN, no infinity: a value that cannot be written
//! back is refused (VictoriaMetrics and arc take some of these; InfluxDB 2 and 3 do not).

//!
//! Each function takes the bytes that *end* with the number, as many as there are, and its length:
//! the fast ways read whole words backwards from the end. What they do not cover takes the slow
//! way, which is also what they are tested against.

mod decimal;
mod swar;

use core::str;

use crate::error::ErrorKind;

/// Reads the last `length` bytes of `bytes` as `-?[0-9]+` in `i64`.
#[inline(always)]
pub(crate) fn signed(bytes: &[u8], length: usize) -> Result<i64, ErrorKind> {
    if let Some(value) = swar::last_digits(bytes, length)
        && let Ok(value) = i64::try_from(value)
    {
        return Ok(value);
    }
    signed_slow(last(bytes, length))
}

/// Reads the last `length` bytes of `bytes` as `[0-9]+` in `u64`.
#[inline(always)]
pub(crate) fn unsigned(bytes: &[u8], length: usize) -> Result<u64, ErrorKind> {
    match swar::last_digits(bytes, length) {
        Some(value) => Ok(value),
        None => unsigned_slow(last(bytes, length)),
    }
}

/// Reads the last `length` bytes of `bytes` as `-?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?`,
/// rounded to nearest even.
#[inline(always)]
pub(crate) fn float(bytes: &[u8], length: usize) -> Result<f64, ErrorKind> {
    let number = last(bytes, length);
    let is_negative = number.first() == Some(&b'-');
    let value = match length - usize::from(is_negative) {
        short @ ..=8 => swar::last_decimal(bytes, short),
        long => long_decimal(bytes, long),
    };
    match value.and_then(|(digits, places)| decimal::quotient(digits, places)) {
        Some(value) if is_negative => Ok(-value),
        Some(value) => Ok(value),
        None => float_slow(number),
    }
}

/// Digits with or without a point among the first eight bytes, at most 19 of them: all the digits
/// as one number, and how many stand after the point.
#[inline(always)]
fn long_decimal(bytes: &[u8], length: usize) -> Option<(u64, usize)> {
    let Some(whole) = swar::point_place(last(bytes, length)) else {
        return Some((swar::last_digits(bytes, length)?, 0));
    };
    let places = length - whole - 1;
    let behind = swar::last_digits(bytes, places)?;
    if whole == 0 {
        return Some((behind, places));
    }
    if whole + places > swar::MAX_DIGITS {
        return None;
    }
    let front = swar::last_digits(bytes.get(..bytes.len() - places - 1)?, whole)?;
    Some((front * POWERS.get(places)? + behind, places))
}

/// The powers of ten that fit a `u64`.
const POWERS: [u64; 20] = {
    let mut powers = [1; 20];
    let mut at = 1;
    while at < powers.len() {
        #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler, inside the bounds")]
        {
            powers[at] = powers[at - 1] * 10;
        }
        at += 1;
    }
    powers
};

/// The last `length` bytes.
#[inline(always)]
fn last(bytes: &[u8], length: usize) -> &[u8] {
    bytes.get(bytes.len().wrapping_sub(length)..).unwrap_or_default()
}

/// A sign, any number of digits, the ends of the range, and what is wrong.
#[cold]
fn signed_slow(bytes: &[u8]) -> Result<i64, ErrorKind> {
    match bytes {
        [b'-', digits @ ..] => 0_i64.checked_sub_unsigned(unsigned_slow(digits)?).ok_or(ErrorKind::ValueOutOfRange),
        digits => i64::try_from(unsigned_slow(digits)?).map_err(|_| ErrorKind::ValueOutOfRange),
    }
}

#[cold]
fn unsigned_slow(digits: &[u8]) -> Result<u64, ErrorKind> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(ErrorKind::ValueInvalid);
    }
    digits
        .iter()
        .try_fold(0_u64, |sum, &digit| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
        .ok_or(ErrorKind::ValueOutOfRange)
}

/// Exponents, more than 19 digits, and what is wrong.
#[cold]
fn float_slow(bytes: &[u8]) -> Result<f64, ErrorKind> {
    if !is_float(bytes) {
        return Err(ErrorKind::ValueInvalid);
    }
    let text = str::from_utf8(bytes).map_err(|_| ErrorKind::ValueInvalid)?;
    let value: f64 = text.parse().map_err(|_| ErrorKind::ValueInvalid)?;
    if value.is_finite() { Ok(value) } else { Err(ErrorKind::ValueOutOfRange) }
}

/// Whether `bytes` are a float by the grammar; `str::parse` takes more (`+1`, `inf`, `nan`).
fn is_float(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let (whole, rest) = split_digits(bytes);
    let (fraction, rest) = match rest {
        [b'.', rest @ ..] => split_digits(rest),
        _ => (&[][..], rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return false;
    }
    match rest {
        [] => true,
        [b'e' | b'E', b'+' | b'-', digits @ ..] | [b'e' | b'E', digits @ ..] => {
            let (digits, rest) = split_digits(digits);
            !digits.is_empty() && rest.is_empty()
        }
        _ => false,
    }
}

/// Splits the digits off the front.
fn split_digits(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len());
    bytes.split_at_checked(end).unwrap_or((bytes, &[]))
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use proptest::prelude::*;
    use std::format;

    /// Miri is slow, and cannot look for saved failures.
    pub(in crate::number) fn config(cases: u32) -> ProptestConfig {
        if cfg!(miri) {
            return ProptestConfig { cases: 10, failure_persistence: None, ..ProptestConfig::default() };
        }
        ProptestConfig::with_cases(cases)
    }

    /// Reads `written` alone, which leaves no room for the fast ways, and after other bytes.
    fn assert_ways<T: PartialEq + core::fmt::Debug>(
        written: &str,
        read: fn(&[u8], usize) -> Result<T, ErrorKind>,
        expected: Result<T, ErrorKind>,
    ) {
        for front in ["", "m f=", "m value=12345678901234567890.", "....................."] {
            let bytes = format!("{front}{written}");
            assert_eq!(read(bytes.as_bytes(), written.len()), expected, "{bytes}");
        }
    }

    fn float_bits(bytes: &[u8], length: usize) -> Result<u64, ErrorKind> {
        float(bytes, length).map(f64::to_bits)
    }

    #[test]
    fn integers_reach_both_ends_of_their_range_and_no_further() {
        let signed_cases = [
            ("0", Ok(0)),
            ("-0", Ok(0)),
            ("007", Ok(7)),
            ("9223372036854775807", Ok(i64::MAX)),
            ("9223372036854775808", Err(ErrorKind::ValueOutOfRange)),
            ("-9223372036854775808", Ok(i64::MIN)),
            ("-9223372036854775809", Err(ErrorKind::ValueOutOfRange)),
            ("99999999999999999999999", Err(ErrorKind::ValueOutOfRange)),
            ("0000000000000000000000001", Ok(1)),
            ("", Err(ErrorKind::ValueInvalid)),
            ("-", Err(ErrorKind::ValueInvalid)),
            ("--1", Err(ErrorKind::ValueInvalid)),
            ("+1", Err(ErrorKind::ValueInvalid)),
            ("1_000", Err(ErrorKind::ValueInvalid)),
            ("99999999999999999999999x", Err(ErrorKind::ValueInvalid)),
        ];
        for (written, expected) in signed_cases {
            assert_ways(written, signed, expected);
        }
        let unsigned_cases = [
            ("18446744073709551615", Ok(u64::MAX)),
            ("18446744073709551616", Err(ErrorKind::ValueOutOfRange)),
            ("-1", Err(ErrorKind::ValueInvalid)),
        ];
        for (written, expected) in unsigned_cases {
            assert_ways(written, unsigned, expected);
        }
    }

    #[test]
    fn floats_follow_the_grammar_and_are_finite() {
        for good in [
            "0",
            "-0",
            "1.",
            ".5",
            "-.5",
            "5.e2",
            "1e6",
            "1E+6",
            "2.5e-3",
            "0.1",
            "1e-400",
            "1.7976931348623157e308",
            "123456789012345678901234567890",
        ] {
            let expected: f64 = good.parse().unwrap();
            assert_ways(good, float_bits, Ok(expected.to_bits()));
        }
        for bad in [
            "", "-", ".", "-.", "e5", ".e5", "1e", "1e+", "+1", "--1", "1.2.3", "1e5.", "NaN", "inf", "Infinity",
            "0x10", "1_0", "1 ", "1e5x",
        ] {
            assert_ways(bad, float, Err(ErrorKind::ValueInvalid));
        }
        for big in ["1e400", "-1e400", "1.8e308"] {
            assert_ways(big, float, Err(ErrorKind::ValueOutOfRange));
        }
    }

    proptest! {
        #![proptest_config(config(5_000))]

        #[test]
        fn floats_are_what_the_standard_library_says(
            written in prop_oneof![
                "-?[0-9]{0,9}(\\.[0-9]{0,21})?",
                "-?[0-9]{1,25}(\\.[0-9]{0,25})?([eE][+-]?[0-9]{1,3})?",
                any::<f64>().prop_map(|value| format!("{value}")),
                (-1e6..1e6).prop_map(|value: f64| format!("{value}")),
                (0.0..1.0).prop_map(|value: f64| format!("{value}")),
                "[0-9.eE+-]{1,12}",
            ],
        ) {
            let expected = float_slow(written.as_bytes()).map(f64::to_bits);
            assert_ways(&written, float_bits, expected);
        }

        #[test]
        fn integers_are_what_the_standard_library_says(written in "-?[0-9]{0,22}.?[0-9]{0,9}") {
            assert_ways(&written, signed, signed_slow(written.as_bytes()));
            assert_ways(&written, unsigned, unsigned_slow(written.as_bytes()));
        }
    }
}
