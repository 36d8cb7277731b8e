//! Settings: plain values, each with its unit, its default, and what grows better and worse with
//! it.

mod durability;

use std::{str::FromStr, time::Duration};

pub use durability::Durability;

use crate::{AccessScope, ColumnTypes, Error, Result, memory::available_bytes};

/// Unit of the timestamps of a write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Precision {
    /// `ns` or `n`.
    #[default]
    Nanosecond,
    /// `us` or `u`.
    Microsecond,
    /// `ms`.
    Millisecond,
    /// `s`.
    Second,
    /// `m`, of InfluxDB 1.x.
    Minute,
    /// `h`, of InfluxDB 1.x.
    Hour,
}

impl Precision {
    /// Returns how many nanoseconds one unit has.
    ///
    /// ```
    /// assert_eq!(arc_core::Precision::Millisecond.nanoseconds(), 1_000_000);
    /// assert_eq!("ms".parse(), Ok(arc_core::Precision::Millisecond));
    /// ```
    #[must_use]
    pub const fn nanoseconds(self) -> i64 {
        match self {
            Self::Nanosecond => 1,
            Self::Microsecond => 1_000,
            Self::Millisecond => 1_000_000,
            Self::Second => 1_000_000_000,
            Self::Minute => 60_000_000_000,
            Self::Hour => 3_600_000_000_000,
        }
    }
}

impl Precision {
    /// Guesses the unit of a time that nothing has declared: below 1e10 seconds, below 1e13
    /// milliseconds, below 1e16 microseconds, else nanoseconds.
    pub(crate) const fn of_magnitude(time: i64) -> Self {
        if time < 10_000_000_000 {
            Self::Second
        } else if time < 10_000_000_000_000 {
            Self::Millisecond
        } else if time < 10_000_000_000_000_000 {
            Self::Microsecond
        } else {
            Self::Nanosecond
        }
    }
}

impl FromStr for Precision {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "ns" | "n" => Ok(Self::Nanosecond),
            "us" | "u" | "µs" => Ok(Self::Microsecond),
            "ms" => Ok(Self::Millisecond),
            "s" => Ok(Self::Second),
            "m" => Ok(Self::Minute),
            "h" => Ok(Self::Hour),
            _ => Err(format!("{s:?} is not a precision; expected ns, us, ms, s, m or h")),
        }
    }
}

/// Settings of an [`Engine`](crate::Engine).
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("data");
/// use std::time::Duration;
///
/// use arc_core::{Durability, Engine, Options};
///
/// let mut options = Options::default();
/// options.durability = Durability::Process;
/// options.flush_after = Duration::from_secs(10);
/// options.memory_bytes = 1 << 30;
/// let engine = Engine::builder(&path).options(options).open()?;
/// # engine.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// What an acknowledged point survives, unless its write or its database says otherwise.
    /// Default [`Durability::Disk`].
    pub durability: Durability,
    /// Least time from one put of the log into the object store to the next, where writes ask for
    /// [`Durability::Remote`]. Default 100 ms. What comes meanwhile goes together: longer makes these
    /// writes wait longer, shorter makes more requests, each of which is paid for; ten a second
    /// cost about 130 dollars a month where a thousand puts cost half a cent. 0 puts again as soon as the
    /// last put was answered.
    pub remote_interval: Duration,
    /// What becomes of values whose type is not that of their column, unless their table or
    /// database says otherwise, and the unit of the times in data files. Default nothing: the first
    /// value decides the type of a column, others are refused, and times are in nanoseconds.
    pub column_types: ColumnTypes,
    /// Oldest age of unflushed points before they are written to data files. Default 60 s. Longer
    /// gives fewer and larger files and a longer replay after a crash.
    pub flush_after: Duration,
    /// Memory that unflushed points, queued writes, flushes, queries and compaction share, in
    /// bytes. Default: half of what the control group or the machine has; at least 16 MiB. With
    /// less, writes fail as busy and queries spill sooner. It limits the settings below to shares
    /// of it: `flush_bytes` to an eighth, `max_buffer_bytes` and what one write takes to a quarter,
    /// `query_memory_bytes` to three eighths; compaction has the last eighth. A sixteenth may
    /// go to what finds the series of lines quickly, once there are some ten thousand. Not counted:
    /// schemas, series (about 150 bytes each), lists of data files, kept receipts, and the log's replay on
    /// open.
    pub memory_bytes: usize,
    /// Memory that the whole process may come to hold, in bytes: what the budget above counts, what
    /// it does not, and whatever else runs in this process. Default: what the control group or the
    /// machine has; 0 is no limit. Linux only. From three quarters of it on queries get little more
    /// memory; from seven eighths on the largest one is ended as busy, no new one begins, and
    /// writes wait for a flush.
    pub max_resident_bytes: usize,
    /// Bytes of unflushed points, over all tables, that start a flush; what is being flushed does
    /// not count. Default 64 MiB. More gives larger files and costs that much memory, twice while a
    /// flush runs. Where points come quickly, and `memory_bytes` is 1 GiB or more, the memory of
    /// flushed points is kept for the next ones, until a flush finds few.
    pub flush_bytes: usize,
    /// Tables, and days of one, with little to flush, by `pack_bytes`, from which on a flush writes
    /// their rows into one file, a pack, instead of a file for each. Default 64. Fewer files cost
    /// less to write, and other programs cannot read a pack as they read a data file; compaction
    /// takes its rows to files of their own, at the latest when their day is over.
    pub pack_tables: usize,
    /// Bytes in memory of what a table has to flush of a day, up to which that is little. Default 1
    /// MiB; 0 writes no packs. More saves less and less, for writing the rows then costs more than
    /// the file.
    pub pack_bytes: usize,
    /// Bytes of log since the last flush that start a flush. Default 512 MiB. More gives a longer
    /// replay after a crash.
    pub flush_wal_bytes: u64,
    /// Bytes of unflushed points, over all tables and the log's queue, above which writes wait.
    /// Default 160 MiB.
    pub max_buffer_bytes: usize,
    /// How long a write waits for room before it fails as busy. Default 5 s.
    pub write_timeout: Duration,
    /// Size of one log segment in bytes. Default 64 MiB; at least 64 KiB. Smaller segments are
    /// released sooner.
    pub wal_segment_bytes: u64,
    /// Whether data files are merged, and those past their retention dropped, by a thread of the
    /// engine. Default yes. Without it both happen in [`Engine::compact`](crate::Engine::compact)
    /// only.
    pub compaction: bool,
    /// Data files of one table and day, of about the same number of rows, that are merged into one;
    /// of files of a million rows and more it takes four times as many, and those of append-only
    /// tables are left alone. Default 8; at least 2. More rewrites each row less often, and leaves
    /// queries more files to read.
    pub compaction_files: usize,
    /// Size in bytes of the data files that a day which is over ends up in. Default 512 MiB. Larger
    /// files are fewer to plan with, and a late point has more to be merged into.
    pub compaction_file_bytes: u64,
    /// How long a day must be over, and have got no points, before its files are rewritten for the
    /// last time. Default 1 h. Longer waits for more late points before it merges them.
    pub compaction_quiet: Duration,
    /// How long a data file that was replaced or expired stays on disk, in `past/`. Default 600 s, which is
    /// longer than a query may run. It stays in any case while a query or view of this process
    /// needs it: this is for readers that were given its path.
    pub compaction_grace: Duration,
    /// How long older states can be asked for (`FOR SYSTEM_TIME AS OF`). Default 1 h; 0 is not at
    /// all. For so long data files that were merged, dropped, deleted from or past their retention
    /// stay on disk, `compaction_grace` more; and so do points that were deleted.
    pub history: Duration,
    /// Most bytes of the log that stay after their points are in data files, so that a state
    /// between two flushes can be asked for. Default 512 MiB. What is older than they reach cannot
    /// be asked for, whatever `history` says. They are given up when the disk is full.
    pub history_log_bytes: u64,
    /// Databases that there may be; a write or statement that would make one more is refused.
    /// Default 10,000; 0 is no limit. What is there when the engine is opened stays, however many
    /// that are.
    pub max_databases: usize,
    /// Tables that there may be, of all databases; a write that would make one more is refused as a
    /// whole. Default 1,000,000, each of which takes some 9 KB of memory that is in no budget; 0 is
    /// no limit.
    pub max_tables: usize,
    /// Memory that all running queries share, in bytes, before they spill to disk. Default 1 GiB.
    /// Half of it, at most 128 MiB, is for what operators hold without counting it. With less than
    /// 64 MiB for each core, a query uses fewer cores.
    pub query_memory_bytes: usize,
    /// Longest time a query may run. Default 300 s.
    pub query_timeout: Duration,
    /// Whether retention waits for pushes: rows past it stay until every directory that rows were
    /// ever handed to has them, and all of them where there is none. Default no: what is past its
    /// retention goes, handed over or not. A week without a network costs disk then, and no rows.
    pub retention_waits_for_push: bool,
    /// Receipts kept for idempotency keys, over all databases; beyond that the oldest is forgotten,
    /// and a retry of its write stores it again. Default 262,144; at least 1. Each costs about 250
    /// bytes of memory, and 100 bytes of the manifest.
    pub idempotency_keys: usize,
    /// How long a receipt is kept for an idempotency key, if it is not forgotten earlier to make
    /// room. Default 24 h. May be kept up to one flush longer.
    pub idempotency_window: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            remote_interval: Duration::from_millis(100),
            column_types: ColumnTypes::default(),
            flush_after: Duration::from_secs(60),
            memory_bytes: default_memory_bytes(),
            max_resident_bytes: usize::try_from(available_bytes()).unwrap_or(usize::MAX),
            flush_bytes: 64 << 20,
            pack_tables: 64,
            pack_bytes: 1 << 20,
            flush_wal_bytes: 512 << 20,
            max_buffer_bytes: 160 << 20,
            write_timeout: Duration::from_secs(5),
            wal_segment_bytes: 64 << 20,
            compaction: true,
            compaction_files: 8,
            compaction_file_bytes: 512 << 20,
            compaction_quiet: Duration::from_secs(3_600),
            compaction_grace: Duration::from_secs(600),
            history: Duration::from_secs(3_600),
            history_log_bytes: 512 << 20,
            max_databases: 10_000,
            max_tables: 1_000_000,
            query_memory_bytes: 1 << 30,
            query_timeout: Duration::from_secs(300),
            retention_waits_for_push: false,
            idempotency_keys: 1 << 18,
            idempotency_window: Duration::from_secs(24 * 3600),
        }
    }
}

impl Options {
    /// Lowers the limits of the parts to their shares: writes a quarter, a flush as much again for
    /// its copy of them, queries three eighths; the last eighth is for compaction. So none of them
    /// can take what another one needs to go on.
    pub(crate) fn within_budget(self) -> Self {
        let all = self.memory_bytes;
        Self {
            flush_bytes: self.flush_bytes.min(all / 8),
            max_buffer_bytes: self.max_buffer_bytes.min(all / 4),
            query_memory_bytes: self.query_memory_bytes.min(all / 8 * 3),
            ..self
        }
    }
}

/// Half of what there is, in whole MiB.
fn default_memory_bytes() -> usize {
    usize::try_from(available_bytes() / 2).unwrap_or(usize::MAX) >> 20 << 20
}

/// Longest idempotency key in bytes.
const MAX_KEY_BYTES: usize = 255;

/// Settings of one write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteOptions {
    /// Unit of the timestamps. Default: nanoseconds for line protocol, by magnitude for
    /// MessagePack, the column's own type for Arrow (nanoseconds where it is a plain integer).
    pub precision: Option<Precision>,
    /// What the acknowledged points survive. Default: the database's
    /// ([`Engine::set_database_durability`](crate::Engine::set_database_durability)), else the
    /// engine's.
    pub durability: Option<Durability>,
    /// Columns of a columnar write that are tags: with the time they identify a row, so that a
    /// second write of the same row merges. Default: the tags the table has. Not used by line
    /// protocol, which names its tags itself.
    pub tags: Vec<String>,
    /// The column that holds the time, in Arrow writes. Default `time`.
    pub time_column: Option<String>,
    /// A name for this write, so that sending it again stores nothing and answers the first
    /// receipt: 1 to 255 bytes of text without control characters, blank neither first nor last.
    /// Default: none, every write is a new one.
    ///
    /// Names are the database's own, and last as long as [`Options::idempotency_keys`] and
    /// [`Options::idempotency_window`] say. They survive what the points of the write survive.
    pub idempotency_key: Option<String>,
    /// Whether one line or item that is refused refuses all others as well. Default no: the good
    /// ones are stored.
    pub whole: bool,
    /// How long to wait for room while the engine's memory is full, before the write is refused as
    /// [`Busy`](crate::ErrorKind::Busy). Default: [`Options::write_timeout`]. Zero is for threads
    /// that must not wait.
    pub max_wait: Option<Duration>,
    /// The tables that the write may be for; for one of others it is refused as a whole. Default
    /// none: all.
    pub scope: Option<AccessScope>,
}

impl WriteOptions {
    /// Returns the defaults.
    ///
    /// ```
    /// use arc_core::{Durability, Precision, WriteOptions};
    ///
    /// let options = WriteOptions::new().precision(Precision::Second).durability(Durability::Process);
    /// assert_eq!(options.precision, Some(Precision::Second));
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the unit of the timestamps.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// use arc_core::{Precision, WriteOptions};
    ///
    /// let options = WriteOptions::new().precision(Precision::Second);
    /// let _ = engine.submit_lp("plant", "pump,id=7 rpm=1450i 1700000000".into(), &options)?.wait()?;
    /// assert_eq!(engine.view("plant", "pump")?.buffers[0].min_time, 1_700_000_000_000_000_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = Some(precision);
        self
    }

    /// Sets what the acknowledged points survive.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// use arc_core::{Durability, WriteOptions};
    ///
    /// let options = WriteOptions::new().durability(Durability::Memory);
    /// let written = engine.submit_lp("plant", "pump,id=7 rpm=1450i".into(), &options)?.wait()?;
    /// assert_eq!(written.durability, Durability::Memory);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    /// Sets which columns are tags.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// use std::sync::Arc;
    ///
    /// use arc_core::WriteOptions;
    /// use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    ///
    /// let times: ArrayRef = Arc::new(Int64Array::from(vec![10]));
    /// let ids: ArrayRef = Arc::new(StringArray::from(vec!["7"]));
    /// let batch = RecordBatch::try_from_iter([("time", times.clone()), ("id", ids), ("rpm", times)])?;
    /// let options = WriteOptions::new().tags(["id"]);
    /// let _ = engine.submit_batches("plant", "pump", &[batch], &options)?.wait()?;
    /// let schema = engine.schema("plant", "pump")?;
    /// assert_eq!(schema.tags().next().map(|tag| tag.name.as_ref()), Some("id"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn tags<S: Into<String>>(mut self, tags: impl IntoIterator<Item = S>) -> Self {
        self.tags = tags.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the column that holds the time.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// use std::sync::Arc;
    ///
    /// use arc_core::WriteOptions;
    /// use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    ///
    /// let times: ArrayRef = Arc::new(Int64Array::from(vec![10]));
    /// let rpm: ArrayRef = Arc::new(Int64Array::from(vec![1450]));
    /// let batch = RecordBatch::try_from_iter([("measured_at", times), ("rpm", rpm)])?;
    /// let options = WriteOptions::new().time_column("measured_at");
    /// let written = engine.submit_batches("plant", "pump", &[batch], &options)?.wait()?;
    /// assert_eq!(written.points, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn time_column(mut self, name: impl Into<String>) -> Self {
        self.time_column = Some(name.into());
        self
    }

    /// Sets whether the write is stored as a whole or not at all.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// use arc_core::WriteOptions;
    ///
    /// let lines = "pump,id=7 rpm=1450i\npump,id=8 rpm=?";
    /// let written = engine.submit_lp("plant", lines.into(), &WriteOptions::new().whole(true))?.wait()?;
    /// // The good line is not stored either.
    /// assert_eq!((written.points, written.rejected_points), (0, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn whole(mut self, whole: bool) -> Self {
        self.whole = whole;
        self
    }

    /// Sets how long to wait for room.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// use std::time::Duration;
    ///
    /// use arc_core::{ErrorKind, WriteOptions};
    ///
    /// let options = WriteOptions::new().max_wait(Duration::ZERO);
    /// match engine.submit_lp("plant", "pump,id=7 rpm=1450i".into(), &options) {
    ///     Ok(pending) => assert_eq!(pending.wait()?.points, 1),
    ///     Err(error) if error.kind() == ErrorKind::Busy => println!("memory is full: come back later"),
    ///     Err(error) => return Err(error.into()),
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = Some(max_wait);
        self
    }

    /// Sets which tables the write may be for.
    #[must_use]
    pub fn scope(mut self, scope: AccessScope) -> Self {
        self.scope = Some(scope);
        self
    }

    /// Names the write, so that it can be sent again if its answer is lost.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// use arc_core::WriteOptions;
    ///
    /// let options = WriteOptions::new().idempotency_key("batch-17");
    /// for replayed in [false, true] {
    ///     let written = engine.submit_lp("plant", "pump,id=7 rpm=1450i".into(), &options)?.wait()?;
    ///     assert_eq!((written.points, written.replayed), (1, replayed));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// Checks what can be wrong whatever is written. Every write does so by itself.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for an idempotency key that cannot be one.
    pub fn check(&self) -> Result<()> {
        self.idempotency_key.as_deref().map_or(Ok(()), check_key)
    }
}

fn check_key(key: &str) -> Result<()> {
    let reason = if key.is_empty() {
        "it is empty"
    } else if key.len() > MAX_KEY_BYTES {
        "it is longer than 255 bytes"
    } else if key.chars().any(char::is_control) {
        "it has a control character"
    } else if key.trim() != key {
        "it begins or ends with a blank"
    } else {
        return Ok(());
    };
    Err(Error::InvalidName { what: "idempotency key", name: key.chars().take(64).collect(), reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::merge_share;

    #[test]
    fn the_shares_fit_together() {
        for (memory_bytes, expected) in
            [(64 << 20, (8 << 20, 16 << 20, 24 << 20)), (1 << 40, (64 << 20, 160 << 20, 1 << 30))]
        {
            let options = Options { memory_bytes, ..Options::default() }.within_budget();
            assert_eq!((options.flush_bytes, options.max_buffer_bytes, options.query_memory_bytes), expected);
            let all = 2 * options.max_buffer_bytes + options.query_memory_bytes + merge_share(memory_bytes);
            assert!(all <= memory_bytes);
        }
    }
}
