//! Plain scans: files, buffers, both; names; types; pruning.

use super::fake::{
    Cell::{Float, Integer, Tag, Text},
    Home::{Buffer, File},
    Row, Store, TableBuilder,
};

fn cpu(time: i64, host: &'static str, usage: f64) -> Row {
    (time, vec![("host", Tag(host)), ("usage", Float(usage))])
}

fn rows() -> Vec<Row> {
    vec![cpu(1, "a", 1.0), cpu(2, "a", 2.0), cpu(3, "b", 3.0), cpu(4, "b", 4.0)]
}

#[tokio::test]
async fn rows_are_the_same_wherever_they_are() {
    let halves =
        |first, second| TableBuilder::new("cpu").part(first, rows()[..2].to_vec()).part(second, rows()[2..].to_vec());
    let states = [
        TableBuilder::new("cpu").part(Buffer, rows()),
        TableBuilder::new("cpu").part(File, rows()),
        halves(File, Buffer),
        halves(File, File),
        halves(Buffer, Buffer),
    ];
    let cases = [
        (
            "SELECT * FROM cpu ORDER BY time",
            vec![
                "1970-01-01T00:00:00.000000001Z|a|1.0",
                "1970-01-01T00:00:00.000000002Z|a|2.0",
                "1970-01-01T00:00:00.000000003Z|b|3.0",
                "1970-01-01T00:00:00.000000004Z|b|4.0",
            ],
        ),
        ("SELECT count(*) FROM cpu", vec!["4"]),
        ("SELECT host, avg(usage) FROM cpu GROUP BY host ORDER BY host", vec!["a|1.5", "b|3.5"]),
        ("SELECT usage FROM cpu WHERE host = 'b' ORDER BY time DESC LIMIT 1", vec!["4.0"]),
        (
            "SELECT min(time), max(time), min(host), max(usage) FROM cpu",
            vec!["1970-01-01T00:00:00.000000001Z|1970-01-01T00:00:00.000000004Z|a|4.0"],
        ),
        ("SELECT count(*) FROM db.cpu WHERE usage > 1.5 AND time < '1970-01-01T00:00:00.000000004Z'", vec!["2"]),
    ];
    for table in states {
        let store = Store::new();
        let homes = format!("{:?}", table.parts);
        store.put("db", table);
        for (sql, expected) in &cases {
            assert_eq!(store.rows(sql).await, *expected, "{sql} over {homes}");
        }
    }
}

#[tokio::test]
async fn columns_missing_in_some_parts_are_null() {
    let store = Store::new();
    let early = vec![(1, vec![("host", Tag("a")), ("x", Integer(1))])];
    let later = vec![(2, vec![("rack", Tag("r")), ("y", Text("t"))])];
    for (first, second) in [(File, File), (File, Buffer), (Buffer, Buffer)] {
        store.put("db", TableBuilder::new("m").part(first, early.clone()).part(second, later.clone()));
        assert_eq!(store.rows("SELECT host, rack, x, y FROM m ORDER BY time").await, ["a||1|", "|r||t"]);
        assert_eq!(store.rows("SELECT count(*) FROM m WHERE x IS NULL").await, ["1"]);
        assert_eq!(store.rows("SELECT count(*) FROM m WHERE rack = 'r' AND y = 't'").await, ["1"]);
        assert_eq!(store.rows("SELECT min(x), max(y), count(rack) FROM m").await, ["1|t|1"]);
    }
}
