//! The rows that answer a statement, as an Arrow stream.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
};

use arc_core::{AnswerEnder, Error, ErrorKind};
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
    interrupt,
    owned::{FORKED, Owned},
    progress::Progress,
    schema::Schema,
    table::Table,
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
    ender: AnswerEnder,
    unread: Owned<Mutex<Option<Rows>>>,
}

impl Answer {
    pub(crate) fn new(answer: arc_core::Answer, runtime: Arc<Runtime>, engine: arc_core::Engine) -> Self {
        let (schema, ender) = (answer.schema(), answer.ender());
        let (engine, process) = (Some(engine), std::process::id());
        let rows = Rows { answer: Some(answer), runtime, progress: Progress::new("query"), engine, process };
        Self { schema, ender, unread: Owned::new(Mutex::new(Some(rows))) }
    }

    fn take(&self, py: Python<'_>) -> PyResult<Rows> {
        let rows = self.unread.get(py)?.lock().unwrap_or_else(PoisonError::into_inner).take();
        let reason = "this answer has been read; run the statement again, or keep what was read".to_owned();
        rows.map(Rows::begin).ok_or(Error::Sql { reason }).raise(py)
    }
}

#[pymethods]
impl Answer {
    /// The columns of the answer, also before and after it is read.
    #[getter]
    fn schema(&self) -> Schema {
        Schema(Arc::clone(&self.schema))
    }

    /// Reads all of the answer into memory. Ctrl-C ends it.
    fn read(&self, py: Python<'_>) -> PyResult<Table> {
        interrupt::note_thread(py)?;
        let mut rows = self.take(py)?;
        let schema = Arc::clone(&self.schema);
        let batches = py.detach(|| {
            let mut batches = Vec::new();
            while let Some(batch) = rows.pull() {
                batches.push(batch?);
            }
            Ok(batches)
        });
        Ok(Table { schema, batches: batches.map_err(|failure: Failure| failure.into_exception(py))? })
    }

    /// Reads the next rows, ``None`` if there are no more. Ctrl-C ends the answer.
    fn read_next(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        interrupt::note_thread(py)?;
        let Some(mut rows) = self.unread.get(py)?.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(None);
        };
        let (rows, batch) = py.detach(move || {
            let batch = rows.pull();
            (rows, batch)
        });
        let Some(batch) = batch else { return Ok(None) };
        let batch = batch.map_err(|failure| failure.into_exception(py))?;
        *self.unread.get(py)?.lock().unwrap_or_else(PoisonError::into_inner) = Some(rows);
        Ok(Some(Table { schema: Arc::clone(&self.schema), batches: vec![batch] }))
    }

    /// Ends the work soon, whichever thread reads it: that one is told so by an error.
    fn cancel(&self) {
        self.ender.end();
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
        interrupt::note_thread(py)?;
        let mut rows = self.take(py)?;
        // Reads the first rows here: a reader in C would give its own error for Ctrl-C, and for a query that fails.
        let first = py.detach(|| rows.pull()).transpose().map_err(|failure| failure.into_exception(py))?;
        let rows = first.map(Ok).into_iter().chain(rows);
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

/// Why rows stopped: the engine failed, or a signal handler raised.
enum Failure {
    Engine(Error),
    Raised(PyErr),
}

impl Failure {
    fn into_exception(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Raised(raised) => raised,
            Self::Engine(error) => match Err::<(), _>(error).raise(py) {
                Err(raised) => raised,
                Ok(()) => PyErr::fetch(py),
            },
        }
    }

    /// Returns the failure as a reader in C takes it.
    fn into_stream_error(self) -> ArrowError {
        match self {
            Self::Engine(error) => stream_error(&error),
            Self::Raised(raised) => {
                Python::attach(|py| interrupt::raise_again(py, &raised));
                ArrowError::ComputeError("the query was interrupted".to_owned())
            }
        }
    }
}

/// The stream under an answer. Pulled by whoever reads it, on their thread, with or without the interpreter's lock:
/// nothing below it ever takes that lock, but for the main thread that looks for signals.
#[derive(Debug)]
struct Rows {
    /// `None` once it was interrupted.
    answer: Option<arc_core::Answer>,
    runtime: Arc<Runtime>,
    progress: Progress,
    /// Keeps the data directory open, and so its files, until the last row is read.
    engine: Option<arc_core::Engine>,
    process: u32,
}

impl Drop for Rows {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // A fork has none of the threads that the end of a query, or of an engine, waits for.
            std::mem::forget((self.answer.take(), self.engine.take()));
        }
    }
}

impl Rows {
    fn begin(mut self) -> Self {
        // The plan may be older than the reading.
        self.progress = Progress::new("query");
        self
    }

    fn pull(&mut self) -> Option<Result<RecordBatch, Failure>> {
        // The caller may be C: a panic that reached it would end the process.
        let next = catch_unwind(AssertUnwindSafe(|| self.pull_batch()));
        next.unwrap_or_else(|_| {
            let reason = "a defect: what computed the answer ended".to_owned();
            Some(Err(Failure::Engine(Error::Internal { reason })))
        })
    }

    fn pull_batch(&mut self) -> Option<Result<RecordBatch, Failure>> {
        if self.process != std::process::id() {
            return Some(Err(Failure::Engine(Error::Closed { reason: FORKED.into() })));
        }
        if !interrupt::is_main_thread() {
            let next = self.runtime.block_on(self.answer.as_mut()?.next())?;
            return Some(next.map_err(Failure::Engine));
        }
        let mut answer = self.answer.take()?;
        let ender = answer.ender();
        let read = async move {
            let next = answer.next().await;
            (answer, next)
        };
        match interrupt::wait(&self.runtime, read, &mut self.progress) {
            Ok((answer, next)) => {
                self.answer = Some(answer);
                let next = next.map(|next| next.map_err(Failure::Engine));
                self.told(&next).err().map_or(next, |raised| Some(Err(self.interrupted(raised))))
            }
            Err(raised) => {
                ender.end();
                Some(Err(self.interrupted(raised)))
            }
        }
    }

    /// Takes away what is shown before a reader in C has the interrupt come once more: what runs in Python would get it.
    fn interrupted(&mut self, raised: PyErr) -> Failure {
        self.progress.clear();
        Failure::Raised(raised)
    }

    /// Shows how far it is, where no single batch takes long but all of them do.
    fn told(&mut self, next: &Option<Result<RecordBatch, Failure>>) -> PyResult<()> {
        let Some(Ok(batch)) = next else {
            self.progress.clear();
            return Ok(());
        };
        self.progress.count(batch.num_rows());
        if !self.progress.is_due() {
            return Ok(());
        }
        Python::try_attach(|py| self.progress.show(py)).unwrap_or(Ok(()))
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.pull().map(|batch| batch.map_err(Failure::into_stream_error))
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
