//! Atomic numbers and flags by which threads agree without a lock.

use std::sync::atomic::{self, Ordering};

use super::schedule::step;

/// A number.
#[derive(Debug, Default)]
pub struct AtomicU64(atomic::AtomicU64);

impl AtomicU64 {
    /// Begins with a number.
    #[must_use]
    pub fn new(value: u64) -> Self {
        Self(atomic::AtomicU64::new(value))
    }

    /// Returns the number.
    pub fn load(&self, order: Ordering) -> u64 {
        step();
        self.0.load(order)
    }

    /// Puts another in its place.
    pub fn store(&self, value: u64, order: Ordering) {
        step();
        self.0.store(value, order);
    }

    /// Adds to it; returns what it was.
    pub fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        step();
        self.0.fetch_add(value, order)
    }
}

/// A flag.
#[derive(Debug, Default)]
pub struct AtomicBool(atomic::AtomicBool);

impl AtomicBool {
    /// Begins with a flag.
    #[must_use]
    pub fn new(value: bool) -> Self {
        Self(atomic::AtomicBool::new(value))
    }

    /// Returns the flag.
    pub fn load(&self, order: Ordering) -> bool {
        step();
        self.0.load(order)
    }

    /// Puts another in its place.
    pub fn store(&self, value: bool, order: Ordering) {
        step();
        self.0.store(value, order);
    }

    /// Puts another in its place; returns what it was.
    pub fn swap(&self, value: bool, order: Ordering) -> bool {
        step();
        self.0.swap(value, order)
    }
}
