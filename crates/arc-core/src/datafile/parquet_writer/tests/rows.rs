//! Rows of values.

use std::collections::{BTreeMap, HashMap};

use arrow::array::{AsArray, BooleanArray, Float64Array, TimestampNanosecondArray, UInt64Array};

use super::*;
use crate::datafile::{ParquetWriter, Value};

fn columns() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("time", DataType::Timestamp(arrow::datatypes::TimeUnit::Nanosecond, None), false),
        Field::new("int", DataType::Int64, true),
        Field::new("unsigned", DataType::UInt64, true),
        Field::new("float", DataType::Float64, true),
        Field::new("flag", DataType::Boolean, true),
        Field::new("text", DataType::Utf8, true),
        Field::new("attr_any", DataType::Int64, true),
        Field::new("never", DataType::Utf8, true),
        Field::new("other", DataType::Int32, true),
    ]))
}

fn writer(folder: &Path, name: &str) -> ParquetWriter {
    ParquetWriter::builder(folder, columns()).name(name).text_prefixes(["attr_"]).open().unwrap()
}

/// Returns the values of a row, some of them null.
fn values(row: i64) -> Vec<Value<'static>> {
    let any = match row % 4 {
        0 => Value::Integer(row),
        1 => Value::Float(row as f64 / 2.0),
        2 => Value::Boolean(true),
        _ => Value::from("as it is"),
    };
    let unless = |n: i64, value: Value<'static>| if row % n == 0 { Value::Null } else { value };
    vec![
        Value::Integer(row),
        unless(2, Value::Integer(-row)),
        unless(3, Value::Unsigned(u64::MAX - row.unsigned_abs())),
        unless(5, Value::Float(row as f64 / 4.0)),
        unless(7, Value::Boolean(row % 2 == 1)),
        unless(11, Value::from(format!("text {row}"))),
        unless(13, any),
        Value::Null,
        Value::Null,
    ]
}

#[test]
fn rows_by_place_and_by_name_are_the_same_as_batches() {
    const ROWS: i64 = 10_000;
    let folder = tempfile::tempdir().unwrap();
    let (mut by_kind, mut by_name) = (writer(folder.path(), "place"), writer(folder.path(), "name"));
    let names: Vec<String> = columns().fields().iter().map(|field| field.name().clone()).collect();
    for row in 0..ROWS {
        by_kind.push_row(&values(row)).unwrap();
        // Maps of both kinds, with and without the nulls.
        let named = names.iter().cloned().zip(values(row));
        if row % 2 == 0 {
            let map: HashMap<String, Value<'_>> = named.collect();
            by_name.push_named(map.iter().map(|(name, value)| (name.as_str(), value))).unwrap();
        } else {
            let map: BTreeMap<String, Value<'_>> = named.filter(|(_, value)| *value != Value::Null).collect();
            by_name.push_named(map.iter().map(|(name, value)| (name.as_str(), value))).unwrap();
        }
    }
    assert_eq!(by_kind.rows(), 10_000);
    let back = read(&by_kind.close().unwrap()[0].path);
    assert_eq!(read(&by_name.close().unwrap()[0].path), back);
    assert_eq!(back.num_columns(), 7);
    let unless = |n: i64, row: i64| row % n != 0;
    assert_eq!(back.column(0).as_ref(), &TimestampNanosecondArray::from_iter_values(0..ROWS));
    assert_eq!(back.column(1).as_ref(), &Int64Array::from_iter((0..ROWS).map(|row| unless(2, row).then_some(-row))));
    let unsigned = (0..ROWS).map(|row| unless(3, row).then(|| u64::MAX - row.unsigned_abs()));
    assert_eq!(back.column(2).as_ref(), &UInt64Array::from_iter(unsigned));
    let floats = (0..ROWS).map(|row| unless(5, row).then_some(row as f64 / 4.0));
    assert_eq!(back.column(3).as_ref(), &Float64Array::from_iter(floats));
    let flags = (0..ROWS).map(|row| unless(7, row).then_some(row % 2 == 1));
    assert_eq!(back.column(4).as_ref(), &BooleanArray::from_iter(flags));
    let texts = (0..ROWS).map(|row| unless(11, row).then(|| format!("text {row}")));
    assert_eq!(back.column(5).as_ref(), &StringArray::from_iter(texts));
    let any: Vec<Option<&str>> = back.column(6).as_string::<i32>().iter().take(6).collect();
    assert_eq!(any, [None, Some("0.5"), Some("true"), Some("as it is"), Some("4"), Some("2.5")]);
}

#[test]
fn a_row_that_does_not_fit_is_refused_as_a_whole_and_the_writer_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = writer(folder.path(), "rows");
    let with = |field: usize, value: Value<'static>| {
        let mut row = values(1);
        row[field] = value;
        row
    };
    let mut good = 0;
    for (row, expected) in [
        (with(0, Value::Null), "column \"time\": it may not be null"),
        (with(1, Value::from("1")), "column \"int\": expected Int64, got a text"),
        (with(1, Value::Float(0.5)), "column \"int\": expected Int64, got a float"),
        (with(1, Value::Unsigned(u64::MAX)), "column \"int\": expected Int64, got an integer"),
        (with(2, Value::Integer(-1)), "column \"unsigned\": expected UInt64, got an integer"),
        (with(3, Value::Integer(i64::MAX)), "column \"float\": expected Float64, got an integer"),
        (with(4, Value::Integer(1)), "column \"flag\": expected Boolean, got an integer"),
        (with(5, Value::Integer(1)), "column \"text\": expected Utf8, got an integer"),
        (with(8, Value::Integer(1)), "column \"other\": rows have no values of Int32: push record batches"),
        (values(1)[..3].to_vec(), "column \"float\": the row ends before it"),
        ([values(1), values(1)].concat(), "column \"\": the row has 18 values for 9 columns"),
    ] {
        let error = writer.push_row(&row).unwrap_err();
        assert_eq!(error.to_string(), format!("row {}, {expected}", good + 1));
        assert_eq!(error.kind(), crate::ErrorKind::InvalidInput);
        writer.push_row(&values(good)).unwrap();
        good += 1;
    }
    let (time, one) = (Value::Integer(0), Value::Integer(1));
    for (row, expected) in [
        (vec![("time", &time), ("nope", &one)], "column \"nope\": there is no such column"),
        (vec![("time", &time), ("int", &one), ("int", &one)], "column \"int\": it is there twice"),
        (vec![("int", &one)], "column \"time\": it may not be null"),
    ] {
        let error = writer.push_named(row).unwrap_err();
        assert_eq!(error.to_string(), format!("row {}, {expected}", good + 1));
    }
    let files = writer.close().unwrap();
    let back = read(&files[0].path);
    assert_eq!(back.column(0).as_ref(), &TimestampNanosecondArray::from_iter_values(0..good));
    let mut only_good = self::writer(folder.path(), "good");
    (0..good).for_each(|row| only_good.push_row(&values(row)).unwrap());
    assert_eq!(read(&only_good.close().unwrap()[0].path), back);
}

#[test]
fn rows_and_batches_keep_their_order_among_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let schema = schema(&[("n", DataType::Int64)]);
    let mut writer = ParquetWriter::builder(folder.path(), Arc::clone(&schema)).max_rows(7).open().unwrap();
    for start in (0..30).step_by(3) {
        writer.push_row(&[Value::Integer(start)]).unwrap();
        let batch: ArrayRef = Arc::new(Int64Array::from(vec![start + 1, start + 2]));
        writer.push(&RecordBatch::try_new(Arc::clone(&schema), vec![batch]).unwrap()).unwrap();
    }
    let files = paths(writer.close().unwrap());
    let numbers: Vec<i64> = files
        .iter()
        .flat_map(|path| read(path).column(0).as_primitive::<arrow::datatypes::Int64Type>().values().to_vec())
        .collect();
    assert_eq!((numbers, files.len()), ((0..30).collect(), 5));
}
