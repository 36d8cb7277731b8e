//! One budget for writes, flushes and queries: what is held stays within it, and nothing
//! acknowledged pays for that.

use std::{path::Path, process::Command, time::Duration};

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

    /// Not a test by itself: feeds an engine, and says how much memory that took.
    #[test]
    #[ignore = "started by the test below"]
    fn the_process_that_is_measured() {
        let Ok(directory) = std::env::var(DIRECTORY) else { return };
        let engine = builder(Path::new(&directory), 128 * MIB, Duration::from_secs(60)).open().unwrap();
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
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["memory::resident::the_process_that_is_measured", "--exact", "--ignored", "--nocapture"])
            .env(DIRECTORY, dir.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success(), "{text}");
        let peak = text.lines().find_map(|line| line.split("resident ").nth(1)?.split(' ').next()?.parse::<u64>().ok());
        let peak = peak.unwrap_or_else(|| panic!("{text}"));
        assert!(peak < 256 * MIB, "{} MiB", peak / MIB);
        let engine = builder(dir.path(), 128 * MIB, Duration::from_secs(60)).open().unwrap();
        let expected = i64::try_from(WRITES * POINTS).unwrap();
        assert_eq!(number(&engine, "d", "SELECT count(*) FROM m"), expected);
    }
}
