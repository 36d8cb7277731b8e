//! Functions of time that DataFusion lacks, and those of its own that clients rely on.

use super::fake::{
    Cell::{Float, Integer, Tag},
    Home::{Buffer, File},
    Store, TableBuilder,
};
use crate::ErrorKind;

#[tokio::test]
async fn functions_of_time_answer_as_expected() {
    let at = |time: &str| format!("TIMESTAMP '{time}'");
    let bucket = |interval: &str, time: &str| format!("time_bucket(INTERVAL '{interval}', {})", at(time));
    let cases = [
        (bucket("1 hour", "2025-01-01 10:59:59.6"), "2025-01-01T10:00:00"),
        // From 1970-01-01 it would be 09:58.
        (bucket("7 minutes", "2024-03-05 09:59:00"), "2024-03-05T09:57:00"),
        // Thursday and Sunday belong to the week of their Monday.
        (bucket("1 week", "2025-01-02 12:00:00"), "2024-12-30T00:00:00"),
        (bucket("1 week", "2025-01-05 23:59:59"), "2024-12-30T00:00:00"),
        (bucket("1 month", "2025-02-28 01:00:00"), "2025-02-01T00:00:00"),
        (bucket("3 months", "2025-02-28 01:00:00"), "2025-01-01T00:00:00"),
        (bucket("1 year", "1969-07-20 20:17:00"), "1969-01-01T00:00:00"),
        (bucket("1 hour", "1969-12-31 23:30:00"), "1969-12-31T23:00:00"),
        (bucket("1 day", "1960-01-01 00:00:01"), "1960-01-01T00:00:00"),
        (bucket("10 nanoseconds", "2025-01-01 00:00:00.000000019"), "2025-01-01T00:00:00.000000010"),
        (
            format!("time_bucket(INTERVAL '1 hour', {}, {})", at("2025-01-01 10:20:00"), at("2025-01-01 00:30:00")),
            "2025-01-01T09:30:00",
        ),
        (format!("epoch_ns({})", at("1970-01-01 00:00:01.000000002")), "1000000002"),
        (format!("epoch_us({})", at("1969-12-31 23:59:59.9999995")), "-1"),
        (format!("epoch_ms({})", at("1970-01-01 00:00:01.5")), "1500"),
        ("epoch_ns('1970-01-01T00:00:01Z')".to_owned(), "1000000000"),
        ("epoch_ns(NULL)".to_owned(), ""),
        (format!("date_trunc('hour', {})", at("2025-01-01 10:59:59.6")), "2025-01-01T10:00:00"),
        (format!("date_bin(INTERVAL '1 hour', {})", at("1969-12-31 23:30:00")), "1969-12-31T23:00:00"),
        ("to_timestamp(1.5)".to_owned(), "1970-01-01T00:00:01.500"),
        (format!("extract(dow FROM {})", at("2025-01-05 00:00:00")), "0"),
    ];
    let store = Store::new();
    for (expression, expected) in cases {
        let rows = store.rows(&format!("SELECT {expression}")).await;
        let trimmed = rows[0].trim_end_matches('Z');
        assert_eq!(trimmed, expected, "{expression}");
    }
}

/// Of one number or two, of all rows and by group, by one key and two, of which one is the number itself.
#[tokio::test]
async fn an_order_in_an_aggregate_makes_no_other_answer_or_a_clear_error() {
    let store = Store::new();
    let row = |i: i64| {
        (i, vec![("host", Tag(if i % 2 == 0 { "a" } else { "b" })), ("x", Float(i as f64)), ("n", Integer(9 - i))])
    };
    store.put(
        "db",
        TableBuilder::new("m").part(File, (0..5).map(row).collect()).part(Buffer, (5..9).map(row).collect()),
    );
    let names = "SELECT DISTINCT routine_name FROM information_schema.routines WHERE function_type = 'AGGREGATE'";
    let names = store.rows(names).await;
    assert!(names.len() > 40, "{names:?}");
    for name in names {
        for arguments in ["x", "n", "x, n", "n, 0.5", "host", "host, ','", "n > 4"] {
            for group in ["", "GROUP BY host ORDER BY host"] {
                let sql = |order: &str| format!("SELECT {name}({arguments}{order}) AS answer FROM m {group}");
                let plain = store.run(&sql("")).await;
                for order in [" ORDER BY host DESC", " ORDER BY x", " ORDER BY n, host DESC"] {
                    let (ordered, asked) = (store.run(&sql(order)).await, sql(order));
                    if let Err(error) = ordered {
                        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{asked}: {error}");
                    } else {
                        assert!(plain.is_ok(), "{asked}");
                    }
                    let is_exact = ["sum", "min", "max", "count", "median", "bit_and", "bool_or"].contains(&&*name);
                    if is_exact && plain.is_ok() {
                        let texts = (store.text(&sql("")).await, store.text(&asked).await);
                        assert_eq!(texts.0, texts.1, "{asked}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn units_between_two_times_are_counted_as_in_duckdb() {
    let (from, to) = ("TIMESTAMP '1969-12-28 23:59:59.999999'", "TIMESTAMP '2001-03-05 00:00:00.000001'");
    // As DuckDB 2.0 answers.
    let cases = [
        ("millennium", "1"),
        ("century", "1"),
        ("decade", "4"),
        ("year", "32"),
        ("quarter", "125"),
        ("month", "375"),
        // DuckDB says 1627: its weeks begin on Thursdays here, as 1970 did, though not in its
        // `date_trunc`.
        ("week", "1628"),
        ("DAY", "11390"),
        ("hr", "273337"),
        ("minutes", "16400161"),
        ("second", "984009601"),
        ("ms", "984009600001"),
        ("microsecond", "984009600000002"),
    ];
    let store = Store::new();
    for (unit, expected) in cases {
        let sql = format!("SELECT date_diff('{unit}', {from}, {to}), -datediff('{unit}', {to}, {from})");
        assert_eq!(store.rows(&sql).await, [format!("{expected}|{expected}")], "{unit}");
    }
    let cases = [
        ("date_diff('day', DATE '2020-01-01', DATE '2020-02-01')", "31"),
        ("date_diff('hour', DATE '2020-01-01', TIMESTAMP '2020-02-01 00:30:00')", "744"),
        ("date_diff('day', '2020-01-01T23:00:00Z', NULL)", ""),
        // It is boundaries that count.
        ("date_diff('hour', TIMESTAMP '2020-01-01 10:59:59', TIMESTAMP '2020-01-01 11:00:00')", "1"),
        ("date_diff('week', TIMESTAMP '2025-01-05 23:00:00', TIMESTAMP '2025-01-06 01:00:00')", "1"),
    ];
    for (expression, expected) in cases {
        assert_eq!(store.rows(&format!("SELECT {expression}")).await, [expected], "{expression}");
    }
    store.put("db", metrics());
    let sql = "SELECT sum(date_diff('ns', time, TIMESTAMP '1970-01-01 00:00:00.00000001')) > 0 FROM m";
    assert_eq!(store.rows(sql).await, ["true"]);
    for sql in ["date_diff('day', 1, 2)", "date_diff('fortnight', now(), now())", "date_diff(now(), now())"] {
        assert!(store.run(&format!("SELECT {sql}")).await.is_err(), "{sql}");
    }
}

#[tokio::test]
async fn buckets_group_rows_and_keep_their_zone() {
    use super::fake::{Cell::Integer, Home::Buffer, TableBuilder};
    let rows = (0..10).map(|i| (i * 400_000_000, vec![("x", Integer(i))])).collect();
    let store = Store::new();
    store.put("db", TableBuilder::new("m").part(Buffer, rows));
    let sql = "SELECT time_bucket(INTERVAL '1 second', time) AS t, count(*) FROM m GROUP BY t ORDER BY t";
    let expected = ["00Z|3", "01Z|2", "02Z|3", "03Z|2"].map(|end| format!("1970-01-01T00:00:{end}"));
    assert_eq!(store.rows(sql).await, expected);
    assert_eq!(store.rows("SELECT sum(epoch_ms(time)) FROM m").await, ["18000"]);
    for sql in ["SELECT time_bucket('x', time) FROM m", "SELECT epoch_ns(x) FROM m", "SELECT epoch_ns() FROM m"] {
        assert_eq!(store.error(sql).await.kind(), crate::ErrorKind::InvalidInput, "{sql}");
    }
}

#[tokio::test]
async fn values_are_taken_at_the_ends_of_time() {
    let store = Store::new();
    store.put("db", metrics());
    let cases = [
        ("SELECT host, last(x, time), first(x, time) FROM m GROUP BY host ORDER BY host", vec!["a|40|10", "b|7|7"]),
        (
            "SELECT host, arg_max(x, time), arg_min(x, time) FROM m GROUP BY host ORDER BY host",
            vec!["a|40|10", "b|7|7"],
        ),
        // The last row has no y.
        ("SELECT host, last(y, time) FROM m GROUP BY host ORDER BY host", vec!["a|0.5", "b|"]),
        (
            "SELECT arg_max(host, x), arg_min(host, x), max_by(time, x) FROM m",
            vec!["a|b|1970-01-01T00:00:00.000000003Z"],
        ),
        ("SELECT last(x, time) FILTER (WHERE x < 20) FROM m", vec!["7"]),
        ("SELECT last(x, time) FROM m WHERE host = 'none'", vec![""]),
        (
            "SELECT x, last(x, time) OVER (PARTITION BY host ORDER BY time) FROM m ORDER BY time, host",
            vec!["10|10", "30|30", "20|20", "7|7", "40|40"],
        ),
        (
            "SELECT first(x + 1, time) OVER (PARTITION BY host) AS f FROM m ORDER BY f",
            vec!["8", "11", "11", "11", "11"],
        ),
    ];
    for (sql, expected) in cases {
        assert_eq!(store.rows(sql).await, expected, "{sql}");
    }
    for sql in ["SELECT last(x) FROM m", "SELECT arg_max(x, time, 1) FROM m"] {
        assert_eq!(store.error(sql).await.kind(), crate::ErrorKind::InvalidInput, "{sql}");
    }
    let plan = store.plan("SELECT host, last(x, time) FROM m GROUP BY host").await;
    assert!(plan.contains("LatestExec: keys=[host]"), "{plan}");
    let plan = store.plan("SELECT host, last(y, time) FROM m GROUP BY host").await;
    assert!(!plan.contains("LatestExec"), "the last row may lack it: {plan}");
}

/// A host with a counter that begins again, and one with a single point.
fn metrics() -> super::fake::TableBuilder {
    use super::fake::{
        Cell::{Float, Integer, Tag},
        Home::{Buffer, File},
        TableBuilder,
    };
    let row = |time, host, x, y: Option<f64>| {
        let mut cells = vec![("host", Tag(host)), ("x", Integer(x))];
        cells.extend(y.map(|y| ("y", Float(y))));
        (time, cells)
    };
    TableBuilder::new("m")
        .part(File, vec![row(0, "a", 10, Some(1.5)), row(1, "a", 30, None), row(2, "a", 20, Some(0.5))])
        .part(Buffer, vec![row(2, "b", 7, None), row(3, "a", 40, None)])
}

#[tokio::test]
async fn changes_are_taken_in_order_of_time_whatever_order_rows_come_in() {
    let store = Store::new();
    store.put("db", metrics());
    let second = |sql: &str| sql.replace("second", "CAST(to_timestamp(CAST(time AS BIGINT)) AS TIMESTAMP)");
    let cases = [
        ("SELECT host, delta(x, time) FROM m GROUP BY host ORDER BY host", vec!["a|30.0", "b|"]),
        // From 30 the counter fell to 20: it began again from 0.
        ("SELECT host, increase(x, time) FROM m GROUP BY host ORDER BY host", vec!["a|60.0", "b|"]),
        ("SELECT rate(x, second), derivative(x, second) FROM m WHERE host = 'a'", vec!["20.0|10.0"]),
        ("SELECT derivative(y, second), delta(y, time) FROM m", vec!["-0.5|-1.0"]),
        ("SELECT rate(x, TIMESTAMP '2025-01-01') FROM m", vec![""]),
        ("SELECT rate(x, time) FROM m WHERE x < 0", vec![""]),
        (
            "SELECT delta(x, time) OVER (ORDER BY time ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS d FROM m \
             WHERE host = 'a' ORDER BY time",
            vec!["", "20.0", "-10.0", "20.0"],
        ),
    ];
    for (sql, expected) in cases {
        assert_eq!(store.rows(&second(sql)).await, expected, "{sql}");
    }
    for sql in ["SELECT rate(host, time) FROM m", "SELECT rate(x, x) FROM m", "SELECT rate(x) FROM m"] {
        assert_eq!(store.error(sql).await.kind(), crate::ErrorKind::InvalidInput, "{sql}");
    }
}

#[tokio::test]
async fn gaps_are_filled_within_their_partition() {
    let store = Store::new();
    let points = "(VALUES ('a', 0, NULL), ('a', 10, 1.0), ('a', 20, NULL), ('a', 40, 4.0), ('a', 50, NULL), ('b', 15, NULL)) \
                  AS p (host, s, x)";
    let over = "OVER (PARTITION BY host ORDER BY s)";
    let cases = [
        (format!("SELECT locf(x) {over} FROM {points} ORDER BY host, s"), vec!["", "1.0", "1.0", "4.0", "4.0", ""]),
        (
            format!("SELECT interpolate(x, to_timestamp(s)) {over} FROM {points} ORDER BY host, s"),
            vec!["", "1.0", "2.0", "4.0", "", ""],
        ),
        (
            // The time says what is next to what, not the window.
            format!(
                "SELECT interpolate(x, to_timestamp(s)) OVER (PARTITION BY host ORDER BY x) FROM {points} ORDER BY host, s"
            ),
            vec!["", "1.0", "2.0", "4.0", "", ""],
        ),
        (format!("SELECT locf(host) {over} FROM {points} ORDER BY host, s LIMIT 1"), vec!["a"]),
    ];
    for (sql, expected) in cases {
        assert_eq!(store.rows(&sql).await, expected, "{sql}");
    }
    for sql in ["SELECT locf() OVER ()", "SELECT interpolate(1.0) OVER ()", "SELECT interpolate('x', now()) OVER ()"] {
        assert_eq!(store.error(sql).await.kind(), crate::ErrorKind::InvalidInput, "{sql}");
    }
}

#[tokio::test]
async fn counters_are_exact_and_skip_what_is_no_number() {
    let store = Store::new();
    fn of<T: std::fmt::Display>(values: &[T]) -> String {
        let rows = values.iter().zip(0..).map(|(value, at): (_, i32)| format!("({value}, to_timestamp({at}))"));
        format!("(VALUES {}) AS p (x, t)", rows.collect::<Vec<_>>().join(", "))
    }
    let large = of(&["9007199254740993", "9007199254740994", "9007199254740995"]);
    let unsigned =
        of(&["18446744073709551613", "18446744073709551615", "3"]
            .map(|value| format!("CAST({value} AS BIGINT UNSIGNED)")));
    let gaps = of(&["1.0", "CAST('NaN' AS DOUBLE)", "4.0", "CAST(NULL AS DOUBLE)", "2.0", "CAST('NaN' AS DOUBLE)"]);
    let ends = of(&["-9223372036854775808", "9223372036854775807"]);
    let cases = [
        (format!("SELECT increase(x, t), rate(x, t), delta(x, t) FROM {large}"), "2.0|1.0|2.0"),
        (format!("SELECT increase(x, t) FROM {unsigned}"), "5.0"),
        // From 4 it fell to 2, which counts in full; without a NaN at the end it is two from 1 to
        // 2.
        (format!("SELECT increase(x, t), delta(x, t), rate(x, t) FROM {gaps}"), "5.0|1.0|1.25"),
        (format!("SELECT delta(x, t), increase(x, t) FROM {ends}"), "1.8446744073709552e19|1.8446744073709552e19"),
        ("SELECT increase(x, t) FROM (VALUES (5, TIMESTAMP '2020-01-01'), (2, TIMESTAMP '2020-01-01'), (7, TIMESTAMP '2020-01-02')) p(x, t)".to_owned(), "5.0"),
        ("SELECT increase(x, t) FROM (VALUES (2, TIMESTAMP '2020-01-01'), (5, TIMESTAMP '2020-01-01'), (7, TIMESTAMP '2020-01-02')) p(x, t)".to_owned(), "5.0"),
    ];
    for (sql, expected) in cases {
        assert_eq!(store.rows(&sql).await, [expected], "{sql}");
    }
    // Rows of one time leave a frame, and come into it, in any order.
    let points = "(VALUES (1, 3), (1, 1), (2, 5), (3, 4), (3, 6)) AS p (t, x)";
    let frame = "OVER (ORDER BY t RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)";
    let sql = format!(
        "SELECT DISTINCT t, delta(x, to_timestamp(t)) {frame}, increase(x, to_timestamp(t)) {frame} FROM {points} ORDER BY t"
    );
    assert_eq!(store.rows(&sql).await, ["1|2.0|2.0", "2|4.0|4.0", "3|1.0|6.0"]);
}

/// Each row looks at one block of points, not at all so far: otherwise this would take hours.
#[tokio::test]
async fn a_change_over_a_frame_that_grows_takes_one_look_at_each_row() {
    let store = Store::new();
    for order in ["value", "-value", "value * 7919 % 50021"] {
        let sql = format!(
            "SELECT max(d) FROM (SELECT increase(value, to_timestamp(value)) OVER (ORDER BY {order}) AS d \
             FROM generate_series(1, 50000))"
        );
        assert_eq!(store.rows(&sql).await, ["49999.0"], "{order}");
    }
    let frame = "OVER (ORDER BY value ROWS BETWEEN 5000 PRECEDING AND CURRENT ROW)";
    let sql = format!(
        "SELECT max(d) FROM (SELECT increase(value, to_timestamp(value)) {frame} AS d FROM generate_series(1, 20000))"
    );
    assert_eq!(store.rows(&sql).await, ["5000.0"]);
}

#[tokio::test]
async fn buckets_of_a_zone_are_those_of_its_clock() {
    let store = Store::new();
    let at = |time: &str, zone: &str| format!("(CAST('{time}' AS TIMESTAMPTZ) AT TIME ZONE '{zone}')");
    let berlin = |time: &str| at(time, "Europe/Berlin");
    let cases = [
        (format!("time_bucket('1 day', {})", berlin("2026-07-01T23:30:00Z")), "2026-07-02T00:00:00+02:00"),
        (format!("date_bin('1 day', {})", berlin("2026-07-01T23:30:00Z")), "2026-07-02T00:00:00+02:00"),
        (format!("time_bucket('1 week', {})", berlin("2026-07-05T22:30:00Z")), "2026-07-06T00:00:00+02:00"),
        (format!("time_bucket('1 month', {})", berlin("2026-10-31T23:30:00Z")), "2026-11-01T00:00:00+01:00"),
        (
            format!("time_bucket('15 minutes', {})", at("2026-07-01T23:40:00Z", "Asia/Kathmandu")),
            "2026-07-02T05:15:00+05:45",
        ),
        // The day on which the clock is turned back has 25 hours, and two that it shows as two.
        (format!("time_bucket('1 day', {})", berlin("2026-10-25T22:59:00Z")), "2026-10-25T00:00:00+02:00"),
        (format!("time_bucket('1 hour', {})", berlin("2026-10-25T00:30:00Z")), "2026-10-25T02:00:00+02:00"),
        (format!("time_bucket('1 hour', {})", berlin("2026-10-25T01:30:00Z")), "2026-10-25T02:00:00+01:00"),
        (format!("time_bucket('6 hours', {})", berlin("2026-10-25T04:30:00Z")), "2026-10-25T00:00:00+02:00"),
        // From 02:00 it is turned forward to 03:00.
        (format!("time_bucket('2 hours', {})", berlin("2026-03-29T01:10:00Z")), "2026-03-29T03:00:00+02:00"),
        (
            format!("time_bucket('1 day', {})", at("2026-09-06T12:00:00Z", "America/Santiago")),
            "2026-09-06T01:00:00-03:00",
        ),
        // The origin is a time in UTC, and the clock is an hour ahead.
        (
            format!("time_bucket('1 day', {}, TIMESTAMP '2026-01-01 06:00:00')", berlin("2026-07-02T03:00:00Z")),
            "2026-07-01T07:00:00+02:00",
        ),
        ("time_bucket('1 day', CAST(NULL AS TIMESTAMPTZ) AT TIME ZONE 'Europe/Berlin')".to_owned(), ""),
        (format!("time_bucket('1 day', {})", at("2026-07-01T23:30:00Z", "+05:30")), "2026-07-02T00:00:00+05:30"),
        ("time_bucket('1 day', CAST('2026-07-01T23:30:00Z' AS TIMESTAMPTZ))".to_owned(), "2026-07-01T00:00:00Z"),
    ];
    for (expression, expected) in cases {
        assert_eq!(store.rows(&format!("SELECT {expression}")).await, [expected], "{expression}");
    }
    // Of hours `date_trunc` is DataFusion's, and knows zones.
    for zone in ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/Havana", "UTC"] {
        for unit in ["day", "week", "month", "year", "hour"] {
            let t = "to_timestamp(1700000000 + value * 1777) AT TIME ZONE 'zone'".replace("zone'", &format!("{zone}'"));
            let sql = format!(
                "SELECT t, time_bucket('1 {unit}', t), date_trunc('{unit}', t) FROM (SELECT {t} AS t FROM generate_series(0, 30000)) \
                 WHERE time_bucket('1 {unit}', t) <> date_trunc('{unit}', t) OR time_bucket('1 {unit}', t) > t"
            );
            assert_eq!(store.rows(&sql).await, Vec::<String>::new(), "{unit} in {zone}");
        }
    }
}

#[tokio::test]
async fn a_day_of_a_zone_is_one_bucket_whenever_its_clock_is_turned() {
    let store = Store::new();
    let zones =
        ["Atlantic/Azores", "America/Havana", "America/Asuncion", "Asia/Beirut", "Europe/Berlin", "Pacific/Apia"];
    // Half hours around each change of the clock since 1970, which fall into March to May and
    // September to December.
    for zone in zones {
        let sql = format!(
            "SELECT CAST(to_local_time(t) AS DATE) AS day, count(DISTINCT time_bucket('1 day', t)), count(DISTINCT date_trunc('day', t)),
                    count(DISTINCT date_trunc('month', t)), count(DISTINCT time_bucket('1 week', t)), min(t - date_trunc('day', t))
             FROM (SELECT to_timestamp(1262304000 + value * 1800) AT TIME ZONE '{zone}' AS t FROM generate_series(0, 70000)) AS times
             GROUP BY day
             HAVING count(DISTINCT time_bucket('1 day', t)) <> 1 OR count(DISTINCT date_trunc('day', t)) <> 1
                 OR count(DISTINCT date_trunc('month', t)) <> 1 OR count(DISTINCT time_bucket('1 week', t)) <> 1
                 OR min(t - date_trunc('day', t)) < INTERVAL '0 seconds'"
        );
        assert_eq!(store.rows(&sql).await, Vec::<String>::new(), "{zone}");
    }
    let azores = |time: &str| format!("(CAST('{time}' AS TIMESTAMPTZ) AT TIME ZONE 'Atlantic/Azores')");
    for (bucket, time, began) in [
        ("time_bucket('1 day',", "2025-10-26T12:00:00Z", "2025-10-26T00:00:00Z"),
        ("date_bin('3 days',", "2025-10-26T12:00:00Z", "2025-10-24T00:00:00Z"),
        ("date_trunc('day',", "2025-10-26T00:30:00Z", "2025-10-26T00:00:00Z"),
        ("date_trunc('DAY',", "2025-10-26T01:30:00Z", "2025-10-26T00:00:00Z"),
        ("time_bucket('6 hours',", "2025-10-26T05:00:00Z", "2025-10-26T00:00:00Z"),
        ("time_bucket('1 hour',", "2025-10-26T01:30:00Z", "2025-10-26T01:00:00Z"),
        ("date_trunc('hour',", "2025-10-26T01:30:00Z", "2025-10-26T01:00:00Z"),
    ] {
        let sql = format!("SELECT {bucket} {}) AT TIME ZONE 'UTC'", azores(time));
        assert_eq!(store.rows(&sql).await, [began], "{sql}");
    }
}

#[tokio::test]
async fn times_are_rounded_down_before_1970_too_or_not_at_all() {
    const UNITS: [&str; 9] = ["microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "year"];
    let store = Store::new();
    let (early, late) = ("1969-12-31T23:59:59.999999999", "1969-12-31T23:59:58.5");
    for zone in ["", " AT TIME ZONE 'UTC'", " AT TIME ZONE 'Asia/Kolkata'"] {
        for (unit, time) in UNITS.iter().flat_map(|unit| [(unit, early), (unit, late)]) {
            let one = format!("(TIMESTAMP '{time}'{zone})");
            let sql = format!(
                "SELECT date_trunc('{unit}', {one}) > {one}, date_trunc('{unit}', {one}) = date_trunc('{unit}', t),
                        to_unixtime({one}) <= date_part('epoch', {one}), to_unixtime({one}) = to_unixtime(t)
                 FROM (SELECT {one} AS t FROM generate_series(1, 1) WHERE random() < 2) AS many"
            );
            assert_eq!(store.rows(&sql).await, ["false|true|true|true"], "{sql}");
        }
    }
    assert_eq!(store.rows(&format!("SELECT to_unixtime(TIMESTAMP '{late}')")).await, ["-2"]);
    // Of the first time of all, what begins before it cannot be said.
    let first = "arrow_cast(-9223372036854775808, 'Timestamp(Nanosecond, None)')";
    let many = format!("(SELECT {first} AS t FROM generate_series(1, 2) WHERE random() < 2) AS many");
    for unit in UNITS {
        for call in [
            format!("SELECT date_trunc('{unit}', {first})"),
            format!("SELECT date_trunc('{unit}', t) FROM {many}"),
            format!("SELECT time_bucket('1 {unit}', {first})"),
            format!("SELECT date_bin('1 {unit}', t) FROM {many}"),
        ] {
            let error = store.error(&call).await.to_string();
            assert!(["range", "held", "overflow"].iter().any(|part| error.contains(part)), "{call}: {error}");
        }
    }
}

/// Times that are equal have one text in UTC, whichever of them has a zone.
#[tokio::test]
async fn a_time_without_a_zone_is_of_utc_beside_one_that_has_a_zone() {
    let store = Store::new();
    for naive in ["TIMESTAMP '2024-01-01 12:00:00'", "CAST(s AS TIMESTAMP)"] {
        let zoned = format!("({naive} AT TIME ZONE 'Europe/Berlin')");
        let conditions = [
            (format!("{zoned} = {naive}"), false),
            (format!("{zoned} IS DISTINCT FROM {naive}"), true),
            (format!("{zoned} < {naive}"), true),
            (format!("{zoned} = TIMESTAMP '2024-01-01 11:00:00'"), true),
            (format!("TIMESTAMP '2024-01-01 11:00:00' = {zoned}"), true),
            (format!("{zoned} IN (TIMESTAMP '2024-01-01 11:00:00', TIMESTAMP '2024-01-02 11:00:00')"), true),
            (format!("{zoned} IN ({naive}, {naive} + INTERVAL '1 day')"), false),
            (format!("{zoned} BETWEEN TIMESTAMP '2024-01-01 11:00:00' AND TIMESTAMP '2024-01-01 11:30:00'"), true),
            (format!("nullif({zoned}, {naive}) IS NULL"), false),
            (format!("CASE {zoned} WHEN {naive} THEN false ELSE true END"), true),
            (format!("{naive} - {zoned} = INTERVAL '1 hour'"), true),
            (format!("coalesce(arrow_cast(NULL, 'Timestamp(ns, \"Asia/Tokyo\")'), {naive}) = {naive}"), true),
            (format!("greatest({zoned}, {naive}) = {naive}"), true),
            (format!("{zoned} IN (SELECT TIMESTAMP '2024-01-01 12:00:00')"), false),
        ];
        let both = format!("SELECT {zoned} AS t FROM one UNION ALL SELECT {naive} FROM one");
        let one = "WITH one AS (SELECT '2024-01-01 12:00:00' AS s)";
        for (rows, expected) in [
            (format!("SELECT count(*) FROM ({both}) WHERE t = TIMESTAMP '2024-01-01 12:00:00'"), "1"),
            (
                format!(
                    "SELECT count(*) FROM (SELECT {zoned} AS z FROM one) JOIN (SELECT {naive} AS n FROM one) ON z = n"
                ),
                "0",
            ),
        ] {
            assert_eq!(store.rows(&format!("{one} {rows}")).await, [expected], "{rows}");
        }
        for (condition, holds) in conditions {
            let where_it_holds =
                format!("SELECT count(*) = 1 FROM (VALUES ('2024-01-01 12:00:00')) AS one(s) WHERE {condition}");
            assert_eq!(store.rows(&where_it_holds).await, [holds.to_string()], "{where_it_holds}");
            // A subquery is no part of an answer's column.
            if !condition.contains("SELECT") {
                let shown = format!("SELECT {condition} FROM (VALUES ('2024-01-01 12:00:00')) AS one(s)");
                assert_eq!(store.rows(&shown).await, [holds.to_string()], "{shown}");
            }
        }
    }
}

/// What reads texts says the same of a column as of a constant, and rounds down.
#[tokio::test]
async fn texts_are_read_as_times_wherever_they_stand() {
    let store = Store::new();
    for (call, expected) in [
        ("to_timestamp(s)", "1969-12-31T23:59:58.500000001"),
        ("to_timestamp_nanos(s)", "1969-12-31T23:59:58.500000001"),
        ("to_timestamp_micros(s)", "1969-12-31T23:59:58.500"),
        ("to_timestamp_millis(s)", "1969-12-31T23:59:58.500"),
        ("to_timestamp_seconds(s)", "1969-12-31T23:59:58"),
        ("to_timestamp_seconds(s, '%Y-%m-%dT%H:%M:%S%.f')", "1969-12-31T23:59:58"),
        ("to_unixtime(s)", "-2"),
    ] {
        let text = "1969-12-31T23:59:58.500000001";
        let of_column = format!("SELECT {call} FROM (VALUES ('{text}')) AS v(s)");
        let of_constant = format!("SELECT {}", call.replace("(s", &format!("('{text}'")));
        for sql in [of_column, of_constant] {
            let found = store.rows(&sql).await;
            assert_eq!(found[0].trim_end_matches('Z'), expected, "{sql}");
        }
    }
}

/// How long an interval is counts, not what it is made of.
#[tokio::test]
async fn intervals_are_compared_by_their_length() {
    let store = Store::new();
    for (condition, holds) in [
        ("{1 day} = {24 hours}", true),
        ("{30 hours} > {1 day}", true),
        ("{1 month} = {30 days}", true),
        ("{40 days} > {1 month}", true),
        ("{-25 hours} < {-1 day}", true),
        ("{1 day} IS DISTINCT FROM {24 hours}", false),
        ("{36 hours} BETWEEN {1 day} AND {2 days}", true),
        ("{48 hours} IN ({1 day}, {2 days})", true),
        ("CASE {24 hours} WHEN {1 day} THEN true ELSE false END", true),
        ("TIMESTAMP '2024-01-03 00:00:00' - TIMESTAMP '2024-01-01 00:00:00' > {1 day}", true),
        ("now() - TIMESTAMP '1970-01-01 00:00:00' < {1 day}", false),
    ] {
        let condition = condition.replace('{', "INTERVAL '").replace('}', "'");
        let sql = format!("SELECT {condition}");
        assert_eq!(store.rows(&sql).await, [holds.to_string()], "{sql}");
    }
    let shortest = "SELECT s FROM (VALUES ('30 hours'), ('1 day'), ('23 hours')) AS v(s) \
                    WHERE CAST(s AS INTERVAL) <= INTERVAL '1 day' ORDER BY s";
    assert_eq!(store.rows(shortest).await, ["1 day", "23 hours"]);
}

/// A condition on the year of a time is not a range of times that cannot be held, and not of UTC in another zone.
#[tokio::test]
async fn a_condition_on_the_year_is_what_the_function_says() {
    let store = Store::new();
    let rows = "(VALUES (TIMESTAMP '2023-12-31 23:30:00'), (TIMESTAMP '1969-12-31 23:30:00'), (NULL)) AS v(n)";
    for time in [
        "arrow_cast(n, 'Timestamp(ns, \"UTC\")')",
        "n",
        "arrow_cast(n, 'Timestamp(ns, \"UTC\")') AT TIME ZONE 'Europe/Berlin'",
    ] {
        for operator in ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM"] {
            for year in [-5, 2, 1500, 1677, 1678, 1969, 1970, 2023, 2024, 2261, 2262, 2263, 3000, 300_000] {
                let condition = format!("date_part('year', t) {operator} {year}");
                let from = format!("FROM (SELECT {time} AS t FROM {rows}) AS s");
                let met = store.rows(&format!("SELECT count(*) {from} WHERE {condition}")).await;
                let counted = store.rows(&format!("SELECT count(*) FILTER (WHERE y {operator} {year}) FROM (SELECT date_part('year', t) AS y {from} LIMIT 9) AS c")).await;
                assert_eq!(met, counted, "{time}: {condition}");
            }
        }
    }
}

#[tokio::test]
async fn buckets_have_a_width() {
    let store = Store::new();
    for interval in ["-1 hour", "-1 day", "1 day -25 hours", "-1 month", "0 hours"] {
        for function in ["time_bucket", "date_bin"] {
            let sql = format!("SELECT {function}(INTERVAL '{interval}', TIMESTAMP '2025-01-01 10:20:00')");
            assert_eq!(store.error(&sql).await.kind(), crate::ErrorKind::InvalidInput, "{sql}");
        }
    }
}

#[tokio::test]
async fn years_and_months_are_those_of_any_operator() {
    let store = Store::new();
    store.put("db", TableBuilder::new("m").part(File, vec![(1_577_836_800_000_000_000, vec![("x", Integer(1))])]));
    for year in ["extract(year FROM time)", "date_part('year', time)", "extract('year' FROM time)"] {
        for condition in [
            "< 9999",
            "< 3000",
            "> 0",
            "<> 0",
            ">= 1677",
            "<= 2262",
            "BETWEEN 0 AND 9999",
            "IS DISTINCT FROM 9999",
            "= 2020",
            "IN (0, 2020)",
            "NOT IN (0, 9999)",
        ] {
            let sql =
                format!("SELECT count(*), count(*) FILTER (WHERE {year} {condition}) FROM m WHERE {year} {condition}");
            assert_eq!(store.rows(&sql).await, ["1|1"], "{sql}");
        }
    }
}

#[tokio::test]
async fn quantiles_are_exact() {
    use super::fake::{
        Cell::{Float, Tag},
        Home::{Buffer, File},
        TableBuilder,
    };
    let store = Store::new();
    let row = |host, n: i64| (n, vec![("host", Tag(host)), ("v", Float(n as f64 / 2.0))]);
    let file = (0..700).map(|n| row("a", n)).collect();
    store.put("db", TableBuilder::new("m").part(File, file).part(Buffer, (700..1_000).map(|n| row("a", n)).collect()));
    let two = "(VALUES (0.0), (1000000000.0)) t(v)";
    let cases = [
        (format!("SELECT quantile_cont(v, 0.1234567) FROM {two}"), vec!["123456700.0"]),
        (format!("SELECT percentile_cont(0.1234567) WITHIN GROUP (ORDER BY v DESC) FROM {two}"), vec!["876543300.0"]),
        (format!("SELECT percentile_cont(DISTINCT v, 0.1234567) FROM {two}"), vec!["123456700.0"]),
        (format!("SELECT quantile_cont(v, 0), quantile_cont(v, 1), quantile_cont(v, 0.5) FROM {two}"), vec!["0.0|1000000000.0|500000000.0"]),
        (format!("SELECT arrow_typeof(quantile_cont(v::REAL, 0.25)), quantile_cont(v::REAL, 0.25) FROM {two}"), vec!["Float32|250000000.0"]),
        ("SELECT percentile_cont(v, 0.95), quantile_cont((v * 2)::BIGINT, 0.9990234375) FROM m".to_owned(), vec!["474.525|998.0244140625"]),
        ("SELECT host, percentile_cont(v, 0.95) FROM m GROUP BY host".to_owned(), vec!["a|474.525"]),
        ("SELECT quantile_cont(v, 0.5), quantile_cont(NULL, 0.5) FROM m WHERE v > 1000".to_owned(), vec!["|"]),
        (
            "SELECT quantile_cont(v, 0.1234567) OVER (ORDER BY time ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS q FROM m ORDER BY time LIMIT 3".to_owned(),
            vec!["0.0", "0.06172835", "0.56172835"],
        ),
        (
            "SELECT quantile_cont(DISTINCT v, 0.1234567) OVER (ORDER BY time ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS q FROM m ORDER BY time LIMIT 3".to_owned(),
            vec!["0.0", "0.06172835", "0.56172835"],
        ),
        ("SELECT quantile_cont(v, 0.5) FROM (VALUES (1.7e308), (-1.7e308)) t(v)".to_owned(), vec!["0.0"]),
        ("SELECT quantile_cont(v, 0.5) FROM (VALUES ('inf'::DOUBLE), ('inf'::DOUBLE)) t(v)".to_owned(), vec!["inf"]),
    ];
    for (sql, expected) in cases {
        assert_eq!(store.rows(&sql).await, expected, "{sql}");
    }
    for sql in ["quantile_cont(v, 1.5)", "quantile_cont(v, v)", "quantile_cont(v, NULL)"] {
        assert_eq!(store.error(&format!("SELECT {sql} FROM m")).await.kind(), crate::ErrorKind::InvalidInput, "{sql}");
    }
}
