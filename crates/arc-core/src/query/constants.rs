//! Constants that a plan makes again for each row: refused when a batch of them would take too much
//! memory.
//!
//! Looks at the optimized plan, where what could be computed ahead has become a constant. Never
//! changes a plan.

use datafusion::{
    common::{
        Result as PlanResult,
        tree_node::{TreeNode, TreeNodeRecursion},
    },
    logical_expr::{Expr, LogicalPlan, Operator},
};

use super::error;
use crate::Result;

/// Rows of a batch, where nothing says that there are fewer.
const BATCH_ROWS: usize = 8_192;

/// Elements that the lists of a batch may have together, roughly.
const MAX_ELEMENTS: usize = 1 << 20;

/// Bytes from which a constant counts.
const MIN_BYTES: usize = 1 << 10;

/// How far the constants of one step may exceed what one function may make: many are never made for
/// each row.
const SLACK: usize = 4;

/// Returns an error if the constants of one step of `plan` take much more than `limit_bytes` for
/// one batch.
pub(super) fn check(plan: &LogicalPlan, limit_bytes: usize) -> Result<()> {
    let allowed = limit_bytes.saturating_mul(SLACK);
    plan.apply_with_subqueries(|node| {
        let mut bytes = 0;
        node.apply_expressions(|expression| count(expression, &mut bytes))?;
        if bytes.saturating_mul(rows(node)) <= allowed {
            return Ok(TreeNodeRecursion::Continue);
        }
        let reason = format!("constants of {bytes} bytes, made for each row, would take too much memory");
        error::refuse(reason)
    })
    .map(|_| ())
    .map_err(error::from_datafusion)
}

/// Adds the bytes of the large constants in `expression`, save those that rows are only compared
/// with.
fn count(expression: &Expr, bytes: &mut usize) -> PlanResult<TreeNodeRecursion> {
    expression.apply(|part| match part {
        Expr::Literal(value, _) => {
            *bytes = bytes.saturating_add(Some(value.size()).filter(|size| *size >= MIN_BYTES).unwrap_or(0));
            Ok(TreeNodeRecursion::Continue)
        }
        Expr::BinaryExpr(binary) if compares(binary.op) => {
            for side in [&*binary.left, &*binary.right] {
                count_unless_constant(side, bytes)?;
            }
            Ok(TreeNodeRecursion::Jump)
        }
        // Made for each element of lists, of which there may be any number.
        Expr::Lambda(lambda) => {
            let mut within = 0;
            count(&lambda.body, &mut within)?;
            *bytes = bytes.saturating_add(within.saturating_mul(MAX_ELEMENTS));
            Ok(TreeNodeRecursion::Jump)
        }
        Expr::InList(list) => {
            count_unless_constant(&list.expr, bytes)?;
            list.list.iter().try_for_each(|item| count_unless_constant(item, bytes))?;
            Ok(TreeNodeRecursion::Jump)
        }
        _ => Ok(TreeNodeRecursion::Continue),
    })
}

fn compares(operator: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(operator, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn count_unless_constant(expression: &Expr, bytes: &mut usize) -> PlanResult<()> {
    if !matches!(expression, Expr::Literal(..)) {
        count(expression, bytes)?;
    }
    Ok(())
}

/// Returns how many rows one batch of `node` may have, as far as it is plain to see.
fn rows(node: &LogicalPlan) -> usize {
    let mut node = node;
    loop {
        node = match node {
            LogicalPlan::EmptyRelation(_) | LogicalPlan::Values(_) => return 1,
            LogicalPlan::Aggregate(aggregate) => &aggregate.input,
            LogicalPlan::Projection(projection) => &projection.input,
            LogicalPlan::Filter(filter) => &filter.input,
            LogicalPlan::Window(window) => &window.input,
            LogicalPlan::Sort(sort) => &sort.input,
            LogicalPlan::SubqueryAlias(alias) => &alias.input,
            _ => return BATCH_ROWS,
        };
    }
}

#[cfg(test)]
mod tests {
    use datafusion::{
        common::ScalarValue,
        logical_expr::{binary_expr, lit},
        prelude::{col, in_list},
    };

    use super::*;

    #[test]
    fn large_constants_count_unless_rows_are_compared_with_them() {
        let text = || lit("x".repeat(2_000));
        let size = ScalarValue::from("x".repeat(2_000)).size();
        let cases = [
            (text(), size),
            (lit("small"), 0),
            (col("a"), 0),
            (col("a").eq(text()), 0),
            (text().gt(col("a")), 0),
            (in_list(col("a"), vec![text(), text()], false), 0),
            (binary_expr(col("a"), Operator::StringConcat, text()), size),
            (binary_expr(text(), Operator::StringConcat, col("a")).eq(text()), size),
            (in_list(binary_expr(col("a"), Operator::StringConcat, text()), vec![text()], false), size),
        ];
        for (expression, expected) in cases {
            let mut bytes = 0;
            count(&expression, &mut bytes).unwrap();
            assert!(bytes.abs_diff(expected) < 100, "{bytes} instead of {expected}");
        }
    }
}
