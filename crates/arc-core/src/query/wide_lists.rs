//! Wide lists of `SELECT`, planned past a step that is of no use to most of them.
//!
//! In search of `unnest`, DataFusion 55 writes out the name of each item of a list and those of all items before it: of 3,000
//! columns four and a half million, which takes longer than the query, and no check ends it. Of rows that are distinct in
//! something it does not. So a wide list that has nothing to search for is planned as `SELECT DISTINCT ON (NULL)`, and what
//! comes of it is made the projection that was meant. If that fails, for whatever reason, the statement is planned as it is.

use std::{ops::ControlFlow, sync::Arc};

use datafusion::{
    common::{
        Column, Result as PlanResult,
        tree_node::{Transformed, TransformedResult, TreeNodeRecursion},
    },
    logical_expr::{
        Distinct as DistinctRows, DistinctOn, Expr as PlanExpr, LogicalPlan, Projection, Sort, SortExpr as SortKey,
    },
    sql::{
        parser::Statement as Parsed,
        sqlparser::ast::{
            Distinct, Expr, GroupByExpr, OrderBy, OrderByExpr, OrderByKind, OrderByOptions, Query, Select, SelectItem,
            SetExpr, Value, VisitorMut,
        },
    },
};

use super::{
    unplanned::{FunctionKind, called},
    walk,
};
use crate::Error;

/// Columns from which on a list is wide: below, the step takes a millisecond at most.
pub(super) const MIN_WIDTH: u64 = 64;

/// A statement whose wide lists are marked.
pub(super) struct Marked {
    pub(super) statement: Parsed,
    /// Whether all of them are.
    pub(super) is_whole: bool,
}

/// Marks the wide lists of a statement; `None` if it has none that may be, or what looks like a mark. `kind` says what a
/// function is.
pub(super) fn mark(statement: &Parsed, kind: &dyn Fn(&str) -> Option<FunctionKind>) -> Option<Marked> {
    let mut statement = statement.clone();
    let mut marks = Marks { kind, selects: Vec::new(), count: 0, is_whole: true };
    walk::change_inner(&mut statement, &mut marks).ok()?;
    (marks.count > 0).then_some(Marked { statement, is_whole: marks.is_whole })
}

/// Puts projections in the place of what became of the marks; `None` if one of them may not be.
pub(super) fn unmark(plan: LogicalPlan) -> PlanResult<Option<LogicalPlan>> {
    let mut is_possible = true;
    let plan = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Distinct(DistinctRows::On(marked)) = node else { return Ok(Transformed::no(node)) };
        match projection(marked)? {
            Some(plan) => Ok(Transformed::yes(plan)),
            None => {
                is_possible = false;
                Ok(Transformed::no(LogicalPlan::default()))
            }
        }
    });
    plan.data().map(|plan| is_possible.then_some(plan))
}

/// Returns the projection that was meant, with the sort above it if all keys are in the list, and below it otherwise: then the
/// list may have no subqueries, which become joins that keep no order.
fn projection(marked: DistinctOn) -> PlanResult<Option<LogicalPlan>> {
    let DistinctOn { on_expr: _, select_expr, sort_expr, input, schema } = marked;
    let list =
        |items, input| Projection::try_new_with_schema(items, input, Arc::clone(&schema)).map(LogicalPlan::Projection);
    let Some(mut keys) = sort_expr else { return list(select_expr, input).map(Some) };
    // The first is the mark.
    let expr = keys.split_off(1);
    let in_list = |key: &SortKey| {
        let at = select_expr.iter().position(|item| *unaliased(item) == key.expr)?;
        Some(SortKey { expr: PlanExpr::Column(Column::from(schema.qualified_field(at))), ..key.clone() })
    };
    // Two items that are random look the same, and each is computed once.
    if expr.iter().any(|key| key.expr.is_volatile() && in_list(key).is_some()) {
        return Ok(None);
    }
    if let Some(expr) = expr.iter().map(in_list).collect() {
        let input = Arc::new(list(select_expr, input)?);
        return Ok(Some(LogicalPlan::Sort(Sort { expr, input, fetch: None })));
    }
    let list = list(select_expr, Arc::new(LogicalPlan::Sort(Sort { expr, input, fetch: None })))?;
    let mut has_subqueries = false;
    list.apply_subqueries(|_| {
        has_subqueries = true;
        Ok(TreeNodeRecursion::Stop)
    })?;
    Ok((!has_subqueries).then_some(list))
}

fn unaliased(item: &PlanExpr) -> &PlanExpr {
    match item {
        PlanExpr::Alias(alias) => &alias.expr,
        other => other,
    }
}

struct Marks<'a> {
    kind: &'a dyn Fn(&str) -> Option<FunctionKind>,
    /// Whether each `SELECT` around may be marked, as far as its functions are known.
    selects: Vec<bool>,
    count: usize,
    is_whole: bool,
}

impl VisitorMut for Marks<'_> {
    type Break = Error;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        if let Some(Distinct::On(_)) = select.distinct {
            // What became of it could not be told from what became of a mark.
            return ControlFlow::Break(Error::internal("the statement has marks of its own"));
        }
        self.selects.push(true);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        let is_scalar = self.selects.pop() == Some(true);
        if is_wide(&select.projection) {
            let may_be = is_scalar && is_plain(select);
            if may_be {
                select.distinct = Some(Distinct::On(vec![Expr::value(Value::Null)]));
                self.count += 1;
            }
            self.is_whole &= may_be;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let has_pipes = !query.pipe_operators.is_empty();
        if let SetExpr::Select(select) = &mut *query.body
            && let Some(Distinct::On(_)) = select.distinct
            && (has_pipes || !query.order_by.as_mut().is_none_or(|order| sort_by_mark(order, &select.projection)))
        {
            select.distinct = None;
            self.count -= 1;
            self.is_whole = false;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Expr::Function(function) = expr
            && let Some(is_plain) = self.selects.last_mut()
        {
            let called = called(function);
            let searched = called.as_deref().is_some_and(|called| called.starts_with("unnest"));
            let is_scalar = called.and_then(|called| (self.kind)(&called));
            *is_plain &= !searched && function.over.is_none() && matches!(is_scalar, Some(FunctionKind::Scalar));
        }
        ControlFlow::Continue(())
    }
}

/// Whether a `SELECT` gives a row for each that it reads.
fn is_plain(select: &Select) -> bool {
    let has_groups = !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    select.distinct.is_none() && !has_groups && select.having.is_none() && select.qualify.is_none()
}

fn is_wide(items: &[SelectItem]) -> bool {
    let is_all = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
    items.len() as u64 >= MIN_WIDTH || items.iter().any(is_all)
}

/// Puts the mark before the keys of a sort: rows that are distinct in something are in the order of that first. Returns whether
/// it may stand there: in an expression the names of the list would not be known.
fn sort_by_mark(order: &mut OrderBy, items: &[SelectItem]) -> bool {
    let OrderByKind::Expressions(keys) = &mut order.kind else { return false };
    let is_name =
        |key: &OrderByExpr| matches!(key.expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_));
    let has_names = items.iter().any(|item| matches!(item, SelectItem::ExprWithAlias { .. }));
    if has_names && !keys.iter().all(is_name) {
        return false;
    }
    let options = OrderByOptions { asc: None, nulls_first: None };
    keys.insert(0, OrderByExpr { expr: Expr::value(Value::Null), options, with_fill: None });
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::statement::{ReadRequest, Statement, request};

    /// Returns the statement with its marks.
    fn marked(sql: &str) -> Option<String> {
        let ReadRequest::Plan(statement) = request(&Statement::parse(sql).unwrap()).unwrap() else { unreachable!() };
        let kind = |name: &str| match name {
            "max" => Some(FunctionKind::Aggregate { takes_distinct: true, takes_order: true }),
            "abs" | "unnest" => Some(FunctionKind::Scalar),
            _ => None,
        };
        mark(&statement, &kind)
            .map(|marked| format!("{}{}", marked.statement, if marked.is_whole { "" } else { "; and others" }))
    }

    #[test]
    fn lists_are_marked_that_give_a_row_for_each() {
        for (sql, expected) in [
            ("SELECT * FROM t", "SELECT DISTINCT ON (NULL) * FROM t"),
            (
                "SELECT *, abs(a) FROM t WHERE a > 1 LIMIT 2",
                "SELECT DISTINCT ON (NULL) *, abs(a) FROM t WHERE a > 1 LIMIT 2",
            ),
            (
                "SELECT t.* FROM t ORDER BY t.a DESC, b",
                "SELECT DISTINCT ON (NULL) t.* FROM t ORDER BY NULL, t.a DESC, b",
            ),
            (
                "SELECT DISTINCT * FROM (SELECT * FROM t)",
                "SELECT DISTINCT * FROM (SELECT DISTINCT ON (NULL) * FROM t); and others",
            ),
            ("SELECT max(a) FROM (SELECT * FROM t)", "SELECT max(a) FROM (SELECT DISTINCT ON (NULL) * FROM t)"),
            (
                "SELECT a FROM t UNION ALL SELECT * FROM t ORDER BY a",
                "SELECT a FROM t UNION ALL SELECT DISTINCT ON (NULL) * FROM t ORDER BY a",
            ),
            (
                "WITH c AS (SELECT *, a AS b FROM t ORDER BY abs(b)) SELECT * FROM c",
                "WITH c AS (SELECT *, a AS b FROM t ORDER BY abs(b)) SELECT DISTINCT ON (NULL) * FROM c; and others",
            ),
        ] {
            assert_eq!(marked(sql).as_deref(), Some(expected));
        }
        assert!(marked(&format!("SELECT {}1", "1, ".repeat(63))).is_some());
        for sql in [
            "SELECT a, b FROM t",
            "SELECT DISTINCT * FROM t",
            "SELECT * FROM t GROUP BY a",
            "SELECT *, max(a) FROM t",
            "SELECT *, abs(max(a)) FROM t",
            "SELECT *, abs(a) OVER () FROM t",
            "SELECT *, unnest(a) FROM t",
            "SELECT *, unknown(a) FROM t",
            "SELECT *, a AS b FROM t ORDER BY b + 1",
            "SELECT * FROM t |> WHERE a > 1",
            "SELECT * FROM (SELECT DISTINCT ON (a) * FROM t)",
        ] {
            assert_eq!(marked(sql), None, "{sql}");
        }
    }
}
