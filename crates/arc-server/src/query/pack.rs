//! An answer as MessagePack: one map, its rows column by column, as the existing Arc server has it.
//!
//! The number of rows stands before the values of the first column, so nothing can be sent before the last row is there:
//! whatever fails has a status, and the columns wait in a spool.

use std::{io, sync::Arc, time::Instant};

use arrow::{
    array::RecordBatch,
    datatypes::{Schema, SchemaRef},
};

use super::{
    cells::Cell,
    encode::{CHUNK_BYTES, Encode, unencodable},
    packed::{self, array, map, text, unsigned},
    spool::{Spool, Spools},
    types::type_name,
};
use crate::{
    errors::{Failure, status_of_io},
    timestamp,
};

/// Encodes an answer as MessagePack.
pub(super) struct Pack {
    schema: SchemaRef,
    spool: Spool,
    out: Vec<u8>,
    row_count: u64,
    started: Instant,
    /// Columns whose values are on their way out.
    sent: usize,
    /// How much of the end is written.
    stage: Stage,
}

/// What comes next after the last row.
#[derive(Debug, Clone, Copy)]
enum Stage {
    Head,
    ColumnHead,
    Column,
    Tail,
}

impl Pack {
    /// Begins an answer; what is large of it waits among `spools`.
    pub(super) fn open(schema: &SchemaRef, spools: &Arc<Spools>, started: Instant) -> Self {
        let spool = Spool::new(spools, schema.fields().len());
        let schema = SchemaRef::clone(schema);
        Self { schema, spool, out: Vec::new(), row_count: 0, started, sent: 0, stage: Stage::Head }
    }
}

impl Encode for Pack {
    fn append(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        for (column, out) in batch.columns().iter().zip(self.spool.columns()) {
            let cell: Cell<'_> = packed::cell(column).map_err(unencodable)?;
            (0..batch.num_rows()).for_each(|row| cell(row, out));
        }
        self.row_count += u64::try_from(batch.num_rows()).unwrap_or_default();
        self.spool.settle().map_err(|error| unspooled(&error))
    }

    fn finish(&mut self) -> Result<bool, Failure> {
        let columns = self.schema.fields().len();
        match self.stage {
            Stage::Head => {
                head(&mut self.out, &self.schema);
                self.stage = if columns == 0 { Stage::Tail } else { Stage::ColumnHead };
            }
            Stage::ColumnHead => {
                let rows = u32::try_from(self.row_count).map_err(|_| too_long())?;
                array(&mut self.out, rows);
                self.stage = Stage::Column;
            }
            Stage::Column => {
                if self.spool.take(&mut self.out, CHUNK_BYTES).map_err(|error| unspooled(&error))? {
                    self.sent += 1;
                    self.stage = if self.sent == columns { Stage::Tail } else { Stage::ColumnHead };
                }
            }
            Stage::Tail => {
                tail(&mut self.out, self.row_count, self.started);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn encoded(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }
}

fn head(out: &mut Vec<u8>, schema: &Schema) {
    let columns = u32::try_from(schema.fields().len()).unwrap_or(u32::MAX);
    map(out, 7);
    text(out, "success");
    out.push(packed::TRUE);
    text(out, "columns");
    array(out, columns);
    schema.fields().iter().for_each(|field| text(out, field.name()));
    text(out, "types");
    array(out, columns);
    schema.fields().iter().for_each(|field| text(out, &type_name(field.data_type())));
    text(out, "data");
    array(out, columns);
}

fn tail(out: &mut Vec<u8>, row_count: u64, started: Instant) {
    text(out, "row_count");
    unsigned(out, row_count);
    text(out, "execution_time_ms");
    unsigned(out, u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX));
    text(out, "timestamp");
    text(out, &timestamp::now());
}

/// Returns a failed query in the shape of MessagePack.
pub(super) fn failed(failure: &Failure, started: Instant) -> Vec<u8> {
    let mut out = Vec::new();
    map(&mut out, 4);
    text(&mut out, "success");
    out.push(packed::FALSE);
    text(&mut out, "error");
    text(&mut out, &failure.message);
    text(&mut out, "execution_time_ms");
    unsigned(&mut out, u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX));
    text(&mut out, "timestamp");
    text(&mut out, &timestamp::now());
    out
}

fn too_long() -> Failure {
    Failure::bad_request("MessagePack has no list of more than 4,294,967,295 values; ask for another format")
}

fn unspooled(error: &io::Error) -> Failure {
    tracing::warn!(%error, "an answer cannot be laid down on its way to MessagePack");
    let advice = "LIMIT or another format takes less";
    Failure::new(
        status_of_io(error),
        format!("MessagePack waits on disk for its last row, and cannot: {error}; {advice}"),
    )
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, StringArray};
    use serde_json::{Value, json};

    use super::*;

    fn written(batch: &RecordBatch, times: usize) -> Value {
        let folder = tempfile::tempdir().unwrap();
        let spools = Arc::new(Spools::new(folder.path().to_owned()));
        let mut pack = Pack::open(&batch.schema(), &spools, Instant::now());
        (0..times).for_each(|_| pack.append(batch).unwrap());
        let mut bytes = Vec::new();
        loop {
            let is_over = pack.finish().unwrap();
            bytes.append(pack.encoded());
            if is_over {
                return rmp_serde::from_slice(&bytes).unwrap();
            }
        }
    }

    #[test]
    fn the_map_is_complete() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
        let answer = written(&RecordBatch::try_from_iter([("n", numbers), ("t", texts)]).unwrap(), 1);
        assert_eq!(answer["success"], true);
        assert_eq!((&answer["columns"], &answer["types"]), (&json!(["n", "t"]), &json!(["int64", "utf8"])));
        assert_eq!((&answer["data"], &answer["row_count"]), (&json!([[1, null], ["a", "b"]]), &json!(2)));
        assert!(answer["execution_time_ms"].is_u64() && answer["timestamp"].is_string());
    }

    #[test]
    fn a_long_answer_is_whole() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..8_192));
        let same: ArrayRef = Arc::new(StringArray::from_iter_values((0..8_192).map(|_| "same")));
        let answer = written(&RecordBatch::try_from_iter([("n", numbers), ("t", same)]).unwrap(), 100);
        let column = answer["data"][0].as_array().unwrap();
        assert!(column.iter().zip((0..8_192).cycle()).all(|(value, n)| *value == n) && column.len() == 819_200);
        assert!(answer["data"][1].as_array().unwrap().iter().all(|value| value == "same"));
    }

    #[test]
    fn no_columns_are_no_data() {
        let answer = written(&RecordBatch::new_empty(Arc::new(Schema::empty())), 0);
        assert_eq!((&answer["columns"], &answer["data"]), (&json!([]), &json!([])));
    }

    #[test]
    fn a_failure_says_why() {
        let bytes = failed(&Failure::bad_request("no such thing"), Instant::now());
        let answer: Value = rmp_serde::from_slice(&bytes).unwrap();
        assert_eq!((&answer["success"], &answer["error"]), (&json!(false), &json!("no such thing")));
        assert_eq!(answer.as_object().unwrap().len(), 4);
    }
}
