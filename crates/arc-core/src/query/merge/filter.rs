//! The plan node that filters the rows of one scan on their way to a merge.

use std::{fmt, sync::Arc};

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use datafusion::{
    common::{DataFusionError, Result, Statistics, internal_err, stats::Precision, tree_node::TreeNodeRecursion},
    execution::{SendableRecordBatchStream, TaskContext},
    physical_expr::{EquivalenceProperties, LexOrdering, PhysicalExpr},
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, StatisticsArgs,
        execution_plan::{CardinalityEffect, EmissionType},
        filter::batch_filter,
        metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet},
        stream::RecordBatchStreamAdapter,
    },
};
use futures::{StreamExt, future};

/// Leaves the rows of `input` that meet all conditions.
///
/// DataFusion's `FilterExec` does so, too, but it also tells what holds for the rows that it lets
/// through: with `a = b`, rows in order of `(a, b, time)` are in order of `(a, time)`. A union
/// above does not know that, and the check of the plan fails. This node claims the order that the
/// files have, and nothing else. And it hands each batch on by itself, where `FilterExec` holds
/// room for thousands of rows: a merge has an input for each file.
#[derive(Debug)]
pub(super) struct OrderedFilter {
    input: Arc<dyn ExecutionPlan>,
    conditions: Arc<[Arc<dyn PhysicalExpr>]>,
    /// The order of the input's rows, if they have one.
    order: Option<LexOrdering>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl OrderedFilter {
    /// Returns a node that asks the conditions one after the other, each for the rows that are
    /// left.
    pub(super) fn try_new(
        input: Arc<dyn ExecutionPlan>,
        conditions: Arc<[Arc<dyn PhysicalExpr>]>,
        order: Option<LexOrdering>,
    ) -> Result<Self> {
        let below = input.properties();
        // A scan that is handed one of the conditions counts it as met, so that it may name fewer
        // columns. Those rows for which it is are left.
        let is_kept = order.clone().map(|order| below.eq_properties.ordering_satisfy(order)).transpose()?;
        let orderings = order.clone().filter(|_| is_kept == Some(true));
        let properties = PlanProperties::new(
            EquivalenceProperties::new_with_orderings(input.schema(), orderings),
            below.partitioning.clone(),
            EmissionType::Incremental,
            below.boundedness,
        );
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(Self { input, conditions, order, properties: Arc::new(properties), metrics })
    }
}

impl DisplayAs for OrderedFilter {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conditions = self.conditions.iter().map(ToString::to_string).collect::<Vec<_>>().join(" AND ");
        match t {
            DisplayFormatType::TreeRender => writeln!(f, "predicate={conditions}"),
            _ => write!(f, "OrderedFilterExec: {conditions}"),
        }
    }
}

impl ExecutionPlan for OrderedFilter {
    fn name(&self) -> &'static str {
        "OrderedFilterExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => {
                Ok(Arc::new(Self::try_new(input, Arc::clone(&self.conditions), self.order.clone())?))
            }
            _ => internal_err!("OrderedFilterExec has one input"),
        }
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.conditions
            .iter()
            .try_fold(TreeNodeRecursion::Continue, |recursion, condition| recursion.visit_sibling(|| f(condition)))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let conditions = Arc::clone(&self.conditions);
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let batches = self.input.execute(partition, context)?.map(move |batch| {
            let left = filtered(batch?, &conditions, &metrics)?;
            metrics.record_output(left.num_rows());
            Ok::<_, DataFusionError>(left)
        });
        let batches = batches.filter(|batch| future::ready(batch.as_ref().map_or(true, |left| left.num_rows() > 0)));
        let schema: SchemaRef = self.schema();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], _args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        let mut known = Statistics::new_unknown(&self.schema());
        known.num_rows = inputs.first().map_or(Precision::Absent, |input| input.num_rows.to_inexact());
        Ok(Arc::new(known))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }
}

fn filtered(
    batch: RecordBatch,
    conditions: &[Arc<dyn PhysicalExpr>],
    metrics: &BaselineMetrics,
) -> Result<RecordBatch> {
    let _timer = metrics.elapsed_compute().timer();
    conditions.iter().try_fold(batch, |left, condition| match left.num_rows() {
        0 => Ok(left),
        _ => batch_filter(&left, condition),
    })
}
