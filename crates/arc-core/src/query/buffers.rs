//! Scan of unflushed rows.
//!
//! Makes the columns that are asked for, of the rows that meet the conditions, while they are read:
//! nothing is made when a query is planned, and no more than some thousand rows are held at a time.

use std::{fmt, sync::Arc};

use arrow::{
    array::RecordBatch,
    datatypes::{Field, SchemaRef},
};
use datafusion::{
    catalog::Session,
    common::{
        ColumnStatistics, Result, Statistics, config::ConfigOptions, project_schema, stats::Precision,
        tree_node::TreeNodeRecursion,
    },
    datasource::source::{DataSource, DataSourceExec},
    execution::{SendableRecordBatchStream, TaskContext},
    physical_expr::{
        EquivalenceProperties, PhysicalExpr, expressions::DynamicFilterTracking, projection::ProjectionExprs,
        utils::reassign_expr_columns,
    },
    physical_expr_common::physical_expr::is_volatile,
    physical_plan::{
        DisplayFormatType, ExecutionPlan, Partitioning,
        coop::cooperative,
        execution_plan::SchedulingType,
        filter_pushdown::{FilterPushdownPropagation, PushedDown},
        metrics::{BaselineMetrics, ExecutionPlanMetricsSet},
        projection::{all_alias_free_columns, new_projections_for_columns},
        stream::RecordBatchStreamAdapter,
    },
};
use futures::{TryStreamExt, future, stream};

use super::{buffer_filter::Filter, error::external, statistics, times::TimeRange};
use crate::{buffer::ChunkRows, model::TIME_COLUMN, view::BufferPart};

/// Rows that a partition has at least, if there are more partitions.
const PARTITION_ROWS: usize = 32 << 10;
/// Batches whose rows conditions look at at a time: few of them may be left.
const LOOK_BATCHES: usize = 8;

/// Returns a scan of those rows of `parts` that have one of these times, in any order, spread over
/// as many partitions as pay.
pub(super) fn scan(
    state: &dyn Session,
    table: &SchemaRef,
    parts: &[&BufferPart],
    projection: Option<&Vec<usize>>,
    times: TimeRange,
) -> Result<Arc<dyn ExecutionPlan>> {
    let in_time = parts.iter().all(|part| times.covers(TimeRange::new(part.min_time, part.max_time)));
    let rows = parts.iter().map(|part| part.row_count()).sum();
    let min_time = parts.iter().map(|part| part.min_time).min();
    let time_range = min_time.zip(parts.iter().map(|part| part.max_time).max());
    Ok(DataSourceExec::from_data_source(BufferSource {
        partitions: spread(parts, rows, state.config().target_partitions()).into(),
        columns: projection.cloned().unwrap_or_else(|| (0..table.fields().len()).collect()),
        output: project_schema(table, projection)?,
        table: Arc::clone(table),
        times: (!in_time).then_some(times),
        conditions: Vec::new(),
        rows,
        time_range,
        fetch: None,
        metrics: ExecutionPlanMetricsSet::new(),
    }))
}

/// Returns the rows of each partition: about as many of them in each.
fn spread(parts: &[&BufferPart], rows: usize, most: usize) -> Vec<Vec<ChunkRows>> {
    let partitions = (rows / PARTITION_ROWS).clamp(1, most.max(1));
    let per_partition = rows.div_ceil(partitions).max(1);
    let mut spread = vec![Vec::new()];
    let mut room = per_partition;
    for part in parts {
        let mut start = 0;
        while start < part.row_count() {
            if room == 0 {
                spread.push(Vec::new());
                room = per_partition;
            }
            let taken = room.min(part.row_count() - start);
            spread.last_mut().into_iter().for_each(|last| last.push(part.rows.slice(start, taken)));
            (start, room) = (start + taken, room - taken);
        }
    }
    spread
}

/// Unflushed rows. It knows their range of times, so that `min(time)` needs no scan.
#[derive(Debug, Clone)]
struct BufferSource {
    partitions: Arc<[Vec<ChunkRows>]>,
    /// All columns of the table.
    table: SchemaRef,
    /// The columns asked for, as indices in `table`.
    columns: Vec<usize>,
    output: SchemaRef,
    /// The times asked for, where some row may have another.
    times: Option<TimeRange>,
    /// What rows must meet beside that, over `table`.
    conditions: Vec<Arc<dyn PhysicalExpr>>,
    /// Number of rows and range of their times, before any condition.
    rows: usize,
    time_range: Option<(i64, i64)>,
    fetch: Option<usize>,
    metrics: ExecutionPlanMetricsSet,
}

impl BufferSource {
    fn column_statistics(&self, field: &Field) -> ColumnStatistics {
        match self.time_range {
            Some((min, max)) if field.name() == TIME_COLUMN => statistics::of_time(min, max),
            _ => ColumnStatistics::new_unknown(),
        }
    }

    /// Returns whether conditions may leave few of the rows from the start: those of a sort do once
    /// some have been read.
    fn leaves_few(&self) -> bool {
        let changes = |condition| DynamicFilterTracking::classify(condition).contains_dynamic_filter();
        self.has_conditions() && !self.conditions.iter().any(changes)
    }

    fn has_conditions(&self) -> bool {
        self.times.is_some() || !self.conditions.is_empty()
    }
}

impl DataSource for BufferSource {
    fn open(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let batch_rows = context.session_config().batch_size();
        let reading = Reading {
            rows: self.partitions.get(partition).cloned().unwrap_or_default().into_iter(),
            current: None,
            filter: Filter::new(&self.table, self.times, &self.conditions)?,
            step: if self.leaves_few() { batch_rows * LOOK_BATCHES } else { batch_rows },
            columns: self.columns.clone(),
            output: Arc::clone(&self.output),
            left: self.fetch.unwrap_or(usize::MAX),
            metrics: BaselineMetrics::new(&self.metrics, partition),
        };
        // Others get their turn, and a query that ran out of time its end, also where no row is
        // left for long.
        let batches = cooperative(RecordBatchStreamAdapter::new(Arc::clone(&self.output), stream::iter(reading)));
        let batches = batches.try_filter(|batch| future::ready(batch.num_rows() > 0));
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.output), batches)))
    }

    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if t == DisplayFormatType::TreeRender {
            return writeln!(f, "format=buffer\nrows={}", self.rows);
        }
        write!(f, "buffer rows={}, partitions={}", self.rows, self.partitions.len())?;
        if let Some(times) = self.times {
            write!(f, ", times={}..={}", times.min, times.max)?;
        }
        for (at, condition) in self.conditions.iter().enumerate() {
            write!(f, "{} {condition}", if at == 0 { ", where=" } else { " AND" })?;
        }
        self.fetch.map_or(Ok(()), |fetch| write!(f, ", fetch={fetch}"))
    }

    fn output_partitioning(&self) -> Partitioning {
        Partitioning::UnknownPartitioning(self.partitions.len())
    }

    fn eq_properties(&self) -> EquivalenceProperties {
        EquivalenceProperties::new(Arc::clone(&self.output))
    }

    fn scheduling_type(&self) -> SchedulingType {
        SchedulingType::Cooperative
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        if partition.is_some() {
            return Ok(Arc::new(Statistics::new_unknown(&self.output)));
        }
        let known = Statistics {
            num_rows: Precision::Exact(self.rows),
            total_byte_size: Precision::Absent,
            column_statistics: self.output.fields().iter().map(|field| self.column_statistics(field)).collect(),
        };
        let is_exact = !self.has_conditions() && self.fetch.is_none();
        Ok(Arc::new(if is_exact { known } else { known.to_inexact() }))
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn DataSource>> {
        Some(Arc::new(Self { fetch: limit, ..self.clone() }))
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }

    fn metrics(&self) -> ExecutionPlanMetricsSet {
        self.metrics.clone()
    }

    fn try_swapping_with_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn DataSource>>> {
        let expressions: Vec<_> = projection.iter().cloned().collect();
        if !all_alias_free_columns(&expressions) {
            return Ok(None);
        }
        let columns = new_projections_for_columns(&expressions, &self.columns);
        let output = project_schema(&self.table, Some(&columns))?;
        Ok(Some(Arc::new(Self { columns, output, ..self.clone() })))
    }

    /// Takes what is known of a sort with a limit, too: of rows that come too late no other column
    /// is made.
    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn DataSource>>> {
        let mut taking = self.clone();
        let mut pushed = Vec::with_capacity(filters.len());
        for filter in filters {
            if is_volatile(&filter) || self.fetch.is_some() {
                pushed.push(PushedDown::No);
            } else {
                pushed.push(PushedDown::Yes);
                taking.conditions.push(reassign_expr_columns(filter, &self.table)?);
            }
        }
        let is_other = taking.conditions.len() > self.conditions.len();
        Ok(FilterPushdownPropagation { filters: pushed, updated_node: is_other.then(|| Arc::new(taking) as _) })
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

/// The rows of one partition while they are read.
struct Reading {
    rows: std::vec::IntoIter<ChunkRows>,
    /// The rows that are being read, and how many of them have been.
    current: Option<(ChunkRows, usize)>,
    filter: Filter,
    step: usize,
    columns: Vec<usize>,
    output: SchemaRef,
    /// How many rows are still wanted.
    left: usize,
    metrics: BaselineMetrics,
}

impl Reading {
    /// Returns the next rows, some or all of which may have been left out.
    fn next_rows(&mut self) -> Option<ChunkRows> {
        loop {
            let (rows, done) = match self.current.take() {
                Some(current) => current,
                None => (self.rows.next()?, 0),
            };
            if done < rows.len() {
                let next = rows.slice(done, self.step);
                self.current = Some((rows, done + self.step));
                return Some(next);
            }
        }
    }

    fn made(&self, rows: &ChunkRows) -> Result<RecordBatch> {
        let wanted = self.filter.apply(rows)?.slice(0, self.left);
        match wanted.len() {
            0 => Ok(RecordBatch::new_empty(Arc::clone(&self.output))),
            _ => wanted.batch(&self.output, &self.columns).map_err(external),
        }
    }
}

/// Batches without a row are among them: for rows that were looked at in vain.
impl Iterator for Reading {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let rows = self.next_rows()?;
        let time = self.metrics.elapsed_compute().clone();
        let made = time.timer();
        let batch = self.made(&rows);
        made.done();
        if let Ok(batch) = &batch {
            self.left -= batch.num_rows();
            self.metrics.record_output(batch.num_rows());
        }
        Some(batch)
    }
}
