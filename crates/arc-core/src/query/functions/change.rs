//! How a value changed over time: `delta`, `increase`, `rate` and `derivative`, of a value and its time.
//!
//! `delta` is the last value less the first, and `derivative` that for each second between them. `increase` is for
//! counters: the sum of all steps from one value to the next, where a lower value means that the counter began again
//! from zero, so that it counts in full; `rate` is that for each second. Nothing is guessed beyond the first and the last
//! row. Rows without a value or a time do not count; with fewer than two there is no change to speak of: null.

use std::{collections::VecDeque, sync::Arc};

use arrow::{
    array::{ArrayRef, AsArray, Float64Array, Int64Array},
    compute::cast,
    datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type, TimeUnit},
};
use datafusion::{
    common::{Result, ScalarValue, exec_err, plan_err},
    logical_expr::{
        Accumulator, AggregateUDFImpl, Signature, Volatility,
        function::{AccumulatorArgs, StateFieldsArgs},
        utils::format_state_name,
    },
};

use super::counts::list;

const SECOND_NS: f64 = 1e9;

/// Which of the functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Delta,
    Increase,
    Rate,
    Derivative,
}

/// One of the functions.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Change {
    kind: Kind,
    signature: Signature,
}

impl Change {
    /// Returns all of them.
    pub(super) fn all() -> [Self; 4] {
        [Kind::Delta, Kind::Increase, Kind::Rate, Kind::Derivative]
            .map(|kind| Self { kind, signature: Signature::user_defined(Volatility::Immutable) })
    }
}

impl AggregateUDFImpl for Change {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Delta => "delta",
            Kind::Increase => "increase",
            Kind::Rate => "rate",
            Kind::Derivative => "derivative",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        match arguments {
            [value, DataType::Timestamp(_, zone)] if value.is_numeric() || *value == DataType::Null => {
                Ok(vec![DataType::Float64, DataType::Timestamp(TimeUnit::Nanosecond, zone.clone())])
            }
            _ => plan_err!("{} takes a number and a time", self.name()),
        }
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn accumulator(&self, _arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Points { kind: self.kind, points: VecDeque::new() }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let list = |name: &str, item: DataType| {
            Field::new_list(format_state_name(arguments.name, name), Field::new_list_field(item, true), true).into()
        };
        Ok(vec![list("values", DataType::Float64), list("times", DataType::Int64)])
    }
}

/// The points of one group: they come in any order, and a counter's resets show only in the right one.
#[derive(Debug)]
struct Points {
    kind: Kind,
    points: VecDeque<(i64, f64)>,
}

impl Points {
    /// Returns the points of a batch that count.
    fn of(columns: &[ArrayRef]) -> Result<Vec<(i64, f64)>> {
        let [values, times] = columns else { return exec_err!("a value and a time are needed") };
        let times = cast(times, &DataType::Int64)?;
        let (values, times) = (values.as_primitive::<Float64Type>(), times.as_primitive::<Int64Type>());
        Ok(times.iter().zip(values).filter_map(|(time, value)| time.zip(value)).collect())
    }

    fn change(&self) -> Option<f64> {
        let mut points: Vec<(i64, f64)> = self.points.iter().copied().collect();
        points.sort_by_key(|(time, _)| *time);
        let ((began, first), (ended, last)) = (points.first()?, points.last()?);
        if points.len() < 2 {
            return None;
        }
        let steps = points.iter().zip(points.iter().skip(1));
        let increase = || steps.map(|((_, a), (_, b))| if b >= a { b - a } else { *b }).sum::<f64>();
        #[expect(clippy::cast_precision_loss, reason = "a rate has no more digits than its value")]
        let seconds = ended.abs_diff(*began) as f64 / SECOND_NS;
        let by_second = |change: f64| (seconds > 0.0).then(|| change / seconds);
        match self.kind {
            Kind::Delta => Some(last - first),
            Kind::Increase => Some(increase()),
            Kind::Rate => by_second(increase()),
            Kind::Derivative => by_second(last - first),
        }
    }
}

impl Accumulator for Points {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.points.extend(Self::of(columns)?);
        Ok(())
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        // A window lets go of the rows that it took first.
        let gone = Self::of(columns)?.len().min(self.points.len());
        self.points.drain(..gone);
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
        let values: Float64Array = self.points.iter().map(|(_, value)| Some(*value)).collect();
        let times: Int64Array = self.points.iter().map(|(time, _)| Some(*time)).collect();
        Ok(vec![list(Arc::new(values)), list(Arc::new(times))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(self.change()))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.points.capacity() * size_of::<(i64, f64)>()
    }
}
