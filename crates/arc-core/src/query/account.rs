//! What each running query holds, so that the largest one can be told to end.
//!
//! Owns the list of running queries and the pool that counts for one of them. Never ends a query:
//! each asks for itself.

use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use datafusion::{
    common::{Result, resources_err},
    execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation},
};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::coop::Over;
use crate::memory::{MemoryBudget, Pressure};

/// What a query is told that has to end.
pub(super) const ENDED: &str = "the process has hardly any memory left (max_resident_bytes), and this query held most";

/// What a query is told that holds more than it may itself.
pub(super) const OVER_ITS_LIMIT: &str = "the query needs more memory than its own limit";

/// The queries that run.
#[derive(Debug)]
pub(super) struct Accounts {
    budget: Arc<MemoryBudget>,
    running: Mutex<Vec<Weak<QueryBytes>>>,
    /// How many had to end for the others.
    ended: AtomicU64,
}

/// What one query holds, for all that work for it.
#[derive(Debug)]
pub(super) struct QueryBytes {
    all: Arc<Accounts>,
    bytes: AtomicUsize,
}

/// One running query, until dropped.
#[derive(Debug)]
pub(super) struct Account {
    held: Arc<QueryBytes>,
    /// Most bytes that it may hold.
    most: usize,
    over: Over,
}

impl Drop for Account {
    fn drop(&mut self) {
        self.over.set();
    }
}

impl Accounts {
    pub(super) fn new(budget: Arc<MemoryBudget>) -> Arc<Self> {
        Arc::new(Self { budget, running: Mutex::default(), ended: AtomicU64::new(0) })
    }

    /// Returns whether the process is so near to its limit that no query may begin.
    pub(super) fn is_full(&self) -> bool {
        self.budget.pressure() == Pressure::Critical
    }

    /// Returns how many queries had to end because the process was near its limit.
    pub(super) fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }

    /// Begins a query that has until `deadline`, and may hold `most` bytes.
    pub(super) fn open(self: &Arc<Self>, deadline: Instant, most: usize) -> Account {
        let held = Arc::new(QueryBytes { all: Arc::clone(self), bytes: AtomicUsize::new(0) });
        let mut running = self.running.lock();
        running.retain(|other| other.strong_count() > 0);
        running.push(Arc::downgrade(&held));
        drop(running);
        Account { most, over: Over::new(deadline, Arc::clone(&held)), held }
    }
}

impl QueryBytes {
    /// Returns whether this query has to end: the process is near its limit, and no other one holds
    /// more.
    pub(super) fn must_end(&self) -> bool {
        if self.all.budget.pressure() < Pressure::Critical {
            return false;
        }
        let running = self.all.running.lock();
        let largest = running.iter().filter_map(Weak::upgrade).map(|other| other.bytes.load(Ordering::Relaxed)).max();
        self.bytes.load(Ordering::Relaxed) >= largest.unwrap_or(0)
    }
}

impl Account {
    /// Returns whether this query has to end for the others.
    pub(super) fn must_end(&self) -> bool {
        self.held.must_end()
    }

    /// Says that it was ended for the others.
    pub(super) fn tell_ended(&self) {
        self.held.all.ended.fetch_add(1, Ordering::Relaxed);
        let held = self.held.bytes.load(Ordering::Relaxed);
        tracing::warn!(held, "a query was ended: the process holds nearly all of max_resident_bytes");
    }

    /// Returns when the time of this query is over.
    pub(super) fn deadline(&self) -> Instant {
        // None is for a reader in this process, which has its rows from no other machine.
        self.over.deadline().unwrap_or_else(Instant::now)
    }

    /// Returns what tells the operators of this query that it has ended.
    pub(super) fn over(&self) -> &Over {
        &self.over
    }

    /// Returns a pool that takes from `pool`, and counts for this query what it takes.
    pub(super) fn pool(&self, pool: Arc<dyn MemoryPool>) -> Arc<dyn MemoryPool> {
        Arc::new(CountingPool { pool, held: Arc::clone(&self.held), most: self.most })
    }
}

/// See [`Account::pool`].
#[derive(Debug)]
struct CountingPool {
    pool: Arc<dyn MemoryPool>,
    held: Arc<QueryBytes>,
    most: usize,
}

impl fmt::Display for CountingPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pool.fmt(f)
    }
}

impl MemoryPool for CountingPool {
    fn name(&self) -> &str {
        self.pool.name()
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.pool.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.pool.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.pool.grow(reservation, additional);
        self.held.bytes.fetch_add(additional, Ordering::Relaxed);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.pool.shrink(reservation, shrink);
        self.held.bytes.fetch_sub(shrink, Ordering::Relaxed);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        // An operator that computes in a task of its own asks nothing else.
        if additional > 0 && self.held.must_end() {
            return resources_err!("{ENDED}");
        }
        if self.held.bytes.load(Ordering::Relaxed).saturating_add(additional) > self.most {
            return resources_err!("{OVER_ITS_LIMIT} ({} bytes)", self.most);
        }
        self.pool.try_grow(reservation, additional)?;
        self.held.bytes.fetch_add(additional, Ordering::Relaxed);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.pool.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.pool.memory_limit()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::UnboundedMemoryPool;

    use super::*;

    #[test]
    fn only_the_largest_query_ends_and_only_under_pressure() {
        // One byte is less than any process holds.
        for (resident_limit, is_tight) in [(0, false), (1, cfg!(target_os = "linux"))] {
            let accounts = Accounts::new(Arc::new(MemoryBudget::new(1 << 20, resident_limit)));
            assert_eq!(accounts.is_full(), is_tight);
            let later = Instant::now() + std::time::Duration::from_secs(3_600);
            let (small, large) = (accounts.open(later, usize::MAX), accounts.open(later, usize::MAX));
            let unbounded: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
            let pool = large.pool(unbounded);
            let reservation = MemoryConsumer::new("sort").register(&pool);
            reservation.grow(100);
            reservation.shrink(10);
            // No caller asks an operator that computes in a task of its own, so it asks the pool.
            reservation.try_grow(0).unwrap();
            assert_eq!(reservation.try_grow(1).is_err(), is_tight);
            let other = MemoryConsumer::new("other").register(&small.pool(Arc::new(UnboundedMemoryPool::default())));
            other.try_grow(1).unwrap();
            drop(other);
            reservation.resize(90);
            assert_eq!(large.held.bytes.load(Ordering::Relaxed), 90);
            assert_eq!((small.must_end(), large.must_end()), (false, is_tight));
            // A function that computes for the query asks as well.
            assert_eq!((small.over().check().is_err(), large.over().check().is_err()), (false, is_tight));
            drop((reservation, pool, large));
            assert_eq!(small.must_end(), is_tight, "the largest of those that are left");
        }
    }

    #[test]
    fn a_query_holds_no_more_than_its_own_limit() {
        let accounts = Accounts::new(Arc::new(MemoryBudget::new(1 << 20, 0)));
        let (small, large) = (accounts.open(Instant::now(), 100), accounts.open(Instant::now(), usize::MAX));
        let reservation = |account: &Account| {
            MemoryConsumer::new("sort").register(&account.pool(Arc::new(UnboundedMemoryPool::default())))
        };
        let (first, second, other) = (reservation(&small), reservation(&small), reservation(&large));
        first.try_grow(60).unwrap();
        let error = second.try_grow(41).unwrap_err().to_string();
        assert!(error.contains(OVER_ITS_LIMIT) && error.contains("100 bytes"), "{error}");
        second.try_grow(40).unwrap();
        drop(first);
        second.try_grow(60).unwrap();
        other.try_grow(1_000).unwrap();
    }
}
