//! An answer as a table drawn with signs, for people at a terminal.
//!
//! Its columns are as wide as their widest value, so that all rows are needed first; more than people read are refused.

use std::fmt::{self, Write};

use arrow::{
    array::RecordBatch,
    datatypes::SchemaRef,
    error::ArrowError,
    util::{
        display::{ArrayFormatter, FormatOptions},
        pretty::pretty_format_batches_with_schema,
    },
};

use super::{
    encode::{Encode, unencodable},
    layout,
};
use crate::errors::Failure;

/// Most rows of a table, and the most that they may take.
const MAX_ROWS: usize = 10_000;
const MAX_BYTES: usize = 4 << 20;

/// Most characters of a table, which are as many in each row as in the widest.
const MAX_DRAWN: usize = 8 << 20;

/// Encodes an answer as a table.
pub(super) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
    /// The characters of the widest value of each column.
    widest: Vec<usize>,
    out: Vec<u8>,
}

impl Table {
    pub(super) fn open(schema: &SchemaRef) -> Self {
        let (schema, widest) = (layout::readable(schema, false), vec![0; schema.fields().len()]);
        Self { schema, batches: Vec::new(), rows: 0, bytes: 0, widest, out: Vec::new() }
    }

    /// Returns how many characters the table has with a batch, or more than there may be.
    fn drawn_with(&mut self, batch: &RecordBatch) -> Result<usize, ArrowError> {
        for (column, widest) in batch.columns().iter().zip(&mut self.widest) {
            let shown = ArrayFormatter::try_new(column, &FormatOptions::default())?;
            for row in 0..batch.num_rows() {
                let mut length = Length(0);
                // Fails where it is too long: `Length` has counted so far.
                let _ = write!(length, "{}", shown.value(row));
                *widest = length.0.max(*widest);
            }
        }
        Ok(self.widest.iter().sum::<usize>().saturating_mul(self.rows))
    }
}

/// The length of a text that is not kept.
struct Length(usize);

impl Write for Length {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        if self.0 <= MAX_DRAWN { Ok(()) } else { Err(fmt::Error) }
    }
}

impl Encode for Table {
    fn append(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let batch = layout::converted(batch, &self.schema).map_err(unencodable)?;
        self.rows += batch.num_rows();
        self.bytes += layout::size(&batch);
        if self.rows > MAX_ROWS || self.bytes > MAX_BYTES {
            let text =
                format!("a drawn table has at most {MAX_ROWS} rows of {MAX_BYTES} bytes; ask for another format");
            return Err(Failure::bad_request(text));
        }
        if self.drawn_with(&batch).map_err(unencodable)? > MAX_DRAWN {
            let text = format!(
                "a drawn table has at most {MAX_DRAWN} characters, and is as wide as its widest values in each row; ask for \
                 another format"
            );
            return Err(Failure::bad_request(text));
        }
        self.batches.push(batch);
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, Failure> {
        let drawn = pretty_format_batches_with_schema(SchemaRef::clone(&self.schema), &self.batches);
        self.out = drawn.map_err(unencodable)?.to_string().into_bytes();
        Ok(true)
    }

    fn encoded(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    fn numbers(rows: i64) -> RecordBatch {
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
        RecordBatch::try_from_iter([("number", column)]).unwrap()
    }

    #[test]
    fn a_table_has_a_frame() {
        let mut table = Table::open(&numbers(0).schema());
        table.append(&numbers(1)).unwrap();
        table.finish().unwrap();
        let drawn = String::from_utf8(table.out).unwrap();
        assert_eq!(drawn, "+--------+\n| number |\n+--------+\n| 0      |\n+--------+");
    }

    #[test]
    fn what_nobody_reads_is_refused() {
        let mut table = Table::open(&numbers(0).schema());
        assert!(table.append(&numbers(10_000)).is_ok());
        assert_eq!(table.append(&numbers(1)).unwrap_err().status.as_u16(), 400);
    }

    #[test]
    fn a_table_as_wide_as_one_long_text_is_refused() {
        let texts = |long: usize| {
            let column: ArrayRef =
                Arc::new(StringArray::from_iter_values(["a".repeat(long).as_str(), "b"].iter().cycle().take(1_000)));
            RecordBatch::try_from_iter([("text", column)]).unwrap()
        };
        let mut table = Table::open(&texts(1).schema());
        table.append(&texts(4_000)).unwrap();
        assert_eq!(table.append(&texts(4_200)).unwrap_err().status.as_u16(), 400);
        let one = texts(3 << 20).slice(0, 1);
        let mut table = Table::open(&one.schema());
        table.append(&one).unwrap();
        assert!(table.append(&texts(1)).is_err(), "each of its rows would be as long");
    }
}
