//! An answer as CSV: a line of names, then one for each row.
//!
//! RFC 4180 with line feeds. Null is nothing between the commas, an empty text is `""`; where a row has one column only,
//! null is `""` as well, for readers pass over empty lines. Other values look as in JSON, without the quotes, and times
//! have as many digits as their unit, whatever they are.

use std::{fmt::Display, io::Write as _};

use arrow::{
    array::{Array, ArrowPrimitiveType, AsArray, PrimitiveArray, RecordBatch},
    datatypes::{DataType, Float16Type, Float32Type, Float64Type, Schema},
    error::ArrowError,
};

use super::{
    cells::{self, Cell, TimeForm},
    encode::{Encode, unencodable},
};
use crate::errors::Failure;

/// Encodes an answer as CSV.
pub(super) struct Csv {
    out: Vec<u8>,
    times: TimeForm,
}

impl Csv {
    pub(super) fn open(schema: &Schema, times: TimeForm) -> Self {
        let mut out = Vec::with_capacity(1024);
        for (at, field) in schema.fields().iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            text(field.name().as_bytes(), &mut out);
        }
        out.push(b'\n');
        Self { out, times }
    }
}

impl Encode for Csv {
    fn append(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let columns = batch.columns().iter().map(|column| cell(column, self.times));
        let columns: Vec<Cell<'_>> = columns.collect::<Result<_, _>>().map_err(unencodable)?;
        for row in 0..batch.num_rows() {
            let start = self.out.len();
            for (at, column) in columns.iter().enumerate() {
                if at > 0 {
                    self.out.push(b',');
                }
                column(row, &mut self.out);
            }
            if self.out.len() == start {
                self.out.extend_from_slice(b"\"\"");
            }
            self.out.push(b'\n');
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, Failure> {
        Ok(true)
    }

    fn encoded(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }
}

/// Returns what writes the values of a column; nothing where they are null.
fn cell(array: &dyn Array, times: TimeForm) -> Result<Cell<'_>, ArrowError> {
    let value = value(array, times)?;
    let Some(nulls) = array.logical_nulls().filter(|nulls| nulls.null_count() > 0) else { return Ok(value) };
    Ok(Box::new(move |row, out| {
        if nulls.is_valid(row) {
            value(row, out);
        }
    }))
}

fn value(array: &dyn Array, times: TimeForm) -> Result<Cell<'_>, ArrowError> {
    Ok(match array.data_type() {
        DataType::Null => Box::new(|_, _| {}),
        DataType::Utf8 => strings(array.as_string::<i32>()),
        DataType::LargeUtf8 => strings(array.as_string::<i64>()),
        DataType::Utf8View => strings(array.as_string_view()),
        DataType::Float16 => float(array.as_primitive::<Float16Type>()),
        DataType::Float32 => float(array.as_primitive::<Float32Type>()),
        DataType::Float64 => float(array.as_primitive::<Float64Type>()),
        DataType::Dictionary(..) => {
            let array = array.as_any_dictionary();
            cells::dictionary(array, cell(array.values(), times)?)
        }
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::FixedSizeList(..)
        | DataType::Struct(_)
        | DataType::Map(..) => as_json(cells::cell(array, times)?, |json| json),
        data_type if data_type.is_numeric() || *data_type == DataType::Boolean => cells::cell(array, times)?,
        // Texts without anything that JSON escapes: times, dates, digits.
        _ => as_json(cells::cell(array, times)?, |json| {
            json.strip_prefix(b"\"").and_then(|json| json.strip_suffix(b"\"")).unwrap_or(json)
        }),
    })
}

fn strings<'a>(array: impl arrow::array::ArrayAccessor<Item = &'a str> + 'a) -> Cell<'a> {
    Box::new(move |row, out| text(array.value(row).as_bytes(), out))
}

fn float<T: ArrowPrimitiveType<Native: Display>>(array: &PrimitiveArray<T>) -> Cell<'_> {
    Box::new(|row, out| {
        // Writing to a vector cannot fail.
        let _ = write!(out, "{}", array.value(row));
    })
}

/// Returns what writes a part of the JSON of a value as text.
fn as_json<'a>(json: Cell<'a>, part: impl Fn(&[u8]) -> &[u8] + 'a) -> Cell<'a> {
    Box::new(move |row, out| {
        let mut scratch = Vec::with_capacity(32);
        json(row, &mut scratch);
        text(part(&scratch), out);
    })
}

/// Writes a text, in quotes where it would be taken for something else.
fn text(text: &[u8], out: &mut Vec<u8>) {
    let is_plain = !text.is_empty() && !text.iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r'));
    if is_plain {
        out.extend_from_slice(text);
        return;
    }
    out.push(b'"');
    for byte in text {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::{
        array::{
            ArrayRef, BinaryArray, BooleanArray, Decimal128Array, DictionaryArray, Float64Array, Int64Array, ListArray,
            NullArray, StringArray, StringViewArray, Time32SecondArray, TimestampNanosecondArray,
        },
        datatypes::{Int32Type, Int64Type},
    };

    use super::*;

    fn written(columns: Vec<(&str, ArrayRef)>) -> String {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut csv = Csv::open(&batch.schema(), TimeForm::Padded);
        csv.append(&batch).unwrap();
        csv.finish().unwrap();
        String::from_utf8(csv.out).unwrap()
    }

    #[test]
    fn each_type_has_its_form() {
        let hosts: DictionaryArray<Int32Type> = vec![Some("a,b"), None].into_iter().collect();
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(vec![Some(vec![Some(1), None]), None]);
        let decimals = Decimal128Array::from(vec![-5, 0]).with_precision_and_scale(38, 2).unwrap();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("time", Arc::new(TimestampNanosecondArray::from(vec![0, 1]))),
            ("host", Arc::new(hosts)),
            ("n", Arc::new(Int64Array::from(vec![Some(i64::MIN), None]))),
            ("f", Arc::new(Float64Array::from(vec![f64::NAN, f64::NEG_INFINITY]))),
            ("on", Arc::new(BooleanArray::from(vec![true, false]))),
            ("bytes", Arc::new(BinaryArray::from(vec![&b"\xff"[..], b""]))),
            ("list", Arc::new(lists)),
            ("of day", Arc::new(Time32SecondArray::from(vec![1, 2]))),
            ("d", Arc::new(decimals)),
            ("none", Arc::new(NullArray::new(2))),
        ];
        let expected = "time,host,n,f,on,bytes,list,of day,d,none\n\
                        1970-01-01T00:00:00.000000000Z,\"a,b\",-9223372036854775808,NaN,true,ff,\"[1,null]\",00:00:01,-0.05,\n\
                        1970-01-01T00:00:00.000000001Z,,,-inf,false,\"\",,00:00:02,0.00,\n";
        assert_eq!(written(columns), expected);
    }

    #[test]
    fn texts_are_quoted_where_they_must_be() {
        let texts = vec![Some("plain"), Some("a,b"), Some("say \"x\""), Some("two\nlines"), Some("\r"), Some("")];
        let expected = "t,u\nplain,1\n\"a,b\",1\n\"say \"\"x\"\"\",1\n\"two\nlines\",1\n\"\r\",1\n\"\",1\n";
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1; 6]));
        for texts in [Arc::new(StringArray::from(texts.clone())) as ArrayRef, Arc::new(StringViewArray::from(texts))] {
            assert_eq!(written(vec![("t", texts), ("u", Arc::clone(&numbers))]), expected);
        }
        assert_eq!(written(vec![("a \"b\"", Arc::new(Int64Array::from(vec![1])))]), "\"a \"\"b\"\"\"\n1\n");
    }

    #[test]
    fn no_row_is_an_empty_line() {
        assert_eq!(written(vec![("n", Arc::new(Int64Array::from(vec![Some(1), None, Some(2)])))]), "n\n1\n\"\"\n2\n");
    }
}
