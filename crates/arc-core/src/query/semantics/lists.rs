//! `IN` and `NOT IN` of one value, joined by `AND` and `OR`.
//!
//! DataFusion makes one list of two as if nothing were NULL: `x IN (1) AND x IN (2)` is false to it, and NULL to SQL where
//! `x` is; of `x NOT IN (1, NULL) AND x IN (0, 1)` it keeps the 0. Here such lists are joined before it sees them.

use std::{collections::HashSet, mem};

use datafusion::{
    common::{
        Result, ScalarValue,
        tree_node::{Transformed, TreeNode},
    },
    logical_expr::{
        BinaryExpr, Cast, Expr, LogicalPlan, Operator, TryCast, binary_expr, expr::InList,
        expr_rewriter::NamePreserver, lit,
    },
    optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule},
};

use super::super::functions::kept;

/// See the module. Before the rule that simplifies expressions.
#[derive(Debug)]
pub(in super::super) struct ExactLists;

impl OptimizerRule for ExactLists {
    fn name(&self) -> &'static str {
        "exact_lists"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let names = NamePreserver::new(&plan);
        let plan = plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let turned = expr.transform_down(|expr| Ok(turned(expr)))?;
            let joined = turned.transform_data(|expr| expr.transform_up(|expr| Ok(joined(expr))))?;
            Ok(joined.update_data(|expr| name.restore(expr)))
        })?;
        match plan.transformed {
            true => plan.map_data(LogicalPlan::recompute_schema),
            false => Ok(plan),
        }
    }
}

/// Moves a `NOT` to what it is of, as DataFusion does in between.
fn turned(expr: Expr) -> Transformed<Expr> {
    let Expr::Not(inner) = expr else { return Transformed::no(expr) };
    let (mut negates, mut inner) = (true, *inner);
    while let Expr::Not(next) = inner {
        (negates, inner) = (!negates, *next);
    }
    if !negates {
        return Transformed::yes(inner);
    }
    Transformed::yes(match inner {
        Expr::InList(list) => Expr::InList(InList { negated: !list.negated, ..list }),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => (!*left).or(!*right),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => (!*left).and(!*right),
        inner => return Transformed::no(Expr::Not(Box::new(inner))),
    })
}

/// Takes NULL out of a list, and joins two lists, if a condition is `AND` or `OR` of such. Constants become what they are, for
/// items are told apart by that.
fn joined(expr: Expr) -> Transformed<Expr> {
    let (left, op, right) = match expr {
        Expr::Cast(Cast { expr, field }) => {
            let value = match &*expr {
                Expr::Literal(value, _) => value.cast_to(field.data_type()).ok(),
                _ => None,
            };
            return match value {
                Some(value) => Transformed::yes(lit(value)),
                None => Transformed::no(Expr::Cast(Cast { expr, field })),
            };
        }
        Expr::InList(list) if list.list.iter().any(is_null) => return Transformed::yes(spelled_out(list, is_null)),
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => (left, op, right),
        other => return Transformed::no(other),
    };
    let (is_joined, is_cast) = match (listed(&left, op), listed(&right, op)) {
        (Some((first, _)), Some((second, _))) if first != second => (false, uncast(first) == uncast(second)),
        (Some((first, first_negated)), Some((_, second_negated))) => {
            ((op == Operator::And || first_negated == second_negated) && !first.is_volatile(), false)
        }
        _ => (false, false),
    };
    match (is_joined, is_cast) {
        (true, _) => Transformed::yes(both(op, list(*left), list(*right))),
        // They would be of one value once their casts are taken off.
        (_, true) => Transformed::yes(binary_expr(with_cast(*left), op, with_cast(*right))),
        _ => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
    }
}

fn uncast(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => uncast(expr),
        other => other,
    }
}

/// Keeps the cast of what a list is of.
fn with_cast(expr: Expr) -> Expr {
    match expr {
        Expr::InList(list) if matches!(*list.expr, Expr::Cast(_) | Expr::TryCast(_)) => {
            Expr::InList(InList { expr: Box::new(kept(*list.expr)), ..list })
        }
        other => other,
    }
}

/// Returns the value that a condition looks for in a list, and whether it is `NOT IN`. Equalities are lists of one in `OR`,
/// of which DataFusion makes lists, too.
fn listed(expr: &Expr, op: Operator) -> Option<(&Expr, bool)> {
    match expr {
        Expr::InList(list) => Some((&list.expr, list.negated)),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) if op == Operator::Or => {
            match (&**left, &**right) {
                (column @ Expr::Column(_), Expr::Literal(..)) | (Expr::Literal(..), column @ Expr::Column(_)) => {
                    Some((column, false))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Returns the list of a condition that [`listed`] knows; any other is a list of what is true.
fn list(expr: Expr) -> InList {
    match expr {
        Expr::InList(list) => list,
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) if matches!(*left, Expr::Column(_)) => {
            InList::new(left, vec![*right], false)
        }
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => InList::new(right, vec![*left], false),
        other => InList::new(Box::new(other), vec![lit(true)], false),
    }
}

fn both(op: Operator, mut first: InList, mut second: InList) -> Expr {
    let adds = op == if first.negated { Operator::And } else { Operator::Or };
    if first.negated == second.negated && adds {
        let known: HashSet<&Expr> = first.list.iter().collect();
        second.list.retain(|item| !known.contains(item));
        first.list.append(&mut second.list);
        return Expr::InList(first);
    }
    // Items are taken away: of what may be NULL nothing is known.
    let is_computed = |item: &Expr| !matches!(item, Expr::Literal(..));
    if first.list.iter().chain(&second.list).any(is_computed) {
        return binary_expr(spelled_out(first, is_computed), op, spelled_out(second, is_computed));
    }
    if first.negated != second.negated && first.negated {
        mem::swap(&mut first, &mut second);
    }
    let others: HashSet<&Expr> = second.list.iter().collect();
    first.list.retain(|item| others.contains(item) == (first.negated == second.negated));
    if !first.list.is_empty() {
        return Expr::InList(first);
    }
    // No value is meant, or each one; NULL is neither.
    let (of_null, null) = (first.expr, lit(ScalarValue::Boolean(None)));
    match op {
        Operator::And => of_null.is_null().and(null),
        _ => of_null.is_not_null().or(null),
    }
}

/// Returns whether an item is NULL, of whatever type.
fn is_null(item: &Expr) -> bool {
    match item {
        Expr::Literal(value, _) => value.is_null(),
        Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => is_null(expr),
        _ => false,
    }
}

/// Returns a list without the items that stand `apart`, and these beside it.
fn spelled_out(InList { expr, list, negated }: InList, apart: impl Fn(&Expr) -> bool) -> Expr {
    let (apart, list): (Vec<Expr>, Vec<Expr>) = list.into_iter().partition(apart);
    let (equals, joins) = if negated { (Operator::NotEq, Operator::And) } else { (Operator::Eq, Operator::Or) };
    let list = (!list.is_empty()).then(|| Expr::InList(InList::new(expr.clone(), list, negated)));
    let apart = apart.into_iter().map(|item| match is_null(&item) {
        true => lit(ScalarValue::Boolean(None)),
        false => binary_expr((*expr).clone(), equals, item),
    });
    list.into_iter().chain(apart).reduce(|one, other| binary_expr(one, joins, other)).unwrap_or_else(|| lit(negated))
}
