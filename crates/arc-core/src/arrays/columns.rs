//! Columns of rows that are handed on piece by piece, whoever has them.

use std::ops::Range;

use arrow::array::ArrayRef;

use crate::Result;

/// Rows that are all in memory and can be had column by column.
pub(crate) trait Columns {
    /// Returns the number of rows.
    fn len(&self) -> usize;

    /// Hands the values of some rows of one column to `take`, in order, in any number of arrays: of
    /// the column's type, or of dictionaries where that is text.
    fn column(&self, index: usize, rows: Range<usize>, take: &mut dyn FnMut(&ArrayRef) -> Result<()>) -> Result<()>;

    /// Returns every `step`-th value of one column.
    fn sample(&self, index: usize, step: usize) -> Result<ArrayRef>;
}
