//! The plan node that takes the place of the first phase of an aggregate.

use std::{fmt, mem, sync::Arc};

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use datafusion::{
    common::{Constraints, DataFusionError, Result, internal_err, tree_node::TreeNodeRecursion},
    execution::{
        SendableRecordBatchStream, TaskContext,
        memory_pool::{MemoryConsumer, MemoryReservation},
    },
    physical_expr::PhysicalExpr,
    physical_plan::{
        ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements,
        PlanProperties, ReplaceChildrenOptions,
        aggregates::AggregateExec,
        metrics::{BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet},
        stream::{EmptyRecordBatchStream, RecordBatchStreamAdapter},
        streaming::{PartitionStream, StreamingTableExec},
    },
};
use futures::{StreamExt, stream};
use parking_lot::Mutex;

use super::{groups::Groups, keys::Keys};

/// See the module.
#[derive(Debug)]
pub(in crate::query) struct RunsExec {
    /// What DataFusion had planned.
    partial: AggregateExec,
    keys: Arc<Keys>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl RunsExec {
    pub(super) fn new(partial: AggregateExec, keys: Keys) -> Self {
        // A group may come several times.
        let properties = partial.properties().as_ref().clone().with_constraints(Constraints::default());
        Self {
            partial,
            keys: Arc::new(keys),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// Returns what DataFusion had planned.
    #[cfg(feature = "distributed")]
    pub(in crate::query) fn partial(&self) -> &AggregateExec {
        &self.partial
    }
}

impl DisplayAs for RunsExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys =
            self.partial.group_expr().expr().iter().map(|(key, _)| key.to_string()).collect::<Vec<_>>().join(", ");
        let functions = self.partial.aggr_expr().iter().map(|function| function.name()).collect::<Vec<_>>().join(", ");
        match t {
            DisplayFormatType::TreeRender => writeln!(f, "gby={keys}\naggr={functions}"),
            _ => write!(f, "RunsExec: gby=[{keys}], aggr=[{functions}]"),
        }
    }
}

impl ExecutionPlan for RunsExec {
    fn name(&self) -> &'static str {
        "RunsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.partial.input_distribution_requirements()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![self.partial.input()]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let partial = over(&self.partial, children)?;
        let Some(partial) = partial.downcast_ref::<AggregateExec>() else {
            return internal_err!("an aggregate became something else");
        };
        let Some(keys) = Keys::new(partial.group_expr(), &partial.input().schema())? else {
            return internal_err!("the input of RunsExec has other columns");
        };
        Ok(Arc::new(Self::new(partial.clone(), keys)))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.partial.apply_expressions(f)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let consumer = MemoryConsumer::new(format!("RunsExec[{partition}]"));
        let counter = |name: &'static str| MetricBuilder::new(&self.metrics).counter(name, partition);
        let grouping = Grouping {
            input: self.partial.input().execute(partition, Arc::clone(&context))?,
            groups: Groups::new(&self.partial, Arc::clone(&self.keys), self.schema())?,
            rest: None,
            reservation: consumer.register(context.memory_pool()),
            partial: self.partial.clone(),
            context,
            metrics: BaselineMetrics::new(&self.metrics, partition),
            rows: counter("rows_in_runs"),
            runs: counter("runs"),
        };
        let batches = stream::try_unfold(grouping, |mut grouping| async move {
            Ok::<_, DataFusionError>(grouping.next().await?.map(|batch| (batch, grouping)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// Returns the same aggregate over other rows.
fn over(partial: &AggregateExec, input: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
    let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::new(partial.clone()).replace_children(input, recompute)
}

/// One partition on its way from rows to groups.
struct Grouping {
    input: SendableRecordBatchStream,
    groups: Groups,
    /// What is left to give once the input is at its end or handed over.
    rest: Option<SendableRecordBatchStream>,
    reservation: MemoryReservation,
    partial: AggregateExec,
    context: Arc<TaskContext>,
    metrics: BaselineMetrics,
    rows: Count,
    runs: Count,
}

impl Grouping {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let batch = match &mut self.rest {
            Some(rest) => rest.next().await.transpose()?,
            None => self.next_groups().await?,
        };
        if let Some(batch) = &batch {
            self.metrics.record_output(batch.num_rows());
        }
        Ok(batch)
    }

    async fn next_groups(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(batch) = self.input.next().await.transpose()? {
            self.add(&batch)?;
            let is_full = self.groups.count() >= self.context.session_config().batch_size();
            // What cannot be held is given on: the second phase is made to spill.
            if is_full || self.reservation.try_resize(self.groups.size()).is_err() {
                return self.give().map(Some);
            }
        }
        let empty = EmptyRecordBatchStream::new(self.partial.schema());
        let rest = self.rest.insert(Box::pin(empty));
        match self.groups.count() {
            0 => rest.next().await.transpose(),
            _ => self.groups.take().map(Some),
        }
    }

    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let _timer = self.metrics.elapsed_compute().timer();
        self.rows.add(batch.num_rows());
        self.runs.add(self.groups.add(batch)?);
        Ok(())
    }

    /// Returns the groups that are held. Where runs are short, DataFusion takes the rows that are
    /// left.
    fn give(&mut self) -> Result<RecordBatch> {
        if self.groups.are_short() {
            self.rest = Some(self.hand_over()?);
        }
        let groups = self.groups.take()?;
        self.reservation.free();
        Ok(groups)
    }

    fn hand_over(&mut self) -> Result<SendableRecordBatchStream> {
        let schema = self.input.schema();
        let left = mem::replace(&mut self.input, Box::pin(EmptyRecordBatchStream::new(Arc::clone(&schema))));
        let left = Arc::new(Left { schema: Arc::clone(&schema), rows: Mutex::new(Some(left)) });
        let left = StreamingTableExec::try_new(schema, vec![left], None, None, false, None)?;
        let partial = over(&self.partial, vec![Arc::new(left)])?;
        partial.execute(0, Arc::clone(&self.context))
    }
}

/// The rows that are left of a partition, to be read once.
struct Left {
    schema: SchemaRef,
    rows: Mutex<Option<SendableRecordBatchStream>>,
}

impl fmt::Debug for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Left").finish_non_exhaustive()
    }
}

impl PartitionStream for Left {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = self.rows.lock().take();
        rows.unwrap_or_else(|| Box::pin(EmptyRecordBatchStream::new(Arc::clone(&self.schema))))
    }
}
