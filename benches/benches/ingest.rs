//! What does a point cost the engine in-process, by format, shape and durability?
//!
//! Eight threads write requests of 1,000 points, each thread ten hosts of its own in the order of
//! time, into one table of a fresh engine with its default options. Bodies are the load
//! generator's: new timestamps in every request, values that repeat after sixteen requests.
//! Throughput is in points, wall time, with the flushes that fall into it.
//!
//! Not measured: HTTP, decompression, reading. `memory` never waits for the log; `process` waits
//! for `write`; `disk` waits for `fdatasync` and so depends on the disk below the folder for
//! temporary files (`TMPDIR`), which must be no tmpfs.

use std::{
    thread,
    time::{Duration, Instant},
};

use arc_benches::load::{Bodies, Kind, Order, Recipe, Shape, now_ns, own_hosts};
use arc_core::{Durability, Engine, WriteOptions};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const BATCH: u32 = 1000;
const WRITERS: u32 = 8;
const HOSTS: u32 = 80;

const CASES: [(Kind, Shape); 5] = [
    (Kind::Lp, Shape::Short),
    (Kind::Lp, Shape::Tsbs),
    (Kind::MsgpackColumnar, Shape::Iot),
    (Kind::MsgpackColumnar, Shape::Tsbs),
    (Kind::MsgpackRow, Shape::Iot),
];

/// Writes `requests` requests from each writer and returns how long that took.
fn write(engine: &Engine, bodies: &mut [Bodies], requests: u64, kind: Kind, durability: Durability) -> Duration {
    let options = WriteOptions::new().durability(durability);
    let start = Instant::now();
    thread::scope(|scope| {
        for bodies in bodies {
            let options = &options;
            scope.spawn(move || {
                for _ in 0..requests {
                    let body = bodies.advance().unwrap_or_default().to_vec().into();
                    let pending = match kind {
                        Kind::Lp => engine.submit_lp("bench", body, options),
                        Kind::MsgpackColumnar | Kind::MsgpackRow => engine.submit_msgpack("bench", body, options),
                    };
                    let written = pending.and_then(arc_core::PendingWrite::wait);
                    assert!(written.is_ok_and(|written| written.points == u64::from(BATCH)), "a write failed");
                }
            });
        }
    });
    start.elapsed()
}

#[expect(clippy::expect_used, reason = "a bench that cannot start says why")]
fn ingest(criterion: &mut Criterion) {
    for (kind, shape) in CASES {
        let mut group = criterion.benchmark_group(format!("ingest/{kind}/{shape}"));
        group.throughput(Throughput::Elements(u64::from(BATCH * WRITERS)));
        group.sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(4));
        for durability in [Durability::Memory, Durability::Process, Durability::Disk] {
            let folder = tempfile::tempdir().expect("a folder for temporary files");
            let engine = Engine::open(folder.path()).expect("an engine in it");
            let recipe =
                Recipe { kind, shape, batch: BATCH, pool: 16, seed: 42, order: Order::InTurn, start_ns: now_ns() };
            let bodies = (0..WRITERS).map(|writer| Bodies::new(recipe, own_hosts(HOSTS, WRITERS, writer), writer));
            let mut bodies = bodies.collect::<Result<Vec<_>, _>>().expect("bodies");
            group.bench_function(BenchmarkId::from_parameter(durability), |b| {
                b.iter_custom(|requests| write(&engine, &mut bodies, requests, kind, durability));
            });
            let _ = engine.close();
        }
        group.finish();
    }
}

criterion_group!(benches, ingest);
criterion_main!(benches);
