//! From the noted order of rows to record batches.

use std::{borrow::Cow, ops::Range, sync::Arc};

use arrow::{
    array::{
        Array, ArrayBuilder, ArrayRef, AsArray, DictionaryArray, Int32Array, RecordBatch, StringBuilder, new_null_array,
    },
    buffer::NullBuffer,
    compute::interleave,
    datatypes::{DataType, Field, Int32Type, SchemaRef},
};

use super::{
    cursor::{Cursor, value},
    texts::MergedTexts,
};
use crate::{Error, Result};

/// A row: which batch, which row in it.
pub(super) type BatchRow = (usize, usize);

/// Rows that come next, in order, and the batches that they are in.
#[derive(Debug, Default)]
pub(super) struct Pending {
    batches: Vec<RecordBatch>,
    pieces: Vec<SeriesPiece>,
    versions: Vec<BatchRow>,
    rows: usize,
}

/// Some rows of one series.
#[derive(Debug)]
enum SeriesPiece {
    /// Rows of one batch: the first, and how many.
    Rows(BatchRow, usize),
    /// One row that has these versions, the last of which overwrites.
    Versions(Range<usize>),
}

impl Pending {
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn clear(&mut self) {
        self.batches.clear();
        self.pieces.clear();
        self.versions.clear();
        self.rows = 0;
    }

    /// Notes the next rows of a cursor.
    pub(super) fn push_rows(&mut self, cursor: &mut Cursor, rows: usize) {
        let first = self.position(cursor);
        self.pieces.push(SeriesPiece::Rows(first, rows));
        self.rows += rows;
    }

    /// Notes one row, whose versions the cursors stand at, the earliest first.
    pub(super) fn push_versions<'c>(&mut self, cursors: impl Iterator<Item = &'c mut Cursor>) {
        let start = self.versions.len();
        for cursor in cursors {
            let version = self.position(cursor);
            self.versions.push(version);
        }
        self.pieces.push(SeriesPiece::Versions(start..self.versions.len()));
        self.rows += 1;
    }

    fn position(&mut self, cursor: &mut Cursor) -> BatchRow {
        let slot = cursor.slot.unwrap_or_else(|| {
            self.batches.push(cursor.batch().clone());
            self.batches.len() - 1
        });
        cursor.slot = Some(slot);
        (slot, cursor.at())
    }

    fn versions(&self, range: &Range<usize>) -> &[BatchRow] {
        self.versions.get(range.clone()).unwrap_or_default()
    }

    /// Returns the first row of each piece and how many rows it has.
    fn firsts(&self) -> impl Iterator<Item = (BatchRow, usize)> {
        self.pieces.iter().filter_map(|piece| match piece {
            SeriesPiece::Rows(first, rows) => Some((*first, *rows)),
            SeriesPiece::Versions(range) => self.versions(range).first().map(|first| (*first, 1)),
        })
    }
}

/// Makes batches of one schema out of rows of inputs that may have fewer columns, in another order.
#[derive(Debug)]
pub(super) struct Assembler {
    schema: SchemaRef,
    tags: usize,
    /// By column; used where that is a field of texts in dictionaries.
    texts: Vec<MergedTexts>,
}

impl Assembler {
    /// Makes batches of `schema`: time, then `tags` tags, then fields.
    pub(super) fn new(schema: SchemaRef, tags: usize) -> Self {
        let texts = schema.fields().iter().map(|_| MergedTexts::default()).collect();
        Self { schema, tags, texts }
    }

    /// Returns some rows of one batch, without a copy.
    pub(super) fn slice(&self, batch: &RecordBatch, first: usize, rows: usize) -> Result<RecordBatch> {
        let column = |field: &Arc<Field>| match batch.column_by_name(field.name()) {
            Some(column) => column.slice(first, rows),
            None => new_null_array(field.data_type(), rows),
        };
        let columns = self.schema.fields().iter().map(column).collect();
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }

    /// Returns the pending rows.
    pub(super) fn assemble(&mut self, pending: &Pending) -> Result<RecordBatch> {
        let rows =
            pending.firsts().flat_map(|((batch, first), rows)| (first..first + rows).map(move |row| (batch, row)));
        let rows: Vec<BatchRow> = rows.collect();
        let tags = 1..=self.tags;
        let fields = self.schema.fields().iter().zip(&mut self.texts).enumerate();
        let columns = fields.map(|(index, (field, texts))| match tags.contains(&index) {
            true => tag_column(pending, field),
            false => field_column(pending, field, &rows, texts),
        });
        let columns = columns.collect::<Result<_>>()?;
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

/// Gathers a tag, which is the same in all rows of a piece. The dictionary has a value for each
/// change of value: pieces of one series come one after the other.
fn tag_column(pending: &Pending, field: &Field) -> Result<ArrayRef> {
    let columns = by_batch(pending, field)?;
    let mut values = StringBuilder::new();
    let mut keys: Vec<i32> = Vec::with_capacity(pending.rows);
    let mut valid: Vec<bool> = Vec::new();
    let mut last: Option<(&str, i32)> = None;
    for ((batch, row), rows) in pending.firsts() {
        let text = columns.get(batch).and_then(Option::as_ref).and_then(|tag| value(tag.as_dictionary(), row));
        let key = match (text, last) {
            (None, _) => None,
            (Some(text), Some((same, key))) if text == same => Some(key),
            (Some(text), _) => {
                let key = i32::try_from(values.len()).map_err(|_| Error::internal("a batch has too many tags"))?;
                values.append_value(text);
                last = Some((text, key));
                Some(key)
            }
        };
        if key.is_none() || !valid.is_empty() {
            valid.resize(keys.len(), true);
            valid.resize(keys.len() + rows, key.is_some());
        }
        keys.resize(keys.len() + rows, key.unwrap_or(0));
    }
    let nulls = (!valid.is_empty()).then(|| NullBuffer::from(valid));
    let keys = Int32Array::try_new(keys.into(), nulls)?;
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::new(values.finish()))?))
}

/// Gathers the time or a field: of a row with versions, the last one that has a value.
fn field_column(pending: &Pending, field: &Field, rows: &[BatchRow], texts: &mut MergedTexts) -> Result<ArrayRef> {
    let columns = by_batch(pending, field)?;
    let is_plain = pending.versions.is_empty() && columns.iter().all(Option::is_some);
    let chosen = if is_plain { Cow::Borrowed(rows) } else { Cow::Owned(last_values(pending, &columns, rows.len())) };
    if matches!(field.data_type(), DataType::Dictionary(..)) {
        return texts.gather(&columns, &chosen);
    }
    let null = new_null_array(field.data_type(), 1);
    let arrays: Vec<&dyn Array> =
        columns.iter().map(|column| column.unwrap_or(&null).as_ref()).chain([null.as_ref()]).collect();
    Ok(interleave(&arrays, &chosen)?)
}

/// Returns where the value of each row is: of a row with versions, in the last one that has a
/// value. What is nowhere is in the batch after the last one.
fn last_values(pending: &Pending, columns: &[Option<&ArrayRef>], rows: usize) -> Vec<BatchRow> {
    let none = (columns.len(), 0);
    let has_column = |batch: usize| columns.get(batch).is_some_and(Option::is_some);
    let has_value = |&&(batch, row): &&BatchRow| {
        columns.get(batch).and_then(Option::as_ref).is_some_and(|column| !column.is_null(row))
    };
    let mut positions: Vec<BatchRow> = Vec::with_capacity(rows);
    for piece in &pending.pieces {
        match piece {
            SeriesPiece::Rows((batch, first), rows) if has_column(*batch) => {
                positions.extend((*first..first + rows).map(|row| (*batch, row)));
            }
            SeriesPiece::Rows(_, rows) => positions.extend(std::iter::repeat_n(none, *rows)),
            SeriesPiece::Versions(range) => {
                positions.push(pending.versions(range).iter().rev().find(has_value).copied().unwrap_or(none));
            }
        }
    }
    positions
}

/// Returns the column of each batch, `None` where a batch has it not.
fn by_batch<'p>(pending: &'p Pending, field: &Field) -> Result<Vec<Option<&'p ArrayRef>>> {
    let columns = pending.batches.iter().map(|batch| match batch.column_by_name(field.name()) {
        Some(column) if column.data_type() != field.data_type() => {
            let reason = format!("column {:?} is {}, not {}", field.name(), column.data_type(), field.data_type());
            Err(Error::internal(format!("data files do not fit their table: {reason}")))
        }
        column => Ok(column),
    });
    columns.collect()
}
