//! Times that are numbers: units since 1970, or dates in digits.

use std::fmt;

use super::{
    calendar::{CalendarTime, TimeOfDay, at},
    format::year,
    out_of_range,
};
use crate::Precision;

/// What the numbers of a file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::import) enum NumberForm {
    /// Units since 1970.
    Epoch(Precision),
    /// Digits of a date, and so many of them: `2024`, `202401`, `20240131`, `202401311200`,
    /// `20240131120000`.
    Digits(usize),
    /// Years with a fraction.
    Years,
}

/// How many digits dates have.
const DIGITS: [usize; 5] = [4, 6, 8, 12, 14];
const YEAR_NS: i64 = 31_556_952 * 1_000_000_000;

impl NumberForm {
    /// Decides by some numbers, nothing if there are none; the error says what they may be.
    pub(super) fn decide<'t>(numbers: impl Iterator<Item = &'t str> + Clone) -> Result<Option<Self>, String> {
        let Some(first) = numbers.clone().next() else { return Ok(None) };
        let wholes = numbers.clone().filter_map(|text| text.split('.').next()?.parse::<i64>().ok());
        let largest = wholes.map(i64::unsigned_abs).max().unwrap_or_default();
        let epoch = Self::Epoch(Precision::of_magnitude(i64::try_from(largest).unwrap_or(i64::MAX)));
        let count = numbers.clone().count();
        let mut forms = DIGITS.map(Self::Digits).into_iter().chain([epoch]);
        let fitting = |form: &Self| {
            let fits = numbers.clone().filter(|text| form.read(text).is_ok_and(|time| form.is_likely(time)));
            fits.count() * 2 >= count
        };
        forms.find(fitting).map(Some).ok_or_else(|| unexplained(first))
    }

    /// Returns whether a number that no one has explained is meant as this time. What is near 1970
    /// counts something else, and dates of digits are far from it.
    fn is_likely(self, time: i64) -> bool {
        match self {
            Self::Epoch(_) => {
                (-70 * YEAR_NS..-10 * YEAR_NS).contains(&time) || (10 * YEAR_NS..230 * YEAR_NS).contains(&time)
            }
            Self::Digits(_) | Self::Years => true,
        }
    }

    /// Returns the nanoseconds since the epoch.
    pub(super) fn read(self, text: &str) -> Result<i64, String> {
        match self {
            Self::Epoch(unit) => scaled(text, unit.nanoseconds(), 0),
            Self::Digits(count) => {
                digits(text, count).ok_or_else(|| format!("{text:?} has not the {self}, as others do"))
            }
            Self::Years => year(text).ok_or_else(|| out_of_range(text)),
        }
    }
}

impl fmt::Display for NumberForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self {
            Self::Epoch(Precision::Nanosecond) => "nanoseconds",
            Self::Epoch(Precision::Microsecond) => "microseconds",
            Self::Epoch(Precision::Millisecond) => "milliseconds",
            Self::Epoch(Precision::Second) => "seconds",
            Self::Epoch(Precision::Minute) => "minutes",
            Self::Epoch(Precision::Hour) => "hours",
            Self::Digits(count) => {
                return write!(f, "digits of {}", "YYYYMMDDhhmmss".get(..*count).unwrap_or_default());
            }
            Self::Years => return f.write_str("years"),
        };
        write!(f, "{unit} since 1970")
    }
}

/// Says that a number may be one thing or the other.
pub(super) fn unexplained(text: &str) -> String {
    format!(
        "{text:?} may be a date, a year or a count of days or seconds; say which: precision (s, ms, us, ns) for a time \
         since 1970, or time_format (excel, julian, ordinal, year, or a pattern like %Y%m%d)"
    )
}

/// Returns whether a text is a number without an exponent.
pub(super) fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    !whole.is_empty() && whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit())
}

fn digits(text: &str, count: usize) -> Option<i64> {
    if text.len() != count || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part =
        |from: usize, to: usize, otherwise: u32| text.get(from..to).map_or(Some(otherwise), |part| part.parse().ok());
    let date = (part(0, 4, 0)?, part(4, 6, 1)?, part(6, 8, 1)?);
    let clock = TimeOfDay { hour: part(8, 10, 0)?, minute: part(10, 12, 0)?, second: part(12, 14, 0)?, nanosecond: 0 };
    match at(date, clock, 0) {
        CalendarTime::Time(time) => Some(time),
        _ => None,
    }
}

/// Reads a decimal number of units that begins `before` half units before 1970; what is below a nanosecond is cut off.
pub(super) fn scaled(text: &str, unit: i64, before: i64) -> Result<i64, String> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let number: i64 = whole.parse().map_err(|_| out_of_range(text))?;
    let (mut sum, mut place) = (0_i128, i128::from(unit) * 1_000_000_000);
    for digit in fraction.bytes().take(18) {
        place /= 10;
        sum += place * i128::from(digit - b'0');
    }
    let rest = sum / 1_000_000_000;
    let rest = if whole.starts_with('-') { -rest } else { rest };
    let time = i128::from(number) * i128::from(unit) + rest - i128::from(before) * i128::from(unit / 2);
    i64::try_from(time).map_err(|_| out_of_range(text))
}
