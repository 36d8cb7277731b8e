//! Staged rows that are applied, on their way to the buffers of their tables.
//!
//! Ten thousand tables do not fit into a processor's cache: where their rows come in turn, each one
//! waits for the lock, the buffer and the ends of the columns of its table. So rows are gathered,
//! and go to their tables together, one table after the other. Nothing sees a difference: the
//! thread that looks at rows that are not frozen has them drained first
//! ([`Table::rows`](super::Table::rows)), and of one table rows stay in the order of the log.

use std::sync::{Arc, atomic::Ordering};

use hashbrown::HashMap;

use super::Table;
use crate::{
    Error, Result, SequenceNumber,
    buffer::{StagedRow, StagedRows, TableBuffer},
    sync::{AtomicBool, Mutex},
};

/// Rows at which a staging is drained. More for each table at a time gain little.
const MAX_ROWS: usize = 64 << 10;
/// Bytes at which it is drained, as buffers count them.
const MAX_BYTES: usize = 4 << 20;
/// Tables to which rows are appended together.
const TABLES_AT_ONCE: usize = 8;
/// Tables for each row from which on rows are not sorted: that takes a look at each table.
const MAX_TABLES_PER_ROW: usize = 16;

/// A row: which write, which row of it.
type RowAddress = (u32, u32);

/// The rows of a table.
type TableGroup<'a> = (&'a Arc<Table>, &'a [RowAddress]);

/// See the module. One for each database.
#[derive(Debug, Default)]
pub(crate) struct StagingBuffer {
    /// Whether there is anything to drain, or was something that could not be.
    has_rows: AtomicBool,
    rows: Mutex<PendingRows>,
}

#[derive(Debug, Default)]
struct PendingRows {
    writes: Vec<(SequenceNumber, StagedRows)>,
    /// What the rows of all writes say their tables by.
    tables: Arc<Vec<Arc<Table>>>,
    rows: usize,
    bytes: usize,
    has_failed: bool,
}

impl StagingBuffer {
    /// Adds the rows of a write, which say their tables by their addresses in `tables`.
    ///
    /// # Errors
    ///
    /// As [`drain`](Self::drain), also where this would not have to be done yet: nothing would ever
    /// see the rows.
    pub(crate) fn push(&self, seq: SequenceNumber, rows: StagedRows, tables: &Arc<Vec<Arc<Table>>>) -> Result<()> {
        let mut pending = self.rows.lock();
        pending.check()?;
        if !Arc::ptr_eq(&pending.tables, tables) {
            self.drain_now(&mut pending)?;
            pending.tables = Arc::clone(tables);
        }
        self.has_rows.store(true, Ordering::Release);
        pending.rows += rows.len();
        pending.bytes += rows.bytes();
        pending.writes.push((seq, rows));
        if pending.rows >= MAX_ROWS || pending.bytes >= MAX_BYTES { self.drain_now(&mut pending) } else { Ok(()) }
    }

    /// Puts all rows into the buffers of their tables.
    ///
    /// # Errors
    ///
    /// Once rows could not be put there, always: what the log has is not in memory then, and must
    /// not be taken for flushed.
    pub(crate) fn drain(&self) -> Result<()> {
        if self.has_rows.load(Ordering::Acquire) { self.drain_now(&mut self.rows.lock()) } else { Ok(()) }
    }

    fn drain_now(&self, pending: &mut PendingRows) -> Result<()> {
        pending.check()?;
        // So it is, too, if this thread dies on the way.
        pending.has_failed = true;
        pending.drain()?;
        pending.has_failed = false;
        self.has_rows.store(false, Ordering::Release);
        Ok(())
    }
}

impl PendingRows {
    fn check(&self) -> Result<()> {
        if self.has_failed { Err(Error::internal("rows in the log could not be applied")) } else { Ok(()) }
    }

    fn drain(&mut self) -> Result<()> {
        let writes = std::mem::take(&mut self.writes);
        let (rows, tables) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.tables));
        self.bytes = 0;
        if rows * MAX_TABLES_PER_ROW < tables.len() {
            return writes.iter().try_for_each(|(seq, rows)| apply(*seq, rows, &tables));
        }
        let (order, ends) = by_table(&writes, rows, tables.len());
        let starts = [0].into_iter().chain(ends.iter().copied());
        let addresses = starts.zip(&ends).map(|(start, end)| order.get(start..*end).unwrap_or_default());
        let groups = tables.iter().zip(addresses);
        let groups: Vec<_> = groups.filter(|(_, addresses)| !addresses.is_empty()).collect();
        let row = |(write, row): &RowAddress| {
            let (seq, rows) = writes.get(*write as usize)?;
            Some((*seq, rows.row(*row as usize)))
        };
        groups.chunks(TABLES_AT_ONCE).try_for_each(|groups| append_groups(groups, row))
    }
}

/// Appends rows to some tables.
///
/// First all that is needed of any of them is looked at, so that it comes from memory together: one
/// after the other each look would wait for the one before. No thread that has the rows of one
/// table locked waits for those of another.
fn append_groups<'r>(
    groups: &[TableGroup<'r>],
    row: impl Fn(&RowAddress) -> Option<(SequenceNumber, StagedRow<'r>)>,
) -> Result<()> {
    let rows = |addresses: &'r [RowAddress]| addresses.iter().filter_map(&row);
    let mut seen = 0;
    for (table, addresses) in groups {
        seen ^= u64::from(table.rows.is_locked()) ^ rows(addresses).fold(0, |seen, (_, row)| seen ^ row.touch());
    }
    let mut locked: Vec<_> = groups.iter().map(|(table, _)| table.undrained_rows()).collect();
    seen ^= locked.iter().fold(0, |seen, rows| seen ^ rows.buffer.touch());
    std::hint::black_box(seen);
    for (table, (_, addresses)) in locked.iter_mut().zip(groups) {
        rows(addresses).try_for_each(|(seq, row)| table.buffer.append_staged(seq, &row).map(drop))?;
    }
    Ok(())
}

/// Returns all rows by table, and where those of each table end. Sorts by counting, so that of one
/// table rows stay in their order.
fn by_table(writes: &[(SequenceNumber, StagedRows)], rows: usize, tables: usize) -> (Vec<RowAddress>, Vec<usize>) {
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

/// Puts the rows of one write into the buffers of their tables, those of each table at once: no
/// reader finds half of them.
fn apply(seq: SequenceNumber, rows: &StagedRows, tables: &[Arc<Table>]) -> Result<()> {
    ByTable::new(rows, tables).append_rest(seq)
}

/// The staged rows of one write by their tables.
pub(crate) struct ByTable<'r> {
    rows: &'r StagedRows,
    tables: &'r [Arc<Table>],
    /// Tables by their addresses, and rows, of one table in their order.
    order: Vec<(usize, usize)>,
    /// Where the rows of each table begin that were not taken yet, by the table's address.
    left: HashMap<*const Table, usize>,
}

impl<'r> ByTable<'r> {
    pub(crate) fn new(rows: &'r StagedRows, tables: &'r [Arc<Table>]) -> Self {
        let mut order: Vec<_> = rows.tables().zip(0..).collect();
        order.sort_unstable();
        let starts = order.iter().enumerate().filter(|(at, (table, _))| {
            at.checked_sub(1).and_then(|before| order.get(before)).is_none_or(|(before, _)| before != table)
        });
        let left = starts.filter_map(|(at, (table, _))| Some((Arc::as_ptr(tables.get(*table)?), at))).collect();
        Self { rows, tables, order, left }
    }

    /// Returns whether there are rows of a table left.
    pub(crate) fn has(&self, table: &Arc<Table>) -> bool {
        self.left.contains_key(&Arc::as_ptr(table))
    }

    /// Appends the rows of one table to its buffer.
    pub(crate) fn append(&mut self, seq: SequenceNumber, table: &Arc<Table>, buffer: &mut TableBuffer) -> Result<()> {
        match self.left.remove(&Arc::as_ptr(table)) {
            Some(start) => self.append_from(start, seq, buffer),
            None => Ok(()),
        }
    }

    /// Appends the rows of all other tables, as one of those who put rows into buffers: a drain may be
    /// what calls this, and holds the lock that another drain would wait for.
    pub(crate) fn append_rest(&self, seq: SequenceNumber) -> Result<()> {
        let mut starts: Vec<usize> = self.left.values().copied().collect();
        starts.sort_unstable();
        starts.into_iter().try_for_each(|start| {
            let table = self.order.get(start).and_then(|(table, _)| self.tables.get(*table));
            table.map_or(Ok(()), |table| self.append_from(start, seq, &mut table.undrained_rows().buffer))
        })
    }

    fn append_from(&self, start: usize, seq: SequenceNumber, buffer: &mut TableBuffer) -> Result<()> {
        let rest = self.order.get(start..).unwrap_or_default();
        let of_table = rest.iter().take_while(|(table, _)| Some(table) == rest.first().map(|(first, _)| first));
        of_table.into_iter().try_for_each(|(_, row)| buffer.append_staged(seq, &self.rows.row(*row)).map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{buffer::Scalar, model::TableSchema};

    fn tables(count: usize) -> Arc<Vec<Arc<Table>>> {
        let table = |n: usize| {
            let name = format!("t{n}");
            let (database, table, columns) = ("d".into(), name.as_str().into(), Vec::new());
            Arc::new(Table::new(TableSchema { database, table, has_primary_key: true, columns }))
        };
        Arc::new((0..count).map(table).collect())
    }

    /// Rows with a text each, in order of their times.
    fn rows(rows: &[(usize, i64)]) -> StagedRows {
        let mut staged = StagedRows::default();
        for (table, time) in rows {
            staged.put(0, Scalar::Text(&time.to_string()));
            staged.end_row(*time, 0, *table);
        }
        staged
    }

    fn in_buffer(table: &Table) -> Vec<i64> {
        let parts = table.undrained_rows().buffer.snapshot().unwrap();
        parts.iter().flat_map(|part| &part.chunks).flat_map(|chunk| chunk.time.to_vec()).collect()
    }

    #[test]
    fn rows_of_a_table_stay_in_order_however_many_tables_there_are() {
        for count in [1, 3, 100, 10_000] {
            let (staging, tables) = (StagingBuffer::default(), tables(count));
            let mut expected = vec![Vec::new(); count];
            let mut time = 0;
            for seq in 1..20 {
                let mut write = Vec::new();
                for n in 0..100 {
                    let table = (n * n * 31 + n) % count;
                    time += 1;
                    write.push((table, time));
                    expected[table].push(time);
                }
                staging.push(SequenceNumber(seq), rows(&write), &tables).unwrap();
            }
            assert!(tables.iter().all(|table| in_buffer(table).is_empty()));
            staging.drain().unwrap();
            let found: Vec<_> = tables.iter().map(|table| in_buffer(table)).collect();
            assert!(found == expected, "{count} tables");
            staging.drain().unwrap();
            assert_eq!(tables.iter().map(|table| in_buffer(table).len()).sum::<usize>(), 1_900);
        }
    }

    #[test]
    fn a_buffer_is_drained_when_it_is_full_and_when_other_tables_come() {
        let (staging, tables_before, tables_after) = (StagingBuffer::default(), tables(2), tables(2));
        let held =
            |tables: &[Arc<Table>]| tables.iter().map(|table| table.undrained_rows().buffer.rows()).sum::<usize>();
        staging.push(SequenceNumber(1), rows(&[(0, 1), (1, 2), (1, 3)]), &tables_before).unwrap();
        assert_eq!(held(&tables_before), 0);
        staging.push(SequenceNumber(2), rows(&[(0, 4)]), &tables_after).unwrap();
        assert_eq!((held(&tables_before), held(&tables_after)), (3, 0));
        let many: Vec<_> = (5..).zip(0..MAX_ROWS - 2).map(|(time, n)| (n % 2, time)).collect();
        staging.push(SequenceNumber(3), rows(&many), &tables_after).unwrap();
        assert_eq!(held(&tables_after), 0);
        staging.push(SequenceNumber(4), rows(&[(0, 1 << 40)]), &tables_after).unwrap();
        assert_eq!(held(&tables_after), MAX_ROWS);
    }

    #[test]
    fn what_could_not_be_drained_is_never_types_drained() {
        let (staging, tables) = (StagingBuffer::default(), tables(2));
        staging.push(SequenceNumber(1), rows(&[(0, 1), (1, 2)]), &tables).unwrap();
        // A thread dies while rows are on their way.
        std::thread::scope(|scope| {
            let dying = scope.spawn(|| {
                let mut pending = staging.rows.lock();
                // More of them than memory can hold.
                pending.rows = usize::MAX;
                staging.drain_now(&mut pending)
            });
            assert!(dying.join().is_err());
        });
        for _ in 0..2 {
            assert!(staging.drain().is_err());
            assert!(staging.push(SequenceNumber(2), rows(&[(0, 3)]), &tables).is_err());
        }
    }

    #[test]
    fn sequence_numbers_are_those_of_the_rows_writes() {
        let (staging, tables) = (StagingBuffer::default(), tables(2));
        for (seq, write) in [(3, vec![(0, 1)]), (4, vec![(1, 2)]), (7, vec![(0, 3)])] {
            staging.push(SequenceNumber(seq), rows(&write), &tables).unwrap();
        }
        staging.drain().unwrap();
        let numbers = |table: &Table| {
            let mut rows = table.undrained_rows();
            rows.buffer.freeze().unwrap();
            let frozen = rows.buffer.frozen()[0].clone();
            (frozen.min_seq.0, frozen.max_seq.0)
        };
        assert_eq!((numbers(&tables[0]), numbers(&tables[1])), ((3, 7), (4, 4)));
    }
}
