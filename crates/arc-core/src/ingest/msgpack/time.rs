//! Times as MessagePack carries them: numbers in a unit that is declared or guessed, and timestamps
//! that are exact.
//!
//! A unit that nothing declared follows from the magnitude of the first number: below 1e10 seconds
//! (so is every negative number), below 1e13 milliseconds, below 1e16 microseconds, else
//! nanoseconds. Who writes times before 1970 in another unit than seconds declares it.

use super::{
    ItemFault,
    reader::{MsgpackReader, MsgpackValue},
};
use crate::{Precision, ingest::lp::scale};

/// Extension type of a timestamp.
const TIMESTAMP: i8 = -1;

/// A time as written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Time {
    Integer(i64),
    Float(f64),
    /// Nanoseconds, whatever the unit of the numbers.
    Exact(i64),
}

impl Time {
    /// Takes a value for a time; `Err` says what it is instead.
    pub(super) fn of(value: &MsgpackValue<'_>) -> Result<Self, String> {
        match value {
            MsgpackValue::Integer(time) => Ok(Self::Integer(*time)),
            MsgpackValue::Unsigned(time) => Err(format!("{time}, which is outside the range of 64-bit nanoseconds")),
            MsgpackValue::Float(time) => Ok(Self::Float(*time)),
            MsgpackValue::Extension(TIMESTAMP, bytes) => timestamp(bytes).map(Self::Exact),
            other => Err(format!("{}, expected an integer, a float or a timestamp", other.kind())),
        }
    }

    /// Guesses the unit; a timestamp has none.
    pub(super) fn unit(self) -> Option<Precision> {
        match self {
            Self::Integer(time) => Some(Precision::of_magnitude(time)),
            // Times that are no integers fall into the same classes as their whole part.
            #[expect(clippy::cast_possible_truncation, reason = "what is too large stays large")]
            Self::Float(time) => Some(Precision::of_magnitude(time as i64)),
            Self::Exact(_) => None,
        }
    }

    /// Converts to nanoseconds; only what is below a nanosecond is cut off.
    pub(super) fn nanoseconds(self, unit: Precision) -> Result<i64, String> {
        match self {
            Self::Integer(time) => scale(time, unit),
            Self::Exact(time) => Ok(time),
            Self::Float(time) => float_nanoseconds(time, unit.nanoseconds()),
        }
    }
}

/// The whole units and the fraction are scaled apart, for their product may need more digits than a
/// float has.
fn float_nanoseconds(time: f64, unit_ns: i64) -> Result<i64, String> {
    let outside = || format!("time {time:?} in units of {unit_ns} ns is outside the range of 64-bit nanoseconds");
    // 2^63 is a float; the next one below fits.
    if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&time) {
        return Err(outside());
    }
    #[expect(clippy::cast_possible_truncation, reason = "the fraction is what is cut off, the range is checked above")]
    let whole = time.trunc() as i64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "a unit has at most 3.6e12 ns, and less than a nanosecond is cut off"
    )]
    let fraction = (time.fract() * unit_ns as f64) as i64;
    whole.checked_mul(unit_ns).and_then(|ns| ns.checked_add(fraction)).ok_or_else(outside)
}

fn timestamp(bytes: &[u8]) -> Result<i64, String> {
    let (seconds, nanoseconds) = match *bytes {
        [a, b, c, d] => (i64::from(u32::from_be_bytes([a, b, c, d])), 0),
        [a, b, c, d, e, f, g, h] => {
            let both = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
            ((both & 0x3_ffff_ffff).cast_signed(), (both >> 34).cast_signed())
        }
        [a, b, c, d, ref seconds @ ..] if seconds.len() == 8 => {
            let seconds = seconds.first_chunk().map_or(0, |seconds| i64::from_be_bytes(*seconds));
            (seconds, i64::from(u32::from_be_bytes([a, b, c, d])))
        }
        _ => return Err(format!("a timestamp of {} bytes, expected 4, 8 or 12", bytes.len())),
    };
    if nanoseconds > 999_999_999 {
        return Err(format!("a timestamp with {nanoseconds} nanoseconds in its second"));
    }
    // Not in 64 bits: the seconds before the earliest time are out of range until the nanoseconds
    // are added.
    i64::try_from(i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds))
        .map_err(|_| "a timestamp outside the range of 64-bit nanoseconds".to_owned())
}

/// Reads the time column.
pub(super) fn times(
    reader: &mut MsgpackReader<'_>,
    count: usize,
    precision: Option<Precision>,
) -> Result<Vec<i64>, ItemFault> {
    let refused = |row: usize, reason: String| ItemFault::item(format!("column \"time\", row {}: {reason}", row + 1));
    if let Some(mut times) = reader.integers(count) {
        let first = times.first().and_then(|first| Time::Integer(*first).unit());
        let unit = precision.or(first).unwrap_or_default();
        if unit != Precision::Nanosecond {
            for (row, time) in times.iter_mut().enumerate() {
                *time = scale(*time, unit).map_err(|reason| refused(row, reason))?;
            }
        }
        return Ok(times);
    }
    let mut unit = precision;
    let mut times = Vec::with_capacity(count);
    for row in 0..count {
        let time = Time::of(&reader.next()?).map_err(|found| refused(row, format!("the time is {found}")))?;
        unit = unit.or_else(|| time.unit());
        times.push(time.nanoseconds(unit.unwrap_or_default()).map_err(|reason| refused(row, reason))?);
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_follows_from_the_magnitude() {
        let cases = [
            (-86_400_000, Precision::Second),
            (0, Precision::Second),
            (9_999_999_999, Precision::Second),
            (10_000_000_000, Precision::Millisecond),
            (9_999_999_999_999, Precision::Millisecond),
            (10_000_000_000_000, Precision::Microsecond),
            (9_999_999_999_999_999, Precision::Microsecond),
            (10_000_000_000_000_000, Precision::Nanosecond),
            (i64::MAX, Precision::Nanosecond),
        ];
        for (time, unit) in cases {
            assert_eq!(Time::Integer(time).unit(), Some(unit), "{time}");
        }
        assert_eq!(Time::Float(1.7e9).unit(), Some(Precision::Second));
        assert_eq!(Time::Exact(5).unit(), None);
    }

    #[test]
    fn floats_lose_only_what_is_below_a_nanosecond() {
        let cases = [
            (1_700_000_000.5, Precision::Second, Ok(1_700_000_000_500_000_000)),
            (-1.5, Precision::Second, Ok(-1_500_000_000)),
            (1.000_000_000_9, Precision::Second, Ok(1_000_000_000)),
            (1.9, Precision::Nanosecond, Ok(1)),
            (9_007_199_254_740_993.0, Precision::Nanosecond, Ok(9_007_199_254_740_992)),
            (1e10, Precision::Second, Err(())),
            (9.3e18, Precision::Nanosecond, Err(())),
            (f64::NAN, Precision::Second, Err(())),
            (f64::NEG_INFINITY, Precision::Second, Err(())),
        ];
        for (time, unit, expected) in cases {
            assert_eq!(Time::Float(time).nanoseconds(unit).map_err(|_| ()), expected, "{time}");
        }
    }

    #[test]
    fn timestamps_have_three_forms() {
        let eight = ((5u64 << 34) | 3).to_be_bytes();
        let twelve = |seconds: i64, ns: u32| [&ns.to_be_bytes()[..], &seconds.to_be_bytes()].concat();
        let cases: Vec<(Vec<u8>, Option<i64>)> = vec![
            (vec![0xff; 4], Some(4_294_967_295_000_000_000)),
            (eight.to_vec(), Some(3_000_000_005)),
            (twelve(-1, 1), Some(-999_999_999)),
            (twelve(-9_223_372_037, 145_224_192), Some(i64::MIN)),
            (twelve(9_223_372_036, 854_775_808), None),
            (twelve(0, 1_000_000_000), None),
            (vec![0; 5], None),
        ];
        for (bytes, expected) in cases {
            assert_eq!(timestamp(&bytes).ok(), expected, "{bytes:?}");
        }
    }
}
