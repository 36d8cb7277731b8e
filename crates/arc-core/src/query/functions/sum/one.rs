//! The sum of one group, or of the frame of a window.

use std::{collections::HashMap, fmt, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, ArrowNativeTypeOp, AsArray, Int64Array},
    datatypes::{ArrowPrimitiveType, DataType, Float64Type, Int64Type},
};
use datafusion::{
    common::{Result, ScalarValue, exec_err},
    logical_expr::Accumulator,
};

use super::{
    super::{
        counts::list,
        frame::{FrameFold, FrameState},
    },
    add, narrow,
    wide::Summed,
};

/// See the module.
pub(super) struct OneSum<S: Summed> {
    sum: <S::Wide as ArrowPrimitiveType>::Native,
    /// How many values it has.
    count: usize,
    data_type: DataType,
}

impl<S: Summed> OneSum<S> {
    pub(super) fn new(data_type: DataType) -> Self {
        Self { sum: <S::Wide as ArrowPrimitiveType>::Native::ZERO, count: 0, data_type }
    }

    fn total(&self, values: &ArrayRef) -> Result<<S::Wide as ArrowPrimitiveType>::Native> {
        let values = values.as_primitive::<S>();
        let whole = (values.null_count() == 0).then(|| S::total(values.values())).flatten();
        let zero = <S::Wide as ArrowPrimitiveType>::Native::ZERO;
        whole.map_or_else(
            || values.iter().flatten().try_fold(zero, |sum, value| add::<S>(sum, S::widen(value), &self.data_type)),
            Ok,
        )
    }
}

impl<S: Summed> fmt::Debug for OneSum<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OneSum").field("sum", &self.sum).field("data_type", &self.data_type).finish_non_exhaustive()
    }
}

impl<S: Summed> Accumulator for OneSum<S> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return exec_err!("sum takes one value") };
        self.sum = add::<S>(self.sum, self.total(values)?, &self.data_type)?;
        self.count += values.len() - values.null_count();
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return exec_err!("sum takes one value") };
        let less = self.total(values)?;
        self.sum = self.sum.sub_checked(less)?;
        self.count -= values.len() - values.null_count();
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [states] = states else { return exec_err!("sum has one state") };
        for more in states.as_primitive::<S::Wide>().iter().flatten() {
            self.sum = add::<S>(self.sum, more, &self.data_type)?;
            self.count += 1;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let sum = (self.count > 0).then_some(self.sum);
        Ok(vec![ScalarValue::new_primitive::<S::Wide>(sum, &S::state_type(&self.data_type))?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = (self.count > 0).then(|| narrow::<S>(self.sum, &self.data_type)).transpose()?;
        ScalarValue::new_primitive::<S>(sum, &self.data_type)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The sum of different values: DataFusion finds them.
pub(super) struct DistinctSum<S: Summed> {
    values: Box<dyn Accumulator>,
    sum: OneSum<S>,
}

impl<S: Summed> DistinctSum<S> {
    pub(super) fn new(values: Box<dyn Accumulator>, data_type: DataType) -> Self {
        Self { values, sum: OneSum::new(data_type) }
    }
}

impl<S: Summed> fmt::Debug for DistinctSum<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DistinctSum").field("values", &self.values).finish_non_exhaustive()
    }
}

impl<S: Summed> Accumulator for DistinctSum<S> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.update_batch(values)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.values.merge_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.values.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut sum = OneSum::<S>::new(self.sum.data_type.clone());
        for state in self.values.state()? {
            let lists = state.to_array()?;
            for values in lists.as_list::<i32>().iter().flatten() {
                sum.update_batch(&[values])?;
            }
        }
        sum.evaluate()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.size()
    }
}

/// The sum of the different integers of a frame that moves.
#[derive(Debug, Default)]
pub(super) struct SlidingDistinctSum {
    counts: HashMap<i64, usize>,
    sum: i128,
}

impl Accumulator for SlidingDistinctSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return exec_err!("sum takes one value") };
        for value in values.as_primitive::<Int64Type>().iter().flatten() {
            let count = self.counts.entry(value).or_default();
            *count += 1;
            if *count == 1 {
                self.sum += i128::from(value);
            }
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return exec_err!("sum takes one value") };
        for value in values.as_primitive::<Int64Type>().iter().flatten() {
            let Some(count) = self.counts.get_mut(&value) else { continue };
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&value);
                self.sum -= i128::from(value);
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [states] = states else { return exec_err!("sum has one state") };
        for values in states.as_list::<i32>().iter().flatten() {
            self.update_batch(&[values])?;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![list(Arc::new(self.counts.keys().copied().collect::<Int64Array>()))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = (!self.counts.is_empty()).then(|| narrow::<Int64Type>(self.sum, &DataType::Int64));
        Ok(ScalarValue::Int64(sum.transpose()?))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.counts.capacity() * size_of::<(i64, usize)>()
    }
}

/// The sum of some floats.
#[derive(Debug, Default, Clone, Copy)]
pub(in super::super) struct FloatSum(pub(in super::super) f64);

impl FrameState for FloatSum {
    type Value = f64;

    fn add(&mut self, value: f64) {
        self.0 += value;
    }

    fn then(self, later: Self) -> Self {
        Self(self.0 + later.0)
    }
}

impl FrameFold<FloatSum> {
    /// Takes the values of a batch.
    pub(in super::super) fn extend(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return exec_err!("one value is needed") };
        values.as_primitive::<Float64Type>().iter().flatten().for_each(|value| self.push(value));
        Ok(())
    }

    /// Lets go of the values of a batch, which came first.
    pub(in super::super) fn retract(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return exec_err!("one value is needed") };
        (0..values.len() - values.null_count()).for_each(|_| self.pop());
        Ok(())
    }
}

/// The sum of the floats of a frame that moves.
#[derive(Debug, Default)]
pub(super) struct SlidingSum {
    floats: FrameFold<FloatSum>,
}

impl Accumulator for SlidingSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.floats.extend(values)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.floats.retract(values)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.floats.extend(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64((self.floats.count() > 0).then(|| self.floats.state().0)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.floats.size()
    }
}
