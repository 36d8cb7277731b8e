//! Rows with long values where an operator repeats them: in joins for each partner, in UNNEST for each item.
//!
//! An operator makes its rows some thousand at a time, however long they are, and in no account. So the rows that a long one
//! is repeated for come a few at a time. Changes neither plans nor what is shown of them.

use std::{
    collections::VecDeque,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use arrow::{
    array::{ArrayRef, RecordBatch},
    datatypes::Schema,
};
use datafusion::{
    common::{
        Result,
        tree_node::{Transformed, TransformedResult, TreeNode},
    },
    execution::{SendableRecordBatchStream, TaskContext},
    logical_expr::ColumnarValue,
    physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions, unnest::UnnestExec},
};

use parking_lot::Mutex;

use super::{
    around::{Around, Effect},
    error::refuse,
    functions::{elements_by_row, total_bytes},
    sized::{SLACK, has_any_size, in_pieces},
};

const JOINS: [&str; 5] =
    ["CrossJoinExec", "NestedLoopJoinExec", "HashJoinExec", "SortMergeJoinExec", "PiecewiseMergeJoinExec"];

/// Rows that a join makes at a time, if those of its second input may be long.
const MAX_JOINED: usize = 1_024;

/// Bytes of a batch below which each of its rows is as good as all of them.
const SURELY_SMALL: u64 = 16 << 10;

/// Wraps the operators that repeat long rows.
pub(super) fn wrap(plan: Arc<dyn ExecutionPlan>, limit_bytes: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let allowed_bytes = limit_bytes.saturating_mul(SLACK) as u64;
    let wrapped = plan.transform_up(|plan| {
        let children: Vec<_> = plan.children().into_iter().map(Arc::clone).collect();
        match children.as_slice() {
            [first, second] if JOINS.contains(&plan.name()) => {
                let inputs = (Arc::clone(first), Arc::clone(second));
                around_join(plan, inputs, allowed_bytes)
            }
            [input] if plan.name() == "UnnestExec" => around_unnest(plan, Arc::clone(input), allowed_bytes),
            _ => Ok(Transformed::no(plan)),
        }
    });
    wrapped.data()
}

/// Has a join know how long the rows of its inputs are, where they may be.
fn around_join(
    plan: Arc<dyn ExecutionPlan>,
    (first, second): (Arc<dyn ExecutionPlan>, Arc<dyn ExecutionPlan>),
    allowed_bytes: u64,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let (wide_first, wide_second) = (wide_columns(&first.schema()), wide_columns(&second.schema()));
    if wide_first.is_empty() && wide_second.is_empty() {
        return Ok(Transformed::no(plan));
    }
    // This one has each row of the first input with those of a batch of the second.
    let is_cross = plan.name() == "CrossJoinExec";
    let has_small_batches = !is_cross && !wide_second.is_empty();
    let join = Arc::new(JoinedRows { widest: AtomicU64::new(0), context: Mutex::new(None) });
    let measured = Measured { wide: wide_first, join: Arc::clone(&join) };
    let longest = if is_cross { u64::MAX } else { allowed_bytes.saturating_mul(SLACK as u64) / MAX_JOINED as u64 };
    let partners = Partners { wide: wide_second, join: Arc::clone(&join), allowed_bytes, longest };
    let (first, second) = (Around::plan(first, Arc::new(measured)), Around::plan(second, Arc::new(partners)));
    let plan = over(plan, vec![first, second])?;
    Ok(Transformed::yes(match has_small_batches {
        true => Around::plan(plan, Arc::new(SmallBatches(join))),
        false => plan,
    }))
}

/// Has an unnest take few rows at a time where they become many, or are long.
fn around_unnest(
    plan: Arc<dyn ExecutionPlan>,
    input: Arc<dyn ExecutionPlan>,
    allowed_bytes: u64,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(unnest) = plan.downcast_ref::<UnnestExec>() else { return Ok(Transformed::no(plan)) };
    let lists = unnest.list_column_indices().iter().map(|list| list.index_in_input_schema).collect();
    let items = Items { lists, wide: wide_columns(&input.schema()), allowed_bytes };
    over(plan, vec![Around::plan(input, Arc::new(items))]).map(Transformed::yes)
}

fn over(plan: Arc<dyn ExecutionPlan>, inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.replace_children(inputs, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))
}

/// Returns which columns may have values of any size.
pub(super) fn wide_columns(schema: &Schema) -> Arc<[usize]> {
    let columns = schema.fields().iter().enumerate();
    columns.filter(|(_, field)| has_any_size(field.data_type())).map(|(index, _)| index).collect()
}

/// Returns the bytes of the long values of a row.
pub(super) fn bytes_of_row(batch: &RecordBatch, row: usize, wide: &[usize]) -> Result<u64> {
    bytes_of(batch, row..row + 1, wide)
}

fn bytes_of(batch: &RecordBatch, rows: Range<usize>, wide: &[usize]) -> Result<u64> {
    wide.iter().filter_map(|column| batch.columns().get(*column)).try_fold(0_u64, |sum, column: &ArrayRef| {
        Ok(sum.saturating_add(total_bytes(&column.slice(rows.start, rows.len()))?))
    })
}

/// Returns the bytes of the longest row, or a few that are more.
fn widest_of(batch: &RecordBatch, wide: &[usize]) -> Result<u64> {
    let all = bytes_of(batch, 0..batch.num_rows(), wide)?;
    if all <= SURELY_SMALL {
        return Ok(all);
    }
    (0..batch.num_rows()).try_fold(0, |widest, row| Ok(bytes_of_row(batch, row, wide)?.max(widest)))
}

/// What the inputs of a join know of each other.
#[derive(Debug)]
struct JoinedRows {
    /// Bytes of the longest row of the first.
    widest: AtomicU64,
    /// Where the join makes small batches, what its inputs are executed with.
    context: Mutex<Option<Arc<TaskContext>>>,
}

impl JoinedRows {
    fn context(&self, of_join: Arc<TaskContext>) -> Arc<TaskContext> {
        self.context.lock().clone().unwrap_or(of_join)
    }
}

/// Has the longest row of the first input of a join known.
#[derive(Debug)]
struct Measured {
    wide: Arc<[usize]>,
    join: Arc<JoinedRows>,
}

impl Effect for Measured {
    fn execute(
        &self,
        inner: &dyn ExecutionPlan,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (wide, join) = (Arc::clone(&self.wide), Arc::clone(&self.join));
        let options = Arc::clone(context.session_config().options());
        Ok(in_pieces(inner.execute(partition, join.context(context))?, options, move |batch, pieces| {
            join.widest.fetch_max(widest_of(&batch, &wide)?, Ordering::Relaxed);
            pieces.push_back(batch);
            Ok(())
        }))
    }
}

/// Has the second input of a join come a few rows at a time, if those of the first are long.
#[derive(Debug)]
struct Partners {
    wide: Arc<[usize]>,
    join: Arc<JoinedRows>,
    /// What the rows may take that the longest row of the first input is repeated for.
    allowed_bytes: u64,
    /// Bytes that one of its own rows may have.
    longest: u64,
}

impl Effect for Partners {
    fn execute(
        &self,
        inner: &dyn ExecutionPlan,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (wide, join) = (Arc::clone(&self.wide), Arc::clone(&self.join));
        let (allowed_bytes, longest) = (self.allowed_bytes, self.longest);
        let options = Arc::clone(context.session_config().options());
        Ok(in_pieces(inner.execute(partition, join.context(context))?, options, move |batch, pieces| {
            let own = widest_of(&batch, &wide)?;
            if own > longest {
                return refuse(format!(
                    "a row of {own} bytes is too long for a join, which may repeat it for each of its partners; the limit is {longest}"
                ));
            }
            let rows = allowed_bytes.checked_div(join.widest.load(Ordering::Relaxed)).unwrap_or(u64::MAX);
            cut(&batch, usize::try_from(rows).unwrap_or(usize::MAX).max(1), pieces);
            Ok(())
        }))
    }
}

/// Has a join make few rows at a time.
#[derive(Debug)]
struct SmallBatches(Arc<JoinedRows>);

impl Effect for SmallBatches {
    fn execute(
        &self,
        inner: &dyn ExecutionPlan,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let rows = context.session_config().batch_size().min(MAX_JOINED);
        let small = TaskContext::new(
            context.task_id(),
            context.session_id(),
            context.session_config().clone().with_batch_size(rows),
            context.scalar_functions().clone(),
            context.higher_order_functions().clone(),
            context.aggregate_functions().clone(),
            context.window_functions().clone(),
            context.runtime_env(),
        );
        *self.0.context.lock() = Some(context);
        inner.execute(partition, Arc::new(small))
    }
}

/// Has the input of UNNEST come so many rows at a time as the items of their lists allow.
#[derive(Debug)]
struct Items {
    lists: Arc<[usize]>,
    wide: Arc<[usize]>,
    allowed_bytes: u64,
}

impl Effect for Items {
    fn execute(
        &self,
        inner: &dyn ExecutionPlan,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (lists, wide, allowed_bytes) = (Arc::clone(&self.lists), Arc::clone(&self.wide), self.allowed_bytes);
        let options = Arc::clone(context.session_config().options());
        Ok(in_pieces(inner.execute(partition, context)?, options, move |batch, pieces| {
            let lists = lists.iter().filter_map(|list| batch.columns().get(*list));
            let lists = lists
                .map(|list| elements_by_row(&ColumnarValue::Array(Arc::clone(list))))
                .collect::<Result<Vec<_>>>()?;
            let (mut start, mut bytes) = (0, 0_u64);
            for row in 0..batch.num_rows() {
                let items = lists.iter().map(|list| list.count(row)).max().unwrap_or(0);
                let own = bytes_of_row(&batch, row, &wide)?.saturating_mul(items);
                if own > allowed_bytes {
                    return refuse(format!(
                        "a row would be repeated for {items} items, which takes {own} bytes; the limit is {allowed_bytes}"
                    ));
                }
                bytes = bytes.saturating_add(own);
                if bytes > allowed_bytes && row > start {
                    pieces.push_back(batch.slice(start, row - start));
                    (start, bytes) = (row, own);
                }
            }
            pieces.push_back(batch.slice(start, batch.num_rows() - start));
            Ok(())
        }))
    }
}

fn cut(batch: &RecordBatch, rows: usize, into: &mut VecDeque<RecordBatch>) {
    let mut start = 0;
    while start < batch.num_rows() {
        let length = rows.min(batch.num_rows() - start);
        into.push_back(batch.slice(start, length));
        start += length;
    }
}
