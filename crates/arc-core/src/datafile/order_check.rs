//! Whether rows stand in the order that their file promises.

use std::cmp::Ordering;

use arrow::{
    array::{ArrayRef, RecordBatch},
    compute::SortOptions,
    datatypes::Schema,
    error::ArrowError,
    row::{OwnedRow, RowConverter, SortField},
};

/// Compares each row with the one before it, across batches.
#[derive(Debug)]
pub(crate) struct OrderCheck {
    converter: RowConverter,
    columns: Vec<usize>,
    last: Option<OwnedRow>,
    rows: u64,
    /// Whether no two rows may be equal in all columns of the order.
    unique: bool,
    violation: Option<String>,
}

impl OrderCheck {
    /// Checks rows of `schema` against the order by `sorted_by`; columns that are not there are
    /// null throughout.
    pub(crate) fn new(schema: &Schema, sorted_by: &[String], unique: bool) -> Result<Self, ArrowError> {
        let columns: Vec<usize> = sorted_by.iter().filter_map(|name| schema.index_of(name).ok()).collect();
        let ascending = SortOptions { descending: false, nulls_first: true };
        let field = |column: &usize| SortField::new_with_options(schema.field(*column).data_type().clone(), ascending);
        let converter = RowConverter::new(columns.iter().map(field).collect())?;
        Ok(Self { converter, columns, last: None, rows: 0, unique, violation: None })
    }

    pub(crate) fn push(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        if self.columns.is_empty() || self.violation.is_some() {
            return Ok(());
        }
        let arrays: Vec<ArrayRef> = self.columns.iter().map(|column| batch.column(*column).clone()).collect();
        let rows = self.converter.convert_columns(&arrays)?;
        for (index, row) in rows.iter().enumerate() {
            let order = match (index.checked_sub(1), &self.last) {
                (Some(before), _) => rows.row(before).cmp(&row),
                (None, Some(last)) => last.row().cmp(&row),
                (None, None) => Ordering::Less,
            };
            if order == Ordering::Greater || (order == Ordering::Equal && self.unique) {
                let problem = if order == Ordering::Equal { "has the identity of" } else { "should stand before" };
                self.violation = Some(format!("row {} {problem} the row before it", self.rows));
                return Ok(());
            }
            self.rows += 1;
        }
        if let Some(last) = rows.iter().next_back() {
            self.last = Some(last.owned());
        }
        Ok(())
    }

    /// Returns what is wrong with the order; rows are counted from 0.
    pub(crate) fn finish(self) -> Option<String> {
        self.violation
    }
}
