//! The keys of a group: where they change from row to row, and what they are.

use std::{ops::Range, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, PrimitiveArray, RecordBatch, UInt32Array},
    compute::take,
    datatypes::{ArrowPrimitiveType, DataType, Int32Type, Schema, SchemaRef, TimestampNanosecondType},
};
use datafusion::{
    common::{
        DataFusionError, Result,
        tree_node::{Transformed, TransformedResult, TreeNode},
    },
    physical_expr::{
        PhysicalExpr, ScalarFunctionExpr,
        expressions::{Column, Literal},
    },
    physical_plan::aggregates::PhysicalGroupBy,
};

use super::bucket::Buckets;

/// Rows of a run, on average, from which it pays to look for runs: with tags among the keys, which
/// are text in a hash table, and with times only. Of few groups, a hash table takes a row of six in
/// less time than the second phase a run.
const ROWS_WITH_TAGS: usize = 4;
const ROWS_WITHOUT: usize = 16;

/// What the keys of a group depend on, and how they are computed.
#[derive(Debug)]
pub(in crate::query) struct Keys {
    /// Columns that the keys depend on, in the order in which `expressions` see them.
    columns: Vec<KeySource>,
    schema: SchemaRef,
    expressions: Vec<Arc<dyn PhysicalExpr>>,
}

/// A column that keys depend on, by its position in the input.
#[derive(Debug, Clone, PartialEq, Eq)]
enum KeySource {
    /// A dictionary.
    Tag(usize),
    /// Times, of which only the bucket counts, in each of these ways.
    Time(usize, Vec<Buckets>),
}

impl KeySource {
    fn position(&self) -> usize {
        match self {
            Self::Tag(position) | Self::Time(position, _) => *position,
        }
    }
}

impl Keys {
    /// Returns the keys of an aggregate over rows of `schema`, or `None` if they depend on anything
    /// but dictionaries and buckets of time.
    pub(super) fn new(group_by: &PhysicalGroupBy, schema: &Schema) -> Result<Option<Self>> {
        let keys: Vec<_> = group_by.expr().iter().map(|(expression, _)| Arc::clone(expression)).collect();
        Ok(Self::of(&keys, schema)?.filter(|keys| !keys.columns.is_empty()))
    }

    /// Returns some expressions over rows of `schema` as keys, or `None` as [`new`](Self::new) does.
    pub(in crate::query) fn of(keys: &[Arc<dyn PhysicalExpr>], schema: &Schema) -> Result<Option<Self>> {
        let mut columns = Vec::new();
        if !keys.iter().all(|key| gather(key, schema, &mut columns).is_some()) {
            return Ok(None);
        }
        let positions: Vec<usize> = columns.iter().map(KeySource::position).collect();
        let expressions = keys.iter().map(|key| moved(key, &positions)).collect::<Result<_>>()?;
        Ok(Some(Self { columns, schema: Arc::new(schema.project(&positions)?), expressions }))
    }

    /// Returns whether the keys are the same for all times of any hour.
    pub(in crate::query) fn are_by_hours(&self) -> bool {
        self.columns.iter().all(|source| match source {
            KeySource::Tag(_) => true,
            KeySource::Time(_, buckets) => buckets.iter().all(Buckets::are_of_hours),
        })
    }

    /// Returns the columns that the keys depend on.
    pub(in crate::query) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the keys of each row of a batch, which has the columns of [`schema`](Self::schema).
    pub(in crate::query) fn evaluate(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        self.expressions.iter().map(|key| key.evaluate(batch)?.into_array(batch.num_rows())).collect()
    }

    /// Returns how many rows a run should have on average.
    pub(super) fn rows_in_run(&self) -> usize {
        let has_tags = self.columns.iter().any(|source| matches!(source, KeySource::Tag(_)));
        if has_tags { ROWS_WITH_TAGS } else { ROWS_WITHOUT }
    }

    /// Returns the runs of a batch: in each, all keys are equal.
    pub(super) fn runs(&self, batch: &RecordBatch) -> KeyRuns {
        let mut starts = vec![0_u8; batch.num_rows()];
        for source in &self.columns {
            match (source, batch.columns().get(source.position())) {
                (KeySource::Tag(_), Some(column)) => mark_tags(column, &mut starts),
                (KeySource::Time(_, buckets), Some(column)) => mark_times(column, buckets, &mut starts),
                (_, None) => starts.fill(1),
            }
        }
        KeyRuns::new(&starts)
    }

    /// Returns the keys of each run.
    pub(super) fn values(&self, batch: &RecordBatch, runs: &KeyRuns) -> Result<Vec<ArrayRef>> {
        let starts = UInt32Array::from_iter_values(runs.starts());
        let columns = self.columns.iter().filter_map(|source| batch.columns().get(source.position()));
        let columns = columns.map(|column| take(column, &starts, None)).collect::<Result<_, _>>()?;
        let firsts = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        Ok(self.evaluate(&firsts)?.into_iter().map(compact).collect())
    }
}

/// Returns the same text without a hold on that of the rows between, which is the dictionary of a
/// row group.
fn compact(keys: ArrayRef) -> ArrayRef {
    match keys.as_string_view_opt() {
        Some(text) if !text.data_buffers().is_empty() => Arc::new(text.gc()),
        _ => keys,
    }
}

/// Adds the columns that a key depends on; `None` if it depends on something else.
fn gather(key: &Arc<dyn PhysicalExpr>, schema: &Schema, columns: &mut Vec<KeySource>) -> Option<()> {
    if key.is_volatile_node() {
        return None;
    }
    if let Some(column) = key.downcast_ref::<Column>() {
        let data_type = schema.fields().get(column.index())?.data_type();
        let is_tag = matches!(data_type, DataType::Dictionary(key, _) if **key == DataType::Int32);
        let source = KeySource::Tag(column.index());
        if is_tag && !columns.contains(&source) {
            columns.push(source);
        }
        return is_tag.then_some(());
    }
    if let Some((time, buckets)) = key.downcast_ref::<ScalarFunctionExpr>().and_then(|call| Buckets::of(call, schema)) {
        let known = columns.iter_mut().find_map(|source| match source {
            KeySource::Time(position, known) if *position == time => Some(known),
            _ => None,
        });
        match known {
            Some(known) => known.push(buckets),
            None => columns.push(KeySource::Time(time, vec![buckets])),
        }
        return Some(());
    }
    let children = key.children();
    if children.is_empty() {
        return key.is::<Literal>().then_some(());
    }
    children.into_iter().try_for_each(|child| gather(child, schema, columns))
}

/// Returns a key that reads its columns where they are among `positions`.
fn moved(key: &Arc<dyn PhysicalExpr>, positions: &[usize]) -> Result<Arc<dyn PhysicalExpr>> {
    let to_slot = |key: Arc<dyn PhysicalExpr>| {
        let Some(column) = key.downcast_ref::<Column>() else { return Ok(Transformed::no(key)) };
        let position = positions.iter().position(|position| *position == column.index());
        let position = position.ok_or_else(|| DataFusionError::Internal(format!("{column} is in no group key")))?;
        Ok(Transformed::yes(Arc::new(Column::new(column.name(), position)) as Arc<dyn PhysicalExpr>))
    };
    Arc::clone(key).transform_down(to_slot).data()
}

/// Marks the rows whose tag is not that of the row before. Two positions in a dictionary may hold
/// the same text.
fn mark_tags(column: &ArrayRef, starts: &mut [u8]) {
    match column.as_dictionary_opt::<Int32Type>() {
        Some(tags) => {
            mark_changes(tags.keys().values(), starts);
            mark_nulls(tags.keys(), starts);
        }
        None => starts.fill(1),
    }
}

fn mark_times(column: &ArrayRef, buckets: &[Buckets], starts: &mut [u8]) {
    let Some(times) = column.as_primitive_opt::<TimestampNanosecondType>() else {
        starts.fill(1);
        return;
    };
    for buckets in buckets {
        let mut bucket: Range<i64> = 0..0;
        for (start, time) in starts.iter_mut().zip(times.values()) {
            if !bucket.contains(time) {
                *start = 1;
                // Without a bucket, a row is a run.
                bucket = buckets.around(*time).unwrap_or(0..0);
            }
        }
    }
    mark_nulls(times, starts);
}

fn mark_changes<T: PartialEq>(values: &[T], starts: &mut [u8]) {
    let changed = values.iter().zip(values.iter().skip(1)).map(|(before, value)| u8::from(before != value));
    starts.iter_mut().skip(1).zip(changed).for_each(|(start, changed)| *start |= changed);
}

fn mark_nulls<T: ArrowPrimitiveType>(values: &PrimitiveArray<T>, starts: &mut [u8]) {
    let Some(nulls) = values.nulls().filter(|nulls| nulls.null_count() > 0) else { return };
    let is_null: Vec<bool> = nulls.iter().collect();
    mark_changes(&is_null, starts);
}

/// The runs of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeyRuns {
    /// The row after each.
    ends: Vec<usize>,
}

impl KeyRuns {
    /// Rows that are looked at together.
    const ROWS: usize = 8;

    /// `starts` tells of each row whether a run begins there; at the first row one does.
    pub(super) fn new(starts: &[u8]) -> Self {
        let mut ends = Vec::new();
        for (at, rows) in starts.chunks(Self::ROWS).enumerate() {
            if *rows == [0; Self::ROWS] {
                continue;
            }
            let marked = rows.iter().enumerate().filter(|(_, start)| **start != 0);
            ends.extend(marked.map(|(row, _)| at * Self::ROWS + row).filter(|row| *row > 0));
        }
        if !starts.is_empty() {
            ends.push(starts.len());
        }
        Self { ends }
    }

    pub(super) fn count(&self) -> usize {
        self.ends.len()
    }

    /// Returns the number of rows of each.
    pub(super) fn lengths(&self) -> impl Iterator<Item = usize> + '_ {
        self.ranges().map(|run| run.len())
    }

    /// Returns the rows of each.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(self.ends.iter().copied()).map(|(start, end)| start..end)
    }

    #[expect(clippy::cast_possible_truncation, reason = "a batch has no 4 billion rows: its size is ours")]
    fn starts(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranges().map(|run| run.start as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_begins_where_a_row_is_marked() {
        for (starts, ends) in [
            (vec![], vec![]),
            (vec![0], vec![1]),
            (vec![1, 0, 1], vec![2, 3]),
            ([vec![0; 8], vec![1], vec![0; 7], vec![0, 1, 1]].concat(), vec![8, 17, 18, 19]),
        ] {
            assert_eq!(KeyRuns::new(&starts), KeyRuns { ends }, "{starts:?}");
        }
    }
}
