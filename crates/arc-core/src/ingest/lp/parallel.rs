//! A large body on several threads: cut at line feeds, decoded in splits at the same time, joined
//! in its order.
//!
//! Gives what decoding it in one gives. One decoder goes through the body, as ever. Where it comes
//! to a cut and a split that begins there is decoded, its rows are taken and it goes on after them;
//! what a split has left out it decodes itself. If it does not come to an end exactly at a cut, the
//! cut is inside a string: from there on it goes alone.

use std::{ops::Range, sync::Arc};

use arc_lp::{Chunks, ResumableSink};
use bytes::Bytes;

use super::{
    Context, LpDecoder,
    splits::{SplitRows, Splits},
    tags,
};
use crate::{
    Result,
    buffer::SeriesId,
    ingest::{
        decode_pool::{DecodePool, SharedWork},
        staged::{MAX_CELLS, Staged, StagedTable},
        times::TimeChecks,
    },
};

/// Bytes that a split has at least, so that it is worth waking a thread for.
const MIN_PART: usize = 256 << 10;
/// Bytes up to which all texts of a body fit one column, whose offsets have 31 bits.
const MAX_BODY: usize = 1 << 30;

/// Staged rows that a table may have, at most.
const MAX_ROWS: usize = super::row_format::MAX_LINES as usize;

/// Does as [`decode_rows`](super::decode_rows), with threads that are spare while `others` are at
/// work for earlier requests.
pub(crate) fn decode(
    body: &Bytes,
    context: &Context<'_>,
    decode_pool: &DecodePool,
    others: impl Fn() -> usize,
) -> Staged {
    let most = body.len() / MIN_PART;
    // Replay of a request that had bad lines knows them by their numbers in the body.
    let is_plain = context.skip.is_empty() && context.times != TimeChecks::All;
    if most < 2 || body.len() > MAX_BODY || !is_plain {
        return super::decode_rows(body, context);
    }
    let Some(lease) = decode_pool.borrow(most - 1, others()) else { return super::decode_rows(body, context) };
    let splits = Arc::new(Splits::new(body, context, &cut(body, lease.count() + 1)));
    let task: Arc<dyn SharedWork> = Arc::clone(&splits) as _;
    lease.help(&task);
    decode_splits(body, context, &splits)
}

/// Returns where a body is cut into splits of about the same size: in front of all but the first.
fn cut(body: &[u8], splits: usize) -> Vec<usize> {
    let behind_line = |at: usize| Some(at + body.get(at..)?.iter().position(|byte| *byte == b'\n')? + 1);
    let cuts = (1..splits).filter_map(|split| behind_line(body.len() / splits * split));
    let mut cuts: Vec<usize> = cuts.filter(|cut| *cut < body.len()).collect();
    cuts.dedup();
    cuts
}

pub(super) fn decode_splits(body: &Bytes, context: &Context<'_>, splits: &Splits) -> Staged {
    let cache = context.database.fresh_series();
    let mut decoder = LpDecoder::new(body, context, &cache);
    decoder.open_rows();
    let mut parallel = Joined { decoder, body, at: 0, chunks: Chunks::new(), taken: Taken::default() };
    let result = parallel.decode_all(splits);
    let LpDecoder { staged, new_series, .. } = parallel.decoder;
    drop(cache);
    splits.cancel();
    if result.is_err() {
        return super::decode_rows(body, context);
    }
    tags::remember(&staged, &new_series);
    staged
}

/// The decoder of a whole body, and the rows of others that come after its own.
struct Joined<'a, 'c> {
    decoder: LpDecoder<'a, 'c>,
    body: &'a [u8],
    /// Up to where it is decoded.
    at: usize,
    chunks: Chunks,
    taken: Taken,
}

/// Rows after those of the decoder.
#[derive(Default)]
struct Taken {
    /// Not merged, for that would copy them: a table may be there for each split.
    tables: Vec<StagedTable>,
    series: Vec<(Range<usize>, usize, SeriesId)>,
}

impl<'a> ResumableSink<'a> for LpDecoder<'a, '_> {
    fn unfinished(&mut self) {
        self.take_back();
    }
}

impl<'a> Joined<'a, '_> {
    fn decode_all(&mut self, splits: &Splits) -> Result<()> {
        let first = splits.ranges().first().map_or(self.body.len(), |split| split.start);
        self.decode_until(first)?;
        if self.at == first {
            splits.help();
        }
        for (index, split) in splits.ranges().iter().enumerate() {
            if self.at != split.start {
                break;
            }
            if let Some(rows) = splits.take(index).filter(|rows| self.fits(rows)) {
                self.take(rows);
            }
            if self.at != split.end {
                self.decode_until(split.end)?;
            }
        }
        self.finish()
    }

    /// Decodes the lines that end before `end`.
    fn decode_until(&mut self, end: usize) -> Result<()> {
        self.merge_taken()?;
        let split = self.body.get(self.at..end).unwrap_or_default();
        self.decoder.body = split;
        self.at += self.chunks.parse(split, &mut self.decoder);
        Ok(())
    }

    /// Decodes what is left.
    fn finish(&mut self) -> Result<()> {
        if let Some(rest) = self.body.get(self.at..).filter(|rest| !rest.is_empty()) {
            self.merge_taken()?;
            self.decoder.body = rest;
            let _ = self.chunks.clone().finish(rest, &mut self.decoder);
        }
        let Taken { tables, series } = std::mem::take(&mut self.taken);
        let before = self.decoder.staged.tables.len();
        self.decoder.staged.tables.extend(tables);
        self.add_series(series, |at| Some(before + at));
        Ok(())
    }

    /// Returns whether rows belong after those that there are: with the same schema, and without
    /// too many empty cells.
    fn fits(&self, rows: &SplitRows) -> bool {
        let staged = &self.decoder.staged.tables;
        rows.tables.iter().all(|table| {
            // As if the most rows were in row format that the decoder may know of without an index
            // in `staged`.
            let (mut rows, mut width) = (table.rows.len() + MAX_ROWS, table.rows.width());
            let known = staged.iter().chain(&self.taken.tables);
            for known in known.filter(|known| Arc::ptr_eq(&known.table, &table.table)) {
                if !Arc::ptr_eq(&known.base, &table.base) || !known.widened.is_empty() {
                    return false;
                }
                rows += known.rows.len() + known.in_row_format.0;
                width = width.max(known.rows.width()).max(known.in_row_format.1);
            }
            rows * width <= MAX_CELLS
        })
    }

    fn take(&mut self, rows: SplitRows) {
        let before = self.taken.tables.len();
        self.taken.tables.extend(rows.tables);
        self.taken.series.extend(rows.series.into_iter().map(|(key, at, series)| (key, before + at, series)));
        self.chunks.append(&rows.chunks);
        // Out of date as soon as one of the splits is.
        let staged = &mut self.decoder.staged;
        staged.type_changes = staged.type_changes.min(rows.type_changes);
        self.at = rows.end;
    }

    /// Puts the rows that were taken after those of the decoder, so that it may add others.
    fn merge_taken(&mut self) -> Result<()> {
        let Taken { tables, series } = std::mem::take(&mut self.taken);
        if tables.is_empty() {
            return Ok(());
        }
        self.decoder.close_rows();
        let indices = tables.into_iter().map(|table| self.decoder.merge(table)).collect::<Result<Vec<_>>>()?;
        self.add_series(series, |at| indices.get(at).copied());
        Ok(())
    }

    fn add_series(&mut self, series: Vec<(Range<usize>, usize, SeriesId)>, index: impl Fn(usize) -> Option<usize>) {
        for (key, at, series) in series {
            if let (Some(key), Some(at)) = (self.body.get(key), index(at)) {
                self.decoder.new_series.insert(key, (at, series));
            }
        }
    }
}

impl LpDecoder<'_, '_> {
    /// Appends the rows of a table that is registered; returns its index.
    fn merge(&mut self, table: StagedTable) -> Result<usize> {
        let at = self.index.by_table(&mut self.staged, &table.table);
        self.begin(at);
        if let Some(known) = self.staged.tables.get_mut(at) {
            if Arc::ptr_eq(&known.base, &table.base) {
                known.rows.append(&table.rows, None)?;
            } else {
                // It has no rows yet, and another request has given the table columns since the
                // split was begun.
                *known = StagedTable { in_row_format: known.in_row_format, ..table };
            }
        }
        Ok(at)
    }
}
