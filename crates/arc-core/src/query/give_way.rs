//! Operators that make many rows of few give way to others.
//!
//! A join or an unnest can compute for minutes between two rows of its input, without a point at which a query that ran
//! out of time, or whose reader has left, could end. DataFusion's cooperative wrapper adds one for each batch they make.

use std::sync::Arc;

use datafusion::{
    common::{
        DataFusionError,
        tree_node::{Transformed, TreeNode},
    },
    physical_plan::{ExecutionPlan, coop::CooperativeExec},
};

const MAKE_MANY: [&str; 6] = [
    "CrossJoinExec",
    "NestedLoopJoinExec",
    "HashJoinExec",
    "SortMergeJoinExec",
    "PiecewiseMergeJoinExec",
    "UnnestExec",
];

/// Wraps each such operator of the plan.
pub(super) fn wrap(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
    let wrapped = plan.transform_up(|plan| {
        Ok(if MAKE_MANY.contains(&plan.name()) {
            Transformed::yes(Arc::new(CooperativeExec::new(plan)) as Arc<dyn ExecutionPlan>)
        } else {
            Transformed::no(plan)
        })
    });
    wrapped.map(|wrapped| wrapped.data)
}
