//! The rule that has plans compute what SQL says where DataFusion computes something else.
//!
//! Both zeros are equal: DataFusion compares floats bit by bit in lists, `CASE`, `nullif`, what is
//! DISTINCT, windows, keys of joins and inside of lists and structures. Integers do not wrap
//! around. A condition without a column is asked where it stands. Runs before the other rules,
//! which compute constants ahead, and after them, because they make lists and joins of other
//! conditions. Never changes what a column is called.

mod aggregate_bounds;
mod casts;
mod distinct_texts;
mod far_times;
mod floats;
mod guards;
mod integers;
mod intervals;
mod lists;
mod nan_groups;
mod needless_orders;
mod null_subqueries;
mod reused_names;
mod set_keys;
mod subqueries;
mod time_texts;
mod zones;

use arrow::datatypes::DataType;
use datafusion::{
    common::{
        DFSchema, Result,
        config::ConfigOptions,
        tree_node::{Transformed, TreeNode},
    },
    logical_expr::{Expr, ExprSchemable, LogicalPlan, expr_rewriter::NamePreserver, utils::merge_schema},
    optimizer::{AnalyzerRule, ApplyOrder, OptimizerConfig, OptimizerRule},
};

use super::{functions::patterns_of_rows, window_memory};

pub(super) use self::{
    aggregate_bounds::{AggregateBounds, UnfilteredStatistics},
    far_times::FarTimes,
    lists::ExactLists,
    nan_groups::NanGroups,
    null_subqueries::NullSubqueries,
    reused_names::ReusedNames,
    set_keys::SetKeys,
    zones::{TimesOfUtc, check_type},
};

/// See the module.
#[derive(Debug)]
pub(super) struct Semantics;

/// Whether other rules come after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    First,
    Last,
}

impl AnalyzerRule for Semantics {
    fn name(&self) -> &'static str {
        "semantics"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|plan| {
            guards::check_groups(&plan)?;
            let plan = plan.map_expressions(|expr| {
                let name = NamePreserver::new_for_projection().save(&expr);
                let expr = expr.transform_up(|expr| {
                    guards::check(&expr)?;
                    let expr = subqueries::as_asked(expr)?;
                    expr.transform_data(|expr| Ok(guards::matching_anything(expr)))?
                        .transform_data(|expr| Ok(guards::truth(expr)))
                })?;
                Ok(expr.update_data(|expr| name.restore(expr)))
            })?;
            plan.transform_data(|plan| Ok(needless_orders::distinct_once(plan)))?
                .transform_data(|plan| rewritten(plan, Phase::First))
        })?;
        subqueries::above_aggregates(plan.data)
    }
}

impl OptimizerRule for Semantics {
    fn name(&self) -> &'static str {
        "semantics"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        rewritten(plan, Phase::Last)
    }
}

fn rewritten(plan: LogicalPlan, phase: Phase) -> Result<Transformed<LogicalPlan>> {
    let schema = columns(&plan)?;
    let names = NamePreserver::new(&plan);
    let plan = plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let checked = integers::checked_within(expr, &schema, phase)?;
        let same = |expr: Expr| {
            expr.transform_up(|expr| {
                distinct_texts::sorted_by_themselves(expr, &schema)?
                    .transform_data(|expr| Ok(needless_orders::left_out(expr)))?
                    .transform_data(|expr| floats::with_equal_zeros(expr, &schema))?
                    .transform_data(|expr| Ok(intervals::by_their_length(expr, &schema)))?
                    .transform_data(|expr| Ok(casts::as_written(expr, &schema)))?
                    .transform_data(|expr| guards::kept(expr, &schema))?
                    .transform_data(|expr| {
                        // Before the other rules it would be none of the operators that they know.
                        if phase == Phase::First {
                            return Ok(Transformed::no(expr));
                        }
                        patterns_of_rows(expr).transform_data(|expr| window_memory::counted(expr, &schema))
                    })
            })
        };
        Ok(checked.transform_data(same)?.update_data(|expr| name.restore(expr)))
    })?;
    let plan = match phase {
        Phase::First => plan,
        Phase::Last => plan.transform_data(floats::with_equal_keys)?,
    };
    match plan.transformed {
        true => plan.map_data(LogicalPlan::recompute_schema),
        false => Ok(plan),
    }
}

/// Returns the columns that the expressions of a plan node are about.
fn columns(plan: &LogicalPlan) -> Result<DFSchema> {
    match plan {
        LogicalPlan::TableScan(scan) => {
            DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())
        }
        _ => Ok(merge_schema(&plan.inputs())),
    }
}

/// Returns whether an expression has a type of which something holds; one without a type has none.
fn is(expr: &Expr, schema: &DFSchema, holds: impl Fn(&DataType) -> bool) -> bool {
    expr.get_type(schema).is_ok_and(|data_type| holds(&data_type))
}
