//! The optimizer rule that groups tags as plain text.
//!
//! DataFusion keeps groups in columns of the types that it knows, and dictionaries are not among
//! them: with one, all keys are encoded row by row, which takes twice as long. Below the aggregate
//! a tag is cast to a string view, which copies no text; above it, where there are as many rows as
//! groups, back. So are texts, where there are several keys: views are compared by their first bytes
//! and lengths. So is what `approx_distinct` counts, which takes no dictionaries. Never changes
//! the columns of a plan.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::{
    common::{
        DFSchema, Result,
        tree_node::{Transformed, TreeNodeRecursion},
    },
    logical_expr::{Aggregate, Cast, Expr, ExprSchemable, LogicalPlan, Projection},
    optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule},
};

/// See the module.
#[derive(Debug)]
pub(super) struct UndictionaryGroupKeys;

impl OptimizerRule for UndictionaryGroupKeys {
    fn name(&self) -> &'static str {
        "undictionary_group_keys"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Aggregate(aggregate) = plan else { return Ok(Transformed::no(plan)) };
        let has_several = aggregate.group_expr.len() > 1;
        let as_view = |key: &Expr| {
            let input = aggregate.input.schema();
            is_dictionary(key, input) || (has_several && is_text(key, input))
        };
        let becomes_view: Vec<bool> = aggregate.group_expr.iter().map(as_view).collect();
        let needs_text = aggregate.aggr_expr.iter().any(|function| needs_text(function, aggregate.input.schema()));
        if !needs_text && !becomes_view.contains(&true) {
            return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
        }
        let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
        let aggr_expr = aggr_expr.into_iter().map(|function| with_text(function, input.schema())).collect();
        let keys = group_expr.into_iter().zip(&becomes_view).map(|(key, becomes_view)| match becomes_view {
            true => cast(key, DataType::Utf8View),
            false => key,
        });
        let plain = Arc::new(Aggregate::try_new(input, keys.collect::<Vec<_>>(), aggr_expr)?);
        let mut columns = Vec::with_capacity(schema.fields().len());
        for (index, (qualifier, field)) in schema.iter().enumerate() {
            let column = Expr::Column(plain.schema.qualified_field(index).into());
            columns.push(match becomes_view.get(index) {
                Some(true) => cast(column, field.data_type().clone()).alias_qualified(qualifier.cloned(), field.name()),
                _ => column,
            });
        }
        let plain = LogicalPlan::Aggregate(Arc::unwrap_or_clone(plain));
        let plan = Projection::try_new_with_schema(columns, Arc::new(plain), schema)?;
        Ok(Transformed::new(LogicalPlan::Projection(plan), true, TreeNodeRecursion::Continue))
    }
}

/// Returns whether a function cannot take the dictionary that it is given.
fn needs_text(function: &Expr, input: &DFSchema) -> bool {
    match function {
        Expr::AggregateFunction(function) if function.func.name() == "approx_distinct" => {
            function.params.args.iter().any(|argument| is_dictionary(argument, input))
        }
        Expr::Alias(alias) => needs_text(&alias.expr, input),
        _ => false,
    }
}

/// Gives a function text instead of a dictionary, if it needs that.
fn with_text(function: Expr, input: &DFSchema) -> Expr {
    if !needs_text(&function, input) {
        return function;
    }
    let name = function.schema_name().to_string();
    let Expr::AggregateFunction(mut called) = function.clone().unalias() else { return function };
    for argument in &mut called.params.args {
        if is_dictionary(argument, input) {
            *argument = cast(argument.clone(), DataType::Utf8View);
        }
    }
    Expr::AggregateFunction(called).alias(name)
}

fn is_dictionary(key: &Expr, input: &DFSchema) -> bool {
    let Ok(DataType::Dictionary(_, value)) = key.get_type(input) else { return false };
    *value == DataType::Utf8 && !matches!(key, Expr::GroupingSet(_))
}

fn is_text(key: &Expr, input: &DFSchema) -> bool {
    !matches!(key, Expr::GroupingSet(_) | Expr::Literal(..))
        && key.get_type(input).is_ok_and(|key| key == DataType::Utf8)
}

fn cast(expression: Expr, data_type: DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expression), data_type))
}
