//! Writes log rows with the Parquet writer of `arc_core::datafile`, and says what that took: one
//! line of JSON a run.
//!
//! `write_logs --input logs.arrow --out folder arrow` writes the rows of an Arrow file; without
//! `--input` rows of the same shape are made. `benches/logs.py` runs it beside other engines. Ways
//! in:
//!
//! - `arrow`: record batches as they are
//! - `whole`: batches of 1,000 rows, with first and last time, distinct values of four columns, an
//!   accumulator, and a group key
//! - `bare`: as `whole`, without any statistics
//! - `rows`, `maps`: each row as a slice of values, or as a hash map of names and values; they are
//!   made outside the measure
//!
//! Time is until the files are closed: with fsync, which costs nothing where the folder is in
//! memory.

use std::{
    collections::HashMap,
    fs::File,
    path::PathBuf,
    time::{Duration, Instant},
};

use arc_benches::{
    allocations::{Counting, Measuring, allocations, most_held},
    logs::batches,
};
use arc_core::datafile::{Accumulator, ParquetWriter, ParquetWriterBuilder, Value};
use arrow::{
    array::{Array, AsArray, RecordBatch},
    datatypes::{DataType, Int64Type},
    ipc::reader::FileReader,
};
use clap::{Parser, ValueEnum};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: Measuring<MiMalloc> = Measuring(Counting(MiMalloc));

type Failure = Box<dyn std::error::Error>;

#[derive(Parser)]
struct Arguments {
    /// What is measured.
    way: Way,
    /// Arrow file with the rows.
    #[arg(long)]
    input: Option<PathBuf>,
    /// Folder that the files go to; they are removed, but for those of the last round with
    /// `--keep`.
    #[arg(long)]
    out: PathBuf,
    #[arg(long, default_value_t = 400_000)]
    rows: usize,
    #[arg(long, default_value_t = 1)]
    threads: usize,
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Rows of a batch; 0 for those of the input.
    #[arg(long, default_value_t = 0)]
    batch: usize,
    #[arg(long)]
    max_rows: Option<u64>,
    #[arg(long)]
    keep: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Way {
    Arrow,
    Whole,
    Bare,
    Rows,
    Maps,
}

/// Counts rows by level: what a user may want to know.
#[derive(Default)]
struct Errors(u64);

impl Accumulator for Errors {
    type Output = u64;

    fn update(&mut self, rows: &RecordBatch) {
        let levels = rows.column_by_name("level").and_then(|column| column.as_string_opt::<i32>());
        self.0 += levels.map_or(0, |levels| levels.iter().filter(|level| *level == Some("ERROR")).count() as u64);
    }

    fn finish(self) -> u64 {
        self.0
    }
}

struct Round {
    took: Duration,
    /// Processor time of the thread that writes, where the system tells it.
    cpu: Duration,
    allocations: u64,
    peak_bytes: usize,
    bytes: u64,
}

fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    let input = read(&arguments)?;
    let rows: usize = input.iter().map(RecordBatch::num_rows).sum();
    let mut best: Option<Round> = None;
    for round in 0..arguments.rounds {
        if round > 0 {
            clear(&arguments)?;
        }
        let now = run(&arguments, &input)?;
        if best.as_ref().is_none_or(|best| now.cpu < best.cpu) {
            best = Some(now);
        }
    }
    if !arguments.keep {
        clear(&arguments)?;
    }
    let Some(best) = best else { return Ok(()) };
    let name = arguments.way.to_possible_value().map(|way| way.get_name().to_owned()).unwrap_or_default();
    println!(
        "{{\"way\":\"{name}\",\"threads\":{},\"rows\":{rows},\"seconds\":{:.4},\"rows_per_second\":{:.0},\"cpu_seconds\":{:.4},\
         \"bytes_per_row\":{:.2},\"peak_mb\":{:.1},\"allocations_per_row\":{:.3}}}",
        arguments.threads,
        best.took.as_secs_f64(),
        rows as f64 / best.took.as_secs_f64(),
        best.cpu.as_secs_f64(),
        best.bytes as f64 / rows as f64,
        best.peak_bytes as f64 / 1e6,
        best.allocations as f64 / rows as f64,
    );
    Ok(())
}

/// Removes what a round has written.
fn clear(arguments: &Arguments) -> Result<(), Failure> {
    for entry in std::fs::read_dir(&arguments.out)? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.starts_with("logs-") {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

fn read(arguments: &Arguments) -> Result<Vec<RecordBatch>, Failure> {
    let input: Vec<RecordBatch> = match &arguments.input {
        None => batches(arguments.rows, 42)?,
        Some(path) => FileReader::try_new(File::open(path)?, None)?.collect::<Result<_, _>>()?,
    };
    let size = match (arguments.batch, arguments.way) {
        (0, Way::Whole | Way::Bare) => 1_000,
        (0, _) => return Ok(input),
        (rows, _) => rows,
    };
    let cut = |batch: &RecordBatch| {
        let rows = batch.num_rows();
        (0..rows).step_by(size).map(|start| batch.slice(start, size.min(rows - start))).collect::<Vec<_>>()
    };
    Ok(input.iter().flat_map(cut).collect())
}

fn run(arguments: &Arguments, input: &[RecordBatch]) -> Result<Round, Failure> {
    let schema = input.first().ok_or("no rows")?.schema();
    let builder = ParquetWriter::builder(&arguments.out, schema).name("logs").threads(arguments.threads);
    let builder = builder.max_rows(arguments.max_rows.unwrap_or(u64::MAX));
    let (written, peak_bytes) = most_held(|| match arguments.way {
        Way::Arrow | Way::Bare => write(builder.open(), input, ParquetWriter::push),
        Way::Whole => write(with_statistics(builder).open_with(Errors::default), input, ParquetWriter::push),
        Way::Rows => write_rows(builder, input),
        Way::Maps => write_maps(builder, input),
    });
    let (Taken { took, cpu, allocations }, bytes) = written?;
    Ok(Round { took, cpu, allocations, peak_bytes, bytes })
}

/// What some work took.
#[derive(Default)]
struct Taken {
    took: Duration,
    cpu: Duration,
    allocations: u64,
}

impl Taken {
    fn measure<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let mut result = None;
        let (start, cpu) = (Instant::now(), cpu_time());
        self.allocations += allocations(|| result = Some(work()));
        self.took += start.elapsed();
        self.cpu += cpu_time().saturating_sub(cpu);
        match result {
            Some(result) => result,
            None => unreachable!("the work was done"),
        }
    }
}

/// Returns the processor time of this thread so far; nothing where the system does not tell.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().next().and_then(|text| text.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

fn with_statistics(builder: ParquetWriterBuilder) -> ParquetWriterBuilder {
    let distinct = ["resource_service_name", "resource_k8s_namespace_name", "resource_k8s_pod_name", "level"];
    builder.time_column("timestamp").distinct(distinct).group_by(["resource_service_name"])
}

type Written = Result<(Taken, u64), Failure>;

/// Measures from the first row to the end of `close`.
fn write<A: Accumulator, T>(
    writer: arc_core::Result<ParquetWriter<A>>,
    input: &[T],
    push: impl Fn(&mut ParquetWriter<A>, &T) -> arc_core::Result<()>,
) -> Written {
    let mut writer = writer?;
    let mut taken = Taken::default();
    let bytes = taken.measure(|| -> arc_core::Result<u64> {
        input.iter().try_for_each(|rows| push(&mut writer, rows))?;
        Ok(writer.close()?.iter().map(|file| file.bytes).sum())
    })?;
    Ok((taken, bytes))
}

/// Measures pushing rows that are made a batch at a time, outside the measure.
fn write_made<T>(
    builder: ParquetWriterBuilder,
    input: &[RecordBatch],
    make: impl Fn(&RecordBatch) -> Vec<T>,
    push: impl Fn(&mut ParquetWriter, &T) -> arc_core::Result<()>,
) -> Written {
    let mut writer = builder.open()?;
    let mut taken = Taken::default();
    for batch in input {
        let rows = make(batch);
        taken.measure(|| rows.iter().try_for_each(|row| push(&mut writer, row)))?;
    }
    let bytes = taken.measure(|| writer.close().map(|files| files.iter().map(|file| file.bytes).sum()))?;
    Ok((taken, bytes))
}

fn write_rows(builder: ParquetWriterBuilder, input: &[RecordBatch]) -> Written {
    write_made(builder, input, rows_of, |writer, row| writer.push_row(row))
}

fn write_maps(builder: ParquetWriterBuilder, input: &[RecordBatch]) -> Written {
    let maps = |batch: &RecordBatch| {
        let names: Vec<String> = batch.schema_ref().fields().iter().map(|field| field.name().clone()).collect();
        let map = |row: Vec<Value<'static>>| {
            let present = names.iter().cloned().zip(row).filter(|(_, value)| *value != Value::Null);
            present.collect::<HashMap<String, Value<'static>>>()
        };
        rows_of(batch).into_iter().map(map).collect()
    };
    write_made(builder, input, maps, |writer, map| {
        writer.push_named(map.iter().map(|(name, value)| (name.as_str(), value)))
    })
}

/// Returns the rows as values.
fn rows_of(batch: &RecordBatch) -> Vec<Vec<Value<'static>>> {
    let columns: Vec<Vec<Value<'static>>> = batch
        .columns()
        .iter()
        .map(|column| match column.data_type() {
            DataType::Int64 => column.as_primitive::<Int64Type>().iter().map(Value::from).collect(),
            DataType::Boolean => column.as_boolean().iter().map(Value::from).collect(),
            _ => column.as_string::<i32>().iter().map(|text| text.map(str::to_owned).into()).collect(),
        })
        .collect();
    let value = |column: &Vec<Value<'static>>, row: usize| column.get(row).cloned().unwrap_or(Value::Null);
    (0..batch.num_rows()).map(|row| columns.iter().map(|column| value(column, row)).collect()).collect()
}
