//! Rows as they are acknowledged: those of the engine in this process, and those that a server sends.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use arc_core::Error;
use arrow::{array::RecordBatch, buffer::Buffer, error::ArrowError, ipc::reader::StreamDecoder};
use bytes::Bytes;
use futures::StreamExt as _;
use pyo3::{prelude::*, pybacked::PyBackedBytes};
use tokio::{runtime::Runtime, time::timeout};

use crate::{errors::Raise as _, interrupt, owned::Owned, progress::Progress, statements, table::Table};

/// How long a thread waits for rows before it looks for signals, and whether the tail was closed.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The rows of a table as they are acknowledged.
#[pyclass(frozen, module = "arc")]
#[derive(Debug)]
pub(crate) struct Tail(Owned<Mutex<Option<TailedRows>>>);

#[derive(Debug)]
struct TailedRows {
    /// The rows before the tail, while there are any.
    stored: Option<(arc_core::Answer, Arc<Runtime>)>,
    tail: arc_core::Tail,
}

impl Tail {
    /// Opens a tail of a table, after the rows of a time and later where that is given.
    pub(crate) fn open(
        py: Python<'_>,
        engine: arc_core::Engine,
        database: String,
        table: String,
        since_ns: Option<i64>,
    ) -> PyResult<Self> {
        let rows = match since_ns {
            None => {
                let tail = py.detach(|| engine.tail(&database, &table)).raise(py)?;
                TailedRows { stored: None, tail }
            }
            Some(since_ns) => {
                interrupt::note_thread(py)?;
                let runtime = statements::runtime_for(py, &engine)?;
                let opening = async move { engine.tail_since(&database, &table, since_ns).await };
                let mut progress = Progress::new("query");
                let (stored, tail) = py.detach(|| interrupt::wait(&runtime, opening, &mut progress))?.raise(py)?;
                TailedRows { stored: Some((stored, runtime)), tail }
            }
        };
        Ok(Self(Owned::new(Mutex::new(Some(rows)))))
    }

    fn rows(&self, py: Python<'_>) -> PyResult<&Mutex<Option<TailedRows>>> {
        self.0.get(py)
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TailedRows {
    /// Returns the next rows, if some come soon.
    fn next_soon(&mut self, patience: Duration) -> arc_core::Result<Option<RecordBatch>> {
        while let Some((stored, runtime)) = &mut self.stored {
            match runtime.block_on(async { timeout(patience, stored.next()).await }) {
                Ok(Some(rows)) => match rows? {
                    rows if rows.num_rows() > 0 => return Ok(Some(rows)),
                    _ => {}
                },
                Ok(None) => self.stored = None,
                Err(_) => return Ok(None),
            }
        }
        self.tail.next_within(patience)
    }
}

#[pymethods]
impl Tail {
    /// Returns the next rows, ``None`` if none came within so many seconds, or if it was closed. Ctrl-C ends the waiting.
    #[expect(clippy::disallowed_methods, reason = "who waits does so by the time of this machine")]
    fn take(&self, py: Python<'_>, seconds: f64) -> PyResult<Option<Table>> {
        let rows = self.rows(py)?;
        let patience = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
        let begun = Instant::now();
        loop {
            let left = patience.saturating_sub(begun.elapsed());
            let taken = py.detach(|| {
                let mut rows = lock(rows);
                rows.as_mut().map(|rows| rows.next_soon(left.min(LOOK_EVERY)))
            });
            let Some(taken) = taken else { return Ok(None) };
            if let Some(batch) = taken.raise(py)? {
                return Ok(Some(Table { schema: batch.schema(), batches: vec![batch] }));
            }
            py.check_signals()?;
            if left.is_zero() {
                return Ok(None);
            }
        }
    }

    /// Ends it: the thread that waits gets ``None``.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let rows = self.rows(py)?;
        py.detach(|| drop(lock(rows).take()));
        Ok(())
    }
}

/// Reads the answer of a server to a tail: Arrow streams one after the other, in pieces of any size.
#[pyclass(frozen, module = "arc")]
#[derive(Debug, Default)]
pub(crate) struct TailDecoder(Mutex<StreamDecoder>);

/// Why a server has ended a tail: what it says, and its status.
type TailReason = (String, u16);

#[pymethods]
impl TailDecoder {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes; returns the rows that are whole now, and why there will be no more, once that is said.
    fn feed(&self, py: Python<'_>, data: PyBackedBytes) -> PyResult<(Vec<Table>, Option<TailReason>)> {
        let decoded = py.detach(|| decode(&mut lock(&self.0), Buffer::from(Bytes::from_owner(data))));
        decoded.map_err(|e| Error::InvalidPayload { format: "Arrow", reason: e.to_string() }).raise(py)
    }
}

fn decode(decoder: &mut StreamDecoder, mut data: Buffer) -> Result<(Vec<Table>, Option<TailReason>), ArrowError> {
    let mut tables = Vec::new();
    while !data.is_empty() {
        match decoder.decode(&mut data) {
            Ok(Some(batch)) if batch.num_rows() > 0 => {
                tables.push(Table { schema: batch.schema(), batches: vec![batch] });
            }
            Ok(_) => {}
            // What was sent of the same columns has ended, and more follows.
            Err(error) => {
                decoder.finish().map_err(|_| error)?;
                *decoder = StreamDecoder::new();
            }
        }
    }
    let schema = decoder.schema();
    let said = schema.as_ref().map(|schema| schema.metadata());
    let reason = said.and_then(|said| {
        let status = said.get("arc.status").and_then(|status| status.parse().ok());
        Some((said.get("arc.error")?.clone(), status.unwrap_or(500)))
    });
    Ok((tables, reason))
}
