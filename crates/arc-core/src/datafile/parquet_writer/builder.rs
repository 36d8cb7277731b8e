//! Settings of a writer before it is opened.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow::{
    array::{make_comparator, new_empty_array},
    compute::SortOptions,
    datatypes::{DataType, Schema, SchemaRef},
};

use super::{
    Accumulator, ParquetWriter,
    column::ColumnSpec,
    distinct::Distinct,
    open_file::FileSpec,
    publish::Folder,
    schema::WriterColumns,
    split::{FileLimits, RowGroupKey},
    writer::Parts,
};
use crate::{
    Error, Result,
    datafile::{ParquetOptions, encode::Scratch},
    vfs::{RealVfs, Vfs},
};

/// Most threads of a writer: more than there are columns worth one help nothing.
const MAX_THREADS: usize = 64;

/// Stores what it is given; [`open`](Self::open) checks it.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing before `open`"]
pub struct ParquetWriterBuilder {
    folder: PathBuf,
    schema: SchemaRef,
    name: String,
    layout: ParquetOptions,
    max_rows: u64,
    max_bytes: u64,
    group_by: Vec<String>,
    text_prefixes: Vec<String>,
    time_column: Option<String>,
    distinct: Vec<String>,
    max_distinct: usize,
    threads: usize,
    vfs: Arc<dyn Vfs>,
}

impl ParquetWriterBuilder {
    pub(super) fn new(folder: &Path, schema: SchemaRef) -> Self {
        Self {
            folder: folder.to_owned(),
            schema,
            name: "part".into(),
            layout: layout(),
            max_rows: u64::MAX,
            max_bytes: u64::MAX,
            group_by: Vec::new(),
            text_prefixes: Vec::new(),
            time_column: None,
            distinct: Vec::new(),
            max_distinct: 1000,
            threads: 1,
            vfs: Arc::new(RealVfs),
        }
    }

    /// Sets how files are called: with `logs` they are `logs-00000.parquet`, `logs-00001.parquet`
    /// and so on. Default `part`. A file that is there already is never replaced: the writer fails.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::datatypes::{DataType, Field, Schema};
    /// use arc_core::datafile::{ParquetWriter, Value};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let field = |name: &str, kind, null| Field::new(name, kind, null);
    /// # let user = field("user", DataType::Utf8, true);
    /// # let times = field("time", DataType::Int64, false);
    /// # let schema = Arc::new(Schema::new(vec![times, user, field("ms", DataType::Float64, true)]));
    /// let mut writer = ParquetWriter::builder(&folder, schema).name("logs").open()?;
    /// writer.push_row(&[Value::from(10), Value::Null, Value::Null])?;
    /// assert_eq!(writer.close()?[0].path, folder.path().join("logs-00000.parquet"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets how rows are laid out in a file. Default: 4 MiB of rows are gathered, a row group ends
    /// at 8 MiB or 1,048,576 rows, a page at 20,000. A writer holds about the sum of the first two,
    /// and some megabytes of dictionaries.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::datatypes::{DataType, Field, Schema};
    /// use arc_core::datafile::{ParquetWriter, Value};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let field = |name: &str, kind, null| Field::new(name, kind, null);
    /// # let user = field("user", DataType::Utf8, true);
    /// # let times = field("time", DataType::Int64, false);
    /// # let schema = Arc::new(Schema::new(vec![times, user, field("ms", DataType::Float64, true)]));
    /// use arc_core::datafile::ParquetOptions;
    ///
    /// let mut layout = ParquetOptions::default();
    /// layout.compression_level = 3;
    /// let writer = ParquetWriter::builder(&folder, schema).layout(layout).open()?;
    /// # drop(writer);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn layout(mut self, layout: ParquetOptions) -> Self {
        self.layout = layout;
        self
    }

    /// Ends a file at so many rows. No limit by default. With [`group_by`](Self::group_by) it goes
    /// on to the end of the group that the last of these rows is of.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::datatypes::{DataType, Field, Schema};
    /// use arc_core::datafile::{ParquetWriter, Value};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let field = |name: &str, kind, null| Field::new(name, kind, null);
    /// # let user = field("user", DataType::Utf8, true);
    /// # let times = field("time", DataType::Int64, false);
    /// # let schema = Arc::new(Schema::new(vec![times, user, field("ms", DataType::Float64, true)]));
    /// let mut writer = ParquetWriter::builder(&folder, schema).max_rows(2).open()?;
    /// for time in 0..5 {
    ///     writer.push_row(&[Value::from(time), Value::Null, Value::Null])?;
    /// }
    /// let rows: Vec<u64> = writer.close()?.iter().map(|file| file.rows).collect();
    /// assert_eq!(rows, [2, 2, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_rows(mut self, rows: u64) -> Self {
        self.max_rows = rows;
        self
    }

    /// Ends a file when it has about so many bytes, likewise. No limit by default.
    ///
    /// How large rows are is known once they are encoded, and how large the next ones will be is
    /// guessed by those before. Files of megabytes meet the limit within some hundredths, those of
    /// some ten kilobytes within a fifth; the first file of a writer may be half as large, for how
    /// well its rows are compressed is not known yet.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::datatypes::{DataType, Field, Schema};
    /// use arc_core::datafile::{ParquetWriter, Value};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let field = |name: &str, kind, null| Field::new(name, kind, null);
    /// # let user = field("user", DataType::Utf8, true);
    /// # let times = field("time", DataType::Int64, false);
    /// # let schema = Arc::new(Schema::new(vec![times, user, field("ms", DataType::Float64, true)]));
    /// let mut writer = ParquetWriter::builder(&folder, schema).max_bytes(256 << 20).open()?;
    /// writer.push_row(&[Value::from(10), Value::from("ann"), Value::from(2.5)])?;
    /// assert_eq!(writer.close()?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Names the columns of the key: neighbouring rows with equal values in all of them (null
    /// equals null, NaN equals NaN) are never cut apart into two files, in one batch or over many.
    /// So a file can be larger than its limits, by the rest of a group. Rows are to come grouped:
    /// of a key that comes again later, after rows of another one, the later rows may well be in
    /// another file. Memory does not grow with groups.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::datatypes::{DataType, Field, Schema};
    /// use arc_core::datafile::{ParquetWriter, Value};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let field = |name: &str, kind, null| Field::new(name, kind, null);
    /// # let user = field("user", DataType::Utf8, true);
    /// # let times = field("time", DataType::Int64, false);
    /// # let schema = Arc::new(Schema::new(vec![times, user, field("ms", DataType::Float64, true)]));
    /// let mut writer = ParquetWriter::builder(&folder, schema).max_rows(2).group_by(["user"]).open()?;
    /// for (time, user) in [(1, "ann"), (2, "ann"), (3, "ann"), (4, "bob")] {
    ///     writer.push_row(&[Value::from(time), Value::from(user), Value::Null])?;
    /// }
    /// let rows: Vec<u64> = writer.close()?.iter().map(|file| file.rows).collect();
    /// assert_eq!(rows, [3, 1]); // all of ann's are in one file
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn group_by(mut self, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.group_by = columns.into_iter().map(Into::into).collect();
        self
    }

    /// Makes texts of the integers, floats and booleans in columns whose names begin with any of
    /// these: no digit is lost, and a float is as short as it can be and still reads back the same
    /// (`200.0`, `0.1`, `1e16`). Such columns also take texts and, in rows, values of mixed kinds.
    /// Columns of other types stay as they are.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::datatypes::{DataType, Field, Schema};
    /// use arc_core::datafile::{ParquetWriter, Value};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let field = |name: &str, kind, null| Field::new(name, kind, null);
    /// # let user = field("user", DataType::Utf8, true);
    /// # let times = field("time", DataType::Int64, false);
    /// # let schema = Arc::new(Schema::new(vec![times, user, field("ms", DataType::Float64, true)]));
    /// let mut writer = ParquetWriter::builder(&folder, schema).text_prefixes(["m"]).open()?;
    /// writer.push_row(&[Value::from(10), Value::Null, Value::from(2.5)])?;
    /// writer.push_row(&[Value::from(20), Value::Null, Value::from("timed out")])?;
    /// assert_eq!(writer.close()?[0].rows, 2); // `ms` is a column of texts
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn text_prefixes(mut self, prefixes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.text_prefixes = prefixes.into_iter().map(Into::into).collect();
        self
    }

    /// Names the column of timestamps, or of integers, that first and last time are taken of. Rows
    /// need not be in its order.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::datatypes::{DataType, Field, Schema};
    /// use arc_core::datafile::{ParquetWriter, Value};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let field = |name: &str, kind, null| Field::new(name, kind, null);
    /// # let user = field("user", DataType::Utf8, true);
    /// # let times = field("time", DataType::Int64, false);
    /// # let schema = Arc::new(Schema::new(vec![times, user, field("ms", DataType::Float64, true)]));
    /// let mut writer = ParquetWriter::builder(&folder, schema).time_column("time").open()?;
    /// for time in [20, 10, 30] {
    ///     writer.push_row(&[Value::from(time), Value::Null, Value::Null])?;
    /// }
    /// let statistics = &writer.close()?[0].statistics;
    /// assert_eq!((statistics.first_time, statistics.last_time), (Some(10), Some(30)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn time_column(mut self, column: impl Into<String>) -> Self {
        self.time_column = Some(column.into());
        self
    }

    /// Names columns whose distinct values each file is to tell: of texts, integers or floats of
    /// eight bytes, booleans or timestamps.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::datatypes::{DataType, Field, Schema};
    /// use arc_core::datafile::{ParquetWriter, Value};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let field = |name: &str, kind, null| Field::new(name, kind, null);
    /// # let user = field("user", DataType::Utf8, true);
    /// # let times = field("time", DataType::Int64, false);
    /// # let schema = Arc::new(Schema::new(vec![times, user, field("ms", DataType::Float64, true)]));
    /// let mut writer = ParquetWriter::builder(&folder, schema).distinct(["user"]).open()?;
    /// for (time, user) in [(1, "bob"), (2, "ann"), (3, "bob")] {
    ///     writer.push_row(&[Value::from(time), Value::from(user), Value::Null])?;
    /// }
    /// let users = &writer.close()?[0].statistics.distinct[0];
    /// assert_eq!(users.values, [Value::from("ann"), Value::from("bob")]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn distinct(mut self, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.distinct = columns.into_iter().map(Into::into).collect();
        self
    }

    /// Sets up to how many distinct values are told. Default 1,000. Each costs some 50 bytes and
    /// its text.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::datatypes::{DataType, Field, Schema};
    /// use arc_core::datafile::{ParquetWriter, Value};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let field = |name: &str, kind, null| Field::new(name, kind, null);
    /// # let user = field("user", DataType::Utf8, true);
    /// # let times = field("time", DataType::Int64, false);
    /// # let schema = Arc::new(Schema::new(vec![times, user, field("ms", DataType::Float64, true)]));
    /// let mut writer = ParquetWriter::builder(&folder, schema).distinct(["user"]).max_distinct(1).open()?;
    /// for (time, user) in [(1, "bob"), (2, "ann")] {
    ///     writer.push_row(&[Value::from(time), Value::from(user), Value::Null])?;
    /// }
    /// assert!(!writer.close()?[0].statistics.distinct[0].complete);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_distinct(mut self, values: usize) -> Self {
        self.max_distinct = values;
        self
    }

    /// Sets how many threads encode columns, that of the caller included. Default 1. Others live
    /// only while rows are encoded, and each needs some megabytes.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::datatypes::{DataType, Field, Schema};
    /// use arc_core::datafile::{ParquetWriter, Value};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let field = |name: &str, kind, null| Field::new(name, kind, null);
    /// # let user = field("user", DataType::Utf8, true);
    /// # let times = field("time", DataType::Int64, false);
    /// # let schema = Arc::new(Schema::new(vec![times, user, field("ms", DataType::Float64, true)]));
    /// let mut writer = ParquetWriter::builder(&folder, schema).threads(2).open()?;
    /// writer.push_row(&[Value::from(10), Value::from("ann"), Value::from(2.5)])?;
    /// assert_eq!(writer.close()?[0].rows, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets the file system. Default: that of the operating system.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::datatypes::{DataType, Field, Schema};
    /// use arc_core::datafile::{ParquetWriter, Value};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let field = |name: &str, kind, null| Field::new(name, kind, null);
    /// # let user = field("user", DataType::Utf8, true);
    /// # let times = field("time", DataType::Int64, false);
    /// # let schema = Arc::new(Schema::new(vec![times, user, field("ms", DataType::Float64, true)]));
    /// use arc_core::vfs::{CrashFs, Vfs};
    ///
    /// let disk = CrashFs::new();
    /// let mut writer = ParquetWriter::builder("/logs", schema).vfs(Arc::new(disk.clone())).open()?;
    /// writer.push_row(&[Value::from(10), Value::from("ann"), Value::from(2.5)])?;
    /// writer.close()?;
    /// assert_eq!(disk.list("/logs".as_ref())?[0].name, "part-00000.parquet");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn vfs(mut self, vfs: Arc<dyn Vfs>) -> Self {
        self.vfs = vfs;
        self
    }

    /// Opens a writer. Nothing is on disk before the first row.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::datatypes::{DataType, Field, Schema};
    /// use arc_core::datafile::{ParquetWriter, Value};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let field = |name: &str, kind, null| Field::new(name, kind, null);
    /// # let user = field("user", DataType::Utf8, true);
    /// # let times = field("time", DataType::Int64, false);
    /// # let schema = Arc::new(Schema::new(vec![times, user, field("ms", DataType::Float64, true)]));
    /// let builder = ParquetWriter::builder(&folder, schema);
    /// assert!(builder.clone().group_by(["site"]).open().is_err()); // there is no such column
    /// let writer = builder.group_by(["user"]).open()?;
    /// assert_eq!(writer.rows(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for a setting that is out of
    /// range, for a column that is named and not declared, and for one of a type that is not
    /// written.
    pub fn open(self) -> Result<ParquetWriter> {
        self.open_with(|| ())
    }

    /// Opens a writer that asks `make` for an accumulator for each file.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::datatypes::{DataType, Field, Schema};
    /// use arc_core::datafile::{ParquetWriter, Value};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let field = |name: &str, kind, null| Field::new(name, kind, null);
    /// # let user = field("user", DataType::Utf8, true);
    /// # let times = field("time", DataType::Int64, false);
    /// # let schema = Arc::new(Schema::new(vec![times, user, field("ms", DataType::Float64, true)]));
    /// use arc_core::datafile::Accumulator;
    /// use arrow::array::RecordBatch;
    ///
    /// #[derive(Default)]
    /// struct Batches(usize);
    ///
    /// impl Accumulator for Batches {
    ///     type Output = usize;
    ///
    ///     fn update(&mut self, _rows: &RecordBatch) {
    ///         self.0 += 1;
    ///     }
    ///
    ///     fn finish(self) -> usize {
    ///         self.0
    ///     }
    /// }
    ///
    /// let mut writer = ParquetWriter::builder(&folder, schema).open_with(Batches::default)?;
    /// writer.push_row(&[Value::from(10), Value::from("ann"), Value::from(2.5)])?;
    /// assert_eq!(writer.close()?[0].accumulated, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_with<A: Accumulator>(self, make: impl Fn() -> A + Send + 'static) -> Result<ParquetWriter<A>> {
        self.layout.validate()?;
        self.validate()?;
        let columns = WriterColumns::new(&self.schema, &self.text_prefixes)?;
        let time =
            self.time_column.iter().map(|name| position("time_column", &columns.schema, name)).next().transpose()?;
        let spec = self.file_spec(&columns.schema, time)?;
        let group = self.group(&columns.schema)?;
        let scratch = || Scratch::new(self.layout.compression_level).map_err(|e| Error::internal(e.to_string()));
        let scratches = (0..self.threads).map(|_| scratch()).collect::<Result<Vec<_>>>()?;
        let folder = Folder::new(self.vfs, &self.folder);
        let make = Box::new(make);
        Ok(ParquetWriter::new(Parts { name: self.name, columns, spec: Arc::new(spec), group, scratches, folder, make }))
    }

    fn validate(&self) -> Result<()> {
        let out_of_range = |option, reason: &str| Err(Error::InvalidOption { option, reason: reason.into() });
        if self.max_rows == 0 {
            return out_of_range("max_rows", "0 is too small; expected at least 1");
        }
        if self.max_bytes == 0 {
            return out_of_range("max_bytes", "0 is too small; expected at least 1");
        }
        if self.threads == 0 || self.threads > MAX_THREADS {
            return out_of_range("threads", "expected 1 to 64");
        }
        if self.name.is_empty() || self.name.contains(['/', '\\', '\0']) {
            return out_of_range("name", "expected the beginning of a file's name, without a folder");
        }
        Ok(())
    }

    fn file_spec(&self, schema: &SchemaRef, time: Option<usize>) -> Result<FileSpec> {
        let spec = |(index, field)| ColumnSpec::new(field, time == Some(index), &self.layout).map(Arc::new);
        let columns = schema.fields().iter().enumerate().map(spec).collect::<Result<Vec<_>>>()?;
        if let Some(column) = time.and_then(|time| columns.get(time)).filter(|column| column.carrier != DataType::Int64)
        {
            let reason =
                format!("{:?} has {}; expected timestamps or Int64", column.field.name(), column.field.data_type());
            return Err(Error::InvalidOption { option: "time_column", reason });
        }
        let distinct =
            self.distinct.iter().map(|name| position("distinct", schema, name)).collect::<Result<Vec<_>>>()?;
        for column in distinct.iter().filter_map(|position| columns.get(*position)) {
            if Distinct::new(&column.carrier, 0).is_none() {
                let (name, data_type) = (column.field.name(), column.field.data_type());
                let reason = format!("{name:?} has {data_type}, of which no distinct values are collected");
                return Err(Error::InvalidOption { option: "distinct", reason });
            }
        }
        let limits = FileLimits { rows: self.max_rows, bytes: self.max_bytes };
        Ok(FileSpec { columns, options: self.layout.clone(), limits, time, distinct, max_distinct: self.max_distinct })
    }

    fn group(&self, schema: &SchemaRef) -> Result<RowGroupKey> {
        let columns =
            self.group_by.iter().map(|name| position("group_by", schema, name)).collect::<Result<Vec<_>>>()?;
        for column in &columns {
            let field = schema.field(*column);
            let empty = new_empty_array(field.data_type());
            make_comparator(&empty, &empty, SortOptions::default()).map(drop).map_err(|error| {
                let reason = format!("{:?} cannot be compared: {error}", field.name());
                Error::InvalidOption { option: "group_by", reason }
            })?;
        }
        Ok(RowGroupKey::new(columns))
    }
}

/// Data files are read by series; these mostly whole: their pages and row groups can be larger.
fn layout() -> ParquetOptions {
    ParquetOptions {
        gather_bytes: 4 << 20,
        row_group_bytes: 8 << 20,
        dictionary_bytes: 4 << 20,
        row_group_rows: 1 << 20,
        page_rows: 20_000,
        ..ParquetOptions::default()
    }
}

fn position(option: &'static str, schema: &Schema, name: &str) -> Result<usize> {
    let position = schema.fields().iter().position(|field| field.name() == name);
    position.ok_or_else(|| Error::InvalidOption { option, reason: format!("there is no column {name:?}") })
}
