//! Unit of the times in data files.
//!
//! Times are nanoseconds everywhere else: this is about what other programs find in a file.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef, TimeUnit};

use super::{TIME_COLUMN, texts::texts};

/// Unit of the times in data files. Spark and other readers refuse nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FileTimeUnit {
    /// `ns`: every time fits.
    #[default]
    Nanosecond,
    /// `us`
    Microsecond,
    /// `ms`
    Millisecond,
}

impl FileTimeUnit {
    const ALL: [Self; 3] = [Self::Nanosecond, Self::Microsecond, Self::Millisecond];

    /// Returns how many nanoseconds one unit has.
    ///
    /// ```
    /// assert_eq!(arc_core::FileTimeUnit::Microsecond.nanoseconds(), 1_000);
    /// assert_eq!("us".parse(), Ok(arc_core::FileTimeUnit::Microsecond));
    /// ```
    #[must_use]
    pub const fn nanoseconds(self) -> i64 {
        match self {
            Self::Nanosecond => 1,
            Self::Microsecond => 1_000,
            Self::Millisecond => 1_000_000,
        }
    }

    /// Returns whether it has this time, in nanoseconds, exactly.
    pub(crate) const fn has(self, time_ns: i64) -> bool {
        time_ns % self.nanoseconds() == 0
    }

    pub(crate) fn is_nanosecond(&self) -> bool {
        *self == Self::Nanosecond
    }

    /// Returns the coarsest unit up to this that has all of these times, in nanoseconds.
    pub(crate) fn that_has(self, times: &[i64]) -> Self {
        let finer =
            |unit: Self, time: &i64| Self::ALL.into_iter().filter(|finer| *finer <= unit && finer.has(*time)).max();
        times.iter().fold(self, |unit, time| if unit.has(*time) { unit } else { finer(unit, time).unwrap_or_default() })
    }

    /// Returns the last time before `time_ns` that it has, in nanoseconds, or `time_ns` itself; the
    /// first of all where that would be before it.
    pub(crate) const fn floor(self, time_ns: i64) -> i64 {
        let whole = time_ns.div_euclid(self.nanoseconds()).checked_mul(self.nanoseconds());
        match whole {
            Some(whole) => whole,
            None => i64::MIN - i64::MIN % self.nanoseconds(),
        }
    }

    /// Returns the first time from `time_ns` on that it has, in nanoseconds; the last of all where
    /// that would be behind it.
    pub(crate) const fn ceil(self, time_ns: i64) -> i64 {
        let floor = self.floor(time_ns);
        match floor.checked_add(self.nanoseconds()) {
            Some(next) if floor < time_ns => next,
            _ => floor,
        }
    }

    /// Returns a schema of a data file, or of some of its columns, with its time in this unit. The
    /// time is the first column.
    pub(crate) fn in_schema(self, schema: &SchemaRef) -> SchemaRef {
        let time = schema.fields().first().filter(|first| first.name() == TIME_COLUMN);
        match time.map(|time| (time, time.data_type())) {
            Some((time, DataType::Timestamp(unit, zone))) if *unit != self.arrow() => {
                let data_type = DataType::Timestamp(self.arrow(), zone.clone());
                let time = Arc::new(time.as_ref().clone().with_data_type(data_type));
                let fields = std::iter::once(time).chain(schema.fields().iter().skip(1).cloned());
                Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
            }
            _ => Arc::clone(schema),
        }
    }

    /// Returns the type of the time column of a file.
    pub(crate) fn time_type(self) -> DataType {
        DataType::Timestamp(self.arrow(), Some("UTC".into()))
    }

    /// Returns the type of new columns of times beside it: readers take microseconds as well as
    /// milliseconds, and fewer values are finer.
    pub(crate) fn column_type(self) -> DataType {
        self.min(Self::Microsecond).time_type()
    }

    /// Returns the unit of a column of this type, if it is one that files have.
    pub(crate) fn of_type(data_type: &DataType) -> Option<Self> {
        let DataType::Timestamp(found, _) = data_type else { return None };
        Self::ALL.into_iter().find(|unit| unit.arrow() == *found)
    }

    const fn arrow(self) -> TimeUnit {
        match self {
            Self::Nanosecond => TimeUnit::Nanosecond,
            Self::Microsecond => TimeUnit::Microsecond,
            Self::Millisecond => TimeUnit::Millisecond,
        }
    }
}

texts!(
    FileTimeUnit,
    "no unit of the times in files",
    "ns, us or ms",
    [Nanosecond = "ns", Microsecond = "us", Millisecond = "ms"]
);

/// What becomes of a point whose time is finer than the [unit of its table](FileTimeUnit).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FinerTimes {
    /// It is stored as it is, and its file takes a unit that has its time.
    #[default]
    Keep,
    /// Its line, row or write is refused.
    Reject,
    /// Its time becomes the whole unit at or before it. Points of one series that come to have one
    /// time then are one point, of which the last counts.
    Round,
}

texts!(
    FinerTimes,
    "no way to deal with finer times",
    "keep, reject or round",
    [Keep = "keep", Reject = "reject", Round = "round"]
);
