//! What a point costs as the number of tables, series and fields grows, and as more threads write.
//!
//!     cargo run --release -p arc-benches --no-default-features --features engine --bin scale -- [--out DIR] [tables] [series] [fields] [threads]
//!
//! Line protocol into one engine in this process, `disk`, flushes and merges included: processor
//! time of the whole process until all is flushed, once every series has had its first point. Every
//! point is new, and each comes a second after the last one of its series, which report in turn:
//! with 10,000 tables no two points of a request are of one table. Prints the tables of
//! docs/performance.md; with `--out` they are written to DIR as well, where `figures` looks for
//! them.

use std::{collections::VecDeque, error::Error, fmt::Write as _, process::ExitCode, time::Instant};

use arc_benches::{
    load::process,
    subjects::{self, Subject},
};
use arc_core::{Engine, PendingWrite, WriteOptions};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

type Failure = Box<dyn Error + Send + Sync>;
type Outcome<T> = Result<T, Failure>;

/// Points of a request, and of a run with two fields.
const BATCH: u64 = 1_000;
const POINTS: u64 = 6_000_000;
/// Requests of a thread that wait for their answers at a time.
const PENDING: usize = 4;

/// What a run writes.
#[derive(Debug, Clone, Copy)]
struct Shape {
    tables: u64,
    /// Over all tables.
    series: u64,
    fields: u64,
    threads: u64,
}

const BASE: Shape = Shape { tables: 1, series: 100, fields: 2, threads: 2 };

fn main() -> ExitCode {
    let subject = |name, column, values: [u64; 4], shape: fn(u64) -> Shape| -> Subject<Failure> {
        (name, Box::new(move || measure(column, values.map(|value| (value, shape(value))))))
    };
    subjects::run(&[
        subject("tables", "tables", [1, 100, 1_000, 10_000], |tables| Shape {
            tables,
            series: tables.max(100),
            ..BASE
        }),
        subject("series", "series", [100, 10_000, 100_000, 1_000_000], |series| Shape { series, ..BASE }),
        subject("fields", "fields", [2, 10, 50, 200], |fields| Shape { fields, ..BASE }),
        subject("threads", "writing threads", [1, 2, 3, 4], |threads| Shape { threads, ..BASE }),
    ])
}

fn measure(column: &str, runs: [(u64, Shape); 4]) -> Outcome<String> {
    let mut table = format!(
        "| {column} | CPU s/M points | of the first | ns of CPU a field | points/s | flushes | bytes a point |\n"
    );
    table.push_str("| --- | --- | --- | --- | --- | --- | --- |\n");
    let mut first = None;
    for (value, shape) in runs {
        let run = run(shape)?;
        let first = *first.get_or_insert(run.cpu);
        writeln!(
            table,
            "| {value} | {:.2} | {:.2} | {:.0} | {:.2} M | {} | {:.1} |",
            run.cpu,
            run.cpu / first,
            run.cpu * 1e3 / shape.fields as f64,
            run.rate / 1e6,
            run.flushes,
            run.bytes
        )?;
    }
    Ok(table)
}

/// What a run took.
struct Run {
    /// Seconds for each million points.
    cpu: f64,
    rate: f64,
    flushes: u64,
    bytes: f64,
}

fn run(shape: Shape) -> Outcome<Run> {
    let folder = tempfile::tempdir()?;
    let engine = Engine::open(folder.path())?;
    // Wide points are fewer, so that all runs write about as many values.
    let points = POINTS * 2 / shape.fields.max(2) / shape.threads / BATCH * BATCH;
    let firsts = own_series(shape).div_ceil(BATCH);
    let mut prepared: Vec<VecDeque<Vec<u8>>> =
        (0..shape.threads).map(|thread| bodies(shape, thread, points + firsts * BATCH)).collect();
    for bodies in &mut prepared {
        let firsts = usize::try_from(firsts)?;
        write(&engine, bodies.drain(..firsts))?;
    }
    engine.flush()?;
    let warm = engine.stats();
    let cpu = || process::usage(std::process::id()).map_or(0.0, |usage| usage.cpu.as_secs_f64());
    let (start, before) = (Instant::now(), cpu());
    std::thread::scope(|scope| {
        let engine = &engine;
        let threads: Vec<_> =
            prepared.into_iter().map(|bodies| scope.spawn(move || write(engine, bodies.into_iter()))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err("a writer panicked".into())))
    })?;
    let took = start.elapsed().as_secs_f64();
    engine.flush()?;
    let cpu = cpu() - before;
    let stats = engine.stats();
    let written = points * shape.threads;
    if (stats.points - warm.points, stats.rejected_points) != (written, 0) {
        return Err(format!("{} of {written} points are stored", stats.points).into());
    }
    engine.close()?;
    let written = written as f64;
    Ok(Run {
        cpu: cpu * 1e6 / written,
        rate: written / took,
        flushes: stats.flushes - warm.flushes,
        bytes: stats.file_bytes as f64 / stats.points as f64,
    })
}

/// Writes bodies, a few at a time under way.
fn write(engine: &Engine, bodies: impl Iterator<Item = Vec<u8>>) -> Outcome<()> {
    let mut pending: VecDeque<PendingWrite> = VecDeque::new();
    let settle = |pending: PendingWrite| pending.wait().map(drop);
    for body in bodies {
        if pending.len() == PENDING {
            pending.pop_front().map(settle).transpose()?;
        }
        pending.push_back(engine.submit_lp("bench", body.into(), &WriteOptions::new())?);
    }
    pending.into_iter().try_for_each(settle)?;
    Ok(())
}

fn own_series(shape: Shape) -> u64 {
    (shape.series / shape.threads).max(1)
}

/// The requests of one thread, which has every so manieth series: all of them report in turn.
fn bodies(shape: Shape, thread: u64, points: u64) -> VecDeque<Vec<u8>> {
    const START: u64 = 1_767_225_600;
    let own = own_series(shape);
    let mut bodies = VecDeque::new();
    let mut body = String::new();
    for point in 0..points {
        let (series, tick) = (point % own * shape.threads + thread, point / own);
        let _ = write!(body, "t{},host=host{series} ", series % shape.tables);
        for field in 0..shape.fields {
            // Two decimals that walk slowly, as measurements do.
            let value = (series * 7 + field * 13 + tick * (1 + field % 3)) % 10_000;
            let comma = if field > 0 { "," } else { "" };
            let _ = write!(body, "{comma}f{field}={}.{:02}", value / 100, value % 100);
        }
        let _ = writeln!(body, " {}", (START + tick) * 1_000_000_000);
        if (point + 1) % BATCH == 0 {
            bodies.push_back(std::mem::take(&mut body).into_bytes());
        }
    }
    bodies
}
