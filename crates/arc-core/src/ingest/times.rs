//! What the unit of a table's times asks of the points of a request.
//!
//! A table may refuse or round times that are finer than its unit, and gives points without a time
//! whole units of their own. Never part of replay: what the log has was decided when it came in.

use super::staged::{Context, StagedTable};
use crate::{ColumnTypes, FileTimeUnit, FinerTimes};

/// Which times of a request have to be looked at: whether any table of its database has a unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum TimeChecks {
    #[default]
    None,
    /// Those that points without a time get.
    Untimed,
    All,
}

impl TimeChecks {
    pub(crate) fn new(has_unit: bool, has_finer: bool) -> Self {
        match (has_unit, has_finer) {
            (false, _) => Self::None,
            (true, false) => Self::Untimed,
            (true, true) => Self::All,
        }
    }
}

/// The unit of a table's times, and what becomes of finer ones.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TimeRules {
    pub(crate) unit: FileTimeUnit,
    finer: FinerTimes,
}

impl TimeRules {
    pub(crate) fn new(types: &ColumnTypes) -> Self {
        Self { unit: types.time_unit.unwrap_or_default(), finer: types.finer_times.unwrap_or_default() }
    }

    /// Returns the time that a point gets, in nanoseconds; the error says why it is refused.
    pub(crate) fn fit(self, time_ns: i64) -> Result<i64, String> {
        let unit = self.unit;
        match self.finer {
            _ if unit.has(time_ns) => Ok(time_ns),
            FinerTimes::Keep => Ok(time_ns),
            FinerTimes::Round => Ok(unit.floor(time_ns)),
            FinerTimes::Reject => Err(format!(
                "time {time_ns} ns is finer than the time_unit {unit} of its table, expected a multiple of {} ns; the \
                 setting finer_times = \"round\" would round it",
                unit.nanoseconds()
            )),
        }
    }
}

/// The points so far that came without a time. No two of them, of any requests, share one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct UntimedPoints {
    /// Nanoseconds from the time of receipt to the one after that of the last such point.
    pub(crate) passed_ns: i64,
    /// The coarsest unit that any of them has.
    pub(crate) unit: FileTimeUnit,
}

impl UntimedPoints {
    /// Returns the time of the next such point.
    pub(super) fn next(&self, receive_ns: i64, unit: FileTimeUnit) -> i64 {
        unit.ceil(receive_ns.saturating_add(self.passed_ns))
    }

    /// Counts a point that got the time `time_ns`.
    pub(super) fn count(&mut self, receive_ns: i64, time_ns: i64, unit: FileTimeUnit) {
        self.passed_ns = time_ns.saturating_sub(receive_ns).saturating_add(1);
        self.unit = self.unit.max(unit);
    }
}

impl StagedTable {
    /// Returns the unit of the table's times, if any was looked at.
    pub(crate) fn time_unit(&self) -> FileTimeUnit {
        self.rules.get().map(|rules| rules.times().unit).unwrap_or_default()
    }

    /// Returns what becomes of the times of its points; all nanoseconds where no table has a unit.
    pub(super) fn time_rules(&self, context: &Context<'_>) -> TimeRules {
        match context.times {
            TimeChecks::None => TimeRules::default(),
            TimeChecks::Untimed | TimeChecks::All => self.rules(context).times(),
        }
    }
}
