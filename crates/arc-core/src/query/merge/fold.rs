//! The fold itself, on sorted batches: pure functions without a plan or a stream.

use std::{cmp::Ordering, ops::Range, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, RecordBatch, UInt64Array, make_comparator},
    compute::{SortOptions, partition, take},
    datatypes::SchemaRef,
    error::ArrowError,
};

/// Returns one row for each run of rows with equal `keys`: its keys, and of every other column the
/// last value that is not null.
///
/// `keys` are column indices, at least one. Runs must be consecutive, which they are in a sorted
/// batch; null keys are equal to each other. Folding a folded batch together with later rows gives
/// what folding all rows at once gives.
pub(super) fn fold(batch: &RecordBatch, keys: &[usize]) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns();
    let key_columns: Vec<ArrayRef> = keys.iter().filter_map(|key| columns.get(*key)).map(Arc::clone).collect();
    let runs = partition(&key_columns)?.ranges();
    if runs.len() == batch.num_rows() {
        return Ok(batch.clone());
    }
    let ends = UInt64Array::from_iter_values(runs.iter().map(last_row));
    let folded = columns.iter().enumerate().map(|(index, column)| match column.logical_nulls() {
        Some(nulls) if nulls.null_count() > 0 && !keys.contains(&index) => {
            let last_set = |run: &Range<usize>| run.clone().rev().find(|row| nulls.is_valid(*row));
            let rows = runs.iter().map(|run| last_set(run).map_or_else(|| last_row(run), |row| row as u64));
            take(column, &UInt64Array::from_iter_values(rows), None)
        }
        _ => take(column, &ends, None),
    });
    RecordBatch::try_new(batch.schema(), folded.collect::<Result<_, _>>()?)
}

fn last_row(run: &Range<usize>) -> u64 {
    run.end.saturating_sub(1) as u64
}

/// Returns whether the last row of `earlier` and the first row of `later` have the same `keys`.
/// Neither may be empty.
pub(super) fn continues(earlier: &RecordBatch, later: &RecordBatch, keys: &[usize]) -> Result<bool, ArrowError> {
    let last = earlier.num_rows().saturating_sub(1);
    for key in keys {
        let compare = make_comparator(earlier.column(*key), later.column(*key), SortOptions::default())?;
        if compare(last, 0) != Ordering::Equal {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns `batch` with only its first columns, those of `schema`.
pub(super) fn without_hidden(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().take(schema.fields().len()).map(Arc::clone).collect();
    RecordBatch::try_new(Arc::clone(schema), columns)
}
