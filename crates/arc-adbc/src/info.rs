//! What the driver says of itself.

use std::{collections::HashSet, sync::Arc};

use adbc_core::{constants::ADBC_VERSION_1_1_0, error::Result, options::InfoCode, schemas::GET_INFO_SCHEMA};
use arrow::{
    array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, UInt32Array, UnionArray, new_empty_array},
    datatypes::DataType,
    error::ArrowError,
};

/// Version of the crate `arrow`, whose columns come out.
const ARROW_VERSION: &str = "59";

/// The kinds of values, by the number of their member in ADBC's union.
enum Value {
    Text(&'static str),
    Flag(bool),
    Number(i64),
}

const KNOWN: [(InfoCode, Value); 9] = [
    (InfoCode::VendorName, Value::Text("Arc")),
    (InfoCode::VendorVersion, Value::Text(env!("CARGO_PKG_VERSION"))),
    (InfoCode::VendorArrowVersion, Value::Text(ARROW_VERSION)),
    (InfoCode::VendorSql, Value::Flag(true)),
    (InfoCode::VendorSubstrait, Value::Flag(false)),
    (InfoCode::DriverName, Value::Text("ADBC driver of Arc")),
    (InfoCode::DriverVersion, Value::Text(env!("CARGO_PKG_VERSION"))),
    (InfoCode::DriverArrowVersion, Value::Text(ARROW_VERSION)),
    (InfoCode::DriverAdbcVersion, Value::Number(ADBC_VERSION_1_1_0 as i64)),
];

/// Returns what was asked for, of what is known; all of it for `None`.
pub(crate) fn batch(codes: Option<&HashSet<InfoCode>>) -> Result<RecordBatch> {
    let (mut texts, mut flags, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    let (mut names, mut members, mut offsets) = (Vec::new(), Vec::new(), Vec::new());
    for (code, value) in KNOWN.iter().filter(|(code, _)| codes.is_none_or(|codes| codes.contains(code))) {
        let (member, offset) = match value {
            Value::Text(text) => (0, push(&mut texts, *text)),
            Value::Flag(flag) => (1, push(&mut flags, *flag)),
            Value::Number(number) => (2, push(&mut numbers, *number)),
        };
        names.push(u32::from(code));
        members.push(member);
        offsets.push(offset);
    }
    let DataType::Union(fields, _) = GET_INFO_SCHEMA.field(1).data_type() else {
        return Err(ArrowError::SchemaError("the values of ADBC are no union".into()).into());
    };
    let values = fields.iter().map(|(member, field)| match member {
        0 => Arc::new(StringArray::from(texts.clone())) as ArrayRef,
        1 => Arc::new(BooleanArray::from(flags.clone())),
        2 => Arc::new(Int64Array::from(numbers.clone())),
        _ => new_empty_array(field.data_type()),
    });
    let values = UnionArray::try_new(fields.clone(), members.into(), Some(offsets.into()), values.collect())?;
    let columns: Vec<ArrayRef> = vec![Arc::new(UInt32Array::from(names)), Arc::new(values)];
    Ok(RecordBatch::try_new(Arc::clone(&GET_INFO_SCHEMA), columns)?)
}

/// Adds a value, and returns where it is.
fn push<T>(values: &mut Vec<T>, value: T) -> i32 {
    let offset = i32::try_from(values.len()).unwrap_or(i32::MAX);
    values.push(value);
    offset
}
