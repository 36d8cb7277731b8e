//! The k-way merge of sorted inputs, run by run.
//!
//! The inputs are kept in the order of their next rows. The first of them gives as many rows as
//! come before the next row of the second, found by a binary search, so that inputs that hardly
//! interleave cost next to nothing to compare. Rows are not moved here: what comes next is noted,
//! and gathered a batch at a time.

use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::RecordBatch;

use super::{
    assemble::{Assembler, Pending},
    cursor::Cursor,
};
use crate::{Error, Result};

/// A piece of one input that is so long is handed on as it is.
const WHOLE_ROWS: usize = 2048;

/// The merged rows of all inputs, in order, as batches that are never empty.
pub(super) struct Merge<'a> {
    /// Those that have rows left, the one with the first of them at the end.
    cursors: Vec<Cursor>,
    /// Whether rows of one primary key become one.
    has_primary_key: bool,
    batch_rows: usize,
    assembler: Assembler,
    pending: Pending,
    /// A batch that comes after what was pending.
    whole: Option<RecordBatch>,
    cancelled: &'a AtomicBool,
}

impl<'a> Merge<'a> {
    /// Merges inputs; rows of a later one overwrite. Ends with an error once `cancelled`.
    pub(super) fn new(
        mut cursors: Vec<Cursor>,
        has_primary_key: bool,
        batch_rows: usize,
        assembler: Assembler,
        cancelled: &'a AtomicBool,
    ) -> Self {
        cursors.sort_by(|a, b| b.cmp(a));
        Self { cursors, has_primary_key, batch_rows, assembler, pending: Pending::default(), whole: None, cancelled }
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::Closed { reason: "a compaction was stopped".into() });
        }
        if let Some(whole) = self.whole.take() {
            return Ok(Some(whole));
        }
        while self.whole.is_none() && self.pending.rows() < self.batch_rows {
            let Some(cursor) = self.cursors.pop() else { break };
            self.step(cursor)?;
        }
        if self.pending.rows() == 0 {
            return Ok(self.whole.take());
        }
        let batch = self.assembler.assemble(&self.pending);
        self.pending.clear();
        self.cursors.iter_mut().for_each(|cursor| cursor.slot = None);
        batch.map(Some)
    }

    /// Takes the rows that come next, of which the first is that of `cursor`.
    fn step(&mut self, mut cursor: Cursor) -> Result<()> {
        if self.has_primary_key && self.cursors.last().is_some_and(|next| next.has_primary_key_of(&cursor)) {
            return self.step_versions(cursor);
        }
        let rows = cursor.rows_before(self.cursors.last(), !self.has_primary_key);
        if rows >= WHOLE_ROWS {
            self.whole = Some(self.assembler.slice(cursor.batch(), cursor.at(), rows)?);
        } else {
            self.pending.push_rows(&mut cursor, rows);
        }
        self.put_back(cursor, rows)
    }

    /// Takes all versions of one row.
    fn step_versions(&mut self, first: Cursor) -> Result<()> {
        let start =
            self.cursors.iter().rposition(|cursor| !cursor.has_primary_key_of(&first)).map_or(0, |last| last + 1);
        // They stand from the last version to the second.
        let mut versions = self.cursors.split_off(start);
        versions.push(first);
        self.pending.push_versions(versions.iter_mut().rev());
        versions.into_iter().try_for_each(|cursor| self.put_back(cursor, 1))
    }

    fn put_back(&mut self, mut cursor: Cursor, rows: usize) -> Result<()> {
        if cursor.advance(rows)? {
            let index = self.cursors.partition_point(|other| *other > cursor);
            self.cursors.insert(index, cursor);
        }
        Ok(())
    }
}

impl Iterator for Merge<'_> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}
