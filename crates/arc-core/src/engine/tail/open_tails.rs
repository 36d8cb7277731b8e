//! The tails that are open, and what each of them gets of a write.

use std::sync::{Arc, Weak};

use super::{
    Tail,
    queue::{TailEnding, TailQueue},
};
use crate::{
    Error, Result,
    buffer::{Chunk, Rows},
    ingest::Staged,
    memory::MemoryBudget,
    registry::Table,
    sync::{Mutex, MutexGuard},
};

/// The tails of one engine. Locked while a write is applied, so that the moment at which a tail
/// begins is between two writes.
#[derive(Debug, Default)]
pub(in crate::engine) struct Tails(Mutex<OpenTails>);

/// See [`Tails`].
#[derive(Debug, Default)]
pub(in crate::engine) struct OpenTails {
    tails: Vec<OpenTail>,
    /// Why there are no more.
    closed: Option<TailEnding>,
}

/// One of them; gone once its reader is.
#[derive(Debug)]
struct OpenTail {
    table: Arc<Table>,
    queue: Weak<TailQueue>,
}

/// The rows that one write has for a table that has tails.
#[derive(Debug)]
pub(in crate::engine) struct TailedRows {
    table: Arc<Table>,
    chunks: Result<Vec<Chunk>>,
}

impl Tails {
    pub(in crate::engine) fn lock(&self) -> MutexGuard<'_, OpenTails> {
        self.0.lock()
    }
}

impl OpenTails {
    /// Opens a tail of a table.
    pub(in crate::engine) fn open(&mut self, table: &Arc<Table>, memory: &Arc<MemoryBudget>) -> Result<Tail> {
        if let Some(ending) = &self.closed {
            let schema = table.schema();
            return Err(ending.clone().into_error(&schema.database, &schema.table));
        }
        self.forget_gone();
        let queue = TailQueue::new(memory);
        self.tails.push(OpenTail { table: Arc::clone(table), queue: Arc::downgrade(&queue) });
        Ok(Tail { table: Arc::clone(table), queue, is_over: false })
    }

    /// Returns whether there are any.
    pub(in crate::engine) fn are_there(&mut self) -> bool {
        self.forget_gone();
        !self.tails.is_empty()
    }

    fn forget_gone(&mut self) {
        self.tails.retain(|tail| tail.queue.strong_count() > 0);
    }

    /// Copies what a write has for tables that have tails, before it is applied.
    pub(in crate::engine) fn rows_of(&mut self, staged: &Staged) -> Vec<TailedRows> {
        if self.tails.is_empty() {
            return Vec::new();
        }
        self.tails.retain(|tail| tail.queue.upgrade().is_some_and(|queue| !queue.has_ended()));
        let mut found: Vec<TailedRows> = Vec::new();
        for OpenTail { table, .. } in &self.tails {
            if !found.iter().any(|known| Arc::ptr_eq(&known.table, table)) {
                found.push(TailedRows { table: Arc::clone(table), chunks: chunks_of(staged, table) });
            }
        }
        found
    }

    /// Hands on what a write had, now that it is applied; of one that could not be, the error. No
    /// more writes are taken then.
    pub(in crate::engine) fn hand_on<T>(&mut self, rows: Vec<TailedRows>, applied: &Result<T>) {
        if let Err(error) = applied {
            return self.close(&TailEnding::Closed(error.to_string()));
        }
        for TailedRows { table, chunks } in rows {
            let queues = self.tails.iter().filter(|tail| Arc::ptr_eq(&tail.table, &table));
            let queues: Vec<_> = queues.filter_map(|tail| tail.queue.upgrade()).collect();
            match chunks {
                Ok(chunks) => {
                    for chunk in chunks.into_iter().map(Arc::new) {
                        let bytes = chunk.bytes();
                        queues.iter().for_each(|queue| queue.add(&chunk, bytes));
                    }
                }
                Err(error) => {
                    let ending = TailEnding::Failed(error.to_string());
                    queues.iter().for_each(|queue| queue.end(&ending));
                }
            }
        }
    }

    /// Ends the tails of tables for which `has_ended` holds.
    pub(in crate::engine) fn end(&mut self, ending: &TailEnding, has_ended: impl Fn(&Arc<Table>) -> bool) {
        self.tails.retain(|tail| {
            let ends = has_ended(&tail.table);
            if ends && let Some(queue) = tail.queue.upgrade() {
                queue.end(ending);
            }
            !ends
        });
    }

    /// Ends all tails, and opens no more.
    pub(in crate::engine) fn close(&mut self, ending: &TailEnding) {
        self.end(ending, |_| true);
        self.closed.get_or_insert_with(|| ending.clone());
    }
}

/// Returns the rows that a write has for a table, in the order in which they are applied.
fn chunks_of(staged: &Staged, table: &Arc<Table>) -> Result<Vec<Chunk>> {
    let mut chunks = staged_rows_of(staged, table)?;
    for found in staged.tables.iter().filter(|found| Arc::ptr_eq(&found.table, table)) {
        chunks.extend(found.kept.chunks.iter().cloned());
        if !found.rows.is_empty() {
            chunks.push(found.rows.to_chunk()?);
        }
    }
    Ok(chunks)
}

fn staged_rows_of(staged: &Staged, table: &Arc<Table>) -> Result<Vec<Chunk>> {
    let Some(index) = staged.row_tables.iter().position(|known| Arc::ptr_eq(known, table)) else {
        return Ok(Vec::new());
    };
    let (mut chunks, mut rows) = (Vec::new(), Rows::default());
    let of_table = staged.rows.tables().zip(staged.rows.rows()).filter(|(table, _)| *table == index);
    for (_, row) in of_table {
        if rows.append_staged(&row)? {
            continue;
        }
        // The column had another type in the rows before.
        chunks.push(std::mem::take(&mut rows).into_chunk()?);
        if !rows.append_staged(&row)? {
            return Err(Error::internal("a row does not fit columns that were made for it"));
        }
    }
    if !rows.is_empty() {
        chunks.push(rows.into_chunk()?);
    }
    Ok(chunks)
}
