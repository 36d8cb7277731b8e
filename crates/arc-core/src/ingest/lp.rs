//! Line protocol into columns.
//!
//! A line whose raw `measurement,tags` bytes are known costs one lookup; its fields are expected in the order in which
//! the table's last line had them, and looked up by name where they are not. A line is checked as a whole before any
//! of its values is stored, so a bad one leaves nothing behind.

use std::borrow::Cow;

use arc_lp::{FieldValue, Series, Sink, Text};
use arrow::datatypes::DataType;
use parking_lot::RwLockReadGuard;

use super::staged::{
    Context, MAX_COLUMNS, Staged, TableIndex, check_column_name, inexact, short, type_conflict, type_name,
};
use crate::{
    Precision,
    buffer::{Scalar, SeriesId},
    catalog::{ColumnKind, TIME_COLUMN, tag_type},
    registry::SeriesCache,
};

/// Decodes line protocol. Every bad line is recorded in [`Staged::rejections`]; the others become rows.
pub(crate) fn decode(body: &[u8], context: &Context<'_>) -> Staged {
    let mut decoder = Decoder {
        body,
        context,
        cache: context.database.series_cache.read(),
        staged: Staged::new(context.database),
        index: TableIndex::default(),
        line: Line::default(),
        predicted: Vec::new(),
        new_series: Vec::new(),
        untimed: 0,
        skip: context.skip,
    };
    arc_lp::parse(body, &mut decoder);
    let Decoder { cache, staged, new_series, .. } = decoder;
    drop(cache);
    remember(&staged, &new_series);
    staged
}

/// Puts the series that were new into the cache, if their tables are registered by now (the next request does, if not).
fn remember(staged: &Staged, new_series: &[(&[u8], usize, SeriesId)]) {
    let registered = |at: &usize| {
        let table = staged.tables.get(*at).filter(|table| table.keyed())?;
        let known = staged.database.table(table.name())?;
        std::sync::Arc::ptr_eq(&known, &table.table).then_some(known)
    };
    let mut cache = None;
    for (key, at, series) in new_series {
        if let Some(table) = registered(at) {
            cache.get_or_insert_with(|| staged.database.series_cache.write()).insert(key, &table, *series);
        }
    }
}

/// A column that a line has a value for.
#[derive(Debug)]
enum Target<'a> {
    Known(usize),
    New(Cow<'a, str>),
}

/// The line being read. Nothing of it is stored before it is complete and good.
#[derive(Debug, Default)]
struct Line<'a> {
    number: u64,
    key: &'a [u8],
    skipped: bool,
    table: usize,
    /// Known when the cache had it.
    series: Option<SeriesId>,
    tags: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    fields: Vec<(Target<'a>, FieldValue<'a>)>,
    fault: Option<String>,
}

struct Decoder<'a, 'c> {
    body: &'a [u8],
    context: &'c Context<'c>,
    cache: RwLockReadGuard<'c, SeriesCache>,
    staged: Staged,
    index: TableIndex,
    line: Line<'a>,
    /// By table: for each column the one that followed it last; the first entry is the first of a line.
    predicted: Vec<Vec<usize>>,
    new_series: Vec<(&'a [u8], usize, SeriesId)>,
    /// Points so far that had no timestamp.
    untimed: i64,
    skip: &'c [u64],
}

impl<'a> Sink<'a> for Decoder<'a, '_> {
    fn series(&mut self, number: u64, key: &'a [u8]) -> Series {
        let line = &mut self.line;
        line.number = number;
        line.key = key;
        line.tags.clear();
        line.fields.clear();
        line.fault = None;
        line.series = None;
        while self.skip.first().is_some_and(|skip| *skip < number) {
            self.skip = self.skip.get(1..).unwrap_or(&[]);
        }
        line.skipped = self.skip.first() == Some(&number);
        let Some((table, series)) = self.cache.get(key) else { return Series::Unknown };
        line.table = self.index.by_table(&mut self.staged, table);
        line.series = Some(series);
        Series::Known
    }

    fn measurement(&mut self, name: Text<'a>) {
        match self.index.by_name(&mut self.staged, &name.to_cow(), true) {
            Ok(table) => self.line.table = table,
            Err(reason) => self.line.fault = Some(reason),
        }
    }

    fn tag(&mut self, key: Text<'a>, value: Text<'a>) {
        if self.line.tags.len() >= MAX_COLUMNS {
            self.line.fault = Some(format!("the line has more than {MAX_COLUMNS} tags"));
        } else {
            self.line.tags.push((key.to_cow(), value.to_cow()));
        }
    }

    fn field(&mut self, key: Text<'a>, value: FieldValue<'a>) {
        if self.line.fault.is_some() || self.line.skipped {
            return;
        }
        match self.target(key, &value) {
            Ok(target) => self.line.fields.push((target, value)),
            Err(reason) => self.line.fault = Some(reason),
        }
    }

    fn point(&mut self, timestamp: Option<i64>) {
        if self.line.skipped {
            return;
        }
        let fault = self.line.fault.take();
        if let Err(reason) = fault.map_or(Ok(()), Err).and_then(|()| self.store(timestamp)) {
            self.staged.rejections.add(self.line.number, 0, reason);
        }
    }

    fn error(&mut self, error: arc_lp::Error) {
        if self.skip.binary_search(&error.line()).is_err() {
            let column = error.column(self.body) as u64;
            self.staged.rejections.add(error.line(), column, error.kind().to_string());
        }
    }
}

impl<'a> Decoder<'a, '_> {
    /// Finds the column of a field and checks that the value fits it.
    fn target(&mut self, key: Text<'a>, value: &FieldValue<'a>) -> Result<Target<'a>, String> {
        let Some(table) = self.staged.tables.get(self.line.table) else { return Err("no table".into()) };
        if self.line.fields.len() >= MAX_COLUMNS {
            return Err(format!("the line has more than {MAX_COLUMNS} fields"));
        }
        if self.predicted.len() <= self.line.table {
            self.predicted.resize_with(self.line.table + 1, Vec::new);
        }
        let follows = self.predicted.get_mut(self.line.table).map_or(&mut [][..], |p| p.as_mut_slice());
        let slot = match self.line.fields.last() {
            None => 0,
            Some((Target::Known(column), _)) => column + 1,
            Some((Target::New(_), _)) => usize::MAX,
        };
        let guess = follows.get(slot).copied().filter(|guess| {
            table.column(*guess).is_some_and(|column| !key.is_escaped() && column.name.as_bytes() == key.raw())
        });
        let name = key.to_cow();
        // Empty where the series is known: its tags are columns of the table, which is checked below.
        if self.line.tags.iter().any(|(tag, _)| *tag == name) {
            return Err(format!("field {:?} has the name of a tag of the same line", short(&name)));
        }
        let Some(index) = guess.or_else(|| table.position(&name)) else {
            return self.new_field(name, value).map(Target::New);
        };
        if guess.is_none() {
            let follows = self.predicted.get_mut(self.line.table);
            if let Some(follows) = follows.filter(|_| slot != usize::MAX) {
                follows.resize(follows.len().max(slot + 1), usize::MAX);
                if let Some(next) = follows.get_mut(slot) {
                    *next = index;
                }
            }
        }
        let Some(column) = table.column(index) else { return Err("no column".into()) };
        if column.kind == ColumnKind::Tag {
            return Err(format!("field {:?} on measurement {:?} is a tag already", short(&name), table.name()));
        }
        if !fits(value, &column.data_type) {
            if let (FieldValue::Integer(_) | FieldValue::Unsigned(_), DataType::Float64) = (value, &column.data_type) {
                return Err(inexact(&name));
            }
            return Err(type_conflict(table.name(), &name, &scalar(value, "").data_type(), &column.data_type));
        }
        Ok(Target::Known(index))
    }

    /// Checks the name of a field that the table does not have.
    fn new_field(&self, name: Cow<'a, str>, value: &FieldValue<'a>) -> Result<Cow<'a, str>, String> {
        check_column_name("field", &name)?;
        let twin = self.line.fields.iter().find(|(target, _)| matches!(target, Target::New(other) if *other == name));
        if let Some((_, first)) = twin {
            let (first, got) = (scalar(first, "").data_type(), scalar(value, "").data_type());
            if first != got {
                return Err(format!("field {name:?} comes twice, as {} and as {}", type_name(&first), type_name(&got)));
            }
        }
        Ok(name)
    }

    /// Stores the line that is complete.
    fn store(&mut self, timestamp: Option<i64>) -> Result<(), String> {
        let time = match timestamp {
            Some(written) => scale(written, self.context.precision.unwrap_or_default())?,
            None => self.context.receive_ns.saturating_add(self.untimed),
        };
        self.check_size()?;
        let series = match self.line.series {
            Some(series) => Some(series),
            None => self.resolve_tags()?,
        };
        // Only now, for the line is good: replay, which passes over bad lines, must count the same ones.
        self.untimed += i64::from(timestamp.is_none());
        let Some(table) = self.staged.tables.get_mut(self.line.table) else { return Err("no table".into()) };
        for (target, value) in &self.line.fields {
            let text = match value {
                FieldValue::String(text) => text.to_cow(),
                _ => Cow::Borrowed(""),
            };
            let value = scalar(value, &text);
            let index = match target {
                Target::Known(index) => *index,
                Target::New(name) => match table.position(name) {
                    Some(index) => index,
                    None => table.add(name, ColumnKind::Field, value.data_type()),
                },
            };
            let data_type = table.column(index).map_or(DataType::Null, |column| column.data_type.clone());
            table.rows.set(index, &data_type, value).map_err(|e| e.to_string())?;
        }
        table.rows.end_row(time, series);
        Ok(())
    }

    /// Checks that the columns which the line brings have room.
    fn check_size(&self) -> Result<(), String> {
        let Some(table) = self.staged.tables.get(self.line.table) else { return Err("no table".into()) };
        let fields = self.line.fields.iter().filter(|(target, _)| matches!(target, Target::New(_))).count();
        let tags = self.line.tags.iter().filter(|(key, _)| table.position(key).is_none()).count();
        table.check_size(fields + tags)
    }

    /// Checks the tags of a line whose series is not in the cache. In a keyed table they make its series; in one that
    /// appends they are text fields like any other.
    fn resolve_tags(&mut self) -> Result<Option<SeriesId>, String> {
        let Some(table) = self.staged.tables.get_mut(self.line.table) else { return Err("no table".into()) };
        let keyed = table.keyed();
        for (at, (key, _)) in self.line.tags.iter().enumerate() {
            if key == TIME_COLUMN {
                return Err("invalid tag name \"time\": it is the name of the time column".into());
            }
            if self.line.tags.iter().take(at).any(|(other, _)| other == key) {
                return Err(format!("tag {:?} comes twice", short(key)));
            }
            match table.position(key).and_then(|index| table.column(index)) {
                None => check_column_name("tag", key)?,
                Some(column) if keyed && column.kind == ColumnKind::Field => {
                    return Err(format!("tag {:?} on measurement {:?} is a field already", short(key), table.name()));
                }
                Some(column) if !keyed && column.data_type != DataType::Utf8 => {
                    return Err(type_conflict(table.name(), key, &DataType::Utf8, &column.data_type));
                }
                Some(_) => {}
            }
        }
        for (key, value) in &self.line.tags {
            let index = match table.position(key) {
                Some(index) => index,
                None if keyed => table.add(key, ColumnKind::Tag, tag_type()),
                None => table.add(key, ColumnKind::Field, DataType::Utf8),
            };
            if !keyed {
                table.rows.set(index, &DataType::Utf8, Scalar::Text(value)).map_err(|e| e.to_string())?;
            }
        }
        if !keyed {
            return Ok(None);
        }
        let tags = self.line.tags.iter().map(|(key, value)| (key.as_ref(), value.as_ref()));
        let series = table.table.series.write().resolve(tags).map_err(|e| e.to_string())?;
        self.new_series.push((self.line.key, self.line.table, series));
        Ok(Some(series))
    }
}

fn fits(value: &FieldValue<'_>, data_type: &DataType) -> bool {
    match value {
        FieldValue::Integer(_) | FieldValue::Unsigned(_) if *data_type == DataType::Float64 => {
            scalar(value, "").exact_float().is_some()
        }
        value => scalar(value, "").data_type() == *data_type,
    }
}

fn scalar<'t>(value: &FieldValue<'_>, text: &'t str) -> Scalar<'t> {
    match value {
        FieldValue::Float(v) => Scalar::Float(*v),
        FieldValue::Integer(v) => Scalar::Integer(*v),
        FieldValue::Unsigned(v) => Scalar::Unsigned(*v),
        FieldValue::Boolean(v) => Scalar::Boolean(*v),
        _ => Scalar::Text(text),
    }
}

/// Converts a timestamp to nanoseconds, exactly or not at all.
pub(super) fn scale(written: i64, precision: Precision) -> Result<i64, String> {
    written.checked_mul(precision.nanoseconds()).ok_or_else(|| {
        let unit = precision.nanoseconds();
        format!("timestamp {written} in units of {unit} ns is outside the range of 64-bit nanoseconds")
    })
}

#[cfg(test)]
mod tests;
