//! Size, depth, memory, time: what a statement may take.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;

use super::fake::{
    Cell::{Integer, Tag},
    Home::{Buffer, File, LateBuffer},
    Row, Store, TableBuilder,
};
use crate::{ErrorKind, Options, Statement, query::QueryTables};

fn rows(count: i64) -> Vec<Row> {
    (0..count).map(|i| (i, vec![("host", Tag("a")), ("x", Integer(i))])).collect()
}

fn store() -> Store {
    let store = Store::new();
    store.put("db", TableBuilder::new("m").part(Buffer, rows(10)));
    store
}

/// Statements that nest, or go on, `depth` times.
fn deep(depth: usize) -> Vec<String> {
    let repeat = |text: &str| text.repeat(depth);
    vec![
        format!("SELECT {}1{}", repeat("("), repeat(")")),
        format!("SELECT x{} FROM m", repeat(" + x")),
        format!("SELECT x FROM m WHERE x = 1{}", repeat(" OR x = 2")),
        format!("SELECT x FROM m WHERE x > 1{}", repeat(" OR x + 1 > 20")),
        format!("SELECT x FROM m WHERE x > 1{}", repeat(" AND x < 20")),
        format!("SELECT {} x FROM m", repeat("- ")),
        format!("SELECT {} true", repeat("NOT ")),
        format!("SELECT 1{}", repeat("::int")),
        format!("SELECT {}1{}", repeat("abs("), repeat(")")),
        format!("SELECT {}1{}", repeat("(SELECT "), repeat(")")),
        format!("SELECT {}1{}", repeat("CASE WHEN true THEN "), repeat(" END")),
        format!("SELECT {}1{}", repeat("["), repeat("]")),
        format!("SELECT {}1", repeat("INTERVAL ")),
        format!("SELECT {}1", repeat("POSITION(")),
        format!("SELECT count(*) FROM m {}", repeat(", m ")),
        format!("SELECT 1 IN ({}1)", repeat("1, ")),
        format!("{}SELECT 1", repeat("EXPLAIN ")),
        format!("SELECT x{} FROM m", repeat("[1]")),
    ]
}

#[test]
fn a_statement_of_too_many_words_is_refused_before_it_is_parsed() {
    let items = |count: usize| Statement::parse(&format!("SELECT{}1", " 1,".repeat(count)));
    assert!(items(100_000).is_ok());
    assert!(items(200_000).unwrap_err().to_string().contains("more than 262144 words"));
}

#[test]
fn brackets_that_follow_each_other_are_counted_whatever_is_in_them() {
    for pair in ["[1]", "[]", "[1:1]", " [x + [2][1]] ", "['a']"] {
        assert!(Statement::parse(&format!("SELECT x{}", pair.repeat(32))).is_ok(), "{pair}");
        let error = Statement::parse(&format!("SELECT x{}", pair.repeat(33))).unwrap_err().to_string();
        assert!(error.contains("pairs of brackets follow each other"), "{error}");
    }
    assert!(Statement::parse(&format!("SELECT [{}[1]]", "[1], ".repeat(100))).is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn deep_statements_run_or_fail_and_never_overflow_the_stack() {
    let store = store();
    for sql in [100, 240, 1_010, 50_000].into_iter().flat_map(deep) {
        let start: String = sql.chars().take(60).collect();
        if let Err(error) = store.run(&sql).await {
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{start}: {error}");
        }
    }
    let many = "SELECT x FROM m WHERE x > 1".to_owned() + &" AND x < 20".repeat(900);
    assert_eq!(store.rows(&many).await.len(), 8);
    let sum = format!("SELECT x{} FROM m LIMIT 1", " + x".repeat(240));
    assert_eq!(store.rows(&sum).await, ["0"]);
}

#[tokio::test]
async fn a_statement_over_a_mebibyte_is_refused() {
    let sql = format!("SELECT 1 -- {}", "x".repeat(1 << 20));
    assert_eq!(store().error(&sql).await.kind(), ErrorKind::InvalidInput);
}

#[tokio::test]
async fn a_query_that_needs_more_memory_than_there_is_is_told_to_come_back() {
    let options = Options { query_memory_bytes: 64 << 10, ..Options::default() };
    let store = Store::with_options(&options);
    let sql = "SELECT array_length(array_agg(value)) FROM generate_series(1, 1000000)";
    assert_eq!(store.error(sql).await.kind(), ErrorKind::Busy);
    assert_eq!(store.rows("SELECT 1").await, ["1"]);
}

#[tokio::test]
async fn a_sort_larger_than_memory_spills_below_the_data_directory() {
    let options = Options { query_memory_bytes: 8 << 20, ..Options::default() };
    let store = Store::with_options(&options);
    let sql = "SELECT max(n) FROM (SELECT row_number() OVER (ORDER BY value % 1000003 DESC) AS n \
               FROM generate_series(1, 1000000))";
    assert_eq!(store.rows(sql).await, ["1000000"]);
    let analyzed = store.rows(&format!("EXPLAIN ANALYZE {sql}")).await.join("\n");
    // Once, or more often where runs are merged in steps.
    assert!(analyzed.contains("spilled_rows=1."), "{analyzed}");
    assert_eq!(std::fs::read_dir(store.folder.path().join("tmp/query")).unwrap().count(), 1);
}

#[tokio::test]
async fn a_query_with_no_time_left_says_so() {
    let options = Options { query_timeout: Duration::ZERO, ..Options::default() };
    let error = Store::with_options(&options).error("SELECT 1").await;
    assert_eq!(error.to_string(), "query timed out after 0 s");
}

#[tokio::test]
async fn a_dropped_answer_lets_go_of_its_table() {
    let store = store();
    let schema = store.fake.schema("db", "m").unwrap();
    let held = Arc::strong_count(&schema);
    let sql = "SELECT a.x, count(*) FROM m a, generate_series(1, 1000000000) GROUP BY a.x";
    let mut answer = store.sql("db", sql, None).await.unwrap();
    assert!(futures::poll!(answer.next()).is_pending());
    drop(answer);
    while Arc::strong_count(&schema) > held {
        tokio::task::yield_now().await;
    }
}

/// Runs on one thread: a join that never gave way would go through all of its 10^10 rows first.
#[tokio::test]
async fn a_join_gives_way_to_the_end_of_its_time() {
    let options = Options { query_timeout: Duration::from_millis(300), ..Options::default() };
    let pairs = "FROM generate_series(1, 100000) a, generate_series(1, 100000) b";
    // The others make nothing at all: by a condition alone, and with a key that all rows have.
    for sql in [
        format!("SELECT max(a.value * b.value) {pairs}"),
        format!("SELECT count(*) {pairs} WHERE a.value + b.value = 0.5"),
        format!("SELECT count(*) {pairs} WHERE a.value % 1 = b.value % 1 AND a.value + b.value = 0.5"),
        format!("SELECT a.value {pairs} WHERE a.value + b.value = 0.5 ORDER BY 1 LIMIT 1"),
    ] {
        assert_eq!(Store::with_options(&options).error(&sql).await.kind(), ErrorKind::Timeout, "{sql}");
    }
}

#[tokio::test]
async fn what_a_window_holds_is_counted() {
    let options = Options { query_memory_bytes: 8 << 20, ..Options::default() };
    let store = Store::with_options(&options);
    for window in
        ["sum(value) OVER ()", "count(*) OVER (ORDER BY value ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)"]
    {
        let sql = |rows| format!("SELECT max(w) FROM (SELECT value, {window} AS w FROM generate_series(1, {rows}))");
        assert_eq!(store.rows(&sql(1_000)).await.len(), 1);
        assert_eq!(store.error(&sql(1_000_000)).await.kind(), ErrorKind::Busy, "{window}");
    }
    // A frame that goes along with its rows holds few of them.
    let sql = "SELECT max(w) FROM (SELECT sum(value) OVER (ORDER BY value ROWS 2 PRECEDING) AS w FROM generate_series(1, 1000000))";
    assert_eq!(store.rows(sql).await, ["2999997"]);
}

#[tokio::test]
async fn rows_that_are_merged_are_not_made_while_planning() {
    let store = Store::new();
    let mut late = rows(3);
    late.truncate(1);
    store.put("db", TableBuilder::new("m").part(Buffer, rows(20_000)).part(LateBuffer, late));
    // The condition is asked of rows before they are merged, and fails there.
    let sql = "SELECT count(*) FROM m WHERE CAST(host AS BIGINT) = 1";
    let plan = store.plan(sql).await;
    assert!(plan.contains("buffer rows=20001, to merge"), "{plan}");
    assert_eq!(store.error(sql).await.kind(), ErrorKind::InvalidInput);
    assert_eq!(store.rows("SELECT count(*), sum(x) FROM m").await, ["20000|199990000"]);
}

#[tokio::test]
async fn newest_rows_of_one_time_are_counted_and_made_some_at_a_time() {
    for home in [File, Buffer] {
        let options = Options { query_memory_bytes: 64 << 20, ..Options::default() };
        let store = Store::with_options(&options);
        let ties = (0..40_000).map(|i| (5, vec![("x", Integer(i * 7_919 % 40_009))])).collect();
        store.put("db", TableBuilder::new("m").append().part(home, ties));
        let sql = "SELECT x FROM m ORDER BY time DESC, x LIMIT 2";
        assert_eq!(store.rows(sql).await, ["0", "1"]);
        let analyzed = store.rows(&format!("EXPLAIN ANALYZE {sql}")).await.join("\n");
        assert!(analyzed.contains("LatestExec: rows=2") && analyzed.contains("parts_with_rows=3"), "{analyzed}");
    }
    let store = Store::with_options(&Options { query_memory_bytes: 256 << 10, ..Options::default() });
    let ties = (0..40_000).map(|i| (5, vec![("x", Integer(i))])).collect();
    store.put("db", TableBuilder::new("m").append().part(Buffer, ties));
    let error = store.error("SELECT x FROM m ORDER BY time DESC, x LIMIT 2").await;
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
}
