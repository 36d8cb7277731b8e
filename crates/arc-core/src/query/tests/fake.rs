//! An engine that holds tables in memory and writes its data files with plain `ArrowWriter`.

use std::{
    collections::BTreeMap,
    panic,
    path::Path,
    process,
    sync::{
        Arc, Once,
        atomic::{AtomicBool, AtomicUsize},
    },
};

use arrow::{
    array::{
        Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
        StringDictionaryBuilder, TimestampNanosecondArray,
    },
    compute::{SortColumn, SortOptions, cast, lexsort_to_indices, take_record_batch},
    datatypes::{DataType, Field, Float64Type, Int32Type, Int64Type, Schema, TimestampNanosecondType},
    util::pretty::pretty_format_batches,
};
use parking_lot::{Mutex, RwLock};
use parquet::{
    arrow::ArrowWriter,
    file::properties::{EnabledStatistics, WriterProperties},
    schema::types::ColumnPath,
};

use super::super::{Answer, Description, QueryEngine, QueryTables, Statement};
use crate::{
    Error, Options, Result,
    buffer::{Chunk, ChunkReader, ChunkRows, SeriesIndex},
    compaction::{Keep, MAX_BATCH_BYTES, MergeJob, MergeSource, Settings, plan, run},
    datafile::ParquetOptions,
    memory::MemoryBudget,
    model::{
        Column, ColumnKind, ColumnStatistics, DataFile, StatisticsValue, TIME_COLUMN, TableSchema, tag_type, time_type,
    },
    vfs::RealVfs,
    view::{BufferPart, TableView},
};

/// A cell of a test row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Tag(&'static str),
    Float(f64),
    Integer(i64),
    Text(&'static str),
    Boolean(bool),
}

/// One row: time in nanoseconds and the cells it has.
pub(super) type Row = (i64, Vec<(&'static str, Cell)>);

/// Tables by database and name.
#[derive(Debug, Default)]
pub(super) struct Fake {
    pub(super) databases: Mutex<BTreeMap<String, BTreeMap<String, TableView>>>,
    pub(super) views_taken: AtomicUsize,
}

impl QueryTables for Fake {
    fn at(&self, moment: &crate::PastMoment) -> crate::Result<Arc<dyn QueryTables>> {
        Err(crate::Error::OutsideHistory { reason: format!("nothing is known of {moment:?}") })
    }

    fn snapshots(&self) -> crate::Result<Vec<crate::SnapshotInfo>> {
        Ok(Vec::new())
    }

    fn databases(&self) -> Vec<String> {
        self.databases.lock().keys().cloned().collect()
    }

    fn tables(&self, database: &str) -> Option<Vec<String>> {
        self.databases.lock().get(database).map(|tables| tables.keys().cloned().collect())
    }

    fn schema(&self, database: &str, table: &str) -> Option<Arc<TableSchema>> {
        self.databases.lock().get(database)?.get(table).map(|view| Arc::clone(&view.schema))
    }

    fn view(&self, database: &str, table: &str) -> crate::Result<Option<TableView>> {
        self.views_taken.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(self.databases.lock().get(database).and_then(|tables| tables.get(table)).cloned())
    }

    fn file_totals(&self, database: &str, table: &str) -> Option<(usize, u64)> {
        let databases = self.databases.lock();
        let files = &databases.get(database)?.get(table)?.files;
        Some((files.len(), files.iter().map(|file| file.bytes).sum()))
    }

    fn folder(&self, database: &str, table: &str) -> String {
        format!("data/{database}/{table}")
    }
}

/// Has the process end where a library panics: that is a fault, whoever catches it.
fn end_at_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            print(info);
            if info.location().is_some_and(|at| at.file().contains("/registry/") && !at.file().contains("/proptest-")) {
                process::abort();
            }
        }));
    });
}

/// A data directory, its fake engine, and SQL over it.
pub(super) struct Store {
    pub(super) folder: tempfile::TempDir,
    pub(super) fake: Arc<Fake>,
    pub(super) engine: QueryEngine,
}

impl Store {
    pub(super) fn new() -> Self {
        Self::with_options(&Options::default())
    }

    pub(super) fn with_options(options: &Options) -> Self {
        let store = Self::alone(options);
        #[cfg(feature = "distributed")]
        if let Some(workers) = super::cluster::workers_asked() {
            store.engine.join(super::cluster::Nodes::start(workers, store.folder.path(), options)).unwrap();
        }
        store
    }

    /// Returns a store that never asks another node.
    pub(super) fn alone(options: &Options) -> Self {
        end_at_panics();
        let folder = tempfile::tempdir().unwrap();
        let fake = Arc::new(Fake::default());
        let tables: Arc<dyn QueryTables> = Arc::clone(&fake) as _;
        let memory = MemoryBudget::new(options.memory_bytes, options.max_resident_bytes);
        let engine = QueryEngine::new(
            tables,
            crate::query::DataPlace { dir: folder.path(), store: None, is_anothers: false },
            options,
            Arc::new(memory),
        )
        .unwrap();
        Self { folder, fake, engine }
    }

    /// Puts a table into a database, replacing what was there.
    pub(super) fn put(&self, database: &str, table: TableBuilder) -> &Self {
        let view = table.view(self.folder.path(), database);
        self.fake.databases.lock().entry(database.to_owned()).or_default().insert(table.name.to_owned(), view);
        self
    }

    /// Merges the data files of a table as far as there is anything to merge.
    pub(super) fn compact(&self, database: &str, table: &str) {
        let mut databases = self.fake.databases.lock();
        let view = databases.get_mut(database).and_then(|tables| tables.get_mut(table)).unwrap();
        let settings =
            Settings { files: 2, target_bytes: 1 << 30, open_columns: 4096, quiet_ns: 0, slice_rows: 1 << 30 };
        let (options, cancelled) = (ParquetOptions::default(), AtomicBool::new(false));
        for task in plan(&view.schema, &view.files, i64::MAX, &settings).tasks {
            let job = MergeJob {
                source: MergeSource { vfs: &RealVfs, root: self.folder.path() },
                schema: &view.schema,
                task: &task,
                keep: Keep::default(),
                tombstones: &[],
                target_bytes: settings.target_bytes,
                batch_bytes: MAX_BATCH_BYTES,
                options: &options,
                time_unit: crate::FileTimeUnit::default(),
                pack: None,
                cancelled: &cancelled,
            };
            let made = run(&job, || format!("data/{database}/{table}/day=x%2Fy/merged-{}.parquet", task.day)).unwrap();
            view.files.retain(|file| !task.files.contains(file));
            view.files.extend(made.into_iter().map(Arc::new));
        }
    }

    pub(super) async fn sql(&self, database: &str, sql: &str, values: Option<&RecordBatch>) -> Result<Answer> {
        self.engine.sql(database, &Statement::parse(sql)?, values).await
    }

    pub(super) async fn query(&self, database: &str, statement: &Statement) -> Result<Answer> {
        self.engine.sql(database, statement, None).await
    }

    pub(super) async fn describe(&self, sql: &str, values: Option<&RecordBatch>) -> Result<Description> {
        self.engine.describe("db", &Statement::parse(sql)?, values).await
    }

    pub(super) async fn run(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        self.sql("db", sql, None).await?.collect().await
    }

    /// Returns the answer as text, rows as they came.
    pub(super) async fn text(&self, sql: &str) -> String {
        match self.sql("db", sql, None).await {
            Ok(answer) => {
                let schema = answer.schema();
                match answer.collect().await {
                    Ok(batches) => format_batches(&schema, &batches),
                    Err(error) => format!("error: {error}"),
                }
            }
            Err(error) => format!("error: {error}"),
        }
    }

    /// Returns the rows of the answer, without header, columns joined by `|`.
    pub(super) async fn rows(&self, sql: &str) -> Vec<String> {
        let text = self.text(sql).await;
        assert!(!text.starts_with("error"), "{sql}: {text}");
        let lines = text.lines().filter(|line| line.starts_with('|')).skip(1);
        let trim = |line: &str| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>().join("|");
        lines.map(trim).collect()
    }

    /// Returns the physical plan.
    pub(super) async fn plan(&self, sql: &str) -> String {
        self.rows(&format!("EXPLAIN {sql}")).await.join("\n")
    }

    pub(super) async fn error(&self, sql: &str) -> Error {
        match self.run(sql).await {
            Ok(batches) => panic!("{sql} succeeded: {}", pretty_format_batches(&batches).unwrap()),
            Err(error) => error,
        }
    }
}

fn format_batches(schema: &Arc<Schema>, batches: &[RecordBatch]) -> String {
    let mut all = vec![RecordBatch::new_empty(Arc::clone(schema))];
    all.extend(batches.iter().cloned());
    pretty_format_batches(&all).unwrap().to_string()
}

/// Where the rows of one part are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    File,
    LateFile,
    Buffer,
    LateBuffer,
}

/// A table made of parts.
#[derive(Debug, Clone)]
pub(super) struct TableBuilder {
    pub(super) name: &'static str,
    pub(super) has_primary_key: bool,
    pub(super) parts: Vec<(Home, Vec<Row>)>,
}

impl TableBuilder {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, has_primary_key: true, parts: Vec::new() }
    }

    pub(super) fn append(mut self) -> Self {
        self.has_primary_key = false;
        self
    }

    pub(super) fn part(mut self, home: Home, rows: Vec<Row>) -> Self {
        self.parts.push((home, rows));
        self
    }

    fn columns(&self) -> Vec<Column> {
        let mut columns: Vec<Column> = Vec::new();
        for (name, cell) in self.parts.iter().flat_map(|(_, rows)| rows).flat_map(|(_, cells)| cells) {
            if columns.iter().any(|column| *column.name == **name) {
                continue;
            }
            let (kind, data_type) = match cell {
                Cell::Tag(_) => (ColumnKind::Tag, tag_type()),
                Cell::Float(_) => (ColumnKind::Field, DataType::Float64),
                Cell::Integer(_) => (ColumnKind::Field, DataType::Int64),
                Cell::Text(_) => (ColumnKind::Field, DataType::Utf8),
                Cell::Boolean(_) => (ColumnKind::Field, DataType::Boolean),
            };
            columns.push(Column { name: (*name).into(), kind, data_type });
        }
        columns
    }

    fn view(&self, folder: &Path, database: &str) -> TableView {
        let columns = self.columns();
        let (has_primary_key, table) = (self.has_primary_key, self.name.into());
        let schema =
            Arc::new(TableSchema { database: database.into(), table, has_primary_key, columns: columns.clone() });
        let mut files = Vec::new();
        let mut buffers = Vec::new();
        for (index, (home, rows)) in self.parts.iter().enumerate() {
            let batch = batch(&columns, rows);
            let (min_time, max_time) = time_range(rows);
            let late = matches!(home, Home::LateFile | Home::LateBuffer);
            match home {
                Home::Buffer | Home::LateBuffer => {
                    buffers.push(BufferPart { rows: buffered(&schema, &batch), min_time, max_time, late });
                }
                Home::File | Home::LateFile => {
                    let path = format!("data/{database}/{}/day=x%2Fy/{index}.parquet", self.name);
                    let written = write_file(&folder.join(&path), &sorted(&columns, &batch));
                    files.push(Arc::new(data_file(path, written, &columns, &batch, rows, index as u64 + 1, late)));
                }
            }
        }
        TableView { schema, files, buffers, tombstones: Vec::new() }
    }
}

/// Returns rows as a chunk of a buffer.
pub(in crate::query) fn buffered(schema: &Arc<TableSchema>, batch: &RecordBatch) -> ChunkRows {
    let mut index = SeriesIndex::default();
    let tags: Vec<(&str, ArrayRef)> = schema
        .tags()
        .filter_map(|tag| Some((&*tag.name, cast(batch.column_by_name(&tag.name)?, &DataType::Utf8).unwrap())))
        .collect();
    let series = (0..batch.num_rows()).map(|row| {
        let of_row = tags.iter().filter(|(_, values)| values.is_valid(row));
        index.resolve(of_row.map(|(name, values)| (*name, values.as_string::<i32>().value(row)))).unwrap()
    });
    let series: Vec<u32> = series.collect();
    let times = batch.column_by_name(TIME_COLUMN).unwrap().as_primitive::<TimestampNanosecondType>();
    let field = |column: &Column| batch.column_by_name(&column.name).filter(|_| column.kind == ColumnKind::Field);
    let fields = schema.columns.iter().map(|column| field(column).cloned()).collect();
    let chunk = Chunk::new(times.values().clone(), series.into(), fields).unwrap();
    ChunkReader::new(Arc::clone(schema), Arc::new(RwLock::new(index))).rows(&Arc::new(chunk))
}

fn time_range(rows: &[Row]) -> (i64, i64) {
    let times = rows.iter().map(|(time, _)| *time);
    (times.clone().min().unwrap(), times.max().unwrap())
}

/// Returns the rows with only the columns that one of them has.
fn batch(columns: &[Column], rows: &[Row]) -> RecordBatch {
    let mut fields = vec![Field::new(TIME_COLUMN, time_type(), false)];
    let times = TimestampNanosecondArray::from_iter_values(rows.iter().map(|(time, _)| *time));
    let mut arrays: Vec<ArrayRef> = vec![Arc::new(times.with_timezone("UTC"))];
    for column in columns {
        let cells = rows.iter().map(|(_, cells)| cells.iter().find(|(name, _)| *name == &*column.name).map(|c| &c.1));
        let cells: Vec<Option<&Cell>> = cells.collect();
        if cells.iter().any(Option::is_some) {
            fields.push(Field::new(&*column.name, column.data_type.clone(), true));
            arrays.push(array(column, &cells));
        }
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

fn array(column: &Column, cells: &[Option<&Cell>]) -> ArrayRef {
    macro_rules! values {
        ($variant:ident, $array:ty) => {
            Arc::new(<$array>::from_iter(cells.iter().map(|cell| match cell {
                Some(Cell::$variant(value)) => Some(*value),
                None => None,
                other => panic!("{other:?} in column {}", column.name),
            })))
        };
    }
    if column.kind == ColumnKind::Tag {
        let mut builder = StringDictionaryBuilder::<Int32Type>::new();
        for cell in cells {
            match cell {
                Some(Cell::Tag(value)) => builder.append_value(value),
                None => builder.append_null(),
                other => panic!("{other:?} in tag {}", column.name),
            }
        }
        return Arc::new(builder.finish());
    }
    match column.data_type {
        DataType::Float64 => values!(Float, Float64Array),
        DataType::Int64 => values!(Integer, Int64Array),
        DataType::Boolean => values!(Boolean, BooleanArray),
        _ => values!(Text, StringArray),
    }
}

/// Sorts by (tags, time), keeping the order of equal rows: what a flush does.
fn sorted(columns: &[Column], batch: &RecordBatch) -> RecordBatch {
    let options = Some(SortOptions { descending: false, nulls_first: true });
    let tags = columns.iter().filter(|column| column.kind == ColumnKind::Tag);
    let mut keys: Vec<SortColumn> = tags
        .filter_map(|tag| batch.column_by_name(&tag.name))
        .map(|values| SortColumn { values: cast(values, &DataType::Utf8).unwrap(), options })
        .collect();
    keys.push(SortColumn { values: Arc::clone(batch.column_by_name(TIME_COLUMN).unwrap()), options });
    let order = Int64Array::from_iter_values(0..batch.num_rows() as i64);
    keys.push(SortColumn { values: Arc::new(order), options });
    take_record_batch(batch, &lexsort_to_indices(&keys, None).unwrap()).unwrap()
}

/// Returns the size and the checksum of the file.
fn write_file(path: &Path, batch: &RecordBatch) -> (u64, u32) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    // Several row groups in each file; in those of many rows there is room for rows at equal
    // distances.
    let row_group_rows = if batch.num_rows() > 200 { 97 } else { 4 };
    let mut properties = WriterProperties::builder().set_max_row_group_row_count(Some(row_group_rows));
    let schema = batch.schema();
    for (field, values) in schema.fields().iter().zip(batch.columns()) {
        // As in files of the engine, there are no bounds where there is a NaN.
        let floats = values.as_primitive_opt::<Float64Type>();
        if floats.is_some_and(|floats| floats.iter().flatten().any(f64::is_nan)) {
            let column = ColumnPath::from(field.name().as_str());
            properties = properties.set_column_statistics_enabled(column, EnabledStatistics::None);
        }
    }
    let properties = properties.build();
    let mut writer =
        ArrowWriter::try_new(std::fs::File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    let bytes = std::fs::read(path).unwrap();
    (bytes.len() as u64, crc32c::crc32c(&bytes))
}

fn data_file(
    path: String,
    (bytes, crc32c): (u64, u32),
    columns: &[Column],
    batch: &RecordBatch,
    rows: &[Row],
    seq: u64,
    late: bool,
) -> DataFile {
    let (min_time, max_time) = time_range(rows);
    let schema = batch.schema();
    let tags = columns.iter().filter(|c| c.kind == ColumnKind::Tag && batch.column_by_name(&c.name).is_some());
    let sorted_by = tags.map(|c| c.name.to_string()).chain([TIME_COLUMN.to_owned()]).collect();
    let statistics = schema.fields().iter().zip(batch.columns());
    DataFile {
        path,
        bytes,
        crc32c,
        tail: None,
        rows: rows.len() as u64,
        min_time,
        max_time,
        min_seq: seq,
        max_seq: seq,
        deleted_seq: 0,
        time_unit: crate::FileTimeUnit::default(),
        hourly: None,
        late,
        sorted_by,
        columns: statistics.map(|(field, array)| column_statistics(field.name(), array)).collect(),
    }
}

fn column_statistics(name: &str, array: &ArrayRef) -> ColumnStatistics {
    let bounds = match array.data_type() {
        DataType::Int64 => {
            bounds(array.as_primitive::<Int64Type>().iter().flatten()).map(|(a, b)| (integer(a), integer(b)))
        }
        DataType::Timestamp(..) => bounds(array.as_primitive::<TimestampNanosecondType>().iter().flatten())
            .map(|(a, b)| (integer(a), integer(b))),
        DataType::Float64 => {
            let values: Vec<f64> = array.as_primitive::<Float64Type>().iter().flatten().collect();
            let nan = values.iter().any(|value| value.is_nan());
            (!nan)
                .then(|| bounds(values.into_iter()))
                .flatten()
                .map(|(a, b)| (StatisticsValue::Float(a), StatisticsValue::Float(b)))
        }
        DataType::Boolean => bounds(array.as_boolean().iter().flatten())
            .map(|(a, b)| (StatisticsValue::Boolean(a), StatisticsValue::Boolean(b))),
        _ => {
            let text = cast(array, &DataType::Utf8).unwrap();
            let values: Vec<String> = text.as_string::<i32>().iter().flatten().map(str::to_owned).collect();
            bounds(values.into_iter()).map(|(a, b)| (text_bound(a), text_bound(b)))
        }
    };
    let null_count = array.logical_nulls().map_or(0, |nulls| nulls.null_count()) as u64;
    let (min, max) = bounds.unzip();
    ColumnStatistics { name: name.to_owned(), null_count, min, max }
}

fn bounds<T: PartialOrd + Clone>(values: impl Iterator<Item = T>) -> Option<(T, T)> {
    values.fold(None, |bounds, value| match bounds {
        None => Some((value.clone(), value)),
        Some((min, max)) => {
            Some((if value < min { value.clone() } else { min }, if value > max { value } else { max }))
        }
    })
}

fn integer(value: i64) -> StatisticsValue {
    StatisticsValue::Integer(value)
}

fn text_bound(value: String) -> StatisticsValue {
    StatisticsValue::Text { value, exact: true }
}
