//! The newest rows of a table, whatever their keys: parts are looked into newest first, until no
//! older one can have any.

use std::{cmp::Reverse, collections::BinaryHeap, sync::Arc};

use arrow::{
    array::{RecordBatch, UInt64Array},
    compute::interleave_record_batch,
};
use datafusion::{
    common::{DataFusionError, Result, runtime::SpawnedTask},
    execution::{
        SendableRecordBatchStream,
        memory_pool::{MemoryConsumer, MemoryReservation},
    },
};
use futures::{
    Stream, StreamExt, TryStreamExt, future,
    stream::{self, BoxStream},
};

use super::{
    exec::Execution,
    index::times_of,
    job::{FilePart, NewestRowsJob, PartRows},
    read::{DataFileReader, WhichRows, joined},
    rows,
    search::{buffered, numbers},
};
use crate::buffer::ChunkRows;

/// The times of the newest rows so far, as many as are wanted.
#[derive(Debug, Clone)]
pub(super) struct NewestTimes {
    rows: usize,
    ties: bool,
    times: BinaryHeap<Reverse<i64>>,
}

impl NewestTimes {
    pub(super) fn new(rows: usize, ties: bool) -> Self {
        Self { rows, ties, times: BinaryHeap::new() }
    }

    /// Returns whether a row of this time is wanted.
    fn wants(&self, time: i64) -> bool {
        match self.times.peek() {
            Some(Reverse(oldest)) if self.times.len() >= self.rows => time > *oldest || (self.ties && time == *oldest),
            _ => self.rows > 0,
        }
    }

    fn note(&mut self, time: i64) {
        if self.times.len() < self.rows {
            self.times.push(Reverse(time));
        } else if self.times.peek().is_some_and(|Reverse(oldest)| time > *oldest) {
            self.times.pop();
            self.times.push(Reverse(time));
        }
    }
}

/// Rows of one part that may be wanted: their times and numbers.
#[derive(Debug)]
struct Candidates {
    rows: Vec<(i64, u64)>,
    /// The rows themselves, where the part cannot be read again.
    batches: Vec<RecordBatch>,
    /// What the numbers are about in a buffer.
    buffered: Option<ChunkRows>,
    /// What these take: of equal times there may be as many as the part has rows.
    reservations: Vec<MemoryReservation>,
}

/// Rows that are made at a time.
const MADE_ROWS: usize = 16 << 10;

/// Returns the newest rows, and maybe more.
pub(super) fn batches(run: Execution, rows: usize, ties: bool) -> impl Stream<Item = Result<RecordBatch>> + Send {
    let state = (run, NewestTimes::new(rows, ties), 0_usize);
    let groups = stream::try_unfold(state, |(mut run, mut newest, next)| async move {
        let Some(group) = next_group(&run, &newest, next) else { return Ok(None) };
        let end = group.end;
        let found = look_into(&mut run, &mut newest, group).await?;
        let batches = stream::iter(found).flat_map(move_out(&run));
        Ok::<_, DataFusionError>(Some((batches, (run, newest, end))))
    });
    groups.try_flatten()
}

/// Returns the parts to look into next: one, and if that was not enough as many at a time as there
/// are cores.
fn next_group(run: &Execution, newest: &NewestTimes, next: usize) -> Option<std::ops::Range<usize>> {
    let rest = run.job.parts.get(next..)?;
    let wanted = rest.iter().take_while(|part| newest.wants(part.max_time)).count();
    let width = if next == 0 { 1 } else { run.width() };
    (wanted > 0).then(|| next..next + wanted.min(width))
}

/// What is wanted of a part: the numbers of its rows, and what they were found with.
struct WantedNumbers {
    part: usize,
    numbers: Vec<u64>,
    found: Arc<Candidates>,
}

async fn look_into(
    run: &mut Execution,
    newest: &mut NewestTimes,
    group: std::ops::Range<usize>,
) -> Result<Vec<WantedNumbers>> {
    let tasks: Vec<_> = group
        .clone()
        .map(|part| {
            let (job, reader, input) = (Arc::clone(&run.job), run.reader.clone(), run.input_of(part));
            SpawnedTask::spawn(candidates(job, reader, part, newest.clone(), input))
        })
        .collect();
    let found: Vec<Candidates> = stream::iter(tasks).then(joined).try_collect().await?;
    found.iter().flat_map(|found| &found.rows).for_each(|(time, _)| newest.note(*time));
    let wanted = group.zip(found).map(|(part, mut found)| {
        let rows = std::mem::take(&mut found.rows);
        let numbers = rows.into_iter().filter(|(time, _)| newest.is_among(*time)).map(|(_, number)| number).collect();
        WantedNumbers { part, numbers, found: Arc::new(found) }
    });
    Ok(wanted.collect())
}

/// Returns what makes the wanted rows of a part, some at a time.
fn move_out(run: &Execution) -> impl FnMut(WantedNumbers) -> BoxStream<'static, Result<RecordBatch>> + Send + use<> {
    let (job, reader) = (Arc::clone(&run.job), run.reader.clone());
    move |WantedNumbers { part, numbers, found }| {
        let (job, reader) = (Arc::clone(&job), reader.clone());
        let pieces: Vec<std::ops::Range<usize>> =
            (0..numbers.len()).step_by(MADE_ROWS).map(|start| start..numbers.len().min(start + MADE_ROWS)).collect();
        let numbers = Arc::new(numbers);
        let made = stream::iter(pieces).then(move |piece| {
            let (job, reader, found) = (Arc::clone(&job), reader.clone(), Arc::clone(&found));
            let numbers = numbers.get(piece).unwrap_or_default().to_vec();
            async move { make(&job, &reader, part, &found, numbers).await }
        });
        made.try_filter_map(future::ok).boxed()
    }
}

impl NewestTimes {
    /// Returns whether a row of this time, which was noted, is still one of the newest.
    fn is_among(&self, time: i64) -> bool {
        self.times.peek().is_some_and(|Reverse(oldest)| time >= *oldest)
    }
}

async fn candidates(
    job: Arc<NewestRowsJob>,
    reader: DataFileReader,
    part: usize,
    newest: NewestTimes,
    input: Option<SendableRecordBatchStream>,
) -> Result<Candidates> {
    match (job.parts.get(part).map(|part| &part.rows), input) {
        (Some(PartRows::File(file)), _) => in_file(&job, &reader, file, &newest).await,
        (Some(PartRows::Buffer(rows)), _) => {
            let rows = buffered(&job, rows)?;
            let mut found = Search::new(newest, &reader);
            (0..).zip(rows.times().iter()).try_for_each(|(number, time)| found.push_row(*time, number))?;
            Ok(Candidates { buffered: Some(rows), ..found.finish() })
        }
        (Some(PartRows::Merged(_)), Some(mut input)) => {
            let mut found = Search::new(newest, &reader);
            while let Some(batch) = input.next().await {
                found.push_batch(&batch?)?;
            }
            Ok(found.finish())
        }
        _ => Err(DataFusionError::Internal("a part without rows".to_owned())),
    }
}

async fn in_file(
    job: &NewestRowsJob,
    reader: &DataFileReader,
    part: &FilePart,
    newest: &NewestTimes,
) -> Result<Candidates> {
    let columns = part.filter.as_ref().map_or_else(|| job.index_columns(), |filter| Ok(filter.columns.clone()))?;
    let streams = reader.streams(&part.file, &columns, WhichRows::Numbered { predicate: job.predicate.as_ref() })?;
    let tasks: Vec<_> = streams
        .into_iter()
        .map(|mut batches| {
            let (filter, mut found) = (part.filter.clone(), Search::new(newest.clone(), reader));
            SpawnedTask::spawn(async move {
                while let Some(batch) = batches.next().await {
                    let mut batch = batch?;
                    if let Some(filter) = &filter {
                        batch = filter.apply(&batch)?;
                    }
                    found.push(times_of(&batch)?, numbers(&batch)?)?;
                }
                Ok(found.finish())
            })
        })
        .collect();
    let found: Vec<Candidates> = stream::iter(tasks).then(joined).try_collect().await?;
    let mut all = Search::new(newest.clone(), reader);
    for mut found in found {
        all.reserve(found.rows.len())?;
        all.found.rows.append(&mut found.rows);
    }
    Ok(all.finish())
}

/// Looks through rows for those that are wanted.
struct Search {
    newest: NewestTimes,
    found: Candidates,
    held: usize,
    reservation: MemoryReservation,
}

/// Candidates at which those are given up that are no longer among the newest.
const PRUNE_AT: usize = 16 << 10;

impl Search {
    fn new(newest: NewestTimes, reader: &DataFileReader) -> Self {
        let reservation = MemoryConsumer::new("LatestExec").register(reader.context.memory_pool());
        let found = Candidates { rows: Vec::new(), batches: Vec::new(), buffered: None, reservations: Vec::new() };
        Self { newest, found, held: 0, reservation }
    }

    fn push(&mut self, times: &[i64], numbers: &[i64]) -> Result<()> {
        let mut rows = times.iter().zip(numbers);
        rows.try_for_each(|(time, number)| self.push_row(*time, u64::try_from(*number).unwrap_or_default()))
    }

    fn push_row(&mut self, time: i64, number: u64) -> Result<()> {
        if !self.newest.wants(time) {
            return Ok(());
        }
        self.newest.note(time);
        self.reserve(1)?;
        self.found.rows.push((time, number));
        if self.found.rows.len() >= PRUNE_AT.max(2 * self.held) {
            let newest = &self.newest;
            self.found.rows.retain(|(time, _)| newest.is_among(*time));
            self.held = self.found.rows.len();
        }
        Ok(())
    }

    /// Makes room for so many more, once it is there.
    fn reserve(&mut self, more: usize) -> Result<()> {
        let rows = &mut self.found.rows;
        if rows.capacity() - rows.len() < more {
            let wanted = (rows.len() + more).max(2 * rows.capacity()).max(1 << 10);
            self.reservation.try_grow((wanted - rows.capacity()) * size_of::<(i64, u64)>())?;
            rows.reserve_exact(wanted - rows.len());
        }
        Ok(())
    }

    /// Takes rows that are kept as they are; they are numbered as they come.
    fn push_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let times = times_of(batch)?;
        let wanted = times.iter().enumerate().filter(|(_, time)| self.newest.wants(**time)).map(|(row, _)| row as u64);
        let wanted = UInt64Array::from_iter_values(wanted);
        if wanted.is_empty() {
            return Ok(());
        }
        let start: usize = self.found.batches.iter().map(RecordBatch::num_rows).sum();
        let batch = arrow::compute::take_record_batch(batch, &wanted)?;
        self.reservation.try_grow(batch.get_array_memory_size())?;
        for (row, time) in times_of(&batch)?.iter().enumerate() {
            self.push_row(*time, (start + row) as u64)?;
        }
        self.found.batches.push(batch);
        Ok(())
    }

    fn finish(mut self) -> Candidates {
        self.found.reservations.push(self.reservation);
        self.found
    }
}

/// Makes the rows of a part with these numbers, which ascend.
async fn make(
    job: &NewestRowsJob,
    reader: &DataFileReader,
    part: usize,
    Candidates { batches, buffered, .. }: &Candidates,
    numbers: Vec<u64>,
) -> Result<Option<RecordBatch>> {
    if let Some(rows) = buffered {
        return rows::buffered(job, rows, numbers.into_iter()).map(Some);
    }
    if !batches.is_empty() {
        return rows::taken(job, &chosen(batches, &numbers)?, &all(numbers.len())).map(Some);
    }
    let Some(PartRows::File(file)) = job.parts.get(part).map(|part| &part.rows) else { return Ok(None) };
    let columns = match job.output.as_slice() {
        [] => Vec::new(),
        output => rows::read(reader, &file.file, output, &numbers).await?,
    };
    rows::answer(job, columns, numbers.len()).map(Some)
}

/// Returns rows of batches that are numbered one after the other.
fn chosen(batches: &[RecordBatch], numbers: &[u64]) -> Result<RecordBatch> {
    let starts: Vec<u64> =
        batches.iter().scan(0, |next, batch| Some(std::mem::replace(next, *next + batch.num_rows() as u64))).collect();
    let index = |number: &u64| {
        let batch = starts.partition_point(|start| start <= number).saturating_sub(1);
        let row = number - starts.get(batch).copied().unwrap_or_default();
        Ok((batch, usize::try_from(row).map_err(|e| DataFusionError::External(e.into()))?))
    };
    let indices = numbers.iter().map(index).collect::<Result<Vec<_>>>()?;
    let batches: Vec<&RecordBatch> = batches.iter().collect();
    Ok(interleave_record_batch(&batches, &indices)?)
}

fn all(rows: usize) -> UInt64Array {
    (0..rows as u64).collect()
}
