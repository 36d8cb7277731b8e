//! Records as JSON, exact to the bit: the format of the conformance cases.
//!
//! Integers and timestamps are JSON integers of up to 64 bits; floats carry their IEEE 754 bits,
//! since readers of JSON may round. Shared by the example and the tests.

use std::collections::HashSet;

use arc_lp::{Error, FieldValue, Point};
use serde_json::{Map, Value, json};

/// The JSON of one record, good or bad.
pub(crate) fn record(record: &Result<Point<'_>, Error>) -> Value {
    match record {
        Ok(point) => good(point),
        Err(error) => bad(error),
    }
}

fn bad(error: &Error) -> Value {
    json!({"error": {
        "line": error.line(),
        "kind": error.kind().part(),
        "offset": error.offset(),
    }})
}

fn good(point: &Point<'_>) -> Value {
    let tags = point.tags().map(|(key, value)| (key.to_string(), json!(value.to_string())));
    let fields = point.fields().map(|(key, value)| (key.to_string(), field_value(&value)));
    series_and_fields(
        &point.measurement().to_string(),
        &tags.collect::<Vec<_>>(),
        &fields.collect::<Vec<_>>(),
        point.timestamp(),
    )
}

/// The JSON of a good record from its parts; tag values are JSON strings, field values objects.
pub(crate) fn series_and_fields(
    measurement: &str,
    tags: &[(String, Value)],
    fields: &[(String, Value)],
    timestamp: Option<i64>,
) -> Value {
    let mut record = Map::new();
    record.insert("measurement".into(), json!(measurement));
    record.insert("tags".into(), last_of_each(tags));
    record.insert("fields".into(), last_of_each(fields));
    record.insert("timestamp".into(), json!(timestamp));
    if has_repeats(tags) {
        record.insert("tags_list".into(), json!(tags));
    }
    if has_repeats(fields) {
        let list = fields.iter().map(|(key, value)| with_key(key, value)).collect();
        record.insert("fields_list".into(), list);
    }
    Value::Object(record)
}

/// The JSON of a field value: its type, its value, and the bits of a float.
pub(crate) fn field_value(value: &FieldValue<'_>) -> Value {
    match value {
        FieldValue::Float(value) => {
            json!({"type": "f64", "value": value, "bits": format!("{:016x}", value.to_bits())})
        }
        FieldValue::Integer(value) => json!({"type": "i64", "value": value}),
        FieldValue::Unsigned(value) => json!({"type": "u64", "value": value}),
        FieldValue::Boolean(value) => json!({"type": "bool", "value": value}),
        FieldValue::String(value) => json!({"type": "str", "value": value.to_string()}),
        // The enum may grow: say so instead of passing the value off as something else.
        other => json!({"type": "unknown", "value": format!("{other:?}")}),
    }
}

/// An object in which the last value of a repeated key stands.
fn last_of_each(pairs: &[(String, Value)]) -> Value {
    Value::Object(pairs.iter().cloned().collect::<Map<_, _>>())
}

fn has_repeats(pairs: &[(String, Value)]) -> bool {
    let mut seen = HashSet::new();
    !pairs.iter().all(|(key, _)| seen.insert(key))
}

fn with_key(key: &str, value: &Value) -> Value {
    let mut value = value.clone();
    if let Value::Object(parts) = &mut value {
        parts.insert("key".into(), json!(key));
    }
    value
}
