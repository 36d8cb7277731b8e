//! Groups by a float, or in the order of one, of which only the first few are wanted.
//!
//! DataFusion keeps them in a map of its own that compares by `==`, so that NaN never finds its
//! group and makes a new one with each row, and in a heap that compares by `>`, in which NaN is
//! nowhere. Here such aggregates keep all of their groups, as those without a limit do.

use std::sync::Arc;

use datafusion::{
    common::{
        Result,
        config::ConfigOptions,
        tree_node::{Transformed, TransformedResult, TreeNode},
    },
    physical_optimizer::PhysicalOptimizerRule,
    physical_plan::{ExecutionPlan, aggregates::AggregateExec},
};

/// See the module. After the rule that tells aggregates of their limits.
#[derive(Debug)]
pub(in super::super) struct NanGroups;

impl PhysicalOptimizerRule for NanGroups {
    fn name(&self) -> &'static str {
        "nan_groups"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            Ok(match plan.downcast_ref::<AggregateExec>() {
                Some(aggregate) if is_ordered(aggregate) && has_float(aggregate) => {
                    Transformed::yes(Arc::new(aggregate.with_new_limit_options(None)))
                }
                _ => Transformed::no(plan),
            })
        })
        .data()
    }
}

fn is_ordered(aggregate: &AggregateExec) -> bool {
    aggregate.limit_options().is_some_and(|limit| limit.descending().is_some())
}

fn has_float(aggregate: &AggregateExec) -> bool {
    aggregate.schema().fields().iter().any(|field| field.data_type().is_floating())
}
