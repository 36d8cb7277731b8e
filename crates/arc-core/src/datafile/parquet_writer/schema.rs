//! The columns of a writer: as they were declared, as they are in files, and how a record batch
//! becomes one of files.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, new_null_array},
    datatypes::{DataType, Field, FieldRef, Schema, SchemaRef},
};
use hashbrown::{HashMap, HashSet};

use crate::{
    Error, Result,
    arrays::numbers_as_text::{Floats, becomes_text, to_texts},
    datafile::is_storable,
};

/// The columns of a writer.
#[derive(Debug)]
pub(super) struct WriterColumns {
    /// As they are in files: of some, numbers and booleans have become texts.
    pub(super) schema: SchemaRef,
    /// For each, whether numbers and booleans become texts.
    pub(super) to_text: Vec<bool>,
    /// The schema of the last batch, and where each of our columns is in it.
    last: Option<(SchemaRef, Vec<Option<usize>>)>,
}

impl WriterColumns {
    /// `text_prefixes` begin the names of columns whose numbers and booleans become texts.
    pub(super) fn new(declared: &Schema, text_prefixes: &[String]) -> Result<Self> {
        let mut names = HashSet::new();
        let mut to_text = Vec::new();
        let mut fields: Vec<FieldRef> = Vec::new();
        for field in declared.fields() {
            let reason = match field.data_type() {
                _ if !names.insert(field.name()) => Some("it is declared twice".to_owned()),
                DataType::Null => Some("columns of nulls are not written".to_owned()),
                data_type if !is_storable(data_type) => Some(format!("Parquet files cannot hold {data_type}")),
                _ => None,
            };
            if let Some(reason) = reason {
                let reason = format!("column {:?}: {reason}", field.name());
                return Err(Error::InvalidOption { option: "schema", reason });
            }
            let is_text = text_prefixes.iter().any(|prefix| field.name().starts_with(prefix));
            to_text.push(is_text && (becomes_text(field.data_type()) || *field.data_type() == DataType::Utf8));
            fields.push(if is_text && becomes_text(field.data_type()) {
                Arc::new(Field::new(field.name(), DataType::Utf8, field.is_nullable()))
            } else {
                Arc::clone(field)
            });
        }
        if fields.is_empty() {
            return Err(Error::InvalidOption { option: "schema", reason: "there are no columns".into() });
        }
        Ok(Self { schema: Arc::new(Schema::new(fields)), to_text, last: None })
    }

    /// Checks that all rows of a batch can be taken. `row` is the number of the first one, for
    /// errors.
    pub(super) fn check(&mut self, batch: &RecordBatch, row: u64) -> Result<()> {
        self.index(batch, row)?;
        for ((field, to_text), array) in self.with_arrays(batch) {
            match array {
                None if field.is_nullable() => {}
                None => return Err(refused(row, field.name(), "it is absent, and may not be null")),
                Some(array) => {
                    check_type(field, *to_text, array.data_type(), row)?;
                    check_nulls(field, array, row)?;
                }
            }
        }
        Ok(())
    }

    /// Returns rows of the batch that was checked last as files have them.
    pub(super) fn convert(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let columns = self.with_arrays(batch).map(|((field, _), array)| match array {
            None => Ok(new_null_array(field.data_type(), batch.num_rows())),
            Some(array) if array.data_type() == field.data_type() => Ok(Arc::clone(array)),
            Some(array) => to_texts(array, Floats::Marked),
        });
        let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }

    fn with_arrays<'b>(
        &'b self,
        batch: &'b RecordBatch,
    ) -> impl Iterator<Item = ((&'b FieldRef, &'b bool), Option<&'b ArrayRef>)> {
        let indices = self.last.iter().flat_map(|(_, indices)| indices);
        let arrays = indices.map(|index| index.and_then(|index| batch.columns().get(index)));
        self.schema.fields().iter().zip(&self.to_text).zip(arrays)
    }

    /// Finds out where each column is in batches like this one.
    fn index(&mut self, batch: &RecordBatch, row: u64) -> Result<()> {
        let is_known =
            |known: &SchemaRef| Arc::ptr_eq(known, batch.schema_ref()) || known.fields() == batch.schema_ref().fields();
        if self.last.as_ref().is_some_and(|(known, _)| is_known(known)) {
            return Ok(());
        }
        let mut by_name = HashMap::new();
        for (index, field) in batch.schema_ref().fields().iter().enumerate() {
            if self.schema.column_with_name(field.name()).is_none() {
                return Err(refused(row, field.name(), "there is no such column"));
            }
            if by_name.insert(field.name().as_str(), index).is_some() {
                return Err(refused(row, field.name(), "it is there twice"));
            }
        }
        let indices = self.schema.fields().iter().map(|field| by_name.get(field.name().as_str()).copied()).collect();
        self.last = Some((batch.schema(), indices));
        Ok(())
    }
}

fn check_type(field: &Field, to_text: bool, data_type: &DataType, row: u64) -> Result<()> {
    if data_type == field.data_type() || (to_text && becomes_text(data_type)) {
        return Ok(());
    }
    Err(refused(row, field.name(), format!("expected {}, got {data_type}", field.data_type())))
}

fn check_nulls(field: &Field, array: &ArrayRef, row: u64) -> Result<()> {
    if field.is_nullable() || array.logical_null_count() == 0 {
        return Ok(());
    }
    let nulls = array.logical_nulls();
    let first = nulls.and_then(|nulls| (0..nulls.len()).find(|index| nulls.is_null(*index))).unwrap_or(0);
    Err(refused(row + first as u64, field.name(), "it may not be null"))
}

/// Says which row and column was refused, and why.
pub(super) fn refused(row: u64, column: &str, reason: impl Into<String>) -> Error {
    Error::Row { row, column: column.to_owned(), reason: reason.into() }
}
