//! What is told of a file.

use std::collections::BTreeMap;

use arrow::{
    array::{AsArray, BooleanArray, DictionaryArray, Float64Array, TimestampMillisecondArray, UInt64Array},
    datatypes::{Int32Type, Int64Type},
};

use super::*;
use crate::{
    datafile::{Accumulator, DistinctValues, ParquetWriter, Value},
    model::StatisticsValue,
};

fn rows() -> RecordBatch {
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "time",
            Arc::new(TimestampMillisecondArray::from(vec![Some(30), None, Some(10), Some(20), Some(50), Some(40)])),
        ),
        (
            "level",
            Arc::new(StringArray::from(vec![Some("info"), None, Some("warn"), Some("info"), Some("x"), Some("")])),
        ),
        (
            "tag",
            Arc::new(
                vec![Some("b"), Some("a"), Some("b"), None, Some("b"), None]
                    .into_iter()
                    .collect::<DictionaryArray<Int32Type>>(),
            ),
        ),
        ("count", Arc::new(UInt64Array::from(vec![3, 1, 1, 2, 7, 7]))),
        ("float", Arc::new(Float64Array::from(vec![0.0, -0.0, 1.0, -1.0, 0.0, 0.0]))),
        ("flag", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, None, None, None]))),
        ("null", arrow::array::new_null_array(&DataType::Utf8, 6)),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

#[test]
fn each_file_tells_its_times_and_distinct_values() {
    let folder = tempfile::tempdir().unwrap();
    let wanted = ["level", "time", "tag", "count", "float", "flag", "null"];
    let writer = ParquetWriter::builder(folder.path(), rows().schema()).time_column("time").max_rows(4);
    let mut writer = writer.distinct(wanted).max_distinct(3).open().unwrap();
    for row in 0..6 {
        writer.push(&rows().slice(row, 1)).unwrap();
    }
    let texts =
        |texts: &[&'static str]| -> Vec<Value<'static>> { texts.iter().map(|text| Value::from(*text)).collect() };
    let times = |times: &[i64]| -> Vec<Value<'static>> { times.iter().map(|time| Value::from(*time)).collect() };
    let expected: [[Vec<Value<'_>>; 7]; 2] = [
        [
            texts(&["info", "warn"]),
            times(&[10, 20, 30]),
            texts(&["a", "b"]),
            [1, 2, 3].map(Value::Unsigned).to_vec(),
            vec![],
            [false, true].map(Value::Boolean).to_vec(),
            vec![],
        ],
        [
            texts(&["", "x"]),
            times(&[40, 50]),
            texts(&["b"]),
            vec![Value::Unsigned(7)],
            vec![Value::Float(0.0)],
            vec![],
            vec![],
        ],
    ];
    let files = writer.close().unwrap();
    for ((file, expected), times) in files.iter().zip(expected).zip([(10, 30), (40, 50)]) {
        assert_eq!((file.statistics.first_time, file.statistics.last_time), (Some(times.0), Some(times.1)));
        let expected = wanted.iter().zip(expected).map(|(column, values)| {
            // Four floats in the first file: one too many.
            let complete = !(*column == "float" && times == (10, 30));
            DistinctValues { column: (*column).into(), values, complete }
        });
        assert_eq!(file.statistics.distinct, expected.collect::<Vec<_>>());
    }
    let count = files[0].statistics.columns.iter().find(|column| column.name == "count").unwrap();
    let bounds = (count.null_count, count.min.clone(), count.max.clone());
    assert_eq!(bounds, (0, Some(StatisticsValue::Unsigned(1)), Some(StatisticsValue::Unsigned(3))));
    assert_eq!(files[1].statistics.columns.len(), 5, "neither the nulls nor the flags");
}

/// Rows by level.
#[derive(Default)]
struct Levels(BTreeMap<String, u64>);

impl Accumulator for Levels {
    type Output = BTreeMap<String, u64>;

    fn update(&mut self, rows: &RecordBatch) {
        for level in rows.column_by_name("level").unwrap().as_string::<i32>().iter().flatten() {
            *self.0.entry(level.to_owned()).or_default() += 1;
        }
    }

    fn finish(self) -> Self::Output {
        self.0
    }
}

/// Sum of a column that has become texts.
struct Sum(i64);

impl Accumulator for Sum {
    type Output = i64;

    fn update(&mut self, rows: &RecordBatch) {
        let texts = rows.column_by_name("attr_n").unwrap().as_string::<i32>();
        self.0 += texts.iter().flatten().map(|text| text.parse::<i64>().unwrap()).sum::<i64>();
    }

    fn finish(self) -> i64 {
        self.0
    }
}

#[test]
fn accumulators_see_each_row_of_their_file_once_as_the_file_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let schema = schema(&[("level", DataType::Utf8), ("attr_n", DataType::Int64)]);
    let writer = ParquetWriter::builder(folder.path(), Arc::clone(&schema)).text_prefixes(["attr_"]).max_rows(600);
    let mut writer = writer.open_with(|| (Levels::default(), Sum(0))).unwrap();
    let level = |n: i64| ["info", "warn", "error"][(n % 3) as usize];
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_000));
    let levels: ArrayRef = Arc::new(StringArray::from_iter_values((0..1_000).map(level)));
    writer.push(&RecordBatch::try_new(schema, vec![levels, Arc::clone(&numbers)]).unwrap()).unwrap();
    for n in 1_000..1_500 {
        writer.push_row(&[Value::from(level(n)), Value::Integer(n)]).unwrap();
    }
    let files = writer.close().unwrap();
    let mut start = 0;
    for (file, rows) in files.iter().zip([600, 600, 300]) {
        let mut levels = BTreeMap::new();
        (start..start + rows).for_each(|n| *levels.entry(level(n).to_owned()).or_default() += 1);
        assert_eq!(file.accumulated, (levels, (start..start + rows).sum::<i64>()));
        start += rows;
    }
    assert_eq!(start, 1_500);
    assert_eq!(numbers.as_primitive::<Int64Type>().len(), 1_000);
}
