//! Unflushed rows on their way to a merge: made into batches while they are read, some thousand at
//! a time.

use std::{fmt, sync::Arc};

use arrow::{
    array::{ArrayRef, Int64Array, RecordBatch, UInt64Array},
    datatypes::SchemaRef,
};
use datafusion::{
    common::{
        DataFusionError, Result, Statistics, config::ConfigOptions, stats::Precision, tree_node::TreeNodeRecursion,
    },
    datasource::source::DataSource,
    execution::{SendableRecordBatchStream, TaskContext},
    physical_expr::{EquivalenceProperties, PhysicalExpr, projection::ProjectionExprs},
    physical_plan::{
        DisplayFormatType, Partitioning,
        coop::cooperative,
        execution_plan::SchedulingType,
        filter_pushdown::{FilterPushdownPropagation, PushedDown},
        metrics::ExecutionPlanMetricsSet,
        stream::RecordBatchStreamAdapter,
    },
};
use futures::stream;

use super::super::{buffer_filter::Filter, error::external};
use crate::{buffer::ChunkRows, view::BufferPart};

/// Rows of parts, each with the rank of its part and its number there.
#[derive(Debug, Clone)]
pub(super) struct RankedBuffers {
    /// In order of rank.
    parts: Arc<[(u64, ChunkRows)]>,
    /// All columns of the table.
    table: SchemaRef,
    /// Over `table`.
    conditions: Arc<[Arc<dyn PhysicalExpr>]>,
    /// The columns read, as indices in `table`.
    columns: Arc<[usize]>,
    /// Those, then the rank and the number.
    output: SchemaRef,
    metrics: ExecutionPlanMetricsSet,
}

impl RankedBuffers {
    pub(super) fn new(
        parts: &[(u64, &BufferPart)],
        table: &SchemaRef,
        conditions: Vec<Arc<dyn PhysicalExpr>>,
        columns: &[usize],
        output: &SchemaRef,
    ) -> Self {
        Self {
            parts: parts.iter().map(|(rank, part)| (*rank, part.rows.clone())).collect(),
            table: Arc::clone(table),
            conditions: conditions.into(),
            columns: columns.into(),
            output: Arc::clone(output),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// Returns some rows of a part, from the one with this number on, without those that do not
    /// count.
    fn batch(&self, filter: &Filter, rank: u64, rows: &ChunkRows, first: usize) -> Result<RecordBatch> {
        let rows = filter.apply(rows)?;
        let first = i64::try_from(first).map_err(|e| DataFusionError::External(e.into()))?;
        let count = i64::try_from(rows.len()).map_err(|e| DataFusionError::External(e.into()))?;
        let ranks: ArrayRef = Arc::new(UInt64Array::from_value(rank, rows.len()));
        // Numbers only have to ascend: those of the next batch begin after all rows that were
        // looked at here.
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + count));
        let visible = rows.project(&self.columns).map_err(external)?;
        let columns = visible.columns().iter().map(Arc::clone).chain([ranks, numbers]).collect();
        Ok(RecordBatch::try_new(Arc::clone(&self.output), columns)?)
    }
}

impl DataSource for RankedBuffers {
    fn open(&self, _partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let step = context.session_config().batch_size().max(1);
        let filter = Filter::new(&self.table, None, &self.conditions)?;
        let source = self.clone();
        let pieces = (0..source.parts.len()).flat_map({
            let parts = Arc::clone(&source.parts);
            move |part| {
                let rows = parts.get(part).map_or(0, |(_, rows)| rows.len());
                (0..rows).step_by(step).map(move |first| (part, first))
            }
        });
        let batches = pieces.filter_map(move |(part, first)| {
            let (rank, rows) = source.parts.get(part)?;
            Some(source.batch(&filter, *rank, &rows.slice(first, step), first))
        });
        let batches = RecordBatchStreamAdapter::new(Arc::clone(&self.output), stream::iter(batches));
        Ok(Box::pin(cooperative(batches)))
    }

    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "buffer rows={}, to merge", self.parts.iter().map(|(_, rows)| rows.len()).sum::<usize>())
    }

    fn output_partitioning(&self) -> Partitioning {
        Partitioning::UnknownPartitioning(1)
    }

    fn eq_properties(&self) -> EquivalenceProperties {
        EquivalenceProperties::new(Arc::clone(&self.output))
    }

    fn scheduling_type(&self) -> SchedulingType {
        SchedulingType::Cooperative
    }

    fn partition_statistics(&self, _partition: Option<usize>) -> Result<Arc<Statistics>> {
        let rows = Precision::Exact(self.parts.iter().map(|(_, rows)| rows.len()).sum());
        let known = Statistics { num_rows: rows, ..Statistics::new_unknown(&self.output) };
        Ok(Arc::new(if self.conditions.is_empty() { known } else { known.to_inexact() }))
    }

    fn with_fetch(&self, _limit: Option<usize>) -> Option<Arc<dyn DataSource>> {
        None
    }

    fn fetch(&self) -> Option<usize> {
        None
    }

    fn metrics(&self) -> ExecutionPlanMetricsSet {
        self.metrics.clone()
    }

    fn try_swapping_with_projection(&self, _projection: &ProjectionExprs) -> Result<Option<Arc<dyn DataSource>>> {
        Ok(None)
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn DataSource>>> {
        Ok(FilterPushdownPropagation { filters: vec![PushedDown::No; filters.len()], updated_node: None })
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.conditions
            .iter()
            .try_fold(TreeNodeRecursion::Continue, |recursion, condition| recursion.visit_sibling(|| f(condition)))
    }
}
