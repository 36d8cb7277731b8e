//! From a frozen buffer to the rows of its data files: sorted, merged by identity, split by day and lateness.
//!
//! Rows are sorted by (tags, time), or by time in a table that appends, as lists of positions; columns are gathered
//! batch by batch while a file is written, so that no second copy of the buffer exists. A row that arrived on time is
//! newer than all rows of its series before it, so a stable counting sort by series leaves times in order, and only
//! series with late rows are sorted by time.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, RecordBatch, TimestampNanosecondArray, new_null_array},
    compute::interleave,
    datatypes::{Field, Schema, SchemaRef},
};

use super::{
    rows::Chunk,
    series::{SeriesId, SeriesIndex},
    table::FrozenBuffer,
};
use crate::{
    Result,
    catalog::{Column, ColumnKind, TIME_COLUMN, TableSchema, time_type},
    datafile::PartitionDay,
};

/// Rows gathered at a time.
const BATCH_ROWS: usize = 32 * 1024;

/// A row: which chunk, which row in it.
type Position = (u32, u32);

/// One file's worth of a frozen buffer.
#[derive(Debug)]
pub(crate) struct FlushPart<'a> {
    pub(crate) day: PartitionDay,
    pub(crate) late: bool,
    pub(crate) schema: SchemaRef,
    pub(crate) sorted_by: Vec<String>,
    source: Arc<Source<'a>>,
    /// Rows of equal identity stand together, the later version behind the earlier.
    rows: Vec<Position>,
    /// Where each row of the file starts in `rows`; `None` where no identity repeats.
    runs: Option<Vec<usize>>,
}

/// What all parts of one buffer gather from.
#[derive(Debug)]
struct Source<'a> {
    chunks: Vec<&'a Arc<Chunk>>,
    main_chunks: usize,
    series: &'a SeriesIndex,
    /// Index in the table's schema, and the column, in the file's order.
    columns: Vec<(usize, &'a Column)>,
}

/// Splits a frozen buffer into the parts that become data files, none of them empty.
pub(crate) fn split<'a>(
    frozen: &'a FrozenBuffer,
    table: &'a TableSchema,
    series: &'a SeriesIndex,
) -> Result<Vec<FlushPart<'a>>> {
    let chunks: Vec<&Arc<Chunk>> = frozen.main.iter().chain(&frozen.late).collect();
    let columns = present_columns(table, &chunks);
    let mut fields = vec![Field::new(TIME_COLUMN, time_type(), false)];
    fields.extend(columns.iter().map(|(_, c)| Field::new(c.name.as_ref(), c.data_type.clone(), true)));
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    let tags = columns.iter().filter(|(_, c)| c.kind == ColumnKind::Tag).map(|(_, c)| c.name.to_string());
    let sorted_by: Vec<String> = tags.chain([TIME_COLUMN.to_owned()]).collect();
    let source = Source { chunks, main_chunks: frozen.main.len(), series, columns };
    let order = if table.keyed {
        source.by_series_and_time(&series.ranks(table.tags().map(|tag| tag.name.as_ref())))
    } else {
        source.by_time()
    };
    let (has_late, may_repeat) = (!frozen.late.is_empty(), table.keyed && !frozen.late.is_empty());
    let source = Arc::new(source);
    let part = |day, late, rows| FlushPart {
        day,
        late,
        schema: Arc::clone(&schema),
        sorted_by: sorted_by.clone(),
        source: Arc::clone(&source),
        rows,
        runs: None,
    };
    // Nearly always: no row is looked at.
    if let (Some(day), false) = (source.single_day(), has_late) {
        return Ok(vec![part(day, false, order)]);
    }
    let same = |a: &Position, b: &Position| {
        may_repeat && source.series(*a) == source.series(*b) && source.time(*a) == source.time(*b)
    };
    let mut parts: Vec<FlushPart<'_>> = Vec::new();
    let mut last = 0;
    for rows in order.chunk_by(same) {
        let Some(first) = rows.first() else { continue };
        let time = source.time(*first);
        let on_time = rows.iter().any(|row| source.is_main(*row)) || time > frozen.newest_before;
        let day = PartitionDay::from_time_ns(time);
        let is_its = |part: &FlushPart<'_>| part.day == day && part.late != on_time;
        if !parts.get(last).is_some_and(is_its) {
            last = parts.iter().position(is_its).unwrap_or_else(|| {
                parts.push(part(day, !on_time, Vec::new()));
                parts.len() - 1
            });
        }
        if let Some(part) = parts.get_mut(last) {
            part.push(rows);
        }
    }
    parts.sort_by_key(|part| (part.day, part.late));
    Ok(parts)
}

/// Columns with any value, tags first. A column that is null all over is left out: readers fill it in by name.
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

impl Source<'_> {
    fn positions(&self) -> impl Iterator<Item = Position> {
        (0..)
            .zip(&self.chunks)
            .flat_map(|(chunk, rows)| (0..u32::try_from(rows.len()).unwrap_or(u32::MAX)).map(move |row| (chunk, row)))
    }

    /// Returns the day of all rows, if they are of one and there are any.
    fn single_day(&self) -> Option<PartitionDay> {
        let first = self.chunks.iter().map(|chunk| chunk.min_time).min()?;
        let last = self.chunks.iter().map(|chunk| chunk.max_time).max()?;
        let day = PartitionDay::from_time_ns(first);
        (first <= last && day == PartitionDay::from_time_ns(last)).then_some(day)
    }

    /// Returns whether a row came on time.
    fn is_main(&self, (chunk, _): Position) -> bool {
        (chunk as usize) < self.main_chunks
    }

    fn time(&self, (chunk, row): Position) -> i64 {
        self.chunks.get(chunk as usize).and_then(|c| c.time.get(row as usize)).copied().unwrap_or(0)
    }

    fn series(&self, (chunk, row): Position) -> SeriesId {
        self.chunks.get(chunk as usize).and_then(|c| c.series.get(row as usize)).copied().unwrap_or(0)
    }

    fn by_series_and_time(&self, ranks: &[u32]) -> Vec<Position> {
        let rank = |row: Position| ranks.get(self.series(row) as usize).map_or(0, |rank| *rank as usize);
        let mut ends = vec![0; ranks.len() + 1];
        let mut count = 0;
        for row in self.positions() {
            count += 1;
            if let Some(end) = ends.get_mut(rank(row) + 1) {
                *end += 1;
            }
        }
        let mut sum = 0;
        for end in &mut ends {
            sum += *end;
            *end = sum;
        }
        // From here on `ends[r]` is where the next row of rank r goes; in the end it is where rank r ends.
        let mut order = vec![(0, 0); count];
        for row in self.positions() {
            if let Some(next) = ends.get_mut(rank(row)) {
                if let Some(slot) = order.get_mut(*next) {
                    *slot = row;
                }
                *next += 1;
            }
        }
        if self.chunks.len() > self.main_chunks {
            let mut start = 0;
            for end in ends {
                // Late rows stand behind those that came on time.
                if let Some(rows) =
                    order.get_mut(start..end).filter(|rows| rows.last().is_some_and(|r| !self.is_main(*r)))
                {
                    rows.sort_by_key(|row| self.time(*row));
                }
                start = end;
            }
        }
        order
    }

    fn by_time(&self) -> Vec<Position> {
        let mut order: Vec<Position> = self.positions().collect();
        if !order.is_sorted_by_key(|row| self.time(*row)) {
            order.sort_by_key(|row| self.time(*row));
        }
        order
    }

    /// Gathers one column for rows that have one version each, as (chunk, row); `None` where a chunk lacks the column.
    fn gather_single(&self, index: usize, rows: &[(usize, usize)]) -> Result<Option<ArrayRef>> {
        let arrays: Option<Vec<&dyn Array>> =
            self.chunks.iter().map(|chunk| chunk.column(index).map(AsRef::as_ref)).collect();
        Ok(arrays.map(|arrays| interleave(&arrays, rows)).transpose()?)
    }

    /// Gathers one column for the given rows, each a list of versions of which the last with a value counts.
    fn gather<'r>(
        &self,
        index: usize,
        column: &Column,
        runs: impl Iterator<Item = &'r [Position]>,
    ) -> Result<ArrayRef> {
        let null = new_null_array(&column.data_type, 1);
        let arrays: Vec<&dyn Array> = self
            .chunks
            .iter()
            .map(|chunk| chunk.column(index).unwrap_or(&null).as_ref())
            .chain([null.as_ref()])
            .collect();
        let none = (self.chunks.len(), 0);
        let value = |&(chunk, row): &Position| {
            let (chunk, row) = (chunk as usize, row as usize);
            let array = self.chunks.get(chunk).and_then(|c| c.column(index))?;
            (!array.is_null(row)).then_some((chunk, row))
        };
        let indices: Vec<(usize, usize)> = runs.map(|run| run.iter().rev().find_map(value).unwrap_or(none)).collect();
        Ok(interleave(&arrays, &indices)?)
    }
}

impl FlushPart<'_> {
    fn push(&mut self, versions: &[Position]) {
        if versions.len() > 1 && self.runs.is_none() {
            self.runs = Some((0..self.rows.len()).collect());
        }
        if let Some(runs) = &mut self.runs {
            runs.push(self.rows.len());
        }
        self.rows.extend_from_slice(versions);
    }

    /// Returns the number of rows after merging.
    pub(crate) fn len(&self) -> usize {
        self.runs.as_ref().map_or(self.rows.len(), Vec::len)
    }

    fn versions(&self, row: usize) -> &[Position] {
        let range = match &self.runs {
            None => row..row + 1,
            Some(runs) => {
                let at = |i: usize| runs.get(i).copied().unwrap_or(self.rows.len());
                at(row)..at(row + 1)
            }
        };
        self.rows.get(range).unwrap_or(&[])
    }

    /// Returns the rows as record batches of `self.schema`.
    pub(crate) fn batches(&self) -> impl Iterator<Item = Result<RecordBatch>> {
        (0..self.len()).step_by(BATCH_ROWS).map(|first| self.batch(first..self.len().min(first + BATCH_ROWS)))
    }

    fn batch(&self, rows: std::ops::Range<usize>) -> Result<RecordBatch> {
        let source = &self.source;
        let firsts: Vec<Position> = match (&self.runs, self.rows.get(rows.clone())) {
            (None, Some(rows)) => rows.to_vec(),
            _ => rows.clone().filter_map(|row| self.versions(row).first().copied()).collect(),
        };
        let single: Vec<(usize, usize)> = match self.runs {
            None => firsts.iter().map(|(chunk, row)| (*chunk as usize, *row as usize)).collect(),
            Some(_) => Vec::new(),
        };
        let time = TimestampNanosecondArray::from_iter_values(firsts.iter().map(|row| source.time(*row)));
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(time.with_timezone("UTC"))];
        let series: Vec<SeriesId> = firsts.iter().map(|row| source.series(*row)).collect();
        for (index, column) in &source.columns {
            arrays.push(match column.kind {
                ColumnKind::Tag => source.series.tag_column(&column.name, &series)?,
                ColumnKind::Field => {
                    let single = if self.runs.is_none() { source.gather_single(*index, &single)? } else { None };
                    let merged = || source.gather(*index, column, rows.clone().map(|row| self.versions(row)));
                    single.map_or_else(merged, Ok)?
                }
            });
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), arrays)?)
    }
}

#[cfg(test)]
mod tests;
