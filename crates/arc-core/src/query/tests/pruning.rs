//! What a query does not have to read: parts outside its conditions, and rows where statistics are
//! enough.

use super::fake::{
    Cell::{Boolean, Float, Integer, Tag, Text},
    Home::{Buffer, File, LateBuffer},
    Row, Store, TableBuilder,
};

/// Nanoseconds of 2025-01-01T00:00:00Z.
const NEW_YEAR: i64 = 1_735_689_600_000_000_000;
const HOUR: i64 = 3_600_000_000_000;

fn row(time: i64, host: &'static str, x: i64) -> Vec<Row> {
    let fields = [("x", Integer(x)), ("f", Float(x as f64 / 2.0)), ("s", Text(host)), ("on", Boolean(x > 0))];
    vec![(time, [("host", Tag(host))].into_iter().chain(fields).collect())]
}

/// Files 0, 1, 2 at 00:00, 01:00, 02:00 of hosts a, b, c with x of 0, 10, 20; a buffer at 03:00.
fn store() -> Store {
    let store = Store::new();
    let table = TableBuilder::new("m")
        .part(File, row(NEW_YEAR, "a", 0))
        .part(File, row(NEW_YEAR + HOUR, "b", 10))
        .part(File, row(NEW_YEAR + 2 * HOUR, "c", 20))
        .part(Buffer, row(NEW_YEAR + 3 * HOUR, "d", 30));
    store.put("db", table);
    store
}

fn parts_in(plan: &str) -> String {
    let files = (0..3).filter(|file| plan.contains(&format!("/{file}.parquet"))).map(|file| file.to_string());
    files.chain(plan.contains("buffer").then(|| "buffer".to_owned())).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn parts_outside_a_condition_are_not_read() {
    let store = store();
    let cases = [
        ("true", "0 1 2 buffer", 4),
        ("time >= '2025-01-01T02:00:00Z'", "2 buffer", 2),
        ("time > '2025-01-01T02:00:00Z'", "buffer", 1),
        ("time >= '2025-01-01 01:00:00'", "1 2 buffer", 3),
        ("time >= '2025-01-01T03:00:00+02:00'", "1 2 buffer", 3),
        ("time >= TIMESTAMP '2025-01-01 02:00:00'", "2 buffer", 2),
        ("time >= to_timestamp('2025-01-01T02:00:00Z')", "2 buffer", 2),
        ("time >= '2025-01-02'", "", 0),
        ("time = '2025-01-01T01:00:00Z'", "1", 1),
        ("time BETWEEN '2025-01-01T00:00:00Z' AND '2025-01-01T01:00:00Z'", "0 1", 2),
        ("time < '2025-01-01T01:00:00Z' OR time > '2025-01-01T02:30:00Z'", "0 buffer", 2),
        ("time > now() - INTERVAL '1 hour'", "", 0),
        ("time < now() - INTERVAL '5 minutes'", "0 1 2 buffer", 4),
        ("CAST(time AS BIGINT) >= 1735696800000000000", "2 buffer", 2),
        ("host = 'b'", "1 buffer", 1),
        ("host IN ('a', 'c')", "0 2 buffer", 2),
        ("host LIKE 'b%'", "1 2 buffer", 1),
        ("host IS NULL", "buffer", 0),
        ("host IS NOT NULL AND x > 15", "2 buffer", 2),
        ("x = 10", "1 buffer", 1),
        ("f < 5.0", "0 buffer", 1),
        ("s >= 'b' AND s < 'c'", "1 buffer", 1),
        ("NOT on", "0 buffer", 1),
        ("x + 1 > 15", "0 1 2 buffer", 2),
    ];
    for (condition, parts, rows) in cases {
        let sql = format!("SELECT x FROM m WHERE {condition}");
        let plan = store.plan(&sql).await;
        assert_eq!(parts_in(&plan), parts, "{sql}\n{plan}");
        assert_eq!(store.rows(&sql).await.len(), rows, "{sql}");
    }
}

#[tokio::test]
async fn explain_says_how_many_files_are_read_and_why_not_the_others() {
    let store = store();
    let cases = [
        ("true", "db.m: 3 data files, 3 to read"),
        ("time >= '2025-01-01T02:00:00Z'", "db.m: 3 data files, 1 to read; left out: 2 by time"),
        ("host = 'b'", "db.m: 3 data files, 1 to read; left out: 2 by other columns"),
        (
            "time >= '2025-01-01T01:00:00Z' AND host = 'b'",
            "db.m: 3 data files, 1 to read; left out: 1 by time, 1 by other columns",
        ),
    ];
    for (condition, expected) in cases {
        for explain in ["EXPLAIN", "EXPLAIN ANALYZE"] {
            let rows = store.rows(&format!("{explain} SELECT x FROM m WHERE {condition}")).await;
            assert_eq!(rows.last().unwrap(), &format!("data_files|{expected}"));
        }
    }
    let join = "EXPLAIN SELECT a.x FROM m a JOIN m b ON a.x = b.x WHERE b.time > '2025-01-02'";
    assert_eq!(store.rows(join).await.iter().filter(|row| row.starts_with("data_files")).count(), 2);
    assert!(!store.rows("EXPLAIN SELECT 1").await.join("").contains("data_files"));
}

#[tokio::test]
async fn a_condition_reaches_the_parquet_source_once() {
    let plan = store().plan("SELECT x FROM m WHERE host > 'a' AND x < 25").await;
    let physical = plan.split_once("physical_plan").unwrap().1;
    let scans = physical.matches("file_type=parquet").count();
    assert_eq!(
        (scans, physical.matches(" predicate=").count(), physical.matches("pruning_predicate=").count()),
        (1, 1, 1)
    );
    let source = physical.lines().find(|line| line.contains("file_type=parquet")).unwrap();
    let predicate = source.split_once(" predicate=").unwrap().1.split_once(", pruning_predicate").unwrap().0;
    assert_eq!(predicate.matches("> a").count(), 1, "{source}");
}

#[tokio::test]
async fn counts_and_ends_of_time_come_from_statistics() {
    let store = store();
    let sql = "SELECT count(*), min(time), max(time) FROM m";
    let plan = store.plan(sql).await;
    assert!(plan.contains("PlaceholderRowExec") && !plan.contains("DataSourceExec"), "{plan}");
    assert_eq!(store.rows(sql).await, ["4|2025-01-01T00:00:00Z|2025-01-01T03:00:00Z"]);
    let files_only = TableBuilder::new("f").part(File, row(1, "b", 4)).part(File, row(2, "a", -4));
    store.put("db", files_only);
    let sql = "SELECT min(host), max(host), min(x), max(f), count(s), max(s) FROM f";
    assert_eq!(store.rows(sql).await, ["a|b|-4|2.0|2|b"]);
    assert!(!store.plan(sql).await.contains("DataSourceExec"));
    // Not so where rows merge, are filtered, or are limited.
    store.put("db", TableBuilder::new("l").part(File, row(1, "a", 1)).part(LateBuffer, row(1, "a", 2)));
    assert_eq!(store.rows("SELECT count(*), max(x) FROM l").await, ["1|2"]);
    assert_eq!(store.rows("SELECT count(*) FROM m WHERE x > 5").await, ["3"]);
    assert_eq!(store.rows("SELECT count(*) FROM (SELECT * FROM m LIMIT 2)").await, ["2"]);
    assert_eq!(store.rows("SELECT count(*) FROM (SELECT * FROM m OFFSET 1)").await, ["3"]);
}

#[tokio::test]
async fn a_limit_ends_a_scan_early_and_a_sorted_one_takes_the_newest() {
    let store = store();
    assert_eq!(store.rows("SELECT x FROM m LIMIT 3").await.len(), 3);
    assert_eq!(store.rows("SELECT x FROM m ORDER BY time DESC LIMIT 2").await, ["30", "20"]);
    assert_eq!(store.rows("SELECT x FROM m ORDER BY x LIMIT 1 OFFSET 1").await, ["10"]);
    assert_eq!(store.rows("SELECT host FROM m WHERE x > 5 ORDER BY host LIMIT 2").await, ["b", "c"]);
}

#[tokio::test]
async fn an_empty_table_has_its_columns_and_no_rows() {
    let store = store();
    let empty = TableBuilder::new("e").part(Buffer, row(1, "a", 1));
    store.put("db", empty);
    store.fake.databases.lock().get_mut("db").unwrap().get_mut("e").unwrap().buffers.clear();
    assert_eq!(store.rows("SELECT * FROM e").await, Vec::<String>::new());
    assert_eq!(store.rows("SELECT count(*), max(x) FROM e").await, ["0|"]);
    assert!(store.text("SELECT * FROM e").await.contains("| time | host | x | f | s | on |"));
}
