use std::collections::BTreeMap;

use arrow::{
    array::AsArray,
    compute::cast,
    datatypes::{DataType, Float64Type, TimestampNanosecondType},
};
use proptest::prelude::*;

use super::*;
use crate::{
    SequenceNumber,
    arrays::Columns as _,
    buffer::{Rows, Scalar, TableBuffer},
    model::tag_type,
};

const DAY: i64 = 86_400_000_000_000;

/// A point of the table used here: host, time, and the fields x and y.
type Point = (Option<&'static str>, i64, Option<f64>, Option<f64>);

fn table(has_primary_key: bool) -> TableSchema {
    let column = |name: &str, kind, data_type| Column { name: name.into(), kind, data_type };
    let columns = vec![
        column("x", ColumnKind::Field, DataType::Float64),
        column("host", ColumnKind::Tag, tag_type()),
        column("y", ColumnKind::Field, DataType::Float64),
    ];
    let columns = columns.into_iter().filter(|c| has_primary_key || c.kind == ColumnKind::Field).collect();
    TableSchema { database: "d".into(), table: "t".into(), has_primary_key, columns }
}

fn rows(index: &mut SeriesIndex, has_primary_key: bool, points: &[Point]) -> Rows {
    let mut rows = Rows::default();
    for (host, time, x, y) in points {
        for (column, value) in [(0, x), (if has_primary_key { 2 } else { 1 }, y)] {
            if let Some(value) = value {
                rows.set(column, &DataType::Float64, Scalar::Float(*value)).unwrap();
            }
        }
        let series = has_primary_key.then(|| index.resolve(host.iter().map(|host| ("host", *host))).unwrap());
        rows.end_row(*time, series);
    }
    rows
}

/// What a part holds: (day, late, rows as (host, time, x, y)).
type Shown = (String, bool, Vec<(Option<String>, i64, Option<f64>, Option<f64>)>);

fn show(part: &FlushPart<'_>) -> Shown {
    let mut shown = Vec::new();
    {
        let batch = part.batch().unwrap();
        let time = batch.column(0).as_primitive::<TimestampNanosecondType>().clone();
        let host = batch.column_by_name("host").map(|c| cast(c, &DataType::Utf8).unwrap());
        let field = |name: &str, row: usize| {
            let column = batch.column_by_name(name)?.as_primitive::<Float64Type>();
            column.is_valid(row).then(|| column.value(row))
        };
        for row in 0..batch.num_rows() {
            let host = host.as_ref().map(|h| h.as_string::<i32>());
            let host = host.filter(|h| h.is_valid(row)).map(|h| h.value(row).to_owned());
            shown.push((host, time.value(row), field("x", row), field("y", row)));
        }
    }
    assert_eq!(shown.len(), part.len());
    (part.day.to_string(), part.late, shown)
}

fn flush(buffer: &mut TableBuffer, table: &TableSchema, index: &mut SeriesIndex) -> Vec<Shown> {
    buffer.freeze().unwrap();
    let mut shown = Vec::new();
    let shared = RwLock::new(std::mem::take(index));
    for frozen in buffer.frozen() {
        shown.extend(split(frozen, table, &shared).unwrap().iter().map(show));
    }
    buffer.forget(usize::MAX);
    *index = shared.into_inner();
    shown
}

#[test]
fn rows_are_sorted_by_tags_then_time_with_nulls_first() {
    let (table, mut index, mut buffer) = (table(true), SeriesIndex::default(), TableBuffer::new(None));
    let points: [Point; 4] = [
        (Some("b"), 1, Some(1.0), None),
        (Some("a"), 2, Some(2.0), None),
        (Some("b"), 3, Some(3.0), None),
        (None, 9, Some(4.0), None),
    ];
    buffer.append(SequenceNumber(1), rows(&mut index, true, &points)).unwrap();
    let parts = flush(&mut buffer, &table, &mut index);
    let order: Vec<_> = parts[0].2.iter().map(|(host, time, ..)| (host.as_deref(), *time)).collect();
    assert_eq!(order, [(None, 9), (Some("a"), 2), (Some("b"), 1), (Some("b"), 3)]);
    assert_eq!((parts.len(), parts[0].1), (1, false));
}

#[test]
fn a_second_point_of_the_same_primary_key_merges_field_by_field() {
    let (table, mut index, mut buffer) = (table(true), SeriesIndex::default(), TableBuffer::new(None));
    let points: [Point; 3] =
        [(Some("a"), 5, Some(1.0), None), (Some("a"), 5, None, Some(2.0)), (Some("a"), 5, Some(3.0), None)];
    buffer.append(SequenceNumber(1), rows(&mut index, true, &points)).unwrap();
    let parts = flush(&mut buffer, &table, &mut index);
    assert_eq!(parts, [("1970-01-01".into(), false, vec![(Some("a".into()), 5, Some(3.0), Some(2.0))])]);
}

#[test]
fn only_rows_that_a_file_may_have_go_to_late_files() {
    let (table, mut index, mut buffer) = (table(true), SeriesIndex::default(), TableBuffer::new(None));
    let first: [Point; 2] = [(Some("a"), 10, Some(1.0), None), (Some("b"), 20, Some(1.0), None)];
    buffer.append(SequenceNumber(1), rows(&mut index, true, &first)).unwrap();
    assert_eq!(flush(&mut buffer, &table, &mut index).len(), 1);
    // Out of order within the buffer only; older than what was flushed; and newer for its series,
    // though not for all.
    let second: [Point; 4] = [
        (Some("a"), 40, Some(2.0), None),
        (Some("a"), 30, Some(3.0), None),
        (Some("a"), 10, None, Some(4.0)),
        (Some("c"), 5, Some(5.0), None),
    ];
    buffer.append(SequenceNumber(2), rows(&mut index, true, &second)).unwrap();
    let parts = flush(&mut buffer, &table, &mut index);
    let times = |part: &Shown| (part.1, part.2.iter().map(|row| row.1).collect::<Vec<_>>());
    assert_eq!(parts.iter().map(times).collect::<Vec<_>>(), [(false, vec![30, 40, 5]), (true, vec![10])]);
}

#[test]
fn each_day_gets_its_part_also_before_1970() {
    let (table, mut index, mut buffer) = (table(false), SeriesIndex::default(), TableBuffer::new(None));
    let points: [Point; 3] = [(None, DAY, Some(1.0), None), (None, -1, Some(2.0), None), (None, 0, Some(3.0), None)];
    buffer.append(SequenceNumber(1), rows(&mut index, false, &points)).unwrap();
    let parts = flush(&mut buffer, &table, &mut index);
    let days: Vec<_> = parts.iter().map(|part| (part.0.as_str(), part.2[0].2)).collect();
    assert_eq!(days, [("1969-12-31", Some(2.0)), ("1970-01-01", Some(3.0)), ("1970-01-02", Some(1.0))]);
}

#[test]
fn series_may_come_while_files_are_written() {
    let (table, mut index, mut buffer) = (table(true), SeriesIndex::default(), TableBuffer::new(None));
    let points = [(Some("c"), 5, Some(1.0), None), (Some("b"), 6, Some(2.0), None)];
    buffer.append(SequenceNumber(1), rows(&mut index, true, &points)).unwrap();
    buffer.freeze().unwrap();
    let index = RwLock::new(index);
    let parts = split(&buffer.frozen()[0], &table, &index).unwrap();
    index.try_write().expect("nobody holds it").resolve([("host", "a")].into_iter()).unwrap();
    let (_, _, shown) = show(&parts[0]);
    let hosts: Vec<_> = shown.iter().filter_map(|row| row.0.as_deref()).collect();
    assert_eq!(hosts, ["b", "c"]);
}

#[test]
fn columns_without_a_value_are_left_out() {
    let (table, mut index, mut buffer) = (table(true), SeriesIndex::default(), TableBuffer::new(None));
    buffer.append(SequenceNumber(1), rows(&mut index, true, &[(Some("a"), 5, None, Some(1.0))])).unwrap();
    buffer.freeze().unwrap();
    let index = RwLock::new(index);
    let parts = split(&buffer.frozen()[0], &table, &index).unwrap();
    let names: Vec<_> = parts[0].schema.fields().iter().map(|f| f.name().as_str()).collect();
    assert_eq!(names, ["time", "host", "y"]);
}

proptest! {
    /// Whatever the order of arrival and wherever flushes fall: files in the order main, then late
    /// by round, folded field by field, are the model; and rows that are not late never repeat a
    /// primary key.
    #[test]
    fn files_folded_in_order_equal_the_last_writes(
        points in prop::collection::vec((0..3usize, 0..12i64, prop::option::of(0..100i32), prop::option::of(0..100i32)), 1..120),
        cuts in prop::collection::vec(1..30usize, 0..6),
    ) {
        let table = table(true);
        let hosts = [None, Some("a"), Some("b")];
        let points: Vec<Point> = points
            .into_iter()
            .map(|(h, t, x, y)| (hosts[h], t * DAY / 3, x.map(f64::from), y.map(f64::from)))
            .collect();
        let mut model = BTreeMap::<(Option<String>, i64), (Option<f64>, Option<f64>)>::new();
        for (host, time, x, y) in &points {
            let slot = model.entry((host.map(str::to_owned), *time)).or_default();
            *slot = (x.or(slot.0), y.or(slot.1));
        }
        let (mut index, mut buffer) = (SeriesIndex::default(), TableBuffer::new(None));
        let (mut main, mut late) = (BTreeMap::new(), Vec::new());
        let mut rest = points.as_slice();
        for cut in cuts.iter().copied().chain([usize::MAX]) {
            let (now, then) = rest.split_at(cut.min(rest.len()));
            rest = then;
            if now.is_empty() {
                continue;
            }
            buffer.append(SequenceNumber(1), rows(&mut index, true, now)).unwrap();
            for (_, is_late, rows) in flush(&mut buffer, &table, &mut index) {
                prop_assert!(rows.windows(2).all(|w| (&w[0].0, w[0].1) < (&w[1].0, w[1].1)), "sorted, no repeats");
                for (host, time, x, y) in rows {
                    if is_late {
                        late.push(((host, time), (x, y)));
                    } else {
                        prop_assert!(main.insert((host, time), (x, y)).is_none(), "a row on time repeats another");
                    }
                }
            }
        }
        for (key, (x, y)) in late {
            let slot = main.entry(key).or_default();
            *slot = (x.or(slot.0), y.or(slot.1));
        }
        prop_assert_eq!(main, model);
    }
}

#[test]
fn rows_of_very_many_days_are_split_in_one_pass() {
    let (done, is_done) = std::sync::mpsc::channel();
    // Looked for one by one among all parts so far, it would take 5 * 10^9 looks.
    let splitting = std::thread::spawn(move || {
        let count = 100_000;
        let table = table(false);
        let points: Vec<Point> = (0..count).map(|day| (None, day * DAY, Some(1.0), None)).collect();
        let mut index = SeriesIndex::default();
        let mut buffer = TableBuffer::new(None);
        buffer.append(SequenceNumber(1), rows(&mut index, false, &points)).unwrap();
        buffer.freeze().unwrap();
        let series = RwLock::new(index);
        let parts = split(&buffer.frozen()[0], &table, &series).unwrap();
        let days: Vec<i64> = parts.iter().map(|part| part.day.days()).collect();
        assert_eq!(days, (0..count).collect::<Vec<_>>());
        assert!(parts.iter().all(|part| part.versions_count() == 1 && !part.late));
        done.send(()).unwrap();
    });
    is_done.recv_timeout(std::time::Duration::from_secs(100)).unwrap();
    splitting.join().unwrap();
}
