//! The rows that answer a statement, as a stream.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use datafusion::{execution::SendableRecordBatchStream, physical_plan::EmptyRecordBatchStream};
use futures::{Stream, StreamExt, TryStreamExt};
use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep, interval, sleep_until};

use super::{ScannedFiles, account::Account, dictionaries::Dictionaries, error};
use crate::Result;

/// How often a query asks whether the process has too little memory left for it.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The answer to one SQL statement: a stream of record batches that all have [`Answer::schema`].
///
/// Rows are computed while the stream is read; dropping it stops the work and frees its memory.
pub struct Answer {
    stream: SendableRecordBatchStream,
    dictionaries: Dictionaries,
    deadline: Pin<Box<Sleep>>,
    timeout: Duration,
    account: Account,
    /// When it is time to ask whether this query has to end.
    look: Interval,
    ended: bool,
    files: ScannedFiles,
}

impl Answer {
    pub(super) fn new(
        stream: SendableRecordBatchStream,
        files: ScannedFiles,
        deadline: Instant,
        timeout: Duration,
        account: Account,
    ) -> Self {
        let mut look = interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let dictionaries = Dictionaries::of(&stream.schema());
        let deadline = Box::pin(sleep_until(deadline));
        Self { stream, dictionaries, deadline, timeout, account, look, ended: false, files }
    }

    /// Returns the columns of the answer.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }

    /// Returns how many data files are read for the answer.
    #[must_use]
    pub fn scanned_files(&self) -> ScannedFiles {
        self.files
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
        // A stream that is always ready leaves the timer no chance to fire, so the clock is asked, too.
        let is_late = Instant::now() >= self.deadline.deadline() || self.deadline.as_mut().poll(cx).is_ready();
        let item = if is_late {
            Some(Err(error::timed_out(self.timeout)))
        } else if self.must_end(cx) {
            tracing::warn!("a query was ended: the process holds nearly all of max_resident_bytes");
            Some(Err(error::busy(
                "the process has hardly any memory left (max_resident_bytes), and this query held most",
            )))
        } else {
            ready!(self.poll_stream(cx))
        };
        self.ended = !matches!(item, Some(Ok(_)));
        if self.ended {
            // Gives back at once what the plan holds.
            self.stream = Box::pin(EmptyRecordBatchStream::new(self.stream.schema()));
        }
        Poll::Ready(item)
    }
}

impl Answer {
    /// Asks from time to time; the timer wakes the reader for it.
    fn must_end(&mut self, cx: &mut Context<'_>) -> bool {
        self.look.poll_tick(cx).is_ready() && {
            // Once more, so that the next tick is waited for.
            let _ = self.look.poll_tick(cx);
            self.account.must_end()
        }
    }

    /// Polls the plan, in which a bug of a library must not end the caller's thread.
    fn poll_stream(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        match catch_unwind(AssertUnwindSafe(|| self.stream.poll_next_unpin(cx))) {
            Ok(polled) => {
                polled.map(|item| item.map(|batch| self.dictionaries.distinct(batch.map_err(error::from_datafusion)?)))
            }
            Err(panic) => Poll::Ready(Some(Err(error::panicked(&*panic)))),
        }
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("schema", &self.stream.schema()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::Schema;
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use futures::stream;

    use super::{super::account::Accounts, *};
    use crate::{Error, memory::MemoryBudget};

    fn answer<S>(batches: S, deadline: Instant) -> Answer
    where
        S: Stream<Item = datafusion::common::Result<RecordBatch>> + Send + 'static,
    {
        let stream = RecordBatchStreamAdapter::new(Arc::new(Schema::empty()), batches);
        let account = Accounts::new(Arc::new(MemoryBudget::new(1 << 20, 0))).open();
        Answer::new(Box::pin(stream), ScannedFiles::default(), deadline, Duration::from_secs(7), account)
    }

    #[tokio::test]
    async fn an_answer_past_its_deadline_fails_once_whether_it_is_waiting_or_busy() {
        let empty = RecordBatch::new_empty(Arc::new(Schema::empty()));
        let busy = answer(stream::repeat_with(move || Ok(empty.clone())), Instant::now());
        let waiting = answer(stream::pending(), Instant::now());
        for mut answer in [busy, waiting] {
            let error = loop {
                if let Err(error) = answer.next().await.unwrap() {
                    break error;
                }
            };
            assert_eq!(error.to_string(), "query timed out after 7 s");
            assert!(answer.next().await.is_none());
        }
    }

    #[tokio::test]
    async fn a_panic_below_is_an_error() {
        let later = Instant::now() + Duration::from_secs(3_600);
        let mut answer = answer(stream::poll_fn(|_| panic!("library bug")), later);
        let error = answer.next().await.unwrap().unwrap_err();
        assert!(matches!(&error, Error::Internal { reason } if reason.contains("library bug")), "{error}");
        assert!(answer.next().await.is_none());
    }
}
