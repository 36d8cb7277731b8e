//! What came of an import.

use std::collections::{BTreeSet, HashSet};

/// Nanoseconds of a day, which is what a partition spans.
const DAY_NS: i64 = 86_400_000_000_000;

/// How many refusals a report names; the others are counted, and told as they are found.
pub const MAX_REFUSALS: usize = 100;

/// A row that was not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// Physical line of line protocol and CSV, else the number of the row; the first is 1.
    pub row: u64,
    /// Name of the column; of line protocol the byte in the line, the first is 1; empty where
    /// neither means anything.
    pub column: String,
    /// What was found, and what was expected.
    pub reason: String,
}

/// What became of a column of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportColumn {
    /// Its name in the file.
    pub name: String,
    /// `time`, `tag`, `float`, `integer`, `unsigned`, `boolean`, `string`, another type of Arrow;
    /// `left out` of one that was to be, `empty` of one that has no value.
    pub kind: String,
    /// Where no setting and no table says the type: the first value, and its line, after which it
    /// could be no other.
    pub decided_by: Option<(u64, String)>,
}

/// What there is of a file in the store now, after an import to its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportReport {
    /// Rows stored now.
    pub rows: u64,
    /// Rows that an earlier import of the same file had stored.
    pub rows_before: u64,
    /// Rows refused, all of them counted.
    pub refused: u64,
    /// The first [`MAX_REFUSALS`] of them.
    pub refusals: Vec<Refusal>,
    /// Tables that the file has rows of.
    pub tables: BTreeSet<String>,
    /// Columns of a CSV, Parquet or Arrow file in its order, with that of the time under its name
    /// in the table.
    pub columns: Vec<String>,
    /// All columns of such a file, and what they were taken for.
    pub types: Vec<ImportColumn>,
    /// What times were taken for, where the import did not say it and they do not say it
    /// themselves: `seconds since 1970`, `digits of YYYYMMDD`, `day before month`.
    pub time_form: Option<String>,
    /// Times of the oldest and the newest row that says its time, in nanoseconds.
    pub times: Option<(i64, i64)>,
    /// Days that the rows are of.
    pub days: u64,
}

/// An event of an import under way.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum ImportEvent<'a> {
    /// All rows up to here are stored or refused.
    Progress {
        /// Bytes of the file as it lies on disk.
        bytes: u64,
        /// Rows stored by now, also by an earlier import.
        rows: u64,
    },
    /// A row was refused.
    Refused(&'a Refusal),
    /// Rows were refused that are not named one by one, because a write names the first hundred
    /// only.
    AlsoRefused {
        /// How many.
        count: u64,
        /// The line or row that they are after, of those in the same write.
        after: u64,
    },
    /// The target is busy, and the import waits.
    Waiting {
        /// What the target says.
        reason: &'a str,
    },
}

/// What a column is called that no row has.
pub(super) const LEFT_OUT: &str = "left out";

/// What a reader has found out of a file before its first row.
#[derive(Debug, Default)]
pub(super) struct FileShape {
    pub(super) columns: Vec<ImportColumn>,
    pub(super) times: Option<String>,
}

/// What a piece of a file has.
#[derive(Debug, Default)]
pub(super) struct Extent {
    pub(super) tables: BTreeSet<String>,
    pub(super) times: Option<(i64, i64)>,
    days: HashSet<i64>,
    /// The day that was added last, which most rows share with the row before.
    last_day: Option<i64>,
}

impl Extent {
    /// Takes note of a row's time.
    pub(super) fn add_time(&mut self, time: i64) {
        let (oldest, newest) = self.times.unwrap_or((time, time));
        self.times = Some((oldest.min(time), newest.max(time)));
        let day = Some(time.div_euclid(DAY_NS));
        if self.last_day != day {
            self.days.extend(day);
            self.last_day = day;
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.tables.extend(other.tables);
        self.days.extend(other.days);
        for time in other.times.into_iter().flat_map(|(oldest, newest)| [oldest, newest]) {
            let (oldest, newest) = self.times.unwrap_or((time, time));
            self.times = Some((oldest.min(time), newest.max(time)));
        }
    }

    pub(super) fn days(&self) -> u64 {
        self.days.len() as u64
    }
}
