//! Encodes rows into row groups, column after column.
//!
//! Rows are gathered up to a few megabytes and each column of them is then encoded at once, which is a fifth to a third
//! cheaper than encoding one small batch after the other: the encoder of a column stays in the cache. Memory is bounded
//! by what is gathered plus one encoded row group.

use std::sync::Arc;

use arrow::{array::RecordBatch, datatypes::DataType};
use parquet::{
    arrow::{
        ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata,
        arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves},
    },
    column::writer::ColumnCloseResult,
    errors::ParquetError,
    file::{
        statistics::{Statistics, ValueStatistics},
        writer::SerializedFileWriter,
    },
    schema::types::SchemaDescriptor,
};

use super::{
    ColumnStatistics, DataFileSpec, ParquetOptions, encodings::writer_properties, sink::Sink,
    statistics::StatisticsBuilder,
};
use crate::{Error, Result};

const GATHER_ROWS: usize = 131_072;

/// What was written.
#[derive(Debug)]
pub(super) struct Totals {
    pub(super) rows: u64,
    pub(super) time_bounds: Option<(i64, i64)>,
    pub(super) columns: Vec<ColumnStatistics>,
}

/// Writes one Parquet file.
pub(super) struct RowGroupWriter<'a> {
    spec: &'a DataFileSpec<'a>,
    options: &'a ParquetOptions,
    descriptor: SchemaDescriptor,
    /// The sink until the first rows are known: they decide the encodings, and with them the file's header.
    sink: Option<&'a mut Sink>,
    file: Option<(SerializedFileWriter<&'a mut Sink>, ArrowRowGroupWriterFactory)>,
    /// Encoders of the row group under way, one for each leaf; empty between row groups.
    encoders: Vec<ArrowColumnWriter>,
    statistics: Vec<StatisticsBuilder>,
    gathered: Vec<RecordBatch>,
    gathered_rows: usize,
    gathered_bytes: usize,
    encoded_rows: usize,
    total_rows: u64,
}

impl<'a> RowGroupWriter<'a> {
    pub(super) fn new(sink: &'a mut Sink, spec: &'a DataFileSpec<'a>, options: &'a ParquetOptions) -> Result<Self> {
        let descriptor = ArrowSchemaConverter::new().convert(&spec.schema).map_err(|e| encode_error(spec, e))?;
        let fields = spec.schema.fields().iter();
        Ok(Self {
            spec,
            options,
            descriptor,
            sink: Some(sink),
            file: None,
            encoders: Vec::new(),
            statistics: fields.map(|field| StatisticsBuilder::new(field.name(), field.data_type())).collect(),
            gathered: Vec::new(),
            gathered_rows: 0,
            gathered_bytes: 0,
            encoded_rows: 0,
            total_rows: 0,
        })
    }

    /// Takes rows, encoding them once enough are there. `batch` has the file's schema.
    pub(super) fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut offset = 0;
        while offset < batch.num_rows() {
            let room = self.options.row_group_rows - self.encoded_rows - self.gathered_rows;
            let rows = room.min(batch.num_rows() - offset);
            self.gather(batch.slice(offset, rows))?;
            offset += rows;
        }
        Ok(())
    }

    /// Writes what is left and the footer. The sink is complete then, but not durable.
    pub(super) fn finish(mut self) -> Result<Totals> {
        self.encode_gathered()?;
        self.end_row_group()?;
        let Some((mut file, _)) = self.file else {
            return Err(Error::internal(format!("data file {} has no rows", self.spec.path)));
        };
        file.finish().map_err(|e| encode_error(self.spec, e))?;
        let time_bounds = self.statistics.first().and_then(StatisticsBuilder::time_bounds);
        let columns = self.statistics.into_iter().map(StatisticsBuilder::finish).collect();
        Ok(Totals { rows: self.total_rows, time_bounds, columns })
    }

    fn gather(&mut self, batch: RecordBatch) -> Result<()> {
        self.gathered_rows += batch.num_rows();
        self.gathered_bytes += slice_bytes(&batch);
        self.gathered.push(batch);
        let row_group_is_full = self.encoded_rows + self.gathered_rows == self.options.row_group_rows;
        if row_group_is_full || self.gathered_rows >= GATHER_ROWS || self.gathered_bytes >= self.options.gather_bytes {
            self.encode_gathered()?;
            let encoded_bytes: usize = self.encoders.iter().map(ArrowColumnWriter::get_estimated_total_bytes).sum();
            if row_group_is_full || encoded_bytes >= self.options.row_group_bytes {
                self.end_row_group()?;
            }
        }
        Ok(())
    }

    fn encode_gathered(&mut self) -> Result<()> {
        if self.gathered_rows == 0 {
            return Ok(());
        }
        self.begin()?;
        self.encode_columns().map_err(|e| encode_error(self.spec, e))?;
        self.encoded_rows += self.gathered_rows;
        self.total_rows += self.gathered_rows as u64;
        self.gathered.clear();
        self.gathered_rows = 0;
        self.gathered_bytes = 0;
        Ok(())
    }

    /// Opens the file and the row group where they are not open yet.
    fn begin(&mut self) -> Result<()> {
        if let Some(sink) = self.sink.take() {
            let mut properties = writer_properties(self.spec, &self.descriptor, &self.gathered, self.options)?;
            add_encoded_arrow_schema_to_metadata(&self.spec.schema, &mut properties);
            let file = SerializedFileWriter::new(sink, self.descriptor.root_schema_ptr(), Arc::new(properties))
                .map_err(|e| encode_error(self.spec, e))?;
            let factory = ArrowRowGroupWriterFactory::new(&file, Arc::clone(&self.spec.schema));
            self.file = Some((file, factory));
        }
        if let (true, Some((file, factory))) = (self.encoders.is_empty(), &self.file) {
            let index = file.flushed_row_groups().len();
            self.encoders = factory.create_column_writers(index).map_err(|e| encode_error(self.spec, e))?;
        }
        Ok(())
    }

    fn encode_columns(&mut self) -> Result<(), ParquetError> {
        let mut first_leaf = 0;
        for (index, (field, statistics)) in self.spec.schema.fields().iter().zip(&mut self.statistics).enumerate() {
            let mut leaf_count = 0;
            for batch in &self.gathered {
                let array = batch.column(index);
                statistics.update(array);
                let leaves = compute_leaves(field, array)?;
                leaf_count = leaves.len();
                for (encoder, leaf) in self.encoders.iter_mut().skip(first_leaf).zip(&leaves) {
                    encoder.write(leaf)?;
                }
            }
            first_leaf += leaf_count;
        }
        Ok(())
    }

    fn end_row_group(&mut self) -> Result<()> {
        if self.encoded_rows == 0 {
            return Ok(());
        }
        let has_nan: Vec<bool> = self.statistics.iter_mut().map(StatisticsBuilder::end_row_group).collect();
        let encoders = std::mem::take(&mut self.encoders);
        self.encoded_rows = 0;
        let Some((file, _)) = &mut self.file else { return Ok(()) };
        let write = || -> Result<(), ParquetError> {
            let mut row_group = file.next_row_group()?;
            for (leaf, encoder) in encoders.into_iter().enumerate() {
                let mut chunk = encoder.close()?;
                let root = self.descriptor.get_column_root_idx(leaf);
                let nan = has_nan.get(root).copied().unwrap_or(true);
                let keeps_bounds = match self.spec.schema.field(root).data_type() {
                    DataType::Float32 | DataType::Float64 => !nan,
                    // Nobody looked for NaNs in there.
                    data_type => !has_float_leaf(data_type),
                };
                if !keeps_bounds {
                    drop_bounds(chunk.close_mut())?;
                }
                chunk.append_to_row_group(&mut row_group)?;
            }
            row_group.close().map(drop)
        };
        write().map_err(|e| encode_error(self.spec, e))
    }
}

/// Bytes of the rows alone, not of the whole buffers that they are a slice of.
fn slice_bytes(batch: &RecordBatch) -> usize {
    let bytes_of = |array: &Arc<dyn arrow::array::Array>| {
        // The size of a type this cannot be asked for is an upper bound instead.
        array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size())
    };
    batch.columns().iter().map(bytes_of).sum()
}

fn has_float_leaf(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => true,
        DataType::Dictionary(_, value) => has_float_leaf(value),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::Map(field, _)
        | DataType::RunEndEncoded(_, field) => has_float_leaf(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_float_leaf(field.data_type())),
        _ => false,
    }
}

/// Drops a column chunk's bounds and keeps its null count.
///
/// The library leaves NaNs out of its bounds, while engines order NaN above all other values: a filter like `x > 5`
/// would keep a NaN where it reads the rows and lose it where it skips them by bounds.
fn drop_bounds(close: &mut ColumnCloseResult) -> Result<(), ParquetError> {
    close.column_index = None;
    let Some(statistics) = close.metadata.statistics() else { return Ok(()) };
    let null_count = statistics.null_count_opt();
    let statistics = match statistics {
        Statistics::Boolean(_) => Statistics::Boolean(ValueStatistics::new(None, None, None, null_count, false)),
        Statistics::Int32(_) => Statistics::Int32(ValueStatistics::new(None, None, None, null_count, false)),
        Statistics::Int64(_) => Statistics::Int64(ValueStatistics::new(None, None, None, null_count, false)),
        Statistics::Int96(_) => Statistics::Int96(ValueStatistics::new(None, None, None, null_count, false)),
        Statistics::Float(_) => Statistics::Float(ValueStatistics::new(None, None, None, null_count, false)),
        Statistics::Double(_) => Statistics::Double(ValueStatistics::new(None, None, None, null_count, false)),
        Statistics::ByteArray(_) => Statistics::ByteArray(ValueStatistics::new(None, None, None, null_count, false)),
        Statistics::FixedLenByteArray(_) => {
            Statistics::FixedLenByteArray(ValueStatistics::new(None, None, None, null_count, false))
        }
    };
    close.metadata = close.metadata.clone().into_builder().set_statistics(statistics).build()?;
    Ok(())
}

/// What the file system refused is told as such; all else the encoder refused, for the rows were checked before.
fn encode_error(spec: &DataFileSpec<'_>, error: ParquetError) -> Error {
    match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(source) => Error::io("write", spec.path.as_str(), *source),
            Err(source) => Error::internal(format!("cannot encode {}: {source}", spec.path)),
        },
        other => Error::internal(format!("cannot encode {}: {other}", spec.path)),
    }
}
