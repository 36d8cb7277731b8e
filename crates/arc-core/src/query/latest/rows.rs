//! Makes the rows of the answer, once it is known which they are: reads no other rows of a file.

use std::{collections::HashMap, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array},
    compute::{concat, take},
};
use datafusion::common::{DataFusionError, Result};

use super::{
    cache::{FileKey, KnownFile},
    job::{NewestRowsJob, PartRows},
    read::{DataFileReader, WhichRows, collect},
    search::{FoundNewest, FoundRows},
};
use crate::{
    buffer::ChunkRows,
    model::{DataFile, TIME_COLUMN},
    query::error::external,
};

/// Returns the rows at `entries` of the index of `found`.
pub(super) async fn rows(
    job: Arc<NewestRowsJob>,
    reader: DataFileReader,
    found: FoundNewest,
    entries: Vec<usize>,
) -> Result<RecordBatch> {
    match &found.rows {
        FoundRows::Buffer(rows) => buffered(&job, rows, numbers(&found, &entries)),
        FoundRows::Batch(batch) => taken(&job, batch, &UInt64Array::from_iter_values(numbers(&found, &entries))),
        FoundRows::File { part, key } => match job.parts.get(*part).map(|part| &part.rows) {
            Some(PartRows::File(file)) => {
                let indexed = IndexedFile { file: &file.file, known: &found.known, key };
                of_file(&job, &reader, indexed, &entries).await
            }
            _ => Err(DataFusionError::Internal("a file that is none".to_owned())),
        },
    }
}

/// Returns the numbers of the rows at these entries.
fn numbers(found: &FoundNewest, entries: &[usize]) -> impl Iterator<Item = u64> {
    entries.iter().filter_map(|entry| found.index().rows.get(*entry)).copied()
}

/// Returns the rows of a buffer with these numbers.
pub(super) fn buffered(
    job: &NewestRowsJob,
    rows: &ChunkRows,
    numbers: impl Iterator<Item = u64>,
) -> Result<RecordBatch> {
    rows.chosen(numbers.filter_map(|number| usize::try_from(number).ok()))
        .batch(&job.output_schema, &job.output)
        .map_err(external)
}

/// Returns rows of a batch whose first columns are those of the answer.
pub(super) fn taken(job: &NewestRowsJob, batch: &RecordBatch, rows: &UInt64Array) -> Result<RecordBatch> {
    let columns = batch.columns().iter().take(job.output.len()).map(|column| take(column, rows, None));
    answer(job, columns.collect::<Result<_, _>>()?, rows.len())
}

pub(super) fn answer(job: &NewestRowsJob, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(&job.output_schema), columns, &options)?)
}

/// A data file, and what is known of its rows.
struct IndexedFile<'a> {
    file: &'a DataFile,
    known: &'a Arc<KnownFile>,
    /// Where the cache has it.
    key: &'a FileKey,
}

/// Returns the rows of a file at `entries` of its index.
async fn of_file(
    job: &NewestRowsJob,
    reader: &DataFileReader,
    indexed: IndexedFile<'_>,
    entries: &[usize],
) -> Result<RecordBatch> {
    let IndexedFile { file, known, key } = indexed;
    let missing: Vec<usize> = job.output.iter().copied().filter(|column| !is_known(job, known, *column)).collect();
    let mut fresh: HashMap<usize, ArrayRef> = HashMap::new();
    if !missing.is_empty() {
        // For a few rows of many the whole is not worth reading.
        let remember = job.cache.holds(key, known) && entries.len() * 2 >= known.index.rows.len();
        let numbers: Vec<u64> = match remember {
            true => known.index.rows.clone(),
            false => entries.iter().filter_map(|entry| known.index.rows.get(*entry)).copied().collect(),
        };
        let columns = read(reader, file, &missing, &numbers).await?;
        for (column, values) in missing.into_iter().zip(columns) {
            if remember {
                job.cache.put_column(key, known, job.schema.field(column).name(), values);
            } else {
                fresh.insert(column, values);
            }
        }
    }
    let at = UInt64Array::from_iter_values(entries.iter().map(|entry| *entry as u64));
    let columns = job.output.iter().map(|column| match fresh.remove(column) {
        Some(values) => Ok(values),
        None => Ok(take(&known_column(job, known, *column)?, &at, None)?),
    });
    answer(job, columns.collect::<Result<_>>()?, entries.len())
}

/// Returns the place of a column in the schema of the index, if it is there.
fn in_index(job: &NewestRowsJob, column: usize) -> Option<usize> {
    let is_time = || job.schema.field(column).name() == TIME_COLUMN;
    job.keys.iter().position(|key| *key == column).or_else(|| is_time().then_some(job.keys.len()))
}

fn is_known(job: &NewestRowsJob, known: &KnownFile, column: usize) -> bool {
    in_index(job, column).is_some() || known.column(job.schema.field(column)).is_some()
}

fn known_column(job: &NewestRowsJob, known: &KnownFile, column: usize) -> Result<ArrayRef> {
    if let Some(entry) = in_index(job, column) {
        return Ok(Arc::clone(known.decoded(&job.index_schema)?.column(entry)));
    }
    let field = job.schema.field(column);
    known.column(field).ok_or_else(|| DataFusionError::Internal(format!("column {} was not read", field.name())))
}

/// Returns columns of the rows with these numbers, in the order of the numbers.
pub(super) async fn read(
    reader: &DataFileReader,
    file: &DataFile,
    columns: &[usize],
    numbers: &[u64],
) -> Result<Vec<ArrayRef>> {
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_unstable_by_key(|at| numbers.get(*at));
    let sorted: Vec<u64> = order.iter().filter_map(|at| numbers.get(*at)).copied().collect();
    let batches = collect(reader.streams(file, columns, WhichRows::Chosen(&sorted))?).await?;
    if batches.iter().map(RecordBatch::num_rows).sum::<usize>() != numbers.len() {
        let found = batches.iter().map(RecordBatch::num_rows).sum::<usize>();
        let reason = format!("{} has {found} of {} rows that were in it", file.path, numbers.len());
        return Err(DataFusionError::Internal(reason));
    }
    let mut back = vec![0; order.len()];
    for (read, at) in (0_u64..).zip(&order) {
        if let Some(back) = back.get_mut(*at) {
            *back = read;
        }
    }
    let back = UInt64Array::from(back);
    let column = |entry: usize| {
        let pieces: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(entry).as_ref()).collect();
        Ok(take(&concat(&pieces)?, &back, None)?)
    };
    (0..columns.len()).map(column).collect()
}
