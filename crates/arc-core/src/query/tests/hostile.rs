//! Statements that would take all time and memory there is: each ends with an answer or an error,
//! and the next one runs.

use std::time::Duration;

use arrow::{array::AsArray, datatypes::Int64Type};

use super::fake::{
    Cell::{Integer, Tag, Text},
    Home::{Buffer, File},
    Store, TableBuilder,
};
use crate::{ErrorKind, Options, vfs::stride};

fn store() -> Store {
    let options = Options {
        query_timeout: Duration::from_millis(700 / stride(2) as u64),
        query_memory_bytes: 16 << 20,
        memory_bytes: 64 << 20,
        ..Options::default()
    };
    let store = Store::with_options(&options);
    let row = |i| (i, vec![("host", Tag("a")), ("x", Integer(i)), ("text", Text("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"))]);
    store.put(
        "db",
        TableBuilder::new("m").part(File, (0..500).map(row).collect()).part(Buffer, (500..1_000).map(row).collect()),
    );
    store
}

/// Statements that are made, not written.
fn long() -> Vec<String> {
    let list = |count: usize, item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<Vec<_>>().join(", ");
    vec![
        format!("SELECT count(*) FROM m WHERE x IN ({})", list(100_000, &|n| n.to_string())),
        format!("SELECT {}", list(20_000, &|n| format!("{n} AS c{n}"))),
        format!("SELECT count(*) FROM (VALUES {})", list(50_000, &|n| format!("({n})"))),
        format!("SELECT 1 {}", "UNION ALL SELECT 1 ".repeat(40_000)),
        format!("SELECT count(*) FROM m WHERE {}", vec!["x = 1"; 100_000].join(" OR ")),
        format!("WITH {} SELECT 1", list(5_000, &|n| format!("c{n} AS (SELECT {n})"))),
        format!("SELECT {} FROM m", list(2_000, &|n| format!("sum(x + {n})"))),
        format!("SELECT length('{}')", "x".repeat(1_000_000)),
        format!("SELECT 1 -- {}", "x".repeat((1 << 20) - 20)),
        format!("SELECT {}1{}", "abs(".repeat(1_000), ")".repeat(1_000)),
        format!("SELECT x{} FROM m", " + x".repeat(1_000)),
    ]
}

/// Statements that are short, and mean much.
const SHORT: &[&str] = &[
    "SELECT count(*) FROM m a, m b, m c, m d",
    "SELECT a.x, b.text FROM m a, m b, m c ORDER BY c.x, b.x, a.x DESC",
    "SELECT max(a.text || b.text || c.text) FROM m a, m b, m c",
    "SELECT count(*) FROM generate_series(1, 10000000000)",
    "SELECT sum(value * value) FROM generate_series(1, 10000000000)",
    "SELECT value FROM generate_series(1, 10000000000) ORDER BY value DESC LIMIT 1",
    "SELECT max(value) FROM generate_series(-9223372036854775808, 9223372036854775807)",
    "SELECT count(*) FROM (SELECT value, count(*) FROM generate_series(1, 10000000) GROUP BY value)",
    "SELECT count(DISTINCT value) FROM generate_series(1, 10000000)",
    "SELECT count(*) FROM (SELECT DISTINCT 'group ' || value FROM generate_series(1, 10000000))",
    "SELECT max(n) FROM (SELECT row_number() OVER (ORDER BY value % 1000003) AS n FROM generate_series(1, 10000000))",
    "SELECT sum(s) FROM (SELECT sum(x) OVER (ORDER BY a.x ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS s \
     FROM m a CROSS JOIN generate_series(1, 10000))",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
    "WITH RECURSIVE r AS (SELECT x AS n FROM m UNION ALL SELECT a.n FROM r a, r b) SELECT count(*) FROM r",
    "SELECT regexp_like(repeat('a', 30000), '(a*)*b')",
    "SELECT count(*) FROM m WHERE regexp_like(text, '(a|aa)+$') AND regexp_like(text, '(a+)+b')",
    "SELECT regexp_like('x', '((((((a{100}){100}){100}){100}){100}){100})')",
    "SELECT regexp_replace(repeat('a', 100000), '(a?){500}a{500}', 'b', 'g')",
    "SELECT regexp_like(text, '\\p{L}{1000}\\p{L}{1000}\\p{L}{1000}') FROM m",
    "SELECT count(*) FROM m WHERE text LIKE '%a%a%a%a%a%a%a%a%a%a%a%a%a%a%b'",
    "SELECT array_agg(a.text) FROM m a, m b, m c",
    "SELECT string_agg(a.text, b.text) FROM m a, m b, m c",
    "SELECT repeat(repeat(repeat('x', 1000), 1000), 1000)",
    "SELECT count(*) FROM (SELECT unnest(range(0, 100000)) FROM m, generate_series(1, 1000))",
    "SELECT count(*) FROM m a JOIN m b ON a.x <> b.x JOIN m c ON b.x <> c.x JOIN m d ON c.x <> d.x",
    "SELECT (SELECT count(*) FROM m b, m c WHERE b.x + c.x > a.x) FROM m a",
    "SELECT approx_percentile_cont(value, 0.5), median(value) FROM generate_series(1, 100000000)",
    "SELECT x, lag(x, 1000000000) OVER (ORDER BY x) FROM m",
    "SELECT count(*) FROM (SELECT * FROM m a FULL JOIN generate_series(1, 1000000000) s ON a.x = s.value)",
    "EXPLAIN ANALYZE SELECT count(*) FROM m a, m b, m c, m d",
];

#[tokio::test(flavor = "multi_thread")]
async fn no_statement_takes_the_engine_down() {
    let store = store();
    for sql in SHORT.iter().map(|sql| (*sql).to_owned()).chain(long()) {
        let start: String = sql.chars().take(100).collect();
        if let Err(error) = store.run(&sql).await {
            let kinds = [ErrorKind::InvalidInput, ErrorKind::Busy, ErrorKind::Timeout];
            assert!(kinds.contains(&error.kind()), "{start}: {error}");
        }
        // An operator that does not pause may still be at it.
        let answer = loop {
            match store.run("SELECT count(*) FROM m").await {
                Ok(answer) => break answer,
                Err(error) => {
                    assert!([ErrorKind::Busy, ErrorKind::Timeout].contains(&error.kind()), "{start}: {error}");
                }
            }
        };
        assert_eq!(answer[0].column(0).as_primitive::<Int64Type>().values(), &[1_000], "{start}");
    }
    let over = async {
        while store.engine.planning() != (0, 0) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(120), over).await.is_ok(), "a thread is older than its query");
}
