//! What one partition of an operator for windows holds, in the query's account.

use std::{cell::RefCell, sync::Arc};

use arrow::array::{Array, RecordBatch};
use datafusion::{common::Result, execution::memory_pool::MemoryReservation};
use parking_lot::Mutex;

use super::super::coop::Over;

/// Bytes of values that are counted together.
const STEP_BYTES: usize = 64 << 10;

thread_local! {
    /// The account of the operator that this thread works for.
    static CURRENT: RefCell<Option<Arc<WindowAccount>>> = const { RefCell::new(None) };
}

/// See the module.
#[derive(Debug)]
pub(super) struct WindowAccount {
    over: Over,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    /// Rows that went in and did not come out, and their bytes with those of the values made for them.
    rows: usize,
    bytes: usize,
    /// Bytes of values that are not reserved yet.
    waiting: usize,
    reservation: MemoryReservation,
}

impl WindowAccount {
    pub(super) fn new(over: Over, reservation: MemoryReservation) -> Arc<Self> {
        Arc::new(Self { over, held: Mutex::new(Held { rows: 0, bytes: 0, waiting: 0, reservation }) })
    }

    /// Returns the account of the operator that this thread works for, if it is one for windows.
    pub(super) fn current() -> Option<Arc<Self>> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Has this be the account that the thread works for, until `work` is done.
    pub(super) fn during<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        let _before = Before(CURRENT.replace(Some(Arc::clone(self))));
        work()
    }

    pub(super) fn take_in(&self, batch: &RecordBatch, copies: usize) -> Result<()> {
        let bytes = bytes_of(batch).saturating_mul(copies);
        let mut held = self.held.lock();
        held.reservation.try_grow(bytes)?;
        held.rows += batch.num_rows();
        held.bytes += bytes;
        Ok(())
    }

    pub(super) fn put_out(&self, rows: usize) {
        let mut held = self.held.lock();
        let rows = rows.min(held.rows);
        let share = held.bytes as u128 * rows as u128 / held.rows.max(1) as u128;
        let bytes = usize::try_from(share).unwrap_or(held.bytes).min(held.bytes);
        held.rows -= rows;
        held.bytes -= bytes;
        held.reservation.shrink(bytes);
    }

    /// Counts a value that was made for a row. Fails if the query has ended, or may not hold it.
    pub(super) fn make(&self, bytes: usize) -> Result<()> {
        self.over.check()?;
        let mut held = self.held.lock();
        let waiting = held.waiting.saturating_add(bytes);
        held.waiting = 0;
        if waiting < STEP_BYTES {
            held.waiting = waiting;
            return Ok(());
        }
        held.reservation.try_grow(waiting)?;
        held.bytes += waiting;
        Ok(())
    }

    /// Returns the rows that went in and did not come out.
    pub(super) fn rows(&self) -> usize {
        self.held.lock().rows
    }

    /// Counts what a function keeps, which may be more than the rows that are here.
    pub(super) fn resize_state(&self, before: usize, after: usize) -> Result<()> {
        match after.checked_sub(before) {
            Some(more) => self.held.lock().reservation.try_grow(more),
            None => {
                self.shrink_state(before - after);
                Ok(())
            }
        }
    }

    /// Counts less of what a function keeps.
    pub(super) fn shrink_state(&self, bytes: usize) {
        self.held.lock().reservation.shrink(bytes);
    }
}

/// Counts values that are made for rows, where they are made for an operator for windows.
pub(in crate::query) fn make(bytes: usize) -> Result<()> {
    WindowAccount::current().map_or(Ok(()), |account| account.make(bytes))
}

/// The account that the thread worked for before.
struct Before(Option<Arc<WindowAccount>>);

impl Drop for Before {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// Returns the bytes of the rows of a batch, not of all that its columns are slices of.
fn bytes_of(batch: &RecordBatch) -> usize {
    let bytes = |column: &Arc<dyn Array>| {
        let data = column.to_data();
        data.get_slice_memory_size().unwrap_or_else(|_| column.get_array_memory_size())
    };
    batch.columns().iter().map(bytes).sum()
}
