//! Unflushed rows, more of them than are looked at at a time: none is left out, and none is there
//! twice.

use super::fake::{
    Cell::{Integer, Tag},
    Home::{Buffer, LateBuffer},
    Row, Store, TableBuilder,
};

/// More than the rows that a partition, a look at conditions and a chunk of a buffer have.
const ROWS: i64 = 150_000;

fn row(n: i64) -> Row {
    let hosts = ["1", "2", "3", "none"];
    let host = hosts[usize::try_from(if n < ROWS / 2 { n % 3 } else { n % 4 }).unwrap()];
    let mut cells = vec![("n", Integer(n))];
    if n % 10 != 0 {
        cells.push(("host", Tag(host)));
    }
    (n, cells)
}

fn store(parts: &[i64]) -> Store {
    let store = Store::new();
    let (mut table, mut start) = (TableBuilder::new("m"), 0);
    for end in parts {
        table = table.part(Buffer, (start..*end).map(row).collect());
        start = *end;
    }
    store.put("db", table);
    store
}

#[tokio::test]
async fn conditions_leave_the_rows_that_meet_them() {
    let hosts = |host: &'static str| (0..ROWS).filter(|n| row(*n).1.contains(&("host", Tag(host)))).count();
    let cases = [
        ("true".to_owned(), ROWS.to_string()),
        ("host = '2'".to_owned(), hosts("2").to_string()),
        ("host IN ('2', 'none') AND n >= 0".to_owned(), (hosts("2") + hosts("none")).to_string()),
        ("host IS NULL".to_owned(), (ROWS / 10).to_string()),
        ("coalesce(host, 'x') = 'x'".to_owned(), (ROWS / 10).to_string()),
        ("host IS NULL AND n % 20 = 0".to_owned(), (ROWS / 20).to_string()),
        ("time < '1970-01-01T00:00:00.000070000Z'".to_owned(), "70000".to_owned()),
        ("time = '1970-01-01T00:00:00.000070000Z'".to_owned(), "1".to_owned()),
        ("n BETWEEN 65000 AND 66000".to_owned(), "1001".to_owned()),
        ("false".to_owned(), "0".to_owned()),
        // A host that is no number has no row at these times.
        (
            "CAST(substr(host, 1, 9) AS BIGINT) > 0 AND time < '1970-01-01T00:00:00.000060Z'".to_owned(),
            "54000".to_owned(),
        ),
    ];
    for parts in [vec![ROWS], vec![7, 65_536, ROWS], vec![65_535, 65_537, 131_073, ROWS]] {
        let store = store(&parts);
        for (condition, expected) in &cases {
            let sql = format!("SELECT count(*) FROM m WHERE {condition}");
            assert_eq!(store.rows(&sql).await, [expected.as_str()], "{sql} {parts:?}");
        }
        let sum = "SELECT count(DISTINCT n), sum(n), count(host) FROM m";
        assert_eq!(store.rows(sum).await, [format!("{ROWS}|{}|{}", ROWS * (ROWS - 1) / 2, ROWS / 10 * 9)]);
    }
}

#[tokio::test]
async fn a_limit_takes_no_more_and_a_sort_the_first() {
    let store = store(&[40_000, ROWS]);
    let cases = [
        ("SELECT count(*) FROM (SELECT n FROM m LIMIT 100000)", "100000"),
        ("SELECT count(*) FROM (SELECT n FROM m WHERE host = '1' LIMIT 1000)", "1000"),
        ("SELECT count(*) FROM (SELECT n FROM m LIMIT 5 OFFSET 149998)", "2"),
        ("SELECT n FROM m ORDER BY n DESC LIMIT 1", "149999"),
        ("SELECT n FROM m WHERE host = '3' ORDER BY n LIMIT 1", "2"),
        ("SELECT host FROM m ORDER BY host NULLS LAST, n LIMIT 1", "1"),
        ("SELECT n FROM m ORDER BY n % 1000 DESC, n LIMIT 1", "999"),
        ("SELECT n FROM m WHERE host = 'none' ORDER BY time DESC LIMIT 1", "149999"),
    ];
    for (sql, expected) in cases {
        assert_eq!(store.rows(sql).await, [expected], "{sql}");
    }
}

#[tokio::test]
async fn what_is_counted_by_what_is_known_is_not_read() {
    let store = store(&[40_000, ROWS]);
    let sql = "SELECT count(*), min(time), max(time) FROM m";
    assert_eq!(store.rows(sql).await, ["150000|1970-01-01T00:00:00Z|1970-01-01T00:00:00.000149999Z"]);
    assert!(!store.plan(sql).await.contains("DataSourceExec"));
    // A chunk of other times is not among those to read.
    let plan = store.plan("SELECT host, n FROM m WHERE time < '1970-01-01T00:00:00.00004Z' AND host = '1'").await;
    assert!(plan.contains("buffer rows=40000") && !plan.contains("FilterExec"), "{plan}");
}

#[tokio::test]
async fn late_rows_overwrite_in_whatever_chunk_they_are() {
    let store = Store::new();
    let late = |n: i64| (n, vec![("host", Tag("1")), ("n", Integer(-1))]);
    let rows = |from, to| (from..to).map(|n| (n, vec![("host", Tag("1")), ("n", Integer(n))])).collect::<Vec<Row>>();
    let table = TableBuilder::new("m").part(Buffer, rows(0, 70_000)).part(Buffer, rows(70_000, 80_000));
    store.put("db", table.part(LateBuffer, vec![late(65_536), late(75_000)]));
    for (sql, expected) in [
        ("SELECT count(*), count(*) FILTER (WHERE n = -1) FROM m", "80000|2"),
        ("SELECT count(*) FROM m WHERE n = 75000 OR n = 65536", "0"),
        ("SELECT n FROM m WHERE time = '1970-01-01T00:00:00.000075Z' AND host = '1'", "-1"),
        ("SELECT count(*) FROM m WHERE host = '2'", "0"),
    ] {
        assert_eq!(store.rows(sql).await, [expected], "{sql}");
    }
}
