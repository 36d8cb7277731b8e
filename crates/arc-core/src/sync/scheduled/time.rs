//! Time: that of the schedule, or that of the process.

use std::{ops::Add, sync::LazyLock, time::Duration};

use super::world::me;

#[expect(clippy::disallowed_methods, reason = "a thread that is in no schedule has the time of the process")]
static BEGAN: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);

/// A moment, after the beginning of the schedule or of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(Duration);

impl Instant {
    /// Returns this moment.
    #[must_use]
    pub fn now() -> Self {
        Self(me().map_or_else(|| BEGAN.elapsed(), |me| me.now()))
    }

    /// Returns the time since then.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }

    /// Returns the time since `earlier`: zero, if that is later.
    #[must_use]
    pub fn saturating_duration_since(&self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns a later moment, if there is one.
    #[must_use]
    pub fn checked_add(self, time: Duration) -> Option<Self> {
        self.0.checked_add(time).map(Self)
    }

    /// Returns the time from now until then.
    pub(super) fn time_left(self) -> Duration {
        self.0.saturating_sub(Self::now().0)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }
}
