//! What does a point cost one thread until its columns are ready, and until they are in the buffer?
//!
//! One writer, requests of 10,000 points of the load generator, one table, `memory` durability, so
//! that there is no log. `decode` is the call that submits a request: decoding, checks, queueing,
//! all on the caller's thread. `write` goes on to the receipt: the thread that owns the order has
//! appended the rows to the buffer. The difference is appending and one change of threads there and
//! back.
//!
//! Not measured: the log, flushes (they run between the requests), HTTP. Line protocol alone is in
//! `lp_parse`.

use std::time::{Duration, Instant};

use arc_benches::load::{Bodies, Kind, Order, Recipe, Shape, now_ns, own_hosts};
use arc_core::{Durability, Engine, PendingWrite, WriteOptions};
use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const BATCH: u32 = 10_000;
const HOSTS: u32 = 100;
/// Requests between two flushes: 640,000 points.
const REQUESTS_A_FLUSH: u64 = 64;

const CASES: [(Kind, Shape); 6] = [
    (Kind::Lp, Shape::Short),
    (Kind::Lp, Shape::Tsbs),
    (Kind::MsgpackColumnar, Shape::Iot),
    (Kind::MsgpackColumnar, Shape::Tsbs),
    (Kind::MsgpackRow, Shape::Iot),
    (Kind::MsgpackRow, Shape::Tsbs),
];

/// Up to where the clock runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    Submitted,
    Written,
}

/// Writes `requests` requests and returns how long they took.
fn write(engine: &Engine, bodies: &mut Bodies, requests: u64, kind: Kind, until: Until) -> Duration {
    let options = WriteOptions::new().durability(Durability::Memory);
    let mut took = Duration::ZERO;
    for request in 1..=requests {
        let body = bodies.advance().unwrap_or_default().to_vec().into();
        let start = Instant::now();
        let pending = match kind {
            Kind::Lp => engine.submit_lp("bench", body, &options),
            Kind::MsgpackColumnar | Kind::MsgpackRow => engine.submit_msgpack("bench", body, &options),
        };
        let submitted = start.elapsed();
        let written = pending.and_then(PendingWrite::wait);
        took += if until == Until::Submitted { submitted } else { start.elapsed() };
        assert!(written.is_ok_and(|written| written.points == u64::from(BATCH)), "a write failed");
        if request.is_multiple_of(REQUESTS_A_FLUSH) || request == requests {
            assert!(engine.flush().is_ok(), "a flush failed");
        }
    }
    took
}

#[expect(clippy::expect_used, reason = "a bench that cannot start says why")]
fn decode(criterion: &mut Criterion) {
    for (kind, shape) in CASES {
        let mut group = criterion.benchmark_group(format!("decode/{kind}/{shape}"));
        group.throughput(Throughput::Elements(u64::from(BATCH))).sampling_mode(SamplingMode::Flat);
        group.sample_size(20).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
        for (name, until) in [("decode", Until::Submitted), ("write", Until::Written)] {
            let folder = tempfile::tempdir().expect("a folder for temporary files");
            let builder = Engine::builder(folder.path()).flush_bytes(240 << 20);
            let engine = builder.flush_after(Duration::from_secs(86_400)).open().expect("an engine in it");
            let recipe =
                Recipe { kind, shape, batch: BATCH, pool: 4, seed: 42, order: Order::InTurn, start_ns: now_ns() };
            let mut bodies = Bodies::new(recipe, own_hosts(HOSTS, 1, 0), 0).expect("bodies");
            group.bench_function(BenchmarkId::from_parameter(name), |b| {
                b.iter_custom(|requests| write(&engine, &mut bodies, requests, kind, until));
            });
            let _ = engine.close();
        }
        group.finish();
    }
}

criterion_group!(benches, decode);
criterion_main!(benches);
