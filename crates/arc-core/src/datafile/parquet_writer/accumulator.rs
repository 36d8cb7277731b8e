//! What is told of a finished file, and what users gather about its rows themselves.

use std::path::PathBuf;

use arrow::array::RecordBatch;

use super::Value;
use crate::model::ColumnStatistics;

/// A finished file.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct WrittenFile<T = ()> {
    /// Where it is.
    pub path: PathBuf,
    /// Number of rows, at least 1.
    pub rows: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// What the writer has found out about its rows.
    pub statistics: FileStatistics,
    /// What the [`Accumulator`] has.
    pub accumulated: T,
}

/// What is known of the rows of one file.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct FileStatistics {
    /// Earliest time, in the unit of the time column; `None` without a time column, or where it is
    /// null throughout.
    pub first_time: Option<i64>,
    /// Latest time, likewise.
    pub last_time: Option<i64>,
    /// Null counts and bounds of the columns that are in the file, in its order. Timestamps are
    /// integers in their unit.
    pub columns: Vec<ColumnStatistics>,
    /// Distinct values of the columns that [`distinct`](super::ParquetWriterBuilder::distinct)
    /// names, in that order.
    pub distinct: Vec<DistinctValues>,
}

/// The distinct values of one column of one file, without null.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DistinctValues {
    /// Name of the column.
    pub column: String,
    /// The values in order: texts by their bytes, floats with -0.0 below 0.0. Empty where there are
    /// too many.
    pub values: Vec<Value<'static>>,
    /// Whether `values` has all of them: `false` where they are more than
    /// [`max_distinct`](super::ParquetWriterBuilder::max_distinct).
    pub complete: bool,
}

/// Gathers something about the rows of one file, as they pass by.
///
/// Each file gets an accumulator of its own, from the closure given to
/// [`open_with`](super::ParquetWriterBuilder::open_with). A pair of accumulators is one, too.
pub trait Accumulator: Send {
    /// What is handed out with the file.
    type Output;

    /// Takes in the next rows of the file: all declared columns, in their order, with the types
    /// that they have in the file.
    fn update(&mut self, rows: &RecordBatch);

    /// Ends with the file's last row.
    fn finish(self) -> Self::Output;
}

/// Gathers nothing.
impl Accumulator for () {
    type Output = ();

    fn update(&mut self, _: &RecordBatch) {}

    fn finish(self) {}
}

/// Gathers what both gather.
impl<A: Accumulator, B: Accumulator> Accumulator for (A, B) {
    type Output = (A::Output, B::Output);

    fn update(&mut self, rows: &RecordBatch) {
        self.0.update(rows);
        self.1.update(rows);
    }

    fn finish(self) -> Self::Output {
        (self.0.finish(), self.1.finish())
    }
}
