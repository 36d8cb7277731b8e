//! Values for a statement's placeholders, as JSON has them.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, NullArray, RecordBatch, StringArray, UInt64Array,
};
use serde_json::Value;

use crate::errors::Failure;

/// Returns the row of values that `params` has: an object has their names, with or without `$`, a list those of `?` and
/// `$1`; none if it is empty or null.
pub(crate) fn row(params: &Value) -> Result<Option<RecordBatch>, Failure> {
    let columns: Vec<_> = match params {
        Value::Null => return Ok(None),
        Value::Object(named) => {
            named.iter().map(|(name, value)| (format!("${}", name.trim_start_matches('$')), value)).collect()
        }
        Value::Array(list) => list.iter().zip(1..).map(|(value, at): (_, u32)| (format!("${at}"), value)).collect(),
        _ => return Err(Failure::bad_request("the key params is neither an object nor a list")),
    };
    if columns.is_empty() {
        return Ok(None);
    }
    let columns = columns.into_iter().map(|(name, value)| Ok((name.clone(), column(&name, value)?, true)));
    let columns = columns.collect::<Result<Vec<_>, Failure>>()?;
    RecordBatch::try_from_iter_with_nullable(columns).map(Some).map_err(|_| Failure::bug())
}

fn column(name: &str, value: &Value) -> Result<ArrayRef, Failure> {
    let unknown = || Failure::bad_request(format!("the value {name:?} of params is no number, text, truth or null"));
    Ok(match value {
        Value::Null => Arc::new(NullArray::new(1)),
        Value::Bool(truth) => Arc::new(BooleanArray::from(vec![*truth])),
        Value::String(text) => Arc::new(StringArray::from(vec![text.as_str()])),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(integer), ..) => Arc::new(Int64Array::from(vec![integer])),
            // As a float it would be equal to its neighbours.
            (None, Some(large), _) => Arc::new(UInt64Array::from(vec![large])),
            (None, None, Some(float)) => Arc::new(Float64Array::from(vec![float])),
            (None, None, None) => return Err(unknown()),
        },
        Value::Array(_) | Value::Object(_) => return Err(unknown()),
    })
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::DataType;
    use serde_json::json;

    use super::*;

    #[test]
    fn values_keep_their_types() {
        use DataType::{Boolean, Float64, Int64, Null, UInt64, Utf8};
        let named = json!({ "a": 1, "b": 1.5, "c": "x", "d": true, "e": null, "f": u64::MAX, "g": i64::MIN });
        let listed = json!([1, 1.5, "x", true, null, u64::MAX, i64::MIN]);
        let numbers = ["$1", "$2", "$3", "$4", "$5", "$6", "$7"];
        for (params, names) in [(named, ["$a", "$b", "$c", "$d", "$e", "$f", "$g"]), (listed, numbers)] {
            let row = row(&params).unwrap().unwrap();
            let schema = row.schema();
            let types: Vec<_> = schema.fields().iter().map(|field| field.data_type().clone()).collect();
            assert_eq!(types, [Int64, Float64, Utf8, Boolean, Null, UInt64, Int64]);
            assert!(schema.fields().iter().map(|field| field.name()).eq(names), "{schema}");
        }
        let dollars = row(&json!({ "$a": 1, "2": 2 })).unwrap().unwrap();
        assert!(dollars.schema().fields().iter().map(|field| field.name()).eq(["$a", "$2"]), "{dollars:?}");
        for nothing in [json!(null), json!({}), json!([])] {
            assert!(row(&nothing).unwrap().is_none());
        }
        for refused in [json!(1), json!("x"), json!([[1]]), json!({ "a": {} })] {
            assert_eq!(row(&refused).unwrap_err().status.as_u16(), 400, "{refused}");
        }
    }
}
