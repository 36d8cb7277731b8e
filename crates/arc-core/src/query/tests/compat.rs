//! What people bring from other engines, and columns of one name.

use super::fake::{
    Cell::{Float, Integer, Text},
    Home::{Buffer, File},
    Store, TableBuilder,
};

fn store() -> Store {
    let store = Store::new();
    let row = |n: i64, host, x| (n * 1_000_000_000, vec![("host", Text(host)), ("x", Float(x))]);
    let table = TableBuilder::new("m")
        .part(File, vec![row(0, "a", 5.0), row(1, "a", 2.0), row(2, "b", 9.0)])
        .part(Buffer, vec![row(3, "a", 2.0), row(4, "b", 9.0), (5_000_000_000, vec![("n", Integer(1))])]);
    store.put("db", table);
    store
}

#[tokio::test]
async fn influxdb_selects_points_and_calls_the_schema_iox() {
    let store = store();
    let point = |function: &str| {
        format!("SELECT {function}['value'], epoch_ms({function}['time']) FROM iox.m GROUP BY host HAVING host = 'a'")
    };
    let cases = [
        // Of equal values the earliest; the last row has no x.
        (point("selector_first(x, time)"), "5.0|0"),
        (point("selector_last(x, time)"), "2.0|3000"),
        (point("selector_min(x, time)"), "2.0|1000"),
        (point("Selector_Max(x, time)"), "5.0|0"),
        ("SELECT selector_max(x, time)['time'] FROM \"iox\".m".to_owned(), "1970-01-01T00:00:02Z"),
        ("SELECT selector_last(x, time)['value'] FROM m".to_owned(), "9.0"),
        ("SELECT selector_last(x, time) FILTER (WHERE x < 5 OR x = 5)['value'] FROM arc.iox.m".to_owned(), "2.0"),
        ("SELECT table_name FROM information_schema.tables WHERE table_schema = 'iox'".to_owned(), "m"),
        (
            "SELECT c.column_name FROM information_schema.columns c WHERE c.table_schema = 'iox' AND c.data_type = 'Float64'"
                .to_owned(),
            "x",
        ),
    ];
    for (sql, expected) in cases {
        assert_eq!(store.rows(&sql).await, [expected], "{sql}");
    }
    assert!(
        store.error("SELECT * FROM iox.none").await.to_string().contains("\"none\" does not exist in database \"db\"")
    );
}

#[tokio::test]
async fn a_selector_says_what_it_takes() {
    let store = store();
    for (call, name) in [
        ("selector_first()", "selector_first"),
        ("selector_last(x)", "selector_last"),
        ("Selector_Min(x, time, host)", "selector_min"),
        ("selector_max(DISTINCT x, time)", "selector_max"),
        ("selector_last(*)", "selector_last"),
    ] {
        for sql in [format!("SELECT {call} FROM m"), format!("EXPLAIN SELECT 1 + (SELECT {call}['value'] FROM m)")] {
            let said = store.error(&sql).await.to_string();
            assert!(said.contains(&format!("{name} takes a value and a time")), "{sql}: {said}");
        }
    }
}

#[tokio::test]
async fn a_database_called_iox_is_itself() {
    let store = store();
    store.put("iox", TableBuilder::new("m").part(Buffer, vec![(7, vec![("x", Float(1.0))])]));
    assert_eq!(store.rows("SELECT count(*) FROM iox.m").await, ["1"]);
    assert_eq!(store.rows("SELECT count(*) FROM m").await, ["6"]);
    let sql = "SELECT table_schema FROM information_schema.tables WHERE table_schema = 'iox'";
    assert_eq!(store.rows(sql).await, ["iox"]);
}

#[tokio::test]
async fn functions_of_other_engines_have_their_names() {
    let store = store();
    let cases = [
        ("epoch(TIMESTAMP '1970-01-01 00:01:00.5')", "60.5"),
        ("strftime(TIMESTAMP '2025-02-03 00:00:00', '%Y/%m')", "2025/02"),
        ("regexp_matches('host-1', '^host-[0-9]$')", "true"),
        ("make_timestamp(1500000)", "1970-01-01T00:00:01.500Z"),
        ("current_database() || '.' || current_schema()", "db.db"),
        ("Year(TIMESTAMP '2025-02-03 04:05:06') * 100 + month(TIMESTAMP '2025-02-03 04:05:06')", "202502"),
        ("hour(TIMESTAMP '2025-02-03 04:05:06') * 60 + minute(TIMESTAMP '2025-02-03 04:05:06')", "245"),
        ("len('abc') || ucase('d') || lcase('E')", "3De"),
    ];
    for (expression, expected) in cases {
        assert_eq!(store.rows(&format!("SELECT {expression}")).await, [expected], "{expression}");
    }
    assert_eq!(store.rows("SELECT array_length(list(host)) FROM m").await, ["6"]);
    assert_eq!(store.rows("SELECT variance(x) = var_samp(x), every(x > 0) FROM m").await, ["true|true"]);
    // A column may be called so.
    assert_eq!(store.rows("SELECT epoch FROM (SELECT 1 AS epoch)").await, ["1"]);
}

#[tokio::test]
async fn the_form_of_a_time_in_letters_is_refused() {
    let store = store();
    for call in ["to_char(time, 'YYYY-MM-DD')", "strftime(time, 'yyyy')", "DATE_FORMAT(time, 'dd.MM.')"] {
        let said = store.error(&format!("SELECT {call} FROM m")).await.to_string();
        assert!(said.contains("expected a form like '%Y-%m-%d"), "{call}: {said}");
    }
    assert_eq!(store.rows("SELECT to_char(time, '--'), to_char(time, '%Y') FROM m LIMIT 1").await, ["--|1970"]);
}

#[tokio::test]
async fn a_table_of_a_database_has_its_columns_by_its_own_name() {
    let store = store();
    store.put("other", TableBuilder::new("m").part(Buffer, vec![(7, vec![("y", Float(1.0))])]));
    let same = [
        ("SELECT m.* FROM db.m ORDER BY time", "SELECT * FROM m ORDER BY time"),
        ("SELECT m.* FROM iox.m ORDER BY time", "SELECT * FROM m ORDER BY time"),
        ("SELECT b.*, m.* FROM other.m CROSS JOIN m b", "SELECT b.*, a.* FROM other.m a CROSS JOIN m b"),
        ("SELECT (SELECT count(*) FROM (SELECT m.* FROM db.m))", "SELECT count(*) FROM m"),
        ("SELECT m.* FROM db.m a CROSS JOIN (SELECT 1 AS one) m", "SELECT 1 FROM m"),
    ];
    for (sql, plain) in same {
        let (mut found, mut expected) = (store.rows(sql).await, store.rows(plain).await);
        // A join has no order.
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{sql}");
    }
    assert!(store.error("SELECT m.* FROM db.m CROSS JOIN other.m").await.to_string().contains("qualifier m"));
}

#[tokio::test]
async fn fetch_first_is_a_limit() {
    let store = store();
    for (fetch, limit) in [
        ("FETCH FIRST 2 ROWS ONLY", "LIMIT 2"),
        ("FETCH NEXT ROW ONLY", "LIMIT 1"),
        ("OFFSET 1 ROW FETCH NEXT 3 ROWS ONLY", "LIMIT 3 OFFSET 1"),
    ] {
        let ask = |end| {
            format!(
                "SELECT count(*) FROM (SELECT x FROM m ORDER BY time {end}) UNION ALL SELECT x FROM m ORDER BY 1 {end}"
            )
        };
        assert_eq!(store.rows(&ask(fetch)).await, store.rows(&ask(limit)).await, "{fetch}");
    }
    store.error("SELECT x FROM m ORDER BY x FETCH FIRST 2 ROWS WITH TIES").await;
}

#[tokio::test]
async fn a_name_in_other_letters_gets_no_advice_that_nobody_can_follow() {
    let said = store().error("SELECT X FROM m").await.to_string();
    assert!(
        said.contains("No field named \"X\". Did you mean 'm.x'?\nColumn names are case sensitive.\nValid fields are "),
        "{said}"
    );
    assert!(!said.contains("double quotes") && !said.contains("configuration"), "{said}");
}

#[tokio::test]
async fn a_name_of_several_columns_is_none_for_those_who_read_them() {
    let store = store();
    let refused = [
        "SELECT x FROM (SELECT x AS x, y AS x FROM (SELECT x, 1 AS y FROM m)) s",
        "SELECT s.x FROM (SELECT time AS x, x FROM m) s",
        "WITH s AS (SELECT 1 AS x, 2 AS x) SELECT x + 1 FROM s",
        "SELECT max(x), max(x) FROM (SELECT x, x FROM m) s",
        "SELECT 1 AS a, 1 AS a, (SELECT max(b) FROM (SELECT 1 AS b, 2 AS b) s)",
    ];
    for sql in refused {
        let said = store.error(sql).await.to_string();
        assert!(said.contains("No field named") || said.contains("would be ambiguous"), "{sql}: {said}");
    }
    let said = store.error("SELECT x AS a, time AS a FROM m ORDER BY a").await.to_string();
    assert!(said.contains("a is ambiguous in ORDER BY"), "{said}");
    let cases = [
        ("SELECT count(*) FROM (SELECT x, x FROM m) s", "6"),
        ("SELECT * FROM (SELECT 1 AS a, 2 AS a, 3 AS b) s", "1|2|3"),
        ("SELECT b FROM (SELECT 1 AS a, 2 AS a, 3 AS b) s", "3"),
        ("SELECT x, x FROM m ORDER BY x LIMIT 1", "2.0|2.0"),
        ("SELECT 1 AS a, 2 AS a UNION ALL SELECT 1, 2 LIMIT 1", "1|2"),
    ];
    for (sql, row) in cases {
        assert_eq!(store.rows(sql).await, [row], "{sql}");
    }
}

#[tokio::test]
async fn columns_that_differ_in_a_cast_are_two() {
    let store = store();
    let cases = [
        ("SELECT sum(x), sum(CAST(x AS BIGINT)) FROM m WHERE x = 5", "sum(x)|sum(CAST(x AS BIGINT))", "5.0|5"),
        ("SELECT max(x::TEXT), max(x::INT), max(x) FROM m WHERE x = 5", "max(x::TEXT)|max(x::INT)|max(x)", "5.0|5|5.0"),
        ("SELECT sum(x) OVER () AS a, sum(CAST(x AS BIGINT)) OVER () AS b FROM m WHERE x = 5", "a|b", "5.0|5"),
        ("SELECT sum(CAST(x AS BIGINT)) FROM m WHERE x = 5", "sum(m.x)", "5"),
    ];
    for (sql, names, row) in cases {
        let batches = store.run(sql).await.unwrap();
        let found: Vec<&str> = batches[0].schema_ref().fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(found.join("|"), names, "{sql}");
        assert_eq!(store.rows(sql).await, [row], "{sql}");
    }
}

#[tokio::test]
async fn columns_of_one_name_are_told_apart() {
    let store = store();
    let cases = [
        ("SELECT 7 // 2, 7 / 2", "7 // 2|7 / 2", "3|3"),
        ("SELECT x::INT, CAST(x AS DOUBLE) FROM m ORDER BY time LIMIT 1", "x::INT|CAST(x AS DOUBLE)", "5|5.0"),
        ("SELECT x, time, x, x FROM m ORDER BY time LIMIT 1", "x|time|x_1|x_2", "5.0|1970-01-01T00:00:00Z|5.0|5.0"),
        ("SELECT 1 AS a, 2 AS a, 3 AS a_1", "a|a_1|a_1_1", "1|2|3"),
        (
            "SELECT max(x), max(x), host FROM m GROUP BY host ORDER BY max(x) LIMIT 1",
            "max(x)|max(x)_1|host",
            "5.0|5.0|a",
        ),
        ("WITH t AS (SELECT 1, 1) SELECT * FROM t", "1|1_1", "1|1"),
        ("SELECT max(x) FROM m", "max(m.x)", "9.0"),
        // One of them is a column of a table.
        ("SELECT host, x AS host FROM m ORDER BY time LIMIT 1", "host|host_1", "a|5.0"),
        ("SELECT x AS host, m.host FROM m ORDER BY time LIMIT 1", "host|host_1", "5.0|a"),
        ("SELECT host, max(x) AS host FROM m GROUP BY host ORDER BY max(x) LIMIT 1", "host|host_1", "a|5.0"),
        ("SELECT host, (SELECT max(host) AS host FROM m AS n) FROM m ORDER BY time LIMIT 1", "host|host_1", "a|b"),
        ("SELECT * FROM (SELECT host, x AS host FROM m ORDER BY time LIMIT 1) AS t", "host_1|host_2", "a|5.0"),
    ];
    for (sql, names, row) in cases {
        let batches = store.run(sql).await.unwrap();
        let found: Vec<&str> = batches[0].schema_ref().fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(found.join("|"), names, "{sql}");
        assert_eq!(store.rows(sql).await, [row], "{sql}");
    }
}

#[tokio::test]
async fn the_schema_iox_is_known_however_it_is_asked_for() {
    let store = store();
    for (condition, tables) in [
        ("table_schema = 'iox'", "1"),
        ("'iox' = table_schema", "1"),
        ("table_schema IN ('iox')", "1"),
        ("t.table_schema IN ('other', 'iox')", "1"),
        ("table_schema NOT IN ('iox', 'information_schema')", "0"),
        ("table_schema LIKE 'iox'", "1"),
        ("table_schema ILIKE 'iox'", "1"),
        ("table_schema NOT LIKE 'iox' AND table_schema <> 'information_schema'", "0"),
        ("table_schema <> 'iox' AND table_schema <> 'information_schema'", "0"),
        ("table_schema LIKE 'io'", "0"),
        ("table_name = 'iox'", "0"),
    ] {
        let sql = format!("SELECT count(*) FROM information_schema.tables t WHERE {condition}");
        assert_eq!(store.rows(&sql).await, [tables], "{condition}");
    }
    for sql in ["SHOW COLUMNS FROM iox.m", "SHOW TABLES FROM iox"] {
        assert_eq!(store.rows(sql).await, store.rows(&sql.replace("iox", "db")).await, "{sql}");
    }
    assert_eq!(store.rows("SELECT count(*) FROM information_schema.views").await, ["0"]);
}
