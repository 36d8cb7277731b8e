//! Rows on their way to columns.
//!
//! Values are appended to their columns as they come; a column that a row has no value for is not touched, but catches up with
//! nulls later. Rows become a record batch once there are some thousands of them.

use std::sync::Arc;

use arrow::{
    array::{
        ArrayRef, BooleanArray, BooleanBufferBuilder, NullBufferBuilder, PrimitiveArray, RecordBatch, StringArray,
        new_null_array,
    },
    buffer::{Buffer, OffsetBuffer, ScalarBuffer},
    compute::cast,
    datatypes::{DataType, FieldRef, Float64Type, Int64Type, SchemaRef, UInt64Type},
};
use hashbrown::HashMap;

use super::{
    Value,
    schema::{Columns, refused},
};
use crate::{
    Result,
    datafile::texts::{push_boolean, push_float, push_integer},
};

/// Rows and bytes of values after which a record batch is made.
const MAX_ROWS: usize = 4096;
const MAX_BYTES: usize = 2 << 20;

/// Rows that are not yet a record batch.
#[derive(Debug)]
pub(super) struct RowBuffer {
    schema: SchemaRef,
    columns: Vec<RowColumn>,
    places: HashMap<String, usize, foldhash::fast::FixedState>,
    /// Columns that each row has to have a value for.
    required: Vec<usize>,
    rows: usize,
    bytes: usize,
}

impl RowBuffer {
    pub(super) fn new(columns: &Columns) -> Self {
        let fields = columns.schema.fields().iter();
        Self {
            schema: Arc::clone(&columns.schema),
            columns: fields
                .clone()
                .zip(&columns.to_text)
                .map(|(field, to_text)| RowColumn::new(field, *to_text))
                .collect(),
            places: fields.clone().enumerate().map(|(place, field)| (field.name().clone(), place)).collect(),
            required: fields.enumerate().filter(|(_, field)| !field.is_nullable()).map(|(place, _)| place).collect(),
            rows: 0,
            bytes: 0,
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows >= MAX_ROWS || self.bytes >= MAX_BYTES
    }

    /// Takes a row of one value for each column, or refuses all of it. `row` is its number, for errors.
    pub(super) fn push(&mut self, values: &[Value<'_>], row: u64) -> Result<()> {
        if let Some(field) = self.schema.fields().get(values.len()) {
            return Err(refused(row, field.name(), "the row ends before it"));
        }
        if values.len() > self.columns.len() {
            let reason = format!("the row has {} values for {} columns", values.len(), self.columns.len());
            return Err(refused(row, "", reason));
        }
        let mut pushed = Ok(());
        for (column, value) in self.columns.iter_mut().zip(values) {
            pushed =
                column.push(self.rows, value, &mut self.bytes).map_err(|reason| refused(row, column.name(), reason));
            if pushed.is_err() {
                break;
            }
        }
        self.end_row(pushed, row)
    }

    /// Takes a row of some columns' values by name, or refuses all of it.
    pub(super) fn push_named<'v>(
        &mut self,
        values: impl IntoIterator<Item = (&'v str, &'v Value<'v>)>,
        row: u64,
    ) -> Result<()> {
        let mut pushed = Ok(());
        for (name, value) in values {
            let column = self.places.get(name).and_then(|place| self.columns.get_mut(*place));
            pushed = match column {
                None => Err(refused(row, name, "there is no such column")),
                Some(column) if column.len > self.rows => Err(refused(row, name, "it is there twice")),
                Some(column) => {
                    column.push(self.rows, value, &mut self.bytes).map_err(|reason| refused(row, name, reason))
                }
            };
            if pushed.is_err() {
                break;
            }
        }
        self.end_row(pushed, row)
    }

    fn end_row(&mut self, pushed: Result<()>, row: u64) -> Result<()> {
        let lacks = |place: &&usize| self.columns.get(**place).is_some_and(|column| !column.has_value(self.rows));
        let complete = pushed.and_then(|()| match self.required.iter().find(lacks) {
            None => Ok(()),
            Some(place) => Err(refused(row, self.schema.field(*place).name(), "it may not be null")),
        });
        match &complete {
            Ok(()) => self.rows += 1,
            Err(_) => self.columns.iter_mut().for_each(|column| column.truncate(self.rows)),
        }
        complete
    }

    /// Makes a record batch of all rows and begins anew.
    pub(super) fn take(&mut self) -> Result<RecordBatch> {
        let columns = self.columns.iter_mut().map(|column| column.take(self.rows)).collect::<Result<_>>()?;
        self.rows = 0;
        self.bytes = 0;
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

/// The values of one column.
#[derive(Debug)]
struct RowColumn {
    field: FieldRef,
    to_text: bool,
    values: Values,
    nulls: NullBufferBuilder,
    /// Rows so far; those since then are null.
    len: usize,
    any: bool,
}

#[derive(Debug)]
enum Values {
    Integers(Vec<i64>),
    Unsigned(Vec<u64>),
    Floats(Vec<f64>),
    Booleans(BooleanBufferBuilder),
    Texts {
        offsets: Vec<i32>,
        bytes: Vec<u8>,
    },
    /// Of a type that rows have no values for.
    None,
}

impl Values {
    fn new(data_type: &DataType) -> Self {
        match data_type {
            DataType::Int64 | DataType::Timestamp(..) => Self::Integers(Vec::new()),
            DataType::UInt64 => Self::Unsigned(Vec::new()),
            DataType::Float64 => Self::Floats(Vec::new()),
            DataType::Boolean => Self::Booleans(BooleanBufferBuilder::new(0)),
            DataType::Utf8 => Self::Texts { offsets: vec![0], bytes: Vec::new() },
            _ => Self::None,
        }
    }

    /// Makes the rows up to `len` ones without a value, or takes those behind it away.
    fn resize(&mut self, len: usize) {
        match self {
            Self::Integers(values) => values.resize(len, 0),
            Self::Unsigned(values) => values.resize(len, 0),
            Self::Floats(values) => values.resize(len, 0.0),
            Self::Booleans(values) => values.resize(len),
            Self::Texts { offsets, bytes } => {
                let end = i32::try_from(bytes.len()).unwrap_or(i32::MAX);
                offsets.resize(len + 1, end);
                bytes.truncate(offsets.last().and_then(|end| usize::try_from(*end).ok()).unwrap_or(0));
            }
            Self::None => {}
        }
    }
}

impl RowColumn {
    fn new(field: &FieldRef, to_text: bool) -> Self {
        let values = Values::new(field.data_type());
        Self { field: Arc::clone(field), to_text, values, nulls: NullBufferBuilder::new(0), len: 0, any: false }
    }

    fn name(&self) -> &str {
        self.field.name()
    }

    fn has_value(&self, row: usize) -> bool {
        self.len > row && self.nulls.is_valid(row)
    }

    /// Takes the value of a row, which comes after all others so far; adds to `bytes` what it takes.
    fn push(&mut self, row: usize, value: &Value<'_>, bytes: &mut usize) -> Result<(), String> {
        if matches!(value, Value::Null) {
            return Ok(());
        }
        self.catch_up(row);
        let wrong = || format!("expected {}, got {}", self.field.data_type(), value.kind());
        match &mut self.values {
            Values::Integers(values) => values.push(value.as_integer().ok_or_else(wrong)?),
            Values::Unsigned(values) => values.push(value.as_unsigned().ok_or_else(wrong)?),
            Values::Floats(values) => values.push(value.as_float().ok_or_else(wrong)?),
            Values::Booleans(values) => match value {
                Value::Boolean(value) => values.append(*value),
                _ => return Err(wrong()),
            },
            Values::Texts { offsets, bytes: texts } => {
                let before = texts.len();
                match value {
                    Value::Text(text) => texts.extend_from_slice(text.as_bytes()),
                    Value::Integer(value) if self.to_text => push_integer(value, texts),
                    Value::Unsigned(value) if self.to_text => push_integer(value, texts),
                    Value::Float(value) if self.to_text => push_float(value, texts),
                    Value::Boolean(value) if self.to_text => push_boolean(*value, texts),
                    _ => return Err(wrong()),
                }
                *bytes += texts.len() - before;
                offsets.push(i32::try_from(texts.len()).map_err(|_| "the text has over 2 GiB".to_owned())?);
            }
            Values::None => {
                return Err(format!("rows have no values of {}: push record batches", self.field.data_type()));
            }
        }
        *bytes += size_of::<u64>();
        self.nulls.append_non_null();
        self.len += 1;
        self.any = true;
        Ok(())
    }

    /// Gives the rows before `row` that have no value yet a null.
    fn catch_up(&mut self, row: usize) {
        if self.len < row {
            self.nulls.append_n_nulls(row - self.len);
            self.values.resize(row);
            self.len = row;
        }
    }

    /// Takes away what there is of rows from `rows` on.
    fn truncate(&mut self, rows: usize) {
        // A text that was refused may stand behind the last offset.
        self.len = self.len.min(rows);
        self.values.resize(self.len);
        self.nulls.truncate(self.len);
    }

    fn take(&mut self, rows: usize) -> Result<ArrayRef> {
        if !std::mem::take(&mut self.any) {
            self.truncate(0);
            return Ok(new_null_array(self.field.data_type(), rows));
        }
        self.catch_up(rows);
        self.len = 0;
        let nulls = self.nulls.finish();
        // The next rows are likely to need as much room.
        Ok(match &mut self.values {
            Values::Integers(values) => {
                let values = ScalarBuffer::from(std::mem::replace(values, Vec::with_capacity(rows)));
                // Timestamps are integers in their unit: nothing is copied.
                cast(&PrimitiveArray::<Int64Type>::try_new(values, nulls)?, self.field.data_type())?
            }
            Values::Unsigned(values) => {
                let values = ScalarBuffer::from(std::mem::replace(values, Vec::with_capacity(rows)));
                Arc::new(PrimitiveArray::<UInt64Type>::try_new(values, nulls)?)
            }
            Values::Floats(values) => {
                let values = ScalarBuffer::from(std::mem::replace(values, Vec::with_capacity(rows)));
                Arc::new(PrimitiveArray::<Float64Type>::try_new(values, nulls)?)
            }
            Values::Booleans(values) => Arc::new(BooleanArray::new(values.finish(), nulls)),
            Values::Texts { offsets, bytes } => {
                let mut next = Vec::with_capacity(rows + 1);
                next.push(0);
                let offsets = OffsetBuffer::new(ScalarBuffer::from(std::mem::replace(offsets, next)));
                let room = Vec::with_capacity(bytes.len());
                let bytes = Buffer::from_vec(std::mem::replace(bytes, room));
                Arc::new(StringArray::try_new(offsets, bytes, nulls)?)
            }
            Values::None => new_null_array(self.field.data_type(), rows),
        })
    }
}
