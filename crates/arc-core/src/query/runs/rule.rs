//! The rule that finds aggregates whose groups may come in runs.

use std::sync::Arc;

use datafusion::{
    common::{
        Result,
        config::ConfigOptions,
        tree_node::{Transformed, TransformedResult, TreeNode},
    },
    datasource::{physical_plan::FileScanConfig, source::DataSourceExec},
    physical_optimizer::PhysicalOptimizerRule,
    physical_plan::{
        ExecutionPlan, InputOrderMode,
        aggregates::{AggregateExec, AggregateMode},
    },
};

use super::{exec::RunsExec, function::Function, keys::Keys};

/// See the module. The last of all rules: no other one knows the operator.
#[derive(Debug)]
pub(in crate::query) struct GroupRuns;

impl PhysicalOptimizerRule for GroupRuns {
    fn name(&self) -> &'static str {
        "group_runs"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let replaced = plan.downcast_ref::<AggregateExec>().map(replaced).transpose()?.flatten();
            Ok(replaced.map_or_else(|| Transformed::no(plan), Transformed::yes))
        })
        .data()
    }
}

/// Operators through which rows go in the order of what they read.
const IN_ORDER: [&str; 4] = ["FilterExec", "ProjectionExec", "CoalesceBatchesExec", "CooperativeExec"];

/// Returns what does the same, by runs as far as there are any.
fn replaced(aggregate: &AggregateExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let second = match aggregate.mode() {
        AggregateMode::Partial => None,
        // A single phase becomes two, which costs time and memory where there are no runs.
        AggregateMode::Single if reads_files(aggregate.input()) => Some(AggregateMode::Final),
        _ => return Ok(None),
    };
    let Some(keys) = keys(aggregate)? else { return Ok(None) };
    let Some(second) = second else { return Ok(Some(Arc::new(RunsExec::new(aggregate.clone(), keys)))) };
    let first = in_mode(aggregate, AggregateMode::Partial, Arc::clone(aggregate.input()))?;
    let runs = Arc::new(RunsExec::new(first, keys));
    Ok(Some(Arc::new(in_mode(aggregate, second, runs)?)))
}

/// Returns the keys of an aggregate, if its groups may come in runs.
fn keys(aggregate: &AggregateExec) -> Result<Option<Keys>> {
    let group_by = aggregate.group_expr();
    let is_plain = group_by.is_single()
        && aggregate.limit_options().is_none()
        && *aggregate.input_order_mode() == InputOrderMode::Linear
        && aggregate.dynamic_expressions_produced().is_empty();
    if !is_plain || !aggregate.aggr_expr().iter().all(|function| Function::takes(function)) {
        return Ok(None);
    }
    Keys::new(group_by, &aggregate.input().schema())
}

/// Returns whether a plan gives rows of data files as they are stored.
fn reads_files(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if let Some(source) = plan.downcast_ref::<DataSourceExec>() {
        return source.data_source().downcast_ref::<FileScanConfig>().is_some();
    }
    let children = plan.children();
    IN_ORDER.contains(&plan.name()) && children.into_iter().all(reads_files)
}

/// Returns one of the two phases of an aggregate.
pub(in crate::query) fn in_mode(
    whole: &AggregateExec,
    mode: AggregateMode,
    input: Arc<dyn ExecutionPlan>,
) -> Result<AggregateExec> {
    let group_by = match mode {
        AggregateMode::Partial => whole.group_expr().clone(),
        _ => whole.group_expr().as_final(),
    };
    let (functions, filters) = (whole.aggr_expr().to_vec(), whole.filter_expr().to_vec());
    AggregateExec::try_new(mode, group_by, functions, filters, input, whole.input_schema())
}
