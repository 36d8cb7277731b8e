//! Record batches that stay in the memory that they came in are the rows that small ones are,
//! wherever these are by now.

use std::sync::Arc;

use arc_core::{Durability, Engine, WriteOptions};
use arrow::array::{ArrayRef, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray, StringViewArray};
use arrow::datatypes::Int32Type;

use crate::support::{open, query, shown};

/// Rows from which on a batch stays where it lies, and of a batch here.
const WHOLE_ROWS: usize = 16 << 10;
const ROWS: i64 = 20_000;

/// Rows of which every third has a time of the batch before, and every fifth no text.
fn batch(number: i64) -> RecordBatch {
    let rows = || 0..ROWS;
    let time = |row: i64| if row % 3 == 0 { row } else { number * ROWS + row };
    let text = |row: i64| (row % 5 > 0).then(|| format!("text {number} of row {row}"));
    let hosts: DictionaryArray<Int32Type> =
        rows().map(|row| ["a", "b", "c"].get((row % 4) as usize).copied()).collect();
    let columns: [(&str, ArrayRef); 6] = [
        ("time", Arc::new(Int64Array::from_iter_values(rows().map(time)))),
        ("host", Arc::new(hosts)),
        ("n", Arc::new(rows().map(|row| (row % 7 > 0).then_some(row * number)).collect::<Int64Array>())),
        ("x", Arc::new(Float64Array::from_iter_values(rows().map(|row| row as f64 / 4.0)))),
        ("text", Arc::new(rows().map(text).collect::<StringArray>())),
        ("view", Arc::new(rows().map(text).collect::<StringViewArray>())),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
}

/// Writes the same to both databases; returns what the large write has in memory.
fn fill(engine: &Engine, durability: Durability, tags: &[&str]) -> u64 {
    let options = WriteOptions::new().durability(durability).tags(tags.iter().copied());
    let batches: Vec<RecordBatch> = (1..=3).map(batch).collect();
    // With the first row of each left out: an array that does not begin where its memory does.
    let large: Vec<RecordBatch> = batches.iter().map(|batch| batch.slice(1, batch.num_rows() - 1)).collect();
    let before = engine.stats().buffered_bytes;
    let written = engine.submit_batches("large", "t", &large, &options).unwrap().wait().unwrap();
    assert_eq!(written.points, 3 * (ROWS as u64 - 1));
    let held = engine.stats().buffered_bytes - before;
    for batch in &large {
        let first = batch.slice(0, WHOLE_ROWS - 1);
        let rest = batch.slice(first.num_rows(), batch.num_rows() - first.num_rows());
        for part in [first, rest] {
            let points = engine
                .submit_batches("small", "t", std::slice::from_ref(&part), &options)
                .unwrap()
                .wait()
                .unwrap()
                .points;
            assert_eq!(points, part.num_rows() as u64);
        }
    }
    held
}

#[track_caller]
fn check(engine: &Engine, state: &str) {
    let all = "SELECT * FROM t ORDER BY time, host, n, x, text";
    let [large, small] = ["large", "small"].map(|database| {
        let batches = query(engine, database, all).unwrap();
        arrow::compute::concat_batches(&batches[0].schema(), &batches).unwrap()
    });
    assert!(large.num_rows() as u64 > ROWS as u64, "{state}");
    assert!(large == small, "{state}");
    let times = "SELECT count(*), min(time), max(time), sum(n), count(text) FROM t WHERE host IS NULL OR host = 'b'";
    assert_eq!(shown(engine, "large", times), shown(engine, "small", times), "{state}");
}

#[test]
fn large_batches_are_what_small_ones_are() {
    for (durability, tags) in [(Durability::Memory, &[][..]), (Durability::Process, &["host"]), (Durability::Disk, &[])]
    {
        let dir = tempfile::tempdir().unwrap();
        let mut engine = open(dir.path());
        let held = fill(&engine, durability, tags);
        // Times, a number, a float, and texts in two forms; hosts, where they are no tags, are
        // a byte each.
        assert!(held > 3 * ROWS as u64 * (3 * 8 + 2 * 19), "{held}");
        check(&engine, "in memory");
        if durability != Durability::Memory {
            drop(engine);
            engine = open(dir.path());
            check(&engine, "replayed");
        }
        engine.flush().unwrap();
        check(&engine, "in files");
        assert_eq!(engine.stats().buffered_bytes, 0);
        assert_eq!(engine.stats().memory_bytes, 0);
        // On top of files, so that more rows are late.
        fill(&engine, durability, tags);
        check(&engine, "in files and in memory");
        engine.close().unwrap();
        check(&open(dir.path()), "opened again");
    }
}
