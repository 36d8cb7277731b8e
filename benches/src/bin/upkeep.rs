//! What opening, committing and merging cost: the parts of the engine that run beside reading and
//! writing.
//!
//!     cargo run --release -p arc-benches --no-default-features --features engine --bin upkeep -- [--out DIR] [replay] [catalog] [snapshots] [merge]
//!
//! Prints the tables of docs/performance.md; with `--out` they are written to DIR as well, where
//! `figures` looks for them. The databases go below the folder for temporary files (`TMPDIR`),
//! which should be on the disk that is to be measured.

use std::{
    error::Error,
    process::ExitCode,
    time::{Duration, Instant},
};

use arc_benches::{
    cpu_table::CpuTable,
    hosts::TAG_KEYS,
    load::{Bodies, Kind, Order, Recipe, Shape, now_ns, own_hosts, process},
    subjects::run,
};
use arc_core::{Durability, Engine, Options, PendingWrite, WriteOptions};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Bytes of the requests that are in the log that `replay` opens on.
const SENT_BYTES: u64 = 1 << 30;
/// Data files that `catalog` ends with, and those of one flush.
const FILES: u64 = 100_000;
const TABLES: u64 = 2_000;

fn main() -> ExitCode {
    run(&[
        ("replay", Box::new(replay)),
        ("catalog", Box::new(catalog)),
        ("snapshots", Box::new(snapshots)),
        ("merge", Box::new(merge)),
    ])
}

/// A gigabyte of requests in the log and no data file, as `kill -9` may leave it, and the time to
/// open on it.
fn replay() -> Outcome<String> {
    let mut table = heading(&[
        "path",
        "shape",
        "sent MB",
        "log MB",
        "points",
        "ready after s",
        "sent MB/s",
        "CPU s",
        "CPU s/M points",
    ]);
    for (kind, shape) in [(Kind::Lp, Shape::Tsbs), (Kind::Lp, Shape::Short), (Kind::MsgpackColumnar, Shape::Iot)] {
        let folder = tempfile::tempdir()?;
        let mut options = Options::default();
        (options.memory_bytes, options.max_buffer_bytes) = (64 << 30, 16 << 30);
        (options.flush_bytes, options.flush_wal_bytes) = (8 << 30, 64 << 30);
        options.flush_after = Duration::from_secs(86_400);
        let engine = Engine::builder(folder.path()).options(options).open()?;
        let recipe = Recipe { kind, shape, batch: 1_000, pool: 64, seed: 42, order: Order::InTurn, start_ns: now_ns() };
        let mut bodies = Bodies::new(recipe, own_hosts(100, 1, 0), 0)?;
        let write = WriteOptions::new().durability(Durability::Process);
        while engine.stats().bytes < SENT_BYTES {
            for _ in 0..100 {
                let body = bodies.advance()?.to_vec().into();
                let pending = match kind {
                    Kind::Lp => engine.submit_lp("bench", body, &write),
                    Kind::MsgpackColumnar | Kind::MsgpackRow => engine.submit_msgpack("bench", body, &write),
                };
                stored(pending)?;
            }
        }
        let stats = engine.stats();
        // Dropped, not closed: nothing is flushed.
        drop(engine);
        let start = Started::now();
        let engine = Engine::open(folder.path())?;
        let (took, cpu) = start.elapsed();
        let (points, replayed) = (stats.points, engine.stats().replayed_points);
        if replayed != points {
            return Err(format!("{replayed} of {points} points were replayed").into());
        }
        let (sent, logged) = (stats.bytes as f64 / 1e6, stats.wal_bytes as f64 / 1e6);
        line(
            &mut table,
            &[
                kind.to_string(),
                shape.to_string(),
                format!("{sent:.0}"),
                format!("{logged:.0}"),
                format!("{:.1} M", points as f64 / 1e6),
                format!("{took:.2}"),
                format!("{:.0}", sent / took),
                format!("{cpu:.2}"),
                format!("{:.2}", cpu * 1e6 / points as f64),
            ],
        );
        engine.close()?;
    }
    Ok(table)
}

/// One small table's flush while the number of live files grows, and the time to open with all of
/// them.
fn catalog() -> Outcome<String> {
    let mut table = heading(&["data files", "flush of one point, median ms", "open s", "CPU of opening s"]);
    let folder = tempfile::tempdir()?;
    let mut engine = Engine::builder(folder.path()).compaction(false).open()?;
    let write = WriteOptions::new().durability(Durability::Memory);
    let mut tick = 1_735_689_600_000_000_000_u64;
    let mut flushed = 0;
    for target in [0, FILES / 100, FILES / 10, FILES / 2, FILES] {
        while engine.stats().files < target {
            tick += 1_000_000_000;
            let tables = TABLES.min(target.saturating_sub(engine.stats().files));
            let body: String =
                (0..tables).map(|table| format!("table{table},host=a value={flushed} {tick}\n")).collect();
            stored(engine.submit_lp("bench", body.into(), &write))?;
            engine.flush()?;
            flushed += 1;
        }
        let mut times = Vec::new();
        for _ in 0..21 {
            tick += 1_000_000_000;
            stored(engine.submit_lp("bench", format!("one value=1 {tick}").into_bytes().into(), &write))?;
            let start = Instant::now();
            engine.flush()?;
            times.push(start.elapsed());
        }
        times.sort_unstable();
        let files = engine.stats().files;
        engine.close()?;
        drop(engine);
        let start = Started::now();
        engine = Engine::builder(folder.path()).compaction(false).open()?;
        let (took, cpu) = start.elapsed();
        if engine.stats().files != files {
            return Err(format!("{} of {files} files are known after opening", engine.stats().files).into());
        }
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        line(
            &mut table,
            &[
                files.to_string(),
                format!("{:.2}", median.as_secs_f64() * 1e3),
                format!("{took:.3}"),
                format!("{cpu:.3}"),
            ],
        );
    }
    engine.close()?;
    Ok(table)
}

/// The time to open a directory of 20,000 files the more snapshots it has, one after each day on which a
/// hundred files come and are merged.
fn snapshots() -> Outcome<String> {
    let mut table = heading(&["snapshots", "data files", "CREATE SNAPSHOT, median ms", "open s", "CPU of opening s"]);
    let folder = tempfile::tempdir()?;
    let mut options = Options::default();
    (options.compaction, options.history) = (false, Duration::ZERO);
    let open = || Engine::builder(folder.path()).options(options.clone()).open();
    let mut engine = open()?;
    let write = WriteOptions::new().durability(Durability::Memory);
    let points = |engine: &Engine, tables: u64, day: u64| -> Outcome<()> {
        let tick = 1_735_689_600_000_000_000 + day * 86_400_000_000_000;
        let body: String = (0..tables).map(|table| format!("table{table},host=a value={day} {tick}\n")).collect();
        stored(engine.submit_lp("bench", body.into(), &write))?;
        Ok(engine.flush().map(drop)?)
    };
    for day in 0..10 {
        points(&engine, TABLES, day)?;
    }
    let (mut made, mut times) = (0, Vec::new());
    for target in [0, 30, 365] {
        while made < target {
            points(&engine, 100, 10 + made)?;
            engine.compact()?;
            let start = Instant::now();
            engine.create_snapshot(&format!("day{made}"))?;
            times.push(start.elapsed());
            made += 1;
        }
        let stats = engine.stats();
        engine.close()?;
        drop(engine);
        let start = Started::now();
        engine = open()?;
        let (took, cpu) = start.elapsed();
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        line(
            &mut table,
            &[
                stats.snapshots.to_string(),
                (stats.files + stats.retired_files).to_string(),
                format!("{:.0}", median.as_secs_f64() * 1e3),
                format!("{took:.2}"),
                format!("{cpu:.2}"),
            ],
        );
    }
    engine.close()?;
    Ok(table)
}

/// A day of 1,000 hosts in 48 flushes, merged as it comes and then for the last time.
fn merge() -> Outcome<String> {
    const HOSTS: usize = 1_000;
    let mut table = heading(&[
        "rows",
        "files before",
        "after",
        "rows/CPU s",
        "MB in/s",
        "written for each byte flushed",
        "bytes a row",
    ]);
    let folder = tempfile::tempdir()?;
    let mut options = Options::default();
    (options.compaction, options.flush_after) = (false, Duration::from_secs(86_400));
    let engine = Engine::builder(folder.path()).options(options).open()?;
    let mut rows = CpuTable::new(42, HOSTS, Duration::from_secs(30));
    let write = WriteOptions::new().durability(Durability::Memory).tags(TAG_KEYS);
    let (mut took, mut cpu) = (0.0, 0.0);
    for _ in 0..48 {
        for _ in 0..2 {
            stored(engine.submit_batches("bench", "cpu", &[rows.take(30)?], &write))?;
        }
        engine.flush()?;
        let start = Started::now();
        engine.compact()?;
        let spent = start.elapsed();
        (took, cpu) = (took + spent.0, cpu + spent.1);
    }
    let stats = engine.stats();
    let all = stats.flushed_rows;
    line(
        &mut table,
        &[
            all.to_string(),
            stats.flushes.to_string(),
            stats.files.to_string(),
            format!("{:.2} M", stats.compaction_rows_in as f64 / cpu / 1e6),
            format!("{:.0}", stats.compaction_bytes_in as f64 / took / 1e6),
            format!("{:.2}", (stats.flushed_bytes + stats.compaction_bytes_out) as f64 / stats.flushed_bytes as f64),
            format!("{:.2}", stats.file_bytes as f64 / all as f64),
        ],
    );
    engine.close()?;
    Ok(table)
}

/// Waits for a write and returns an error unless all of it is stored.
fn stored(pending: arc_core::Result<PendingWrite>) -> Outcome<()> {
    let written = pending?.wait()?;
    if written.rejected_points == 0 { Ok(()) } else { Err(format!("refused: {:?}", written.rejected).into()) }
}

/// Wall and processor time since a moment, in seconds.
struct Started(Instant, Option<process::Usage>);

impl Started {
    fn now() -> Self {
        Self(Instant::now(), process::usage(std::process::id()))
    }

    /// Processor time is 0 where the system does not tell it.
    fn elapsed(&self) -> (f64, f64) {
        let cpu = self.1.zip(process::usage(std::process::id())).map_or(Duration::ZERO, |(from, to)| to.cpu - from.cpu);
        (self.0.elapsed().as_secs_f64(), cpu.as_secs_f64())
    }
}

fn heading(columns: &[&str]) -> String {
    format!("| {} |\n|{}\n", columns.join(" | "), " --- |".repeat(columns.len()))
}

fn line(table: &mut String, cells: &[String]) {
    table.push_str(&format!("| {} |\n", cells.join(" | ")));
}
