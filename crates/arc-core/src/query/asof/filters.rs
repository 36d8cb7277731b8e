//! The optimizer rule that takes conditions below the join, where scans can use them.

use std::sync::Arc;

use datafusion::{
    common::{
        Column, Result,
        tree_node::{Transformed, TreeNode},
    },
    logical_expr::{
        Expr, Extension, Filter, LogicalPlan, LogicalPlanBuilder,
        utils::{conjunction, split_conjunction_owned},
    },
    optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule},
};

use super::node::AsOf;

/// Conditions on the left side go there; those on what has to be equal, to both sides. None on
/// other columns of the right side does: it would change which row is the nearest.
#[derive(Debug)]
pub(in crate::query) struct SinkFilters;

impl OptimizerRule for SinkFilters {
    fn name(&self) -> &'static str {
        "sink_filters_below_asof_join"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(Filter { predicate, input, .. }) = &plan else { return Ok(Transformed::no(plan)) };
        let LogicalPlan::Extension(Extension { node }) = input.as_ref() else { return Ok(Transformed::no(plan)) };
        let Some(join) = node.as_any().downcast_ref::<AsOf>() else { return Ok(Transformed::no(plan)) };
        let (sinking, staying): (Vec<Expr>, Vec<Expr>) =
            split_conjunction_owned(predicate.clone()).into_iter().partition(|part| is_of_left(join, part));
        if sinking.is_empty() {
            return Ok(Transformed::no(plan));
        }
        let of_right = sinking.iter().filter_map(|part| of_right(join, part).transpose());
        let of_right = of_right.collect::<Result<Vec<_>>>()?;
        let left = filtered(&join.left, sinking)?;
        let node = Arc::new(join.with_inputs(left, filtered(&join.right, of_right)?)?);
        let sunk = LogicalPlan::Extension(Extension { node });
        Ok(Transformed::yes(filtered(&sunk, staying)?))
    }
}

fn is_of_left(join: &AsOf, part: &Expr) -> bool {
    let columns = part.column_refs();
    let is_plain = !part.is_volatile() && !part.contains_outer() && !columns.is_empty();
    is_plain && columns.iter().all(|column| join.left.schema().has_column(column))
}

/// Returns a condition of the left side as one of the right side, if it is only about what has to
/// be equal.
fn of_right(join: &AsOf, part: &Expr) -> Result<Option<Expr>> {
    let keys = join.by.split_last().map(|(_, keys)| keys).unwrap_or_default();
    let same = |column: &Column| {
        keys.iter().find_map(|(left, right)| match (left, right) {
            (Expr::Column(left), Expr::Column(right)) if left == column => Some(right.clone()),
            _ => None,
        })
    };
    if !part.column_refs().into_iter().all(|column| same(column).is_some()) {
        return Ok(None);
    }
    let moved = part.clone().transform(|expr| match &expr {
        Expr::Column(column) => {
            Ok(same(column).map_or(Transformed::no(expr), |column| Transformed::yes(Expr::Column(column))))
        }
        _ => Ok(Transformed::no(expr)),
    })?;
    Ok(Some(moved.data))
}

fn filtered(plan: &LogicalPlan, parts: Vec<Expr>) -> Result<LogicalPlan> {
    match conjunction(parts) {
        Some(predicate) => LogicalPlanBuilder::from(plan.clone()).filter(predicate)?.build(),
        None => Ok(plan.clone()),
    }
}
