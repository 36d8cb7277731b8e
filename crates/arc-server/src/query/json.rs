//! An answer as JSON: row by row, in the envelope that clients of the existing Arc server read.
//!
//! Owns the envelope; values are `cells`' work.

use std::{io::Write as _, time::Instant};

use arrow::{array::RecordBatch, datatypes::Schema};

use super::{
    cells::{self, Cell, TimeForm},
    encode::{Encode, unencodable},
    types::type_name,
};
use crate::{admin, errors::Failure, timestamp};

/// Encodes an answer as JSON.
pub(super) struct Json {
    out: Vec<u8>,
    row_count: u64,
    started: Instant,
}

impl Json {
    pub(super) fn open(schema: &Schema, started: Instant) -> Self {
        let mut out = Vec::with_capacity(1024);
        out.extend_from_slice(b"{\"success\":true,\"columns\":");
        list(&mut out, schema.fields(), |out, field| cells::string(field.name(), out));
        out.extend_from_slice(b",\"types\":");
        list(&mut out, schema.fields(), |out, field| cells::string(&type_name(field.data_type()), out));
        out.extend_from_slice(b",\"data\":[");
        Self { out, row_count: 0, started }
    }
}

impl Encode for Json {
    fn append(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let columns = batch.columns().iter().map(|column| cells::cell(column, TimeForm::Zoned));
        let columns: Vec<Cell<'_>> = columns.collect::<Result<_, _>>().map_err(unencodable)?;
        for row in 0..batch.num_rows() {
            if self.row_count > 0 {
                self.out.push(b',');
            }
            list(&mut self.out, &columns, |out, column| column(row, out));
            self.row_count += 1;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, Failure> {
        let (rows, took, now) = (self.row_count, admin::milliseconds(self.started), timestamp::now());
        // Writing to a vector cannot fail.
        let _ = write!(self.out, "],\"row_count\":{rows},\"execution_time_ms\":{took},\"timestamp\":\"{now}\"}}");
        Ok(true)
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::{
        array::{Float64Array, StringArray},
        datatypes::{DataType, Field},
    };

    use super::*;

    #[test]
    fn the_envelope_is_complete_and_in_order() {
        let schema = Arc::new(Schema::new(vec![
            Field::new("a \"b\"", DataType::Float64, true),
            Field::new("host", DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)), true),
        ]));
        let mut json = Json::open(&schema, Instant::now());
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
        let mut json = Json::open(&Schema::empty(), Instant::now());
        json.finish().unwrap();
        let value: serde_json::Value = serde_json::from_slice(&json.out).unwrap();
        assert_eq!((&value["columns"], &value["data"]), (&serde_json::json!([]), &serde_json::json!([])));
    }
}
