//! Operators that make many rows of few give way to others.
//!
//! A join or an unnest can compute for minutes between two rows of its input, without a point at
//! which a query that ran out of time, or whose reader has left, could end. DataFusion's
//! cooperative wrapper adds one for each batch they make, and conditions of joins are another, for
//! those that make nothing.

use std::{
    any::Any,
    fmt,
    hash::{Hash, Hasher},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use arrow::{
    array::RecordBatch,
    datatypes::{DataType, Schema},
};
use datafusion::{
    common::{
        Result,
        config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions},
        exec_err, internal_err, resources_err,
        tree_node::{Transformed, TreeNode},
    },
    logical_expr::ColumnarValue,
    physical_expr::PhysicalExpr,
    physical_plan::{
        ExecutionPlan,
        coop::CooperativeExec,
        joins::{HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder, utils::JoinFilter},
    },
};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::account::{ENDED, QueryBytes};

const MAKE_MANY: [&str; 6] = [
    "CrossJoinExec",
    "NestedLoopJoinExec",
    "HashJoinExec",
    "SortMergeJoinExec",
    "PiecewiseMergeJoinExec",
    "UnnestExec",
];

/// Wraps each such operator of the plan.
pub(super) fn wrap(plan: Arc<dyn ExecutionPlan>, over: &Over) -> Result<Arc<dyn ExecutionPlan>> {
    let wrapped = plan.transform_up(|plan| {
        if !MAKE_MANY.contains(&plan.name()) {
            return Ok(Transformed::no(plan));
        }
        let join = with_checkpoint(&plan, over)?.unwrap_or(plan);
        Ok(Transformed::yes(Arc::new(CooperativeExec::new(join)) as Arc<dyn ExecutionPlan>))
    });
    wrapped.map(|wrapped| wrapped.data)
}

/// Returns a join that ends with its query, if it has a condition: while no pair of rows meets it,
/// nothing is made and nothing is given way to.
fn with_checkpoint(plan: &Arc<dyn ExecutionPlan>, over: &Over) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let checked = |filter: &JoinFilter| {
        let expression = Checkpoint { condition: Arc::clone(filter.expression()), over: over.clone() };
        let (columns, schema) = (filter.column_indices().to_vec(), Arc::clone(filter.schema()));
        Some(JoinFilter::new(Arc::new(expression), columns, schema))
    };
    if let Some((join, filter)) =
        plan.downcast_ref::<NestedLoopJoinExec>().and_then(|join| Some((join, join.filter()?)))
    {
        let join = NestedLoopJoinExecBuilder::from(join).with_filter(checked(filter)).build()?;
        return Ok(Some(Arc::new(join)));
    }
    match plan.downcast_ref::<HashJoinExec>().and_then(|join| Some((join, join.filter()?))) {
        Some((join, filter)) => join.builder().with_filter(checked(filter)).build_exec().map(Some),
        None => Ok(None),
    }
}

/// Whether a query has ended, or has to, whatever still computes for it.
#[derive(Debug, Clone)]
pub(super) struct Over {
    is_set: Arc<AtomicBool>,
    /// Then it has, too: there may be no thread left to set it. None while the reader has time of its own.
    deadline: Arc<Mutex<Option<Instant>>>,
    held: Arc<QueryBytes>,
}

impl Over {
    pub(super) fn new(deadline: Instant, held: Arc<QueryBytes>) -> Self {
        Self { is_set: Arc::default(), deadline: Arc::new(Mutex::new(Some(deadline))), held }
    }

    pub(super) fn set(&self) {
        self.is_set.store(true, Ordering::Relaxed);
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        *self.deadline.lock()
    }

    pub(super) fn set_deadline(&self, deadline: Option<Instant>) {
        *self.deadline.lock() = deadline;
    }

    pub(super) fn is_late(&self) -> bool {
        self.deadline().is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Returns an error once the query has ended, or has to end for the others.
    pub(super) fn check(&self) -> Result<()> {
        if self.is_set.load(Ordering::Relaxed) || self.is_late() {
            return exec_err!("the query has ended");
        }
        if self.held.must_end() {
            return resources_err!("{ENDED}");
        }
        Ok(())
    }
}

/// Returns an error once the query has ended that a function is called for.
pub(super) fn check(options: &ConfigOptions) -> Result<()> {
    options.extensions.get::<Over>().map_or(Ok(()), Over::check)
}

impl ConfigExtension for Over {
    const PREFIX: &'static str = "arc_over";
}

/// What a query has for its functions, and no statement sees.
impl ExtensionOptions for Over {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, _key: &str, _value: &str) -> Result<()> {
        exec_err!("whether a query has ended is no setting")
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}

/// A condition that fails once its query has ended.
#[derive(Debug, Clone)]
struct Checkpoint {
    condition: Arc<dyn PhysicalExpr>,
    over: Over,
}

impl PartialEq for Checkpoint {
    fn eq(&self, other: &Self) -> bool {
        self.condition.eq(&other.condition)
    }
}

impl Eq for Checkpoint {}

impl Hash for Checkpoint {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.condition.hash(state);
    }
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt(f)
    }
}

impl PhysicalExpr for Checkpoint {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.condition.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.condition.nullable(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.over.check()?;
        self.condition.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.condition]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        match (children.pop(), children.is_empty()) {
            (Some(condition), true) => Ok(Arc::new(Self { condition, over: self.over.clone() })),
            _ => internal_err!("a checkpoint has one condition"),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt_sql(f)
    }
}
