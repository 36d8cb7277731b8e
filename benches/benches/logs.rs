//! How many log rows a second does the Parquet writer of `arc_core::datafile` write?
//!
//! 50,000 rows of 40 columns (`arc_benches::logs`), from the first row until the files are closed:
//! with encoding, footer, fsync and names. `arrow` are record batches of 10,000 rows, on one thread
//! and on two. `whole` are batches of 1,000 rows with first and last time, the distinct values of
//! four columns and a group key; `bare` is the same without these: what they differ by is what
//! statistics cost. `rows` and `named` are rows of values, by place and by name.
//!
//! Not measured: making the values of rows, and larger files, whose dictionaries cost less a row.
//! The disk is that of the folder for temporary files (`TMPDIR`). `benches/logs.py` compares with
//! other writers.

use std::{cell::Cell, path::Path};

use arc_benches::logs;
use arc_core::datafile::{ParquetWriter, ParquetWriterBuilder, Value};
use arrow::{
    array::{Array, AsArray, RecordBatch},
    datatypes::Int64Type,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const ROWS: usize = 50_000;
const DISTINCT: [&str; 4] = ["level", "resource_service_name", "resource_k8s_namespace_name", "resource_k8s_pod_name"];

/// Cuts batches into smaller ones.
fn cut(batches: &[RecordBatch], rows: usize) -> Vec<RecordBatch> {
    let pieces = |batch: &RecordBatch| {
        let starts = (0..batch.num_rows()).step_by(rows);
        starts.map(|start| batch.slice(start, rows.min(batch.num_rows() - start))).collect::<Vec<_>>()
    };
    batches.iter().flat_map(pieces).collect()
}

/// Returns each row's values, in the order of the columns.
fn values(batches: &[RecordBatch]) -> Vec<Vec<Value<'static>>> {
    let column = |column: &'_ dyn Array, row: usize| -> Value<'static> {
        if column.is_null(row) {
            return Value::Null;
        }
        match column.as_string_opt::<i32>() {
            Some(texts) => Value::from(texts.value(row).to_owned()),
            None => Value::from(column.as_primitive::<Int64Type>().value(row)),
        }
    };
    let row = |batch: &RecordBatch, row| batch.columns().iter().map(|values| column(values, row)).collect();
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |at| row(batch, at))).collect()
}

/// Writes all rows to a folder of its own, which goes again.
fn write(
    folder: &Path,
    builder: impl Fn(ParquetWriterBuilder) -> ParquetWriterBuilder,
    push: impl Fn(&mut ParquetWriter) -> arc_core::Result<()>,
) -> u64 {
    thread_local!(static ROUND: Cell<u64> = const { Cell::new(0) });
    let folder = folder.join(ROUND.replace(ROUND.get() + 1).to_string());
    let written = builder(ParquetWriter::builder(&folder, logs::schema())).open().and_then(|mut writer| {
        push(&mut writer)?;
        Ok(writer.close()?.iter().map(|file| file.bytes).sum())
    });
    let _ = std::fs::remove_dir_all(&folder);
    assert!(written.is_ok(), "a file could not be written");
    written.unwrap_or_default()
}

fn write_logs(criterion: &mut Criterion) {
    let (Ok(batches), Ok(folder)) = (logs::batches(ROWS, 42), tempfile::tempdir()) else { return };
    let small = cut(&batches, 1_000);
    let folder = folder.path();
    let push =
        |batches: &[RecordBatch], writer: &mut ParquetWriter| batches.iter().try_for_each(|rows| writer.push(rows));
    let mut group = criterion.benchmark_group("logs");
    group.throughput(Throughput::Elements(ROWS as u64)).sample_size(20);
    group.bench_function("arrow", |b| b.iter(|| write(folder, |builder| builder, |writer| push(&batches, writer))));
    group.bench_function("arrow-2-threads", |b| {
        b.iter(|| write(folder, |builder| builder.threads(2), |writer| push(&batches, writer)));
    });
    group.bench_function("bare", |b| b.iter(|| write(folder, |builder| builder, |writer| push(&small, writer))));
    group.bench_function("whole", |b| {
        let all = |builder: ParquetWriterBuilder| {
            builder.time_column("timestamp").distinct(DISTINCT).group_by(["resource_service_name"])
        };
        b.iter(|| write(folder, all, |writer| push(&small, writer)));
    });
    let rows = values(&batches);
    group.bench_function("rows", |b| {
        let push = |writer: &mut ParquetWriter| rows.iter().try_for_each(|row| writer.push_row(row));
        b.iter(|| write(folder, |builder| builder, push));
    });
    let schema = logs::schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    group.bench_function("named", |b| {
        let push = |writer: &mut ParquetWriter| {
            let named = |row: &'_ Vec<Value<'static>>| -> arc_core::Result<()> {
                let present = names.iter().copied().zip(row).filter(|(_, value)| **value != Value::Null);
                writer.push_named(present)
            };
            rows.iter().try_for_each(named)
        };
        b.iter(|| write(folder, |builder| builder, push));
    });
    group.finish();
}

criterion_group!(benches, write_logs);
criterion_main!(benches);
