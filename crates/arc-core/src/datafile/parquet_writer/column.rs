//! One column of the files of a writer: which encoder it has, and what it is in the row group under
//! way.
//!
//! A column that has been null throughout has no encoder and no chunk yet, just a count of nulls:
//! whether it is in the file at all is known at the file's end.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, new_null_array},
    compute::cast,
    datatypes::{
        DataType, Field, FieldRef, Int64Type, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType,
        TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    },
};
use bytes::Bytes;
use parquet::{
    arrow::{
        ArrowSchemaConverter,
        arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory},
    },
    errors::{ParquetError, Result},
    file::{
        metadata::ColumnChunkMetaData,
        page_index::{column_index::ColumnIndexMetaData, offset_index::OffsetIndexMetaData},
        properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr},
        writer::SerializedFileWriter,
    },
    schema::types::SchemaDescPtr,
};

use super::{DistinctValues, distinct::Distinct, integers};
use crate::{
    datafile::{
        ParquetOptions,
        column_chunks::{ColumnChunk, drop_bounds, keeps_bounds},
        encode::{ColumnLimits, EncodingPlan, Scratch, WordEncoding},
        encodings::{Sample, plan_of},
        statistics::StatisticsBuilder,
    },
    model::{ColumnStatistics, fixed_bytes, rows_within},
};

/// Nulls that are made at a time, of a column that was null so far.
const NULLS_AT_ONCE: usize = 16_384;
const NULL_BYTES_AT_ONCE: usize = 4 << 20;

/// What all files of a writer have in common about one column.
#[derive(Debug)]
pub(super) struct ColumnSpec {
    pub(super) field: FieldRef,
    /// The type in which values reach the encoder: one that `encode` knows, where there is one for
    /// the same bytes.
    pub(super) carrier: DataType,
    is_time: bool,
    limits: ColumnLimits,
    /// Parquet's schema of this column alone.
    schema: SchemaRef,
    descriptor: SchemaDescPtr,
    properties: WriterPropertiesPtr,
}

impl ColumnSpec {
    pub(super) fn new(field: &FieldRef, is_time: bool, options: &ParquetOptions) -> crate::Result<Self> {
        let schema = Arc::new(Schema::new(vec![Arc::clone(field)]));
        let descriptor = ArrowSchemaConverter::new().convert(&schema).map_err(|error| {
            let reason = format!("column {:?}: {error}", field.name());
            crate::Error::InvalidOption { option: "schema", reason }
        })?;
        let properties = WriterProperties::builder()
            .set_compression(options.compression()?)
            .set_max_row_group_row_count(None)
            .set_data_page_row_count_limit(options.page_rows)
            .set_statistics_enabled(EnabledStatistics::Page);
        Ok(Self {
            field: Arc::clone(field),
            carrier: carrier(field.data_type()),
            is_time,
            limits: ColumnLimits { page_rows: options.page_rows, dictionary_bytes: options.dictionary_bytes },
            schema,
            descriptor: Arc::new(descriptor),
            properties: Arc::new(properties.build()),
        })
    }

    fn plan(&self, sample: Sample) -> crate::Result<EncodingPlan> {
        if self.is_time || are_close(&sample) {
            return Ok(EncodingPlan { words: WordEncoding::Delta, dictionary: false });
        }
        plan_of(&Field::new("", self.carrier.clone(), true), sample)
    }

    fn chunk(&self, plan: EncodingPlan) -> Result<ColumnChunk> {
        if let [column] = self.descriptor.columns() {
            let compression = self.properties.compression(column.path());
            if let Some(ours) = plan.encoder(&self.carrier, self.limits, column, compression) {
                return Ok(ColumnChunk::Ours(ours));
            }
        }
        self.with_library(|_, factory| Ok(ColumnChunk::Library(factory.create_column_writers(0)?)))
    }

    /// Has the library's writer of a file with this column alone.
    fn with_library<T>(
        &self,
        work: impl FnOnce(&mut SerializedFileWriter<Vec<u8>>, &ArrowRowGroupWriterFactory) -> Result<T>,
    ) -> Result<T> {
        let root = self.descriptor.root_schema_ptr();
        let mut writer = SerializedFileWriter::new(Vec::new(), root, Arc::clone(&self.properties))?;
        let factory = ArrowRowGroupWriterFactory::new(&writer, Arc::clone(&self.schema));
        work(&mut writer, &factory)
    }

    /// Ends what the library has encoded: its leaves are laid out in a file in memory, for it tells
    /// their bytes to nothing.
    fn library_leaves(&self, encoders: Vec<ArrowColumnWriter>, has_nan: bool) -> Result<Vec<Leaf>> {
        let chunks = encoders.into_iter().map(|encoder| {
            let mut chunk = encoder.close()?;
            if !keeps_bounds(self.field.data_type(), has_nan) {
                drop_bounds(chunk.close_mut())?;
            }
            Ok(chunk)
        });
        let chunks = chunks.collect::<Result<Vec<ArrowColumnChunk>>>()?;
        let closed: Vec<_> = chunks.iter().map(|chunk| chunk.close().clone()).collect();
        let (metadata, file) = self.with_library(|writer, _| {
            let mut row_group = writer.next_row_group()?;
            chunks.into_iter().try_for_each(|chunk| chunk.append_to_row_group(&mut row_group))?;
            let metadata = row_group.close()?;
            writer.flush()?;
            Ok((metadata, Bytes::from(std::mem::take(writer.inner_mut()))))
        })?;
        let leaf = |(metadata, closed): (&ColumnChunkMetaData, parquet::column::writer::ColumnCloseResult)| {
            let (start, length) = metadata.byte_range();
            let range = usize::try_from(start).and_then(|start| Ok(start..start + usize::try_from(length)?));
            let range = range.map_err(|_| ParquetError::General("a column chunk beyond the address space".into()))?;
            // Pages were laid out without the dictionary that has come before them since.
            let moved = metadata.data_page_offset() - closed.metadata.data_page_offset();
            let mut offset_index = closed.offset_index;
            offset_index.iter_mut().flat_map(|index| &mut index.page_locations).for_each(|page| page.offset += moved);
            Ok(Leaf {
                bytes: vec![file.slice(range)],
                start: i64::try_from(start).unwrap_or(i64::MAX),
                metadata: metadata.clone(),
                column_index: closed.column_index,
                offset_index,
            })
        };
        metadata.columns().iter().zip(closed).map(leaf).collect()
    }
}

/// A finished column chunk of one leaf.
#[derive(Debug)]
pub(super) struct Leaf {
    /// Its pages, the dictionary first.
    pub(super) bytes: Vec<Bytes>,
    /// The offset that `metadata` and `offset_index` give its first byte.
    pub(super) start: i64,
    pub(super) metadata: ColumnChunkMetaData,
    pub(super) column_index: Option<ColumnIndexMetaData>,
    pub(super) offset_index: Option<OffsetIndexMetaData>,
}

/// A column of the file under way.
pub(super) struct OpenColumn {
    pub(super) spec: Arc<ColumnSpec>,
    statistics: StatisticsBuilder,
    distinct: Option<Distinct>,
    /// How it is encoded, from its first values on.
    plan: Option<EncodingPlan>,
    /// The chunk of the row group under way, from its first value on.
    chunk: Option<ColumnChunk>,
    /// Rows of this row group that were null before that.
    nulls: usize,
    has_values: bool,
    finished: Option<Vec<Leaf>>,
}

impl OpenColumn {
    pub(super) fn new(spec: &Arc<ColumnSpec>, distinct: Option<Distinct>) -> Self {
        Self {
            statistics: StatisticsBuilder::new(spec.field.name(), &spec.carrier),
            spec: Arc::clone(spec),
            distinct,
            plan: None,
            chunk: None,
            nulls: 0,
            has_values: false,
            finished: None,
        }
    }

    /// Returns whether any row of the file has a value.
    pub(super) fn has_values(&self) -> bool {
        self.has_values
    }

    /// Returns about how many bytes it has in the row group under way.
    pub(super) fn bytes(&self) -> usize {
        self.chunk.as_ref().map_or(0, ColumnChunk::bytes)
    }

    /// Returns how many of them are not compressed yet.
    pub(super) fn pending_bytes(&self) -> usize {
        self.chunk.as_ref().map_or(0, ColumnChunk::pending_bytes)
    }

    /// Encodes the next rows.
    pub(super) fn encode(&mut self, arrays: &[&ArrayRef], scratch: &mut Scratch) -> crate::Result<()> {
        for (index, array) in arrays.iter().enumerate() {
            if self.chunk.is_none() && array.logical_null_count() == array.len() {
                self.nulls += array.len();
                continue;
            }
            let carried = self.carried(array)?;
            if self.chunk.is_none() {
                self.begin(arrays.get(index..).unwrap_or_default(), scratch)?;
            }
            if let Some(distinct) = &mut self.distinct {
                distinct.update(&carried);
            }
            self.push(&carried, scratch).map_err(|error| self.error(&error))?;
        }
        Ok(())
    }

    /// Makes the chunk when the first value comes, with the nulls before it.
    fn begin(&mut self, arrays: &[&ArrayRef], scratch: &mut Scratch) -> crate::Result<()> {
        let plan = match self.plan {
            Some(plan) => plan,
            None => {
                let rows = arrays.iter().map(|array| array.len()).sum();
                let arrays = arrays.iter().map(|array| self.carried(array)).collect::<crate::Result<_>>()?;
                self.spec.plan(Sample { arrays, step: Sample::step(rows), rows })?
            }
        };
        self.plan = Some(plan);
        self.has_values = true;
        self.begin_with_nulls(plan, scratch).map_err(|error| self.error(&error))
    }

    fn begin_with_nulls(&mut self, plan: EncodingPlan, scratch: &mut Scratch) -> Result<()> {
        self.chunk = Some(self.spec.chunk(plan)?);
        let mut left = std::mem::take(&mut self.nulls);
        let most = rows_within(NULL_BYTES_AT_ONCE, fixed_bytes(&self.spec.carrier), NULLS_AT_ONCE);
        let mut nulls: Option<ArrayRef> = None;
        while left > 0 {
            let count = left.min(most);
            let array = nulls.take().filter(|array| array.len() == count);
            let array = array.unwrap_or_else(|| new_null_array(&self.spec.carrier, count));
            self.push(&array, scratch)?;
            nulls = Some(array);
            left -= count;
        }
        Ok(())
    }

    fn push(&mut self, array: &ArrayRef, scratch: &mut Scratch) -> Result<()> {
        let Some(chunk) = &mut self.chunk else { return Ok(()) };
        chunk.push(&self.spec.field, array, &mut self.statistics, scratch)
    }

    /// Ends the row group. A column without any value so far gets a chunk of nulls if `more` may
    /// come.
    pub(super) fn end_row_group(&mut self, more: bool, scratch: &mut Scratch) -> crate::Result<()> {
        self.finished = self.try_end_row_group(more, scratch).map_err(|error| self.error(&error))?;
        Ok(())
    }

    fn try_end_row_group(&mut self, more: bool, scratch: &mut Scratch) -> Result<Option<Vec<Leaf>>> {
        if self.chunk.is_none() && (self.has_values || more) {
            let plan = self.plan.unwrap_or(EncodingPlan { words: WordEncoding::Delta, dictionary: false });
            self.begin_with_nulls(plan, scratch)?;
        }
        let has_nan = self.statistics.end_row_group();
        match self.chunk.take() {
            None => Ok(None),
            Some(ColumnChunk::Library(encoders)) => self.spec.library_leaves(encoders, has_nan).map(Some),
            Some(ColumnChunk::Ours(encoder)) => {
                let (chunk, bounds) = encoder.finish(scratch)?;
                self.statistics.add_chunk(chunk.nulls, bounds);
                Ok(Some(vec![Leaf {
                    bytes: chunk.bytes.into_parts().into(),
                    start: 0,
                    metadata: chunk.close.metadata,
                    column_index: chunk.close.column_index,
                    offset_index: chunk.close.offset_index,
                }]))
            }
        }
    }

    /// Hands over what `end_row_group` has made; `None` for a column that has no values so far.
    pub(super) fn take_finished(&mut self) -> Option<Vec<Leaf>> {
        self.finished.take()
    }

    /// Makes the column one that stays in the file though it is null throughout.
    pub(super) fn keep(&mut self) {
        self.has_values = true;
    }

    /// Returns what is known of it at the end of the file.
    pub(super) fn finish(self) -> (ColumnStatistics, Option<DistinctValues>) {
        let distinct = self.distinct.map(|distinct| distinct.finish(self.spec.field.name()));
        (self.statistics.finish(), distinct)
    }

    fn carried(&self, array: &ArrayRef) -> crate::Result<ArrayRef> {
        if *array.data_type() == self.spec.carrier {
            return Ok(Arc::clone(array));
        }
        carry(array, &self.spec.carrier).map_err(|error| self.error(&error.into()))
    }

    fn error(&self, error: &ParquetError) -> crate::Error {
        crate::Error::internal(format!("cannot encode column {:?}: {error}", self.spec.field.name()))
    }
}

/// Returns whether the first values are integers that are close to their neighbours.
fn are_close(sample: &Sample) -> bool {
    let arrays = sample.arrays.iter().filter_map(|array| array.as_primitive_opt::<Int64Type>());
    let values: Vec<i64> = arrays.flat_map(|array| array.iter().flatten()).take(integers::SAMPLE_VALUES).collect();
    integers::are_close(&values)
}

/// Returns the type that has the same values in Parquet's terms and is encoded here, or the type
/// itself.
fn carrier(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Timestamp(..) => DataType::Int64,
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        other => other.clone(),
    }
}

fn carry(array: &ArrayRef, carrier: &DataType) -> std::result::Result<ArrayRef, arrow::error::ArrowError> {
    Ok(match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => {
            Arc::new(array.as_primitive::<TimestampSecondType>().reinterpret_cast::<Int64Type>())
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            Arc::new(array.as_primitive::<TimestampMillisecondType>().reinterpret_cast::<Int64Type>())
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            Arc::new(array.as_primitive::<TimestampMicrosecondType>().reinterpret_cast::<Int64Type>())
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            Arc::new(array.as_primitive::<TimestampNanosecondType>().reinterpret_cast::<Int64Type>())
        }
        _ => cast(array, carrier)?,
    })
}
