//! Aggregates with a `FILTER`, which two rules of DataFusion pass over.
//!
//! What is known of all rows answers an aggregate of all rows without reading any. Where that has a
//! `FILTER`, DataFusion looks for one without below it, takes that of a subquery for it, and ends
//! with an error.
//!
//! `min` and `max` of all rows push bounds down to files while they run. DataFusion leaves a bound
//! out that is not known yet, as that of an aggregate of whose `FILTER` no row has been met, and
//! then passes over rows that only this aggregate needs. Nor is that known of a column which was
//! NULL so far (apache/datafusion#25147). Bounds of files say nothing of their NaN, which may be the
//! greatest of all. What is computed from columns has no bound, and rows that it needs are passed
//! over as well. Where an aggregate has a `FILTER`, is of floats, or is one of several and of
//! anything but a column that is never NULL, no bounds are pushed down.

use std::sync::Arc;

use datafusion::{
    common::{
        Result,
        config::ConfigOptions,
        tree_node::{TreeNode, TreeNodeRecursion},
    },
    physical_expr::{PhysicalExpr, aggregate::AggregateFunctionExpr, expressions::Column},
    physical_optimizer::PhysicalOptimizerRule,
    physical_plan::{ExecutionPlan, aggregates::AggregateExec},
};

type BoundsRule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// A rule that pushes conditions down, without those bounds.
#[derive(Debug)]
pub(in super::super) struct AggregateBounds(pub(in super::super) BoundsRule);

impl PhysicalOptimizerRule for AggregateBounds {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let mut is_exact = true;
        plan.apply(|plan| {
            is_exact &= plan.downcast_ref::<AggregateExec>().is_none_or(has_exact_bounds);
            Ok(if is_exact { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
        })?;
        if is_exact {
            return self.0.optimize(plan, config);
        }
        let mut config = config.clone();
        config.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
        self.0.optimize(plan, &config)
    }
}

/// The rule that answers from what is known of files, where no aggregate of all rows has a
/// `FILTER`.
#[derive(Debug)]
pub(in super::super) struct UnfilteredStatistics(pub(in super::super) BoundsRule);

impl PhysicalOptimizerRule for UnfilteredStatistics {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let has_filter =
            |plan: &Arc<dyn ExecutionPlan>| Ok(plan.downcast_ref::<AggregateExec>().is_some_and(is_filtered));
        if plan.exists(has_filter)? { Ok(plan) } else { self.0.optimize(plan, config) }
    }
}

fn is_filtered(aggregate: &AggregateExec) -> bool {
    aggregate.group_expr().is_empty() && aggregate.filter_expr().iter().any(Option::is_some)
}

fn has_exact_bounds(aggregate: &AggregateExec) -> bool {
    let schema = aggregate.input_schema();
    let may_be_null = |function: &Arc<AggregateFunctionExpr>| {
        let is_known = |value: &Arc<dyn PhysicalExpr>| value.is::<Column>() && !value.nullable(&schema).unwrap_or(true);
        !function.expressions().iter().all(is_known)
    };
    aggregate.filter_expr().iter().all(Option::is_none)
        && (aggregate.aggr_expr().len() == 1 || !aggregate.aggr_expr().iter().any(may_be_null))
        && !aggregate.aggr_expr().iter().any(|function| function.field().data_type().is_floating())
}
