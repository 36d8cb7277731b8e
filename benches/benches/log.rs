//! What does the log add to a write, alone and in groups?
//!
//! One thread submits line protocol (`short` of the load generator) and waits. `one` is a request
//! of one point after another: each is a group of its own, with `disk` a sync each. `in-flight-64`
//! submits 64 such requests before it waits for the first: they share groups. `large` is a request
//! of 10,000 points, 0.8 MB of log. `memory` has no log.
//!
//! Times are for a point. They depend on the disk below the folder for temporary files (`TMPDIR`),
//! which must be no tmpfs. Not measured: HTTP, writers that contend for processors.

use std::time::{Duration, Instant};

use arc_benches::load::{Bodies, Kind, Order, Recipe, Shape, now_ns, own_hosts};
use arc_core::{Durability, Engine, PendingWrite, WriteOptions};
use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Name, points of a request, requests in flight.
const CASES: [(&str, u32, u32); 3] = [("one", 1, 1), ("in-flight-64", 1, 64), ("large", 10_000, 1)];

/// Writes `rounds` rounds of requests, each round submitted before any of it is waited for.
fn write(engine: &Engine, bodies: &mut Bodies, rounds: u64, in_flight: u32, options: &WriteOptions) -> Duration {
    let mut took = Duration::ZERO;
    for _ in 0..rounds {
        let requests: Vec<Vec<u8>> = (0..in_flight).map(|_| bodies.advance().unwrap_or_default().to_vec()).collect();
        let start = Instant::now();
        let submit = |body: Vec<u8>| engine.submit_lp("bench", body.into(), options);
        let pending: Vec<_> = requests.into_iter().map(submit).collect();
        let all_written = pending.into_iter().all(|pending| pending.and_then(PendingWrite::wait).is_ok());
        took += start.elapsed();
        assert!(all_written, "a write failed");
    }
    took
}

#[expect(clippy::expect_used, reason = "a bench that cannot start says why")]
fn log(criterion: &mut Criterion) {
    for (name, batch, in_flight) in CASES {
        let mut group = criterion.benchmark_group(format!("log/{name}"));
        group.throughput(Throughput::Elements(u64::from(batch * in_flight))).sampling_mode(SamplingMode::Flat);
        group.sample_size(20).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(2));
        for durability in [Durability::Memory, Durability::Process, Durability::Disk] {
            let folder = tempfile::tempdir().expect("a folder for temporary files");
            let engine = Engine::open(folder.path()).expect("an engine in it");
            let recipe = Recipe {
                kind: Kind::Lp,
                shape: Shape::Short,
                batch,
                pool: 64,
                seed: 42,
                order: Order::InTurn,
                start_ns: now_ns(),
            };
            let mut bodies = Bodies::new(recipe, own_hosts(100, 1, 0), 0).expect("bodies");
            let options = WriteOptions::new().durability(durability);
            group.bench_function(BenchmarkId::from_parameter(durability), |b| {
                b.iter_custom(|rounds| write(&engine, &mut bodies, rounds, in_flight, &options));
            });
            let _ = engine.close();
        }
        group.finish();
    }
}

criterion_group!(benches, log);
criterion_main!(benches);
