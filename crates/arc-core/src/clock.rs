//! Where the engine gets the time from.

use std::{
    fmt::Debug,
    time::{SystemTime, UNIX_EPOCH},
};

/// Wall clock; comes in through the builder so that tests own time.
pub trait Clock: Debug + Send + Sync + 'static {
    /// Returns nanoseconds since the Unix epoch.
    fn now_ns(&self) -> i64;
}

/// The operating system's clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that comes in")]
    fn now_ns(&self) -> i64 {
        // Past the year 2262 (or before 1970) the time does not fit; the nearest bound is as good
        // as any other.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    }
}
