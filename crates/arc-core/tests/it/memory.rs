//! One budget for writes, flushes and queries: what is held stays within it, and nothing
//! acknowledged pays for that.

use std::{path::Path, time::Duration};

use arc_core::{Durability, Engine, EngineBuilder, ErrorKind, Options, WriteOptions};

use crate::support::{number, query};

const MIB: u64 = 1 << 20;

fn builder(path: &Path, memory_bytes: u64, write_timeout: Duration) -> EngineBuilder {
    let mut options = Options::default();
    options.memory_bytes = usize::try_from(memory_bytes).unwrap();
    options.write_timeout = write_timeout;
    options.durability = Durability::Process;
    options.wal_segment_bytes = 8 * MIB;
    Engine::builder(path).options(options)
}

/// Lines of one write: `series` series, each value once.
fn lines(writer: u64, write: u64, points: u64, series: u64) -> String {
    let first = write * points;
    (first..first + points)
        .map(|n| format!("m,w=w{writer},host=host-{} n={n}i,v={}.5,text=\"value {n}\" {n}\n", n % series, n % 97))
        .collect()
}

/// Sends a write until it is taken; returns how often the engine was busy.
fn send(engine: &Engine, body: String, busy: &mut u64) {
    let body = bytes::Bytes::from(body);
    loop {
        match engine.submit_lp("d", body.clone(), &WriteOptions::new()).and_then(arc_core::PendingWrite::wait) {
            Ok(_) => return,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Busy, "{error}"),
        }
        *busy += 1;
    }
}

#[test]
fn a_flood_beside_large_queries_stays_within_the_budget_and_loses_nothing() {
    const WRITERS: u64 = 4;
    const WRITES: u64 = 40;
    const POINTS: u64 = 4_000;
    let dir = tempfile::tempdir().unwrap();
    let engine = builder(dir.path(), 24 * MIB, Duration::from_millis(1)).open().unwrap();
    let mut busy = 0;
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let engine = &engine;
                scope.spawn(move || {
                    let mut busy = 0;
                    (0..WRITES).for_each(|write| send(engine, lines(writer, write, POINTS, 50), &mut busy));
                    busy
                })
            })
            .collect();
        while !writers.iter().all(|writer| writer.is_finished()) {
            // It spills, or is told that there is no memory.
            if let Err(error) = query(&engine, "d", "SELECT text, count(*), max(v) FROM m GROUP BY text ORDER BY text")
            {
                assert!([ErrorKind::Busy, ErrorKind::NotFound].contains(&error.kind()), "{error}");
            }
        }
        busy = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
    });
    // Whether they are depends on how fast the disk is beside them.
    println!("the writers were held back {busy} times");
    let stats = engine.stats();
    assert_eq!(stats.memory_limit_bytes, 24 * MIB);
    assert!(stats.memory_peak_bytes <= stats.memory_limit_bytes, "{stats:?}");
    assert!(stats.memory_peak_bytes > 4 * MIB, "{stats:?}");
    let expected = i64::try_from(WRITERS * WRITES * POINTS).unwrap();
    assert_eq!(number(&engine, "d", "SELECT count(*) FROM m"), expected);
    engine.flush().unwrap();
    // Waits for the merge that may be under way.
    engine.compact().unwrap();
    assert_eq!(engine.stats().memory_bytes, 0, "all that was held is given back");
    assert_eq!(number(&engine, "d", "SELECT count(DISTINCT n) FROM m"), expected / i64::try_from(WRITERS).unwrap());
}

#[test]
fn a_write_that_may_not_wait_is_refused_and_can_be_sent_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.memory_bytes = 16 << 20;
    // So that only a write that finds no room starts a flush.
    (options.flush_bytes, options.max_buffer_bytes) = (2 << 20, 2 << 20);
    options.durability = Durability::Process;
    let engine = Engine::builder(dir.path()).options(options).open().unwrap();
    let at_once = WriteOptions::new().max_wait(Duration::ZERO);
    let (mut busy, mut points) = (0, 0);
    for write in 0..100 {
        let body = bytes::Bytes::from(lines(0, write, 1_000, 10));
        let submit = |options: &WriteOptions| engine.submit_lp("d", body.clone(), options);
        let written = submit(&at_once).or_else(|error| {
            assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
            busy += 1;
            submit(&WriteOptions::new())
        });
        points += written.unwrap().wait().unwrap().points;
    }
    assert!(busy > 0);
    engine.flush().unwrap();
    assert_eq!(engine.stats().points, points);
}

#[test]
fn a_write_that_could_never_be_held_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let engine = builder(dir.path(), 16 * MIB, Duration::from_secs(60)).open().unwrap();
    for (points, is_stored) in [(5_000, true), (60_000, false), (200_000, false), (5_000, true)] {
        let written = engine.write_lp("d", lines(0, 0, points, 10).as_bytes());
        assert_eq!(written.is_ok(), is_stored, "{points}: {written:?}");
        if let Err(error) = written {
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains("a quarter of memory_bytes"), "{error}");
        }
    }
    assert_eq!(engine.stats().points, 10_000);
}

#[cfg(target_os = "linux")]
mod resident {
    use std::{process::Command, sync::Arc};

    use arrow::array::{ArrayRef, FixedSizeBinaryArray, Int64Array, RecordBatch, StringArray};

    use super::*;

    /// Names the data directory to the process that is measured.
    const DIRECTORY: &str = "ARC_MEMORY_TEST_DIRECTORY";
    const WRITES: u64 = 1_000;
    const POINTS: u64 = 5_000;

    fn resident_peak_bytes() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().strip_suffix("kB").unwrap().trim().parse::<u64>().unwrap() << 10
    }

    /// Runs some work in a process of its own; returns how much memory that took.
    fn measured(work: &str, directory: &Path) -> u64 {
        let child = Command::new(std::env::current_exe().unwrap())
            .args([&format!("memory::resident::{work}"), "--exact", "--ignored", "--nocapture"])
            .env(DIRECTORY, directory)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stdout);
        let error = String::from_utf8_lossy(&child.stderr);
        assert!(child.status.success(), "{} {text} {error}", child.status);
        let peak = text.lines().find_map(|line| line.split("resident ").nth(1)?.split(' ').next()?.parse::<u64>().ok());
        peak.ok_or(text).unwrap()
    }

    /// Opens the engine of a process that is measured.
    fn opened() -> Option<Engine> {
        let directory = std::env::var(DIRECTORY).ok()?;
        Some(builder(Path::new(&directory), 128 * MIB, Duration::from_secs(60)).open().unwrap())
    }

    /// Not a test by itself: feeds an engine, and says how much memory that took.
    #[test]
    #[ignore = "started by the test below"]
    fn the_process_that_is_measured() {
        let Some(engine) = opened() else { return };
        let before = resident_peak_bytes();
        std::thread::scope(|scope| {
            for writer in 0..2 {
                let engine = &engine;
                scope.spawn(move || {
                    (0..WRITES / 2).for_each(|write| send(engine, lines(writer, write, POINTS, 100), &mut 0));
                });
            }
        });
        engine.close().unwrap();
        println!("resident {} of {before} before", resident_peak_bytes());
    }

    #[test]
    fn a_process_that_takes_many_times_its_budget_stays_near_it() {
        let dir = tempfile::tempdir().unwrap();
        let peak = measured("the_process_that_is_measured", dir.path());
        assert!(peak < 256 * MIB, "{} MiB", peak / MIB);
        let engine = builder(dir.path(), 128 * MIB, Duration::from_secs(60)).open().unwrap();
        let expected = i64::try_from(WRITES * POINTS).unwrap();
        assert_eq!(number(&engine, "d", "SELECT count(*) FROM m"), expected);
    }

    const WIDE_ROUNDS: i64 = 2;
    const NARROW_ROWS: i64 = 1_200;

    /// Not a test by itself, as above: a few rows of almost a megabyte, which the other rows have as nulls.
    #[test]
    #[ignore = "started by the test below"]
    fn a_process_with_wide_rows_among_others() {
        let Some(engine) = opened() else { return };
        let before = resident_peak_bytes();
        for (round, tags) in (0..WIDE_ROUNDS).flat_map(|round| [(round, &[][..]), (round, &["host"])]) {
            let (table, tag) = if tags.is_empty() { ("t", "") } else { ("k", ",host=a") };
            let lines = |rows: std::ops::Range<i64>| {
                rows.map(|n| format!("{table}{tag} v={n}i {}\n", round * 10_000 + n)).collect::<String>()
            };
            send(&engine, lines(0..NARROW_ROWS / 2), &mut 0);
            let value = FixedSizeBinaryArray::try_from_iter(std::iter::once(vec![7; 60_000])).unwrap();
            let wide = (0..15).map(|n| (format!("w{n}"), Arc::new(value.clone()) as ArrayRef));
            let time = Arc::new(Int64Array::from(vec![round * 10_000 + NARROW_ROWS])) as ArrayRef;
            let hosts = tags.iter().map(|tag| ((*tag).to_owned(), Arc::new(StringArray::from(vec!["a"])) as ArrayRef));
            let batch = std::iter::once(("time".to_owned(), time)).chain(wide).chain(hosts);
            let batch =
                RecordBatch::try_from_iter_with_nullable(batch.map(|(name, array)| (name, array, true))).unwrap();
            let options = WriteOptions::new().tags(tags.iter().copied());
            let _ = engine.submit_batches("d", table, &[batch], &options).unwrap().wait().unwrap();
            // In one write, and in many.
            send(&engine, lines(NARROW_ROWS / 2..NARROW_ROWS * 3 / 4), &mut 0);
            (NARROW_ROWS * 3 / 4..NARROW_ROWS).for_each(|n| send(&engine, lines(n..n + 1), &mut 0));
            if round % 2 == 1 {
                engine.flush().unwrap();
            }
            for sql in [
                format!("SELECT count(w0) FROM {table}"),
                format!("SELECT count(w1) FROM {table} WHERE v >= 0 OR w0 IS NOT NULL"),
                format!(
                    "SELECT count(*) FROM (SELECT * FROM {table} ORDER BY time DESC LIMIT 3) WHERE w3 IS NOT NULL OR v > 0"
                ),
            ] {
                if let Err(error) = query(&engine, "d", &sql) {
                    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
                }
            }
        }
        engine.compact().unwrap();
        println!("resident {} of {before} before", resident_peak_bytes());
        for table in ["t", "k"] {
            let all = number(&engine, "d", &format!("SELECT count(*) FROM {table}"));
            assert_eq!(all, WIDE_ROUNDS * (NARROW_ROWS + 1));
            assert_eq!(number(&engine, "d", &format!("SELECT count(w0) FROM {table}")), WIDE_ROUNDS);
        }
        engine.close().unwrap();
    }

    #[test]
    fn values_that_take_their_bytes_also_where_they_are_null_take_few() {
        let dir = tempfile::tempdir().unwrap();
        let peak = measured("a_process_with_wide_rows_among_others", dir.path());
        // Written out, one copy of the rows would take 4 GB.
        assert!(peak < 512 * MIB, "{} MiB", peak / MIB);
        let report = arc_core::verify(dir.path()).unwrap();
        assert!(report.is_clean(), "{report}");
    }
}
