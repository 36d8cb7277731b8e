//! The rows of an input that are still wanted: the one place where compaction reads data files, and where rows that are
//! to be gone are left out.
//!
//! Whatever removes rows (their age, deletes) is applied here, before the merge, so that everything behind it only ever
//! sees rows that stay.

use std::sync::Arc;

use arrow::{
    array::{AsArray, BooleanArray, RecordBatch},
    compute::filter_record_batch,
    datatypes::{SchemaRef, TimestampNanosecondType},
};

use super::job::Job;
use crate::{
    Error, Result, Tombstone,
    datafile::{DataFile, DataFileStream},
    tombstone::live,
};

/// Which rows stay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Keep {
    /// Rows of this time and later stay; `None` keeps rows of any age.
    pub(crate) from_ns: Option<i64>,
}

/// The rows of one data file that stay, in its order.
pub(super) struct LiveRows {
    stream: DataFileStream,
    keep: Keep,
    tombstones: Vec<Arc<Tombstone>>,
    path: String,
}

/// Returns the live rows of a data file, of which `stream` has all rows.
pub(super) fn live_rows(job: &Job<'_>, file: &DataFile, stream: DataFileStream) -> LiveRows {
    let tombstones = job.tombstones.iter().filter(|tombstone| tombstone.applies_to(file)).cloned().collect();
    LiveRows { stream, keep: job.keep, tombstones, path: file.path.clone() }
}

impl LiveRows {
    /// Returns the schema of all batches; the first column is the time.
    pub(super) fn schema(&self) -> &SchemaRef {
        self.stream.schema()
    }

    /// Returns the path of the file, below the data directory.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    fn kept(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let batch = live(batch, &self.tombstones)?;
        let Some(from_ns) = self.keep.from_ns else { return Ok(batch) };
        let times = batch.column(0).as_primitive_opt::<TimestampNanosecondType>();
        let times = times.ok_or_else(|| Error::internal(format!("{} does not begin with a time", self.path)))?;
        if times.values().iter().all(|time| *time >= from_ns) {
            return Ok(batch);
        }
        let stays: BooleanArray = times.values().iter().map(|time| Some(*time >= from_ns)).collect();
        Ok(filter_record_batch(&batch, &stays)?)
    }
}

impl Iterator for LiveRows {
    type Item = Result<RecordBatch>;

    /// Returns the next rows; never an empty batch.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let batch = match self.stream.next()? {
                Ok(batch) => batch,
                Err(error) => return Some(Err(error)),
            };
            match self.kept(batch) {
                Ok(batch) if batch.num_rows() == 0 => {}
                kept => return Some(kept),
            }
        }
    }
}
