//! Window functions that fill gaps: `locf(value)` and `interpolate(value, time)`.
//!
//! `locf` carries the last value that is not null on to the rows after it, in the order of the
//! window. `interpolate` puts a row without a value on the straight line between the rows with
//! values before and after it, by the time given; rows before the first value and after the last
//! one stay null. The rows themselves come from elsewhere: a series of times that a table is joined
//! to.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, Float64Array, UInt64Array},
    compute::{cast, take},
    datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type, TimeUnit},
};
use datafusion::{
    common::{Result, exec_err, plan_err},
    logical_expr::{
        ColumnarValue, PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl,
        function::{PartitionEvaluatorArgs, WindowUDFFieldArgs},
    },
};

use super::{
    super::{sized::has_any_size, window_memory},
    bounded::bytes_by_row,
};

/// Returns both functions.
pub(super) fn fills() -> [Arc<WindowUDF>; 2] {
    [FillKind::Locf, FillKind::Interpolate].map(|kind| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(WindowUDF::from(Fill { kind, signature }))
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum FillKind {
    Locf,
    Interpolate,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Fill {
    kind: FillKind,
    signature: Signature,
}

impl WindowUDFImpl for Fill {
    fn name(&self) -> &'static str {
        match self.kind {
            FillKind::Locf => "locf",
            FillKind::Interpolate => "interpolate",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        match (self.kind, arguments) {
            (FillKind::Locf, [value]) => Ok(vec![value.clone()]),
            (FillKind::Interpolate, [value, DataType::Timestamp(_, zone)]) if value.is_numeric() => {
                Ok(vec![DataType::Float64, DataType::Timestamp(TimeUnit::Nanosecond, zone.clone())])
            }
            (FillKind::Locf, _) => plan_err!("locf takes one value"),
            (FillKind::Interpolate, _) => plan_err!("interpolate takes a number and a time"),
        }
    }

    fn field(&self, arguments: WindowUDFFieldArgs) -> Result<FieldRef> {
        let data_type = match (self.kind, arguments.input_fields()) {
            (FillKind::Locf, [value]) => value.data_type().clone(),
            _ => DataType::Float64,
        };
        Ok(Field::new(arguments.name(), data_type, true).into())
    }

    fn partition_evaluator(&self, _arguments: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(FillFrame { kind: self.kind }))
    }
}

#[derive(Debug)]
struct FillFrame {
    kind: FillKind,
}

impl PartitionEvaluator for FillFrame {
    fn evaluate_all(&mut self, values: &[ArrayRef], _rows: usize) -> Result<ArrayRef> {
        match (self.kind, values) {
            (FillKind::Locf, [values]) => carried(values),
            (FillKind::Interpolate, [values, times]) => interpolated(values, times),
            _ => exec_err!("a value is needed, and a time to interpolate"),
        }
    }
}

fn carried(values: &ArrayRef) -> Result<ArrayRef> {
    let nulls = values.logical_nulls();
    let mut last = None;
    let rows = (0..values.len()).map(|row| {
        if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) {
            last = Some(row as u64);
        }
        last
    });
    let rows = rows.collect::<UInt64Array>();
    if has_any_size(values.data_type()) {
        // One long text may be carried to any number of rows.
        let bytes = bytes_by_row(&ColumnarValue::Array(Arc::clone(values)))?;
        let total = rows.iter().flatten().filter_map(|row| usize::try_from(row).ok()).map(|row| bytes.count(row));
        window_memory::make(usize::try_from(total.fold(0, u64::saturating_add)).unwrap_or(usize::MAX))?;
    }
    Ok(take(values, &rows, None)?)
}

fn interpolated(values: &ArrayRef, times: &ArrayRef) -> Result<ArrayRef> {
    let (values, times) = (cast(values, &DataType::Float64)?, cast(times, &DataType::Int64)?);
    let (values, times) = (values.as_primitive::<Float64Type>(), times.as_primitive::<Int64Type>());
    let rows = times.iter().zip(values).enumerate().filter_map(|(row, (time, value))| Some((time?, row, value)));
    let mut rows: Vec<(i64, usize, Option<f64>)> = rows.collect();
    rows.sort_by_key(|(time, ..)| *time);
    let mut filled: Vec<Option<f64>> = values.iter().collect();
    let mut before: Option<(i64, f64)> = None;
    let mut waiting: Vec<(i64, usize)> = Vec::new();
    for (time, row, value) in rows {
        match value {
            None => waiting.push((time, row)),
            Some(value) => {
                for (at, row) in waiting.drain(..) {
                    if let (Some(before), Some(filled)) = (before, filled.get_mut(row)) {
                        *filled = Some(on_line(before, (time, value), at));
                    }
                }
                before = Some((time, value));
            }
        }
    }
    Ok(Arc::new(Float64Array::from(filled)))
}

#[expect(clippy::cast_precision_loss, reason = "what is guessed between two values is not exact")]
fn on_line((start, from): (i64, f64), (end, to): (i64, f64), at: i64) -> f64 {
    match end.abs_diff(start) {
        0 => from,
        whole => from + (to - from) * (at.abs_diff(start) as f64 / whole as f64),
    }
}
