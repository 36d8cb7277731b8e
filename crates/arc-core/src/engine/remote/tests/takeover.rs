//! A machine is lost, or stopped and comes back, at every step; another one takes the store over.

use std::time::Duration;

use super::{
    check,
    double::{Random, Shelf},
    open, stored, submit, write,
};
use crate::{Durability, Engine, ErrorKind, PendingWrite};

/// What the seeds of these tests are counted from; another one is another set of scenarios.
const SEED: u64 = 0x0430;

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..10_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("it never came to this: {what}");
}

/// Loses a machine: nothing of what it has on disk is seen again.
fn lose(engine: Engine, store: &super::Seen) {
    store.set_gone(true);
    drop(engine);
}

#[test]
fn what_was_acknowledged_remote_is_there_after_the_machine_is_lost() {
    let shelf = Shelf::new();
    let [first, second, third] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let store = shelf.seen(1);
    let engine = open(first.path(), &store);
    for n in 0..4 {
        write(&engine, n, Durability::Remote).unwrap();
    }
    engine.flush().unwrap();
    assert_eq!(shelf.names("p/wal").len(), 1, "what is flushed is removed, but for the newest");
    for n in 4..8 {
        write(&engine, n, Durability::Remote).unwrap();
    }
    write(&engine, 8, Durability::Disk).unwrap();
    write(&engine, 9, Durability::Remote).unwrap();
    write(&engine, 10, Durability::Disk).unwrap();
    lose(engine, &store);
    let store = shelf.seen(2);
    let engine = open(second.path(), &store);
    let found: Vec<_> = stored(&engine).into_iter().collect();
    // The one on disk only that came before another is in its group; the last is in none.
    assert_eq!(found, (0..10).map(|n| (n, 1)).collect::<Vec<_>>());
    let replayed = engine.stats().replayed_frames;
    assert!(replayed >= 6, "{replayed}");
    write(&engine, 11, Durability::Remote).unwrap();
    lose(engine, &store);
    let engine = open(third.path(), &shelf.seen(3));
    assert_eq!(stored(&engine).len(), 11, "{:?}", stored(&engine));
    engine.flush().unwrap();
    let before = stored(&engine);
    engine.close().unwrap();
    drop(engine);
    let engine = open(third.path(), &shelf.seen(4));
    assert_eq!(stored(&engine), before, "and so it is after a restart");
    write(&engine, 12, Durability::Remote).unwrap();
}

#[test]
fn a_disk_that_lost_the_end_of_its_log_has_it_from_the_store() {
    let (shelf, dir) = (Shelf::new(), tempfile::tempdir().unwrap());
    let copy = dir.path().join("copy");
    let path = dir.path().join("data");
    let engine = open(&path, &shelf.seen(1));
    write(&engine, 0, Durability::Remote).unwrap();
    drop(engine);
    std::fs::create_dir(&copy).unwrap();
    copy_files(&path, &copy);
    let engine = open(&path, &shelf.seen(2));
    write(&engine, 1, Durability::Remote).unwrap();
    drop(engine);
    // As a disk that has lied about its syncs, or an older image of it.
    std::fs::remove_dir_all(&path).unwrap();
    std::fs::rename(&copy, &path).unwrap();
    let engine = open(&path, &shelf.seen(3));
    assert_eq!(stored(&engine).into_iter().collect::<Vec<_>>(), [(0, 1), (1, 1)]);
}

fn copy_files(from: &std::path::Path, to: &std::path::Path) {
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            std::fs::create_dir(&to).unwrap();
            copy_files(&from, &to);
        } else {
            std::fs::copy(from, to).unwrap();
        }
    }
}

/// What one machine has sent, and what became of it.
#[derive(Default)]
struct Sent {
    pending: Vec<(i64, PendingWrite)>,
    acknowledged: Vec<i64>,
}

impl Sent {
    fn submit(&mut self, engine: &Engine, n: i64) {
        // Refused once it is known that another has the store.
        if let Ok(pending) = submit(engine, n, Durability::Remote) {
            self.pending.push((n, pending));
        }
    }

    fn settle(&mut self) {
        for (n, pending) in self.pending.drain(..) {
            match pending.wait() {
                Ok(_) => self.acknowledged.push(n),
                Err(error) => assert!([ErrorKind::Unknown, ErrorKind::Closed].contains(&error.kind()), "{error}"),
            }
        }
    }
}

/// The old owner is stopped before or after any of its puts, and goes on once another has the store.
#[test]
fn an_owner_that_was_stopped_acknowledges_nothing_after_the_fence() {
    let (mut stops, mut acknowledged_late) = (0, 0);
    for seed in SEED..SEED + 60 {
        let case = format!("seed {seed}");
        let mut random = Random::new(seed);
        let [first, second, third] = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let shelf = Shelf::new();
        let (old_store, new_store) = (shelf.seen(seed), shelf.seen(seed + 1));
        let old = open(first.path(), &old_store);
        let (mut n, mut of_old, mut of_new) = (0, Sent::default(), Sent::default());
        old_store.stop_at(1 + random.below(14), random.below(2) == 1);
        while !old_store.is_stopped() {
            of_old.submit(&old, n);
            n += 1;
            if random.below(3) == 0 {
                // On a thread of its own, for it may be the one that is stopped.
                let (engine, store) = (old.clone(), old_store.clone());
                let flush = std::thread::spawn(move || engine.flush().is_ok());
                wait_until("a flush ends or stops", || flush.is_finished() || store.is_stopped());
            }
            if random.below(2) == 0 {
                wait_until("a put ends or stops", || {
                    old_store.is_stopped() || old.writer().unwrap().remote.stored().0 >= n as u64
                });
            }
        }
        stops += 1;
        let new = open(second.path(), &new_store);
        let at_fence = stored(&new);
        // After the fence, so that none of them may be acknowledged.
        let after_fence = n;
        for _ in 0..3 {
            of_old.submit(&old, n);
            of_new.submit(&new, n + 1);
            n += 2;
        }
        of_new.settle();
        if random.below(2) == 0 {
            new.flush().unwrap();
        }
        old_store.resume();
        of_old.settle();
        let mut late = Sent::default();
        for _ in 0..2 {
            late.submit(&old, n);
            n += 1;
            late.settle();
        }
        assert!(late.acknowledged.is_empty(), "{case}: {:?} after it is known", late.acknowledged);
        let of_old = of_old.acknowledged;
        acknowledged_late += of_old.iter().filter(|n| at_fence.contains_key(n)).count();
        assert!(
            of_old.iter().all(|n| *n < after_fence),
            "{case}: {of_old:?} acknowledged after the fence at {after_fence}"
        );
        let reason = old.closed_to_writes().expect("it knows that it has no store any more");
        assert!(reason.contains("has taken the object store over"), "{case}: {reason}");
        check(&at_fence, &of_old, n, &case);
        let acknowledged = [of_old, of_new.acknowledged].concat();
        check(&stored(&new), &acknowledged, n, &case);
        lose(new, &new_store);
        drop(old);
        let last = open(third.path(), &shelf.seen(seed + 2));
        check(&stored(&last), &acknowledged, n, &format!("{case}, after the second was lost"));
    }
    assert!(stops == 60 && acknowledged_late > 60, "{stops}, {acknowledged_late}");
}

/// Machines are lost one after the other, each at a put of its own, while a part of the requests fails.
#[test]
fn machine_after_machine_is_lost_and_nothing_acknowledged_is() {
    for seed in SEED..SEED + 25 {
        let mut random = Random::new(seed);
        let shelf = Shelf::new();
        let (mut n, mut acknowledged) = (0, Vec::new());
        for machine in 0..6 {
            let case = format!("seed {seed}, machine {machine}");
            let dir = tempfile::tempdir().unwrap();
            let store = shelf.seen(seed * 100 + machine);
            store.set_failing([0, 10, 30][usize::try_from(random.below(3)).unwrap()]);
            let engine = loop {
                let opened = super::builder(dir.path(), &store, Duration::from_millis(40)).open();
                match opened {
                    Ok(engine) => break engine,
                    Err(error) => {
                        assert!([ErrorKind::Io, ErrorKind::Closed].contains(&error.kind()), "{case}: {error}")
                    }
                }
            };
            check(&stored(&engine), &acknowledged, n, &case);
            let mut sent = Sent::default();
            for _ in 0..random.below(12) {
                sent.submit(&engine, n);
                n += 1;
                match random.below(6) {
                    0 => sent.settle(),
                    1 => drop(engine.flush()),
                    _ => {}
                }
            }
            if random.below(2) == 0 {
                sent.settle();
            }
            lose(engine, &store);
            sent.settle();
            acknowledged.append(&mut sent.acknowledged);
            if random.below(2) == 0 {
                shelf.settle();
            }
        }
        shelf.settle();
        let dir = tempfile::tempdir().unwrap();
        let engine = open(dir.path(), &shelf.seen(seed));
        check(&stored(&engine), &acknowledged, n, &format!("seed {seed}, the last machine"));
        engine.close().unwrap();
        assert!(shelf.names("p/wal").len() <= 8, "only fences and the newest stay: {:?}", shelf.names("p/wal"));
    }
}
