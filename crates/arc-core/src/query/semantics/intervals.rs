//! Intervals are compared by how long they are, as in PostgreSQL: a day is 24 hours, and a month 30 days.

use arrow::datatypes::DataType;
use datafusion::{
    common::{DFSchema, tree_node::Transformed},
    logical_expr::{Between, BinaryExpr, Expr},
};

use super::{super::functions::interval_span, floats::compares, is};

/// Has an expression compare how long intervals are, if it compares some (apache/datafusion#8468).
pub(super) fn by_their_length(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let is_interval = |expr: &Expr| is(expr, schema, |data_type| matches!(data_type, DataType::Interval(_)));
    let span = |expr: Box<Expr>| Box::new(interval_span(*expr));
    let all = |exprs: Vec<Expr>| exprs.into_iter().map(interval_span).collect();
    Transformed::yes(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if compares(op) && is_interval(&left) && is_interval(&right) =>
        {
            Expr::BinaryExpr(BinaryExpr::new(span(left), op, span(right)))
        }
        Expr::Between(Between { expr, negated, low, high }) if is_interval(&expr) => {
            Expr::Between(Between::new(span(expr), negated, span(low), span(high)))
        }
        Expr::InList(mut list) if is_interval(&list.expr) => {
            list.expr = span(list.expr);
            list.list = all(list.list);
            Expr::InList(list)
        }
        Expr::Case(mut case) if case.expr.as_deref().is_some_and(is_interval) => {
            case.expr = case.expr.map(span);
            case.when_then_expr = case.when_then_expr.into_iter().map(|(when, then)| (span(when), then)).collect();
            Expr::Case(case)
        }
        other => return Transformed::no(other),
    })
}
