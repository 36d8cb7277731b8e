//! Columns that change their type equal a map of what was written, whatever comes in between and in
//! whichever form.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use arc_core::{ColumnTypes, Engine, Literal, OnConflict, Precision, Predicate, WriteOptions};
use arrow::{
    array::{
        Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
        TimestampNanosecondArray, UInt64Array,
    },
    datatypes::{DataType, Float64Type, Int64Type, UInt64Type},
};
use bytes::Bytes;
use proptest::prelude::*;

use crate::support::{cases, number, query, quiet};

/// A value as it is sent.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Integer(i64),
    Unsigned(u64),
    Float(f64),
    Boolean(bool),
    Text(String),
}

use Value::{Boolean, Float, Integer, Text, Unsigned};

impl Value {
    fn data_type(&self) -> DataType {
        match self {
            Integer(_) => DataType::Int64,
            Unsigned(_) => DataType::UInt64,
            Float(_) => DataType::Float64,
            Boolean(_) => DataType::Boolean,
            Text(_) => DataType::Utf8,
        }
    }

    fn as_float(&self) -> Option<f64> {
        match self {
            Integer(value) => Some(*value as f64).filter(|float| format!("{float:.0}") == value.to_string()),
            Unsigned(value) => Some(*value as f64).filter(|float| format!("{float:.0}") == value.to_string()),
            Float(value) => Some(*value),
            Boolean(_) | Text(_) => None,
        }
    }

    fn is_small(&self) -> bool {
        match self {
            Integer(value) => value.unsigned_abs() <= 1 << 53,
            Unsigned(value) => *value <= 1 << 53,
            Float(_) => true,
            Boolean(_) | Text(_) => false,
        }
    }

    /// As a column of this type has it, in the words of the test.
    fn shown(&self, data_type: &DataType) -> String {
        match (self, data_type) {
            (_, DataType::Float64) => format!("{:?}", self.as_float().unwrap()),
            (Integer(value), _) => value.to_string(),
            (Unsigned(value), _) => value.to_string(),
            (Boolean(value), _) => value.to_string(),
            (Text(value), _) => value.clone(),
            // Short floats only.
            (Float(value), _) => value.to_string(),
        }
    }

    fn line(&self) -> String {
        match self {
            Integer(value) => format!("{value}i"),
            Unsigned(value) => format!("{value}u"),
            Float(value) => value.to_string(),
            Boolean(value) => value.to_string(),
            Text(value) => format!("\"{value}\""),
        }
    }

    fn json(&self) -> serde_json::Value {
        match self {
            Integer(value) => serde_json::json!(value),
            Unsigned(value) => serde_json::json!(value),
            Float(value) => serde_json::json!(value),
            Boolean(value) => serde_json::json!(value),
            Text(value) => serde_json::json!(value),
        }
    }

    fn array(&self) -> ArrayRef {
        match self {
            Integer(value) => Arc::new(Int64Array::from(vec![*value])),
            Unsigned(value) => Arc::new(UInt64Array::from(vec![*value])),
            Float(value) => Arc::new(Float64Array::from(vec![*value])),
            Boolean(value) => Arc::new(BooleanArray::from(vec![*value])),
            Text(value) => Arc::new(StringArray::from(vec![value.as_str()])),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Form {
    Lines,
    Rows,
    Columns,
    Arrow,
}

#[derive(Debug, Clone)]
enum Step {
    /// Values of the columns with these numbers, in one row each, all in one request.
    Write(Form, Vec<(usize, Value)>),
    Flush,
    Compact,
    /// Whether with the setting.
    Restart(bool),
}

/// Columns: two that are text by their names, and others.
const NAMES: [&str; 4] = ["attr_a", "x", "y", "attr_b"];

fn value() -> impl Strategy<Value = Value> {
    let integer = prop_oneof![4 => -5..5i64, 1 => Just((1 << 53) + 1), 1 => Just(1i64 << 60), 1 => Just(i64::MIN)];
    prop_oneof![
        6 => integer.prop_map(Integer),
        // Above what is an integer for MessagePack, which knows no other unsigned ones.
        1 => Just(Unsigned(u64::MAX)),
        3 => (-9..9i32).prop_map(|halves| Float(f64::from(halves) / 2.0 + 0.25)),
        1 => any::<bool>().prop_map(Boolean),
        1 => "[a-c]{0,2}".prop_map(Text),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let form = prop_oneof![Just(Form::Lines), Just(Form::Rows), Just(Form::Columns), Just(Form::Arrow)];
    let step = prop_oneof![
        8 => (form, prop::collection::vec((0..NAMES.len(), value()), 1..5)).prop_map(|(form, rows)| Step::Write(form, rows)),
        2 => Just(Step::Flush),
        1 => Just(Step::Compact),
        2 => any::<bool>().prop_map(Step::Restart),
    ];
    prop::collection::vec(step, 1..20)
}

/// What the table has to be.
#[derive(Debug, Default)]
struct Model {
    types: BTreeMap<usize, DataType>,
    /// Columns from before the request.
    known: BTreeSet<usize>,
    rows: BTreeMap<i64, (usize, Value)>,
}

impl Model {
    fn begin_request(&mut self) {
        self.known = self.types.keys().copied().collect();
    }

    fn add(&mut self, form: Form, time: i64, column: usize, value: Value) {
        let own = if NAMES[column].starts_with("attr_") { DataType::Utf8 } else { value.data_type() };
        let mut before = self.rows.values().filter(|(of, _)| *of == column).map(|(_, value)| value);
        let is_float = value.as_float().is_some();
        // MessagePack rows give a new column one type: floats if these hold all of its integers,
        // also great ones.
        let is_new = matches!(form, Form::Rows) && !self.known.contains(&column) && matches!(value, Float(_));
        let fits = |value: &Value| if is_new { value.as_float().is_some() } else { value.is_small() };
        let of_message_pack = matches!(form, Form::Rows | Form::Columns);
        let joined = self.types.get(&column).map_or(own.clone(), |known| match (known, &own) {
            (known, own) if known == own => own.clone(),
            (DataType::Boolean | DataType::Utf8, _) | (_, DataType::Boolean | DataType::Utf8) => DataType::Utf8,
            (DataType::Float64, _) if is_float => DataType::Float64,
            // An integer may have been meant as an unsigned one.
            (DataType::UInt64, DataType::Int64) if of_message_pack && !matches!(value, Integer(..0)) => {
                DataType::UInt64
            }
            (DataType::Int64 | DataType::UInt64, _) if is_float && before.all(fits) => DataType::Float64,
            _ => DataType::Utf8,
        });
        self.types.insert(column, joined);
        self.rows.insert(time, (column, value));
    }

    /// A question about the column that the last value is of, and its answer.
    fn question(&self) -> (String, i64) {
        let (_, (column, value)) = self.rows.last_key_value().unwrap();
        let (name, data_type) = (NAMES[*column], &self.types[column]);
        let wanted = value.shown(data_type);
        let all = self.rows.values().filter(|(of, _)| of == column);
        let count = |holds: &dyn Fn(&Value) -> bool| {
            i64::try_from(all.clone().filter(|(_, value)| holds(value)).count()).unwrap()
        };
        match (data_type, value.as_float()) {
            (DataType::Float64, Some(least)) => {
                let sql = format!("SELECT count(*) FROM m WHERE {name} >= {least:?}");
                (sql, count(&|value| value.as_float().unwrap() >= least))
            }
            (DataType::Utf8, _) => {
                let sql = format!("SELECT count(*) FROM m WHERE {name} = '{wanted}'");
                (sql, count(&|value| value.shown(data_type) == wanted))
            }
            _ => (format!("SELECT count({name}) FROM m"), count(&|_| true)),
        }
    }

    fn shown(&self) -> Vec<(i64, Vec<Option<String>>)> {
        let row = |(time, (column, value)): (&i64, &(usize, Value))| {
            let cells = (0..NAMES.len()).map(|at| (at == *column).then(|| value.shown(&self.types[&at])));
            (*time, cells.collect())
        };
        self.rows.iter().map(row).collect()
    }
}

fn settings() -> ColumnTypes {
    ColumnTypes::new().string_columns(["attr_*"]).on_conflict(OnConflict::Widen)
}

fn open(path: &Path, with_setting: bool) -> Engine {
    let builder = quiet(path);
    if with_setting { builder.column_types(settings()) } else { builder }.open().unwrap()
}

fn found(engine: &Engine) -> Vec<(i64, Vec<Option<String>>)> {
    let mut rows = Vec::new();
    for batch in query(engine, "d", "SELECT * FROM m ORDER BY time").unwrap() {
        let times = arrow::compute::cast(batch.column_by_name("time").unwrap(), &DataType::Int64).unwrap();
        for row in 0..batch.num_rows() {
            let cell = |name: &&str| {
                let column = batch.column_by_name(name)?;
                column.is_valid(row).then(|| match column.data_type() {
                    DataType::Int64 => column.as_primitive::<Int64Type>().value(row).to_string(),
                    DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).to_string(),
                    DataType::Float64 => format!("{:?}", column.as_primitive::<Float64Type>().value(row)),
                    DataType::Boolean => column.as_boolean().value(row).to_string(),
                    _ => column.as_string::<i32>().value(row).to_owned(),
                })
            };
            rows.push((times.as_primitive::<Int64Type>().value(row), NAMES.iter().map(cell).collect()));
        }
    }
    rows
}

fn send(engine: &Engine, form: Form, rows: &[(i64, usize, Value)]) {
    let nanoseconds = WriteOptions::new().precision(Precision::Nanosecond);
    let message_pack = |items: Vec<serde_json::Value>| {
        let body = Bytes::from(rmp_serde::to_vec_named(&items).unwrap());
        engine.submit_msgpack("d", body, &nanoseconds).unwrap().wait().unwrap()
    };
    let written = match form {
        Form::Lines => {
            let line = |(time, column, value): &(i64, usize, Value)| {
                format!("m,host=h {}={} {time}\n", NAMES[*column], value.line())
            };
            engine.write_lp("d", rows.iter().map(line).collect::<String>().as_bytes()).unwrap()
        }
        Form::Rows => message_pack(
            rows.iter()
                .map(|(time, column, value)| {
                    serde_json::json!({"m": "m", "t": time, "tags": {"host": "h"}, "fields": {NAMES[*column]: value.json()}})
                })
                .collect(),
        ),
        Form::Columns => message_pack(
            rows.iter()
                .map(|(time, column, value)| {
                    let columns = serde_json::json!({"time": [time], "host": ["h"], NAMES[*column]: [value.json()]});
                    serde_json::json!({"m": "m", "columns": columns})
                })
                .collect(),
        ),
        Form::Arrow => {
            for (time, column, value) in rows {
                let columns: Vec<(&str, ArrayRef)> = vec![
                    ("time", Arc::new(TimestampNanosecondArray::from(vec![*time]))),
                    ("host", Arc::new(StringArray::from(vec!["h"]))),
                    (NAMES[*column], value.array()),
                ];
                let batch = RecordBatch::try_from_iter(columns).unwrap();
                let tags = WriteOptions::new().tags(["host"]);
                assert_eq!(engine.submit_batches("d", "m", &[batch], &tags).unwrap().wait().unwrap().points, 1);
            }
            return;
        }
    };
    assert_eq!((written.points, written.rejected_points), (rows.len() as u64, 0), "{form:?} {rows:?} {written:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(16), ..ProptestConfig::default() })]

    #[test]
    fn a_table_equals_what_was_written_in_any_types_and_forms(steps in steps()) {
        let dir = tempfile::tempdir().unwrap();
        let mut engine = open(dir.path(), true);
        let (mut model, mut time) = (Model::default(), 0);
        send(&engine, Form::Lines, &[(time, 0, Text("first".into()))]);
        model.add(Form::Lines, time, 0, Text("first".into()));
        for step in steps {
            match step {
                Step::Write(form, rows) => {
                    if engine.effective_column_types("d", None) != settings() {
                        drop(engine);
                        engine = open(dir.path(), true);
                    }
                    let rows: Vec<_> = (1..).zip(rows).map(|(n, (column, value))| (time + n, column, value)).collect();
                    send(&engine, form, &rows);
                    model.begin_request();
                    for (at, column, value) in rows {
                        time = at;
                        model.add(form, at, column, value);
                    }
                }
                Step::Flush => drop(engine.flush().unwrap()),
                Step::Compact => drop(engine.compact().unwrap()),
                Step::Restart(with_setting) => {
                    drop(engine);
                    engine = open(dir.path(), with_setting);
                }
            }
            prop_assert_eq!(found(&engine), model.shown());
            let (sql, expected) = model.question();
            prop_assert_eq!(number(&engine, "d", &sql), expected, "{}", sql);
        }
        let report = engine.verify().unwrap();
        prop_assert!(report.is_clean(), "{}", report);
    }
}

#[test]
fn deletes_take_what_they_took_whatever_the_columns_become() {
    let rows = [(1, Integer(5)), (2, Integer(7)), (3, Integer(-1))];
    for (later, left) in [(Float(0.25), ["-1.0", "0.25", "7.0"]), (Text("t".into()), ["-1", "7", "t"])] {
        for flush in 0..8 {
            let dir = tempfile::tempdir().unwrap();
            let engine = open(dir.path(), true);
            let flush_at = |at: u32| (flush & (1 << at) > 0).then(|| engine.flush().unwrap());
            let put = |time: i64, value: &Value| {
                let columns: Vec<(&str, ArrayRef)> =
                    vec![("time", Arc::new(TimestampNanosecondArray::from(vec![time]))), ("x", value.array())];
                let batch = RecordBatch::try_from_iter(columns).unwrap();
                assert_eq!(engine.write_batch("d", "m", &batch).unwrap().points, 1);
            };
            rows.iter().for_each(|(time, value)| put(*time, value));
            flush_at(0);
            let five =
                Predicate::In { column: "x".into(), values: vec![Literal::Integer(5), Literal::Integer(1 << 60)] };
            engine.delete("d", "m", &five).unwrap();
            flush_at(1);
            put(4, &later);
            put(5, &Integer(5));
            flush_at(2);
            let mut expected: Vec<String> = left.map(str::to_owned).into();
            expected.push(if matches!(later, Float(_)) { "5.0".into() } else { "5".into() });
            expected.sort();
            let check = |engine: &Engine, state: &str| {
                let mut values: Vec<String> =
                    found(engine).into_iter().filter_map(|(_, cells)| cells[1].clone()).collect();
                values.sort();
                assert_eq!(values, expected, "{later:?} {flush} {state}");
            };
            check(&engine, "at once");
            drop(engine);
            let engine = open(dir.path(), false);
            check(&engine, "replayed");
            engine.flush().unwrap();
            check(&engine, "flushed");
            engine.compact().unwrap();
            check(&engine, "merged");
            assert!(engine.verify().unwrap().is_clean());
        }
    }
}

#[test]
fn writers_that_widen_at_the_same_time_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path(), true);
    let values = [Integer(1), Float(0.5), Integer((1 << 53) + 1), Text("t".into()), Unsigned(3), Integer(2)];
    std::thread::scope(|scope| {
        for (thread, value) in (0_i64..).zip(&values) {
            let engine = &engine;
            scope.spawn(move || {
                for n in 0..50 {
                    // A new column each time, so that each is widened by several of them.
                    let line = format!("m,host=h{thread} c{n}={} {n}", value.line());
                    assert_eq!(engine.write_lp("d", line.as_bytes()).unwrap().rejected_points, 0);
                    if n % 10 == thread {
                        engine.flush().unwrap();
                    }
                }
            });
        }
    });
    let check = |engine: &Engine| {
        for n in 0..50 {
            let sql = format!("SELECT c{n} AS c FROM m WHERE c{n} IS NOT NULL ORDER BY host");
            let batches = query(engine, "d", &sql).unwrap();
            let texts: Vec<String> = batches
                .iter()
                .flat_map(|batch| batch.column(0).as_string::<i32>().iter().map(|text| text.unwrap().to_owned()))
                .collect();
            assert_eq!(texts, ["1", "0.5", "9007199254740993", "t", "3", "2"], "{n}");
        }
    };
    check(&engine);
    drop(engine);
    let engine = open(dir.path(), false);
    check(&engine);
    engine.flush().unwrap();
    engine.compact().unwrap();
    check(&engine);
}

#[test]
fn what_the_newest_rows_remember_follows_the_type() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path(), true);
    let newest = |sql: &str| crate::support::shown(&engine, "d", sql);
    let sql = "SELECT host, x FROM (SELECT *, row_number() OVER (PARTITION BY host ORDER BY time DESC) AS n FROM m) WHERE n = 1 ORDER BY host";
    let write = |lines: &str| assert_eq!(engine.write_lp("d", lines.as_bytes()).unwrap().rejected_points, 0);
    write("m,host=a x=1i 1\nm,host=b x=2i 2");
    engine.flush().unwrap();
    for (lines, of_a) in [("m,host=c x=0.5 3", "| 1.0 "), ("m,host=d x=true 4", "| 1 ")] {
        assert!(newest(sql).contains('1'));
        write(lines);
        let (once, again) = (newest(sql), newest(sql));
        assert!(once.contains(of_a), "{once}");
        assert_eq!(once, again);
        engine.flush().unwrap();
        assert!(newest(sql).contains(of_a));
    }
}
