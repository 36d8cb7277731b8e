//! The engine, with Python's names for its settings.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use adbc_driver_arc::{Mode, OpenEngine};
use arc_core::{ColumnTypes, Error, FileTimeUnit, FinerTimes, OnConflict, Options, WriteOptions};
use arrow::array::RecordBatch;
use bytes::Bytes;
use pyo3::{
    prelude::*,
    pybacked::PyBackedStr,
    types::{PyDict, PyList, PyTuple},
};

use crate::{
    answer::Answer,
    arguments::{WriteArguments, batches, body, duration, parse},
    errors::{Raise as _, closed, invalid},
    import, interrupt,
    keywords::Keywords,
    maintenance,
    owned::{Owned, check_process},
    push,
    statements::{self, Given},
    tail::Tail,
};

/// Bytes of a write, as far as they are known, from which on Ctrl-C is looked for while it is done: a smaller one is over before.
const LARGE: usize = 4 << 20;

/// Patterns of columns that are text, what becomes of a conflict, the unit of times in files, and what becomes of finer
/// ones.
type TypeSettings = (Option<Vec<String>>, Option<String>, Option<String>, Option<String>);

/// Database of a table that is written without naming one.
const DEFAULT_DATABASE: &str = "default";

/// Opens the data directory at ``path``; creates it if there is none. With ``mode="r"`` also a bucket that a server keeps
/// its data in, ``"s3://bucket/prefix"``, as far as it was flushed there; the variables ``AWS_…`` say where and who.
///
/// What was acknowledged before a crash comes back. A folder that this process has open already is the same engine, and stays
/// open until the last ``close``; it takes no other settings. Times are seconds (a number or a ``datetime.timedelta``), sizes are
/// bytes; ``None`` leaves a setting as the engine has it.
///
/// mode: ``"rw"`` reads and writes; the folder is this process's then. ``"r"`` only reads, while another process writes there or
///     none does: every statement sees all that was acknowledged before it, and what would change anything raises
///     ``InvalidInputError``. Any number of processes may do so. It creates no folder.
/// durability: what a point survives once its write returns, unless the write says otherwise: ``"disk"`` (loss of
///     power), ``"process"`` (``kill -9``) or ``"memory"`` (nothing).
/// string_columns: patterns such as ``"attr_*"``; new fields that one of them matches are text, whatever their values are.
/// on_conflict: what becomes of a value whose type is not its column's: ``"reject"`` refuses it, ``"widen"`` changes the
///     column's type to one that has all of its values: integers become floats, and what that would alter becomes text.
/// time_unit: the unit of the times in Parquet files: ``"ns"``, ``"us"`` or ``"ms"``. Spark and other readers refuse nanoseconds. A file
///     that has a finer time takes the next unit that has all of its times. Queries answer in nanoseconds whatever the files have.
/// finer_times: what becomes of a point whose time is finer than ``time_unit``: ``"keep"`` stores it as it is,
///     ``"reject"`` refuses its line, row or write, ``"round"`` makes its time the whole unit at or before it.
/// flush_after: the oldest age of points in memory before they go to Parquet files; 60 s. Longer makes fewer and larger
///     files, and a longer replay after a crash.
/// memory_bytes: the memory that points, flushes and queries share; half of what the machine or its control group has. It
///     limits the sizes below to shares of it.
/// flush_bytes: the size of all points in memory that starts a flush; 64 MiB. More makes larger files and costs memory.
/// flush_wal_bytes: the size of the log since the last flush that starts one; 512 MiB.
/// max_buffer_bytes: the size of all points in memory and in the queue above which writes wait; 160 MiB.
/// write_timeout: how long a write waits for room before it raises ``BusyError``; 5 s.
/// wal_segment_bytes: the size of one file of the log; 64 MiB.
/// query_memory_bytes: the memory that running queries share before they spill to disk; 1 GiB.
/// query_timeout: the longest time a query may run; 300 s.
#[pyfunction]
#[pyo3(
    signature = (path, **settings),
    text_signature = "(path, *, mode='rw', durability='disk', string_columns=None, on_conflict='reject', time_unit='ns', \
        finer_times='keep', flush_after=None, memory_bytes=None, flush_bytes=None, flush_wal_bytes=None, \
        max_buffer_bytes=None, write_timeout=None, wal_segment_bytes=None, query_memory_bytes=None, query_timeout=None)"
)]
pub(crate) fn open(py: Python<'_>, path: PathBuf, settings: Option<Bound<'_, PyDict>>) -> PyResult<Engine> {
    check_process(py)?;
    let settings = Keywords::new("open", settings);
    let only_reads = match settings.take::<PyBackedStr>("mode")?.as_deref() {
        None | Some("rw") => false,
        Some("r") => true,
        Some(other) => return Err(invalid("mode", format!("{other:?} is none, expected \"r\" or \"rw\""))).raise(py),
    };
    let options = options(py, settings)?;
    if let Some(url) = path.to_str().filter(|path| path.starts_with("s3://")) {
        return open_bucket(py, url, only_reads, options);
    }
    let mode = if only_reads { Mode::Read } else { Mode::ReadWrite };
    let engine = py.detach(|| OpenEngine::open(&path, mode, Some(options))).raise(py)?;
    Ok(Engine(Owned::new(engine)))
}

/// Opens what a server keeps in a bucket, to read what was flushed there.
fn open_bucket(py: Python<'_>, url: &str, only_reads: bool, options: Options) -> PyResult<Engine> {
    if !only_reads {
        let reason = format!("{url:?} is a bucket, which a server writes to; mode=\"r\" reads it");
        return Err(invalid("path", reason)).raise(py);
    }
    let engine = py.detach(|| OpenEngine::open_bucket(url, options)).raise(py)?;
    Ok(Engine(Owned::new(engine)))
}

/// Returns the settings of an engine; those that are not given are the engine's own.
fn options(py: Python<'_>, settings: Keywords<'_>) -> PyResult<Options> {
    let time = |option, default: Duration| match settings.take::<Bound<'_, PyAny>>(option)? {
        Some(value) => duration(option, &value),
        None => Ok(default),
    };
    let mut options = Options::default();
    if let Some(name) = settings.take::<PyBackedStr>("durability")? {
        options.durability = parse("durability", &name).raise(py)?;
    }
    let types = &mut options.column_types;
    *types = column_types(py, &settings)?;
    // The engine's own, which are not told apart from none.
    types.on_conflict = types.on_conflict.filter(|how| *how != OnConflict::default());
    types.time_unit = types.time_unit.filter(|unit| *unit != FileTimeUnit::default());
    types.finer_times = types.finer_times.filter(|how| *how != FinerTimes::default());
    options.flush_after = time("flush_after", options.flush_after)?;
    options.memory_bytes = settings.take("memory_bytes")?.unwrap_or(options.memory_bytes);
    options.flush_bytes = settings.take("flush_bytes")?.unwrap_or(options.flush_bytes);
    options.flush_wal_bytes = settings.take("flush_wal_bytes")?.unwrap_or(options.flush_wal_bytes);
    options.max_buffer_bytes = settings.take("max_buffer_bytes")?.unwrap_or(options.max_buffer_bytes);
    options.write_timeout = time("write_timeout", options.write_timeout)?;
    options.wal_segment_bytes = settings.take("wal_segment_bytes")?.unwrap_or(options.wal_segment_bytes);
    options.query_memory_bytes = settings.take("query_memory_bytes")?.unwrap_or(options.query_memory_bytes);
    options.query_timeout = time("query_timeout", options.query_timeout)?;
    settings.finish()?;
    Ok(options)
}

/// Takes how strict tables are about types.
fn column_types(py: Python<'_>, settings: &Keywords<'_>) -> PyResult<ColumnTypes> {
    let mut types = ColumnTypes::new();
    types.string_columns = settings.take("string_columns")?;
    types.on_conflict = named(py, settings, "on_conflict")?;
    types.time_unit = named(py, settings, "time_unit")?;
    types.finer_times = named(py, settings, "finer_times")?;
    Ok(types)
}

/// Takes a setting whose values have names.
fn named<T: FromStr<Err = String>>(
    py: Python<'_>,
    settings: &Keywords<'_>,
    option: &'static str,
) -> PyResult<Option<T>> {
    let name = settings.take::<PyBackedStr>(option)?;
    name.map(|name| parse(option, &name)).transpose().raise(py)
}

/// A time-series store in one folder, opened by ``arc.open``.
///
/// Use it as a context manager, or call ``close``. All methods may be called from any number of threads at once; they
/// give the interpreter's lock free while the engine works. Use it in the process that opened it: in a forked child
/// every call raises ``ClosedError`` and so does ``arc.open`` (fork before the first one, or use ``multiprocessing`` with ``"spawn"``).
#[pyclass(frozen, module = "arc")]
#[derive(Debug)]
pub(crate) struct Engine(Owned<OpenEngine>);

impl Engine {
    fn send_lp(&self, py: Python<'_>, database: &str, body: Bytes, options: &WriteOptions) -> PyResult<Py<PyAny>> {
        let engine = self.native(py)?;
        let written = if body.len() < LARGE {
            py.detach(|| engine.submit_lp(database, body, options)?.wait()).raise(py)?
        } else {
            let (engine, database, options) = (engine.clone(), database.to_owned(), options.clone());
            let what = format!("writing {} MB of lines", body.len() / 1_000_000);
            let write = move || engine.submit_lp(&database, body, &options)?.wait();
            interrupt::run_write(py, what, write)?.raise(py)?
        };
        receipt(py, &written)
    }

    fn send_batches(
        &self,
        py: Python<'_>,
        (database, table): (&str, &str),
        batches: Vec<RecordBatch>,
        options: &WriteOptions,
    ) -> PyResult<Py<PyAny>> {
        let engine = self.native(py)?;
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let written = if rows.saturating_mul(batches.first().map_or(0, RecordBatch::num_columns)) < LARGE / 8 {
            py.detach(|| engine.submit_batches(database, table, &batches, options)?.wait()).raise(py)?
        } else {
            let (engine, options) = (engine.clone(), options.clone());
            let (database, table) = (database.to_owned(), table.to_owned());
            let what = format!("writing {rows} rows of {table}");
            let write = move || engine.submit_batches(&database, &table, &batches, &options)?.wait();
            interrupt::run_write(py, what, write)?.raise(py)?
        };
        receipt(py, &written)
    }
}

impl Engine {
    /// Returns the engine, or raises ``ClosedError`` in a forked child and after ``close``, though others may have it open.
    pub(crate) fn native(&self, py: Python<'_>) -> PyResult<&arc_core::Engine> {
        let engine = self.0.get(py)?;
        if engine.is_closed() {
            return Err(closed(py)?);
        }
        Ok(engine)
    }
}

#[pymethods]
impl Engine {
    /// Writes line protocol and returns once it is as durable as asked for.
    ///
    /// Good lines are stored; bad lines are named in the returned ``Written``, and raise nothing:
    /// ``write_lp(...).raise_for_rejected()`` turns them into an ``InvalidInputError``. A point without a timestamp
    /// gets the time of arrival. A point whose measurement, tags and time are there already overwrites its fields. The
    /// database is created by its first write.
    ///
    /// precision: the unit of the timestamps: ``"ns"``, ``"us"``, ``"ms"``, ``"s"``, ``"m"`` or ``"h"``.
    /// durability: ``"disk"``, ``"process"``, ``"memory"``, or ``"remote"`` of a server with an object store; ``None`` is its own.
    /// idempotency_key: a name for this write, up to 255 bytes. Sending the same lines again under it stores nothing and
    ///     returns the first receipt, with ``replayed`` set: what to do when a write's answer was lost. Names last a day, and
    ///     survive what the points survive.
    #[pyo3(
        signature = (database, data, **settings),
        text_signature = "($self, database, data, *, precision='ns', durability=None, idempotency_key=None)"
    )]
    fn write_lp(
        &self,
        py: Python<'_>,
        database: PyBackedStr,
        data: &Bound<'_, PyAny>,
        settings: Option<Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let settings = Keywords::new("Engine.write_lp", settings);
        let arguments = WriteArguments::of_any_write(&settings)?;
        settings.finish()?;
        self.send_lp(py, &database, body(data)?, &arguments.options(py)?)
    }

    /// Writes a table of columns and returns once it is as durable as asked for: all of its rows or none.
    ///
    /// ``data`` is anything with the Arrow PyCapsule interface: tables and batches of pyarrow, data frames of polars
    /// and of pandas from 2.2, results of DuckDB, an ``Answer``. All of it is held in memory: write what is very large
    /// in pieces. An index of pandas that is not the default one is a column like the others.
    ///
    /// tags: the columns that are tags. Together with the time they identify a row: a second row of the same identity
    ///     overwrites its fields. ``None`` takes those that the table has; rows of a table without tags append.
    /// time: the column that holds the time, a timestamp or integers of ``precision``. It is stored as ``time``.
    /// precision: the unit of integers in the time column: ``"ns"``, ``"us"``, ``"ms"``, ``"s"``, ``"m"`` or ``"h"``.
    /// durability: ``"disk"``, ``"process"``, ``"memory"``, or ``"remote"`` of a server with an object store; ``None`` is its own.
    /// database: the database of the table; created by its first write.
    /// idempotency_key: a name for this write, as in ``write_lp``. The same table and settings are to be sent again.
    #[pyo3(
        signature = (table, data, **settings),
        text_signature = "($self, table, data, *, tags=None, time='time', precision='ns', durability=None, \
            database='default', idempotency_key=None)"
    )]
    fn write(
        &self,
        py: Python<'_>,
        table: PyBackedStr,
        data: &Bound<'_, PyAny>,
        settings: Option<Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let settings = Keywords::new("Engine.write", settings);
        let arguments = WriteArguments::of_columns(&settings)?;
        let database = settings.take::<PyBackedStr>("database")?;
        settings.finish()?;
        let options = arguments.options(py)?;
        let database = database.as_deref().unwrap_or(DEFAULT_DATABASE);
        self.send_batches(py, (database, &table), batches(data)?, &options)
    }

    /// Imports a file of ``format``; see ``import_csv`` and ``import_parquet``.
    fn import_file<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        format: &str,
        settings: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let settings = Keywords::new("Engine.import_file", settings);
        import::run(py, self.native(py)?.clone(), (path, format), settings)
    }

    /// Runs one SQL statement and returns its ``Answer``, an Arrow stream.
    ///
    /// Tables without a database in front of their name are those of ``database``. The statement sees every point whose
    /// write has returned. It is planned here, so most errors are raised here; rows are computed while they are read.
    ///
    /// params: values for placeholders, a table of one row: ``$1`` and ``?`` are its columns in order, ``$name`` by name.
    /// tables: rows of the caller by name, each with the Arrow PyCapsule interface, which this statement sees as tables.
    #[pyo3(
        signature = (database, query, *, params=None, tables=None),
        text_signature = "($self, database, query, *, params=None, tables=None)"
    )]
    fn sql(
        &self,
        py: Python<'_>,
        database: PyBackedStr,
        query: PyBackedStr,
        params: Option<Bound<'_, PyAny>>,
        tables: Option<Bound<'_, PyDict>>,
    ) -> PyResult<Answer> {
        let engine = self.native(py)?.clone();
        statements::query(py, engine, &database, Given::new(py, &query, params, tables)?)
    }

    /// Returns the rows of a table that are acknowledged from now on.
    ///
    /// since_ns: rows of this time and later that are stored come first, in nanoseconds since 1970.
    #[pyo3(
        signature = (database, table, since_ns=None),
        text_signature = "($self, database, table, since_ns=None)"
    )]
    fn tail(&self, py: Python<'_>, database: String, table: String, since_ns: Option<i64>) -> PyResult<Tail> {
        Tail::open(py, self.native(py)?.clone(), database, table, since_ns)
    }

    /// Runs one SQL statement that changes data: ``INSERT``, ``DELETE``, ``CREATE`` or ``DROP``. Returns what it did, as
    /// one of these words in lower case, and how many rows it wrote, where it is an ``INSERT``.
    ///
    /// ``params`` and ``tables`` are as in ``sql``, for an ``INSERT``.
    #[pyo3(
        signature = (database, query, *, params=None, tables=None),
        text_signature = "($self, database, query, *, params=None, tables=None)"
    )]
    fn execute(
        &self,
        py: Python<'_>,
        database: PyBackedStr,
        query: PyBackedStr,
        params: Option<Bound<'_, PyAny>>,
        tables: Option<Bound<'_, PyDict>>,
    ) -> PyResult<(&'static str, Option<u64>)> {
        let engine = self.native(py)?.clone();
        statements::execute(py, engine, &database, Given::new(py, &query, params, tables)?)
    }

    /// Deletes the points of a table that meet a condition, as SQL writes it behind ``WHERE``, and returns once that is
    /// durable.
    ///
    /// It is about points whose write has returned; points written later stay. ``where`` compares columns with values, and
    /// knows ``IN``, ``BETWEEN``, ``IS NULL``, ``AND``, ``OR`` and ``NOT``; ``"TRUE"`` takes every point. Where tags and
    /// time identify a point, it may name only these. A point whose value is missing is not deleted by it. No query sees
    /// the points any more; their bytes leave the disk after the next flush, when their files are rewritten.
    #[pyo3(signature = (database, table, r#where), text_signature = "($self, database, table, where)")]
    fn delete(&self, py: Python<'_>, database: PyBackedStr, table: PyBackedStr, r#where: PyBackedStr) -> PyResult<()> {
        let engine = self.native(py)?;
        let delete = || engine.delete(&database, &table, &arc_core::Predicate::from_sql(&r#where)?);
        py.detach(delete).raise(py).map(drop)
    }

    /// Drops a table with all of its points and columns; a write after it makes a new one. Durable once it returns.
    fn drop_table(&self, py: Python<'_>, database: PyBackedStr, table: PyBackedStr) -> PyResult<()> {
        let engine = self.native(py)?;
        py.detach(|| engine.drop_table(&database, &table)).raise(py)
    }

    /// Drops a database with all of its tables. Durable once it returns.
    fn drop_database(&self, py: Python<'_>, database: PyBackedStr) -> PyResult<()> {
        let engine = self.native(py)?;
        py.detach(|| engine.drop_database(&database)).raise(py)
    }

    /// Sets how long the points of a table are kept, or of all tables of a database that have no setting of their own.
    ///
    /// retention: seconds or a ``datetime.timedelta``; ``math.inf`` is for ever, and ``None`` takes the setting away: a table
    ///     then goes by its database's, a database keeps its points.
    /// table: a table of ``database``, or ``None`` for the database.
    ///
    /// Kept across restarts. Points go with the whole file that they are in, so they may be seen for up to a day longer.
    #[pyo3(
        signature = (database, retention, *, table=None),
        text_signature = "($self, database, retention, *, table=None)"
    )]
    fn set_retention(
        &self,
        py: Python<'_>,
        database: PyBackedStr,
        retention: Option<Bound<'_, PyAny>>,
        table: Option<PyBackedStr>,
    ) -> PyResult<()> {
        let engine = self.native(py)?;
        let is_for_ever =
            |value: &Bound<'_, PyAny>| value.extract::<f64>().is_ok_and(|seconds| seconds == f64::INFINITY);
        let retention = match retention {
            Some(value) if is_for_ever(&value) => Some(Duration::MAX),
            Some(value) => Some(duration("retention", &value)?),
            None => None,
        };
        py.detach(|| engine.set_retention(&database, table.as_deref(), retention)).raise(py)
    }

    /// Returns how many seconds the points of a table or a database are kept by a setting of its own: ``math.inf`` for ever,
    /// ``None`` if nothing is set.
    #[pyo3(signature = (database, *, table=None), text_signature = "($self, database, *, table=None)")]
    fn retention(&self, py: Python<'_>, database: PyBackedStr, table: Option<PyBackedStr>) -> PyResult<Option<f64>> {
        let retention = self.native(py)?.retention(&database, table.as_deref()).raise(py)?;
        let is_for_ever = |retention: Duration| retention.as_nanos() >= u128::from(u64::MAX);
        Ok(retention.map(|kept| if is_for_ever(kept) { f64::INFINITY } else { kept.as_secs_f64() }))
    }

    /// Sets what the points of ``database`` survive once their write returns, where the write does not say it itself:
    /// ``"disk"``, ``"process"`` or ``"memory"``. ``None`` takes the setting away. Kept across restarts.
    fn set_durability(&self, py: Python<'_>, database: PyBackedStr, durability: Option<PyBackedStr>) -> PyResult<()> {
        let engine = self.native(py)?;
        let durability = durability.map(|name| parse("durability", &name)).transpose().raise(py)?;
        py.detach(|| engine.set_database_durability(&database, durability)).raise(py)
    }

    /// Returns the durability that was set for ``database``, or ``None``.
    fn durability(&self, py: Python<'_>, database: PyBackedStr) -> PyResult<Option<String>> {
        let engine = self.native(py)?;
        let found = engine.databases().into_iter().find(|info| info.name == *database);
        let missing = || Error::DatabaseNotFound { database: database.to_string() };
        Ok(found.ok_or_else(missing).raise(py)?.durability.map(|level| level.to_string()))
    }

    /// Sets how strict a table is about the types of its columns, or all tables of a database that do not say it themselves.
    ///
    /// string_columns: patterns such as ``"attr_*"``; new fields that one of them matches are text, whatever their values are.
    /// on_conflict: what becomes of a value whose type is not its column's: ``"reject"`` or ``"widen"``.
    /// time_unit: the unit of the times in Parquet files: ``"ns"``, ``"us"`` or ``"ms"``. Files that were written before stay as they
    ///     are until a merge rewrites them.
    /// finer_times: what becomes of a point whose time is finer than that unit: ``"keep"``, ``"reject"`` or
    ///     ``"round"``.
    /// table: a table of ``database``, or ``None`` for the database.
    ///
    /// This is the whole setting: ``None`` leaves it to the database, and then to what ``arc.open`` was told. Kept across
    /// restarts. Raises ``InvalidInputError`` if a pattern matches a field that is there and not text.
    #[pyo3(
        signature = (database, **settings),
        text_signature = "($self, database, *, table=None, string_columns=None, on_conflict=None, time_unit=None, \
            finer_times=None)"
    )]
    fn set_column_types(
        &self,
        py: Python<'_>,
        database: PyBackedStr,
        settings: Option<Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let engine = self.native(py)?;
        let settings = Keywords::new("Engine.set_column_types", settings);
        let table = settings.take::<PyBackedStr>("table")?;
        let types = column_types(py, &settings)?;
        settings.finish()?;
        py.detach(|| engine.set_column_types(&database, table.as_deref(), &types)).raise(py)
    }

    /// Returns what ``set_column_types`` was told for a table or a database, as a named tuple: its ``string_columns``,
    /// ``on_conflict``, ``time_unit`` and ``finer_times``.
    #[pyo3(signature = (database, *, table=None), text_signature = "($self, database, *, table=None)")]
    fn column_types(
        &self,
        py: Python<'_>,
        database: PyBackedStr,
        table: Option<PyBackedStr>,
    ) -> PyResult<TypeSettings> {
        let types = self.native(py)?.column_types(&database, table.as_deref()).raise(py)?;
        let on_conflict = types.on_conflict.map(|on_conflict| on_conflict.to_string());
        let time_unit = types.time_unit.map(|unit| unit.to_string());
        let finer_times = types.finer_times.map(|finer_times| finer_times.to_string());
        Ok((types.string_columns, on_conflict, time_unit, finer_times))
    }

    /// Writes all points in memory to Parquet files and returns how many rows and which files that made.
    fn flush<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let engine = self.native(py)?;
        let flushed = engine.clone();
        let report = interrupt::run(py, "flush", move || flushed.flush())?.raise(py)?;
        let files = report.files.iter().map(|file| under(engine, file));
        let files = PyList::new(py, files.collect::<Vec<_>>())?;
        py.import("arc.receipts")?.getattr("FlushReport")?.call1((report.rows, files))
    }

    /// Writes a backup to the folder ``target``, which is absent, empty, or an earlier backup of the same directory.
    ///
    /// Every point whose write has returned is in it; points may be written meanwhile. See ``arc.restore``.
    fn backup<'py>(&self, py: Python<'py>, target: PathBuf) -> PyResult<Bound<'py, PyAny>> {
        let engine = self.native(py)?.clone();
        let report = interrupt::run(py, "backup", move || engine.backup(target))?.raise(py)?;
        maintenance::backup_report(py, &report)
    }

    /// Hands the rows that were written by now to ``to``, an engine or what makes the requests of a push.
    fn push<'py>(
        &self,
        py: Python<'py>,
        to: &Bound<'py, PyAny>,
        bytes_per_second: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        push::run(py, self.native(py)?.clone(), to, bytes_per_second)
    }

    /// Gives each of the files that lie in a pack (see ``data_files``) a file of its own; returns how many there were.
    ///
    /// Then a glob finds all that was flushed: ``flush`` first to have every point in files. What is flushed later may be
    /// packed again.
    fn unpack(&self, py: Python<'_>) -> PyResult<u64> {
        let engine = self.native(py)?.clone();
        Ok(interrupt::run(py, "unpack", move || engine.unpack())?.raise(py)?.moved_files)
    }

    /// Compares the data directory with what was written there, while it is in use. See ``arc.verify``.
    fn verify<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let engine = self.native(py)?.clone();
        let report = interrupt::run(py, "verify", move || engine.verify())?.raise(py)?;
        maintenance::verify_report(py, &report)
    }

    /// Flushes, stops and gives the data directory free, if nothing else in this process has it open. A second call does
    /// nothing; any other call then raises ``ClosedError``.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let engine = self.0.get(py)?;
        py.detach(|| engine.close()).raise(py)
    }

    /// Returns the names of all databases, sorted.
    fn databases(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let engine = self.native(py)?;
        Ok(py.detach(|| engine.databases()).into_iter().map(|database| database.name).collect())
    }

    /// Returns the names of the tables of ``database``, sorted.
    fn tables(&self, py: Python<'_>, database: PyBackedStr) -> PyResult<Vec<String>> {
        let engine = self.native(py)?;
        let tables = py.detach(|| engine.tables(&database)).raise(py)?;
        Ok(tables.into_iter().map(|table| table.schema.table.to_string()).collect())
    }

    /// Returns the paths of the Parquet files of ``table``, oldest first. Points that are not flushed are not in them.
    ///
    /// With many small tables a path may be ``….pack/<offset>-<bytes>.parquet``: not a file, but so many bytes of the file
    /// before it, from there on. They are a whole Parquet file. Compaction makes files of them, when their day is over at the latest, and ``unpack`` at
    /// once. A file that a merge has replaced since then lies in the folder ``past`` of ``path``, under the same name.
    fn data_files(&self, py: Python<'_>, database: PyBackedStr, table: PyBackedStr) -> PyResult<Vec<OsString>> {
        let engine = self.native(py)?;
        let files = py.detach(|| engine.data_files(&database, &table)).raise(py)?;
        Ok(files.iter().map(|file| under(engine, &file.path)).collect())
    }

    /// The path of the data directory, absolute.
    #[getter]
    fn path(&self, py: Python<'_>) -> PyResult<OsString> {
        Ok(self.0.get(py)?.path().as_os_str().to_owned())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<arc.Engine {}>", self.0.get(py)?.path().display()))
    }
}

/// Returns the absolute path of a file that the engine names relative to its folder.
fn under(engine: &arc_core::Engine, file: &str) -> OsString {
    // `components` puts the platform's separator between the parts.
    engine.path().join(Path::new(file).components().collect::<PathBuf>()).into_os_string()
}

/// Returns the Python form of a write's receipt.
fn receipt(py: Python<'_>, written: &arc_core::Written) -> PyResult<Py<PyAny>> {
    let receipts = py.import("arc.receipts")?;
    let rejected = PyList::empty(py);
    if !written.rejected.is_empty() {
        let class = receipts.getattr("Rejected")?;
        for line in &written.rejected {
            rejected.append(class.call1((line.line, line.column, line.reason.as_str()))?)?;
        }
    }
    let durability = written.durability.to_string();
    let fields = (written.points, written.rejected_points, rejected, durability, written.replayed);
    Ok(receipts.getattr("Written")?.call1(fields)?.unbind())
}
