//! Threads that lend a hand to a large request while there are cores that have nothing to do.
//!
//! Owns those threads, and the count of all that are at work on requests. Nothing ever waits for a
//! thread: a task gets as many as are spare at that moment, and the thread that has it does the
//! rest. Knows nothing of the work.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::sync::{
    Condvar, Mutex,
    thread::{Builder, available_parallelism},
};

/// How long a thread without work stays. What it has freed is the allocator's again once it is
/// gone.
const KEPT: Duration = Duration::from_secs(5);

/// Work that several threads may take a share of.
pub(super) trait SharedWork: Send + Sync {
    /// Does what is left to be done and nothing has begun; that may be nothing.
    fn help(&self);
}

/// See the module.
#[derive(Debug)]
pub(crate) struct DecodePool(Arc<Pool>);

struct Pool {
    cores: usize,
    /// Threads at work on requests, their own and those that were lent.
    busy: AtomicUsize,
    state: Mutex<PoolState>,
    work: Condvar,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("cores", &self.cores).field("busy", &self.busy).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct PoolState {
    tasks: VecDeque<Arc<dyn SharedWork>>,
    /// Threads that wait for a task.
    idle: usize,
    is_closed: bool,
}

impl DecodePool {
    /// DecodePool for as many threads in all as there are cores that this process may use. None of
    /// them is started yet.
    pub(crate) fn new() -> Self {
        Self::with_cores(available_parallelism().map_or(1, usize::from))
    }

    pub(super) fn with_cores(cores: usize) -> Self {
        Self(Arc::new(Pool { cores, busy: AtomicUsize::new(0), state: Mutex::default(), work: Condvar::new() }))
    }

    /// Counts the calling thread among those at work, until the answer is dropped.
    pub(crate) fn at_work(&self) -> BusyThread<'_> {
        self.0.busy.fetch_add(1, Ordering::Relaxed);
        BusyThread(&self.0.busy)
    }

    /// Takes up to `most` threads that are spare, given that `others` are at work that are not
    /// counted here.
    pub(super) fn borrow(&self, most: usize, others: usize) -> Option<Lease<'_>> {
        let mut count = 0;
        let take = |busy: usize| {
            count = self.0.cores.saturating_sub(busy + others).min(most);
            (count > 0).then_some(busy + count)
        };
        self.0.busy.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        Some(Lease { pool: &self.0, count })
    }
}

impl Drop for DecodePool {
    fn drop(&mut self) {
        self.0.state.lock().is_closed = true;
        self.0.work.notify_all();
    }
}

/// A thread that is counted as at work.
#[derive(Debug)]
pub(crate) struct BusyThread<'h>(&'h AtomicUsize);

impl Drop for BusyThread<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Threads that are reserved for a task.
pub(super) struct Lease<'h> {
    pool: &'h Arc<Pool>,
    count: usize,
}

impl Lease<'_> {
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Has the threads help with `task`. Each is spare again when it finds nothing left to do.
    pub(super) fn help(mut self, task: &Arc<dyn SharedWork>) {
        let mut state = self.pool.state.lock();
        while self.count > 0 {
            if state.tasks.len() >= state.idle && !self.pool.start_thread() {
                // The rest is given back.
                break;
            }
            state.tasks.push_back(Arc::clone(task));
            self.count -= 1;
            self.pool.work.notify_one();
        }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.pool.busy.fetch_sub(self.count, Ordering::Relaxed);
    }
}

impl Pool {
    fn start_thread(self: &Arc<Self>) -> bool {
        let pool = Arc::clone(self);
        Builder::new().name("arc-decode".into()).spawn(move || pool.run()).is_ok()
    }

    fn run(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(task) = state.tasks.pop_front() {
                drop(state);
                let at_work = BusyThread(&self.busy);
                task.help();
                drop(task);
                drop(at_work);
                state = self.state.lock();
            } else if state.is_closed {
                return;
            } else {
                state.idle += 1;
                let is_over = self.work.wait_for(&mut state, KEPT).timed_out();
                state.idle -= 1;
                if is_over && state.tasks.is_empty() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// Tells that a thread has come, and from where.
    struct Tell(Mutex<Sender<Option<String>>>);

    impl SharedWork for Tell {
        fn help(&self) {
            self.0.lock().send(std::thread::current().name().map(str::to_owned)).unwrap();
        }
    }

    #[test]
    fn only_what_is_spare_is_lent() {
        let decode_pool = DecodePool::with_cores(4);
        let lent = |most, others| decode_pool.borrow(most, others).map_or(0, |lease| lease.count());
        assert_eq!([lent(9, 0), lent(2, 0), lent(9, 3), lent(9, 4), lent(9, 9)], [4, 2, 1, 0, 0]);
        let at_work = decode_pool.at_work();
        assert_eq!(lent(9, 0), 3);
        let lease = decode_pool.borrow(2, 0);
        assert_eq!(lent(9, 0), 1, "what is lent is not spare");
        drop((lease, at_work));
        assert_eq!(lent(9, 0), 4, "what comes back is");
        assert_eq!(DecodePool::with_cores(1).borrow(1, 1).map(|lease| lease.count()), None);
    }

    #[test]
    fn each_lent_thread_helps() {
        let decode_pool = DecodePool::with_cores(3);
        let (sender, told) = channel();
        let task: Arc<dyn SharedWork> = Arc::new(Tell(Mutex::new(sender)));
        decode_pool.borrow(2, 0).unwrap().help(&task);
        drop((decode_pool, task));
        // All of them, for the task ends with the last.
        assert_eq!(told.iter().collect::<Vec<_>>(), vec![Some("arc-decode".to_owned()); 2]);
    }
}
