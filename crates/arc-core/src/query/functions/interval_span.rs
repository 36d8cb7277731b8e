//! How long an interval is: a day is 24 hours and a month 30 days.
//!
//! Not a function that statements can call: a rule puts it around intervals that are compared, which are compared part by
//! part otherwise, months first, so that 30 hours would be less than a day.

use std::sync::{Arc, LazyLock};

use arrow::{
    array::{ArrayRef, AsArray, Decimal128Array},
    datatypes::{
        DataType, Decimal128Type, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalUnit, IntervalYearMonthType,
    },
};
use datafusion::{
    common::{Result, ScalarValue, exec_err},
    logical_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility},
};

const NAME: &str = "interval_span";
const DAY_NS: i128 = 86_400_000_000_000;
const MONTH_NS: i128 = 30 * DAY_NS;
/// Nanoseconds of any interval.
const SPAN: DataType = DataType::Decimal128(38, 0);

static FUNCTION: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(IntervalSpan { signature: Signature::any(1, Volatility::Immutable) })));

#[derive(Debug, PartialEq, Eq, Hash)]
struct IntervalSpan {
    signature: Signature,
}

#[cfg(feature = "distributed")]
pub(super) fn function() -> Arc<ScalarUDF> {
    Arc::clone(&FUNCTION)
}

/// Returns how long an interval is.
pub(in crate::query) fn interval_span(interval: Expr) -> Expr {
    FUNCTION.call(vec![interval])
}

/// Returns whether an interval goes back in time.
pub(in crate::query) fn is_backward(interval: &ScalarValue) -> Result<bool> {
    let spans = spans(&interval.to_array()?)?;
    Ok(spans.as_primitive::<Decimal128Type>().iter().flatten().any(|span| span < 0))
}

impl ScalarUDFImpl for IntervalSpan {
    fn name(&self) -> &'static str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [DataType::Interval(_)] => Ok(SPAN),
            _ => exec_err!("{NAME} takes an interval"),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(interval) = arguments.args.first() else { return exec_err!("{NAME} takes an interval") };
        let spans = spans(&interval.to_array(1)?)?;
        Ok(match interval {
            ColumnarValue::Array(_) => ColumnarValue::Array(spans),
            ColumnarValue::Scalar(_) => ColumnarValue::Scalar(ScalarValue::try_from_array(&spans, 0)?),
        })
    }
}

fn spans(intervals: &ArrayRef) -> Result<ArrayRef> {
    let spans: Decimal128Array = match intervals.data_type() {
        DataType::Interval(IntervalUnit::YearMonth) => {
            intervals.as_primitive::<IntervalYearMonthType>().unary(|months| i128::from(months) * MONTH_NS)
        }
        DataType::Interval(IntervalUnit::DayTime) => intervals
            .as_primitive::<IntervalDayTimeType>()
            .unary(|span| i128::from(span.days) * DAY_NS + i128::from(span.milliseconds) * 1_000_000),
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            intervals.as_primitive::<IntervalMonthDayNanoType>().unary(|span| {
                i128::from(span.months) * MONTH_NS + i128::from(span.days) * DAY_NS + i128::from(span.nanoseconds)
            })
        }
        other => return exec_err!("{NAME} takes an interval, not {other}"),
    };
    Ok(Arc::new(spans.with_data_type(SPAN)))
}
