//! Numbers of line protocol: exact or an error, never rounded silently out of range.
//!
//! No sign but `-`, no `_`, no hexadecimal, no NaN, no infinity: a value that cannot be written back
//! is refused (VictoriaMetrics and arc take some of these; InfluxDB 2 and 3 do not).

use core::str;

use crate::error::ErrorKind;

/// Reads `-?[0-9]+` as `i64`.
#[inline]
pub(crate) fn signed(bytes: &[u8]) -> Result<i64, ErrorKind> {
    match bytes {
        [b'-', digits @ ..] => 0_i64
            .checked_sub_unsigned(unsigned(digits)?)
            .ok_or(ErrorKind::ValueOutOfRange),
        digits => i64::try_from(unsigned(digits)?).map_err(|_| ErrorKind::ValueOutOfRange),
    }
}

/// Reads `[0-9]+` as `u64`.
#[inline]
pub(crate) fn unsigned(digits: &[u8]) -> Result<u64, ErrorKind> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(ErrorKind::ValueInvalid);
    }
    digits
        .iter()
        .try_fold(0_u64, |sum, &digit| {
            sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
        })
        .ok_or(ErrorKind::ValueOutOfRange)
}

/// Reads `-?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?`, rounded to nearest even.
#[inline]
pub(crate) fn float(bytes: &[u8]) -> Result<f64, ErrorKind> {
    if !is_float(bytes) {
        return Err(ErrorKind::ValueInvalid);
    }
    let text = str::from_utf8(bytes).map_err(|_| ErrorKind::ValueInvalid)?;
    let value: f64 = text.parse().map_err(|_| ErrorKind::ValueInvalid)?;
    if value.is_finite() {
        Ok(value)
    } else {
        Err(ErrorKind::ValueOutOfRange)
    }
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
    let end = bytes
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(bytes.len());
    bytes.split_at_checked(end).unwrap_or((bytes, &[]))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(signed(written.as_bytes()), expected, "{written}");
        }
        let unsigned_cases = [
            ("18446744073709551615", Ok(u64::MAX)),
            ("18446744073709551616", Err(ErrorKind::ValueOutOfRange)),
            ("-1", Err(ErrorKind::ValueInvalid)),
        ];
        for (written, expected) in unsigned_cases {
            assert_eq!(unsigned(written.as_bytes()), expected, "{written}");
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
            assert_eq!(
                float(good.as_bytes()).map(f64::to_bits),
                Ok(expected.to_bits()),
                "{good}"
            );
        }
        for bad in [
            "", "-", ".", "-.", "e5", ".e5", "1e", "1e+", "+1", "--1", "1.2.3", "1e5.", "NaN",
            "inf", "Infinity", "0x10", "1_0", "1 ", "1e5x",
        ] {
            assert_eq!(float(bad.as_bytes()), Err(ErrorKind::ValueInvalid), "{bad}");
        }
        for big in ["1e400", "-1e400", "1.8e308"] {
            assert_eq!(
                float(big.as_bytes()),
                Err(ErrorKind::ValueOutOfRange),
                "{big}"
            );
        }
    }
}
