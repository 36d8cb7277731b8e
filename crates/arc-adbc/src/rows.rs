//! The rows of an answer, computed while they are read.

use std::{result, sync::Arc};

use adbc_core::error::{Error, Result};
use arc_core::{Answer, Statement};
use arrow::{
    array::{Array as _, ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader},
    compute::cast,
    datatypes::{DataType, Field, Schema, SchemaRef},
    error::ArrowError,
};
use futures::StreamExt as _;

use crate::{
    connection::Shared,
    errors::{cancelled, of_engine, stream_error},
    forks,
    open::OpenEngine,
    runtime::{Cancel, wait_or_cancel},
};

/// A stream for another language, whatever makes it.
pub(crate) type Reader = Box<dyn RecordBatchReader + Send>;

/// An answer as a stream for another language.
pub(crate) struct Rows {
    schema: SchemaRef,
    /// What was read to know that there are rows at all.
    first: Option<RecordBatch>,
    /// `None` once it has ended.
    answer: Option<Answer>,
    cancel: Arc<Cancel>,
    /// Keeps the folder open, and so its files, until the last row is read.
    _engine: Arc<OpenEngine>,
    process: u32,
}

impl Rows {
    /// Plans a statement that reads, and reads its first rows: an error of theirs is one of the statement, which in a stream
    /// is a text without a status.
    pub(crate) fn of(
        shared: &Shared,
        cancel: &Arc<Cancel>,
        statement: Statement,
        values: Option<RecordBatch>,
    ) -> Result<Self> {
        cancel.begin();
        let (engine, database) = (Arc::clone(&shared.engine), shared.database.clone());
        let mut answer = wait_or_cancel(cancel, async move {
            let answer = engine.query(&database, &statement, values.as_ref()).await;
            answer.map(Answer::with_reader_time).map_err(|error| of_engine(&error))
        })?;
        cancel.ends(answer.ender());
        let schema = layout(&answer.schema(), shared.dictionaries);
        let (first, answer) = wait_or_cancel(cancel, async move { Ok((answer.next().await, answer)) })?;
        let first = first.transpose().map_err(|error| failed(&error, cancel))?;
        let answer = first.is_some().then_some(answer);
        let (cancel, engine) = (Arc::clone(cancel), Arc::clone(&shared.engine));
        Ok(Self { schema, first, answer, cancel, _engine: engine, process: std::process::id() })
    }
}

impl Iterator for Rows {
    type Item = result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(first) = self.first.take() {
            return Some(laid_out(&first, &self.schema));
        }
        let mut answer = self.answer.take()?;
        let read = wait_or_cancel(&self.cancel, async move {
            let next = answer.next().await;
            Ok((next, answer))
        });
        let (next, answer) = match read {
            Ok(read) => read,
            Err(error) => return Some(Err(stream_error(&error))),
        };
        let batch = match next? {
            Ok(batch) => batch,
            Err(error) => return Some(Err(stream_error(&failed(&error, &self.cancel)))),
        };
        self.answer = Some(answer);
        Some(laid_out(&batch, &self.schema))
    }
}

/// Returns why rows could not be read.
fn failed(error: &arc_core::Error, cancel: &Cancel) -> Error {
    if cancel.was_asked() { cancelled() } else { of_engine(error) }
}

impl Drop for Rows {
    fn drop(&mut self) {
        if forks::is_fork(self.process) {
            std::mem::forget(self.answer.take());
        }
    }
}

impl RecordBatchReader for Rows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Returns the columns as other languages get them: tags as texts, which not all of them know as dictionaries.
pub(crate) fn layout(schema: &Schema, dictionaries: bool) -> SchemaRef {
    let field = |field: &Arc<Field>| match field.data_type() {
        DataType::Dictionary(_, values) if !dictionaries => {
            Arc::new(field.as_ref().clone().with_data_type(values.as_ref().clone()))
        }
        _ => Arc::clone(field),
    };
    let fields: Vec<_> = schema.fields().iter().map(field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn laid_out(batch: &RecordBatch, schema: &SchemaRef) -> result::Result<RecordBatch, ArrowError> {
    let column = |(column, field): (&ArrayRef, &Arc<Field>)| {
        if column.data_type() == field.data_type() { Ok(Arc::clone(column)) } else { cast(column, field.data_type()) }
    };
    let columns = batch.columns().iter().zip(schema.fields()).map(column).collect::<result::Result<_, ArrowError>>()?;
    // Without columns only this says how many rows there are.
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}
