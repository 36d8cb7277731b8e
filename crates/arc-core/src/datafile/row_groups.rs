//! Encodes rows into row groups, column after column.
//!
//! Rows that come in batches are gathered up to a few megabytes and each column of them is then
//! encoded at once, which is a fifth to a third cheaper than encoding one small batch after the
//! other: the encoder of a column stays in the cache. Memory is bounded by what is gathered plus
//! one encoded row group. Rows that are all there, in [`Columns`], are encoded column after column
//! over whole row groups: what is held is one encoded column.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};

use super::{
    DataFileSpec, ParquetOptions,
    column_chunks::ColumnChunk,
    encode::Scratch,
    encodings::{Sample, plans},
    hourly::HourlyAggregator,
    parquet_file::{ParquetFile, Totals},
    sink::Sink,
};
use crate::{Error, Result, arrays::Columns};

const GATHER_ROWS: usize = 131_072;

/// Writes all rows to a Parquet file.
pub(super) fn write_columns(
    sink: &mut Sink,
    spec: &DataFileSpec<'_>,
    columns: &dyn Columns,
    options: &ParquetOptions,
    scratch: &mut Option<Scratch>,
) -> Result<Totals> {
    let rows = columns.len();
    let sample = |index| {
        let array = columns.sample(index, Sample::step(rows))?;
        Ok(Sample { arrays: vec![array], step: 1, rows: rows.min(options.row_group_rows) })
    };
    let mut file = ParquetFile::new(sink, spec, options, plans(spec, sample)?, scratch)?;
    for start in (0..rows).step_by(options.row_group_rows) {
        let range = start..rows.min(start + options.row_group_rows);
        let chunks = file.chunks()?;
        file.write_row_group(range.len(), chunks, |index, take| columns.column(index, range.clone(), take))?;
    }
    file.finish(scratch, None)
}

/// Writes batches to a Parquet file.
pub(super) struct RowGroupWriter<'a> {
    spec: &'a DataFileSpec<'a>,
    options: &'a ParquetOptions,
    /// The sink until the first rows are known: they decide the encodings, and with them the file's
    /// header.
    sink: Option<&'a mut Sink>,
    file: Option<ParquetFile<'a>>,
    /// Columns of the row group under way; empty between row groups.
    chunks: Vec<ColumnChunk>,
    gathered: Vec<RecordBatch>,
    gathered_rows: usize,
    gathered_bytes: usize,
    encoded_rows: usize,
    hourly: Option<HourlyAggregator>,
}

impl<'a> RowGroupWriter<'a> {
    pub(super) fn new(sink: &'a mut Sink, spec: &'a DataFileSpec<'a>, options: &'a ParquetOptions) -> Self {
        Self {
            spec,
            options,
            sink: Some(sink),
            file: None,
            chunks: Vec::new(),
            gathered: Vec::new(),
            gathered_rows: 0,
            gathered_bytes: 0,
            encoded_rows: 0,
            hourly: spec.hourly.then(|| HourlyAggregator::new(&spec.schema, &spec.sorted_by)).flatten(),
        }
    }

    /// Takes rows, encoding them once enough are there. `batch` has the file's schema.
    pub(super) fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        if let Some(hourly) = &mut self.hourly {
            hourly.push(batch);
        }
        self.hourly.take_if(|hourly| hourly.is_hopeless());
        let mut offset = 0;
        while offset < batch.num_rows() {
            let remaining = self.options.row_group_rows - self.encoded_rows - self.gathered_rows;
            let rows = remaining.min(batch.num_rows() - offset);
            self.gather(batch.slice(offset, rows))?;
            offset += rows;
        }
        Ok(())
    }

    /// Writes what is left and the footer. The sink is complete then, but not durable.
    pub(super) fn finish(mut self) -> Result<Totals> {
        self.encode_gathered()?;
        self.end_row_group()?;
        let file = self.file.ok_or_else(|| Error::internal(format!("data file {} has no rows", self.spec.path)))?;
        file.finish(&mut None, self.hourly.and_then(HourlyAggregator::finish).as_ref())
    }

    fn gather(&mut self, batch: RecordBatch) -> Result<()> {
        self.gathered_rows += batch.num_rows();
        self.gathered_bytes += slice_bytes(&batch);
        self.gathered.push(batch);
        let row_group_is_full = self.encoded_rows + self.gathered_rows == self.options.row_group_rows;
        if row_group_is_full || self.gathered_rows >= GATHER_ROWS || self.gathered_bytes >= self.options.gather_bytes {
            self.encode_gathered()?;
            let encoded_bytes: usize = self.chunks.iter().map(ColumnChunk::bytes).sum();
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
        if let Some(sink) = self.sink.take() {
            let rows = self.gathered_rows;
            let sample = |index: usize| {
                let arrays = self.gathered.iter().map(|batch| Arc::clone(batch.column(index))).collect();
                Ok(Sample { arrays, step: Sample::step(rows), rows })
            };
            self.file = Some(ParquetFile::new(sink, self.spec, self.options, plans(self.spec, sample)?, &mut None)?);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        if self.chunks.is_empty() {
            self.chunks = file.chunks()?;
        }
        for (index, chunk) in self.chunks.iter_mut().enumerate() {
            for batch in &self.gathered {
                file.encode(index, chunk, batch.column(index))?;
            }
        }
        self.encoded_rows += self.gathered_rows;
        self.gathered.clear();
        self.gathered_rows = 0;
        self.gathered_bytes = 0;
        Ok(())
    }

    fn end_row_group(&mut self) -> Result<()> {
        match &mut self.file {
            Some(file) if self.encoded_rows > 0 => {
                let (rows, chunks) = (std::mem::take(&mut self.encoded_rows), std::mem::take(&mut self.chunks));
                file.write_row_group(rows, chunks, |_, _| Ok(()))
            }
            _ => Ok(()),
        }
    }
}

/// Bytes of the rows alone, not of the whole buffers that they are a slice of.
pub(super) fn slice_bytes(batch: &RecordBatch) -> usize {
    let bytes_of = |array: &ArrayRef| match (array.data_type().primitive_width(), array.as_string_opt::<i32>()) {
        // Most columns are of these: nothing is allocated to ask them.
        (Some(width), _) => array.len() * width,
        (_, Some(texts)) => {
            let ends = texts.value_offsets().first().zip(texts.value_offsets().last());
            let bytes = ends.map_or(0, |(start, end)| end - start);
            usize::try_from(bytes).unwrap_or(0) + array.len() * size_of::<i32>()
        }
        // The size of a type this cannot be asked for is an upper bound instead.
        _ => array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size()),
    };
    batch.columns().iter().map(bytes_of).sum()
}
