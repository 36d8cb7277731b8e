//! The optimizer rule that lets a scan look for the newest rows only.

use std::sync::Arc;

use datafusion::{
    common::{
        Result,
        tree_node::{Transformed, TreeNode},
    },
    datasource::{provider_as_source, source_as_provider},
    logical_expr::LogicalPlan,
    optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule},
};

use super::{
    shape,
    table::{Latest, WantedOfTable},
};

/// See the module.
#[derive(Debug)]
pub(in crate::query) struct LatestRows;

impl OptimizerRule for LatestRows {
    fn name(&self) -> &'static str {
        "latest_rows"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match shape::wanted(&plan) {
            Some(wanted) => replace_scan(plan, &wanted),
            None => Ok(Transformed::no(plan)),
        }
    }
}

/// Puts the scan for what is wanted in the place of the one scan in `plan`.
fn replace_scan(plan: LogicalPlan, wanted: &WantedOfTable) -> Result<Transformed<LogicalPlan>> {
    plan.transform_down(|node| match node {
        LogicalPlan::TableScan(mut scan) => {
            let latest = Latest::new(source_as_provider(&scan.source)?, wanted.clone());
            scan.source = provider_as_source(Arc::new(latest));
            scan.filters.clear();
            Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
        }
        other => Ok(Transformed::no(other)),
    })
}
