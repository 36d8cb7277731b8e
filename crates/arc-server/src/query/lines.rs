//! An answer as JSON objects, one for each row: a line each (NDJSON), or all in one list.
//!
//! Owns names and commas; values are `cells`' work. Never sends two columns of one name: readers would keep one of them.

use arrow::{array::RecordBatch, datatypes::Schema};

use super::{
    cells::{self, Cell, TimeForm},
    encode::{Encode, unencodable},
    layout,
};
use crate::errors::Failure;

/// What is around the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Around {
    /// A line each.
    Lines,
    /// `[…]`.
    List,
}

/// How nulls are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nulls {
    /// As `null`.
    Kept,
    /// By leaving the name out, as InfluxDB 3 does.
    LeftOut,
}

/// Encodes an answer as objects.
pub(super) struct Objects {
    around: Around,
    nulls: Nulls,
    times: TimeForm,
    /// `"name":` of each column.
    names: Vec<Vec<u8>>,
    out: Vec<u8>,
    is_first: bool,
}

impl Objects {
    pub(super) fn open(schema: &Schema, around: Around, nulls: Nulls, times: TimeForm) -> Result<Self, Failure> {
        layout::check_names(schema)?;
        let name = |field: &arrow::datatypes::FieldRef| {
            let mut name = Vec::new();
            cells::string(field.name(), &mut name);
            name.push(b':');
            name
        };
        let names = schema.fields().iter().map(name).collect();
        let out = if around == Around::List { b"[".to_vec() } else { Vec::new() };
        Ok(Self { around, nulls, times, names, out, is_first: true })
    }

    fn object(&mut self, columns: &[(Cell<'_>, Option<arrow::buffer::NullBuffer>)], row: usize) {
        if self.around == Around::List && !self.is_first {
            self.out.push(b',');
        }
        self.is_first = false;
        self.out.push(b'{');
        let mut is_first = true;
        for (name, (cell, nulls)) in self.names.iter().zip(columns) {
            if self.nulls == Nulls::LeftOut && nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                continue;
            }
            if !std::mem::take(&mut is_first) {
                self.out.push(b',');
            }
            self.out.extend_from_slice(name);
            cell(row, &mut self.out);
        }
        self.out.push(b'}');
        if self.around == Around::Lines {
            self.out.push(b'\n');
        }
    }
}

impl Encode for Objects {
    fn append(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let columns =
            batch.columns().iter().map(|column| Ok((cells::cell(column, self.times)?, column.logical_nulls())));
        let columns: Vec<_> = columns.collect::<Result<_, _>>().map_err(unencodable)?;
        for row in 0..batch.num_rows() {
            self.object(&columns, row);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, Failure> {
        if self.around == Around::List {
            self.out.push(b']');
        }
        Ok(true)
    }

    fn encoded(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, StringArray, TimestampNanosecondArray};

    use super::*;

    fn batch() -> RecordBatch {
        let times: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![0, 1_500_000_000]));
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a\nb"), Some("")]));
        RecordBatch::try_from_iter([("time", times), ("n", numbers), ("a \"b\"", texts)]).unwrap()
    }

    fn written(around: Around, nulls: Nulls, times: TimeForm) -> String {
        let batch = batch();
        let mut objects = Objects::open(&batch.schema(), around, nulls, times).unwrap();
        objects.append(&batch.slice(0, 1)).unwrap();
        objects.append(&batch.slice(1, 1)).unwrap();
        assert!(objects.finish().unwrap());
        String::from_utf8(objects.out).unwrap()
    }

    #[test]
    fn each_row_is_a_line() {
        let expected = "{\"time\":\"1970-01-01T00:00:00Z\",\"n\":1,\"a \\\"b\\\"\":\"a\\nb\"}\n\
                        {\"time\":\"1970-01-01T00:00:01.5Z\",\"n\":null,\"a \\\"b\\\"\":\"\"}\n";
        assert_eq!(written(Around::Lines, Nulls::Kept, TimeForm::Zoned), expected);
    }

    #[test]
    fn influxdb_3_has_a_list_without_nulls_and_zones() {
        let expected = "[{\"time\":\"1970-01-01T00:00:00\",\"n\":1,\"a \\\"b\\\"\":\"a\\nb\"},\
                        {\"time\":\"1970-01-01T00:00:01.500\",\"a \\\"b\\\"\":\"\"}]";
        assert_eq!(written(Around::List, Nulls::LeftOut, TimeForm::Bare), expected);
    }

    #[test]
    fn no_rows_are_an_empty_list_or_no_lines() {
        for (around, expected) in [(Around::List, "[]"), (Around::Lines, "")] {
            let mut objects = Objects::open(&batch().schema(), around, Nulls::Kept, TimeForm::Zoned).unwrap();
            objects.finish().unwrap();
            assert_eq!(objects.out, expected.as_bytes());
        }
    }

    #[test]
    fn two_columns_of_one_name_are_refused() {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let schema = RecordBatch::try_from_iter([("v", Arc::clone(&column)), ("v", column)]).unwrap().schema();
        let failure = Objects::open(&schema, Around::Lines, Nulls::Kept, TimeForm::Zoned).err().unwrap();
        assert!(failure.status.as_u16() == 400 && failure.message.contains("\"v\""), "{}", failure.message);
    }
}
