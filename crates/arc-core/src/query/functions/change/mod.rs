//! How a value changed over time: `delta`, `increase`, `rate` and `derivative`, of a value and its
//! time.
//!
//! `delta` is the last value less the first, and `derivative` that for each second between them.
//! `increase` is for counters: the sum of all steps from one value to the next, where a lower value
//! means that the counter began again from zero, so that it counts in full; `rate` is that for each
//! second. Nothing is guessed beyond the first and the last row. Rows without a value or a time do
//! not count, nor do those whose value is NaN; with fewer than two there is no change to speak of:
//! null. Of rows of one time the lesser value comes first. Integers change exactly; the answer is a
//! float.

mod points;

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, Int64Array, PrimitiveArray},
    compute::cast,
    datatypes::{DataType, Field, FieldRef, Int64Type, TimeUnit},
};
use datafusion::{
    common::{Result, ScalarValue, exec_err, plan_err},
    logical_expr::{
        Accumulator, AggregateUDFImpl, Signature, Volatility,
        function::{AccumulatorArgs, StateFieldsArgs},
        utils::format_state_name,
    },
};

use self::points::{Point, PointValue, Points};
use super::counts::list;

const SECOND_NS: f64 = 1e9;

/// Which of the functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ChangeKind {
    Delta,
    Increase,
    Rate,
    Derivative,
}

/// One of the functions.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ChangeFunction {
    kind: ChangeKind,
    signature: Signature,
}

impl ChangeFunction {
    /// Returns all of them.
    pub(super) fn all() -> [Self; 4] {
        [ChangeKind::Delta, ChangeKind::Increase, ChangeKind::Rate, ChangeKind::Derivative]
            .map(|kind| Self { kind, signature: Signature::user_defined(Volatility::Immutable) })
    }
}

impl AggregateUDFImpl for ChangeFunction {
    fn name(&self) -> &'static str {
        match self.kind {
            ChangeKind::Delta => "delta",
            ChangeKind::Increase => "increase",
            ChangeKind::Rate => "rate",
            ChangeKind::Derivative => "derivative",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        match arguments {
            [value, DataType::Timestamp(_, zone)] if value.is_numeric() || *value == DataType::Null => {
                let value = match value {
                    integer if integer.is_signed_integer() => DataType::Int64,
                    integer if integer.is_unsigned_integer() => DataType::UInt64,
                    _ => DataType::Float64,
                };
                Ok(vec![value, DataType::Timestamp(TimeUnit::Nanosecond, zone.clone())])
            }
            _ => plan_err!("{} takes a number and a time", self.name()),
        }
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let kind = self.kind;
        Ok(match arguments.expr_fields.first().map(|field| field.data_type()) {
            Some(DataType::Int64) => Box::new(Changing::<i64> { kind, points: Points::new() }),
            Some(DataType::UInt64) => Box::new(Changing::<u64> { kind, points: Points::new() }),
            _ => Box::new(Changing::<f64> { kind, points: Points::new() }),
        })
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let list = |name: &str, item: DataType| {
            Field::new_list(format_state_name(arguments.name, name), Field::new_list_field(item, true), true).into()
        };
        let value = arguments.input_fields.first().map_or(DataType::Float64, |field| field.data_type().clone());
        Ok(vec![list("values", value), list("times", DataType::Int64)])
    }
}

/// The change of the points of one group: they come in any order, and a counter's resets show only
/// in the right one.
#[derive(Debug)]
struct Changing<V: PointValue> {
    kind: ChangeKind,
    points: Points<V>,
}

impl<V: PointValue> Changing<V> {
    /// Returns the points of a batch that count.
    fn of(columns: &[ArrayRef]) -> Result<impl Iterator<Item = Point<V>>> {
        let [values, times] = columns else { return exec_err!("a value and a time are needed") };
        let times = cast(times, &DataType::Int64)?.as_primitive::<Int64Type>().clone();
        let values = values.as_primitive::<V::Arrow>().clone();
        let point =
            move |row| (values.is_valid(row) && times.is_valid(row)).then(|| (times.value(row), values.value(row)));
        Ok((0..columns.first().map_or(0, |values| values.len())).filter_map(point).filter(|(_, value)| value.counts()))
    }
}

impl<V: PointValue> Accumulator for Changing<V> {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.points.extend(Self::of(columns)?);
        Ok(())
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.points.remove(Self::of(columns)?);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [values, times] = states else { return exec_err!("two states are needed") };
        for (values, times) in values.as_list::<i32>().iter().zip(times.as_list::<i32>().iter()) {
            if let (Some(values), Some(times)) = (values, times) {
                self.points.extend(Self::of(&[values, times])?);
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let (times, values): (Vec<i64>, Vec<V>) = self.points.all().unzip();
        let values = PrimitiveArray::<V::Arrow>::new(values.into(), None);
        Ok(vec![list(Arc::new(values)), list(Arc::new(Int64Array::from(times)))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let change = self.points.span().filter(|span| span.count > 1).and_then(|span| {
            let ((began, first), (ended, last)) = (span.first, span.last);
            let (delta, increase) = (V::float(last.since(first)), V::float(span.increase));
            #[expect(clippy::cast_precision_loss, reason = "a rate has no more digits than its value")]
            let seconds = ended.abs_diff(began) as f64 / SECOND_NS;
            let by_second = |change: f64| (seconds > 0.0).then(|| change / seconds);
            match self.kind {
                ChangeKind::Delta => Some(delta),
                ChangeKind::Increase => Some(increase),
                ChangeKind::Rate => by_second(increase),
                ChangeKind::Derivative => by_second(delta),
            }
        });
        Ok(ScalarValue::Float64(change))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.points.size()
    }
}
