//! What projections make of rows, held to a size: a net below the limits of single functions.
//!
//! A value that doubles with each of some dozen projections would soon be larger than any memory,
//! and none of it is in an account. Changes neither plans nor what is shown of them.

use std::sync::Arc;

use arrow::{array::RecordBatch, datatypes::DataType};
use datafusion::{
    common::{
        DataFusionError, Result,
        tree_node::{Transformed, TransformedResult, TreeNode},
    },
    execution::{SendableRecordBatchStream, TaskContext},
    physical_expr::expressions::{Column, Literal},
    physical_plan::{ExecutionPlan, projection::ProjectionExec, stream::RecordBatchStreamAdapter},
};
use futures::StreamExt;

use super::{
    around::{Around, Effect},
    functions,
};
use crate::Error;

/// How far a column of a batch may exceed what one function may make: many are read as they are.
const SLACK: usize = 4;

/// Wraps each projection that makes values of any size.
pub(super) fn wrap(plan: Arc<dyn ExecutionPlan>, limit_bytes: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let allowed_bytes = limit_bytes.saturating_mul(SLACK) as u64;
    let wrapped = plan.transform_up(|plan| {
        let made = plan.downcast_ref::<ProjectionExec>().map(computed).unwrap_or_default();
        Ok(if made.is_empty() {
            Transformed::no(plan)
        } else {
            Transformed::yes(Around::plan(plan, Arc::new(Sizes { made: made.into(), allowed_bytes })))
        })
    });
    wrapped.data()
}

/// Returns which columns are computed, and can be of any size.
fn computed(projection: &ProjectionExec) -> Vec<usize> {
    let schema = projection.schema();
    let columns = projection.expr().iter().zip(schema.fields()).enumerate();
    let made = columns.filter(|(_, (expr, field))| {
        let is_read = expr.expr.is::<Column>() || expr.expr.is::<Literal>();
        !is_read && (field.data_type().is_nested() || has_any_size(field.data_type()))
    });
    made.map(|(index, _)| index).collect()
}

fn has_any_size(data_type: &DataType) -> bool {
    use DataType::{Binary, BinaryView, LargeBinary, LargeUtf8, Utf8, Utf8View};
    matches!(data_type, Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView)
}

/// Looks at the size of columns.
#[derive(Debug)]
struct Sizes {
    made: Arc<[usize]>,
    allowed_bytes: u64,
}

impl Effect for Sizes {
    fn execute(
        &self,
        inner: &dyn ExecutionPlan,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let rows = inner.execute(partition, context)?;
        let (made, allowed_bytes) = (Arc::clone(&self.made), self.allowed_bytes);
        let schema = rows.schema();
        let checked = rows.map(move |batch| {
            let batch = batch?;
            check(&batch, &made, allowed_bytes)?;
            Ok(batch)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, checked)))
    }
}

fn check(batch: &RecordBatch, made: &[usize], allowed_bytes: u64) -> Result<()> {
    for column in made.iter().filter_map(|column| batch.columns().get(*column)) {
        let bytes = functions::total_bytes(column)?;
        if bytes > allowed_bytes {
            let rows = batch.num_rows();
            let reason = format!(
                "a column of the query takes {bytes} bytes for {rows} rows at once; the limit is {allowed_bytes}"
            );
            return Err(DataFusionError::External(Box::new(Error::Sql { reason })));
        }
    }
    Ok(())
}
