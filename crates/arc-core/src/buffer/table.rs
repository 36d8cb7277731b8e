//! The unflushed rows of one table: a mutable buffer that takes writes and frozen ones that wait
//! for their flush.
//!
//! Decides which rows are *late*: those that may have the primary key of a row that is there
//! already. Never touches the disk. One thread applies writes, in the order of the log; queries
//! take snapshots meanwhile.

use std::sync::Arc;

use hashbrown::HashMap;

use super::{
    CELL_BYTES,
    rows::{Chunk, Rows},
    series::SeriesId,
    staged_rows::StagedRow,
};
use crate::{
    Error, Result, SequenceNumber,
    model::{PartitionDay, TableSchema},
};

/// Rows at which the growing tail becomes an immutable chunk: large enough to scan well, small
/// enough to copy for a query.
const CHUNK_ROWS: usize = 64 * 1024;
/// A write of so many rows becomes a chunk by itself, without a copy.
pub(crate) const WHOLE_ROWS: usize = 16 * 1024;
/// A tail of so many bytes becomes a chunk when a query comes: copying it would take some tenths of
/// a millisecond.
const SHOWN_BYTES: usize = 256 << 10;
/// Rows of a tail for as many of which the next one makes space, whether or not they come.
const SMALL_ROWS: usize = 1_024;
/// Text is addressed by 31 bits within one chunk, so a tail of so many bytes is sealed whatever its
/// rows.
const CHUNK_BYTES: usize = 256 << 20;
/// Rows by columns at which a tail is sealed: sparse rows would cost their empty cells for all
/// columns of its rows.
const CHUNK_CELLS: usize = 8 << 20;

/// Rows in order of arrival.
#[derive(Debug, Default)]
struct RowList {
    sealed: Vec<Arc<Chunk>>,
    tail: Rows,
    /// Bytes that were appended to the tail, with each text written out.
    tail_bytes: usize,
    /// Cells that a row of the tail has beyond one a column, as [`Rows::wide_cells`] says.
    tail_wide_cells: usize,
    /// Bytes that were said to be held by the tail's rows.
    counted_bytes: usize,
    /// Empty rows with memory for the next tails.
    spare: Vec<Rows>,
    /// Rows that the last tail had.
    last_rows: usize,
}

impl RowList {
    /// Returns how many bytes more are held.
    fn append(&mut self, mut rows: Rows, select: Option<&[u32]>) -> Result<usize> {
        if select.is_none() && rows.len() >= WHOLE_ROWS {
            rows.reconsider();
            let bytes = rows.bytes();
            self.append_chunk(rows.into_chunk()?)?;
            return Ok(bytes);
        }
        if self.tail.differ(&rows) {
            self.begin_anew()?;
        }
        let (bytes, wide_cells) = (rows.spread_bytes(), self.tail.wide_cells(&rows));
        let cells = self.tail.cells() + rows.cells() + (self.tail.len() + rows.len()) * wide_cells;
        self.ensure_capacity(rows.len(), cells, bytes)?;
        self.tail_bytes += bytes;
        self.tail.append(&rows, select)?;
        self.tail_wide_cells = if wide_cells == 0 { 0 } else { self.tail.wide_cells(&Rows::default()) };
        self.tail.reconsider();
        // Less than was counted where texts have become codes: those that follow take what was too
        // much.
        let more = self.tail.bytes().saturating_sub(self.counted_bytes);
        self.counted_bytes += more;
        Ok(more)
    }

    fn append_chunk(&mut self, chunk: Chunk) -> Result<()> {
        self.seal()?;
        self.sealed.push(Arc::new(chunk));
        Ok(())
    }

    /// Returns how many bytes more are held.
    fn append_staged(&mut self, row: &StagedRow<'_>) -> Result<usize> {
        let bytes = row.bytes() + self.tail_wide_cells * CELL_BYTES;
        let width = row.width().max(self.tail.width()) + self.tail_wide_cells;
        self.ensure_capacity(1, (self.tail.len() + 1) * width, bytes)?;
        if !self.tail.append_staged(row)? {
            self.begin_anew()?;
            self.tail.append_staged(row)?;
        }
        if self.tail.len().is_power_of_two() {
            self.tail.reconsider();
        }
        self.tail_bytes += bytes;
        self.counted_bytes += bytes;
        Ok(bytes)
    }

    /// Seals the tail if so many more rows of so many bytes, with which it has so many cells, do
    /// not fit.
    #[inline]
    fn ensure_capacity(&mut self, rows: usize, cells: usize, bytes: usize) -> Result<()> {
        if self.tail.len() + rows > CHUNK_ROWS || cells > CHUNK_CELLS || self.tail_bytes + bytes > CHUNK_BYTES {
            // The next tail will be as long: grown by doubling it would be copied, and take fresh
            // pages, twice.
            let next = self.spare.pop().unwrap_or_else(|| self.tail.successor());
            self.seal()?;
            self.tail = next;
        } else if self.tail.is_empty()
            && let Some(spare) = self.spare.pop().or_else(|| self.small_spare(rows))
        {
            self.tail = spare;
        }
        Ok(())
    }

    /// Makes space for the few rows of a table that has had few, which would grow time and again:
    /// all at once when the first of them comes, and not before, for there may be none.
    fn small_spare(&self, rows: usize) -> Option<Rows> {
        let is_small = rows == 1 && self.last_rows <= SMALL_ROWS && self.tail.width() == 0;
        is_small.then(|| Rows::with_row_capacity(self.last_rows))
    }

    /// Ends a tail whose columns are of other types than those of the rows to come; it may have
    /// columns and no row.
    #[cold]
    fn begin_anew(&mut self) -> Result<()> {
        self.seal()?;
        self.tail = Rows::default();
        Ok(())
    }

    fn seal(&mut self) -> Result<()> {
        (self.tail_bytes, self.counted_bytes, self.tail_wide_cells) = (0, 0, 0);
        if !self.tail.is_empty() {
            self.last_rows = self.tail.len();
            self.sealed.push(Arc::new(std::mem::take(&mut self.tail).into_chunk()?));
        }
        Ok(())
    }

    /// A tail that would take long to copy is sealed: it need not be copied for the next query
    /// either.
    fn snapshot(&mut self) -> Result<Vec<Arc<Chunk>>> {
        if self.tail_bytes.max(self.tail.len() * self.tail_wide_cells * CELL_BYTES) >= SHOWN_BYTES {
            self.seal()?;
        }
        let mut chunks = self.sealed.clone();
        if !self.tail.is_empty() {
            chunks.push(Arc::new(self.tail.to_chunk()?));
        }
        Ok(chunks)
    }
}

/// Rows of one write that were not copied: chunks whose arrays lie in the body of the request, or
/// were made for them alone.
#[derive(Debug, Default)]
pub(crate) struct ZeroCopyRows {
    pub(crate) chunks: Vec<Chunk>,
    /// What they keep in memory: all of the body if any of them lies in it.
    pub(crate) bytes: usize,
    /// Whether any does.
    pub(crate) hold_body: bool,
}

impl ZeroCopyRows {
    pub(crate) fn len(&self) -> usize {
        self.chunks.iter().map(Chunk::len).sum()
    }
}

/// Rows that wait for their flush. Immutable.
#[derive(Debug)]
pub(crate) struct FrozenBuffer {
    /// Rows that are unique by primary key among themselves and everything before them.
    pub(crate) main: Vec<Arc<Chunk>>,
    /// Rows that may have the primary key of rows in `main`, in files, or of earlier ones here.
    pub(crate) late: Vec<Arc<Chunk>>,
    /// Sequence range of the writes in it.
    pub(crate) min_seq: SequenceNumber,
    pub(crate) max_seq: SequenceNumber,
    /// Newest time of the table before this buffer: rows newer than that cannot repeat a row of a
    /// file.
    pub(crate) newest_before: i64,
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
}

/// Chunks of one kind, as a snapshot hands them out.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) chunks: Vec<Arc<Chunk>>,
    pub(crate) late: bool,
    /// Number of the last write in it.
    pub(crate) max_seq: SequenceNumber,
}

/// The unflushed rows of one table.
#[derive(Debug)]
pub(crate) struct TableBuffer {
    main: RowList,
    late: RowList,
    min_seq: Option<SequenceNumber>,
    max_seq: SequenceNumber,
    rows: usize,
    bytes: usize,
    frozen: Vec<Arc<FrozenBuffer>>,
    /// Newest time of each series, by its number.
    newest: Vec<i64>,
    /// Newest time that a series not seen yet may have in a file.
    unseen: i64,
    /// Newest time of all rows in files and frozen buffers.
    newest_frozen: i64,
    /// Whether rows are on their way to where they belong, or once did not arrive there.
    has_failed: bool,
}

impl FrozenBuffer {
    /// Returns the rows with columns of the types that `schema` has, or `None` where they are so
    /// already.
    pub(crate) fn converted(&self, schema: &TableSchema) -> Result<Option<Self>> {
        let mut changed = false;
        let mut all = |chunks: &[Arc<Chunk>]| -> Result<Vec<Arc<Chunk>>> {
            let one = |chunk: &Arc<Chunk>| {
                let converted = chunk.converted(schema)?;
                changed |= converted.is_some();
                Ok(converted.map_or_else(|| Arc::clone(chunk), Arc::new))
            };
            chunks.iter().map(one).collect()
        };
        let (main, late) = (all(&self.main)?, all(&self.late)?);
        let Self { min_seq, max_seq, newest_before, rows, bytes, .. } = *self;
        Ok(changed.then_some(Self { main, late, min_seq, max_seq, newest_before, rows, bytes }))
    }

    /// Returns how many days it has that take up to `most_bytes` in memory, about: with the share
    /// that their rows have in all.
    pub(crate) fn small_days(&self, most_bytes: usize) -> usize {
        let mut days: HashMap<PartitionDay, usize> = HashMap::new();
        for chunk in self.main.iter().chain(&self.late) {
            let [first, last] = [chunk.min_time, chunk.max_time].map(PartitionDay::from_time_ns);
            if first == last {
                *days.entry(first).or_default() += chunk.len();
                continue;
            }
            let is_one = |a: &i64, b: &i64| PartitionDay::from_time_ns(*a) == PartitionDay::from_time_ns(*b);
            for times in chunk.time.chunk_by(is_one) {
                let Some(time) = times.first() else { continue };
                *days.entry(PartitionDay::from_time_ns(*time)).or_default() += times.len();
            }
        }
        days.into_values().filter(|rows| self.bytes_of(*rows) <= most_bytes).count()
    }

    /// Returns what some of its rows take in memory, about.
    pub(crate) fn bytes_of(&self, rows: usize) -> usize {
        let bytes = (self.bytes as u128 * rows as u128).div_ceil(self.rows.max(1) as u128);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// Returns the chunks that nothing else has.
    pub(crate) fn into_chunks(self) -> Vec<Chunk> {
        self.main.into_iter().filter_map(Arc::into_inner).collect()
    }
}

impl TableBuffer {
    /// Starts empty, for a table whose files hold no row newer than `newest_in_files`.
    pub(crate) fn new(newest_in_files: Option<i64>) -> Self {
        let newest = newest_in_files.unwrap_or(i64::MIN);
        Self {
            main: RowList::default(),
            late: RowList::default(),
            min_seq: None,
            max_seq: SequenceNumber(0),
            rows: 0,
            bytes: 0,
            frozen: Vec::new(),
            newest: Vec::new(),
            unseen: newest,
            newest_frozen: newest,
            has_failed: false,
        }
    }

    /// Does something that leaves rows half where they belong if it fails, or if this thread dies
    /// on the way. What the log has is not all here then, for good: the buffer is never again
    /// frozen, and so never taken for flushed, nor shown.
    #[inline]
    fn whole<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if std::mem::replace(&mut self.has_failed, true) {
            return Err(Error::internal("rows in the log could not be applied"));
        }
        let done = work(self)?;
        self.has_failed = false;
        Ok(done)
    }

    /// Applies the rows of one write; returns how many bytes more are held.
    pub(crate) fn append(&mut self, seq: SequenceNumber, rows: Rows) -> Result<usize> {
        self.min_seq.get_or_insert(seq);
        self.max_seq = seq;
        self.rows += rows.len();
        self.whole(|buffer| {
            let late = buffer.note_newest(&rows.series, &rows.time);
            let bytes =
                if late.is_empty() { buffer.main.append(rows, None)? } else { buffer.append_late(rows, &late)? };
            buffer.bytes += bytes;
            Ok(bytes)
        })
    }

    /// Applies rows of one write that stay where they lie; returns how many bytes more are held.
    pub(crate) fn append_zero_copy(&mut self, seq: SequenceNumber, kept: ZeroCopyRows) -> Result<usize> {
        self.min_seq.get_or_insert(seq);
        self.max_seq = seq;
        self.rows += kept.len();
        self.whole(|buffer| buffer.append_chunks(kept))
    }

    fn append_chunks(&mut self, kept: ZeroCopyRows) -> Result<usize> {
        let mut bytes = kept.bytes;
        let late: Vec<_> = kept.chunks.iter().map(|chunk| self.note_newest(&chunk.series, &chunk.time)).collect();
        if late.iter().all(Vec::is_empty) {
            kept.chunks.into_iter().try_for_each(|chunk| self.main.append_chunk(chunk))?;
            self.bytes += bytes;
            return Ok(bytes);
        }
        bytes = 0;
        // Rows that are taken apart are copied; if others stayed, so would all that these leave.
        for (chunk, late) in kept.chunks.into_iter().zip(late) {
            let rows = chunk.to_rows()?;
            drop(chunk);
            bytes += if late.is_empty() { self.main.append(rows, None)? } else { self.append_late(rows, &late)? };
        }
        self.bytes += bytes;
        Ok(bytes)
    }

    /// Takes rows apart of which some are late.
    fn append_late(&mut self, rows: Rows, late: &[u32]) -> Result<usize> {
        let mut is_late = late.iter().copied().peekable();
        let all = 0..u32::try_from(rows.len()).unwrap_or(u32::MAX);
        let on_time: Vec<u32> = all.filter(|row| is_late.next_if_eq(row).is_none()).collect();
        let mut late_rows = Rows::default();
        late_rows.append(&rows, Some(late))?;
        Ok(self.late.append(late_rows, None)? + self.main.append(rows, Some(&on_time))?)
    }

    /// Reads something of all that a row is appended to.
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        self.main.tail.touch() ^ self.newest.last().map_or(0, |time| time.cast_unsigned())
    }

    /// Applies one row of a write; the table has series. Returns how many bytes more are held.
    pub(crate) fn append_staged(&mut self, seq: SequenceNumber, row: &StagedRow<'_>) -> Result<usize> {
        self.min_seq.get_or_insert(seq);
        self.max_seq = seq;
        self.rows += 1;
        self.whole(|buffer| {
            let list = if buffer.is_late(row.series, row.time) { &mut buffer.late } else { &mut buffer.main };
            let bytes = list.append_staged(row)?;
            buffer.bytes += bytes;
            Ok(bytes)
        })
    }

    /// Notes that files are there which hold rows up to this time: what is not newer is late.
    pub(crate) fn note_files(&mut self, newest: i64) {
        self.newest.iter_mut().for_each(|known| *known = (*known).max(newest));
        self.unseen = self.unseen.max(newest);
        self.newest_frozen = self.newest_frozen.max(newest);
    }

    /// Returns up to which time files are known to hold rows, or a later one.
    pub(crate) fn newest_in_files(&self) -> i64 {
        self.unseen
    }

    /// Moves the newest time of each row's series on; returns the rows that are not newer than
    /// their series.
    fn note_newest(&mut self, series: &[SeriesId], times: &[i64]) -> Vec<u32> {
        let mut late = Vec::new();
        for (row, (series, time)) in (0..).zip(series.iter().zip(times)) {
            if self.is_late(*series, *time) {
                late.push(row);
            }
        }
        late
    }

    /// Returns whether a time is not newer than all before it of its series; if it is, it is the
    /// newest now.
    #[inline]
    fn is_late(&mut self, series: SeriesId, time: i64) -> bool {
        let series = series as usize;
        if self.newest.len() <= series {
            self.newest.resize(series + 1, self.unseen);
        }
        match self.newest.get_mut(series) {
            Some(newest) if time > *newest => {
                *newest = time;
                false
            }
            _ => true,
        }
    }

    /// Moves all rows that take writes into a frozen buffer.
    ///
    /// # Errors
    ///
    /// Once a write could not be applied, or rows not be sealed, always.
    pub(crate) fn freeze(&mut self) -> Result<()> {
        let Some(min_seq) = self.min_seq else { return Ok(()) };
        self.whole(|buffer| {
            buffer.main.seal()?;
            buffer.late.seal()
        })?;
        let (main, late) = (std::mem::take(&mut self.main.sealed), std::mem::take(&mut self.late.sealed));
        let newest = main.iter().chain(&late).map(|chunk| chunk.max_time).max().unwrap_or(i64::MIN);
        self.frozen.push(Arc::new(FrozenBuffer {
            main,
            late,
            min_seq,
            max_seq: self.max_seq,
            newest_before: self.newest_frozen,
            rows: std::mem::take(&mut self.rows),
            bytes: std::mem::take(&mut self.bytes),
        }));
        self.min_seq = None;
        self.newest_frozen = self.newest_frozen.max(newest);
        Ok(())
    }

    /// Returns the bytes of the rows that are not frozen.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the frozen buffers, oldest first.
    #[cfg(test)]
    pub(crate) fn frozen(&self) -> &[Arc<FrozenBuffer>] {
        &self.frozen
    }

    /// Returns the frozen buffers whose writes all have numbers up to `seq`, oldest first.
    pub(crate) fn frozen_up_to(&self, seq: SequenceNumber) -> Vec<Arc<FrozenBuffer>> {
        self.frozen.iter().take_while(|buffer| buffer.max_seq <= seq).cloned().collect()
    }

    /// Forgets the `count` oldest frozen buffers, whose rows are in files now; returns the bytes
    /// they held.
    pub(crate) fn forget(&mut self, count: usize) -> usize {
        self.frozen.drain(..count.min(self.frozen.len())).map(|buffer| buffer.bytes).sum()
    }

    /// Keeps the memory of flushed chunks for the next rows, if these come quickly: as a chunk's
    /// worth of them has during the flush. Otherwise none is kept any longer.
    ///
    /// The kernel clears each page that it hands out, which took as long as all else that is done
    /// to put rows here.
    pub(crate) fn recycle(&mut self, flushed: Vec<Chunk>) {
        if self.main.sealed.is_empty() {
            return self.main.spare.clear();
        }
        let most = flushed.len();
        let chunks = flushed.into_iter().filter(|chunk| chunk.len() >= CHUNK_ROWS / 2).map(Chunk::emptied);
        // Rows that lay in the body of their request leave nothing that others could use.
        self.main.spare.extend(chunks.filter(Rows::has_memory));
        self.main.spare.truncate(most);
    }

    /// Returns the number of unflushed rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows + self.frozen.iter().map(|buffer| buffer.rows).sum::<usize>()
    }

    /// Returns all unflushed rows in the order in which later ones overwrite earlier ones.
    pub(crate) fn snapshot(&mut self) -> Result<Vec<Part>> {
        let mut parts = Vec::new();
        for buffer in &self.frozen {
            let max_seq = buffer.max_seq;
            parts.push(Part { chunks: buffer.main.clone(), late: false, max_seq });
            parts.push(Part { chunks: buffer.late.clone(), late: true, max_seq });
        }
        let max_seq = self.max_seq;
        let (main, late) = self.whole(|buffer| Ok((buffer.main.snapshot()?, buffer.late.snapshot()?)))?;
        parts.push(Part { chunks: main, late: false, max_seq });
        parts.push(Part { chunks: late, late: true, max_seq });
        parts.retain(|part| !part.chunks.is_empty());
        Ok(parts)
    }
}

/// Rows of a column whose pieces cannot be joined: with more texts than their dictionary has keys
/// for.
#[cfg(test)]
pub(crate) fn rows_that_cannot_be_sealed(first: i64) -> Vec<Rows> {
    use arrow::{
        array::{ArrayRef, DictionaryArray},
        datatypes::{DataType, Int8Type},
    };
    let data_type = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let piece = |from: i64| {
        let texts: Vec<String> = (from..from + 100).map(|text| text.to_string()).collect();
        let array: DictionaryArray<Int8Type> = texts.iter().map(String::as_str).collect();
        let mut rows = Rows::default();
        (from..from + 100).for_each(|time| rows.end_row(time, Some(1)));
        let array: ArrayRef = Arc::new(array);
        rows.column(7, &data_type, 0).append_array(&array).unwrap();
        rows
    };
    vec![piece(first), piece(first + 100)]
}

#[cfg(test)]
mod tests;
