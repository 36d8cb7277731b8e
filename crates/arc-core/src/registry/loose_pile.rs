//! Loose rows that are applied, on their way to the buffers of their tables.
//!
//! Ten thousand tables do not fit into a processor's cache: where their rows come in turn, each one waits for the lock, the
//! buffer and the ends of the columns of its table. So rows are piled up, and go to their tables together, one table after
//! the other. Nobody sees a difference: whoever looks at rows that are not frozen has the pile settled first
//! ([`Table::settle`](super::Table::settle)), and of one table rows stay in the order of the log.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;

use super::Table;
use crate::{Error, Result, SequenceNumber, buffer::LooseRows};

/// Rows at which a pile is settled. More for each table at a time gain little.
const MAX_ROWS: usize = 64 << 10;
/// Bytes at which it is settled, as buffers count them.
const MAX_BYTES: usize = 4 << 20;
/// Tables for each row from which on rows are not sorted: that takes a look at each table.
const MAX_TABLES_PER_ROW: usize = 16;

/// See the module. One for each database.
#[derive(Debug, Default)]
pub(crate) struct LoosePile {
    /// Whether there is anything to settle, or was something that could not be.
    has_rows: AtomicBool,
    rows: Mutex<Piled>,
}

#[derive(Debug, Default)]
struct Piled {
    writes: Vec<(SequenceNumber, LooseRows)>,
    /// What the rows of all writes say their tables by.
    tables: Arc<Vec<Arc<Table>>>,
    rows: usize,
    bytes: usize,
    has_failed: bool,
}

impl LoosePile {
    /// Adds the rows of a write, which say their tables by their places in `tables`.
    pub(crate) fn push(&self, seq: SequenceNumber, rows: LooseRows, tables: &Arc<Vec<Arc<Table>>>) -> Result<()> {
        let mut piled = self.rows.lock();
        if !Arc::ptr_eq(&piled.tables, tables) {
            self.settle_now(&mut piled)?;
            piled.tables = Arc::clone(tables);
        }
        self.has_rows.store(true, Ordering::Release);
        piled.rows += rows.len();
        piled.bytes += rows.bytes();
        piled.writes.push((seq, rows));
        if piled.rows >= MAX_ROWS || piled.bytes >= MAX_BYTES { self.settle_now(&mut piled) } else { Ok(()) }
    }

    /// Puts all rows into the buffers of their tables.
    ///
    /// # Errors
    ///
    /// Once rows could not be put there, always: what the log has is not in memory then, and must not be taken for flushed.
    pub(crate) fn settle(&self) -> Result<()> {
        if self.has_rows.load(Ordering::Acquire) { self.settle_now(&mut self.rows.lock()) } else { Ok(()) }
    }

    fn settle_now(&self, piled: &mut Piled) -> Result<()> {
        if piled.has_failed {
            return Err(Error::internal("rows in the log could not be applied"));
        }
        piled.settle().inspect_err(|_| piled.has_failed = true)?;
        self.has_rows.store(false, Ordering::Release);
        Ok(())
    }
}

impl Piled {
    fn settle(&mut self) -> Result<()> {
        let writes = std::mem::take(&mut self.writes);
        let (rows, tables) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.tables));
        self.bytes = 0;
        if rows * MAX_TABLES_PER_ROW < tables.len() {
            return writes.iter().try_for_each(|(seq, rows)| apply(*seq, rows, &tables));
        }
        let (order, ends) = by_table(&writes, rows, tables.len());
        let mut start = 0;
        for (table, end) in tables.iter().zip(ends) {
            if start < end {
                let mut buffer = table.rows.lock();
                for (write, row) in order.get(start..end).unwrap_or_default() {
                    let Some((seq, rows)) = writes.get(*write as usize) else { continue };
                    buffer.buffer.append_loose(*seq, &rows.row(*row as usize))?;
                }
            }
            start = end;
        }
        Ok(())
    }
}

/// Returns write and row of all rows by table, and where those of each table end. Sorts by counting, so that of one table
/// rows stay in their order.
fn by_table(writes: &[(SequenceNumber, LooseRows)], rows: usize, tables: usize) -> (Vec<(u32, u32)>, Vec<usize>) {
    let mut ends = vec![0; tables];
    for table in writes.iter().flat_map(|(_, rows)| rows.tables()) {
        if let Some(count) = ends.get_mut(table) {
            *count += 1;
        }
    }
    let mut start = 0;
    for count in &mut ends {
        start += std::mem::replace(count, start);
    }
    let mut order = vec![(0, 0); rows];
    for (write, (_, rows)) in (0..).zip(writes) {
        for (row, table) in (0..).zip(rows.tables()) {
            let Some(next) = ends.get_mut(table) else { continue };
            if let Some(slot) = order.get_mut(*next) {
                *slot = (write, row);
            }
            *next += 1;
        }
    }
    (order, ends)
}

/// Puts the rows of one write into the buffers of their tables, as they come.
pub(crate) fn apply(seq: SequenceNumber, rows: &LooseRows, tables: &[Arc<Table>]) -> Result<()> {
    for (table, row) in rows.tables().zip(rows.rows()) {
        if let Some(table) = tables.get(table) {
            table.rows.lock().buffer.append_loose(seq, &row)?;
        }
    }
    Ok(())
}
