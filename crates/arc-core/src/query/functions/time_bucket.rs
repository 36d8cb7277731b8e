//! `time_bucket(interval, time [, origin])`: the start of the bucket that a time is in.
//!
//! DataFusion's `date_bin` with the origin that people expect: weeks start on Monday (2000-01-03), months and years on
//! the first (2000-01-01). Rounds down before the origin, too, and keeps the precision and zone of `time`.

use datafusion::{
    common::{Result, ScalarValue},
    functions::datetime::date_bin::DateBinFunc,
    logical_expr::{
        ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature,
        sort_properties::{ExprProperties, SortProperties},
    },
};

use arrow::datatypes::DataType;

/// 2000-01-03T00:00:00Z, a Monday, in nanoseconds.
const MONDAY_NS: i64 = 946_857_600_000_000_000;

/// 2000-01-01T00:00:00Z in nanoseconds.
const FIRST_OF_MONTH_NS: i64 = 946_684_800_000_000_000;

/// The function `time_bucket`.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct TimeBucket {
    date_bin: DateBinFunc,
}

impl ScalarUDFImpl for TimeBucket {
    fn name(&self) -> &str {
        "time_bucket"
    }

    fn signature(&self) -> &Signature {
        self.date_bin.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.date_bin.return_type(arguments)
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let [interval, time] = arguments.args.as_slice()
            && matches!(time.data_type(), DataType::Timestamp(..))
        {
            let origin_ns =
                if let ColumnarValue::Scalar(interval) = interval { origin_ns(interval) } else { MONDAY_NS };
            let origin = ScalarValue::TimestampNanosecond(Some(origin_ns), Some("UTC".into()));
            arguments.args.push(ColumnarValue::Scalar(origin));
        }
        self.date_bin.invoke_with_args(arguments)
    }

    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        self.date_bin.output_ordering(input)
    }
}

/// Returns from where buckets of this length are counted where nothing else is said.
pub(in crate::query) fn origin_ns(interval: &ScalarValue) -> i64 {
    match interval {
        ScalarValue::IntervalMonthDayNano(Some(interval)) if interval.months != 0 => FIRST_OF_MONTH_NS,
        _ => MONDAY_NS,
    }
}
