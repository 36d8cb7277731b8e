//! How many rows a second go from memory to Parquet, durable and in the manifest?
//!
//! 200,000 rows of 1,000 hosts are written in order of arrival with `memory` durability, untimed;
//! then `Engine::flush` is timed: sorting by tags and time, encoding, `fsync` of file and folder,
//! the manifest. `has_primary_key` rows have tags, as those of line protocol; `appended` ones have
//! none, as those of columnar MessagePack. The shapes are those of `arc_benches::cpu_table`.
//!
//! `library` is what the Parquet library's own writer takes for the same rows, sorted and in
//! columns already, into memory: no sorting, no gathering, no file. What a flush saves is more than
//! the two differ by.
//!
//! Not measured: writes that go on meanwhile. The disk is that of the folder for temporary files
//! (`TMPDIR`).

use std::{
    fs::File,
    hint::black_box,
    time::{Duration, Instant},
};

use arc_benches::{
    cpu_table::{CpuShape, CpuTable},
    hosts::TAG_KEYS,
};
use arc_core::{Durability, Engine, WriteOptions};
use arrow::{array::RecordBatch, datatypes::DataType};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mimalloc::MiMalloc;
use parquet::{
    arrow::{ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder},
    basic::{Compression, Encoding, ZstdLevel},
    file::properties::{EnabledStatistics, WriterProperties},
    schema::types::ColumnPath,
};
use tempfile::TempDir;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const HOSTS: usize = 1000;
const TICKS: usize = 200;
/// Rows of one write: 25 ticks, 25,000 rows.
const TICKS_A_WRITE: usize = 25;

const CASES: [(&str, CpuShape, bool); 8] = [
    ("mixed/keyed", CpuShape::MIXED, true),
    ("mixed/appended", CpuShape::MIXED, false),
    ("iot/keyed", CpuShape::IOT, true),
    ("iot/appended", CpuShape::IOT, false),
    ("short/keyed", CpuShape::SHORT, true),
    ("tsbs/keyed", CpuShape::TSBS, true),
    ("tsbs/appended", CpuShape::TSBS, false),
    ("floats/keyed", CpuShape::FLOATS, true),
];

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

/// Reads a data file back, as the columns that a flush would encode.
#[expect(clippy::expect_used, reason = "a bench that cannot start says why")]
fn rows_of(folder: &TempDir, path: &str) -> RecordBatch {
    let read = || -> Result<RecordBatch, Box<dyn std::error::Error>> {
        let file = File::open(folder.path().join(path))?;
        let reader = ParquetRecordBatchReaderBuilder::try_new(file)?.with_batch_size(HOSTS * TICKS).build()?;
        let batches: Vec<RecordBatch> = reader.collect::<Result<_, _>>()?;
        Ok(batches.into_iter().next().ok_or("a file without rows")?)
    };
    read().expect("a data file that was just written")
}

/// The settings under which the library writes what the engine writes.
fn properties(rows: &RecordBatch, shape: CpuShape, has_primary_key: bool) -> WriterProperties {
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).unwrap_or_default()))
        .set_data_page_row_count_limit(10_000)
        .set_statistics_enabled(EnabledStatistics::Page);
    for field in rows.schema_ref().fields() {
        let (encoding, dictionary) = match field.data_type() {
            DataType::Timestamp(..) => (Encoding::DELTA_BINARY_PACKED, false),
            DataType::Int64 => (Encoding::DELTA_BINARY_PACKED, !has_primary_key),
            DataType::Float64 => (Encoding::BYTE_STREAM_SPLIT, !shape.full_digits),
            _ => continue,
        };
        let path = ColumnPath::from(field.name().as_str());
        builder = builder.set_column_encoding(path.clone(), encoding).set_column_dictionary_enabled(path, dictionary);
    }
    builder.build()
}

fn write_by_library(rows: &RecordBatch, properties: &WriterProperties) -> usize {
    let written = ArrowWriter::try_new(Vec::new(), rows.schema(), Some(properties.clone())).and_then(|mut writer| {
        writer.write(rows)?;
        writer.into_inner()
    });
    written.map_or(0, |bytes| bytes.len())
}

fn flushes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("flush");
    group.throughput(Throughput::Elements((HOSTS * TICKS) as u64));
    group.sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(5));
    for (name, shape, has_primary_key) in CASES {
        let tags = if has_primary_key { TAG_KEYS.get(..shape.tags).unwrap_or_default() } else { &[] };
        let options = WriteOptions::new().durability(Durability::Memory).tags(tags.iter().copied());
        let (_folder, engine) = open();
        let mut table = CpuTable::with_shape(shape, 42, HOSTS, Duration::from_secs(1));
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter_custom(|times| (0..times).map(|_| flush(&engine, &mut table, &options)).sum());
        });
        let files = engine.data_files("bench", "cpu").unwrap_or_default();
        let (bytes, rows) = files.iter().fold((0, 0), |(bytes, rows), file| (bytes + file.bytes, rows + file.rows));
        println!("flush/{name}: {:.2} bytes a row in {} files", bytes as f64 / rows as f64, files.len());
        let _ = engine.close();
        // The files above may have been merged: one that is as a flush left it.
        let (folder_of_one, one) = open();
        flush(&one, &mut CpuTable::with_shape(shape, 42, HOSTS, Duration::from_secs(1)), &options);
        let files = one.data_files("bench", "cpu").unwrap_or_default();
        if let Some(file) = files.first() {
            let rows = rows_of(&folder_of_one, &file.path);
            let properties = properties(&rows, shape, has_primary_key);
            group.bench_function(BenchmarkId::new("library", name), |b| {
                b.iter(|| black_box(write_by_library(&rows, &properties)));
            });
            let bytes = write_by_library(&rows, &properties);
            println!(
                "flush/{name}: one file has {:.2} bytes a row, that of the library {:.2}",
                file.bytes as f64 / rows.num_rows() as f64,
                bytes as f64 / rows.num_rows() as f64
            );
        }
        let _ = one.close();
    }
    group.finish();
}

criterion_group!(benches, flushes);
criterion_main!(benches);
