//! Deletes through the public interface: what goes, what stays, and when it leaves the disk.

use std::{sync::Arc, time::Duration};

use arc_core::{Comparison, Durability, Engine, ErrorKind, Literal, Options, Predicate, WriteOptions};
use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use bytes::Bytes;

use crate::support::{number, open, query, quiet, shown, write};

const DAY_NS: i64 = 86_400_000_000_000;

fn is(column: &str, comparison: Comparison, value: impl Into<Literal>) -> Predicate {
    Predicate::compare(column, comparison, value)
}

fn before(time_ns: i64) -> Predicate {
    is("time", Comparison::Less, Literal::Time(time_ns))
}

/// An engine that merges nothing but what deletes need.
fn engine(path: &std::path::Path) -> Engine {
    let mut options = Options::default();
    (options.compaction_grace, options.history) = (Duration::ZERO, Duration::ZERO);
    options.compaction_quiet = Duration::from_secs(1 << 30);
    quiet(path).options(options).compaction(false).flush_after(Duration::from_secs(1 << 30)).open().unwrap()
}

#[test]
fn what_was_there_goes_and_what_comes_later_stays_across_flush_compaction_and_restart() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = engine(dir.path());
    write(&engine, "d", "m,h=a x=1,y=1 1\nm,h=b x=2 2\nm,h=a x=3 3");
    engine.flush().unwrap();
    write(&engine, "d", "m,h=a y=9 1\nm,h=a x=4 4\nm,h=c x=5 5");
    let deleted = engine.delete("d", "m", &is("h", Comparison::Equal, "a")).unwrap();
    assert_eq!(deleted.affected_files, 1);
    // Again at a time that was deleted: nothing of the older versions comes back.
    write(&engine, "d", "m,h=a x=6 1");
    let rows = "SELECT h, CAST(time AS BIGINT) AS t, x, y FROM m ORDER BY t, h";
    let expected = shown(
        &engine,
        "d",
        "SELECT * FROM (VALUES ('a', 1, 6.0, CAST(NULL AS DOUBLE)), ('b', 2, 2.0, NULL), \
         ('c', 5, 5.0, NULL)) AS v(h, t, x, y)",
    );
    for step in ["at once", "replayed", "flushed", "reopened", "compacted", "reopened once more"] {
        assert_eq!(shown(&engine, "d", rows), expected, "{step}");
        assert_eq!(number(&engine, "d", "SELECT count(*) FROM m"), 3, "{step}");
        assert_eq!(number(&engine, "d", "SELECT CAST(max(time) AS BIGINT) FROM m WHERE h = 'a'"), 1, "{step}");
        match step {
            "at once" | "flushed" | "compacted" => {
                drop(engine);
                engine = self::engine(dir.path());
            }
            "replayed" => drop(engine.flush().unwrap()),
            _ => drop(engine.compact().unwrap()),
        }
    }
    assert!(engine.view("d", "m").unwrap().tombstones.is_empty());
    let files = engine.data_files("d", "m").unwrap();
    assert_eq!(files.iter().map(|file| file.rows).sum::<u64>(), 3, "{files:?}");
    engine.delete("d", "m", &Predicate::True).unwrap();
    assert_eq!(number(&engine, "d", "SELECT count(*) FROM m"), 0);
    engine.flush().unwrap();
    engine.compact().unwrap();
    assert!(engine.data_files("d", "m").unwrap().is_empty());
    assert_eq!(shown(&engine, "d", "SELECT count(x) AS n, max(time) AS t FROM m").lines().count(), 5);
}

#[test]
fn an_append_only_table_is_deleted_from_by_any_column_and_rows_with_nulls_stay() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let write = |first: i64| {
        let columns: [(&str, ArrayRef); 4] = [
            ("time", Arc::new(Int64Array::from(vec![first, first + 1, first + 2, first + 3]))),
            ("x", Arc::new(Float64Array::from(vec![Some(1.0), Some(2.0), None, Some(4.0)]))),
            ("n", Arc::new(Int64Array::from(vec![Some(1), None, Some(3), Some(4)]))),
            ("s", Arc::new(StringArray::from(vec![Some("a"), Some("b"), None, Some("a")]))),
        ];
        let written = engine.write_batch("d", "log", &RecordBatch::try_from_iter(columns).unwrap()).unwrap();
        assert_eq!(written.points, 4);
    };
    write(0);
    engine.flush().unwrap();
    write(10);
    let left = |sql: &str| number(&engine, "d", &format!("SELECT count(*) FROM log{sql}"));
    // Nothing can be said of the rows whose x is null.
    engine.delete("d", "log", &is("x", Comparison::GreaterOrEqual, Literal::Integer(4))).unwrap();
    assert_eq!((left(""), left(" WHERE x IS NULL"), left(" WHERE x >= 4")), (6, 2, 0));
    let not = Predicate::Not(Box::new(is("s", Comparison::Equal, "a")));
    engine.delete("d", "log", &Predicate::And(vec![not, before(5)])).unwrap();
    assert_eq!((left(""), left(" WHERE time < to_timestamp_nanos(5)"), left(" WHERE s IS NULL")), (5, 2, 2));
    write(20);
    assert_eq!(left(""), 9);
    engine.flush().unwrap();
    engine.compact().unwrap();
    assert_eq!((left(""), left(" WHERE s IS NULL")), (9, 3));
    assert_eq!(engine.data_files("d", "log").unwrap().iter().map(|file| file.rows).sum::<u64>(), 9);
}

#[test]
fn parts_that_a_delete_cannot_touch_are_read_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    for day in 0..3 {
        write(&engine, "d", &format!("m,h=a x=1 {}\nm,h=b x=1 {}", day * DAY_NS, day * DAY_NS + 1));
    }
    engine.flush().unwrap();
    let plan = || shown(&engine, "d", "EXPLAIN SELECT count(*) FROM m");
    assert!(!plan().contains("parquet"), "counted by the manifest: {}", plan());
    engine.delete("d", "m", &is("h", Comparison::Equal, "zzz")).unwrap();
    assert!(!plan().contains("parquet"), "no file has such a tag: {}", plan());
    engine.delete("d", "m", &Predicate::And(vec![before(DAY_NS), is("h", Comparison::Equal, "a")])).unwrap();
    // Above the scan or in it.
    assert!(plan().contains("IS DISTINCT FROM"), "{}", plan());
    assert_eq!(number(&engine, "d", "SELECT count(*) FROM m"), 5);
    // A day of which nothing is left is not read at all.
    engine.delete("d", "m", &before(2 * DAY_NS)).unwrap();
    assert_eq!(number(&engine, "d", "SELECT count(*) FROM m"), 2);
    assert!(!plan().contains("parquet"), "{}", plan());
    // In a query that is under way the rows stay.
    let answer = query(&engine, "d", "SELECT CAST(min(time) AS BIGINT) FROM m").unwrap();
    assert_eq!(answer[0].num_rows(), 1);
    engine.flush().unwrap();
    let report = engine.compact().unwrap();
    assert_eq!((report.rows_in, report.rows_out), (4, 0), "{report:?}");
    assert_eq!(engine.view("d", "m").unwrap().tombstones.len(), 0);
}

#[test]
fn writes_that_are_not_logged_are_on_their_side_of_a_delete() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let unlogged = |line: &'static str| {
        let options = WriteOptions::new().durability(Durability::Memory);
        let written = engine.submit_lp("d", Bytes::from_static(line.as_bytes()), &options).unwrap().wait().unwrap();
        assert_eq!(written.points, 1);
    };
    unlogged("m x=1 1");
    engine.delete("d", "m", &Predicate::True).unwrap();
    unlogged("m x=2 2");
    unlogged("m x=3 1");
    for _ in 0..2 {
        assert_eq!(number(&engine, "d", "SELECT CAST(sum(x) AS BIGINT) FROM m"), 5);
        engine.flush().unwrap();
        engine.compact().unwrap();
    }
    drop(engine);
    assert_eq!(number(&open(dir.path()), "d", "SELECT CAST(sum(x) AS BIGINT) FROM m"), 5);
}

#[test]
fn sql_deletes_where_it_is_asked_to_and_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    write(&engine, "d", "m,h=a x=1 1\nm,h=b x=1 86400000000000\nm x=1 5");
    let statement = "DELETE FROM m WHERE time < '1970-01-02' AND h IN ('a', 'b')";
    assert_eq!(query(&engine, "d", statement).unwrap_err().kind(), ErrorKind::InvalidInput);
    let predicate = Predicate::from_sql("h IN ('a', 'b') AND time < '1970-01-02'").unwrap();
    let bound = engine.check_delete("d", "m", &predicate).unwrap();
    assert_eq!(number(&engine, "d", &format!("SELECT count(*) FROM m WHERE {bound}")), 1);
    engine.execute("elsewhere", &statement.replace(" m ", " d.m ")).unwrap();
    assert_eq!(number(&engine, "d", "SELECT count(*) FROM m"), 2);
    engine.execute("d", "DELETE FROM m").unwrap();
    assert_eq!(number(&engine, "d", "SELECT count(*) FROM m"), 0);
    assert_eq!(engine.execute("d", "TRUNCATE TABLE m").unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(engine.execute("d", "DELETE FROM nothing").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn deletes_that_nobody_carries_out_are_refused_in_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.durability = Durability::Process;
    let engine = quiet(dir.path()).options(options).compaction(false).flush_after(Duration::from_secs(1 << 30));
    let engine = engine.open().unwrap();
    write(&engine, "d", "m,h=a x=1 1\nm,h=b x=1 2");
    for i in 0..1_000 {
        engine.delete("d", "m", &is("h", Comparison::Equal, if i == 500 { "a" } else { "nobody" })).unwrap();
    }
    assert_eq!(engine.delete("d", "m", &Predicate::True).unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(number(&engine, "d", "SELECT count(*) FROM m"), 1);
    engine.flush().unwrap();
    assert_eq!(number(&engine, "d", "SELECT count(*) FROM m"), 1);
    engine.compact().unwrap();
    engine.delete("d", "m", &Predicate::True).unwrap();
    assert_eq!(number(&engine, "d", "SELECT count(*) FROM m"), 0);
}

#[test]
fn what_cannot_be_deleted_by_is_refused_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    write(&engine, "d", "m,h=a x=1 1");
    let refused = [
        ("d", "m", is("x", Comparison::Equal, Literal::Float(1.0)), ErrorKind::InvalidInput),
        ("d", "m", is("nowhere", Comparison::Equal, "a"), ErrorKind::InvalidInput),
        ("d", "m", is("h", Comparison::Equal, Literal::Integer(1)), ErrorKind::InvalidInput),
        ("d", "nothing", Predicate::True, ErrorKind::NotFound),
        ("nowhere", "m", Predicate::True, ErrorKind::NotFound),
    ];
    for (database, table, predicate, kind) in refused {
        assert_eq!(engine.delete(database, table, &predicate).unwrap_err().kind(), kind, "{predicate}");
    }
    assert_eq!(number(&engine, "d", "SELECT count(*) FROM m"), 1);
    engine.close().unwrap();
    assert_eq!(engine.delete("d", "m", &Predicate::True).unwrap_err().kind(), ErrorKind::Closed);
}

/// Conditions over the columns of [`edges`].
fn conditions() -> Vec<String> {
    let mut all = Vec::new();
    for comparison in ["=", "<>", "<", "<=", ">", ">="] {
        all.extend([format!("f {comparison} 0.0"), format!("0.0 {comparison} f"), format!("NOT f {comparison} 0.0")]);
        all.extend([format!("f {comparison} -0.0"), format!("f {comparison} 0 AND b"), format!("s {comparison} 'b'")]);
        all.extend([format!("i {comparison} 0 OR f {comparison} 0"), format!("u {comparison} 18446744073709551615")]);
    }
    let others = [
        "f IN (0.0, 5)",
        "f NOT IN (-0.0, 5)",
        "f BETWEEN -0.0 AND 5",
        "f NOT BETWEEN 0.0 AND 5",
        "f IS NULL",
        "f IS NOT NULL AND NOT (i = 0)",
        "NOT (f > 0.0 OR b)",
        "time >= '1970-01-01T00:00:00.000000003Z' AND f < 5",
    ];
    all.extend(others.map(str::to_owned));
    all
}

/// Rows with all that a column can be beside ordinary: `id` numbers them.
fn edges() -> RecordBatch {
    let columns: [(&str, ArrayRef); 7] = [
        ("time", Arc::new(Int64Array::from_iter_values(0..9))),
        ("id", Arc::new(Int64Array::from_iter_values(0..9))),
        ("f", {
            let ends = [-0.0, 0.0, -1.0, 5.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE];
            Arc::new(ends.into_iter().map(Some).chain([None]).collect::<Float64Array>())
        }),
        (
            "i",
            Arc::new(Int64Array::from(vec![
                Some(0),
                None,
                Some(-1),
                Some(i64::MIN),
                Some(i64::MAX),
                None,
                None,
                None,
                None,
            ])),
        ),
        ("u", {
            let ends = [Some(0), None, Some(u64::MAX), None, None, None, None, Some(1), None];
            Arc::new(UInt64Array::from(ends.to_vec()))
        }),
        ("b", Arc::new([Some(true), Some(false), None].into_iter().cycle().take(9).collect::<BooleanArray>())),
        ("s", Arc::new(["a", "b", ""].map(Some).into_iter().chain([None; 6]).collect::<StringArray>())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

#[test]
fn a_delete_takes_what_a_query_shows_whatever_state_the_rows_are_in() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let conditions = conditions();
    let tables = |state: &'static str| conditions.iter().enumerate().map(move |(n, p)| (format!("{state}{n}"), p));
    for (table, _) in tables("flushed") {
        assert_eq!(engine.write_batch("d", &table, &edges()).unwrap().points, 9);
    }
    engine.flush().unwrap();
    for (table, _) in tables("buffered") {
        assert_eq!(engine.write_batch("d", &table, &edges()).unwrap().points, 9);
    }
    let ids = |table: &str, condition: &str| {
        shown(&engine, "d", &format!("SELECT id FROM {table} WHERE {condition} ORDER BY id"))
    };
    let mut left = Vec::new();
    for (table, condition) in tables("flushed").chain(tables("buffered")) {
        let expected = ids(&table, &format!("({condition}) IS NOT TRUE"));
        let predicate = Predicate::from_sql(condition).unwrap();
        // What a server counts before it asks whether so many are meant.
        let counted = engine.check_delete("d", &table, &predicate).unwrap();
        let count = |condition: &str| number(&engine, "d", &format!("SELECT count(*) FROM {table} WHERE {condition}"));
        assert_eq!(count(&counted.to_string()), count(condition), "{condition}");
        engine.delete("d", &table, &predicate).unwrap();
        left.push((table, condition, expected));
    }
    for step in ["at once", "flushed", "compacted"] {
        for (table, condition, expected) in &left {
            assert_eq!(ids(table, "true"), *expected, "{table}, {condition}, {step}");
        }
        match step {
            "at once" => drop(engine.flush().unwrap()),
            _ => drop(engine.compact().unwrap()),
        }
    }
}
