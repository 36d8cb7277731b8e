//! `mode`, `histogram` and `width_bucket`: how often values are there.

use super::fake::{
    Cell::{Boolean, Float, Integer, Tag, Text},
    Home::{Buffer, File},
    Row, Store, TableBuilder,
};
use crate::{ErrorKind, Options};

fn row((n, host, x): (i64, &'static str, f64)) -> Row {
    let text = ["ü", "a"][usize::from(n % 3 == 0)];
    (n, vec![("host", Tag(host)), ("x", Float(x)), ("n", Integer(n / 2)), ("s", Text(text)), ("b", Boolean(n > 2))])
}

fn store() -> Store {
    let store = Store::new();
    let first = [(1, "a", 1.0), (2, "b", -0.0), (3, "a", 2.0), (4, "c", f64::NAN)];
    let second = [(5, "b", 0.0), (6, "a", 2.0), (7, "b", 7.0), (8, "b", f64::NAN)];
    let mut rows: Vec<Row> = second.map(row).into();
    rows.push((9, vec![("host", Tag("c"))]));
    store.put("db", TableBuilder::new("m").part(File, first.map(row).into()).part(Buffer, rows));
    store
}

#[tokio::test]
async fn the_most_frequent_value_is_the_mode_and_the_least_of_several() {
    let store = store();
    let cases = [
        ("SELECT mode(host), mode(n), mode(s), mode(b) FROM m", vec!["b|1|ü|true"]),
        ("SELECT mode(x) FROM m", vec!["0.0"]),
        ("SELECT host, mode(x) FROM m GROUP BY host ORDER BY host", vec!["a|2.0", "b|0.0", "c|NaN"]),
        ("SELECT mode(x) FROM m WHERE time > '1970-01-01T00:00:00.000000008Z'", vec![""]),
        ("SELECT mode(x) FROM m WHERE false", vec![""]),
        ("SELECT arrow_typeof(mode(host)), arrow_typeof(mode(n)) FROM m", vec!["Utf8|Int64"]),
        ("SELECT mode(time - time) FROM m", vec!["P0D"]),
        (
            "SELECT mode(n) OVER (ORDER BY time ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM m ORDER BY time",
            vec!["0", "0", "1", "1", "2", "2", "3", "3", "3"],
        ),
        ("SELECT mode(DISTINCT n), count(DISTINCT n), histogram(DISTINCT b) FROM m", vec!["0|5|{false: 1, true: 1}"]),
        ("SELECT mode(n) FILTER (WHERE host = 'a') FROM m", vec!["0"]),
    ];
    for (sql, expected) in cases {
        assert_eq!(store.rows(sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn a_histogram_has_each_value_in_order_with_its_count() {
    let store = store();
    let cases = [
        ("SELECT histogram(host) FROM m", vec!["{a: 3, b: 4, c: 2}"]),
        ("SELECT histogram(x) FROM m", vec!["{0.0: 2, 1.0: 1, 2.0: 2, 7.0: 1, NaN: 2}"]),
        (
            "SELECT host, histogram(n) FROM m GROUP BY host ORDER BY host",
            vec!["a|{0: 1, 1: 1, 3: 1}", "b|{1: 1, 2: 1, 3: 1, 4: 1}", "c|{2: 1}"],
        ),
        ("SELECT histogram(x) FROM m WHERE false", vec![""]),
        (
            "SELECT map_extract(histogram(b), true), arrow_typeof(histogram(n)) FROM m",
            vec!["[6]|Map(\"entries\": non-null Struct(\"key\": non-null Int64, \"value\": UInt64), unsorted)"],
        ),
        (
            "SELECT width_bucket(x, 0, 8, 4) AS bucket, count(*) FROM m WHERE x <= 7 GROUP BY 1 ORDER BY 1",
            vec!["1|3", "2|2", "4|1"],
        ),
        (
            "SELECT width_bucket(n, 1, 3, 2), width_bucket(x, NULL, 3, 2) FROM m WHERE host = 'a' ORDER BY time",
            vec!["0|", "1|", "3|"],
        ),
        ("SELECT width_bucket(5.35, 0.024, 10.06, 5)", vec!["3"]),
    ];
    for (sql, expected) in cases {
        assert_eq!(store.rows(sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn bad_arguments_are_named() {
    let store = store();
    let cases = [
        ("SELECT mode() FROM m", "No function matches"),
        ("SELECT mode(x, n) FROM m", "No function matches"),
        ("SELECT mode([x]) FROM m", "No function matches"),
        ("SELECT histogram(x, 3) FROM m", "No function matches"),
        ("SELECT width_bucket(x, 0, 10) FROM m", "width_bucket"),
        ("SELECT width_bucket(host, 0, 10, 5) FROM m", "width_bucket"),
        ("SELECT width_bucket(n, 0, 10, 2.5) FROM m", "width_bucket"),
        ("SELECT width_bucket(n, 0, 10, 0) FROM m", "0 buckets"),
        ("SELECT width_bucket(n, 1, 1, 5) FROM m", "two different finite bounds"),
        ("SELECT width_bucket(x, 0, 1, 5) FROM m", "NaN"),
    ];
    for (sql, expected) in cases {
        let error = store.error(sql).await;
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{sql}: {error}");
        assert!(error.to_string().contains(expected), "{sql}: {error}");
    }
}

#[tokio::test]
async fn a_histogram_of_too_many_values_is_refused() {
    let store = Store::with_options(&Options { query_memory_bytes: 4 << 20, ..Options::default() });
    let sql = |values: usize| format!("SELECT cardinality(histogram(value)) FROM generate_series(1, {values})");
    assert_eq!(store.rows(&sql(5_000)).await, ["5000"]);
    let error = store.error(&sql(1_000_000)).await;
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    assert!(error.to_string().contains("different values; the limit is 1048576"), "{error}");
}
