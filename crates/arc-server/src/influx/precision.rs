//! The unit of timestamps that nobody has declared, by their size, as InfluxDB 3 does for `precision=auto`.

use arc_core::Precision;

use crate::errors::Failure;

/// Timestamps below these, whatever their sign, have that unit; those of today do, until the year 2128.
const BELOW: [(u64, Precision, &str); 3] = [
    (5_000_000_000, Precision::Second, "seconds"),
    (5_000_000_000_000, Precision::Millisecond, "milliseconds"),
    (5_000_000_000_000_000, Precision::Microsecond, "microseconds"),
];

fn of(timestamp: i64) -> (Precision, &'static str) {
    let found = BELOW.into_iter().find(|(below, ..)| timestamp.unsigned_abs() < *below);
    found.map_or((Precision::Nanosecond, "nanoseconds"), |(_, precision, name)| (precision, name))
}

/// Returns the unit of all timestamps of line protocol, if there are any.
///
/// InfluxDB guesses for each line; here lines that look different are refused, for one of them would be stored at a time
/// that nobody meant.
pub(crate) fn guessed(lines: &[u8]) -> Result<Option<Precision>, Failure> {
    let mut first = None;
    for point in arc_lp::points(lines).flatten() {
        let Some(timestamp) = point.timestamp() else { continue };
        let (precision, name) = of(timestamp);
        let (line, as_first, first_name) = *first.get_or_insert((point.line(), precision, name));
        if precision != as_first {
            return Err(Failure::bad_request(format!(
                "precision=auto: the timestamp of line {line} looks like {first_name}, that of line {} like {name}; \
                 say which they are (precision=second, millisecond, microsecond or nanosecond)",
                point.line()
            )));
        }
    }
    Ok(first.map(|(_, precision, _)| precision))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_tells_the_unit() {
        for (lines, expected) in [
            ("m v=1 1700000000", Some(Precision::Second)),
            ("m v=1 1700000000123", Some(Precision::Millisecond)),
            ("m v=1 1700000000123456", Some(Precision::Microsecond)),
            ("m v=1 1700000000123456789", Some(Precision::Nanosecond)),
            ("m v=1 -1700000000", Some(Precision::Second)),
            ("m v=1 9223372036854775807", Some(Precision::Nanosecond)),
            ("m v=1 -9223372036854775808", Some(Precision::Nanosecond)),
            ("m v=1 0", Some(Precision::Second)),
            ("m v=1", None),
            ("# none\n\nm v=\nm v=1\nm v=1 1700000000\nm v=2 1800000000", Some(Precision::Second)),
        ] {
            assert_eq!(guessed(lines.as_bytes()).unwrap(), expected, "{lines}");
        }
    }

    #[test]
    fn lines_that_look_different_are_refused() {
        let failure = guessed(b"m v=1 1700000000\n\nm v=2 1700000000123").unwrap_err();
        assert_eq!(failure.status.as_u16(), 400);
        for text in ["line 1 looks like seconds", "line 3 like milliseconds"] {
            assert!(failure.message.contains(text), "{}", failure.message);
        }
    }
}
