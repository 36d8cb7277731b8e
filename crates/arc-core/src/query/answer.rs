//! The rows that answer a statement, as a stream.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use datafusion::{execution::SendableRecordBatchStream, physical_plan::EmptyRecordBatchStream};
use futures::{Stream, StreamExt, TryStreamExt};
use parking_lot::Mutex;
use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep, interval, sleep_until};

use super::{
    ScannedFiles,
    account::{Account, ENDED},
    coop::Over,
    dictionaries::Dictionaries,
    error,
};
use crate::{Error, Result};

/// How often a query asks whether the process has too little memory left for it.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How often that is asked for a query whose reader asks for nothing.
const WATCH_EVERY: Duration = Duration::from_millis(50);

/// The answer to one SQL statement: a stream of record batches that all have [`Answer::schema`].
///
/// Rows are computed while the stream is read; dropping it stops the work and frees its memory.
pub struct Answer {
    schema: SchemaRef,
    work: Arc<Work>,
    dictionaries: Dictionaries,
    deadline: Pin<Box<Sleep>>,
    timeout: Duration,
    /// Whether the time of the reader does not count, and how much is left while it has rows.
    reader_time: Option<ReaderTime>,
    /// When it is time to ask whether this query has to end.
    look: Interval,
    ended: bool,
    files: ScannedFiles,
}

/// The time of a reader, which does not count.
#[derive(Debug, Clone, Copy)]
enum ReaderTime {
    /// It has rows, or has not begun; so much time is left for the work.
    Own(Duration),
    /// It waits for rows.
    Waits,
}

/// Ends the work of an [`Answer`], whoever reads it.
#[derive(Debug, Clone)]
pub struct AnswerEnder(Over);

impl AnswerEnder {
    /// Ends the work soon; if a caller still reads the answer, an error tells that it has ended.
    pub fn end(&self) {
        self.0.set();
    }
}

/// The plan while it runs.
struct Work {
    stream: Mutex<SendableRecordBatchStream>,
    account: Account,
    /// Whether it was ended while nothing read.
    ended: AtomicBool,
}

impl Work {
    /// Gives back at once what the plan holds, unless the reader is at it, who looks for himself.
    fn end(&self) -> bool {
        let Some(mut stream) = self.stream.try_lock() else { return false };
        *stream = Box::pin(EmptyRecordBatchStream::new(stream.schema()));
        true
    }

    /// Ends the work of an answer that nothing reads, where its time is over or the process has no
    /// memory left for it.
    async fn watch(work: Weak<Self>) {
        let mut look = interval(WATCH_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            look.tick().await;
            let Some(work) = work.upgrade() else { return };
            let must_end = work.account.must_end();
            if must_end {
                work.ended.store(true, Ordering::Relaxed);
            }
            if must_end || work.account.over().is_late() {
                work.account.over().set();
                if work.end() {
                    return;
                }
            }
        }
    }
}

impl Answer {
    /// Must be called within a tokio runtime.
    pub(super) fn new(
        stream: SendableRecordBatchStream,
        files: ScannedFiles,
        timeout: Duration,
        account: Account,
    ) -> Self {
        let mut look = interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let schema = stream.schema();
        let dictionaries = Dictionaries::of(&schema);
        let deadline = Box::pin(sleep_until(account.deadline()));
        let work = Arc::new(Work { stream: Mutex::new(stream), account, ended: AtomicBool::new(false) });
        tokio::spawn(Work::watch(Arc::downgrade(&work)));
        Self { schema, work, dictionaries, deadline, timeout, reader_time: None, look, ended: false, files }
    }

    /// Returns the columns of the answer.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// let answer = engine.sql("plant", "SELECT time, rpm FROM pump").await?;
    /// assert_eq!(answer.schema().field(1).name(), "rpm"); // known before the first row is
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Returns how many data files are read for the answer.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// engine.flush()?;
    /// let answer = engine.sql("plant", "SELECT * FROM pump WHERE time > now()").await?;
    /// println!("{:?}", answer.scanned_files());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn scanned_files(&self) -> ScannedFiles {
        self.files
    }

    /// Returns what ends the work from elsewhere: dropping an answer that another thread reads at
    /// the time has to wait for an operator that does not pause.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// let answer = engine.sql("plant", "SELECT * FROM pump").await?;
    /// let ender = answer.ender();
    /// let reader = tokio::spawn(answer.collect());
    /// ender.end(); // as soon as no caller wants the rows any more
    /// match reader.await? {
    ///     Ok(batches) => println!("all {} batches were there before", batches.len()),
    ///     Err(error) => println!("{error}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn ender(&self) -> AnswerEnder {
        AnswerEnder(self.work.account.over().clone())
    }

    /// Has [`Options::query_timeout`](crate::Options::query_timeout) count only while rows are asked for, and not what the
    /// reader does between them.
    ///
    /// For a reader in this process. A client elsewhere would hold the memory of its query as long as it likes.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use futures::StreamExt as _;
    ///
    /// let mut answer = engine.sql("plant", "SELECT * FROM pump").await?.with_reader_time();
    /// while let Some(batch) = answer.next().await {
    ///     println!("{} rows, for which there is an hour", batch?.num_rows());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_reader_time(mut self) -> Self {
        self.leave_to_reader();
        self
    }

    /// Stops the clock.
    fn leave_to_reader(&mut self) {
        let left = self.deadline.deadline().saturating_duration_since(Instant::now());
        self.reader_time = Some(ReaderTime::Own(left));
        self.work.account.over().set_deadline(None);
    }

    /// Lets the clock go on, if it stands still.
    fn take_from_reader(&mut self) {
        if let Some(ReaderTime::Own(left)) = self.reader_time {
            let deadline = Instant::now() + left;
            self.deadline.as_mut().reset(deadline);
            self.work.account.over().set_deadline(Some(deadline));
            self.reader_time = Some(ReaderTime::Waits);
        }
    }

    /// Reads the whole answer into memory.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// let batches = engine.sql("plant", "SELECT * FROM pump").await?.collect().await?;
    /// assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The first error of the stream: the statement failed on its rows, took too long, or ran out
    /// of memory.
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
        self.take_from_reader();
        // A stream that is always ready leaves the timer no chance to fire, so the clock is asked,
        // too.
        let is_late = self.work.account.over().is_late() || self.deadline.as_mut().poll(cx).is_ready();
        let item = if is_late {
            Some(Err(error::timed_out(self.timeout)))
        } else if self.must_end(cx) {
            Some(Err(error::busy(ENDED)))
        } else {
            match ready!(self.poll_stream(cx)) {
                // What it says may be no more than that it was ended, or that its time was over.
                Some(Err(_)) if self.work.ended.load(Ordering::Relaxed) => Some(Err(error::busy(ENDED))),
                Some(Err(_)) if self.work.account.over().is_late() => Some(Err(error::timed_out(self.timeout))),
                item => item,
            }
        };
        if matches!(&item, Some(Err(Error::Busy { reason, .. })) if *reason == ENDED) {
            self.work.account.tell_ended();
        }
        self.ended = !matches!(item, Some(Ok(_)));
        if self.ended {
            self.work.end();
        } else if self.reader_time.is_some() {
            self.leave_to_reader();
        }
        Poll::Ready(item)
    }
}

impl Answer {
    /// Asks from time to time; the timer wakes the reader for it.
    fn must_end(&mut self, cx: &mut Context<'_>) -> bool {
        let is_time = self.look.poll_tick(cx).is_ready() && {
            // Once more, so that the next tick is waited for.
            let _ = self.look.poll_tick(cx);
            self.work.account.must_end()
        };
        is_time || self.work.ended.load(Ordering::Relaxed)
    }

    /// Polls the plan, in which a bug of a library must not end the caller's thread.
    fn poll_stream(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        match catch_unwind(AssertUnwindSafe(|| self.work.stream.lock().poll_next_unpin(cx))) {
            Ok(polled) => {
                polled.map(|item| item.map(|batch| self.dictionaries.distinct(batch.map_err(error::from_datafusion)?)))
            }
            Err(panic) => Poll::Ready(Some(Err(error::panicked(&*panic)))),
        }
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("schema", &self.schema).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Schema;
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use futures::stream;

    use super::{super::account::Accounts, *};
    use crate::memory::MemoryBudget;

    fn answer<S>(batches: S, deadline: Instant) -> Answer
    where
        S: Stream<Item = datafusion::common::Result<RecordBatch>> + Send + 'static,
    {
        let stream = RecordBatchStreamAdapter::new(Arc::new(Schema::empty()), batches);
        let account = Accounts::new(Arc::new(MemoryBudget::new(1 << 20, 0))).open(deadline, usize::MAX);
        Answer::new(Box::pin(stream), ScannedFiles::default(), Duration::from_secs(7), account)
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

    /// A stream that tells when it is let go of.
    fn held(batches: usize) -> (impl Stream<Item = datafusion::common::Result<RecordBatch>> + Send, Weak<()>) {
        let token = Arc::new(());
        let weak = Arc::downgrade(&token);
        let empty = RecordBatch::new_empty(Arc::new(Schema::empty()));
        (stream::repeat_with(move || Arc::clone(&token)).map(move |_| Ok(empty.clone())).take(batches), weak)
    }

    #[tokio::test]
    async fn an_answer_that_nobody_reads_lets_go_of_its_work_at_its_deadline() {
        let (batches, token) = held(usize::MAX);
        let mut answer = answer(batches, Instant::now() + Duration::from_millis(20));
        answer.next().await.unwrap().unwrap();
        while token.strong_count() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(answer.next().await.unwrap().unwrap_err().to_string(), "query timed out after 7 s");
        assert!(answer.next().await.is_none());
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn an_answer_that_nobody_reads_is_ended_where_there_is_no_memory_left() {
        let (batches, token) = held(usize::MAX);
        // One byte is less than any process holds.
        let accounts = Accounts::new(Arc::new(MemoryBudget::new(1 << 20, 1)));
        let account = accounts.open(Instant::now() + Duration::from_secs(3_600), usize::MAX);
        let stream = RecordBatchStreamAdapter::new(Arc::new(Schema::empty()), batches);
        let mut answer = Answer::new(Box::pin(stream), ScannedFiles::default(), Duration::from_secs(7), account);
        while token.strong_count() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(answer.next().await.unwrap().unwrap_err().kind(), crate::ErrorKind::Busy);
        assert!(answer.next().await.is_none());
        assert_eq!(accounts.ended(), 1);
    }

    #[tokio::test]
    async fn the_time_of_a_reader_counts_only_where_it_is_not_its_own() {
        let empty = RecordBatch::new_empty(Arc::new(Schema::empty()));
        let until = Instant::now() + Duration::from_secs(3_600);
        for is_own in [false, true] {
            let empty = empty.clone();
            let mut answer = answer(stream::repeat_with(move || Ok(empty.clone())), until);
            if is_own {
                answer = answer.with_reader_time();
            }
            for _ in 0..2 {
                answer.next().await.unwrap().unwrap();
                // No deadline while it has rows, for what computes beside it looks there.
                assert_eq!(answer.work.account.over().deadline().is_none(), is_own);
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            assert_eq!(answer.deadline.deadline() > until, is_own);
        }
    }

    #[tokio::test]
    async fn a_reader_that_waits_has_no_time_of_its_own() {
        let mut answer = answer(stream::pending(), Instant::now()).with_reader_time();
        assert_eq!(answer.next().await.unwrap().unwrap_err().to_string(), "query timed out after 7 s");
        assert!(answer.next().await.is_none());
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
