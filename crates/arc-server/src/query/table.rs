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

/// Most characters of a value or a name: what is wider than a column may be is broken into lines, word by word, each of which
/// the line so far is measured for.
const MAX_WIDTH: usize = u16::MAX as usize - 2;

/// Encodes an answer as a table.
pub(super) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
    /// The characters of the name of each column, or its widest value.
    widest: Vec<usize>,
    out: Vec<u8>,
}

impl Table {
    pub(super) fn open(schema: &SchemaRef) -> Self {
        let schema = layout::readable(schema, false);
        let widest = schema.fields().iter().map(|field| field.name().len()).collect();
        Self { schema, batches: Vec::new(), rows: 0, bytes: 0, widest, out: Vec::new() }
    }

    /// Measures the values of a batch.
    fn measure(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        for (column, widest) in batch.columns().iter().zip(&mut self.widest) {
            let shown = ArrayFormatter::try_new(column, &FormatOptions::default())?;
            for row in 0..batch.num_rows() {
                let mut length = Length(0);
                // Fails where it is too long: `Length` has counted so far.
                let _ = write!(length, "{}", shown.value(row));
                *widest = length.0.max(*widest);
            }
        }
        Ok(())
    }

    /// Refuses a table that is too wide or too large to be drawn.
    fn check(&self) -> Result<(), Failure> {
        let drawn = self.widest.iter().sum::<usize>().saturating_mul(self.rows);
        let text = if self.widest.iter().any(|widest| *widest > MAX_WIDTH) {
            format!("a drawn table has values and names of at most {MAX_WIDTH} characters; ask for another format")
        } else if drawn > MAX_DRAWN {
            format!(
                "a drawn table has at most {MAX_DRAWN} characters, and is as wide as its widest values in each row; ask for \
                 another format"
            )
        } else {
            return Ok(());
        };
        Err(Failure::bad_request(text))
    }
}

/// The length of a text that is not kept.
struct Length(usize);

impl Write for Length {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        if self.0 <= MAX_WIDTH { Ok(()) } else { Err(fmt::Error) }
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
        self.measure(&batch).map_err(unencodable)?;
        self.check()?;
        self.batches.push(batch);
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, Failure> {
        // The names of an answer without rows, too.
        self.check()?;
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
    }

    #[test]
    fn a_value_or_a_name_wider_than_a_column_is_refused() {
        let words = |long: usize| "a ".repeat(long / 2);
        let one = |name: String, text: String| {
            RecordBatch::try_from_iter([(name, Arc::new(StringArray::from_iter_values([text])) as ArrayRef)]).unwrap()
        };
        for (name, text) in [(MAX_WIDTH + 1, 2), (2, MAX_WIDTH + 1), (MAX_WIDTH + 1, MAX_WIDTH + 1)] {
            let batch = one(words(name), words(text));
            let mut table = Table::open(&batch.schema());
            let refused = table.append(&batch).and_then(|()| table.finish()).unwrap_err();
            assert_eq!(refused.status.as_u16(), 400);
        }
        let mut table = Table::open(&one(words(MAX_WIDTH + 1), String::new()).schema());
        assert!(table.finish().is_err(), "a name is drawn without rows");
        let widest = one("text".to_owned(), words(MAX_WIDTH - 1));
        let mut table = Table::open(&widest.schema());
        table.append(&widest).unwrap();
        table.finish().unwrap();
        assert_eq!(table.out.iter().filter(|byte| **byte == b'\n').count(), 4, "no value is broken");
    }
}
