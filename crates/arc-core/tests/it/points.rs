//! The process dies at each named step of commit, flush, compaction, drop and recovery: what it had
//! acknowledged is there, exactly once, and what it had dropped is not.

use std::{collections::BTreeSet, path::Path, time::Duration};

use arc_core::{Engine, Options};
use arrow::{array::AsArray, datatypes::Int64Type};

use crate::{
    deaths::{POINTS, at_each, directory, say},
    support::{check_crashed, query, quiet},
};

const MORE_POINTS: [&str; 9] = [
    "compaction::files_written",
    "compaction::committed",
    "compaction::swapped",
    "compaction::removed",
    "retired::moved",
    "retention::committed",
    "retention::swapped",
    "drop::applied",
    "drop::finished",
];
/// Numbers of points in the table that is dropped, and in the database, begin here.
const TABLE: i64 = 100;
const DATABASE: i64 = 200;

/// Every flush gives files to merge, and what is replaced goes at once.
fn open(directory: &Path) -> Engine {
    let mut options = Options::default();
    options.compaction_quiet = Duration::ZERO;
    (options.compaction_grace, options.history) = (Duration::ZERO, Duration::ZERO);
    let builder = quiet(directory).options(options).flush_after(Duration::from_secs(1 << 30));
    builder.compaction(false).open().unwrap()
}

/// Not a test by itself: writes, flushes, compacts and drops until it dies, and says which points
/// were acknowledged, and before which one all were dropped.
#[test]
#[ignore = "started by the test below"]
fn the_process_that_dies() {
    let Some(directory) = directory() else { return };
    let engine = open(&directory);
    let store = |database: &str, line: String, n: i64| {
        assert_eq!(engine.write_lp(database, line.as_bytes()).unwrap().points, 1);
        say("acknowledged", n);
    };
    for n in 0..12 {
        // Every other point is late for its series, and every third brings a column.
        let time = if n % 2 == 0 { n } else { n - 100 };
        store("d", format!("m,client=a n={n}i,f{}=1 {time}", n / 3), n);
        // Half of what is dropped was flushed before.
        store("d", format!("dropped,client=a n={}i {n}", TABLE + n), TABLE + n);
        store("e", format!("m,client=a n={}i {n}", DATABASE + n), DATABASE + n);
        if n % 4 == 3 {
            assert_eq!(engine.write_lp("d", b"gone x=1 1").unwrap().points, 1);
            engine.set_retention("d", Some("gone"), Some(Duration::from_secs(1))).unwrap();
            engine.flush().unwrap();
            engine.compact().unwrap();
        }
        if n % 3 == 2 {
            say("dropping", TABLE + n + 1);
            engine.drop_table("d", "dropped").unwrap();
            say("dropped", TABLE + n + 1);
            say("dropping", DATABASE + n + 1);
            engine.drop_database("e").unwrap();
            say("dropped", DATABASE + n + 1);
        }
    }
}

/// The numbers from `first` on, up to where the next table's begin.
fn of_table(numbers: &BTreeSet<i64>, first: i64) -> BTreeSet<i64> {
    numbers.range(first..first + TABLE).copied().collect()
}

/// The numbers of the points in one table.
fn numbers(engine: &Engine, database: &str, table: &str) -> BTreeSet<i64> {
    let mut stored = BTreeSet::new();
    if engine.schema(database, table).is_err() {
        return stored;
    }
    for batch in query(engine, database, &format!("SELECT n FROM {table}")).unwrap() {
        for n in batch.column(0).as_primitive::<Int64Type>().values() {
            assert!(stored.insert(*n), "point {n} came twice");
        }
    }
    stored
}

/// The points of the table that stays, of the one that is dropped, and of the database that is.
fn stored(directory: &Path) -> [BTreeSet<i64>; 3] {
    let mut found = Default::default();
    let read = |engine: &Engine| {
        found = [("d", "m"), ("d", "dropped"), ("e", "m")].map(|(database, table)| numbers(engine, database, table));
    };
    check_crashed(directory, || open(directory), read);
    found
}

#[test]
fn after_a_death_at_any_step_acknowledged_points_are_there_once_and_dropped_ones_are_not() {
    let points = [&POINTS[..], &MORE_POINTS].concat();
    at_each("points::the_process_that_dies", &points, |directory, point, said| {
        let acknowledged = said.of("acknowledged");
        let found = stored(directory);
        for (found, first) in found.iter().zip([0, TABLE, DATABASE]) {
            let mut expected = of_table(&acknowledged, first);
            // A drop under way is done or not: nothing, or everything before it.
            let [begun, done] = ["dropping", "dropped"].map(|what| of_table(&said.of(what), first).last().copied());
            expected.retain(|n| done.is_none_or(|from| *n >= from));
            if begun > done && found.is_empty() {
                continue;
            }
            assert!(found.is_superset(&expected), "{point}: acknowledged {expected:?}, found {found:?}");
            // One point more may have been under way.
            assert!(found.len() <= expected.len() + 1, "{point}: acknowledged {expected:?}, found {found:?}");
        }
        assert_eq!(stored(directory), found, "{point}: a second restart changes nothing");
    });
}
