//! `lead` and `lag`: which row they look at, and that a limit changes none.

use super::fake::{
    Cell::{Integer, Tag},
    Home::{Buffer, File},
    Row, Store, TableBuilder,
};

const VALUES: [Option<i64>; 11] =
    [Some(10), Some(20), Some(30), Some(40), None, None, Some(70), Some(80), None, None, Some(110)];

fn store() -> Store {
    let row = |(at, value): (usize, &Option<i64>)| -> Row {
        let value = value.map(|value| ("v", Integer(value)));
        (at as i64, [("host", Tag("a")), ("n", Integer(at as i64))].into_iter().chain(value).collect())
    };
    let rows: Vec<Row> = VALUES.iter().enumerate().map(row).collect();
    let (one, other) = rows.split_at(4);
    let store = Store::new();
    store.put("db", TableBuilder::new("t").part(File, one.to_vec()).part(Buffer, other.to_vec()));
    store
}

/// Returns the value `offset` rows on; back if that is negative.
fn shifted(at: usize, offset: i64, ignores_nulls: bool) -> Option<i64> {
    if offset == 0 {
        return VALUES[at];
    }
    let counts = |value: &&Option<i64>| !ignores_nulls || value.is_some();
    let behind = usize::try_from(offset.unsigned_abs()).unwrap() - 1;
    match offset > 0 {
        true => *VALUES[at + 1..].iter().filter(counts).nth(behind)?,
        false => *VALUES[..at].iter().rev().filter(counts).nth(behind)?,
    }
}

#[tokio::test]
async fn each_row_has_the_value_that_stands_where_it_looks_with_any_limit() {
    let store = store();
    let text = |value: Option<i64>| value.map_or(String::new(), |value| value.to_string());
    for (treatment, ignores_nulls) in [("", false), ("IGNORE NULLS", true), ("RESPECT NULLS", false)] {
        for frame in ["", "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "ROWS 1 PRECEDING"] {
            let offsets = -4..=4_i64;
            let columns = offsets.clone().flat_map(|offset| [("lead", offset), ("lag", -offset)]);
            let columns = columns.map(|(name, offset)| {
                format!("{name}(v, {offset}) {treatment} OVER (PARTITION BY host ORDER BY time {frame})")
            });
            let sql = format!("SELECT n, {} FROM t ORDER BY time", columns.collect::<Vec<_>>().join(", "));
            let expected: Vec<String> = (0..VALUES.len())
                .map(|at| {
                    let values = offsets.clone().flat_map(|offset| [shifted(at, offset, ignores_nulls); 2]);
                    let values: Vec<String> = values.map(text).collect();
                    format!("{at}|{}", values.join("|"))
                })
                .collect();
            assert_eq!(store.rows(&sql).await, expected, "{sql}");
            for limit in [1, 3, 4, 6] {
                assert_eq!(store.rows(&format!("{sql} LIMIT {limit}")).await, expected[..limit], "{sql} LIMIT {limit}");
            }
        }
    }
}
