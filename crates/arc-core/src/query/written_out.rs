//! Columns that are made of each other, refused where the planner would write too much out.
//!
//! A condition goes down to the rows, and so does what an order or a group leaves out of them: what a column is made of takes
//! the column's place, again and again. Where `y` is `y + y` of the level below, it doubles at each.

use datafusion::{
    common::{Column, DFSchema, Result, tree_node::TreeNode, tree_node::TreeNodeRecursion},
    logical_expr::{Distinct, Expr, LogicalPlan},
};

use super::error;

/// Columns that an expression may have, beside its own, once all is written out.
const MAX_COLUMNS: u64 = 1 << 13;

/// Refuses a plan of which an expression would be written out as too much.
pub(super) fn check(plan: &LogicalPlan) -> Result<()> {
    if most(plan)? > MAX_COLUMNS {
        widths(plan)?;
    }
    Ok(())
}

/// Returns how many columns each of a plan is made of at most, as far as it is plain to see, in its subqueries, too.
fn most(plan: &LogicalPlan) -> Result<u64> {
    let mut below = 1;
    for input in plan.inputs() {
        below = below.max(most(input)?);
    }
    let mut here = 1;
    plan.apply_expressions(|expr| {
        here = here.max(width(expr, |_| 1)?);
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut all = below.saturating_mul(here);
    plan.apply_subqueries(|subquery| {
        all = all.max(most(subquery)?);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(all)
}

/// Returns of how many columns at the bottom each column of a plan is made, and checks its expressions.
fn widths(plan: &LogicalPlan) -> Result<Vec<u64>> {
    plan.apply_subqueries(|subquery| widths(subquery).map(|_| TreeNodeRecursion::Continue))?;
    let inputs = plan.inputs().into_iter().map(widths).collect::<Result<Vec<_>>>()?;
    let most_below = inputs.iter().flatten().copied().max().unwrap_or(1);
    let fields = plan.schema().fields().len();
    let below = plan.inputs();
    let of_column = |column: &Column| {
        let mut found = below.iter().zip(&inputs).filter_map(|(input, widths)| at(widths, input.schema(), column));
        found.next().unwrap_or(1)
    };
    let of = |expr: &Expr| width(expr, of_column);
    plan.apply_expressions(|expr| check_width(of(expr)?, expr).map(|()| TreeNodeRecursion::Continue))?;
    let all = |exprs: &[Expr]| exprs.iter().map(of).collect::<Result<Vec<_>>>();
    let made = match plan {
        LogicalPlan::Projection(projection) => all(&projection.expr)?,
        LogicalPlan::Distinct(Distinct::On(distinct)) => all(&distinct.select_expr)?,
        LogicalPlan::Aggregate(aggregate) => {
            let mut made = all(&aggregate.group_expr)?;
            if matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]) {
                made = vec![made.into_iter().max().unwrap_or(1); fields.saturating_sub(aggregate.aggr_expr.len())];
            }
            made.resize(fields, 1);
            made
        }
        LogicalPlan::Window(_) => {
            let mut made = inputs.concat();
            made.resize(fields, 1);
            made
        }
        LogicalPlan::Union(_) => {
            let column = |at: usize| inputs.iter().filter_map(|widths| widths.get(at)).copied().max().unwrap_or(1);
            (0..fields).map(column).collect()
        }
        _ => inputs.concat(),
    };
    Ok(if made.len() == fields { made } else { vec![most_below; fields] })
}

fn at(widths: &[u64], schema: &DFSchema, column: &Column) -> Option<u64> {
    widths.get(schema.maybe_index_of_column(column)?).copied()
}

/// Returns how many columns an expression is made of, by that of each column in it.
fn width(expr: &Expr, of: impl Fn(&Column) -> u64) -> Result<u64> {
    let mut width = 0_u64;
    expr.apply(|part| {
        if let Expr::Column(column) = part {
            width = width.saturating_add(of(column));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(width.max(1))
}

fn check_width(written_out: u64, expr: &Expr) -> Result<()> {
    if written_out - width(expr, |_| 1)?.min(written_out) <= MAX_COLUMNS {
        return Ok(());
    }
    let reason = format!(
        "the statement is too large: with all columns written out that it is made of, level by level, an expression would have \
         more than {MAX_COLUMNS} more of them"
    );
    error::refuse(reason)
}
