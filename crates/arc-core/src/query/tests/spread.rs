//! Statements whose answers, left to DataFusion, depend on how rows are spread: floats that are
//! zero, with either sign (docs/sql.md, "Known differences"), and grouping sets.

use super::fake::{
    Cell::{Float, Integer},
    Home::{Buffer, File},
    Row, Store, TableBuilder,
};

fn row((n, x): (i64, f64)) -> Row {
    (n * 1_000, vec![("n", Integer(n)), ("x", Float(x))])
}

fn store(parts: &[&[(i64, f64)]]) -> Store {
    let store = Store::new();
    let mut table = TableBuilder::new("m");
    for (at, part) in parts.iter().enumerate() {
        table = table.part(if at == 0 { File } else { Buffer }, part.iter().copied().map(row).collect());
    }
    store.put("db", table);
    store
}

#[tokio::test]
async fn a_sort_with_a_limit_has_the_numbers_that_the_whole_sort_begins_with() {
    // The last row of the second part comes first in a whole sort. When it comes, two zeros of
    // smaller n are there, and by a condition that takes zeros for equal it is not among the first
    // two.
    let first: &[(i64, f64)] = &[(1, 0.0), (2, 0.0), (3, 5.0)];
    let second: &[(i64, f64)] = &[(4, 7.0), (5, -0.0)];
    for parts in [vec![first, second], vec![second, first], vec![first, first, second]] {
        let store = store(&parts);
        let whole = store.rows("SELECT x + 0.0 FROM m ORDER BY x, n").await;
        for limit in 1..=whole.len() {
            let found = store.rows(&format!("SELECT x + 0.0 FROM m ORDER BY x, n LIMIT {limit}")).await;
            assert_eq!(found, whole[..limit], "{limit}");
        }
        // Where they are made equal, what comes after decides.
        let sql = "SELECT n FROM m ORDER BY x + 0.0, n";
        let whole = store.rows(sql).await;
        for limit in 1..=whole.len() {
            assert_eq!(store.rows(&format!("{sql} LIMIT {limit}")).await, whole[..limit], "{limit}");
        }
    }
    let store = store(&[first, second]);
    assert_eq!(store.rows("SELECT n FROM m ORDER BY x, n").await, ["5", "1", "2", "3", "4"]);
    assert_eq!(store.rows("SELECT n FROM m WHERE x = -0.0 ORDER BY n").await, ["1", "2", "5"]);
    assert_eq!(store.rows("SELECT n FROM m WHERE x < 0.0").await, Vec::<String>::new());
    // A group has both.
    assert_eq!(store.rows("SELECT count(*) FROM m GROUP BY x + 0.0 ORDER BY 1").await, ["1", "1", "3"]);
}

#[tokio::test]
async fn grouping_sets_over_files_and_buffers_have_each_group_once() {
    let rows = |from: i64| (from..from + 40).map(|n| (n, f64::from(u8::try_from(n % 3).unwrap()))).collect::<Vec<_>>();
    let parts = [rows(0), rows(40), rows(80)];
    let store = store(&parts.each_ref().map(Vec::as_slice));
    let sql = "SELECT x, n // 100 AS c, count(*) FROM m WHERE x = 1.0 GROUP BY ROLLUP (x, c) ORDER BY x, c NULLS FIRST";
    let sum = "SELECT x, count(*), sum(n) FROM m WHERE x = 1.0 GROUP BY GROUPING SETS ((x), ()) ORDER BY x NULLS LAST";
    assert_eq!(store.rows(sum).await, ["1.0|40|2380", "|40|2380"]);
    assert_eq!(store.rows(sql).await, ["1.0||40", "1.0|0|33", "1.0|1|7", "||40"]);
}
