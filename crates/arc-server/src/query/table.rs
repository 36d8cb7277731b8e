//! An answer as a table drawn with signs, for people at a terminal.
//!
//! Its columns are as wide as their widest value, so that all rows are needed first; more than people read are refused.

use arrow::{array::RecordBatch, datatypes::SchemaRef, util::pretty::pretty_format_batches_with_schema};

use super::{
    encode::{Encode, unencodable},
    layout,
};
use crate::errors::Failure;

/// Most rows of a table, and the most that they may take.
const MAX_ROWS: usize = 10_000;
const MAX_BYTES: usize = 4 << 20;

/// Encodes an answer as a table.
pub(super) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
    out: Vec<u8>,
}

impl Table {
    pub(super) fn open(schema: &SchemaRef) -> Self {
        Self { schema: layout::readable(schema, false), batches: Vec::new(), rows: 0, bytes: 0, out: Vec::new() }
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

    use arrow::array::{ArrayRef, Int64Array};

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
}
