//! Computed keys of `ROLLUP`, `CUBE` and `GROUPING SETS`, which become columns before any rule looks
//! at them.
//!
//! A rule that writes an expression in another way gives it the name that it had. Of a key in a
//! set that is not done: the whole set would get a name, and no plan takes that.

use std::sync::Arc;

use datafusion::{
    common::{Column, DFSchema, Result, config::ConfigOptions, tree_node::Transformed},
    logical_expr::{Aggregate, Expr, GroupingSet, LogicalPlan, Projection},
    optimizer::AnalyzerRule,
};

/// See the module. After the rule that knows calls of `grouping` by the keys.
#[derive(Debug)]
pub(in super::super) struct SetKeys;

impl AnalyzerRule for SetKeys {
    fn name(&self) -> &'static str {
        "set_keys"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(with_columns)?.data)
    }
}

fn with_columns(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Aggregate(mut aggregate) = plan else { return Ok(Transformed::no(plan)) };
    let mut keys = SetColumns { input: Arc::clone(aggregate.input.schema()), computed: Vec::new() };
    for key in &mut aggregate.group_expr {
        if let Expr::GroupingSet(set) = key {
            match set {
                GroupingSet::Rollup(of_set) | GroupingSet::Cube(of_set) => keys.replace(of_set),
                GroupingSet::GroupingSets(sets) => sets.iter_mut().for_each(|of_set| keys.replace(of_set)),
            }
        }
    }
    if keys.computed.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let columns = keys.input.columns().into_iter().map(Expr::Column).chain(keys.computed).collect();
    let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
    let input = Arc::new(LogicalPlan::Projection(Projection::try_new(columns, input)?));
    Ok(Transformed::yes(LogicalPlan::Aggregate(Aggregate::try_new_with_schema(input, group_expr, aggr_expr, schema)?)))
}

struct SetColumns {
    input: Arc<DFSchema>,
    /// Each with the name that its column has.
    computed: Vec<Expr>,
}

impl SetColumns {
    fn replace(&mut self, keys: &mut [Expr]) {
        for key in keys {
            let name = key.schema_name().to_string();
            if matches!(key, Expr::Column(_) | Expr::Literal(..)) || self.input.has_column_with_unqualified_name(&name)
            {
                continue;
            }
            let column = Expr::Column(Column::new_unqualified(name.clone()));
            let computed = std::mem::replace(key, column).alias(name);
            if !self.computed.contains(&computed) {
                self.computed.push(computed);
            }
        }
    }
}
