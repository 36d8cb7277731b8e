//! Which unflushed rows meet the conditions of a scan.
//!
//! Owns the order in which they are looked at: times first, which need no column to be made, then
//! one condition after the other, each for the rows that are left. One on a single tag is asked
//! once for each of its values.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray, DictionaryArray, Int32Array, RecordBatch},
    buffer::BooleanBuffer,
    compute::prep_null_mask_filter,
    datatypes::{Int32Type, SchemaRef},
};
use datafusion::{
    common::{DataFusionError, Result},
    physical_expr::{
        PhysicalExpr, split_conjunction,
        utils::{collect_columns, reassign_expr_columns},
    },
};

use super::{error::external, times::TimeRange};
use crate::buffer::ChunkRows;

/// See the module.
#[derive(Debug)]
pub(super) struct Filter {
    times: Option<TimeRange>,
    conditions: Vec<BufferCondition>,
}

/// A condition, and the columns that it looks at.
#[derive(Debug)]
struct BufferCondition {
    /// Indices in the table's columns.
    columns: Vec<usize>,
    schema: SchemaRef,
    /// Over `schema`.
    holds: Arc<dyn PhysicalExpr>,
}

impl Filter {
    /// Returns the filter of rows that have one of the times and meet all conditions, which are
    /// over the columns of `table`.
    pub(super) fn new(
        table: &SchemaRef,
        times: Option<TimeRange>,
        conditions: &[Arc<dyn PhysicalExpr>],
    ) -> Result<Self> {
        let conditions =
            conditions.iter().flat_map(split_conjunction).map(|condition| BufferCondition::new(table, condition));
        Ok(Self { times, conditions: conditions.collect::<Result<_>>()? })
    }

    /// Returns those of the rows that count.
    pub(super) fn apply(&self, rows: &ChunkRows) -> Result<ChunkRows> {
        let mut rows = rows.clone();
        if let Some(times) = self.times {
            let all = rows.times();
            let in_time =
                BooleanBuffer::collect_bool(all.len(), |row| all.get(row).is_some_and(|time| times.has(*time)));
            rows = rows.filter(&BooleanArray::from(in_time));
        }
        for condition in &self.conditions {
            if rows.len() > 0 {
                rows = rows.filter(&condition.mask(&rows)?);
            }
        }
        Ok(rows)
    }
}

impl BufferCondition {
    fn new(table: &SchemaRef, condition: &Arc<dyn PhysicalExpr>) -> Result<Self> {
        let mut columns: Vec<usize> = collect_columns(condition).iter().map(|column| column.index()).collect();
        columns.sort_unstable();
        let schema: SchemaRef = Arc::new(table.project(&columns)?);
        Ok(Self { holds: reassign_expr_columns(Arc::clone(condition), &schema)?, columns, schema })
    }

    /// Returns for which rows it holds; no row is null.
    fn mask(&self, rows: &ChunkRows) -> Result<BooleanArray> {
        let batch = rows.batch(&self.schema, &self.columns).map_err(external)?;
        if let [column] = batch.columns()
            && let Some(texts) = column.as_dictionary_opt::<Int32Type>()
            && texts.values().len() < texts.len() / 2
            // A value that none of these rows has may be one that the condition fails of.
            && let Ok(mask) = self.mask_of_values(texts)
        {
            return Ok(mask);
        }
        self.evaluate(&batch)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let values = self.holds.evaluate(batch)?.into_array(batch.num_rows())?;
        let Some(mask) = values.as_boolean_opt() else {
            return Err(DataFusionError::Internal("a condition that is neither true nor false".to_owned()));
        };
        Ok(if mask.null_count() > 0 { prep_null_mask_filter(mask) } else { mask.clone() })
    }

    /// Asks for each value, and for null, and looks up what each row has.
    fn mask_of_values(&self, texts: &DictionaryArray<Int32Type>) -> Result<BooleanArray> {
        let values = i32::try_from(texts.values().len()).unwrap_or(i32::MAX);
        let keys: Int32Array = (0..values).map(Some).chain([None]).collect();
        let each: ArrayRef = Arc::new(DictionaryArray::try_new(keys, Arc::clone(texts.values()))?);
        let holds = self.evaluate(&RecordBatch::try_new(Arc::clone(&self.schema), vec![each])?)?;
        let of_null = holds.len() - 1;
        let (keys, nulls) = (texts.keys().values(), texts.nulls());
        let has = |row| match nulls.is_some_and(|nulls| nulls.is_null(row)) {
            true => holds.value(of_null),
            false => keys.get(row).and_then(|key| usize::try_from(*key).ok()).is_some_and(|key| holds.value(key)),
        };
        Ok(BooleanBuffer::collect_bool(texts.len(), has).into())
    }
}
