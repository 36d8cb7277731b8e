//! Each part of a statement that is read is planned or refused, and means what it does in PostgreSQL.

use super::fake::{
    Cell::{Integer, Tag},
    Home::{Buffer, File},
    Store, TableBuilder,
};
use crate::ErrorKind;

fn store() -> Store {
    let row = |time, id, rpm| (time, vec![("id", Tag(id)), ("rpm", Integer(rpm))]);
    let store = Store::new();
    let table = TableBuilder::new("pump");
    store.put(
        "db",
        table.part(File, vec![row(1, "7", 1), row(2, "8", 10)]).part(Buffer, vec![row(3, "7", 2), row(4, "8", 20)]),
    );
    store
}

async fn assert_refused(store: &Store, cases: &[(&str, &str)]) {
    for (sql, part) in cases {
        let error = store.error(sql).await;
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{sql}: {error}");
        assert!(error.to_string().contains(part), "{sql}: {error}");
    }
}

#[tokio::test]
async fn what_a_function_would_pass_over_is_refused() {
    let cases = [
        ("SELECT abs(DISTINCT rpm) FROM pump", "DISTINCT"),
        ("SELECT abs(ALL rpm) FROM pump", "ALL"),
        ("SELECT abs(rpm) FILTER (WHERE rpm > 1) FROM pump", "FILTER"),
        ("SELECT abs(rpm ORDER BY rpm) FROM pump", "ORDER BY"),
        ("SELECT ABS(rpm) IGNORE NULLS FROM pump", "IGNORE NULLS"),
        ("SELECT abs(rpm) OVER () FROM pump", "OVER"),
        ("SELECT abs(rpm) WITHIN GROUP (ORDER BY rpm) FROM pump", "WITHIN GROUP"),
        ("SELECT regr_count(DISTINCT rpm, rpm) FROM pump", "DISTINCT"),
        ("SELECT covar(DISTINCT rpm, rpm) OVER () FROM pump", "DISTINCT"),
        ("SELECT nth_value(DISTINCT rpm, 2 ORDER BY rpm) FROM pump", "DISTINCT"),
        ("SELECT first(rpm, time ORDER BY rpm) FROM pump", "ORDER BY"),
        ("SELECT lag(DISTINCT rpm) OVER (ORDER BY time) FROM pump", "DISTINCT"),
        ("SELECT lead(rpm ORDER BY rpm) OVER (ORDER BY time) FROM pump", "ORDER BY"),
        ("SELECT rank() FILTER (WHERE rpm > 1) OVER (ORDER BY time) FROM pump", "FILTER"),
        ("SELECT sum(rpm) RESPECT NULLS FROM pump", "NULLS"),
        ("SELECT nth_value(rpm, 2 ORDER BY rpm) IGNORE NULLS FROM pump", "NULLS"),
        ("SELECT unnest(DISTINCT [rpm]) FROM pump", "DISTINCT"),
    ];
    assert_refused(&store(), &cases).await;
}

#[tokio::test]
async fn what_would_be_passed_over_is_refused() {
    let store = store();
    let cases = [
        ("SELECT id, sum(rpm) FROM pump GROUP BY id WITH ROLLUP", "WITH ROLLUP"),
        ("SELECT id, sum(rpm) FROM pump GROUP BY id WITH CUBE", "WITH CUBE"),
        ("SELECT id, sum(rpm) FROM pump GROUP BY id WITH TOTALS", "WITH TOTALS"),
        ("SELECT id, sum(rpm) FROM pump GROUP BY ALL WITH ROLLUP", "WITH ROLLUP"),
        ("SELECT id, sum(rpm) FROM pump GROUP BY id GROUPING SETS ((id), ())", "GROUPING SETS"),
        ("SELECT * FROM pump TABLESAMPLE BERNOULLI (0)", "TABLESAMPLE"),
        ("SELECT * FROM (SELECT * FROM pump) AS p TABLESAMPLE BERNOULLI (0)", "TABLESAMPLE"),
        ("SELECT * FROM pump SAMPLE (0)", "SAMPLE"),
        ("SELECT * ILIKE '%rpm%' FROM pump", "ILIKE"),
        ("SELECT p.* ILIKE '%rpm%' FROM pump p", "ILIKE"),
        ("FROM pump |> SELECT * ILIKE '%rpm%'", "ILIKE"),
        ("SELECT rpm FROM pump START WITH rpm = 1 CONNECT BY PRIOR rpm = rpm", "CONNECT BY"),
        ("SELECT rpm FROM pump PARTITION (x)", "PARTITION"),
        ("SELECT * FROM generate_series(5, 7) WITH ORDINALITY", "ORDINALITY"),
        ("SELECT * FROM pump, LATERAL generate_series(5, 7) WITH ORDINALITY", "ORDINALITY"),
        ("SELECT * FROM pump, LATERAL generate_series(stop => 1, start => 7)", "names"),
        ("SELECT round(2)(1.2345)", "parentheses"),
        ("SELECT ARRAY(SELECT rpm FROM pump)", "query as the argument of ARRAY"),
        ("SELECT * FROM pump FOR JSON AUTO", "FOR JSON"),
        ("SELECT * FROM pump FOR UPDATE", "FOR UPDATE"),
        ("SELECT * FROM pump WITH (NOLOCK)", "WITH"),
        ("SELECT * FROM pump PREWHERE rpm > 1", "PREWHERE"),
        ("SELECT * FROM pump a GLOBAL JOIN pump b ON a.rpm = b.rpm", "GLOBAL"),
        ("SELECT AS STRUCT rpm FROM pump", ""),
        ("SELECT HIGH_PRIORITY rpm FROM pump", ""),
        ("SELECT * FROM pump SETTINGS max_threads = 1", "SETTINGS"),
        ("SELECT * FROM pump FORMAT JSON", "FORMAT"),
        ("SELECT x FROM (SELECT 1) AS t(x TEXT)", "type"),
        ("SELECT id FROM pump WHERE id SIMILAR TO '7'", "SIMILAR TO"),
        ("FROM pump |> AGGREGATE sum(rpm) AS s DESC GROUP BY id", "AGGREGATE"),
        ("WITH RECURSIVE n AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM n LIMIT 3) SELECT * FROM n", "RECURSIVE"),
        ("WITH RECURSIVE n AS (SELECT 1 AS x UNION ALL SELECT 2 ORDER BY x DESC LIMIT 1) SELECT * FROM n", "RECURSIVE"),
        ("SELECT rpm FROM pump INTERSECT ALL SELECT 1", "INTERSECT ALL"),
        ("SELECT 1 UNION (SELECT rpm FROM pump EXCEPT ALL SELECT 1)", "EXCEPT ALL"),
        ("SELECT 1 UNION SELECT rpm FROM pump EXCEPT ALL SELECT 1", "EXCEPT ALL"),
        ("FROM pump |> EXCEPT ALL (SELECT * FROM pump)", "EXCEPT"),
        ("SELECT id FROM pump a FULL JOIN pump b USING (id)", "USING"),
        ("SELECT id FROM pump a RIGHT JOIN pump b USING (id)", "USING"),
        ("SELECT id FROM pump a NATURAL FULL JOIN pump b", "NATURAL"),
        ("SELECT * FROM (pump a FULL JOIN pump b USING (id))", "USING"),
        ("FROM pump |> FULL JOIN pump AS b USING (id)", "USING"),
        ("EXPLAIN SELECT * FROM pump TABLESAMPLE BERNOULLI (0)", "TABLESAMPLE"),
        ("SELECT (SELECT max(rpm) FROM pump TABLESAMPLE BERNOULLI (0))", "TABLESAMPLE"),
        // Of windows that name others.
        ("SELECT sum(rpm) OVER w FROM pump", "w is not defined"),
        ("SELECT sum(rpm) OVER (w) FROM pump WINDOW w2 AS (ORDER BY time)", "w is not defined"),
        ("SELECT sum(rpm) OVER a FROM pump WINDOW a AS (b ORDER BY time), b AS (PARTITION BY id)", "b is not defined"),
        ("SELECT (SELECT sum(rpm) OVER w FROM pump) FROM pump WINDOW w AS (ORDER BY time)", "w is not defined"),
        ("SELECT sum(rpm) OVER w FROM pump WINDOW w AS (), w AS ()", "twice"),
        ("SELECT sum(rpm) OVER (w PARTITION BY id) FROM pump WINDOW w AS ()", "PARTITION BY"),
        ("SELECT sum(rpm) OVER (w ORDER BY id) FROM pump WINDOW w AS (ORDER BY time)", "ORDER BY"),
        ("SELECT sum(rpm) OVER (w) FROM pump WINDOW w AS (ORDER BY time ROWS 1 PRECEDING)", "frame"),
    ];
    assert_refused(&store, &cases).await;
}

#[tokio::test]
async fn windows_that_are_written_out_would_take_too_much() {
    let window = format!("PARTITION BY {}", vec!["rpm"; 2_000].join(", "));
    let used = vec!["sum(rpm) OVER w"; 200].join(", ");
    let error = store().error(&format!("SELECT {used} FROM pump WINDOW w AS ({window})")).await.to_string();
    assert!(error.contains("written out"), "{error}");
}

#[tokio::test]
async fn a_named_window_is_the_same_as_the_window_itself() {
    let store = store();
    let own = "SELECT id, sum(rpm) OVER (PARTITION BY id ORDER BY time) AS s FROM pump ORDER BY id, s";
    let expected = store.rows(own).await;
    assert_eq!(expected, ["7|1", "7|3", "8|10", "8|30"]);
    for sql in [
        "SELECT id, sum(rpm) OVER (w ORDER BY time) AS s FROM pump WINDOW w AS (PARTITION BY id) ORDER BY id, s",
        "SELECT id, sum(rpm) OVER v AS s FROM pump WINDOW w AS (PARTITION BY id), v AS (w ORDER BY time) ORDER BY id, s",
        "SELECT id, sum(rpm) OVER v AS s FROM pump WINDOW w AS (PARTITION BY id ORDER BY time), v AS w ORDER BY id, s",
        "SELECT id, 0 + sum(rpm) OVER (w) AS s FROM pump WINDOW w AS (PARTITION BY id ORDER BY time) ORDER BY id, s",
        "WITH p AS (SELECT id, sum(rpm) OVER w AS s FROM pump WINDOW w AS (PARTITION BY id ORDER BY time)) SELECT * FROM p ORDER BY id, s",
        "SELECT id, sum(rpm) OVER (w ROWS UNBOUNDED PRECEDING) AS s FROM pump WINDOW w AS (PARTITION BY id ORDER BY time) ORDER BY id, s",
    ] {
        assert_eq!(store.rows(sql).await, expected, "{sql}");
    }
    let cases = [
        ("SELECT rpm FROM pump WINDOW w AS (ORDER BY rpm DESC) ORDER BY row_number() OVER w", "20|10|2|1"),
        ("SELECT rpm FROM pump WINDOW w AS (ORDER BY rpm DESC) QUALIFY row_number() OVER w = 2", "10"),
        (
            "SELECT rpm FROM pump WINDOW w AS (PARTITION BY id) QUALIFY rpm < sum(rpm) OVER (w ORDER BY time) ORDER BY 1",
            "2|20",
        ),
        (
            "SELECT count(*) OVER w FROM pump WINDOW w AS (PARTITION BY id) UNION SELECT count(*) OVER w FROM pump WINDOW w AS ()
             ORDER BY 1",
            "2|4",
        ),
    ];
    for (sql, expected) in cases {
        assert_eq!(store.rows(sql).await.join("|"), expected, "{sql}");
    }
}

#[tokio::test]
async fn what_is_read_means_what_it_does_in_postgresql() {
    let store = store();
    let cases = [
        ("SELECT count(*) FROM pump WHERE id IS NOT DISTINCT FROM '7' AND rpm > 1", "1"),
        ("SELECT count(*) FROM pump WHERE id IS DISTINCT FROM '7' OR rpm = 1", "3"),
        ("SELECT 1 IS DISTINCT FROM NULL AND false", "false"),
        ("SELECT 1 + 2 || '3'", "33"),
        ("SELECT '7' LIKE '7' = true", "true"),
        ("SELECT true = '7' LIKE '7'", "true"),
        ("SELECT 1 = 1 IS NULL", "false"),
        ("SELECT false = 2 BETWEEN 1 AND 1", "true"),
        ("SELECT 1 | 2 & 4", "0"),
        ("FROM pump |> WHERE rpm > 10 |> SELECT rpm", "20"),
        ("SELECT count(*) FROM (FROM pump)", "4"),
    ];
    for (sql, expected) in cases {
        assert_eq!(store.rows(sql).await, [expected], "{sql}");
    }
    assert_eq!(
        store.rows("FROM pump ORDER BY time LIMIT 1").await,
        store.rows("SELECT * FROM pump ORDER BY time LIMIT 1").await
    );
}
