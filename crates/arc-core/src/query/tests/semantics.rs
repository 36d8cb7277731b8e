//! Both zeros are equal, a NaN is greater than every number, and no integer wraps around: in every
//! operator, whatever the order of the rows and wherever they are.

use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};

use super::fake::{
    Cell::{Float, Integer, Tag},
    Home::{self, Buffer, File, LateFile},
    Row, Store, TableBuilder,
};
use crate::ErrorKind;

/// Statements over the column `x` of `z`, whose answers may not depend on the signs of its zeros.
/// Their rows have an order.
const OF_ZEROS: [&str; 42] = [
    "SELECT time FROM z WHERE x IN (0.0, 1.0, 2.0) ORDER BY time",
    "SELECT time FROM z WHERE x IN (0.0, 1.0, 2.0, 3.0, 4.0) ORDER BY time",
    "SELECT time FROM z WHERE x IN (-0.0, 1.0, 2.0, 3.0, 4.0) ORDER BY time",
    "SELECT time FROM z WHERE x NOT IN (0.0, 1.0, 7.0, 3.0, 4.0) ORDER BY time",
    "SELECT time FROM z WHERE x IN (0, 1, 2, 3, 4) ORDER BY time",
    "SELECT time FROM z WHERE x IN (i, 0.0, 1.0, 9.0, 8.0) ORDER BY time",
    "SELECT time FROM z WHERE x = 0.0 OR x = 1.0 OR x = 3.0 OR x = 4.0 OR x = 5.0 OR x = 6.0 ORDER BY time",
    "SELECT time FROM z WHERE x <> 0.0 AND x <> 1.0 AND x <> 3.0 AND x <> 4.0 AND x <> 5.0 ORDER BY time",
    "SELECT time FROM z WHERE x IN (SELECT y FROM (VALUES (0.0), (1.0), (3.0), (4.0), (5.0)) v(y)) ORDER BY time",
    "SELECT time FROM z WHERE x NOT IN (SELECT y FROM (VALUES (0.0), (1.0)) v(y)) ORDER BY time",
    "SELECT time FROM z WHERE EXISTS (SELECT 1 FROM (VALUES (0.0), (5.0)) v(y) WHERE v.y = z.x) ORDER BY time",
    "SELECT time FROM z WHERE x < 0.0 OR x > 0.0 ORDER BY time",
    "SELECT time FROM z WHERE x BETWEEN 0.0 AND 1.0 ORDER BY time",
    "SELECT time FROM z WHERE x >= 0 ORDER BY time",
    "SELECT time FROM z WHERE x IS NOT DISTINCT FROM -0.0 ORDER BY time",
    "SELECT time FROM z WHERE [x] = [0.0] ORDER BY time",
    "SELECT time FROM z WHERE struct(x, i) IN (struct(0.0, 1), struct(1.0, 1), struct(0.0, 2)) ORDER BY time",
    "SELECT time, nullif(x, 0.0) FROM z ORDER BY time",
    "SELECT time, CASE x WHEN 0.0 THEN 'zero' WHEN 1.0 THEN 'one' END FROM z ORDER BY time",
    "SELECT time, CASE x WHEN x * 0.0 THEN 'zero' ELSE 'other' END FROM z ORDER BY time",
    "SELECT time, array_has([x, 5.0], -0.0), array_position([5.0, x], 0.0), array_remove([x, 5.0], -0.0) FROM z ORDER BY time",
    "SELECT a.time, b.time FROM z a JOIN z b ON a.x = b.x ORDER BY 1, 2",
    "SELECT a.time, y FROM z a JOIN (VALUES (0.0)) v(y) ON a.x = y ORDER BY 1, 2",
    "SELECT a.time, y FROM z a JOIN (VALUES (-0.0), (1.0), (2.0), (3.0), (4.0)) v(y) ON a.x = y ORDER BY 1, 2",
    "SELECT a.time, y FROM z a LEFT JOIN (VALUES (0.0), (2.0)) v(y) ON a.x = y ORDER BY 1, 2",
    "SELECT a.time, b.time FROM z a JOIN z b USING (x, i) ORDER BY 1, 2",
    "SELECT a.time, b.time FROM z a JOIN z b ON a.x <= b.x AND a.i = b.i ORDER BY 1, 2",
    "SELECT a.time, b.time FROM z a ASOF JOIN z b ON a.x = b.x AND a.time > b.time ORDER BY 1, 2",
    "SELECT x, count(*), sum(i) FROM z GROUP BY x ORDER BY x",
    "SELECT x, host, count(*) FROM z GROUP BY x, host ORDER BY 1, 2",
    "SELECT DISTINCT x FROM z ORDER BY x",
    "SELECT count(DISTINCT x) FROM z",
    "SELECT count(DISTINCT x), count(DISTINCT i), sum(DISTINCT i), array_sort(array_agg(DISTINCT x)) FROM z",
    "SELECT host, count(DISTINCT x), count(*) FROM z GROUP BY host ORDER BY host",
    "SELECT x FROM z INTERSECT SELECT 0.0 ORDER BY x",
    "SELECT x FROM z EXCEPT SELECT 0.0 ORDER BY x",
    "SELECT x FROM z UNION SELECT -0.0 ORDER BY x",
    "SELECT time, row_number() OVER (PARTITION BY x ORDER BY time), count(*) OVER (PARTITION BY x) FROM z ORDER BY time",
    "SELECT time, rank() OVER (ORDER BY x), dense_rank() OVER (ORDER BY x), count(*) OVER (ORDER BY x), sum(i) OVER (ORDER BY x RANGE BETWEEN 1.0 PRECEDING AND CURRENT ROW) FROM z ORDER BY time",
    "SELECT min(x), max(x), min(x) FILTER (WHERE i = 1) FROM z",
    "SELECT host, min(x), max(x) FROM z GROUP BY host ORDER BY host",
    "SELECT time, min(x) OVER (ORDER BY time ROWS 2 PRECEDING), max(x) OVER (ORDER BY time ROWS 2 PRECEDING) FROM z ORDER BY time",
];

fn point(time: i64, host: &'static str, x: f64, i: i64) -> Row {
    (time, vec![("host", Tag(host)), ("x", Float(x)), ("i", Integer(i))])
}

/// Puts rows, in an order, into parts.
fn put(store: &Store, rows: &[Row], sizes: &[usize]) {
    let mut table = TableBuilder::new("z");
    let (mut rest, mut homes) = (rows, [File, Buffer, LateFile, File].into_iter().cycle());
    for size in sizes {
        let (part, behind) = rest.split_at((*size).min(rest.len()));
        if !part.is_empty() {
            table = table.part(homes.next().unwrap(), part.to_vec());
        }
        rest = behind;
    }
    if !rest.is_empty() {
        table = table.part(File, rest.to_vec());
    }
    store.put("db", table);
}

fn rows() -> impl Strategy<Value = Vec<(Row, Row)>> {
    let x = prop::sample::select(vec![-0.0, 0.0, 0.0, 1.0, -1.0, 2.0, f64::NAN]);
    let row = (prop::sample::select(vec!["a", "b"]), x, any::<bool>(), 1..3_i64);
    let rows = prop::collection::vec(row, 1..24);
    rows.prop_map(|rows| {
        let both = |(at, (host, x, flips, i)): (usize, (&'static str, f64, bool, i64))| {
            let flipped = if x == 0.0 && flips { -x } else { x };
            (point(at as i64, host, x, i), point(at as i64, host, flipped, i))
        };
        rows.into_iter().enumerate().map(both).collect()
    })
}

async fn answers(store: &Store) -> Vec<Vec<String>> {
    let mut answers = Vec::new();
    for sql in OF_ZEROS {
        let rows = store.rows(sql).await;
        answers.push(rows.into_iter().map(|row| row.replace("-0.0", "0.0")).collect());
    }
    answers
}

#[test]
fn neither_the_signs_of_zeros_nor_the_order_of_rows_change_an_answer() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    // One case asks all statements twice; set the variable for a longer run.
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(4);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let sizes = || prop::collection::vec(1..9_usize, 0..5);
    TestRunner::new(config)
        .run(&(rows(), sizes(), sizes(), any::<prop::sample::Index>()), |(rows, sizes, others, turn)| {
            let (plain, mut flipped): (Vec<Row>, Vec<Row>) = rows.into_iter().unzip();
            let by = turn.index(flipped.len());
            flipped.rotate_left(by);
            let (one, other) = (Store::new(), Store::new());
            put(&one, &plain, &sizes);
            put(&other, &flipped, &others);
            let [one, other] = runtime.block_on(async { [answers(&one).await, answers(&other).await] });
            for (sql, (one, other)) in OF_ZEROS.iter().zip(one.iter().zip(&other)) {
                prop_assert_eq!(one, other, "{}", sql);
            }
            Ok(())
        })
        .unwrap();
}

/// Zeros of both signs in `File`, and one more unflushed.
fn zeros() -> Store {
    let store = Store::new();
    let flushed = vec![point(0, "a", -0.0, 1), point(1, "a", 0.0, 1), point(2, "b", 1.0, 1), point(3, "b", 5.0, 1)];
    store.put("db", TableBuilder::new("z").part(File, flushed).part(Buffer, vec![point(4, "b", -0.0, 1)]));
    store
}

#[tokio::test(flavor = "multi_thread")]
async fn both_zeros_are_found_by_either() {
    let store = zeros();
    for zero in ["0.0", "-0.0", "0"] {
        let cases = [
            (format!("SELECT count(*) FROM z WHERE x IN ({zero}, 7.0)"), "3"),
            (format!("SELECT count(*) FROM z WHERE x IN ({zero}, 1.0, 2.0, 3.0, 4.0)"), "4"),
            (format!("SELECT count(*) FROM z WHERE x NOT IN ({zero}, 1.0, 2.0, 3.0, 4.0)"), "1"),
            (format!("SELECT count(nullif(x, {zero})) FROM z"), "2"),
            (format!("SELECT nullif(-0.0, CAST({zero} AS DOUBLE)) IS NULL"), "true"),
            (format!("SELECT sum(CASE x WHEN {zero} THEN 1 ELSE 0 END) FROM z"), "3"),
            (format!("SELECT count(*) FROM z JOIN (VALUES (CAST({zero} AS DOUBLE))) v(y) ON x = y"), "3"),
            (format!("SELECT count(*) FROM z WHERE x IN (SELECT CAST({zero} AS DOUBLE))"), "3"),
            ("SELECT count(DISTINCT x), count(DISTINCT i), count(*) FROM z".to_owned(), "3|1|5"),
            ("SELECT max(n) FROM (SELECT count(*) OVER (PARTITION BY x) AS n FROM z)".to_owned(), "3"),
            ("SELECT count(*) FROM z a ASOF JOIN z b ON a.x = b.x AND a.time > b.time".to_owned(), "2"),
        ];
        for (sql, expected) in cases {
            assert_eq!(store.rows(&sql).await, [expected], "{sql}\n{}", store.plan(&sql).await);
        }
    }
    // A list of constants is still one that files are left out by.
    let plan = store.plan("SELECT time FROM z WHERE x IN (9.0, 10.0, 11.0, 0.0, 12.0)").await;
    assert!(plan.contains("IN (SET)") && !plan.contains("same_float"), "{plan}");
}

/// NaN among numbers, in one file or in three.
#[tokio::test(flavor = "multi_thread")]
async fn a_nan_is_the_greatest_wherever_its_row_is() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let rows: Vec<Row> =
            order.iter().map(|at| point(*at, "a", [1.0, f64::NAN, 3.0][usize::try_from(*at).unwrap()], 1)).collect();
        for sizes in [vec![3], vec![1, 1, 1], vec![2, 1], vec![1, 2]] {
            let store = Store::new();
            put(&store, &rows, &sizes);
            for sql in [
                "SELECT min(x), max(x) FROM z",
                "SELECT min(x), max(x) FROM z GROUP BY host",
                "SELECT min(x) OVER (), max(x) OVER () FROM z LIMIT 1",
                "SELECT min(CAST(x AS FLOAT)), max(CAST(x AS FLOAT)) FROM z GROUP BY i",
                "SELECT min(x) FILTER (WHERE i = 1), max(x) FILTER (WHERE i = 1) FROM z GROUP BY host",
            ] {
                assert_eq!(store.rows(sql).await, ["1.0|NaN"], "{sql} {order:?} {sizes:?}");
            }
        }
    }
    let store = Store::new();
    put(
        &store,
        &[point(0, "a", f64::NAN, 1), point(1, "a", 2.0, 1), point(2, "a", 1.0, 1), point(3, "a", 4.0, 1)],
        &[4],
    );
    let frame = "OVER (ORDER BY time ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)";
    let sql = format!("SELECT min(x) {frame}, max(x) {frame}, sum(x) {frame}, avg(x) {frame} FROM z ORDER BY time");
    // What a frame lets go of leaves nothing behind.
    let expected = ["NaN|NaN|NaN|NaN", "2.0|NaN|NaN|NaN", "1.0|2.0|3.0|1.5", "1.0|4.0|5.0|2.5"];
    assert_eq!(store.rows(&sql).await, expected);
}

/// Integers at the ends of their type, in two series.
fn large(home: Home) -> Store {
    let store = Store::new();
    let rows = vec![
        point(0, "a", 0.0, i64::MAX),
        point(1, "a", 0.0, 1),
        point(2, "b", 0.0, i64::MAX),
        point(3, "b", 0.0, 1),
        point(4, "b", 0.0, -1),
        point(5, "c", 0.0, i64::MIN),
    ];
    store.put("db", TableBuilder::new("z").part(home, rows));
    store
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sum_fits_or_fails() {
    for home in [File, Buffer] {
        let store = large(home);
        for sql in [
            "SELECT sum(i) FROM z WHERE host = 'a'",
            "SELECT host, sum(i) FROM z GROUP BY host",
            "SELECT sum(i) FILTER (WHERE host = 'a') FROM z",
            "SELECT sum(DISTINCT i), count(*) FROM z WHERE host = 'a'",
            "SELECT sum(i) OVER (ORDER BY time) FROM z",
            "SELECT sum(i) OVER (ORDER BY time ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM z",
            "SELECT sum(DISTINCT i) OVER (ORDER BY time ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM z",
            "SELECT sum(i + 1), sum(i + 2) FROM z WHERE host = 'a'",
            "SELECT sum(i) FROM (VALUES (9223372036854775807), (1)) t(i)",
            "SELECT sum(u) FROM (VALUES (CAST(18446744073709551615 AS BIGINT UNSIGNED)), (CAST(1 AS BIGINT UNSIGNED))) t(u)",
            "SELECT sum(t - TIMESTAMP '1970-01-01') FROM (VALUES (TIMESTAMP '2200-01-01'), (TIMESTAMP '2200-01-02')) v(t)",
            "SELECT sum(CAST(repeat('9', 38) AS DECIMAL(38, 0))) FROM z",
        ] {
            let error = store.error(sql).await;
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{sql}: {error}");
            assert!(error.to_string().contains("sum: the sum does not fit into"), "{sql}: {error}");
        }
        // What does not fit in between is no error, whatever the order.
        for (sql, expected) in [
            ("SELECT sum(i) FROM z WHERE host = 'b'", vec!["9223372036854775807"]),
            (
                "SELECT host, sum(i) FROM z WHERE host <> 'a' GROUP BY host ORDER BY 1",
                vec!["b|9223372036854775807", "c|-9223372036854775808"],
            ),
            ("SELECT sum(CAST(i AS DECIMAL(38, 0))) FROM z WHERE host = 'a'", vec!["9223372036854775808"]),
            (
                "SELECT sum(CAST(i AS DOUBLE)), avg(i) FROM z WHERE host = 'a'",
                vec!["9.223372036854776e18|4.611686018427388e18"],
            ),
            ("SELECT sum(i) FROM z WHERE host = 'x'", vec![""]),
            (
                "SELECT sum(i) OVER (ORDER BY time ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM z WHERE i < 2 AND host <> 'c' ORDER BY time",
                vec!["1", "2", "0"],
            ),
            (
                "SELECT sum(DISTINCT i) OVER (ORDER BY time ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM z WHERE i < 2 AND host <> 'c' ORDER BY time",
                vec!["1", "1", "0"],
            ),
        ] {
            assert_eq!(store.rows(sql).await, expected, "{sql}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aggregate_with_a_filter_is_not_answered_by_one_of_its_subquery() {
    for home in [File, Buffer] {
        let store = large(home);
        for (condition, expected) in [("1 > 2", "0"), ("n = 2", "0"), ("n > 0", "1")] {
            let subquery = "SELECT sum(x) AS x, count(*) AS n FROM z HAVING count(*) > 0";
            let sql = format!("SELECT count(*) FILTER (WHERE {condition}) AS a FROM ({subquery}) q");
            assert_eq!(store.rows(&sql).await, [expected], "{sql} over {home:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_integer_wraps_around() {
    let store = large(File);
    for sql in [
        "SELECT 9223372036854775807 + 1",
        "SELECT -9223372036854775807 - 2",
        "SELECT 9223372036854775807 * 2",
        "SELECT a + 1 FROM (SELECT 9223372036854775807 AS a)",
        "SELECT i + 1 FROM z",
        "SELECT i - 2 FROM z",
        "SELECT i * 2 FROM z",
        "SELECT 2 * i FROM z",
        "SELECT i + i FROM z",
        "SELECT -i FROM z",
        "SELECT - CAST('-9223372036854775808' AS BIGINT)",
        "SELECT abs(i) FROM z",
        "SELECT i / -1 FROM z WHERE host = 'c'",
        "SELECT time FROM z WHERE i + 1 > 0",
        "SELECT count(*) FROM z GROUP BY i * 2",
        "SELECT max(i + 1) FROM z",
        "SELECT max(-i) OVER () FROM z",
        "SELECT host FROM z ORDER BY i + 1",
        "SELECT a.i FROM z a JOIN z b ON a.i + 1 = b.i",
        "SELECT u - CAST(1 AS BIGINT UNSIGNED) FROM (SELECT CAST(0 AS BIGINT UNSIGNED) AS u)",
        "SELECT epoch_ns(TIMESTAMP '2262-04-11 23:47:16.854775807') + 1",
        "SELECT time + INTERVAL '300 years' FROM z",
        "SELECT TIMESTAMP '2200-01-01' - TIMESTAMP '1700-01-01'",
        "SELECT CAST(repeat('9', 38) AS DECIMAL(38, 0)) + CAST(repeat('9', 38) AS DECIMAL(38, 0))",
    ] {
        let error = store.error(sql).await;
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{sql}: {error}");
    }
    for (sql, expected) in [
        ("SELECT i + 1, i - 1, i * 2, -i FROM z WHERE i = 1 AND host = 'a'", vec!["2|0|2|-1"]),
        ("SELECT 9223372036854775806 + 1, -9223372036854775807 - 1", vec!["9223372036854775807|-9223372036854775808"]),
        ("SELECT i + NULL, -x FROM z WHERE i = -1", vec!["|-0.0"]),
        (
            "SELECT * FROM generate_series(9223372036854775806, 9223372036854775807)",
            vec!["9223372036854775806", "9223372036854775807"],
        ),
        ("SELECT count(*) FROM generate_series(9223372036854775800, 9223372036854775807, 5)", vec!["2"]),
        (
            "SELECT generate_series(9223372036854775806, 9223372036854775807)",
            vec!["[9223372036854775806, 9223372036854775807]"],
        ),
    ] {
        assert_eq!(store.rows(sql).await, expected, "{sql}");
    }
    // Columns are called as they were.
    let text = store.text("SELECT i + 1, -i FROM z WHERE i = 1 AND host = 'a'").await;
    assert!(text.contains("| z.i + Int64(1) | (- z.i) |"), "{text}");
}

/// Two tables with columns of one name; of `r` one row has a partner in `l`.
fn sides(home: Home) -> Store {
    let store = Store::new();
    let row = |time, n, x| (time, vec![("n", Integer(n)), ("x", Integer(x))]);
    store.put("db", TableBuilder::new("l").part(home, vec![row(1, 1, 5), row(2, 2, 6)]));
    store.put("db", TableBuilder::new("r").part(home, vec![row(1, 1, 5), row(2, 3, 7), row(3, 2, 1)]));
    store
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_finds_its_columns_by_their_side() {
    for home in [File, Buffer] {
        let store = sides(home);
        for (sql, expected) in [
            ("SELECT r.n FROM l RIGHT JOIN r ON l.n = r.n WHERE l.x IS DISTINCT FROM r.x ORDER BY 1", vec!["2", "3"]),
            ("SELECT r.n FROM r LEFT JOIN l ON l.n = r.n WHERE l.x IS DISTINCT FROM r.x ORDER BY 1", vec!["2", "3"]),
            ("SELECT r.n FROM l RIGHT JOIN r ON l.n = r.n WHERE l.x IS NULL OR l.x > r.x ORDER BY 1", vec!["2", "3"]),
            ("SELECT r.n FROM l RIGHT JOIN r ON l.n = r.n WHERE coalesce(l.x, r.x) = r.x ORDER BY 1", vec!["1", "3"]),
            (
                "SELECT l.n, r.n FROM l FULL JOIN r ON l.n = r.n WHERE l.x IS DISTINCT FROM r.x ORDER BY 2",
                vec!["2|2", "|3"],
            ),
            ("SELECT l.x, r.x FROM l JOIN r ON l.n = r.n ORDER BY r.x LIMIT 1", vec!["6|1"]),
            ("SELECT l.x, r.x FROM l RIGHT JOIN r ON l.n = r.n ORDER BY r.x DESC LIMIT 1", vec!["|7"]),
        ] {
            assert_eq!(store.rows(sql).await, expected, "{sql}\n{}", store.plan(sql).await);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_without_a_column_is_asked_where_it_stands() {
    let store = sides(File);
    for (sql, expected) in [
        ("SELECT c FROM (SELECT sum(x) AS c FROM l) q WHERE 1 >= (SELECT max(x) FROM r)", vec![]),
        ("SELECT c FROM (SELECT sum(x) AS c FROM l) q WHERE 1 < (SELECT max(x) FROM r)", vec!["11"]),
        ("SELECT sum(x) FROM l HAVING 1 >= (SELECT max(x) FROM r)", vec![]),
        (
            "WITH c AS (SELECT count(*) AS c0 FROM l) SELECT 'é' FROM c q WHERE lpad('c', 3, '*') IS NOT DISTINCT FROM 'a'",
            vec![],
        ),
        ("SELECT count(*) FROM l WHERE 1 >= (SELECT max(x) FROM r)", vec!["0"]),
        ("SELECT n FROM l GROUP BY ROLLUP (n) HAVING 1 >= (SELECT max(y) FROM (VALUES (11)) u(y))", vec![]),
        (
            "SELECT count(*) FROM l GROUP BY ROLLUP (n) HAVING 11 >= (SELECT max(y) FROM (VALUES (11)) u(y)) ORDER BY 1 LIMIT 1",
            vec!["1"],
        ),
        ("SELECT count(*) FROM l WHERE 7 NOT IN (SELECT y FROM (VALUES (5), (NULL)) u(y))", vec!["0"]),
        ("SELECT count(*) FROM l WHERE 7 NOT IN (SELECT y FROM (VALUES (5), (6)) u(y))", vec!["2"]),
        ("SELECT count(*) FROM l WHERE 5 NOT IN (SELECT y FROM (VALUES (5), (NULL)) u(y))", vec!["0"]),
        ("SELECT count(*) FROM l WHERE NULL NOT IN (SELECT x FROM r)", vec!["0"]),
        ("SELECT count(*) FROM l WHERE NULL NOT IN (SELECT x FROM r WHERE x > 100)", vec!["2"]),
        ("SELECT count(*) FROM l WHERE x NOT IN (SELECT y FROM (VALUES (5), (NULL)) u(y))", vec!["0"]),
        ("SELECT 7 NOT IN (SELECT x FROM r), 8 NOT IN (SELECT x FROM r)", vec!["false|true"]),
    ] {
        assert_eq!(store.rows(sql).await, expected, "{sql}\n{}", store.plan(sql).await);
    }
}

#[tokio::test]
async fn an_aggregate_with_a_filter_sees_rows_that_others_have_no_use_for() {
    let store = Store::new();
    let (first, second) = (vec![point(1, "a", -1.0, 2), point(2, "a", 5.0, 3)], vec![point(3, "a", 1.0, 1)]);
    store.put("db", TableBuilder::new("z").part(File, first).part(File, second));
    for _ in 0..20 {
        let sql = "SELECT min(x), max(x), min(x) FILTER (WHERE i = 1) FROM z";
        assert_eq!(store.rows(sql).await, ["-1.0|5.0|1.0"]);
        assert_eq!(store.rows("SELECT min(i), max(i), max(i) FILTER (WHERE x = 1) FROM z").await, ["1|3|1"]);
    }
}

#[tokio::test]
async fn a_test_of_a_subquery_that_gives_null_is_null() {
    let values =
        [("5, NULL", "(VALUES (5),(NULL))"), ("1, 5", "(VALUES (1),(5))"), ("nothing", "(VALUES (1) LIMIT 0)")];
    // Conditions over x of 1, 2 and NULL, and the numbers of rows that they let through for each of
    // the subqueries.
    let cases = [
        ("7 NOT IN ({})", [0, 3, 3]),
        ("5 NOT IN ({})", [0, 0, 3]),
        ("5 IN ({})", [3, 3, 0]),
        ("x NOT IN ({})", [0, 1, 3]),
        ("x IN ({})", [0, 1, 0]),
        ("x NOT IN ({}) OR x = 1", [1, 2, 3]),
        ("7 NOT IN ({}) OR x = 1", [1, 3, 3]),
        ("NOT (x IN ({}) AND x <> 9)", [0, 1, 3]),
        ("NOT (x IN ({}))", [0, 1, 3]),
        ("(x IN ({})) IS NULL", [3, 1, 0]),
        ("(x NOT IN ({})) IS NOT TRUE", [3, 2, 0]),
        ("CASE WHEN x IN ({}) THEN false ELSE true END", [3, 2, 3]),
        ("CAST(NULL AS BIGINT) NOT IN ({})", [0, 0, 3]),
    ];
    let store = Store::new();
    for (condition, expected) in cases {
        for ((named, values), expected) in values.iter().zip(expected) {
            let condition = condition.replace("{}", &format!("SELECT y FROM {values} u(y)"));
            let sql = format!("SELECT count(*) FROM (VALUES (1),(2),(NULL)) t(x) WHERE {condition}");
            assert_eq!(store.rows(&sql).await, [expected.to_string()], "of {named}: {sql}");
        }
    }
}

#[tokio::test]
async fn a_test_of_a_subquery_about_the_row_knows_null() {
    // For z = 1 the subquery gives 5 and NULL, for 2 it gives 1, for 3 nothing.
    let sql = "SELECT t.z FROM (VALUES (1, 1),(5, 1),(1, 2),(2, 2),(7, 3),(NULL, 3),(NULL, 2)) t(x, z) \
               WHERE x NOT IN (SELECT u.y FROM (VALUES (5, 1),(NULL, 1),(1, 2)) u(y, z) WHERE u.z = t.z) ORDER BY 1";
    assert_eq!(Store::new().rows(sql).await, ["2", "3", "3"]);
}

#[tokio::test]
async fn nan_is_one_group_also_where_few_groups_are_wanted() {
    let nan = "(VALUES (CAST('NaN' AS DOUBLE), 1),(CAST('NaN' AS DOUBLE), 2),(1.0, 3)) t(x, y)";
    for sql in [
        format!("SELECT count(*) FROM (SELECT DISTINCT x FROM {nan} ORDER BY x LIMIT 100)"),
        format!("SELECT count(*) FROM (SELECT x, max(y) FROM {nan} GROUP BY x ORDER BY max(y) DESC LIMIT 100)"),
    ] {
        assert_eq!(Store::new().rows(&sql).await, ["2"], "{sql}");
    }
}

fn numbers(table: &'static str, column: &'static str, values: &[i64]) -> TableBuilder {
    let row = |(time, value): (usize, &i64)| (i64::try_from(time).unwrap(), vec![(column, Integer(*value))]);
    TableBuilder::new(table).part(File, values.iter().enumerate().map(row).collect())
}

#[tokio::test]
async fn a_subquery_is_asked_for_the_row_outside() {
    let store = Store::new();
    store.put("db", numbers("a", "k", &[1, 2, 3]));
    store.put("db", numbers("b", "v", &[1, 1, 3]));
    let cases: [(&str, &[&str]); 23] = [
        // Of one table, whose columns are two all the same.
        ("k > ANY (SELECT k FROM a WHERE k <= 2)", &["2", "3"]),
        ("k > ALL (SELECT k FROM a WHERE k <= 2)", &["3"]),
        ("k = ANY (SELECT k FROM a WHERE k <= 2)", &["1", "2"]),
        ("a.k > ANY (SELECT v FROM b WHERE b.v >= a.k - 2 AND b.v > 1)", &[]),
        ("k >= ANY (SELECT k FROM a WHERE k > ANY (SELECT k FROM a))", &["2", "3"]),
        // A row of no rows.
        ("EXISTS (SELECT count(*) FROM b WHERE b.v = a.k)", &["1", "2", "3"]),
        ("NOT EXISTS (SELECT max(v) FROM b WHERE b.v = a.k)", &[]),
        ("0 IN (SELECT count(*) FROM b WHERE b.v = a.k)", &["2"]),
        ("0 NOT IN (SELECT count(*) FROM b WHERE b.v = a.k)", &["1", "3"]),
        ("k > ALL (SELECT count(*) FROM b WHERE b.v = a.k)", &["2", "3"]),
        ("k IN (SELECT max(v) FROM b WHERE b.v = a.k)", &["1", "3"]),
        ("EXISTS (SELECT 1 FROM b WHERE b.v = a.k GROUP BY ROLLUP (b.v))", &["1", "2", "3"]),
        ("EXISTS (SELECT 1 FROM b WHERE b.v = a.k GROUP BY b.v)", &["1", "3"]),
        // The aggregate itself is of all rows.
        ("EXISTS (SELECT 1 FROM (SELECT count(*) AS n FROM b) AS s WHERE s.n > a.k)", &["1", "2"]),
        ("NOT EXISTS (SELECT 1 FROM (SELECT max(v) AS n FROM b) AS s WHERE s.n > a.k)", &["3"]),
        ("k IN (SELECT n FROM (SELECT count(*) AS n FROM b) AS s WHERE s.n >= a.k)", &["3"]),
        ("EXISTS (SELECT 1 FROM b WHERE b.v = a.k LIMIT 1)", &["1", "3"]),
        ("(SELECT count(*) FROM b WHERE b.v = a.k) = 0", &["2"]),
        ("(SELECT count(*) FROM b WHERE b.v = a.k) > 1", &["1"]),
        ("(SELECT max(v) FROM b WHERE b.v = a.k) IS NULL", &["2"]),
        ("(SELECT count(*) FROM b WHERE b.v = a.k) = 0 AND 1 = (SELECT count(*) FROM a WHERE k = 1)", &["2"]),
        ("(SELECT count(*) FROM b WHERE b.v = a.k) = 0 OR k = 1", &["1", "2"]),
        ("EXISTS (SELECT count(*) FROM b WHERE b.v = a.k HAVING count(*) > 5) OR true", &["1", "2", "3"]),
    ];
    for (condition, expected) in cases {
        let sql = format!("SELECT k FROM a WHERE {condition} ORDER BY k");
        match condition.contains("HAVING") {
            true => assert!(store.run(&sql).await.unwrap_err().to_string().contains("HAVING of all rows"), "{sql}"),
            false => assert_eq!(store.rows(&sql).await, expected, "{sql}"),
        }
    }
    for refused in [
        "EXISTS (SELECT * FROM b WHERE b.v = a.k OFFSET 1)",
        "k IN (SELECT count(*) FROM b WHERE b.v = a.k HAVING count(*) > 1) AND EXISTS (SELECT 1 FROM b WHERE v = k)",
        "NOT EXISTS (SELECT * FROM b WHERE b.v = a.k ORDER BY v LIMIT 2 OFFSET 1)",
        "EXISTS (SELECT 1 FROM (SELECT * FROM b WHERE b.v = a.k) x JOIN (SELECT * FROM a ORDER BY k LIMIT 1) y ON x.v + 1 = y.k)",
    ] {
        let error = store.run(&format!("SELECT k FROM a WHERE {refused}")).await.unwrap_err();
        assert!(error.to_string().contains("that names columns outside"), "{refused}: {error}");
    }
}

#[tokio::test]
async fn a_case_guards_what_its_branches_compute() {
    let store = Store::new();
    for (condition, of_rows) in [
        ("CASE WHEN s ~ '^[0-9]+$' THEN CAST(s AS INT) > 0 ELSE false END", ["false", "true", ""]),
        ("CASE WHEN n = 0 THEN false WHEN 6 / n > 2 THEN true ELSE false END", ["false", "true", "false"]),
        ("CASE WHEN n <> 0 THEN 6 / n > 2 END", ["", "true", ""]),
        ("s ~ '.*'", ["true", "true", ""]),
        ("NOT (s ~ '.*')", ["false", "false", ""]),
        ("s !~ '.*'", ["false", "false", ""]),
        ("s ~* '.*' IS NULL", ["false", "false", "true"]),
    ] {
        let condition = condition.replace("CASE WHEN s", "CASE WHEN s IS NULL THEN NULL WHEN s");
        let rows = "(VALUES (1, 'abc', 0), (2, '12', 2), (3, NULL, NULL)) AS v(i, s, n)";
        let found = store.rows(&format!("SELECT {condition} FROM {rows} ORDER BY i")).await;
        assert_eq!(found, of_rows, "{condition}");
        let met = store.rows(&format!("SELECT count(*) FROM {rows} WHERE {condition}")).await;
        assert_eq!(met, [found.iter().filter(|row| *row == "true").count().to_string()], "{condition}");
    }
}

#[tokio::test]
async fn bounds_and_limits_leave_no_row_out() {
    let store = Store::new();
    let part = |from: i64, column: &'static str| -> Vec<Row> {
        (from..from + 2)
            .map(|n| (n, vec![(column, Integer(n)), ("x", Float(if n == 3 { f64::NAN } else { n as f64 }))]))
            .collect()
    };
    store.put("db", TableBuilder::new("m").part(File, part(1, "v")).part(File, part(3, "w")).part(File, part(5, "w")));
    // The order of threads decides which bound is known first.
    for _ in 0..20 {
        assert_eq!(store.rows("SELECT min(v), max(w) FROM m").await, ["1|6"]);
        assert_eq!(store.rows("SELECT min(v), max(v), min(w), max(w) FROM m").await, ["1|2|3|6"]);
        let computed = "SELECT max(w), epoch_ns(max(time)), max(-epoch_ns(time)), min(-w) FROM m";
        assert_eq!(store.rows(computed).await, ["6|6|-1|-6"]);
        let of_time = "SELECT epoch_ns(max(time)), epoch_ns(max(time_bucket('4 nanoseconds', time - INTERVAL '4 nanoseconds'))) FROM m";
        assert_eq!(store.rows(of_time).await.len(), 1);
    }
    let groups = "SELECT n, min(x) FROM (SELECT x, coalesce(v, w) AS n FROM m) AS s GROUP BY n ORDER BY 2 LIMIT";
    assert_eq!(store.rows(&format!("{groups} 1")).await, ["1|1.0"]);
    assert_eq!(store.rows(&format!("{groups} 3")).await, ["1|1.0", "2|2.0", "4|4.0"]);
}

/// Lists that have nothing in common are NULL for NULL, whatever the type of the column.
#[tokio::test]
async fn lists_know_nothing_of_null_in_each_type() {
    let store = Store::new();
    for (data_type, [a, b, c]) in [
        ("UInt64", ["1", "2", "3"]),
        // Of each list its numbers have another type.
        ("UInt64", ["1", "9223372036854775808", "18446744073709551615"]),
        ("UInt64", ["9223372036854775808", "1", "18446744073709551615"]),
        ("Int32", ["1", "2147483648", "3"]),
        ("Int64", ["1", "2.5", "3"]),
        ("Int64", ["1", "9223372036854775808", "2"]),
        ("Int64", ["1", "2", "3"]),
        ("Int16", ["1", "2", "3"]),
        ("Float64", ["1", "2", "3"]),
        ("Utf8", ["'1'", "'2'", "'3'"]),
        ("Dictionary(Int32, Utf8)", ["'1'", "'2'", "'3'"]),
        ("Timestamp(ns, \"UTC\")", ["'1970-01-01'", "'1970-01-02'", "TIMESTAMP '1970-01-03'"]),
        ("Date32", ["'1970-01-01'", "'1970-01-02'", "DATE '1970-01-03'"]),
    ] {
        let rows =
            format!("(VALUES (1, arrow_cast({a}, '{data_type}')), (2, arrow_cast(NULL, '{data_type}'))) AS v(i, x)");
        for (condition, of_value) in [
            (format!("x IN ({a}, {c}) AND x IN ({b})"), "false"),
            (format!("x NOT IN ({a}) OR x NOT IN ({b}, {c})"), "true"),
            (format!("NOT (x IN ({a}, {b}) AND x IN ({c}))"), "true"),
            (format!("x IN ({a}, {b}) AND x NOT IN ({b}, {c})"), "true"),
        ] {
            let found = store.rows(&format!("SELECT {condition} FROM {rows} ORDER BY i")).await;
            assert_eq!(found, [of_value, ""], "{data_type}: {condition}");
        }
    }
}

/// A condition says the same of a constant as of a column that has its value.
#[tokio::test]
async fn casts_are_compared_with_constants_as_with_columns() {
    let store = Store::new();
    let rows = (0..40).map(|n| (n * 250_000_000 - 3_000_000_000, vec![("i", Integer(n * 25 - 300))])).collect();
    store.put("db", TableBuilder::new("m").part(File, rows));
    let number = "arrow_cast(i, 'Decimal128(12, 0)') / 100";
    let seconds = "TIMESTAMP '1970-01-01 00:00:01'";
    let cases = [
        (format!("CAST({number} AS DECIMAL(12, 1))"), ["1.2", "CAST(1.3 AS DECIMAL(12, 1))", "-0.2"]),
        (format!("CAST({number} AS DECIMAL(12, 0))"), ["1", "2", "-2"]),
        (format!("CAST({number} AS BIGINT)"), ["1", "0", "-1"]),
        (format!("arrow_cast(CAST({number} AS DECIMAL(12, 3)), 'Decimal64(12, 1)')"), ["1.2", "1.3", "0"]),
        ("arrow_cast(i, 'Decimal128(10, -2)')".to_owned(), ["100", "2", "-3"]),
        (
            "arrow_cast(time, 'Timestamp(s)')".to_owned(),
            [seconds, "TIMESTAMP '1970-01-01 00:00:01.5'", "TIMESTAMP '1969-12-31 23:59:58.1'"],
        ),
        (
            "arrow_cast(time, 'Timestamp(ms, \"UTC\")')".to_owned(),
            [seconds, "TIMESTAMP '1970-01-01 00:00:01.5000001'", "to_timestamp_nanos(-1)"],
        ),
        (
            "arrow_cast(time, 'Timestamp(s, \"UTC\")')".to_owned(),
            [seconds, "'1970-01-01 00:00:01.5'", "TIMESTAMP '1970-01-01 00:00:01' + INTERVAL '1 nanosecond'"],
        ),
        ("CAST(time AS DATE)".to_owned(), ["DATE '1970-01-01'", "'1969-12-31'", "DATE '2970-01-01'"]),
        ("CAST(time AS DATE)".to_owned(), [seconds, "TIMESTAMP '1970-01-01'", "TIMESTAMP '1969-12-31 23:59:59'"]),
        (
            "CAST(arrow_cast(time, 'Timestamp(s)') AS DATE)".to_owned(),
            ["DATE '1970-01-01'", "'1969-12-31'", "DATE '2970-01-01'"],
        ),
        ("CAST(i / 100.0 AS TEXT)".to_owned(), ["'0.25'", "'2.25'", "'-1.0'"]),
        ("CAST(i AS TEXT)".to_owned(), ["'0'", "'025'", "'-25'"]),
    ];
    for (cast, [first, second, third]) in cases {
        // Another pair for each condition.
        let mut pairs = [[first, second], [second, third], [third, first]].into_iter().cycle();
        for condition in [
            "{c} = {a}",
            "{c} <> {a}",
            "{c} < {a}",
            "{c} >= {a}",
            "{a} > {c}",
            "{c} IS DISTINCT FROM {a}",
            "{c} IN ({a}, {b})",
            "{c} NOT IN ({a}, {b})",
            "{c} BETWEEN {a} AND {b}",
            "CASE {c} WHEN {a} THEN true ELSE false END",
            "nullif({c}, {a}) IS NULL",
        ] {
            let [a, b] = pairs.next().unwrap();
            let of = |a: &str, b: &str| condition.replace("{c}", &cast).replace("{a}", a).replace("{b}", b);
            let constant = format!("SELECT i FROM m WHERE {} ORDER BY i", of(a, b));
            let column = of("v.a", "v.b");
            let column = format!("SELECT i FROM m CROSS JOIN (VALUES ({a}, {b})) v(a, b) WHERE {column} ORDER BY i");
            assert_eq!(store.rows(&constant).await, store.rows(&column).await, "{constant}");
        }
    }
}

/// What cannot be said right is refused, and by its name.
#[tokio::test]
async fn statements_without_a_right_answer_are_refused() {
    let store = Store::new();
    let rows = (0..3).map(|n| (n, vec![("i", Integer(n)), ("x", Float(n as f64)), ("host", Tag("a"))])).collect();
    store.put("db", TableBuilder::new("m").part(File, rows));
    for (sql, expected) in [
        ("SELECT arrow_cast(-9223372036854775808, 'Date64')", "Date64"),
        ("SELECT arrow_cast([i], 'List(Date64)') FROM m", "Date64"),
        ("SELECT arrow_cast(time, 'Timestamp(ns, \"Europe/Nowhere\")') FROM m", "Europe/Nowhere"),
        ("SELECT time AT TIME ZONE 'Europe/Nowhere' FROM m", "Europe/Nowhere"),
        ("SELECT count(*) FROM m WHERE time > TIMESTAMP '1970-01-01' AT TIME ZONE 'Europe/Nowhere'", "Europe/Nowhere"),
        ("SELECT named_struct('a', from_unixtime(i, 'Europe/Nowhere')) FROM m", "Europe/Nowhere"),
        (
            "SELECT sum(i) OVER (ORDER BY time RANGE BETWEEN INTERVAL '-1 day' PRECEDING AND CURRENT ROW) FROM m",
            "negative",
        ),
        ("SELECT sum(i) OVER (ORDER BY i RANGE BETWEEN '-1' PRECEDING AND CURRENT ROW) FROM m", "negative"),
        ("SELECT sum(i) OVER (ORDER BY x RANGE BETWEEN CURRENT ROW AND '-0.5' FOLLOWING) FROM m", "negative"),
        (
            "SELECT sum(i) OVER (ORDER BY time RANGE BETWEEN INTERVAL '1 month -31 days' PRECEDING AND CURRENT ROW) FROM m",
            "negative",
        ),
        ("SELECT time AT TIME ZONE host FROM m", "a constant"),
        ("SELECT i IN (SELECT i FROM m) FROM m", "supported: IN (SELECT …) as a value: it"),
        ("SELECT EXISTS (SELECT i FROM m) FROM m", "supported: EXISTS as a value: it"),
        ("SELECT (SELECT count(*) FROM m AS n WHERE n.i < m.i) FROM m", "supported: a subquery that is compared"),
        ("SELECT 2 ^ 3", "power(a, b)"),
        ("SELECT i FROM m WHERE i ^ 1 = 0", "power(a, b)"),
        ("SELECT random() < 0.5 AS k, count(*) FROM m GROUP BY k", "subquery"),
        ("SELECT named_struct('a', random())", "structure"),
        ("SELECT {a: random()}", "structure"),
    ] {
        let error = store.error(sql).await;
        assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains(expected), "{sql}: {error}");
    }
    for (sql, expected) in [
        ("SELECT count(*) FROM (SELECT DISTINCT random() FROM m)", "3"),
        ("SELECT count(*) FROM (SELECT k FROM (SELECT random() < 2 AS k FROM m) GROUP BY k)", "1"),
        ("SELECT i || host FROM m WHERE i = 1", "1a"),
        ("SELECT host || i || host FROM m WHERE i = 1", "a1a"),
        ("SELECT sum(CASE WHEN x > 0 IS NOT FALSE THEN 0 WHEN NOT (x > 0 IS NOT FALSE) THEN 1 ELSE 0 END) FROM m", "1"),
        ("SELECT max(CASE WHEN (x > 0) IS TRUE THEN 0 WHEN NOT (x > 0) IS TRUE THEN 1 ELSE 0 END) FROM m", "1"),
    ] {
        assert_eq!(store.rows(sql).await, [expected], "{sql}");
    }
}
