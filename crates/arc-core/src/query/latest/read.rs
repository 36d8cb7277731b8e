//! Reads some columns of some rows of one data file, on all cores, in the file's order.

use std::{iter, ops::Range, sync::Arc};

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use datafusion::{
    common::{DataFusionError, Result, runtime::SpawnedTask},
    datasource::{
        physical_plan::{FileGroup, FileScanConfigBuilder, parquet::ParquetRowSelection},
        source::DataSourceExec,
        table_schema::TableSchema,
    },
    execution::{SendableRecordBatchStream, TaskContext},
    physical_expr::PhysicalExpr,
    physical_plan::ExecutionPlan,
};
use futures::{StreamExt, TryStreamExt, stream};
use parquet::arrow::arrow_reader::RowSelection;

use super::super::{files, merge, session, statistics, texts};
use crate::model::DataFile;

/// Rows for which a task of its own pays.
const ROWS_PER_TASK: u64 = 1 << 18;

/// Reads the data files of one table.
#[derive(Debug, Clone)]
pub(super) struct DataFileReader {
    /// All columns of the table.
    pub(super) schema: SchemaRef,
    pub(super) context: Arc<TaskContext>,
}

/// Which rows of a file.
#[derive(Debug, Clone, Copy)]
pub(super) enum WhichRows<'a> {
    /// All that `predicate` may hold for, each with its number in one more column at the end.
    Numbered { predicate: Option<&'a Arc<dyn PhysicalExpr>> },
    /// Those with these numbers, which ascend.
    Chosen(&'a [u64]),
}

impl DataFileReader {
    /// Returns streams of the rows, one after the other.
    pub(super) fn streams(
        &self,
        file: &DataFile,
        columns: &[usize],
        rows: WhichRows<'_>,
    ) -> Result<Vec<SendableRecordBatchStream>> {
        let total = size(file.rows)?;
        let tasks = size(file.rows / ROWS_PER_TASK)?.clamp(1, self.context.session_config().target_partitions());
        let pieces: Vec<Vec<Range<usize>>> = match rows {
            WhichRows::Numbered { .. } => {
                let step = total.div_ceil(tasks).max(1);
                (0..total).step_by(step).map(|start| iter::once(start..total.min(start + step)).collect()).collect()
            }
            WhichRows::Chosen(numbers) => {
                let pieces = numbers.chunks(numbers.len().div_ceil(tasks).max(1));
                pieces.map(ranges).collect::<Result<_>>()?
            }
        };
        let known = statistics::of_file(file, &self.schema, None);
        let groups = pieces.into_iter().map(|ranges| {
            let selection = RowSelection::from_consecutive_ranges(ranges.into_iter(), total);
            let listed = files::list(file, Vec::new(), known.clone())?;
            Ok(FileGroup::new(vec![listed.with_extension(ParquetRowSelection::new(selection))]))
        });
        let groups = groups.collect::<Result<Vec<_>>>()?;
        let partitions = groups.len();
        let plan = self.plan(file, groups, columns, rows)?;
        (0..partitions).map(|partition| plan.execute(partition, Arc::clone(&self.context))).collect()
    }

    fn plan(
        &self,
        file: &DataFile,
        groups: Vec<FileGroup>,
        columns: &[usize],
        rows: WhichRows<'_>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut schema = TableSchema::builder(Arc::clone(&self.schema));
        let mut projection = columns.to_vec();
        if let WhichRows::Numbered { .. } = rows {
            schema = schema.with_virtual_columns(vec![merge::row_field()]);
            projection.push(self.schema.fields().len());
        }
        let options = self.context.session_config().options();
        let mut source = files::source(options, &self.context.runtime_env(), schema.build())?;
        if let WhichRows::Numbered { predicate: Some(predicate) } = rows {
            source = source.with_predicate(Arc::clone(predicate));
        }
        let config = FileScanConfigBuilder::new(session::data_url()?, Arc::new(source))
            .with_file_groups(groups)
            .with_projection_indices(Some(projection))?
            .with_expr_adapter(texts::adapter(&self.schema, [file]))
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }
}

/// Returns all batches of `streams`, in order; each is read by a task of its own.
pub(super) async fn collect(streams: Vec<SendableRecordBatchStream>) -> Result<Vec<RecordBatch>> {
    let tasks: Vec<_> = streams.into_iter().map(|rows| SpawnedTask::spawn(rows.try_collect::<Vec<_>>())).collect();
    let batches = stream::iter(tasks).then(joined).try_collect::<Vec<_>>().await?;
    Ok(batches.into_iter().flatten().collect())
}

/// Returns what a task returned.
pub(super) async fn joined<T: 'static>(task: SpawnedTask<Result<T>>) -> Result<T> {
    task.join().await.map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))?
}

/// Makes ranges of ascending numbers.
fn ranges(numbers: &[u64]) -> Result<Vec<Range<usize>>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for number in numbers {
        let number = size(*number)?;
        match ranges.last_mut() {
            Some(range) if range.end == number => range.end += 1,
            _ => ranges.push(number..number + 1),
        }
    }
    Ok(ranges)
}

fn size(number: u64) -> Result<usize> {
    usize::try_from(number).map_err(|e| DataFusionError::External(e.into()))
}
