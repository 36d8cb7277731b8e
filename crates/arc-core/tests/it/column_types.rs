//! Columns of text by their name, and columns that change their type.

use std::sync::Arc;

use arc_core::{ColumnTypes, Engine, ErrorKind, OnConflict, Precision, WriteOptions};
use arrow::{
    array::{
        ArrayRef, BooleanArray, Date32Array, Float32Array, Int8Array, Int64Array, ListArray, RecordBatch, StringArray,
        TimestampNanosecondArray, UInt64Array,
    },
    datatypes::Int32Type,
};
use bytes::Bytes;

use crate::support::{open, quiet, shown, write};

fn strings() -> ColumnTypes {
    ColumnTypes::new().string_columns(["attr_*", "*_id"])
}

/// `{"m": table, …}` in MessagePack, from its JSON.
fn message_pack(json: &serde_json::Value) -> Bytes {
    Bytes::from(rmp_serde::to_vec_named(json).unwrap())
}

fn write_message_pack(engine: &Engine, json: serde_json::Value) {
    let written = engine.submit_msgpack("d", message_pack(&json), &nanoseconds()).unwrap().wait().unwrap();
    assert_eq!(written.rejected_points, 0, "{:?} {json}", written.rejected);
}

fn nanoseconds() -> WriteOptions {
    WriteOptions::new().precision(Precision::Nanosecond)
}

fn write_batch(engine: &Engine, table: &str, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let _ = engine.submit_batches("d", table, &[batch], &WriteOptions::new()).unwrap().wait().unwrap();
}

/// Reads in every state: unflushed, after a crash, in files, merged, opened again.
fn in_every_state(path: &std::path::Path, engine: Engine, check: impl Fn(&Engine, &str)) -> Engine {
    check(&engine, "unflushed");
    drop(engine);
    let engine = open(path);
    check(&engine, "replayed");
    engine.flush().unwrap();
    check(&engine, "in files");
    engine.compact().unwrap();
    check(&engine, "merged");
    drop(engine);
    let engine = open(path);
    check(&engine, "opened again");
    assert!(engine.verify().unwrap().is_clean());
    engine
}

#[test]
fn fields_that_match_are_text_in_every_form_of_write() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    engine.create_database("d").unwrap();
    engine.set_column_types("d", None, &strings()).unwrap();
    let lines = "m attr_a=9007199254740993i,n=1i 1\nm attr_a=1.50,n=2i 2\nm attr_a=true 3\nm attr_a=\"t\" 4\nm attr_a=18446744073709551615u 5\n\
                 m attr_a=1i,attr_a=\"twice\" 6\nm,user_id=tag attr_a=2 7";
    write(&engine, "d", lines);
    let nothing = "m,user_id=tag user_id=5i 8";
    assert_eq!(engine.write_lp("d", nothing.as_bytes()).unwrap().rejected_points, 1);
    // Rows, then columns, of MessagePack.
    write_message_pack(
        &engine,
        serde_json::json!([
            {"m": "m", "t": 11, "fields": {"attr_a": -7}},
            {"m": "m", "t": 12, "fields": {"attr_a": 1e300}},
            {"m": "m", "t": 13, "fields": {"attr_b": false}},
            {"m": "m", "t": 14, "fields": {"attr_b": 3, "n": 4}},
        ]),
    );
    write_message_pack(
        &engine,
        serde_json::json!({"m": "c", "columns": {
        "time": [21, 22, 23], "attr_a": [1, 2.5, null], "attr_b": [true, 1, "x"], "attr_c": [1, 2, 3], "x": [1, 2, 3]}}),
    );
    write_message_pack(
        &engine,
        serde_json::json!({"m": "c", "columns": {
        "time": [24], "attr_a": [true], "attr_b": [0.5], "attr_c": [u64::MAX]}}),
    );
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("time", Arc::new(TimestampNanosecondArray::from(vec![31, 32]))),
        ("attr_a", Arc::new(Int8Array::from(vec![Some(-1), None]))),
        ("attr_b", Arc::new(Float32Array::from(vec![0.5, 2.0]))),
        ("attr_c", Arc::new(BooleanArray::from(vec![true, false]))),
        ("attr_d", Arc::new(Date32Array::from(vec![0, 1]))),
        ("attr_e", Arc::new(UInt64Array::from(vec![u64::MAX, 0]))),
        ("attr_f", Arc::new(StringArray::from(vec!["s", ""]))),
        ("attr_g", Arc::new(TimestampNanosecondArray::from(vec![1, 0]))),
    ];
    write_batch(&engine, "a", columns);
    engine
        .execute("d", "INSERT INTO c (time, attr_a, attr_b, attr_c) VALUES (41, 1, 'x', 0.25), (42, true, 7, NULL)")
        .unwrap();
    engine.execute("d", "INSERT INTO c (time, attr_a) SELECT 43, 4 + 0.5").unwrap();
    in_every_state(dir.path(), engine, |engine, state| {
        let lines = shown(engine, "d", "SELECT CAST(time AS BIGINT) AS t, attr_a, attr_b, n FROM m ORDER BY time");
        assert_eq!(lines, LINES, "{state}");
        let columns =
            shown(engine, "d", "SELECT CAST(time AS BIGINT) AS t, attr_a, attr_b, attr_c, x FROM c ORDER BY t");
        assert_eq!(columns, COLUMNS, "{state}");
        assert_eq!(shown(engine, "d", "SELECT * EXCLUDE (time) FROM a ORDER BY time"), ARROW, "{state}");
    });
}

const LINES: &str = "\
+----+----------------------+--------+---+
| t  | attr_a               | attr_b | n |
+----+----------------------+--------+---+
| 1  | 9007199254740993     |        | 1 |
| 2  | 1.5                  |        | 2 |
| 3  | true                 |        |   |
| 4  | t                    |        |   |
| 5  | 18446744073709551615 |        |   |
| 6  | twice                |        |   |
| 7  | 2                    |        |   |
| 11 | -7                   |        |   |
| 12 | 1e300                |        |   |
| 13 |                      | false  |   |
| 14 |                      | 3      | 4 |
+----+----------------------+--------+---+";
const COLUMNS: &str = "\
+----+--------+--------+----------------------+---+
| t  | attr_a | attr_b | attr_c               | x |
+----+--------+--------+----------------------+---+
| 21 | 1      | true   | 1                    | 1 |
| 22 | 2.5    | 1      | 2                    | 2 |
| 23 |        | x      | 3                    | 3 |
| 24 | true   | 0.5    | 18446744073709551615 |   |
| 41 | 1      | x      | 0.25                 |   |
| 42 | true   | 7      |                      |   |
| 43 | 4.5    |        |                      |   |
+----+--------+--------+----------------------+---+";
const ARROW: &str = "\
+--------+--------+--------+------------+----------------------+--------+-------------------------------+
| attr_a | attr_b | attr_c | attr_d     | attr_e               | attr_f | attr_g                        |
+--------+--------+--------+------------+----------------------+--------+-------------------------------+
| -1     | 0.5    | true   | 1970-01-01 | 18446744073709551615 | s      | 1970-01-01T00:00:00.000000001 |
|        | 2      | false  | 1970-01-02 | 0                    |        | 1970-01-01T00:00:00           |
+--------+--------+--------+------------+----------------------+--------+-------------------------------+";

#[test]
fn who_says_which_columns_are_text() {
    let dir = tempfile::tempdir().unwrap();
    let builder = || quiet(dir.path()).column_types(strings());
    let engine = builder().open().unwrap();
    let type_of = |engine: &Engine, table: &str| engine.schema("d", table).unwrap().columns[0].data_type.to_string();
    let write_one = |engine: &Engine, table: &str| {
        write(engine, "d", &format!("{table} attr_a=1i 1"));
        type_of(engine, table)
    };
    assert_eq!(write_one(&engine, "by_engine"), "Utf8");
    engine.set_column_types("d", None, &ColumnTypes::new().string_columns(["x_*"])).unwrap();
    assert_eq!(write_one(&engine, "by_database"), "Int64");
    write(&engine, "d", "by_table x=1 1");
    engine.set_column_types("d", Some("by_table"), &strings()).unwrap();
    write(&engine, "d", "by_table attr_a=1i 1");
    assert_eq!(engine.schema("d", "by_table").unwrap().columns[1].data_type.to_string(), "Utf8");
    drop(engine);
    let engine = builder().open().unwrap();
    assert_eq!(engine.column_types("d", Some("by_table")).unwrap(), strings());
    assert_eq!(engine.databases()[0].column_types, ColumnTypes::new().string_columns(["x_*"]));
    let infos = engine.tables("d").unwrap();
    assert_eq!(
        infos.iter().map(|info| info.column_types.string_columns.as_ref().unwrap().len()).collect::<Vec<_>>(),
        [1, 1, 2]
    );
    assert_eq!(write_one(&engine, "by_database_again"), "Int64");
    engine.set_column_types("d", None, &ColumnTypes::new()).unwrap();
    assert_eq!(write_one(&engine, "by_engine_again"), "Utf8");
    // Those that are there stay, and so do conflicts in them.
    assert_eq!(engine.write_lp("d", b"by_database attr_a=\"t\" 2").unwrap().rejected_points, 1);
}

#[test]
fn settings_that_cannot_be_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    write(&engine, "d", "m,attr_tag=a attr_a=1i,attr_s=\"t\" 1");
    let refused = |table: Option<&str>, types: ColumnTypes| {
        let error = engine.set_column_types("d", table, &types).unwrap_err();
        (error.kind(), error.to_string())
    };
    for table in [None, Some("m")] {
        let (kind, text) = refused(table, strings());
        assert_eq!(kind, ErrorKind::InvalidInput);
        assert!(
            text.contains(
                "string_columns is not valid: column \"attr_a\" of table \"m\" matches and is integer already"
            ),
            "{text}"
        );
        assert!(refused(table, ColumnTypes::new().string_columns([""])).1.contains("it is empty"));
    }
    engine.set_column_types("d", Some("m"), &ColumnTypes::new().string_columns(["attr_s", "attr_tag"])).unwrap();
    // It says so itself.
    engine.set_column_types("d", None, &strings()).unwrap();
    assert_eq!(refused(Some("n"), strings()).0, ErrorKind::NotFound);
    assert_eq!(engine.set_column_types("e", None, &strings()).unwrap_err().kind(), ErrorKind::NotFound);
    let error =
        quiet(&dir.path().join("other")).column_types(ColumnTypes::new().string_columns(["\n"])).open().unwrap_err();
    assert!(error.to_string().contains("string_columns") && error.to_string().contains("control"), "{error}");
    let list: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1)])]));
    let time: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![1]));
    let batch = RecordBatch::try_from_iter([("time", time), ("attr_l", list)]).unwrap();
    let error = engine.submit_batches("d", "a", &[batch], &WriteOptions::new()).unwrap_err().to_string();
    assert!(error.contains("column \"attr_l\" is to be text"), "{error}");
}

fn widening() -> ColumnTypes {
    ColumnTypes::new().on_conflict(OnConflict::Widen)
}

/// An engine whose columns may change their type.
fn open_widening(path: &std::path::Path) -> Engine {
    quiet(path).column_types(widening()).open().unwrap()
}

/// The integer that a float is.
fn whole(value: f64) -> Option<i64> {
    value.to_string().parse().ok()
}

#[test]
fn a_column_of_integers_becomes_one_of_floats_in_every_form_of_write() {
    type Write = Box<dyn Fn(&Engine, i64, f64)>;
    let lines: Write = Box::new(|engine, time, value| {
        let value = if value.fract() == 0.0 { format!("{value}i") } else { value.to_string() };
        write(engine, "d", &format!("m v={value} {time}"));
    });
    let rows: Write = Box::new(|engine, time, value| {
        let value = whole(value).map_or_else(|| serde_json::json!(value), |whole| serde_json::json!(whole));
        write_message_pack(engine, serde_json::json!({"m": "m", "t": time, "fields": {"v": value}}));
    });
    let columns: Write = Box::new(|engine, time, value| {
        let value = whole(value).map_or_else(|| serde_json::json!(value), |whole| serde_json::json!(whole));
        write_message_pack(engine, serde_json::json!({"m": "m", "columns": {"time": [time], "v": [value]}}));
    });
    let arrow: Write = Box::new(|engine, time, value| {
        let v: ArrayRef = match whole(value) {
            Some(whole) => Arc::new(Int64Array::from(vec![whole])),
            None => Arc::new(Float32Array::from(vec![value.to_string().parse::<f32>().unwrap()])),
        };
        write_batch(engine, "m", vec![("time", Arc::new(TimestampNanosecondArray::from(vec![time]))), ("v", v)]);
    });
    let small: Write = Box::new(|engine, time, value| {
        let v: ArrayRef = match whole(value) {
            Some(whole) => Arc::new(Int8Array::from(vec![i8::try_from(whole).unwrap()])),
            None => Arc::new(Float32Array::from(vec![value.to_string().parse::<f32>().unwrap()])),
        };
        write_batch(engine, "m", vec![("time", Arc::new(TimestampNanosecondArray::from(vec![time]))), ("v", v)]);
    });
    let sql: Write = Box::new(|engine, time, value| {
        if engine.schema("d", "m").is_err() {
            engine.execute("d", "CREATE TABLE m (v BIGINT)").unwrap();
        }
        engine.execute("d", &format!("INSERT INTO m (time, v) VALUES ({time}, {value})")).unwrap();
    });
    let forms =
        [("lines", lines), ("rows", rows), ("columns", columns), ("arrow", arrow), ("small", small), ("sql", sql)];
    for (form, put) in forms {
        let dir = tempfile::tempdir().unwrap();
        let engine = open_widening(dir.path());
        put(&engine, 1, 1.0);
        if form != "sql" {
            assert_eq!(shown(&engine, "d", "SELECT arrow_typeof(v) AS t FROM m"), type_of("Int64"), "{form}");
        }
        engine.flush().unwrap();
        put(&engine, 2, 2.0);
        put(&engine, 3, 2.5);
        put(&engine, 4, 4.0);
        in_every_state(dir.path(), engine, |engine, state| {
            let sql = "SELECT CAST(time AS BIGINT) AS t, v FROM m ORDER BY t";
            assert_eq!(shown(engine, "d", sql), WIDENED, "{form} {state}");
            let sql = "SELECT CAST(time AS BIGINT) AS t, v FROM m WHERE v > 1.5 AND v < 3 ORDER BY t";
            assert_eq!(shown(engine, "d", sql), SOME_WIDENED, "{form} {state}");
            let sql = "SELECT min(v) AS a, max(v) AS b, sum(v) AS c, count(v) AS d FROM m";
            assert_eq!(shown(engine, "d", sql), SUMS, "{form} {state}");
            let sql = "SELECT last_value(v ORDER BY time) AS v FROM m";
            assert!(shown(engine, "d", sql).contains("4.0"), "{form} {state}");
        });
    }
}

fn type_of(name: &str) -> String {
    let line = "-".repeat(name.len() + 2);
    format!("+{line}+\n| {:1$} |\n+{line}+\n| {name} |\n+{line}+", "t", name.len())
}

const WIDENED: &str = "\
+---+-----+
| t | v   |
+---+-----+
| 1 | 1.0 |
| 2 | 2.0 |
| 3 | 2.5 |
| 4 | 4.0 |
+---+-----+";
const SOME_WIDENED: &str = "\
+---+-----+
| t | v   |
+---+-----+
| 2 | 2.0 |
| 3 | 2.5 |
+---+-----+";
const SUMS: &str = "\
+-----+-----+-----+---+
| a   | b   | c   | d |
+-----+-----+-----+---+
| 1.0 | 4.0 | 9.5 | 4 |
+-----+-----+-----+---+";
