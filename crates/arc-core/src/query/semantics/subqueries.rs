//! Conditions that are about no column: DataFusion takes them where they mean something else.

use std::sync::Arc;

use datafusion::{
    common::{
        Result,
        tree_node::{Transformed, TransformedResult, TreeNodeRecursion},
    },
    functions_aggregate::expr_fn::count,
    logical_expr::{
        Expr, LogicalPlan, LogicalPlanBuilder, Subquery, expr::InSubquery, lit, utils::split_conjunction, when,
    },
    scalar::ScalarValue,
};

/// More rows than any answer has.
const MOST_ROWS: usize = u32::MAX as usize;

/// Keeps conditions without a column above aggregates that give a row of no rows: below one, such a
/// condition leaves out what it counts, and not the row.
pub(super) fn above_aggregates(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut is_needed = false;
    plan.apply_with_subqueries(|plan| {
        let condition = match plan {
            LogicalPlan::Filter(filter) => Some(&filter.predicate),
            LogicalPlan::Join(join) => join.filter.as_ref(),
            _ => None,
        };
        is_needed |= condition.is_some_and(|condition| split_conjunction(condition).into_iter().any(is_about_nothing));
        Ok(if is_needed { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !is_needed {
        return Ok(plan);
    }
    // No condition goes through a limit.
    let fenced = |plan| match rows_of_none(&plan) {
        Some(most) => LogicalPlanBuilder::from(plan).limit(0, Some(most))?.build().map(Transformed::yes),
        None => Ok(Transformed::no(plan)),
    };
    plan.transform_up_with_subqueries(fenced).data()
}

/// Returns how many rows an aggregate gives at most, if it gives one of no rows: that of all rows,
/// and of the empty set of `GROUPING SETS`.
fn rows_of_none(plan: &LogicalPlan) -> Option<usize> {
    let LogicalPlan::Aggregate(aggregate) = plan else { return None };
    if aggregate.group_expr.is_empty() {
        return Some(1);
    }
    let has_sets = aggregate.group_expr.iter().any(|key| matches!(key, Expr::GroupingSet(_)));
    has_sets.then_some(MOST_ROWS)
}

fn is_about_nothing(condition: &Expr) -> bool {
    condition.column_refs().is_empty() && !condition.contains_outer() && !matches!(condition, Expr::Literal(..))
}

/// Asks of a value that is about no column whether it is not in a subquery by counting: as a join,
/// it would not look at the nulls there.
pub(super) fn counted(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::InSubquery(InSubquery { expr: value, subquery, negated: true }) = &expr else {
        return Ok(Transformed::no(expr));
    };
    let is_plain = value.column_refs().is_empty() && !value.contains_outer() && !value.is_volatile();
    let columns = subquery.subquery.schema().columns();
    let ([column], true) = (columns.as_slice(), is_plain && subquery.outer_ref_columns.is_empty()) else {
        return Ok(Transformed::no(expr));
    };
    let item = Expr::Column(column.clone());
    let value = value.as_ref();
    let same = when(item.clone().eq(value.clone()), lit(1_i64)).end()?;
    let counts = vec![count(lit(1_i64)).alias("items"), count(item).alias("known"), count(same).alias("same")];
    let unknown = || Expr::Literal(ScalarValue::Boolean(None), None);
    let of = datafusion::prelude::col;
    let not_in = when(of("items").eq(lit(0_i64)), lit(true))
        .when(value.clone().is_null(), unknown())
        .when(of("same").gt(lit(0_i64)), lit(false))
        .when(of("known").lt(of("items")), unknown())
        .otherwise(lit(true))?;
    let plan = LogicalPlanBuilder::from(Arc::unwrap_or_clone(Arc::clone(&subquery.subquery)))
        .aggregate(Vec::<Expr>::new(), counts)?
        .project(vec![not_in.alias("not_in")])?
        .build()?;
    let name = expr.schema_name().to_string();
    let counted = Subquery { subquery: Arc::new(plan), ..subquery.clone() };
    Ok(Transformed::yes(Expr::ScalarSubquery(counted).alias(name)))
}
