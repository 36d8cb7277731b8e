use std::sync::Arc;

use arrow::{
    array::{
        ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, DurationSecondArray,
        Float32Array, Float64Array, Int64Array, ListArray, MapBuilder, NullArray, StringArray, StringBuilder,
        StringViewArray, Time32SecondArray, TimestampMicrosecondArray, TimestampNanosecondArray, TimestampSecondArray,
        UInt64Array,
    },
    datatypes::Field,
};
use serde_json::{Value, json};

use super::*;

fn written(array: &dyn Array) -> Value {
    let cell = cell(array, TimeForm::Zoned).unwrap();
    let mut out = b"[".to_vec();
    for row in 0..array.len() {
        if row > 0 {
            out.push(b',');
        }
        cell(row, &mut out);
    }
    out.push(b']');
    serde_json::from_slice(&out).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&out)))
}

fn text_of(array: &dyn Array, row: usize) -> String {
    let mut out = Vec::new();
    cell(array, TimeForm::Zoned).unwrap()(row, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn each_type_has_its_form() {
    let cases: Vec<(ArrayRef, Value)> = vec![
        (Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(i64::MAX)])), json!([i64::MIN, null, i64::MAX])),
        (Arc::new(UInt64Array::from(vec![u64::MAX])), json!([u64::MAX])),
        (Arc::new(Float64Array::from(vec![1.0, -0.5, 1e-7])), json!([1, -0.5, 1e-7])),
        (Arc::new(Float32Array::from(vec![0.1])), json!([0.1])),
        (Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])), json!([true, false, null])),
        (Arc::new(NullArray::new(2)), json!([null, null])),
        (Arc::new(StringArray::from(vec![Some("ä"), None])), json!(["ä", null])),
        (Arc::new(StringViewArray::from(vec!["a string longer than twelve bytes", ""])), {
            json!(["a string longer than twelve bytes", ""])
        }),
        (Arc::new(BinaryArray::from(vec![&b"\x00\xffA"[..]])), json!(["00ff41"])),
        (Arc::new(Date32Array::from(vec![0, -1, 19_000])), {
            json!(["1970-01-01T00:00:00Z", "1969-12-31T00:00:00Z", "2022-01-08T00:00:00Z"])
        }),
        (Arc::new(TimestampSecondArray::from(vec![-1])), json!(["1969-12-31T23:59:59Z"])),
        (Arc::new(TimestampMicrosecondArray::from(vec![1])), json!(["1970-01-01T00:00:00.000001Z"])),
        (Arc::new(TimestampNanosecondArray::from(vec![1]).with_timezone("+02:00")), {
            json!(["1970-01-01T00:00:00.000000001Z"])
        }),
        (Arc::new(Time32SecondArray::from(vec![3661])), json!(["01:01:01"])),
        (Arc::new(DurationSecondArray::from(vec![10])), json!(["PT10S"])),
    ];
    for (array, expected) in cases {
        assert_eq!(written(&array), expected, "{}", array.data_type());
    }
}

#[test]
fn floats_without_a_number_are_null() {
    let array = Float64Array::from(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
    assert_eq!(written(&array), json!([null, null, null]));
}

#[test]
fn no_number_has_an_exponent() {
    for value in [f64::MAX, f64::MIN_POSITIVE, 1e21, -1e-300] {
        let text = text_of(&Float64Array::from(vec![value]), 0);
        assert!(!text.contains(['e', 'E']), "{text}");
        assert_eq!(text.parse(), Ok(value));
    }
}

#[test]
fn decimals_keep_all_their_digits() {
    let array = Decimal128Array::from(vec![12_345_678_901_234_567_890_123_456_789, -5, 0]);
    let array = array.with_precision_and_scale(38, 2).unwrap();
    assert_eq!(text_of(&array, 0), "123456789012345678901234567.89");
    assert_eq!(text_of(&array, 1), "-0.05");
    let array = Decimal128Array::from(vec![42]).with_precision_and_scale(38, 0).unwrap();
    assert_eq!(text_of(&array, 0), "42");
    let array = Decimal128Array::from(vec![0, 42]).with_precision_and_scale(38, -3).unwrap();
    assert_eq!(written(&array), json!([0, 42_000]));
}

#[test]
fn dictionaries_are_their_values() {
    let array: DictionaryArray<Int32Type> = vec![Some("a"), None, Some("b"), Some("a")].into_iter().collect();
    assert_eq!(written(&array), json!(["a", null, "b", "a"]));
    assert_eq!(written(&array.slice(2, 2)), json!(["b", "a"]));
    let values = StringArray::from(vec![None, Some("x")]);
    let array = DictionaryArray::<Int32Type>::try_new(vec![0, 1].into(), Arc::new(values)).unwrap();
    assert_eq!(written(&array), json!([null, "x"]));
}

#[test]
fn nested_values_are_json() {
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(vec![
        Some(vec![Some(1), None]),
        None,
        Some(vec![]),
        Some(vec![Some(3)]),
    ]);
    assert_eq!(written(&lists), json!([[1, null], null, [], [3]]));
    assert_eq!(written(&lists.slice(2, 2)), json!([[], [3]]));
    let fixed = FixedSizeListArray::from_iter_primitive::<Int64Type, _, _>(vec![Some(vec![Some(1), Some(2)]), None], 2);
    assert_eq!(written(&fixed), json!([[1, 2], null]));
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let names: ArrayRef = Arc::new(StringArray::from(vec!["x\"y"]));
    let structs = StructArray::from(vec![
        (Arc::new(Field::new("n", DataType::Int64, true)), numbers),
        (Arc::new(Field::new("s", DataType::Utf8, true)), names),
    ]);
    assert_eq!(written(&structs), json!([{ "n": 1, "s": "x\"y" }]));
}

#[test]
fn map_keys_become_text() {
    let mut builder = MapBuilder::new(None, StringBuilder::new(), arrow::array::Int64Builder::new());
    builder.keys().append_value("k");
    builder.values().append_value(1);
    builder.append(true).unwrap();
    builder.append(false).unwrap();
    assert_eq!(written(&builder.finish()), json!([{ "k": 1 }, null]));
}

#[test]
fn every_character_survives() {
    let all: String = (0..0x300).filter_map(char::from_u32).chain("\u{2028}😀".chars()).collect();
    let array = StringArray::from(vec![all.as_str()]);
    assert_eq!(written(&array), json!([all]));
}

#[test]
fn bare_times_have_no_zone_and_digits_by_threes() {
    for (nanoseconds, expected) in [
        (0, "1970-01-01T00:00:00"),
        (500_000_000, "1970-01-01T00:00:00.500"),
        (1_500, "1970-01-01T00:00:00.000001500"),
        (-1_000, "1969-12-31T23:59:59.999999"),
    ] {
        let mut out = Vec::new();
        cell(&TimestampNanosecondArray::from(vec![nanoseconds]), TimeForm::Bare).unwrap()(0, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), format!("\"{expected}\""));
    }
}
