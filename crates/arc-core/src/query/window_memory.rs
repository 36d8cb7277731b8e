//! What windows hold, in the query's account.
//!
//! DataFusion's operators for windows take in the rows of a whole partition, or of a frame, and
//! count none of it. One node below such an operator counts the rows that go in, one above it those
//! that came out. Never changes a row.

use std::{
    collections::HashMap,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use arrow::{
    array::{Array, RecordBatch},
    datatypes::SchemaRef,
};
use datafusion::{
    common::{
        Result, internal_err,
        tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion},
    },
    execution::{
        RecordBatchStream, SendableRecordBatchStream, TaskContext,
        memory_pool::{MemoryConsumer, MemoryReservation},
    },
    physical_expr::PhysicalExpr,
    physical_plan::{
        ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
    },
};
use futures::{Stream, StreamExt};
use parking_lot::Mutex;

/// The operators, and how often one has a row in memory at its end.
const OPERATORS: [(&str, usize); 2] = [("WindowAggExec", 3), ("BoundedWindowAggExec", 1)];

/// Counts what such operators of the plan hold.
pub(super) fn wrap(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let counting = |plan: Arc<dyn ExecutionPlan>| match OPERATORS.into_iter().find(|(name, _)| *name == plan.name()) {
        Some((_, copies)) => counted(plan, copies).map(Transformed::yes),
        None => Ok(Transformed::no(plan)),
    };
    plan.transform_up(counting).data()
}

fn counted(plan: Arc<dyn ExecutionPlan>, copies: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let children = plan.children();
    let [input] = children.as_slice() else { return internal_err!("a window has one input") };
    let held = Arc::new(Partitions { copies, held: Mutex::default() });
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
    held: Mutex<HashMap<usize, Arc<Mutex<HeldMemory>>>>,
}

#[derive(Debug)]
struct HeldMemory {
    /// Rows that went in and did not come out, and their bytes.
    rows: usize,
    bytes: usize,
    reservation: MemoryReservation,
}

impl HeldMemory {
    fn take_in(&mut self, batch: &RecordBatch, copies: usize) -> Result<()> {
        let bytes = bytes_of(batch).saturating_mul(copies);
        self.reservation.try_grow(bytes)?;
        self.rows += batch.num_rows();
        self.bytes += bytes;
        Ok(())
    }

    fn put_out(&mut self, rows: usize) {
        let rows = rows.min(self.rows);
        let share = self.bytes as u128 * rows as u128 / self.rows.max(1) as u128;
        let bytes = usize::try_from(share).unwrap_or(self.bytes).min(self.bytes);
        self.rows -= rows;
        self.bytes -= bytes;
        self.reservation.shrink(bytes);
    }
}

/// Returns the bytes of the rows of a batch, not of all that its columns are slices of.
fn bytes_of(batch: &RecordBatch) -> usize {
    let bytes = |column: &Arc<dyn Array>| {
        let data = column.to_data();
        data.get_slice_memory_size().unwrap_or_else(|_| column.get_array_memory_size())
    };
    batch.columns().iter().map(bytes).sum()
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
        let held = match self.side {
            Side::Above => {
                let consumer = MemoryConsumer::new(format!("WindowMemoryExec[{partition}]"));
                let reservation = consumer.register(context.memory_pool());
                let held = Arc::new(Mutex::new(HeldMemory { rows: 0, bytes: 0, reservation }));
                self.held.held.lock().insert(partition, Arc::clone(&held));
                held
            }
            // The node above was asked first.
            Side::Below => match self.held.held.lock().remove(&partition) {
                Some(held) => held,
                None => return internal_err!("a window without its account"),
            },
        };
        let input = self.input.execute(partition, context)?;
        Ok(Box::pin(CountingStream { input, side: self.side, copies: self.held.copies, held }))
    }
}

/// Rows on their way into the operator, or out of it.
struct CountingStream {
    input: SendableRecordBatchStream,
    side: Side,
    copies: usize,
    held: Arc<Mutex<HeldMemory>>,
}

impl Stream for CountingStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.input.poll_next_unpin(cx);
        let Poll::Ready(Some(Ok(batch))) = &next else { return next };
        match self.side {
            Side::Below => {
                if let Err(error) = self.held.lock().take_in(batch, self.copies) {
                    return Poll::Ready(Some(Err(error)));
                }
            }
            Side::Above => self.held.lock().put_out(batch.num_rows()),
        }
        next
    }
}

impl RecordBatchStream for CountingStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
