//! `sum`, which fails where the sum does not fit into its type, instead of beginning again from the
//! other end.
//!
//! DataFusion's wraps around. Here integers, decimals and durations are added up in a wider type,
//! so that an answer does not depend on the order of the rows, nor on which of them were added up
//! first; only what comes out must fit. Floats are summed as DataFusion does, but in windows that
//! let go of rows, where it subtracts: a NaN would stay for ever.

mod one;
mod wide;

use std::{fmt, marker::PhantomData, sync::Arc};

use arrow::{
    array::{ArrayRef, ArrowNativeTypeOp, AsArray, BooleanArray, PrimitiveArray},
    datatypes::{ArrowPrimitiveType, DataType, FieldRef},
};
use datafusion::{
    common::{Result, exec_err},
    logical_expr::{
        Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, Expr, GroupsAccumulator, Operator,
        ReversedUDAF, SetMonotonicity, Signature, StatisticsArgs,
        expr::AggregateFunction,
        function::{AccumulatorArgs, StateFieldsArgs},
        utils::{AggregateOrderSensitivity, format_state_name},
    },
    scalar::ScalarValue,
};

pub(super) use self::one::FloatSum;
use self::one::{DistinctSum, OneSum, SlidingDistinctSum, SlidingSum};
pub(in crate::query) use self::wide::{Summed, total_of_integers, total_of_unsigned};
use super::{
    grouped::{Grouped, filtered},
    theirs::named_as_theirs,
};

/// See the module.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Sum {
    inner: Arc<AggregateUDF>,
}

/// Calls a generic function for the type that is summed, or `otherwise`.
macro_rules! by_type {
    ($data_type:expr, $call:ident, $otherwise:expr) => {{
        use arrow::datatypes::*;
        match $data_type {
            DataType::Int64 => $call!(Int64Type),
            DataType::UInt64 => $call!(UInt64Type),
            DataType::Decimal32(..) => $call!(Decimal32Type),
            DataType::Decimal64(..) => $call!(Decimal64Type),
            DataType::Decimal128(..) => $call!(Decimal128Type),
            DataType::Decimal256(..) => $call!(Decimal256Type),
            DataType::Duration(TimeUnit::Second) => $call!(DurationSecondType),
            DataType::Duration(TimeUnit::Millisecond) => $call!(DurationMillisecondType),
            DataType::Duration(TimeUnit::Microsecond) => $call!(DurationMicrosecondType),
            DataType::Duration(TimeUnit::Nanosecond) => $call!(DurationNanosecondType),
            DataType::Interval(IntervalUnit::YearMonth) => $call!(IntervalYearMonthType),
            DataType::Interval(IntervalUnit::DayTime) => $call!(IntervalDayTimeType),
            DataType::Interval(IntervalUnit::MonthDayNano) => $call!(IntervalMonthDayNanoType),
            _ => $otherwise,
        }
    }};
}

impl Sum {
    /// Returns the function that takes the place of DataFusion's.
    pub(super) fn over(inner: Arc<AggregateUDF>) -> AggregateUDF {
        AggregateUDF::from(Self { inner })
    }
}

impl AggregateUDFImpl for Sum {
    named_as_theirs!();

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let data_type = arguments.return_field.data_type().clone();
        let is_distinct = arguments.is_distinct;
        macro_rules! make {
            ($type:ty) => {
                match is_distinct {
                    true => Ok(Box::new(DistinctSum::<$type>::new(self.inner.accumulator(arguments)?, data_type))),
                    false => Ok(Box::new(OneSum::<$type>::new(data_type))),
                }
            };
        }
        by_type!(&data_type, make, self.inner.accumulator(arguments))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let data_type = arguments.return_type().clone();
        let is_distinct = arguments.is_distinct;
        let name = format_state_name(arguments.name, "sum");
        macro_rules! make {
            ($type:ty) => {
                Ok(vec![Field::new(name, <$type>::state_type(&data_type), true).into()])
            };
        }
        if is_distinct {
            return self.inner.state_fields(arguments);
        }
        by_type!(&data_type, make, self.inner.state_fields(arguments))
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs) -> bool {
        self.inner.groups_accumulator_supported(arguments)
    }

    fn create_groups_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let data_type = arguments.return_field.data_type().clone();
        macro_rules! make {
            ($type:ty) => {
                Ok(Box::new(SumByGroup::<$type>::new(data_type)))
            };
        }
        by_type!(&data_type, make, self.inner.create_groups_accumulator(arguments))
    }

    fn create_sliding_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let data_type = arguments.return_field.data_type().clone();
        if arguments.is_distinct {
            return match data_type {
                DataType::Int64 => Ok(Box::new(SlidingDistinctSum::default())),
                _ => self.inner.create_sliding_accumulator(arguments),
            };
        }
        macro_rules! make {
            ($type:ty) => {
                Ok(Box::new(OneSum::<$type>::new(data_type)))
            };
        }
        match data_type {
            DataType::Float64 => Ok(Box::new(SlidingSum::default())),
            _ => by_type!(&data_type, make, self.inner.create_sliding_accumulator(arguments)),
        }
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.inner.reverse_udf()
    }

    fn simplify_expr_op_literal(
        &self,
        function: &AggregateFunction,
        argument: &Expr,
        operator: Operator,
        literal: &Expr,
        argument_is_left: bool,
    ) -> Result<Option<Expr>> {
        self.inner.simplify_expr_op_literal(function, argument, operator, literal, argument_is_left)
    }

    fn value_from_stats(&self, arguments: &StatisticsArgs) -> Option<ScalarValue> {
        self.inner.value_from_stats(arguments)
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.inner.inner().set_monotonicity(data_type)
    }
}

/// Returns the error of a sum of this type.
fn does_not_fit<T>(data_type: &DataType) -> Result<T> {
    let name = match data_type {
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::UInt64 => "BIGINT UNSIGNED".to_owned(),
        other => other.to_string(),
    };
    exec_err!("sum: the sum does not fit into {name}; sum CAST(… AS DECIMAL(38, 0)) or CAST(… AS DOUBLE) instead")
}

fn narrow<S: Summed>(wide: <S::Wide as ArrowPrimitiveType>::Native, data_type: &DataType) -> Result<S::Native> {
    S::narrow(wide, data_type).map_or_else(|| does_not_fit(data_type), Ok)
}

/// Adds, and fails where even the wide type is too small.
fn add<S: Summed>(
    sum: <S::Wide as ArrowPrimitiveType>::Native,
    more: <S::Wide as ArrowPrimitiveType>::Native,
    data_type: &DataType,
) -> Result<<S::Wide as ArrowPrimitiveType>::Native> {
    if S::NEVER_FULL {
        return Ok(sum.add_wrapping(more));
    }
    sum.add_checked(more).or_else(|_| does_not_fit(data_type))
}

/// The sums of many groups.
struct SumByGroup<S: Summed> {
    sums: Grouped<<S::Wide as ArrowPrimitiveType>::Native>,
    data_type: DataType,
    summed: PhantomData<S>,
}

impl<S: Summed> SumByGroup<S> {
    fn new(data_type: DataType) -> Self {
        Self { sums: Grouped::new(<S::Wide as ArrowPrimitiveType>::Native::ZERO), data_type, summed: PhantomData }
    }
}

impl<S: Summed> fmt::Debug for SumByGroup<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SumByGroup").field("data_type", &self.data_type).finish_non_exhaustive()
    }
}

impl<S: Summed> GroupsAccumulator for SumByGroup<S> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        let [values] = values else { return exec_err!("sum takes one value") };
        let Self { sums, data_type, .. } = self;
        sums.fold(values.as_primitive::<S>(), groups, filter, total, |sum, value| {
            *sum = add::<S>(*sum, S::widen(value), data_type)?;
            Ok(())
        })
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        let [states] = states else { return exec_err!("sum has one state") };
        let Self { sums, data_type, .. } = self;
        sums.fold(states.as_primitive::<S::Wide>(), groups, None, total, |sum, more| {
            *sum = add::<S>(*sum, more, data_type)?;
            Ok(())
        })
    }

    fn evaluate(&mut self, which: EmitTo) -> Result<ArrayRef> {
        let (sums, nulls) = self.sums.take(which);
        let sums = sums.into_iter().map(|sum| narrow::<S>(sum, &self.data_type)).collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(PrimitiveArray::<S>::new(sums.into(), nulls).with_data_type(self.data_type.clone())))
    }

    fn state(&mut self, which: EmitTo) -> Result<Vec<ArrayRef>> {
        let (sums, nulls) = self.sums.take(which);
        let sums = PrimitiveArray::<S::Wide>::new(sums.into(), nulls);
        Ok(vec![Arc::new(sums.with_data_type(S::state_type(&self.data_type)))])
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let [values] = values else { return exec_err!("sum takes one value") };
        let values = values.as_primitive::<S>();
        let wide = values.values().iter().map(|value| S::widen(*value)).collect::<Vec<_>>();
        let wide = PrimitiveArray::<S::Wide>::new(wide.into(), filtered(values, filter));
        Ok(vec![Arc::new(wide.with_data_type(S::state_type(&self.data_type)))])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.sums.size()
    }
}
