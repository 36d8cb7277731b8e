//! Functions that take times apart, without the detour over a time zone that has no offset.
//!
//! DataFusion asks the zone's rules for each row, also for those of UTC: `date_trunc` over our
//! times took twenty times as long as over times without a zone.
//!
//! And times are rounded down, also before 1970, where DataFusion rounds some of them toward it. What
//! begins before all times is an error, and a day on which a clock is turned back over midnight is
//! one. Texts are read as nanoseconds first, and get the zone, which DataFusion forgets of a column.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, AsArray},
    compute::{cast, min},
    datatypes::{
        DataType, Field, FieldRef, Int64Type, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
        TimestampNanosecondType, TimestampSecondType,
    },
};
use datafusion::{
    common::{Result, ScalarValue, config::ConfigOptions, exec_err},
    logical_expr::{
        ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
        preimage::PreimageResult,
        simplify::SimplifyContext,
        sort_properties::{ExprProperties, SortProperties},
    },
};

use super::{
    epoch::whole_units,
    theirs::named_as_theirs,
    zoned::{ZonedClock, per_second},
};

const FUNCTIONS: [&str; 3] = ["date_trunc", "date_part", "to_unixtime"];

/// Those that read texts, and the one of them that reads nanoseconds.
const READERS: [&str; 6] =
    ["to_timestamp", "to_timestamp_seconds", "to_timestamp_millis", "to_timestamp_micros", NANOSECONDS, "to_unixtime"];
const NANOSECONDS: &str = "to_timestamp_nanos";

/// Returns `functions`, of which some leave out the zone where it is UTC.
pub(super) fn without_zone(functions: Vec<Arc<ScalarUDF>>) -> Vec<Arc<ScalarUDF>> {
    let nanoseconds = functions.iter().find(|function| function.name() == NANOSECONDS).map(Arc::clone);
    let wrap = |inner: Arc<ScalarUDF>| {
        let nanoseconds = nanoseconds.clone().filter(|_| READERS.contains(&inner.name()));
        match nanoseconds.is_some() || FUNCTIONS.contains(&inner.name()) {
            true => Arc::new(ScalarUDF::from(Utc { inner, nanoseconds })),
            false => inner,
        }
    };
    functions.into_iter().map(wrap).collect()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Utc {
    inner: Arc<ScalarUDF>,
    /// What reads texts for it, if it reads some.
    nanoseconds: Option<Arc<ScalarUDF>>,
}

impl ScalarUDFImpl for Utc {
    named_as_theirs!();

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(arguments)
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let inner = Arc::new(self.inner.inner().with_updated_config(config)?);
        Some(ScalarUDF::from(Self { inner, nanoseconds: self.nanoseconds.clone() }))
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let Some(nanoseconds) = &self.nanoseconds
            && let Some(text) = arguments.args.first_mut()
        {
            if let DataType::Dictionary(_, value) = text.data_type() {
                *text = text.cast_to(&value, None)?;
            }
            if text.data_type().is_string() {
                return read(nanoseconds, arguments);
            }
        }
        match (self.inner.name(), arguments.args.as_mut_slice()) {
            ("to_unixtime", [time]) => {
                if let DataType::Timestamp(unit, _) = time.data_type() {
                    return whole_units(time, per_second(unit));
                }
            }
            ("date_trunc", [unit, time]) => {
                if let Some(unit) = TruncationUnit::of(unit) {
                    let times = time.clone();
                    if let Some(clock) = ZonedClock::of(&times.data_type())?.filter(|_| unit.is_of_clock()) {
                        let rows = arguments.number_rows;
                        *time = clock.shown(&times)?;
                        let plain = time.data_type();
                        for field in arguments.arg_fields.iter_mut().skip(1).chain([&mut arguments.return_field]) {
                            *field = Arc::new(Field::clone(field).with_data_type(plain.clone()));
                        }
                        let began = self.truncated(arguments, &unit)?;
                        return clock.began(&times, &began, rows, i64::MAX);
                    }
                    return self.truncated(arguments, &unit);
                }
            }
            _ => {}
        }
        self.without_zone(arguments)
    }

    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        self.inner.output_ordering(input)
    }

    fn preimage(&self, arguments: &[Expr], literal: &Expr, context: &SimplifyContext) -> Result<PreimageResult> {
        let found = self.inner.preimage(arguments, literal, context)?;
        let is_whole = match &found {
            // A bound that its type cannot hold is NULL; and the bounds are those of UTC.
            PreimageResult::Range { expr, interval } => {
                let is_of_utc = ZonedClock::of(&context.get_data_type(expr)?)?.is_none();
                is_of_utc && !interval.lower().is_null() && !interval.upper().is_null()
            }
            PreimageResult::None => true,
        };
        Ok(if is_whole { found } else { PreimageResult::None })
    }
}

impl Utc {
    fn without_zone(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_utc = arguments.args.iter().any(|argument| in_utc(&argument.data_type()).is_some());
        if !is_utc {
            return self.inner.invoke_with_args(arguments);
        }
        let asked = arguments.return_field.data_type().clone();
        arguments.args = arguments.args.into_iter().map(|argument| with_zone(argument, None)).collect();
        arguments.arg_fields.iter_mut().for_each(strip);
        strip(&mut arguments.return_field);
        let returned = self.inner.invoke_with_args(arguments)?;
        Ok(match asked {
            DataType::Timestamp(_, Some(zone)) => with_zone(returned, Some(zone)),
            _ => returned,
        })
    }

    /// Truncates times. A single one is truncated as one of many: otherwise DataFusion divides, and
    /// comes out after a time before 1970.
    fn truncated(&self, mut arguments: ScalarFunctionArgs, unit: &TruncationUnit) -> Result<ColumnarValue> {
        let Some(time) = arguments.args.get_mut(1) else { return exec_err!("date_trunc takes a unit and a time") };
        let data_type = time.data_type();
        if !matches!(data_type, DataType::Timestamp(..)) {
            return self.without_zone(arguments);
        }
        let is_single = matches!(time, ColumnarValue::Scalar(_));
        let times = time.to_array(1)?;
        unit.check(&times, &data_type)?;
        if !is_single {
            return self.without_zone(arguments);
        }
        *time = ColumnarValue::Array(times);
        match self.without_zone(arguments)? {
            ColumnarValue::Array(array) => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)),
            single @ ColumnarValue::Scalar(_) => Ok(single),
        }
    }
}

/// Reads texts as times of the type that is asked for, or as seconds.
fn read(nanoseconds: &ScalarUDF, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
    let asked = arguments.return_field.data_type().clone();
    let nanoseconds_type = nanoseconds.return_type(&[])?;
    let field = Field::clone(&arguments.return_field).with_data_type(nanoseconds_type);
    arguments.return_field = Arc::new(field);
    let ticks = match asked {
        DataType::Timestamp(unit, _) => per_second(unit),
        _ => 1,
    };
    let times = nanoseconds.inner().invoke_with_args(arguments)?;
    whole_units(&times, 1_000_000_000 / ticks)?.cast_to(&asked, None)
}

/// What `date_trunc` truncates to.
struct TruncationUnit(String);

impl TruncationUnit {
    fn of(unit: &ColumnarValue) -> Option<Self> {
        let ColumnarValue::Scalar(unit) = unit else { return None };
        Some(Self(unit.try_as_str().flatten()?.to_ascii_lowercase()))
    }

    /// Returns whether it is longer than whatever a clock is turned by.
    fn is_of_clock(&self) -> bool {
        matches!(&*self.0, "day" | "week" | "month" | "quarter" | "year")
    }

    /// Refuses times whose unit begins before all times. DataFusion does so of weeks and longer.
    fn check(&self, times: &ArrayRef, data_type: &DataType) -> Result<()> {
        let length_ns = match &*self.0 {
            "microsecond" => 1_000,
            "millisecond" => 1_000_000,
            "second" => 1_000_000_000,
            "minute" => 60_000_000_000,
            "hour" => 3_600_000_000_000,
            "day" => 86_400_000_000_000,
            _ => return Ok(()),
        };
        let DataType::Timestamp(unit, _) = data_type else { return Ok(()) };
        let ticks = (length_ns / (1_000_000_000 / per_second(*unit))).max(1);
        let times = cast(times, &DataType::Int64)?;
        match min(times.as_primitive::<Int64Type>()) {
            Some(first) if first.checked_sub(first.rem_euclid(ticks)).is_none() => {
                exec_err!("date_trunc: the {} of a time begins before all times that can be held", self.0)
            }
            _ => Ok(()),
        }
    }
}

/// Returns the unit of a time in UTC.
fn in_utc(data_type: &DataType) -> Option<TimeUnit> {
    match data_type {
        DataType::Timestamp(unit, Some(zone)) if matches!(&**zone, "UTC" | "+00:00" | "Z") => Some(*unit),
        _ => None,
    }
}

fn strip(field: &mut FieldRef) {
    if let Some(unit) = in_utc(field.data_type()) {
        *field = Arc::new(Field::clone(field).with_data_type(DataType::Timestamp(unit, None)));
    }
}

/// Gives times another zone, or none, and leaves everything else as it is. The values stay.
fn with_zone(value: ColumnarValue, zone: Option<Arc<str>>) -> ColumnarValue {
    match value {
        ColumnarValue::Scalar(scalar) => ColumnarValue::Scalar(match scalar {
            ScalarValue::TimestampSecond(time, _) => ScalarValue::TimestampSecond(time, zone),
            ScalarValue::TimestampMillisecond(time, _) => ScalarValue::TimestampMillisecond(time, zone),
            ScalarValue::TimestampMicrosecond(time, _) => ScalarValue::TimestampMicrosecond(time, zone),
            ScalarValue::TimestampNanosecond(time, _) => ScalarValue::TimestampNanosecond(time, zone),
            other => other,
        }),
        ColumnarValue::Array(array) => ColumnarValue::Array(times_with_zone(array, zone)),
    }
}

fn times_with_zone(array: ArrayRef, zone: Option<Arc<str>>) -> ArrayRef {
    match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => {
            Arc::new(array.as_primitive::<TimestampSecondType>().clone().with_timezone_opt(zone))
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            Arc::new(array.as_primitive::<TimestampMillisecondType>().clone().with_timezone_opt(zone))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            Arc::new(array.as_primitive::<TimestampMicrosecondType>().clone().with_timezone_opt(zone))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            Arc::new(array.as_primitive::<TimestampNanosecondType>().clone().with_timezone_opt(zone))
        }
        _ => array,
    }
}
