//! The day that a row belongs to: the time window of a partition.

use std::fmt;

const DAY_NS: i64 = 86_400_000_000_000;

/// Whole days since the Unix epoch, rounding down: 1969-12-31 is day -1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionDay(i64);

impl PartitionDay {
    /// Returns the day of a time in nanoseconds since the epoch, of any sign.
    ///
    /// ```
    /// use arc_core::datafile::PartitionDay;
    ///
    /// assert_eq!(PartitionDay::from_time_ns(1_700_000_000_000_000_000).to_string(), "2023-11-14");
    /// assert_eq!(PartitionDay::from_time_ns(-1).to_string(), "1969-12-31");
    /// ```
    #[must_use]
    pub const fn from_time_ns(time_ns: i64) -> Self {
        Self(time_ns.div_euclid(DAY_NS))
    }

    /// Returns the number of whole days since the epoch.
    #[must_use]
    pub const fn days(self) -> i64 {
        self.0
    }

    /// Returns the first nanosecond after the day, or the last that there is.
    pub(crate) const fn end_ns(self) -> i64 {
        self.0.saturating_add(1).saturating_mul(DAY_NS)
    }
}

/// Writes `YYYY-MM-DD` in the proleptic Gregorian calendar.
impl fmt::Display for PartitionDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.0);
        let sign = if year < 0 { "-" } else { "" };
        write!(f, "{sign}{:04}-{month:02}-{day:02}", year.abs())
    }
}

/// Returns year, month and day of a number of days since 1970-01-01.
///
/// Counts in eras of 400 years, which all have the same number of days, in years that begin on the
/// first of March: then the day that leap years add is the last of the year, and the lengths of the
/// months before it follow a straight line (five months have 153 days).
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    const DAYS_OF_ERA: i64 = 146_097;
    const EPOCH_SINCE_ERA_0: i64 = 719_468;
    let since_era_0 = days + EPOCH_SINCE_ERA_0;
    let era = since_era_0.div_euclid(DAYS_OF_ERA);
    let day_of_era = since_era_0.rem_euclid(DAYS_OF_ERA);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = 400 * era + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_round_down_and_print_as_dates() {
        let cases = [
            (0, 0, "1970-01-01"),
            (DAY_NS - 1, 0, "1970-01-01"),
            (DAY_NS, 1, "1970-01-02"),
            (-1, -1, "1969-12-31"),
            (-DAY_NS, -1, "1969-12-31"),
            (-DAY_NS - 1, -2, "1969-12-30"),
            (1_769_817_600_000_000_000, 20_484, "2026-01-31"),
            (951_782_400_000_000_000, 11_016, "2000-02-29"),
            (4_107_542_400_000_000_000, 47_541, "2100-03-01"),
            (4_107_542_399_999_999_999, 47_540, "2100-02-28"),
            (i64::MAX, 106_751, "2262-04-11"),
            (i64::MIN, -106_752, "1677-09-21"),
        ];
        for (time_ns, days, date) in cases {
            let day = PartitionDay::from_time_ns(time_ns);
            assert_eq!((day.days(), day.to_string().as_str()), (days, date), "{time_ns}");
        }
    }

    #[test]
    fn dates_far_away_print_their_whole_year() {
        let cases = [
            (-719_528, "0000-01-01"),
            (-719_529, "-0001-12-31"),
            (2_932_896, "9999-12-31"),
            (2_932_897, "10000-01-01"),
        ];
        for (days, date) in cases {
            assert_eq!(PartitionDay(days).to_string(), date);
        }
    }

    #[test]
    fn dates_follow_each_other_for_eight_centuries() {
        let mut expected = (1_600, 1, 1);
        let first = -135_140;
        for days in first..first + 2 * 146_097 {
            assert_eq!(civil_from_days(days), expected);
            let (year, month, day) = expected;
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 => 28 + i64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            expected = match (day == length, month) {
                (false, _) => (year, month, day + 1),
                (true, 12) => (year + 1, 1, 1),
                (true, _) => (year, month + 1, 1),
            };
        }
    }
}
