//! What windows hold, in the query's account.
//!
//! DataFusion's operators for windows take in the rows of a whole partition, or of a frame, and
//! count none of it. One node below such an operator counts the rows that go in, one above it those
//! that came out; functions count the values that they make for them. Never changes a row.

mod account;
mod held;
mod held_rows;

use std::{
    collections::HashMap,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use datafusion::{
    common::{
        DFSchema, Result, ScalarValue, internal_err,
        tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion},
    },
    execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext, memory_pool::MemoryConsumer},
    logical_expr::{Expr, ExprSchemable, WindowFunctionDefinition, WindowUDF, expr::WindowFunction},
    physical_expr::PhysicalExpr,
    physical_plan::{
        ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
    },
};
use futures::{Stream, StreamExt};
use parking_lot::Mutex;

pub(super) use self::account::make;
use self::{account::WindowAccount, held_rows::HeldWindow};
use super::{coop::Over, functions::total_bytes, sized::has_any_size};

/// The operators, and how often one has a row in memory at its end.
const OPERATORS: [(&str, usize); 2] = [("WindowAggExec", 3), ("BoundedWindowAggExec", 1)];

/// Counts what such operators of the plan hold.
pub(super) fn wrap(plan: Arc<dyn ExecutionPlan>, over: &Over) -> Result<Arc<dyn ExecutionPlan>> {
    let counting = |plan: Arc<dyn ExecutionPlan>| match OPERATORS.into_iter().find(|(name, _)| *name == plan.name()) {
        Some((_, copies)) => around(plan, copies, over).map(Transformed::yes),
        None => Ok(Transformed::no(plan)),
    };
    plan.transform_up(counting).data()
}

/// Has a function over a window count what it makes, if that can be much.
pub(super) fn counted(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::WindowFunction(window) = &expr else { return Ok(Transformed::no(expr)) };
    let WindowFunction { fun, params } = &**window;
    let has_any_size = has_any_size(&expr.get_type(schema)?);
    let held = match fun {
        WindowFunctionDefinition::AggregateUDF(inner) => {
            held::counted(inner, params, has_any_size).map(WindowFunctionDefinition::from)
        }
        WindowFunctionDefinition::WindowUDF(inner) if has_any_size && !inner.inner().is::<HeldWindow>() => {
            Some(Arc::new(WindowUDF::from(HeldWindow(Arc::clone(inner)))).into())
        }
        WindowFunctionDefinition::WindowUDF(_) => None,
    };
    Ok(match held {
        Some(fun) => {
            let params = params.clone();
            Transformed::yes(Expr::WindowFunction(Box::new(WindowFunction { fun, params })))
        }
        None => Transformed::no(expr),
    })
}

fn around(plan: Arc<dyn ExecutionPlan>, copies: usize, over: &Over) -> Result<Arc<dyn ExecutionPlan>> {
    let children = plan.children();
    let [input] = children.as_slice() else { return internal_err!("a window has one input") };
    let held = Arc::new(Partitions { copies, over: over.clone(), accounts: Mutex::default() });
    let properties = Arc::clone(input.properties());
    let entry = Node { input: Arc::clone(input), side: Side::Below, held: Arc::clone(&held), properties };
    let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    let window = Arc::clone(&plan).replace_children(vec![Arc::new(entry)], recompute)?;
    let properties = Arc::clone(window.properties());
    Ok(Arc::new(Node { input: window, side: Side::Above, held, properties }))
}

/// What each partition holds while it runs.
#[derive(Debug)]
struct Partitions {
    copies: usize,
    over: Over,
    accounts: Mutex<HashMap<usize, Arc<WindowAccount>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Below,
    Above,
}

#[derive(Debug)]
struct Node {
    input: Arc<dyn ExecutionPlan>,
    side: Side,
    held: Arc<Partitions>,
    properties: Arc<PlanProperties>,
}

impl DisplayAs for Node {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ExecutionPlan for Node {
    fn name(&self) -> &'static str {
        match self.side {
            Side::Below => "WindowInputExec",
            Side::Above => "WindowMemoryExec",
        }
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let (Some(input), true) = (children.pop(), children.is_empty()) else {
            return internal_err!("{} has one input", self.name());
        };
        let (held, properties) = (Arc::clone(&self.held), Arc::clone(input.properties()));
        Ok(Arc::new(Self { input, side: self.side, held, properties }))
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let account = match self.side {
            Side::Above => {
                let consumer = MemoryConsumer::new(format!("WindowMemoryExec[{partition}]"));
                let account = WindowAccount::new(self.held.over.clone(), consumer.register(context.memory_pool()));
                self.held.accounts.lock().insert(partition, Arc::clone(&account));
                account
            }
            // The node above was asked first.
            Side::Below => match self.held.accounts.lock().remove(&partition) {
                Some(account) => account,
                None => return internal_err!("a window without its account"),
            },
        };
        let input = self.input.execute(partition, context)?;
        Ok(Box::pin(CountingStream { input, side: self.side, copies: self.held.copies, account }))
    }
}

/// Rows on their way into the operator, or out of it.
struct CountingStream {
    input: SendableRecordBatchStream,
    side: Side,
    copies: usize,
    account: Arc<WindowAccount>,
}

impl Stream for CountingStream {
    type Item = Result<RecordBatch>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { input, side, copies, account } = self.get_mut();
        match side {
            Side::Below => {
                let next = input.poll_next_unpin(cx);
                let Poll::Ready(Some(Ok(batch))) = &next else { return next };
                match account.take_in(batch, *copies) {
                    Ok(()) => next,
                    Err(error) => Poll::Ready(Some(Err(error))),
                }
            }
            Side::Above => {
                let next = account.during(|| input.poll_next_unpin(cx));
                if let Poll::Ready(Some(Ok(batch))) = &next {
                    account.put_out(batch.num_rows());
                }
                next
            }
        }
    }
}

impl RecordBatchStream for CountingStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}

/// Returns the bytes of a value, not of all that it is a slice of.
fn bytes_of(value: &ScalarValue) -> Result<usize> {
    let inside = match value.data_type().is_nested() {
        true => usize::try_from(total_bytes(&value.to_array()?)?).unwrap_or(usize::MAX),
        false => value.size(),
    };
    Ok(inside.saturating_add(size_of::<ScalarValue>()))
}
