//! Rows on their way to columns: which column a value is of, and whether a row is taken.
//!
//! Values are appended to their columns as they come. Rows become a record batch once there are
//! some thousands of them.

use std::sync::Arc;

use arrow::{array::RecordBatch, datatypes::SchemaRef};

use super::{
    Value,
    names::ColumnNames,
    row_column::RowColumn,
    schema::{WriterColumns, refused},
};
use crate::{Error, Result};

/// Rows and bytes of values after which a record batch is made.
const MAX_ROWS: u32 = 8192;
const MAX_BYTES: usize = 4 << 20;

/// Rows that are not yet a record batch.
#[derive(Debug)]
pub(super) struct RowBuffer {
    schema: SchemaRef,
    columns: Vec<RowColumn>,
    names: ColumnNames,
    /// Columns that each row has to have a value for.
    required: Vec<usize>,
    rows: u32,
    bytes: usize,
}

impl RowBuffer {
    pub(super) fn new(columns: &WriterColumns) -> Self {
        let fields = columns.schema.fields().iter();
        Self {
            schema: Arc::clone(&columns.schema),
            columns: fields
                .clone()
                .zip(&columns.to_text)
                .map(|(field, to_text)| RowColumn::new(field, *to_text))
                .collect(),
            names: ColumnNames::new(&columns.schema),
            required: fields.enumerate().filter(|(_, field)| !field.is_nullable()).map(|(index, _)| index).collect(),
            rows: 0,
            bytes: 0,
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows as usize
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows >= MAX_ROWS || self.bytes >= MAX_BYTES
    }

    /// Takes a row of one value for each column, or refuses all of it. `row` is its number, for
    /// errors.
    pub(super) fn push(&mut self, values: &[Value<'_>], row: u64) -> Result<()> {
        if let Some(field) = self.schema.fields().get(values.len()) {
            return Err(refused(row, field.name(), "the row ends before it"));
        }
        if values.len() > self.columns.len() {
            let reason = format!("the row has {} values for {} columns", values.len(), self.columns.len());
            return Err(refused(row, "", reason));
        }
        for (column, value) in self.columns.iter_mut().zip(values) {
            if !column.push(self.rows, value, &mut self.bytes) {
                let refusal = refused(row, column.name(), column.refusal(value));
                return self.refuse(refusal);
            }
        }
        self.end_row(row)
    }

    /// Takes a row of some columns' values by name, or refuses all of it.
    pub(super) fn push_named<'v>(
        &mut self,
        values: impl IntoIterator<Item = (&'v str, &'v Value<'v>)>,
        row: u64,
    ) -> Result<()> {
        let mut last = None;
        for (name, value) in values {
            let index = self.names.find(name, last);
            let Some(column) = index.and_then(|index| self.columns.get_mut(index)) else {
                return self.refuse(refused(row, name, "there is no such column"));
            };
            if column.has_value(self.rows) {
                return self.refuse(refused(row, name, "it is there twice"));
            }
            if !column.push(self.rows, value, &mut self.bytes) {
                let refusal = refused(row, name, column.refusal(value));
                return self.refuse(refusal);
            }
            last = index;
        }
        self.end_row(row)
    }

    fn end_row(&mut self, row: u64) -> Result<()> {
        let lacks = |index: &&usize| self.columns.get(**index).is_some_and(|column| !column.has_value(self.rows));
        if let Some(index) = self.required.iter().find(lacks) {
            let refusal = refused(row, self.schema.field(*index).name(), "it may not be null");
            return self.refuse(refusal);
        }
        self.rows += 1;
        Ok(())
    }

    /// Takes back what there is of a row.
    #[cold]
    fn refuse(&mut self, refusal: Error) -> Result<()> {
        self.columns.iter_mut().for_each(|column| column.take_back(self.rows));
        Err(refusal)
    }

    /// Makes a record batch of all rows and begins anew.
    pub(super) fn take(&mut self) -> Result<RecordBatch> {
        let rows = self.rows();
        let columns = self.columns.iter_mut().map(|column| column.take(rows)).collect::<Result<_>>()?;
        self.rows = 0;
        self.bytes = 0;
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}
