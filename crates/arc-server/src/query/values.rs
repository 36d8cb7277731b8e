//! Values for a statement's placeholders, as JSON has them. A number is the one that its digits say, where `serde_json` takes a
//! neighbour of some floats.

use std::{collections::BTreeMap, sync::Arc};

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, NullArray, RecordBatch, StringArray, UInt64Array,
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{admin::without_mark, errors::Failure};

/// Returns the row of values that the key `params` of a request has, if there is one.
pub(crate) fn of(request: &[u8]) -> Result<Option<RecordBatch>, Failure> {
    #[derive(Deserialize)]
    struct Request<'a> {
        #[serde(borrow)]
        params: Option<&'a RawValue>,
    }
    match serde_json::from_slice(without_mark(request)).map_err(unreadable)? {
        Request { params: Some(params) } => row(params.get()),
        Request { params: None } => Ok(None),
    }
}

fn unreadable(error: serde_json::Error) -> Failure {
    Failure::bad_request(format!("params cannot be read: {error}"))
}

/// Returns the row of values that `params` has: an object has their names, with or without `$`, a list those of `?` and
/// `$1`; none if it is empty or null.
pub(crate) fn row(params: &str) -> Result<Option<RecordBatch>, Failure> {
    let columns: Vec<_> = match params.trim_ascii().as_bytes() {
        b"null" => return Ok(None),
        [b'{', ..] => {
            let named: BTreeMap<String, &RawValue> = serde_json::from_str(params).map_err(unreadable)?;
            named.into_iter().map(|(name, value)| (format!("${}", name.trim_start_matches('$')), value)).collect()
        }
        [b'[', ..] => {
            let listed: Vec<&RawValue> = serde_json::from_str(params).map_err(unreadable)?;
            listed.into_iter().zip(1..).map(|(value, at): (_, u32)| (format!("${at}"), value)).collect()
        }
        _ => return Err(Failure::bad_request("the key params is neither an object nor a list")),
    };
    if columns.is_empty() {
        return Ok(None);
    }
    let columns = columns.into_iter().map(|(name, value)| Ok((name.clone(), column(&name, value.get())?, true)));
    let columns = columns.collect::<Result<Vec<_>, Failure>>()?;
    RecordBatch::try_from_iter_with_nullable(columns).map(Some).map_err(|_| Failure::bug())
}

fn column(name: &str, value: &str) -> Result<ArrayRef, Failure> {
    let unknown = || Failure::bad_request(format!("the value {name:?} of params is no number, text, truth or null"));
    if let [b'-' | b'0'..=b'9', ..] = value.as_bytes() {
        return number(value).ok_or_else(unknown);
    }
    Ok(match serde_json::from_str(value).map_err(unreadable)? {
        Value::Null => Arc::new(NullArray::new(1)),
        Value::Bool(truth) => Arc::new(BooleanArray::from(vec![truth])),
        Value::String(text) => Arc::new(StringArray::from(vec![text])),
        Value::Number(_) | Value::Array(_) | Value::Object(_) => return Err(unknown()),
    })
}

/// Returns a number as an integer if it is written as one that fits into 64 bits, and as a float otherwise.
fn number(text: &str) -> Option<ArrayRef> {
    // An integer has no sign of its zero.
    if let Some(integer) = text.parse().ok().filter(|_: &i64| text != "-0") {
        return Some(Arc::new(Int64Array::from(vec![integer])));
    }
    if let Ok(large) = text.parse::<u64>() {
        // As a float it would be equal to its neighbours.
        return Some(Arc::new(UInt64Array::from(vec![large])));
    }
    let float = text.parse().ok().filter(|float: &f64| float.is_finite())?;
    Some(Arc::new(Float64Array::from(vec![float])))
}

#[cfg(test)]
mod tests {
    use arrow::{
        array::AsArray,
        datatypes::{DataType, Float64Type},
    };
    use serde_json::json;

    use super::*;

    #[test]
    fn values_keep_their_types() {
        use DataType::{Boolean, Float64, Int64, Null, UInt64, Utf8};
        let named = json!({ "a": 1, "b": 1.5, "c": "x", "d": true, "e": null, "f": u64::MAX, "g": i64::MIN });
        let listed = json!([1, 1.5, "x", true, null, u64::MAX, i64::MIN]);
        let numbers = ["$1", "$2", "$3", "$4", "$5", "$6", "$7"];
        for (params, names) in [(named, ["$a", "$b", "$c", "$d", "$e", "$f", "$g"]), (listed, numbers)] {
            let row = row(&params.to_string()).unwrap().unwrap();
            let schema = row.schema();
            let types: Vec<_> = schema.fields().iter().map(|field| field.data_type().clone()).collect();
            assert_eq!(types, [Int64, Float64, Utf8, Boolean, Null, UInt64, Int64]);
            assert!(schema.fields().iter().map(|field| field.name()).eq(names), "{schema}");
        }
        let dollars = row(r#" { "$a": 1, "2": 2 } "#).unwrap().unwrap();
        assert!(dollars.schema().fields().iter().map(|field| field.name()).eq(["$a", "$2"]), "{dollars:?}");
        for nothing in ["null", " null ", "{}", " [ ]"] {
            assert!(row(nothing).unwrap().is_none());
        }
        for refused in ["1", "\"x\"", "[[1]]", "{\"a\": {}}", "[1e999]", "[-]", "[1", "[01]", "", "nul"] {
            assert_eq!(row(refused).unwrap_err().status.as_u16(), 400, "{refused}");
        }
    }

    #[test]
    fn numbers_are_those_that_their_digits_say() {
        let float = |text: &str| {
            let row = of(format!("{{\"sql\": \"\", \"params\": [{text}]}}").as_bytes()).unwrap().unwrap();
            row.column(0).as_primitive_opt::<Float64Type>().map(|column| column.value(0).to_bits())
        };
        let mut bits = 1_u64;
        for _ in 0..10_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let of_any_size = f64::from_bits(bits);
            for number in [of_any_size, (bits >> 11) as f64 / 8_192.0, f64::from((bits >> 40) as f32 / 1_000.0)] {
                if number.is_finite() && number.fract() != 0.0 {
                    assert_eq!(float(&format!("{number}")), Some(number.to_bits()), "{number}");
                    assert_eq!(float(&format!("{number:e}")), Some(number.to_bits()), "{number:e}");
                }
            }
        }
        for (text, expected) in [("-0", -0.0), ("-0.0", -0.0), ("18446744073709551616", 2_f64.powi(64)), ("1E2", 100.0)]
        {
            assert_eq!(float(text), Some(f64::to_bits(expected)), "{text}");
        }
        assert_eq!(float("9007199254740993"), None);
    }
}
