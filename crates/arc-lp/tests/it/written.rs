//! What is written is read back as it was given.

use crate::collect::{Record, Value, meanings, pulled};
use arc_lp::{FieldValue, LineWriter, Text, WriteError};
use proptest::prelude::*;

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c ,=\\\\\"\r#é🦀]{1,6}", "[^\t\n\0]{1,8}"]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<f64>().prop_filter("finite", |value| value.is_finite()).prop_map(|value| Value::Float(value.to_bits())),
        any::<i64>().prop_map(Value::Integer),
        any::<u64>().prop_map(Value::Unsigned),
        any::<bool>().prop_map(Value::Boolean),
        any::<String>().prop_map(Value::String),
        "[a\\\\\" ,=\r\n\t]{0,8}".prop_map(Value::String),
    ]
}

fn record() -> impl Strategy<Value = Record> {
    let measurement = name().prop_filter("a comment", |name| !name.starts_with('#'));
    let tags = prop::collection::vec((name(), name()), 0..4);
    let fields = prop::collection::vec((name(), value()), 1..5);
    (measurement, tags, fields, any::<Option<i64>>()).prop_map(|(measurement, tags, fields, timestamp)| Record {
        measurement,
        tags,
        fields,
        timestamp,
        ..Record::default()
    })
}

fn write(writer: &mut LineWriter<'_>, record: &Record) -> Result<(), WriteError> {
    let mut line = writer.line(record.measurement.as_str())?;
    for (key, value) in &record.tags {
        line.tag(key.as_str(), value.as_str())?;
    }
    for (key, value) in &record.fields {
        let value = match value {
            Value::Float(bits) => FieldValue::from(f64::from_bits(*bits)),
            Value::Integer(value) => FieldValue::from(*value),
            Value::Unsigned(value) => FieldValue::from(*value),
            Value::Boolean(value) => FieldValue::from(*value),
            Value::String(value) => FieldValue::from(value.as_str()),
        };
        line.field(key.as_str(), value)?;
    }
    line.end(record.timestamp)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn written_points_are_parsed_as_they_were(
        records in prop::collection::vec(record(), 1..4),
    ) {
        let mut buffer = vec![0; 64 * 1024];
        let mut writer = LineWriter::new(&mut buffer);
        for record in &records {
            write(&mut writer, record).unwrap();
        }
        prop_assert_eq!(meanings(writer.written()), records);
    }

    #[test]
    fn parsed_points_are_written_and_parsed_the_same(records in prop::collection::vec(record(), 1..4)) {
        let mut first = vec![0; 64 * 1024];
        let mut writer = LineWriter::new(&mut first);
        for record in &records {
            write(&mut writer, record).unwrap();
        }
        // Escaped texts go back in as they came out.
        let mut second = vec![0; 64 * 1024];
        let mut again = LineWriter::new(&mut second);
        for point in arc_lp::points(writer.written()) {
            let point = point.unwrap();
            let mut line = again.line(point.measurement()).unwrap();
            for (key, value) in point.tags() {
                line.tag(key, value).unwrap();
            }
            for (key, value) in point.fields() {
                line.field(key, value).unwrap();
            }
            line.end(point.timestamp()).unwrap();
        }
        prop_assert_eq!(pulled(again.written()), pulled(writer.written()));
        prop_assert_eq!(again.written(), writer.written());
    }
}

#[test]
fn a_text_from_a_str_is_taken_as_it_is() {
    assert_eq!(Text::from("a\\,b").to_string(), "a\\,b");
}
