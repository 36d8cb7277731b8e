//! Merge of late rows, in every pairing of homes, against expected answers.

use super::fake::{
    Cell::{Float, Integer, Tag, Text},
    Home::{self, Buffer, File, LateBuffer, LateFile},
    Row, Store, TableBuilder,
};
use crate::Options;

fn point(time: i64, cells: &[(&'static str, super::fake::Cell)]) -> Row {
    (time, cells.to_vec())
}

fn early() -> Vec<Row> {
    vec![
        point(1, &[("host", Tag("a")), ("x", Integer(1)), ("y", Integer(10))]),
        point(2, &[("host", Tag("a")), ("x", Integer(2)), ("y", Integer(20))]),
        point(2, &[("host", Tag("b")), ("x", Integer(3)), ("y", Integer(30))]),
        point(9, &[("x", Integer(4)), ("y", Integer(40))]),
    ]
}

/// Overwrites x of (a, 2), twice; y of (no host, 9); and adds (b, 1).
fn late() -> Vec<Row> {
    vec![
        point(2, &[("host", Tag("a")), ("x", Integer(21))]),
        point(1, &[("host", Tag("b")), ("x", Integer(5))]),
        point(9, &[("y", Integer(41))]),
        point(2, &[("host", Tag("a")), ("x", Integer(22))]),
    ]
}

#[tokio::test]
async fn late_rows_overwrite_field_by_field_wherever_they_are() {
    let homes: [(Home, Home); 4] = [(File, LateFile), (File, LateBuffer), (Buffer, LateBuffer), (Buffer, LateFile)];
    let cases = [
        (
            "SELECT host, x, y FROM m ORDER BY host NULLS FIRST, time",
            vec!["|4|41", "a|1|10", "a|22|20", "b|5|", "b|3|30"],
        ),
        ("SELECT count(*) FROM m", vec!["5"]),
        ("SELECT count(*), sum(x), sum(y) FROM m", vec!["5|35|101"]),
        ("SELECT x FROM m WHERE x < 20 AND host = 'a'", vec!["1"]),
        ("SELECT host FROM m WHERE x = 2", vec![]),
        ("SELECT x FROM m WHERE host IS NULL", vec!["4"]),
        ("SELECT y FROM m WHERE time = '1970-01-01T00:00:00.000000002Z' AND host = 'a'", vec!["20"]),
        ("SELECT min(time), max(time) FROM m", vec!["1970-01-01T00:00:00.000000001Z|1970-01-01T00:00:00.000000009Z"]),
        ("SELECT x FROM m ORDER BY time DESC, host DESC NULLS LAST LIMIT 2", vec!["4", "3"]),
        ("SELECT count(*) FROM (SELECT * FROM m LIMIT 3)", vec!["3"]),
        ("SELECT max(x) FROM m WHERE x < 22", vec!["5"]),
    ];
    for (first, second) in homes {
        let store = Store::new();
        store.put("db", TableBuilder::new("m").part(first, early()).part(second, late()));
        for (sql, expected) in &cases {
            assert_eq!(
                store.rows(sql).await,
                *expected,
                "{sql} with {first:?} under {second:?}\n{}",
                store.plan(sql).await
            );
        }
    }
}

#[tokio::test]
async fn the_latest_of_many_late_parts_wins() {
    let version = |x| vec![point(5, &[("host", Tag("a")), ("x", Integer(x))])];
    let store = Store::new();
    for (first, second) in [(LateFile, LateFile), (LateFile, LateBuffer), (LateBuffer, LateBuffer)] {
        let table = TableBuilder::new("m").part(File, early()).part(first, version(7)).part(second, version(8));
        store.put("db", table);
        assert_eq!(store.rows("SELECT x FROM m WHERE time = '1970-01-01T00:00:00.000000005Z'").await, ["8"]);
    }
}

#[tokio::test]
async fn a_tag_added_later_is_null_in_older_rows_and_part_of_the_primary_key() {
    let store = Store::new();
    let with_rack = vec![
        point(1, &[("host", Tag("a")), ("x", Integer(100))]),
        point(2, &[("host", Tag("a")), ("rack", Tag("r")), ("x", Integer(200))]),
    ];
    for home in [LateFile, LateBuffer] {
        store.put("db", TableBuilder::new("m").part(File, early()).part(home, with_rack.clone()));
        let rows = store.rows("SELECT rack, x FROM m WHERE host = 'a' ORDER BY time, rack NULLS FIRST").await;
        assert_eq!(rows, ["|100", "|2", "r|200"]);
    }
}

#[tokio::test]
async fn a_field_missing_in_a_late_part_keeps_its_value() {
    let store = Store::new();
    let base = vec![point(1, &[("host", Tag("a")), ("s", Text("keep")), ("f", Float(0.5))])];
    let other = vec![point(1, &[("host", Tag("a")), ("g", Float(1.5))])];
    for (first, second) in [(File, LateFile), (Buffer, LateBuffer)] {
        store.put("db", TableBuilder::new("m").part(first, base.clone()).part(second, other.clone()));
        assert_eq!(store.rows("SELECT s, f, g FROM m").await, ["keep|0.5|1.5"]);
    }
}

#[tokio::test]
async fn nothing_merges_where_nothing_is_late_or_the_table_is_append_only() {
    let store = Store::new();
    store.put("db", TableBuilder::new("m").part(File, early()).part(Buffer, early()));
    assert!(!store.plan("SELECT * FROM m").await.contains("MergeExec"));
    store.put("db", TableBuilder::new("log").append().part(File, early()).part(LateBuffer, early()));
    assert!(!store.plan("SELECT * FROM log").await.contains("MergeExec"));
    assert_eq!(store.rows("SELECT count(*) FROM log").await, ["8"]);
}

#[tokio::test]
async fn only_parts_that_a_late_part_overlaps_are_merged() {
    let at = |time| vec![point(time, &[("host", Tag("a")), ("x", Integer(time))])];
    let store = Store::new();
    store.put(
        "db",
        TableBuilder::new("m").part(File, at(1)).part(File, at(5)).part(Buffer, at(9)).part(LateBuffer, at(5)),
    );
    let plan = store.plan("SELECT x FROM m").await;
    let (plain, merged) = plan.split_once("MergeExec").unwrap();
    assert!(plain.contains("/0.parquet") && !plain.contains("/1.parquet"), "{plan}");
    assert!(merged.contains("/1.parquet") && !merged.contains("/0.parquet"), "{plan}");
    let plan = store.plan("SELECT x FROM m WHERE time > '1970-01-01T00:00:00.000000007Z'").await;
    assert!(!plan.contains("MergeExec") && !plan.contains("parquet"), "{plan}");
}

#[tokio::test]
async fn sorted_files_are_merged_without_a_sort_and_only_primary_key_filters_go_below() {
    let store = Store::new();
    store.put("db", TableBuilder::new("m").part(File, early()).part(LateFile, late()));
    let plan = store.plan("SELECT x FROM m WHERE host = 'a' AND x > 1").await;
    assert!(!plan.contains("SortExec"), "{plan}");
    let (above, below) = plan.split_once("MergeExec").unwrap();
    assert!(above.contains("x@1 > 1") && !below.contains("> 1"), "{plan}");
    assert!(below.contains("projection=[time, host, x, \u{1}rank, \u{1}row]"), "{plan}");
    assert!(below.contains("OrderedFilterExec: host@1 = a") && below.contains("predicate=host@1 = a"), "{plan}");
}

#[tokio::test]
async fn conditions_on_tags_and_time_leave_the_same_rows_in_each_state() {
    let flow = |time, cells: &[(&'static str, super::fake::Cell)]| point(time, cells);
    let early = vec![
        flow(10, &[("src", Tag("x")), ("dst", Tag("x")), ("v", Integer(1))]),
        flow(20, &[("src", Tag("x")), ("dst", Tag("y")), ("v", Integer(2))]),
        flow(1_000_000_000, &[("src", Tag("y")), ("dst", Tag("y")), ("v", Integer(3))]),
        flow(40, &[("src", Tag("y")), ("v", Integer(5))]),
    ];
    let late = vec![
        flow(10, &[("src", Tag("x")), ("dst", Tag("x")), ("v", Integer(4))]),
        flow(5, &[("dst", Tag("y")), ("v", Integer(6))]),
    ];
    let merged = [&late[..], &early[1..]].concat();
    let conditions = [
        "src = dst",
        "NOT (src <> dst)",
        "src IN (dst)",
        "src || '' = dst",
        "concat(src, '') = dst",
        "coalesce(src, 'y') = dst",
        "lower(src) = dst",
        "nullif(src, 'z') = dst",
        "date_trunc('second', time) = time",
        "src = dst OR v > 3",
        "src IS NOT DISTINCT FROM dst",
        "src = dst AND dst = 'x'",
        "src = 'x' AND time = '1970-01-01T00:00:00.00000001Z'",
        "src = dst AND date_trunc('second', time) = time",
    ];
    let forms = [
        "SELECT src, dst, time, v FROM m WHERE {} ORDER BY src, dst, time",
        "SELECT DISTINCT src, dst FROM m WHERE {} ORDER BY 1, 2",
        "SELECT src, last_value(v ORDER BY time) FROM m WHERE {} GROUP BY src ORDER BY src",
        "SELECT v FROM m WHERE {} ORDER BY time DESC LIMIT 1",
        "SELECT v, row_number() OVER (PARTITION BY src ORDER BY dst, time) FROM m WHERE {} ORDER BY 1",
        "SELECT a.v FROM m a JOIN m b ON a.src = b.dst AND a.time = b.time WHERE a.src = a.dst ORDER BY a.v",
    ];
    let one = Store::new();
    one.put("db", TableBuilder::new("m").part(File, merged));
    for (first, second) in [(File, LateFile), (File, LateBuffer), (Buffer, LateBuffer), (Buffer, LateFile)] {
        let parts = Store::new();
        parts.put("db", TableBuilder::new("m").part(first, early.clone()).part(second, late.clone()));
        for sql in forms.iter().flat_map(|form| conditions.map(|condition| form.replace("{}", condition))) {
            assert_eq!(parts.rows(&sql).await, one.rows(&sql).await, "{sql} with {first:?} under {second:?}");
        }
    }
}

#[tokio::test]
async fn a_merge_of_many_files_takes_memory_for_their_rows_and_not_for_each_file() {
    const DAY_NS: i64 = 86_400_000_000_000;
    const DAYS: i64 = 150;
    let hosts = |day| ["a", "b"].map(|host| point(day * DAY_NS, &[("host", Tag(host)), ("x", Integer(1))])).to_vec();
    let store = Store::with_options(&Options { query_memory_bytes: 32 << 20, ..Options::default() });
    let files = |home| (0..DAYS).map(move |day| (home, hosts(day)));
    let table =
        files(File).chain(files(LateFile)).fold(TableBuilder::new("m"), |table, (home, rows)| table.part(home, rows));
    store.put("db", table);
    for (condition, expected) in
        [("host = 'a'", DAYS), ("host <> 'b'", DAYS), ("upper(host) LIKE 'A%'", DAYS), ("true", 2 * DAYS)]
    {
        assert_eq!(store.rows(&format!("SELECT sum(x) FROM m WHERE {condition}")).await, [expected.to_string()]);
    }
}

#[tokio::test]
async fn names_that_need_quotes_merge_and_filter_like_any_other() {
    let names = ["a.b", "x y", "q\"uote", "Käse", "time2", "select", "'"];
    for (tag, field) in names.into_iter().zip(names.into_iter().rev().skip(1).chain(["z"])) {
        if tag == field {
            continue;
        }
        let row = |x| vec![point(x % 2, &[(tag, Tag("v")), (field, Integer(x)), ("n", Integer(1))])];
        let store = Store::new();
        store.put("db", TableBuilder::new("m").part(File, row(1)).part(File, row(2)).part(LateBuffer, row(3)));
        let quote = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let (tag, field) = (quote(tag), quote(field));
        let sql = format!(
            "SELECT {tag}, max({field}) AS m FROM m WHERE {tag} = 'v' AND {field} > 1 GROUP BY {tag} ORDER BY {tag}"
        );
        assert_eq!(store.rows(&sql).await, ["v|3"], "{sql}");
        let sql = format!("SELECT t.{field} FROM m t WHERE t.n = 1 ORDER BY t.{tag}, t.{field}");
        assert_eq!(store.rows(&sql).await, ["2", "3"], "{sql}");
    }
}
