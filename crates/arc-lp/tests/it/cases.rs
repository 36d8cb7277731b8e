//! The conformance cases, through both faces and through the JSON of `lp2json`.

use crate::{collect, format};
use serde_json::{Value, json};

/// One case: its name, its input, and the JSON it expects.
struct Case {
    name: String,
    input: Vec<u8>,
    records: Vec<Value>,
    errors: Vec<Value>,
}

fn cases() -> Vec<Case> {
    include_str!("../cases/cases.jsonl").lines().map(case).collect()
}

fn case(line: &str) -> Case {
    let case: Value = serde_json::from_str(line).unwrap();
    let input = match (&case["input"], &case["input_b64"]) {
        (Value::String(text), _) => text.clone().into_bytes(),
        (_, Value::String(base64)) => decode_base64(base64),
        _ => panic!("no input in {line}"),
    };
    let records = case["expect"].as_array().cloned().unwrap_or_default();
    let errors = match (&case["errors"], &case["error"]) {
        (Value::Array(errors), _) => errors.clone(),
        (_, Value::Null) => Vec::new(),
        (_, error) => vec![error.clone()],
    };
    Case { name: case["name"].as_str().unwrap().to_owned(), input, records, errors }
}

fn decode_base64(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text.bytes().filter_map(|byte| ALPHABET.iter().position(|&digit| digit == byte));
    let bits: Vec<bool> = digits.flat_map(|digit| (0..6).rev().map(move |bit| digit >> bit & 1 == 1)).collect();
    bits.chunks_exact(8).map(|byte| byte.iter().fold(0, |sum, &bit| sum << 1 | u8::from(bit))).collect()
}

/// Readers of JSON may round: the bits of a float say it all.
fn without_rounded(mut value: Value) -> Value {
    match &mut value {
        Value::Object(object) => {
            if object.contains_key("bits") {
                object.remove("value");
            }
            object.values_mut().for_each(|inner| *inner = without_rounded(inner.take()));
        }
        Value::Array(array) => {
            array.iter_mut().for_each(|inner| *inner = without_rounded(inner.take()));
        }
        _ => {}
    }
    value
}

fn check(case: &Case, found: Vec<Value>) {
    let (errors, records): (Vec<_>, Vec<_>) = found.into_iter().partition(|record| record.get("error").is_some());
    let errors: Vec<_> =
        errors.iter().map(|record| json!({"line": record["error"]["line"], "kind": record["error"]["kind"]})).collect();
    let name = &case.name;
    let records: Vec<_> = records.into_iter().map(without_rounded).collect();
    let expected: Vec<_> = case.records.iter().cloned().map(without_rounded).collect();
    assert_eq!(records, expected, "records of {name}");
    assert_eq!(errors, case.errors, "errors of {name}");
}

#[test]
fn the_pull_face_and_lp2json_pass_every_case() {
    let cases = cases();
    assert!(cases.len() >= 62);
    for case in &cases {
        check(case, arc_lp::points(&case.input).map(|record| format::record(&record)).collect());
    }
}

#[test]
fn the_push_face_passes_every_case() {
    for case in &cases() {
        check(case, collect::pushed(&case.input).iter().map(json_of).collect());
    }
}

/// The JSON of a record that came through the push face.
fn json_of(outcome: &collect::Outcome) -> Value {
    let record = match outcome {
        Ok(record) => record,
        Err(error) => return format::record(&Err(*error)),
    };
    let tags: Vec<_> = record.tags.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    let fields: Vec<_> = record.fields.iter().map(|(key, value)| (key.clone(), json_of_value(value))).collect();
    format::series_and_fields(&record.measurement, &tags, &fields, record.timestamp)
}

fn json_of_value(value: &collect::Value) -> Value {
    match value {
        collect::Value::Float(bits) => json!({"type": "f64", "bits": format!("{bits:016x}")}),
        collect::Value::Integer(value) => json!({"type": "i64", "value": value}),
        collect::Value::Unsigned(value) => json!({"type": "u64", "value": value}),
        collect::Value::Boolean(value) => json!({"type": "bool", "value": value}),
        collect::Value::String(value) => json!({"type": "str", "value": value}),
    }
}

#[test]
fn json_is_exact_at_the_ends_of_every_type() {
    let input = b"m i=-9223372036854775808i,u=18446744073709551615u,f=5e-324 9223372036854775807";
    let record = arc_lp::points(input).next().unwrap();
    let text = format::record(&record).to_string();
    for exact in
        ["-9223372036854775808", "18446744073709551615", "\"0000000000000001\"", "\"timestamp\":9223372036854775807"]
    {
        assert!(text.contains(exact), "{exact} in {text}");
    }
}
