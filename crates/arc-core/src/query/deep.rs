//! Plans of many levels: each operator asks the one below it for rows, and takes stack for that, on a thread that we don't own.
//!
//! Every few levels there is a look at how much stack is left, and where it is little the levels below have one of their own.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use arrow::array::RecordBatch;
use datafusion::{
    common::Result,
    execution::{SendableRecordBatchStream, TaskContext},
    physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions, stream::RecordBatchStreamAdapter},
};
use futures::Stream;

use super::{
    around::{Around, Effect},
    error::refuse,
};

/// Most levels of a plan: to let go of one takes stack, too.
const MAX_LEVELS: usize = 500;

/// Levels between two looks. Builds without optimization take up to 12 KiB of stack for one.
const STEP: usize = 16;

/// Stack that such levels and what is below them may take.
const NEEDED_BYTES: usize = 512 << 10;

/// Stack that they have where it would be less.
const STACK_BYTES: usize = 4 << 20;

/// Has the levels of a plan find stack.
///
/// # Errors
///
/// [`Error::Sql`] for a plan with too many.
pub(super) fn wrap(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let levels = levels(&plan);
    if levels > MAX_LEVELS {
        let reason = format!(
            "the statement is too large: its plan has {levels} levels, at most {MAX_LEVELS}: windows of other orders, DISTINCT, \
             GROUP BY, joins and ORDER BY of each other are some each"
        );
        return refuse(reason);
    }
    if levels <= STEP { Ok(plan) } else { wrapped(plan, 0) }
}

fn levels(plan: &Arc<dyn ExecutionPlan>) -> usize {
    1 + plan.children().into_iter().map(levels).max().unwrap_or(0)
}

fn wrapped(plan: Arc<dyn ExecutionPlan>, level: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let children = plan.children().into_iter().map(|child| wrapped(Arc::clone(child), level + 1));
    let children = children.collect::<Result<Vec<_>>>()?;
    let is_same = children.iter().zip(plan.children()).all(|(new, old)| Arc::ptr_eq(new, old));
    let plan = if is_same {
        plan
    } else {
        plan.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))?
    };
    let is_due = level % STEP == STEP - 1;
    Ok(if is_due { Around::plan(plan, Arc::new(StackRoom)) } else { plan })
}

/// Has rows be made where there is stack.
#[derive(Debug)]
struct StackRoom;

impl Effect for StackRoom {
    fn execute(
        &self,
        inner: &dyn ExecutionPlan,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let rows = with_room(|| inner.execute(partition, context))?;
        Ok(Box::pin(RecordBatchStreamAdapter::new(rows.schema(), Roomy(rows))))
    }
}

struct Roomy(SendableRecordBatchStream);

impl Stream for Roomy {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        with_room(|| self.0.as_mut().poll_next(context))
    }
}

fn with_room<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(NEEDED_BYTES, STACK_BYTES, work)
}
