//! The times of a file: which form they have, and what each of them is.
//!
//! Texts with the year first, or with the month by its name, say themselves what they mean. Of
//! days and months that could be either, and of numbers, the first rows decide: a number is a time
//! since 1970 or a date in digits where most of them make sense as one, and otherwise has to be
//! explained. None is ever taken for a time that it may not be.

mod calendar;
mod format;
mod number;

use arrow::compute::kernels::cast_utils::string_to_timestamp_nanos;

pub use format::TimeFormat;
pub(super) use number::NumberForm;

use self::calendar::{CalendarTime, DayOrder};
use super::ImportOptions;

/// How many rows decide about the form of a file's times.
pub(super) const DECIDING_ROWS: usize = 10_000;
/// Longer texts are no times.
pub(super) const MAX_TEXT_BYTES: usize = 128;

/// Reads the times of one file.
#[derive(Debug, Clone)]
pub(super) struct TimeReader {
    format: Option<TimeFormat>,
    numbers: Option<NumberForm>,
    /// Whether the import says what numbers are.
    is_told: bool,
    order: Option<DayOrder>,
}

impl TimeReader {
    /// Decides by the texts of the first rows, of a column that says that it has years or not; the error says
    /// which of them may mean what.
    pub(super) fn decide<'t>(
        options: &ImportOptions,
        are_years: bool,
        texts: impl Iterator<Item = &'t str> + Clone,
    ) -> Result<Self, String> {
        let mut reader = Self {
            format: options.time_format.clone(),
            numbers: options.precision.map(NumberForm::Epoch),
            is_told: options.precision.is_some(),
            order: None,
        };
        if reader.format.is_some() {
            return Ok(reader);
        }
        let texts = texts.map(str::trim).filter(|text| !text.is_empty());
        // A few among others are refused one by one.
        let most = texts.clone().count() / 2;
        if reader.numbers.is_none() {
            let numbers = texts.clone().filter(|text| number::is_number(text));
            let are_few = numbers.clone().count() <= most;
            let years = are_years.then_some(NumberForm::Years);
            let decided = NumberForm::decide(numbers);
            reader.numbers = decided.or_else(|reason| if are_few || are_years { Ok(years) } else { Err(reason) })?;
        }
        let others = texts.filter(|text| !number::is_number(text) && string_to_timestamp_nanos(text).is_err());
        let are_few = others.clone().count() <= most;
        reader.order = DayOrder::decide(others).or_else(|reason| if are_few { Ok(None) } else { Err(reason) })?;
        Ok(reader)
    }

    /// Returns whether most of some texts are times, and no numbers.
    pub(super) fn reads_most<'t>(&self, texts: impl Iterator<Item = &'t str> + Clone) -> bool {
        let times = texts.clone().filter(|text| !number::is_number(text.trim()) && self.read(text).is_ok());
        times.count() * 2 > texts.count()
    }

    /// Returns what the first rows have decided, if anything.
    pub(super) fn decided(&self) -> Option<String> {
        let numbers = self.numbers.filter(|_| !self.is_told).map(|numbers| numbers.to_string());
        numbers.or_else(|| self.order.map(|order| order.to_string()))
    }

    /// Returns the form of numbers, if it is known.
    pub(super) fn numbers(&self) -> Option<NumberForm> {
        if self.format.is_some() { None } else { self.numbers }
    }

    /// Returns the nanoseconds since the epoch; the error says what was expected.
    pub(super) fn read(&self, text: &str) -> Result<i64, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("the time is missing".to_owned());
        }
        if text.len() > MAX_TEXT_BYTES {
            let shown: String = text.chars().take(MAX_TEXT_BYTES / 4).collect();
            return Err(format!("{shown:?} and more is no time"));
        }
        if let Some(format) = &self.format {
            return format.read(text);
        }
        if number::is_number(text) {
            let form = self.numbers.ok_or_else(|| number::unexplained(text))?;
            return form.read(text);
        }
        if let Ok(time) = string_to_timestamp_nanos(text) {
            return Ok(time);
        }
        match calendar::read(text, self.order) {
            CalendarTime::Time(time) => Ok(time),
            CalendarTime::OutOfRange => Err(out_of_range(text)),
            CalendarTime::EitherOrder => Err(calendar::either_order(text)),
            CalendarTime::None => {
                Err(format!("{text:?} is no time; expected RFC 3339, YYYY-MM-DD hh:mm:ss, or a number"))
            }
        }
    }
}

fn out_of_range(text: &str) -> String {
    format!("the time {text:?} is outside the range of 64-bit nanoseconds")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Precision;

    const SECOND: i64 = 1_000_000_000;

    fn reader(unit: Option<Precision>, texts: &[&str]) -> Result<TimeReader, String> {
        let options = ImportOptions { precision: unit, ..ImportOptions::new() };
        TimeReader::decide(&options, false, texts.iter().copied())
    }

    #[test]
    fn times_are_read_exactly_or_not_at_all() {
        let at = 1_700_000_000 * SECOND;
        let cases = [
            (None, "1700000000", Some(at)),
            (None, "1700000000123", Some(at + 123_000_000)),
            (None, "1700000000123456", Some(at + 123_456_000)),
            (None, "1700000000123456789", Some(at + 123_456_789)),
            (None, "1700000000.5", Some(at + 500_000_000)),
            (None, "-1000000000.25", Some(-1_000_000_000 * SECOND - 250_000_000)),
            (None, "-1000000000250", Some(-1_000_000_000 * SECOND - 250_000_000)),
            (Some(Precision::Second), "-1.000000001", Some(-SECOND - 1)),
            (Some(Precision::Millisecond), "1700000000", Some(1_700_000_000_000_000)),
            (Some(Precision::Nanosecond), "7", Some(7)),
            (Some(Precision::Hour), "1.5", Some(5_400 * SECOND)),
            (None, "2023-11-14T22:13:20Z", Some(at)),
            (None, "2023-11-14 22:13:20", Some(at)),
            (None, "2023-11-14T23:13:20.000000001+01:00", Some(at + 1)),
            (None, " 2023-11-14 ", Some(at - 80_000 * SECOND)),
            (None, "2023-11-14T22:13", Some(at - 20 * SECOND)),
            (None, "2023-11-14T22:13Z", Some(at - 20 * SECOND)),
            (None, "2023/11/14 22:13:20", Some(at)),
            (None, "2023.11.14 22:13:20", Some(at)),
            (None, "2023-11-14 10:13:20 PM", Some(at)),
            (None, "2023-11-14 22:13:20,5", Some(at + 500_000_000)),
            (None, "2023-11-14T23:13:20+01:00[Europe/Berlin]", Some(at)),
            (None, "2023-11-14 23:13:20 +0100", Some(at)),
            (None, "20231114T221320Z", Some(at)),
            (None, "20231114T2213", Some(at - 20 * SECOND)),
            (None, "Tue, 14 Nov 2023 22:13:20 GMT", Some(at)),
            (None, "Tue Nov 14 22:13:20 2023", Some(at)),
            (None, "14-Nov-2023 22:13:20", Some(at)),
            (None, "November 14, 2023", Some(at - 80_000 * SECOND)),
            (None, "Sept 1 2023", Some(1_693_526_400 * SECOND)),
            (None, "Nov 2023", Some(1_698_796_800 * SECOND)),
            (None, "2023-11", Some(1_698_796_800 * SECOND)),
            (None, "2023 11 14 22 13 20", Some(at)),
            (None, "14.11.2023 22:13:20", Some(at)),
            (None, "11/14/2023 22:13:20", Some(at)),
            (None, "14/11/2023 22:13:20", Some(at)),
            (None, "20231114", Some(at - 80_000 * SECOND)),
            (None, "20231114221320", Some(at)),
            (None, "202311142213", Some(at - 20 * SECOND)),
            (None, "202311", Some(1_698_796_800 * SECOND)),
            (None, "2023", Some(1_672_531_200 * SECOND)),
            (None, "1959", Some(-347_155_200 * SECOND)),
            (None, "", None),
            (None, "soon", None),
            (None, "1.2.3", None),
            (None, "12:00", None),
            (None, "2023-02-30", None),
            (None, "2023-11-14 25:00", None),
            (None, "2023-11-14 22:13 CET", None),
            (None, "2023-11-14 10:13:20.1234567891 PM", Some(at + 123_456_789)),
            (None, "14/11/23", None),
            (None, "0 days 00:05:00", None),
            (None, "9999-01-01T00:00:00Z", None),
            (None, "9999-01-01 00:00", None),
            (Some(Precision::Second), "9223372036854775807", None),
            (Some(Precision::Second), "99999999999999999999", None),
        ];
        for (unit, text, expected) in cases {
            let read = reader(unit, &[text]).and_then(|reader| reader.read(text));
            assert_eq!(read.as_ref().ok(), expected.as_ref(), "{unit:?} {text:?}: {read:?}");
        }
    }

    #[test]
    fn a_quarter_is_its_first_day() {
        for text in ["2023Q4", "2023 q4", "2023-Q4", "Q4/2023"] {
            assert_eq!(reader(None, &[text]).unwrap().read(text), Ok(1_696_118_400 * SECOND), "{text}");
        }
        for text in ["2023Q5", "2023Q01", "23Q1", "Q1", "Q1 Q2 2023", "2023 Q1 5", "Jan 2023Q1"] {
            assert!(reader(None, &[text]).unwrap().read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_that_may_be_anything_have_to_be_explained() {
        for text in ["0", "5", "-1", "45322.5", "2460340.5", "738000", "2008.75", "99999999", "20241331", "31012024"] {
            let error = reader(None, &[text]).unwrap_err();
            assert!(error.contains(text) && error.contains("precision"), "{error}");
            assert!(reader(Some(Precision::Second), &[text]).is_ok());
        }
        // Without one among the rows that decide.
        let error = reader(None, &["2024-01-01"]).unwrap().read("20240101").unwrap_err();
        assert!(error.contains("precision"), "{error}");
    }

    #[test]
    fn the_first_rows_decide_for_all() {
        let milliseconds = reader(None, &["1700000000000", "5"]).unwrap();
        assert_eq!(milliseconds.read("5"), Ok(5_000_000));
        assert_eq!(milliseconds.decided().as_deref(), Some("milliseconds since 1970"));
        let day_first = reader(None, &["01/02/2024", "13/02/2024"]).unwrap();
        assert_eq!(day_first.read("01/02/2024"), Ok(1_706_745_600 * SECOND));
        assert!(day_first.read("02/13/2024").is_err());
        let month_first = reader(None, &["x", "01/02/2024", "02/13/2024"]).unwrap();
        assert_eq!(month_first.read("01/02/2024"), Ok(1_704_153_600 * SECOND));
        let error = reader(None, &["01/02/2024", "02/01/2024"]).unwrap_err();
        assert!(error.contains("01/02/2024") && error.contains("%d/%m/%Y"), "{error}");
        // Of a file that was saved by two programs nobody knows the half.
        assert!(reader(None, &["01/02/2024", "13/02/2024", "02/13/2024", "14/02/2024"]).is_err());
        let one_of_many = reader(None, &["2024-02-01", "01/02/2024", "2024-02-02", "40/50/2024"]).unwrap();
        assert!(one_of_many.read("2024-02-03").is_ok() && one_of_many.read("01/02/2024").is_err());
        let digits = reader(None, &["20240131", "total", "20240201"]).unwrap();
        assert_eq!(digits.decided().as_deref(), Some("digits of YYYYMMDD"));
        assert!(digits.read("20240231").is_err());
        assert!(digits.read("1700000000").is_err());
        assert_eq!(reader(None, &["2024-01-01"]).unwrap().decided(), None);
        let texts = reader(None, &["2024-01-01", "7"]).unwrap();
        assert!(texts.read("2024-01-02").is_ok() && texts.read("7").unwrap_err().contains("precision"));
    }
}
