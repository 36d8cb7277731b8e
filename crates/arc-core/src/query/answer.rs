//! The rows that answer a statement, as a stream.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use futures::{Stream, StreamExt, TryStreamExt};
use tokio::time::{Instant, Sleep, sleep_until};

use super::error;
use crate::Result;

/// The answer to one SQL statement: a stream of record batches that all have [`Answer::schema`].
///
/// Rows are computed while the stream is read; dropping it stops the work and frees its memory.
pub struct Answer {
    stream: SendableRecordBatchStream,
    deadline: Pin<Box<Sleep>>,
    timeout: Duration,
    ended: bool,
}

impl Answer {
    pub(super) fn new(stream: SendableRecordBatchStream, deadline: Instant, timeout: Duration) -> Self {
        Self { stream, deadline: Box::pin(sleep_until(deadline)), timeout, ended: false }
    }

    /// Returns the columns of the answer.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }

    /// Reads the whole answer into memory.
    ///
    /// # Errors
    ///
    /// The first error of the stream: the statement failed on its rows, took too long, or ran out of memory.
    pub async fn collect(self) -> Result<Vec<RecordBatch>> {
        self.try_collect().await
    }
}

impl Stream for Answer {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let item = match self.stream.poll_next_unpin(cx) {
            Poll::Ready(item) => item.map(|batch| batch.map_err(error::from_datafusion)),
            Poll::Pending if self.deadline.as_mut().poll(cx).is_ready() => Some(Err(error::timed_out(self.timeout))),
            Poll::Pending => return Poll::Pending,
        };
        self.ended = !matches!(item, Some(Ok(_)));
        Poll::Ready(item)
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("schema", &self.stream.schema()).finish_non_exhaustive()
    }
}
