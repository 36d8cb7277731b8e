//! The plan node that folds sorted rows while they stream by.

use std::{fmt, mem, sync::Arc};

use arrow::{
    array::RecordBatch,
    compute::{SortOptions, concat_batches},
    datatypes::{Schema, SchemaRef},
};
use datafusion::{
    common::{
        DataFusionError, Result, Statistics, assert_eq_or_internal_err, internal_err, stats::Precision,
        tree_node::TreeNodeRecursion,
    },
    execution::{SendableRecordBatchStream, TaskContext},
    physical_expr::{
        Distribution, EquivalenceProperties, LexOrdering, OrderingRequirements, PhysicalExpr, PhysicalSortExpr,
        expressions::Column,
    },
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, Partitioning, PlanProperties,
        StatisticsArgs,
        execution_plan::{Boundedness, CardinalityEffect, EmissionType},
        metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet},
        stream::RecordBatchStreamAdapter,
    },
};
use futures::{StreamExt, stream};

use super::fold;

/// Number of columns at the end of the input that order the versions of a row and are not part of
/// the output.
pub(super) const HIDDEN_COLUMNS: usize = 2;

/// Ascending, nulls first: how data files are sorted.
pub(super) const ASCENDING: SortOptions = SortOptions { descending: false, nulls_first: true };

/// Folds rows of equal keys into one.
///
/// The input's last [`HIDDEN_COLUMNS`] columns order the versions of a row and are dropped. Asks
/// for one partition, sorted by (keys, hidden columns), which the optimizer provides by merging
/// sorted files and sorting the rest. No filter and no limit passes through this node: a Parquet
/// source takes a filter as a hint, lets other rows through, and yet counts the filtered column as
/// constant in its order, so that runs would come apart.
#[derive(Debug)]
pub(super) struct MergeExec {
    input: Arc<dyn ExecutionPlan>,
    keys: Vec<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl MergeExec {
    /// Returns a node that folds the rows of `input`; `keys` are indices of its columns, tags
    /// before time.
    pub(super) fn try_new(input: Arc<dyn ExecutionPlan>, keys: Vec<usize>) -> Result<Self> {
        let input_schema = input.schema();
        let visible = input_schema.fields().len().saturating_sub(HIDDEN_COLUMNS);
        let schema: SchemaRef =
            Arc::new(Schema::new(input_schema.fields().iter().take(visible).map(Arc::clone).collect::<Vec<_>>()));
        let ordering = sort_expressions(&schema, keys.iter().copied());
        let properties = PlanProperties::new(
            EquivalenceProperties::new_with_orderings(schema, ordering),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self { input, keys, properties: Arc::new(properties), metrics: ExecutionPlanMetricsSet::new() })
    }
}

/// Returns the ordering by `columns`, ascending.
pub(super) fn sort_expressions(schema: &SchemaRef, columns: impl Iterator<Item = usize>) -> Option<LexOrdering> {
    let fields = columns.filter_map(|index| schema.fields().get(index).map(|field| (index, field.name())));
    LexOrdering::new(fields.map(|(index, name)| PhysicalSortExpr::new(Arc::new(Column::new(name, index)), ASCENDING)))
}

impl DisplayAs for MergeExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.schema();
        let names = self.keys.iter().filter_map(|key| schema.fields().get(*key)).map(|field| field.name().as_str());
        let names = names.collect::<Vec<_>>().join(", ");
        match t {
            DisplayFormatType::TreeRender => writeln!(f, "keys={names}"),
            _ => write!(f, "MergeExec: keys=[{names}]"),
        }
    }
}

impl ExecutionPlan for MergeExec {
    fn name(&self) -> &'static str {
        "MergeExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let schema = self.input.schema();
        let visible = self.schema().fields().len();
        let columns = self.keys.iter().copied().chain(visible..visible + HIDDEN_COLUMNS);
        vec![sort_expressions(&schema, columns).map(OrderingRequirements::from)]
    }

    /// It does, but says no: a sort above is not to go below, where rows have to be in this order
    /// and in no other.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(Self::try_new(input, self.keys.clone())?)),
            _ => internal_err!("MergeExec has one input"),
        }
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let mut recursion = TreeNodeRecursion::Continue;
        for sort in sort_expressions(&self.input.schema(), self.keys.iter().copied()).into_iter().flatten() {
            recursion = recursion.visit_sibling(|| f(&sort.expr))?;
        }
        Ok(recursion)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        assert_eq_or_internal_err!(partition, 0, "MergeExec has one partition");
        let folding = Folding {
            input: self.input.execute(0, context)?,
            schema: self.schema(),
            keys: self.keys.clone(),
            held: None,
            metrics: BaselineMetrics::new(&self.metrics, partition),
        };
        let batches = stream::try_unfold(folding, |mut folding| async move {
            Ok::<_, DataFusionError>(folding.next().await?.map(|batch| (batch, folding)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
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

/// A stream of sorted batches on its way to folded ones.
struct Folding {
    input: SendableRecordBatchStream,
    schema: SchemaRef,
    keys: Vec<usize>,
    /// Rows whose last run may go on in the next batch.
    held: Option<RecordBatch>,
    metrics: BaselineMetrics,
}

impl Folding {
    /// Returns the next batch that is complete.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(batch) = self.input.next().await {
            let batch = batch?;
            if batch.num_rows() == 0 {
                continue;
            }
            let compute = self.metrics.elapsed_compute().clone();
            let _timer = compute.timer();
            if let Some(ready) = self.push(fold::without_hidden(&batch, &self.schema)?)? {
                self.metrics.record_output(ready.num_rows());
                return Ok(Some(ready));
            }
        }
        let Some(rest) = self.held.take() else { return Ok(None) };
        let rest = fold::fold(&rest, &self.keys)?;
        self.metrics.record_output(rest.num_rows());
        Ok(Some(rest))
    }

    /// Takes the next rows in order; returns earlier ones that no later row can change.
    fn push(&mut self, batch: RecordBatch) -> Result<Option<RecordBatch>> {
        let Some(held) = mem::take(&mut self.held) else {
            self.held = Some(batch);
            return Ok(None);
        };
        if !fold::continues(&held, &batch, &self.keys)? {
            self.held = Some(batch);
            return Ok(Some(fold::fold(&held, &self.keys)?));
        }
        // Only the last row can still change; holding no more keeps memory bounded however long a
        // run is.
        let folded = fold::fold(&concat_batches(&self.schema, [&held, &batch])?, &self.keys)?;
        let complete = folded.num_rows().saturating_sub(1);
        self.held = Some(folded.slice(complete, folded.num_rows() - complete));
        Ok((complete > 0).then(|| folded.slice(0, complete)))
    }
}
