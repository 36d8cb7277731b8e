//! `date_diff(unit, from, to)`: how many units begin between two times, as DuckDB counts them.
//!
//! Not how many fit in: from 10:59 to 11:01 it is one hour, and the other way round minus one.
//! Weeks begin on Mondays, as in `date_trunc`; DuckDB counts them from a Thursday.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, AsArray, Int64Array},
    compute::try_binary,
    datatypes::{DataType, Int64Type, TimeUnit},
    error::ArrowError,
};
use chrono::{DateTime, Datelike};
use datafusion::{
    common::{Result, ScalarValue, exec_err, plan_err},
    logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility},
};

const SECOND_NS: i64 = 1_000_000_000;
const DAY_NS: i64 = 86_400 * SECOND_NS;
/// From 1970-01-01 to the first Monday.
const MONDAY_DAYS: i64 = 4;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct DateDiff {
    signature: Signature,
    aliases: [String; 1],
}

impl Default for DateDiff {
    fn default() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable), aliases: ["datediff".to_owned()] }
    }
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// Of so many nanoseconds, from 1970 on.
    Even(i64),
    Weeks,
    /// Of so many months, from the first of a year on.
    Months(i64),
    /// Of so many years, from the year 1 on.
    Ages(i64),
}

impl Unit {
    /// Returns the unit of a name, as `date_part` and DuckDB have them.
    fn of(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        Some(match name.as_str() {
            "nanosecond" | "nanoseconds" | "ns" => Self::Even(1),
            "microsecond" | "microseconds" | "us" => Self::Even(1_000),
            "millisecond" | "milliseconds" | "ms" => Self::Even(1_000_000),
            "second" | "seconds" | "sec" | "secs" | "s" => Self::Even(SECOND_NS),
            "minute" | "minutes" | "min" | "mins" | "m" => Self::Even(60 * SECOND_NS),
            "hour" | "hours" | "hr" | "hrs" | "h" => Self::Even(3_600 * SECOND_NS),
            "day" | "days" | "d" => Self::Even(DAY_NS),
            "week" | "weeks" | "w" => Self::Weeks,
            "month" | "months" | "mon" | "mons" => Self::Months(1),
            "quarter" | "quarters" => Self::Months(3),
            "year" | "years" | "yr" | "yrs" | "y" => Self::Months(12),
            "decade" | "decades" => Self::Months(120),
            "century" | "centuries" => Self::Ages(100),
            "millennium" | "millennia" => Self::Ages(1_000),
            _ => return None,
        })
    }

    /// Returns the number of the unit that a time is in.
    fn number(self, time_ns: i64) -> i64 {
        let date = DateTime::from_timestamp_nanos(time_ns);
        let year = i64::from(date.year());
        match self {
            Self::Even(width_ns) => time_ns.div_euclid(width_ns),
            Self::Weeks => (time_ns.div_euclid(DAY_NS) - MONDAY_DAYS).div_euclid(7),
            Self::Months(months) => (12 * year + i64::from(date.month0())).div_euclid(months),
            Self::Ages(years) => (year - 1).div_euclid(years),
        }
    }

    fn between(self, from_ns: i64, to_ns: i64) -> Result<i64, ArrowError> {
        let between = self.number(to_ns).checked_sub(self.number(from_ns));
        between.ok_or_else(|| ArrowError::ComputeError("the times are too far apart for date_diff".to_owned()))
    }
}

impl ScalarUDFImpl for DateDiff {
    fn name(&self) -> &str {
        "date_diff"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let time = |argument: &DataType| match argument {
            DataType::Timestamp(_, zone) => Some(DataType::Timestamp(TimeUnit::Nanosecond, zone.clone())),
            DataType::Date32 | DataType::Date64 | DataType::Utf8 | DataType::Null => {
                Some(DataType::Timestamp(TimeUnit::Nanosecond, None))
            }
            _ => None,
        };
        match arguments {
            [DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View, from, to] => match (time(from), time(to)) {
                (Some(from), Some(to)) => Ok(vec![DataType::Utf8, from, to]),
                _ => plan_err!("date_diff takes a unit and two times"),
            },
            _ => plan_err!("date_diff takes a unit and two times"),
        }
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [unit, times @ ..] = arguments.args.as_slice() else { return exec_err!("date_diff takes a unit") };
        let ColumnarValue::Scalar(unit) = unit else { return exec_err!("the unit of date_diff is a constant") };
        let Some(name) = unit.try_as_str().flatten() else {
            return exec_err!("the unit of date_diff is a constant text");
        };
        let Some(unit) = Unit::of(name) else { return exec_err!("date_diff knows no unit {name:?}") };
        let is_constant = times.iter().all(|time| matches!(time, ColumnarValue::Scalar(_)));
        let times = times.iter().map(|time| time.cast_to(&DataType::Int64, None)).collect::<Result<Vec<_>>>()?;
        let times: Vec<ArrayRef> = ColumnarValue::values_to_arrays(&times)?;
        let [from, to] = times.as_slice() else { return exec_err!("date_diff takes two times") };
        let (from, to) = (from.as_primitive::<Int64Type>(), to.as_primitive::<Int64Type>());
        let units: Int64Array = try_binary(from, to, |from, to| unit.between(from, to))?;
        if is_constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&units, 0)?));
        }
        Ok(ColumnarValue::Array(Arc::new(units)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_numbered_at_the_ends_of_time_too() {
        for name in ["week", "day", "microsecond", "month", "decade", "century", "millennium"] {
            let unit = Unit::of(name).unwrap();
            let all = unit.between(i64::MIN, i64::MAX).unwrap();
            assert_eq!(unit.between(i64::MAX, i64::MIN).unwrap(), -all, "{name}");
            assert_eq!(unit.between(i64::MIN, 0).unwrap() + unit.between(0, i64::MAX).unwrap(), all, "{name}");
        }
        assert!(Unit::of("ns").unwrap().between(-2, i64::MAX).is_err());
        assert_eq!(Unit::of("fortnight"), None);
    }
}
