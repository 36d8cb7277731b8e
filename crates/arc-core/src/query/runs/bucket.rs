//! Functions that put times into buckets, and where a bucket ends.

use std::{ops::Range, sync::Arc};

use arrow::datatypes::{DataType, IntervalDayTimeType, IntervalMonthDayNanoType, Schema, TimeUnit};
use datafusion::{
    common::ScalarValue,
    physical_expr::{
        PhysicalExpr, ScalarFunctionExpr,
        expressions::{Column, Literal},
    },
};

use super::super::functions::time_bucket_origin_ns;
use crate::datafile::hourly::HOUR_NS;

const SECOND_NS: i64 = 1_000_000_000;
const DAY_NS: i64 = 86_400 * SECOND_NS;
/// 1970-01-05, a Monday.
const MONDAY_NS: i64 = 4 * DAY_NS;

/// Spans of time of one length in each of which a function has one value.
///
/// They may be shorter than what the function calls a bucket: a month is taken day by day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Buckets {
    width_ns: i64,
    /// Where one of them begins.
    origin_ns: i64,
}

impl Buckets {
    fn new(width_ns: i64, origin_ns: i64) -> Option<Self> {
        (width_ns > 1).then_some(Self { width_ns, origin_ns })
    }

    /// Returns the buckets of a call, and the column with the times.
    pub(super) fn of(call: &ScalarFunctionExpr, schema: &Schema) -> Option<(usize, Self)> {
        let (before, time, origin) = match call.args() {
            [before, time] => (before, time, None),
            [before, time, origin] => (before, time, Some(constant(origin)?)),
            _ => return None,
        };
        let column = time.downcast_ref::<Column>().filter(|column| is_time(column, schema))?.index();
        let unit = constant(before)?;
        let buckets = match call.fun().name() {
            "date_trunc" if origin.is_none() => of_unit(unit),
            "date_bin" => of_interval(unit, origin, |_| 0),
            "time_bucket" => of_interval(unit, origin, time_bucket_origin_ns),
            _ => None,
        };
        Some((column, buckets?))
    }

    /// Returns whether each begins and ends with an hour.
    pub(super) fn are_of_hours(&self) -> bool {
        self.width_ns % HOUR_NS == 0 && self.origin_ns % HOUR_NS == 0
    }

    /// Returns the bucket that a time is in, or `None` at the ends of all times, where functions
    /// fail.
    pub(super) fn around(&self, time: i64) -> Option<Range<i64>> {
        let time = time.checked_sub(self.origin_ns)?;
        let start = time.checked_sub(time.rem_euclid(self.width_ns))?;
        let end = start.checked_add(self.width_ns)?;
        Some(start.checked_add(self.origin_ns)?..end.checked_add(self.origin_ns)?)
    }
}

fn is_time(column: &Column, schema: &Schema) -> bool {
    match schema.fields().get(column.index()).map(|field| field.data_type()) {
        Some(DataType::Timestamp(TimeUnit::Nanosecond, zone)) => zone.as_deref().is_none_or(|zone| zone == "UTC"),
        _ => false,
    }
}

fn constant(argument: &Arc<dyn PhysicalExpr>) -> Option<&ScalarValue> {
    argument.downcast_ref::<Literal>().map(Literal::value)
}

fn of_unit(unit: &ScalarValue) -> Option<Buckets> {
    let (width_ns, origin_ns) = match unit.try_as_str()??.to_lowercase().as_str() {
        "microsecond" => (1_000, 0),
        "millisecond" => (1_000_000, 0),
        "second" => (SECOND_NS, 0),
        "minute" => (60 * SECOND_NS, 0),
        "hour" => (3_600 * SECOND_NS, 0),
        "day" | "month" | "quarter" | "year" => (DAY_NS, 0),
        "week" => (7 * DAY_NS, MONDAY_NS),
        _ => return None,
    };
    Buckets::new(width_ns, origin_ns)
}

fn of_interval(
    interval: &ScalarValue,
    origin: Option<&ScalarValue>,
    usual_origin_ns: fn(&ScalarValue) -> i64,
) -> Option<Buckets> {
    let origin_ns = match origin {
        None => usual_origin_ns(interval),
        Some(ScalarValue::TimestampNanosecond(Some(origin_ns), _)) => *origin_ns,
        Some(_) => return None,
    };
    let (months, days, nanoseconds) = match interval {
        ScalarValue::IntervalMonthDayNano(Some(interval)) => IntervalMonthDayNanoType::to_parts(*interval),
        ScalarValue::IntervalDayTime(Some(interval)) => {
            let (days, milliseconds) = IntervalDayTimeType::to_parts(*interval);
            (0, days, i64::from(milliseconds) * 1_000_000)
        }
        _ => return None,
    };
    match (months, days, nanoseconds) {
        (0, days, nanoseconds) => {
            let width_ns = i64::from(days).checked_mul(DAY_NS)?.checked_add(nanoseconds)?;
            Buckets::new(width_ns, origin_ns)
        }
        // Each of these buckets begins at midnight.
        (_, 0, 0) if origin_ns % DAY_NS == 0 => Buckets::new(DAY_NS, 0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_found_around_each_time_that_has_one() {
        let by_ten = Buckets { width_ns: 10, origin_ns: 3 };
        for (time, expected) in [
            (3, Some(3..13)),
            (12, Some(3..13)),
            (13, Some(13..23)),
            (2, Some(-7..3)),
            (-7, Some(-7..3)),
            (-8, Some(-17..-7)),
            (i64::MIN, None),
            (i64::MAX, None),
            (i64::MAX - 20, Some(i64::MAX - 24..i64::MAX - 14)),
        ] {
            assert_eq!(by_ten.around(time), expected, "{time}");
        }
        let far = Buckets { width_ns: 10, origin_ns: -5 };
        assert_eq!(far.around(i64::MAX - 5), None, "its distance from the origin is no number");
    }

    #[test]
    fn units_and_intervals_have_buckets_unless_they_depend_on_the_hour_of_a_month() {
        let trunc = |unit: &str| of_unit(&ScalarValue::from(unit)).map(|buckets| (buckets.width_ns, buckets.origin_ns));
        assert_eq!(trunc("MINUTE"), Some((60 * SECOND_NS, 0)));
        assert_eq!(trunc("week"), Some((7 * DAY_NS, MONDAY_NS)));
        assert_eq!(trunc("year"), Some((DAY_NS, 0)));
        assert_eq!(trunc("century"), None);
        let bin = |months, days, nanoseconds, origin: Option<i64>| {
            let interval = IntervalMonthDayNanoType::make_value(months, days, nanoseconds);
            let origin = origin.map(|origin| ScalarValue::TimestampNanosecond(Some(origin), None));
            of_interval(&ScalarValue::IntervalMonthDayNano(Some(interval)), origin.as_ref(), |_| 7)
                .map(|buckets| (buckets.width_ns, buckets.origin_ns))
        };
        assert_eq!(bin(0, 1, 5, None), Some((DAY_NS + 5, 7)));
        assert_eq!(bin(0, 0, 5, Some(-1)), Some((5, -1)));
        assert_eq!(bin(0, 0, -5, Some(0)), None);
        assert_eq!(bin(0, 0, 0, Some(0)), None);
        assert_eq!(bin(2, 0, 0, Some(DAY_NS * -30)), Some((DAY_NS, 0)));
        assert_eq!(bin(2, 0, 0, Some(1)), None);
        assert_eq!(bin(2, 1, 0, Some(0)), None);
    }
}
