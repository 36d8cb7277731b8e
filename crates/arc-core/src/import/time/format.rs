//! A form of times that an import is told.

use std::{fmt, str::FromStr};

use chrono::{
    DateTime, NaiveDate, NaiveDateTime, NaiveTime,
    format::{Item, StrftimeItems},
};

use super::{
    number::{is_number, scaled},
    out_of_range,
};
use crate::Precision;

const DAY_NS: i64 = 86_400_000_000_000;

/// What the times of a file look like.
///
/// ```
/// use arc_core::import::TimeFormat;
///
/// assert!("%d.%m.%Y %H:%M".parse::<TimeFormat>().is_ok());
/// assert!("excel".parse::<TimeFormat>().is_ok());
/// assert!("dd.mm.yyyy".parse::<TimeFormat>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeFormat(TimeForm);

#[derive(Debug, Clone, PartialEq, Eq)]
enum TimeForm {
    Epoch(Precision),
    /// Days, with the half days from the first one to 1970.
    Days {
        name: &'static str,
        before: i64,
    },
    /// Years with a fraction.
    Year,
    Pattern(String),
}

/// Names of counts of days, and how many half days each has at 1970-01-01T00:00Z.
const DAYS: [(&str, i64); 3] = [("excel", 2 * 25_569), ("julian", 4_881_175), ("ordinal", 2 * 719_163)];

impl TimeFormat {
    /// Returns the nanoseconds since the epoch; the error says what was expected.
    pub(super) fn read(&self, text: &str) -> Result<i64, String> {
        let unfit = || format!("{text:?} is no time of the format {self}");
        match &self.0 {
            TimeForm::Pattern(pattern) => {
                by_pattern(text, pattern).ok_or_else(unfit)?.ok_or_else(|| out_of_range(text))
            }
            _ if !is_number(text) => Err(unfit()),
            TimeForm::Epoch(unit) => scaled(text, unit.nanoseconds(), 0),
            TimeForm::Days { before, .. } => scaled(text, DAY_NS, *before),
            TimeForm::Year => year(text).ok_or_else(|| out_of_range(text)),
        }
    }
}

impl fmt::Display for TimeFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            TimeForm::Epoch(_) => f.write_str("of numbers since 1970"),
            TimeForm::Days { name, .. } => f.write_str(name),
            TimeForm::Year => f.write_str("year"),
            TimeForm::Pattern(pattern) => write!(f, "{pattern:?}"),
        }
    }
}

impl FromStr for TimeFormat {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        if let Some(unit) = s.strip_prefix("epoch_") {
            return Ok(Self(TimeForm::Epoch(unit.parse()?)));
        }
        if let Some((name, before)) = DAYS.into_iter().find(|(name, _)| *name == s) {
            return Ok(Self(TimeForm::Days { name, before }));
        }
        if s == "year" {
            return Ok(Self(TimeForm::Year));
        }
        let has_fields =
            StrftimeItems::new(s).any(|item| !matches!(item, Item::Literal(_) | Item::Space(_) | Item::Error));
        if !has_fields || StrftimeItems::new(s).any(|item| item == Item::Error) {
            return Err(format!(
                "{s:?} is no format of times; expected epoch_s, epoch_ms, epoch_us, epoch_ns, excel, julian, ordinal, year, \
                 or a pattern like %d.%m.%Y %H:%M:%S"
            ));
        }
        Ok(Self(TimeForm::Pattern(s.to_owned())))
    }
}

/// Reads a text by a pattern of `strftime`; without an offset in UTC, without a time of day at midnight. Nothing within if no
/// time of nanoseconds is that.
fn by_pattern(text: &str, pattern: &str) -> Option<Option<i64>> {
    if let Ok(time) = DateTime::parse_from_str(text, pattern) {
        return Some(time.timestamp_nanos_opt());
    }
    let naive = NaiveDateTime::parse_from_str(text, pattern)
        .or_else(|_| NaiveDate::parse_from_str(text, pattern).map(|date| date.and_time(NaiveTime::MIN)))
        // A month, a year: its first day.
        .or_else(|_| NaiveDateTime::parse_from_str(&format!("{text} 1"), &format!("{pattern} %d")))
        .or_else(|_| {
            let day = NaiveDate::parse_from_str(&format!("{text} 1"), &format!("{pattern} %d"));
            day.or_else(|_| NaiveDate::parse_from_str(&format!("{text} 1 1"), &format!("{pattern} %m %d")))
                .map(|date| date.and_time(NaiveTime::MIN))
        });
    naive.ok().map(|time| time.and_utc().timestamp_nanos_opt())
}

/// Reads a year with a fraction, which is that part of its days.
pub(super) fn year(text: &str) -> Option<i64> {
    let (whole, _) = text.split_once('.').unwrap_or((text, ""));
    let year: i32 = whole.parse().ok().filter(|year| *year >= 0)?;
    let start =
        |year: i32| NaiveDate::from_ymd_opt(year, 1, 1)?.and_time(NaiveTime::MIN).and_utc().timestamp_nanos_opt();
    let (from, to) = (start(year)?, start(year + 1)?);
    let fraction = text.strip_prefix(whole)?;
    from.checked_add(scaled(&format!("0{fraction}"), to - from, 0).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_format_is_read_exactly_or_not_at_all() {
        let cases = [
            ("excel", "45322.5", Some("2024-01-31T12:00:00Z")),
            ("julian", "2460340.5", Some("2024-01-31T00:00:00Z")),
            ("julian", "2460340.75", Some("2024-01-31T06:00:00Z")),
            ("ordinal", "738000", Some("2021-07-29T00:00:00Z")),
            ("year", "2008.75", Some("2008-10-01T12:00:00Z")),
            ("year", "1959", Some("1959-01-01T00:00:00Z")),
            ("year", "9999", None),
            ("excel", "2024-01-31", None),
            ("epoch_s", "5", Some("1970-01-01T00:00:05Z")),
            ("epoch_ms", "x", None),
            ("%d.%m.%Y %H:%M", "31.01.2024 06:00", Some("2024-01-31T06:00:00Z")),
            ("%m/%d/%y", "01/31/24", Some("2024-01-31T00:00:00Z")),
            ("%Y%m%d", "20240131", Some("2024-01-31T00:00:00Z")),
            ("%Y%m", "202401", Some("2024-01-01T00:00:00Z")),
            ("%Y", "2024", Some("2024-01-01T00:00:00Z")),
            ("%b %Y", "Feb 2024", Some("2024-02-01T00:00:00Z")),
            ("%d/%b/%Y:%H:%M:%S %z", "31/Jan/2024:13:00:00 +0100", Some("2024-01-31T12:00:00Z")),
            ("%d/%m/%Y", "01/31/2024", None),
            ("%Y-%m-%d", "2024-01-31 06:00", None),
            ("%Y-%m-%d", "9999-01-31", None),
        ];
        for (format, text, expected) in cases {
            let expected =
                expected.map(|time| DateTime::parse_from_rfc3339(time).unwrap().timestamp_nanos_opt().unwrap());
            let read = format.parse::<TimeFormat>().unwrap().read(text);
            assert_eq!(read.as_ref().ok(), expected.as_ref(), "{format} {text}: {read:?}");
        }
        for format in ["", "iso", "dd/mm/yyyy", "%", "%!", "%%", "epoch_d"] {
            assert!(format.parse::<TimeFormat>().is_err(), "{format}");
        }
    }
}
