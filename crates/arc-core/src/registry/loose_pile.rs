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

use crate::sync::Mutex;
use hashbrown::HashMap;

use super::Table;
use crate::{
    Error, Result, SequenceNumber,
    buffer::{LooseRow, LooseRows, TableBuffer},
};

/// Rows at which a pile is settled. More for each table at a time gain little.
const MAX_ROWS: usize = 64 << 10;
/// Bytes at which it is settled, as buffers count them.
const MAX_BYTES: usize = 4 << 20;
/// Tables to which rows are appended together.
const TABLES_AT_ONCE: usize = 8;
/// Tables for each row from which on rows are not sorted: that takes a look at each table.
const MAX_TABLES_PER_ROW: usize = 16;

/// A row: which write, which row of it.
type Place = (u32, u32);

/// The rows of a table.
type Group<'a> = (&'a Arc<Table>, &'a [Place]);

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
    ///
    /// # Errors
    ///
    /// As [`settle`](Self::settle), also where this would not have to be done yet: nobody would ever see the rows.
    pub(crate) fn push(&self, seq: SequenceNumber, rows: LooseRows, tables: &Arc<Vec<Arc<Table>>>) -> Result<()> {
        let mut piled = self.rows.lock();
        piled.check()?;
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
        piled.check()?;
        // So it is, too, if this thread dies on the way.
        piled.has_failed = true;
        piled.settle()?;
        piled.has_failed = false;
        self.has_rows.store(false, Ordering::Release);
        Ok(())
    }
}

impl Piled {
    fn check(&self) -> Result<()> {
        if self.has_failed { Err(Error::internal("rows in the log could not be applied")) } else { Ok(()) }
    }

    fn settle(&mut self) -> Result<()> {
        let writes = std::mem::take(&mut self.writes);
        let (rows, tables) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.tables));
        self.bytes = 0;
        if rows * MAX_TABLES_PER_ROW < tables.len() {
            return writes.iter().try_for_each(|(seq, rows)| apply(*seq, rows, &tables));
        }
        let (order, ends) = by_table(&writes, rows, tables.len());
        let starts = [0].into_iter().chain(ends.iter().copied());
        let places = starts.zip(&ends).map(|(start, end)| order.get(start..*end).unwrap_or_default());
        let groups = tables.iter().zip(places);
        let groups: Vec<_> = groups.filter(|(_, places)| !places.is_empty()).collect();
        let row = |(write, row): &Place| {
            let (seq, rows) = writes.get(*write as usize)?;
            Some((*seq, rows.row(*row as usize)))
        };
        groups.chunks(TABLES_AT_ONCE).try_for_each(|groups| append_groups(groups, row))
    }
}

/// Appends rows to some tables.
///
/// First all that is needed of any of them is looked at, so that it comes from memory together: one after the other each look
/// would wait for the one before. Nobody who has the rows of one table locked waits for those of another.
fn append_groups<'r>(
    groups: &[Group<'r>],
    row: impl Fn(&Place) -> Option<(SequenceNumber, LooseRow<'r>)>,
) -> Result<()> {
    let rows = |places: &'r [Place]| places.iter().filter_map(&row);
    let mut seen = 0;
    for (table, places) in groups {
        seen ^= u64::from(table.rows.is_locked()) ^ rows(places).fold(0, |seen, (_, row)| seen ^ row.touch());
    }
    let mut locked: Vec<_> = groups.iter().map(|(table, _)| table.rows.lock()).collect();
    seen ^= locked.iter().fold(0, |seen, rows| seen ^ rows.buffer.touch());
    std::hint::black_box(seen);
    for (table, (_, places)) in locked.iter_mut().zip(groups) {
        rows(places).try_for_each(|(seq, row)| table.buffer.append_loose(seq, &row).map(drop))?;
    }
    Ok(())
}

/// Returns all rows by table, and where those of each table end. Sorts by counting, so that of one table
/// rows stay in their order.
fn by_table(writes: &[(SequenceNumber, LooseRows)], rows: usize, tables: usize) -> (Vec<Place>, Vec<usize>) {
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

/// Puts the rows of one write into the buffers of their tables, those of each table at once: no reader finds half of them.
fn apply(seq: SequenceNumber, rows: &LooseRows, tables: &[Arc<Table>]) -> Result<()> {
    ByTable::new(rows, tables).append_rest(seq)
}

/// The loose rows of one write by their tables.
pub(crate) struct ByTable<'r> {
    rows: &'r LooseRows,
    tables: &'r [Arc<Table>],
    /// Tables by their places, and rows, of one table in their order.
    order: Vec<(usize, usize)>,
    /// Where the rows of each table begin that were not taken yet, by the table's address.
    left: HashMap<*const Table, usize>,
}

impl<'r> ByTable<'r> {
    pub(crate) fn new(rows: &'r LooseRows, tables: &'r [Arc<Table>]) -> Self {
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

    /// Appends the rows of all other tables.
    pub(crate) fn append_rest(&self, seq: SequenceNumber) -> Result<()> {
        let mut starts: Vec<usize> = self.left.values().copied().collect();
        starts.sort_unstable();
        starts.into_iter().try_for_each(|start| {
            let table = self.order.get(start).and_then(|(table, _)| self.tables.get(*table));
            table.map_or(Ok(()), |table| self.append_from(start, seq, &mut table.rows.lock().buffer))
        })
    }

    fn append_from(&self, start: usize, seq: SequenceNumber, buffer: &mut TableBuffer) -> Result<()> {
        let rest = self.order.get(start..).unwrap_or_default();
        let of_table = rest.iter().take_while(|(table, _)| Some(table) == rest.first().map(|(first, _)| first));
        of_table.into_iter().try_for_each(|(_, row)| buffer.append_loose(seq, &self.rows.row(*row)).map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{buffer::Scalar, catalog::TableSchema};

    fn tables(count: usize) -> Arc<Vec<Arc<Table>>> {
        let table = |n: usize| {
            let name = format!("t{n}");
            let (database, table, columns) = ("d".into(), name.as_str().into(), Vec::new());
            Arc::new(Table::new(TableSchema { database, table, keyed: true, columns }))
        };
        Arc::new((0..count).map(table).collect())
    }

    /// Rows with a text each, in order of their times.
    fn rows(rows: &[(usize, i64)]) -> LooseRows {
        let mut loose = LooseRows::default();
        for (table, time) in rows {
            loose.put(0, Scalar::Text(&time.to_string()));
            loose.end_row(*time, 0, *table);
        }
        loose
    }

    fn in_buffer(table: &Table) -> Vec<i64> {
        let parts = table.rows.lock().buffer.snapshot().unwrap();
        parts.iter().flat_map(|part| &part.chunks).flat_map(|chunk| chunk.time.to_vec()).collect()
    }

    #[test]
    fn rows_of_a_table_stay_in_order_however_many_tables_there_are() {
        for count in [1, 3, 100, 10_000] {
            let (pile, tables) = (LoosePile::default(), tables(count));
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
                pile.push(SequenceNumber(seq), rows(&write), &tables).unwrap();
            }
            assert!(tables.iter().all(|table| in_buffer(table).is_empty()));
            pile.settle().unwrap();
            let found: Vec<_> = tables.iter().map(|table| in_buffer(table)).collect();
            assert!(found == expected, "{count} tables");
            pile.settle().unwrap();
            assert_eq!(tables.iter().map(|table| in_buffer(table).len()).sum::<usize>(), 1_900);
        }
    }

    #[test]
    fn a_pile_is_settled_when_it_is_high_and_when_other_tables_come() {
        let (pile, tables_before, tables_after) = (LoosePile::default(), tables(2), tables(2));
        let held = |tables: &[Arc<Table>]| tables.iter().map(|table| table.rows.lock().buffer.rows()).sum::<usize>();
        pile.push(SequenceNumber(1), rows(&[(0, 1), (1, 2), (1, 3)]), &tables_before).unwrap();
        assert_eq!(held(&tables_before), 0);
        pile.push(SequenceNumber(2), rows(&[(0, 4)]), &tables_after).unwrap();
        assert_eq!((held(&tables_before), held(&tables_after)), (3, 0));
        let many: Vec<_> = (5..).zip(0..MAX_ROWS - 2).map(|(time, n)| (n % 2, time)).collect();
        pile.push(SequenceNumber(3), rows(&many), &tables_after).unwrap();
        assert_eq!(held(&tables_after), 0);
        pile.push(SequenceNumber(4), rows(&[(0, 1 << 40)]), &tables_after).unwrap();
        assert_eq!(held(&tables_after), MAX_ROWS);
    }

    #[test]
    fn what_could_not_be_settled_is_never_taken_for_settled() {
        let (pile, tables) = (LoosePile::default(), tables(2));
        pile.push(SequenceNumber(1), rows(&[(0, 1), (1, 2)]), &tables).unwrap();
        // Somebody dies while rows are on their way.
        std::thread::scope(|scope| {
            let dying = scope.spawn(|| {
                let mut piled = pile.rows.lock();
                // More of them than memory can hold.
                piled.rows = usize::MAX;
                pile.settle_now(&mut piled)
            });
            assert!(dying.join().is_err());
        });
        for _ in 0..2 {
            assert!(pile.settle().is_err());
            assert!(pile.push(SequenceNumber(2), rows(&[(0, 3)]), &tables).is_err());
        }
    }

    #[test]
    fn sequence_numbers_are_those_of_the_rows_writes() {
        let (pile, tables) = (LoosePile::default(), tables(2));
        for (seq, write) in [(3, vec![(0, 1)]), (4, vec![(1, 2)]), (7, vec![(0, 3)])] {
            pile.push(SequenceNumber(seq), rows(&write), &tables).unwrap();
        }
        pile.settle().unwrap();
        let numbers = |table: &Table| {
            let mut rows = table.rows.lock();
            rows.buffer.freeze().unwrap();
            let frozen = rows.buffer.frozen()[0].clone();
            (frozen.min_seq.0, frozen.max_seq.0)
        };
        assert_eq!((numbers(&tables[0]), numbers(&tables[1])), ((3, 7), (4, 4)));
    }
}
