//! The engine equals a map of points under random writes, writes that are sent again under their
//! keys, deletes, drops, flushes, merges of files and restarts.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use arc_core::{Comparison, Engine, Literal, Options, Predicate, WriteOptions};
use arrow::{
    array::{Array, AsArray},
    datatypes::{Float64Type, Int64Type},
};
use proptest::prelude::*;

use crate::support::{HandClock, cases, in_columns, number, query, quiet, write};

#[derive(Debug, Clone)]
enum Step {
    /// Points: host, time, and the fields x and y as (which, value).
    Write(Vec<(usize, i64, usize, i32)>),
    /// The same under a key of its own.
    Keyed(Vec<(usize, i64, usize, i32)>),
    /// One of the writes with a key, sent again.
    Again(prop::sample::Index),
    Delete(Delete),
    /// The table, or its whole database, and with it its keys.
    Drop(bool),
    Flush,
    /// Whether all days count as over.
    Compact(bool),
    Unpack,
    Restart,
    /// A backup of the running engine, restored to a directory of its own, which then goes on in
    /// place of the old one.
    Restore,
}

/// Points to delete: by host, 0 for none, and by day, from one up to another; with the opposite of
/// both.
#[derive(Debug, Clone)]
struct Delete {
    host: Option<usize>,
    days: Option<(i64, i64)>,
    negated: bool,
}

impl Delete {
    fn predicate(&self) -> Predicate {
        let host = self.host.map(|host| match name(host) {
            None => Predicate::IsNull { column: "host".into() },
            Some(host) => Predicate::In { column: "host".into(), values: vec![Literal::Text(host), "nobody".into()] },
        });
        let days = self.days.map(|(from, to)| {
            let time = |comparison, day| Predicate::compare("time", comparison, Literal::Time(time_ns(day)));
            Predicate::And(vec![time(Comparison::GreaterOrEqual, from), time(Comparison::Less, to)])
        });
        let all = Predicate::And(host.into_iter().chain(days).collect());
        if self.negated { Predicate::Not(Box::new(all)) } else { all }
    }

    /// Whether a point goes. In SQL a point without a host is neither on a list of hosts nor not on
    /// it.
    fn takes(&self, host: Option<&str>, time: i64) -> bool {
        let of_host = match self.host.map(name) {
            None => Some(true),
            Some(None) => Some(host.is_none()),
            Some(wanted) => host.map(|host| Some(host) == wanted.as_deref()),
        };
        let in_days = self.days.is_none_or(|(from, to)| (time_ns(from)..time_ns(to)).contains(&time));
        let both = if in_days { of_host } else { Some(false) };
        both.is_some_and(|both| both != self.negated)
    }
}

fn name(host: usize) -> Option<String> {
    host.checked_sub(1).map(|host| format!("h{host}"))
}

fn time_ns(day: i64) -> i64 {
    day * 86_400_000_000_000 / 4
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let point = (0..4usize, 0..15i64, 0..3usize, 0..50i32);
    let delete =
        (prop::option::of(0..4usize), prop::option::weighted(0.8, (-1..15i64, 0..16i64)), prop::bool::weighted(0.2))
            .prop_map(|(host, days, negated)| Step::Delete(Delete { host, days, negated }));
    let points = || prop::collection::vec(point.clone(), 1..12);
    let step = prop_oneof![
        3 => points().prop_map(Step::Write),
        2 => points().prop_map(Step::Keyed),
        2 => any::<prop::sample::Index>().prop_map(Step::Again),
        2 => delete,
        1 => any::<bool>().prop_map(Step::Drop),
        2 => Just(Step::Flush),
        2 => prop::bool::weighted(0.3).prop_map(Step::Compact),
        1 => Just(Step::Unpack),
        1 => Just(Step::Restart),
        1 => Just(Step::Restore),
    ];
    prop::collection::vec(step, 1..20)
}

type Model = BTreeMap<(Option<String>, i64), (Option<f64>, Option<f64>)>;

fn apply(model: &mut Model, points: &[(usize, i64, usize, i32)]) -> String {
    let mut body = String::new();
    for (host, day, fields, value) in points {
        let (host, time) = (name(*host), time_ns(*day));
        let tag = host.as_ref().map(|h| format!(",host={h}")).unwrap_or_default();
        let slot = model.entry((host, time)).or_default();
        let value = f64::from(*value);
        let text = match fields {
            0 => format!("x={value}"),
            1 => format!("y={value}"),
            _ => format!("x={value},y={value}"),
        };
        if *fields != 1 {
            slot.0 = Some(value);
        }
        if *fields != 0 {
            slot.1 = Some(value);
        }
        body.push_str(&format!("m{tag} {text} {time}\n"));
    }
    body
}

/// Has every other write logged in columns.
fn logged_as(step: usize, lines: String) -> String {
    if step.is_multiple_of(2) { in_columns(&lines) } else { lines }
}

/// Makes the table with all of its columns, so that every query plans.
fn begin(engine: &Engine) -> Model {
    write(engine, "d", "m,host=h0 x=0,y=0 -1");
    Model::from([((Some("h0".into()), -1), (Some(0.0), Some(0.0)))])
}

/// Sends a write under a key; returns whether it had been stored before.
fn send(engine: &Engine, key: usize, body: &str) -> bool {
    let options = WriteOptions::new().idempotency_key(key.to_string());
    let written = engine.submit_lp("d", body.to_owned().into(), &options).unwrap().wait().unwrap();
    assert_eq!(written.points, body.lines().filter(|line| !line.starts_with('#')).count() as u64);
    written.replayed
}

const COLUMNS: &str = "CAST(host AS VARCHAR) AS host, CAST(time AS BIGINT) AS t, x, y";

fn stored(engine: &Engine) -> Model {
    asked(engine, &format!("SELECT {COLUMNS} FROM m"))
}

/// Asks for the newest rows, which are looked for in another way than all rows.
fn check_newest(engine: &Engine, model: &Model) -> Result<(), TestCaseError> {
    let by_host = "row_number() OVER (PARTITION BY host ORDER BY time DESC)";
    for (condition, from) in [("true", i64::MIN), ("time >= '1970-01-01T00:00:00.000000003Z'", 3)] {
        let sql = format!("SELECT {COLUMNS} FROM (SELECT *, {by_host} AS n FROM m WHERE {condition}) WHERE n = 1");
        // A map is in order of time within each host.
        let newest: BTreeMap<_, _> =
            model.iter().filter(|((_, time), _)| *time >= from).map(|(k, v)| (&k.0, (k, v))).collect();
        let expected: Model = newest.into_values().map(|(key, row)| (key.clone(), *row)).collect();
        prop_assert_eq!(asked(engine, &sql), expected, "{}", condition);
    }
    let newest = "SELECT * FROM m ORDER BY time DESC, host NULLS FIRST LIMIT 2";
    let sql = format!("SELECT {COLUMNS} FROM ({newest})");
    let mut rows: Vec<_> = model.iter().collect();
    rows.sort_by_key(|((host, time), _)| (std::cmp::Reverse(*time), host.clone()));
    let expected: Model = rows.into_iter().take(2).map(|(key, row)| (key.clone(), *row)).collect();
    prop_assert_eq!(asked(engine, &sql), expected);
    Ok(())
}

fn asked(engine: &Engine, sql: &str) -> Model {
    let mut stored = Model::new();
    for batch in query(engine, "d", sql).unwrap() {
        let host = batch.column(0).as_string::<i32>();
        let time = batch.column(1).as_primitive::<Int64Type>();
        let field = |column: usize, row: usize| {
            let column = batch.column(column).as_primitive::<Float64Type>();
            column.is_valid(row).then(|| column.value(row))
        };
        for row in 0..batch.num_rows() {
            let key = (host.is_valid(row).then(|| host.value(row).to_owned()), time.value(row));
            assert!(stored.insert(key, (field(2, row), field(3, row))).is_none(), "a point came twice");
        }
    }
    stored
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(24), ..ProptestConfig::default() })]

    #[test]
    fn the_engine_equals_a_map_of_points(steps in steps(), pack_tables in 1..3usize) {
        let dir = tempfile::tempdir().unwrap();
        let clock = HandClock::default();
        let mut path = dir.path().join("0");
        let open = |path: &Path| {
            let mut options = Options::default();
            options.compaction_files = 2;
            (options.compaction_grace, options.history) = (Duration::ZERO, Duration::ZERO);
            // From one table on: always in packs; else never.
            options.pack_tables = pack_tables;
            // The clock jumps.
            options.idempotency_window = Duration::MAX;
            options.compaction = false;
            options.flush_after = Duration::from_secs(1 << 30);
            quiet(path).options(options).clock(Arc::new(clock.clone())).open().unwrap()
        };
        let mut engine = open(&path);
        let mut model = begin(&engine);
        let mut sent: Vec<(usize, String)> = Vec::new();
        for (key, step) in steps.into_iter().enumerate() {
            match step {
                Step::Write(points) => {
                    let body = logged_as(key, apply(&mut model, &points));
                    prop_assert_eq!(engine.write_lp("d", body.as_bytes()).unwrap().points, points.len() as u64);
                }
                Step::Keyed(points) => {
                    let body = logged_as(key, apply(&mut model, &points));
                    prop_assert!(!send(&engine, key, &body));
                    sent.push((key, body));
                }
                Step::Again(which) => {
                    if !sent.is_empty() {
                        let (key, body) = which.get(&sent);
                        prop_assert!(send(&engine, *key, body), "it has a receipt, whatever became of its points");
                    }
                }
                Step::Drop(whole) => {
                    if whole {
                        engine.drop_database("d").unwrap();
                        let last = sent.pop();
                        sent.clear();
                        if let Some((key, body)) = last {
                            // The database is another one now, with keys of its own.
                            prop_assert!(!send(&engine, key, &body));
                            engine.drop_table("d", "m").unwrap();
                            sent.push((key, body));
                        }
                    } else {
                        engine.drop_table("d", "m").unwrap();
                    }
                    model = begin(&engine);
                }
                Step::Delete(delete) => {
                    engine.delete("d", "m", &delete.predicate()).unwrap();
                    model.retain(|(host, time), _| !delete.takes(host.as_deref(), *time));
                }
                Step::Flush => {
                    engine.flush().unwrap();
                    check_newest(&engine, &model)?;
                }
                Step::Compact(is_over) => {
                    clock.set(if is_over { i64::MAX } else { 0 });
                    engine.compact().unwrap();
                }
                Step::Unpack => {
                    engine.unpack().unwrap();
                    prop_assert!(engine.data_files("d", "m").unwrap().iter().all(|file| file.packed().is_none()));
                }
                Step::Restart => {
                    drop(engine);
                    let report = arc_core::verify(&path).unwrap();
                    prop_assert!(report.is_clean(), "{}", report);
                    engine = open(&path);
                }
                Step::Restore => {
                    let (copy, flushes) = (dir.path().join("copy"), engine.stats().flushes);
                    engine.backup(&copy).unwrap();
                    prop_assert_eq!(engine.stats().flushes, flushes, "nothing is flushed for it");
                    let restored = dir.path().join(format!("{}", key + 1));
                    arc_core::restore(&copy, &restored).unwrap();
                    let report = arc_core::verify(&restored).unwrap();
                    prop_assert!(report.findings.is_empty(), "{}", report);
                    std::fs::remove_dir_all(&copy).unwrap();
                    path = restored;
                    engine = open(&path);
                }
            }
        }
        prop_assert_eq!(stored(&engine), model.clone());
        check_newest(&engine, &model)?;
        prop_assert_eq!(number(&engine, "d", "SELECT count(*) FROM m"), i64::try_from(model.len()).unwrap());
        let with_x = model.values().filter(|(x, _)| x.is_some_and(|x| x >= 25.0)).count();
        prop_assert_eq!(number(&engine, "d", "SELECT count(*) FROM m WHERE x >= 25"), i64::try_from(with_x).unwrap());
        let times = || model.keys().map(|(_, time)| *time);
        for (sql, expected) in [("min", times().min()), ("max", times().max())] {
            let sql = format!("SELECT coalesce(CAST({sql}(time) AS BIGINT), -9) FROM m");
            prop_assert_eq!(number(&engine, "d", &sql), expected.unwrap_or(-9));
        }
        // What is deleted leaves the disk, too.
        clock.set(i64::MAX);
        engine.flush().unwrap();
        engine.compact().unwrap();
        prop_assert_eq!(engine.view("d", "m").unwrap().tombstones.len(), 0);
        check_newest(&engine, &model)?;
        prop_assert_eq!(stored(&engine), model.clone());
        let stored_rows: u64 = engine.data_files("d", "m").unwrap().iter().map(|file| file.rows).sum();
        prop_assert_eq!(stored_rows, model.len() as u64);
        let report = engine.verify().unwrap();
        prop_assert!(report.findings.is_empty(), "{}", report);
    }
}
