//! Windows whose values are long, or take long: counted, and ended with their query.

use std::time::Duration;

use super::fake::Store;
use crate::{ErrorKind, Options};

/// Returns a statement that asks for the values of a window over so many rows.
fn over(rows: usize, window: &str) -> String {
    format!("SELECT count(w) FROM (SELECT {window} AS w FROM generate_series(1, {rows}))")
}

#[tokio::test]
async fn what_windows_make_for_each_row_is_counted() {
    let store = Store::with_options(&Options { query_memory_bytes: 32 << 20, ..Options::default() });
    for window in [
        "array_agg(value) OVER (ORDER BY value)",
        "array_agg(value) OVER (ORDER BY value ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING)",
        "array_agg(value) OVER (ORDER BY value ROWS 20000 PRECEDING)",
        "array_agg(value) OVER ()",
        "array_agg(value) FILTER (WHERE value < 4000) OVER ()",
        "array_agg(DISTINCT value) OVER (ORDER BY value)",
        "string_agg(CAST(value AS TEXT), ',') OVER (ORDER BY value)",
        "histogram(value) OVER (ORDER BY value)",
        "max(CASE WHEN value = 1 THEN repeat('x', 5000) END) OVER ()",
        "first_value(CASE WHEN value = 1 THEN repeat('x', 5000) END) OVER ()",
        "nth_value(CASE WHEN value = 1 THEN repeat('x', 5000) END, 1) OVER (ORDER BY value ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
        "locf(CASE WHEN value = 1 THEN CASE WHEN value = 1 THEN repeat('x', 5000) END END) OVER (ORDER BY value)",
        "count(DISTINCT repeat(CAST(value AS TEXT), 500)) OVER (ORDER BY value)",
    ] {
        assert_eq!(store.rows(&over(200, window)).await, ["200"], "{window}");
        let error = store.error(&over(20_000, window)).await;
        assert_eq!(error.kind(), ErrorKind::Busy, "{window}: {error}");
    }
    // What came out is not held any more.
    for window in
        ["array_agg(value) OVER (ORDER BY value ROWS 9 PRECEDING)", "max(repeat('x', 50)) OVER (ORDER BY value)"]
    {
        assert_eq!(store.rows(&over(400_000, window)).await, ["400000"], "{window}");
    }
}

#[tokio::test]
async fn windows_end_with_their_query() {
    let options = Options { query_timeout: Duration::from_millis(300), ..Options::default() };
    for window in [
        "mode(value) OVER (ORDER BY value)",
        "median(value) OVER (ORDER BY value)",
        "approx_percentile_cont(value, 0.5) OVER (ORDER BY value)",
        "approx_distinct(value) OVER (ORDER BY value)",
        "cardinality(histogram(value % 10000) OVER (ORDER BY value))",
    ] {
        let error = Store::with_options(&options).error(&over(3_000_000, window)).await;
        assert_eq!(error.kind(), ErrorKind::Timeout, "{window}: {error}");
    }
}

#[tokio::test]
async fn windows_that_are_counted_answer_as_before() {
    let store = Store::new();
    let cases = [
        ("array_agg(value) OVER (ORDER BY value)", ["[1]", "[1, 2]", "[1, 2, 3]"]),
        ("array_agg(value) OVER (ORDER BY value DESC)", ["[3, 2, 1]", "[3, 2]", "[3]"]),
        ("array_agg(value) OVER (ORDER BY value ROWS 1 PRECEDING)", ["[1]", "[1, 2]", "[2, 3]"]),
        ("array_agg(value) OVER ()", ["[1, 2, 3]"; 3]),
        ("array_agg(value) FILTER (WHERE value <> 2) OVER ()", ["[1, 3]"; 3]),
        ("array_agg(value) OVER (PARTITION BY value % 2 ORDER BY value)", ["[1]", "[2]", "[1, 3]"]),
        ("string_agg(CAST(value AS TEXT), '-') OVER (ORDER BY value)", ["1", "1-2", "1-2-3"]),
        ("string_agg(CAST(value AS TEXT), '-') OVER (ORDER BY value DESC)", ["3-2-1", "3-2", "3"]),
        ("first_value(CAST(value AS TEXT)) OVER (ORDER BY value DESC)", ["3"; 3]),
        ("last_value(CAST(value AS TEXT)) OVER (ORDER BY value)", ["1", "2", "3"]),
        ("nth_value(CAST(value AS TEXT), 2) OVER (ORDER BY value)", ["", "2", "2"]),
        ("lag(CAST(value AS TEXT)) OVER (ORDER BY value)", ["", "1", "2"]),
        ("max(CAST(value AS TEXT)) OVER (ORDER BY value ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING)", ["2", "3", "3"]),
        ("count(DISTINCT value % 2) OVER (ORDER BY value)", ["1", "2", "2"]),
        ("bool_and(value > 1) OVER (ORDER BY value DESC)", ["false", "true", "true"]),
        ("bit_or(value) OVER (ORDER BY value DESC)", ["3", "3", "3"]),
        ("median(value) OVER (ORDER BY value)", ["1.0", "1.5", "2.0"]),
        ("mode(value % 2) OVER (ORDER BY value)", ["1", "0", "1"]),
    ];
    for (window, expected) in cases {
        let sql = format!("SELECT {window} FROM generate_series(1, 3) ORDER BY value");
        assert_eq!(store.rows(&sql).await, expected, "{window}");
    }
    let plan = store.plan("SELECT array_agg(value) OVER (ORDER BY value) FROM generate_series(1, 3)").await;
    assert!(plan.contains("array_agg(generate_series().value) ORDER BY"), "{plan}");
}

#[tokio::test]
async fn bounds_of_frames_and_places_in_lists_do_not_overflow() {
    let store = Store::new();
    for unit in ["ROWS", "GROUPS"] {
        for frame in ["0 PRECEDING AND 18446744073709551615 FOLLOWING", "9223372036854775808 PRECEDING AND CURRENT ROW"]
        {
            let error =
                store.error(&over(9, &format!("sum(value) OVER (ORDER BY value {unit} BETWEEN {frame})"))).await;
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{unit} {frame}: {error}");
            assert!(error.to_string().contains("is above 9223372036854775807"), "{unit} {frame}: {error}");
        }
        let frame = "0 PRECEDING AND 9223372036854775807 FOLLOWING";
        let window = format!("sum(value) OVER (ORDER BY value {unit} BETWEEN {frame})");
        assert_eq!(store.rows(&over(9, &window)).await, ["9"], "{window}");
    }
    for start in ["-9223372036854775808", "-9223372036854775807", "0", "9223372036854775807"] {
        let error = store.error(&format!("SELECT array_position([1], 1, {start})")).await;
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{start}: {error}");
    }
    assert_eq!(store.rows("SELECT array_position([1, 2, 1], 1, 2)").await, ["3"]);
}
