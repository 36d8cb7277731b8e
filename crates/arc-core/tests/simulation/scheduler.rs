//! Whether the scheduler finds what it is there for, and does what real locks do.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_core::sync::{
    Condvar, Instant, Mutex, MutexGuard, RwLock,
    schedule::{self, Outcome, Schedule, Strategy},
    thread::{scope, sleep, spawn},
};

const STRATEGIES: [Strategy; 3] =
    [Strategy::Random { one_in: 1 }, Strategy::Random { one_in: 4 }, Strategy::Priorities { changes: 3, within: 30 }];

/// Runs something under many orders; returns how many of them failed, for which the reasons are
/// looked at.
fn failures(work: fn(), why: &str) -> usize {
    let mut count = 0;
    for strategy in STRATEGIES {
        for seed in 0..100 {
            let Outcome { failure, .. } = once(seed, strategy, work);
            if let Some(failure) = failure {
                assert!(failure.contains(why), "{failure}");
                count += 1;
            }
        }
    }
    count
}

fn once(seed: u64, strategy: Strategy, work: impl FnOnce() + Send + 'static) -> Outcome {
    schedule::run(&Schedule { seed, strategy, most_steps: 10_000, slow: None }, work)
}

pub(crate) fn check() {
    finds(two_locks_in_two_orders, "deadlock");
    finds(an_update_that_is_lost, "lost");
    finds(a_reader_that_comes_back_behind_a_writer, "deadlock");
    finds(a_wake_up_that_comes_before_the_wait, "deadlock");
    finds(a_loop_that_does_not_end, "does not end");
    assert_eq!(failures(what_real_locks_do, ""), 0);
    a_seed_is_the_same_each_time();
    println!("the scheduler finds what it is there for");
}

fn finds(work: fn(), why: &str) {
    let found = failures(work, why);
    // Every order fails where the code does not depend on it.
    assert!(found > 0, "{why} was not found");
}

fn two_locks_in_two_orders() {
    let locks = Arc::new((Mutex::new(()), Mutex::new(())));
    let other = Arc::clone(&locks);
    let thread = spawn(move || {
        let _b = other.1.lock();
        let _a = other.0.lock();
    });
    let a = locks.0.lock();
    let b = locks.1.lock();
    drop((a, b));
    thread.join().unwrap();
}

fn an_update_that_is_lost() {
    let count = Arc::new(Mutex::new(0));
    let add = |count: &Mutex<i32>| {
        let seen = *count.lock();
        *count.lock() = seen + 1;
    };
    let other = Arc::clone(&count);
    let thread = spawn(move || add(&other));
    add(&count);
    thread.join().unwrap();
    assert_eq!(*count.lock(), 2, "an update was lost");
}

fn a_reader_that_comes_back_behind_a_writer() {
    let lock = Arc::new(RwLock::new(0));
    let other = Arc::clone(&lock);
    let thread = spawn(move || *other.write() += 1);
    let first = lock.read();
    // With parking_lot a writer that waits is in front of this one.
    assert_eq!(*first, *lock.read());
    drop(first);
    thread.join().unwrap();
}

fn a_wake_up_that_comes_before_the_wait() {
    let pair = Arc::new((Mutex::new(()), Condvar::new()));
    let other = Arc::clone(&pair);
    let thread = spawn(move || other.1.notify_one());
    pair.1.wait(&mut pair.0.lock());
    thread.join().unwrap();
}

fn a_loop_that_does_not_end() {
    let lock = Mutex::new(true);
    while *lock.lock() {}
}

fn what_real_locks_do() {
    let began = Instant::now();
    let pair = Arc::new((Mutex::new(0), Condvar::new(), AtomicUsize::new(0)));
    let waits = pair.1.wait_for(&mut pair.0.lock(), Duration::from_secs(3_600));
    assert!(waits.timed_out() && began.elapsed() >= Duration::from_secs(3_600));
    // One at a time has it, and the thread that waits gets it.
    scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut guard = pair.0.lock();
                assert_eq!(pair.2.fetch_add(1, Ordering::Relaxed), 0);
                schedule::step();
                pair.2.fetch_sub(1, Ordering::Relaxed);
                *guard += 1;
                MutexGuard::unlocked(&mut guard, || sleep(Duration::from_millis(1)));
                *guard += 1;
                pair.1.notify_all();
            });
        }
        let mut guard = pair.0.lock();
        while *guard < 6 {
            assert!(!pair.1.wait_for(&mut guard, Duration::from_secs(60)).timed_out());
        }
    });
    let held = pair.0.lock();
    scope(|scope| {
        scope.spawn(|| assert!(pair.0.try_lock().is_none()));
        scope.spawn(|| assert!(pair.0.try_lock_for(Duration::from_millis(1)).is_none()));
        // Others go on meanwhile.
        sleep(Duration::from_secs(1));
    });
    drop(held);
    assert!(pair.0.try_lock_for(Duration::ZERO).is_some());
    let lock = RwLock::new(());
    let (first, second) = (lock.read(), lock.read_recursive());
    assert!(lock.try_write().is_none());
    drop((first, second));
    drop(lock.write());
}

fn a_seed_is_the_same_each_time() {
    let mut hashes = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let outcome = |strategy| once(seed, strategy, what_real_locks_do);
        for strategy in STRATEGIES {
            assert_eq!(outcome(strategy), outcome(strategy));
            hashes.insert(outcome(strategy).hash);
        }
    }
    assert!(hashes.len() > 50, "and another one is another: {}", hashes.len());
}
