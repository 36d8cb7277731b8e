//! One aggregate function over runs.

use std::{fmt, sync::Arc};

use arrow::{
    array::{ArrayRef, AsArray, BooleanArray, RecordBatch},
    datatypes::DataType,
};
use datafusion::{
    common::{DataFusionError, Result},
    logical_expr::{EmitTo, GroupsAccumulator},
    physical_expr::{
        PhysicalExpr,
        aggregate::AggregateFunctionExpr,
        expressions::{CastExpr, Column, Literal},
    },
};

use super::{
    keys::KeyRuns,
    states::{self, StateKind},
};

/// A function with the groups that it holds: each run is one.
pub(super) struct Function {
    accumulator: Box<dyn GroupsAccumulator>,
    /// If states can be made here, and of rows without a condition.
    kind: Option<StateKind>,
    arguments: Vec<Arc<dyn PhysicalExpr>>,
    /// Integers of which the argument is made, where it is the same numbers as floats.
    integers: Option<Arc<dyn PhysicalExpr>>,
    filter: Option<Arc<dyn PhysicalExpr>>,
}

/// Which groups the runs of a batch are.
pub(super) struct Slots {
    /// Those of the runs, in order.
    of_runs: Vec<usize>,
    /// Those of the rows, once a caller asked for them.
    of_rows: Option<Vec<usize>>,
    /// How many groups there are with these.
    total: usize,
}

impl Slots {
    pub(super) fn new(first: usize, runs: &KeyRuns) -> Self {
        let total = first + runs.count();
        Self { of_runs: (first..total).collect(), of_rows: None, total }
    }

    fn of_rows(&mut self, runs: &KeyRuns) -> &[usize] {
        let groups = &self.of_runs;
        self.of_rows.get_or_insert_with(|| {
            groups.iter().zip(runs.lengths()).flat_map(|(group, rows)| std::iter::repeat_n(*group, rows)).collect()
        })
    }
}

impl Function {
    /// Returns whether runs can be given to this function.
    pub(super) fn takes(function: &AggregateFunctionExpr) -> bool {
        !function.is_distinct() && function.order_bys().is_empty() && function.groups_accumulator_supported()
    }

    pub(super) fn new(function: &AggregateFunctionExpr, filter: Option<&Arc<dyn PhysicalExpr>>) -> Result<Self> {
        let arguments = function.expressions();
        Ok(Self {
            accumulator: function.create_groups_accumulator()?,
            kind: StateKind::of(function).filter(|_| filter.is_none() && arguments.len() == 1),
            integers: arguments.first().and_then(integers_of),
            arguments,
            filter: filter.cloned(),
        })
    }

    /// Takes the rows of a batch.
    pub(super) fn add(&mut self, batch: &RecordBatch, runs: &KeyRuns, slots: &mut Slots) -> Result<()> {
        if self.counts_rows() {
            return self.accumulator.merge_batch(&[states::counts(runs)], &slots.of_runs, slots.total);
        }
        let evaluate = |argument: &Arc<dyn PhysicalExpr>| argument.evaluate(batch)?.into_array(batch.num_rows());
        let integers = self.integers.as_ref().map(evaluate).transpose()?;
        let states = self.kind.zip(integers).and_then(|(kind, integers)| kind.states_of_integers(&integers, runs));
        if let Some(states) = states {
            return self.accumulator.merge_batch(&states, &slots.of_runs, slots.total);
        }
        let values = self.arguments.iter().map(evaluate).collect::<Result<Vec<ArrayRef>>>()?;
        let states = self.kind.zip(values.first()).and_then(|(kind, values)| kind.states(values, runs));
        if let Some(states) = states {
            return self.accumulator.merge_batch(&states, &slots.of_runs, slots.total);
        }
        let filter = self.filter.as_ref().map(evaluate).transpose()?;
        let filter = filter.as_ref().map(boolean).transpose()?;
        let total = slots.total;
        self.accumulator.update_batch(&values, slots.of_rows(runs), filter, total)
    }

    /// Returns whether this is `count(*)`.
    fn counts_rows(&self) -> bool {
        let constant = self.arguments.first().and_then(|argument| argument.downcast_ref::<Literal>());
        self.kind == Some(StateKind::Count) && constant.is_some_and(|constant| !constant.value().is_null())
    }

    /// Returns the states of all groups, and forgets them.
    pub(super) fn take(&mut self) -> Result<Vec<ArrayRef>> {
        self.accumulator.state(EmitTo::All)
    }

    pub(super) fn size(&self) -> usize {
        self.accumulator.size()
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// Returns what is cast to floats, if it is integers.
fn integers_of(argument: &Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>> {
    let cast = argument.downcast_ref::<CastExpr>().filter(|cast| *cast.cast_type() == DataType::Float64)?;
    let inner = cast.expr().downcast_ref::<Column>()?;
    Some(Arc::new(inner.clone()))
}

fn boolean(filter: &ArrayRef) -> Result<&BooleanArray> {
    let boolean = filter.as_boolean_opt();
    boolean.ok_or_else(|| DataFusionError::Internal(format!("a condition is of type {}", filter.data_type())))
}
