//! What projections make of rows, held to a size: a net below the limits of single functions.
//!
//! A value that doubles with each of some dozen projections would soon be larger than any memory,
//! and none of it is in an account. Changes neither plans nor what is shown of them.

use std::{fmt, sync::Arc};

use arrow::{array::RecordBatch, datatypes::DataType};
use datafusion::{
    common::{
        DataFusionError, Result, internal_err,
        tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion},
    },
    execution::{SendableRecordBatchStream, TaskContext},
    physical_expr::{
        PhysicalExpr,
        expressions::{Column, Literal},
    },
    physical_plan::{
        ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
        metrics::MetricsSet, projection::ProjectionExec, stream::RecordBatchStreamAdapter,
    },
};
use futures::StreamExt;

use super::functions;
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
            Transformed::yes(Arc::new(Sized { inner: plan, made, allowed_bytes }) as _)
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

#[derive(Debug)]
pub(super) struct Sized {
    inner: Arc<dyn ExecutionPlan>,
    made: Vec<usize>,
    allowed_bytes: u64,
}

impl Sized {
    /// Returns the projection.
    #[cfg(feature = "distributed")]
    pub(super) fn inner(&self) -> &Arc<dyn ExecutionPlan> {
        &self.inner
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

impl DisplayAs for Sized {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_as(format, f)
    }
}

impl ExecutionPlan for Sized {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.inner.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inner.children()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.inner.maintains_input_order()
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.inner.metrics()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        if children.len() != 1 {
            return internal_err!("a projection has one input");
        }
        let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        let inner = Arc::clone(&self.inner).replace_children(children, recompute)?;
        Ok(Arc::new(Self { inner, made: self.made.clone(), allowed_bytes: self.allowed_bytes }))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.inner.apply_expressions(f)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let stream = self.inner.execute(partition, context)?;
        let (made, allowed_bytes) = (self.made.clone(), self.allowed_bytes);
        let schema = stream.schema();
        let checked = stream.map(move |batch| {
            let batch = batch?;
            check(&batch, &made, allowed_bytes)?;
            Ok(batch)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, checked)))
    }
}
