//! Does a piece of work for each of some items, on a few threads.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::{
    Error, Result,
    sync::{Mutex, thread},
};

/// Works on all items, in order where there is one tool, and on as many threads as there are tools:
/// the caller's is one.
///
/// A thread that is done takes the next item: a thread that gets no processor holds up no more than
/// one of them. After an error no further item is begun; the first one is returned.
pub(super) fn for_each<I: Send, T: Send>(
    items: impl Iterator<Item = I> + Send,
    tools: &mut [T],
    work: impl Fn(I, &mut T) -> Result<()> + Sync,
) -> Result<()> {
    let Some((mine, others)) = tools.split_first_mut() else {
        return Err(Error::internal("there is nothing to work with"));
    };
    let (items, failed, work) = (Mutex::new(items), AtomicBool::new(false), &work);
    let work_on = |tool: &mut T| {
        let next = || items.lock().next().filter(|_| !failed.load(Ordering::Relaxed));
        while let Some(item) = next() {
            work(item, tool).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = others.iter_mut().map(|tool| scope.spawn(|| work_on(tool))).collect();
        let mut result = work_on(mine);
        for thread in threads {
            // A panic goes on in the thread that called.
            let other = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result = result.and(other);
        }
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_worked_on_once_whatever_the_threads() {
        for threads in [1, 2, 5] {
            let mut tools = vec![0_u64; threads];
            let mut items: Vec<u64> = vec![1; 100];
            for_each(items.iter_mut(), &mut tools, |item, tool| {
                *item += 1;
                *tool += 1;
                Ok(())
            })
            .unwrap();
            assert_eq!((items, tools.iter().sum::<u64>()), (vec![2; 100], 100));
        }
    }

    #[test]
    fn an_error_is_told_and_ends_the_work() {
        for threads in [1, 3] {
            let done = Mutex::new(0);
            let error = for_each(0..1_000_000, &mut vec![(); threads], |item, ()| {
                *done.lock() += 1;
                if item % 10 == 3 { Err(Error::internal("refused")) } else { Ok(()) }
            });
            assert!(error.unwrap_err().to_string().contains("refused"));
            assert!(*done.lock() <= 10 * threads);
        }
        assert!(for_each(0..1, &mut Vec::<()>::new(), |_, ()| Ok(())).is_err());
    }
}
