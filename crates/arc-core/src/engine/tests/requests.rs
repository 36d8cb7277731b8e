//! Requests of every format, with whatever a value can be: extremes, NaN with a payload, both
//! zeros, empty texts, nulls.

use std::{fmt::Write as _, sync::Arc};

use arrow::{
    array::{
        ArrayRef, BooleanArray, Float32Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
        StringDictionaryBuilder, StringViewArray, TimestampNanosecondArray, UInt64Array,
    },
    datatypes::Int32Type,
};
use bytes::Bytes;
use proptest::{collection::vec, option, prelude::*, sample::select};

use crate::{
    Engine, ErrorKind, Precision, WriteOptions,
    engine::{frame::FrameKind, write::arrow_body},
    model::{Column, ColumnKind, TableSchema, tag_type},
};
use arrow::datatypes::DataType;

/// Columns of the tables that are there from the start: as wide as a table of many signals.
const WIDTH: usize = 4_000;
/// More than the rows of a few lines take, so that they are logged in columns.
const PADDING: usize = 16 << 10;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Null,
    Float(u64),
    Integer(i64),
    Unsigned(u64),
    Boolean(bool),
    Text(String),
}

/// Tags, time, and fields by their number.
type Point = (Vec<Option<String>>, Option<i64>, Vec<(usize, Value)>);

#[derive(Debug, Clone)]
pub(super) struct Request {
    table: &'static str,
    kind: FrameKind,
    pub(super) body: Bytes,
    options: WriteOptions,
}

impl Request {
    pub(super) fn new(kind: FrameKind, table: &'static str, body: impl Into<Bytes>) -> Self {
        Self { table, kind, body: body.into(), options: WriteOptions::new().precision(Precision::Nanosecond) }
    }

    /// Sends it, and returns how many points were stored. What is refused must be the request's
    /// fault.
    pub(super) fn send(&self, engine: &Engine) -> u64 {
        let (body, options) = (self.body.clone(), &self.options);
        let pending = match self.kind {
            FrameKind::LineProtocol => engine.submit_lp("d", body, options),
            FrameKind::MessagePack => engine.submit_msgpack("d", body, options),
            _ => engine.submit_arrow("d", self.table, body, options),
        };
        match pending.and_then(crate::PendingWrite::wait) {
            Ok(written) => written.points,
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::SchemaConflict), "{error}");
                0
            }
        }
    }
}

/// Makes two tables of [`WIDTH`] columns, one of which appends.
pub(super) fn make_wide_tables(engine: &Engine) {
    for (table, has_primary_key) in [("wide", true), ("list", false)] {
        let field = |n: usize| Column { name: name(n).into(), kind: ColumnKind::Field, data_type: home(n) };
        let tag = has_primary_key.then(|| Column { name: "t0".into(), kind: ColumnKind::Tag, data_type: tag_type() });
        let columns = tag.into_iter().chain((0..WIDTH).map(field)).collect();
        engine
            .create_table(&TableSchema { database: "d".into(), table: table.into(), has_primary_key, columns })
            .unwrap();
    }
}

fn name(field: usize) -> String {
    format!("c{field}")
}

/// The type that most values of a field have.
fn home(field: usize) -> DataType {
    let types = [DataType::Float64, DataType::Int64, DataType::Boolean, DataType::Utf8, DataType::UInt64];
    types[field % types.len()].clone()
}

fn value(data_type: &DataType) -> BoxedStrategy<Value> {
    let floats = [f64::NAN, f64::INFINITY, -0.0, 0.0, 5e-324, f64::MAX, 1.5, 9_007_199_254_740_993.0].map(f64::to_bits);
    match data_type {
        DataType::Float64 => {
            let payload = Just(0x7ff8_dead_beef_0001);
            prop_oneof![3 => select(floats.to_vec()), 1 => payload, 2 => any::<u64>()].prop_map(Value::Float).boxed()
        }
        DataType::Int64 => {
            prop_oneof![Just(i64::MIN), Just(i64::MAX), -3..300_i64, any::<i64>()].prop_map(Value::Integer).boxed()
        }
        DataType::UInt64 => prop_oneof![Just(u64::MAX), 0..300_u64, any::<u64>()].prop_map(Value::Unsigned).boxed(),
        DataType::Boolean => any::<bool>().prop_map(Value::Boolean).boxed(),
        _ => prop_oneof![4 => ".{0,6}", 1 => Just(String::new()), 1 => Just("ü".repeat(200))]
            .prop_map(Value::Text)
            .boxed(),
    }
}

/// A value of the field's own type, or now and then of another one.
fn value_of(field: usize) -> BoxedStrategy<Value> {
    let other = (0..5_usize).prop_flat_map(|other| value(&home(other)));
    prop_oneof![30 => value(&home(field)), 1 => other].boxed()
}

fn field() -> impl Strategy<Value = usize> {
    prop_oneof![6 => 0..12_usize, 2 => 0..WIDTH, 1 => WIDTH - 6..WIDTH + 6]
}

fn time() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 0..40_i64, 2 => any::<i64>(), 1 => select(vec![i64::MIN, i64::MAX, -1])]
}

fn point() -> impl Strategy<Value = Point> {
    let tags = vec(option::of("[a-cü]{1,2}"), 2);
    let fields = vec(field().prop_flat_map(|field| (Just(field), value_of(field))), 1..8);
    (tags, option::weighted(0.9, time()), fields)
}

fn table() -> impl Strategy<Value = &'static str> {
    select(vec!["a", "b", "wide", "list"])
}

fn lines() -> impl Strategy<Value = Request> {
    (vec((table(), point(), 0..40_u8), 1..30), any::<bool>()).prop_map(|(points, padded)| {
        let mut body = if padded { format!("# {}\n", "x".repeat(PADDING)) } else { String::new() };
        for (table, point, damage) in points {
            let line = line(table, &point);
            // One in forty is cut off.
            body.push_str(if damage == 0 { line.get(..line.len() / 2).unwrap_or("=") } else { &line });
            body.push('\n');
        }
        Request::new(FrameKind::LineProtocol, "", body)
    })
}

fn line(table: &str, (tags, time, fields): &Point) -> String {
    let mut line = table.to_owned();
    for (n, tag) in tags.iter().enumerate() {
        let _ = tag.as_ref().map(|tag| write!(line, ",t{n}={tag}"));
    }
    for (n, (field, value)) in fields.iter().enumerate() {
        line.push(if n == 0 { ' ' } else { ',' });
        let _ = write!(line, "{}=", name(*field));
        let _ = match value {
            // The grammar has no others.
            Value::Float(bits) if f64::from_bits(*bits).is_finite() => write!(line, "{:?}", f64::from_bits(*bits)),
            Value::Null | Value::Float(_) => write!(line, "-0.0"),
            Value::Integer(value) => write!(line, "{value}i"),
            Value::Unsigned(value) => write!(line, "{value}u"),
            Value::Boolean(value) => write!(line, "{value}"),
            Value::Text(text) => write!(line, "\"{}\"", text.replace('\\', r"\\").replace('"', "\\\"")),
        };
    }
    let _ = time.map(|time| write!(line, " {time}"));
    line
}

fn pack(value: &Value, to: &mut Vec<u8>) {
    match value {
        Value::Null => rmp::encode::write_nil(to).unwrap(),
        Value::Float(bits) => rmp::encode::write_f64(to, f64::from_bits(*bits)).unwrap(),
        Value::Integer(value) => drop(rmp::encode::write_sint(to, *value).unwrap()),
        Value::Unsigned(value) => drop(rmp::encode::write_uint(to, *value).unwrap()),
        Value::Boolean(value) => rmp::encode::write_bool(to, *value).unwrap(),
        Value::Text(text) => rmp::encode::write_str(to, text).unwrap(),
    }
}

fn pack_map(to: &mut Vec<u8>, len: usize) {
    rmp::encode::write_map_len(to, u32::try_from(len).unwrap()).unwrap();
}

fn pack_text(to: &mut Vec<u8>, text: &str) {
    rmp::encode::write_str(to, text).unwrap();
}

fn items() -> impl Strategy<Value = Request> {
    vec((table(), point()), 1..30).prop_map(|points| {
        let mut body = Vec::new();
        rmp::encode::write_array_len(&mut body, u32::try_from(points.len()).unwrap()).unwrap();
        for (table, (tags, time, fields)) in points {
            pack_map(&mut body, 3 + usize::from(time.is_some()));
            pack_text(&mut body, "m");
            pack_text(&mut body, table);
            if let Some(time) = time {
                pack_text(&mut body, "t");
                pack(&Value::Integer(time), &mut body);
            }
            pack_text(&mut body, "tags");
            pack_map(&mut body, tags.iter().flatten().count());
            for (n, tag) in tags.iter().enumerate().filter_map(|(n, tag)| Some((n, tag.as_ref()?))) {
                pack_text(&mut body, &format!("t{n}"));
                pack_text(&mut body, tag);
            }
            pack_text(&mut body, "fields");
            pack_map(&mut body, fields.len());
            for (field, value) in fields {
                pack_text(&mut body, &name(field));
                pack(&value, &mut body);
            }
        }
        Request::new(FrameKind::MessagePack, "", body)
    })
}

/// A table's columns: times, tags, and fields by their number, nulls among their values.
#[derive(Debug, Clone)]
pub(super) struct Columns {
    pub(super) table: &'static str,
    pub(super) times: Vec<i64>,
    pub(super) tag: Option<Vec<String>>,
    pub(super) fields: Vec<(usize, Vec<Value>)>,
}

impl Columns {
    fn pack(&self, body: &mut Vec<u8>) {
        pack_map(body, 2);
        pack_text(body, "m");
        pack_text(body, self.table);
        pack_text(body, "columns");
        pack_map(body, 1 + usize::from(self.tag.is_some()) + self.fields.len());
        let mut column = |name: &str, values: &mut dyn Iterator<Item = Value>| {
            pack_text(body, name);
            rmp::encode::write_array_len(body, u32::try_from(self.times.len()).unwrap()).unwrap();
            values.for_each(|value| pack(&value, body));
        };
        column("time", &mut self.times.iter().copied().map(Value::Integer));
        if let Some(tag) = &self.tag {
            column("t0", &mut tag.iter().cloned().map(Value::Text));
        }
        self.fields.iter().for_each(|(field, values)| column(&name(*field), &mut values.iter().cloned()));
    }

    /// Returns the request that has several of them.
    pub(super) fn request(all: &[Self]) -> Request {
        let mut body = Vec::new();
        rmp::encode::write_array_len(&mut body, u32::try_from(all.len()).unwrap()).unwrap();
        all.iter().for_each(|columns| columns.pack(&mut body));
        let mut request = Request::new(FrameKind::MessagePack, "", body);
        if all.iter().any(|columns| columns.tag.is_some()) {
            request.options = request.options.tags(["t0"]);
        }
        request
    }

    /// Returns them as record batches, cut in the middle; those after the fifth field in types that
    /// only Arrow has.
    pub(super) fn batches(&self) -> Request {
        let mut columns: Vec<(String, ArrayRef, bool)> =
            vec![("time".into(), Arc::new(TimestampNanosecondArray::from(self.times.clone())), false)];
        if let Some(tag) = &self.tag {
            columns.push(("t0".into(), Arc::new(StringArray::from(tag.clone())), true));
        }
        let other = |n: usize| if n < 5 { String::new() } else { format!("a{}", n % 4) };
        for (n, (field, values)) in self.fields.iter().enumerate() {
            let (name, array) =
                if n < 5 { (name(*field), array(values)) } else { (other(n), arrow_array(n % 4, values)) };
            if columns.iter().all(|(known, ..)| *known != name) {
                columns.push((name, array, true));
            }
        }
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let (rows, half) = (batch.num_rows(), batch.num_rows() / 2);
        let parts: Vec<RecordBatch> =
            if half == 0 { vec![batch] } else { vec![batch.slice(0, half), batch.slice(half, rows - half)] };
        let mut request = Request::new(FrameKind::Arrow, self.table, arrow_body(&parts).unwrap());
        if self.tag.is_some() {
            request.options = request.options.tags(["t0"]);
        }
        request
    }
}

/// Returns values as an array of the type of the first that is there; those of another type are
/// null.
fn array(values: &[Value]) -> ArrayRef {
    macro_rules! of {
        ($array:ty, $kind:path, $make:expr) => {
            Arc::new(values.iter().map(|v| if let $kind(v) = v { Some($make(v)) } else { None }).collect::<$array>())
        };
    }
    match values.iter().find(|value| **value != Value::Null) {
        Some(Value::Float(_)) => of!(Float64Array, Value::Float, |bits: &u64| f64::from_bits(*bits)),
        Some(Value::Integer(_)) => of!(Int64Array, Value::Integer, |v: &i64| *v),
        Some(Value::Unsigned(_)) => of!(UInt64Array, Value::Unsigned, |v: &u64| *v),
        Some(Value::Boolean(_)) => of!(BooleanArray, Value::Boolean, |v: &bool| *v),
        _ => of!(StringArray, Value::Text, |v: &String| v.clone()),
    }
}

fn arrow_array(kind: usize, values: &[Value]) -> ArrayRef {
    let number = |value: &Value| if let Value::Integer(v) = value { i32::try_from(*v).ok() } else { None };
    let text = |value: &Value| if let Value::Null = value { None } else { Some(format!("{value:?}")) };
    match kind {
        0 => Arc::new(values.iter().map(number).collect::<Int32Array>()),
        1 => Arc::new(
            values.iter().map(|v| number(v).map(|v| f32::from_bits(v.cast_unsigned()))).collect::<Float32Array>(),
        ),
        2 => Arc::new(values.iter().map(text).collect::<StringViewArray>()),
        _ => {
            let mut texts = StringDictionaryBuilder::<Int32Type>::new();
            values.iter().for_each(|value| texts.append_option(text(value)));
            Arc::new(texts.finish())
        }
    }
}

fn columns() -> impl Strategy<Value = Columns> {
    (table(), 1..70_usize, any::<bool>()).prop_flat_map(|(table, rows, has_tag)| {
        let column = field().prop_flat_map(move |field| {
            let mostly_null = prop_oneof![1 => value(&home(field)), 3 => Just(Value::Null)];
            let values = prop_oneof![
                4 => vec(value(&home(field)), rows),
                2 => vec(prop_oneof![2 => value(&home(field)), 1 => Just(Value::Null)], rows),
                1 => vec(mostly_null, rows),
            ];
            (Just(field), values)
        });
        let tag = vec("[a-cü]{0,2}", rows).prop_map(move |tag| Some(tag).filter(|_| has_tag));
        // Many columns of booleans make the request larger than its rows in the log.
        let booleans = vec((0..WIDTH / 5).prop_map(|n| n * 5 + 2), 0..12);
        let fields = (vec(column, 1..8), booleans).prop_flat_map(move |(fields, booleans)| {
            let booleans = booleans.into_iter().map(|field| (Just(field), vec(value(&DataType::Boolean), rows)));
            (Just(fields), booleans.collect::<Vec<_>>())
        });
        (Just(table), vec(time(), rows), tag, fields).prop_map(|(table, times, tag, (mut fields, booleans))| {
            fields.extend(booleans);
            fields.sort_by_key(|(field, _)| *field);
            fields.dedup_by_key(|(field, _)| *field);
            Columns { table, times, tag, fields }
        })
    })
}

/// Any request, with or without an idempotency key.
pub(super) fn request() -> impl Strategy<Value = Request> {
    let request = prop_oneof![
        2 => lines(),
        2 => items(),
        2 => vec(columns(), 1..3).prop_map(|columns| Columns::request(&columns)),
        1 => columns().prop_map(|columns| columns.batches()),
    ];
    (request, option::of("[a-z]{1,6}")).prop_map(|(mut request, key)| {
        if let Some(key) = key {
            request.options = request.options.idempotency_key(key);
        }
        request
    })
}
