//! A map of whole columns into the table it names.
//!
//! All columns are read and checked before the table is touched. In an append-only table every
//! column is a field; in a with a primary key one those named like its tags, or declared as tags
//! with the write, make the series of each row.

use std::hash::{BuildHasher, Hash, Hasher};

use arrow::datatypes::DataType;
use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::{
    ItemFault, MsgpackDecoder,
    item::{check_count, key},
    reader::{MsgpackReader, MsgpackValue},
    refuse, repeated,
    text::utf8,
    time::times,
    values::FieldColumn,
};
use crate::{
    Result,
    buffer::{ColumnValues, SeriesId},
    ingest::{
        staged::{StagedTable, check_column_name, check_distinct, no_tags_later, short, type_conflict},
        times::TimeChecks,
    },
    model::{ColumnKind, TIME_COLUMN, tag_type},
};

/// The columns of one map, checked.
#[derive(Debug, Default)]
struct CheckedColumns<'a> {
    /// Names of all columns, also of those without a value.
    names: Vec<&'a str>,
    rows: usize,
    time: Option<Vec<i64>>,
    fields: Vec<(&'a str, ColumnValues)>,
    /// An empty value is an absent tag, as in line protocol.
    tags: Vec<(&'a str, Vec<&'a str>)>,
}

/// What a column is to its table.
enum Role {
    Time,
    Tag,
    /// With its type, if the table has it.
    Field(Option<DataType>),
}

impl<'a> MsgpackDecoder<'a, '_> {
    /// Stores the columns at `reader` in the table `name`; returns where they end.
    pub(super) fn store_columns(
        &mut self,
        name: &str,
        mut reader: MsgpackReader<'a>,
    ) -> Result<MsgpackReader<'a>, ItemFault> {
        let at = self.find(name);
        let table = at.and_then(|at| self.staged.tables.get(at));
        let mut columns = self.read_columns(name, table, &mut reader)?;
        let has_primary_key = !self.context.tags.is_empty();
        if has_primary_key && table.is_some_and(|table| !table.has_primary_key()) {
            return refuse(no_tags_later(name));
        }
        let at = self.index.by_name(&mut self.staged, name, has_primary_key).map_err(ItemFault::item)?;
        if let Some(table) = self.staged.tables.get(at) {
            let names = columns.tags.iter().map(|(name, _)| *name).chain(columns.fields.iter().map(|(name, _)| *name));
            let new = names.filter(|name| table.position(name).is_none()).count();
            table.check_column_count(new).map_err(ItemFault::item)?;
            let fields = columns.fields.iter().map(|(name, _)| table.position(name));
            table.check_columns(columns.rows, fields, self.context.most_cells).map_err(ItemFault::item)?;
        }
        let times = match columns.time.take() {
            Some(times) => self.fit_times(at, times)?,
            None => (0..columns.rows).map(|_| self.receive_time(at)).collect(),
        };
        let Some(table) = self.staged.tables.get_mut(at) else { return refuse("no table") };
        append(table, columns, times, has_primary_key)?;
        Ok(reader)
    }

    fn fit_times(&mut self, at: usize, mut times: Vec<i64>) -> Result<Vec<i64>, ItemFault> {
        let checked = if self.context.times == TimeChecks::All { times.as_mut_slice() } else { &mut [] };
        for (row, time) in checked.iter_mut().enumerate() {
            let refused = |reason| ItemFault::item(format!("column \"time\", row {}: {reason}", row + 1));
            *time = self.fit_time(at, *time).map_err(refused)?;
        }
        Ok(times)
    }

    fn read_columns(
        &self,
        name: &str,
        table: Option<&StagedTable>,
        reader: &mut MsgpackReader<'a>,
    ) -> Result<CheckedColumns<'a>, ItemFault> {
        let count = match reader.next()? {
            MsgpackValue::Map(0) => return refuse("\"columns\" is empty, expected at least one column"),
            MsgpackValue::Map(count) => count,
            other => return refuse(format!("\"columns\" is {}, expected a map", other.kind())),
        };
        check_count("columns", count)?;
        let mut columns = CheckedColumns::default();
        for _ in 0..count {
            self.read_column(name, table, &mut columns, reader)?;
        }
        if let Some(name) = repeated(columns.names.iter().copied()) {
            return refuse(format!("column {:?} comes twice", short(name)));
        }
        if columns.fields.is_empty() && columns.tags.is_empty() {
            return refuse("no column but the time has a value, expected at least one");
        }
        let has_primary_key = table.map_or(!self.context.tags.is_empty(), StagedTable::has_primary_key);
        match self.context.tags.iter().find(|tag| has_primary_key && !columns.names.contains(&tag.as_str())) {
            Some(tag) => refuse(format!("there is no column {tag:?}, which was declared a tag")),
            None => Ok(columns),
        }
    }

    fn read_column(
        &self,
        table_name: &str,
        table: Option<&StagedTable>,
        columns: &mut CheckedColumns<'a>,
        reader: &mut MsgpackReader<'a>,
    ) -> Result<(), ItemFault> {
        let name = key(reader, "a column name")?;
        let count = match reader.next()? {
            MsgpackValue::Array(count) => count,
            other => return refuse(format!("column {:?} is {}, expected an array", short(name), other.kind())),
        };
        match columns.names.first() {
            None if count == 0 => {
                return refuse(format!("column {:?} is empty, expected at least one row", short(name)));
            }
            None => columns.rows = count,
            Some(first) if count != columns.rows => {
                let (name, first, rows) = (short(name), short(first), columns.rows);
                return refuse(format!("column {name:?} has {count} values, column {first:?} has {rows}"));
            }
            Some(_) => {}
        }
        columns.names.push(name);
        match self.role(table, name)? {
            Role::Time => columns.time = Some(times(reader, count, self.context.precision)?),
            Role::Tag => columns.tags.push((name, tag_values(table_name, name, reader, count)?)),
            Role::Field(existing) => {
                let makes_text = self.context.ask_rules(table, |rules| rules.are_texts(name, existing.as_ref()));
                let wider = |own: &DataType, are_floats: bool| {
                    let (table, index) = table.and_then(|table| Some((table, table.position(name)?)))?;
                    table.wider(index, own, are_floats, self.context)
                };
                let way_out = |own: &DataType, existing: &DataType| {
                    self.context.ask_rules(table, |rules| rules.way_out(own, existing))
                };
                let (wider, way_out) = (&wider, &way_out);
                let field = FieldColumn { table: table_name, name, existing, makes_text, wider, way_out };
                if let Some(values) = field.read(reader, count)? {
                    columns.fields.push((name, values));
                }
            }
        }
        Ok(())
    }

    fn role(&self, table: Option<&StagedTable>, name: &str) -> Result<Role, ItemFault> {
        if name == TIME_COLUMN {
            return Ok(Role::Time);
        }
        let has_primary_key = table.map_or(!self.context.tags.is_empty(), StagedTable::has_primary_key);
        let declared = has_primary_key && self.context.tags.iter().any(|tag| tag == name);
        let known = table.and_then(|table| table.position(name).and_then(|index| table.column(index)));
        match known {
            Some(column) if column.kind == ColumnKind::Tag => Ok(Role::Tag),
            Some(column) if declared => {
                let table = table.map_or("", StagedTable::name);
                refuse(type_conflict(table, name, &tag_type(), &column.data_type))
            }
            Some(column) => Ok(Role::Field(Some(column.data_type.clone()))),
            None => {
                check_column_name("column", name).map_err(ItemFault::item)?;
                Ok(if declared { Role::Tag } else { Role::Field(None) })
            }
        }
    }
}

fn tag_values<'a>(
    table: &str,
    name: &str,
    reader: &mut MsgpackReader<'a>,
    count: usize,
) -> Result<Vec<&'a str>, ItemFault> {
    let mut values = Vec::with_capacity(count);
    for row in 1..=count {
        let value = match reader.next()? {
            MsgpackValue::Nil => Ok(""),
            MsgpackValue::Text(bytes) => utf8(bytes),
            other => {
                Err(format!("{}, expected a string or nil, for it is a tag of table {:?}", other.kind(), short(table)))
            }
        };
        let refused = |found| ItemFault::item(format!("column {:?}, row {row}: the value is {found}", short(name)));
        values.push(value.map_err(refused)?);
    }
    Ok(values)
}

/// Puts checked columns after the rows that the table has.
fn append(
    table: &mut StagedTable,
    columns: CheckedColumns<'_>,
    times: Vec<i64>,
    tags_declared: bool,
) -> Result<(), ItemFault> {
    let series = if table.has_primary_key() { series(table, &columns.tags, columns.rows)? } else { Vec::new() };
    if !tags_declared {
        let primary_keys = series.iter().copied().zip(times.iter().copied());
        check_distinct(table.name(), primary_keys).map_err(ItemFault::item)?;
    }
    table.rows.series.extend(series);
    for (name, _) in &columns.tags {
        if table.position(name).is_none() {
            table.add(name, ColumnKind::Tag, tag_type());
        }
    }
    let rows = table.rows.len();
    table.sent_cells += columns.rows * columns.fields.len();
    for (name, values) in columns.fields {
        let data_type = values.data_type();
        let index = match table.position(name) {
            Some(index) => index,
            None => table.add(name, ColumnKind::Field, data_type.clone()),
        };
        if table.column(index).is_some_and(|column| column.data_type != data_type) {
            table.widen(index, data_type.clone())?;
        }
        if rows == 0 {
            table.rows.put_column(index, values);
        } else {
            table.rows.column(index, &data_type, rows).append(&values)?;
        }
    }
    if rows == 0 {
        table.rows.time = times;
    } else {
        table.rows.time.extend_from_slice(&times);
    }
    Ok(())
}

/// Returns the series of each row. Each combination of tags is resolved once.
fn series(table: &StagedTable, tags: &[(&str, Vec<&str>)], rows: usize) -> Result<Vec<SeriesId>> {
    let hasher = FixedState::default();
    let of_row = |row: usize| tags.iter().map(move |(_, values)| values.get(row).copied().unwrap_or(""));
    let hash = |row: usize| {
        let mut state = hasher.build_hasher();
        of_row(row).for_each(|value| value.hash(&mut state));
        state.finish()
    };
    let mut index = table.table.series.write();
    let mut seen: HashTable<(usize, SeriesId)> = HashTable::new();
    let mut all: Vec<SeriesId> = Vec::with_capacity(rows);
    for row in 0..rows {
        if let Some(last) = all.last().filter(|_| of_row(row).eq(of_row(row - 1))) {
            all.push(*last);
            continue;
        }
        let hashed = hash(row);
        let known = seen.find(hashed, |(first, _)| of_row(*first).eq(of_row(row)));
        let series = match known {
            Some((_, series)) => *series,
            None => {
                let present =
                    tags.iter().map(|(name, _)| *name).zip(of_row(row)).filter(|(_, value)| !value.is_empty());
                let series = index.resolve(present)?;
                seen.insert_unique(hashed, (row, series), |(first, _)| hash(*first));
                series
            }
        };
        all.push(series);
    }
    Ok(all)
}
