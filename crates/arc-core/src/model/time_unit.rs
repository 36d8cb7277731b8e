//! Unit of the times in data files.
//!
//! Times are nanoseconds everywhere else: this is about what other programs find in a file.

use std::{fmt, str::FromStr};

use arrow::datatypes::{DataType, TimeUnit};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

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

    /// Returns the type of the time column of a file.
    pub(crate) fn time_type(self) -> DataType {
        DataType::Timestamp(self.arrow(), Some("UTC".into()))
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

impl fmt::Display for FileTimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nanosecond => "ns",
            Self::Microsecond => "us",
            Self::Millisecond => "ms",
        })
    }
}

impl FromStr for FileTimeUnit {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|unit| unit.to_string() == s);
        found.ok_or_else(|| format!("{s:?} is no unit of the times in files; expected ns, us or ms"))
    }
}

impl Serialize for FileTimeUnit {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FileTimeUnit {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<'_, str>::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}
