//! What operators make of rows, held to a size: a net below the limits of single functions.
//!
//! Most of what expressions make is in no account. A value that doubles with each of some dozen
//! projections would soon be larger than any memory, and so would 3,000 columns of long texts. So
//! an operator has as many rows at once as its expressions may make long values of, and what its
//! functions make of these is added up. Changes neither plans nor what is shown of them.

use std::{
    cell::Cell,
    collections::{HashMap, VecDeque},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use arrow::{
    array::RecordBatch,
    datatypes::{DataType, Schema, SchemaRef},
};
use datafusion::{
    common::{
        Result,
        config::ConfigOptions,
        tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion},
    },
    execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext},
    logical_expr::ColumnarValue,
    physical_expr::{
        PhysicalExpr,
        expressions::{Column, Literal},
        scalar_subquery::ScalarSubqueryExpr,
    },
    physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions, projection::ProjectionExec},
};
use futures::{Stream, StreamExt};

use super::{
    around::{Around, Effect},
    coop,
    error::refuse,
    functions,
};
use crate::model::fixed_bytes;

/// How far the columns of a batch may exceed what one function may make: many are read as they are.
pub(super) const SLACK: usize = 4;

/// Rows that an operator has at once, each time that an expression makes long values of them: of
/// more than so many such expressions, fewer rows.
const MAX_VALUES: usize = 1 << 18;

thread_local! {
    /// Bytes that functions have made of the rows that the operator has which this thread works for.
    static MADE_BYTES: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Wraps each operator that makes values of any size.
pub(super) fn wrap(plan: Arc<dyn ExecutionPlan>, limit_bytes: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let wrapped = plan.transform_up(|plan| {
        let children = plan.children();
        let [child] = children.as_slice() else { return Ok(Transformed::no(plan)) };
        let made = LongValues::by(&plan, &child.schema())?;
        if made.count == 0 {
            return Ok(Transformed::no(plan));
        }
        let pieces = RowPieces { made, limit_bytes: limit_bytes as u64 };
        let child = Around::plan(Arc::clone(child), Arc::new(pieces));
        let columns = plan.downcast_ref::<ProjectionExec>().map(computed).unwrap_or_default();
        let allowed_bytes = limit_bytes.saturating_mul(SLACK) as u64;
        let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
        let plan = plan.replace_children(vec![child], keep)?;
        Ok(Transformed::yes(Around::plan(plan, Arc::new(Sizes { columns: columns.into(), allowed_bytes }))))
    });
    wrapped.data()
}

/// Returns which columns are computed, and can be of any size.
fn computed(projection: &ProjectionExec) -> Vec<usize> {
    let schema = projection.schema();
    let columns = projection.expr().iter().zip(schema.fields()).enumerate();
    let made = columns.filter(|(_, (expr, field))| !is_read(&expr.expr) && has_any_size(field.data_type()));
    made.map(|(index, _)| index).collect()
}

fn is_read(expr: &Arc<dyn PhysicalExpr>) -> bool {
    expr.is::<Column>() || expr.is::<Literal>()
}

/// Returns whether one value of a type may be of any size.
pub(super) fn has_any_size(data_type: &DataType) -> bool {
    use DataType::{Binary, BinaryView, LargeBinary, LargeUtf8, Utf8, Utf8View};
    data_type.is_nested() || matches!(data_type, Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView)
}

/// The long values that the expressions of an operator make.
#[derive(Debug, Clone, Default)]
struct LongValues {
    count: usize,
    /// The columns that they are made of, and of how many of them.
    columns: HashMap<usize, u64>,
    /// Bytes that each of their values has, also where it is NULL.
    fixed_bytes: usize,
    /// Values that come from elsewhere, for each row.
    subqueries: Vec<Arc<dyn PhysicalExpr>>,
}

impl LongValues {
    fn by(plan: &Arc<dyn ExecutionPlan>, schema: &Schema) -> Result<Self> {
        let mut made = Self::default();
        plan.apply_expressions(&mut |expr| {
            made.add(expr, schema)?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(made)
    }

    fn add(&mut self, expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<()> {
        expr.apply(|expr| {
            let data_type = expr.data_type(schema).ok().filter(|data_type| !is_read(expr) && has_any_size(data_type));
            let Some(data_type) = data_type else { return Ok(TreeNodeRecursion::Continue) };
            self.count += 1;
            self.fixed_bytes = self.fixed_bytes.saturating_add(fixed_bytes(&data_type));
            if expr.is::<ScalarSubqueryExpr>() {
                self.subqueries.push(Arc::clone(expr));
            }
            for child in expr.children() {
                if let Some(column) = child.downcast_ref::<Column>() {
                    *self.columns.entry(column.index()).or_default() += 1;
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })
        .map(|_| ())
    }

    /// Returns about how many bytes are made of a batch.
    fn bytes(&self, batch: &RecordBatch) -> Result<u64> {
        let mut bytes = (self.fixed_bytes as u64).saturating_mul(batch.num_rows() as u64);
        for (column, count) in &self.columns {
            if let Some(column) = batch.columns().get(*column) {
                bytes = bytes.saturating_add(functions::total_bytes(column)?.saturating_mul(*count));
            }
        }
        for subquery in &self.subqueries {
            if let ColumnarValue::Scalar(value) = subquery.evaluate(batch)? {
                let one = functions::total_bytes(&value.to_array()?)?;
                bytes = bytes.saturating_add(one.saturating_mul(batch.num_rows() as u64));
            }
        }
        Ok(bytes)
    }
}

/// Gives an operator its rows some at a time.
#[derive(Debug)]
struct RowPieces {
    made: LongValues,
    limit_bytes: u64,
}

impl RowPieces {
    fn cut(&self, batch: RecordBatch, into: &mut VecDeque<RecordBatch>) -> Result<()> {
        let rows = batch.num_rows();
        let is_small =
            rows.saturating_mul(self.made.count) <= MAX_VALUES && self.made.bytes(&batch)? <= self.limit_bytes;
        if rows < 2 || is_small {
            into.push_back(batch);
            return Ok(());
        }
        self.cut(batch.slice(0, rows / 2), into)?;
        self.cut(batch.slice(rows / 2, rows - rows / 2), into)
    }
}

impl Effect for RowPieces {
    fn execute(
        &self,
        inner: &dyn ExecutionPlan,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let pieces = Self { made: self.made.clone(), limit_bytes: self.limit_bytes };
        let options = Arc::clone(context.session_config().options());
        Ok(in_pieces(inner.execute(partition, context)?, options, move |batch, into| pieces.cut(batch, into)))
    }
}

/// Returns the rows of `input` in the pieces that `cut` makes of a batch, until the query ends that these
/// options are of: whoever takes them may work on each for long, and gives way after many.
pub(super) fn in_pieces(
    input: SendableRecordBatchStream,
    options: Arc<ConfigOptions>,
    cut: impl Fn(RecordBatch, &mut VecDeque<RecordBatch>) -> Result<()> + Send + Unpin + 'static,
) -> SendableRecordBatchStream {
    Box::pin(PieceStream { input, options, cut, waiting: VecDeque::new() })
}

struct PieceStream<F> {
    input: SendableRecordBatchStream,
    options: Arc<ConfigOptions>,
    cut: F,
    waiting: VecDeque<RecordBatch>,
}

impl<F> Stream for PieceStream<F>
where
    F: Fn(RecordBatch, &mut VecDeque<RecordBatch>) -> Result<()> + Unpin,
{
    type Item = Result<RecordBatch>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { input, options, cut, waiting } = self.get_mut();
        // What was made of the rows before does not count any more, and what is made below not here.
        let counting = Counting::begin(None);
        let next = loop {
            if let Some(piece) = waiting.pop_front() {
                break Poll::Ready(Some(coop::check(options).map(|()| piece)));
            }
            match input.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(batch))) => {
                    if let Err(error) = cut(batch, waiting) {
                        break Poll::Ready(Some(Err(error)));
                    }
                }
                other => break other,
            }
        };
        counting.end(Some(0));
        next
    }
}

impl<F> RecordBatchStream for PieceStream<F>
where
    F: Fn(RecordBatch, &mut VecDeque<RecordBatch>) -> Result<()> + Unpin,
{
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}

/// While something else is counted by this thread, or nothing.
struct Counting {
    before: Option<u64>,
}

impl Counting {
    fn begin(bytes: Option<u64>) -> Self {
        Self { before: MADE_BYTES.replace(bytes) }
    }

    /// Goes on with `bytes`, if something was counted before.
    fn end(mut self, bytes: Option<u64>) {
        self.before = self.before.and(bytes);
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        MADE_BYTES.set(self.before);
    }
}

/// Counts what a function has made, where the operator that it was called for has some rows at a time.
pub(super) fn count_made(bytes: u64, limit_bytes: u64) -> Result<()> {
    let Some(made) = MADE_BYTES.get() else { return Ok(()) };
    let made = made.saturating_add(bytes);
    MADE_BYTES.set(Some(made));
    let allowed = limit_bytes.saturating_mul(SLACK as u64);
    if made <= allowed {
        return Ok(());
    }
    refuse(format!("the functions of one step of the query would make {made} bytes at once; the limit is {allowed}"))
}

/// Looks at the size of columns, and has what functions make added up meanwhile.
#[derive(Debug)]
struct Sizes {
    columns: Arc<[usize]>,
    allowed_bytes: u64,
}

impl Effect for Sizes {
    fn execute(
        &self,
        inner: &dyn ExecutionPlan,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let rows = inner.execute(partition, context)?;
        Ok(Box::pin(SizedStream { rows, columns: Arc::clone(&self.columns), allowed_bytes: self.allowed_bytes }))
    }
}

struct SizedStream {
    rows: SendableRecordBatchStream,
    columns: Arc<[usize]>,
    allowed_bytes: u64,
}

impl Stream for SizedStream {
    type Item = Result<RecordBatch>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { rows, columns, allowed_bytes } = self.get_mut();
        let _counting = Counting::begin(Some(0));
        rows.poll_next_unpin(cx).map(|batch| {
            let checked = batch?.and_then(|batch| check(&batch, columns, *allowed_bytes).map(|()| batch));
            Some(checked)
        })
    }
}

impl RecordBatchStream for SizedStream {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }
}

fn check(batch: &RecordBatch, columns: &[usize], allowed_bytes: u64) -> Result<()> {
    let mut bytes: u64 = 0;
    for column in columns.iter().filter_map(|column| batch.columns().get(*column)) {
        bytes = bytes.saturating_add(functions::total_bytes(column)?);
    }
    if bytes <= allowed_bytes {
        return Ok(());
    }
    let rows = batch.num_rows();
    refuse(format!("the columns of the query take {bytes} bytes for {rows} rows at once; the limit is {allowed_bytes}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use arrow::array::{ArrayRef, Int64Array};
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use futures::stream;
    use tokio::time::Instant;

    use super::{super::account::Accounts, *};
    use crate::memory::MemoryBudget;

    #[tokio::test]
    async fn no_more_pieces_come_once_the_query_has_ended() {
        let accounts = Accounts::new(Arc::new(MemoryBudget::new(1 << 20, 1 << 40)));
        let account = accounts.open(Instant::now() + Duration::from_secs(3_600), 1 << 20);
        let mut options = ConfigOptions::new();
        options.extensions.insert(account.over().clone());
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let batch = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
        let rows = RecordBatchStreamAdapter::new(batch.schema(), stream::iter([Ok(batch)]));
        let mut pieces = in_pieces(Box::pin(rows), Arc::new(options), |batch, into| {
            into.extend((0..batch.num_rows()).map(|row| batch.slice(row, 1)));
            Ok(())
        });
        assert_eq!(pieces.next().await.unwrap().unwrap().num_rows(), 1);
        account.over().set();
        let ended = pieces.next().await.unwrap().unwrap_err();
        assert!(ended.to_string().contains("the query has ended"), "{ended}");
    }
}
