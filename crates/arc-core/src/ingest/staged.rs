//! What one request decodes to: rows by table, the columns it adds, and what was rejected.
//!
//! Nothing here is visible to anyone else yet. Columns and tables that the request introduces are
//! only proposed; `engine` registers them, or has the request decoded again where another request
//! came first.

use std::sync::{Arc, OnceLock, atomic::Ordering};

use arrow::datatypes::DataType;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::{
    times::{TimeChecks, UntimedPoints},
    type_rules::{TypePolicy, TypeRules},
};
use crate::{
    Error, Precision, Rejected, Result,
    buffer::{Rows, Scalar, SeriesId, StagedRows, ZeroCopyRows},
    model::{Column, ColumnKind, TIME_COLUMN, TableSchema},
    registry::{ColumnIndex, Database, Layout, Table, check_name},
    write::MAX_REJECTED,
};

/// Most columns of a table. Each costs memory for every row of a buffer, also where the row does
/// not have it.
pub(crate) const MAX_COLUMNS: usize = 4096;

/// Most cells (rows by columns, also empty ones) that a new request may have in one table, beside
/// those that came as whole columns: half a gigabyte of numbers.
pub(crate) const MAX_CELLS: usize = 64 << 20;

/// What decoding a request needs to know besides its bytes. Live writes and replay make the same
/// one.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) database: &'a Arc<Database>,
    /// Time of the first point that has none; the next ones count up by a nanosecond each, or by
    /// the unit of their table.
    pub(crate) receive_ns: i64,
    pub(crate) precision: Option<Precision>,
    /// Declared tags of a columnar write.
    pub(crate) tags: &'a [String],
    /// Lines or items to pass over, ascending: those that were rejected when the request came in
    /// first.
    pub(crate) skip: &'a [u64],
    pub(crate) types: TypePolicy<'a>,
    /// Most cells in one table: [`MAX_CELLS`], or no limit for what was accepted before.
    pub(crate) most_cells: usize,
    pub(crate) times: TimeChecks,
}

#[cfg(test)]
impl<'a> Context<'a> {
    /// Returns that of a request without settings.
    pub(crate) fn plain(database: &'a Arc<Database>) -> Self {
        Self {
            database,
            receive_ns: 0,
            precision: None,
            tags: &[],
            skip: &[],
            types: TypePolicy::STRICT,
            most_cells: MAX_CELLS,
            times: TimeChecks::None,
        }
    }
}

/// The refusals of one request.
#[derive(Debug, Default)]
pub(crate) struct Rejections {
    /// Line or item numbers, all of them, ascending.
    pub(crate) numbers: Vec<u64>,
    /// The first ones with their reasons.
    pub(crate) first: Vec<Rejected>,
}

impl Rejections {
    pub(crate) fn add(&mut self, line: u64, column: u64, reason: String) {
        self.numbers.push(line);
        if self.first.len() < MAX_REJECTED {
            self.first.push(Rejected { line, column, reason });
        }
    }
}

/// A decoded request.
#[derive(Debug)]
pub(crate) struct Staged {
    pub(crate) database: Arc<Database>,
    /// How often columns of the database had begun or ended to change their type before.
    pub(crate) type_changes: u64,
    /// How often tables of it had been dropped before those of staged rows were found.
    pub(super) drops: u64,
    /// Rows of tables of which the request has few. They come before those that `tables` has of the
    /// same table.
    pub(crate) rows: StagedRows,
    /// Registered tables, by the indices that those rows say.
    pub(crate) row_tables: Arc<Vec<Arc<Table>>>,
    pub(crate) tables: Vec<StagedTable>,
    pub(crate) rejections: Rejections,
    pub(crate) untimed: UntimedPoints,
    /// Whether points have another time than the request says, or than replay of its body would
    /// give them.
    pub(crate) has_own_times: bool,
}

impl Staged {
    pub(crate) fn new(database: &Arc<Database>) -> Self {
        Self {
            database: Arc::clone(database),
            type_changes: database.type_changes.load(Ordering::Acquire),
            drops: database.drops.load(Ordering::Acquire),
            rows: StagedRows::default(),
            row_tables: Arc::default(),
            tables: Vec::new(),
            rejections: Rejections::default(),
            untimed: UntimedPoints::default(),
            has_own_times: false,
        }
    }

    /// Returns whether a column of the database has changed its type since, or is about to. So it is
    /// of what was decoded while one was about to: nothing looks at its values any more.
    pub(crate) fn is_outdated(&self) -> bool {
        !self.type_changes.is_multiple_of(2) || self.type_changes != self.database.type_changes.load(Ordering::Acquire)
    }

    /// Returns the number of points that will be stored.
    pub(crate) fn points(&self) -> usize {
        self.rows.len() + self.tables.iter().map(StagedTable::len).sum::<usize>()
    }

    /// Returns whether a table that the request has rows of was dropped.
    pub(crate) fn has_dropped(&self) -> bool {
        self.has_dropped_rows() || self.tables.iter().any(|table| table.table.is_dropped())
    }

    /// The same of the tables of staged rows.
    pub(crate) fn has_dropped_rows(&self) -> bool {
        // Not a look at each table, where nothing was dropped at all.
        self.drops != self.database.drops.load(Ordering::Acquire)
            && self.rows.tables().any(|table| self.row_tables.get(table).is_none_or(|table| table.is_dropped()))
    }

    /// Returns the bytes that the rows will hold.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.bytes() + self.tables.iter().map(|table| table.kept.bytes + table.rows.bytes()).sum::<usize>()
    }

    /// Returns whether the rows keep the request's body in memory. Their bytes include it then.
    pub(crate) fn hold_body(&self) -> bool {
        self.tables.iter().any(|table| table.kept.hold_body)
    }
}

/// Finds the staged form of tables during one decode.
#[derive(Debug, Default)]
pub(crate) struct TableIndex {
    by_name: HashMap<Arc<str>, usize, FixedState>,
    by_address: HashMap<usize, usize, FixedState>,
    /// The registered table that was asked for last, by address, and its index.
    last: (usize, usize),
}

impl TableIndex {
    /// Returns the index in `staged` of the table called `name`, proposed as `has_primary_key` if
    /// there is none.
    pub(crate) fn by_name(&mut self, staged: &mut Staged, name: &str, has_primary_key: bool) -> Result<usize, String> {
        if let Some(at) = self.find(staged, name) {
            return Ok(at);
        }
        check_name(name).map_err(|reason| format!("invalid measurement name {:?}: {reason}", short(name)))?;
        let database = Arc::clone(&staged.database.name);
        let schema = TableSchema { database, table: name.into(), has_primary_key, columns: Vec::new() };
        Ok(self.add(staged, &Arc::new(Table::new(schema))))
    }

    /// Returns the index in `staged` of the table called `name`, if it is registered or proposed
    /// already.
    pub(crate) fn find(&mut self, staged: &mut Staged, name: &str) -> Option<usize> {
        if let Some(at) = self.by_name.get(name) {
            return Some(*at);
        }
        let table = staged.database.table(name)?;
        Some(self.add(staged, &table))
    }

    /// Returns the index in `staged` of a registered table.
    #[inline]
    pub(crate) fn by_table(&mut self, staged: &mut Staged, table: &Arc<Table>) -> usize {
        let address = Arc::as_ptr(table) as usize;
        if self.last.0 != address {
            let known = self.by_address.get(&address).copied();
            self.last = (address, known.unwrap_or_else(|| self.add(staged, table)));
        }
        self.last.1
    }

    fn add(&mut self, staged: &mut Staged, table: &Arc<Table>) -> usize {
        let at = staged.tables.len();
        let staged_table = StagedTable::new(Arc::clone(table));
        self.by_name.insert(Arc::clone(&staged_table.base.schema.table), at);
        self.by_address.insert(Arc::as_ptr(table) as usize, at);
        staged.tables.push(staged_table);
        at
    }
}

/// The rows that a request has for one table.
#[derive(Debug)]
pub(crate) struct StagedTable {
    pub(crate) table: Arc<Table>,
    /// The schema that the rows were checked against.
    pub(crate) base: Arc<Layout>,
    /// Columns that the rows need beyond it.
    pub(crate) added: Vec<Column>,
    /// Columns of it that the rows need to be of a wider type: their indices, and what they are
    /// then.
    pub(crate) widened: Vec<(usize, Column)>,
    /// All columns, also the added ones, by name.
    pub(crate) columns: Arc<ColumnIndex>,
    /// Rows that stay where they lie; they come before those of `rows`.
    pub(crate) kept: ZeroCopyRows,
    pub(crate) rows: Rows,
    /// How many staged rows there are of the table, and how many columns they reach over.
    pub(crate) in_row_format: (usize, usize),
    /// Cells of `rows` that came in whole columns: none of them was left empty by a row.
    pub(super) sent_cells: usize,
    /// Looked up once a thread asks.
    pub(super) rules: OnceLock<TypeRules>,
}

impl StagedTable {
    fn new(table: Arc<Table>) -> Self {
        let base = table.layout();
        let columns = Arc::clone(&base.columns);
        Self {
            columns,
            base,
            table,
            added: Vec::new(),
            widened: Vec::new(),
            kept: ZeroCopyRows::default(),
            rows: Rows::default(),
            in_row_format: (0, 0),
            sent_cells: 0,
            rules: OnceLock::new(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.base.schema.table
    }

    /// Returns the number of rows, but for staged rows.
    pub(crate) fn len(&self) -> usize {
        self.kept.len() + self.rows.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kept.chunks.is_empty() && self.rows.is_empty()
    }

    pub(crate) fn has_primary_key(&self) -> bool {
        self.base.schema.has_primary_key
    }

    /// Returns the schema that the table has once the rows are in it.
    pub(crate) fn grown_schema(&self) -> Arc<TableSchema> {
        if self.added.is_empty() && self.widened.is_empty() {
            return Arc::clone(&self.base.schema);
        }
        let mut schema = TableSchema::clone(&self.base.schema);
        for (index, column) in &self.widened {
            if let Some(known) = schema.columns.get_mut(*index) {
                *known = column.clone();
            }
        }
        schema.columns.extend_from_slice(&self.added);
        Arc::new(schema)
    }

    /// Returns the index of the column called `name`.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.columns.find(name.as_bytes())
    }

    pub(crate) fn column(&self, index: usize) -> Option<&Column> {
        let known = self.base.schema.columns.len();
        let widened = self.widened.iter().find(|(widened, _)| *widened == index).map(|(_, column)| column);
        widened.or_else(|| self.base.schema.columns.get(index)).or_else(|| self.added.get(index.checked_sub(known)?))
    }

    /// Returns whether the rows need another schema than the table has.
    pub(crate) fn changes_schema(&self) -> bool {
        !self.added.is_empty() || !self.widened.is_empty()
    }

    /// Checks that the rows so far, and `more` new columns, stay within what a table and a request
    /// may have.
    pub(crate) fn check_size(&self, more: usize, context: &Context<'_>) -> Result<(), String> {
        self.check_column_count(more)?;
        self.check_cells(context.most_cells)
    }

    /// Checks that the table may have `more` columns.
    pub(crate) fn check_column_count(&self, more: usize) -> Result<(), String> {
        if self.columns.len() + more > MAX_COLUMNS && more > 0 {
            let name = short(self.name());
            return Err(format!("measurement {name:?} would have more than {MAX_COLUMNS} columns"));
        }
        Ok(())
    }

    /// Checks that the request's rows do not leave more than `most` cells empty: rows by columns up
    /// to the last that has values, which is the same whichever of them are in row format.
    #[inline]
    pub(crate) fn check_cells(&self, most: usize) -> Result<(), String> {
        let (rows, width) = (self.in_row_format.0 + self.rows.len(), self.in_row_format.1.max(self.rows.width()));
        if rows.saturating_mul(width).saturating_sub(self.sent_cells) <= most {
            return Ok(());
        }
        Err(self.too_empty(rows, width, most))
    }

    /// The same as it will be after `rows` more that come in whole columns, at the indices
    /// `columns`, or new where there is none; other columns of a wide table count for nothing.
    /// Before they are appended: each column that lags after the others is filled up then.
    pub(super) fn check_columns(
        &self,
        rows: usize,
        columns: impl Iterator<Item = Option<usize>>,
        most: usize,
    ) -> Result<(), String> {
        let (mut used, mut sent) = (self.rows.used_columns(), self.sent_cells);
        for column in columns {
            used += usize::from(column.is_none_or(|index| self.rows.values(index).is_none()));
            sent = sent.saturating_add(rows);
        }
        let rows = self.rows.len().saturating_add(rows);
        if rows.saturating_mul(used).saturating_sub(sent) <= most {
            return Ok(());
        }
        Err(self.too_empty(rows, used, most))
    }

    #[cold]
    fn too_empty(&self, rows: usize, columns: usize, most: usize) -> String {
        let name = short(self.name());
        format!(
            "the rows of measurement {name:?} in this request leave too many columns empty: {rows} rows by {columns} columns, \
             expected at most {most} cells that no column brought; send fewer at a time"
        )
    }

    /// Proposes a column whose name is good and not taken; returns its index.
    pub(crate) fn add(&mut self, name: &str, kind: ColumnKind, data_type: DataType) -> usize {
        let name: Arc<str> = name.into();
        let columns = Arc::make_mut(&mut self.columns);
        columns.push(Arc::clone(&name));
        self.added.push(Column { name, kind, data_type });
        columns.len() - 1
    }

    /// Takes back all proposed columns but the first `count`, and what is in them; returns whether
    /// there were any.
    pub(crate) fn forget_columns(&mut self, count: usize) -> bool {
        if count >= self.added.len() {
            return false;
        }
        self.added.truncate(count);
        let left = self.base.schema.columns.len() + count;
        Arc::make_mut(&mut self.columns).truncate(left);
        self.rows.forget_columns(left);
        true
    }

    /// Puts a value that fits into column `index` of the row that is being built.
    pub(crate) fn set(&mut self, index: usize, value: Scalar<'_>) -> Result<()> {
        let column = self.column(index).ok_or_else(|| Error::internal("a column is gone"))?;
        let data_type = column.data_type.clone();
        self.rows.set(index, &data_type, value)
    }
}

/// Checks the name of a new tag or field.
pub(crate) fn check_column_name(what: &str, name: &str) -> Result<(), String> {
    if name == TIME_COLUMN {
        return Err(format!("invalid {what} name \"time\": it is the name of the time column"));
    }
    check_name(name).map_err(|reason| format!("invalid {what} name {:?}: {reason}", short(name)))
}

/// Says a type conflict the way InfluxDB does.
pub(crate) fn type_conflict(table: &str, field: &str, got: &DataType, existing: &DataType) -> String {
    let (got, existing) = (type_name(got), type_name(existing));
    format!(
        "field type conflict: input field {field:?} on measurement {table:?} is type {got}, already exists as type {existing}"
    )
}

/// Names a type in line protocol's words.
pub(crate) fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Float64 => "float".into(),
        DataType::Int64 => "integer".into(),
        DataType::UInt64 => "unsigned".into(),
        DataType::Boolean => "boolean".into(),
        DataType::Utf8 => "string".into(),
        DataType::Dictionary(..) => "tag".into(),
        other => other.to_string(),
    }
}

/// Cuts a name for an error text.
pub(crate) fn short(name: &str) -> String {
    name.chars().take(64).collect()
}

/// Says that an integer is not exact as a float.
pub(crate) fn inexact(field: &str) -> String {
    format!("field {:?} is of floats, which cannot hold this integer exactly", short(field))
}

/// Checks that no two rows of a columnar write have one primary key.
///
/// Only asked where the write did not declare the tags that the table has: it expects its rows to
/// append, and one would overwrite the other. The error names two rows, counted from 1.
pub(crate) fn check_distinct(table: &str, rows: impl Iterator<Item = (SeriesId, i64)>) -> Result<(), String> {
    let mut seen: HashMap<(SeriesId, i64), usize, FixedState> = HashMap::default();
    for (row, primary_key) in rows.enumerate() {
        if let Some(first) = seen.insert(primary_key, row) {
            let (first, row, table) = (first + 1, row + 1, short(table));
            return Err(format!(
                "rows {first} and {row} have the same tags and time, and measurement {table:?} would keep one of them: \
                 declare the tags that tell them apart, or write to another measurement"
            ));
        }
    }
    Ok(())
}

/// Says that an append-only table cannot get tags any more.
pub(crate) fn no_tags_later(table: &str) -> String {
    let table = short(table);
    format!("measurement {table:?} was first written without tags, so its rows append; tags cannot be declared later")
}

#[cfg(test)]
mod tests;
