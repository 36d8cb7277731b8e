//! The threads that serve connections: each keeps those that it was given.
//!
//! A request is then read, decoded and answered by one thread, and no other is woken to share the work: that was half of the
//! processor time of a request (docs/profile.md). Decides nothing but which thread a connection goes to.

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
pub(crate) struct Lanes(Vec<Lane>);

#[derive(Debug)]
struct Lane {
    runtime: Handle,
    /// One clone for each connection.
    open: Arc<()>,
    /// Dropped to end the thread.
    ends: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A connection's place in its lane.
#[derive(Debug)]
pub(crate) struct Place(#[expect(dead_code, reason = "counts while it lives")] Arc<()>);

impl Lanes {
    /// Starts a thread for each processor.
    pub(crate) fn start() -> io::Result<Self> {
        let count = thread::available_parallelism().map_or(1, usize::from);
        (0..count).map(|_| Lane::start()).collect::<io::Result<_>>().map(Self)
    }

    /// Returns the thread with the fewest connections, and a place on it.
    pub(crate) fn place(&self) -> Option<(&Handle, Place)> {
        let lane = self.0.iter().min_by_key(|lane| Arc::strong_count(&lane.open))?;
        Some((&lane.runtime, Place(Arc::clone(&lane.open))))
    }
}

impl Lane {
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

impl Drop for Lane {
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
        let lanes = Lanes((0..3).map(|_| Lane::start().unwrap()).collect());
        let ids = lanes.0.iter().map(|lane| lane.runtime.id()).collect::<Vec<_>>();
        let place = || {
            let (runtime, place) = lanes.place().unwrap();
            (ids.iter().position(|id| *id == runtime.id()).unwrap(), place)
        };
        let mut places: Vec<_> = (0..6).map(|_| place()).collect();
        assert_eq!(places.iter().map(|(lane, _)| *lane).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2]);
        places.remove(4);
        assert_eq!(place().0, 1);
    }
}
