//! `min` and `max` of floats, whatever the order of the rows.
//!
//! DataFusion's own take a NaN for what it replaces, and for what replaces it, in an order that
//! comes from partitions, flushes and merges of files. Here floats are in the order in which
//! `ORDER BY` has them: a NaN is greater than every number (one with a sign is less), and the two
//! zeros are one, which comes out as `0.0`. All other types are DataFusion's.

use std::{collections::VecDeque, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, PrimitiveArray},
    buffer::NullBuffer,
    compute::cast,
    datatypes::{DataType, FieldRef, Float64Type},
};
use datafusion::{
    common::{Result, ScalarValue, exec_err},
    logical_expr::{
        Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator, ReversedUDAF,
        SetMonotonicity, Signature, StatisticsArgs,
        function::{AccumulatorArgs, StateFieldsArgs},
        utils::AggregateOrderSensitivity,
    },
};

use super::{
    grouped::{Grouped, filtered},
    theirs::named_as_theirs,
};
use crate::arrays::float_order::{float, rank};

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::query) enum LeastOrGreatest {
    Least,
    Greatest,
}

impl LeastOrGreatest {
    /// Returns the better of two ranks.
    fn better(self, a: i64, b: i64) -> i64 {
        match self {
            Self::Least => a.min(b),
            Self::Greatest => a.max(b),
        }
    }

    /// Returns what any rank is as good as.
    const fn worst(self) -> i64 {
        match self {
            Self::Least => i64::MAX,
            Self::Greatest => i64::MIN,
        }
    }

    /// Returns that one of some floats, if there is one.
    pub(in crate::query) fn of(self, floats: &[f64]) -> Option<f64> {
        floats.iter().map(|float| rank(*float)).reduce(|a, b| self.better(a, b)).map(float)
    }
}

/// See the module.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Extreme {
    inner: Arc<AggregateUDF>,
    end: LeastOrGreatest,
}

impl Extreme {
    /// Returns the function that takes the place of DataFusion's.
    pub(super) fn over(inner: Arc<AggregateUDF>, end: LeastOrGreatest) -> AggregateUDF {
        AggregateUDF::from(Self { inner, end })
    }
}

fn is_float(arguments: &AccumulatorArgs<'_>) -> bool {
    arguments.return_field.data_type().is_floating()
}

impl AggregateUDFImpl for Extreme {
    named_as_theirs!();

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arguments)
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if !is_float(&arguments) {
            return self.inner.accumulator(arguments);
        }
        let data_type = arguments.return_field.data_type().clone();
        Ok(Box::new(One { end: self.end, best: None, data_type }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(arguments)
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs) -> bool {
        self.inner.groups_accumulator_supported(arguments)
    }

    fn create_groups_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        if !is_float(&arguments) {
            return self.inner.create_groups_accumulator(arguments);
        }
        let data_type = arguments.return_field.data_type().clone();
        Ok(Box::new(Many { end: self.end, best: Grouped::new(self.end.worst()), data_type }))
    }

    fn create_sliding_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if !is_float(&arguments) {
            return self.inner.create_sliding_accumulator(arguments);
        }
        let data_type = arguments.return_field.data_type().clone();
        Ok(Box::new(SlidingExtreme { end: self.end, frame: VecDeque::new(), came: 0, gone: 0, data_type }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.inner.reverse_udf()
    }

    fn is_descending(&self) -> Option<bool> {
        self.inner.is_descending()
    }

    fn value_from_stats(&self, arguments: &StatisticsArgs) -> Option<ScalarValue> {
        self.inner.value_from_stats(arguments)
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.inner.inner().set_monotonicity(data_type)
    }
}

/// Returns the floats of a column, whatever their width.
fn floats(columns: &[ArrayRef]) -> Result<Float64Array> {
    let [values] = columns else { return exec_err!("one value is needed") };
    Ok(cast(values, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
}

fn scalar(best: Option<i64>, data_type: &DataType) -> Result<ScalarValue> {
    ScalarValue::Float64(best.map(float)).cast_to(data_type)
}

/// The best of one group.
#[derive(Debug)]
struct One {
    end: LeastOrGreatest,
    /// Its rank.
    best: Option<i64>,
    data_type: DataType,
}

impl Accumulator for One {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let values = floats(columns)?;
        let better = |a, b| self.end.better(a, b);
        let best = match values.null_count() {
            0 => values.values().iter().map(|value| rank(*value)).reduce(better),
            _ => values.iter().flatten().map(rank).reduce(better),
        };
        self.best = self.best.into_iter().chain(best).reduce(better);
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        scalar(self.best, &self.data_type)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The best of a frame that moves.
#[derive(Debug)]
struct SlidingExtreme {
    end: LeastOrGreatest,
    /// Ranks with their numbers: each is better than all that came after it, so that the first is
    /// the best.
    frame: VecDeque<(usize, i64)>,
    came: usize,
    gone: usize,
    data_type: DataType,
}

impl Accumulator for SlidingExtreme {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        for rank in floats(columns)?.iter().flatten().map(rank) {
            while self.frame.pop_back_if(|(_, held)| self.end.better(*held, rank) == rank).is_some() {}
            self.frame.push_back((self.came, rank));
            self.came += 1;
        }
        Ok(())
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let [values] = columns else { return exec_err!("one value is needed") };
        self.gone += values.len() - values.logical_null_count();
        while self.frame.pop_front_if(|(number, _)| *number < self.gone).is_some() {}
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        scalar(self.frame.front().map(|(_, rank)| *rank), &self.data_type)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.frame.capacity() * size_of::<(usize, i64)>()
    }
}

/// The best of many groups.
#[derive(Debug)]
struct Many {
    end: LeastOrGreatest,
    best: Grouped<i64>,
    data_type: DataType,
}

impl Many {
    fn array(&self, values: Vec<f64>, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let floats: ArrayRef = Arc::new(PrimitiveArray::<Float64Type>::new(values.into(), nulls));
        Ok(cast(&floats, &self.data_type)?)
    }
}

impl GroupsAccumulator for Many {
    fn update_batch(
        &mut self,
        columns: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        let end = self.end;
        self.best.fold(&floats(columns)?, groups, filter, total, |best, value| {
            *best = end.better(*best, rank(value));
            Ok(())
        })
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.update_batch(states, groups, None, total)
    }

    fn evaluate(&mut self, which: EmitTo) -> Result<ArrayRef> {
        let (best, nulls) = self.best.take(which);
        self.array(best.into_iter().map(float).collect(), nulls)
    }

    fn state(&mut self, which: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(which)?])
    }

    fn convert_to_state(&self, columns: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = floats(columns)?;
        let nulls = filtered(&values, filter);
        Ok(vec![self.array(values.values().to_vec(), nulls)?])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.best.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_have_one_order_and_come_back_from_it() {
        let ascending = [
            -f64::NAN,
            f64::NEG_INFINITY,
            f64::MIN,
            -1.0,
            -f64::MIN_POSITIVE,
            0.0,
            5e-324,
            1.0,
            f64::MAX,
            f64::INFINITY,
        ];
        let ascending = ascending.into_iter().chain([f64::NAN]).collect::<Vec<_>>();
        assert!(ascending.iter().map(|float| rank(*float)).is_sorted_by(|a, b| a < b));
        for number in &ascending {
            assert_eq!(float(rank(*number)).to_bits(), number.to_bits());
        }
        assert_eq!(rank(-0.0), rank(0.0));
        let other_nan = f64::from_bits(f64::NAN.to_bits() | 1);
        assert_eq!(rank(other_nan), rank(f64::NAN));
        assert_eq!(LeastOrGreatest::Least.of(&[2.0, f64::NAN, 1.0]), Some(1.0));
        assert!(LeastOrGreatest::Greatest.of(&[2.0, f64::NAN, 1.0]).is_some_and(f64::is_nan));
        assert_eq!(LeastOrGreatest::Greatest.of(&[]), None);
    }
}
