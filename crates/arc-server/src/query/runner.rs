//! The threads that queries run on, and the way of an answer from there to its connection.
//!
//! Planning a query, running it and encoding its rows all take the processor, some operators for seconds without a
//! pause. So they have threads of their own: those that serve connections, and so writes, `/health` and everybody's
//! timers, never run a query. An answer crosses over in pieces, few of them ahead of the client.
//!
//! Owns the time limit as clients see it. Never looks into a query or a piece.

use std::{
    future::Future,
    io,
    num::NonZero,
    sync::{Arc, Mutex},
    thread::available_parallelism,
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    runtime::{Builder, Handle, Runtime},
    sync::{OwnedSemaphorePermit, mpsc},
    task::JoinHandle,
    time::{Instant, timeout_at},
};

use super::{idle::QueryCount, listed::Listed};
use crate::{allocator, errors::Failure};

/// Pieces that may wait for the client; more would only take memory.
const PIECES_AHEAD: usize = 1;

/// Threads for each core that wait for the disk. Each keeps some memory for its next read: with as many as tokio allows,
/// 44 of them kept 90 MiB.
const READERS: usize = 2;
/// How long one of them waits for work before it ends, and gives that back.
const READER_IDLE: Duration = Duration::from_millis(500);

/// Encoded bytes of an answer.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) bytes: Bytes,
    pub(super) is_last: bool,
}

/// Where a query puts the pieces of its answer; a failure is the last thing that is sent.
pub(crate) type PieceSender<T> = mpsc::Sender<Result<T, Failure>>;

/// The threads that queries run on.
#[derive(Debug)]
pub(crate) struct Runner {
    threads: Handle,
    runtime: Mutex<Option<Runtime>>,
    running: Arc<QueryCount>,
    timeout: Duration,
}

impl Runner {
    /// Starts the threads; from now on a query may take as long as `timeout`.
    ///
    /// There are as many as cores, but two at least, so that one operator that does not pause cannot hold up all
    /// other queries.
    pub(crate) fn start(timeout: Duration) -> io::Result<Self> {
        let threads = available_parallelism().map_or(2, NonZero::get).max(2);
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .max_blocking_threads(READERS * threads)
            .thread_keep_alive(READER_IDLE)
            .on_thread_park(allocator::give_back)
            .thread_name("arc-query")
            .enable_all()
            .build()?;
        let running = Arc::new(QueryCount::default());
        runtime.spawn(Arc::clone(&running).give_back_when_idle(threads, allocator::give_back_now));
        Ok(Self { threads: runtime.handle().clone(), runtime: Mutex::new(Some(runtime)), running, timeout })
    }

    /// Returns the threads.
    pub(crate) fn threads(&self) -> &Handle {
        &self.threads
    }

    /// Ends all queries without waiting for them: an operator that does not pause must not hold up the stop.
    pub(crate) fn stop(&self) {
        let runtime = self.runtime.lock().ok().and_then(|mut runtime| runtime.take());
        if let Some(runtime) = runtime {
            runtime.shutdown_background();
        }
    }

    /// Runs `query` until it ends, its time is over, it is cancelled as `listed`, or the answer is dropped.
    ///
    /// `slot` is given back when the query has really ended. That is later than its answer if an operator does not
    /// pause; else the queries that run could be more than `max_concurrent_queries`.
    pub(crate) fn run<T, F>(
        &self,
        slot: OwnedSemaphorePermit,
        listed: Arc<Listed>,
        query: impl FnOnce(PieceSender<T>) -> F,
    ) -> Running<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        let (sender, pieces) = mpsc::channel(PIECES_AHEAD);
        let (timeout, deadline) = (self.timeout, Instant::now() + self.timeout);
        let query = query(sender.clone());
        let query = async move {
            if let Err(failure) = query.await {
                // Nobody may be there to hear it.
                let _ = sender.send(Err(failure)).await;
            }
        };
        let (at_work, counted) = (Arc::clone(&listed), self.running.add());
        let task = self.threads.spawn(async move {
            // Also over while it waits for a client that does not read.
            if timeout_at(deadline, at_work.unless_cancelled(query)).await.is_err() {
                tracing::info!(query = %at_work.id, ?timeout, "a query was ended at its time limit");
            }
            drop((slot, at_work, counted));
        });
        Running { pieces, task, listed, deadline, timeout }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        // Dropped as it is, a runtime waits for its threads, which it may not do on threads of another.
        self.stop();
    }
}

/// A query under way, as its connection sees it; dropping it ends the query.
#[derive(Debug)]
pub(crate) struct Running<T> {
    pieces: mpsc::Receiver<Result<T, Failure>>,
    task: JoinHandle<()>,
    listed: Arc<Listed>,
    deadline: Instant,
    timeout: Duration,
}

impl<T> Running<T> {
    /// Returns the next piece, or why there is none. Nothing comes after a failure; what the last piece is the query says
    /// in it.
    pub(crate) async fn next(&mut self) -> Result<T, Failure> {
        // The query ends itself when its time is over, unless an operator does not pause. Then the client is told here.
        match timeout_at(self.deadline, self.listed.unless_cancelled(self.pieces.recv())).await {
            Ok(Err(cancelled)) => Err(cancelled),
            Ok(Ok(Some(piece))) => piece,
            Ok(Ok(None)) if Instant::now() < self.deadline => Err(Failure::bug()),
            _ => Err(arc_core::Error::Timeout { after: self.timeout }.into()),
        }
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.task.abort();
        self.listed.end_work();
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;

    use super::{
        super::listed::{List, NewQuery},
        *,
    };

    const HOUR: Duration = Duration::from_secs(3_600);

    fn listed() -> Arc<Listed> {
        let (caller, most_rows) = (crate::auth::Caller::anybody(), u64::MAX);
        Arc::new(List::default()).add(NewQuery { door: "json", caller, database: "d", sql: "SELECT 1", most_rows })
    }

    fn slots() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(1))
    }

    async fn slot(slots: &Arc<Semaphore>) -> OwnedSemaphorePermit {
        Arc::clone(slots).acquire_owned().await.unwrap()
    }

    /// A query in an operator that does not pause until the returned channel is used or dropped.
    async fn stuck(runner: &Runner, slot: OwnedSemaphorePermit) -> (Running<Chunk>, std::sync::mpsc::Sender<()>) {
        let (go_on, paused) = std::sync::mpsc::channel();
        let (started, is_started) = tokio::sync::oneshot::channel();
        let running = runner.run(slot, listed(), |_sender| async move {
            started.send(()).unwrap();
            let _ = paused.recv();
            Ok(())
        });
        is_started.await.unwrap();
        (running, go_on)
    }

    fn chunk() -> Result<Chunk, Failure> {
        Ok(Chunk { bytes: Bytes::from_static(b"x"), is_last: false })
    }

    #[tokio::test]
    async fn a_query_whose_answer_is_not_read_ends_at_its_time_limit() {
        let (runner, slots) = (Runner::start(Duration::from_millis(1)).unwrap(), slots());
        let mut running = runner.run(slot(&slots).await, listed(), |sender| async move {
            while sender.send(chunk()).await.is_ok() {}
            Ok(())
        });
        let _next = slot(&slots).await;
        // What was on its way arrives; then it is said that there is no more.
        let failure = loop {
            if let Err(failure) = running.next().await {
                break failure;
            }
        };
        assert_eq!(failure.status.as_u16(), 504);
    }

    #[tokio::test]
    async fn an_operator_that_does_not_pause_keeps_its_slot_but_not_its_client() {
        let (runner, slots) = (Runner::start(Duration::from_millis(1)).unwrap(), slots());
        let (mut running, go_on) = stuck(&runner, slot(&slots).await).await;
        assert_eq!(running.next().await.unwrap_err().status.as_u16(), 504);
        drop(running);
        assert_eq!(slots.available_permits(), 0);
        go_on.send(()).unwrap();
        let _next = slot(&slots).await;
    }

    #[tokio::test]
    async fn a_dropped_answer_ends_its_query() {
        let (runner, slots) = (Runner::start(HOUR).unwrap(), slots());
        drop(runner.run(slot(&slots).await, listed(), |_sender: PieceSender<Chunk>| std::future::pending()));
        let _next = slot(&slots).await;
    }

    #[tokio::test]
    async fn a_cancelled_query_ends_while_its_answer_is_not_read() {
        let (runner, slots) = (Runner::start(HOUR).unwrap(), slots());
        let listed = listed();
        let mut running = runner.run(slot(&slots).await, Arc::clone(&listed), |sender| async move {
            while sender.send(chunk()).await.is_ok() {}
            Ok(())
        });
        listed.cancel();
        let _next = slot(&slots).await;
        assert_eq!(running.next().await.unwrap_err().status.as_u16(), 499);
    }

    #[tokio::test]
    async fn a_query_that_panics_is_a_bug_and_frees_its_slot() {
        let (runner, slots) = (Runner::start(HOUR).unwrap(), slots());
        let query = |_sender: PieceSender<Chunk>| async { panic!("a bug") };
        let mut running = runner.run(slot(&slots).await, listed(), query);
        assert_eq!(running.next().await.unwrap_err().status.as_u16(), 500);
        let _next = slot(&slots).await;
    }

    #[tokio::test]
    async fn a_stop_does_not_wait_for_queries() {
        let (runner, slots) = (Runner::start(HOUR).unwrap(), slots());
        let (running, go_on) = stuck(&runner, slot(&slots).await).await;
        runner.stop();
        drop(runner);
        assert_eq!(slots.available_permits(), 0);
        drop((running, go_on));
        let _next = slot(&slots).await;
    }
}
