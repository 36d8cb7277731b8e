//! What is done to a directory that is kept for good: each kind of file, of manifest entry and of
//! frame comes of it.
//!
//! Times are given or of a clock that stands still, so that the contents are the same whenever and
//! by whatever build it is done.

use std::sync::Arc;

use arrow::{
    array::{
        ArrayRef, BooleanArray, Decimal128Array, Float32Array, Float64Array, Int64Array, ListArray, RecordBatch,
        StringArray, StringDictionaryBuilder, TimestampNanosecondArray, UInt64Array,
    },
    datatypes::{Int32Type, Int64Type},
};
use serde_json::{Value, json};

use crate::{
    ColumnTypes, Comparison, Durability, Engine, FileTimeUnit, Literal, OnConflict, Precision, Predicate, WriteOptions,
    clock::Clock,
};

const DAY: i64 = 86_400_000_000_000;
/// When it is done: 2026-01-01.
const NOW: i64 = 20_454 * DAY;

/// A clock that stands still.
#[derive(Debug)]
pub(super) struct Still;

impl Clock for Still {
    fn now_ns(&self) -> i64 {
        NOW
    }
}

/// What there was to be done when builds wrote a format.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(super) enum Era {
    /// Points, flushes, merges.
    First,
    /// Deletes, drops, idempotency keys, durabilities of databases.
    Changes,
    /// Columns that change their type, packs.
    Types,
    /// A state that has a name.
    Snapshots,
    /// Times in another unit than nanoseconds.
    TimeUnits,
}

/// A file in the place of a table's folder, so that no flush ends any more: not even that of a
/// drop, whose frame stays.
pub(super) const BLOCK: &str = "data/d/blocked";

/// Does it in the directory that `open` opens, given from how many small tables on a flush writes
/// packs. The engine that is returned has points that are in its log only, and cannot flush; who
/// wants that removes [`BLOCK`].
pub(super) fn carry_out(era: Era, open: impl Fn(usize) -> Engine) -> Engine {
    let engine = open(64);
    files(&engine);
    if era >= Era::Changes {
        changes(&engine);
    }
    if era >= Era::Types {
        types(&engine);
    }
    if era >= Era::Snapshots {
        engine.create_snapshot("kept").unwrap();
    }
    if era >= Era::TimeUnits {
        time_units(&engine);
    }
    engine.close().unwrap();
    if era >= Era::Types {
        packs(&open(2));
    }
    let engine = open(64);
    std::fs::write(engine.path().join(BLOCK), "").unwrap();
    lines(&engine, "blocked x=1 1");
    frames(&engine);
    if era >= Era::Changes {
        frames_of_changes(&engine);
    }
    if era >= Era::Types {
        lines(&engine, "wide a=\"now text\" 3");
    }
    lines(&engine, "cpu,host=z x=4 12");
    engine
}

/// Files on time of several days, merged ones, late ones, of columns of all types.
fn files(engine: &Engine) {
    lines(engine, &every_type("cpu", 0));
    columns(engine, 0);
    batches(engine, 0);
    engine.flush().unwrap();
    lines(engine, &every_type("cpu", 1));
    columns(engine, 1);
    engine.flush().unwrap();
    engine.compact().unwrap();
    // Over points that are there, and before them.
    lines(engine, "cpu,host=a x=-7.5,late=\"ü \\\"q\\\"\" 5\ncpu,host=z y=1i -3\ncpu x=2 -3");
    engine.flush().unwrap();
    engine.create_database("empty").unwrap();
    engine.set_retention("d", Some("cpu"), Some(std::time::Duration::from_secs(1 << 33))).unwrap();
}

/// A table that is dropped, a delete that is carried out in no file, a receipt, and a durability.
fn changes(engine: &Engine) {
    lines(engine, &every_type("gone", 0));
    engine.flush().unwrap();
    engine.drop_table("d", "gone").unwrap();
    engine.flush().unwrap();
    let old = Predicate::compare("host", Comparison::Equal, Literal::Text("b".into()));
    let old = Predicate::And(vec![old, Predicate::compare("time", Comparison::Less, Literal::Time(3))]);
    engine.delete("d", "cpu", &old).unwrap();
    engine.flush().unwrap();
    let has_primary_key = WriteOptions::new().idempotency_key("kü 1");
    let written =
        engine.submit_lp("d", "cpu,host=k x=1 7\ncpu,host=k x= 8".into(), &has_primary_key).unwrap().wait().unwrap();
    assert_eq!((written.points, written.rejected_points), (1, 1));
    engine.flush().unwrap();
    engine.set_database_durability("d", Some(Durability::Process)).unwrap();
}

/// Columns whose type has changed over files: to floats, and to text.
fn types(engine: &Engine) {
    let types = ColumnTypes::new().string_columns(["note*"]).on_conflict(OnConflict::Widen);
    engine.set_column_types("d", None, &types).unwrap();
    lines(engine, "wide a=1i,b=9007199254740993i,c=1.5,d=t,note=7i 1");
    engine.flush().unwrap();
    lines(engine, "wide a=2.5,b=0.5,c=\"c\",d=\"d\" 2");
    engine.flush().unwrap();
}

/// Files in microseconds, one that was merged, and one that has finer times.
fn time_units(engine: &Engine) {
    let types = ColumnTypes::new().time_unit(FileTimeUnit::Microsecond);
    engine.create_database("coarse").unwrap();
    engine.set_column_types("coarse", None, &types).unwrap();
    for n in 0..3_i64 {
        let lines = format!("cpu,host=a x={n},n={n}i {}\ncpu x=-{n} {}\nnano x=1 {}", n * 1_000, -n * 1_000_000, n);
        let written = engine.write_lp("coarse", lines.as_bytes()).unwrap();
        assert_eq!(written.rejected_points, 0, "{:?}", written.rejected);
        engine.flush().unwrap();
        if n == 1 {
            engine.compact().unwrap();
        }
    }
}

fn packs(engine: &Engine) {
    for table in ["p1", "p2", "p3"] {
        lines(engine, &format!("{table},t=1 x=1.5,s=\"{table}\" 1\n{table} x=-0,i=-1i -1"));
    }
    engine.flush().unwrap();
    engine.close().unwrap();
}

/// Frames of writes, which are in no file.
fn frames(engine: &Engine) {
    lines(engine, "cpu,host=a x=3.25 11");
    lines(engine, &format!("# {}\n{}", "x".repeat(8_000), every_type("cpu", 2)));
    lines(engine, "new,t=v x=1 1");
    columns(engine, 2);
    batches(engine, 2);
    items(engine, json!([{"m": "item", "t": 5, "tags": {"host": "a"}, "fields": {"x": 1.5, "s": "", "b": true}}]));
    engine.create_database("other").unwrap();
}

/// Frames of drops and deletes, and of writes with a key.
fn frames_of_changes(engine: &Engine) {
    // The second line is passed over, and the third has the clock's time.
    let with_key = WriteOptions::new().idempotency_key("k 2").precision(Precision::Second);
    let body = "cpu,host=k x=2 9\ncpu x= 8\ncpu,host=k x=3";
    let written = engine.submit_lp("d", body.into(), &with_key).unwrap().wait().unwrap();
    assert_eq!((written.points, written.rejected_points), (2, 1));
    lines(engine, "doomed x=1 1");
    engine.drop_table("d", "doomed").unwrap();
    let deleted = Predicate::compare("host", Comparison::Equal, Literal::Text("z".into()));
    engine.delete("d", "cpu", &deleted).unwrap();
}

/// Returns lines over two days, one before 1970, with the extremes of each type.
fn every_type(table: &str, round: i64) -> String {
    let mut lines = String::new();
    for n in 0..24_i64 {
        let time = (n % 2 - 1) * DAY + n + round * 100;
        let host = ["a", "b", "ü c"].map(|host| host.replace(' ', "\\ "))[usize::try_from(n % 3).unwrap()].clone();
        let float = [-0.0, 5e-324, f64::MAX, 0.1][usize::try_from(n % 4).unwrap()];
        let integer = [i64::MIN, i64::MAX, n][usize::try_from(n % 3).unwrap()];
        let unsigned = [u64::MAX, n.cast_unsigned()][usize::try_from(n % 2).unwrap()];
        lines +=
            &format!("{table},host={host} x={float:?},y={integer}i,u={unsigned}u,b={},s=\"s{n}\" {time}\n", n % 2 == 0);
        lines += &format!("{table} sparse{}={n} {time}\n", n % 5);
    }
    lines
}

fn lines(engine: &Engine, lines: &str) {
    let written = engine.write_lp("d", lines.as_bytes()).unwrap();
    assert_eq!(written.rejected_points, 0, "{:?}", written.rejected);
}

fn items(engine: &Engine, items: Value) {
    let options = WriteOptions::new().precision(Precision::Nanosecond);
    let body = rmp_serde::to_vec_named(&items).unwrap();
    let written = engine.submit_msgpack("d", body.into(), &options).unwrap().wait().unwrap();
    assert_eq!(written.rejected_points, 0, "{:?}", written.rejected);
}

/// Whole columns into an append-only table.
fn columns(engine: &Engine, round: i64) {
    let column = |of: &dyn Fn(i64) -> Value| (0..50).map(of).collect::<Vec<_>>();
    let times = column(&|n| json!(n % 40 + round));
    let values = column(&|n| if n % 7 == 0 { Value::Null } else { json!(n as f64 / 4.0) });
    let flags = column(&|n| json!(n % 3 == 0));
    let texts = column(&|n| json!(["", "on", "off"][usize::try_from(n % 3).unwrap()]));
    let columns = json!({"time": times, "x": values, "f1": flags, "f2": flags, "f3": flags, "f4": flags, "s": texts});
    items(engine, json!({"m": "list", "columns": columns}));
}

/// Record batches, with types that no other format has.
fn batches(engine: &Engine, round: i64) {
    let mut modes = StringDictionaryBuilder::<Int32Type>::new();
    modes.extend(["auto", "manual", "auto"].map(Some));
    let lists = [Some(vec![Some(1), None]), None, Some(vec![])];
    let decimals = Decimal128Array::from(vec![Some(125), None, Some(-1)]).with_precision_and_scale(38, 2).unwrap();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("time", Arc::new(TimestampNanosecondArray::from(vec![1 + round, 7, 7]))),
        ("nan", Arc::new(Float64Array::from(vec![f64::from_bits(0x7ff8_dead_beef_0001), f64::NEG_INFINITY, -0.0]))),
        ("small", Arc::new(Float32Array::from(vec![Some(f32::NAN), None, Some(0.1)]))),
        ("i", Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(i64::MAX)]))),
        ("u", Arc::new(UInt64Array::from(vec![Some(u64::MAX), Some(0), None]))),
        ("b", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]))),
        ("s", Arc::new(StringArray::from(vec![Some(""), None, Some("text")]))),
        ("mode", Arc::new(modes.finish())),
        ("list", Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists))),
        ("money", Arc::new(decimals)),
    ];
    let written = engine.write_batch("d", "batches", &RecordBatch::try_from_iter(columns).unwrap()).unwrap();
    assert_eq!(written.points, 3);
}
