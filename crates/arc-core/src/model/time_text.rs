//! Times as texts.

use arrow::compute::kernels::cast_utils::string_to_timestamp_nanos;

/// Returns the nanoseconds since the epoch that a text says: RFC 3339, also with a blank for its
/// `T`, without an offset, without seconds, and without a time of day. `None` if it is no time, or
/// none of 64-bit nanoseconds.
///
/// ```
/// use arc_core::time_of_text;
///
/// assert_eq!(time_of_text("1970-01-01T00:01:00Z"), Some(60_000_000_000));
/// assert_eq!(time_of_text("1970-01-01 01:01+01:00"), Some(60_000_000_000));
/// assert_eq!(time_of_text("1970-01-02"), Some(86_400_000_000_000));
/// assert_eq!(time_of_text("9999-12-31"), None);
/// ```
#[must_use]
pub fn time_of_text(text: &str) -> Option<i64> {
    if has_finer_digits(text, 9) {
        return None;
    }
    let time = string_to_timestamp_nanos(text).ok();
    time.or_else(|| string_to_timestamp_nanos(&with_seconds(text)?).ok())
}

/// Returns whether the text of a time says more than so many digits of its second.
pub(crate) fn has_finer_digits(text: &str, digits: usize) -> bool {
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction).bytes();
    fraction.take_while(u8::is_ascii_digit).skip(digits).any(|digit| digit != b'0')
}

/// Returns a time that has hours and minutes only with its seconds, which Arrow wants.
pub(crate) fn with_seconds(text: &str) -> Option<String> {
    let (minutes, rest) = text.split_at_checked("2024-01-31T12:00".len())?;
    let is_time = minutes.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        10 => matches!(byte, b'T' | b't' | b' '),
        13 => byte == b':',
        _ => byte.is_ascii_digit(),
    });
    let has_no_seconds = rest.is_empty() || rest.starts_with(['Z', 'z', '+', '-', ' ']);
    (is_time && has_no_seconds).then(|| format!("{minutes}:00{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_finer_than_a_nanosecond_is_no_time() {
        assert_eq!(time_of_text("1970-01-01T00:00:00.1234567890Z"), Some(123_456_789));
        assert_eq!(time_of_text("1970-01-01T00:00:00.1234567891Z"), None);
        for (text, digits, expected) in
            [(".001", 3, false), (".0010", 3, false), (".0001+01:00", 3, true), ("1", 0, false)]
        {
            assert_eq!(has_finer_digits(text, digits), expected, "{text}");
        }
    }

    #[test]
    fn seconds_are_added_where_they_are_missing_only() {
        let cases = [
            ("2024-01-31T12:00", Some("2024-01-31T12:00:00")),
            ("2024-01-31 12:00Z", Some("2024-01-31 12:00:00Z")),
            ("2024-01-31 12:00 +01:00", Some("2024-01-31 12:00:00 +01:00")),
            ("2024-01-31T12:00-0100", Some("2024-01-31T12:00:00-0100")),
            ("2024-01-31T12:00:01", None),
            ("2024-01-31T12:00.5", None),
            ("2024-01-31T12", None),
            ("2024-01-31x12:00", None),
            ("2024-01-31T12:0ü", None),
            ("20240131T12:00:00", None),
        ];
        for (text, expected) in cases {
            assert_eq!(with_seconds(text).as_deref(), expected, "{text}");
        }
    }
}
