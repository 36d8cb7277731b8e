//! Where a file ends.

use std::cmp::Ordering;

use arrow::{
    array::{ArrayRef, RecordBatch, UInt32Array, make_comparator},
    compute::{SortOptions, take},
};

use crate::Result;

/// When a file is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileLimits {
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

/// Knows the key of a file's last row.
#[derive(Debug, Default)]
pub(super) struct RowGroupKey {
    /// Indices of the columns that make the key; none where every row may begin a file.
    columns: Vec<usize>,
    /// One row: the last one's key.
    last: Vec<ArrayRef>,
}

impl RowGroupKey {
    pub(super) fn new(columns: Vec<usize>) -> Self {
        Self { columns, last: Vec::new() }
    }

    /// Takes note of the file's newest rows.
    pub(super) fn remember(&mut self, rows: &RecordBatch) -> Result<()> {
        let Some(last) = rows.num_rows().checked_sub(1) else { return Ok(()) };
        let last = UInt32Array::from_iter_values(u32::try_from(last));
        let columns = self.columns.iter().filter_map(|column| rows.columns().get(*column));
        // A copy: the rows themselves are let go of.
        self.last = columns.map(|column| Ok(take(column, &last, None)?)).collect::<Result<_>>()?;
        Ok(())
    }

    /// Returns how many of the first rows have the key of the file's last row.
    pub(super) fn continuing(&self, rows: &RecordBatch) -> Result<usize> {
        if self.last.is_empty() {
            return Ok(0);
        }
        let columns = self.columns.iter().filter_map(|column| rows.columns().get(*column));
        let compare =
            columns.zip(&self.last).map(|(column, last)| make_comparator(last, column, SortOptions::default()));
        let compare = compare.collect::<Result<Vec<_>, _>>()?;
        let continues = |row: &usize| compare.iter().all(|compare| compare(0, *row) == Ordering::Equal);
        Ok((0..rows.num_rows()).take_while(continues).count())
    }
}

/// Returns some of the rows. All of them are cheaper to share than to slice, column by column.
pub(super) fn part(rows: &RecordBatch, start: usize, count: usize) -> RecordBatch {
    if (start, count) == (0, rows.num_rows()) { rows.clone() } else { rows.slice(start, count) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Array, Int64Array, StringArray};

    use super::*;

    #[test]
    fn a_group_goes_on_while_all_of_its_columns_are_equal() {
        let rows = |a: Vec<Option<&str>>, b: Vec<Option<f64>>| {
            let a: ArrayRef = Arc::new(StringArray::from(a));
            let b: ArrayRef = Arc::new(Float64Array::from(b));
            let other: ArrayRef = Arc::new(Int64Array::from_iter_values(0..a.len() as i64));
            RecordBatch::try_from_iter_with_nullable([("a", a, true), ("other", other, true), ("b", b, true)]).unwrap()
        };
        let (x, y, one, nan) = (Some("x"), Some("y"), Some(1.0), Some(f64::NAN));
        let cases = [
            (vec![0, 2], rows(vec![x], vec![one]), rows(vec![x, x, y, x], vec![one; 4]), 2),
            (vec![0, 2], rows(vec![x], vec![one]), rows(vec![x, x], vec![one, nan]), 1),
            (vec![0, 2], rows(vec![y, None], vec![one, nan]), rows(vec![None, None, x], vec![nan; 3]), 2),
            (vec![2], rows(vec![x], vec![None]), rows(vec![y, y], vec![None, one]), 1),
            (vec![0], rows(vec![x, y], vec![one; 2]), rows(vec![x, y], vec![one; 2]), 0),
            (vec![], rows(vec![x], vec![one]), rows(vec![x], vec![one]), 0),
        ];
        for (columns, before, after, expected) in cases {
            let mut group = RowGroupKey::new(columns);
            group.remember(&before).unwrap();
            group.remember(&before.slice(0, 0)).unwrap();
            assert_eq!(group.continuing(&after).unwrap(), expected, "{after:?}");
        }
    }
}
