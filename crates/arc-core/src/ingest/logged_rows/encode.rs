//! From decoded rows to the bytes of a frame.

use std::sync::Arc;

use bytes::Bytes;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::{Type, index_bytes, integers, numbering::Numbering};
use crate::{
    buffer::{ColumnValues, Plain, Rows, Tag},
    ingest::staged::{Staged, StagedTable},
    model::{Column, ColumnKind},
    registry::{Layout, Table},
    sync::Mutex,
};

/// What a table's name and columns, and a row by itself, take more or less.
const HEAD_BYTES: usize = 256;
/// Bodies that are larger are logged as they are: together with the rows in front of them, all
/// texts of one would still fit a column.
const MAX_BODY: usize = 1 << 30;
/// Most bytes of memory that an encoder keeps for the next request.
const KEPT_BYTES: usize = 1 << 20;

/// Returns whether rows are worth being encoded, where their request has `received` bytes: the
/// columns are two thirds of it at most, even if no number gets any smaller.
fn pays(staged: &Staged, received: usize) -> bool {
    let heads = (staged.tables.len() + staged.rows.len()) * HEAD_BYTES;
    received <= MAX_BODY && heads < received && (staged.bytes() + heads) / 2 * 3 <= received
}

/// Encoders that have nothing to do, with their memory.
#[derive(Debug, Default)]
pub(crate) struct Encoders(Mutex<Vec<Encoder>>);

impl Encoders {
    /// Returns the rows as the log stores them, if they are such as can be and it is known
    /// beforehand that they take less than the `received` bytes of their request.
    pub(crate) fn encode_if_smaller(&self, staged: &Staged, received: usize) -> Option<Bytes> {
        if pays(staged, received) { self.encode(staged, received) } else { None }
    }

    /// Returns the rows as the log stores them, if they are such as can be, and in less than `most`
    /// bytes.
    pub(crate) fn encode(&self, staged: &Staged, most: usize) -> Option<Bytes> {
        let idle = self.0.lock().pop();
        let mut encoder = idle.unwrap_or_default();
        let encoded = encoder.encode(staged).is_some() && encoder.to.len < most;
        let bytes = encoded.then(|| Bytes::copy_from_slice(encoder.to.written()));
        if encoder.to.bytes.len() <= KEPT_BYTES {
            self.0.lock().push(encoder);
        }
        bytes
    }
}

/// Bytes that are being written, in memory that is cleared once only.
#[derive(Debug, Default)]
pub(super) struct EncodedBytes {
    bytes: Vec<u8>,
    len: usize,
}

impl EncodedBytes {
    /// Returns the place of the next `len` bytes.
    pub(super) fn grow(&mut self, len: usize) -> &mut [u8] {
        let start = self.len;
        self.len += len;
        if self.bytes.len() < self.len {
            self.bytes.resize(self.len.next_power_of_two(), 0);
        }
        self.bytes.get_mut(start..self.len).unwrap_or_default()
    }

    fn written(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.grow(bytes.len()).copy_from_slice(bytes);
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.bytes(&[byte]);
    }

    /// Writes a number with seven bits a byte, the lowest first.
    fn number(&mut self, mut number: usize) {
        while number >= 0x80 {
            self.byte(u8::try_from(number & 0x7f).unwrap_or_default() | 0x80);
            number >>= 7;
        }
        self.byte(u8::try_from(number).unwrap_or_default());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len());
        self.bytes(text.as_bytes());
    }

    /// Writes the first `count` bits of words.
    fn bits(&mut self, words: &[u64], count: usize) {
        let bytes = self.grow(count.div_ceil(8));
        for (slot, word) in bytes.chunks_mut(8).zip(words) {
            slot.iter_mut().zip(word.to_le_bytes()).for_each(|(to, byte)| *to = byte);
        }
    }
}

/// Rows of one table, in the order in which they are applied.
struct LoggedTableRows<'s> {
    table: &'s Arc<Table>,
    staged: Option<&'s StagedTable>,
    /// What `staged` says of a column counts, where there is any.
    layout: Arc<Layout>,
    row_format: Rows,
    rows: Vec<&'s Rows>,
}

impl<'s> LoggedTableRows<'s> {
    fn new(table: &'s Arc<Table>) -> Self {
        Self { table, staged: None, layout: table.layout(), row_format: Rows::default(), rows: Vec::new() }
    }

    fn blocks(&self) -> impl Iterator<Item = &Rows> {
        [&self.row_format].into_iter().chain(self.rows.iter().copied()).filter(|rows| !rows.is_empty())
    }

    fn column(&self, index: usize) -> Option<&Column> {
        self.staged.map_or_else(|| self.layout.schema.columns.get(index), |staged| staged.column(index))
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.staged.map_or_else(|| self.layout.columns.find(name.as_bytes()), |staged| staged.position(name))
    }
}

/// Returns the rows by table; `None` where some stay in the request's body.
fn by_table(staged: &Staged) -> Option<Vec<LoggedTableRows<'_>>> {
    let mut tables = LoggedTables::default();
    for (table, row) in staged.rows.tables().zip(staged.rows.rows()) {
        let is_stored = tables.of(staged.row_tables.get(table)?)?.row_format.append_staged(&row).ok()?;
        if !is_stored {
            return None;
        }
    }
    for table in staged.tables.iter().filter(|table| !table.is_empty()) {
        if !table.kept.chunks.is_empty() {
            return None;
        }
        let rows = tables.of(&table.table)?;
        rows.staged.get_or_insert(table);
        rows.rows.push(&table.rows);
    }
    Some(tables.all)
}

#[derive(Default)]
struct LoggedTables<'s> {
    all: Vec<LoggedTableRows<'s>>,
    /// By address.
    slots: HashMap<usize, usize, FixedState>,
}

impl<'s> LoggedTables<'s> {
    fn of(&mut self, table: &'s Arc<Table>) -> Option<&mut LoggedTableRows<'s>> {
        let next = self.all.len();
        let slot = *self.slots.entry(Arc::as_ptr(table) as usize).or_insert(next);
        if slot == next {
            self.all.push(LoggedTableRows::new(table));
        }
        self.all.get_mut(slot)
    }
}

/// See [`Encoders`]. Each step is `None` where the rows cannot be stored so.
#[derive(Debug, Default)]
struct Encoder {
    to: EncodedBytes,
    /// Series of a table, and where each row's is among them.
    series: Numbering,
    series_of_rows: Vec<u32>,
    /// Values of a tag, and where each series' is among them, counted from 1.
    values: Numbering,
    values_of_series: Vec<u32>,
}

impl Encoder {
    fn encode(&mut self, staged: &Staged) -> Option<()> {
        self.to.len = 0;
        let tables = by_table(staged)?;
        self.to.number(tables.len());
        tables.iter().try_for_each(|table| self.table(table))
    }

    fn table(&mut self, table: &LoggedTableRows<'_>) -> Option<()> {
        let schema = &table.layout.schema;
        self.to.text(&schema.table);
        self.to.byte(schema.has_primary_key.into());
        let mut columns: Vec<usize> = table.blocks().flat_map(fields).map(|(index, _)| index).collect();
        if schema.has_primary_key {
            self.find_series(table)?;
            let index = table.table.series.read();
            let used = index.tags().filter(|tag| self.series.numbers().iter().any(|of| tag.number(*of).is_some()));
            let mut tags = used.map(|tag| Some((table.position(tag.name())?, tag))).collect::<Option<Vec<_>>>()?;
            tags.sort_unstable_by_key(|(column, _)| *column);
            columns.extend(tags.iter().map(|(column, _)| *column));
            self.columns(table, &mut columns)?;
            self.to.number(self.series.numbers().len());
            tags.iter().for_each(|(_, tag)| self.tag(tag));
        } else {
            self.columns(table, &mut columns)?;
        }
        self.to.number(table.blocks().count());
        let mut first = 0;
        for rows in table.blocks() {
            self.block(rows, &columns, first)?;
            first += rows.series.len();
        }
        Some(())
    }

    /// Gives each series of the rows a slot.
    fn find_series(&mut self, table: &LoggedTableRows<'_>) -> Option<()> {
        self.series.clear();
        self.series_of_rows.clear();
        for rows in table.blocks() {
            if rows.series.len() != rows.len() {
                return None;
            }
            self.series_of_rows.extend(rows.series.iter().map(|series| self.series.of(*series)));
        }
        Some(())
    }

    /// Writes names and types of columns, which are put in order.
    fn columns(&mut self, table: &LoggedTableRows<'_>, columns: &mut Vec<usize>) -> Option<()> {
        columns.sort_unstable();
        columns.dedup();
        self.to.number(columns.len());
        for index in columns {
            let column = table.column(*index)?;
            let kind = match column.kind {
                ColumnKind::Tag => Type::Tag,
                ColumnKind::Field => Type::of_field(&column.data_type)?,
            };
            self.to.byte(kind as u8);
            self.to.text(&column.name);
        }
        Some(())
    }

    /// Writes the values of a tag, each once, and which of them each series has.
    fn tag(&mut self, tag: &Tag<'_>) {
        let Self { to, series, values, values_of_series, .. } = self;
        values.clear();
        values_of_series.clear();
        let slot = |number: Option<u32>| number.map_or(0, |number| values.of(number) + 1);
        values_of_series.extend(series.numbers().iter().map(|series| tag.number(*series)).map(slot));
        to.number(values.numbers().len());
        values.numbers().iter().for_each(|number| to.text(tag.value(*number)));
        write_indices(values_of_series, values.numbers().len() + 1, to);
    }

    /// Writes rows, whose series stand after `first` others.
    fn block(&mut self, rows: &Rows, columns: &[usize], first: usize) -> Option<()> {
        self.to.number(rows.len());
        integers::write_signed(&rows.time, &mut self.to);
        if !rows.series.is_empty() {
            let slots = self.series_of_rows.get(first..first + rows.len())?;
            write_indices(slots, self.series.numbers().len(), &mut self.to);
        }
        self.to.number(fields(rows).count());
        for (index, values) in fields(rows) {
            self.to.number(columns.binary_search(&index).ok()?);
            self.values(values)?;
        }
        Some(())
    }

    fn values(&mut self, values: &ColumnValues) -> Option<()> {
        let (to, plain) = (&mut self.to, values.plain()?);
        let kind = match plain {
            Plain::Float(_) => Type::Float,
            Plain::Integer(_) => Type::Integer,
            Plain::Unsigned(_) => Type::Unsigned,
            Plain::Boolean(_) => Type::Boolean,
            Plain::Text(..) => Type::Text,
        };
        to.byte(kind as u8);
        to.number(values.len());
        to.byte(values.present().is_some().into());
        if let Some(present) = values.present() {
            to.bits(present, values.len());
        }
        match plain {
            Plain::Float(values) => integers::write(values.iter().map(|value| value.to_bits()), values.len(), 8, to),
            Plain::Integer(values) => integers::write_signed(values, to),
            Plain::Unsigned(values) => integers::write_unsigned(values, to),
            Plain::Boolean(words) => to.bits(words, values.len()),
            Plain::Text(ends, bytes) => write_texts(ends, bytes, to)?,
        }
        Some(())
    }
}

/// Returns the columns of rows that have values, by their indexes.
fn fields(rows: &Rows) -> impl Iterator<Item = (usize, &ColumnValues)> {
    let column = |index| rows.values(index).filter(|values| values.len() > 0).map(|values| (index, values));
    (0..rows.width()).filter_map(column)
}

/// Writes numbers below `count`.
fn write_indices(slots: &[u32], count: usize, to: &mut EncodedBytes) {
    integers::write(slots.iter().map(|slot| u64::from(*slot)), slots.len(), index_bytes(count), to);
}

/// Writes the lengths of texts, and then all of them.
fn write_texts(ends: &[i32], bytes: &[u8], to: &mut EncodedBytes) -> Option<()> {
    let starts = [0].into_iter().chain(ends.iter().copied());
    let lengths = || ends.iter().zip(starts.clone()).map(|(end, start)| u64::from(end.abs_diff(start)));
    let longest = lengths().max().unwrap_or(0);
    let width = index_bytes(usize::try_from(longest).ok()?.checked_add(1)?);
    to.byte(u8::try_from(width).ok()?);
    integers::write(lengths(), ends.len(), width, to);
    let end = usize::try_from(ends.last().copied().unwrap_or(0)).ok()?;
    to.bytes(bytes.get(..end)?);
    Some(())
}
