//! Scan of unflushed rows.

use std::{fmt, sync::Arc};

use arrow::{
    array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array},
    compute::cast,
    datatypes::{Field, SchemaRef},
};
use datafusion::{
    catalog::Session,
    common::{ColumnStatistics, Result, Statistics, stats::Precision, tree_node::TreeNodeRecursion},
    datasource::{
        memory::MemorySourceConfig,
        source::{DataSource, DataSourceExec},
    },
    execution::{SendableRecordBatchStream, TaskContext},
    physical_expr::{EquivalenceProperties, LexOrdering, PhysicalExpr, projection::ProjectionExprs},
    physical_plan::{
        DisplayFormatType, ExecutionPlan, Partitioning, execution_plan::SchedulingType, filter::FilterExec,
        project_schema,
    },
};

use super::{deletes, statistics, times::TimeRange};
use crate::{catalog::TIME_COLUMN, view::BufferPart};

/// Returns a scan of those rows of `parts` that have one of these times.
pub(super) fn scan_times(
    state: &dyn Session,
    schema: &SchemaRef,
    parts: &[&BufferPart],
    projection: Option<&Vec<usize>>,
    times: TimeRange,
) -> Result<Arc<dyn ExecutionPlan>> {
    if parts.iter().all(|part| times.covers(TimeRange::new(part.min_time, part.max_time))) {
        return scan(state, schema, parts, projection);
    }
    let wanted = projection.cloned().unwrap_or_else(|| (0..schema.fields().len()).collect());
    let (mut read, time) = (wanted.clone(), schema.index_of(TIME_COLUMN)?);
    if !read.contains(&time) {
        read.push(time);
    }
    let all = scan(state, schema, parts, Some(&read))?;
    let in_time = FilterExec::try_new(times.condition(&all.schema())?, all)?;
    deletes::first_columns(Arc::new(in_time), wanted.len())
}

/// Returns a scan of `parts`, in any order, spread over as many partitions as pay.
fn scan(
    state: &dyn Session,
    schema: &SchemaRef,
    parts: &[&BufferPart],
    projection: Option<&Vec<usize>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = project_schema(schema, projection)?;
    let per_partition = parts.len().div_ceil(state.config().target_partitions().max(1)).max(1);
    let widen_all = |parts: &[&BufferPart]| parts.iter().map(|part| widen(&part.batch, &schema)).collect();
    let partitions = parts.chunks(per_partition).map(widen_all).collect::<Result<Vec<_>>>()?;
    let memory = MemorySourceConfig::try_new(&partitions, schema, None)?;
    let rows = parts.iter().map(|part| part.batch.num_rows()).sum();
    let min_time = parts.iter().map(|part| part.min_time).min();
    let time_range = min_time.zip(parts.iter().map(|part| part.max_time).max());
    Ok(DataSourceExec::from_data_source(BufferSource { memory: Arc::new(memory), rows, time_range }))
}

/// Returns `batch` with exactly the columns of `schema`: by name, null where `batch` has none.
pub(super) fn widen(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = schema.fields().iter().map(|field| column(batch, field)).collect::<Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

fn column(batch: &RecordBatch, field: &Field) -> Result<ArrayRef> {
    match batch.column_by_name(field.name()) {
        None => Ok(new_null_array(field.data_type(), batch.num_rows())),
        Some(array) if array.data_type() == field.data_type() => Ok(Arc::clone(array)),
        Some(array) => Ok(cast(array, field.data_type())?),
    }
}

/// An in-memory source that knows its range of times, so that `min(time)` needs no scan, and counts no nulls while a
/// query is planned.
#[derive(Debug, Clone)]
struct BufferSource {
    memory: Arc<dyn DataSource>,
    rows: usize,
    time_range: Option<(i64, i64)>,
}

impl BufferSource {
    fn over(&self, memory: Arc<dyn DataSource>) -> Arc<dyn DataSource> {
        Arc::new(Self { memory, ..self.clone() })
    }

    fn column_statistics(&self, field: &Field) -> ColumnStatistics {
        match self.time_range {
            Some((min, max)) if field.name() == TIME_COLUMN => statistics::of_time(min, max),
            _ => ColumnStatistics::new_unknown(),
        }
    }
}

impl DataSource for BufferSource {
    fn open(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.memory.open(partition, context)
    }

    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match t {
            DisplayFormatType::TreeRender => writeln!(f, "format=buffer")?,
            _ => write!(f, "buffer rows={}, ", self.rows)?,
        }
        self.memory.fmt_as(t, f)
    }

    fn repartitioned(
        &self,
        target_partitions: usize,
        repartition_file_min_size: usize,
        output_ordering: Option<LexOrdering>,
    ) -> Result<Option<Arc<dyn DataSource>>> {
        let memory = self.memory.repartitioned(target_partitions, repartition_file_min_size, output_ordering)?;
        Ok(memory.map(|memory| self.over(memory)))
    }

    fn output_partitioning(&self) -> Partitioning {
        self.memory.output_partitioning()
    }

    fn eq_properties(&self) -> EquivalenceProperties {
        self.memory.eq_properties()
    }

    fn scheduling_type(&self) -> SchedulingType {
        self.memory.scheduling_type()
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        let properties = self.memory.eq_properties();
        let schema = properties.schema();
        if partition.is_some() {
            return Ok(Arc::new(Statistics::new_unknown(schema)));
        }
        let known = Statistics {
            num_rows: Precision::Exact(self.rows),
            total_byte_size: Precision::Absent,
            column_statistics: schema.fields().iter().map(|field| self.column_statistics(field)).collect(),
        };
        Ok(Arc::new(if self.memory.fetch().is_some() { known.to_inexact() } else { known }))
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn DataSource>> {
        self.memory.with_fetch(limit).map(|memory| self.over(memory))
    }

    fn fetch(&self) -> Option<usize> {
        self.memory.fetch()
    }

    fn try_swapping_with_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn DataSource>>> {
        let memory = self.memory.try_swapping_with_projection(projection)?;
        Ok(memory.map(|memory| self.over(memory)))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.memory.apply_expressions(f)
    }
}
