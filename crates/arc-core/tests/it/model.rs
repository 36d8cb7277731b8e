//! The engine equals a map of points under random writes, flushes, merges of files and restarts.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use arc_core::Options;
use arrow::{
    array::{Array, AsArray},
    datatypes::{Float64Type, Int64Type},
};
use proptest::prelude::*;

use crate::support::{HandClock, number, query, quiet, write};

#[derive(Debug, Clone)]
enum Step {
    /// Points: host, time, and the fields x and y as (which, value).
    Write(Vec<(usize, i64, usize, i32)>),
    Flush,
    /// Whether all days count as over.
    Compact(bool),
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let point = (0..4usize, 0..15i64, 0..3usize, 0..50i32);
    let step = prop_oneof![
        4 => prop::collection::vec(point, 1..12).prop_map(Step::Write),
        2 => Just(Step::Flush),
        2 => prop::bool::weighted(0.3).prop_map(Step::Compact),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 1..14)
}

type Model = BTreeMap<(Option<String>, i64), (Option<f64>, Option<f64>)>;

fn apply(model: &mut Model, points: &[(usize, i64, usize, i32)]) -> String {
    let mut body = String::new();
    for (host, day, fields, value) in points {
        let time = day * 86_400_000_000_000 / 4;
        let host = host.checked_sub(1).map(|h| format!("h{h}"));
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

fn stored(engine: &arc_core::Engine) -> Model {
    let sql = "SELECT CAST(host AS VARCHAR) AS host, CAST(time AS BIGINT) AS t, x, y FROM m";
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
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_equals_a_map_of_points(steps in steps()) {
        let dir = tempfile::tempdir().unwrap();
        let clock = HandClock::default();
        let open = || {
            let mut options = Options::default();
            options.compaction_files = 2;
            options.compaction_grace = Duration::ZERO;
            options.compaction = false;
            options.flush_after = Duration::from_secs(1 << 30);
            quiet(dir.path()).options(options).clock(Arc::new(clock.clone())).open().unwrap()
        };
        let mut engine = open();
        // All columns exist from the start, so that every query plans.
        write(&engine, "d", "m,host=h0 x=0,y=0 -1");
        let mut model = Model::new();
        model.insert((Some("h0".into()), -1), (Some(0.0), Some(0.0)));
        for step in steps {
            match step {
                Step::Write(points) => {
                    let body = apply(&mut model, &points);
                    prop_assert_eq!(engine.write_lp("d", body.as_bytes()).unwrap().points, points.len() as u64);
                }
                Step::Flush => drop(engine.flush().unwrap()),
                Step::Compact(is_over) => {
                    clock.set(if is_over { i64::MAX } else { 0 });
                    engine.compact().unwrap();
                }
                Step::Restart => {
                    drop(engine);
                    let report = arc_core::verify(dir.path()).unwrap();
                    prop_assert!(report.findings.is_empty(), "{}", report);
                    engine = open();
                }
            }
        }
        prop_assert_eq!(number(&engine, "d", "SELECT count(*) FROM m"), i64::try_from(model.len()).unwrap());
        let with_x = model.values().filter(|(x, _)| x.is_some_and(|x| x >= 25.0)).count();
        prop_assert_eq!(number(&engine, "d", "SELECT count(*) FROM m WHERE x >= 25"), i64::try_from(with_x).unwrap());
        prop_assert_eq!(stored(&engine), model);
        let report = engine.verify().unwrap();
        prop_assert!(report.findings.is_empty(), "{}", report);
    }
}
