//! From a frozen buffer to the rows of its data files: sorted, merged by primary key, split by day
//! and lateness.
//!
//! Rows are sorted by (tags, time), or by time in an append-only table, as lists of positions;
//! columns are gathered one after the other while a file is written (`gather`), so that no second
//! copy of the buffer exists. A row that arrived on time is newer than all rows of its series
//! before it, so a stable counting sort by series leaves times in order, and only series with late
//! rows are sorted by time (`day_parts`).

use std::sync::{Arc, OnceLock};

use super::{
    by_time::by_time,
    day_parts::{DayPart, DayParts},
    order::{RowOrder, Spans},
    rows::Chunk,
    series::{SeriesId, SeriesIndex},
    table::FrozenBuffer,
    text_keys::TextKeys,
};
use crate::{
    Error, Result,
    model::{Column, ColumnKind, PartitionDay, TIME_COLUMN, TableSchema, time_type},
    sync::RwLock,
};
use arrow::{
    array::Array,
    buffer::ScalarBuffer,
    datatypes::{Field, Schema, SchemaRef},
};

/// A row: which chunk, which row in it.
pub(super) type ChunkRow = (u32, u32);

/// A series, and how many rows of it follow each other.
pub(super) type SeriesRun = (SeriesId, u32);

/// One file's worth of a frozen buffer.
#[derive(Debug)]
pub(crate) struct FlushPart<'a> {
    pub(crate) day: PartitionDay,
    pub(crate) late: bool,
    pub(crate) schema: SchemaRef,
    pub(crate) sorted_by: Vec<String>,
    pub(super) source: Arc<GatherSource<'a>>,
    /// Rows of equal primary key stand together, the later version after the earlier.
    pub(super) rows: RowOrder,
    /// Their times, where rows are in the order of series.
    pub(super) times: ScalarBuffer<i64>,
    /// Where each row of the file starts in `rows`; `None` where no primary key repeats.
    pub(super) runs: Option<Vec<usize>>,
    /// Made when the first column is gathered, if it is wanted.
    pub(super) spans: OnceLock<Option<Spans>>,
    /// The series of the file's rows, and how many rows follow each other that have it. Made when
    /// they are asked for, unless the file has all rows.
    pub(super) series_runs: OnceLock<Vec<SeriesRun>>,
}

/// What all parts of one buffer gather from.
#[derive(Debug)]
pub(super) struct GatherSource<'a> {
    pub(super) chunks: Vec<&'a Arc<Chunk>>,
    main_chunks: usize,
    /// Locked for moments: decoding adds series meanwhile. Those that are there stay as they are.
    pub(super) series: &'a RwLock<SeriesIndex>,
    /// Index in the table's schema, and the column, in the file's order.
    pub(super) columns: Vec<(usize, &'a Column)>,
    /// For each column its texts as keys, made when they are wanted.
    pub(super) keys: Vec<OnceLock<Option<TextKeys>>>,
}

/// Splits a frozen buffer into the parts that become data files, none of them empty.
pub(crate) fn split<'a>(
    frozen: &'a FrozenBuffer,
    table: &'a TableSchema,
    series: &'a RwLock<SeriesIndex>,
) -> Result<Vec<FlushPart<'a>>> {
    let chunks: Vec<&Arc<Chunk>> = frozen.main.iter().chain(&frozen.late).collect();
    let columns = present_columns(table, &chunks);
    let mut fields = vec![Field::new(TIME_COLUMN, time_type(), false)];
    fields.extend(columns.iter().map(|(_, c)| Field::new(c.name.as_ref(), c.data_type.clone(), true)));
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    let tags = columns.iter().filter(|(_, c)| c.kind == ColumnKind::Tag).map(|(_, c)| c.name.to_string());
    let sorted_by: Vec<String> = tags.chain([TIME_COLUMN.to_owned()]).collect();
    let keys = columns.iter().map(|_| OnceLock::new()).collect();
    let source = GatherSource { chunks, main_chunks: frozen.main.len(), series, columns, keys };
    let (order, times, runs) = if table.has_primary_key {
        let in_order = series.read().in_order(table.tags().map(|tag| tag.name.as_ref()));
        let (rows, times, runs) = source.by_series_and_time(&in_order)?;
        (RowOrder::Rows(rows), times, runs)
    } else {
        (by_time(&source.chunks), Vec::new(), Vec::new())
    };
    let source = Arc::new(source);
    let part = |day, late, (rows, times), series_runs| FlushPart {
        day,
        late,
        schema: Arc::clone(&schema),
        sorted_by: sorted_by.clone(),
        source: Arc::clone(&source),
        rows,
        times: ScalarBuffer::from(times),
        runs: None,
        spans: OnceLock::new(),
        series_runs,
    };
    // Nearly always: no row is looked at.
    if let (Some(day), true) = (source.single_day(), frozen.late.is_empty()) {
        return Ok(vec![part(day, false, (order, times), OnceLock::from(runs))]);
    }
    let mut parts = DayParts::new(&source, frozen.newest_before, order.len());
    match &order {
        RowOrder::Rows(rows) if table.has_primary_key => {
            let mut start = 0;
            for (series, count) in &runs {
                let range = start..start + *count as usize;
                start = range.end;
                let (rows, times) = (rows.get(range.clone()), times.get(range));
                parts.push_series(*series, rows.unwrap_or_default(), times.unwrap_or_default());
            }
        }
        order => parts.push_rows(&order.positions(0..order.len())),
    }
    let finished = |found: DayPart| {
        let series_runs = if table.has_primary_key { OnceLock::from(found.series_runs) } else { OnceLock::new() };
        let part = part(found.day, found.late, (RowOrder::Rows(found.rows), found.times), series_runs);
        FlushPart { runs: found.runs, ..part }
    };
    Ok(parts.finish().into_iter().map(finished).collect())
}

/// Columns with any value, tags first. A column that is null all over is left out: readers fill it
/// in by name.
fn present_columns<'a>(table: &'a TableSchema, chunks: &[&Arc<Chunk>]) -> Vec<(usize, &'a Column)> {
    let has_value = |index: usize, column: &Column| match column.kind {
        ColumnKind::Tag => true,
        ColumnKind::Field => {
            chunks.iter().filter_map(|c| c.column(index)).any(|array| array.logical_null_count() < array.len())
        }
    };
    let of = |kind| table.columns.iter().enumerate().filter(move |(_, c)| c.kind == kind);
    of(ColumnKind::Tag).chain(of(ColumnKind::Field)).filter(|(i, c)| has_value(*i, c)).collect()
}

impl GatherSource<'_> {
    /// Returns the day of all rows, if they are of one and there are any.
    fn single_day(&self) -> Option<PartitionDay> {
        let first = self.chunks.iter().map(|chunk| chunk.min_time).min()?;
        let last = self.chunks.iter().map(|chunk| chunk.max_time).max()?;
        let day = PartitionDay::from_time_ns(first);
        (first <= last && day == PartitionDay::from_time_ns(last)).then_some(day)
    }

    /// Returns whether a row came on time.
    pub(super) fn is_main(&self, (chunk, _): ChunkRow) -> bool {
        (chunk as usize) < self.main_chunks
    }

    pub(super) fn time(&self, (chunk, row): ChunkRow) -> i64 {
        self.chunks.get(chunk as usize).and_then(|c| c.time.get(row as usize)).copied().unwrap_or(0)
    }

    pub(super) fn series(&self, (chunk, row): ChunkRow) -> SeriesId {
        self.chunks.get(chunk as usize).and_then(|c| c.series.get(row as usize)).copied().unwrap_or(0)
    }

    /// Sorts by counting: how many rows a series has says where those of the next one begin.
    /// Returns the rows, of each series those that came late after the others; their times, for a
    /// chunk is read from its start to its end here, and all over later; and the series that have
    /// any.
    fn by_series_and_time(&self, in_order: &[SeriesId]) -> Result<(Vec<ChunkRow>, Vec<i64>, Vec<SeriesRun>)> {
        let last = in_order.len().saturating_sub(1);
        let mut next = vec![0_u32; last + 1];
        for series in self.chunks.iter().flat_map(|chunk| chunk.series.iter()) {
            if let Some(count) = next.get_mut((*series as usize).min(last)) {
                *count += 1;
            }
        }
        let rows: usize = self.chunks.iter().map(|chunk| chunk.len()).sum();
        let (mut count, mut runs) = (0, Vec::with_capacity(rows.min(in_order.len())));
        for series in in_order {
            if let Some(next) = next.get_mut(*series as usize).filter(|next| **next > 0) {
                runs.push((*series, *next));
                count += std::mem::replace(next, count);
            }
        }
        if count as usize != rows {
            return Err(Error::internal(format!("{rows} rows to flush, of which {count} have a series")));
        }
        let (mut order, mut times) = (vec![(0, 0); rows], vec![0; rows]);
        for (chunk, rows) in (0..).zip(&self.chunks) {
            for (row, (series, time)) in (0..).zip(rows.series.iter().zip(rows.time.iter())) {
                if let Some(next) = next.get_mut((*series as usize).min(last)) {
                    if let (Some(slot), Some(of)) = (order.get_mut(*next as usize), times.get_mut(*next as usize)) {
                        (*slot, *of) = ((chunk, row), *time);
                    }
                    *next += 1;
                }
            }
        }
        Ok((order, times, runs))
    }
}

impl FlushPart<'_> {
    /// Returns how many rows were written that are in it, each version counted.
    pub(crate) fn versions_count(&self) -> usize {
        self.rows.len()
    }
}

#[cfg(test)]
mod tests;
