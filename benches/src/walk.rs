//! Random walks between 0 and 100: what a gauge of a machine looks like.
//!
//! Consecutive values of a series are near each other, as in monitoring and unlike in noise;
//! encodings are only measured fairly on such data.

use crate::random::Random;

/// The values of one series: a step of about 1 (mean 0, deviation 1) for each point, kept inside 0
/// to 100.
#[derive(Debug, Clone)]
pub struct Walk {
    random: Random,
    values: Vec<f64>,
}

impl Walk {
    /// Starts `fields` values anywhere between 0 and 100.
    #[must_use]
    pub fn new(mut random: Random, fields: usize) -> Self {
        let values = (0..fields).map(|_| random.unit() * 100.0).collect();
        Self { random, values }
    }

    /// Moves every value one step and returns them.
    pub fn advance(&mut self) -> &[f64] {
        for value in &mut self.values {
            *value = (*value + self.random.step()).clamp(0.0, 100.0);
        }
        &self.values
    }
}

/// Rounds to two decimals, as most agents send their gauges.
#[must_use]
pub fn two_decimals(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// Cuts to a whole number.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "a float outside i64 becomes its nearest end, which is fine here")]
pub fn whole(value: f64) -> i64 {
    value as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_stays_inside_its_bounds_and_moves_by_small_steps() {
        let mut walk = Walk::new(Random::new(1), 3);
        let mut before = walk.advance().to_vec();
        for _ in 0..10_000 {
            let now = walk.advance().to_vec();
            for (old, new) in before.iter().zip(&now) {
                assert!((0.0..=100.0).contains(new));
                assert!((new - old).abs() < 3.5);
            }
            before = now;
        }
    }

    #[test]
    fn rounding() {
        assert_eq!(two_decimals(12.345_67), 12.35);
        assert_eq!(whole(99.99), 99);
        assert_eq!(whole(f64::INFINITY), i64::MAX);
    }
}
