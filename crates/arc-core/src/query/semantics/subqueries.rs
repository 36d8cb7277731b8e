//! Conditions that are about no column: DataFusion takes them where they mean something else.

use std::sync::Arc;

use datafusion::{
    common::{
        Result, plan_err,
        tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion},
    },
    functions_aggregate::expr_fn::count,
    logical_expr::{
        Distinct, Expr, FetchType, Limit, LogicalPlan, LogicalPlanBuilder, Operator, SkipType, Subquery, binary_expr,
        expr::{Exists, InSubquery, SetComparison, SetQuantifier},
        lit,
        utils::split_conjunction,
        when,
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
    let fenced = |plan: LogicalPlan| match rows_of_none(&plan).filter(|_| plan.all_out_ref_exprs().is_empty()) {
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
    let is_about_a_row = |expr: &Expr| Ok(subquery_of(expr).is_some_and(is_correlated));
    condition.column_refs().is_empty()
        && !condition.contains_outer()
        && !matches!(condition, Expr::Literal(..))
        && !condition.exists(is_about_a_row).unwrap_or(true)
}

/// Returns the subquery that an expression is about.
pub(super) fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::ScalarSubquery(subquery)
        | Expr::Exists(Exists { subquery, .. })
        | Expr::InSubquery(InSubquery { subquery, .. })
        | Expr::SetComparison(SetComparison { subquery, .. }) => Some(subquery),
        _ => None,
    }
}

/// Returns whether a subquery names columns outside of it.
pub(super) fn is_correlated(subquery: &Subquery) -> bool {
    !subquery.outer_ref_columns.is_empty()
}

/// Has what asks a subquery mean what it says.
pub(super) fn as_asked(expr: Expr) -> Result<Transformed<Expr>> {
    match expr {
        Expr::Exists(exists) => existing(exists),
        Expr::InSubquery(InSubquery { expr, subquery, negated }) if gives_one_row(&subquery, negated)? => {
            let operator = if negated { Operator::NotEq } else { Operator::Eq };
            Ok(Transformed::yes(binary_expr(*expr, operator, Expr::ScalarSubquery(subquery))))
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier })
            if gives_one_row(&subquery, quantifier == SetQuantifier::All)? =>
        {
            Ok(Transformed::yes(binary_expr(*expr, op, Expr::ScalarSubquery(subquery))))
        }
        Expr::SetComparison(comparison) => apart(comparison),
        other => counted(other),
    }
}

/// What gives a row of no rows, below what only changes its columns, its order or its number.
struct RowsOfNone {
    most: usize,
    /// Whether a condition may leave it out.
    is_filtered: bool,
    /// Whether it is about the row outside.
    is_correlated: bool,
}

impl RowsOfNone {
    /// Returns it, if there is one and no `OFFSET` above it.
    fn of(mut plan: &LogicalPlan) -> Result<Option<Self>> {
        let mut is_filtered = false;
        loop {
            if let Some(most) = rows_of_none(plan) {
                return Ok(Some(Self { most, is_filtered, is_correlated: !plan.all_out_ref_exprs().is_empty() }));
            }
            plan = match plan {
                LogicalPlan::Projection(projection) => &projection.input,
                LogicalPlan::SubqueryAlias(alias) => &alias.input,
                LogicalPlan::Sort(sort) => &sort.input,
                LogicalPlan::Distinct(Distinct::All(input)) => input,
                LogicalPlan::Limit(limit) if !leaves_rows_out(limit)? => &limit.input,
                LogicalPlan::Filter(filter) => {
                    is_filtered = true;
                    &filter.input
                }
                _ => return Ok(None),
            };
        }
    }
}

/// Returns whether there may be rows, and none after a limit.
fn leaves_rows_out(limit: &Limit) -> Result<bool> {
    Ok(!matches!(limit.get_skip_type()?, SkipType::Literal(0))
        || matches!(limit.get_fetch_type()?, FetchType::Literal(Some(0)) | FetchType::UnsupportedExpr))
}

/// Returns whether a subquery that is about the row outside gives one row, whatever that is. As a join it would give none for
/// some (apache/datafusion#24960), which matters of several where a row more may make the whole false.
fn gives_one_row(subquery: &Subquery, is_of_all: bool) -> Result<bool> {
    if !is_correlated(subquery) {
        return Ok(false);
    }
    match RowsOfNone::of(&subquery.subquery)? {
        None | Some(RowsOfNone { is_correlated: false, .. }) => Ok(false),
        Some(RowsOfNone { most: 1, is_filtered: false, .. }) => Ok(true),
        Some(RowsOfNone { is_filtered: false, .. }) if !is_of_all => Ok(false),
        Some(_) => plan_err!(
            "HAVING or ROLLUP of all rows in an IN, ANY or ALL that names columns outside is not supported; join with the groups"
        ),
    }
}

/// A subquery that gives a row of no rows exists, and what DataFusion would pass over is refused
/// (apache/datafusion#24960, #25283, #25519).
fn existing(exists: Exists) -> Result<Transformed<Expr>> {
    let plan = &*exists.subquery.subquery;
    let is_correlated = is_correlated(&exists.subquery);
    match RowsOfNone::of(plan)? {
        Some(RowsOfNone { is_filtered: false, .. }) => return Ok(Transformed::yes(lit(!exists.negated))),
        Some(RowsOfNone { is_correlated: true, .. }) => {
            return plan_err!(
                "HAVING of all rows in an EXISTS that names columns outside is not supported; compare the aggregate itself, \
                 as in (SELECT count(*) …) > 0"
            );
        }
        _ => {}
    }
    if is_correlated && skips_rows(plan)? {
        return plan_err!("OFFSET in an EXISTS that names columns outside is not supported; number the rows instead");
    }
    if is_correlated && has_limit_below_join(plan, false) {
        return plan_err!("LIMIT below a join in an EXISTS that names columns outside is not supported");
    }
    Ok(Transformed::no(Expr::Exists(exists)))
}

fn skips_rows(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|plan| match plan {
        LogicalPlan::Limit(limit) => Ok(!matches!(limit.get_skip_type()?, SkipType::Literal(0))),
        _ => Ok(false),
    })
}

fn has_limit_below_join(plan: &LogicalPlan, is_below: bool) -> bool {
    let is_below = match plan {
        LogicalPlan::Limit(_) if is_below => return true,
        LogicalPlan::Join(_) => true,
        _ => is_below,
    };
    plan.inputs().into_iter().any(|input| has_limit_below_join(input, is_below))
}

/// Has the columns of `ANY` and `ALL` be others than those outside: of one table, DataFusion would take the one for the other
/// (apache/datafusion#25258).
fn apart(comparison: SetComparison) -> Result<Transformed<Expr>> {
    let inner = comparison.subquery.subquery.schema();
    if !comparison.expr.column_refs().into_iter().any(|column| inner.has_column(column)) {
        return Ok(Transformed::no(Expr::SetComparison(comparison)));
    }
    let plan = LogicalPlanBuilder::from(Arc::clone(&comparison.subquery.subquery)).alias("of_these")?.build()?;
    let subquery = comparison.subquery.with_plan(Arc::new(plan));
    Ok(Transformed::yes(Expr::SetComparison(SetComparison { subquery, ..comparison })))
}

/// Asks of a value that is about no column whether it is not in a subquery by counting: as a join,
/// it would not look at the nulls there.
fn counted(expr: Expr) -> Result<Transformed<Expr>> {
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
