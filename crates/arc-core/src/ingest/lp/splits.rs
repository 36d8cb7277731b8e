//! Splits of a body that are decoded before it is known what stands in front of them.
//!
//! A split takes *plain* lines only: of registered tables and columns, with a timestamp, and
//! nothing wrong with them. It ends in front of the first other one. So a split has nothing but
//! rows, and they are the same whatever the lines before it are. Whether it begins at a line at
//! all, and not inside a string, is found out by the thread that decodes what is in front of it.

use std::{
    ops::Range,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use arc_lp::{Chunks, ErrorKind, FieldValue, RawValue, ResumableSink, Series, Sink, Text};
use bytes::Bytes;

use super::{Context, LpDecoder, Mode};
use crate::{
    Precision,
    buffer::SeriesId,
    ingest::{
        TypePolicy,
        decode_pool::SharedWork,
        staged::{MAX_CELLS, StagedTable},
        times::TimeChecks,
    },
    registry::Database,
    sync::{Condvar, Mutex},
};

/// Tables of which a split has lines, at most: each costs columns of its own in each split.
const MAX_TABLES: usize = 64;
/// How much of a body is looked at for quotes at a time.
const LOOK_BYTES: usize = 4096;

/// The splits of one body after the first one, and what came of them.
pub(super) struct Splits {
    body: Bytes,
    database: Arc<Database>,
    precision: Option<Precision>,
    ranges: Vec<Range<usize>>,
    /// The first that nothing has begun.
    next: AtomicUsize,
    slots: Mutex<Vec<SplitSlot>>,
    changed: Condvar,
    has_strings: OnceLock<bool>,
}

/// What is known of a split.
enum SplitSlot {
    /// Not decoded yet.
    Open,
    Decoded(SplitRows),
    /// Nothing came of it, or it was taken.
    Empty,
}

/// The rows of the plain lines that a split begins with.
pub(super) struct SplitRows {
    pub(super) tables: Vec<StagedTable>,
    /// Series that were not in the cache: where in the body their keys are, and the index in
    /// `tables` of their tables.
    pub(super) series: Vec<(Range<usize>, usize, SeriesId)>,
    /// As of the [`Staged`](crate::ingest::Staged) that the tables are of.
    pub(super) type_changes: u64,
    /// What was parsed, but for a last line without a line feed.
    pub(super) chunks: Chunks,
    /// Where in the body it ends.
    pub(super) end: usize,
}

impl Splits {
    /// The splits that begin at `cuts`, which ascend.
    pub(super) fn new(body: &Bytes, context: &Context<'_>, cuts: &[usize]) -> Self {
        let ends = cuts.iter().skip(1).copied().chain([body.len()]);
        Self {
            body: body.clone(),
            database: Arc::clone(context.database),
            precision: context.precision,
            ranges: cuts.iter().copied().zip(ends).map(|(start, end)| start..end).collect(),
            next: AtomicUsize::new(0),
            slots: Mutex::new(cuts.iter().map(|_| SplitSlot::Open).collect()),
            changed: Condvar::new(),
            has_strings: OnceLock::new(),
        }
    }

    pub(super) fn ranges(&self) -> &[Range<usize>] {
        &self.ranges
    }

    /// Returns the rows of a split that a thread has begun, once they are there.
    pub(super) fn take(&self, index: usize) -> Option<SplitRows> {
        let mut slots = self.slots.lock();
        loop {
            match slots.get_mut(index).map(|slot| std::mem::replace(slot, SplitSlot::Empty)) {
                Some(SplitSlot::Open) => {}
                Some(SplitSlot::Decoded(rows)) => return Some(rows),
                Some(SplitSlot::Empty) | None => return None,
            }
            if let Some(slot) = slots.get_mut(index) {
                *slot = SplitSlot::Open;
            }
            self.changed.wait(&mut slots);
        }
    }

    /// Has nothing begin another split.
    pub(super) fn cancel(&self) {
        self.next.store(self.ranges.len(), Ordering::Relaxed);
    }

    fn decode(&self, range: &Range<usize>) -> Option<SplitRows> {
        let body = self.body.get(range.clone())?;
        // Strict, for a value of another type is not plain, whatever becomes of it.
        let context = Context {
            database: &self.database,
            receive_ns: 0,
            precision: self.precision,
            tags: &[],
            skip: &[],
            types: TypePolicy::STRICT,
            most_cells: MAX_CELLS,
            times: TimeChecks::None,
        };
        // Recursive, for a writer may be waiting for the thread that has the body, who has the lock
        // and waits for this.
        let cache = self.database.series_cache.read_recursive();
        let mut decoder = LpDecoder::new(body, &context, &cache);
        decoder.open_rows();
        decoder.close_rows();
        let mut split = Split { decoder, has_ended: false, splits: self };
        let mut chunks = Chunks::new();
        let done = chunks.parse(body, &mut split);
        let mut end = range.start + done;
        if end < range.end && range.end == self.body.len() && !split.has_ended {
            let points = split.decoder.staged.points();
            let _ = chunks.clone().finish(body.get(done..)?, &mut split);
            if !split.has_ended {
                end = range.end;
            } else if split.decoder.staged.points() > points {
                return None;
            }
        }
        let LpDecoder { staged, new_series, .. } = split.decoder;
        let series = new_series.into_iter().filter_map(|(key, (at, series))| {
            let start = range.start + (key.as_ptr() as usize).checked_sub(body.as_ptr() as usize)?;
            Some((start..start + key.len(), at, series))
        });
        let (series, type_changes) = (series.collect(), staged.type_changes);
        Some(SplitRows { series, tables: staged.tables, type_changes, chunks, end })
    }

    /// Whether there is a quote in the body, so that a split may begin inside a string.
    fn has_strings(&self) -> bool {
        let has_quote = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'"').count() > 0;
        *self.has_strings.get_or_init(|| self.body.chunks(LOOK_BYTES).any(has_quote))
    }
}

impl SharedWork for Splits {
    fn help(&self) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(range) = self.ranges.get(index) else {
                // So that it never comes round to zero.
                return self.cancel();
            };
            let mut put = PutOnDrop { splits: self, index, rows: None };
            put.rows = self.decode(range);
        }
    }
}

/// Hands over what came of a split, also if that is nothing because its thread has died.
struct PutOnDrop<'p> {
    splits: &'p Splits,
    index: usize,
    rows: Option<SplitRows>,
}

impl Drop for PutOnDrop<'_> {
    fn drop(&mut self) {
        let rows = self.rows.take().map_or(SplitSlot::Empty, SplitSlot::Decoded);
        if let Some(slot) = self.splits.slots.lock().get_mut(self.index) {
            *slot = rows;
        }
        self.splits.changed.notify_all();
    }
}

/// A decoder that ends in front of the first line that is not plain.
struct Split<'a, 'c> {
    decoder: LpDecoder<'a, 'c>,
    has_ended: bool,
    splits: &'c Splits,
}

impl<'a> Sink<'a> for Split<'a, '_> {
    #[inline(always)]
    fn series(&mut self, number: u64, key: &'a [u8]) -> Series {
        self.decoder.series(number, key)
    }

    fn measurement(&mut self, name: Text<'a>) {
        let LpDecoder { index, staged, .. } = &mut self.decoder;
        match index.find(staged, &name.to_cow()) {
            Some(_) => self.decoder.measurement(name),
            None => self.decoder.refuse(String::new().into()),
        }
    }

    fn tag(&mut self, key: Text<'a>, value: Text<'a>) {
        self.decoder.tag(key, value);
    }

    #[inline(always)]
    fn field(&mut self, key: Text<'a>, value: FieldValue<'a>) {
        self.decoder.field(key, value);
    }

    #[inline(always)]
    fn raw_field(&mut self, key: Text<'a>, value: RawValue<'a>) -> Result<(), ErrorKind> {
        self.decoder.raw_field(key, value)
    }

    #[inline(always)]
    fn point(&mut self, timestamp: Option<i64>) {
        if timestamp.is_some() && !self.has_ended && self.is_plain() {
            self.decoder.point(timestamp);
            self.has_ended = !self.decoder.staged.rejections.numbers.is_empty();
        } else {
            self.decoder.take_back();
            self.has_ended = true;
        }
    }

    fn error(&mut self, _error: arc_lp::Error) {
        self.decoder.take_back();
        self.has_ended = true;
    }
}

impl<'a> ResumableSink<'a> for Split<'a, '_> {
    fn unfinished(&mut self) {
        self.decoder.take_back();
    }

    #[inline(always)]
    fn gives_back(&mut self) -> bool {
        self.has_ended
    }
}

impl Split<'_, '_> {
    /// Whether the line whose fields were stored has brought nothing new, as far as that is known
    /// before it is ended.
    #[inline(always)]
    fn is_plain(&self) -> bool {
        let LpDecoder { line, staged, .. } = &self.decoder;
        let Some(table) = staged.tables.get(line.table) else { return false };
        line.mode != Mode::Check
            && !table.changes_schema()
            && staged.tables.len() <= MAX_TABLES
            && (line.series.is_some() || self.has_plain_tags(table))
    }

    /// The same of its tags. In a body with strings they may be the text of one, which must not
    /// become a series.
    #[cold]
    fn has_plain_tags(&self, table: &StagedTable) -> bool {
        self.decoder.line.tags.iter().all(|(key, _)| table.position(key).is_some())
            && !(table.has_primary_key() && self.splits.has_strings())
    }
}
