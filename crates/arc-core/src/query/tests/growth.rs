//! What planning makes of what is nested: as much as it says, or an error.

use std::time::Duration;

use super::fake::{
    Cell::{Integer, Tag, Text},
    Home::Buffer,
    Store, TableBuilder,
};
use crate::{ErrorKind, Options, vfs::stride};

/// Levels of a nested statement: what doubles at each would be larger than [`MOST`].
const LEVELS: usize = 14;

/// Most bytes of the plan of a nested statement, or of why there is none. One that grows at each level by what it says has a
/// quarter.
const MOST: usize = 128 << 10;

fn store() -> Store {
    let store = Store::new();
    let row = |i| (i, vec![("host", Tag("a")), ("x", Integer(i)), ("text", Text("abc"))]);
    store.put("db", TableBuilder::new("m").part(Buffer, (0..10).map(row).collect()));
    store
}

fn nested(pattern: &str, levels: usize) -> String {
    (0..levels).fold("x".to_owned(), |inner, _| pattern.replace("{}", &inner))
}

/// Plans a nested statement; `None` if it is refused as too large.
async fn planned(store: &Store, expression: &str) -> Option<String> {
    match store.text(&format!("EXPLAIN SELECT {expression} FROM m")).await {
        refused if refused.contains("too large") => None,
        answer => Some(answer),
    }
}

#[tokio::test]
async fn what_the_planner_copies_is_counted_before_it_does() {
    let store = store();
    let copied = [
        "({} BETWEEN 0 AND 1)",
        "({} NOT BETWEEN 0 AND 1)",
        "({} IN (1, 2))",
        "({} IN (1, 2, 3))",
        "coalesce({}, 1)",
        "ifnull({}, 1)",
        "nvl({}, 1)",
        "nvl2({}, 1, 2)",
        "(CASE WHEN {} = 1 THEN x = 2 ELSE x = 3 END)",
        "(map(['a'], [{}])['a'])",
        "(SELECT {})",
        "(SELECT max({}) FROM m)",
        "(WITH w AS (SELECT {} AS x) SELECT x FROM w)",
        "EXISTS (SELECT 1 FROM m WHERE {} = 1)",
        "(x IN (SELECT x FROM m WHERE {} = 1))",
        "(x = ANY (SELECT x FROM m WHERE {} = 1))",
    ];
    for pattern in copied {
        let few = store.text(&format!("SELECT {} FROM m", nested(pattern, 3))).await;
        assert!(!few.contains("too large"), "{pattern}: {few}");
        let error = store.error(&format!("SELECT {} FROM m", nested(pattern, 20))).await;
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{pattern}: {error}");
        assert!(error.to_string().contains("that are in each other make more"), "{pattern}: {error}");
    }
    let with = |count| {
        (0..count).fold("m".to_owned(), |below, _| format!("(WITH w AS (SELECT x FROM {below}) SELECT x FROM w)"))
    };
    assert_eq!(store.rows(&format!("SELECT max(x) FROM {}", with(8))).await, ["9"]);
    assert!(
        store.error(&format!("SELECT max(x) FROM {}", with(20))).await.to_string().contains("in each other make more")
    );
    // What is beside each other, or where nothing is copied, is no more than it says.
    let beside = format!("SELECT {} FROM m", ["x BETWEEN 1 AND 5"; 500].join(" OR "));
    assert!(store.text(&beside).await.starts_with('+'));
    for pattern in ["coalesce(1, {})", "CASE WHEN x = 1 THEN 2 ELSE {} END", "(1 + {})", "abs({})"] {
        let answer = store.text(&format!("SELECT {} AS v FROM m", nested(pattern, 40))).await;
        assert!(answer.starts_with('+'), "{pattern}: {answer}");
    }
}

#[tokio::test]
async fn calls_are_in_each_other_as_far_as_their_names_stay_small() {
    let store = store();
    let joined = |count| vec!["text"; count].join(" || ");
    let replaced = |levels| nested("replace({}, 'a', 'b')", levels).replace('x', "text");
    let few = [replaced(60), nested("abs({})", 60), joined(60)];
    for expression in few.into_iter().chain([vec![nested("concat({}, 'a', 'b')", 5); 300].join(", ")]) {
        assert!(store.run(&format!("EXPLAIN SELECT {expression} FROM m")).await.is_ok(), "{expression}");
    }
    let long = format!("concat({{}}, '{}')", "a".repeat(5_000));
    let many = [replaced(170), nested("concat(trim({}), 'a')", 95), joined(249), nested(&long, 80)];
    for expression in many {
        // As often as they are there.
        let sql = format!("SELECT DISTINCT ON ({expression}) time FROM m ORDER BY {expression}, time");
        let error = store.error(&sql).await;
        assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains("in each other"), "{error}");
    }
}

#[tokio::test]
async fn functions_are_called_by_their_own_names_inside_of_each_other() {
    let store = store();
    let sql = format!("SELECT {} FROM m", nested("length({})", 60));
    assert_eq!(store.rows(&sql).await, ["1"; 10]);
    let name = |answer: String| answer.lines().nth(1).unwrap_or_default().trim_matches(['|', ' ']).to_owned();
    assert_eq!(name(store.text("SELECT length(text) FROM m").await), "length(m.text)");
    assert_eq!(name(store.text("SELECT abs(length(text)) FROM m").await), "abs(length(m.text))");
    assert_eq!(name(store.text("SELECT length(length(text)) FROM m").await), "length(character_length(m.text))");
    assert_eq!(
        store.rows("SELECT list_max(list_sort([x, 3])), pow(pow(x, 2), 2) FROM m WHERE x = 2").await,
        ["3|16.0"]
    );
    assert!(store.error("SELECT length(nothing.length(text)) FROM m").await.to_string().contains("nothing.length"));
}

#[tokio::test]
async fn types_of_which_no_value_is_small_are_refused_wherever_they_are_said() {
    let store = store();
    let list = "FixedSizeList(1000000 x FixedSizeList(1000000 x Float32))";
    for value in [
        format!("arrow_cast(NULL, '{list}')"),
        format!("arrow_try_cast(NULL, ('{list}'))"),
        format!("arrow_cast(NULL, 'Dictionary(Int32, {list})')"),
        format!("arrow_cast(NULL, 'RunEndEncoded(\"run_ends\": non-null Int32, \"values\": {list})')"),
        "CAST(NULL AS BIGINT[1000000][1000000])".to_owned(),
        "TRY_CAST(NULL AS BIGINT[1000000][1000000])".to_owned(),
        "(NULL::BIGINT[100000])".to_owned(),
    ] {
        for sql in [
            format!("SELECT {value}"),
            format!("SELECT * FROM (VALUES ({value}), (NULL)) v(a)"),
            format!("SELECT x FROM m WHERE {value} IS NULL"),
            format!("SELECT x FROM m AS OF (SELECT {value})"),
        ] {
            let error = store.error(&sql).await;
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{sql}: {error}");
        }
    }
    for (value, data_type) in [
        ("map(['a'], [1])", "Map(\"entries\": Int64, sorted)"),
        ("map(['a'], [1])", "Map(\"entries\": Struct(\"key\": non-null Utf8), sorted)"),
        ("host", "FixedSizeList(1, Dictionary(Float64, Date32))"),
        ("NULL", "Union(Sparse)"),
        ("NULL", "RunEndEncoded(\"run_ends\": Utf8, \"values\": Int8)"),
        ("[]", "FixedSizeList(0, Int64)"),
        ("struct(1, 2)", "Struct()"),
        ("[struct(1)]", "List(Struct())"),
        ("1", "Decimal128(38, -39)"),
        ("1", "List(Decimal256(76, -100))"),
        ("x", "List(Union(Dense))"),
    ] {
        for function in ["arrow_cast", "arrow_try_cast"] {
            let error = store.error(&format!("SELECT {function}({value}, '{data_type}') FROM m")).await;
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{data_type}: {error}");
        }
    }
    // Types are looked at before the planner computes with them.
    let error =
        store.error("SELECT arrow_cast(x, 'RunEndEncoded(\"run_ends\": Utf8, \"values\": Int8)') % 1 FROM m").await;
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    let sql = "SELECT arrow_cast([1.5], 'FixedSizeList(1 x Float32)'), arrow_cast('a', 'Dictionary(Int32, Utf8)')";
    assert_eq!(store.rows(sql).await, ["[1.5]|a"]);
}

/// Returns a query of so many levels, each of which computes `y` from that of the one below.
fn levels(count: usize, each: &str) -> String {
    (0..count).fold("SELECT x AS y FROM m".to_owned(), |below, _| each.replace("{}", &format!("({below})")))
}

#[tokio::test]
async fn columns_are_written_out_as_far_as_they_stay_small() {
    let store = store();
    for (each, asked) in [
        ("SELECT y + y AS y FROM {}", "SELECT y FROM {} WHERE y > 5"),
        ("SELECT y + y AS y FROM {}", "SELECT y FROM {} GROUP BY y HAVING y > 5"),
        ("SELECT y + y AS y FROM {}", "SELECT x FROM m WHERE x IN (SELECT y FROM {} WHERE y > 5)"),
        ("SELECT y * y AS y, 1 AS z FROM {} GROUP BY y", "SELECT y FROM {} WHERE y > 5"),
        ("SELECT CASE WHEN y > 1 THEN y ELSE 1 END AS y FROM {}", "SELECT a.y FROM {} a JOIN m ON a.y > m.x"),
        ("SELECT y + y AS y FROM {} UNION ALL SELECT 1", "SELECT y FROM {} WHERE y > 5"),
        ("SELECT y + y AS y FROM {}", "SELECT y FROM {} ORDER BY y LIMIT 3"),
        ("SELECT y + y AS y FROM {}", "SELECT max(y) FROM {}"),
    ] {
        let few = store.text(&asked.replace("{}", &format!("({})", levels(4, each)))).await;
        assert!(few.starts_with('+'), "{each}: {few}");
        let error = store.error(&asked.replace("{}", &format!("({})", levels(20, each)))).await;
        assert!(error.to_string().contains("all columns written out"), "{each}: {error}");
    }
    let sums = levels(10, "SELECT y + y AS y FROM {}");
    assert_eq!(store.rows(&format!("SELECT max(y) FROM ({sums})")).await, ["9216"]);
    let ones = levels(30, "SELECT y + 1 AS y FROM {}");
    assert_eq!(store.rows(&format!("SELECT count(*) FROM ({ones}) WHERE y > 34")).await, ["5"]);
    let many = (0..9_000).map(|n| format!(" WHEN x = {n} THEN x > 3")).collect::<String>();
    assert!(!store.text(&format!("SELECT count(*) FROM m WHERE CASE{many} END")).await.contains("written out"));
}

#[tokio::test]
async fn casts_of_what_is_computed_are_in_each_other_as_far_as_planning_them_ends() {
    let store = store();
    for pattern in ["CAST(({} = 1) AS INT)", "CAST(CASE WHEN x = 1 THEN {} END AS BOOLEAN)"] {
        assert!(!store.text(&format!("SELECT {} FROM m", nested(pattern, 6))).await.contains("casts"), "{pattern}");
        let error = store.error(&format!("SELECT {} FROM m", nested(pattern, 30))).await;
        assert!(error.to_string().contains("casts in each other"), "{pattern}: {error}");
    }
    let plain = nested("CAST(CAST({} AS VARCHAR) AS BIGINT)", 30);
    assert_eq!(store.rows(&format!("SELECT {plain} FROM m WHERE x = 7")).await, ["7"]);
}

#[tokio::test]
async fn plans_of_many_levels_find_stack_or_are_refused() {
    let store = store();
    let windows = |count: usize| {
        let columns = (0..count).map(|n| format!("first_value(x) OVER (ORDER BY x + {n}) AS w{n}"));
        format!("SELECT {} FROM m LIMIT 1", columns.collect::<Vec<_>>().join(", "))
    };
    let distinct = |count: usize| {
        let levels = (1..=count).map(|n| format!(", a{n} AS (SELECT DISTINCT x + 1 AS x FROM a{})", n - 1));
        format!("WITH a0 AS (SELECT x FROM m){} SELECT max(x) FROM a{count}", levels.collect::<String>())
    };
    let grown = |count| format!("SELECT count(*) FROM ({})", levels(count, "SELECT y FROM {} UNION ALL SELECT 1"));
    for (sql, expected) in [(windows(1), None), (windows(60), None), (grown(40), Some("50"))] {
        let rows = store.rows(&sql).await;
        assert!(rows.len() == 1 && expected.is_none_or(|expected| rows == [expected]), "{sql}: {rows:?}");
    }
    for count in [1, 60] {
        assert_eq!(store.rows(&distinct(count)).await, [(9 + count).to_string()]);
    }
    let error = store.error(&distinct(150)).await;
    assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains("levels, at most 500"), "{error}");
}

/// Functions, by all their names, with what they take in each place, and operators; each again of what it makes, as it is or as
/// another type.
#[tokio::test]
async fn nothing_that_is_nested_grows_by_more_than_it_says() {
    let store = store();
    let names = store.rows("SELECT DISTINCT routine_name FROM information_schema.routines ORDER BY 1").await;
    assert!(names.len() > 200, "{names:?}");
    let calls = ["{}", "{}, 1", "1, {}", "{}, 'a'", "'a', {}", "{}, x, x", "x, {}, x", "x, x, {}"];
    let mut patterns: Vec<String> =
        names.iter().flat_map(|name| calls.map(|arguments| format!("{name}({arguments})"))).collect();
    let operators = [
        "({} BETWEEN 0 AND 1)",
        "(x BETWEEN {} AND 1)",
        "({} IN (1, 2, 3))",
        "(x IN ({}, 2))",
        "({} IN (SELECT x FROM m))",
        "({} NOT IN (SELECT x FROM m))",
        "(x NOT IN (SELECT x FROM m WHERE {}) OR x = 2)",
        "CASE WHEN {} THEN x = 1 ELSE x = 2 END",
        "CASE WHEN x = 1 THEN {} ELSE x = 2 END",
        "CASE WHEN x = 1 THEN {} END",
        "CASE {} WHEN 1 THEN 2 ELSE 3 END",
        "CASE x WHEN {} THEN 2 ELSE 3 END",
        "(SELECT {})",
        "EXISTS (SELECT 1 FROM m WHERE {})",
        "({} = ANY (SELECT x FROM m))",
        "({} > ALL (SELECT x FROM m))",
        "({} IS DISTINCT FROM 1)",
        "({} IS NULL)",
        "({} IS NOT TRUE)",
        "({} LIKE 'a%')",
        "({} ILIKE '%')",
        "({} ~ 'a')",
        "({} || 'a')",
        "[{}]",
        "({})[1]",
        "(-{})",
        "({} % 2)",
        "({} / 2)",
        "(2 / {})",
        "({} + 1)",
        "({} * 0)",
        "({} & 1)",
        "({} AND x = 1)",
        "({} OR x = 1)",
        "(NOT {})",
        "({} = 1)",
        "(date_trunc('day', {}) = TIMESTAMP '2026-01-01')",
        "(date_part('year', {}) = 2026)",
        "(floor({}) = 1)",
        "({} AT TIME ZONE 'Europe/Berlin')",
        "EXTRACT(year FROM {})",
        "{ 'a': {} }",
        "sum({}) OVER ()",
        "(SELECT sum({}) FROM m)",
    ];
    patterns.extend(operators.map(str::to_owned));
    let types = ["VARCHAR", "DOUBLE", "BIGINT", "TIMESTAMP", "BOOLEAN"];
    let wholes = patterns.iter().flat_map(|pattern| {
        std::iter::once(pattern.clone()).chain(types.map(|name| format!("CAST({pattern} AS {name})")))
    });
    for pattern in wholes.step_by(stride(61)) {
        let Some(answer) = planned(&store, &nested(&pattern, LEVELS)).await else { continue };
        assert!(answer.len() <= MOST, "{pattern}: {} bytes, {}", answer.len(), answer.get(..500).unwrap_or_default());
    }
}

#[tokio::test]
async fn constants_that_are_computed_end_with_their_statement() {
    let store = Store::with_options(&Options { query_timeout: Duration::from_millis(300), ..Options::default() });
    let sql = format!("SELECT {}'a'{}", "replace(".repeat(100), ", 'a', 'aa')".repeat(100));
    assert_eq!(store.error(&sql).await.kind(), ErrorKind::Timeout);
    let none_planned = async {
        while store.engine.planning() != (0, 0) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), none_planned).await.unwrap();
}
