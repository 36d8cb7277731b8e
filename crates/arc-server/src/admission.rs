//! Memory for request bodies, from their first byte until the engine has taken or refused their points.
//!
//! The engine's budget begins where a write is queued. Before that its body is read, decompressed and decoded, by as many
//! connections as there are: this holds back those for whom there is none left. What has come is counted, never what is
//! announced. Small bodies have a share of their own, so that large ones which wait do not hold them up. Never looks into
//! a body.

use std::{sync::Arc, time::Duration};

use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::errors::Failure;

/// Bytes of one permit.
const UNIT: usize = 1 << 10;
/// Most bytes of a body that may use the share of the small ones.
const SMALL_BYTES: usize = 64 << 10;
/// The reservation of a larger body grows by this much at a time, so that not each piece of it has to ask.
const STEP_UNITS: u32 = 256;

/// All the memory for bodies, or the disk for uploads.
#[derive(Debug)]
pub(crate) struct Budget {
    small: Arc<Semaphore>,
    large: Arc<Semaphore>,
    small_units: u32,
    large_units: u32,
    /// One permit. The body that has it grows without asking: of bodies that each wait for what another one holds, one goes on
    /// and ends; and so does a body that is larger than all of the budget.
    alone: Arc<Semaphore>,
    patience: Duration,
    full: &'static str,
}

/// What one request has reserved of it, until dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<Budget>,
    small: Option<OwnedSemaphorePermit>,
    large: Option<OwnedSemaphorePermit>,
    alone: Option<OwnedSemaphorePermit>,
}

impl Budget {
    /// Returns a budget of `bytes`, for which a request waits as long as `patience`; where there is none, `full` says what is.
    pub(crate) fn new(bytes: usize, patience: Duration, full: &'static str) -> Arc<Self> {
        let all = u32::try_from((bytes / UNIT).clamp(4, Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        let small_units = all / 4;
        let large_units = all - small_units;
        let semaphore = |units: u32| Arc::new(Semaphore::new(units as usize));
        let (small, large) = (semaphore(small_units), semaphore(large_units));
        Arc::new(Self { small, large, small_units, large_units, alone: semaphore(1), patience, full })
    }

    /// Reserves nothing yet.
    pub(crate) fn enter(self: &Arc<Self>) -> Reservation {
        Reservation { budget: Arc::clone(self), small: None, large: None, alone: None }
    }
}

impl Reservation {
    /// Waits until `bytes` in all are reserved.
    pub(crate) async fn grow_to(&mut self, bytes: usize) -> Result<(), Failure> {
        if self.grows_at_once(bytes) {
            return Ok(());
        }
        let (budget, units) = (Arc::clone(&self.budget), units_of(bytes));
        // Nobody closes the semaphores.
        let waited = timeout(budget.patience, async {
            if self.is_small(bytes) {
                let more = Arc::clone(&budget.small).acquire_many_owned(units - held(self.small.as_ref())).await;
                return more.map(|more| keep(&mut self.small, more));
            }
            let alone = Arc::clone(&budget.alone).acquire_owned();
            if units > budget.large_units {
                return alone.await.map(|alone| self.alone = Some(alone));
            }
            let more = Arc::clone(&budget.large).acquire_many_owned(units - held(self.large.as_ref()));
            tokio::select! {
                more = more => more.map(|more| self.is_large(more)),
                alone = alone => alone.map(|alone| self.alone = Some(alone)),
            }
        });
        match waited.await {
            Ok(Ok(())) => Ok(()),
            _ => Err(Failure::busy(budget.full, Duration::from_secs(1))),
        }
    }

    /// The same for a thread that may block.
    pub(crate) fn grow_blocking(&mut self, bytes: usize) -> Result<(), Failure> {
        if self.grows_at_once(bytes) { Ok(()) } else { Handle::current().block_on(self.grow_to(bytes)) }
    }

    /// Gives back what is more than `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let units = units_of(bytes);
        for part in [&mut self.small, &mut self.large] {
            let surplus = held(part.as_ref()).saturating_sub(units) as usize;
            // Dropped at once.
            let _ = part.as_mut().and_then(|part| part.split(surplus));
        }
        if units <= held(self.large.as_ref()) {
            self.alone = None;
        }
    }

    /// Gives all of it back.
    pub(crate) fn give_up(&mut self) {
        (self.small, self.large, self.alone) = (None, None, None);
    }

    fn is_small(&self, bytes: usize) -> bool {
        bytes <= SMALL_BYTES && self.large.is_none() && units_of(bytes) <= self.budget.small_units
    }

    /// Grows if that needs no waiting.
    fn grows_at_once(&mut self, bytes: usize) -> bool {
        let units = units_of(bytes);
        if self.alone.is_some() {
            return true;
        }
        if self.is_small(bytes) {
            let missing = units.saturating_sub(held(self.small.as_ref()));
            if missing == 0 {
                return true;
            }
            if let Ok(more) = Arc::clone(&self.budget.small).try_acquire_many_owned(missing) {
                keep(&mut self.small, more);
                return true;
            }
        }
        let held = held(self.large.as_ref());
        if units <= held {
            return self.large.is_some();
        }
        // Some more than is needed now; or else no more than that.
        let ahead = if bytes > SMALL_BYTES { units.next_multiple_of(STEP_UNITS) } else { units };
        let take = |wanted: u32| Arc::clone(&self.budget.large).try_acquire_many_owned(wanted - held).ok();
        let more = take(ahead).or_else(|| take(units));
        more.map(|more| self.is_large(more)).is_some()
    }

    /// Adds to the reservation of a body that is a large one from now on.
    fn is_large(&mut self, more: OwnedSemaphorePermit) {
        keep(&mut self.large, more);
        self.small = None;
    }
}

fn units_of(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).min(u32::MAX - STEP_UNITS)
}

fn held(part: Option<&OwnedSemaphorePermit>) -> u32 {
    part.map_or(0, |part| u32::try_from(part.num_permits()).unwrap_or(u32::MAX))
}

fn keep(part: &mut Option<OwnedSemaphorePermit>, more: OwnedSemaphorePermit) {
    match part {
        Some(part) => part.merge(more),
        part => *part = Some(more),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1 << 10;

    fn budget(kib: usize) -> Arc<Budget> {
        Budget::new(kib * KIB, Duration::from_millis(1), "full")
    }

    async fn grown(budget: &Arc<Budget>, kib: usize) -> Result<Reservation, u16> {
        let mut reservation = budget.enter();
        reservation.grow_to(kib * KIB).await.map(|()| reservation).map_err(|failure| failure.status.as_u16())
    }

    #[tokio::test]
    async fn bodies_share_their_budget_and_one_goes_on_alone() {
        let budget = budget(4_000);
        let first = grown(&budget, 2_000).await.unwrap();
        let mut second = grown(&budget, 900).await.unwrap();
        // Nothing is left for a third; it has what one may take beside all others.
        let third = grown(&budget, 2_000).await.unwrap();
        assert_eq!(second.grow_to(2_000 * KIB).await.unwrap_err().status.as_u16(), 503);
        assert_eq!(grown(&budget, 2_000).await.unwrap_err(), 503);
        drop(third);
        second.grow_to(2_000 * KIB).await.unwrap();
        drop((first, second));
        assert!(grown(&budget, 100_000).await.is_ok());
    }

    #[tokio::test]
    async fn bodies_that_wait_for_each_other_end_one_after_the_other() {
        let budget = budget(4_000);
        let mut growing = Vec::new();
        for _ in 0..3 {
            growing.push(grown(&budget, 900).await.unwrap());
        }
        let mut last = growing.pop().unwrap();
        last.grow_to(3_000 * KIB).await.unwrap();
        drop(last);
        for mut reservation in growing {
            reservation.grow_to(3_000 * KIB).await.unwrap();
        }
    }

    #[tokio::test]
    async fn small_bodies_are_admitted_while_large_ones_wait() {
        let budget = Budget::new(4_000 * KIB, Duration::from_secs(3_600), "full");
        let _held = [grown(&budget, 2_900).await.unwrap(), grown(&budget, 2_900).await.unwrap()];
        let waiting = tokio::spawn({
            let budget = Arc::clone(&budget);
            async move { grown(&budget, 1_000).await }
        });
        tokio::task::yield_now().await;
        let mut small = Vec::new();
        for _ in 0..(1_000 / 64) {
            small.push(grown(&budget, 64).await.unwrap());
        }
        assert!(!waiting.is_finished());
        waiting.abort();
    }

    #[tokio::test]
    async fn what_is_given_back_others_may_have() {
        let budget = budget(4_000);
        let mut reservation = grown(&budget, 2_900).await.unwrap();
        let mut alone = grown(&budget, 50_000).await.unwrap();
        assert!(grown(&budget, 2_000).await.is_err());
        reservation.shrink_to(500 * KIB);
        let other = grown(&budget, 2_000).await.unwrap();
        drop(other);
        alone.shrink_to(0);
        assert!(grown(&budget, 50_000).await.is_ok());
        reservation.give_up();
        assert!(reservation.grow_to(3_000 * KIB).await.is_ok());
    }

    #[tokio::test]
    async fn a_thread_that_may_block_waits_as_well() {
        let budget = budget(4_000);
        let (mut reservation, _alone) = (grown(&budget, 2_000).await.unwrap(), grown(&budget, 50_000).await.unwrap());
        let grown = tokio::task::spawn_blocking(move || {
            reservation.grow_blocking(2_900 * KIB).unwrap();
            reservation.grow_blocking(9_000 * KIB).unwrap_err().status.as_u16()
        });
        assert_eq!(grown.await.unwrap(), 503);
    }
}
