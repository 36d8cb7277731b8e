//! How long do the usual questions about a day of host metrics take, from SQL to the last record
//! batch?
//!
//! One table of 864,000 rows: 100 hosts, every 10 s of 2025-01-01 (ten tags, five floats, five
//! integers), loaded with tags and flushed in 24 files, hour by hour. In-process, warm: files in
//! the page cache, one query at a time on all cores. The questions are those of TARGETS for 17
//! million rows, on a twentieth of them: compare between commits, not with the figures of that
//! table.
//!
//! Not measured: HTTP and its encodings, unflushed rows, a cold disk, queries beside writes.

use std::time::Duration;

use arc_benches::{cpu_table::CpuTable, hosts::TAG_KEYS};
use arc_core::{Durability, Engine, WriteOptions};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use futures::TryStreamExt as _;
use mimalloc::MiMalloc;
use tokio::runtime::Runtime;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const HOSTS: usize = 100;
const TICKS_AN_HOUR: usize = 360;

const NOON: &str = "time >= TIMESTAMP '2025-01-01 06:00:00Z' AND time < TIMESTAMP '2025-01-01 18:00:00Z'";

/// Name and text of each query.
fn queries() -> Vec<(&'static str, String)> {
    let means = "avg(usage_user), avg(usage_system), avg(usage_idle), avg(usage_nice), avg(usage_iowait)";
    vec![
        ("count", "SELECT count(*) FROM cpu".into()),
        (
            "one_host_1h",
            "SELECT date_trunc('minute', time) AS minute, max(usage_user) FROM cpu WHERE hostname = 'host_49' \
             AND time >= TIMESTAMP '2025-01-01 08:16:20Z' AND time < TIMESTAMP '2025-01-01 09:16:20Z' GROUP BY 1 ORDER BY 1"
                .into(),
        ),
        ("host_avg", "SELECT hostname, avg(usage_user) FROM cpu GROUP BY hostname ORDER BY hostname".into()),
        (
            "double_groupby",
            format!(
                "SELECT hostname, date_trunc('hour', time) AS hour, {means} FROM cpu WHERE {NOON} \
                 GROUP BY hostname, 2 ORDER BY hostname, 2"
            ),
        ),
        (
            "last_point",
            "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY hostname ORDER BY time DESC) AS rn FROM cpu) \
             WHERE rn = 1"
                .into(),
        ),
        (
            "top_k",
            "SELECT time, hostname, usage_user FROM cpu ORDER BY usage_system DESC, time, hostname LIMIT 10".into(),
        ),
        ("high_cpu", format!("SELECT count(*), max(usage_idle) FROM cpu WHERE usage_user > 90.0 AND {NOON}")),
        ("export", format!("SELECT * FROM cpu WHERE {NOON}")),
    ]
}

fn load(engine: &Engine) {
    let options = WriteOptions::new().durability(Durability::Memory).tags(TAG_KEYS);
    let mut table = CpuTable::new(42, HOSTS, Duration::from_secs(10));
    for _ in 0..24 {
        let batches: Vec<_> = table.take(TICKS_AN_HOUR).into_iter().collect();
        let written = engine.submit_batches("bench", "cpu", &batches, &options).and_then(arc_core::PendingWrite::wait);
        assert!(written.is_ok() && engine.flush().is_ok(), "loading failed");
    }
}

/// Returns how many rows the answer has.
fn ask(runtime: &Runtime, engine: &Engine, sql: &str) -> usize {
    let rows = runtime.block_on(async {
        let answer = engine.sql("bench", sql).await?;
        answer.try_fold(0, async |rows, batch| Ok(rows + batch.num_rows())).await
    });
    rows.unwrap_or(0)
}

#[expect(clippy::expect_used, reason = "a bench that cannot start says why")]
fn query(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let engine = Engine::open(folder.path()).expect("an engine in it");
    let runtime = Runtime::new().expect("a runtime");
    load(&engine);
    let mut group = criterion.benchmark_group("query");
    group.sample_size(20).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(3));
    for (name, sql) in queries() {
        assert!(ask(&runtime, &engine, &sql) > 0, "{name} has no answer");
        group.bench_function(BenchmarkId::from_parameter(name), |b| b.iter(|| ask(&runtime, &engine, &sql)));
    }
    group.finish();
    let _ = engine.close();
}

criterion_group!(benches, query);
criterion_main!(benches);
