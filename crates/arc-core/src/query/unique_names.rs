//! Conditions go down through operators by the indices of their columns, not by their names.
//!
//! DataFusion's pushdown finds a column again by its name in each operator on the way, so that of
//! two columns of one name, as both sides of a join have them, it takes the first. Where an
//! operator has several columns of one name, a condition on one of them stays above it. Planning in
//! tables has taken down before what can go down.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
};

use datafusion::{
    common::{
        Result,
        config::ConfigOptions,
        internal_err,
        tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion},
    },
    execution::{SendableRecordBatchStream, TaskContext},
    physical_expr::PhysicalExpr,
    physical_optimizer::PhysicalOptimizerRule,
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
        filter_pushdown::{
            ChildFilterDescription, ChildPushdownResult, FilterDescription, FilterPushdownPhase,
            FilterPushdownPropagation,
        },
    },
};

type NamesRule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// Returns a rule that pushes conditions down, with a fence above each operator whose columns have
/// no names of their own.
pub(super) fn fenced(rule: NamesRule) -> NamesRule {
    Arc::new(Fenced { rule })
}

#[derive(Debug)]
struct Fenced {
    rule: NamesRule,
}

impl PhysicalOptimizerRule for Fenced {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn schema_check(&self) -> bool {
        self.rule.schema_check()
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let fences = plan.transform_up(|plan| {
            let unique = unique_columns(&plan);
            Ok(match unique.len() == plan.schema().fields().len() {
                true => Transformed::no(plan),
                false => Transformed::yes(Arc::new(Fence { input: plan, unique }) as Arc<dyn ExecutionPlan>),
            })
        })?;
        if !fences.transformed {
            return self.rule.optimize(fences.data, config);
        }
        let pushed = self.rule.optimize(fences.data, config)?;
        let without = |plan: Arc<dyn ExecutionPlan>| match plan.downcast_ref::<Fence>() {
            Some(fence) => Ok(Transformed::yes(Arc::clone(&fence.input))),
            None => Ok(Transformed::no(plan)),
        };
        pushed.transform_up(without).data()
    }
}

/// Returns the indices of the columns that have a name of their own.
fn unique_columns(plan: &Arc<dyn ExecutionPlan>) -> HashSet<usize> {
    let schema = plan.schema();
    let mut times: HashMap<&str, usize> = HashMap::new();
    for field in schema.fields() {
        *times.entry(field.name()).or_default() += 1;
    }
    let named = schema.fields().iter().enumerate().filter(|(_, field)| times.get(field.name().as_str()) == Some(&1));
    named.map(|(index, _)| index).collect()
}

/// Lets through conditions on columns with a name of their own. There only while conditions are
/// pushed down.
#[derive(Debug)]
struct Fence {
    input: Arc<dyn ExecutionPlan>,
    unique: HashSet<usize>,
}

impl DisplayAs for Fence {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ExecutionPlan for Fence {
    fn name(&self) -> &'static str {
        "Fence"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(Self { unique: unique_columns(&input), input })),
            _ => internal_err!("{} has one input", self.name()),
        }
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, _partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        internal_err!("{} is there for planning only", self.name())
    }

    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        _config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let unique = self.unique.clone();
        let child = ChildFilterDescription::from_child_with_allowed_indices(&parent_filters, unique, &self.input)?;
        Ok(FilterDescription::new().with_child(child))
    }

    fn handle_child_pushdown_result(
        &self,
        _phase: FilterPushdownPhase,
        child_pushdown_result: ChildPushdownResult,
        _config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        Ok(FilterPushdownPropagation::if_all(child_pushdown_result))
    }
}
