//! A seeded source of random numbers, the same on every machine and for ever.
//!
//! Never a source of secrets. SplitMix64: one addition and three multiplications a number, so that
//! making data costs little beside writing it.

/// Random numbers from a seed.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Returns the sequence of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns the sequence of part `part` of `seed`: other parts do not change when one takes more
    /// numbers.
    #[must_use]
    pub fn part(seed: u64, part: u64) -> Self {
        let mut random = Self::new(seed ^ part.wrapping_mul(0xA076_1D64_78BD_642F));
        random.next_u64();
        random
    }

    /// Returns the next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number from 0 to `bound - 1`; 0 for a bound of 0. Its bias is below 1 in 2^32 for
    /// bounds below 2^32.
    pub fn below(&mut self, bound: u64) -> u64 {
        u64::try_from((u128::from(self.next_u64()) * u128::from(bound)) >> 64).unwrap_or(0)
    }

    /// Returns an index into a list of `len` items.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }

    /// Returns one of `items`, the default of the type when there are none.
    pub fn pick<T: Copy + Default>(&mut self, items: &[T]) -> T {
        let index = self.index(items.len());
        items.get(index).copied().unwrap_or_default()
    }

    /// Returns a float from 0 up to and without 1, with all 53 bits random.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a step of a random walk: mean 0, deviation 1, nearly normal (the sum of four uniform
    /// numbers).
    pub fn step(&mut self) -> f64 {
        let bits = self.next_u64();
        let sum: u64 = (0..4).map(|lane| (bits >> (lane * 16)) & 0xFFFF).sum();
        // Four uniform numbers on 0..1 have mean 2 and variance 1/3.
        (sum as f64 / 65_536.0 - 2.0) * 3.0_f64.sqrt()
    }

    /// Returns true once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Brings `items` into random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            let other = self.index(end + 1);
            items.swap(end, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_one_sequence() {
        let draw = |seed| (0..4).map(|_| Random::new(seed).next_u64()).collect::<Vec<_>>();
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        assert_ne!(Random::part(7, 0).next_u64(), Random::part(7, 1).next_u64());
    }

    #[test]
    fn numbers_stay_in_their_bounds() {
        let mut random = Random::new(1);
        for _ in 0..10_000 {
            assert!(random.below(10) < 10);
            assert!((0.0..1.0).contains(&random.unit()));
            assert!(random.step().abs() <= 2.0 * 3.0_f64.sqrt());
        }
        assert_eq!(random.below(0), 0);
        assert_eq!(random.pick::<u8>(&[]), 0);
    }

    #[test]
    fn steps_have_mean_zero_and_deviation_one() {
        let mut random = Random::new(2);
        let steps: Vec<f64> = (0..100_000).map(|_| random.step()).collect();
        let mean = steps.iter().sum::<f64>() / 1e5;
        let variance = steps.iter().map(|s| s * s).sum::<f64>() / 1e5 - mean * mean;
        assert!(mean.abs() < 0.02, "mean {mean}");
        assert!((variance - 1.0).abs() < 0.05, "variance {variance}");
    }

    #[test]
    fn shuffling_keeps_the_items() {
        let mut items: Vec<u32> = (0..100).collect();
        Random::new(3).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
