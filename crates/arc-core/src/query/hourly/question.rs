//! What an aggregate asks of rows, and whether hours can answer it.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::{
    common::{
        DataFusionError, Result,
        tree_node::{Transformed, TransformedResult, TreeNode},
    },
    physical_expr::{
        PhysicalExpr,
        aggregate::AggregateFunctionExpr,
        expressions::{CastExpr, Column, DynamicFilterTracking, Literal},
    },
    physical_plan::aggregates::AggregateExec,
};

use super::super::runs::{Keys, StateKind};
use crate::model::TIME_COLUMN;

/// What an aggregate asks, in terms of the rows that some plan below it gives.
#[derive(Debug, Clone)]
pub(super) struct Question {
    keys: Vec<Arc<dyn PhysicalExpr>>,
    /// Of each function, its argument.
    arguments: Vec<Arc<dyn PhysicalExpr>>,
    conditions: Vec<Arc<dyn PhysicalExpr>>,
    kinds: Vec<StateKind>,
}

impl Question {
    /// Returns what an aggregate asks of its input, if that is only what hours may answer.
    pub(super) fn of(aggregate: &AggregateExec) -> Option<Self> {
        let kind = |function: &Arc<AggregateFunctionExpr>| {
            let is_plain = !function.is_distinct() && function.order_bys().is_empty();
            StateKind::of(function).filter(|_| is_plain)
        };
        let argument = |function: &Arc<AggregateFunctionExpr>| match function.expressions().as_slice() {
            [argument] => Some(Arc::clone(argument)),
            _ => None,
        };
        let functions = aggregate.aggr_expr();
        if functions.is_empty() || aggregate.filter_expr().iter().any(Option::is_some) {
            return None;
        }
        Some(Self {
            keys: aggregate.group_expr().expr().iter().map(|(key, _)| Arc::clone(key)).collect(),
            arguments: functions.iter().map(argument).collect::<Option<_>>()?,
            conditions: Vec::new(),
            kinds: functions.iter().map(kind).collect::<Option<_>>()?,
        })
    }

    /// Returns the same question of rows of which `columns` make those that this one is asked of.
    pub(super) fn below(&self, columns: &[Arc<dyn PhysicalExpr>]) -> Result<Self> {
        let below = |all: &[Arc<dyn PhysicalExpr>]| all.iter().map(|one| replaced(one, columns)).collect::<Result<_>>();
        Ok(Self {
            keys: below(&self.keys)?,
            arguments: below(&self.arguments)?,
            conditions: below(&self.conditions)?,
            kinds: self.kinds.clone(),
        })
    }

    /// Returns the same question of those rows that meet a condition.
    pub(super) fn with(mut self, condition: Arc<dyn PhysicalExpr>) -> Self {
        self.conditions.push(condition);
        self
    }

    /// Returns the question as one of hours, if they can answer it; it is asked of the columns of a
    /// table, `schema`.
    pub(super) fn of_hours(&self, schema: &Schema) -> Result<Option<HoursQuestion>> {
        let is_fixed = |condition| !DynamicFilterTracking::classify(condition).contains_dynamic_filter();
        if !self.conditions.iter().all(is_fixed) {
            return Ok(None);
        }
        let (Some(keys), Some(conditions)) = (Keys::of(&self.keys, schema)?, Keys::of(&self.conditions, schema)?)
        else {
            return Ok(None);
        };
        let values = self.arguments.iter().zip(&self.kinds);
        let values = values.map(|(argument, kind)| Some((*kind, AskedValue::of(argument, *kind, schema)?)));
        let Some(values) = values.collect::<Option<Vec<_>>>() else { return Ok(None) };
        let are_by_hours = keys.are_by_hours() && conditions.are_by_hours();
        Ok(are_by_hours.then_some(HoursQuestion { keys, conditions, values }))
    }
}

/// Puts expressions in the place of the columns that they make.
fn replaced(expression: &Arc<dyn PhysicalExpr>, columns: &[Arc<dyn PhysicalExpr>]) -> Result<Arc<dyn PhysicalExpr>> {
    let replace = |part: Arc<dyn PhysicalExpr>| {
        let Some(column) = part.downcast_ref::<Column>() else { return Ok(Transformed::no(part)) };
        let made = columns.get(column.index()).cloned();
        // What takes its place is not looked at again.
        let made = made.ok_or_else(|| DataFusionError::Internal(format!("there is no column {column}")))?;
        Ok(Transformed::yes(made))
    };
    Arc::clone(expression).transform_up(replace).data()
}

/// What is asked of hours.
#[derive(Debug)]
pub(super) struct HoursQuestion {
    /// Of a group, over tags and time.
    pub(super) keys: Keys,
    /// What rows must meet, over tags and time.
    pub(super) conditions: Keys,
    pub(super) values: Vec<(StateKind, AskedValue)>,
}

/// Of what a function is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AskedValue {
    Rows,
    /// A column of numbers, of this type in the table.
    Numbers {
        column: String,
        data_type: DataType,
    },
}

impl AskedValue {
    fn of(argument: &Arc<dyn PhysicalExpr>, kind: StateKind, schema: &Schema) -> Option<Self> {
        let literal = argument.downcast_ref::<Literal>();
        if kind == StateKind::Count && literal.is_some_and(|literal| !literal.value().is_null()) {
            return Some(Self::Rows);
        }
        let cast = argument.downcast_ref::<CastExpr>();
        let cast = cast.filter(|cast| kind == StateKind::Average && *cast.cast_type() == DataType::Float64);
        let column = cast.map_or(argument, CastExpr::expr).downcast_ref::<Column>()?;
        let field = schema.fields().get(column.index())?;
        if kind == StateKind::Count && field.name() == TIME_COLUMN {
            return Some(Self::Rows);
        }
        let is_number = matches!(field.data_type(), DataType::Int64 | DataType::UInt64 | DataType::Float64);
        // The average of integers is asked for as one of floats.
        let is_right = kind != StateKind::Average || cast.is_some() || *field.data_type() == DataType::Float64;
        (is_number && is_right)
            .then(|| Self::Numbers { column: field.name().clone(), data_type: field.data_type().clone() })
    }
}
