//! Writes of every form become rows at once, in every state of buffer, files and restart.

use std::sync::Arc;

use arc_core::{Durability, Engine, ErrorKind, Options, WriteOptions};
use arrow::{
    array::{
        ArrayRef, Float64Array, Int32Array, Int64Array, LargeStringArray, RecordBatch, StringArray,
        TimestampMillisecondArray,
    },
    datatypes::DataType,
};
use bytes::Bytes;

use crate::support::{number, open, query, quiet, shown, write};

const LINES: &str = "cpu,host=a usage=1.5,n=1i 10\ncpu,host=b usage=2.5 20\ncpu,host=a usage=3.5,ok=true 30\n";
const ALL: &str = "SELECT CAST(time AS BIGINT) AS t, host, usage, n, ok FROM cpu ORDER BY t";
const EXPECTED: &str = "\
+----+------+-------+---+------+
| t  | host | usage | n | ok   |
+----+------+-------+---+------+
| 10 | a    | 1.5   | 1 |      |
| 20 | b    | 2.5   |   |      |
| 30 | a    | 3.5   |   | true |
+----+------+-------+---+------+";

#[test]
fn points_are_the_same_in_buffer_files_and_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let written = engine.write_lp("plant", LINES.as_bytes()).unwrap();
    assert_eq!((written.points, written.rejected_points, written.durability), (3, 0, Durability::Disk));
    assert_eq!(shown(&engine, "plant", ALL), EXPECTED, "buffer");
    let report = engine.flush().unwrap();
    assert_eq!((report.rows, report.files.len()), (3, 1));
    assert!(dir.path().join(&report.files[0]).is_file());
    assert_eq!(shown(&engine, "plant", ALL), EXPECTED, "files");
    drop(engine);
    let engine = open(dir.path());
    assert_eq!(engine.stats().replayed_points, 0);
    assert_eq!(shown(&engine, "plant", ALL), EXPECTED, "reopened");
    engine.close().unwrap();
}

#[test]
fn unflushed_points_come_back_from_the_log_once() {
    let dir = tempfile::tempdir().unwrap();
    for round in 1..4 {
        let engine = open(dir.path());
        assert_eq!(engine.stats().replayed_points, 3 * (round - 1));
        // The same points again: they merge into themselves.
        write(&engine, "plant", LINES);
        assert_eq!(shown(&engine, "plant", ALL), EXPECTED);
        drop(engine);
    }
}

#[test]
fn a_later_write_of_the_same_point_merges_in_every_state() {
    for (flush_first, flush_second, reopen) in [
        (false, false, false),
        (true, false, false),
        (true, true, false),
        (true, false, true),
        (true, true, true),
        (false, false, true),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let mut engine = open(dir.path());
        write(&engine, "d", "m,h=a x=1,y=1 5\nm,h=b x=9 5\nm,h=a x=1 6");
        if flush_first {
            engine.flush().unwrap();
        }
        write(&engine, "d", "m,h=a x=2,z=7i 5");
        if flush_second {
            engine.flush().unwrap();
        }
        if reopen {
            drop(engine);
            engine = open(dir.path());
        }
        let case = format!("{flush_first} {flush_second} {reopen}");
        let all = shown(&engine, "d", "SELECT CAST(time AS BIGINT) AS t, h, x, y, z FROM m ORDER BY h, t");
        assert_eq!(
            all,
            "\
+---+---+-----+-----+---+
| t | h | x   | y   | z |
+---+---+-----+-----+---+
| 5 | a | 2.0 | 1.0 | 7 |
| 6 | a | 1.0 |     |   |
| 5 | b | 9.0 |     |   |
+---+---+-----+-----+---+",
            "{case}"
        );
        assert_eq!(number(&engine, "d", "SELECT count(*) FROM m"), 3, "{case}");
        assert_eq!(number(&engine, "d", "SELECT count(*) FROM m WHERE x = 1"), 1, "{case}");
    }
}

#[test]
fn bad_lines_are_named_and_the_good_ones_stored_also_by_replay() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let written = engine.write_lp("d", b"m v=1 1\nm v=\"text\" 2\nbroken\nm v=3 3\n").unwrap();
    assert_eq!((written.points, written.rejected_points), (2, 2));
    assert_eq!(written.rejected.iter().map(|r| r.line).collect::<Vec<_>>(), [2, 3]);
    drop(engine);
    let engine = open(dir.path());
    assert_eq!(engine.stats().replayed_points, 2);
    assert_eq!(number(&engine, "d", "SELECT count(*) FROM m"), 2);
}

#[test]
fn a_write_that_is_to_be_whole_is_stored_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let whole = |lines: &'static [u8]| {
        engine.submit_lp("d", Bytes::from_static(lines), &WriteOptions::new().whole(true)).unwrap().wait().unwrap()
    };
    assert_eq!(whole(b"m v=1 1\nm v=2 2").points, 2);
    for lines in [&b"m v=3 3\nbroken"[..], b"m v=3 3\nm v=\"text\" 4", b"new w=1i 1\nm v=t 4\nnew,host=a w=1i 2"] {
        let written = whole(lines);
        assert_eq!((written.points, written.rejected_points, written.rejected.len()), (0, 1, 1));
    }
    assert_eq!(engine.tables("d").unwrap().len(), 1);
    drop(engine);
    let engine = open(dir.path());
    assert_eq!(number(&engine, "d", "SELECT count(*) FROM m"), 2);
}

#[test]
fn a_write_without_a_good_line_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    assert_eq!(engine.write_lp("d", b"broken\n").unwrap().points, 0);
    assert_eq!(engine.write_lp("d", b"").unwrap().points, 0);
    assert!(engine.databases().is_empty());
    assert_eq!(engine.write_lp("", b"m v=1").unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(engine.write_lp("a\0b", b"m v=1").unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn names_never_become_paths() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("data-dir");
    let engine = open(&root);
    for (database, measurement) in [("..", ".."), ("a/b", "../../x"), ("😀", "sp ace"), (".", "con"), ("%2e", "%2F")]
    {
        let line = format!("{} v=1 1", measurement.replace(' ', "\\ "));
        assert_eq!(engine.write_lp(database, line.as_bytes()).unwrap().points, 1);
    }
    engine.flush().unwrap();
    let outside: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(outside, ["data-dir"]);
    drop(engine);
    let engine = open(&root);
    assert_eq!(number(&engine, "a/b", "SELECT count(*) FROM \"../../x\""), 1);
    assert_eq!(number(&engine, "😀", "SELECT count(*) FROM \"sp ace\""), 1);
}

#[test]
fn record_batches_append_or_merge_by_declared_tags() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("ts", Arc::new(TimestampMillisecondArray::from(vec![1, 2]))),
        ("host", Arc::new(LargeStringArray::from(vec![Some("a"), None]))),
        ("small", Arc::new(Int32Array::from(vec![Some(7), None]))),
        ("x", Arc::new(Float64Array::from(vec![1.0, f64::NAN]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let options = WriteOptions::new().time_column("ts");
    for (table, tags) in [("appends", &[][..]), ("merges", &["host"])] {
        let options = options.clone().tags(tags.iter().copied());
        for _ in 0..2 {
            let written =
                engine.submit_batches("d", table, std::slice::from_ref(&batch), &options).unwrap().wait().unwrap();
            assert_eq!(written.points, 2);
        }
    }
    for flushed in [false, true] {
        assert_eq!(number(&engine, "d", "SELECT count(*) FROM appends"), 4, "{flushed}");
        assert_eq!(number(&engine, "d", "SELECT count(*) FROM merges"), 2, "{flushed}");
        assert_eq!(number(&engine, "d", "SELECT CAST(min(time) AS BIGINT) FROM merges"), 1_000_000);
        let schema = query(&engine, "d", "SELECT small FROM appends").unwrap()[0].schema();
        assert_eq!(schema.field(0).data_type(), &DataType::Int64, "the first write decides no width");
        engine.flush().unwrap();
    }
}

#[test]
fn a_batch_that_does_not_fit_is_refused_as_a_whole() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let batch = |time: ArrayRef, v: ArrayRef| RecordBatch::try_from_iter([("time", time), ("v", v)]).unwrap();
    let ints = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
    assert_eq!(engine.write_batch("d", "t", &batch(ints(vec![1]), ints(vec![1]))).unwrap().points, 1);
    let text: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    let nulls: ArrayRef = Arc::new(Int64Array::from(vec![None]));
    let cases = [
        (batch(ints(vec![2]), Arc::clone(&text)), ErrorKind::SchemaConflict, "\"v\""),
        (batch(text, ints(vec![2])), ErrorKind::InvalidInput, "\"time\""),
        (batch(nulls, ints(vec![2])), ErrorKind::InvalidInput, "nulls"),
        (RecordBatch::try_from_iter([("v", ints(vec![1]))]).unwrap(), ErrorKind::InvalidInput, "\"time\""),
    ];
    for (batch, kind, names) in cases {
        let error = engine.write_batch("d", "t", &batch).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(names), "{error}");
    }
    assert_eq!(number(&engine, "d", "SELECT count(*) FROM t"), 1);
}

#[test]
fn every_durability_answers_with_what_it_reached() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let levels = [Durability::Memory, Durability::Process, Durability::Disk];
    for (at, level) in levels.into_iter().enumerate() {
        let body = Bytes::from(format!("m,l={level} v={at} {at}"));
        let options = WriteOptions::new().durability(level);
        let written = engine.submit_lp("d", body, &options).unwrap().wait().unwrap();
        assert_eq!(written.durability, level);
    }
    assert_eq!(number(&engine, "d", "SELECT count(*) FROM m"), 3);
    drop(engine);
    let engine = open(dir.path());
    assert_eq!(number(&engine, "d", "SELECT count(*) FROM m"), 2, "memory promised nothing, and its schema is known");
}

#[test]
fn concurrent_writers_of_new_columns_agree_on_types() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let stored: u64 = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let engine = engine.clone();
                scope.spawn(move || {
                    let mut stored = 0;
                    for i in 0..50 {
                        let value = if writer % 2 == 0 { "1i" } else { "\"s\"" };
                        let line = format!("m{},w={writer} f{}={value} {i}", i % 5, i % 7);
                        stored += engine.write_lp("d", line.as_bytes()).unwrap().points;
                    }
                    stored
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    let count =
        |engine: &Engine| (0..5).map(|t| number(engine, "d", &format!("SELECT count(*) FROM m{t}"))).sum::<i64>();
    assert_eq!(count(&engine), i64::try_from(stored).unwrap());
    drop(engine);
    assert_eq!(count(&open(dir.path())), i64::try_from(stored).unwrap(), "replay");
}

#[test]
fn size_starts_a_flush_and_memory_is_given_back() {
    let dir = tempfile::tempdir().unwrap();
    let engine = quiet(dir.path()).flush_bytes(64 << 10).open().unwrap();
    for i in 0..200 {
        let lines: String = (0..100).map(|j| format!("m,h={} x={j} {}\n", j % 10, i * 100 + j)).collect();
        write(&engine, "d", &lines);
    }
    engine.flush().unwrap();
    let stats = engine.stats();
    assert!(stats.flushes > 1, "{stats:?}");
    assert_eq!((stats.points, stats.flushed_rows, stats.buffered_rows, stats.buffered_bytes), (20_000, 20_000, 0, 0));
    assert_eq!(number(&engine, "d", "SELECT count(*) FROM m"), 20_000);
}

#[test]
fn a_closed_engine_says_so_and_leaves_the_folder_free() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let clone = engine.clone();
    write(&engine, "d", "m v=1 1");
    engine.close().unwrap();
    engine.close().unwrap();
    assert_eq!(clone.write_lp("d", b"m v=1 2").unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(clone.flush().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(query(&clone, "d", "SELECT 1").unwrap_err().kind(), ErrorKind::Closed);
    let again = open(dir.path());
    assert_eq!(again.stats().replayed_points, 0, "close flushes");
    assert_eq!(number(&again, "d", "SELECT count(*) FROM m"), 1);
}

#[test]
fn integers_that_a_float_cannot_hold_are_refused_not_rounded() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let written = engine
        .write_lp("d", b"g v=1.5 1\ng v=9007199254740993i 2\ng v=9007199254740992i 3\ng v=18446744073709551615u 4")
        .unwrap();
    assert_eq!((written.points, written.rejected_points), (2, 2));
    assert!(written.rejected[0].reason.contains("cannot hold this integer exactly"), "{:?}", written.rejected);
    let time: ArrayRef = Arc::new(Int64Array::from(vec![5]));
    let v: ArrayRef = Arc::new(Int64Array::from(vec![9_007_199_254_740_993]));
    let error = engine.write_batch("d", "g", &RecordBatch::try_from_iter([("time", time), ("v", v)]).unwrap());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("is float, the write has integer, and 9007199254740993 in row"), "{error}");
}

#[test]
fn columns_without_tags_do_not_overwrite_each_other_in_a_table_that_merges() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    write(&engine, "d", "m,h=a v=1i 1");
    let batch = |times: Vec<i64>, hosts: Vec<&str>| {
        let time: ArrayRef = Arc::new(Int64Array::from(times));
        let host: ArrayRef = Arc::new(StringArray::from(hosts));
        RecordBatch::try_from_iter([("time", time), ("h", host)]).unwrap()
    };
    let error = engine.write_batch("d", "m", &batch(vec![7, 8, 7], vec!["b", "b", "b"])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("rows 1 and 3"), "{error}");
    assert_eq!(engine.write_batch("d", "m", &batch(vec![7, 8, 7], vec!["b", "b", "c"])).unwrap().points, 3);
    assert_eq!(number(&engine, "d", "SELECT count(*) FROM m"), 4);
}

#[test]
fn tags_that_cannot_be_are_refused_not_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let time: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let host: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let batch = RecordBatch::try_from_iter([("time", time), ("h", host)]).unwrap();
    assert_eq!(engine.write_batch("d", "appends", &batch).unwrap().points, 1);
    for (table, tag, says) in [("new", "time", "time column"), ("new", "", "empty"), ("appends", "h", "declared later")]
    {
        let options = WriteOptions::new().tags([tag]);
        let error = engine.submit_batches("d", table, std::slice::from_ref(&batch), &options).unwrap_err();
        assert!(error.to_string().contains(says), "{tag:?}: {error}");
    }
}

#[test]
fn the_name_of_sqls_own_tables_is_no_database() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    assert_eq!(engine.write_lp("Information_Schema", b"m v=1").unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(engine.create_database("information_schema").unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn one_flush_writes_the_files_of_many_tables() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let lines: String = (0..50).map(|i| format!("m{i},h=a v={i} 1\n")).collect();
    write(&engine, "d", &lines);
    assert_eq!(engine.flush().unwrap().files.len(), 50);
    drop(engine);
    let engine = open(dir.path());
    let total: i64 = (0..50).map(|i| number(&engine, "d", &format!("SELECT count(*) FROM m{i}"))).sum();
    assert_eq!(total, 50);
}

#[test]
fn a_view_keeps_its_rows_through_a_flush() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    write(&engine, "d", "m,h=a x=1 1\nm,h=a x=2 2\nm,h=a x=3 1");
    let before = engine.view("d", "m").unwrap();
    engine.flush().unwrap();
    let after = engine.view("d", "m").unwrap();
    let rows = |view: &arc_core::TableView, late| {
        view.buffers.iter().filter(|part| part.late == late).map(arc_core::BufferPart::row_count).sum::<usize>()
    };
    assert_eq!((before.files.len(), rows(&before, false), rows(&before, true)), (0, 2, 1));
    assert_eq!((after.files.len(), after.buffers.len(), after.files[0].rows), (1, 0, 2));
    assert_eq!(engine.view("d", "none").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn no_more_databases_and_tables_are_made_than_there_may_be_and_all_that_are_there_stay() {
    let dir = tempfile::tempdir().unwrap();
    let open = |limit: usize| {
        let mut options = Options::default();
        (options.max_databases, options.max_tables) = (limit, limit);
        Engine::builder(dir.path()).options(options).open().unwrap()
    };
    let refused = |result: Result<(), arc_core::Error>, option: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(option), "{error}");
    };
    let engine = open(2);
    drop(engine.write_lp("a", b"one v=1 1").unwrap());
    drop(engine.write_lp("b", b"two v=1 1").unwrap());
    refused(engine.create_database("c"), "max_databases");
    refused(engine.write_lp("c", b"one v=1 1").map(drop), "max_databases");
    refused(engine.write_lp("a", b"one v=2 2\nthree v=1 1").map(drop), "max_tables");
    let schema =
        arc_core::catalog::TableSchema { table: "three".into(), ..(*engine.schema("a", "one").unwrap()).clone() };
    refused(engine.create_table(&schema), "max_tables");
    assert_eq!((engine.databases().len(), engine.tables("a").unwrap().len()), (2, 1));
    // New columns, and what is known, go on; a drop makes room.
    drop(engine.write_lp("a", b"one v=2,w=1 2").unwrap());
    engine.drop_table("b", "two").unwrap();
    drop(engine.write_lp("a", b"three v=1 1").unwrap());
    drop(engine);
    let engine = open(1);
    assert_eq!((engine.databases().len(), engine.tables("a").unwrap().len()), (2, 2));
    drop(engine.write_lp("a", b"three v=1 2").unwrap());
    engine.close().unwrap();
    let engine = open(0);
    drop(engine.write_lp("c", b"four v=1 1").unwrap());
}
