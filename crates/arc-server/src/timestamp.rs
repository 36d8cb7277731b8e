//! Points in time as RFC 3339: UTC, nanoseconds with trailing zeros trimmed.
//!
//! Never asks for a time zone: everything is UTC.

use std::time::{SystemTime, UNIX_EPOCH};

const DAY_SECONDS: i64 = 86_400;

/// Appends `seconds` since the Unix epoch, and `nanoseconds` on top of them, as `2026-01-31T23:59:59.5Z`.
///
/// Years past 9999 and before 0, which RFC 3339 has no form for, get a sign as in ISO 8601.
pub(crate) fn write(out: &mut Vec<u8>, seconds: i64, nanoseconds: u32) {
    to_the_second(out, seconds);
    if nanoseconds != 0 {
        out.push(b'.');
        digits::<9>(out, nanoseconds.into());
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
    out.push(b'Z');
}

/// The same with so many digits behind the second, at most nine: `2026-01-31T23:59:59.500Z`.
pub(crate) fn write_padded(out: &mut Vec<u8>, seconds: i64, nanoseconds: u32, places: u32) {
    to_the_second(out, seconds);
    if places > 0 {
        out.push(b'.');
        digits::<9>(out, nanoseconds.into());
        out.truncate(out.len() - usize::try_from(9_u32.saturating_sub(places)).unwrap_or_default());
    }
    out.push(b'Z');
}

/// The same without the zone, and with zeros trimmed by threes: `2026-01-31T23:59:59.500`.
pub(crate) fn write_bare(out: &mut Vec<u8>, seconds: i64, nanoseconds: u32) {
    to_the_second(out, seconds);
    if nanoseconds != 0 {
        out.push(b'.');
        digits::<9>(out, nanoseconds.into());
        while out.ends_with(b"000") {
            out.truncate(out.len() - 3);
        }
    }
}

fn to_the_second(out: &mut Vec<u8>, seconds: i64) {
    let (year, month, day) = civil(seconds.div_euclid(DAY_SECONDS));
    let of_day = seconds.rem_euclid(DAY_SECONDS);
    if (0..=9999).contains(&year) {
        digits::<4>(out, year.unsigned_abs());
    } else {
        out.extend_from_slice(format!("{year:+05}").as_bytes());
    }
    for (mark, value) in
        [(b'-', month), (b'-', day), (b'T', of_day / 3600), (b':', of_day / 60 % 60), (b':', of_day % 60)]
    {
        out.push(mark);
        digits::<2>(out, value.unsigned_abs());
    }
}

/// Returns the nanoseconds since the Unix epoch.
#[expect(clippy::disallowed_methods, reason = "answers say when they were made")]
pub(crate) fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// Returns the time now.
pub(crate) fn now() -> String {
    format(now_ns())
}

/// Returns nanoseconds since the Unix epoch as text.
pub(crate) fn format(nanoseconds: i64) -> String {
    let mut out = Vec::with_capacity(32);
    let (seconds, rest) = split(nanoseconds, 1_000_000_000);
    write(&mut out, seconds, rest);
    String::from_utf8(out).unwrap_or_default()
}

/// Splits a time in units of which a second has `per_second` into seconds and nanoseconds, rounding down.
pub(crate) fn split(time: i64, per_second: i64) -> (i64, u32) {
    let nanoseconds = time.rem_euclid(per_second) * (1_000_000_000 / per_second);
    (time.div_euclid(per_second), u32::try_from(nanoseconds).unwrap_or_default())
}

fn digits<const N: usize>(out: &mut Vec<u8>, mut value: u64) {
    let mut text = [b'0'; N];
    for digit in text.iter_mut().rev() {
        *digit += u8::try_from(value % 10).unwrap_or_default();
        value /= 10;
    }
    out.extend_from_slice(&text);
}

/// Returns year, month and day of a day since the Unix epoch in the proleptic Gregorian calendar.
///
/// Counts in years that begin in March, so that the leap day is the last of its year, and in eras of 400 years, which
/// all have the same number of days.
fn civil(day: i64) -> (i64, i64, i64) {
    const ERA_DAYS: i64 = 146_097;
    let day = day + 719_468; // days from 0000-03-01 to 1970-01-01
    let era = day.div_euclid(ERA_DAYS);
    let of_era = day.rem_euclid(ERA_DAYS);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march_month = (5 * of_year + 2) / 153;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, of_year - (153 * march_month + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments_print_as_written() {
        for (ns, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (1, "1970-01-01T00:00:00.000000001Z"),
            (-1, "1969-12-31T23:59:59.999999999Z"),
            (1_500_000_000, "1970-01-01T00:00:01.5Z"),
            (951_782_400_000_000_000, "2000-02-29T00:00:00Z"),
            (1_700_000_000_000_000_000, "2023-11-14T22:13:20Z"),
            (i64::MAX, "2262-04-11T23:47:16.854775807Z"),
            (i64::MIN, "1677-09-21T00:12:43.145224192Z"),
        ] {
            assert_eq!(format(ns), expected);
        }
    }

    #[test]
    fn padded_moments_have_their_places() {
        for (places, expected) in
            [(0, "20Z"), (3, "20.000Z"), (6, "20.000001Z"), (9, "20.000001500Z"), (12, "20.000001500Z")]
        {
            let mut out = Vec::new();
            write_padded(&mut out, 1_700_000_000, 1_500, places);
            assert_eq!(String::from_utf8(out).unwrap(), format!("2023-11-14T22:13:{expected}"));
        }
    }

    #[test]
    fn far_years_keep_their_sign() {
        for (seconds, expected) in [
            (253_402_300_799, "9999-12-31T23:59:59Z"),
            (253_402_300_800, "+10000-01-01T00:00:00Z"),
            (-62_167_219_200, "0000-01-01T00:00:00Z"),
            (-62_167_219_201, "-0001-12-31T23:59:59Z"),
        ] {
            let mut out = Vec::new();
            write(&mut out, seconds, 0);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn every_day_of_eight_centuries_follows_the_one_before() {
        let leap = |y: i64| y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
        let mut expected = (1600, 1, 1);
        for day in -135_140..157_054 {
            assert_eq!(civil(day), expected);
            let (year, month, of_month) = expected;
            let length = match month {
                2 => 28 + i64::from(leap(year)),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            expected = match (of_month == length, month) {
                (false, _) => (year, month, of_month + 1),
                (true, 12) => (year + 1, 1, 1),
                (true, _) => (year, month + 1, 1),
            };
        }
    }
}
