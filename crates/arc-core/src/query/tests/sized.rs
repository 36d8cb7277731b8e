//! What one step of a query makes: counted over all of its columns, and made of few rows where it is much.

use std::time::Duration;

use super::fake::{
    Cell::{Integer, Tag, Text},
    Home::{Buffer, File},
    Store, TableBuilder,
};
use crate::{ErrorKind, Options};

/// A store with that much memory for queries, and a table of 1,000 rows.
fn store(query_memory_bytes: usize) -> Store {
    let store = Store::with_options(&Options { query_memory_bytes, ..Options::default() });
    let text: &'static str = "x".repeat(10_000).leak();
    let row = |i| (i, vec![("host", Tag("a")), ("x", Integer(i)), ("text", Text(text))]);
    store.put(
        "db",
        TableBuilder::new("wide").part(Buffer, (0..500).map(row).collect()).part(File, (500..1_000).map(row).collect()),
    );
    store
}

fn columns(count: usize, column: impl Fn(usize) -> String) -> String {
    (0..count).map(column).collect::<Vec<_>>().join(", ")
}

#[tokio::test]
async fn what_all_columns_take_together_is_limited() {
    let store = store(16 << 20);
    for (from, to) in [("", ""), ("max(", ")"), ("count(DISTINCT ", ")")] {
        let columns = columns(100, |n| format!("{from}repeat(host, 300000 + {n}){to}"));
        let error = store.error(&format!("SELECT {columns} FROM wide WHERE x < 7")).await;
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.to_string().contains("at once; the limit is 16777216"), "{error}");
    }
    let columns = columns(100, |n| format!("repeat(host, 300000 + {n})"));
    let error = store.error(&format!("SELECT count(*) FROM wide WHERE x < 7 GROUP BY {columns}")).await;
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
}

#[tokio::test]
async fn what_is_much_for_all_rows_is_made_of_few() {
    // One column of all rows takes 10 MB, and twenty would be 200.
    let store = store(64 << 20);
    let texts = columns(20, |n| format!("length(upper(text || '{n}'))"));
    let sum = columns(20, |n| format!("sum(length(upper(text || '{n}')))"));
    assert_eq!(store.rows(&format!("SELECT {texts} FROM wide")).await.len(), 1_000);
    let sums = store.rows(&format!("SELECT {sum} FROM wide")).await;
    let of = |n: usize| 1_000 * (10_000 + n.to_string().len());
    assert_eq!(sums, [(0..20).map(|n| of(n).to_string()).collect::<Vec<_>>().join("|")]);
    let many = columns(2_000, |n| format!("length(concat(host, x, {n}))"));
    assert_eq!(store.rows(&format!("SELECT {many} FROM wide WHERE x < 100")).await.len(), 100);
    let sql = "SELECT upper(text) = text, count(*) FROM wide GROUP BY upper(text) = text";
    assert_eq!(store.rows(sql).await, ["false|1000"]);
}

#[tokio::test]
async fn functions_of_lists_end_with_their_query() {
    let options = Options { query_timeout: Duration::from_millis(300), ..Options::default() };
    let store = Store::with_options(&options);
    for call in
        ["array_sort(l, 'DESC')", "array_position(l, -value)", "array_remove_all(l, value)", "array_intersect(l, l)"]
    {
        let sql = format!("SELECT count({call}) FROM (SELECT range(1, 100000) AS l), generate_series(1, 1000000)");
        assert_eq!(store.error(&sql).await.kind(), ErrorKind::Timeout, "{call}");
    }
}

#[tokio::test]
async fn lists_that_are_looked_up_are_not_of_any_length() {
    let store = store(2 << 30);
    for (function, most) in [
        ("array_intersect", 1_048_576),
        ("array_except", 1_048_576),
        ("array_union", 1_048_576),
        ("array_has_any", 32_768),
        ("array_has_all", 32_768),
    ] {
        let sql = |elements| format!("SELECT {function}(range(0, {elements}), range(3, 9)) IS NOT NULL");
        assert_eq!(store.rows(&sql(100)).await, ["true"], "{function}");
        let error = store.error(&sql(most)).await;
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{function}: {error}");
        assert!(error.to_string().contains(&format!("the limit is {most}")), "{function}: {error}");
    }
    let sql = "SELECT count(*), sum(cardinality(array_distinct(range(0, x)))) FROM wide";
    assert_eq!(store.rows(sql).await, ["1000|499500"]);
}

#[tokio::test]
async fn long_rows_are_joined_with_few_at_a_time() {
    let store = store(1 << 30);
    let long = "(SELECT repeat('x', 500000) AS t, range(1, 50000) AS l, 1 AS k)";
    for (from, rows) in [
        (format!("{long}, generate_series(1, 500)"), 500),
        (format!("generate_series(1, 500), {long}"), 500),
        (format!("{long} JOIN generate_series(1, 500) ON k = value % 2"), 250),
        (format!("generate_series(1, 500) LEFT JOIN {long} ON k = value % 2"), 250),
        (format!("{long} JOIN generate_series(1, 500) ON k < value"), 499),
        (format!("{long} CROSS JOIN LATERAL (SELECT unnest(range(1, 40)) AS value)"), 39),
        (
            format!("generate_series(1, 500) AS s ASOF JOIN (SELECT *, 0 AS at FROM {long}) AS r ON r.at <= s.value"),
            500,
        ),
    ] {
        let sql = format!("SELECT sum(length(t)), sum(array_length(l)) FROM {from}");
        assert_eq!(store.rows(&sql).await, [format!("{}|{}", rows * 500_000, rows * 49_999)], "{sql}");
    }
    let sql = "SELECT count(t) FROM (SELECT repeat('x', 1000000) AS t, unnest(range(1, 1000)) AS n)";
    let store = self::store(64 << 20);
    let error = store.error(sql).await;
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    assert!(error.to_string().contains("repeated for 999 items"), "{error}");
    let sql = format!("SELECT count(t) FROM generate_series(1, 500) LEFT JOIN {long} ON k = value % 2");
    let error = store.error(&sql).await;
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    assert!(error.to_string().contains("is too long for a join"), "{error}");
}

#[tokio::test]
async fn types_that_are_wide_are_made_of_few_rows() {
    let store = store(64 << 20);
    let sql = "SELECT count(TRY_CAST(array_repeat(host, x % 3) AS TEXT[65536])) FROM wide";
    assert_eq!(store.rows(sql).await, ["0"]);
}
