//! Buckets by the clock of a zone: where the time has one other than UTC, a day is a day there.
//!
//! Times become those of the clock, are put into buckets, and the beginnings become times again.
//! Where the clock is turned back, the hour that comes twice is two hours; a bucket that is longer
//! than what comes twice goes on over it, from where the clock showed its beginning first. A
//! beginning that the clock leaves out is the time at which it was turned.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, AsArray, Int64Array, timezone::Tz},
    compute::cast,
    datatypes::{DataType, Int64Type, TimeUnit},
};
use chrono::{DateTime, MappedLocalTime, NaiveDateTime, Offset, TimeZone};
use datafusion::{
    common::{DataFusionError, Result, ScalarValue, exec_err},
    logical_expr::ColumnarValue,
};

const DAY_S: i64 = 86_400;

/// The zone and unit of some times.
pub(super) struct ZonedClock {
    zone: Tz,
    name: Arc<str>,
    unit: TimeUnit,
}

impl ZonedClock {
    /// Returns the clock of times of a type, unless it is that of UTC, or none.
    pub(super) fn of(data_type: &DataType) -> Result<Option<Self>> {
        match data_type {
            DataType::Timestamp(_, Some(zone)) if matches!(&**zone, "UTC" | "+00:00" | "Z") => Ok(None),
            DataType::Timestamp(unit, Some(zone)) => {
                Ok(Some(Self { zone: zone.parse()?, name: Arc::clone(zone), unit: *unit }))
            }
            _ => Ok(None),
        }
    }

    /// Returns what the clock shows at some times, as times without a zone.
    pub(super) fn shown(&self, times: &ColumnarValue) -> Result<ColumnarValue> {
        let unit = match times.data_type() {
            DataType::Timestamp(unit, Some(_)) => unit,
            // A time without a zone is what it shows.
            _ => return Ok(times.clone()),
        };
        let shown = map(times, |time| {
            let offset = self.offset(time.div_euclid(per_second(unit)))?;
            time.checked_add(offset * per_second(unit)).ok_or_else(out_of_range)
        })?;
        retyped(shown, &DataType::Timestamp(unit, None))
    }

    /// Returns the times at which the buckets of `times` begin, which are so many seconds long, and
    /// of which `shown` is what the clock shows.
    pub(super) fn began(
        &self,
        times: &ColumnarValue,
        shown: &ColumnarValue,
        rows: usize,
        width_s: i64,
    ) -> Result<ColumnarValue> {
        let (times, shown) = match (times, shown) {
            (ColumnarValue::Scalar(time), ColumnarValue::Scalar(shown)) => {
                let began = self.beginnings(&time.to_array()?, &shown.to_array()?, width_s)?;
                return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&began, 0)?));
            }
            (times, shown) => (times.to_array(rows)?, shown.to_array(rows)?),
        };
        Ok(ColumnarValue::Array(self.beginnings(&times, &shown, width_s)?))
    }

    fn beginnings(&self, times: &ArrayRef, shown: &ArrayRef, width_s: i64) -> Result<ArrayRef> {
        let (times, shown) = (cast(times, &DataType::Int64)?, cast(shown, &DataType::Int64)?);
        let pairs = times.as_primitive::<Int64Type>().iter().zip(shown.as_primitive::<Int64Type>());
        let whole = per_second(self.unit);
        // Of rows in order of time many have one bucket.
        let mut last: Option<((i64, i64), i64)> = None;
        let began = pairs.map(|(time, shown)| {
            let Some((time, shown)) = time.zip(shown) else { return Ok(None) };
            let asked = (shown, self.offset(time.div_euclid(whole))?);
            let began = match last {
                Some((before, began)) if before == asked => began,
                _ => self.beginning(asked, width_s)?,
            };
            last = Some((asked, began));
            Ok(Some(began))
        });
        let began: ArrayRef = Arc::new(began.collect::<Result<Int64Array>>()?);
        Ok(cast(&began, &DataType::Timestamp(self.unit, Some(Arc::clone(&self.name))))?)
    }

    /// Returns when the clock showed the beginning of a bucket, of a time at which it was `now` ahead
    /// of UTC.
    fn beginning(&self, (shown, now): (i64, i64), width_s: i64) -> Result<i64> {
        let whole = per_second(self.unit);
        let (second, rest) = (shown.div_euclid(whole), shown.rem_euclid(whole));
        let second = match self.zone.offset_from_local_datetime(&naive(second)?) {
            MappedLocalTime::Single(offset) => second - seconds(&offset),
            MappedLocalTime::Ambiguous(one, other) => {
                let (one, other) = (seconds(&one), seconds(&other));
                let is_own = width_s <= (one - other).abs() && (now == one || now == other);
                second - if is_own { now } else { one.max(other) }
            }
            MappedLocalTime::None => return self.turned(second).map(|second| second * whole),
        };
        second.checked_mul(whole).and_then(|began| began.checked_add(rest)).ok_or_else(out_of_range)
    }

    /// Returns the second at which the clock was turned forward, and left out what it would have
    /// shown.
    fn turned(&self, shown: i64) -> Result<i64> {
        // No clock is further from UTC.
        let (mut before, mut after) = (shown - DAY_S, shown + DAY_S);
        let until = self.offset(before)?;
        while after - before > 1 {
            let middle = before.midpoint(after);
            if self.offset(middle)? == until {
                before = middle;
            } else {
                after = middle;
            }
        }
        Ok(after)
    }

    /// Returns by how many seconds the clock is ahead of UTC.
    fn offset(&self, second: i64) -> Result<i64> {
        Ok(seconds(&self.zone.offset_from_utc_datetime(&naive(second)?)))
    }
}

fn seconds(offset: &impl Offset) -> i64 {
    i64::from(offset.fix().local_minus_utc())
}

fn naive(second: i64) -> Result<NaiveDateTime> {
    DateTime::from_timestamp(second, 0).map(|time| time.naive_utc()).ok_or_else(out_of_range)
}

pub(in crate::query) const fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

fn out_of_range() -> DataFusionError {
    DataFusionError::Execution("a time is out of range in its zone".to_owned())
}

/// Returns other integers for those that times are.
fn map(times: &ColumnarValue, change: impl Fn(i64) -> Result<i64>) -> Result<ColumnarValue> {
    let mapped = |array: &ArrayRef| -> Result<ArrayRef> {
        let times = cast(array, &DataType::Int64)?;
        let times = times.as_primitive::<Int64Type>().iter();
        Ok(Arc::new(times.map(|time| time.map(&change).transpose()).collect::<Result<Int64Array>>()?))
    };
    Ok(match times {
        ColumnarValue::Array(array) => ColumnarValue::Array(mapped(array)?),
        ColumnarValue::Scalar(scalar) => {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&mapped(&scalar.to_array()?)?, 0)?)
        }
    })
}

fn retyped(integers: ColumnarValue, data_type: &DataType) -> Result<ColumnarValue> {
    match integers {
        ColumnarValue::Array(array) => Ok(ColumnarValue::Array(cast(&array, data_type)?)),
        ColumnarValue::Scalar(ScalarValue::Int64(_)) => integers.cast_to(data_type, None),
        ColumnarValue::Scalar(other) => exec_err!("{other} is no time"),
    }
}
