//! Encodes columns of booleans: one bit a value.

use arrow::array::{Array, AsArray, BooleanBufferBuilder};
use parquet::{
    basic::{Compression, Encoding},
    errors::{ParquetError, Result},
    file::statistics::Statistics,
    schema::types::ColumnDescPtr,
};

use super::{
    ChunkBounds, ColumnEncoder, Scratch,
    bounds::PageBounds,
    chunk::{ChunkEnd, ChunkPages, DataPage, EncodedChunk},
    levels::Validity,
};

/// Encodes one column of one row group.
pub(super) struct BooleanEncoder {
    is_optional: bool,
    page_rows: usize,
    /// Values of the page under way, without nulls.
    values: BooleanBufferBuilder,
    validity: Validity,
    bounds: PageBounds<bool>,
    chunk: ChunkPages,
}

impl BooleanEncoder {
    pub(super) fn new(page_rows: usize, column: &ColumnDescPtr, compression: Compression) -> Self {
        Self {
            is_optional: column.max_def_level() > 0,
            page_rows,
            values: BooleanBufferBuilder::new(0),
            validity: Validity::default(),
            bounds: PageBounds::default(),
            chunk: ChunkPages::new(column.clone(), compression),
        }
    }
}

impl ColumnEncoder for BooleanEncoder {
    fn push(&mut self, array: &dyn Array, scratch: &mut Scratch) -> Result<()> {
        let array = array.as_boolean_opt();
        let array = array.ok_or_else(|| ParquetError::General("an array of booleans was expected".into()))?;
        let mut start = 0;
        while start < array.len() {
            let end = array.len().min(start + self.page_rows - self.validity.rows());
            let rows = array.slice(start, end - start);
            match rows.nulls() {
                None => {
                    self.values.append_buffer(rows.values());
                    self.validity.push_valid(rows.len());
                }
                Some(nulls) => {
                    for (from, to) in nulls.valid_slices() {
                        self.values.append_buffer(&rows.values().slice(from, to - from));
                    }
                    self.validity.push(nulls.inner());
                }
            }
            if self.validity.rows() == self.page_rows {
                self.end_page(scratch)?;
            }
            start = end;
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.chunk.bytes() + self.pending_bytes()
    }

    fn pending_bytes(&self) -> usize {
        self.values.len() / 8
    }

    fn finish(mut self: Box<Self>, scratch: &mut Scratch) -> Result<(EncodedChunk, ChunkBounds)> {
        self.end_page(scratch)?;
        let bounds = self.bounds.all().copied();
        let (min, max) = bounds.unzip();
        let statistics = Statistics::boolean(min, max, None, Some(self.chunk.nulls() as u64), false);
        let ending = ChunkEnd { dictionary: None, statistics, order: self.bounds.order(), page_bounds: true };
        Ok((self.chunk.finish(ending, &mut scratch.compressor)?, ChunkBounds::Booleans(bounds)))
    }
}

impl BooleanEncoder {
    fn end_page(&mut self, scratch: &mut Scratch) -> Result<()> {
        let (rows, nulls) = (self.validity.rows(), self.validity.nulls());
        if rows == 0 {
            return Ok(());
        }
        let values = self.values.finish();
        let ones = values.count_set_bits();
        let bounds = (!values.is_empty()).then(|| (ones == values.len(), ones > 0));
        if let Some((min, max)) = bounds {
            self.bounds.push(min, max);
        }
        let bounds = bounds.map(|(min, max)| (vec![u8::from(min)], vec![u8::from(max)]));
        let body = &mut scratch.page;
        body.clear();
        self.validity.write_if(self.is_optional, body);
        body.extend_from_slice(values.values());
        let page = DataPage { body, rows, nulls, encoding: Encoding::PLAIN, bounds };
        self.chunk.push(page, &mut scratch.compressor)
    }
}
