//! The newest rows of a table, whatever their keys: parts are looked into newest first, until no older one can have any.

use std::{cmp::Reverse, collections::BinaryHeap, sync::Arc};

use arrow::array::{RecordBatch, UInt64Array};
use datafusion::{
    common::{DataFusionError, Result, runtime::SpawnedTask},
    execution::SendableRecordBatchStream,
};
use futures::{Stream, StreamExt, TryStreamExt, stream};

use super::{
    exec::Run,
    index::times_of,
    job::{FilePart, Job, PartRows},
    read::{Reader, Rows, joined},
    rows,
    search::{buffered, numbers},
};
use crate::buffer::ChunkRows;

/// The times of the newest rows so far, as many as are wanted.
#[derive(Debug, Clone)]
pub(super) struct Newest {
    rows: usize,
    ties: bool,
    times: BinaryHeap<Reverse<i64>>,
}

impl Newest {
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
#[derive(Debug, Default)]
struct Candidates {
    rows: Vec<(i64, u64)>,
    /// The rows themselves, where the part cannot be read again.
    batches: Vec<RecordBatch>,
    /// What the numbers are about in a buffer.
    buffered: Option<ChunkRows>,
}

/// Returns the newest rows, and maybe more.
pub(super) fn batches(run: Run, rows: usize, ties: bool) -> impl Stream<Item = Result<RecordBatch>> + Send {
    let state = (run, Newest::new(rows, ties), 0_usize);
    let groups = stream::try_unfold(state, |(mut run, mut newest, next)| async move {
        let Some(group) = next_group(&run, &newest, next) else { return Ok(None) };
        let end = group.end;
        let batches = look_into(&mut run, &mut newest, group).await?;
        Ok::<_, DataFusionError>(Some((stream::iter(batches.into_iter().map(Ok)), (run, newest, end))))
    });
    groups.try_flatten()
}

/// Returns the parts to look into next: one, and if that was not enough as many at a time as there are cores.
fn next_group(run: &Run, newest: &Newest, next: usize) -> Option<std::ops::Range<usize>> {
    let rest = run.job.parts.get(next..)?;
    let wanted = rest.iter().take_while(|part| newest.wants(part.max_time)).count();
    let width = if next == 0 { 1 } else { run.width() };
    (wanted > 0).then(|| next..next + wanted.min(width))
}

async fn look_into(run: &mut Run, newest: &mut Newest, group: std::ops::Range<usize>) -> Result<Vec<RecordBatch>> {
    let tasks: Vec<_> = group
        .clone()
        .map(|part| {
            let (job, reader, input) = (Arc::clone(&run.job), run.reader.clone(), run.input_of(part));
            SpawnedTask::spawn(candidates(job, reader, part, newest.clone(), input))
        })
        .collect();
    let found: Vec<Candidates> = stream::iter(tasks).then(joined).try_collect().await?;
    found.iter().flat_map(|found| &found.rows).for_each(|(time, _)| newest.note(*time));
    let mut batches = Vec::new();
    for (part, found) in group.zip(found) {
        let numbers: Vec<u64> = found.rows.iter().filter(|(time, _)| newest.is_among(*time)).map(|(_, n)| *n).collect();
        batches.extend(make(&run.job, &run.reader, part, found, numbers).await?);
    }
    Ok(batches)
}

impl Newest {
    /// Returns whether a row of this time, which was noted, is still one of the newest.
    fn is_among(&self, time: i64) -> bool {
        self.times.peek().is_some_and(|Reverse(oldest)| time >= *oldest)
    }
}

async fn candidates(
    job: Arc<Job>,
    reader: Reader,
    part: usize,
    newest: Newest,
    input: Option<SendableRecordBatchStream>,
) -> Result<Candidates> {
    match (job.parts.get(part).map(|part| &part.rows), input) {
        (Some(PartRows::File(file)), _) => in_file(&job, &reader, file, &newest).await,
        (Some(PartRows::Buffer(rows)), _) => {
            let rows = buffered(&job, rows)?;
            let mut found = Search::new(newest);
            (0..).zip(rows.times().iter()).for_each(|(number, time)| found.push_row(*time, number));
            Ok(Candidates { buffered: Some(rows), ..found.finish() })
        }
        (Some(PartRows::Merged(_)), Some(mut input)) => {
            let mut found = Search::new(newest);
            while let Some(batch) = input.next().await {
                found.push_batch(&batch?)?;
            }
            Ok(found.finish())
        }
        _ => Err(DataFusionError::Internal("a part without rows".to_owned())),
    }
}

async fn in_file(job: &Job, reader: &Reader, part: &FilePart, newest: &Newest) -> Result<Candidates> {
    let columns = part.filter.as_ref().map_or_else(|| job.index_columns(), |filter| Ok(filter.columns.clone()))?;
    let streams = reader.streams(&part.file, &columns, Rows::Numbered { predicate: job.predicate.as_ref() })?;
    let tasks: Vec<_> = streams
        .into_iter()
        .map(|mut batches| {
            let (filter, mut found) = (part.filter.clone(), Search::new(newest.clone()));
            SpawnedTask::spawn(async move {
                while let Some(batch) = batches.next().await {
                    let mut batch = batch?;
                    if let Some(filter) = &filter {
                        batch = filter.apply(&batch)?;
                    }
                    found.push(times_of(&batch)?, numbers(&batch)?);
                }
                Ok(found.finish())
            })
        })
        .collect();
    let found: Vec<Candidates> = stream::iter(tasks).then(joined).try_collect().await?;
    Ok(Candidates { rows: found.into_iter().flat_map(|found| found.rows).collect(), ..Candidates::default() })
}

/// Looks through rows for those that are wanted.
struct Search {
    newest: Newest,
    found: Candidates,
    held: usize,
}

/// Candidates at which those are given up that are no longer among the newest.
const PRUNE_AT: usize = 16 << 10;

impl Search {
    fn new(newest: Newest) -> Self {
        Self { newest, found: Candidates::default(), held: 0 }
    }

    fn push(&mut self, times: &[i64], numbers: &[i64]) {
        for (time, number) in times.iter().zip(numbers) {
            self.push_row(*time, u64::try_from(*number).unwrap_or_default());
        }
    }

    fn push_row(&mut self, time: i64, number: u64) {
        if !self.newest.wants(time) {
            return;
        }
        self.newest.note(time);
        self.found.rows.push((time, number));
        if self.found.rows.len() >= PRUNE_AT.max(2 * self.held) {
            let newest = &self.newest;
            self.found.rows.retain(|(time, _)| newest.is_among(*time));
            self.held = self.found.rows.len();
        }
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
        for (row, time) in times_of(&batch)?.iter().enumerate() {
            self.push_row(*time, (start + row) as u64);
        }
        self.found.batches.push(batch);
        Ok(())
    }

    fn finish(self) -> Candidates {
        self.found
    }
}

/// Makes the rows of a part with these numbers.
async fn make(
    job: &Job,
    reader: &Reader,
    part: usize,
    Candidates { batches, buffered, .. }: Candidates,
    numbers: Vec<u64>,
) -> Result<Option<RecordBatch>> {
    if numbers.is_empty() {
        return Ok(None);
    }
    if let Some(rows) = buffered {
        return rows::buffered(job, &rows, numbers.into_iter()).map(Some);
    }
    if let Some(schema) = batches.first().map(RecordBatch::schema) {
        let all = arrow::compute::concat_batches(&schema, &batches)?;
        return rows::taken(job, &all, &UInt64Array::from(numbers)).map(Some);
    }
    let Some(PartRows::File(file)) = job.parts.get(part).map(|part| &part.rows) else { return Ok(None) };
    let columns = match job.output.as_slice() {
        [] => Vec::new(),
        output => rows::read(reader, &file.file, output, &numbers).await?,
    };
    rows::answer(job, columns, numbers.len()).map(Some)
}
