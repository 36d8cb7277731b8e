//! `avg` of floats by group, for rows that come sorted by group.
//!
//! Rows of data files are in order of their series, so that the same group comes thousands of times
//! in a row. DataFusion's own accumulator then waits, at each row, for the sum that it stored at
//! the row before. Here the rows of one run are summed at once and handed to that accumulator as a
//! state to merge. Sums of floats may differ in their last digits, as they do with any other order
//! of the rows.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, UInt64Array},
    datatypes::{DataType, FieldRef, Float64Type},
};
use datafusion::{
    common::{Result, ScalarValue, exec_err},
    logical_expr::{
        Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
        function::{AccumulatorArgs, StateFieldsArgs},
    },
};

use super::{frame::FrameFold, sum::FloatSum, theirs::named_as_theirs};

/// Rows of a run from which summing it apart pays.
const ROWS_IN_RUN: usize = 8;

/// Numbers that are summed side by side.
const LANES: usize = 8;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Average {
    inner: Arc<AggregateUDF>,
}

impl Average {
    /// Returns the function that takes the place of DataFusion's.
    pub(super) fn over(inner: Arc<AggregateUDF>) -> AggregateUDF {
        AggregateUDF::from(Self { inner })
    }
}

impl AggregateUDFImpl for Average {
    named_as_theirs!();

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.inner.accumulator(arguments)
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(arguments)
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs) -> bool {
        self.inner.groups_accumulator_supported(arguments)
    }

    fn create_groups_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let of_floats = arguments.expr_fields.iter().all(|field| *field.data_type() == DataType::Float64);
        let inner = self.inner.create_groups_accumulator(arguments)?;
        Ok(if of_floats { Box::new(ByRuns { inner }) } else { inner })
    }

    fn create_sliding_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let of_floats = arguments.expr_fields.iter().all(|field| *field.data_type() == DataType::Float64);
        match of_floats && !arguments.is_distinct {
            true => Ok(Box::new(SlidingAverage::default())),
            false => self.inner.create_sliding_accumulator(arguments),
        }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.inner.reverse_udf()
    }
}

/// The average of the floats of a frame that moves.
#[derive(Debug, Default)]
struct SlidingAverage {
    floats: FrameFold<FloatSum>,
}

impl Accumulator for SlidingAverage {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.floats.extend(values)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.floats.retract(values)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        exec_err!("frames of windows are not merged")
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        exec_err!("frames of windows are not merged")
    }

    #[expect(clippy::cast_precision_loss, reason = "no frame has 2^53 rows")]
    fn evaluate(&mut self) -> Result<ScalarValue> {
        let count = self.floats.count();
        Ok(ScalarValue::Float64((count > 0).then(|| self.floats.state().0 / count as f64)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.floats.size()
    }
}

/// Gives `inner`, whose state is a count and a sum, one state for each run.
struct ByRuns {
    inner: Box<dyn GroupsAccumulator>,
}

impl GroupsAccumulator for ByRuns {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        let floats = values.first().and_then(|values| values.as_primitive_opt::<Float64Type>());
        match floats
            .filter(|floats| filter.is_none() && floats.null_count() == 0)
            .and_then(|f| runs(f.values(), groups))
        {
            Some(BatchRuns { groups, counts, sums }) => {
                let states: [ArrayRef; 2] = [Arc::new(UInt64Array::from(counts)), Arc::new(Float64Array::from(sums))];
                self.inner.merge_batch(&states, &groups, total)
            }
            None => self.inner.update_batch(values, groups, filter, total),
        }
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        self.inner.evaluate(emit_to)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.inner.state(emit_to)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.inner.merge_batch(values, groups, total)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(values, filter)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }
}

/// The rows of a batch, run by run.
#[derive(Debug, PartialEq)]
struct BatchRuns {
    groups: Vec<usize>,
    counts: Vec<u64>,
    sums: Vec<f64>,
}

/// Returns `None` where groups change too often for it to pay.
fn runs(values: &[f64], groups: &[usize]) -> Option<BatchRuns> {
    let most = groups.len() / ROWS_IN_RUN;
    let mut runs = BatchRuns { groups: Vec::new(), counts: Vec::new(), sums: Vec::new() };
    let mut rest = values;
    for run in groups.chunk_by(|a, b| a == b) {
        if runs.groups.len() >= most {
            return None;
        }
        let (of_run, behind) = rest.split_at_checked(run.len())?;
        rest = behind;
        runs.groups.push(*run.first()?);
        runs.counts.push(run.len() as u64);
        runs.sums.push(sum(of_run, |value| value));
    }
    Some(runs)
}

/// Returns the sum of some numbers as floats, added up in an order that depends on how many there
/// are, and on nothing else.
pub(in crate::query) fn sum<T: Copy>(values: &[T], float: impl Fn(T) -> f64) -> f64 {
    let (rows, rest) = values.as_chunks::<LANES>();
    let rest: f64 = rest.iter().map(|value| float(*value)).sum();
    if rows.is_empty() {
        return rest;
    }
    let mut sums = [0.0; LANES];
    for row in rows {
        sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += float(*value));
    }
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_run_become_one_state_unless_runs_are_short() {
        let values: Vec<f64> = (0..40).map(f64::from).collect();
        let groups: Vec<usize> = [vec![3; 20], vec![0; 15], vec![3; 5]].concat();
        let expected = BatchRuns { groups: vec![3, 0, 3], counts: vec![20, 15, 5], sums: vec![190.0, 405.0, 185.0] };
        assert_eq!(runs(&values, &groups), Some(expected));
        assert_eq!(runs(&values, &(0..40).map(|row| row / 2).collect::<Vec<_>>()), None);
        assert_eq!(runs(&[1.0], &[0]), None);
    }
}
