//! `epoch_ns(time)`, `epoch_us(time)`, `epoch_ms(time)`: whole units since 1970-01-01T00:00:00Z,
//! rounded down.

use arrow::{
    array::{Array, AsArray, Int64Array},
    datatypes::{DataType, Int64Type, TimeUnit},
};
use datafusion::{
    common::{Result, ScalarValue, exec_err, plan_err},
    logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility},
};
use std::sync::Arc;

/// One of the functions.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Epoch {
    name: &'static str,
    /// Nanoseconds in the unit.
    unit_ns: i64,
    signature: Signature,
}

impl Epoch {
    pub(super) fn new(name: &'static str, unit_ns: i64) -> Self {
        Self { name, unit_ns, signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Epoch {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        match arguments {
            [DataType::Timestamp(_, zone)] => Ok(vec![DataType::Timestamp(TimeUnit::Nanosecond, zone.clone())]),
            [DataType::Date32 | DataType::Date64 | DataType::Utf8 | DataType::Null] => {
                Ok(vec![DataType::Timestamp(TimeUnit::Nanosecond, None)])
            }
            _ => plan_err!("{} takes one time", self.name),
        }
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [time] = arguments.args.as_slice() else { return exec_err!("{} takes one time", self.name) };
        whole_units(time, self.unit_ns)
    }
}

/// Returns how many units of so many ticks have passed at some times since 1970, rounded down.
pub(super) fn whole_units(times: &ColumnarValue, ticks: i64) -> Result<ColumnarValue> {
    match times.cast_to(&DataType::Int64, None)? {
        ColumnarValue::Scalar(ScalarValue::Int64(time)) => {
            Ok(ColumnarValue::Scalar(ScalarValue::Int64(time.map(|time| time.div_euclid(ticks)))))
        }
        ColumnarValue::Array(times) if times.data_type() == &DataType::Int64 => {
            let units: Int64Array = times.as_primitive::<Int64Type>().unary(|time| time.div_euclid(ticks));
            Ok(ColumnarValue::Array(Arc::new(units)))
        }
        ColumnarValue::Scalar(_) | ColumnarValue::Array(_) => exec_err!("only of times units can be counted"),
    }
}
