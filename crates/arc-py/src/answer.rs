//! The rows that answer a statement, as an Arrow stream.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
};

use arc_core::{Error, ErrorKind};
use arrow::{
    array::{ArrayRef, RecordBatch, StructArray},
    datatypes::{Field, SchemaRef},
    error::ArrowError,
};
use futures::StreamExt as _;
use pyo3::{prelude::*, types::PyCapsule};
use pyo3_arrow::ffi::{ArrayIterator, to_schema_pycapsule, to_stream_pycapsule};
use tokio::runtime::Runtime;

use crate::{
    errors::{Raise as _, message},
    owned::Owned,
    schema::Schema,
};

/// The rows that answer a SQL statement: an Arrow stream that can be read once.
///
/// Whatever understands the Arrow PyCapsule interface reads it, without a copy: ``pyarrow.table(answer)``,
/// ``polars.DataFrame(answer)``, ``pyarrow.table(answer).to_pandas()``, ``duckdb.sql("SELECT * FROM answer")``,
/// ``engine.write("copy", answer)``. Rows are computed while they are read; dropping the answer stops the work. An
/// error that comes up while they are read is raised by the reader, as its own kind of exception.
#[pyclass(frozen, module = "arc")]
#[derive(Debug)]
pub(crate) struct Answer {
    schema: SchemaRef,
    unread: Owned<Mutex<Option<Rows>>>,
}

impl Answer {
    pub(crate) fn new(rows: Rows) -> Self {
        Self { schema: rows.answer.schema(), unread: Owned::new(Mutex::new(Some(rows))) }
    }

    fn take(&self, py: Python<'_>) -> PyResult<Option<Rows>> {
        Ok(self.unread.get(py)?.lock().unwrap_or_else(PoisonError::into_inner).take())
    }
}

#[pymethods]
impl Answer {
    /// The columns of the answer, also before and after it is read.
    #[getter]
    fn schema(&self) -> Schema {
        Schema(Arc::clone(&self.schema))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.schema.as_ref())?)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let reason = "this answer has been read; run the statement again, or keep what was read".to_owned();
        let rows = self.take(py)?.ok_or(Error::Sql { reason }).raise(py)?;
        let item = Field::new_struct("", self.schema.fields().clone(), false);
        let item = item.with_metadata(self.schema.metadata().clone());
        let arrays = rows.map(|batch| Ok(Arc::new(StructArray::from(batch?)) as ArrayRef));
        Ok(to_stream_pycapsule(py, Box::new(ArrayIterator::new(arrays, Arc::new(item))), requested_schema)?)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let unread = self.unread.get(py)?.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        let state = if unread { "unread" } else { "read" };
        let names: Vec<_> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        Ok(format!("<arc.Answer {state}, columns: {}>", names.join(", ")))
    }
}

/// The stream under an answer. Pulled by whoever reads it, on their thread, with or without the interpreter's lock:
/// nothing below it ever takes that lock.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) answer: arc_core::Answer,
    pub(crate) runtime: Arc<Runtime>,
    /// Keeps the data directory open, and so its files, until the last row is read.
    pub(crate) _engine: arc_core::Engine,
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        // The caller is C: a panic that reached it would end the process.
        let next = catch_unwind(AssertUnwindSafe(|| self.runtime.block_on(self.answer.next())));
        let next = next.unwrap_or_else(|_| {
            let reason = "a panic while the answer was computed".to_owned();
            Some(Err(Error::Internal { reason }))
        });
        next.map(|batch| batch.map_err(|error| stream_error(&error)))
    }
}

/// An error as the C stream interface can carry it: a code and a text without NUL.
fn stream_error(error: &Error) -> ArrowError {
    let text = message(error).replace('\0', "\u{fffd}");
    match error.kind() {
        ErrorKind::Io => ArrowError::IoError(text, std::io::Error::other("see the message")),
        _ => ArrowError::ComputeError(text),
    }
}
