//! What is known of a data file without opening it: the values that the manifest records and
//! queries prune by.

use std::{ops::Range, path::Path};

use ulid::Ulid;

use super::{FileTimeUnit, PACK_SUFFIX, PartitionDay, packed, past_path, stored_path};

/// One immutable Parquet file, as the manifest records it.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct DataFile {
    /// Path below the data directory, with `/` between its parts. That of a small one may say where
    /// in a pack it lies: `<pack>/<offset>-<bytes>.parquet`; see [`packed`](Self::packed).
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// crc32c of the whole file.
    pub crc32c: u32,
    /// Its end, by which parts of it can be checked. `None` of a small file, which is read whole,
    /// and of one that an earlier build wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<FileTail>,
    /// Where in it its aggregates by hour are, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hourly: Option<HourlyBlock>,
    /// Number of rows.
    pub rows: u64,
    /// Unit of the times in it, which are nanoseconds everywhere else.
    #[serde(default, skip_serializing_if = "FileTimeUnit::is_nanosecond")]
    pub time_unit: FileTimeUnit,
    /// Oldest time in nanoseconds since the epoch.
    pub min_time: i64,
    /// Newest time in nanoseconds since the epoch.
    pub max_time: i64,
    /// First sequence number whose rows may be in the file.
    pub min_seq: u64,
    /// Last sequence number whose rows may be in the file.
    pub max_seq: u64,
    /// Deletes up to this sequence number have been carried out in the file: its rows are what they
    /// left. 0 where none was.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub deleted_seq: u64,
    /// Whether rows may have the primary key of rows in older files, which they overwrite field by
    /// field.
    pub late: bool,
    /// Column names by which the rows are sorted, ascending, nulls first.
    pub sorted_by: Vec<String>,
    /// Statistics of each column in the file, in the file's order.
    pub columns: Vec<ColumnStatistics>,
}

/// Some bytes of a data file, before its tail: its aggregates by series and hour (docs/format.md,
/// "Aggregates by hour").
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct HourlyBlock {
    /// Where they begin.
    pub offset: u64,
    /// How many they are.
    pub bytes: u64,
}

/// What is known of one column of one file without opening it.
///
/// Bounds are kept for `time`, tags, and fields of type `Float64`, `Boolean`, `Utf8`, `Date32`,
/// `Timestamp(Nanosecond)` and of integers of any width; columns of other types, and in files of
/// earlier builds dates and integers of fewer than 64 bits, have only their null count.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ColumnStatistics {
    /// Column name.
    pub name: String,
    /// Number of nulls.
    pub null_count: u64,
    /// Smallest value; `None` where all are null, a float column has any NaN, or no bound is kept
    /// for the type.
    pub min: Option<StatisticsValue>,
    /// Largest value, likewise; `None` too where a long text has no larger text of bounded length.
    pub max: Option<StatisticsValue>,
}

/// A bound of a column's values. Text bounds may be cut: a minimum is then lower, a maximum higher
/// than any value.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum StatisticsValue {
    /// Signed integer, or nanoseconds of a timestamp, or days of a date.
    Integer(i64),
    /// Unsigned integer.
    Unsigned(u64),
    /// Float, never NaN; a column with any NaN has no bounds. Ordered with -0.0 below 0.0.
    Float(f64),
    /// Boolean.
    Boolean(bool),
    /// Text, ordered by its bytes.
    Text {
        /// The bound.
        value: String,
        /// Whether a row has exactly this value.
        exact: bool,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl ColumnStatistics {
    /// Returns whether the values are floats, or integers that are no larger than all are floats,
    /// too.
    pub(crate) fn fits_floats(&self) -> bool {
        let fits = |bound: &Option<StatisticsValue>| match bound {
            None => true,
            Some(StatisticsValue::Integer(value)) => value.unsigned_abs() <= EXACT_FLOATS,
            Some(StatisticsValue::Unsigned(value)) => *value <= EXACT_FLOATS,
            Some(StatisticsValue::Float(_)) => true,
            Some(StatisticsValue::Boolean(_) | StatisticsValue::Text { .. }) => false,
        };
        fits(&self.min) && fits(&self.max)
    }
}

impl DataFile {
    /// Returns about how many bytes this takes in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        let text = |bound: &Option<StatisticsValue>| match bound {
            Some(StatisticsValue::Text { value, .. }) => value.len(),
            _ => 0,
        };
        let column = |column: &ColumnStatistics| {
            size_of::<ColumnStatistics>() + column.name.len() + text(&column.min) + text(&column.max)
        };
        let sorted_by = self.sorted_by.iter().map(|name| size_of::<String>() + name.len());
        size_of::<Self>() + self.path.len() + sorted_by.sum::<usize>() + self.columns.iter().map(column).sum::<usize>()
    }

    /// Returns in which file of many data files this one lies, by its path below the data
    /// directory, and where; `None` for a file of its own. The bytes there are a whole Parquet
    /// file.
    #[must_use]
    pub fn packed(&self) -> Option<(&str, Range<u64>)> {
        packed(&self.path)
    }

    /// Returns where it lies once no table has it any more, for as long as it is needed: a path below
    /// the data directory. `None` of one that stays where it is, such as one in a pack.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// # engine.flush()?;
    /// let file = &engine.data_files("plant", "pump")?[0];
    /// engine.drop_table("plant", "pump")?;
    /// assert!(!engine.path().join(&file.path).exists());
    /// assert!(engine.path().join(file.past_path().unwrap()).exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn past_path(&self) -> Option<String> {
        past_path(Path::new(&self.path))?.to_str().map(str::to_owned)
    }

    /// Returns the path of the file in which it is.
    pub(crate) fn stored_path(&self) -> &str {
        stored_path(&self.path)
    }

    /// Returns the place of a late file in the order in which late files overwrite each other,
    /// lowest first.
    pub(crate) fn version(&self) -> (u64, u64) {
        (self.max_seq, self.min_seq)
    }

    /// Returns whether some time may be in both files.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.min_time <= other.max_time && other.min_time <= self.max_time
    }

    /// Returns the day that all rows are of.
    pub(crate) fn day(&self) -> PartitionDay {
        PartitionDay::from_time_ns(self.min_time)
    }

    /// Returns when the newest of the rows was first written to a data file, in nanoseconds since
    /// the epoch, or, of a packed one, something later; `None` for a file that is not named as ours
    /// are.
    pub(crate) fn written_ns(&self) -> Option<i64> {
        let name = self.stored_path().rsplit('/').next()?;
        let name = name.strip_suffix(".parquet").or_else(|| name.strip_suffix(PACK_SUFFIX))?;
        let written_ms = i64::try_from(Ulid::from_string(name).ok()?.timestamp_ms()).ok()?;
        Some(written_ms.saturating_mul(1_000_000))
    }
}

/// Up to here every integer is a float, too.
pub(crate) const EXACT_FLOATS: u64 = 1 << 53;

/// The end of a data file, as the manifest records it: from the checksums of its blocks on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FileTail {
    /// Size in bytes.
    pub bytes: u64,
    /// crc32c of it.
    pub crc32c: u32,
}
