//! Functions that make much of little: refused above a limit, and otherwise as before.

use super::fake::{
    Cell::{Integer, Tag, Text},
    Home::Buffer,
    Store, TableBuilder,
};
use crate::{ErrorKind, Options};

/// A store with that much memory for queries, and a table of 1,000 rows.
fn store(query_memory_bytes: usize) -> Store {
    let store = Store::with_options(&Options { query_memory_bytes, ..Options::default() });
    let row = |i| (i, vec![("host", Tag("a")), ("x", Integer(i)), ("text", Text("abc"))]);
    store.put("db", TableBuilder::new("big").part(Buffer, (0..1_000).map(row).collect()));
    store
}

#[tokio::test]
async fn what_would_make_too_much_of_little_is_refused() {
    let cases = [
        ("SELECT length(string_agg(repeat('x', 100000), '')) FROM big", "repeat"),
        ("SELECT length(repeat('x', 2000000000))", "repeat"),
        ("SELECT length(repeat('x', 9223372036854775807))", "repeat"),
        ("SELECT repeat('x', 100000) FROM big", "repeat"),
        ("SELECT repeat(text, 100 * x) FROM big", "repeat"),
        ("SELECT repeat(repeat(host, 1000), 1000) FROM big LIMIT 5", "repeat"),
        ("SELECT host FROM big WHERE length(repeat('x', 1000000)) > x", "repeat"),
        ("SELECT lpad(host, 1000000) FROM big", "lpad"),
        ("SELECT lpad('x', 2000000000)", "lpad"),
        ("SELECT rpad(text, 100000, 'ü') FROM big", "rpad"),
        ("SELECT array_repeat(1, 1000000000)", "array_repeat"),
        ("SELECT list_repeat([1, 2], 1000000000)", "array_repeat"),
        ("SELECT array_length(array_repeat(array_repeat(1, 10000), 100))", "array_repeat"),
        ("SELECT array_repeat(host, 100 * x) FROM big", "array_repeat"),
        ("SELECT array_resize([1], 1000000000)", "array_resize"),
        ("SELECT list_resize(['x'], 1000000000, 'y')", "array_resize"),
        ("SELECT range(1, 1000000000)", "range"),
        ("SELECT range(1000000000)", "range"),
        ("SELECT range(1, -1000000000, -1)", "range"),
        ("SELECT range(-9223372036854775807, 9223372036854775807)", "range"),
        ("SELECT range(DATE '0001-01-01', DATE '9999-01-01', INTERVAL '1 day')", "range"),
        (
            "SELECT range(TIMESTAMP '2025-01-01 00:00:00', TIMESTAMP '2025-01-01 00:00:01', INTERVAL '1 nanosecond')",
            "range",
        ),
        ("SELECT generate_series(1, 1000000000)", "generate_series"),
        ("SELECT unnest(generate_series(x, x + 10000)) FROM big", "generate_series"),
        ("SELECT concat(repeat('x', 600000), repeat('y', 600000))", "concat"),
        ("SELECT concat_ws(repeat('x', 600000), 'a', 'b', 'c')", "concat_ws"),
        ("SELECT length(replace(repeat('x', 100000), 'x', repeat('y', 100000)))", "replace"),
        ("SELECT length(regexp_replace(repeat('x', 100000), '.', repeat('y', 100000), 'g'))", "regexp_replace"),
        ("SELECT length(array_to_string(range(0, 10000), repeat('x', 10000)))", "array_to_string"),
        ("SELECT array_replace_all(array_repeat('x', 10000), 'x', repeat('y', 10000))", "array_replace_all"),
        // More than the limit for sure, and not much more: nothing is made that is not refused at
        // once.
        ("SELECT length(replace(repeat('x', 600000), 'x', 'xx'))", "replace"),
        ("SELECT max(length(replace(repeat(text, 300), 'a', repeat('y', 100)))) FROM big", "replace"),
    ];
    let store = store(4 << 20);
    for (sql, function) in cases {
        let error = store.error(sql).await;
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{sql}: {error}");
        assert!(error.to_string().contains(&format!("{function} would make about")), "{sql}: {error}");
    }
}

#[tokio::test]
async fn what_stays_small_answers_as_before() {
    let cases = [
        ("repeat('ab', 3)", "ababab"),
        ("repeat('ab', -1)", ""),
        ("repeat(NULL, 1000000000)", ""),
        ("'<' || lpad('ab', 4)", "<  ab"),
        ("lpad('ab', 5, 'xy')", "xyxab"),
        ("rpad('ab', 4) || '>'", "ab  >"),
        ("rpad('ab', 1, 'x')", "a"),
        ("range(1, 5)", "[1, 2, 3, 4]"),
        ("range(3)", "[0, 1, 2]"),
        ("range(5, 1, -2)", "[5, 3]"),
        ("range(1, 1000000000, 500000000)", "[1, 500000001]"),
        ("generate_series(1, 3)", "[1, 2, 3]"),
        ("range(DATE '2025-01-01', DATE '2025-03-01', INTERVAL '1 month')", "[2025-01-01, 2025-02-01]"),
        ("array_repeat('a', 2)", "[a, a]"),
        ("list_repeat([1, 2], 2)", "[[1, 2], [1, 2]]"),
        ("array_resize([1], 3, 7)", "[1, 7, 7]"),
        ("list_resize([1, 2], 1)", "[1]"),
        ("concat('a', NULL, 1)", "a1"),
        ("concat_ws('-', 'a', NULL, 'b')", "a-b"),
        ("replace('abab', 'b', 'cd')", "acdacd"),
        ("regexp_replace('abab', '(b)', '<\\1>', 'g')", "a<b>a<b>"),
        ("array_to_string([1, 2], ', ')", "1, 2"),
        ("array_join(['x', NULL], ',', '?')", "x,?"),
        ("array_replace_all([1, 2, 1], 1, 3)", "[3, 2, 3]"),
        ("length(repeat('x', 1000000))", "1000000"),
    ];
    let store = store(64 << 20);
    for (expression, expected) in cases {
        assert_eq!(store.rows(&format!("SELECT {expression}")).await, [expected], "{expression}");
    }
    let cases = [
        ("SELECT sum(value) FROM generate_series(1, 1000000)", "500000500000"),
        ("SELECT count(*) FROM range(0, 1000000)", "1000000"),
        ("SELECT count(*) FROM big WHERE text = replace('abd', 'd', 'c')", "1000"),
        // As if each character were replaced it would be too much.
        ("SELECT count(*) FROM big WHERE replace(repeat(text, 30), 'z', repeat('y', 100)) = repeat(text, 30)", "1000"),
        (
            "SELECT lpad(host, 3, '-'), count(*) FROM big GROUP BY lpad(host, 3, '-') ORDER BY lpad(host, 3, '-')",
            "--a|1000",
        ),
        ("SELECT DISTINCT repeat(host, 2) AS h FROM big WHERE repeat(host, 2) = 'aa' ORDER BY h", "aa"),
        ("SELECT sum(length(repeat(text, 100))) FROM big", "300000"),
        ("SELECT sum(n) FROM (SELECT unnest(range(1, 5)) AS n)", "10"),
        ("SELECT sum(array_length(array_repeat(host, x % 3))) FROM big", "999"),
        ("SELECT length(string_agg(host, ',')) FROM big", "1999"),
    ];
    for (sql, expected) in cases {
        assert_eq!(store.rows(sql).await, [expected], "{sql}");
    }
}

#[tokio::test]
async fn aggregates_that_keep_their_values_are_charged_for_them() {
    let store = store(4 << 20);
    let values = "SELECT repeat('x', 50) || value AS v, value % 2 AS g FROM generate_series(1, 200000)";
    for aggregate in ["string_agg(v, '')", "string_agg(v, '' ORDER BY v)", "string_agg(DISTINCT v, '')", "array_agg(v)"]
    {
        for group in ["", "GROUP BY g"] {
            let sql = format!("SELECT {aggregate} FROM ({values}) {group}");
            let error = store.error(&sql).await;
            assert_eq!(error.kind(), ErrorKind::Busy, "{sql}: {error}");
        }
    }
    let numbers = "SELECT value::DOUBLE AS v, value % 2 AS g FROM generate_series(1, 3000000)";
    for aggregate in ["median(v)", "percentile_cont(v, 0.5)", "count(DISTINCT v), count(DISTINCT g)", "array_agg(v)"] {
        let sql = format!("SELECT {aggregate} FROM ({numbers})");
        let error = store.error(&sql).await;
        assert_eq!(error.kind(), ErrorKind::Busy, "{sql}: {error}");
    }
}

#[tokio::test]
async fn planning_makes_no_large_constant() {
    let store = store(256 << 20);
    let doubled = |times| (0..times).fold("'a'".to_owned(), |text, _| format!("replace({text}, 'a', 'aa')"));
    // Made when the statement runs, as any other value.
    assert_eq!(store.rows(&format!("SELECT length({})", doubled(22))).await, ["4194304"]);
    // The plan has what was made of it, up to the limit.
    let plan = store.plan(&format!("SELECT {} AS x", doubled(22))).await;
    assert!((1 << 20..2 << 20).contains(&plan.len()), "{}", plan.len());
    // What no value may be is refused when it runs.
    let error = store.error(&format!("SELECT length({})", doubled(27))).await;
    assert!(error.to_string().contains("replace would make about"), "{error}");
}

#[tokio::test]
async fn a_large_constant_is_not_made_for_every_row() {
    let store = store(64 << 20);
    let large = format!("'{}'", "x".repeat(100_000));
    let refused = [
        format!("SELECT {large} FROM big"),
        format!("SELECT host || {large} FROM big"),
        format!("SELECT max(host || upper({large})) FROM big"),
        format!("SELECT host FROM big ORDER BY text || {large}"),
        format!("EXPLAIN SELECT host || {large} FROM big"),
        format!("SELECT * FROM big WHERE length(host || {large}) > x"),
        format!("SELECT {large} FROM generate_series(1, 1000000)"),
    ];
    for sql in refused {
        let error = store.error(&sql).await;
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.to_string().contains("made for each row"), "{error}");
    }
    let cases = [
        (format!("SELECT length({large}) AS n"), "100000"),
        (format!("SELECT length({large} || {large}) AS n"), "200000"),
        (format!("SELECT count(*) FROM big WHERE text < {large}"), "1000"),
        (format!("SELECT count(*) FROM big WHERE text IN ({large}, 'abc')"), "1000"),
        (format!("SELECT count(*) FROM big WHERE text <> {large} AND x < 10"), "10"),
    ];
    for (sql, expected) in cases {
        assert_eq!(store.rows(&sql).await, [expected]);
    }
}

/// Whoever reads a type goes down it, and makes room for what it says: before it is read, it is bounded.
#[tokio::test]
async fn no_length_is_less_than_none() {
    let store = store(4 << 20);
    for function in ["lpad", "rpad"] {
        for length in
            ["-1", "-2147483649", "-9223372036854775807", "-x", "CASE WHEN x > 5 THEN -9223372036854775807 ELSE 0 END"]
        {
            for fill in ["", ", 'u'", ", text"] {
                let sql = format!("SELECT count(*) FROM big WHERE {function}(host, {length}{fill}) = ''");
                assert_eq!(store.rows(&sql).await, ["1000"], "{sql}");
            }
        }
    }
}

#[tokio::test]
async fn types_and_sketches_are_bounded() {
    let store = store(4 << 20);
    let brackets = "[]".repeat(5_000);
    let deep = format!("{}Int8{}", "List(".repeat(2_000), ")".repeat(2_000));
    let cases = [
        (format!("SELECT CAST(NULL AS BIGINT{brackets})"), "brackets"),
        (format!("SELECT x::BIGINT{} FROM big", "[ 1 ] ".repeat(33)), "brackets"),
        (format!("SELECT arrow_cast(NULL, '{deep}')"), "levels"),
        (format!("SELECT arrow_try_cast(1, (('{deep}')))"), "levels"),
        (format!("SELECT ARROW_CAST(x, $${deep}$$) FROM big"), "levels"),
        ("SELECT CAST(NULL AS BIGINT[10000000][100000000])".to_owned(), "65536 bytes"),
        ("SELECT arrow_typeof(CAST(NULL AS BIGINT[10000000][100000000]))".to_owned(), "65536 bytes"),
        ("SELECT TRY_CAST(NULL AS BIGINT[8193])".to_owned(), "65536 bytes"),
        ("SELECT CASE WHEN x > 1 THEN CAST(NULL AS INT[1000][1000][1000]) END FROM big".to_owned(), "65536 bytes"),
        ("SELECT arrow_cast(NULL, 'FixedSizeBinary(2000000000)')".to_owned(), "65536 bytes"),
        ("SELECT arrow_cast(NULL, 'List(FixedSizeList(100000 x Int64))')".to_owned(), "65536 bytes"),
        ("SELECT approx_percentile_cont(x, 0.5, 100000000000000) FROM big".to_owned(), "centroids"),
        ("SELECT approx_percentile_cont(x, 0.5, 9223372036854775807) FROM big".to_owned(), "centroids"),
        ("SELECT approx_percentile_cont(x, 0.5, 1000000 * 100000000) FROM big".to_owned(), "centroids"),
        ("SELECT approx_percentile_cont(0.5, 1e13) WITHIN GROUP (ORDER BY x) FROM big".to_owned(), ""),
        ("SELECT approx_percentile_cont(0.5, 10001) WITHIN GROUP (ORDER BY x) FROM big".to_owned(), "centroids"),
        ("SELECT approx_percentile_cont_with_weight(x, 1, 0.5, 100000000000000) FROM big".to_owned(), "centroids"),
        ("SELECT approx_percentile_cont(x, 0.5, 100000000000000) OVER () FROM big".to_owned(), "centroids"),
        ("SELECT approx_percentile_cont(x, 0.5, 0) FROM big".to_owned(), "centroids"),
    ];
    let outer = [
        ("ARRAY<", ">"),
        ("STRUCT<a ", ">"),
        ("STRUCT(a ", ")"),
        ("map (TEXT, ", ")"),
        ("LowCardinality(", ")"),
        ("Nullable(", ")"),
        ("Tuple(", ")"),
        ("Nested(a ", ")"),
        ("TABLE(a ", ")"),
        ("UNION(a ", ")"),
        ("ARRAY<STRUCT<a ", ">>"),
        ("SETOF ", ""),
    ];
    let deep = outer.into_iter().flat_map(|(begin, end)| {
        [33, 600]
            .map(|levels| (format!("SELECT CAST(NULL AS {}INT{})", begin.repeat(levels), end.repeat(levels)), "levels"))
    });
    for (sql, expected) in cases.into_iter().chain(deep) {
        let error = store.error(&sql).await;
        let sql = &sql[..sql.len().min(100)];
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{sql}: {error}");
        assert!(error.to_string().contains(expected), "{sql}: {error}");
    }
    for sql in [
        "SELECT CAST(NULL AS BIGINT[8192])",
        "SELECT CAST([1, 2] AS BIGINT[2])",
        "SELECT arrow_cast(NULL, 'List(List(Int8))')",
        "SELECT arrow_cast('((((((((((((((((((((((((((((((((((((((((', 'LargeUtf8')",
        "SELECT approx_percentile_cont(x, 0.5, 10000) FROM big",
        "SELECT approx_percentile_cont(x, 0.5) FROM big",
        "SELECT [[1, 2], [3]][1][2]",
        "SELECT x FROM big WHERE x < 1 OR x > 1 OR (x >> 1) > 0 LIMIT 1",
        "SELECT CAST(NULL AS ARRAY<STRUCT<a ARRAY<ARRAY<INT>>, b STRUCT<c INT>>>)",
    ] {
        assert_eq!(store.rows(sql).await.len(), 1, "{sql}");
    }
}

#[tokio::test]
async fn values_have_few_levels_whatever_makes_them() {
    let store = store(64 << 20);
    let nested = |before: &str, inner: &str, after: &str, times: usize| {
        format!("{}{inner}{}", before.repeat(times), after.repeat(times))
    };
    let made = |times| {
        [
            nested("make_array(", "1", ")", times),
            nested("[", "1", "]", times),
            nested("named_struct('a', ", "1", ")", times),
            nested("array_repeat(", "1", ", 1)", times),
            nested("make_array(named_struct('a', ", "x", "))", times / 2),
        ]
    };
    for sql in made(64) {
        assert_eq!(store.rows(&format!("SELECT count(*) FROM (SELECT {sql} AS y FROM big)")).await, ["1000"], "{sql}");
    }
    let aggregated = nested("SELECT array_agg(y) AS y FROM (", "SELECT 1 AS y", ")", 66);
    let windows = nested("SELECT array_agg(y) OVER () AS y FROM (", "SELECT 1 AS y", ")", 66);
    let made = made(66).map(|sql| format!("SELECT {sql} FROM big"));
    for sql in made.into_iter().chain([aggregated, windows]) {
        let error = store.error(&sql).await;
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.to_string().contains("more than 64 levels"), "{sql}: {error}");
    }
}

#[tokio::test]
async fn lists_of_other_kinds_are_joined_or_refused() {
    let store = store(64 << 20);
    let large = "arrow_cast([1, 2], 'LargeList(Int64)')";
    let sql = format!("SELECT array_concat({large}, [3]), array_concat([[1]], [[2], NULL]), array_concat([1], [[2]])");
    assert_eq!(store.rows(&sql).await, ["[1, 2, 3]|[[1], [2], ]|[[1], [2]]"]);
    for lists in [format!("{large}, [[1, 2], NULL, []]"), format!("[[1]], {large}"), format!("[1], [{large}]")] {
        let error = store.error(&format!("SELECT list_cat({lists}) FROM big")).await;
        assert!(error.to_string().contains("one kind"), "{error}");
    }
}
