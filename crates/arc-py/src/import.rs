//! Files of CSV and Parquet into the engine, as Python asks for it.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use arc_core::{
    ColumnTypes, Durability, Error, Precision, Result,
    catalog::Column,
    import::{
        ImportAnswer, ImportFile, ImportFormat, ImportOptions, ImportReport, ImportTarget, ImportType, ImportWrite,
        TimeFormat, import,
    },
};
use pyo3::{
    prelude::*,
    pybacked::PyBackedStr,
    types::{PyDict, PyList},
};

use crate::{
    arguments::parse,
    errors::{Raise as _, invalid},
    interrupt,
    keywords::Keywords,
};

/// Imports a file. Ctrl-C ends it after the piece that is being stored.
pub(crate) fn run<'py>(
    py: Python<'py>,
    engine: arc_core::Engine,
    (path, format): (PathBuf, &str),
    settings: Keywords<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut options = options(py, &settings)?;
    settings.finish()?;
    options.format = Some(parse::<ImportFormat>("format", format).raise(py)?);
    let file = ImportFile::open(&path).raise(py)?;
    let what = format!("importing {}", path.display());
    let given_up = GivenUp(Arc::new(AtomicBool::new(false)));
    let target = StoppableEngine { engine, given_up: Arc::clone(&given_up.0) };
    let imported = interrupt::run(py, what, move || import(&target, file, &options, &mut |_| {}))?;
    report(py, &imported.raise(py)?)
}

/// Takes the settings of an import.
fn options(py: Python<'_>, settings: &Keywords<'_>) -> PyResult<ImportOptions> {
    let mut options = ImportOptions::new();
    options.table = settings.take("table")?;
    options.database = settings.take("database")?.unwrap_or(options.database);
    options.tags = settings.take("tags")?.unwrap_or_default();
    options.time_column = settings.take::<Vec<String>>("time")?.map(|names| names.join(","));
    options.time_format = named::<TimeFormat>(py, settings, "time_format")?;
    options.precision = named::<Precision>(py, settings, "precision")?;
    options.durability = named::<Durability>(py, settings, "durability")?;
    options.exclude = settings.take("exclude")?.unwrap_or_default();
    options.nulls = settings.take("nulls")?.unwrap_or_default();
    options.skip_rows = settings.take("skip_rows")?.unwrap_or_default();
    options.id = settings.take("idempotency_key")?;
    if let Some(delimiter) = settings.take::<PyBackedStr>("delimiter")? {
        options.delimiter = match delimiter.as_bytes() {
            [byte] if byte.is_ascii() => Some(*byte),
            _ => return Err(invalid("delimiter", format!("{delimiter:?} is not one character of ASCII"))).raise(py),
        };
    }
    for (column, name) in settings.take::<Bound<'_, PyDict>>("types")?.iter().flatten() {
        let name: PyBackedStr = name.extract()?;
        options.types.push((column.extract()?, parse::<ImportType>("types", &name).raise(py)?));
    }
    Ok(options)
}

fn named<T: std::str::FromStr<Err = String>>(
    py: Python<'_>,
    settings: &Keywords<'_>,
    option: &'static str,
) -> PyResult<Option<T>> {
    let name = settings.take::<PyBackedStr>(option)?;
    name.map(|name| parse(option, &name)).transpose().raise(py)
}

/// Returns the Python form of an import's report.
fn report<'py>(py: Python<'py>, report: &ImportReport) -> PyResult<Bound<'py, PyAny>> {
    let receipts = py.import("arc.receipts")?;
    let class = receipts.getattr("RejectedRow")?;
    let rejected = PyList::empty(py);
    for refusal in &report.refusals {
        rejected.append(class.call1((refusal.row, refusal.column.as_str(), refusal.reason.as_str()))?)?;
    }
    let types = PyDict::new(py);
    for column in &report.types {
        types.set_item(&column.name, &column.kind)?;
    }
    let parts = (report.rows, report.rows_before, report.refused, rejected, types, report.time_form.as_deref());
    receipts.getattr("ImportReport")?.call1(parts)
}

/// Tells the import, when it is dropped, that the call which began it has ended.
struct GivenUp(Arc<AtomicBool>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// An engine that takes no more pieces once the call has ended.
struct StoppableEngine {
    engine: arc_core::Engine,
    given_up: Arc<AtomicBool>,
}

impl ImportTarget for StoppableEngine {
    fn submit(&self, write: &ImportWrite) -> Result<ImportAnswer> {
        if self.given_up.load(Ordering::Relaxed) {
            return Err(Error::Closed { reason: "the import was interrupted".into() });
        }
        self.engine.submit(write)
    }

    fn columns(&self, database: &str, table: &str) -> Result<Vec<Column>> {
        self.engine.columns(database, table)
    }

    fn column_types(&self, database: &str, table: &str) -> Result<ColumnTypes> {
        ImportTarget::column_types(&self.engine, database, table)
    }
}
