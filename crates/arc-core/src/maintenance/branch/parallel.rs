//! Doing one thing with many, several at a time: a store answers many requests at once, each of them late.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{
    Result,
    sync::{Mutex, thread},
};

/// How many at a time, where that helps.
pub(super) const WORKERS: usize = 8;

/// Calls `act` with each of `items`, on `workers` threads; `start` makes what each of them has for itself,
/// and `end` gets it back. The first error ends all.
pub(super) fn for_each<T: Sync, W>(
    (items, workers): (&[T], usize),
    start: impl Fn() -> W + Sync,
    act: impl Fn(&mut W, &T) -> Result<()> + Sync,
    end: impl Fn(W) -> Result<()> + Sync,
) -> Result<()> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    let take = || items.get(next.fetch_add(1, Ordering::Relaxed)).filter(|_| failed.lock().is_none());
    let run = || {
        let mut own = start();
        while let Some(item) = take() {
            act(&mut own, item)?;
        }
        end(own)
    };
    let work = || {
        if let Err(error) = run() {
            failed.lock().get_or_insert(error);
        }
    };
    thread::scope(|scope| {
        for _ in 1..workers.min(items.len()) {
            scope.spawn(work);
        }
        work();
    });
    failed.into_inner().map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn each_is_taken_once_and_the_first_error_ends_all() {
        let items: Vec<u64> = (0..100).collect();
        let (sum, workers) = (Mutex::new(0), AtomicUsize::new(0));
        let add = |own: &mut u64, item: &u64| {
            *own += item;
            Ok(())
        };
        let end = |own| {
            *sum.lock() += own;
            workers.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        for_each((&items, WORKERS), || 0, add, end).unwrap();
        assert_eq!((*sum.lock(), workers.load(Ordering::Relaxed)), (4950, WORKERS));
        for_each((&[] as &[u64], WORKERS), || 0, add, end).unwrap();
        let taken = AtomicUsize::new(0);
        let fail = |_: &mut (), item: &u64| {
            taken.fetch_add(1, Ordering::Relaxed);
            if *item == 3 { Err(Error::internal("three")) } else { Ok(()) }
        };
        let error = for_each((&items, WORKERS), || (), fail, Ok).unwrap_err();
        assert!(error.to_string().contains("three"), "{error}");
        assert!(taken.load(Ordering::Relaxed) >= 1);
        let taken = Mutex::new(Vec::new());
        let note = |_: &mut (), item: &u64| {
            taken.lock().push(*item);
            Ok(())
        };
        for_each((&items, 1), || (), note, Ok).unwrap();
        assert_eq!(taken.into_inner(), items, "one alone keeps the order");
    }
}
