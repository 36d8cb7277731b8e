//! Wide lists: they give what narrow ones give, and those that cannot be planned quickly are planned or refused.

use super::fake::{
    Cell::{Integer, Tag},
    Home::{Buffer, File},
    Store, TableBuilder,
};

/// The columns `c00` to `c69` besides those that are named.
const COLUMNS: i64 = 70;

fn store() -> Store {
    let names: Vec<&'static str> = (0..COLUMNS).map(|i| &*Box::leak(format!("c{i:02}").into_boxed_str())).collect();
    let row = |i: i64| {
        let more = names.iter().zip(0..).map(|(name, column)| (*name, Integer(i * COLUMNS + column)));
        let host = if i % 2 == 0 { "a" } else { "b" };
        (i, [("host", Tag(host)), ("x", Integer(7 * i % 5)), ("y", Integer(i % 3))].into_iter().chain(more).collect())
    };
    let store = Store::new();
    store.put(
        "db",
        TableBuilder::new("m").part(File, (0..6).map(row).collect()).part(Buffer, (6..10).map(row).collect()),
    );
    store
}

/// What a statement selects, and what stands behind its list.
const LISTS: [&str; 9] = [
    "x, y",
    "x AS y, y AS x",
    "x AS a, -y AS b",
    "-x AS x, y",
    "x - y, CAST(y AS TEXT)",
    "host, x",
    "m.x AS \"X\", y",
    "CASE WHEN x > y THEN 1 END AS a, host",
    "(SELECT max(y) FROM m AS n WHERE n.x = m.x) AS a, x",
];

const TAILS: [&str; 11] = [
    "WHERE x > 0 ORDER BY time",
    "ORDER BY time DESC LIMIT 3 OFFSET 2",
    "ORDER BY x, time",
    "ORDER BY m.x DESC, y, m.time",
    "ORDER BY a NULLS FIRST, time",
    "ORDER BY \"X\", time",
    "ORDER BY x + y, time",
    "ORDER BY abs(y - 1), -m.x, time",
    "ORDER BY row_number() OVER (ORDER BY x, time DESC)",
    "ORDER BY 1, time",
    "ORDER BY c05 DESC",
];

/// All of the columns that have no meaning, by other names.
fn others() -> String {
    (0..COLUMNS).map(|i| format!("c{i:02} AS d{i}")).collect::<Vec<_>>().join(", ")
}

#[tokio::test]
async fn a_wide_list_gives_what_a_narrow_one_does() {
    let (store, others) = (store(), others());
    let mut answered = 0;
    for (list, tail) in LISTS.iter().flat_map(|list| TAILS.map(|tail| (list, tail))) {
        let sql = format!("SELECT {list} FROM m {tail}");
        if store.text(&sql).await.starts_with("error") {
            continue;
        }
        let narrow = store.rows(&sql).await;
        for more in [&*others, "* EXCLUDE (host, x, y)"] {
            let sql = format!("SELECT {list}, {more} FROM m {tail}");
            let wide = store.rows(&sql).await;
            let first = |row: &String| row.split('|').take(2).collect::<Vec<_>>().join("|");
            assert_eq!(wide.iter().map(first).collect::<Vec<_>>(), narrow, "{sql}");
            answered += 1;
        }
    }
    assert_eq!(answered, 2 * 73);
}

#[tokio::test]
async fn wide_lists_stand_wherever_a_query_may() {
    let store = store();
    for (wide, narrow) in [
        ("SELECT count(*) FROM (SELECT * FROM m UNION ALL SELECT * FROM m ORDER BY x)", "VALUES (20)"),
        (
            "SELECT x FROM m WHERE EXISTS (SELECT * FROM m AS n WHERE n.x = m.x AND n.time > m.time) ORDER BY time",
            "SELECT x FROM m WHERE time < (SELECT max(time) FROM m AS n WHERE n.x = m.x) ORDER BY time",
        ),
        (
            "SELECT z, c69 FROM (SELECT * FROM m JOIN (SELECT time, x AS z FROM m) AS n USING (time)) ORDER BY time",
            "SELECT x, c69 FROM m ORDER BY time",
        ),
        (
            "WITH w AS (SELECT *, x AS z FROM m ORDER BY time DESC LIMIT 4) SELECT z, (SELECT count(*) FROM w) FROM w ORDER BY time",
            "SELECT x, 4 FROM m ORDER BY time OFFSET 6",
        ),
        (
            "SELECT DISTINCT ON (y) y, c05 FROM (SELECT * FROM m) ORDER BY y, time",
            "SELECT DISTINCT ON (y) y, c05 FROM m ORDER BY y, time",
        ),
        ("SELECT DISTINCT x FROM (SELECT DISTINCT * FROM m) ORDER BY x", "SELECT DISTINCT x FROM m ORDER BY x"),
        (
            "SELECT unnest([x, y]) AS a, c05 FROM (SELECT *, [x] FROM m) ORDER BY c05, a",
            "SELECT unnest([x, y]) AS a, c05 FROM m ORDER BY c05, a",
        ),
    ] {
        assert_eq!(store.rows(wide).await, store.rows(narrow).await, "{wide}");
    }
}

#[tokio::test]
async fn what_a_wide_list_computes_is_computed_once() {
    let store = store();
    let rows = store.rows(&format!("SELECT random() AS r, {} FROM m ORDER BY r", others())).await;
    let sorted = rows.iter().map(|row| row.split('|').next().unwrap().parse::<f64>().unwrap()).collect::<Vec<_>>();
    assert!(rows.len() == 10 && sorted.is_sorted(), "{sorted:?}");
}

#[tokio::test]
async fn as_many_columns_as_can_be_compared_stand_in_a_list_that_has_to_be_searched() {
    let store = store();
    let list = |item: fn(usize) -> String, count| (0..count).map(item).collect::<Vec<_>>().join(", ");
    let constants = list(|i| format!("{i} AS a{i}"), 4_096);
    assert_eq!(store.rows(&format!("SELECT count(a7) FROM (SELECT {constants})")).await, ["1"]);
    let sorted = store.rows(&format!("SELECT -x AS z, {constants} FROM m ORDER BY z, 2 LIMIT 1")).await;
    assert!(sorted[0].starts_with("-4|0|1|"), "{sorted:?}");
    let shuffled = store.rows(&format!("SELECT *, {} FROM m ORDER BY random()", list(|i| format!("{i}"), 4_096))).await;
    assert_eq!(shuffled.len(), 10);
    let unknown = store.error(&format!("SELECT {constants}, nothing FROM m")).await.to_string();
    assert!(unknown.contains("nothing"), "{unknown}");
    let sums = |count| list(|i| format!("sum(x + {i})"), count);
    assert_eq!(store.rows(&format!("SELECT sum(y), {} FROM m", sums(100))).await.len(), 1);
    for sql in [
        format!("SELECT {} FROM m", sums(2_049)),
        format!("SELECT DISTINCT {constants}"),
        format!("SELECT {constants}, unnest([1, 2])"),
        format!("SELECT {constants} FROM m ORDER BY x + y"),
        format!("SELECT {constants}, random() AS z FROM m ORDER BY z"),
        format!("SELECT max(a1) FROM (SELECT {constants} UNION ALL SELECT DISTINCT {constants})"),
        format!("EXPLAIN SELECT DISTINCT {constants}"),
    ] {
        let refused = store.error(&sql).await.to_string();
        assert!(refused.contains("may have 2048 columns"), "{refused}");
    }
}
