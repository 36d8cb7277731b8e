//! The threads that serve connections: each keeps those that it was given.
//!
//! A request is then read, decoded and answered by one thread, and no other is woken to share the work: that was half of the
//! processor time of a request (docs/performance.md). Decides nothing but which thread a connection goes to.

use std::{
    cell::RefCell,
    io,
    sync::Arc,
    thread::{self, Builder, JoinHandle},
    time::Duration,
};

use tokio::{
    runtime::{self, Handle},
    sync::{Notify, oneshot},
};

use crate::{allocator, cli::WORKER_IDLE};

/// How long connections that come to rest are waited for before their memory is given back together.
const GIVE_BACK_AFTER: Duration = Duration::from_millis(500);

thread_local! {
    /// Told of connections that came to rest on this thread.
    static RESTED: RefCell<Option<Arc<Notify>>> = const { RefCell::new(None) };
}

/// Has this thread give back the memory of a connection that has come to rest. The allocator would keep it until the thread
/// frees something else, which a thread of connections at rest does not.
pub(crate) fn note_rest() {
    RESTED.with_borrow(|rested| rested.iter().for_each(|rested| rested.notify_one()));
}

/// See the module. Dropping it ends the threads and waits for the blocking work that their requests have begun.
#[derive(Debug)]
pub(crate) struct Workers(Vec<Worker>);

#[derive(Debug)]
struct Worker {
    runtime: Handle,
    /// One clone for each connection.
    open: Arc<()>,
    /// Dropped to end the thread.
    ends: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A connection's lease of its worker.
#[derive(Debug)]
pub(crate) struct Lease(#[expect(dead_code, reason = "counts while it lives")] Arc<()>);

impl Workers {
    /// Starts a thread for each processor.
    pub(crate) fn start() -> io::Result<Self> {
        let count = thread::available_parallelism().map_or(1, usize::from);
        (0..count).map(|_| Worker::start()).collect::<io::Result<_>>().map(Self)
    }

    /// Returns the thread with the fewest connections, and a lease of it.
    pub(crate) fn lease(&self) -> Option<(&Handle, Lease)> {
        let worker = self.0.iter().min_by_key(|worker| Arc::strong_count(&worker.open))?;
        Some((&worker.runtime, Lease(Arc::clone(&worker.open))))
    }
}

impl Worker {
    fn start() -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .thread_keep_alive(WORKER_IDLE)
            .on_thread_park(allocator::give_back)
            .build()?;
        let handle = runtime.handle().clone();
        let (ends, ended) = oneshot::channel::<()>();
        let thread = Builder::new().name("arc-http".into()).spawn(move || {
            let rested = Arc::new(Notify::new());
            RESTED.set(Some(Arc::clone(&rested)));
            runtime.block_on(async {
                tokio::select! {
                    // Nothing is ever sent.
                    _ = ended => {}
                    () = give_back(&rested) => {}
                }
            });
        })?;
        Ok(Self { runtime: handle, open: Arc::default(), ends: Some(ends), thread: Some(thread) })
    }
}

/// Never ends.
async fn give_back(rested: &Notify) {
    loop {
        rested.notified().await;
        tokio::time::sleep(GIVE_BACK_AFTER).await;
        allocator::give_back_now();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.ends = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("a thread for connections died");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_goes_where_the_fewest_are() {
        let workers = Workers((0..3).map(|_| Worker::start().unwrap()).collect());
        let ids = workers.0.iter().map(|worker| worker.runtime.id()).collect::<Vec<_>>();
        let lease = || {
            let (runtime, lease) = workers.lease().unwrap();
            (ids.iter().position(|id| *id == runtime.id()).unwrap(), lease)
        };
        let mut leases: Vec<_> = (0..6).map(|_| lease()).collect();
        assert_eq!(leases.iter().map(|(worker, _)| *worker).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2]);
        leases.remove(4);
        assert_eq!(lease().0, 1);
    }
}
