//! Compaction through the public interface: fewer files, the same rows, and nothing taken from
//! those who read.

use std::{path::Path, time::Duration};

use arc_core::{Engine, ErrorKind, Options};

use crate::support::{HandClock, number, open, query, quiet, shown, write};

const DAY_NS: i64 = 86_400_000_000_000;

/// Options under which data files that were replaced go as soon as nothing reads them.
fn no_grace() -> Options {
    let mut options = Options::default();
    (options.compaction_grace, options.history) = (Duration::ZERO, Duration::ZERO);
    options.compaction_quiet = Duration::from_secs(60);
    options
}

/// An engine at noon of the first day, and its clock.
fn engine(path: &Path) -> (Engine, HandClock) {
    let clock = HandClock::default();
    clock.set(DAY_NS / 2);
    let builder = quiet(path).options(no_grace()).compaction(false).flush_after(Duration::from_secs(1 << 30));
    (builder.clock(std::sync::Arc::new(clock.clone())).open().unwrap(), clock)
}

fn parquet_files(path: &Path) -> usize {
    let entries = std::fs::read_dir(path).into_iter().flatten().map(|entry| entry.unwrap());
    let count = |entry: std::fs::DirEntry| {
        if entry.file_type().unwrap().is_dir() {
            return parquet_files(&entry.path());
        }
        usize::from(entry.path().extension().is_some_and(|extension| extension == "parquet"))
    };
    entries.map(count).sum()
}

#[test]
fn eight_flushes_become_one_file_and_a_day_that_is_over_one_more() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, clock) = engine(dir.path());
    for i in 0..10 {
        write(&engine, "d", &format!("m,h=a x={i} {i}\nm,h=b x={i} {i}"));
        engine.flush().unwrap();
        let report = engine.compact().unwrap();
        assert_eq!((report.merges, report.files_in, report.files_out), if i == 7 { (1, 8, 1) } else { (0, 0, 0) });
    }
    let rows = "SELECT h, CAST(time AS BIGINT) AS t, x FROM m ORDER BY h, t";
    let before = shown(&engine, "d", rows);
    assert_eq!(engine.data_files("d", "m").unwrap().len(), 3);
    clock.set(DAY_NS + 59_000_000_000);
    assert_eq!(engine.compact().unwrap().merges, 0, "the day is not yet quiet");
    clock.set(DAY_NS + 60_000_000_000);
    let report = engine.compact().unwrap();
    assert_eq!((report.files_in, report.files_out, report.rows_in, report.rows_out), (3, 1, 20, 20));
    assert_eq!(engine.compact().unwrap(), Default::default(), "and is left alone then");
    assert_eq!(shown(&engine, "d", rows), before);
    assert_eq!(parquet_files(dir.path()), 1);
    let stats = engine.stats();
    assert_eq!((stats.compactions, stats.compaction_rows_in, stats.files, stats.retired_files), (2, 36, 1, 0));
    assert!(stats.compaction_bytes_in > stats.compaction_bytes_out && stats.flushed_bytes > 0, "{stats:?}");
    drop(engine);
    assert_eq!(shown(&open(dir.path()), "d", rows), before, "reopened");
}

#[test]
fn late_points_are_merged_for_good_and_queries_merge_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, clock) = engine(dir.path());
    for lines in ["m,h=a x=1,y=1 5\nm,h=b x=9 5", "m,h=a x=2 5", "m,h=a,r=z z=1i 4\nm,h=a y=7 5", "m,h=a x=8 9"] {
        write(&engine, "d", lines);
        engine.flush().unwrap();
    }
    let rows = "SELECT h, r, CAST(time AS BIGINT) AS t, x, y, z FROM m ORDER BY h, r NULLS FIRST, t";
    let plan = |engine: &Engine| shown(engine, "d", &format!("EXPLAIN {rows}"));
    let before = shown(&engine, "d", rows);
    assert!(plan(&engine).contains("MergeExec"));
    assert!(engine.data_files("d", "m").unwrap().iter().any(|file| file.late));
    clock.set(2 * DAY_NS);
    let report = engine.compact().unwrap();
    assert_eq!((report.files_out, report.rows_out), (1, 4), "{report:?}");
    assert!(!plan(&engine).contains("MergeExec"));
    assert_eq!(shown(&engine, "d", rows), before);
    let files = engine.data_files("d", "m").unwrap();
    assert_eq!((files[0].late, files[0].min_seq < files[0].max_seq), (false, true));
    // Later versions, in memory and in a file, overwrite the merged ones.
    write(&engine, "d", "m,h=a x=3 5");
    assert_eq!(number(&engine, "d", "SELECT CAST(x AS BIGINT) FROM m WHERE h = 'a' AND y = 7"), 3);
    engine.flush().unwrap();
    assert_eq!(number(&engine, "d", "SELECT CAST(x AS BIGINT) FROM m WHERE h = 'a' AND y = 7"), 3);
    drop(engine);
    assert_eq!(number(&open(dir.path()), "d", "SELECT CAST(x AS BIGINT) FROM m WHERE h = 'a' AND y = 7"), 3);
}

#[test]
fn rows_of_an_append_only_table_all_stay_in_order_of_time() {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    let dir = tempfile::tempdir().unwrap();
    let (engine, clock) = engine(dir.path());
    for i in 0..4 {
        let column = |values: Vec<i64>| std::sync::Arc::new(Int64Array::from(values)) as ArrayRef;
        // The same times each time.
        let batch = RecordBatch::try_from_iter([("time", column(vec![3, 1, 2])), ("v", column(vec![i, i, i]))]);
        assert_eq!(engine.write_batch("d", "log", &batch.unwrap()).unwrap().points, 3);
        engine.flush().unwrap();
    }
    clock.set(2 * DAY_NS);
    assert_eq!(engine.compact().unwrap().files_out, 1);
    let rows = shown(&engine, "d", "SELECT CAST(time AS BIGINT) AS t, v FROM log");
    let values: Vec<&str> = rows.lines().filter(|line| line.contains(|c: char| c.is_ascii_digit())).collect();
    let expected: Vec<String> = (1..4).flat_map(|t| (0..4).map(move |v| format!("| {t} | {v} |"))).collect();
    assert_eq!(values, expected, "{rows}");
}

#[test]
fn replaced_files_stay_while_a_view_or_a_query_reads_them() {
    use futures::StreamExt;
    let dir = tempfile::tempdir().unwrap();
    let (engine, clock) = engine(dir.path());
    for i in 0..3 {
        write(&engine, "d", &format!("m,h=a x={i} {i}"));
        engine.flush().unwrap();
    }
    let view = engine.view("d", "m").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut answer = runtime.block_on(engine.sql("d", "SELECT x FROM m")).unwrap();
    clock.set(2 * DAY_NS);
    let report = engine.compact().unwrap();
    assert_eq!((report.files_in, report.removed_files, parquet_files(dir.path())), (3, 0, 4));
    assert_eq!(engine.stats().retired_files, 3);
    assert!(view.files.iter().all(|file| dir.path().join(file.past_path().unwrap()).is_file()));
    drop(view);
    assert_eq!(engine.compact().unwrap().removed_files, 0, "the query is not done");
    let rows = runtime.block_on(async {
        let mut rows = 0;
        while let Some(batch) = answer.next().await {
            rows += batch.unwrap().num_rows();
        }
        rows
    });
    assert_eq!(rows, 3);
    drop(answer);
    assert_eq!(engine.compact().unwrap().removed_files, 3);
    assert_eq!((parquet_files(dir.path()), engine.stats().retired_files), (1, 0));
}

#[test]
fn replaced_files_stay_for_the_time_of_grace_and_not_beyond_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let clock = HandClock::default();
    let open = || {
        let builder = quiet(dir.path()).clock(std::sync::Arc::new(clock.clone()));
        builder.open().unwrap()
    };
    let engine = open();
    for i in 0..16 {
        write(&engine, "d", &format!("m,h=a x={i} {i}"));
        engine.flush().unwrap();
        if i % 8 == 7 {
            engine.compact().unwrap();
        }
    }
    assert_eq!((engine.stats().files, parquet_files(dir.path())), (2, 18));
    clock.set(599_000_000_000);
    assert_eq!(engine.compact().unwrap().removed_files, 0);
    clock.set(600_000_000_000);
    assert_eq!(engine.compact().unwrap().removed_files, 16);
    clock.set(2 * DAY_NS);
    assert_eq!(engine.compact().unwrap().files_in, 2);
    assert_eq!(parquet_files(dir.path()), 3);
    drop(engine);
    let engine = open();
    assert_eq!(parquet_files(dir.path()), 1, "nobody can have them open any more");
    assert_eq!(number(&engine, "d", "SELECT count(*) FROM m"), 16);
}

#[test]
fn large_merges_are_split_into_files_of_about_the_size_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = no_grace();
    options.compaction_file_bytes = 200_000;
    let clock = HandClock::default();
    let engine = quiet(dir.path()).options(options).compaction(false).clock(std::sync::Arc::new(clock.clone()));
    let engine = engine.open().unwrap();
    let mut seed = 1_u64;
    for round in 0..4 {
        let mut lines = String::new();
        for i in 0..20_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            lines.push_str(&format!("m,h=h{} x={}i {}\n", i % 100, seed >> 1, round * 200 + i / 100));
        }
        write(&engine, "d", &lines);
        engine.flush().unwrap();
    }
    let sum = "SELECT sum(x % 1000) FROM m";
    let before = number(&engine, "d", sum);
    clock.set(2 * DAY_NS);
    engine.compact().unwrap();
    let files = engine.data_files("d", "m").unwrap();
    let bytes: Vec<u64> = files.iter().map(|file| file.bytes).collect();
    assert!(bytes.len() > 2 && bytes.iter().all(|bytes| (100_000..300_000).contains(bytes)), "{bytes:?}");
    assert_eq!((number(&engine, "d", sum), number(&engine, "d", "SELECT count(*) FROM m")), (before, 80_000));
    assert_eq!(engine.compact().unwrap().merges, 0);
}

#[test]
fn a_damaged_file_is_named_and_stays_and_other_tables_are_merged() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, clock) = engine(dir.path());
    for i in 0..3 {
        write(&engine, "d", &format!("bad,h=a x={i} {i}\ngood,h=a x={i} {i}"));
        engine.flush().unwrap();
    }
    let damaged = engine.data_files("d", "bad").unwrap()[1].path.clone();
    let mut bytes = std::fs::read(dir.path().join(&damaged)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(dir.path().join(&damaged), bytes).unwrap();
    clock.set(2 * DAY_NS);
    for _ in 0..2 {
        let error = engine.compact().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains(&damaged), "{error}");
    }
    assert_eq!((engine.data_files("d", "bad").unwrap().len(), engine.data_files("d", "good").unwrap().len()), (3, 1));
    assert_eq!(parquet_files(dir.path()), 4, "nothing half-written stays");
    assert!(engine.stats().compaction_failures >= 2);
}

#[test]
fn the_thread_merges_by_itself_and_stops_with_the_engine() {
    let dir = tempfile::tempdir().unwrap();
    let engine = quiet(dir.path()).options(no_grace()).open().unwrap();
    let mut i = 0;
    // Ends once a merge was seen; a flush wakes the thread.
    while engine.stats().compactions == 0 {
        write(&engine, "d", &format!("m,h=a x={i} {i}"));
        engine.flush().unwrap();
        i += 1;
        assert!(i < 100_000);
    }
    assert_eq!(number(&engine, "d", "SELECT count(*) FROM m"), i);
    engine.close().unwrap();
    assert_eq!(engine.compact().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(engine.set_retention("d", None, None).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(number(&open(dir.path()), "d", "SELECT count(*) FROM m"), i);
    assert!(query(&engine, "d", "SELECT 1").is_err());
}
