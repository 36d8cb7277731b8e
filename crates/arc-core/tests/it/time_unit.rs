//! Data files whose times are in microseconds or milliseconds: answers are those of a directory of
//! nanoseconds, whatever happened to either.

use std::{
    fs::File,
    path::{Path, PathBuf},
    time::Duration,
};

use arc_core::{ColumnTypes, Comparison, Engine, FileTimeUnit, Literal, Options, Predicate};
use parquet::{
    basic::{LogicalType, TimeUnit},
    file::reader::{FileReader, SerializedFileReader},
};

use crate::support::{shown, write};

const SECOND: i64 = 1_000_000_000;
/// 2026-01-01T00:00:00Z.
const START: i64 = 1_767_225_600 * SECOND;

/// An engine that flushes and merges when told to, with files of their own, or in packs.
fn open(path: &Path, unit: FileTimeUnit, packs: bool) -> Engine {
    let mut options = Options::default();
    (options.compaction, options.compaction_files, options.history) = (false, 2, Duration::ZERO);
    (options.flush_after, options.column_types.time_unit) = (Duration::from_secs(1 << 30), Some(unit));
    options.compaction_quiet = Duration::ZERO;
    options.pack_bytes = if packs { options.pack_bytes } else { 0 };
    options.pack_tables = 1;
    Engine::builder(path).options(options).open().unwrap()
}

/// Returns the unit of the times of each Parquet file below a folder.
fn units(folder: &Path) -> Vec<&'static str> {
    let mut units = Vec::new();
    for path in std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            units.extend(self::units(&path));
        } else if path.extension().is_some_and(|ending| ending == "parquet") {
            units.push(unit_of(&path));
        }
    }
    units
}

fn unit_of(path: &PathBuf) -> &'static str {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let time = reader.metadata().file_metadata().schema_descr().column(0);
    match time.logical_type_ref() {
        Some(LogicalType::Timestamp(of)) if of.unit == TimeUnit::NANOS => "ns",
        Some(LogicalType::Timestamp(of)) if of.unit == TimeUnit::MICROS => "us",
        Some(LogicalType::Timestamp(of)) if of.unit == TimeUnit::MILLIS => "ms",
        _ => "another",
    }
}

/// Lines of 40 series over two days around 1970 and two of 2026, at whole multiples of `step_ns`.
fn lines(table: &str, rows: i64, offset: i64, step_ns: i64) -> String {
    let line = |n: i64| {
        let day = if n % 3 == 0 { 0 } else { START };
        // Near midnight, so that both days have rows.
        let time = day + (n - rows / 2) * 7 * step_ns + offset * step_ns;
        format!("{table},host=h{} x={n},y={}i {time}\n", n % 40, n % 17)
    };
    (0..rows).map(line).collect()
}

/// Questions whose answers depend on times, about each table.
fn questions(table: &str) -> Vec<String> {
    let at = |time: i64| format!("to_timestamp_nanos({time})");
    let mut asked: Vec<String> = [
        "SELECT count(*), min(time), max(time), sum(x) FROM t ",
        "SELECT * FROM t ORDER BY time, host LIMIT 7",
        "SELECT * FROM t ORDER BY time DESC, host LIMIT 7",
        "SELECT host, last_value(x ORDER BY time) AS x, max(time) FROM t GROUP BY host ORDER BY host",
        "SELECT date_bin(INTERVAL '1 second', time) AS s, count(*), avg(y) FROM t GROUP BY s ORDER BY s LIMIT 50",
        "SELECT time, x FROM t WHERE host = 'h3' ORDER BY time LIMIT 20",
        "SELECT DISTINCT time FROM t WHERE y = 3 ORDER BY time LIMIT 20",
        "SELECT extract(microsecond FROM time) AS m, count(*) FROM t GROUP BY m ORDER BY m LIMIT 20",
    ]
    .map(|sql| sql.replace("FROM t ", &format!("FROM {table} ")))
    .to_vec();
    // Bounds on a time, and between two.
    for bounds in [[(-1, 1), (-7_000_000, 7_000_001)], [(1, 6_999), (-500, 7_000_000_000)]] {
        for ((from, to), base) in bounds.into_iter().zip([0, START]) {
            let (from, to) = (at(base + from), at(base + to));
            let conditions = [
                format!("time >= {from} AND time < {to}"),
                format!("time > {from} AND time <= {to} AND host = 'h1'"),
                format!("time = {to} OR time = {from}"),
                format!("time <> {to} AND time NOT IN ({from}, {to}) AND x > 3"),
            ];
            let counts = conditions.map(|condition| format!("count(*) FILTER (WHERE {condition})")).join(", ");
            asked.push(format!("SELECT {counts} FROM {table}"));
            asked.push(format!(
                "SELECT count(*), min(time), max(time), sum(x) FROM {table} WHERE time >= {from} AND time < {to}"
            ));
            asked.push(format!("SELECT count(*), sum(x) FROM {table} WHERE time = {to} OR time = {from}"));
        }
    }
    asked
}

fn compare(engines: &[Engine], tables: &[&str], when: &str) {
    for question in tables.iter().flat_map(|table| questions(table)) {
        let answers: Vec<String> = engines.iter().map(|engine| shown(engine, "d", &question)).collect();
        assert!(!answers[0].starts_with("error"), "{question}: {}", answers[0]);
        for answer in &answers {
            assert_eq!(answer, &answers[0], "{when}: {question}");
        }
    }
    for engine in engines {
        let report = engine.verify().unwrap();
        assert!(report.is_clean(), "{when}: {report}");
    }
}

/// Merges all there is to merge, out of packs, too.
fn merge(engine: &Engine) {
    engine.compact().unwrap();
    engine.unpack().unwrap();
}

#[test]
fn answers_do_not_depend_on_the_unit_of_files() {
    use FileTimeUnit::{Microsecond, Millisecond, Nanosecond};
    for packs in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let all = [(Nanosecond, "ns"), (Microsecond, "us"), (Millisecond, "ms")];
        let open_all = || all.map(|(unit, name)| open(&dir.path().join(name), unit, packs));
        let mut engines = open_all();
        let tables = ["whole", "micro", "nano"];
        let steps = [1_000_000, 1_000, 1];
        let found = |table: &str| all.map(|(_, name)| units(&dir.path().join(name).join("data/d").join(table)));
        let send = |engines: &[Engine], rows: i64, offset: i64| {
            for (table, step) in tables.into_iter().zip(steps) {
                engines.iter().for_each(|engine| write(engine, "d", &lines(table, rows, offset, step)));
            }
        };
        send(&engines, 900, 0);
        engines.iter().for_each(|engine| drop(engine.flush().unwrap()));
        if !packs {
            compare(&engines, &["micro"], "in files");
        }
        // Over points that are there, and between them.
        send(&engines, 300, 0);
        send(&engines, 300, 3);
        engines.iter().for_each(|engine| drop(engine.flush().unwrap()));
        let old = Predicate::And(vec![
            Predicate::compare("host", Comparison::Equal, Literal::Text("h7".into())),
            Predicate::compare("time", Comparison::Less, Literal::Time(START)),
        ]);
        engines.iter().for_each(|engine| assert!(engine.delete("d", "micro", &old).is_ok()));
        if !packs {
            compare(&engines, &["micro"], "with late files and deletes");
        }
        engines.iter().for_each(merge);
        drop(engines);
        engines = open_all();
        compare(&engines, if packs { &["micro"] } else { &tables }, "merged and opened again");
        // Each file has the coarsest unit that was asked for and has all of its times.
        for (table, expected) in tables.into_iter().zip([["ns", "us", "ms"], ["ns", "us", "us"], ["ns", "ns", "ns"]]) {
            for (units, expected) in found(table).iter().zip(expected) {
                assert!(
                    !units.is_empty() && units.iter().all(|unit| *unit == expected),
                    "{table}: {units:?}, {expected}"
                );
            }
        }
    }
}

/// Returns the newest version of a manifest object.
fn newest_version(path: &Path) -> u32 {
    let objects =
        std::fs::read_dir(path.join("meta/0")).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
    objects.map(|bytes| u32::from_le_bytes(bytes[8..12].try_into().unwrap())).max().unwrap()
}

#[test]
fn builds_that_know_no_other_unit_refuse_such_directories_alone() {
    for (step, expected) in [(1_000, 7), (1, 2)] {
        let dir = tempfile::tempdir().unwrap();
        let engine = open(dir.path(), FileTimeUnit::Nanosecond, false);
        engine.create_database("d").unwrap();
        engine.set_column_types("d", None, &ColumnTypes::new().time_unit(FileTimeUnit::Microsecond)).unwrap();
        write(&engine, "d", &lines("cpu", 90, 1, step));
        engine.flush().unwrap();
        assert_eq!(newest_version(dir.path()), expected, "{step}");
    }
}

#[test]
fn a_merge_gives_files_of_before_the_unit_that_is_asked_for_now() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path(), FileTimeUnit::Nanosecond, false);
    let found = |table: &str| units(&dir.path().join("data/d").join(table));
    for (table, step) in [("micro", 1_000), ("nano", 1)] {
        write(&engine, "d", &lines(table, 90, 0, step));
    }
    engine.flush().unwrap();
    let expected = shown(&engine, "d", "SELECT * FROM micro ORDER BY time, host");
    let types = ColumnTypes::new().time_unit(FileTimeUnit::Millisecond);
    engine.set_column_types("d", None, &types).unwrap();
    engine.set_column_types("d", Some("micro"), &ColumnTypes::new().time_unit(FileTimeUnit::Microsecond)).unwrap();
    assert!(found("micro").iter().all(|unit| *unit == "ns"));
    for (table, step) in [("micro", 1_000), ("nano", 1_000_000)] {
        write(&engine, "d", &lines(table, 90, 0, step));
    }
    engine.flush().unwrap();
    let mut units = found("micro");
    units.sort_unstable();
    units.dedup();
    assert_eq!(units, ["ns", "us"]);
    merge(&engine);
    assert!(found("micro").iter().all(|unit| *unit == "us"), "{:?}", found("micro"));
    // The unit of its database does not have all of its times.
    assert!(found("nano").contains(&"ns"), "{:?}", found("nano"));
    assert_eq!(shown(&engine, "d", "SELECT * FROM micro ORDER BY time, host"), expected);
    assert!(engine.verify().unwrap().is_clean());
    // And back.
    engine.set_column_types("d", Some("micro"), &ColumnTypes::new().time_unit(FileTimeUnit::Nanosecond)).unwrap();
    write(&engine, "d", &lines("micro", 90, 0, 1_000));
    engine.flush().unwrap();
    merge(&engine);
    assert!(found("micro").iter().all(|unit| *unit == "ns"), "{:?}", found("micro"));
    assert_eq!(shown(&engine, "d", "SELECT * FROM micro ORDER BY time, host"), expected);
}
