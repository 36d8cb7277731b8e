//! Values of one column of rows, on their way to an array.
//!
//! What is noted are the rows that have a value, and their values: a row costs nothing in the
//! columns that it has none of. Nulls come in between when the array is made, all at once.

use std::{mem, sync::Arc};

use arrow::{
    array::{ArrayRef, BooleanArray, PrimitiveArray, StringArray, new_null_array},
    buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer},
    compute::cast,
    datatypes::{DataType, FieldRef, Float64Type, Int64Type, UInt64Type},
};

use super::Value;
use crate::{
    Result,
    arrays::numbers_as_text::{push_boolean, push_float, push_integer},
};

/// The values of one column.
#[derive(Debug)]
pub(super) struct RowColumn {
    field: FieldRef,
    to_text: bool,
    values: RowValues,
    /// The row of each value.
    rows: Vec<u32>,
}

#[derive(Debug)]
enum RowValues {
    Integers(Vec<i64>),
    Unsigned(Vec<u64>),
    Floats(Vec<f64>),
    Booleans(Vec<bool>),
    Texts {
        ends: Vec<i32>,
        bytes: Vec<u8>,
    },
    /// Of a type that rows have no values for.
    None,
}

impl RowValues {
    fn new(data_type: &DataType) -> Self {
        match data_type {
            DataType::Int64 | DataType::Timestamp(..) => Self::Integers(Vec::new()),
            DataType::UInt64 => Self::Unsigned(Vec::new()),
            DataType::Float64 => Self::Floats(Vec::new()),
            DataType::Boolean => Self::Booleans(Vec::new()),
            DataType::Utf8 => Self::Texts { ends: Vec::new(), bytes: Vec::new() },
            _ => Self::None,
        }
    }

    fn truncate(&mut self, len: usize) {
        match self {
            Self::Integers(values) => values.truncate(len),
            Self::Unsigned(values) => values.truncate(len),
            Self::Floats(values) => values.truncate(len),
            Self::Booleans(values) => values.truncate(len),
            Self::Texts { ends, bytes } => {
                ends.truncate(len);
                bytes.truncate(ends.last().and_then(|end| usize::try_from(*end).ok()).unwrap_or(0));
            }
            Self::None => {}
        }
    }
}

impl RowColumn {
    pub(super) fn new(field: &FieldRef, to_text: bool) -> Self {
        Self { field: Arc::clone(field), to_text, values: RowValues::new(field.data_type()), rows: Vec::new() }
    }

    pub(super) fn name(&self) -> &str {
        self.field.name()
    }

    pub(super) fn has_value(&self, row: u32) -> bool {
        self.rows.last() == Some(&row)
    }

    /// Takes the value of a row, which comes after all others so far; adds to `bytes` what it
    /// takes. `false` for a value that the column cannot hold, which [`take_back`](Self::take_back)
    /// is to follow.
    #[inline]
    pub(super) fn push(&mut self, row: u32, value: &Value<'_>, bytes: &mut usize) -> bool {
        let is_taken = match (&mut self.values, value) {
            (_, Value::Null) => return true,
            (RowValues::Texts { ends, bytes: texts }, value) => {
                (self.to_text || matches!(value, Value::Text(_))) && {
                    let before = texts.len();
                    push_as_text(value, texts);
                    *bytes += texts.len() - before;
                    i32::try_from(texts.len()).map(|end| ends.push(end)).is_ok()
                }
            }
            (RowValues::Integers(values), value) => value.as_integer().map(|value| values.push(value)).is_some(),
            (RowValues::Unsigned(values), value) => value.as_unsigned().map(|value| values.push(value)).is_some(),
            (RowValues::Floats(values), value) => value.as_float().map(|value| values.push(value)).is_some(),
            (RowValues::Booleans(values), Value::Boolean(value)) => {
                values.push(*value);
                true
            }
            (RowValues::Booleans(_) | RowValues::None, _) => false,
        };
        if is_taken {
            *bytes += size_of::<u64>();
            self.rows.push(row);
        }
        is_taken
    }

    /// Says why a value was not taken.
    #[cold]
    pub(super) fn refusal(&self, value: &Value<'_>) -> String {
        let data_type = self.field.data_type();
        match (&self.values, value) {
            (RowValues::None, _) => format!("rows have no values of {data_type}: push record batches"),
            (RowValues::Texts { .. }, Value::Text(_)) => "the text has over 2 GiB".to_owned(),
            (_, value) => format!("expected {data_type}, got {}", value.kind()),
        }
    }

    /// Takes away what there is of a row that was refused.
    #[cold]
    pub(super) fn take_back(&mut self, row: u32) {
        if self.has_value(row) {
            self.rows.pop();
        }
        // A text that was refused may stand after the last end.
        self.values.truncate(self.rows.len());
    }

    /// Makes an array of the first `rows` rows, which are all, and begins anew.
    pub(super) fn take(&mut self, rows: usize) -> Result<ArrayRef> {
        let data_type = self.field.data_type();
        if self.rows.is_empty() {
            return Ok(new_null_array(data_type, rows));
        }
        let (at, nulls) = (&self.rows, nulls(&self.rows, rows));
        let array: ArrayRef = match &mut self.values {
            // Timestamps are integers in their unit: nothing is copied.
            RowValues::Integers(values) => {
                cast(&PrimitiveArray::<Int64Type>::try_new(spread(values, at, rows).into(), nulls)?, data_type)?
            }
            RowValues::Unsigned(values) => {
                Arc::new(PrimitiveArray::<UInt64Type>::try_new(spread(values, at, rows).into(), nulls)?)
            }
            RowValues::Floats(values) => {
                Arc::new(PrimitiveArray::<Float64Type>::try_new(spread(values, at, rows).into(), nulls)?)
            }
            RowValues::Booleans(values) => {
                Arc::new(BooleanArray::new(BooleanBuffer::from(spread(values, at, rows)), nulls))
            }
            RowValues::Texts { ends, bytes } => {
                let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets(ends, at, rows)));
                ends.clear();
                // The next rows are likely to need as much memory.
                let remaining = Vec::with_capacity(bytes.len());
                Arc::new(StringArray::try_new(offsets, Buffer::from_vec(mem::replace(bytes, remaining)), nulls)?)
            }
            RowValues::None => new_null_array(data_type, rows),
        };
        self.rows.clear();
        Ok(array)
    }
}

/// Appends a text, or what is written for a number or a boolean.
#[inline]
fn push_as_text(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Text(text) => out.extend_from_slice(text.as_bytes()),
        Value::Integer(value) => push_integer(value, out),
        Value::Unsigned(value) => push_integer(value, out),
        Value::Float(value) => push_float(value, out),
        Value::Boolean(value) => push_boolean(*value, out),
        Value::Null => {}
    }
}

/// Returns which rows have no value; nothing where all have one.
fn nulls(at: &[u32], rows: usize) -> Option<NullBuffer> {
    if at.len() == rows {
        return None;
    }
    let mut words = vec![0_u64; rows.div_ceil(64)];
    for row in at {
        if let Some(word) = words.get_mut(*row as usize / 64) {
            *word |= 1 << (row % 64);
        }
    }
    Some(NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(words), 0, rows)))
}

/// Puts each value at its row.
fn spread<T: Clone + Default>(values: &mut Vec<T>, at: &[u32], rows: usize) -> Vec<T> {
    if at.len() == rows {
        return mem::replace(values, Vec::with_capacity(rows));
    }
    let mut spread = vec![T::default(); rows];
    for (value, row) in values.drain(..).zip(at) {
        if let Some(slot) = spread.get_mut(*row as usize) {
            *slot = value;
        }
    }
    spread
}

/// Returns where the text of each row ends, after a 0: that of a row without one where the text
/// before it does.
fn offsets(ends: &[i32], at: &[u32], rows: usize) -> Vec<i32> {
    let mut offsets = vec![0; rows + 1];
    for (end, row) in ends.iter().zip(at) {
        if let Some(slot) = offsets.get_mut(*row as usize + 1) {
            *slot = *end;
        }
    }
    if at.len() < rows {
        let mut last = 0;
        for offset in &mut offsets {
            last = last.max(*offset);
            *offset = last;
        }
    }
    offsets
}
