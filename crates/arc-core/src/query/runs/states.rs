//! States of aggregates, run by run: loops over neighbouring values, which need no group for each
//! row.
//!
//! A state is what DataFusion's accumulator of the same function gives and merges, or ours where
//! there is one in its place. Values with nulls are left to that one.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, PrimitiveArray, UInt64Array},
    datatypes::{
        ArrowPrimitiveType, DataType, Decimal128Type, Float64Type, Int64Type, TimestampNanosecondType, UInt64Type,
    },
};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;

use super::{
    super::functions::{LeastOrGreatest, Summed, sum_as_floats, total_of_integers, total_of_unsigned},
    keys::KeyRuns,
};

/// A function whose states are made here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::query) enum StateKind {
    Count,
    Sum,
    Average,
    Least,
    Greatest,
}

impl StateKind {
    /// Returns the kind of a function, if it has one.
    pub(in crate::query) fn of(function: &AggregateFunctionExpr) -> Option<Self> {
        match function.fun().name() {
            "count" => Some(Self::Count),
            "sum" => Some(Self::Sum),
            "avg" => Some(Self::Average),
            "min" => Some(Self::Least),
            "max" => Some(Self::Greatest),
            _ => None,
        }
    }

    /// Returns the states of all runs, column by column, or `None` for values that are not taken
    /// here.
    pub(super) fn states(self, values: &ArrayRef, runs: &KeyRuns) -> Option<Vec<ArrayRef>> {
        // Nulls may also be in the values of a dictionary.
        if values.is_nullable() {
            return None;
        }
        match (self, values.data_type()) {
            (Self::Count, _) => Some(vec![counts(runs)]),
            (Self::Sum, DataType::Float64) => Some(vec![floats(values, runs)]),
            (Self::Average, DataType::Float64) => Some(average(runs, floats(values, runs))),
            (Self::Sum, DataType::Int64) => totals::<Int64Type>(values, runs, total_of_integers),
            (Self::Sum, DataType::UInt64) => totals::<UInt64Type>(values, runs, total_of_unsigned),
            (Self::Least, DataType::Float64) => float_extremes(values, runs, LeastOrGreatest::Least),
            (Self::Greatest, DataType::Float64) => float_extremes(values, runs, LeastOrGreatest::Greatest),
            (Self::Least | Self::Greatest, DataType::Int64) => self.extremes::<Int64Type>(values, runs),
            (Self::Least | Self::Greatest, DataType::UInt64) => self.extremes::<UInt64Type>(values, runs),
            (Self::Least | Self::Greatest, DataType::Timestamp(..)) => {
                self.extremes::<TimestampNanosecondType>(values, runs)
            }
            _ => None,
        }
    }

    /// Returns the states of all runs of integers as floats, or `None` for values that are not
    /// taken here.
    pub(super) fn states_of_integers(self, integers: &ArrayRef, runs: &KeyRuns) -> Option<Vec<ArrayRef>> {
        let integers = integers.as_primitive_opt::<Int64Type>().filter(|integers| !integers.is_nullable())?;
        (self == Self::Average).then(|| average(runs, sums(integers.values(), runs, |integer| integer as f64)))
    }

    fn extremes<T>(self, values: &ArrayRef, runs: &KeyRuns) -> Option<Vec<ArrayRef>>
    where
        T: ArrowPrimitiveType,
        T::Native: Ord,
    {
        match self {
            Self::Least => fold::<T>(values, runs, T::Native::min),
            _ => fold::<T>(values, runs, T::Native::max),
        }
    }
}

fn float_extremes(values: &ArrayRef, runs: &KeyRuns, end: LeastOrGreatest) -> Option<Vec<ArrayRef>> {
    let values = values.as_primitive_opt::<Float64Type>()?.values();
    let states = runs.ranges().map(|run| end.of(values.get(run)?));
    Some(vec![Arc::new(states.collect::<Option<Vec<_>>>().map(Float64Array::from)?)])
}

/// Returns the sums of integers, in the type in which they are handed on.
fn totals<T: Summed<Wide = Decimal128Type>>(
    values: &ArrayRef,
    runs: &KeyRuns,
    total: fn(&[T::Native]) -> i128,
) -> Option<Vec<ArrayRef>> {
    let values = values.as_primitive_opt::<T>()?;
    let states = runs.ranges().map(|run| values.values().get(run).map(total)).collect::<Option<Vec<_>>>()?;
    let states = PrimitiveArray::<Decimal128Type>::new(states.into(), None);
    Some(vec![Arc::new(states.with_data_type(T::state_type(values.data_type())))])
}

/// Returns the number of rows of each run, as a state of `count`.
pub(super) fn counts(runs: &KeyRuns) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(runs.lengths().map(|length| length as i64)))
}

fn fold<T: ArrowPrimitiveType>(
    values: &ArrayRef,
    runs: &KeyRuns,
    join: impl Fn(T::Native, T::Native) -> T::Native,
) -> Option<Vec<ArrayRef>> {
    let values = values.as_primitive_opt::<T>()?;
    let of_run = |run: &[T::Native]| run.iter().copied().reduce(&join).unwrap_or_default();
    let states = runs.ranges().map(|run| values.values().get(run).map(of_run)).collect::<Option<Vec<_>>>()?;
    let states = PrimitiveArray::<T>::new(states.into(), None).with_data_type(values.data_type().clone());
    Some(vec![Arc::new(states)])
}

fn average(runs: &KeyRuns, sums: ArrayRef) -> Vec<ArrayRef> {
    let counts = runs.lengths().map(|length| length as u64);
    vec![Arc::new(UInt64Array::from_iter_values(counts)), sums]
}

fn floats(values: &ArrayRef, runs: &KeyRuns) -> ArrayRef {
    sums(values.as_primitive::<Float64Type>().values(), runs, |float| float)
}

fn sums<T: Copy>(values: &[T], runs: &KeyRuns, float: impl Fn(T) -> f64 + Copy) -> ArrayRef {
    let of_run = |run| values.get(run).map_or(0.0, |values| sum_as_floats(values, float));
    Arc::new(Float64Array::from_iter_values(runs.ranges().map(of_run)))
}

#[cfg(test)]
mod tests {
    use arrow::array::{BooleanArray, TimestampMillisecondArray};
    use datafusion::{
        functions_aggregate::all_default_aggregate_functions,
        logical_expr::{EmitTo, GroupsAccumulator},
        physical_expr::{PhysicalExpr, aggregate::AggregateExprBuilder, expressions::Column},
    };

    use super::{super::super::functions, *};

    /// Returns a function, if it takes values of this type.
    fn function(name: &str, data_type: &DataType) -> Option<AggregateFunctionExpr> {
        let functions = functions::aggregates(all_default_aggregate_functions(), usize::MAX);
        let function = functions.into_iter().find(|function| function.name() == name).unwrap();
        let field = arrow::datatypes::Field::new("x", data_type.clone(), true);
        let schema = Arc::new(arrow::datatypes::Schema::new(vec![field]));
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new("x", 0));
        AggregateExprBuilder::new(function, vec![column]).schema(schema).alias(name).build().ok()
    }

    fn shown(states: &[ArrayRef]) -> String {
        format!("{states:?}")
    }

    #[test]
    fn states_are_those_of_datafusion() {
        let columns: [ArrayRef; 6] = [
            Arc::new(Float64Array::from(vec![0.5, -0.0, 0.0, 4.25, f64::NAN, 2.0, 1.0, f64::INFINITY, f64::MIN])),
            Arc::new(Float64Array::from(vec![1.0, f64::NAN, 3.0, f64::NAN, 0.0, -0.0, f64::NEG_INFINITY, 7.0, 7.5])),
            Arc::new(Int64Array::from(vec![i64::MAX, 1, i64::MIN, -1, 5, 6, 7, i64::MAX, i64::MAX])),
            Arc::new(UInt64Array::from(vec![u64::MAX, 1, 0, 3, 5, 6, 7, u64::MAX, u64::MAX])),
            Arc::new(Int64Array::from(vec![Some(1), None, Some(3), None, None, None, Some(7), Some(8), Some(9)])),
            Arc::new(TimestampMillisecondArray::from_iter_values(0..9)),
        ];
        let runs = KeyRuns::new(&[0, 0, 0, 1, 0, 0, 1, 0, 1]);
        let groups = [0, 0, 0, 1, 1, 1, 2, 2, 3];
        let mut taken = 0;
        for values in &columns {
            for name in ["count", "sum", "avg", "min", "max"] {
                let Some(function) = function(name, values.data_type()) else { continue };
                let kind = StateKind::of(&function).unwrap();
                let Some(states) = kind.states(values, &runs) else { continue };
                let (mut whole, mut by_runs) = accumulators(&function);
                let no_filter: Option<&BooleanArray> = None;
                whole.update_batch(std::slice::from_ref(values), &groups, no_filter, 4).unwrap();
                by_runs.merge_batch(&states, &[0, 1, 2, 3], 4).unwrap();
                let [whole, by_runs] = [whole, by_runs].map(|mut states| shown(&states.state(EmitTo::All).unwrap()));
                assert_eq!(by_runs, whole, "{name} of {values:?}");
                taken += 1;
            }
        }
        // All functions but the average of two floats, four of three other columns without nulls,
        // none of what has nulls.
        assert_eq!(taken, 5 + 5 + 4 + 4 + 1);
    }

    fn accumulators(function: &AggregateFunctionExpr) -> (Box<dyn GroupsAccumulator>, Box<dyn GroupsAccumulator>) {
        (function.create_groups_accumulator().unwrap(), function.create_groups_accumulator().unwrap())
    }
}
