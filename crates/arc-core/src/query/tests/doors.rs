//! Statements that double, nest and repeat, at every door of SQL: each ends with an answer or an
//! error, and no thread goes on planning for a caller that has left.

use std::{sync::mpsc, thread, time::Duration};

use tokio::time::{sleep, timeout};

use super::{
    super::{inserted_placeholders, parse_change},
    fake::{
        Cell::{Float, Integer, Tag, Text},
        Home::{Buffer, File},
        Row, Store, TableBuilder,
    },
};
use crate::{ErrorKind, Options, Predicate, Result, Statement};

/// How long anything here may take before it counts as never ending.
const PATIENCE: Duration = Duration::from_secs(120);

fn rows(from: i64, to: i64) -> Vec<Row> {
    let row = |i: i64| {
        let (tag, text) = (("host", Tag("a")), ("text", Text("some text")));
        (i, vec![tag, ("x", Integer(i)), ("f", Float(i as f64)), text])
    };
    (from..to).map(row).collect()
}

fn store() -> Store {
    store_with(Duration::from_secs(60))
}

fn store_with(query_timeout: Duration) -> Store {
    let options = Options { query_timeout, query_memory_bytes: 16 << 20, memory_bytes: 64 << 20, ..Options::default() };
    let store = Store::with_options(&options);
    store.put("db", TableBuilder::new("m").part(File, rows(0, 50)).part(Buffer, rows(50, 100)));
    store
}

/// Fails if a statement that is over is still planned after a while.
async fn nothing_is_left(store: &Store, sql: &str) {
    let start: String = sql.chars().take(200).collect();
    let over = async {
        while store.engine.planning() != (0, 0) {
            sleep(Duration::from_millis(1)).await;
        }
    };
    assert!(timeout(PATIENCE, over).await.is_ok(), "a thread is older than its query: {start}");
}

/// Runs a statement, and only looks at what it would answer; returns what the first said.
async fn ends(store: &Store, sql: &str) -> Result<()> {
    let start: String = sql.chars().take(200).collect();
    let ran = timeout(PATIENCE, store.run(sql)).await;
    let ran = ran.unwrap_or_else(|_| panic!("never ends: {start}"));
    let described = timeout(PATIENCE, store.describe(sql, None)).await;
    let described = described.unwrap_or_else(|_| panic!("is described for ever: {start}"));
    nothing_is_left(store, sql).await;
    for error in [ran.as_ref().err(), described.as_ref().err()].into_iter().flatten() {
        let kinds = [ErrorKind::InvalidInput, ErrorKind::NotFound, ErrorKind::Busy, ErrorKind::Timeout];
        assert!(kinds.contains(&error.kind()), "{start}: {error}");
    }
    ran.map(drop)
}

/// Does what is no future, and fails if it never ends.
fn in_time<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(work()));
    let start: String = what.chars().take(200).collect();
    receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("never ends: {start}"))
}

fn list(count: usize, separator: &str, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(separator)
}

/// A chain of common table expressions: the first, and `count` that are made of the one before.
fn chain(first: &str, count: usize, next: impl Fn(&str) -> String) -> String {
    let rest = list(count, "", |n| format!(", c{} AS ({})", n + 1, next(&format!("c{n}"))));
    format!("WITH c0 AS ({first}){rest} SELECT * FROM c{count}")
}

/// Statements that mean too much, and what says so.
fn too_large() -> Vec<(String, &'static str)> {
    let twice = |count| chain("SELECT 1 AS a", count, |c| format!("SELECT x.a FROM {c} x, {c} y"));
    let parts = "tables, queries and windows";
    let entries = "columns and expressions";
    vec![
        (twice(40), parts),
        (format!("EXPLAIN {}", twice(26)), parts),
        (format!("EXPLAIN VERBOSE {}", twice(26)), parts),
        (format!("EXPLAIN ANALYZE {}", twice(26)), parts),
        (format!("SELECT * FROM ({}) s", twice(40)), parts),
        (format!("SELECT 1 IN ({})", twice(40)), parts),
        (format!("SELECT ({})", twice(40)), parts),
        (chain("SELECT 1 AS a", 40, |c| format!("SELECT a FROM {c} UNION ALL SELECT a FROM {c}")), parts),
        (chain("SELECT 1 AS a", 40, |c| format!("SELECT a FROM {c} EXCEPT SELECT a + 1 FROM {c}")), parts),
        (chain("SELECT 1 AS a", 40, |c| format!("SELECT a FROM {c} WHERE a IN (SELECT a FROM {c})")), parts),
        (chain("SELECT 1 AS a", 40, |c| format!("SELECT (SELECT max(a) FROM {c}) + a AS a FROM {c}")), parts),
        (chain("SELECT 1 AS a", 40, |c| format!("FROM {c} |> UNION ALL (SELECT a FROM {c})")), parts),
        (chain("SELECT 1 AS a", 40, |c| format!("WITH d AS (SELECT * FROM {c}) SELECT x.a FROM d x, d y")), parts),
        (format!("SELECT {}1", "1,".repeat(100_000)), "one of its SELECTs has more than 16384 columns"),
        (format!("SELECT {} FROM m", vec!["*"; 5_000].join(",")), "one of its SELECTs has more than 16384 columns"),
        (
            chain("SELECT * FROM m", 30, |c| format!("SELECT *, * FROM {c}")),
            "one of its SELECTs has more than 16384 columns",
        ),
        (chain("SELECT * FROM m", 30, |c| format!("SELECT x.*, y.* FROM {c} x, {c} y")), "the statement is too large"),
        (format!("SELECT {} FROM m", list(2_000, ",", |n| format!("sum(x) OVER (ORDER BY x + {n}) AS c{n}"))), entries),
        (format!("SELECT count(*) FROM m GROUP BY CUBE({})", list(30, ",", |n| format!("x + {n}"))), entries),
        (
            format!("SELECT count(*) FROM m GROUP BY {}", ["GROUPING SETS ((host), (x), (f), (text))"; 10].join(",")),
            entries,
        ),
        (
            format!("WITH {} SELECT 1", list(20_000, ",", |n| format!("c{n} AS (SELECT {n})"))),
            "planning it would take more than 100000000 steps",
        ),
        (
            format!(
                "SELECT {} FROM (SELECT {} FROM m) s",
                list(9_000, ",", |n| format!("c{n} + 1 AS d{n}")),
                list(9_000, ",", |n| format!("x + {n} AS c{n}"))
            ),
            "planning it would take more than 100000000 steps",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_plan_for_ever_is_refused_before() {
    let store = store();
    for (sql, expected) in too_large() {
        let start: String = sql.chars().take(100).collect();
        let error = ends(&store, &sql).await.unwrap_err().to_string();
        assert!(error.contains("the statement is too large") && error.contains(expected), "{start}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn joins_of_wide_tables_are_refused_before_they_are_planned() {
    let store = store();
    let names: Vec<&'static str> = (0..1_000).map(|n| &*format!("column_{n}").leak()).collect();
    let row = names.iter().map(|name| (*name, Integer(1))).collect();
    store.put("db", TableBuilder::new("wide").append().part(Buffer, vec![(1, row)]));
    for join in [", wide t", " RIGHT JOIN wide t", " CROSS JOIN wide t"] {
        let on = if join.contains("RIGHT") { " ON true" } else { "" };
        let sql = format!("SELECT 1 FROM wide{}", list(500, "", |n| format!("{join}{n}{on}")));
        let error = ends(&store, &sql).await.unwrap_err().to_string();
        assert!(error.contains("the columns of each join"), "{error}");
    }
    assert_eq!(store.rows("SELECT count(*) FROM wide a, wide b, wide c, wide d").await, ["1"]);
    assert_eq!(store.run("SELECT * FROM wide a, wide b, wide c").await.unwrap()[0].num_columns(), 3_003);
}

/// Statements of which people write shorter ones.
#[tokio::test]
async fn what_is_large_and_means_little_answers() {
    let store = store();
    let chained = chain("SELECT 1 AS a", 50, |c| format!("SELECT a + 1 AS a FROM {c}"));
    assert_eq!(store.rows(&chained).await, ["51"]);
    let joined = chain("SELECT 1 AS a", 4, |c| format!("SELECT x.a + y.a AS a FROM {c} x, {c} y"));
    assert_eq!(store.rows(&joined).await, ["16"]);
    let many = format!("SELECT {}", list(3_000, ",", |n| format!("{n}")));
    assert_eq!(store.run(&many).await.unwrap()[0].num_columns(), 3_000);
    let same = format!("SELECT {}1", "1,".repeat(2_999));
    let same = store.run(&same).await.unwrap();
    assert_eq!((same[0].num_columns(), &**same[0].schema_ref().field(2_999).name()), (3_000, "1_2999"));
    let sql = "SELECT host, x % 2 AS y, count(*) FROM m GROUP BY CUBE(host, x % 2) ORDER BY 1, 2";
    assert_eq!(store.rows(sql).await, ["a|0|50", "a|1|50", "a||100", "|0|50", "|1|50", "||100"]);
    let windows = list(100, ",", |n| format!("sum(x) OVER (ORDER BY time ROWS {n} PRECEDING) AS c{n}"));
    assert_eq!(store.run(&format!("SELECT {windows} FROM m")).await.unwrap()[0].num_columns(), 100);
    assert_eq!(
        store
            .rows("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 9) SELECT max(n) FROM r")
            .await,
        ["9"]
    );
}

/// Values that double from step to step, and functions that make much of little.
#[tokio::test(flavor = "multi_thread")]
async fn values_that_double_are_refused_before_they_are_made() {
    let store = store();
    let double = |first: &str, next: &str| {
        chain(&format!("SELECT {first} AS a"), 40, |c| format!("SELECT {next} AS a FROM {c}"))
    };
    let statements = [
        double("arrow_cast('aaaaaaaa', 'LargeUtf8')", "a || a"),
        double("'aaaaaaaa'", "a || a"),
        double("arrow_cast('aaaaaaaa', 'Utf8View')", "a || a"),
        double("repeat('a', 8)", "a || a"),
        double("text", "a || a").replace("SELECT text AS a", "SELECT text AS a FROM m"),
        double("host", "a || a").replace("SELECT host AS a", "SELECT host AS a FROM m"),
        double("[1]", "a || a"),
        double("[x]", "array_concat(a, a)").replace("SELECT [x] AS a", "SELECT [x] AS a FROM m"),
        double("arrow_cast([1], 'LargeList(Int64)')", "array_concat(a, a)"),
        double("1", "[a, a]"),
        double("1", "make_array(a, a)"),
        double("[1]", "flatten([a, a])"),
        double("'aaaaaaaa'", "overlay(a placing a from 1 for 0)"),
        double("'a,a'", "array_to_string(string_to_array(a || ',' || a, ','), ',')"),
        double("1", "struct(a, a)"),
        double("1", "{'a': a, 'b': a}"),
        double("1", "named_struct('a', a, 'b', a)"),
        double("'aaaaaaaa'", "concat(a, a)"),
        double("'aaaaaaaa'", "CASE WHEN length(a) > 0 THEN a || a ELSE a END"),
        double("[1, 2]", "arrays_zip(a, a)"),
    ];
    for sql in statements {
        let tail = sql.rsplit("AS (").next().unwrap_or_default().to_owned();
        let error = ends(&store, &sql).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{tail}: {error}");
        let text = error.to_string();
        let reasons = ["would make", "the limit is", "too much memory", "written out"];
        assert!(reasons.iter().any(|reason| text.contains(reason)), "{tail}: {text}");
    }
    let refused = [
        ("SELECT to_char(t, f) FROM (SELECT time AS t, repeat('%Y', 10000) AS f FROM m)", "to_char"),
        ("SELECT levenshtein(repeat('a', 1000000), repeat('b', 1000000))", "levenshtein"),
        ("SELECT string_to_array(repeat('a,', 1000000), ',')", "string_to_array"),
        ("SELECT length(repeat('x', 3000000) || repeat('x', 3000000))", "||"),
    ];
    let groups = format!("SELECT regexp_match(repeat('a', 1000000), '{}.*{}')", "(".repeat(100), ")".repeat(100));
    for (sql, function) in refused.into_iter().chain([(groups.as_str(), "regexp_match")]) {
        let error = ends(&store, sql).await.unwrap_err().to_string();
        assert!(error.contains(&format!("{function} would make about")), "{sql}: {error}");
    }
}

#[tokio::test]
async fn operators_answer_as_before_they_were_bounded() {
    let store = store();
    let cases = [
        ("'a' || 'b'", "ab"),
        ("'a' || NULL", ""),
        ("'a' || 1", "a1"),
        ("1 || 'a' || 2.5", "1a2.5"),
        ("host || '-' || text", "a-some text"),
        ("host || host", "aa"),
        ("arrow_typeof('a' || arrow_cast('b', 'LargeUtf8'))", "LargeUtf8"),
        ("[1, 2] || [3]", "[1, 2, 3]"),
        ("[1, 2] || 3", "[1, 2, 3]"),
        ("0 || [1, 2]", "[0, 1, 2]"),
        ("[[1]] || [2]", "[[1], [2]]"),
        ("[1, NULL, 3][3]", "3"),
        ("struct(1, 'a')", "{c0: 1, c1: a}"),
        ("{'a': 1, 'b': x}['b']", "7"),
        ("named_struct('a', x)['a'] + 1", "8"),
        ("overlay('Txxxxas' placing 'hom' from 2 for 4)", "Thomas"),
        ("to_char(time, '%Y')", "1970"),
        ("levenshtein('kitten', 'sitting')", "3"),
        ("regexp_match('ab12', '([a-z]+)([0-9]+)')", "[ab, 12]"),
        ("string_to_array('a,b', ',')", "[a, b]"),
    ];
    for (expression, expected) in cases {
        let sql = format!("SELECT {expression} FROM m WHERE x = 7");
        assert_eq!(store.rows(&sql).await, [expected], "{expression}");
    }
    let batches = store.run("SELECT host || text, x FROM m LIMIT 1").await.unwrap();
    assert_eq!(batches[0].schema_ref().field(0).name(), "m.host || m.text");
}

/// What the parser tries in more ways than there is time for.
fn endless() -> Vec<String> {
    let words = ["INTERVAL ", "POSITION(", "CAST(", "EXTRACT(", "SUBSTRING(", "TRIM(", "NOT ", "- ", "(", "[", "CASE "];
    let mut all: Vec<String> =
        words.iter().flat_map(|word| [45, 300, 30_000].map(|count| word.repeat(count))).collect();
    all.extend([" + 1", " OR a = 1", "::INT", " || 'a'"].iter().map(|piece| format!("a = 1{}", piece.repeat(100_000))));
    all
}

#[test]
fn changes_and_conditions_have_the_limits_of_queries() {
    for text in endless() {
        for sql in [
            format!("INSERT INTO m (time) VALUES ({text})"),
            format!("INSERT INTO m (time) SELECT {text}"),
            format!("DELETE FROM m WHERE {text}"),
            format!("CREATE TABLE m (x INT DEFAULT {text})"),
            format!("DROP TABLE {text}"),
        ] {
            let asked = sql.clone();
            let parsed = in_time(&sql, move || parse_change(&Statement::parse(&asked)?).map(drop));
            if let Err(error) = parsed {
                assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
            }
        }
        let asked = text.clone();
        if let Err(error) = in_time(&text, move || Predicate::from_sql(&asked)) {
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        }
        let asked = format!("VALUES ({text})");
        if let Err(error) = in_time(&text, move || inserted_placeholders(&Statement::parse(&asked)?)) {
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        }
    }
}

/// Numbers that follow from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn one_of<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.below(items.len())]
    }

    /// How often something comes, mostly little.
    fn count(&mut self) -> usize {
        [1, 1, 2, 2, 3, 3, 17, 64, 900][self.below(9)]
    }

    fn many(&mut self, separator: &str, item: impl Fn(&mut Self) -> String) -> String {
        let count = self.count();
        // Each different where it is short, and one again and again where not.
        let items: Vec<String> = (0..count.min(3)).map(|_| item(self)).collect();
        let count = count.min(1 + (1 << 18) / items.iter().map(String::len).max().unwrap_or(1).max(1));
        (0..count).map(|n| items[n % items.len()].as_str()).collect::<Vec<_>>().join(separator)
    }

    fn expr(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self
                .one_of(&["x", "a", "1", "'text'", "host", "NULL", "time", "[1, 2]", "f", "2147483648"])
                .to_owned();
        }
        let (one, other) = (self.expr(depth - 1), self.expr(depth - 1));
        match self.below(16) {
            0 => format!("({one} || {other})"),
            1 => format!("repeat({one}::TEXT, {other})"),
            2 => format!("[{}]", self.many(", ", |_| one.clone())),
            3 => format!("CASE {} ELSE {other} END", self.many(" ", |_| format!("WHEN {other} THEN {one}"))),
            4 => format!("({})", self.many(self_operator(&one), |_| one.clone())),
            5 => format!("({})", self.query(depth - 1)),
            6 => format!("{one} IN ({})", self.many(", ", |_| other.clone())),
            7 => format!("sum({one}) OVER (PARTITION BY {other} ORDER BY {one} ROWS {} PRECEDING)", self.below(9_999)),
            8 => format!("array_concat([{one}], [{other}])"),
            9 => format!(
                "{}({one})",
                self.one_of(&["sum", "array_agg", "count", "string_agg", "abs", "upper", "unnest"])
            ),
            10 => format!("array_concat([{one}], [{other}])"),
            11 => format!("struct({one}, {other})"),
            12 => format!("EXISTS ({})", self.query(depth - 1)),
            13 => format!("regexp_replace({one}::TEXT, '(a{{1,{}}})*', {other}::TEXT, 'g')", self.below(999)),
            14 => format!("to_char(time, {other}::TEXT)"),
            _ => format!("CAST({one} AS {})", self.one_of(&["INT", "TEXT", "DOUBLE", "TIMESTAMP"])),
        }
    }

    fn relation(&mut self, depth: usize) -> String {
        let table = self.one_of(&["m", "c0", "c1", "c2", "m", "nowhere", "information_schema.columns"]).to_owned();
        match self.below(if depth == 0 { 2 } else { 8 }) {
            0 | 1 => format!("{table} t{}", self.below(4)),
            2 => format!("({}) s{}", self.query(depth - 1), self.below(4)),
            3 => format!("generate_series(1, {}) g(a)", self.one_of(&["3", "100000", "9223372036854775807"])),
            4 => format!("unnest({}) u(a)", self.expr(depth - 1)),
            5 => format!("(VALUES {}) v(a)", self.many(", ", |random| format!("({})", random.below(9)))),
            6 => format!("{table} p PIVOT (sum(x) FOR host IN ('a', 'b'))"),
            _ => {
                let (one, other) = (self.relation(depth - 1), self.relation(depth - 1));
                format!("{one} {} {other}", self.one_of(&["CROSS JOIN", "NATURAL JOIN", "NATURAL FULL JOIN", ","]))
            }
        }
    }

    fn select(&mut self, depth: usize) -> String {
        let from = self.many(", ", |random| random.relation(depth));
        let items = self.many(", ", |random| match random.below(4) {
            0 => "*".to_owned(),
            1 => format!("{} AS a", random.expr(depth)),
            _ => random.expr(depth),
        });
        let condition = match self.below(3) {
            0 => format!(" WHERE {}", self.expr(depth)),
            _ => String::new(),
        };
        let keys = self.many(", ", |random| random.expr(0));
        let group = match self.below(8) {
            0 => format!(" GROUP BY {keys}"),
            1 => format!(" GROUP BY CUBE({keys})"),
            2 => format!(" GROUP BY ROLLUP({keys}), CUBE({keys})"),
            3 => format!(" GROUP BY GROUPING SETS (({keys}), ())"),
            _ => String::new(),
        };
        match self.below(6) {
            0 => format!("FROM {from} |> SELECT {items} |> EXTEND {keys} |> LIMIT 5"),
            1 => format!("SELECT DISTINCT {items} FROM {from}{condition} ORDER BY {keys} LIMIT 10"),
            _ => format!("SELECT {items} FROM {from}{condition}{group}"),
        }
    }

    fn query(&mut self, depth: usize) -> String {
        let body = match (self.below(4), depth) {
            (0, 1..) => {
                let operator = self.one_of(&[" UNION ALL ", " UNION ", " EXCEPT ", " INTERSECT "]);
                self.many(operator, |random| random.select(depth - 1))
            }
            _ => self.select(depth),
        };
        match self.below(4) {
            0 => {
                let count = self.count().min(64);
                let first = self.select(0);
                let pick = self.one_of(&["x.*, y.*", "*", "x.a, y.a", "x.a || y.a AS a", "[x.a, y.a] AS a"]);
                let tables = self.one_of(&["x, C y", "x JOIN C y ON true", "x, LATERAL (SELECT a FROM C) y"]);
                let next = |n: usize| {
                    format!(", c{} AS (SELECT {pick} FROM C {tables})", n + 1).replace('C', &format!("c{n}"))
                };
                format!("WITH c0 AS ({first}){} {body}", list(count, "", next))
            }
            1 => format!("WITH RECURSIVE c0 AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM c0 x, c0 y) {body}"),
            _ => body,
        }
    }
}

fn self_operator(of: &str) -> &'static str {
    if of.contains('\'') { " || " } else { " + " }
}

/// Goes on from `HOSTILE_SEED` for as many as `HOSTILE_CASES`.
#[tokio::test(flavor = "multi_thread")]
async fn statements_made_of_what_is_hostile_end() {
    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    let (first, cases) = (number("HOSTILE_SEED").unwrap_or(1), number("HOSTILE_CASES").unwrap_or(30));
    let store = store_with(Duration::from_secs(1));
    for seed in first..first + cases {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let query = random.query(3);
        let sql = match random.below(5) {
            0 => format!("EXPLAIN {query}"),
            1 => format!("EXPLAIN ANALYZE {query}"),
            _ => query.clone(),
        };
        let _ = ends(&store, &format!("/* seed {seed} */ {sql}")).await;
        let change = match random.below(3) {
            0 => format!("INSERT INTO /* seed {seed} */ m {query}"),
            1 => format!("INSERT INTO /* seed {seed} */ m VALUES ({})", random.expr(4)),
            _ => format!("DELETE FROM /* seed {seed} */ m WHERE {}", random.expr(4)),
        };
        let _ = in_time(&change.clone(), move || parse_change(&Statement::parse(&change)?).map(drop));
    }
}
