//! Chooses between two encodings of integers by the first of them: distances to the one before, or
//! indices in a dictionary.
//!
//! Clocks, counters and gauges that are sorted by what they measure are close to their neighbours.
//! Codes and states repeat, and so do gauges in order of arrival. Nothing has told the writer in
//! which order rows come.

use hashbrown::HashSet;

/// Values that are looked at.
pub(super) const SAMPLE_VALUES: usize = 8192;
/// Values that share a width in `DELTA_BINARY_PACKED`, about.
const BLOCK: usize = 32;
/// Bits that a run takes beside its value.
const RUN_BITS: usize = 16;

/// Returns whether distances take fewer bits than indices in a dictionary, or that is not worth
/// having.
pub(super) fn are_close(values: &[i64]) -> bool {
    let distinct: HashSet<i64, foldhash::fast::FixedState> = values.iter().copied().collect();
    // The dictionary itself is shared by many more values than these.
    distinct.len() > values.len() / 2 || distance_bits(values) < place_bits(values, distinct.len())
}

fn distance_bits(values: &[i64]) -> usize {
    let distances: Vec<i64> = values.array_windows().map(|[before, after]| after.wrapping_sub(*before)).collect();
    let bits = |block: &[i64]| {
        let (min, max) = block.iter().fold((i64::MAX, i64::MIN), |(min, max), d| (min.min(*d), max.max(*d)));
        block.len() * width(max.wrapping_sub(min).cast_unsigned())
    };
    // The first value is there as it is.
    width(u64::MAX) + distances.chunks(BLOCK).map(bits).sum::<usize>()
}

fn place_bits(values: &[i64], distinct: usize) -> usize {
    let runs = values.chunk_by(|a, b| a == b).count();
    let index = width(distinct.saturating_sub(1) as u64);
    (values.len() * index).min(runs * (index + RUN_BITS))
}

fn width(number: u64) -> usize {
    (u64::BITS - number.leading_zeros()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_tell_clocks_and_walks_from_codes() {
        let random = |n: i64| n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1) >> 33;
        let made = |value: &dyn Fn(i64) -> i64| (0..5_000).map(value).collect::<Vec<i64>>();
        let mut walk = 50;
        let walk: Vec<i64> = (0..5_000)
            .map(|n| {
                walk += random(n).rem_euclid(3) - 1;
                walk
            })
            .collect();
        let interleaved: Vec<i64> = (0..5_000).map(|n| (n % 100) * 37 % 101 + random(n).rem_euclid(3)).collect();
        let cases = [
            ("seconds", made(&|n| 1_700_000_000_000 + n * 1000), true),
            ("jitter", made(&|n| n * 1_000_000 + random(n).rem_euclid(1000)), true),
            ("random", made(&|n| random(n) << 20), true),
            ("walk", walk, true),
            ("codes", made(&|n| [200, 404, 500][usize::try_from(random(n).rem_euclid(3)).unwrap()]), false),
            ("runs", made(&|n| n / 500), false),
            ("runs of codes", made(&|n| random(n / 500)), false),
            ("constant", made(&|_| 7), false),
            ("interleaved", interleaved, false),
            ("extremes", made(&|n| if n % 2 == 0 { i64::MIN } else { i64::MAX }), false),
            ("one", vec![1], true),
            ("none", vec![], false),
        ];
        for (name, values, expected) in cases {
            assert_eq!(are_close(&values), expected, "{name}");
        }
    }
}
