//! Conditions on time and sorts with a limit: what is left out of files changes no answer.

use std::sync::Arc;

use super::fake::{
    Cell::{Float, Integer, Tag},
    Home::{self, Buffer, File, LateBuffer, LateFile},
    Row, Store, TableBuilder,
};
use crate::{Predicate, SequenceNumber, Tombstone, model::predicate::bind};

const HOSTS: [&str; 3] = ["a", "b", "c"];

fn at(time: i64) -> String {
    format!("'1970-01-01T00:00:00.{time:09}Z'")
}

/// Many rows of a few hosts, at equal distances but for host `c`; `x` has few values, with nulls
/// and NaN among them.
fn rows(start: i64, count: i64) -> Vec<Row> {
    let row = |host: usize, n: i64| {
        let jitter = if host == 2 { (n * n) % 7 } else { 0 };
        let time = start + 10 * n + jitter + i64::try_from(host).unwrap();
        let mut cells = vec![("host", Tag(HOSTS[host])), ("n", Integer(n))];
        match (n + 3 * host as i64) % 11 {
            0 => {}
            1 if n % 5 == 0 => cells.push(("x", Float(f64::NAN))),
            // Zeros have the same sign: DataFusion's filter of a sort with a limit takes them for
            // equal, its sort does not.
            x => cells.push(("x", Float(-((x % 5) as f64)))),
        }
        (time, cells)
    };
    (0..HOSTS.len()).flat_map(|host| (0..count).map(move |n| row(host, n))).collect()
}

/// The last part overwrites some rows of the first, and has no column `n`.
fn table([first, second, last]: [Home; 3]) -> TableBuilder {
    let late: Vec<Row> = rows(40, 30)
        .into_iter()
        .map(|(time, cells)| (time, cells.into_iter().filter(|(name, _)| *name != "n").collect()))
        .collect();
    TableBuilder::new("m").part(first, rows(0, 120)).part(second, rows(1_200, 100)).part(last, late)
}

const STATES: [[Home; 3]; 4] =
    [[File, File, LateFile], [File, Buffer, LateFile], [File, File, LateBuffer], [Buffer, File, LateBuffer]];

/// Returns homes of the same kind without files.
fn in_buffers(homes: [Home; 3]) -> [Home; 3] {
    homes.map(|home| match home {
        File | Buffer => Buffer,
        LateFile | LateBuffer => LateBuffer,
    })
}

fn conditions() -> Vec<String> {
    let ranges = [(0, 3_000), (95, 700), (100, 100), (101, 101), (1_195, 1_200), (1_500, 9_000), (700, 95)];
    let ranges = ranges.into_iter().map(|(from, to)| format!("time >= {} AND time < {}", at(from), at(to)));
    let others = [
        "true".to_owned(),
        format!("time > {} AND time <= {}", at(99), at(1_300)),
        format!("time BETWEEN {} AND {} AND x > 1", at(50), at(1_250)),
        format!("time = {}", at(500)),
        format!("host IN ('a', 'c') AND time < {}", at(333)),
        format!("x IS NULL AND {} < time", at(1_700)),
        format!("(time < {} OR x = 3) AND time < {}", at(20), at(900)),
        format!("time <> {} AND time >= {}", at(501), at(480)),
    ];
    ranges.chain(others).collect()
}

#[tokio::test]
async fn rows_out_of_a_range_of_times_are_left_out_and_no_others() {
    for state in STATES {
        let (store, known) = (Store::new(), Store::new());
        store.put("db", table(state));
        known.put("db", table(in_buffers(state)));
        for condition in conditions() {
            for sql in [
                format!("SELECT * FROM m WHERE {condition} ORDER BY time, host"),
                format!("SELECT count(*), count(x), min(time), max(time), sum(n) FROM m WHERE {condition}"),
                format!("SELECT n, host FROM m WHERE {condition} ORDER BY n NULLS FIRST, host LIMIT 7"),
                format!("SELECT count(*) FROM (SELECT x FROM m WHERE {condition} LIMIT 5)"),
                format!(
                    "SELECT host, last_value(n ORDER BY time) FROM m WHERE {condition} GROUP BY host ORDER BY host"
                ),
                format!("SELECT time, host FROM m WHERE {condition} ORDER BY time DESC LIMIT 4"),
            ] {
                assert_eq!(store.rows(&sql).await, known.rows(&sql).await, "{sql} with {state:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_sort_with_a_limit_has_the_rows_that_a_sort_of_all_has_first() {
    let orders = [
        "x DESC, time, host",
        "x DESC NULLS LAST, time DESC, host",
        "x NULLS FIRST, time, host",
        "x, time DESC, host",
        "n, x DESC NULLS LAST, time, host",
        "time, host",
        "host, time DESC",
        "x + 1 DESC NULLS LAST, time, host",
    ];
    // In the last of them, what has a primary key twice stays twice.
    for state in STATES.into_iter().chain([[File, File, Buffer]]) {
        let (store, known) = (Store::new(), Store::new());
        store.put("db", table(state));
        known.put("db", table(in_buffers(state)));
        for order in orders {
            // Without `x` those that are there twice could come in any order.
            let order = if state == [File, File, Buffer] { format!("{order}, x") } else { order.to_owned() };
            for condition in ["true".to_owned(), format!("time >= {} AND n > 3", at(333)), "host <> 'b'".to_owned()] {
                for limit in [1, 10, 150] {
                    let sql = format!("SELECT x, time, host FROM m WHERE {condition} ORDER BY {order}");
                    let all = known.rows(&sql).await;
                    let first = store.rows(&format!("{sql} LIMIT {limit}")).await;
                    assert_eq!(first, all[..limit.min(all.len())], "{sql} {limit} with {state:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn deleted_rows_stay_away_whatever_is_left_out() {
    let store = Store::new();
    store.put("db", TableBuilder::new("m").part(File, rows(0, 120)).part(Buffer, rows(1_200, 100)));
    let (gone, from, to) = ("host = 'a'", at(200), at(1_300));
    let rest = format!("NOT ({gone} AND time < {})", at(1_200));
    let mut expected = Vec::new();
    let queries = |condition: &str| {
        [
            format!("SELECT count(*), min(n) FROM m WHERE time >= {from} AND time < {to} AND {condition}"),
            format!(
                "SELECT x, time, host FROM m WHERE time >= {from} AND {condition} ORDER BY x DESC, time, host LIMIT 9"
            ),
        ]
    };
    for sql in queries(&rest) {
        expected.push(store.rows(&sql).await);
    }
    {
        let mut databases = store.fake.databases.lock();
        let view = databases.get_mut("db").unwrap().get_mut("m").unwrap();
        let predicate = bind(&Predicate::from_sql(gone).unwrap(), &view.schema).unwrap();
        view.tombstones.push(Arc::new(Tombstone { seq: SequenceNumber(10), predicate }));
    }
    for (sql, expected) in queries("true").iter().zip(expected) {
        assert_eq!(store.rows(sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn a_file_within_the_range_is_counted_without_being_read() {
    let store = Store::new();
    store.put("db", TableBuilder::new("m").part(File, rows(0, 120)).part(File, rows(1_200, 100)));
    let sql = format!("SELECT count(*) FROM m WHERE time >= {}", at(1_200));
    assert_eq!(store.rows(&sql).await, ["300"]);
    assert!(!store.plan(&sql).await.contains("DataSourceExec"), "{}", store.plan(&sql).await);
    // Not so where it is not all of a file.
    let sql = format!("SELECT count(*) FROM m WHERE time >= {}", at(1_210));
    assert_eq!(store.rows(&sql).await, ["297"]);
    assert!(store.plan(&sql).await.contains("predicate=time"), "{}", store.plan(&sql).await);
}

#[tokio::test]
async fn a_range_of_times_decodes_only_its_rows() {
    let store = Store::new();
    store.put("db", TableBuilder::new("m").part(File, rows(0, 120)));
    let sql = format!("EXPLAIN ANALYZE SELECT n FROM m WHERE time >= {} AND time < {}", at(500), at(600));
    for _ in 0..2 {
        let analyzed = store.text(&sql).await;
        let rows = analyzed.split("output_rows=").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
        assert_eq!(rows, "30", "{analyzed}");
    }
    let sql = "EXPLAIN ANALYZE SELECT n FROM m ORDER BY time, n, host LIMIT 2";
    let analyzed = store.text(sql).await;
    let scan = analyzed.lines().find(|line| line.contains("DataSourceExec")).unwrap();
    let rows: usize =
        scan.split("output_rows=").nth(1).and_then(|rest| rest.split(',').next()).unwrap().parse().unwrap();
    assert!(rows < 60, "{analyzed}");
}

/// What is asked of a time that nanoseconds do not hold is decided by the side on which it is.
#[tokio::test]
async fn bounds_beyond_all_times_are_decided() {
    let store = Store::new();
    store.put(
        "db",
        TableBuilder::new("m")
            .part(File, vec![(5, vec![("n", Integer(1))])])
            .part(Buffer, vec![(7, vec![("n", Integer(2))])]),
    );
    let (above, below) = (
        [
            "'9999-12-31'",
            "DATE '9999-12-31'",
            "TIMESTAMP '2300-01-01'",
            "to_timestamp(99999999999)",
            "now() + INTERVAL '500 years'",
            "'2262-04-11T23:47:16.854775808Z'",
        ],
        [
            "'0001-01-01'",
            "DATE '0001-01-01'",
            "TIMESTAMP '1600-01-01'",
            "to_timestamp(-99999999999)",
            "now() - INTERVAL '500 years'",
            "'1677-09-21'",
        ],
    );
    let count = async |condition: String| {
        let rows = store.rows(&format!("SELECT count(*) FROM m WHERE {condition}")).await;
        rows[0].clone()
    };
    for (bounds, smaller) in [(above, "2"), (below, "0")] {
        let larger = if smaller == "2" { "0" } else { "2" };
        for bound in bounds {
            for (condition, expected) in [
                (format!("time < {bound}"), smaller),
                (format!("{bound} > time"), smaller),
                (format!("time <= {bound}"), smaller),
                (format!("time > {bound}"), larger),
                (format!("{bound} <= time"), larger),
                (format!("NOT (time >= {bound})"), smaller),
                (format!("time = {bound}"), "0"),
                (format!("time <> {bound}"), "2"),
                (format!("time IS DISTINCT FROM {bound}"), "2"),
                (format!("time IS NOT DISTINCT FROM {bound}"), "0"),
                (format!("time IN ({bound}, '1970-01-01T00:00:00.000000005Z')"), "1"),
                (format!("time IN ({bound})"), "0"),
                (format!("time NOT IN ({bound})"), "2"),
                (format!("time BETWEEN '1970-01-01' AND {bound}"), smaller),
                (format!("time BETWEEN {bound} AND '1980-01-01'"), larger),
                (format!("time NOT BETWEEN '1970-01-01' AND {bound}"), larger),
            ] {
                assert_eq!(count(condition.clone()).await, expected, "{condition}");
            }
        }
    }
    assert_eq!(count("time BETWEEN '0001-01-01' AND '9999-12-31'".into()).await, "2");
    let sql = "SELECT time < '9999-12-31', CASE WHEN time > '0001-01-01' THEN n END, NULLIF(time, time) < '9999-12-31' FROM m ORDER BY time";
    assert_eq!(store.rows(sql).await, ["true|1|", "true|2|"]);
    let sql = "SELECT n FROM m GROUP BY n HAVING max(time) < '9999-12-31' ORDER BY n";
    assert_eq!(store.rows(sql).await, ["1", "2"]);
    let sql = "SELECT a.n FROM m a JOIN m b ON a.n = b.n AND a.time < '9999-12-31' WHERE b.time > TIMESTAMP '1600-01-01' ORDER BY 1";
    assert_eq!(store.rows(sql).await, ["1", "2"]);
    assert!(store.error("SELECT * FROM m WHERE time < 'no time'").await.to_string().contains("no time"));
}

#[tokio::test]
async fn times_without_seconds_are_times() {
    let store = Store::new();
    let row = |minute: i64| (minute * 60_000_000_000, vec![("n", Integer(minute))]);
    store.put("db", TableBuilder::new("m").part(File, vec![row(0), row(1)]).part(Buffer, vec![row(2)]));
    for condition in [
        "time = '1970-01-01T00:01'",
        "'1970-01-01 00:01Z' = time",
        "time = '1970-01-01 01:01+01:00'",
        "time BETWEEN '1970-01-01T00:01' AND '1970-01-01T00:01Z'",
        "time IN ('1970-01-01T00:01', '1980-01-01')",
        "time = TIMESTAMP '1970-01-01 00:01'",
        "time = CAST('1970-01-01 00:01' AS TIMESTAMP)",
        "time = '1970-01-01 00:01'::timestamptz",
        "time = to_timestamp('1970-01-01T00:01')",
        "time > '1970-01-01 00:00' AND time < '1970-01-01 00:02'",
        "date_trunc('hour', time) <= '1970-01-01 00:00' AND n = 1",
    ] {
        assert_eq!(store.rows(&format!("SELECT n FROM m WHERE {condition}")).await, ["1"], "{condition}");
    }
    // A text that is no time stays what it is.
    let sql = "SELECT '1970-01-01 00:01' AS t, n::text || '1970-01-01 00:01' = '11970-01-01 00:01' FROM m WHERE n = 1";
    assert_eq!(store.rows(sql).await, ["1970-01-01 00:01|true"]);
    for text in ["1970-01-01 00:61", "1970-13-01 00:01", "1970-01-01 00"] {
        let error = store.error(&format!("SELECT * FROM m WHERE time = '{text}'")).await;
        assert!(error.to_string().contains(&text[..10]), "{error}");
    }
}
