//! The plan node that gives the states of whole hours.

use std::{fmt, sync::Arc};

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use datafusion::{
    common::{Result, internal_err, tree_node::TreeNodeRecursion},
    execution::{SendableRecordBatchStream, TaskContext, memory_pool::MemoryConsumer},
    physical_expr::{EquivalenceProperties, PhysicalExpr},
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
        aggregates::AggregateExec,
        execution_plan::{Boundedness, EmissionType},
        metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet},
        stream::RecordBatchStreamAdapter,
    },
};
use futures::{StreamExt, TryStreamExt, stream};

use super::{read, rule::Hours};

/// Gives one row for each hour of each series, as the first phase of an aggregate does for a group.
/// Its second phase takes a group any number of times.
#[derive(Debug)]
pub(in crate::query) struct HourlyExec {
    hours: Hours,
    /// The same from the rows, in case.
    rows: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    shown: String,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl HourlyExec {
    /// Returns the states of `partial`; `rows` gives the same, in one partition, from the rows.
    pub(super) fn new(aggregate: &AggregateExec, hours: Hours, rows: Arc<dyn ExecutionPlan>) -> Self {
        let keys = aggregate.group_expr().expr().iter().map(|(key, _)| key.to_string()).collect::<Vec<_>>().join(", ");
        let functions = aggregate.aggr_expr().iter().map(|function| function.name()).collect::<Vec<_>>().join(", ");
        let files: Vec<&str> = hours.files.iter().map(|file| file.object_meta.location.as_ref()).collect();
        let shown = format!("files=[{}], gby=[{keys}], aggr=[{functions}]", files.join(", "));
        let schema = rows.schema();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self { hours, rows, schema, shown, properties: Arc::new(properties), metrics: ExecutionPlanMetricsSet::new() }
    }
}

impl DisplayAs for HourlyExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match t {
            DisplayFormatType::TreeRender => writeln!(f, "files={}", self.hours.files.len()),
            _ => write!(f, "HourlyExec: {}", self.shown),
        }
    }
}

impl ExecutionPlan for HourlyExec {
    fn name(&self) -> &'static str {
        "HourlyExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("hours have no input") }
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (hours, rows, schema) = (self.hours.clone(), Arc::clone(&self.rows), Arc::clone(&self.schema));
        let metrics = self.metrics.clone();
        let cells = MetricBuilder::new(&self.metrics).counter("cells", partition);
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let states = async move {
            let reservation = MemoryConsumer::new("HourlyExec").register(context.memory_pool());
            let mut states = Vec::with_capacity(hours.files.len());
            for file in &hours.files {
                let of_file = read::states(&hours, file, &schema, &metrics).await.and_then(|of_file| {
                    reservation.try_grow(of_file.get_array_memory_size())?;
                    Ok(of_file)
                });
                match of_file {
                    Ok(of_file) => {
                        cells.add(of_file.num_rows());
                        states.push(of_file);
                    }
                    Err(error) => {
                        let file = &file.object_meta.location;
                        tracing::warn!(%file, %error, "its aggregates by hour cannot be used, and its rows answer");
                        drop((states, reservation));
                        return rows.execute(0, context);
                    }
                }
            }
            let size = context.session_config().batch_size();
            let pieces = states.into_iter().flat_map(move |batch| pieces(&batch, size)).map(move |batch| {
                // What is held is counted until all of it is given.
                let _ = &reservation;
                baseline.record_output(batch.num_rows());
                Ok(batch)
            });
            let states = RecordBatchStreamAdapter::new(schema, stream::iter(pieces));
            Ok(Box::pin(states) as SendableRecordBatchStream)
        };
        let states = stream::once(states).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), states.boxed())))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// Returns a batch in pieces of so many rows.
fn pieces(batch: &RecordBatch, rows: usize) -> Vec<RecordBatch> {
    let starts = (0..batch.num_rows()).step_by(rows.max(1));
    starts.map(|start| batch.slice(start, rows.min(batch.num_rows() - start))).collect()
}
