//! What a statement may do, decided on its logical plan: read our tables, and nothing else.
//!
//! A list of what is allowed, so that a kind of plan which is new in a later DataFusion is refused
//! until a caller thought about it.

use arrow::datatypes::DataType;
use datafusion::{
    catalog::{TableProvider, streaming::StreamingTable},
    common::{
        Result as PlanResult,
        tree_node::{TreeNode, TreeNodeRecursion, TreeNodeVisitor},
    },
    datasource::{MemTable, cte_worktable::CteWorkTable, source_as_provider},
    functions_table::generate_series::GenerateSeriesTable,
    logical_expr::{Cast, Expr, LogicalPlan, Operator, TableScan, TryCast},
};

use super::{
    asof::AsOf,
    error::{self, refuse},
    scale::row_values,
    table::QueriedTable,
};
use crate::Result;

/// Nodes that a plan may have, counting shared ones each time they are used.
const MAX_NODES: usize = 4_000;

/// Levels that an expression may have, not counting `AND` and `OR`: evaluating one takes stack for
/// each level, on a thread that we don't own. Debug builds overflow 2 MiB of stack between 500 and
/// 550 levels.
const MAX_LEVELS: usize = 250;

/// Levels of `AND` and `OR` that an expression may have, which is the number of conditions in a
/// row. They take little stack, but planning takes time with the square of their number.
const MAX_CONDITIONS: usize = 1_000;

/// Casts of what is computed that may be in each other. Each asks what is in it twice whether it may be NULL.
const MAX_CASTS: usize = 12;

/// Levels that the type of a value may have. Each kernel, and each writer of an answer, goes down a
/// value level by level, on a thread that we don't own: release builds overflow 2 MiB of stack where
/// Parquet is written between 150 and 180 levels.
const MAX_VALUE_LEVELS: usize = 64;

/// Returns an error if a type has more levels than a value may have.
pub(super) fn check_levels(data_type: &DataType) -> PlanResult<()> {
    if levels(data_type) > MAX_VALUE_LEVELS {
        return refuse(format!("a value would have more than {MAX_VALUE_LEVELS} levels of lists and structures"));
    }
    Ok(())
}

fn levels(data_type: &DataType) -> usize {
    let inner = match data_type {
        DataType::List(inner)
        | DataType::LargeList(inner)
        | DataType::ListView(inner)
        | DataType::LargeListView(inner)
        | DataType::FixedSizeList(inner, _)
        | DataType::Map(inner, _)
        | DataType::RunEndEncoded(_, inner) => levels(inner.data_type()),
        DataType::Struct(fields) => fields.iter().map(|field| levels(field.data_type())).max().unwrap_or(0),
        DataType::Union(fields, _) => fields.iter().map(|(_, field)| levels(field.data_type())).max().unwrap_or(0),
        DataType::Dictionary(_, inner) => levels(inner),
        _ => return 0,
    };
    inner + 1
}

/// Returns an error if `plan` does anything but read our tables, or is too large; how many values
/// its widest rows are as wide as, otherwise.
pub(super) fn check(plan: &LogicalPlan) -> Result<usize> {
    let (mut nodes, mut widest) = (0, 1);
    plan.apply_with_subqueries(|node| {
        nodes += 1;
        if nodes > MAX_NODES {
            return refuse("the statement is too large");
        }
        check_node(node)?;
        node.schema().fields().iter().try_for_each(|field| check_levels(field.data_type()))?;
        widest = widest.max(row_values(node.schema().fields().iter().map(|field| field.data_type())));
        node.apply_expressions(check_depth)?;
        Ok(TreeNodeRecursion::Continue)
    })
    .map(|_| widest)
    .map_err(error::from_datafusion)
}

/// Returns an error if `plan`, which has been optimized, has too many casts in each other to plan further.
pub(super) fn check_casts(plan: &LogicalPlan) -> Result<()> {
    let check = |expression: &Expr| expression.visit(&mut Casts::default());
    let checked = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| check(expression).map(|_| TreeNodeRecursion::Continue))
    });
    checked.map(drop).map_err(error::from_datafusion)
}

/// Casts of what is computed, down to the expression that is visited.
#[derive(Default)]
struct Casts(usize);

fn casts_computed(expression: &Expr) -> bool {
    let (Expr::Cast(Cast { expr: inner, .. }) | Expr::TryCast(TryCast { expr: inner, .. })) = expression else {
        return false;
    };
    !matches!(**inner, Expr::Column(_) | Expr::Literal(..) | Expr::Cast(_) | Expr::TryCast(_) | Expr::ScalarFunction(_))
}

impl TreeNodeVisitor<'_> for Casts {
    type Node = Expr;

    fn f_down(&mut self, expression: &Expr) -> PlanResult<TreeNodeRecursion> {
        self.0 += usize::from(casts_computed(expression));
        if self.0 > MAX_CASTS {
            return refuse(format!("more than {MAX_CASTS} casts in each other"));
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn f_up(&mut self, expression: &Expr) -> PlanResult<TreeNodeRecursion> {
        self.0 -= usize::from(casts_computed(expression));
        Ok(TreeNodeRecursion::Continue)
    }
}

fn check_node(node: &LogicalPlan) -> PlanResult<()> {
    match node {
        LogicalPlan::TableScan(scan) => check_table(scan),
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::Aggregate(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Join(_)
        | LogicalPlan::Repartition(_)
        | LogicalPlan::Union(_)
        | LogicalPlan::EmptyRelation(_)
        | LogicalPlan::Subquery(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Values(_)
        | LogicalPlan::Explain(_)
        | LogicalPlan::Analyze(_)
        | LogicalPlan::Distinct(_)
        | LogicalPlan::DescribeTable(_)
        | LogicalPlan::Unnest(_)
        | LogicalPlan::RecursiveQuery(_) => Ok(()),
        LogicalPlan::Ddl(ddl) => refuse(format!("{} is not allowed: SQL here reads, and nothing else", ddl.name())),
        LogicalPlan::Dml(dml) => refuse(format!("{} is not allowed: SQL here reads, and nothing else", dml.op.name())),
        LogicalPlan::Copy(_) => refuse("COPY is not allowed: SQL here reads, and nothing else"),
        LogicalPlan::Statement(statement) => refuse(format!("{} is not allowed", statement.name())),
        LogicalPlan::Extension(extension) if extension.node.as_any().is::<AsOf>() => Ok(()),
        LogicalPlan::Extension(extension) => refuse(format!("{} is not allowed", extension.node.name())),
    }
}

fn check_table(scan: &TableScan) -> PlanResult<()> {
    let provider = source_as_provider(&scan.source)?;
    let provider: &dyn TableProvider = &*provider;
    // `StreamingTable` is what the information schema is made of, `MemTable` what the caller gave.
    let ours = provider.is::<QueriedTable>() || provider.is::<StreamingTable>() || provider.is::<MemTable>();
    if ours || provider.is::<GenerateSeriesTable>() || provider.is::<CteWorkTable>() {
        return Ok(());
    }
    refuse(format!("{} cannot be read", scan.table_name))
}

fn check_depth(expression: &Expr) -> PlanResult<TreeNodeRecursion> {
    expression.visit(&mut Depth::default())?;
    Ok(TreeNodeRecursion::Continue)
}

/// Levels of an expression down to the one that is visited.
#[derive(Default)]
struct Depth {
    levels: usize,
    conditions: usize,
}

impl Depth {
    fn count_of(&mut self, expression: &Expr) -> &mut usize {
        match expression {
            Expr::BinaryExpr(binary) if matches!(binary.op, Operator::And | Operator::Or) => &mut self.conditions,
            _ => &mut self.levels,
        }
    }
}

impl TreeNodeVisitor<'_> for Depth {
    type Node = Expr;

    fn f_down(&mut self, expression: &Expr) -> PlanResult<TreeNodeRecursion> {
        *self.count_of(expression) += 1;
        if self.levels > MAX_LEVELS {
            return refuse(format!("an expression has more than {MAX_LEVELS} levels"));
        }
        if self.conditions > MAX_CONDITIONS {
            return refuse(format!("an expression has more than {MAX_CONDITIONS} conditions"));
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn f_up(&mut self, expression: &Expr) -> PlanResult<TreeNodeRecursion> {
        *self.count_of(expression) -= 1;
        Ok(TreeNodeRecursion::Continue)
    }
}
