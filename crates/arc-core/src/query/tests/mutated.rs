//! Statements with pieces missing, doubled and swapped: whatever the text, an answer or an error,
//! never a panic.

use std::time::Duration;

use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};

use super::fake::{
    Cell::{Float, Integer, Tag},
    Home::{File, LateBuffer},
    Store, TableBuilder,
};
use crate::{ErrorKind, Options};

const STATEMENTS: [&str; 16] = [
    "SELECT * FROM m WHERE host = 'a' AND x > 1 ORDER BY time DESC LIMIT 3",
    "SELECT host, avg(f), count(*) FILTER (WHERE x > 1) FROM m GROUP BY host HAVING count(*) > 0",
    "SELECT time_bucket(INTERVAL '1 hour', time) AS t, max(x) FROM m GROUP BY t ORDER BY t",
    "WITH a AS (SELECT * FROM m), b AS (SELECT x FROM a) SELECT * FROM b UNION ALL SELECT 1",
    "SELECT a.x, b.f FROM m a LEFT JOIN m b ON a.host = b.host AND a.time <= b.time",
    "SELECT CASE WHEN x > 1 THEN 'big' ELSE CAST(x AS VARCHAR) END || '!' FROM m",
    "SELECT x, lag(x) OVER (PARTITION BY host ORDER BY time ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM m",
    "SELECT * EXCLUDE (f) FROM m WHERE x IN (SELECT max(x) AS top FROM m)",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT sum(n) FROM r",
    "SELECT unnest([1, 2, 3]), struct(x, f), {'a': x}['a'], [x, 2][1] FROM m",
    "SELECT date_trunc('hour', time), extract(dow FROM time), time - INTERVAL '1 day' FROM m",
    "SELECT regexp_replace(host, '(a)', 'b'), host LIKE '%a_', substring(host, 1, 2), x % 2, -x FROM m",
    "EXPLAIN ANALYZE SELECT count(DISTINCT host) FROM m",
    "SHOW TABLES FROM db",
    "SHOW COLUMNS FROM m",
    "SELECT sum(value) FROM generate_series(1, 9) WHERE value NOT BETWEEN 2 AND 3",
];

/// Pieces that parsers trip over.
const PIECES: [&str; 24] = [
    "(", ")", "'", "\"", ",", ";", "--", "/*", "::", "[", "]", "{", "}", "NULL", "$1", "@@x", "0", "1e999", "INTERVAL",
    "*", ".", "SELECT", "\0", "é",
];

/// One change to a statement.
#[derive(Debug, Clone)]
pub(super) enum Edit {
    Delete { at: usize, len: usize },
    Double { at: usize, len: usize },
    Insert { at: usize, piece: &'static str },
    Swap { at: usize },
}

pub(super) fn edit() -> impl Strategy<Value = Edit> {
    let at = 0..200_usize;
    prop_oneof![
        (at.clone(), 1..6_usize).prop_map(|(at, len)| Edit::Delete { at, len }),
        (at.clone(), 1..6_usize).prop_map(|(at, len)| Edit::Double { at, len }),
        (at.clone(), prop::sample::select(PIECES.to_vec())).prop_map(|(at, piece)| Edit::Insert { at, piece }),
        at.prop_map(|at| Edit::Swap { at }),
    ]
}

/// Splits text into words, runs of blanks, and single signs.
pub(super) fn split(sql: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for c in sql.chars() {
        match pieces.last_mut() {
            Some(last) if c.is_alphanumeric() && last.ends_with(char::is_alphanumeric) => last.push(c),
            _ => pieces.push(c.to_string()),
        }
    }
    pieces
}

pub(super) fn apply(pieces: &mut Vec<String>, edit: &Edit) {
    let count = pieces.len();
    match *edit {
        Edit::Delete { at, len } if count > 0 => {
            let at = at % count;
            pieces.drain(at..(at + len).min(count));
        }
        Edit::Double { at, len } if count > 0 => {
            let at = at % count;
            let doubled = pieces[at..(at + len).min(count)].to_vec();
            pieces.splice(at..at, doubled);
        }
        Edit::Insert { at, piece } => pieces.insert(at % (count + 1), piece.to_owned()),
        Edit::Swap { at } if count > 1 => pieces.swap(at % count, (at + 2) % count),
        _ => {}
    }
}

fn store() -> Store {
    let rows = |x| vec![(x, vec![("host", Tag("a")), ("x", Integer(x)), ("f", Float(x as f64))])];
    let options =
        Options { query_timeout: Duration::from_secs(60), query_memory_bytes: 16 << 20, ..Options::default() };
    let store = Store::with_options(&options);
    store.put("db", TableBuilder::new("m").part(File, rows(1)).part(LateBuffer, rows(2)));
    store
}

#[test]
fn mutated_statements_answer_or_fail_as_input() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let store = store();
    for sql in STATEMENTS {
        runtime.block_on(store.run(sql)).unwrap();
    }
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(200);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mutated = (prop::sample::select(STATEMENTS.to_vec()), prop::collection::vec(edit(), 1..4));
    TestRunner::new(config)
        .run(&mutated, |(sql, edits)| {
            let mut pieces = split(sql);
            edits.iter().for_each(|edit| apply(&mut pieces, edit));
            let sql = pieces.concat();
            if let Err(error) = runtime.block_on(store.run(&sql)) {
                let kinds = [ErrorKind::InvalidInput, ErrorKind::NotFound, ErrorKind::Busy, ErrorKind::Timeout];
                prop_assert!(kinds.contains(&error.kind()), "{sql}: {error}");
            }
            Ok(())
        })
        .unwrap();
}
