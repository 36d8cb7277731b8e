//! Python's arguments as the engine wants them.

use std::{str::FromStr, time::Duration};

use arc_core::{Durability, Error, Precision, WriteOptions};
use arrow::array::RecordBatch;
use bytes::Bytes;
use pyo3::{
    exceptions::{PyException, PyTypeError},
    prelude::*,
    pybacked::{PyBackedBytes, PyBackedStr},
};
use pyo3_arrow::input::AnyRecordBatch;

use crate::{
    errors::{Raise as _, invalid},
    keywords::Keywords,
};

/// Returns line protocol as bytes; keeps the Python object instead of copying it.
pub(crate) fn body(data: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    if let Ok(text) = data.extract::<PyBackedStr>() {
        return Ok(Bytes::from_owner(text));
    }
    if let Ok(bytes) = data.extract::<PyBackedBytes>() {
        return Ok(Bytes::from_owner(bytes));
    }
    Err(PyTypeError::new_err(format!("data must be str, bytes or bytearray, not {}", data.get_type().name()?)))
}

/// Reads everything that `data` has, as record batches of one schema; at least one, which may be empty.
pub(crate) fn batches(data: &Bound<'_, PyAny>) -> PyResult<Vec<RecordBatch>> {
    if !data.hasattr("__arrow_c_stream__")? && !data.hasattr("__arrow_c_array__")? {
        return Err(PyTypeError::new_err(format!(
            "data must be a table that has __arrow_c_stream__ or __arrow_c_array__ (pyarrow, polars, pandas from 2.2, \
             DuckDB), not {}",
            data.get_type().name()?
        )));
    }
    let invalid = |reason: String| Error::InvalidPayload { format: "Arrow", reason };
    let py = data.py();
    let reader = match data.extract::<AnyRecordBatch>().and_then(AnyRecordBatch::into_reader) {
        Err(error) if error.is_instance_of::<PyException>(py) => Err(invalid(error.value(py).to_string())).raise(py)?,
        // Ctrl-C is no error of the data.
        imported => imported?,
    };
    // Whoever produces the data may need the lock for it.
    let read = py.detach(|| {
        let schema = reader.schema();
        let mut batches = reader.collect::<Result<Vec<_>, _>>()?;
        if batches.is_empty() {
            batches.push(RecordBatch::new_empty(schema));
        }
        Ok(batches)
    });
    read.map_err(|e: arrow::error::ArrowError| invalid(e.to_string())).raise(py)
}

/// Settings of one write, by their names in Python.
#[derive(Debug, Default)]
pub(crate) struct WriteArguments {
    pub(crate) precision: Option<PyBackedStr>,
    pub(crate) durability: Option<PyBackedStr>,
    pub(crate) tags: Vec<String>,
    pub(crate) time: Option<String>,
    pub(crate) idempotency_key: Option<String>,
}

impl WriteArguments {
    /// Takes the settings that every write has.
    pub(crate) fn of_any_write(settings: &Keywords<'_>) -> PyResult<Self> {
        Ok(Self {
            precision: settings.take("precision")?,
            durability: settings.take("durability")?,
            idempotency_key: settings.take("idempotency_key")?,
            ..Self::default()
        })
    }

    /// Takes the settings of a write of columns.
    pub(crate) fn of_columns(settings: &Keywords<'_>) -> PyResult<Self> {
        let tags = settings.take("tags")?.unwrap_or_default();
        Ok(Self { tags, time: settings.take("time")?, ..Self::of_any_write(settings)? })
    }

    /// Checks the names and returns the engine's settings.
    pub(crate) fn options(self, py: Python<'_>) -> PyResult<WriteOptions> {
        let mut options = WriteOptions::new().tags(self.tags);
        if let Some(name) = self.precision {
            options = options.precision(parse::<Precision>("precision", &name).raise(py)?);
        }
        if let Some(name) = self.durability {
            options = options.durability(parse::<Durability>("durability", &name).raise(py)?);
        }
        options.time_column = self.time;
        options.idempotency_key = self.idempotency_key;
        Ok(options)
    }
}

/// Returns the value that `name` stands for.
pub(crate) fn parse<T: FromStr<Err = String>>(option: &'static str, name: &str) -> arc_core::Result<T> {
    name.parse().map_err(|reason: String| invalid(option, reason))
}

/// Returns seconds, given as a number or as a `datetime.timedelta`.
pub(crate) fn duration(option: &'static str, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let seconds = match value.extract::<f64>() {
        Ok(seconds) => seconds,
        Err(error) if !value.hasattr("total_seconds")? => return Err(error),
        Err(_) => value.call_method0("total_seconds")?.extract()?,
    };
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| invalid(option, format!("{seconds} is not a number of seconds from 0")))
        .raise(value.py())
}
