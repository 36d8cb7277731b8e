//! Queries in queries that call what they compute as what they compute it of.

use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};

use super::fake::{
    Cell::{Integer, Tag},
    Home::{Buffer, File},
    Store, TableBuilder,
};
use crate::vfs::cases;

/// Of `a`, `b` and the number of rows.
type Compute = fn(i64, i64, i64) -> i64;

/// What a level may compute of the columns `a` and `b` below it.
const COMPUTED: [(&str, Compute); 10] = [
    ("a", |a, _, _| a),
    ("b", |_, b, _| b),
    ("a + 1", |a, _, _| a + 1),
    ("b + 1", |_, b, _| b + 1),
    ("a + b", |a, b, _| a + b),
    ("a - b", |a, b, _| a - b),
    ("a + a", |a, _, _| a + a),
    ("CASE WHEN a > b THEN a ELSE b END", |a, b, _| a.max(b)),
    ("a + count(*) OVER ()", |a, _, rows| a + rows),
    ("b - (SELECT count(*) FROM m)", |_, b, _| b - 5),
];

/// What may stand between two levels; the last leaves each row once.
const BETWEEN: [&str; 6] = [
    "",
    " WHERE a > -1000000",
    " LIMIT 1000",
    " ORDER BY b, a",
    " UNION ALL SELECT 1, 1 WHERE false",
    " GROUP BY a, b",
];

fn store() -> Store {
    let store = Store::new();
    let row = |i| (i, vec![("host", Tag("h")), ("x", Integer(i))]);
    store.put(
        "db",
        TableBuilder::new("m").part(File, (0..3).map(row).collect()).part(Buffer, (3..5).map(row).collect()),
    );
    store
}

#[test]
fn each_level_computes_what_it_says_of_the_one_below() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let store = store();
    let level = (0..COMPUTED.len(), 0..COMPUTED.len(), 0..BETWEEN.len());
    let chains = prop::collection::vec((level, 1..4_usize), 1..5);
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(cases(192)) });
    let outcome = runner.run(&chains, |chain| {
        let mut sql = "SELECT x AS a, x + 3 AS b FROM m".to_owned();
        let mut expected: Vec<(i64, i64)> = (0..5).map(|x| (x, x + 3)).collect();
        // The same level again and again is what optimizers like to take for one.
        for ((a, b, between), times) in chain {
            let ((of_a, a), (of_b, b), between) = (COMPUTED[a], COMPUTED[b], BETWEEN[between]);
            for _ in 0..times {
                sql = match between {
                    "" => format!("SELECT {of_a} AS a, {of_b} AS b FROM ({sql})"),
                    _ => format!("SELECT {of_a} AS a, {of_b} AS b FROM (SELECT a, b FROM ({sql}){between})"),
                };
                if between.starts_with(" GROUP") {
                    expected.sort_unstable();
                    expected.dedup();
                }
                let rows = i64::try_from(expected.len()).unwrap();
                expected = expected.iter().map(|&(x, y)| (a(x, y, rows), b(x, y, rows))).collect();
            }
        }
        expected.sort_unstable();
        let expected: Vec<String> = expected.iter().map(|(a, b)| format!("{a}|{b}")).collect();
        let found = runtime.block_on(store.rows(&format!("SELECT a, b FROM ({sql}) ORDER BY a, b")));
        prop_assert_eq!(found, expected, "{}", sql);
        Ok(())
    });
    outcome.unwrap();
}
