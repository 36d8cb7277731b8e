//! Where the engine gets random numbers from: names of data files, salts of log segments.

use std::{
    fmt::Debug,
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
};

/// A source of numbers that do not repeat; comes in through the builder so that tests own it. Not
/// for secrets.
pub trait RandomSource: Debug + Send + Sync + 'static {
    /// Returns the next number.
    fn next(&self) -> u64;
}

/// Numbers from the operating system's seed.
#[derive(Debug, Default)]
pub struct SystemRandom {
    seed: RandomState,
    count: AtomicU64,
}

impl RandomSource for SystemRandom {
    fn next(&self) -> u64 {
        self.seed.hash_one(self.count.fetch_add(1, Ordering::Relaxed))
    }
}
