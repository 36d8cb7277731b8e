//! Nothing acknowledged is lost or doubled on an object store that fails, whatever fails and
//! however; and what could not be done is made up for.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
    time::Duration,
};

use arc_core::{
    Durability, Engine, EngineBuilder, ErrorKind, Options,
    store::{ObjectStorage, StoreOptions},
    verify_in_store,
};
use arrow::{array::AsArray, datatypes::Int64Type};
use futures::{StreamExt, executor::block_on};
use object_store::ObjectStore;

use super::faulty::{ALL, Faulty, How, Random, Request};
use crate::support::{HandClock, query, quiet};

const DAY_NS: i64 = 86_400_000_000_000;

fn storage(store: &Arc<Faulty>) -> ObjectStorage {
    let mut options = StoreOptions::default();
    // What hangs does so for good, and everything else answers at once: on a slow machine a request
    // that does neither counts as one more failure.
    options.request_timeout = Duration::from_millis(5);
    options.tries = 3;
    options.first_pause = Duration::ZERO;
    // Small enough that files come in parts.
    options.part_bytes = 4096;
    ObjectStorage::new(Arc::clone(store) as _, "a/b").options(options)
}

fn builder(path: &Path, store: &Arc<Faulty>, clock: &HandClock) -> EngineBuilder {
    let mut options = Options::default();
    options.wal_segment_bytes = 64 << 10;
    options.compaction_files = 2;
    (options.compaction_grace, options.history) = (Duration::ZERO, Duration::ZERO);
    options.compaction = false;
    options.flush_after = Duration::from_secs(1 << 30);
    quiet(path).options(options).clock(Arc::new(clock.clone())).object_store(storage(store))
}

/// What a run knows to be true.
#[derive(Debug, Default)]
struct Oracle {
    /// Points that were acknowledged, and not deleted since.
    acknowledged: BTreeSet<i64>,
    next: i64,
}

impl Oracle {
    /// Writes points of several days and series, some of which are late; large enough to come in
    /// parts.
    fn write(&mut self, engine: &Engine, random: &mut Random) {
        let mut body = String::new();
        let points: Vec<i64> = (self.next..self.next + 1 + i64::try_from(random.below(40)).unwrap()).collect();
        self.next += 40;
        for n in &points {
            let day = i64::try_from(random.below(3)).unwrap();
            let time = if random.below(4) == 0 { n - 100_000 } else { *n } + day * DAY_NS;
            let text: String = (0..150).map(|_| char::from(b'a' + u8::try_from(random.below(26)).unwrap())).collect();
            body.push_str(&format!("m,client=c{} n={n}i,text=\"{text}\" {time}\n", n % 3));
        }
        let written = engine.write_lp("d", body.as_bytes()).unwrap();
        assert_eq!(written.points, points.len() as u64);
        self.acknowledged.extend(points);
    }

    /// Compares with what the engine answers; where the store fails it may answer that.
    fn check(&self, engine: &Engine, may_fail: bool, case: &str) {
        if self.acknowledged.is_empty() {
            return;
        }
        let batches = match query(engine, "d", "SELECT n, text FROM m") {
            Err(error) if may_fail => {
                assert_eq!(error.kind(), ErrorKind::Busy, "{case}: {error}");
                return;
            }
            batches => batches.unwrap(),
        };
        let mut found = BTreeSet::new();
        for batch in &batches {
            for n in batch.column(0).as_primitive::<Int64Type>().values() {
                assert!(found.insert(*n), "{case}: point {n} came twice");
            }
            assert_eq!(batch.column(1).null_count(), 0, "{case}");
        }
        let lost: Vec<_> = self.acknowledged.difference(&found).collect();
        let more: Vec<_> = found.difference(&self.acknowledged).collect();
        assert!(lost.is_empty() && more.is_empty(), "{case}: lost {lost:?}, never written {more:?}");
    }
}

/// Opens until that succeeds: each try goes through some of the weather.
fn open(path: &Path, store: &Arc<Faulty>, clock: &HandClock, case: &str) -> Engine {
    loop {
        match builder(path, store, clock).open() {
            Ok(engine) => return engine,
            Err(error) => assert!([ErrorKind::Io, ErrorKind::Closed].contains(&error.kind()), "{case}: {error}"),
        }
    }
}

/// Returns the paths of all data files in the store.
fn stored(store: &Faulty) -> BTreeSet<String> {
    let listed = block_on(store.inner.list(Some(&"a/b/data".into())).collect::<Vec<_>>());
    let path = |meta: object_store::Result<object_store::ObjectMeta>| {
        meta.unwrap().location.as_ref().strip_prefix("a/b/").unwrap().to_owned()
    };
    listed.into_iter().map(path).collect()
}

fn check_end(path: &Path, store: &Arc<Faulty>, clock: &HandClock, oracle: &Oracle, case: &str) {
    store.set_clear(true);
    store.settle();
    let engine = open(path, store, clock, case);
    oracle.check(&engine, false, &format!("{case}, opened again"));
    engine.flush().unwrap();
    clock.set(100 * DAY_NS);
    engine.compact().unwrap();
    oracle.check(&engine, false, &format!("{case}, compacted"));
    let report = engine.verify().unwrap();
    assert!(report.findings.is_empty(), "{case}: {report}");
    let mut live = BTreeSet::new();
    for table in engine.tables("d").unwrap() {
        live.extend(engine.data_files("d", &table.schema.table).unwrap().into_iter().map(|file| file.path.clone()));
    }
    assert_eq!(stored(store), live, "{case}");
    engine.close().unwrap();
    drop(engine);
    let report = verify_in_store(path, storage(store)).unwrap();
    assert!(report.findings.is_empty(), "{case}: {report}");
    assert_eq!(report.totals.rows, oracle.acknowledged.len() as u64, "{case}");
    assert!(path.join("tmp/store").read_dir().unwrap().next().is_none(), "{case}: a file was left on its way");
}

fn run(seed: u64, failed: &mut BTreeMap<(Request, How), u64>) {
    let dir = tempfile::tempdir().unwrap();
    let (store, clock) = (Faulty::new(seed), HandClock::default());
    let case = format!("seed {seed}");
    let mut random = Random::new(seed ^ 0x5eed);
    let mut oracle = Oracle::default();
    let mut engine = open(dir.path(), &store, &clock, &case);
    for step in 0..30 {
        let case = format!("{case}, step {step}");
        match random.below(10) {
            0..5 => oracle.write(&engine, &mut random),
            // Whether they succeed is up to the weather.
            5..7 => drop(engine.flush()),
            7 => drop(engine.compact()),
            8 => oracle.check(&engine, true, &case),
            _ => {
                drop(engine);
                engine = open(dir.path(), &store, &clock, &case);
            }
        }
    }
    drop(engine);
    check_end(dir.path(), &store, &clock, &oracle, &case);
    for (what, count) in store.failed() {
        *failed.entry(what).or_default() += count;
    }
}

/// `FAULT_SEEDS=1000..2000` runs other seeds than the few of every day.
#[test]
fn whatever_fails_acknowledged_points_are_there_once() {
    let chosen = std::env::var("FAULT_SEEDS").ok();
    let (first, last) = chosen.as_deref().and_then(|seeds| seeds.split_once("..")).unwrap_or(("0", "40"));
    let mut failed = BTreeMap::new();
    for seed in first.parse().unwrap()..last.parse().unwrap() {
        run(seed, &mut failed);
    }
    println!("{failed:?}");
    for request in [Request::Put, Request::Part, Request::Complete, Request::Get, Request::List, Request::Delete] {
        for how in ALL {
            assert!(failed.get(&(request, how)).is_some_and(|count| *count > 0), "{request:?} never failed by {how:?}");
        }
    }
}

/// The engine's own threads flush here, and meet a store from which nothing comes back.
#[test]
fn while_the_store_is_away_memory_is_bounded_and_writers_are_told_to_come_back_and_then_all_is_made_up_for() {
    for how in [How::Before, How::After, How::Hangs, How::HangsAfter] {
        let dir = tempfile::tempdir().unwrap();
        let (store, clock) = (Faulty::new(0), HandClock::default());
        store.set_clear(true);
        let mut options = Options::default();
        (options.flush_bytes, options.max_buffer_bytes) = (64 << 10, 256 << 10);
        (options.write_timeout, options.durability) = (Duration::ZERO, Durability::Process);
        (options.compaction_grace, options.history) = (Duration::ZERO, Duration::ZERO);
        let builder = || builder(dir.path(), &store, &clock).options(options.clone());
        let engine = builder().open().unwrap();
        let (mut oracle, mut random) = (Oracle::default(), Random::new(1));
        oracle.write(&engine, &mut random);
        engine.flush().unwrap();
        store.force(how);
        let mut refused = 0;
        while refused < 50 {
            let body = format!("m,client=c n={}i,text=\"t\" {}", oracle.next, oracle.next);
            match engine.write_lp("d", body.as_bytes()) {
                Ok(_) => drop(oracle.acknowledged.insert(oracle.next)),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Busy, "{how:?}: {error}");
                    refused += 1;
                }
            }
            oracle.next += 1;
            assert!(engine.stats().buffered_bytes <= (256 << 10) + 4096, "{how:?}");
        }
        assert!(oracle.acknowledged.len() > 100, "{how:?}: only {} were taken", oracle.acknowledged.len());
        // What asks for the manifest is told so, too; points that are in memory can be read.
        assert!(engine.flush().is_err(), "{how:?}");
        let in_memory = query(&engine, "d", "SELECT n FROM m WHERE client = 'c'").unwrap();
        let in_memory: usize = in_memory.iter().map(|batch| batch.num_rows()).sum();
        store.set_clear(true);
        while let Err(error) = engine.flush() {
            assert!([ErrorKind::Busy, ErrorKind::Io].contains(&error.kind()), "{how:?}: {error}");
        }
        assert!(in_memory <= oracle.acknowledged.len(), "{how:?}");
        oracle.check(&engine, false, &format!("{how:?}, after the outage"));
        assert_eq!(engine.stats().buffered_bytes, 0, "{how:?}");
        oracle.write(&engine, &mut random);
        // A round that was made up for, and the rest: not one for each flush that failed.
        let files = engine.data_files("d", "m").unwrap().len();
        assert!(files < 20, "{how:?}: {files} files");
        drop(engine);
        check_end(dir.path(), &store, &clock, &oracle, &format!("{how:?}"));
    }
}

#[test]
fn closing_does_not_wait_for_a_store_that_is_away_and_loses_nothing() {
    for how in ALL {
        let dir = tempfile::tempdir().unwrap();
        let (store, clock) = (Faulty::new(0), HandClock::default());
        store.set_clear(true);
        let engine = builder(dir.path(), &store, &clock).open().unwrap();
        let (mut oracle, mut random) = (Oracle::default(), Random::new(2));
        oracle.write(&engine, &mut random);
        store.force(how);
        assert!(engine.close().is_err(), "{how:?}");
        drop(engine);
        check_end(dir.path(), &store, &clock, &oracle, &format!("{how:?}"));
    }
}

/// The file of that commit was an orphan for the next process, which has removed it.
#[test]
fn a_commit_of_an_earlier_process_that_arrives_late_changes_nothing() {
    for settles_before_the_next_commit in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let (store, clock) = (Faulty::new(0), HandClock::default());
        store.set_clear(true);
        let (mut oracle, mut random) = (Oracle::default(), Random::new(3));
        let engine = builder(dir.path(), &store, &clock).open().unwrap();
        oracle.write(&engine, &mut random);
        store.hold_commits();
        assert!(engine.close().is_err());
        drop(engine);
        assert!(!stored(&store).is_empty());
        store.set_clear(true);
        let engine = builder(dir.path(), &store, &clock).open().unwrap();
        assert!(stored(&store).is_empty(), "what is not committed is an orphan");
        if settles_before_the_next_commit {
            store.settle();
        }
        engine.flush().unwrap();
        oracle.check(&engine, false, "after a flush");
        drop(engine);
        check_end(dir.path(), &store, &clock, &oracle, "in the end");
    }
}
