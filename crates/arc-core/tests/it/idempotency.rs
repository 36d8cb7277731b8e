//! A write that is sent again under its key stores nothing and answers what the first one did.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Barrier},
    time::Duration,
};

use arc_core::{
    Durability, Engine, ErrorKind, Options, Precision, WriteOptions, Written,
    vfs::{Fault, FaultFs, Operation, RealVfs},
};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use proptest::prelude::*;

use crate::support::{cases, number, open, query, quiet, write};

fn keyed(key: &str) -> WriteOptions {
    WriteOptions::new().idempotency_key(key)
}

/// Stores `lines` under a key. Lines without a timestamp make a new row each time they are stored.
fn send(engine: &Engine, lines: &str, options: &WriteOptions) -> arc_core::Result<Written> {
    engine.submit_lp("d", lines.to_owned().into(), options)?.wait()
}

/// What a retry answers after `first`.
fn again_of(first: &Written) -> Written {
    let mut again = first.clone();
    again.replayed = true;
    again
}

fn rows(engine: &Engine) -> i64 {
    number(engine, "d", "SELECT count(*) FROM m")
}

/// Everything that may come between a write and its retry.
const BETWEEN: [fn(Engine, &Path) -> Engine; 6] = [
    |engine, _| engine,
    |engine, path| {
        drop(engine);
        open(path)
    },
    |engine, _| {
        engine.flush().unwrap();
        engine
    },
    |engine, path| {
        engine.flush().unwrap();
        drop(engine);
        open(path)
    },
    |engine, path| {
        engine.flush().unwrap();
        write(&engine, "d", "other v=1");
        engine.flush().unwrap();
        drop(engine);
        open(path)
    },
    |engine, path| {
        engine.close().unwrap();
        open(path)
    },
];

#[test]
fn a_retry_answers_the_first_receipt_whatever_came_between() {
    let body = "m v=1\nm v=x\nm v=2\nno field\n";
    for durability in [Durability::Process, Durability::Disk] {
        for (case, between) in BETWEEN.iter().enumerate() {
            let dir = tempfile::tempdir().unwrap();
            let mut engine = open(dir.path());
            let options = keyed("k").durability(durability);
            let first = send(&engine, body, &options).unwrap();
            assert_eq!((first.points, first.rejected_points, first.replayed), (2, 2, false));
            assert_eq!(first.rejected.len(), 2);
            engine = between(engine, dir.path());
            for _ in 0..2 {
                let again = send(&engine, body, &keyed("k").durability(Durability::Memory)).unwrap();
                assert_eq!(again, again_of(&first), "case {case}");
            }
            assert_eq!((rows(&engine), engine.stats().replayed_writes), (2, 2), "case {case}");
            // And nothing changes for writes that are new.
            assert!(!send(&engine, body, &keyed("another")).unwrap().replayed);
            assert!(!send(&engine, body, &WriteOptions::new()).unwrap().replayed);
            assert_eq!(rows(&engine), 6, "case {case}");
        }
    }
}

#[test]
fn record_batches_and_messagepack_have_keys_too() {
    let batch = |v: i64| {
        let columns: [(&str, ArrayRef); 2] =
            [("time", Arc::new(Int64Array::from(vec![5]))), ("v", Arc::new(Int64Array::from(vec![v])))];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path());
    for replayed in [false, true, true] {
        let written = engine.submit_batches("d", "m", &[batch(1)], &keyed("a")).unwrap().wait().unwrap();
        assert_eq!((written.points, written.replayed), (1, replayed));
        let packed = b"\x82\xa1m\xa1m\xa7columns\x82\xa4time\x91\x07\xa1v\x91\x07".as_slice();
        let written = engine.submit_msgpack("d", packed.into(), &keyed("m")).unwrap().wait().unwrap();
        assert_eq!((written.points, written.replayed), (1, replayed));
        drop(engine);
        engine = open(dir.path());
    }
    assert_eq!(rows(&engine), 2);
    for (table, v) in [("m", 2), ("other", 1)] {
        let error = engine.submit_batches("d", table, &[batch(v)], &keyed("a")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
}

#[test]
fn a_key_with_another_body_is_refused_and_names_why() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path());
    let _ = send(&engine, "m v=1", &keyed("k")).unwrap();
    for between in BETWEEN {
        engine = between(engine, dir.path());
        for (body, options, reason) in [
            ("m v=2", keyed("k"), "were different"),
            ("m v=10", keyed("k"), "had 5 bytes, this one has 6"),
            ("m v=1", keyed("k").precision(Precision::Second), "were different"),
        ] {
            let error = send(&engine, body, &options).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            let text = error.to_string();
            assert!(text.contains("\"k\"") && text.contains(reason), "{text}");
        }
    }
    for key in ["", " k", "a\nb"] {
        assert_eq!(send(&engine, "m v=1", &keyed(key)).unwrap_err().kind(), ErrorKind::InvalidInput, "{key:?}");
    }
    // A key is its database's own.
    let written = engine.submit_lp("e", "m v=2".into(), &keyed("k")).unwrap().wait().unwrap();
    assert!(!written.replayed);
    assert_eq!(rows(&engine), 1);
}

#[test]
fn of_writers_with_one_key_at_a_time_one_stores_and_all_get_its_answer() {
    const WRITERS: usize = 8;
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let start = Barrier::new(WRITERS);
    let written = std::thread::scope(|scope| {
        let write = || {
            start.wait();
            // New tables and columns all along, so that requests are decoded again while they hold
            // their key.
            (0..40).map(|n| send(&engine, &format!("m,t{n}=a v{n}=1"), &keyed(&format!("k{n}"))).unwrap()).collect()
        };
        let writers: Vec<_> = (0..WRITERS).map(|_| scope.spawn(write)).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<Vec<Written>>>()
    });
    for n in 0..40 {
        assert_eq!(written.iter().filter(|writer| !writer[n].replayed).count(), 1, "key {n}");
        assert!(written.iter().all(|writer| writer[n].points == 1));
    }
    assert_eq!((rows(&engine), engine.stats().writes), (40, 40));
}

#[test]
fn a_write_that_stored_nothing_leaves_its_key_free() {
    let dir = tempfile::tempdir().unwrap();
    let faulty = FaultFs::new(Arc::new(RealVfs));
    let mut options = Options::default();
    (options.flush_bytes, options.max_buffer_bytes) = (1, 1);
    options.write_timeout = Duration::from_millis(1);
    let engine = quiet(dir.path()).options(options).vfs(Arc::new(faulty.clone())).open().unwrap();
    // The log has its segment.
    write(&engine, "d", "m v=0");
    engine.flush().unwrap();
    // No data file can be published, so memory stays full.
    faulty.set(Fault::nth(1, std::io::ErrorKind::Other).of(Operation::Rename).from_then_on());
    let _ = send(&engine, "m v=1", &keyed("first")).unwrap();
    for _ in 0..2 {
        assert_eq!(send(&engine, "m v=2", &keyed("k")).unwrap_err().kind(), ErrorKind::Busy);
    }
    for body in ["m v=x", "# nothing"] {
        let written = send(&engine, body, &keyed("k")).unwrap();
        assert_eq!((written.points, written.replayed), (0, false));
    }
    assert!(engine.submit_msgpack("d", "?".into(), &keyed("k")).is_err());
    faulty.clear();
    engine.flush().unwrap();
    assert!(!send(&engine, "m v=2", &keyed("k")).unwrap().replayed);
    assert_eq!(rows(&engine), 3);
}

#[test]
fn beyond_the_limit_the_oldest_key_is_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let opened = || {
        let mut options = Options::default();
        options.idempotency_keys = 2;
        quiet(dir.path()).options(options).flush_after(Duration::from_secs(1 << 30)).open().unwrap()
    };
    let mut engine = opened();
    for (key, replayed) in [("a", false), ("b", false), ("a", true), ("c", false), ("b", true), ("a", false)] {
        assert_eq!(send(&engine, "m v=1", &keyed(key)).unwrap().replayed, replayed, "{key}");
        engine.flush().unwrap();
        drop(engine);
        engine = opened();
    }
    assert_eq!(rows(&engine), 4);
}

#[test]
fn a_key_of_a_write_in_memory_is_as_durable_as_its_points() {
    let dir = tempfile::tempdir().unwrap();
    let options = keyed("k").durability(Durability::Memory);
    let mut engine = open(dir.path());
    let first = send(&engine, "m v=1", &options).unwrap();
    assert_eq!(send(&engine, "m v=1", &options).unwrap(), again_of(&first));
    drop(engine);
    engine = open(dir.path());
    // Both are gone.
    assert!(!send(&engine, "m v=1", &options).unwrap().replayed);
    engine.flush().unwrap();
    drop(engine);
    engine = open(dir.path());
    // Both are there.
    assert!(send(&engine, "m v=1", &options).unwrap().replayed);
    assert_eq!(rows(&engine), 1);
}

#[derive(Debug, Clone)]
enum Step {
    /// Sends the body of a key, which may have been sent before.
    Send(usize, Durability),
    Flush,
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let durability = prop::sample::select(vec![Durability::Disk, Durability::Process, Durability::Memory]);
    let step = prop_oneof![
        6 => (0..8_usize, durability).prop_map(|(key, durability)| Step::Send(key, durability)),
        1 => Just(Step::Flush),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(24), ..ProptestConfig::default() })]

    #[test]
    fn the_engine_equals_a_set_of_keys(steps in steps()) {
        let dir = tempfile::tempdir().unwrap();
        let mut engine = open(dir.path());
        // For each key that is stored, whether it outlives a crash.
        let mut model: BTreeMap<usize, bool> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Send(key, durability) => {
                    let options = keyed(&format!("k{key}")).durability(durability);
                    let written = send(&engine, &format!("m n={key}i\nm f{key}=1\n"), &options).unwrap();
                    prop_assert_eq!((written.points, written.replayed), (2, model.contains_key(&key)));
                    model.entry(key).or_insert(durability != Durability::Memory);
                }
                Step::Flush => {
                    engine.flush().unwrap();
                    model.values_mut().for_each(|outlives| *outlives = true);
                }
                Step::Restart => {
                    drop(engine);
                    engine = open(dir.path());
                    model.retain(|_, outlives| *outlives);
                }
            }
            if !model.is_empty() {
                prop_assert_eq!(rows(&engine), 2 * i64::try_from(model.len()).unwrap());
            }
        }
        if !model.is_empty() {
            let found = query(&engine, "d", "SELECT n FROM m WHERE n IS NOT NULL ORDER BY n").unwrap();
            let found: Vec<i64> = found.iter().flat_map(|batch| {
                arrow::array::AsArray::as_primitive::<arrow::datatypes::Int64Type>(batch.column(0)).values().to_vec()
            }).collect();
            let expected: Vec<i64> = model.keys().map(|key| i64::try_from(*key).unwrap()).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
