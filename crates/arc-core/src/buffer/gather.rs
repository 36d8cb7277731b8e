//! Columns of sorted rows, gathered from the chunks that the rows arrived in.
//!
//! A column is handed over in pieces that stay in the processor's cache, and whose memory is used
//! again for the next one. Where rows that follow each other in the file mostly do so in a chunk,
//! which is the rule in an append-only table, pieces are parts of the chunks' own arrays and
//! nothing is copied. Tags are made from runs of series, without looking at rows.

use std::{
    cell::OnceCell,
    ops::{Deref, Range},
    sync::Arc,
};

use arrow::{
    array::{Array, ArrayData, ArrayRef, StringArray, TimestampNanosecondArray, make_array, new_null_array},
    buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer},
    compute::interleave,
    datatypes::{DataType, TimeUnit},
};

use super::{
    column::converted,
    dictionary_texts::is_dictionary,
    order::{RowOrder, Spans},
    rows::Chunk,
    sorted::{ChunkRow, FlushPart, GatherSource, SeriesRun},
    text_array::TextArray,
    text_keys::TextKeys,
};
use crate::{
    Result,
    arrays::Columns,
    model::{Column, ColumnKind, fixed_bytes, rows_within, time_type},
};

/// Rows gathered at a time: those of a page.
const PIECE_ROWS: usize = 10_000;
/// Bytes gathered at a time of values that have the same whatever they are.
const PIECE_BYTES: usize = 4 << 20;
/// Rows that spans have on average, at least, to be worth handing over one by one.
const MIN_STRETCH_ROWS: usize = 512;

/// The versions of a row.
enum Versions<'a> {
    One(Option<ChunkRow>),
    Some(&'a [ChunkRow]),
}

impl Deref for Versions<'_> {
    type Target = [ChunkRow];

    fn deref(&self) -> &[ChunkRow] {
        match self {
            Self::One(version) => version.as_slice(),
            Self::Some(versions) => versions,
        }
    }
}

type Take<'t> = dyn FnMut(&ArrayRef) -> Result<()> + 't;

impl Columns for FlushPart<'_> {
    fn len(&self) -> usize {
        self.runs.as_ref().map_or(self.rows.len(), Vec::len)
    }

    fn column(&self, index: usize, rows: Range<usize>, take: &mut Take<'_>) -> Result<()> {
        let Some((schema_index, column)) = index.checked_sub(1).and_then(|index| self.source.columns.get(index)) else {
            return self.times(rows, take);
        };
        match column.kind {
            ColumnKind::Tag => self.tags(&column.name, rows, take),
            ColumnKind::Field => self.field(*schema_index, column, rows, take),
        }
    }

    fn sample(&self, index: usize, step: usize) -> Result<ArrayRef> {
        let Some((schema_index, column)) = index.checked_sub(1).and_then(|index| self.source.columns.get(index)) else {
            let first = |row| self.versions(row).first().copied();
            let times = (0..self.len()).step_by(step).filter_map(first).map(|row| self.source.time(row));
            return Ok(time_array(times.collect()));
        };
        self.merged(*schema_index, column, (0..self.len()).step_by(step))
    }
}

impl FlushPart<'_> {
    /// Returns the versions of a row, the later after the earlier.
    fn versions(&self, row: usize) -> Versions<'_> {
        let (runs, rows) = match (&self.runs, &self.rows) {
            (Some(runs), RowOrder::Rows(rows)) => (runs, rows),
            (_, rows) => return Versions::One(rows.get(row)),
        };
        let at = |i: usize| runs.get(i).copied().unwrap_or(rows.len());
        Versions::Some(rows.get(at(row)..at(row + 1)).unwrap_or_default())
    }

    /// Returns the spans that the rows make up, if there are few and each row has one version.
    fn spans(&self) -> Option<&Spans> {
        match &self.rows {
            RowOrder::Spans(spans) => spans.have(MIN_STRETCH_ROWS).then_some(spans),
            RowOrder::Rows(_) if self.runs.is_some() => None,
            RowOrder::Rows(rows) => self.spans.get_or_init(|| Spans::of(rows, MIN_STRETCH_ROWS)).as_ref(),
        }
    }

    /// Calls `take` for each span within some rows: with the number of its chunk and the rows in
    /// there. `false` without spans.
    fn for_spans(&self, rows: &Range<usize>, mut take: impl FnMut(usize, Range<usize>) -> Result<()>) -> Result<bool> {
        let Some(spans) = self.spans() else { return Ok(false) };
        for ((chunk, first), count) in spans.parts(rows.clone()) {
            take(chunk as usize, first as usize..first as usize + count)?;
        }
        Ok(true)
    }

    fn times(&self, rows: Range<usize>, take: &mut Take<'_>) -> Result<()> {
        let slice = |chunk: usize, rows: Range<usize>| match self.source.chunks.get(chunk) {
            Some(chunk) => take(&time_array(chunk.time.slice(rows.start, rows.len()))),
            None => Ok(()),
        };
        if self.for_spans(&rows, slice)? {
            return Ok(());
        }
        if self.runs.is_none() && self.times.len() == self.rows.len() {
            return pieces(rows).try_for_each(|piece| take(&time_array(self.times.slice(piece.start, piece.len()))));
        }
        if self.runs.is_none() {
            let times = Words::times(&self.source.chunks);
            return pieces(rows).try_for_each(|piece| take(&times.gather(&self.rows, piece)?));
        }
        pieces(rows).try_for_each(|piece| {
            let rows = piece.filter_map(|row| self.versions(row).first().copied());
            take(&time_array(rows.map(|row| self.source.time(row)).collect()))
        })
    }

    fn tags(&self, name: &str, rows: Range<usize>, take: &mut Take<'_>) -> Result<()> {
        let all = self.series_runs.get_or_init(|| self.find_series_runs());
        // The run that the next row is in, and how many of its rows are after that.
        let (mut runs, mut skip) = (all.iter(), rows.start);
        let mut current = runs.next();
        while let Some((_, count)) = current.filter(|(_, count)| *count as usize <= skip) {
            skip -= *count as usize;
            current = runs.next();
        }
        let mut skip = u32::try_from(skip).unwrap_or(u32::MAX);
        pieces(rows).try_for_each(|piece| {
            let (mut of_piece, mut left) = (Vec::new(), u32::try_from(piece.len()).unwrap_or(u32::MAX));
            while let (Some((series, count)), 1..) = (current, left) {
                let taken = left.min(count - skip);
                of_piece.push((*series, taken));
                left -= taken;
                skip += taken;
                if skip == *count {
                    (current, skip) = (runs.next(), 0);
                }
            }
            let tags = self.source.series.read().tag_runs(name, &of_piece)?;
            take(&tags)
        })
    }

    /// Rows of one series stand together, so the end of each run is searched for in steps that
    /// double.
    fn find_series_runs(&self) -> Vec<SeriesRun> {
        let series = |row| self.versions(row).first().map(|row| self.source.series(*row));
        let (mut runs, mut start) = (Vec::new(), 0);
        while let Some(first) = series(start) {
            let is_its = |row| series(row) == Some(first);
            let mut step = 1;
            while is_its(start + step) {
                step *= 2;
            }
            let (mut inside, mut outside) = (start + step / 2, start + step);
            while outside - inside > 1 {
                let middle = usize::midpoint(inside, outside);
                if is_its(middle) { inside = middle } else { outside = middle }
            }
            runs.push((first, u32::try_from(outside - start).unwrap_or(u32::MAX)));
            start = outside;
        }
        runs
    }

    fn field(&self, index: usize, column: &Column, rows: Range<usize>, take: &mut Take<'_>) -> Result<()> {
        let most = rows_within(PIECE_BYTES, fixed_bytes(&column.data_type), PIECE_ROWS);
        let pieces = |rows: Range<usize>| pieces_of(rows, most);
        // One for all pieces: what a null has of memory is as much as a value has.
        let nulls = OnceCell::new();
        let nulls = |rows: usize| {
            let all: &ArrayRef = nulls.get_or_init(|| new_null_array(&column.data_type, most));
            all.slice(0, rows)
        };
        let encoded = if self.source.has_codes(index) { self.source.keys(index, column) } else { None };
        let chunk = |chunk: usize| self.source.chunks.get(chunk).and_then(|chunk| chunk.column(index));
        let slice = |of: usize, rows: Range<usize>| match (encoded, chunk(of)) {
            (Some(keys), _) => pieces(rows).try_for_each(|rows| take(&keys.slice(of, rows)?)),
            (None, Some(array)) => take(&converted(&array.slice(rows.start, rows.len()), &column.data_type)?),
            (None, None) => pieces(rows).try_for_each(|rows| take(&nulls(rows.len()))),
        };
        if self.for_spans(&rows, slice)? {
            return Ok(());
        }
        if self.runs.is_some() {
            return pieces(rows).try_for_each(|piece| take(&self.merged(index, column, piece)?));
        }
        if let Some(words) = Words::new(&self.source.chunks, index, &column.data_type) {
            return pieces(rows).try_for_each(|piece| take(&words.gather(&self.rows, piece)?));
        }
        if let Some(keys) = self.source.keys(index, column) {
            return pieces(rows).try_for_each(|piece| take(&keys.gather(&self.rows.positions(piece))?));
        }
        pieces(rows).try_for_each(|piece| take(&self.merged(index, column, piece)?))
    }

    /// Gathers one column of any type; of the versions of a row the last with a value counts.
    fn merged(&self, index: usize, column: &Column, rows: impl Iterator<Item = usize>) -> Result<ArrayRef> {
        let chunks = &self.source.chunks;
        if column.data_type == DataType::Utf8 {
            return Ok(self.merged_texts(index, rows));
        }
        let null = new_null_array(&column.data_type, 1);
        let arrays = chunks.iter().map(|chunk| chunk.column(index).unwrap_or(&null).as_ref());
        let arrays: Vec<&dyn Array> = arrays.chain([null.as_ref()]).collect();
        let none = (chunks.len(), 0);
        let value = |&(chunk, row): &ChunkRow| {
            let (chunk, row) = (chunk as usize, row as usize);
            let array = chunks.get(chunk).and_then(|c| c.column(index))?;
            (!array.is_null(row)).then_some((chunk, row))
        };
        let last = |row| self.versions(row).iter().rev().find_map(value).unwrap_or(none);
        let indices: Vec<(usize, usize)> = rows.map(last).collect();
        if indices.iter().all(|index| *index == none) {
            return Ok(new_null_array(&column.data_type, indices.len()));
        }
        Ok(interleave(&arrays, &indices)?)
    }

    /// The same of texts, which have one form in one chunk and another in the next.
    fn merged_texts(&self, index: usize, rows: impl Iterator<Item = usize>) -> ArrayRef {
        let columns = self.source.chunks.iter().map(|chunk| chunk.column(index));
        let chunks: Vec<Option<TextArray<'_>>> = columns.map(|column| column.and_then(TextArray::new)).collect();
        let text = |&(chunk, row): &ChunkRow| chunks.get(chunk as usize).copied()??.text(row as usize);
        let last = |row| self.versions(row).iter().rev().find_map(text);
        Arc::new(rows.map(last).collect::<StringArray>())
    }

    /// Returns all rows as one record batch.
    #[cfg(test)]
    pub(super) fn batch(&self) -> Result<arrow::array::RecordBatch> {
        self.batch_of(0..self.len())
    }

    #[cfg(test)]
    fn batch_of(&self, rows: Range<usize>) -> Result<arrow::array::RecordBatch> {
        let column = |index: usize| {
            let mut arrays: Vec<ArrayRef> = Vec::new();
            self.column(index, rows.clone(), &mut |array| {
                arrays.push(arrow::compute::cast(array, self.schema.field(index).data_type())?);
                Ok(())
            })?;
            let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
            Ok(arrow::compute::concat(&arrays)?)
        };
        let columns = (0..self.schema.fields().len()).map(column).collect::<Result<_>>()?;
        Ok(arrow::array::RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

impl GatherSource<'_> {
    /// Returns whether any chunk has a column as codes of texts.
    fn has_codes(&self, index: usize) -> bool {
        self.chunks.iter().filter_map(|chunk| chunk.column(index)).any(|array| is_dictionary(array.data_type()))
    }

    /// Returns a column of texts as codes in a dictionary, or `None` if it is none or its texts
    /// hardly repeat.
    fn keys(&self, index: usize, column: &Column) -> Option<&TextKeys> {
        let code = self.columns.iter().position(|(of, _)| *of == index)?;
        let make = || TextKeys::new(&self.chunks, index, &column.data_type);
        self.keys.get(code)?.get_or_init(make).as_ref()
    }
}

fn pieces(rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    pieces_of(rows, PIECE_ROWS)
}

fn pieces_of(rows: Range<usize>, most: usize) -> impl Iterator<Item = Range<usize>> {
    rows.clone().step_by(most).map(move |start| start..rows.end.min(start + most))
}

/// Returns times as a column.
pub(super) fn time_array(times: ScalarBuffer<i64>) -> ArrayRef {
    Arc::new(TimestampNanosecondArray::new(times, None).with_timezone("UTC"))
}

/// A column of eight-byte values in all chunks.
struct Words {
    data_type: DataType,
    values: Vec<ScalarBuffer<u64>>,
    /// For each chunk, which of its rows have a value; all `None` where all have.
    nulls: Vec<Option<NullBuffer>>,
    has_nulls: bool,
}

impl Words {
    fn times(chunks: &[&Arc<Chunk>]) -> Self {
        let values = chunks.iter().map(|chunk| ScalarBuffer::new(chunk.time.inner().clone(), 0, chunk.len()));
        Self { data_type: time_type(), values: values.collect(), nulls: Vec::new(), has_nulls: false }
    }

    /// Returns `None` if the type is another.
    fn new(chunks: &[&Arc<Chunk>], index: usize, data_type: &DataType) -> Option<Self> {
        let fits = matches!(
            data_type,
            DataType::Int64 | DataType::UInt64 | DataType::Float64 | DataType::Timestamp(TimeUnit::Nanosecond, _)
        );
        if !fits {
            return None;
        }
        let mut words = Self { data_type: data_type.clone(), values: Vec::new(), nulls: Vec::new(), has_nulls: false };
        for chunk in chunks {
            let nulls = match chunk.column(index) {
                Some(array) => {
                    let data = array.to_data();
                    let buffer = data.buffers().first()?;
                    words.values.push(ScalarBuffer::new(buffer.clone(), data.offset(), data.len()));
                    data.nulls().filter(|nulls| nulls.null_count() > 0).cloned()
                }
                None => {
                    words.values.push(ScalarBuffer::default());
                    Some(NullBuffer::new_null(chunk.len()))
                }
            };
            words.has_nulls |= nulls.is_some();
            words.nulls.push(nulls);
        }
        Some(words)
    }

    /// Returns some rows of an order.
    fn gather(&self, order: &RowOrder, rows: Range<usize>) -> Result<ArrayRef> {
        match order {
            RowOrder::Spans(spans) if !self.has_nulls => {
                let mut words = Vec::with_capacity(rows.len());
                for ((chunk, first), count) in spans.parts(rows) {
                    let values = self.values.get(chunk as usize).map_or(&[][..], |values| values);
                    words.extend_from_slice(values.get(first as usize..first as usize + count).unwrap_or_default());
                }
                self.array(words, None)
            }
            _ => self.gather_each(&order.positions(rows)),
        }
    }

    fn gather_each(&self, rows: &[ChunkRow]) -> Result<ArrayRef> {
        let chunks: Vec<&[u64]> = self.values.iter().map(|values| &**values).collect();
        let word = |&(chunk, row): &ChunkRow| chunks.get(chunk as usize)?.get(row as usize).copied();
        let words: Vec<u64> = rows.iter().map(|row| word(row).unwrap_or(0)).collect();
        let nulls = self.has_nulls.then(|| {
            let is_valid = |&(chunk, row): &ChunkRow| match self.nulls.get(chunk as usize) {
                Some(Some(nulls)) => nulls.is_valid(row as usize),
                _ => true,
            };
            let valid = rows.iter().map(is_valid).collect::<BooleanBuffer>();
            NullBuffer::new(valid)
        });
        self.array(words, nulls)
    }

    fn array(&self, words: Vec<u64>, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let data = ArrayData::builder(self.data_type.clone()).len(words.len()).nulls(nulls);
        Ok(make_array(data.add_buffer(Buffer::from_vec(words)).build()?))
    }
}

#[cfg(test)]
mod tests;
