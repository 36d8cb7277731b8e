//! Merges of tables with many columns hold a bounded part of the memory budget, however many
//! columns: counted by the allocator, of all threads. What Zstandard takes is not seen by it.

#![allow(clippy::disallowed_methods, reason = "tests make files and measure time")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_core::{Engine, Options};
use arrow::{
    array::{ArrayRef, Float64Array, RecordBatch, TimestampNanosecondArray},
    datatypes::{DataType, Field, Schema, TimeUnit},
};

/// Counts the bytes that are held, and the most of them.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[expect(unsafe_code, reason = "an allocator can only be written in unsafe code")]
// SAFETY: every call goes to the system's allocator unchanged; counting touches two numbers.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(held, Ordering::Relaxed);
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `pointer` came from `alloc` above with the same layout, so from the system.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the most bytes that were held during `work` beside those that were held before.
fn peak(work: impl FnOnce()) -> usize {
    let before = HELD.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    work();
    PEAK.load(Ordering::Relaxed).saturating_sub(before)
}

const MEMORY_BYTES: usize = 64 << 20;
const COLUMNS: usize = 1_000;

/// Rows of a thousand columns, of which a half have values of their own and a half repeat a few.
fn rows(first: usize, count: usize) -> RecordBatch {
    let time = DataType::Timestamp(TimeUnit::Nanosecond, None);
    let fields = (0..COLUMNS).map(|column| Field::new(format!("f{column}"), DataType::Float64, true));
    let schema = Schema::new([Field::new("time", time, false)].into_iter().chain(fields).collect::<Vec<_>>());
    let times = (first..first + count).map(|row| i64::try_from(row).unwrap());
    let times: ArrayRef = Arc::new(TimestampNanosecondArray::from_iter_values(times));
    let value = |column: usize, row: usize| {
        let value = (row as f64 * 1.37 + column as f64).sin();
        if column.is_multiple_of(2) { value } else { (value * 10.0).round() }
    };
    let field = |column| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values((first..first + count).map(|row| value(column, row))))
    };
    RecordBatch::try_new(Arc::new(schema), [times].into_iter().chain((0..COLUMNS).map(field)).collect()).unwrap()
}

#[test]
fn merges_of_a_thousand_columns_hold_a_part_of_the_budget() {
    for (files, rows_of_file) in [(32, 5), (6, 400)] {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        options.memory_bytes = MEMORY_BYTES;
        options.compaction = false;
        options.flush_after = Duration::from_secs(1 << 30);
        let engine = Engine::builder(folder.path().join("data")).options(options).open().unwrap();
        let flush = peak(|| {
            for file in 0..files {
                let written = engine.write_batch("d", "wide", &rows(file * rows_of_file, rows_of_file)).unwrap();
                assert_eq!(written.points, rows_of_file as u64);
                engine.flush().unwrap();
            }
        });
        let merge = peak(|| assert!(engine.compact().unwrap().merges > 0));
        println!("{files} files of {rows_of_file} rows: flushes held {flush} bytes, merges {merge}");
        let table = &engine.tables("d").unwrap()[0];
        assert_eq!(table.file_rows, (files * rows_of_file) as u64);
        assert!(flush < MEMORY_BYTES / 2 && merge < MEMORY_BYTES / 2, "flushes held {flush} bytes, merges {merge}");
        engine.close().unwrap();
    }
}
