//! The rows of an input that are still wanted: the one place where compaction reads data files, and
//! where rows that are to be gone are left out.
//!
//! Whatever removes rows (their age, deletes) is applied here, before the merge, so that everything
//! after it only ever sees rows that stay.

use std::sync::Arc;

use arrow::{
    array::{AsArray, BooleanArray, RecordBatch},
    compute::filter_record_batch,
    datatypes::{FieldRef, Schema, SchemaRef, TimestampNanosecondType},
};

use super::job::MergeJob;
use crate::{
    Error, Result, Tombstone,
    buffer::converted,
    datafile::DataFileStream,
    model::{DataFile, live, may_become},
};

/// Which rows stay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Keep {
    /// Rows of this time and later stay; `None` keeps rows of any age.
    pub(crate) from_ns: Option<i64>,
}

/// The rows of some time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) from_ns: i64,
    /// `None` where there is no end to it.
    pub(super) before_ns: Option<i64>,
}

impl Part {
    pub(super) fn overlaps(&self, file: &DataFile) -> bool {
        file.max_time >= self.from_ns && self.before_ns.is_none_or(|before| file.min_time < before)
    }

    fn has(&self, time_ns: i64) -> bool {
        time_ns >= self.from_ns && self.before_ns.is_none_or(|before| time_ns < before)
    }
}

/// The rows of one data file that stay, in its order.
pub(super) struct LiveRows {
    stream: DataFileStream,
    part: Part,
    tombstones: Vec<Arc<Tombstone>>,
    path: String,
    /// The file's columns, of the types that the table has by now.
    schema: SchemaRef,
}

/// Returns the live rows of some time of a data file, of which `stream` has all rows, with columns
/// of the types that `wanted` has.
pub(super) fn live_rows(
    job: &MergeJob<'_>,
    file: &DataFile,
    part: Part,
    stream: DataFileStream,
    wanted: &Schema,
) -> LiveRows {
    let field = |field: &FieldRef| match wanted.field_with_name(field.name()) {
        Ok(wanted) if may_become(field.data_type(), wanted.data_type()) => {
            Arc::new(field.as_ref().clone().with_data_type(wanted.data_type().clone()))
        }
        _ => Arc::clone(field),
    };
    let schema = Arc::new(Schema::new(stream.schema().fields().iter().map(field).collect::<Vec<_>>()));
    let tombstones = job.tombstones.iter().filter(|tombstone| tombstone.applies_to(file)).cloned().collect();
    let part = Part { from_ns: part.from_ns.max(job.keep.from_ns.unwrap_or(i64::MIN)), ..part };
    LiveRows { stream, part, tombstones, path: file.path.clone(), schema }
}

impl LiveRows {
    /// Returns the schema of all batches; the first column is the time.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the path of the file, below the data directory.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    fn kept(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let columns = batch.columns().iter().zip(self.schema.fields());
        let columns = columns.map(|(array, field)| converted(array, field.data_type())).collect::<Result<_>>()?;
        // Deletes that came after a column had changed its type compare with values of that.
        let batch = live(RecordBatch::try_new(Arc::clone(&self.schema), columns)?, &self.tombstones)?;
        if self.part.from_ns == i64::MIN && self.part.before_ns.is_none() {
            return Ok(batch);
        }
        let times = batch.column(0).as_primitive_opt::<TimestampNanosecondType>();
        let times = times.ok_or_else(|| Error::internal(format!("{} does not begin with a time", self.path)))?;
        if times.values().iter().all(|time| self.part.has(*time)) {
            return Ok(batch);
        }
        let stays: BooleanArray = times.values().iter().map(|time| Some(self.part.has(*time))).collect();
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
