//! Times as text has them: RFC 3339 and its relatives, or numbers in a unit that is declared or
//! guessed.

use arrow::compute::kernels::cast_utils::string_to_timestamp_nanos;

use crate::Precision;

/// Reads the times of one file.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeReader {
    /// Of numbers; guessed by the first one if the import does not say it.
    unit: Option<Precision>,
}

impl TimeReader {
    pub(super) fn new(unit: Option<Precision>) -> Self {
        Self { unit }
    }

    /// Returns the unit of numbers, once it is known.
    pub(super) fn unit(self) -> Option<Precision> {
        self.unit
    }

    /// Returns the nanoseconds since the epoch; the error says what was expected.
    pub(super) fn read(&mut self, text: &str) -> Result<i64, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("the time is missing".to_owned());
        }
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let out_of_range = || format!("the time {text:?} is outside the range of 64-bit nanoseconds");
        if !is_integer(whole) || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            let unknown = || format!("{text:?} is no time; expected RFC 3339, YYYY-MM-DD hh:mm:ss, or a number");
            return string_to_timestamp_nanos(text).map_err(|_| unknown());
        }
        let number: i64 = whole.parse().map_err(|_| out_of_range())?;
        let unit = self.unit.get_or_insert(Precision::of_magnitude(number)).nanoseconds();
        let rest = below_one(fraction, unit);
        let rest = if whole.starts_with('-') { -rest } else { rest };
        number.checked_mul(unit).and_then(|time| time.checked_add(rest)).ok_or_else(out_of_range)
    }
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the nanoseconds of a decimal fraction of a unit; what is below a nanosecond is cut off.
fn below_one(fraction: &str, unit: i64) -> i64 {
    let (mut sum, mut place) = (0_i128, i128::from(unit) * 1_000_000_000);
    for digit in fraction.bytes().take(18) {
        place /= 10;
        sum += place * i128::from(digit - b'0');
    }
    i64::try_from(sum / 1_000_000_000).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn times_are_read_exactly_or_not_at_all() {
        let at = 1_700_000_000 * SECOND;
        let cases = [
            (None, "1700000000", Some(at)),
            (None, "1700000000123", Some(at + 123_000_000)),
            (None, "1700000000123456", Some(at + 123_456_000)),
            (None, "1700000000123456789", Some(at + 123_456_789)),
            (None, "1700000000.5", Some(at + 500_000_000)),
            (None, "-1.000000001", Some(-SECOND - 1)),
            (None, "-0.25", Some(-250_000_000)),
            (Some(Precision::Millisecond), "1700000000", Some(1_700_000_000_000_000)),
            (Some(Precision::Nanosecond), "7", Some(7)),
            (Some(Precision::Hour), "1.5", Some(5_400 * SECOND)),
            (None, "2023-11-14T22:13:20Z", Some(at)),
            (None, "2023-11-14 22:13:20", Some(at)),
            (None, "2023-11-14T23:13:20.000000001+01:00", Some(at + 1)),
            (None, " 2023-11-14 ", Some(at - 80_000 * SECOND)),
            (None, "", None),
            (None, "soon", None),
            (None, "1.2.3", None),
            (None, "9999-01-01T00:00:00Z", None),
            (Some(Precision::Second), "9223372036854775807", None),
            (None, "99999999999999999999", None),
        ];
        for (unit, text, expected) in cases {
            assert_eq!(TimeReader::new(unit).read(text).ok(), expected, "{unit:?} {text}");
        }
    }

    #[test]
    fn the_first_number_decides_the_unit_of_all() {
        let mut reader = TimeReader::new(None);
        assert_eq!(reader.read("10000000000"), Ok(10_000_000 * SECOND));
        assert_eq!(reader.read("5"), Ok(5_000_000));
    }
}
