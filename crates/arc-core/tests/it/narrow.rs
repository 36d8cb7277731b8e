//! Integers of fewer than 64 bits, and days: their bounds answer `min` and `max` and leave files
//! out, and change no answer.

use std::sync::Arc;

use arc_core::{Durability, Engine, WriteOptions};
use arrow::array::{
    ArrayRef, Date32Array, Int8Array, Int16Array, Int32Array, RecordBatch, TimestampNanosecondArray, UInt8Array,
    UInt16Array, UInt32Array,
};

use crate::support::{open, shown};

const DAY: i64 = 86_400_000_000_000;
const COLUMNS: [&str; 7] = ["day", "i8", "i16", "i32", "u8", "u16", "u32"];

fn value(number: i64) -> Option<i64> {
    (number > -90).then_some(number)
}

fn narrow<T: TryFrom<i64>>(numbers: &[i64]) -> impl Iterator<Item = Option<T>> {
    numbers.iter().map(|number| value(*number).and_then(|number| T::try_from(number).ok()))
}

/// Writes one row for each number, at that many days and of that value; of nulls at five days where
/// it is below -90.
fn write(engine: &Engine, numbers: &[i64]) {
    let at = |number: &i64| Some(value(*number).unwrap_or(5) * DAY);
    let unsigned: Vec<i64> = numbers.iter().map(|number| if *number > -90 { number.abs() } else { *number }).collect();
    let columns: [(&str, ArrayRef); 8] = [
        ("time", Arc::new(numbers.iter().map(at).collect::<TimestampNanosecondArray>())),
        ("day", Arc::new(narrow::<i32>(numbers).collect::<Date32Array>())),
        ("i8", Arc::new(narrow::<i8>(numbers).collect::<Int8Array>())),
        ("i16", Arc::new(narrow::<i16>(numbers).collect::<Int16Array>())),
        ("i32", Arc::new(narrow::<i32>(numbers).collect::<Int32Array>())),
        ("u8", Arc::new(narrow::<u8>(&unsigned).collect::<UInt8Array>())),
        ("u16", Arc::new(narrow::<u16>(&unsigned).collect::<UInt16Array>())),
        ("u32", Arc::new(narrow::<u32>(&unsigned).collect::<UInt32Array>())),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap();
    let keep = [("arc.integer_width".to_owned(), "keep".to_owned())].into();
    let schema = batch.schema().as_ref().clone().with_metadata(keep);
    let batch = batch.with_schema(Arc::new(schema)).unwrap();
    let options = WriteOptions::new().durability(Durability::Memory);
    let _ = engine.submit_batches("db", "t", &[batch], &options).unwrap().wait().unwrap();
}

fn bounds() -> String {
    COLUMNS.map(|column| format!("min({column}), max({column})")).join(", ")
}

/// Compares answers from bounds with those of rows that are all looked at.
#[track_caller]
fn check(engine: &Engine, state: &str) {
    // Casts keep the bounds away.
    let looked = COLUMNS.map(|column| match column {
        "day" => "min(day + INTERVAL '0 day'), max(day + INTERVAL '0 day')".to_owned(),
        _ => format!("min(CAST({column} AS DOUBLE)), max(CAST({column} AS DOUBLE))"),
    });
    let cells = |text: &str| {
        let row = text.lines().nth(3).unwrap_or_default().to_owned();
        row.replace(".0", "").replace("T00:00:00", "").split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let found = shown(engine, "db", &format!("SELECT {} FROM t", bounds()));
    let expected = shown(engine, "db", &format!("SELECT {} FROM t", looked.join(", ")));
    assert_eq!(cells(&found), cells(&expected), "{state}");
    for condition in ["day = '1970-01-06'", "i8 < 3", "i16 > 6", "i32 = 5", "u8 >= 5", "u16 = 7", "u32 IN (1, 6)"] {
        let (column, rest) = condition.split_once(' ').unwrap();
        let all = match column {
            "day" => "day + INTERVAL '0 day' = '1970-01-06'".to_owned(),
            _ => format!("CAST({column} AS DOUBLE) {rest}"),
        };
        let count = |condition: &str| shown(engine, "db", &format!("SELECT count(*) FROM t WHERE {condition}"));
        assert_eq!(count(condition), count(&all), "{state}: {condition}");
    }
}

#[test]
fn bounds_of_narrow_integers_and_days_answer_what_rows_do() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    write(&engine, &[1, 2, 3]);
    check(&engine, "unflushed");
    engine.flush().unwrap();
    write(&engine, &[-128, 5, 7]);
    engine.flush().unwrap();
    check(&engine, "in files");
    let plan = shown(&engine, "db", &format!("EXPLAIN SELECT {} FROM t", bounds()));
    assert!(plan.contains("PlaceholderRowExec") && !plan.contains("DataSourceExec"), "{plan}");
    let plan = shown(&engine, "db", "EXPLAIN SELECT count(*) FROM t WHERE i16 > 6");
    assert!(plan.contains("left out: 4 by other columns"), "{plan}");
    write(&engine, &[6, -4]);
    check(&engine, "in files and unflushed");
    engine.flush().unwrap();
    engine.delete("db", "t", &arc_core::Predicate::from_sql("time = '1970-01-08'").unwrap()).unwrap();
    check(&engine, "with a delete");
    engine.flush().unwrap();
    engine.compact().unwrap();
    check(&engine, "compacted");
    let report = engine.verify().unwrap();
    assert!(report.is_clean(), "{report}");
}
