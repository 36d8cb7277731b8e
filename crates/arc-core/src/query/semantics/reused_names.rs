//! Columns that are computed of one of their own name, level above level, stay apart.
//!
//! The rule that puts projections together drops one of two that look the same: of `x + 1 AS x` above `x + 1 AS x`, or of two
//! that swap columns (mended by apache/datafusion#24686). Before it, what such a column is called below is made another name.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use datafusion::{
    common::{
        Column, Result,
        alias::AliasGenerator,
        tree_node::{Transformed, TreeNode},
    },
    logical_expr::{Expr, LogicalPlan, Projection, expr::Alias, expr_rewriter::NamePreserver},
    optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule},
};

use super::subqueries::{is_correlated, subquery_of};

/// The rule that puts projections together, around which this is.
#[derive(Debug)]
pub(in super::super) struct ReusedNames(pub(in super::super) Arc<dyn OptimizerRule + Send + Sync>);

impl OptimizerRule for ReusedNames {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let names = config.alias_generator();
        plan.transform_down_with_subqueries(|plan| apart(plan, names))?
            .transform_data(|plan| self.0.rewrite(plan, config))
    }
}

/// Gives other names to what the projection below another one computes of columns of the same name.
fn apart(plan: LogicalPlan, names: &AliasGenerator) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Projection(above) = plan else { return Ok(Transformed::no(plan)) };
    let LogicalPlan::Projection(below) = above.input.as_ref() else {
        return Ok(Transformed::no(LogicalPlan::Projection(above)));
    };
    let renamed = renamed(below, names);
    if renamed.is_empty() || asks_about_rows(&above)? {
        return Ok(Transformed::no(LogicalPlan::Projection(above)));
    }
    let columns = below.expr.iter().zip(below.schema.columns());
    let exprs = columns.map(|(expr, column)| match renamed.get(&column) {
        Some(name) => called(expr.clone(), name),
        None => expr.clone(),
    });
    let exprs = exprs.collect::<Vec<_>>();
    let input = Projection::try_new(exprs, Arc::clone(&below.input))?;
    let kept = NamePreserver::new_for_projection();
    let exprs = above.expr.into_iter().map(|expr| {
        let name = kept.save(&expr);
        let expr = expr.transform_up(|expr| {
            let column = match &expr {
                Expr::Column(column) => renamed.get(column).cloned(),
                _ => None,
            };
            Ok(column.map_or(Transformed::no(expr), |column| Transformed::yes(Expr::Column(column))))
        })?;
        Ok(name.restore(expr.data))
    });
    let exprs = exprs.collect::<Result<Vec<_>>>()?;
    let above = Projection::try_new_with_schema(exprs, Arc::new(LogicalPlan::Projection(input)), above.schema)?;
    Ok(Transformed::yes(LogicalPlan::Projection(above)))
}

/// Returns other names for the columns of a projection that are another than the one of their name below it.
fn renamed(projection: &Projection, names: &AliasGenerator) -> HashMap<Column, Column> {
    let read: HashSet<&Column> = projection.expr.iter().flat_map(Expr::column_refs).collect();
    let columns = projection.expr.iter().zip(projection.schema.columns());
    let reused = columns
        .filter(|(expr, column)| read.contains(column) && !matches!(unaliased(expr), Expr::Column(of) if of == column));
    reused
        .map(|(_, column)| {
            let other = Column::new(column.relation.clone(), names.next("__below"));
            (column, other)
        })
        .collect()
}

fn unaliased(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => unaliased(&alias.expr),
        other => other,
    }
}

fn called(expr: Expr, column: &Column) -> Expr {
    let (relation, name) = (column.relation.clone(), column.name.clone());
    match expr {
        Expr::Alias(alias) => Expr::Alias(Alias { relation, name, ..alias }),
        other => other.alias_qualified(relation, name),
    }
}

/// Returns whether subqueries in a projection name columns below it.
fn asks_about_rows(projection: &Projection) -> Result<bool> {
    let asks = |part: &Expr| Ok(subquery_of(part).is_some_and(is_correlated));
    for expr in &projection.expr {
        if expr.exists(asks)? {
            return Ok(true);
        }
    }
    Ok(false)
}
