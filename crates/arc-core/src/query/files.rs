//! Scan of data files: a stock Parquet source whose statistics come from the manifest.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use chrono::DateTime;
use datafusion::{
    catalog::Session,
    common::{
        Result, ScalarValue, Statistics,
        config::{ConfigOptions, TableParquetOptions},
    },
    datasource::{
        listing::PartitionedFile,
        physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource, parquet::ParquetFileReaderFactory},
        source::DataSourceExec,
        table_schema::TableSchema,
    },
    execution::{config::SessionConfig, runtime_env::RuntimeEnv},
    physical_plan::ExecutionPlan,
};
use object_store::path::Path as ObjectPath;

use super::{
    readers::IndexedReaders,
    session, statistics, texts,
    times::{InTimeOrder, TimeRange, TimedSource},
};
use crate::{datafile::FileChecks, model::DataFile};

/// The rows that a scan is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct WantedRows {
    /// No others may come.
    pub(super) times: TimeRange,
    /// Whether conditions on tags leave few of them.
    pub(super) few: bool,
}

/// Returns a scan of `files`, in any order, spread over as many partitions as pay.
pub(super) fn scan(
    state: &dyn Session,
    schema: &SchemaRef,
    files: &[&Arc<DataFile>],
    projection: Option<&Vec<usize>>,
    wanted: WantedRows,
) -> Result<Arc<dyn ExecutionPlan>> {
    let known: Vec<Statistics> = files.iter().map(|file| statistics::of_file(file, schema, projection)).collect();
    let total = Statistics::try_merge_iter(&known, schema)?;
    let listed = files.iter().zip(known).map(|(file, known)| list_plain(file, known));
    let groups = FileGroup::new(listed.collect::<Result<Vec<_>>>()?).split_files(state.config().target_partitions());
    let has_all = files.iter().all(|file| wanted.times.covers(TimeRange::new(file.min_time, file.max_time)));
    let times = if has_all { TimeRange::ALL } else { wanted.times };
    let wanted = WantedRows { times, ..wanted };
    let source = timed_source((state.config(), state.runtime_env()), schema, wanted)?;
    let config = FileScanConfigBuilder::new(session::data_url()?, Arc::new(source))
        .with_file_groups(groups)
        .with_statistics(total)
        .with_projection_indices(projection.cloned())?
        .with_expr_adapter(texts::adapter(schema, files.iter().map(|file| &***file)))
        .build();
    Ok(DataSourceExec::from_data_source(config))
}

/// Returns the source of a scan that gives the rows that are wanted.
pub(super) fn timed_source(
    (config, runtime): (&SessionConfig, &RuntimeEnv),
    schema: &SchemaRef,
    wanted: WantedRows,
) -> Result<TimedSource> {
    let source = source(config.options(), runtime, TableSchema::from(Arc::clone(schema)))?;
    // Columns are decoded only where the conditions on others hold: half the time where few rows
    // meet them.
    let source = source.with_pushdown_filters(true);
    TimedSource::new(config, source, (wanted.times != TimeRange::ALL).then_some(wanted.times), wanted.few)
}

/// Returns a file as a scan lists it that reads nothing but data files.
pub(super) fn list_plain(file: &Arc<DataFile>, known: Statistics) -> Result<PartitionedFile> {
    let listed = list(file, Vec::new(), known)?.with_extension(Arc::clone(file));
    Ok(if file.sorted_by.is_empty() { listed } else { listed.with_extension(InTimeOrder) })
}

/// Returns the Parquet source of a scan, with the session's settings. It keeps the footers and page
/// indexes that it reads.
pub(super) fn source(options: &ConfigOptions, runtime: &RuntimeEnv, schema: TableSchema) -> Result<ParquetSource> {
    let options = TableParquetOptions { global: options.execution.parquet.clone(), ..Default::default() };
    let store = runtime.object_store(session::data_url()?)?;
    let footers = runtime.cache_manager.get_file_metadata_cache();
    let reader: Arc<dyn ParquetFileReaderFactory> = Arc::new(IndexedReaders::new(store, footers));
    Ok(ParquetSource::new(schema).with_table_parquet_options(options).with_parquet_file_reader_factory(reader))
}

/// Returns a file as DataFusion lists it; `partition_values` are appended to each of its rows.
pub(super) fn list(file: &DataFile, partition_values: Vec<ScalarValue>, known: Statistics) -> Result<PartitionedFile> {
    let mut listed = PartitionedFile::new(String::new(), file.bytes);
    // `parse` takes the path as it is on disk; `from` would encode the encoded names once more.
    listed.object_meta.location = ObjectPath::parse(&file.path).map_err(object_store::Error::from)?;
    // A kept footer counts for the same size and time: so a time that is another for other bytes.
    listed.object_meta.last_modified = DateTime::from_timestamp(i64::from(file.crc32c), 0).unwrap_or_default();
    let listed = listed.with_extension(FileChecks::of(file));
    Ok(listed.with_partition_values(partition_values).with_statistics(Arc::new(known)))
}
