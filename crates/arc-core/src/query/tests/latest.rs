//! The newest rows: which statements are answered by looking for them, and that the answers are
//! right.

use std::sync::Arc;

use super::fake::{
    Cell::{Float, Integer, Tag},
    Home::{self, Buffer, File, LateBuffer, LateFile},
    Row, Store, TableBuilder,
};
use crate::{Predicate, SequenceNumber, Tombstone, model::predicate::bind};

fn point(time: i64, host: &'static str, x: i64) -> Row {
    (time, vec![("host", Tag(host)), ("rack", Tag("r")), ("x", Integer(x))])
}

/// Three hosts, of which `c` went silent long ago.
fn table(homes: [Home; 3]) -> TableBuilder {
    let [first, second, third] = homes;
    TableBuilder::new("m")
        .part(first, vec![point(1, "a", 1), point(2, "b", 2), point(3, "c", 3)])
        .part(second, vec![point(11, "a", 11), point(12, "b", 12)])
        .part(third, vec![point(21, "a", 21), point(22, "b", 22), point(23, "a", 23)])
}

const LAST_OF_EACH: [&str; 9] = [
    "SELECT host, x FROM (SELECT *, row_number() OVER (PARTITION BY host ORDER BY time DESC) AS n FROM m) WHERE n = 1",
    "SELECT t.host, t.x FROM (SELECT row_number() OVER (PARTITION BY host ORDER BY time DESC) AS n, x, host FROM m) t \
     WHERE t.n < 2",
    "SELECT host, x FROM m QUALIFY row_number() OVER (PARTITION BY host ORDER BY time DESC) = 1",
    "WITH l AS (SELECT host AS h, time AS t, x AS y FROM m) \
     SELECT h, y FROM l QUALIFY row_number() OVER (PARTITION BY h ORDER BY t DESC) = 1",
    "SELECT host, first_value(x ORDER BY time DESC) FROM m GROUP BY host",
    "SELECT host, last_value(x ORDER BY time) FROM m GROUP BY host",
    "SELECT host, max(time), last_value(x ORDER BY time) FROM m GROUP BY host",
    "SELECT host, last_value(x ORDER BY time) FILTER (WHERE x IS NOT NULL) FROM m GROUP BY host",
    "SELECT DISTINCT ON (host) host, x FROM m ORDER BY host, time DESC",
];

#[tokio::test]
async fn the_last_row_of_each_series_is_looked_for_whatever_the_spelling() {
    let states = [
        [Buffer; 3],
        [File; 3],
        [File, File, Buffer],
        [File, Buffer, Buffer],
        [File, File, LateFile],
        [File, Buffer, LateBuffer],
    ];
    for state in states {
        let store = Store::new();
        store.put("db", table(state));
        for sql in LAST_OF_EACH.into_iter().chain(LAST_OF_EACH) {
            let mut rows = store.rows(sql).await;
            rows.iter_mut()
                .for_each(|row| *row = row.split('|').filter(|cell| !cell.contains(':')).collect::<Vec<_>>().join("|"));
            rows.sort();
            let plan = store.plan(sql).await;
            assert_eq!(rows, ["a|23", "b|22", "c|3"], "{sql} with {state:?}\n{plan}");
            assert!(plan.contains("LatestExec: keys=[host]"), "{sql}\n{plan}");
        }
    }
}

#[tokio::test]
async fn conditions_count_before_rows_do() {
    let cases = [
        ("time < '1970-01-01T00:00:00.000000012Z'", vec!["a|11", "b|2", "c|3"]),
        ("time <= '1970-01-01T00:00:00.000000012Z'", vec!["a|11", "b|12", "c|3"]),
        ("time >= '1970-01-01T00:00:00.000000022Z'", vec!["a|23", "b|22"]),
        ("time > '1970-01-01T00:00:00.000000003Z' AND time < '1970-01-01T00:00:00.000000022Z'", vec!["a|21", "b|12"]),
        ("host = 'b'", vec!["b|22"]),
        ("host IN ('a', 'c') AND time > '1970-01-01T00:00:00.000000003Z'", vec!["a|23"]),
        ("x < 21", vec!["a|11", "b|12", "c|3"]),
        ("x % 2 = 0", vec!["b|22"]),
        ("rack = 'r' AND host <> 'a'", vec!["b|22", "c|3"]),
        ("rack = 'x'", vec![]),
    ];
    for state in [[Buffer; 3], [File; 3], [File, File, Buffer], [File, LateFile, LateBuffer]] {
        let store = Store::new();
        store.put("db", table(state));
        for (condition, expected) in cases.iter().chain(&cases) {
            let sql = format!(
                "SELECT host, last_value(x ORDER BY time) FROM m WHERE {condition} GROUP BY host ORDER BY host"
            );
            let plan = store.plan(&sql).await;
            assert!(plan.contains("LatestExec"), "{plan}");
            assert_eq!(store.rows(&sql).await, *expected, "{sql} with {state:?}\n{plan}");
        }
    }
}

#[tokio::test]
async fn deleted_rows_and_overwritten_values_are_not_the_last() {
    let store = Store::new();
    let late = vec![point(23, "a", 230), point(2, "c", 20)];
    store.put("db", table([File, File, File]).part(LateFile, late));
    let sql = "SELECT host, last_value(x ORDER BY time) FROM m GROUP BY host ORDER BY host";
    assert_eq!(store.rows(sql).await, ["a|230", "b|22", "c|3"]);
    let delete = |seq, condition: &str| {
        let mut databases = store.fake.databases.lock();
        let view = databases.get_mut("db").unwrap().get_mut("m").unwrap();
        let predicate = bind(&Predicate::from_sql(condition).unwrap(), &view.schema).unwrap();
        view.tombstones.push(Arc::new(Tombstone { seq: SequenceNumber(seq), predicate }));
    };
    delete(10, "host = 'b' AND time >= '1970-01-01T00:00:00.000000020Z'");
    assert_eq!(store.rows(sql).await, ["a|230", "b|12", "c|3"]);
    delete(11, "host = 'c'");
    assert_eq!(store.rows(sql).await, ["a|230", "b|12"]);
    assert_eq!(store.rows("SELECT x FROM m ORDER BY time DESC LIMIT 3").await, ["230", "21", "12"]);
}

#[tokio::test]
async fn what_a_statement_says_beyond_the_newest_row_keeps_the_plain_scan() {
    let store = Store::new();
    let nulls =
        vec![(1, vec![("host", Tag("a")), ("x", Integer(1))]), (2, vec![("host", Tag("a")), ("y", Float(2.0))])];
    store.put("db", table([File, File, Buffer])).put("db", TableBuilder::new("sparse").part(File, nulls));
    let plain = [
        "SELECT host, last_value(x ORDER BY time), count(*) FROM m GROUP BY host",
        "SELECT host, first_value(x ORDER BY time) FROM m GROUP BY host",
        "SELECT host, last_value(x ORDER BY time), first_value(x ORDER BY time) FROM m GROUP BY host",
        "SELECT host, last_value(x ORDER BY x) FROM m GROUP BY host",
        "SELECT host, last_value(x ORDER BY time, x) FROM m GROUP BY host",
        "SELECT host, max(x) FROM m GROUP BY host",
        "SELECT x % 2, last_value(x ORDER BY time) FROM m GROUP BY 1",
        "SELECT host, last_value(x ORDER BY time) FILTER (WHERE x > 1) FROM m GROUP BY host",
        "SELECT host, last_value(x ORDER BY time) IGNORE NULLS FROM sparse GROUP BY host",
        "SELECT host FROM m QUALIFY row_number() OVER (PARTITION BY host ORDER BY time DESC) <= 2",
        "SELECT host FROM m QUALIFY row_number() OVER (PARTITION BY host ORDER BY time) = 1",
        "SELECT host FROM m QUALIFY row_number() OVER (PARTITION BY host ORDER BY time DESC, x) = 1",
        "SELECT host FROM m QUALIFY rank() OVER (PARTITION BY host ORDER BY time DESC) = 1",
        "SELECT host FROM (SELECT host, time FROM m LIMIT 5) QUALIFY row_number() OVER (ORDER BY time DESC) = 1",
        "SELECT host FROM m WHERE random() < 2 QUALIFY row_number() OVER (PARTITION BY host ORDER BY time DESC) = 1",
        "SELECT x FROM m ORDER BY time LIMIT 2",
        "SELECT x FROM m ORDER BY time DESC",
        "SELECT x FROM m ORDER BY x DESC, time DESC LIMIT 2",
        "SELECT x FROM m ORDER BY time DESC LIMIT 100000",
    ];
    for sql in plain {
        let plan = store.plan(sql).await;
        assert!(!plan.contains("LatestExec"), "{sql}\n{plan}");
        assert!(!store.text(sql).await.starts_with("error"), "{sql}");
    }
    let sql = "SELECT last_value(x ORDER BY time) IGNORE NULLS, last_value(x ORDER BY time) FROM sparse";
    assert_eq!(store.rows(sql).await, ["1|"]);
}

#[tokio::test]
async fn the_newest_rows_of_all_are_looked_for_in_the_newest_parts() {
    let cases = [
        ("SELECT x FROM m ORDER BY time DESC LIMIT 2", vec!["23", "22"]),
        ("SELECT x FROM m ORDER BY time DESC LIMIT 2 OFFSET 3", vec!["12", "11"]),
        ("SELECT x, host FROM m WHERE x < 22 ORDER BY time DESC, host LIMIT 3", vec!["21|a", "12|b", "11|a"]),
        ("SELECT x FROM m WHERE host = 'c' ORDER BY time DESC LIMIT 5", vec!["3"]),
        ("SELECT last_value(x ORDER BY time) FROM m", vec!["23"]),
        ("SELECT last_value(x ORDER BY time) FROM m WHERE host = 'b'", vec!["22"]),
        ("SELECT last_value(x ORDER BY time) FROM m WHERE host = 'none'", vec![""]),
        ("SELECT count(*) FROM (SELECT * FROM m ORDER BY time DESC LIMIT 4)", vec!["4"]),
        ("SELECT x FROM m ORDER BY time DESC LIMIT 0", vec![]),
        ("SELECT x FROM m QUALIFY row_number() OVER (ORDER BY time DESC) = 1", vec!["23"]),
    ];
    for state in [[Buffer; 3], [File; 3], [File, File, Buffer], [File, LateFile, LateBuffer]] {
        let store = Store::new();
        store.put("db", table(state));
        for (sql, expected) in &cases {
            let plan = store.plan(sql).await;
            assert!(plan.contains("LatestExec: rows=") || sql.ends_with("LIMIT 0"), "{plan}");
            assert_eq!(store.rows(sql).await, *expected, "{sql} with {state:?}\n{plan}");
        }
    }
    let store = Store::new();
    store.put("db", table([File; 3]));
    let analyzed = store.text("EXPLAIN ANALYZE SELECT x FROM m ORDER BY time DESC LIMIT 2").await;
    assert!(analyzed.contains("parts_with_rows=1"), "{analyzed}");
}

#[tokio::test]
async fn rows_of_one_time_are_all_there_to_be_ordered() {
    let hosts = ["a", "b", "c", "d", "e", "f"];
    let rows = |time| hosts.into_iter().enumerate().map(|(i, host)| point(time, host, i as i64)).collect::<Vec<_>>();
    for (first, second) in [(File, File), (File, Buffer), (File, LateFile)] {
        let store = Store::new();
        store.put("db", TableBuilder::new("m").part(first, rows(1)).part(second, rows(2)));
        let sql = "SELECT host FROM m ORDER BY time DESC, x DESC LIMIT 8";
        assert_eq!(store.rows(sql).await, ["f", "e", "d", "c", "b", "a", "f", "e"]);
        assert!(store.plan(sql).await.contains("LatestExec"));
    }
}

#[tokio::test]
async fn other_columns_than_tags_make_keys_too() {
    let row = |time, n, x| (time, vec![("n", Integer(n)), ("x", Float(x))]);
    let store = Store::new();
    let old = vec![row(1, 7, 0.5), row(1, 8, 1.5), row(2, 7, 2.5)];
    store.put(
        "db",
        TableBuilder::new("log").append().part(File, old).part(Buffer, vec![row(3, 9, 3.5), row(2, 8, 4.5)]),
    );
    let sql = "SELECT n, last_value(x ORDER BY time) FROM log GROUP BY n ORDER BY n";
    assert!(store.plan(sql).await.contains("LatestExec: keys=[n]"));
    assert_eq!(store.rows(sql).await, ["7|2.5", "8|4.5", "9|3.5"]);
    let sql = "SELECT x, last_value(n ORDER BY time) FROM log GROUP BY x ORDER BY x LIMIT 1";
    assert!(!store.plan(sql).await.contains("LatestExec"), "floats make no keys");
    assert_eq!(store.rows(sql).await, ["0.5|7"]);
}
