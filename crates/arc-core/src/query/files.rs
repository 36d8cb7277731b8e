//! Scan of data files: a stock Parquet source whose statistics come from the manifest.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::{
    catalog::Session,
    common::{
        ColumnStatistics as ScanColumn, DataFusionError, Result, ScalarValue, Statistics, config::TableParquetOptions,
        stats::Precision,
    },
    datasource::{
        listing::PartitionedFile,
        physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource},
        source::DataSourceExec,
    },
    physical_plan::ExecutionPlan,
};
use object_store::path::Path as ObjectPath;

use super::session;
use crate::{
    catalog::TIME_COLUMN,
    datafile::{ColumnStatistics, DataFile, StatisticsValue},
};

/// Returns a scan of `files`, which must not be empty.
pub(super) fn scan(
    state: &dyn Session,
    schema: &SchemaRef,
    files: &[Arc<DataFile>],
    projection: Option<&Vec<usize>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let statistics: Vec<Statistics> = files.iter().map(|file| file_statistics(file, schema)).collect();
    let total = Statistics::try_merge_iter(&statistics, schema)?;
    let listed = files.iter().zip(statistics).map(|(file, s)| partitioned_file(file, s)).collect::<Result<Vec<_>>>()?;
    let groups = FileGroup::new(listed).split_files(state.config().target_partitions());
    let options =
        TableParquetOptions { global: state.config_options().execution.parquet.clone(), ..Default::default() };
    let source = ParquetSource::new(Arc::clone(schema)).with_table_parquet_options(options);
    let config = FileScanConfigBuilder::new(session::data_url()?, Arc::new(source))
        .with_file_groups(groups)
        .with_statistics(total)
        .with_projection_indices(projection.cloned())?
        .build();
    Ok(DataSourceExec::from_data_source(config))
}

fn partitioned_file(file: &DataFile, statistics: Statistics) -> Result<PartitionedFile> {
    let mut listed = PartitionedFile::new(String::new(), file.bytes);
    // `parse` takes the path as it is on disk; `from` would encode the encoded names once more.
    listed.object_meta.location = ObjectPath::parse(&file.path).map_err(|e| DataFusionError::External(e.into()))?;
    Ok(listed.with_statistics(Arc::new(statistics)))
}

fn file_statistics(file: &DataFile, schema: &SchemaRef) -> Statistics {
    let columns = schema.fields().iter().map(|field| column_statistics(file, field)).collect();
    Statistics { num_rows: count(file.rows), total_byte_size: Precision::Absent, column_statistics: columns }
}

fn column_statistics(file: &DataFile, field: &Field) -> ScanColumn {
    let mut scan = ScanColumn::new_unknown();
    if field.name() == TIME_COLUMN {
        scan.null_count = Precision::Exact(0);
        scan.min_value = Precision::Exact(time_scalar(file.min_time));
        scan.max_value = Precision::Exact(time_scalar(file.max_time));
        return scan;
    }
    match file.columns.iter().find(|column| column.name == *field.name()) {
        Some(column) => known_column(&mut scan, column, field.data_type()),
        None => scan.null_count = count(file.rows),
    }
    scan
}

fn known_column(scan: &mut ScanColumn, column: &ColumnStatistics, data_type: &DataType) {
    scan.null_count = count(column.null_count);
    scan.min_value = bound(column.min.as_ref(), data_type);
    scan.max_value = bound(column.max.as_ref(), data_type);
}

fn bound(value: Option<&StatisticsValue>, data_type: &DataType) -> Precision<ScalarValue> {
    let Some(value) = value else { return Precision::Absent };
    match (scalar(value, data_type), value) {
        (Some(scalar), StatisticsValue::Text { exact: false, .. }) => Precision::Inexact(scalar),
        (Some(scalar), _) => Precision::Exact(scalar),
        (None, _) => Precision::Absent,
    }
}

fn count(rows: u64) -> Precision<usize> {
    usize::try_from(rows).map_or(Precision::Absent, Precision::Exact)
}

fn time_scalar(time_ns: i64) -> ScalarValue {
    ScalarValue::TimestampNanosecond(Some(time_ns), Some("UTC".into()))
}

/// Returns a manifest value as a scalar of `data_type`, or `None` where the two don't fit.
pub(super) fn scalar(value: &StatisticsValue, data_type: &DataType) -> Option<ScalarValue> {
    Some(match (value, data_type) {
        (StatisticsValue::Text { value, .. }, DataType::Utf8) => ScalarValue::Utf8(Some(value.clone())),
        (_, DataType::Dictionary(key, inner)) => ScalarValue::Dictionary(key.clone(), Box::new(scalar(value, inner)?)),
        (StatisticsValue::Integer(v), DataType::Int64) => ScalarValue::Int64(Some(*v)),
        (StatisticsValue::Unsigned(v), DataType::UInt64) => ScalarValue::UInt64(Some(*v)),
        (StatisticsValue::Float(v), DataType::Float64) => ScalarValue::Float64(Some(*v)),
        (StatisticsValue::Boolean(v), DataType::Boolean) => ScalarValue::Boolean(Some(*v)),
        _ => return None,
    })
}
