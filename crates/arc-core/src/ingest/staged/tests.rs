//! How many cells rows may leave empty: so many live, and any number where they were accepted
//! before.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::ingest::{decode_lp, decode_msgpack};

const MOST: usize = 100;

/// Decodes into a table that has a hundred columns, within a limit and as replay does.
fn decoded(decode: impl Fn(&Context<'_>) -> Staged) -> (Staged, Staged) {
    let columns = (0..100).map(|n| Column {
        name: format!("c{n}").into(),
        kind: ColumnKind::Field,
        data_type: DataType::Float64,
    });
    let schema = TableSchema {
        database: "d".into(),
        table: "m".into(),
        has_primary_key: true,
        columns: columns.collect::<Vec<_>>(),
    };
    let database = Arc::new(Database::new("d", 0, true));
    database.add(Arc::new(Table::new(schema)));
    let live = decode(&Context { most_cells: MOST, ..Context::plain(&database) });
    let skip = live.rejections.numbers.clone();
    let replayed = decode(&Context { most_cells: usize::MAX, skip: &skip, ..Context::plain(&database) });
    assert_eq!((replayed.points(), &replayed.rejections.first[..]), (live.points(), &[][..]));
    let unlimited = decode(&Context { most_cells: usize::MAX, ..Context::plain(&database) });
    assert_eq!(unlimited.rejections.first, [], "nothing else is wrong");
    (live, unlimited)
}

/// Decodes columns of so many rows each, of the fields with these numbers.
fn columns(items: &[(usize, &[usize])]) -> (Staged, Staged) {
    let mut time = 0;
    let item = |(rows, fields): &(usize, &[usize])| {
        let mut columns = serde_json::Map::new();
        columns.insert("time".into(), (time..time + rows).collect());
        time += rows;
        for field in *fields {
            columns.insert(format!("c{field}"), vec![1.5; *rows].into());
        }
        json!({"m": "m", "columns": columns})
    };
    let body = rmp_serde::to_vec_named(&items.iter().map(item).collect::<Vec<Value>>()).unwrap();
    decoded(|context| decode_msgpack(&body, context).unwrap())
}

#[test]
fn whole_columns_leave_nothing_empty_wherever_they_stand() {
    for items in [
        &[(300, &[98, 99][..])][..],
        &[(60, &[0, 1, 99]), (60, &[99, 0, 1])],
        // Fifty cells are empty.
        &[(20, &[99]), (10, &[0, 99]), (30, &[99]), (40, &[0, 99])],
    ] {
        let (live, _) = columns(items);
        assert_eq!(live.rejections.first, [], "{items:?}");
        assert_eq!(live.points(), items.iter().map(|(rows, _)| rows).sum::<usize>());
    }
}

#[test]
fn an_item_that_leaves_too_many_cells_empty_is_refused_before_it_is_appended() {
    let (live, unlimited) = columns(&[(60, &[0]), (41, &[1]), (40, &[0]), (5, &[0])]);
    assert_eq!(live.rejections.numbers, [2]);
    let expected = "the rows of measurement \"m\" in this request leave too many columns empty: 101 rows by 2 columns, \
                    expected at most 100 cells that no column brought; send fewer at a time";
    assert_eq!(live.rejections.first[0].reason, expected);
    assert_eq!((live.points(), unlimited.points()), (105, 146));
}

#[test]
fn rows_that_leave_too_many_cells_empty_are_refused_live_and_replayed_if_they_were_not() {
    // Another column with each row: a line is counted when its values are there, a map before.
    let lines: String = (0..40).map(|n| format!("m c{n}=1 {n}\n")).collect();
    let map = |n: usize| json!({"m": "m", "t": n, "fields": {format!("c{n}"): 1.0}});
    let maps = rmp_serde::to_vec_named(&(0..40).map(map).collect::<Vec<Value>>()).unwrap();
    let of_lines = decoded(|context| decode_lp(lines.as_bytes(), context));
    let of_maps = decoded(|context| decode_msgpack(&maps, context).unwrap());
    for ((live, unlimited), stored) in [(of_lines, 10), (of_maps, 11)] {
        assert_eq!((live.points(), unlimited.points()), (stored, 40));
        let reasons = live.rejections.first.iter().map(|rejected| &rejected.reason);
        assert!(reasons.clone().all(|reason| reason.contains("expected at most 100 cells")), "{reasons:?}");
    }
}
