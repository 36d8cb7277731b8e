//! A sort with a limit above a scan, and where in a file its first rows are likely to be.

use datafusion::physical_expr::{PhysicalSortExpr, expressions::Column};

use super::range::TimeRange;
use crate::model::TIME_COLUMN;

/// Part of a row group's times that is looked at first: mostly it tells that no others are wanted.
const FIRST_LOOK: i64 = 256;

/// How a sort by time and maybe others orders rows, of which only the first are wanted.
#[derive(Debug, Clone)]
pub(super) struct Sorting {
    /// The column that it begins with.
    pub(super) first: Option<String>,
    pub(super) first_descends: bool,
    /// At which end of time the rows are that come first among those that are equal up to there.
    pub(super) time: EndOfTime,
}

impl Sorting {
    pub(super) fn of(order: &[PhysicalSortExpr]) -> Option<Self> {
        let name = |sort: &PhysicalSortExpr| Some(sort.expr.downcast_ref::<Column>()?.name().to_owned());
        let time = order.iter().find(|sort| name(sort).is_some_and(|name| name == TIME_COLUMN))?;
        let end = if time.options.descending { EndOfTime::Newest } else { EndOfTime::Oldest };
        let first = order.first()?;
        Some(Self { first: name(first), first_descends: first.options.descending, time: end })
    }
}

/// An end of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndOfTime {
    Oldest,
    Newest,
}

impl EndOfTime {
    /// Returns what the files or row groups of some times are ordered by, those nearest to the end
    /// first.
    pub(super) fn rank(self, bounds: TimeRange) -> i64 {
        match self {
            Self::Oldest => bounds.min,
            Self::Newest => !bounds.max,
        }
    }

    /// Returns a small part of some times, at this end.
    fn first(self, bounds: TimeRange) -> TimeRange {
        let width = (bounds.max / FIRST_LOOK).saturating_sub(bounds.min / FIRST_LOOK);
        match self {
            Self::Oldest => TimeRange::new(bounds.min, bounds.min.saturating_add(width)),
            Self::Newest => TimeRange::new(bounds.max.saturating_sub(width), bounds.max),
        }
    }
}

/// How much of the row groups of a file is opened next.
#[derive(Debug, Clone, Copy)]
pub(super) enum Look {
    /// The first row group at one end of its times.
    OneEnd,
    /// The others there.
    OtherEnds,
    /// What is left of them.
    Rest,
}

impl Look {
    pub(super) const ALL: [Self; 3] = [Self::OneEnd, Self::OtherEnds, Self::Rest];

    /// Returns which of the times of the row group with this index are looked at.
    pub(super) fn times(self, index: usize, bounds: TimeRange, end: EndOfTime) -> TimeRange {
        match (self, index) {
            (Self::OneEnd, 0) | (Self::OtherEnds, 1..) => end.first(bounds),
            (Self::OneEnd, _) | (Self::OtherEnds, _) => TimeRange::NONE,
            (Self::Rest, _) => bounds,
        }
    }
}
