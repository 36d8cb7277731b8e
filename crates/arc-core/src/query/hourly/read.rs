//! The aggregates by hour of one file, as states of functions.

use std::{collections::BTreeSet, ops::Range, sync::Arc};

use arrow::{
    array::{
        Array, ArrayRef, AsArray, BooleanArray, Int64Array, PrimitiveArray, RecordBatch, UInt32Array, UInt64Array,
        new_null_array,
    },
    compute::{and, cast, concat_batches, filter_record_batch},
    datatypes::{DataType, Decimal128Type, Int64Type, SchemaRef, TimestampNanosecondType, UInt32Type, UInt64Type},
};
use bytes::Bytes;
use datafusion::{
    common::{DataFusionError, Result, exec_datafusion_err, exec_err},
    datasource::listing::PartitionedFile,
    physical_plan::metrics::ExecutionPlanMetricsSet,
};
use futures::{FutureExt, TryStreamExt, future::BoxFuture};
use parquet::{
    arrow::{
        ParquetRecordBatchStreamBuilder, ProjectionMask, arrow_reader::ArrowReaderOptions,
        async_reader::AsyncFileReader,
    },
    errors::Result as ParquetResult,
    file::metadata::{ParquetMetaData, ParquetMetaDataReader},
};

use super::{
    super::{
        functions::Summed,
        runs::{Keys, StateKind},
    },
    question::AskedValue,
    rule::Hours,
};
use crate::{
    datafile::hourly::{GREATEST, HOUR, HOUR_NS, LEAST, ROWS, SUM, TAG, VALUES},
    model::{DataFile, HourlyBlock, TIME_COLUMN},
};

/// Returns a row for each hour that is asked for of each series of a file: keys, then states.
///
/// # Errors
///
/// Those of reading, and where the aggregates have not what is asked for.
pub(super) async fn states(
    hours: &Hours,
    file: &PartitionedFile,
    schema: &SchemaRef,
    metrics: &ExecutionPlanMetricsSet,
) -> Result<RecordBatch> {
    let question = &hours.question;
    let known = file.extension::<Arc<DataFile>>().ok_or_else(|| exec_datafusion_err!("it is no data file"))?;
    let block = known.hourly.ok_or_else(|| exec_datafusion_err!("it has none"))?;
    let has = |column: &str| known.columns.iter().any(|known| known.name == column);
    let reader = hours.source.reader().create_reader(0, file.clone(), None, metrics)?;
    let cells = HourCells { batch: read(reader, block, wanted(hours)).await?, has: &has };

    let is_wanted =
        BooleanArray::from_iter(cells.hours()?.values().iter().map(|hour| Some(hours.hours.contains(hour))));
    let conditions = question.conditions.evaluate(&cells.rows_of(&question.conditions)?)?;
    let is_wanted = conditions.iter().try_fold(is_wanted, |is_wanted, condition| {
        let condition = condition.as_boolean_opt().ok_or_else(|| exec_datafusion_err!("a condition is no Boolean"))?;
        // Where nothing can be said, no row is taken.
        Ok::<_, DataFusionError>(and(&is_wanted, condition)?)
    })?;
    let cells = match is_wanted.true_count() == is_wanted.len() {
        true => cells,
        false => HourCells { batch: filter_record_batch(&cells.batch, &is_wanted)?, has: &has },
    };
    let mut columns = question.keys.evaluate(&cells.rows_of(&question.keys)?)?;
    for (kind, value) in &question.values {
        columns.extend(cells.states(*kind, value)?);
    }
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

/// Returns the names of the columns that are read, which need not all be there.
fn wanted(hours: &Hours) -> BTreeSet<String> {
    let question = &hours.question;
    let mut names: BTreeSet<String> = [HOUR, ROWS].map(str::to_owned).into();
    for keys in [&question.keys, &question.conditions] {
        names.extend(keys.schema().fields().iter().map(|field| format!("{TAG}{}", field.name())));
    }
    for (kind, value) in &question.values {
        let AskedValue::Numbers { column, .. } = value else { continue };
        names.insert(format!("{VALUES}{column}"));
        // The sum also tells whether there is such a column.
        names.insert(format!("{}{column}", prefix(*kind)));
    }
    names
}

/// Returns the beginning of the names of columns that have what a function needs.
fn prefix(kind: StateKind) -> &'static str {
    match kind {
        StateKind::Least => LEAST,
        StateKind::Greatest => GREATEST,
        StateKind::Count | StateKind::Sum | StateKind::Average => SUM,
    }
}

async fn read(
    reader: Box<dyn AsyncFileReader + Send>,
    block: HourlyBlock,
    names: BTreeSet<String>,
) -> Result<RecordBatch> {
    let builder = ParquetRecordBatchStreamBuilder::new(BlockReader { reader, block }).await?;
    let columns = builder.parquet_schema().columns().iter().enumerate();
    let columns = columns.filter(|(_, column)| names.contains(column.name())).map(|(index, _)| index);
    let mask = ProjectionMask::leaves(builder.parquet_schema(), columns.collect::<Vec<_>>());
    let rows = usize::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(usize::MAX).max(1);
    let cells = builder.with_projection(mask).with_batch_size(rows).build()?;
    let schema = Arc::clone(cells.schema());
    let batches: Vec<RecordBatch> = cells.try_collect().await?;
    Ok(concat_batches(&schema, &batches)?)
}

/// Reads a block as if it were a file.
struct BlockReader {
    reader: Box<dyn AsyncFileReader + Send>,
    block: HourlyBlock,
}

impl BlockReader {
    fn moved(&self, range: Range<u64>) -> Range<u64> {
        let end = self.block.offset.saturating_add(self.block.bytes);
        let moved = |at: u64| self.block.offset.saturating_add(at).min(end);
        moved(range.start)..moved(range.end)
    }
}

impl AsyncFileReader for BlockReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        let range = self.moved(range);
        self.reader.get_bytes(range)
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        let ranges = ranges.into_iter().map(|range| self.moved(range)).collect();
        self.reader.get_byte_ranges(ranges)
    }

    fn get_metadata<'a>(
        &'a mut self,
        _options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        async move {
            let bytes = self.block.bytes;
            let metadata = ParquetMetaDataReader::new().with_prefetch_hint(Some(FOOTER_BYTES));
            Ok(Arc::new(metadata.load_and_finish(self, bytes).await?))
        }
        .boxed()
    }
}

/// Bytes that are read at once to have the footer of a block.
const FOOTER_BYTES: usize = 16 << 10;

/// Cells, as they were read.
struct HourCells<'a> {
    batch: RecordBatch,
    /// Whether the file has a column of the table.
    has: &'a dyn Fn(&str) -> bool,
}

impl HourCells<'_> {
    fn column(&self, kind: &str, name: &str) -> Option<&ArrayRef> {
        self.batch.column_by_name(&format!("{kind}{name}"))
    }

    fn hours(&self) -> Result<&Int64Array> {
        let hours = self.batch.column_by_name(HOUR).and_then(|hours| hours.as_primitive_opt::<Int64Type>());
        hours.ok_or_else(|| exec_datafusion_err!("there are no hours"))
    }

    fn counts(&self, kind: &str, name: &str) -> Option<&UInt32Array> {
        self.column(kind, name).and_then(|counts| counts.as_primitive_opt::<UInt32Type>())
    }

    /// Returns tags and times of a row of each cell: of its hour the first time.
    fn rows_of(&self, keys: &Keys) -> Result<RecordBatch> {
        let schema = keys.schema();
        let column = |field: &arrow::datatypes::FieldRef| -> Result<ArrayRef> {
            if field.name() == TIME_COLUMN {
                let times = self.hours()?.unary::<_, TimestampNanosecondType>(|hour| hour.saturating_mul(HOUR_NS));
                return Ok(Arc::new(times.with_data_type(field.data_type().clone())));
            }
            match self.column(TAG, field.name()) {
                Some(tag) if tag.data_type() == field.data_type() => Ok(Arc::clone(tag)),
                None if !(self.has)(field.name()) => Ok(new_null_array(field.data_type(), self.batch.num_rows())),
                _ => exec_err!("there is no tag {:?}", field.name()),
            }
        };
        let columns = schema.fields().iter().map(column).collect::<Result<Vec<_>>>()?;
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(self.batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
    }

    fn states(&self, kind: StateKind, value: &AskedValue) -> Result<Vec<ArrayRef>> {
        let rows = self.counts(ROWS, "").ok_or_else(|| exec_datafusion_err!("there are no numbers of rows"))?;
        let AskedValue::Numbers { column, data_type } = value else { return Ok(vec![counted(rows)]) };
        let values = match self.column(prefix(kind), column) {
            Some(values) if values.data_type() == data_type => Arc::clone(values),
            None if !(self.has)(column) => new_null_array(data_type, rows.len()),
            _ => return exec_err!("there is no column {column:?} of type {data_type}"),
        };
        let none = UInt32Array::from_value(0, rows.len());
        let counts = match self.counts(VALUES, column) {
            Some(counts) => counts,
            None if (self.has)(column) => rows,
            None => &none,
        };
        Ok(match kind {
            StateKind::Count => vec![counted(counts)],
            StateKind::Least | StateKind::Greatest => vec![values],
            StateKind::Sum => vec![summed(&values)?],
            StateKind::Average => {
                // A group without a value has none of both.
                let counts = counts.values().iter().map(|count| (*count > 0).then_some(u64::from(*count)));
                vec![Arc::new(counts.collect::<UInt64Array>()), cast(&values, &DataType::Float64)?]
            }
        })
    }
}

fn counted(counts: &UInt32Array) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(counts.values().iter().map(|count| i64::from(*count))))
}

/// Returns sums in the type in which they are handed on.
fn summed(sums: &ArrayRef) -> Result<ArrayRef> {
    fn wide<T: Summed<Wide = Decimal128Type>>(sums: &ArrayRef) -> Option<ArrayRef> {
        let of_type = sums.as_primitive_opt::<T>()?;
        let sums: PrimitiveArray<Decimal128Type> = of_type.unary(T::widen);
        Some(Arc::new(sums.with_data_type(T::state_type(of_type.data_type()))))
    }
    let state = match sums.data_type() {
        DataType::Float64 => Some(Arc::clone(sums)),
        _ => wide::<Int64Type>(sums).or_else(|| wide::<UInt64Type>(sums)),
    };
    state.ok_or_else(|| exec_datafusion_err!("sums are of type {}", sums.data_type()))
}
