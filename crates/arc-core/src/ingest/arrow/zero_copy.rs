//! Large batches that stay where they lie: in the body of their request, or in memory that was made
//! for their values alone.
//!
//! Decides which batches those are, and owns the count of what they hold: one value in a body keeps
//! all of it, so a body of which little would be used is let go, and its values are copied after
//! all. Never decides what a value may be.

use arrow::{
    array::ArrayData,
    buffer::{Buffer, ScalarBuffer},
    datatypes::DataType,
};
use bytes::Bytes;

use super::{BatchColumns, is_plain};
use crate::{
    Result,
    buffer::{Chunk, SeriesId, WHOLE_ROWS, ZeroCopyRows, owned},
};

/// Smallest body that is kept. One that came in a single piece may lie in a buffer of its
/// connection, which nothing has counted and which is no larger.
const MIN_BODY_BYTES: usize = 1 << 20;
/// A body is kept if so many quarters of it are values.
const MIN_USED_QUARTERS: usize = 3;

/// The batches of one body that are not copied.
#[derive(Debug)]
pub(super) struct BorrowedBatches {
    body: Option<Bytes>,
    chunks: Vec<Chunk>,
    /// Bytes of the body that are values of theirs, and what they hold besides it.
    in_body: usize,
    beside: usize,
}

impl BorrowedBatches {
    /// None yet; none ever where `body` belongs to something else that would be kept with it.
    pub(super) fn new(body: &Bytes, may_keep: bool) -> Self {
        let body = Some(body).filter(|body| may_keep && body.len() >= MIN_BODY_BYTES).cloned();
        Self { body, chunks: Vec::new(), in_body: 0, beside: 0 }
    }

    /// Returns whether a batch of so many rows is kept, `before` rows of whose write were copied.
    /// Those come later, so that rows stay in their order.
    pub(super) fn takes(&self, rows: usize, before: usize) -> bool {
        self.body.is_some() && rows >= WHOLE_ROWS && before == 0
    }

    /// Takes the rows of one batch: their times, series and columns by index in the table.
    pub(super) fn add(&mut self, time: ScalarBuffer<i64>, series: Vec<SeriesId>, columns: BatchColumns) -> Result<()> {
        let mut by_index = vec![None; columns.iter().map(|(index, _)| index + 1).max().unwrap_or(0)];
        for (index, array) in columns {
            let array = if stays(array.data_type()) { array } else { owned(&array)? };
            if let Some(slot) = by_index.get_mut(index) {
                *slot = Some(array);
            }
        }
        let chunk = Chunk::new(time, series.into(), by_index)?;
        self.count(&chunk);
        self.chunks.push(chunk);
        Ok(())
    }

    /// Returns the rows, and what they hold.
    pub(super) fn finish(self) -> Result<ZeroCopyRows> {
        let Self { body, mut chunks, in_body, beside } = self;
        let body_bytes = body.as_ref().map_or(0, Bytes::len);
        // More than there is are the same bytes again and again, which copies would have to hold.
        let is_used = (body_bytes / 4 * MIN_USED_QUARTERS..=body_bytes).contains(&in_body);
        if in_body == 0 || is_used {
            let hold_body = in_body > 0;
            return Ok(ZeroCopyRows { chunks, bytes: beside + if hold_body { body_bytes } else { 0 }, hold_body });
        }
        chunks = chunks.iter().map(Chunk::copied).collect::<Result<_>>()?;
        Ok(ZeroCopyRows { chunks, bytes: beside + in_body, hold_body: false })
    }

    fn count(&mut self, chunk: &Chunk) {
        self.count_buffer(chunk.time.inner());
        self.count_buffer(chunk.series.inner());
        chunk.arrays().for_each(|array| self.count_data(&array.to_data()));
    }

    fn count_data(&mut self, data: &ArrayData) {
        data.buffers().iter().for_each(|buffer| self.count_buffer(buffer));
        if let Some(nulls) = data.nulls() {
            self.count_buffer(nulls.buffer());
        }
        data.child_data().iter().for_each(|child| self.count_data(child));
    }

    fn count_buffer(&mut self, buffer: &Buffer) {
        let start = buffer.data_ptr().as_ptr().cast_const();
        if self.body.as_ref().is_some_and(|body| body.as_ptr() == start) {
            self.in_body += buffer.len();
        } else {
            self.beside += buffer.capacity();
        }
    }
}

/// Returns whether arrays of a type may lie in a body: those that are nothing but their own values.
fn stays(data_type: &DataType) -> bool {
    use DataType::{Binary, FixedSizeBinary, LargeBinary};
    is_plain(data_type) || data_type.is_primitive() || matches!(data_type, Binary | LargeBinary | FixedSizeBinary(_))
}

#[cfg(test)]
mod tests;
