//! The plan node that runs, and how it comes from the logical one.

use std::{fmt, sync::Arc};

use arrow::{compute::SortOptions, datatypes::SchemaRef};
use datafusion::{
    catalog::Session,
    common::{DataFusionError, Result, assert_eq_or_internal_err, internal_err, tree_node::TreeNodeRecursion},
    execution::{SendableRecordBatchStream, TaskContext, context::QueryPlanner},
    logical_expr::physical_planning_context::PhysicalPlanningContext,
    logical_expr::{LogicalPlan, UserDefinedLogicalNode},
    physical_expr::{
        Distribution, EquivalenceProperties, LexOrdering, OrderingRequirements, PhysicalExpr, PhysicalSortExpr,
    },
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, Partitioning, PlanProperties,
        execution_plan::{Boundedness, EmissionType},
        metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet},
        stream::RecordBatchStreamAdapter,
    },
    physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner},
};
use futures::{
    future::{self, BoxFuture},
    stream,
};

use super::{
    merge::Merging,
    node::{AsOf, Match},
};

/// Plans queries as DataFusion does, and these joins.
#[derive(Debug)]
pub(in crate::query) struct AsOfPlanner;

// Both are written out instead of by `async_trait`; see "Futures" in `query`.
impl QueryPlanner for AsOfPlanner {
    fn create_physical_plan<'a, 'b, 'c, 'f>(
        &'a self,
        plan: &'b LogicalPlan,
        session: &'c dyn Session,
    ) -> BoxFuture<'f, Result<Arc<dyn ExecutionPlan>>>
    where
        'a: 'f,
        'b: 'f,
        'c: 'f,
    {
        plan_query(plan, session)
    }
}

fn plan_query<'f>(plan: &'f LogicalPlan, session: &'f dyn Session) -> BoxFuture<'f, Result<Arc<dyn ExecutionPlan>>> {
    let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(AsOfPlanner)]);
    Box::pin(async move { planner.create_physical_plan(plan, session).await })
}

impl ExtensionPlanner for AsOfPlanner {
    fn plan_extension<'a, 'b, 'c, 'd, 'e, 'g, 'h, 'i, 'f>(
        &'a self,
        planner: &'b dyn PhysicalPlanner,
        node: &'c dyn UserDefinedLogicalNode,
        _logical_inputs: &'d [&'e LogicalPlan],
        physical_inputs: &'g [Arc<dyn ExecutionPlan>],
        session: &'h dyn Session,
        context: &'i PhysicalPlanningContext,
    ) -> BoxFuture<'f, Result<Option<Arc<dyn ExecutionPlan>>>>
    where
        'a: 'f,
        'b: 'f,
        'c: 'f,
        'd: 'f,
        'e: 'f,
        'g: 'f,
        'h: 'f,
        'i: 'f,
    {
        let join = node.as_any().downcast_ref::<AsOf>();
        let plan = join.map(|join| join.plan(planner, physical_inputs, session, context));
        Box::pin(future::ready(plan.transpose()))
    }
}

impl AsOf {
    fn plan(
        &self,
        planner: &dyn PhysicalPlanner,
        inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [left, right] = inputs else { return internal_err!("an AsOfJoin has two inputs") };
        let by = self.by.iter().map(|(of_left, of_right)| {
            let of_left = planner.create_physical_expr(of_left, self.left.schema(), session, context)?;
            Ok((of_left, planner.create_physical_expr(of_right, self.right.schema(), session, context)?))
        });
        let (left_by, right_by) = by.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let schema = Arc::clone(self.columns());
        let join = Join { left_by, right_by, nearest: self.nearest, outer: self.outer, schema };
        Ok(Arc::new(AsOfExec::new(Arc::clone(left), Arc::clone(right), join)))
    }
}

/// What is joined, and how.
#[derive(Debug, Clone)]
pub(super) struct Join {
    /// What has to be equal, then the time.
    pub(super) left_by: Vec<Arc<dyn PhysicalExpr>>,
    pub(super) right_by: Vec<Arc<dyn PhysicalExpr>>,
    pub(super) nearest: Match,
    pub(super) outer: bool,
    pub(super) schema: SchemaRef,
}

impl Join {
    /// Returns the order of each expression: for the nearest earlier row upwards, for the nearest
    /// later one the times downwards, so that it is the last one before in both.
    pub(super) fn orders(&self) -> impl Iterator<Item = SortOptions> {
        let (count, later) = (self.left_by.len(), self.nearest.later);
        (1..=count).map(move |at| SortOptions { descending: later && at == count, nulls_first: true })
    }

    fn ordering(&self, by: &[Arc<dyn PhysicalExpr>]) -> Option<OrderingRequirements> {
        let sorted = by.iter().zip(self.orders()).map(|(expr, order)| PhysicalSortExpr::new(Arc::clone(expr), order));
        LexOrdering::new(sorted).map(OrderingRequirements::from)
    }
}

/// Joins each row of the left side with the nearest one of the right side.
///
/// Asks for both inputs in one partition, sorted by what has to be equal and by time.
#[derive(Debug)]
struct AsOfExec {
    left: Arc<dyn ExecutionPlan>,
    right: Arc<dyn ExecutionPlan>,
    join: Join,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl AsOfExec {
    fn new(left: Arc<dyn ExecutionPlan>, right: Arc<dyn ExecutionPlan>, join: Join) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&join.schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self { left, right, join, properties: Arc::new(properties), metrics: ExecutionPlanMetricsSet::new() }
    }
}

impl DisplayAs for AsOfExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = self.join.left_by.iter().zip(&self.join.right_by);
        let pairs = pairs.map(|(left, right)| format!("({left}, {right})")).collect::<Vec<_>>().join(", ");
        write!(f, "AsOfExec: by=[{pairs}], {:?}, outer={}", self.join.nearest, self.join.outer)
    }
}

impl ExecutionPlan for AsOfExec {
    fn name(&self) -> &'static str {
        "AsOfExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition, Distribution::SinglePartition])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![self.join.ordering(&self.join.left_by), self.join.ordering(&self.join.right_by)]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false, false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.left, &self.right]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.pop()) {
            (Some(right), Some(left)) => Ok(Arc::new(Self::new(left, right, self.join.clone()))),
            _ => internal_err!("AsOfExec has two inputs"),
        }
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let mut recursion = TreeNodeRecursion::Continue;
        for expr in self.join.left_by.iter().chain(&self.join.right_by) {
            recursion = recursion.visit_sibling(|| f(expr))?;
        }
        Ok(recursion)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        assert_eq_or_internal_err!(partition, 0, "AsOfExec has one partition");
        let left = self.left.execute(0, Arc::clone(&context))?;
        let right = self.right.execute(0, context)?;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let merging = Merging::try_new(self.join.clone(), left, right, metrics)?;
        let batches = stream::try_unfold(merging, |mut merging| async move {
            Ok::<_, DataFusionError>(merging.next().await?.map(|batch| (batch, merging)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.join.schema), batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
