//! The clock of the parser's bench: processor time of the thread.
//!
//! What is measured runs on one thread and waits for nothing, so that this is its wall time on a
//! quiet machine; on a busy one, time that other programs get does not count (what they take of
//! caches and of a shared core still does).

use std::time::Duration;

use cpu_time::ThreadTime;
use criterion::measurement::{Measurement, ValueFormatter, WallTime};

/// Measures in nanoseconds of this thread's processor time.
pub(super) struct ThreadClock;

impl Measurement for ThreadClock {
    type Intermediate = ThreadTime;
    type Value = Duration;

    fn start(&self) -> ThreadTime {
        ThreadTime::now()
    }

    fn end(&self, start: ThreadTime) -> Duration {
        start.elapsed()
    }

    fn add(&self, one: &Duration, other: &Duration) -> Duration {
        *one + *other
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        value.as_nanos() as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}
