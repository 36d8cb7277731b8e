//! Lines whose rows need no columns of the request's own: of known series, in tables of which the request has few lines.
//!
//! The first lines of each table are taken for such. A line whose values are not all of columns that its table has, each of
//! the column's own type, is moved to the table's columns, and so are all behind it: of one table, loose rows come before
//! the others. From the first line of a series that is not in the cache on there are no loose rows any more, for it says
//! its table by name.

use std::sync::Arc;

use super::{Decoder, Fault, Mode};
use crate::{
    buffer::Scalar,
    registry::{FoundSeries, SeriesCache, Shape, Table},
};
use arc_lp::{FieldValue, Text};

/// Lines of a table from which on its own columns cost less.
pub(super) const MAX_LINES: u16 = 4;
/// Values of a line up to which all before are looked at where a column comes behind a later one.
const MAX_COMPARED: usize = 64;
/// Tables of the cache for each byte of a request, at most: what is kept of each is cleared for each request.
const MAX_TABLES_PER_BYTE: usize = 2;

/// Where lines of tables go, and what is known of the line that is being read.
#[derive(Default)]
pub(super) struct LooseLines {
    /// By place of the table in the cache. Empty where no lines are to be loose.
    tables: Vec<LooseTable>,
    /// Whether lines may still be loose.
    is_open: bool,
    /// All shapes of the database.
    shapes: Arc<Vec<Arc<Shape>>>,
    /// That of the line's table.
    shape: usize,
    /// Place of the line's table in the cache.
    place: usize,
    /// The column behind that of the last field.
    next: usize,
}

/// What a table has had of the request.
#[derive(Debug, Clone, Copy, Default)]
struct LooseTable {
    /// One more than its place in the request if it has columns there, else 0.
    staged: u32,
    lines: u16,
    /// Columns that its loose rows reach over.
    width: u16,
}

impl<'a> Decoder<'a, '_> {
    /// Lets lines be loose.
    pub(super) fn open_loose(&mut self) {
        let tables = self.cache.table_count();
        if tables <= self.body.len() * MAX_TABLES_PER_BYTE {
            self.loose.is_open = true;
            self.loose.tables = vec![LooseTable::default(); tables];
            self.loose.shapes = self.context.database.loose.shapes.load();
            self.staged.loose_tables = Arc::clone(self.cache.tables());
        }
    }

    /// Has the lines to come be no loose ones.
    pub(super) fn close_loose(&mut self) {
        self.loose.is_open = false;
    }

    /// Begins a line of a known series.
    #[inline(always)]
    pub(super) fn begin_known(&mut self, found: &FoundSeries<'_>) {
        let table = self.loose.tables.get(found.place).copied().unwrap_or_default();
        if let Some(at) = table.staged.checked_sub(1) {
            self.begin(at as usize);
        } else if table.lines < MAX_LINES
            && self.loose.is_open
            && self.line.mode == Mode::Store
            && let Some(shape) = found.table.shape.get()
        {
            (self.loose.shape, self.loose.place, self.loose.next) = (shape, found.place, 0);
            (self.line.mode, self.line.table) = (Mode::Loose, usize::MAX);
        } else {
            let at = self.index.by_table(&mut self.staged, found.table);
            self.loose_ends(found.place, at);
            self.begin(at);
        }
    }

    /// Notes that lines of a table go to its columns from now on.
    fn loose_ends(&mut self, place: usize, at: usize) {
        if let (Some(table), Ok(at)) = (self.loose.tables.get_mut(place), u32::try_from(at)) {
            table.staged = at + 1;
        }
    }

    /// Returns how many loose rows a table has, and how many columns they reach over.
    pub(super) fn loose_size(&self, table: &Arc<Table>) -> (usize, usize) {
        let place = if self.loose.tables.is_empty() { None } else { self.cache.place(table) };
        let table = place.and_then(|place| self.loose.tables.get(place));
        table.map_or((0, 0), |table| (table.lines.into(), table.width.into()))
    }

    /// Stores a value of a loose line, or makes the line one of its table's columns.
    #[inline(always)]
    pub(super) fn store_loose(&mut self, key: Text<'a>, value: FieldValue<'a>) {
        if !self.try_store_loose(key, &value) {
            self.leave_loose();
            if !self.store_as_guessed(key, &value) {
                self.store_as_found(key, value);
            }
        }
    }

    #[inline(always)]
    fn try_store_loose(&mut self, key: Text<'a>, value: &FieldValue<'a>) -> bool {
        let Some(shape) = self.loose.shapes.get(self.loose.shape) else { return false };
        if key.is_escaped() {
            return false;
        }
        let column = match shape.index.is(self.loose.next, key.raw()) {
            true => self.loose.next,
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
        let rows = &mut self.staged.loose;
        // A field that comes again replaces the first: that is for the columns to do.
        let is_new = column >= self.loose.next || (rows.pending_len() < MAX_COMPARED && !rows.has(column));
        if !shape.takes(column, &value) || !is_new {
            return false;
        }
        if column >= self.loose.next {
            self.loose.next = column + 1;
        }
        rows.put(column, value)
    }

    /// Makes the line, and those behind it of its table, one of the table's columns.
    #[cold]
    fn leave_loose(&mut self) {
        self.line.mode = Mode::Store;
        let Some(table) = self.loose.table(self.cache) else { return };
        let at = self.index.by_table(&mut self.staged, table);
        self.loose_ends(self.loose.place, at);
        self.begin(at);
        let Some(table) = self.staged.tables.get_mut(at) else { return };
        let row = self.staged.loose.pending();
        for (column, value) in row.values() {
            // They were checked against the same columns.
            if table.set(column, value).is_ok() {
                self.line.touched.push(column);
            }
        }
        self.line.place = self.loose.next;
        self.staged.loose.take_back();
    }

    /// Ends a loose row.
    #[inline(always)]
    pub(super) fn finish_loose(&mut self, timestamp: Option<i64>) -> Result<(), Fault> {
        let time = self.time_of(timestamp)?;
        let Some(series) = self.line.series else { return Err(Fault::from("no series".to_owned())) };
        self.untimed += i64::from(timestamp.is_none());
        self.staged.loose.end_row(time, series, self.loose.place);
        if let Some(table) = self.loose.tables.get_mut(self.loose.place) {
            table.lines += 1;
            table.width = table.width.max(u16::try_from(self.loose.next).unwrap_or(u16::MAX));
        }
        Ok(())
    }
}

impl LooseLines {
    fn table<'c>(&self, cache: &'c SeriesCache) -> Option<&'c Arc<Table>> {
        cache.table(self.place)
    }
}
