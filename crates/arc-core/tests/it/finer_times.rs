//! Points whose times are finer than the unit of their table, and points without a time: refused,
//! rounded or kept as their table says, by whichever door they come, and the same after a crash.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use arc_core::{ColumnTypes, Engine, Executed, FileTimeUnit, FinerTimes, WriteOptions, Written};
use arrow::{
    array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray},
    datatypes::{Float64Type, Int64Type},
};
use proptest::{prelude::*, test_runner::Config};
use serde_json::json;

use crate::support::{HandClock, cases, in_columns, query, quiet, shown, write};

const UNITS: [FileTimeUnit; 3] = [FileTimeUnit::Nanosecond, FileTimeUnit::Microsecond, FileTimeUnit::Millisecond];
const RULES: [FinerTimes; 3] = [FinerTimes::Keep, FinerTimes::Reject, FinerTimes::Round];

/// An engine with a table for each unit and each rule, named after them.
fn open(path: &Path, clock: &HandClock) -> Engine {
    let engine = quiet(path).clock(Arc::new(clock.clone())).open().unwrap();
    for (unit, rule) in UNITS.into_iter().flat_map(|unit| RULES.map(|rule| (unit, rule))) {
        let sql = format!(
            "CREATE TABLE IF NOT EXISTS {unit}_{rule} (time TIMESTAMP, host TEXT, x DOUBLE, PRIMARY KEY (host, time)) \
             WITH (time_unit = '{unit}', finer_times = '{rule}')"
        );
        engine.execute("d", &sql).unwrap();
    }
    engine
}

/// What the points of a table have, by series and time.
type Rows = BTreeMap<(String, i64), f64>;

/// Returns the time that a table stores for a point, if it takes it.
fn stored(unit: FileTimeUnit, rule: FinerTimes, time: i64) -> Option<i64> {
    let unit = unit.nanoseconds();
    match rule {
        FinerTimes::Reject => Some(time).filter(|time| time % unit == 0),
        // At the very beginning there is no whole unit before a time.
        FinerTimes::Round => {
            Some(time.div_euclid(unit).checked_mul(unit).unwrap_or_else(|| i64::MIN - i64::MIN % unit))
        }
        _ => Some(time),
    }
}

fn rows(engine: &Engine, table: &str) -> Rows {
    let sql = format!("SELECT host, CAST(time AS BIGINT) AS t, x FROM {table}");
    let batches = query(engine, "d", &sql).unwrap();
    let of = |batch: &RecordBatch| {
        let host = arrow::compute::cast(batch.column(0), &arrow::datatypes::DataType::Utf8).unwrap();
        let host = host.as_string::<i32>().iter().map(|host| host.unwrap_or_default().to_owned()).collect::<Vec<_>>();
        let times = batch.column(1).as_primitive::<Int64Type>().values().to_vec();
        let x = batch.column(2).as_primitive::<Float64Type>().values().to_vec();
        host.into_iter().zip(times).zip(x)
    };
    batches.iter().flat_map(of).collect()
}

/// What a write came to: the receipt, or why it was refused as a whole.
type Outcome = Result<Written, String>;

/// Writes points of one series with these times, of which some have none, and with their numbers.
type Door = fn(&Engine, &str, &[Option<i64>]) -> Outcome;

fn lines(table: &str, times: &[Option<i64>]) -> String {
    let line = |(n, time): (usize, &Option<i64>)| {
        format!("{table},host=a x={n}{}\n", time.map_or_else(String::new, |time| format!(" {time}")))
    };
    times.iter().enumerate().map(line).collect()
}

fn message_pack(engine: &Engine, body: &serde_json::Value) -> Outcome {
    let (body, options) = (rmp_serde::to_vec_named(body).unwrap(), WriteOptions::new().tags(["host"]));
    let options = options.precision(arc_core::Precision::Nanosecond);
    engine.submit_msgpack("d", body.into(), &options).and_then(|pending| pending.wait()).map_err(|e| e.to_string())
}

fn rows_of_message_pack(engine: &Engine, table: &str, times: &[Option<i64>]) -> Outcome {
    let row = |(n, time): (usize, &Option<i64>)| {
        let mut row = json!({"m": table, "tags": {"host": "a"}, "fields": {"x": n as f64}});
        if let Some(time) = time {
            row["t"] = json!(time);
        }
        row
    };
    message_pack(engine, &times.iter().enumerate().map(row).collect())
}

fn columns_of_message_pack(engine: &Engine, table: &str, times: &[Option<i64>]) -> Outcome {
    let x: Vec<f64> = (0..times.len()).map(|n| n as f64).collect();
    let mut columns = json!({"host": vec!["a"; x.len()], "x": x});
    if times.iter().all(Option::is_some) {
        columns["time"] = json!(times);
    }
    message_pack(engine, &json!([{"m": table, "columns": columns}]))
}

fn batches(engine: &Engine, table: &str, time: &ArrayRef) -> Outcome {
    // The last is so large that its rows stay where they lie.
    let x: Float64Array = (0..time.len()).map(|n| Some(n as f64)).collect();
    let host: ArrayRef = Arc::new(StringArray::from(vec!["a"; time.len()]));
    let batch = RecordBatch::try_from_iter([("time", Arc::clone(time)), ("host", host), ("x", Arc::new(x))]).unwrap();
    let cut = batch.num_rows() / 3;
    let batches = [batch.slice(0, cut), batch.slice(cut, batch.num_rows() - cut)];
    let options = WriteOptions::new().tags(["host"]);
    engine.submit_batches("d", table, &batches, &options).and_then(|pending| pending.wait()).map_err(|e| e.to_string())
}

fn timestamps(engine: &Engine, table: &str, times: &[Option<i64>]) -> Outcome {
    batches(engine, table, &(Arc::new(TimestampNanosecondArray::from(times.to_vec()).with_timezone("+02:00")) as _))
}

fn integers(engine: &Engine, table: &str, times: &[Option<i64>]) -> Outcome {
    batches(engine, table, &(Arc::new(Int64Array::from(times.to_vec())) as _))
}

fn many_timestamps(engine: &Engine, table: &str, times: &[Option<i64>]) -> Outcome {
    // Rows before the others, which these replace.
    let many = std::iter::repeat_n(times.first().copied().flatten(), 40_000).chain(times.iter().copied());
    let outcome = batches(engine, table, &(Arc::new(TimestampNanosecondArray::from_iter(many)) as _));
    // Back to the numbers of the others.
    outcome.and_then(|_| timestamps(engine, table, times))
}

fn statement(engine: &Engine, table: &str, times: &[Option<i64>]) -> Outcome {
    let row = |(n, time): (usize, &Option<i64>)| format!("(to_timestamp_nanos({}), 'a', {n})", time.unwrap());
    let rows: Vec<String> = times.iter().enumerate().map(row).collect();
    let sql = format!("INSERT INTO {table} (time, host, x) VALUES {}", rows.join(", "));
    match engine.execute("d", &sql) {
        Ok(Executed::Inserted(written)) => Ok(written),
        Ok(other) => Err(format!("{other:?}")),
        Err(error) => Err(error.to_string()),
    }
}

/// By name; whether a bad point is refused by itself; whether points may come without a time.
const DOORS: [(&str, Door, bool, bool); 9] = [
    ("lines", |e, t, times| e.write_lp("d", lines(t, times).as_bytes()).map_err(|e| e.to_string()), true, true),
    (
        "lines logged in columns",
        |e, t, times| e.write_lp("d", in_columns(&lines(t, times)).as_bytes()).map_err(|e| e.to_string()),
        true,
        true,
    ),
    (
        "lines of a known series",
        |e, t, times| {
            write(e, "d", &format!("{t},host=a x=0 1000000"));
            e.write_lp("d", lines(t, times).as_bytes()).map_err(|e| e.to_string())
        },
        true,
        true,
    ),
    ("rows of MessagePack", rows_of_message_pack, true, true),
    ("columns of MessagePack", columns_of_message_pack, false, true),
    ("timestamps", timestamps, false, false),
    ("integers", integers, false, false),
    ("many timestamps", many_timestamps, false, false),
    ("a statement", statement, false, false),
];

#[test]
fn each_door_refuses_rounds_or_keeps_finer_times() {
    let times = [1_000_000_i64, 1_500_000, -1, 2_000_500, 2_000_000].map(Some);
    for (name, door, is_by_point, _) in DOORS {
        let (dir, clock) = (tempfile::tempdir().unwrap(), HandClock::default());
        let mut engine = open(dir.path(), &clock);
        let mut expected = Vec::new();
        for (unit, rule) in UNITS.into_iter().flat_map(|unit| RULES.map(|rule| (unit, rule))) {
            let table = format!("{unit}_{rule}");
            let (mut points, mut refused) = (Rows::new(), Vec::new());
            for (n, time) in times.iter().flatten().enumerate() {
                match stored(unit, rule, *time) {
                    None => refused.push(n as u64 + 1),
                    Some(time) => drop(points.insert(("a".to_owned(), time), n as f64)),
                }
            }
            let outcome = door(&engine, &table, &times);
            let reason = format!("is finer than the time_unit {unit} of its table");
            match outcome {
                Ok(written) => {
                    assert!(is_by_point || refused.is_empty() || written.points == 0, "{name}, {table}: {written:?}");
                    if is_by_point {
                        let lines = written.rejected.iter().map(|rejected| rejected.line);
                        let first = if name.ends_with("in columns") { 1 } else { 0 };
                        assert_eq!(lines.map(|line| line - first).collect::<Vec<_>>(), refused, "{name}, {table}");
                    }
                    assert!(written.rejected.iter().all(|rejected| rejected.reason.contains(&reason)), "{written:?}");
                }
                Err(error) => {
                    assert!(!is_by_point && !refused.is_empty(), "{name}, {table}: {error}");
                    assert!(error.contains(&reason) && error.contains("row "), "{name}, {table}: {error}");
                }
            }
            if !is_by_point && !refused.is_empty() {
                points.clear();
            }
            assert_eq!(rows(&engine, &table), points, "{name}, {table}");
            expected.push((table, points));
        }
        for flushed in [false, true] {
            drop(engine);
            engine = open(dir.path(), &clock);
            for (table, points) in &expected {
                assert_eq!(rows(&engine, table), *points, "{name}, {table}, flushed: {flushed}");
            }
            engine.flush().unwrap();
        }
        assert!(engine.verify().unwrap().is_clean());
    }
}

#[test]
fn points_without_a_time_get_whole_units_of_their_own() {
    for (name, door, ..) in DOORS.into_iter().filter(|door| door.3) {
        let (dir, clock) = (tempfile::tempdir().unwrap(), HandClock::default());
        let mut engine = open(dir.path(), &clock);
        let now = 1_767_225_600_000_000_123;
        clock.set(now);
        let mut expected = Vec::new();
        for (unit, rule) in UNITS.into_iter().flat_map(|unit| RULES.map(|rule| (unit, rule))) {
            let table = format!("{unit}_{rule}");
            for _ in 0..3 {
                let written = door(&engine, &table, &[None; 5]).unwrap();
                assert_eq!((written.points, written.rejected_points), (5, 0), "{name}, {table}");
            }
            let found = rows(&engine, &table);
            let times: Vec<i64> = found.keys().map(|(_, time)| *time).filter(|time| *time >= now).collect();
            // None of one request replaces one of another.
            assert_eq!(times.len(), 15, "{name}, {table}: {times:?}");
            assert!(times.iter().all(|time| time % unit.nanoseconds() == 0), "{name}, {table}: {times:?}");
            expected.push((table, found));
        }
        drop(engine);
        engine = open(dir.path(), &clock);
        for (table, found) in &expected {
            assert_eq!(rows(&engine, table), *found, "{name}, {table}");
        }
        // Not far ahead of the clock: a unit for each point.
        let ahead = expected.iter().flat_map(|(_, found)| found.keys().map(|(_, time)| time - now)).max().unwrap();
        assert!(ahead < 60 * 1_000_000, "{name}: {ahead}");
    }
}

#[test]
fn a_write_that_is_sent_again_is_the_same_write() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), HandClock::default());
    let engine = open(dir.path(), &clock);
    clock.set(5_000_001);
    let body = "us_round,host=a x=1 1500\nms_reject,host=a x=2\nms_reject,host=a x=3 1500\nns_keep,host=a x=4";
    let send = |engine: &Engine| {
        let options = WriteOptions::new().idempotency_key("k");
        engine.submit_lp("d", body.into(), &options).unwrap().wait().unwrap()
    };
    let first = send(&engine);
    let found = |engine: &Engine| ["us_round", "ms_reject", "ns_keep"].map(|table| rows(engine, table));
    let before = found(&engine);
    assert_eq!((first.points, first.rejected_points, first.replayed), (3, 1, false));
    clock.set(9_000_001);
    let again = send(&engine);
    assert_eq!((again.points, again.rejected, again.replayed), (3, first.rejected.clone(), true));
    drop(engine);
    let engine = open(dir.path(), &clock);
    assert!(send(&engine).replayed);
    assert_eq!(found(&engine), before);
}

/// Lines of a request: the table, the series, and the time if there is one; or a bad one.
#[derive(Debug, Clone)]
enum Line {
    Point(usize, u8, Option<i64>),
    Bad,
}

fn line() -> impl Strategy<Value = Line> {
    let time =
        prop_oneof![Just(None), (-5_000_i64..5_000).prop_map(|time| Some(time * 500)), any::<i64>().prop_map(Some)];
    let point = (0..9_usize, 0..3_u8, time).prop_map(|(table, series, time)| Line::Point(table, series, time));
    prop_oneof![9 => point, 1 => Just(Line::Bad)]
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::with_cases(cases(48)) })]

    /// Whatever comes in whatever requests: what is acknowledged is there, as its table says it, and
    /// the same after a crash.
    #[test]
    fn requests_of_any_tables_are_read_back_as_they_were_acknowledged(
        requests in prop::collection::vec(prop::collection::vec(line(), 1..40), 1..6),
    ) {
        let (dir, clock) = (tempfile::tempdir().unwrap(), HandClock::default());
        let tables: Vec<_> = UNITS.into_iter().flat_map(|unit| RULES.map(|rule| (unit, rule))).collect();
        let mut engine = open(dir.path(), &clock);
        let (mut timed, mut untimed) = (vec![Rows::new(); 9], vec![0; 9]);
        // Later than all times that the lines say, which are before 1970 or far from it.
        let now = 1_767_225_600_000_000_999;
        clock.set(now);
        let mut x = 0.0;
        for request in &requests {
            let mut body = String::new();
            let mut bad = Vec::new();
            for (number, line) in request.iter().enumerate() {
                let Line::Point(at, series, time) = line else {
                    body += "bad\n";
                    bad.push(number as u64 + 1);
                    continue;
                };
                x += 1.0;
                let (unit, rule) = tables[*at];
                let suffix = time.map_or_else(String::new, |time| format!(" {time}"));
                body += &format!("{unit}_{rule},host=h{series} x={x}{suffix}\n");
                let Some(time) = time else {
                    untimed[*at] += 1;
                    continue;
                };
                match stored(unit, rule, *time) {
                    None => bad.push(number as u64 + 1),
                    Some(time) => drop(timed[*at].insert((format!("h{series}"), time), x)),
                }
            }
            let written = engine.write_lp("d", body.as_bytes()).unwrap();
            let found: Vec<u64> = written.rejected.iter().map(|rejected| rejected.line).collect();
            prop_assert_eq!(found, bad);
        }
        // Far times of lines are not near the clock.
        let is_untimed = |time: i64| (now..now + 1_000_000_000).contains(&time);
        let all = |engine: &Engine| -> Vec<Rows> {
            tables.iter().map(|(unit, rule)| rows(engine, &format!("{unit}_{rule}"))).collect()
        };
        let before = all(&engine);
        for (at, found) in before.iter().enumerate() {
            let (own, others): (Rows, Rows) = found.clone().into_iter().partition(|((_, time), _)| is_untimed(*time));
            prop_assert_eq!(own.len(), untimed[at]);
            prop_assert!(own.keys().all(|(_, time)| time % tables[at].0.nanoseconds() == 0));
            prop_assert_eq!(&others, &timed[at]);
        }
        drop(engine);
        engine = open(dir.path(), &clock);
        prop_assert_eq!(all(&engine), before);
        prop_assert!(engine.verify().unwrap().is_clean());
    }
}

#[test]
fn settings_of_table_database_and_engine_add_up() {
    let dir = tempfile::tempdir().unwrap();
    let types = ColumnTypes::new().time_unit(FileTimeUnit::Microsecond);
    let engine = quiet(dir.path()).column_types(types).open().unwrap();
    let write = |line: &str| engine.write_lp("d", line.as_bytes()).unwrap().rejected_points;
    assert_eq!((write("m x=1 1"), write("n x=1 1")), (0, 0));
    engine.set_column_types("d", None, &ColumnTypes::new().finer_times(FinerTimes::Reject)).unwrap();
    assert_eq!((write("m x=1 1"), write("n x=1 1"), write("new x=1 1"), write("new x=1 1000")), (1, 1, 1, 0));
    engine.set_column_types("d", Some("m"), &ColumnTypes::new().finer_times(FinerTimes::Keep)).unwrap();
    engine.set_column_types("d", Some("n"), &ColumnTypes::new().time_unit(FileTimeUnit::Nanosecond)).unwrap();
    assert_eq!((write("m x=1 1"), write("n x=1 1"), write("new x=1 1")), (0, 0, 1));
    engine.set_column_types("d", None, &ColumnTypes::new()).unwrap();
    assert_eq!(write("new x=1 1"), 0);
}

#[test]
fn columns_of_times_that_a_statement_makes_have_the_unit_of_the_table() {
    let dir = tempfile::tempdir().unwrap();
    let types = ColumnTypes::new().time_unit(FileTimeUnit::Microsecond);
    let engine = quiet(dir.path()).column_types(types).open().unwrap();
    let type_of = |table: &str| shown(&engine, "d", &format!("SELECT DISTINCT arrow_typeof(t) AS t FROM {table}"));
    for (table, columns, expected) in [
        ("of_engine", "time TIMESTAMP, t TIMESTAMP", "Timestamp(µs, \"UTC\")"),
        ("of_time", "time TIMESTAMP(3), t TIMESTAMP", "Timestamp(µs, \"UTC\")"),
        ("of_milliseconds", "time TIMESTAMP, t TIMESTAMP(3)", "Timestamp(ms, \"UTC\")"),
        ("of_its_own", "time TIMESTAMP(3), t TIMESTAMP(9)", "Timestamp(ns, \"UTC\")"),
    ] {
        engine.execute("d", &format!("CREATE TABLE {table} ({columns})")).unwrap();
        let insert = |value: &str| engine.execute("d", &format!("INSERT INTO {table} (time, t) VALUES (0, {value})"));
        for value in ["'2026-01-31T12:00:00.123Z'", "1000000", "TIMESTAMP '2026-01-31T12:00:00'"] {
            insert(value).unwrap();
        }
        assert!(type_of(table).contains(expected), "{table}: {}", type_of(table));
        // Nothing is cut off.
        for finer in ["'2026-01-31T12:00:00.1234567891Z'", "'2026-01-31T12:00:00.0000001Z'", "1"] {
            let fits = table == "of_its_own" && !finer.contains("91Z");
            assert_eq!(insert(finer).is_ok(), fits, "{table}: {finer}");
        }
    }
}

#[test]
fn rows_of_a_statement_without_tags_merge_where_their_times_come_to_be_one() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), HandClock::default());
    let engine = open(dir.path(), &clock);
    for sql in [
        "INSERT INTO us_round (time, x) VALUES (1500, 1), (1600, 2), (2000, 3)",
        "INSERT INTO ms_round (time, x) SELECT time, x FROM us_round",
        "INSERT INTO us_keep (time, x) VALUES (1500, 1), (1600, 2), (2000, 3)",
    ] {
        engine.execute("d", sql).unwrap();
    }
    let found = ["us_round", "ms_round", "us_keep"].map(|table| rows(&engine, table).into_values().collect::<Vec<_>>());
    assert_eq!(found, [vec![2.0, 3.0], vec![3.0], vec![1.0, 2.0, 3.0]]);
}
