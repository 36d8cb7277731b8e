//! One column of one row group on its way into a file, whoever encodes it.
//!
//! Owns which bounds the file keeps of columns that the Parquet library encodes.

use arrow::{
    array::ArrayRef,
    datatypes::{DataType, Field},
};
use parquet::{
    arrow::arrow_writer::{ArrowColumnWriter, compute_leaves},
    column::writer::ColumnCloseResult,
    errors::Result,
    file::{
        statistics::{Statistics, ValueStatistics},
        writer::SerializedRowGroupWriter,
    },
};

use super::{
    encode::{ColumnEncoder, Scratch},
    sink::Sink,
    statistics::StatisticsBuilder,
};

/// A column chunk under way.
pub(super) enum ColumnChunk {
    /// Of a type that is encoded here.
    Ours(Box<dyn ColumnEncoder>),
    /// Of any other, with one encoder for each leaf.
    Library(Vec<ArrowColumnWriter>),
}

impl ColumnChunk {
    /// Takes the next rows of a column.
    pub(super) fn push(
        &mut self,
        field: &Field,
        array: &ArrayRef,
        statistics: &mut StatisticsBuilder,
        scratch: &mut Scratch,
    ) -> Result<()> {
        match self {
            Self::Ours(encoder) => encoder.push(array, scratch),
            Self::Library(encoders) => {
                statistics.update(array);
                encoders
                    .iter_mut()
                    .zip(&compute_leaves(field, array)?)
                    .try_for_each(|(encoder, leaf)| encoder.write(leaf))
            }
        }
    }

    /// Returns about how many bytes it has so far.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Ours(encoder) => encoder.bytes(),
            Self::Library(encoders) => encoders.iter().map(ArrowColumnWriter::get_estimated_total_bytes).sum(),
        }
    }

    /// Returns how many of these bytes are known not to be compressed yet.
    pub(super) fn pending_bytes(&self) -> usize {
        match self {
            Self::Ours(encoder) => encoder.pending_bytes(),
            Self::Library(_) => 0,
        }
    }

    /// Ends it and appends it to the row group.
    pub(super) fn append_to(
        self,
        row_group: &mut SerializedRowGroupWriter<'_, &mut Sink>,
        field: &Field,
        statistics: &mut StatisticsBuilder,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let has_nan = statistics.end_row_group();
        match self {
            Self::Ours(encoder) => {
                let (chunk, bounds) = encoder.finish(scratch)?;
                statistics.add_chunk(chunk.nulls, bounds);
                row_group.append_column(&chunk.bytes, chunk.close)?;
                scratch.recycle(chunk.bytes);
                Ok(())
            }
            Self::Library(encoders) => encoders.into_iter().try_for_each(|encoder| {
                let mut chunk = encoder.close()?;
                if !keeps_bounds(field.data_type(), has_nan) {
                    drop_bounds(chunk.close_mut())?;
                }
                chunk.append_to_row_group(row_group)
            }),
        }
    }
}

/// Returns whether the bounds that the library has found are to be trusted.
pub(super) fn keeps_bounds(data_type: &DataType, has_nan: bool) -> bool {
    match data_type {
        DataType::Float32 | DataType::Float64 => !has_nan,
        // Nothing looked for NaNs in there.
        data_type => !has_float_leaf(data_type),
    }
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
/// The library leaves NaNs out of its bounds, while engines order NaN above all other values: a
/// filter like `x > 5` would keep a NaN where it reads the rows and lose it where it skips them by
/// bounds.
pub(super) fn drop_bounds(close: &mut ColumnCloseResult) -> Result<()> {
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
