//! Rounds of compaction that others meet, and that panic.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::{
    Engine, Options,
    clock::{Clock, SystemClock},
    compaction::moves,
    model::PastMoment,
    random::{RandomSource, SystemRandom},
    sync::Mutex,
};

/// Panics once in a merge, or in each round, from when it is told to.
#[derive(Debug, Default, Clone)]
struct Panicking(Arc<AtomicBool>);

impl Panicking {
    fn set(&self, is_on: bool) {
        self.0.store(is_on, Ordering::SeqCst);
    }
}

impl RandomSource for Panicking {
    fn next(&self) -> u64 {
        assert!(!self.0.swap(false, Ordering::SeqCst), "as planned");
        SystemRandom::default().next()
    }
}

impl Clock for Panicking {
    fn now_ns(&self) -> i64 {
        let is_round = std::thread::current().name() == Some("arc-compact");
        assert!(!is_round || !self.0.load(Ordering::SeqCst), "as planned");
        SystemClock.now_ns()
    }
}

fn write_two_files(engine: &Engine, table: &str) {
    for n in 1..3 {
        assert_eq!(engine.write_lp("d", format!("{table},h=a v={n} {n}").as_bytes()).unwrap().points, 1);
        engine.flush().unwrap();
    }
}

#[test]
fn files_whose_merge_panics_are_left_alone_and_others_are_merged() {
    let (dir, random) = (tempfile::tempdir().unwrap(), Panicking::default());
    let options = Options { compaction: false, compaction_files: 2, ..Options::default() };
    let builder = Engine::builder(dir.path().join("data")).options(options).random(Arc::new(random.clone()));
    let engine = builder.open().unwrap();
    write_two_files(&engine, "m");
    write_two_files(&engine, "n");
    random.set(true);
    let error = engine.compact().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    let mut files = ["m", "n"].map(|table| engine.data_files("d", table).unwrap().len());
    files.sort_unstable();
    assert_eq!((files, engine.stats().compaction_failures), ([1, 2], 1));
    assert_eq!(engine.compact().unwrap().merges, 1, "who asks for it has all be tried again");
    assert!(engine.verify().unwrap().is_clean());
}

/// Has a table restored while the next merge is on its way, which goes on once that waits for it.
#[derive(Debug, Default, Clone)]
struct Meeting {
    engine: Arc<Mutex<Option<Engine>>>,
    /// Merges that there were when the table was restored.
    restored_after: Arc<Mutex<Option<u64>>>,
}

impl RandomSource for Meeting {
    fn next(&self) -> u64 {
        if let Some(engine) = self.engine.lock().take() {
            let (restorer, restored_after) = (engine.clone(), Arc::clone(&self.restored_after));
            std::thread::spawn(move || {
                restorer.restore_table("d", "m0", &PastMoment::Snapshot("before".into())).unwrap();
                *restored_after.lock() = Some(restorer.stats().compactions);
            });
            while engine.writer().unwrap().compactor.waiting() == 0 {
                std::thread::yield_now();
            }
        }
        SystemRandom::default().next()
    }
}

#[test]
fn a_restore_waits_for_a_merge_and_not_for_a_round() {
    let (dir, meeting) = (tempfile::tempdir().unwrap(), Meeting::default());
    let options = Options { compaction: false, compaction_files: 2, ..Options::default() };
    let builder = Engine::builder(dir.path().join("data")).options(options).random(Arc::new(meeting.clone()));
    let engine = builder.open().unwrap();
    let text =
        |n: u64| (0..60).map(|part| format!("{:016x}", SystemRandom::default().next() ^ part ^ n)).collect::<String>();
    for file in 0..2_u64 {
        for table in 0..6 {
            // Too large to be committed with those of other tables.
            let lines =
                (0..400).map(|n| format!("m{table},h=a s=\"{}\" {}\n", text(n), file * 400 + n)).collect::<String>();
            assert_eq!(engine.write_lp("d", lines.as_bytes()).unwrap().points, 400);
        }
        engine.flush().unwrap();
    }
    engine.create_snapshot("before").unwrap();
    *meeting.engine.lock() = Some(engine.clone());
    let merges = engine.compact().unwrap().merges;
    let after = meeting.restored_after.lock().expect("it came before the end of the round");
    assert!(after < merges, "{after} of {merges}");
    engine.compact().unwrap();
    assert!(engine.verify().unwrap().is_clean());
}

#[test]
fn a_round_that_panics_is_not_the_last() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), Panicking::default());
    let options = Options { compaction_files: 2, ..Options::default() };
    let builder = Engine::builder(dir.path().join("data")).options(options).clock(Arc::new(clock.clone()));
    let engine = builder.open().unwrap();
    let wait = |is_done: &dyn Fn() -> bool| {
        let until = std::time::Instant::now() + Duration::from_secs(60);
        while !is_done() {
            assert!(std::time::Instant::now() < until, "{:?}", engine.stats());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    clock.set(true);
    write_two_files(&engine, "m");
    wait(&|| engine.stats().compaction_failures > 0);
    clock.set(false);
    write_two_files(&engine, "m");
    wait(&|| engine.stats().compactions > 0);
}

#[test]
fn what_leaves_the_manifest_is_known_to_be_read_before_anybody_else_looks() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { compaction: false, ..Options::default() };
    let engine = Engine::builder(dir.path().join("data")).options(options).open().unwrap();
    assert_eq!(engine.write_lp("d", b"m,h=a v=1 1").unwrap().points, 1);
    engine.flush().unwrap();
    let (shared, table) = (engine.writer().unwrap(), engine.table("d", "m").unwrap());
    let files = table.stored().files.clone();
    let merged = |task| Merged { table: Arc::clone(&table), task, made: Vec::new(), is_moved: false };
    let merged = moves(&files, |_| true).into_iter().map(merged).collect();
    assert_eq!(shared.commit_merges(merged).unwrap().len(), 1);
    assert_eq!((table.stored().files.len(), shared.retired.totals().0), (0, 1));
}
