//! Lines whose rows need no columns of the request's own: of known series, in tables of which the
//! request has few lines.
//!
//! The first lines of each table are taken for such. A line whose values are not all of columns
//! that its table has, each of the column's own type, is moved to the table's columns, and so are
//! all after it: of one table, staged rows come before the others. From the first line of a series
//! that is not in the cache on there are no staged rows any more, for it says its table by name.

use std::sync::Arc;

use super::{LineFault, LpDecoder, Mode};
use crate::{
    buffer::Scalar,
    ingest::times::TimeChecks,
    registry::{FoundSeries, SeriesCache, Shape, Table},
};
use arc_lp::{FieldValue, Text};

/// Lines of a table from which on its own columns cost less.
pub(super) const MAX_LINES: u16 = 4;
/// Values of a line up to which all before are looked at where a column comes after a later one.
const MAX_COMPARED: usize = 64;
/// Tables of the cache for each byte of a request, at most: what is kept of each is cleared for
/// each request.
const MAX_TABLES_PER_BYTE: usize = 2;

/// Where lines of tables go, and what is known of the line that is being read.
#[derive(Default)]
pub(super) struct RowFormat {
    /// By slot of the table in the cache. Empty where no lines are to be in row format.
    tables: Vec<RowTable>,
    /// Whether lines may still be in row format.
    is_open: bool,
    /// All shapes of the database.
    shapes: Arc<Vec<Arc<Shape>>>,
    /// That of the line's table.
    shape: usize,
    /// Slot of the line's table in the cache.
    slot: usize,
    /// The column after that of the last field.
    next: usize,
}

/// What a table has had of the request.
#[derive(Debug, Clone, Copy, Default)]
struct RowTable {
    /// One more than its slot in the request if it has columns there, else 0.
    staged: u32,
    lines: u16,
    /// Columns that its staged rows reach over.
    width: u16,
}

impl<'a> LpDecoder<'a, '_> {
    /// Lets lines be in row format.
    pub(super) fn open_rows(&mut self) {
        let tables = self.cache.table_count();
        if tables <= self.body.len() * MAX_TABLES_PER_BYTE {
            self.row_format.is_open = true;
            self.row_format.tables = vec![RowTable::default(); tables];
            self.row_format.shapes = self.context.database.staging.shapes.load();
            self.staged.row_tables = Arc::clone(self.cache.tables());
        }
    }

    /// Has the lines to come be no staged rows.
    pub(super) fn close_rows(&mut self) {
        self.row_format.is_open = false;
    }

    /// Begins a line of a known series.
    #[inline(always)]
    pub(super) fn begin_known(&mut self, found: &FoundSeries<'_>) {
        let table = self.row_format.tables.get(found.slot).copied().unwrap_or_default();
        if let Some(at) = table.staged.checked_sub(1) {
            self.begin(at as usize);
        } else if table.lines < MAX_LINES
            && self.row_format.is_open
            && self.line.mode == Mode::Store
            && let Some(shape) = found.table.shape.get()
        {
            (self.row_format.shape, self.row_format.slot, self.row_format.next) = (shape, found.slot, 0);
            (self.line.mode, self.line.table) = (Mode::Row, usize::MAX);
        } else {
            let at = self.index.by_table(&mut self.staged, found.table);
            self.rows_end(found.slot, at);
            self.begin(at);
        }
    }

    /// Notes that lines of a table go to its columns from now on.
    fn rows_end(&mut self, slot: usize, at: usize) {
        if let (Some(table), Ok(at)) = (self.row_format.tables.get_mut(slot), u32::try_from(at)) {
            table.staged = at + 1;
        }
    }

    /// Returns how many staged rows a table has, and how many columns they reach over.
    pub(super) fn rows_size(&self, table: &Arc<Table>) -> (usize, usize) {
        let slot = if self.row_format.tables.is_empty() { None } else { self.cache.slot(table) };
        let table = slot.and_then(|slot| self.row_format.tables.get(slot));
        table.map_or((0, 0), |table| (table.lines.into(), table.width.into()))
    }

    /// Stores a value of a line in row format, or makes the line one of its table's columns.
    #[inline(always)]
    pub(super) fn store_row(&mut self, key: Text<'a>, value: FieldValue<'a>) {
        if !self.try_store_row(key, &value) {
            self.leave_row_format();
            if !self.store_predicted(key, &value) {
                self.store_as_found(key, value);
            }
        }
    }

    #[inline(always)]
    fn try_store_row(&mut self, key: Text<'a>, value: &FieldValue<'a>) -> bool {
        let Some(shape) = self.row_format.shapes.get(self.row_format.shape) else { return false };
        if key.is_escaped() {
            return false;
        }
        let column = match shape.index.is(self.row_format.next, key.raw()) {
            true => self.row_format.next,
            false => match shape.index.find(key.raw()) {
                Some(column) => column,
                None => return false,
            },
        };
        let value = match value {
            FieldValue::Float(v) => Scalar::Float(*v),
            FieldValue::Integer(v) => Scalar::Integer(*v),
            FieldValue::Unsigned(v) => Scalar::Unsigned(*v),
            FieldValue::Boolean(v) => Scalar::Boolean(*v),
            FieldValue::String(text) if !text.is_escaped() => Scalar::Bytes(text.raw()),
            _ => return false,
        };
        let rows = &mut self.staged.rows;
        // A field that comes again replaces the first: that is for the columns to do.
        let is_new = column >= self.row_format.next || (rows.pending_len() < MAX_COMPARED && !rows.has(column));
        if !shape.takes(column, &value) || !is_new {
            return false;
        }
        if column >= self.row_format.next {
            self.row_format.next = column + 1;
        }
        rows.put(column, value)
    }

    /// Makes the line, and those after it of its table, one of the table's columns.
    #[cold]
    fn leave_row_format(&mut self) {
        self.line.mode = Mode::Store;
        let Some(table) = self.row_format.table(self.cache) else { return };
        let at = self.index.by_table(&mut self.staged, table);
        self.rows_end(self.row_format.slot, at);
        self.begin(at);
        let Some(table) = self.staged.tables.get_mut(at) else { return };
        let row = self.staged.rows.pending();
        for (column, value) in row.values() {
            // They were checked against the same columns.
            if table.set(column, value).is_ok() {
                self.line.touched.push(column);
            }
        }
        self.line.next_field = self.row_format.next;
        self.staged.rows.take_back();
    }

    /// Ends a staged row.
    #[inline(always)]
    pub(super) fn finish_row(&mut self, timestamp: Option<i64>) -> Result<(), LineFault> {
        if timestamp.is_none() && self.context.times != TimeChecks::None {
            // Its table may have a unit.
            self.leave_row_format();
            return self.finish(timestamp);
        }
        let time = self.time_of(timestamp)?;
        let Some(series) = self.line.series else { return Err(LineFault::from("no series".to_owned())) };
        if timestamp.is_none() {
            self.count_untimed(time);
        }
        self.staged.rows.end_row(time, series, self.row_format.slot);
        if let Some(table) = self.row_format.tables.get_mut(self.row_format.slot) {
            table.lines += 1;
            table.width = table.width.max(u16::try_from(self.row_format.next).unwrap_or(u16::MAX));
        }
        Ok(())
    }
}

impl RowFormat {
    fn table<'c>(&self, cache: &'c SeriesCache) -> Option<&'c Arc<Table>> {
        cache.table(self.slot)
    }
}
