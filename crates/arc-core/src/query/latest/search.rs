//! Finds the newest row of each key in one part: in what is remembered, or by reading keys and
//! times.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, AsArray, RecordBatch},
    compute::{concat_batches, take_record_batch},
    datatypes::{DataType, Int64Type},
};
use datafusion::{
    common::{DataFusionError, Result, runtime::SpawnedTask},
    execution::SendableRecordBatchStream,
};
use futures::{StreamExt, TryStreamExt, stream};

use super::{
    cache::{FileKey, KnownFile, NewestRowsCache},
    index::{Index, Indexing, times_of},
    job::{FilePart, NewestRowsJob, PartRows, RowCondition},
    read::{DataFileReader, WhichRows, joined},
};
use crate::{
    buffer::ChunkRows,
    query::{buffer_filter::Filter, error::external},
};

/// Rows that may be held of a merge before those that are not the newest of their key are given up.
const HELD_ROWS: usize = 64 << 10;

/// The newest rows of one part.
#[derive(Debug)]
pub(super) struct FoundNewest {
    pub(super) known: Arc<KnownFile>,
    pub(super) rows: FoundRows,
}

/// Where the rows are that an index speaks of.
#[derive(Debug)]
pub(super) enum FoundRows {
    /// In a data file, under this name in the cache if it is there.
    File { part: usize, key: FileKey },
    /// Among these.
    Buffer(ChunkRows),
    /// Here.
    Batch(RecordBatch),
}

impl FoundNewest {
    pub(super) fn index(&self) -> &Index {
        &self.known.index
    }

    /// Returns whether the index is in the cache, where it takes no room of the query's.
    pub(super) fn is_remembered(&self, cache: &NewestRowsCache) -> bool {
        matches!(&self.rows, FoundRows::File { key, .. } if cache.holds(key, &self.known))
    }
}

/// Finds the newest rows of the part with this number; `merged` is its input, if it is one.
pub(super) async fn search(
    job: Arc<NewestRowsJob>,
    reader: DataFileReader,
    part: usize,
    merged: Option<SendableRecordBatchStream>,
) -> Result<Option<FoundNewest>> {
    let Some(rows) = job.parts.get(part).map(|part| &part.rows) else { return Ok(None) };
    match (rows, merged) {
        (PartRows::File(file), _) => {
            let key = FileKey::new(&file.file, &job.schema, &job.keys);
            let known = in_file(&job, &reader, file, &key).await?;
            Ok(Some(FoundNewest { known, rows: FoundRows::File { part, key } }))
        }
        (PartRows::Buffer(rows), _) => {
            let rows = buffered(&job, rows)?;
            let index = index_batch(&job, &rows.project(&job.index_columns()?).map_err(external)?, 0)?;
            Ok(Some(FoundNewest { known: Arc::new(KnownFile::new(index)), rows: FoundRows::Buffer(rows) }))
        }
        (PartRows::Merged(_), Some(merged)) => in_stream(&job, merged).await.map(Some),
        (PartRows::Merged(_), None) => Err(DataFusionError::Internal("a merge without its rows".to_owned())),
    }
}

async fn in_file(
    job: &NewestRowsJob,
    reader: &DataFileReader,
    part: &FilePart,
    key: &FileKey,
) -> Result<Arc<KnownFile>> {
    if part.whole
        && let Some(known) = job.cache.get(key)
    {
        return Ok(known);
    }
    if part.whole && !part.selective {
        let index = index(job, reader, part, None).await?;
        return Ok(job.cache.put(key.clone(), index));
    }
    Ok(Arc::new(KnownFile::new(index(job, reader, part, part.filter.as_ref()).await?)))
}

/// Reads keys and times of a file.
async fn index(
    job: &NewestRowsJob,
    reader: &DataFileReader,
    part: &FilePart,
    filter: Option<&RowCondition>,
) -> Result<Index> {
    let columns = filter.map_or_else(|| job.index_columns(), |filter| Ok(filter.columns.clone()))?;
    let predicate = filter.and(job.predicate.as_ref());
    let streams = reader.streams(&part.file, &columns, WhichRows::Numbered { predicate })?;
    let (keys, types) = (job.keys.len(), key_types(job));
    let tasks: Vec<_> = streams
        .into_iter()
        .map(|rows| SpawnedTask::spawn(index_of(rows, keys, types.clone(), filter.cloned())))
        .collect();
    let indexes: Vec<Index> = stream::iter(tasks).then(joined).try_collect().await?;
    Ok(Index::merged(indexes)?)
}

async fn index_of(
    mut rows: SendableRecordBatchStream,
    keys: usize,
    types: Vec<DataType>,
    filter: Option<RowCondition>,
) -> Result<Index> {
    let mut indexing = Indexing::new(&types)?;
    while let Some(batch) = rows.next().await {
        let mut batch = batch?;
        if let Some(filter) = &filter {
            batch = filter.apply(&batch)?;
        }
        let numbers = numbers(&batch)?;
        let key_columns: Vec<ArrayRef> = batch.columns().iter().take(keys).cloned().collect();
        let number = |row: usize| numbers.get(row).and_then(|number| u64::try_from(*number).ok()).unwrap_or_default();
        indexing.push(&key_columns, times_of(&batch)?, number)?;
    }
    Ok(indexing.finish())
}

/// Returns the numbers of the rows of a batch, which are its last column.
pub(super) fn numbers(batch: &RecordBatch) -> Result<&[i64]> {
    let numbers = batch.columns().last().and_then(|numbers| numbers.as_primitive_opt::<Int64Type>());
    numbers
        .map(|numbers| &**numbers.values())
        .ok_or_else(|| DataFusionError::Internal("rows without their numbers".to_owned()))
}

fn key_types(job: &NewestRowsJob) -> Vec<DataType> {
    let fields = job.index_schema.fields().iter().take(job.keys.len());
    fields.map(|field| field.data_type().clone()).collect()
}

/// Returns those rows of a buffer that count.
pub(super) fn buffered(job: &NewestRowsJob, rows: &ChunkRows) -> Result<ChunkRows> {
    Filter::new(&job.schema, None, job.predicate.as_slice())?.apply(rows)
}

fn in_batch(job: &NewestRowsJob, batch: RecordBatch) -> Result<FoundNewest> {
    let known = Arc::new(KnownFile::new(index_batch(job, &batch, job.output.len())?));
    Ok(FoundNewest { known, rows: FoundRows::Batch(batch) })
}

/// Takes rows whose columns are those of the index, after `others`.
fn index_batch(job: &NewestRowsJob, batch: &RecordBatch, others: usize) -> Result<Index> {
    let keys: Vec<ArrayRef> = batch.columns().iter().skip(others).take(job.keys.len()).cloned().collect();
    let mut indexing = Indexing::new(&key_types(job))?;
    indexing.push(&keys, times_of(batch)?, |row| row as u64)?;
    Ok(indexing.finish())
}

/// Reads rows that come one after the other and cannot be read again; keeps no more than the newest
/// of each key, and some.
async fn in_stream(job: &NewestRowsJob, mut rows: SendableRecordBatchStream) -> Result<FoundNewest> {
    let schema = rows.schema();
    let (mut held, mut held_rows, mut allowed): (Vec<RecordBatch>, usize, usize) = (Vec::new(), 0, HELD_ROWS);
    while let Some(batch) = rows.next().await {
        let batch = newest_of(job, &batch?)?;
        held_rows += batch.num_rows();
        held.push(batch);
        if held_rows > allowed {
            let newest = newest_of(job, &concat_batches(&schema, &held)?)?;
            held_rows = newest.num_rows();
            allowed = HELD_ROWS.max(2 * held_rows);
            held = vec![newest];
        }
    }
    in_batch(job, concat_batches(&schema, &held)?)
}

fn newest_of(job: &NewestRowsJob, batch: &RecordBatch) -> Result<RecordBatch> {
    let mut rows = index_batch(job, batch, job.output.len())?.rows;
    rows.sort_unstable();
    let rows = arrow::array::UInt64Array::from(rows);
    if rows.len() == batch.num_rows() { Ok(batch.clone()) } else { Ok(take_record_batch(batch, &rows)?) }
}
