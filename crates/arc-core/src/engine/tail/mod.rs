//! Tails: the rows of a table as they are acknowledged, each once, in that order.
//!
//! Owns what is handed on to the readers of tails, how much of it waits for them, and why a tail
//! ends. Never holds up a write: a reader that is too slow loses its tail, with an error, and not
//! a row of it in silence. The thread that applies writes fills it; of an engine that only reads,
//! the thread that follows the log does (decision 045).

mod open_tails;
mod queue;
#[cfg(feature = "query")]
mod since;
#[cfg(test)]
mod tests;

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use arrow::{array::RecordBatch, compute::concat_batches, datatypes::SchemaRef};
use futures::Stream;

use self::queue::{TailQueue, TakenRows};
pub(super) use self::{open_tails::Tails, queue::TailEnding};
use super::{Engine, role::EngineRole};
use crate::{
    Result,
    buffer::{Chunk, ChunkReader},
    registry::Table,
};

/// Rows of one table as they are acknowledged, from the moment on at which it was made; made by
/// [`Engine::tail`].
///
/// Each row comes once, as it was written: fields that a write did not have are null, and a row
/// that overwrites another one comes as well. Deletes are not seen. Rows that survive nothing
/// (`memory`) are seen by tails of the engine that they are written to, and by no other.
///
/// Take batches with [`next_within`](Self::next_within), or use it as a stream. It does not keep
/// the engine open. It ends with an error, after the last row that it has:
///
/// - [`ErrorKind::Busy`](crate::ErrorKind::Busy) if rows came faster than they were taken, and more
///   than 16 MiB waited, or more than the memory budget has left: rows would be left out;
/// - [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if the table or its database was dropped;
/// - [`ErrorKind::Closed`](crate::ErrorKind::Closed) if the engine was closed, or its log failed;
/// - [`ErrorKind::Io`](crate::ErrorKind::Io) or [`Corrupt`](crate::ErrorKind::Corrupt) if an engine
///   that only reads cannot follow the log.
#[derive(Debug)]
pub struct Tail {
    table: Arc<Table>,
    queue: Arc<TailQueue>,
    /// Whether the error was handed out as the last item of the stream.
    is_over: bool,
}

impl Tail {
    /// Returns the columns of the table as they are now: `time`, the tags, then the fields. A batch
    /// has those that there are when it is taken, so a later one may have more, or wider types.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let engine = arc_core::Engine::open(dir.path().join("data"))?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// let tail = engine.tail("plant", "pump")?;
    /// assert_eq!(tail.schema().fields().len(), 3); // time, id and rpm
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.table.schema().arrow()
    }

    /// Returns the next rows, of one write or of several, or `None` if none came within `patience`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let engine = arc_core::Engine::open(dir.path().join("data"))?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use std::time::Duration;
    ///
    /// let mut tail = engine.tail("plant", "pump")?;
    /// assert!(tail.next_within(Duration::ZERO)?.is_none(), "nothing since");
    /// let _ = engine.write_lp("plant", b"pump,id=7 rpm=1451i")?;
    /// let rows = tail.next_within(Duration::from_secs(10))?.expect("it is acknowledged");
    /// assert_eq!(rows.num_rows(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Why it has ended, at this call and all later ones.
    pub fn next_within(&mut self, patience: Duration) -> Result<Option<RecordBatch>> {
        match self.queue.take_within(patience) {
            TakenRows::Rows(chunks) => self.batch(&chunks).map(Some),
            TakenRows::Nothing => Ok(None),
            TakenRows::End(ending) => Err(self.error(ending)),
        }
    }

    /// Makes one batch of rows, with the columns that the table has now: these have all that the
    /// rows have, for they are taken after the rows.
    fn batch(&self, chunks: &[Arc<Chunk>]) -> Result<RecordBatch> {
        let schema = self.table.schema();
        let columns: Vec<usize> = (0..=schema.columns.len()).collect();
        let reader = ChunkReader::new(schema, Arc::clone(&self.table.series));
        let batches = chunks.iter().map(|chunk| reader.rows(chunk).project(&columns));
        let mut batches = batches.collect::<Result<Vec<_>>>()?;
        match (batches.pop(), batches.is_empty()) {
            (Some(only), true) => Ok(only),
            (Some(last), false) => {
                batches.push(last);
                Ok(concat_batches(&self.schema_of(&batches), &batches)?)
            }
            (None, _) => Ok(RecordBatch::new_empty(self.schema())),
        }
    }

    fn schema_of(&self, batches: &[RecordBatch]) -> SchemaRef {
        batches.first().map_or_else(|| self.schema(), RecordBatch::schema)
    }

    fn error(&self, ending: TailEnding) -> crate::Error {
        let schema = self.table.schema();
        ending.into_error(&schema.database, &schema.table)
    }
}

impl Stream for Tail {
    type Item = Result<RecordBatch>;

    /// Its last item is the error that says why it has ended.
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        match self.queue.poll(context.waker()) {
            TakenRows::Rows(chunks) => Poll::Ready(Some(self.batch(&chunks))),
            TakenRows::Nothing => Poll::Pending,
            TakenRows::End(ending) => {
                self.is_over = true;
                Poll::Ready(Some(Err(self.error(ending))))
            }
        }
    }
}

impl Engine {
    /// Returns the rows of a table that are acknowledged from now on; see [`Tail`]. A write that is
    /// under way is in it if it is not acknowledged by now.
    ///
    /// An engine that only reads follows the log of the process that writes, and hears of rows some
    /// milliseconds later; it has no rows that survive nothing (`memory`).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let engine = arc_core::Engine::open(dir.path().join("data"))?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use std::time::Duration;
    ///
    /// let mut tail = engine.tail("plant", "pump")?;
    /// engine.close()?;
    /// assert!(tail.next_within(Duration::ZERO).is_err(), "nothing more comes");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if there is no such database or table;
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) if the engine reads a bucket, where there is
    /// no log; [`Closed`](crate::ErrorKind::Closed); and, of an engine that only reads, what a
    /// statement may fail with.
    pub fn tail(&self, database: &str, table: &str) -> Result<Tail> {
        self.open_tail(database, table, |_| Ok(())).map(|(tail, ())| tail)
    }

    /// Opens a tail, and looks at the table at that very moment: what is there is not in the tail,
    /// and what is not there will be.
    fn open_tail<T>(&self, database: &str, table: &str, look: impl FnOnce(&Table) -> Result<T>) -> Result<(Tail, T)> {
        self.check_open()?;
        match &self.inner.role {
            EngineRole::Writer(shared) => {
                let table = self.table(database, table)?;
                let mut tails = shared.tails.lock();
                let seen = look(&table)?;
                Ok((tails.open(&table, &shared.memory)?, seen))
            }
            EngineRole::Reader(reader) => {
                let opened = reader.open_tail(database, table, look)?;
                if let Some(thread) = reader.start_following()? {
                    self.inner.threads.lock().push(thread);
                }
                Ok(opened)
            }
        }
    }
}
