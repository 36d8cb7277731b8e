//! Scan of unflushed rows.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array},
    datatypes::SchemaRef,
};
use datafusion::{common::Result, datasource::memory::MemorySourceConfig, physical_plan::ExecutionPlan};

use crate::view::BufferPart;

/// Returns a scan of `parts`, one partition for each.
pub(super) fn scan(
    schema: &SchemaRef,
    parts: &[BufferPart],
    projection: Option<&Vec<usize>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let partitions = parts.iter().map(|part| Ok(vec![widen(&part.batch, schema)?])).collect::<Result<Vec<_>>>()?;
    Ok(MemorySourceConfig::try_new_exec(&partitions, Arc::clone(schema), projection.cloned())?)
}

/// Returns `batch` with exactly the columns of `schema`: by name, null where `batch` has none.
pub(super) fn widen(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let rows = batch.num_rows();
    let column = |name: &str, data_type| -> ArrayRef {
        batch.column_by_name(name).map_or_else(|| new_null_array(data_type, rows), Arc::clone)
    };
    let columns = schema.fields().iter().map(|field| column(field.name(), field.data_type())).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}
