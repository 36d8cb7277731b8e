//! What does a large body cost that comes alone, and how long does it take?
//!
//! One writer, bodies of line protocol of the load generator, one table, `memory` durability, so
//! that there is no log. Bodies above half a MiB are decoded by spare threads, too: `taskset -c 0`
//! shows the same without any, `-c 0,1` with one. Throughput is in points, wall time up to the
//! receipt. The processor time of the process, flushes left out, is printed beside it.
//!
//! Not measured: the log, flushes (they run between the requests), HTTP.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use arc_benches::load::{Bodies, Kind, Order, Recipe, Shape, now_ns, own_hosts};
use arc_core::{Durability, Engine, PendingWrite, WriteOptions};
use cpu_time::ProcessTime;
use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const HOSTS: u32 = 100;
const POINTS_A_FLUSH: u64 = 1_000_000;

/// Processor time and points so far.
#[derive(Default)]
struct Spent {
    cpu: Cell<Duration>,
    points: Cell<u64>,
}

/// Writes `requests` requests and returns how long they took.
fn write(engine: &Engine, bodies: &mut Bodies, requests: u64, batch: u32, spent: &Spent) -> Duration {
    let options = WriteOptions::new().durability(Durability::Memory);
    let mut took = Duration::ZERO;
    for request in 1..=requests {
        let body = bodies.advance().unwrap_or_default().to_vec().into();
        let (start, cpu) = (Instant::now(), ProcessTime::now());
        let written = engine.submit_lp("bench", body, &options).and_then(PendingWrite::wait);
        took += start.elapsed();
        spent.cpu.set(spent.cpu.get() + cpu.elapsed());
        spent.points.set(spent.points.get() + u64::from(batch));
        assert!(written.is_ok_and(|written| written.points == u64::from(batch)), "a write failed");
        if request.is_multiple_of(POINTS_A_FLUSH.div_ceil(u64::from(batch))) || request == requests {
            assert!(engine.flush().is_ok(), "a flush failed");
        }
    }
    took
}

#[expect(clippy::expect_used, reason = "a bench that cannot start says why")]
fn large(criterion: &mut Criterion) {
    for shape in [Shape::Short, Shape::Tsbs] {
        let mut group = criterion.benchmark_group(format!("large/{shape}"));
        for batch in [10_000, 100_000] {
            group.throughput(Throughput::Elements(u64::from(batch))).sampling_mode(SamplingMode::Flat);
            group.sample_size(20).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
            let folder = tempfile::tempdir().expect("a folder for temporary files");
            let builder = Engine::builder(folder.path()).flush_bytes(150 << 20);
            let engine = builder.flush_after(Duration::from_secs(86_400)).open().expect("an engine in it");
            let recipe =
                Recipe { kind: Kind::Lp, shape, batch, pool: 4, seed: 42, order: Order::InTurn, start_ns: now_ns() };
            let mut bodies = Bodies::new(recipe, own_hosts(HOSTS, 1, 0), 0).expect("bodies");
            let spent = Spent::default();
            group.bench_function(BenchmarkId::from_parameter(batch), |b| {
                b.iter_custom(|requests| write(&engine, &mut bodies, requests, batch, &spent));
            });
            let millions = spent.points.get() as f64 / 1e6;
            println!("large/{shape}/{batch}: {:.4} CPU s/M points", spent.cpu.get().as_secs_f64() / millions);
            let _ = engine.close();
        }
        group.finish();
    }
}

criterion_group!(benches, large);
criterion_main!(benches);
