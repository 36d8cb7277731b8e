//! Any points, in any parts, before and after their files are merged: SQL answers what a map of
//! points answers.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Display,
};

use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};

use super::fake::{
    Cell::{Float, Integer, Tag, Text},
    Home, Row, Store, TableBuilder,
};
use crate::vfs::cases;

/// A point that arrives, with the fields it carries.
#[derive(Debug, Clone)]
struct Point {
    time: i64,
    host: Option<&'static str>,
    rack: Option<&'static str>,
    fields: Fields,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Fields {
    x: Option<i64>,
    y: Option<f64>,
    s: Option<&'static str>,
}

type PrimaryKey = (Option<&'static str>, Option<&'static str>, i64);

/// A condition, and how it stands in SQL.
#[derive(Debug, Clone)]
enum Condition {
    HostIs(&'static str),
    HostIsNot(&'static str),
    HostIsNull,
    RackIn(&'static str),
    TimeFrom(i64),
    TimeBefore(i64),
    XAbove(i64),
    XIsNull,
    YBelow(f64),
    TextIs(&'static str),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
    Not(Box<Condition>),
}

impl Condition {
    fn sql(&self) -> String {
        let at = |time: &i64| format!("'1970-01-01T00:00:00.{time:09}Z'");
        match self {
            Self::HostIs(host) => format!("host = '{host}'"),
            Self::HostIsNot(host) => format!("host <> '{host}'"),
            Self::HostIsNull => "host IS NULL".to_owned(),
            Self::RackIn(rack) => format!("rack IN ('{rack}', 'nowhere')"),
            Self::TimeFrom(time) => format!("time >= {}", at(time)),
            Self::TimeBefore(time) => format!("time < {}", at(time)),
            Self::XAbove(x) => format!("x > {x}"),
            Self::XIsNull => "x IS NULL".to_owned(),
            Self::YBelow(y) => format!("y < {y}"),
            Self::TextIs(text) => format!("s = '{text}'"),
            Self::And(a, b) => format!("({} AND {})", a.sql(), b.sql()),
            Self::Or(a, b) => format!("({} OR {})", a.sql(), b.sql()),
            Self::Not(a) => format!("NOT ({})", a.sql()),
        }
    }

    /// Returns whether a row meets the condition; `None` is SQL's unknown.
    fn holds(&self, (host, rack, time): &PrimaryKey, row: &Fields) -> Option<bool> {
        match self {
            Self::HostIs(wanted) => host.map(|host| host == *wanted),
            Self::HostIsNot(wanted) => host.map(|host| host != *wanted),
            Self::HostIsNull => Some(host.is_none()),
            Self::RackIn(wanted) => rack.map(|rack| rack == *wanted),
            Self::TimeFrom(start) => Some(time >= start),
            Self::TimeBefore(end) => Some(time < end),
            Self::XAbove(limit) => row.x.map(|x| x > *limit),
            Self::XIsNull => Some(row.x.is_none()),
            Self::YBelow(limit) => row.y.map(|y| y < *limit),
            Self::TextIs(wanted) => row.s.map(|s| s == *wanted),
            Self::And(a, b) => match (a.holds(&(*host, *rack, *time), row), b.holds(&(*host, *rack, *time), row)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (a, b) => Some(a? && b?),
            },
            Self::Or(a, b) => match (a.holds(&(*host, *rack, *time), row), b.holds(&(*host, *rack, *time), row)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (a, b) => Some(a? || b?),
            },
            Self::Not(a) => a.holds(&(*host, *rack, *time), row).map(|holds| !holds),
        }
    }
}

fn condition() -> impl Strategy<Value = Condition> {
    let leaf = prop_oneof![
        prop::sample::select(vec!["a", "b"]).prop_map(Condition::HostIs),
        prop::sample::select(vec!["a", "b"]).prop_map(Condition::HostIsNot),
        Just(Condition::HostIsNull),
        Just(Condition::RackIn("r")),
        (0..12_i64).prop_map(Condition::TimeFrom),
        (0..12_i64).prop_map(Condition::TimeBefore),
        (-3..6_i64).prop_map(Condition::XAbove),
        Just(Condition::XIsNull),
        (-3..3_i32).prop_map(|y| Condition::YBelow(f64::from(y) / 2.0)),
        prop::sample::select(vec!["t", "u"]).prop_map(Condition::TextIs),
    ];
    leaf.prop_recursive(2, 5, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Condition::And(Box::new(a), Box::new(b))),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Condition::Or(Box::new(a), Box::new(b))),
            inner.prop_map(|a| Condition::Not(Box::new(a))),
        ]
    })
}

fn point() -> impl Strategy<Value = Point> {
    let fields = (prop::option::of(-2..6_i64), prop::option::of(-3..4_i32), prop::option::of(0..2_usize));
    let fields = fields.prop_map(|(x, y, s)| Fields {
        // A point has at least one field.
        x: x.or(if y.is_none() && s.is_none() { Some(0) } else { None }),
        y: y.map(|y| f64::from(y) / 2.0),
        s: s.map(|s| ["t", "u"][s]),
    });
    let host = prop::sample::select(vec![None, Some("a"), Some("b")]);
    let rack = prop::sample::select(vec![None, None, None, Some("r")]);
    (0..12_i64, host, rack, fields).prop_map(|(time, host, rack, fields)| Point { time, host, rack, fields })
}

/// Points in order of arrival, in chunks; how many chunks are flushed; conditions to ask for.
fn history() -> impl Strategy<Value = (Vec<Vec<Point>>, usize, Vec<Condition>)> {
    let chunks = prop::collection::vec(prop::collection::vec(point(), 1..12), 1..6);
    (chunks, 0..6_usize, prop::collection::vec(condition(), 4))
}

/// Stores points as the engine does: a point that is not newer than all of its series is late.
fn table(chunks: &[Vec<Point>], flushed: usize) -> TableBuilder {
    let mut newest: HashMap<(Option<&str>, Option<&str>), i64> = HashMap::new();
    let mut table = TableBuilder::new("m");
    for (index, chunk) in chunks.iter().enumerate() {
        let (mut rows, mut late) = (Vec::new(), Vec::new());
        for point in chunk {
            let newest = newest.entry((point.host, point.rack)).or_insert(i64::MIN);
            let side = if point.time > *newest { &mut rows } else { &mut late };
            *newest = point.time.max(*newest);
            side.push(point.clone());
        }
        if index < flushed {
            // A flush makes one row of all versions that it has.
            late = folded(&late);
        }
        let [rows, late] = [rows, late].map(|points| points.iter().map(row).collect::<Vec<_>>());
        let homes = if index < flushed { (Home::File, Home::LateFile) } else { (Home::Buffer, Home::LateBuffer) };
        for (home, rows) in [(homes.0, rows), (homes.1, late)] {
            if !rows.is_empty() {
                table = table.part(home, rows);
            }
        }
    }
    table
}

fn folded(points: &[Point]) -> Vec<Point> {
    let point = |((host, rack, time), fields)| Point { time, host, rack, fields };
    model(&[points.to_vec()]).into_iter().map(point).collect()
}

fn row(point: &Point) -> Row {
    let mut cells = Vec::new();
    cells.extend(point.host.map(|host| ("host", Tag(host))));
    cells.extend(point.rack.map(|rack| ("rack", Tag(rack))));
    cells.extend(point.fields.x.map(|x| ("x", Integer(x))));
    cells.extend(point.fields.y.map(|y| ("y", Float(y))));
    cells.extend(point.fields.s.map(|s| ("s", Text(s))));
    (point.time, cells)
}

fn model(chunks: &[Vec<Point>]) -> BTreeMap<PrimaryKey, Fields> {
    let mut rows: BTreeMap<PrimaryKey, Fields> = BTreeMap::new();
    for point in chunks.iter().flatten() {
        let row = rows.entry((point.host, point.rack, point.time)).or_default();
        let Fields { x, y, s } = &point.fields;
        *row = Fields { x: x.or(row.x), y: y.or(row.y), s: s.or(row.s) };
    }
    rows
}

fn text(value: Option<impl Display>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn float(value: Option<f64>) -> String {
    text(value.map(|value| format!("{value:?}")))
}

/// Every column that some point has, so that no statement names one that does not exist.
fn all_columns() -> Vec<Point> {
    let fields = Fields { x: Some(0), y: Some(0.0), s: Some("t") };
    vec![Point { time: 0, host: Some("z"), rack: Some("z"), fields }]
}

async fn check(chunks: &[Vec<Point>], flushed: usize, conditions: &[Condition]) {
    let store = Store::new();
    store.put("db", table(chunks, flushed));
    let rows = model(chunks);
    for compact in [false, true] {
        if compact {
            store.compact("db", "m");
        }
        check_rows(&store, "true", rows.iter().collect()).await;
        for condition in conditions {
            let met = rows.iter().filter(|(primary_key, row)| condition.holds(primary_key, row) == Some(true));
            let met: Vec<_> = met.collect();
            check_rows(&store, &condition.sql(), met.clone()).await;
            check_newest(&store, &condition.sql(), &met).await;
        }
    }
}

/// The newest row of each series, in all ways to ask for it, and the newest rows of all.
async fn check_newest(store: &Store, condition: &str, rows: &[(&PrimaryKey, &Fields)]) {
    // In order of time within each series.
    let newest: BTreeMap<_, _> = rows.iter().map(|((host, rack, time), row)| ((host, rack), (time, row))).collect();
    let line = |((host, rack), (time, row)): (_, (&i64, &&Fields))| {
        let (host, rack): (&Option<&str>, &Option<&str>) = (host, rack);
        format!("{}|{}|{time}|{}|{}|{}", text(*host), text(*rack), text(row.x), float(row.y), text(row.s))
    };
    let expected: Vec<String> = newest.clone().into_iter().map(line).collect();
    let order = "ORDER BY host NULLS FIRST, rack NULLS FIRST";
    let number = "row_number() OVER (PARTITION BY host, rack ORDER BY time DESC)";
    let statements = [
        format!(
            "SELECT host, rack, CAST(time AS BIGINT), x, y, s FROM \
             (SELECT *, {number} AS n FROM m WHERE {condition}) t WHERE n = 1 {order}"
        ),
        format!(
            "SELECT host, rack, CAST(time AS BIGINT), x, y, s FROM m WHERE {condition} QUALIFY {number} <= 1 {order}"
        ),
        format!(
            "SELECT host, rack, CAST(max(time) AS BIGINT), first_value(x ORDER BY time DESC), \
             last_value(y ORDER BY time), last_value(s ORDER BY time) FROM m WHERE {condition} GROUP BY host, rack {order}"
        ),
        format!(
            "SELECT DISTINCT ON (host, rack) host, rack, CAST(time AS BIGINT), x, y, s FROM m WHERE {condition} \
             ORDER BY host NULLS FIRST, rack NULLS FIRST, time DESC"
        ),
    ];
    for sql in statements {
        assert_eq!(store.rows(&sql).await, expected, "{sql}\n{}", store.plan(&sql).await);
    }
    let mut hosts: BTreeMap<Option<&str>, i64> = BTreeMap::new();
    rows.iter()
        .for_each(|((host, _, time), _)| _ = hosts.entry(*host).and_modify(|t| *t = *time.max(t)).or_insert(*time));
    let expected: Vec<String> = hosts.iter().map(|(host, time)| format!("{}|{time}", text(*host))).collect();
    let sql = format!(
        "SELECT host, CAST(max(time) AS BIGINT) FROM m WHERE {condition} GROUP BY host ORDER BY host NULLS FIRST"
    );
    assert_eq!(store.rows(&sql).await, expected, "{sql}\n{}", store.plan(&sql).await);
    let mut newest: Vec<_> =
        rows.iter().map(|((host, rack, time), _)| (std::cmp::Reverse(*time), *host, *rack)).collect();
    newest.sort();
    newest.truncate(3);
    let line = |(time, host, rack): (std::cmp::Reverse<i64>, Option<&str>, Option<&str>)| {
        format!("{}|{}|{}", time.0, text(host), text(rack))
    };
    let expected: Vec<String> = newest.into_iter().map(line).collect();
    let sql = format!(
        "SELECT CAST(t.time AS BIGINT) AS at, host, rack FROM (SELECT * FROM m WHERE {condition}) t \
         ORDER BY t.time DESC, host NULLS FIRST, rack NULLS FIRST LIMIT 3"
    );
    assert_eq!(store.rows(&sql).await, expected, "{sql}\n{}", store.plan(&sql).await);
}

async fn check_rows(store: &Store, condition: &str, expected: Vec<(&PrimaryKey, &Fields)>) {
    let sql = format!(
        "SELECT host, rack, CAST(time AS BIGINT) AS at, x, y, s FROM m WHERE {condition} \
         ORDER BY host NULLS FIRST, rack NULLS FIRST, time"
    );
    let lines = expected.iter().map(|((host, rack, time), Fields { x, y, s })| {
        format!("{}|{}|{time}|{}|{}|{}", text(*host), text(*rack), text(*x), float(*y), text(*s))
    });
    assert_eq!(store.rows(&sql).await, lines.collect::<Vec<_>>(), "{sql}\n{}", store.plan(&sql).await);
    let sql = format!("SELECT count(*), sum(x), count(y), max(s), min(time) IS NULL FROM m WHERE {condition}");
    let xs: Vec<i64> = expected.iter().filter_map(|(_, row)| row.x).collect();
    let sum = (!xs.is_empty()).then(|| xs.iter().sum::<i64>());
    let ys = expected.iter().filter(|(_, row)| row.y.is_some()).count();
    let last = expected.iter().filter_map(|(_, row)| row.s).max();
    let line = format!("{}|{}|{ys}|{}|{}", expected.len(), text(sum), text(last), expected.is_empty());
    assert_eq!(store.rows(&sql).await, [line], "{sql}\n{}", store.plan(&sql).await);
    check_groups(store, condition, &expected).await;
    let sql = format!("SELECT count(*) FROM m WHERE {condition}");
    assert_eq!(store.rows(&sql).await, [expected.len().to_string()], "{sql}");
    let sql = format!("SELECT count(*) FROM (SELECT x FROM m WHERE {condition} LIMIT 2)");
    assert_eq!(store.rows(&sql).await, [expected.len().min(2).to_string()], "{sql}");
}

/// Groups by a tag and a bucket of time.
async fn check_groups(store: &Store, condition: &str, rows: &[(&PrimaryKey, &Fields)]) {
    let mut groups: BTreeMap<(Option<&str>, i64), Vec<&Fields>> = BTreeMap::new();
    for ((host, _, time), fields) in rows {
        groups.entry((*host, time.div_euclid(4) * 4)).or_default().push(fields);
    }
    let line = |((host, bucket), rows): (&(Option<&str>, i64), &Vec<&Fields>)| {
        let xs: Vec<i64> = rows.iter().filter_map(|row| row.x).collect();
        let sum = (!xs.is_empty()).then(|| xs.iter().sum::<i64>());
        let greatest = rows.iter().filter_map(|row| row.y).reduce(f64::max);
        format!("{}|{bucket}|{}|{}|{}|{}", text(*host), rows.len(), text(sum), text(xs.iter().min()), float(greatest))
    };
    let bucket = "date_bin(INTERVAL '4 nanoseconds', time)";
    let sql = format!(
        "SELECT host, CAST({bucket} AS BIGINT) AS bucket, count(*), sum(x), min(x), max(y) FROM m WHERE {condition} \
         GROUP BY host, {bucket} ORDER BY host NULLS FIRST, bucket"
    );
    assert_eq!(
        store.rows(&sql).await,
        groups.iter().map(line).collect::<Vec<_>>(),
        "{sql}\n{}",
        store.plan(&sql).await
    );
}

#[test]
fn any_history_in_any_parts_answers_like_a_map() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    // One case asks twenty statements; set the variable for a longer run.
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or_else(|| cases(12));
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&history(), |(mut chunks, flushed, conditions)| {
            chunks.insert(0, all_columns());
            runtime.block_on(check(&chunks, flushed, &conditions));
            Ok(())
        })
        .unwrap();
}
