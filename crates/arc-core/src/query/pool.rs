//! The memory of queries, as a share of the engine's budget.
//!
//! Keeps DataFusion's rule of who gets how much (operators that can spill share alike) and counts
//! what is granted in the budget, so that a query never gets memory that buffers hold.

use std::{fmt, sync::Arc};

use datafusion::{
    common::Result,
    error::DataFusionError,
    execution::memory_pool::{FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation},
};

use crate::memory::{MemoryBudget, Pressure};

/// Part of the memory of all queries that one operator gets also under pressure.
const LITTLE: usize = 16;

/// See the module.
#[derive(Debug)]
pub(super) struct BudgetedPool {
    fair: FairSpillPool,
    limit: usize,
    budget: Arc<MemoryBudget>,
}

impl BudgetedPool {
    /// A pool of `limit` bytes, as long as `budget` has them.
    pub(super) fn new(limit: usize, budget: Arc<MemoryBudget>) -> Self {
        Self { fair: FairSpillPool::new(limit), limit, budget }
    }

    /// Refuses more than a little where the process holds nearly all that it may: an operator that
    /// can spill does so then.
    fn check_pressure(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let wanted = reservation.size().saturating_add(additional);
        let allowed = match self.budget.pressure() {
            Pressure::None => return Ok(()),
            Pressure::High => self.limit / LITTLE,
            Pressure::Critical => 0,
        };
        if wanted <= allowed {
            return Ok(());
        }
        Err(DataFusionError::ResourcesExhausted(format!(
            "{} holds {} bytes and needs {additional} more, and the process holds nearly all of max_resident_bytes",
            reservation.consumer().name(),
            reservation.size()
        )))
    }
}

impl fmt::Display for BudgetedPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fair.fmt(f)
    }
}

impl MemoryPool for BudgetedPool {
    fn name(&self) -> &str {
        "budgeted"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.fair.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.fair.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.fair.grow(reservation, additional);
        self.budget.take(additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.fair.shrink(reservation, shrink);
        self.budget.give(shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        self.check_pressure(reservation, additional)?;
        // First: its errors name the operator and what it holds.
        self.fair.try_grow(reservation, additional)?;
        if self.budget.try_take(additional) {
            return Ok(());
        }
        self.fair.shrink(reservation, additional);
        Err(DataFusionError::ResourcesExhausted(format!(
            "{} needs {additional} bytes more, and unflushed points and other queries hold {} of the {} bytes of \
             memory_bytes",
            reservation.consumer().name(),
            self.budget.used(),
            self.budget.limit()
        )))
    }

    fn reserved(&self) -> usize {
        self.fair.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_take_from_the_budget_and_give_back() {
        let budget = Arc::new(MemoryBudget::new(100, 0));
        let pool: Arc<dyn MemoryPool> = Arc::new(BudgetedPool::new(60, Arc::clone(&budget)));
        let reservation = MemoryConsumer::new("sort").with_can_spill(true).register(&pool);
        reservation.try_grow(50).unwrap();
        assert_eq!((budget.used(), pool.reserved()), (50, 50));
        assert!(reservation.try_grow(11).is_err(), "above its share");
        assert!(budget.try_take(45));
        let error = reservation.try_grow(6).unwrap_err();
        assert!(matches!(error, DataFusionError::ResourcesExhausted(_)), "{error}");
        assert_eq!((budget.used(), pool.reserved()), (95, 50), "what was refused is not counted");
        reservation.shrink(20);
        reservation.grow(100);
        assert_eq!((budget.used(), pool.reserved()), (175, 130), "what has to be is counted");
        drop(reservation);
        assert_eq!((budget.used(), pool.reserved()), (45, 0));
    }
}
