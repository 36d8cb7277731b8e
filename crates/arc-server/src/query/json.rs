//! An answer as JSON: row by row, in the envelope that clients of the existing Arc server read.
//!
//! Owns the envelope and the names of types; values are `cells`' work.

use std::{fmt::Write as _, io::Write as _, time::Instant};

use arrow::{
    array::RecordBatch,
    datatypes::{DataType, SchemaRef, TimeUnit},
    error::ArrowError,
};
use hyper::HeaderMap;

use super::{
    cells::{self, Cell},
    encode::Encode,
};
use crate::{admin, app::App, errors::Failure, metrics::Counter, timestamp};

/// Encodes an answer as JSON.
pub(super) struct Json {
    out: Vec<u8>,
    row_count: u64,
    started: Instant,
}

impl Encode for Json {
    const CONTENT_TYPE: &'static str = "application/json";

    fn disconnects(app: &App) -> &Counter {
        &app.metrics.queries.disconnects_json
    }

    fn open(_headers: &HeaderMap, schema: &SchemaRef, started: Instant) -> Result<Self, Failure> {
        let mut out = Vec::with_capacity(1024);
        out.extend_from_slice(b"{\"success\":true,\"columns\":");
        list(&mut out, schema.fields(), |out, field| cells::string(field.name(), out));
        out.extend_from_slice(b",\"types\":");
        list(&mut out, schema.fields(), |out, field| cells::string(&type_name(field.data_type()), out));
        out.extend_from_slice(b",\"data\":[");
        Ok(Self { out, row_count: 0, started })
    }

    fn append(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let columns: Vec<Cell<'_>> = batch.columns().iter().map(|c| cells::cell(c)).collect::<Result<_, _>>()?;
        for row in 0..batch.num_rows() {
            if self.row_count > 0 {
                self.out.push(b',');
            }
            list(&mut self.out, &columns, |out, column| column(row, out));
            self.row_count += 1;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), ArrowError> {
        let (rows, took, now) = (self.row_count, admin::milliseconds(self.started), timestamp::now());
        write!(self.out, "],\"row_count\":{rows},\"execution_time_ms\":{took},\"timestamp\":\"{now}\"}}")?;
        Ok(())
    }

    fn encoded(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }
}

fn list<T>(out: &mut Vec<u8>, items: impl IntoIterator<Item = T>, mut write: impl FnMut(&mut Vec<u8>, T)) {
    out.push(b'[');
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

/// Returns the name of a type, in the vocabulary of the existing server's MessagePack answers.
///
/// How a value is laid out in memory does not matter here: a dictionary of strings is `utf8`, as is a view.
fn type_name(data_type: &DataType) -> String {
    let name = match data_type {
        DataType::Null => "null",
        DataType::Boolean => "bool",
        DataType::Int8 => "int8",
        DataType::Int16 => "int16",
        DataType::Int32 => "int32",
        DataType::Int64 => "int64",
        DataType::UInt8 => "uint8",
        DataType::UInt16 => "uint16",
        DataType::UInt32 => "uint32",
        DataType::UInt64 => "uint64",
        DataType::Float16 | DataType::Float32 => "float32",
        DataType::Float64 => "float64",
        DataType::Utf8 | DataType::Utf8View => "utf8",
        DataType::LargeUtf8 => "large_utf8",
        DataType::Binary | DataType::BinaryView | DataType::FixedSizeBinary(_) => "binary",
        DataType::LargeBinary => "large_binary",
        DataType::Date32 | DataType::Date64 => "date32",
        DataType::Timestamp(TimeUnit::Second, _) => "timestamp[s]",
        DataType::Timestamp(TimeUnit::Millisecond, _) => "timestamp[ms]",
        DataType::Timestamp(TimeUnit::Microsecond, _) => "timestamp[us]",
        DataType::Timestamp(TimeUnit::Nanosecond, _) => "timestamp[ns]",
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::FixedSizeList(..) => "list",
        DataType::Struct(_) => "struct",
        DataType::Map(..) => "map",
        DataType::Dictionary(_, values) => return type_name(values),
        DataType::Decimal32(p, s) | DataType::Decimal64(p, s) => return decimal(*p, *s),
        DataType::Decimal128(p, s) | DataType::Decimal256(p, s) => return decimal(*p, *s),
        // Times of day, durations, intervals and unions are sent as text.
        _ => "string_encoded",
    };
    name.to_owned()
}

fn decimal(precision: u8, scale: i8) -> String {
    let mut name = String::new();
    // Writing to a string cannot fail.
    let _ = write!(name, "decimal({precision}, {scale})");
    name
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::{
        array::{Float64Array, StringArray},
        datatypes::{Field, Schema},
    };

    use super::*;

    #[test]
    fn the_envelope_is_complete_and_in_order() {
        let schema = Arc::new(Schema::new(vec![
            Field::new("a \"b\"", DataType::Float64, true),
            Field::new("host", DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)), true),
        ]));
        let mut json = Json::open(&HeaderMap::new(), &schema, Instant::now()).unwrap();
        let plain = Arc::new(Schema::new(vec![
            Field::new("a", DataType::Float64, true),
            Field::new("host", DataType::Utf8, true),
        ]));
        let floats = Arc::new(Float64Array::from(vec![Some(1.5), None]));
        let hosts = Arc::new(StringArray::from(vec![None, Some("h\n")]));
        let batch = RecordBatch::try_new(plain, vec![floats, hosts]).unwrap();
        json.append(&batch).unwrap();
        json.append(&batch.slice(0, 1)).unwrap();
        json.finish().unwrap();
        let text = String::from_utf8(json.out).unwrap();
        let head = r#"{"success":true,"columns":["a \"b\"","host"],"types":["float64","utf8"],"#;
        assert!(text.starts_with(head), "{text}");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["data"], serde_json::json!([[1.5, null], [null, "h\n"], [1.5, null]]));
        assert_eq!(value["row_count"], 3);
        assert!(value["execution_time_ms"].is_number() && value["timestamp"].is_string());
    }

    #[test]
    fn an_empty_answer_has_empty_lists() {
        let mut json = Json::open(&HeaderMap::new(), &Arc::new(Schema::empty()), Instant::now()).unwrap();
        json.finish().unwrap();
        let value: serde_json::Value = serde_json::from_slice(&json.out).unwrap();
        assert_eq!((&value["columns"], &value["data"]), (&serde_json::json!([]), &serde_json::json!([])));
    }
}
