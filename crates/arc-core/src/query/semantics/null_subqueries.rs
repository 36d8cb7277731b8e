//! `IN` and `NOT IN` of a subquery that may give NULL.
//!
//! `x NOT IN (…)` is NULL, not true, where the subquery gives NULL and not `x`. DataFusion knows
//! that where it is a condition by itself and `x` has a column. A constant `x`, and one inside of
//! `OR`, `NOT` or another expression, became a test for a partner that is true or false. Here such
//! tests say first when they are NULL, by two more of them.

use std::ops::Not;

use datafusion::{
    common::{
        DFSchema, Result, ScalarValue,
        tree_node::{Transformed, TreeNode},
    },
    logical_expr::{
        BinaryExpr, Case, Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Subquery,
        expr::{Exists, InSubquery},
        lit,
        utils::{conjunction, split_conjunction_owned},
    },
    optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule},
};

/// See the module. Before the rule that makes joins of subqueries.
#[derive(Debug)]
pub(in super::super) struct NullSubqueries;

impl OptimizerRule for NullSubqueries {
    fn name(&self) -> &'static str {
        "null_subqueries"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(filter) = plan else { return Ok(Transformed::no(plan)) };
        let Filter { predicate, input, .. } = filter;
        let mut has_changed = false;
        let mut conditions = Vec::new();
        for condition in split_conjunction_owned(predicate) {
            let condition = if is_joined_right(&condition) {
                Transformed::no(condition)
            } else {
                exact(condition, NullIs::False, input.schema())?
            };
            has_changed |= condition.transformed;
            conditions.push(condition.data);
        }
        let predicate = conjunction(conditions).unwrap_or_else(|| lit(true));
        let filter = LogicalPlan::Filter(Filter::try_new(predicate, input)?);
        Ok(if has_changed { Transformed::yes(filter) } else { Transformed::no(filter) })
    }
}

/// Returns whether DataFusion makes a join of a condition that knows of NULL.
fn is_joined_right(condition: &Expr) -> bool {
    match condition {
        Expr::InSubquery(test) => {
            test.negated && !test.expr.column_refs().is_empty() && test.subquery.outer_ref_columns.is_empty()
        }
        _ => false,
    }
}

/// What may stand for NULL somewhere in a condition, without changing which rows it lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NullIs {
    False,
    True,
    Null,
}

impl Not for NullIs {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::False => Self::True,
            Self::True => Self::False,
            Self::Null => Self::Null,
        }
    }
}

fn exact(condition: Expr, null_is: NullIs, input: &DFSchema) -> Result<Transformed<Expr>> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let (left, right) = (exact(*left, null_is, input)?, exact(*right, null_is, input)?);
            let has_changed = left.transformed || right.transformed;
            let both = BinaryExpr::new(Box::new(left.data), op, Box::new(right.data));
            Ok(Transformed::new_transformed(Expr::BinaryExpr(both), has_changed))
        }
        Expr::Not(condition) => exact(*condition, !null_is, input)?.map_data(|condition| Ok(!condition)),
        Expr::InSubquery(test) => {
            let wanted = if test.negated { !null_is } else { null_is };
            match wanted {
                NullIs::False => Ok(Transformed::no(Expr::InSubquery(test))),
                NullIs::True | NullIs::Null => with_nulls(test, input),
            }
        }
        other => other.map_children(|part| exact(part, NullIs::Null, input)),
    }
}

/// Returns the test as one that says when it is NULL.
fn with_nulls(test: InSubquery, input: &DFSchema) -> Result<Transformed<Expr>> {
    let InSubquery { expr, subquery, negated } = test;
    let (qualifier, field) = subquery.subquery.schema().qualified_field(0);
    let may_be_null = expr.nullable(input).unwrap_or(true);
    if !may_be_null && !field.is_nullable() {
        return Ok(Transformed::no(Expr::InSubquery(InSubquery { expr, subquery, negated })));
    }
    let has_null = exists(&subquery, Some(Expr::Column((qualifier, field).into()).is_null()))?;
    let has_rows = exists(&subquery, None)?;
    let is_null = has_null.or(expr.clone().is_null().and(has_rows));
    let found = Expr::InSubquery(InSubquery { expr, subquery, negated: false });
    let case = Expr::Case(Case {
        expr: None,
        when_then_expr: vec![
            (Box::new(found), Box::new(lit(true))),
            (Box::new(is_null), Box::new(lit(ScalarValue::Boolean(None)))),
        ],
        else_expr: Some(Box::new(lit(false))),
    });
    Ok(Transformed::yes(if negated { !case } else { case }))
}

/// Returns whether a subquery gives a row for which a condition is true.
fn exists(subquery: &Subquery, condition: Option<Expr>) -> Result<Expr> {
    let mut plan = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone());
    if let Some(condition) = condition {
        plan = plan.filter(condition)?;
    }
    // One row is enough; a subquery that depends on the row outside cannot be limited.
    if subquery.outer_ref_columns.is_empty() {
        plan = plan.limit(0, Some(1))?;
    }
    let subquery = subquery.with_plan(plan.build()?.into());
    Ok(Expr::Exists(Exists { subquery, negated: false }))
}
