//! The scan of some data files, as the leaf of a part that is executed elsewhere.

use std::{fmt, sync::Arc};

use datafusion::{
    common::{Result, Statistics, internal_err, tree_node::TreeNodeRecursion},
    datasource::{physical_plan::FileScanConfig, source::DataSourceExec},
    execution::{SendableRecordBatchStream, TaskContext},
    physical_expr::PhysicalExpr,
    physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, StatisticsArgs, metrics::MetricsSet},
};
use url::Url;

use super::super::times::TimedSource;

/// See the module. Beside the scan it has the workers that its variants are for, in their order.
#[derive(Debug, Clone)]
pub(super) struct SentScan {
    scan: Arc<dyn ExecutionPlan>,
    workers: Arc<[Url]>,
}

impl SentScan {
    pub(super) fn new(scan: Arc<dyn ExecutionPlan>, workers: Arc<[Url]>) -> Self {
        Self { scan, workers }
    }

    pub(super) fn scan(&self) -> &Arc<dyn ExecutionPlan> {
        &self.scan
    }

    pub(super) fn workers(&self) -> &[Url] {
        &self.workers
    }
}

/// Returns what a scan of data files reads, if it reads nothing else and could as well be made
/// anew from what the wire has of it ([`wire`](super::wire)).
pub(super) fn scanned(plan: &Arc<dyn ExecutionPlan>) -> Option<(&FileScanConfig, &TimedSource)> {
    let source = plan.downcast_ref::<DataSourceExec>()?;
    let config = source.data_source().downcast_ref::<FileScanConfig>()?;
    let timed = config.file_source().downcast_ref::<TimedSource>()?;
    let is_plain = config.output_ordering.is_empty()
        && config.output_partitioning.is_none()
        && config.batch_size.is_none()
        && !config.preserve_order;
    is_plain.then_some((config, timed))
}

impl DisplayAs for SentScan {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.scan.fmt_as(format, f)
    }
}

impl ExecutionPlan for SentScan {
    fn name(&self) -> &'static str {
        "SentScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.scan.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match children.is_empty() {
            true => Ok(self),
            false => internal_err!("a scan has no input"),
        }
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.scan.apply_expressions(f)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.scan.execute(partition, context)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.scan.metrics()
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        self.scan.statistics_from_inputs(inputs, args)
    }
}
