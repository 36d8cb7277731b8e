//! `time_bucket(interval, time [, origin])`: the start of the bucket that a time is in.
//!
//! DataFusion's `date_bin` with the origin that people expect: weeks start on Monday (2000-01-03),
//! months and years on the first (2000-01-01). Rounds down before the origin, too, and keeps the
//! precision and zone of `time`: a day is one by the clock of that zone, in `date_bin` as well.

use datafusion::{
    common::{Result, ScalarValue, exec_err},
    functions::datetime::date_bin::DateBinFunc,
    logical_expr::{
        ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDFImpl, Signature,
        sort_properties::{ExprProperties, SortProperties},
    },
};

use arrow::{array::Array, datatypes::DataType};

use super::zoned::ZonedClock;

/// 2000-01-03T00:00:00Z, a Monday, in nanoseconds.
const MONDAY_NS: i64 = 946_857_600_000_000_000;

/// 2000-01-01T00:00:00Z in nanoseconds.
const FIRST_OF_MONTH_NS: i64 = 946_684_800_000_000_000;

/// The function `time_bucket`, or `date_bin`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct TimeBucket {
    name: &'static str,
    /// Whether buckets begin where people expect, and not in 1970.
    from_monday: bool,
    date_bin: DateBinFunc,
}

impl TimeBucket {
    pub(super) fn from_monday() -> Self {
        Self { name: "time_bucket", from_monday: true, date_bin: DateBinFunc::default() }
    }

    /// Returns what takes the place of DataFusion's function, which knows no zones.
    pub(super) fn date_bin() -> Self {
        Self { name: "date_bin", from_monday: false, date_bin: DateBinFunc::default() }
    }

    /// Puts the times of a clock into buckets.
    fn by_clock(&self, clock: &ZonedClock, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some((_, times)) = arguments.args.split_first_mut() else { return exec_err!("{} takes times", self.name) };
        let instants = times.first().cloned();
        for time in times {
            *time = clock.shown(time)?;
        }
        let rows = arguments.number_rows;
        let width_s = arguments.args.first().map_or(0, width_s);
        let began = self.binned(arguments)?;
        instants.map_or_else(
            || exec_err!("{} takes times", self.name),
            |instants| clock.began(&instants, &began, rows, width_s),
        )
    }

    /// Returns beginnings of buckets; of a time whose bucket begins before all times DataFusion makes
    /// null.
    fn binned(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let nulls = |value: &ColumnarValue| match value {
            ColumnarValue::Array(array) => array.null_count(),
            ColumnarValue::Scalar(scalar) => usize::from(scalar.is_null()),
        };
        let is_null = |value: &ColumnarValue| matches!(value, ColumnarValue::Scalar(scalar) if scalar.is_null());
        let some_are_null = arguments.args.iter().any(is_null);
        let unknown: usize = arguments.args.iter().map(nulls).sum();
        let began = self.date_bin.invoke_with_args(arguments)?;
        match !some_are_null && nulls(&began) > unknown {
            true => exec_err!("{}: the bucket of a time begins before all times that can be held", self.name),
            false => Ok(began),
        }
    }
}

impl ScalarUDFImpl for TimeBucket {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        self.date_bin.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.date_bin.return_type(arguments)
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if arguments.args.first().is_some_and(is_negative) {
            return exec_err!("{}: the interval must be positive", self.name);
        }
        let clock = arguments.args.get(1).map(|time| ZonedClock::of(&time.data_type())).transpose()?.flatten();
        if let [interval, time] = arguments.args.as_slice()
            && matches!(time.data_type(), DataType::Timestamp(..))
            && (self.from_monday || clock.is_some())
        {
            let origin_ns = match interval {
                _ if !self.from_monday => 0,
                ColumnarValue::Scalar(interval) => origin_ns(interval),
                ColumnarValue::Array(_) => MONDAY_NS,
            };
            let zone = clock.is_none().then(|| "UTC".into());
            let origin = ScalarValue::TimestampNanosecond(Some(origin_ns), zone);
            arguments.args.push(ColumnarValue::Scalar(origin));
        }
        match clock {
            Some(clock) => self.by_clock(&clock, arguments),
            None => self.binned(arguments),
        }
    }

    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        self.date_bin.output_ordering(input)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.date_bin.documentation().filter(|_| !self.from_monday)
    }
}

fn is_negative(interval: &ColumnarValue) -> bool {
    let ColumnarValue::Scalar(ScalarValue::IntervalMonthDayNano(Some(interval))) = interval else { return false };
    let nanoseconds = i128::from(interval.days) * 86_400_000_000_000 + i128::from(interval.nanoseconds);
    interval.months < 0 || nanoseconds < 0
}

/// Returns how long a bucket is; one of months is longer than whatever a clock is turned by.
fn width_s(interval: &ColumnarValue) -> i64 {
    let ColumnarValue::Scalar(ScalarValue::IntervalMonthDayNano(Some(interval))) = interval else { return 0 };
    match interval.months {
        0 => i64::from(interval.days) * 86_400 + interval.nanoseconds / 1_000_000_000,
        _ => i64::MAX,
    }
}

/// Returns from where buckets of this length are counted where nothing else is said.
pub(in crate::query) fn origin_ns(interval: &ScalarValue) -> i64 {
    match interval {
        ScalarValue::IntervalMonthDayNano(Some(interval)) if interval.months != 0 => FIRST_OF_MONTH_NS,
        _ => MONDAY_NS,
    }
}
