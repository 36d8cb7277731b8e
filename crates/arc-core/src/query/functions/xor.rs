//! `bit_xor`, which is null where a frame has no values left, and looks at different values only
//! where it is asked to.
//!
//! DataFusion's takes a value out by taking it once more, and does not count how many are left; its
//! form by groups passes over DISTINCT.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef},
    datatypes::{DataType, FieldRef},
};
use datafusion::{
    common::{Result, ScalarValue},
    logical_expr::{
        Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF, Signature,
        function::{AccumulatorArgs, StateFieldsArgs},
    },
};

use super::theirs::named_as_theirs;

/// See the module.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct BitXor {
    inner: Arc<AggregateUDF>,
}

impl BitXor {
    /// Returns the function that takes the place of DataFusion's.
    pub(super) fn over(inner: Arc<AggregateUDF>) -> AggregateUDF {
        AggregateUDF::from(Self { inner })
    }
}

impl AggregateUDFImpl for BitXor {
    named_as_theirs!();

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.inner.accumulator(arguments)
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(arguments)
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs) -> bool {
        !arguments.is_distinct && self.inner.groups_accumulator_supported(arguments)
    }

    fn create_groups_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        self.inner.create_groups_accumulator(arguments)
    }

    fn create_sliding_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let data_type = arguments.return_field.data_type().clone();
        Ok(Box::new(CountedFrame { inner: self.inner.create_sliding_accumulator(arguments)?, count: 0, data_type }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.inner.reverse_udf()
    }
}

/// The values of a frame, which are counted.
#[derive(Debug)]
struct CountedFrame {
    inner: Box<dyn Accumulator>,
    count: usize,
    data_type: DataType,
}

impl Accumulator for CountedFrame {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.count += values.first().map_or(0, |values| values.len() - values.null_count());
        self.inner.update_batch(values)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.count -= values.first().map_or(0, |values| values.len() - values.null_count());
        self.inner.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.count == 0 { ScalarValue::try_new_null(&self.data_type) } else { self.inner.evaluate() }
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.inner.size()
    }
}
