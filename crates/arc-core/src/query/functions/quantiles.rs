//! `percentile_cont` with all digits of its share: DataFusion rounds where it is between two values
//! to a millionth (apache/datafusion#25266).
//!
//! Values are kept by DataFusion's accumulators, whose states they are.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, RecordBatch},
    compute::cast,
    datatypes::{DataType, FieldRef, Float64Type, Schema},
};
use datafusion::{
    common::{Result, ScalarValue, internal_err},
    logical_expr::{
        Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, Documentation, EmitTo, GroupsAccumulator,
        ReversedUDAF, Signature,
        function::{AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs},
    },
};

use super::theirs::named_as_theirs;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Quantile {
    inner: Arc<AggregateUDF>,
}

impl Quantile {
    /// Returns the function that takes the place of DataFusion's.
    pub(super) fn over(inner: Arc<AggregateUDF>) -> AggregateUDF {
        AggregateUDF::from(Self { inner })
    }
}

impl AggregateUDFImpl for Quantile {
    named_as_theirs!();

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let inner = self.inner.accumulator(arguments.clone())?;
        if arguments.expr_fields.first().is_some_and(|field| field.data_type().is_null()) {
            return Ok(inner);
        }
        Ok(Box::new(QuantileAccumulator { inner, share: share(&arguments)?, is_distinct: arguments.is_distinct }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(arguments)
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs) -> bool {
        self.inner.groups_accumulator_supported(arguments)
    }

    fn create_groups_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let inner = self.inner.create_groups_accumulator(arguments.clone())?;
        Ok(Box::new(QuantilesByGroup { inner, share: share(&arguments)? }))
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        self.inner.simplify()
    }

    fn supports_within_group_clause(&self) -> bool {
        self.inner.supports_within_group_clause()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.inner.reverse_udf()
    }
}

/// Returns the share of the values that are below the quantile, which DataFusion has checked.
fn share(arguments: &AccumulatorArgs) -> Result<f64> {
    let Some(share) = arguments.exprs.get(1) else { return internal_err!("a quantile without its share") };
    let ColumnarValue::Scalar(share) = share.evaluate(&RecordBatch::new_empty(Arc::new(Schema::empty())))? else {
        return internal_err!("the share of a quantile is a column");
    };
    let ScalarValue::Float64(Some(share)) = share.cast_to(&DataType::Float64)? else {
        return internal_err!("the share of a quantile is NULL");
    };
    let is_descending = arguments.order_bys.first().is_some_and(|order| order.options.descending);
    Ok(if is_descending { 1.0 - share } else { share })
}

/// Returns what is at `share` of the way from the least to the greatest of `values`.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "no frame has 2^53 rows"
)]
fn quantile(values: &dyn Array, share: f64) -> Result<Option<f64>> {
    let mut values = cast(values, &DataType::Float64)?.as_primitive::<Float64Type>().values().to_vec();
    let Some(last) = values.len().checked_sub(1) else { return Ok(None) };
    let place = share * last as f64;
    let (below, rest) = ((place.floor() as usize).min(last), place.fract());
    let (_, lower, above) = values.select_nth_unstable_by(below, f64::total_cmp);
    let lower = *lower;
    let upper = above.iter().copied().min_by(f64::total_cmp).filter(|_| rest > 0.0);
    Ok(Some(match upper {
        Some(upper) if upper.total_cmp(&lower).is_ne() => {
            let span = upper - lower;
            if span.is_finite() { lower + span * rest } else { lower * (1.0 - rest) + upper * rest }
        }
        _ => lower,
    }))
}

/// One quantile.
#[derive(Debug)]
struct QuantileAccumulator {
    inner: Box<dyn Accumulator>,
    share: f64,
    is_distinct: bool,
}

impl Accumulator for QuantileAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(values)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
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
        let state = self.inner.state()?;
        let [ScalarValue::List(values)] = state.as_slice() else { return internal_err!("quantiles keep one list") };
        let data_type = values.value_type();
        let quantile = quantile(&values.value(0), self.share)?;
        if !self.is_distinct {
            // The state is taken, and a frame of a window goes on.
            self.inner.merge_batch(&[Arc::clone(values) as ArrayRef])?;
        }
        ScalarValue::Float64(quantile).cast_to(&data_type)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.inner.size()
    }
}

/// A quantile for each group.
struct QuantilesByGroup {
    inner: Box<dyn GroupsAccumulator>,
    share: f64,
}

impl GroupsAccumulator for QuantilesByGroup {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.inner.update_batch(values, groups, filter, total)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.inner.merge_batch(states, groups, total)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.inner.state(emit_to)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let state = self.inner.state(emit_to)?;
        let Some(lists) = state.first().and_then(|lists| lists.as_list_opt::<i32>()) else {
            return internal_err!("quantiles keep lists");
        };
        let quantiles = (0..lists.len()).map(|group| quantile(&lists.value(group), self.share));
        Ok(cast(&quantiles.collect::<Result<Float64Array>>()?, &lists.value_type())?)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(values, filter)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }
}
