//! How many rows a second go from memory to Parquet, durable and in the manifest?
//!
//! 200,000 rows of 1,000 hosts (ten tags, five floats of two decimals, five integers; 21 columns) are written in order of
//! arrival with `memory` durability, untimed; then `Engine::flush` is timed: sorting by tags and time, encoding, `fsync` of
//! file and folder, the manifest. `keyed` rows have tags, as those of line protocol; `appended` ones have none, as those
//! of columnar MessagePack.
//!
//! Not measured: writes that go on meanwhile. The disk is that of the folder for temporary files (`TMPDIR`).

use std::time::{Duration, Instant};

use arc_benches::{cpu_table::CpuTable, hosts::TAG_KEYS};
use arc_core::{Durability, Engine, WriteOptions};
use arrow::array::RecordBatch;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mimalloc::MiMalloc;
use tempfile::TempDir;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const HOSTS: usize = 1000;
const TICKS: usize = 200;
/// Rows of one write: 25 ticks, 25,000 rows.
const TICKS_A_WRITE: usize = 25;

/// Opens an engine that never flushes by itself.
#[expect(clippy::expect_used, reason = "a bench that cannot start says why")]
fn open() -> (TempDir, Engine) {
    let opened = tempfile::tempdir().map_err(|error| error.to_string()).and_then(|folder| {
        let builder = Engine::builder(folder.path()).flush_bytes(240 << 20).flush_after(Duration::from_secs(86_400));
        builder.open().map(|engine| (folder, engine)).map_err(|error| error.to_string())
    });
    opened.expect("an engine in a folder for temporary files")
}

/// Writes the table's next rows and returns how long their flush took.
fn flush(engine: &Engine, table: &mut CpuTable, options: &WriteOptions) -> Duration {
    for _ in 0..TICKS / TICKS_A_WRITE {
        let batches: Vec<RecordBatch> = table.take(TICKS_A_WRITE).into_iter().collect();
        let written = engine.submit_batches("bench", "cpu", &batches, options).and_then(arc_core::PendingWrite::wait);
        assert!(written.is_ok(), "a write failed");
    }
    let start = Instant::now();
    let report = engine.flush();
    let took = start.elapsed();
    assert!(report.is_ok_and(|report| report.rows == (HOSTS * TICKS) as u64), "a flush failed or came too early");
    took
}

fn flushes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("flush");
    group.throughput(Throughput::Elements((HOSTS * TICKS) as u64));
    group.sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(10));
    for (name, tags) in [("keyed", TAG_KEYS.as_slice()), ("appended", &[])] {
        let options = WriteOptions::new().durability(Durability::Memory).tags(tags.iter().copied());
        let (_folder, engine) = open();
        let mut table = CpuTable::new(42, HOSTS, Duration::from_secs(1));
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter_custom(|times| (0..times).map(|_| flush(&engine, &mut table, &options)).sum());
        });
        let files = engine.data_files("bench", "cpu").unwrap_or_default();
        let (bytes, rows) = files.iter().fold((0, 0), |(bytes, rows), file| (bytes + file.bytes, rows + file.rows));
        println!("flush/{name}: {:.2} bytes a row in {} files", bytes as f64 / rows as f64, files.len());
        let _ = engine.close();
    }
    group.finish();
}

criterion_group!(benches, flushes);
criterion_main!(benches);
