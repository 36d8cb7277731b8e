//! What a statement that changes data answers: the number of rows that it wrote or took, where it says one.

use std::sync::Arc;

use arc_core::{Executed, StatementKind};
use arrow::{
    array::{RecordBatch, UInt64Array},
    datatypes::{DataType, Field, Schema, SchemaRef},
};

/// Returns the columns of a statement's answer over HTTP: those of an `INSERT` are what DataFusion and DuckDB call it, other
/// statements have none.
pub(crate) fn columns(kind: StatementKind) -> SchemaRef {
    if kind == StatementKind::Insert { count_column() } else { Arc::new(Schema::empty()) }
}

/// Returns the rows of such an answer.
pub(crate) fn answer(executed: &Executed) -> Option<arc_core::Result<RecordBatch>> {
    match executed {
        Executed::Inserted(written) => Some(count(Some(written.points)).map_err(Into::into)),
        _ => None,
    }
}

/// Returns the column of a count.
pub(crate) fn count_column() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("count", DataType::UInt64, true)]))
}

/// Returns a count as a row; null where there is none.
pub(crate) fn count(count: Option<u64>) -> Result<RecordBatch, arrow::error::ArrowError> {
    RecordBatch::try_new(count_column(), vec![Arc::new(UInt64Array::from(vec![count]))])
}
