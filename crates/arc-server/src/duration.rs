//! Lengths of time as clients of InfluxDB and Arc write them: `30d`, `1h30m`.

use std::time::Duration;

/// Reads a sum of whole numbers, each with its unit.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    if text.is_empty() {
        return None;
    }
    let (mut nanoseconds, mut rest) = (0_u64, text);
    while !rest.is_empty() {
        let (number, tail) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let (unit, tail) = tail.split_at(tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len()));
        let in_nanoseconds: u64 = match unit {
            "ns" => 1,
            "u" | "us" | "µ" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            "w" => 604_800_000_000_000,
            _ => return None,
        };
        nanoseconds = nanoseconds.checked_add(number.parse::<u64>().ok()?.checked_mul(in_nanoseconds)?)?;
        rest = tail;
    }
    Some(Duration::from_nanos(nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_is_a_sum_of_units() {
        let minutes = |minutes: u64| Some(Duration::from_secs(minutes * 60));
        for (text, expected) in [
            ("1h30m", minutes(90)),
            ("2w", minutes(2 * 7 * 24 * 60)),
            ("1500ms", Some(Duration::from_millis(1_500))),
            ("3u", Some(Duration::from_micros(3))),
            ("4µs", Some(Duration::from_micros(4))),
            ("0s", Some(Duration::ZERO)),
            ("", None),
            ("3", None),
            ("d", None),
            ("3x", None),
            ("3d4", None),
            ("-3d", None),
            ("99999999999999w", None),
            ("99999999999999999999s", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
