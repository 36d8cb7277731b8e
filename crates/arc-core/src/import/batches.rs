//! Parquet and Arrow files in pieces: their record batches, cut to size, with the time as a table
//! has it.
//!
//! Rows without a time that can be stored are refused one by one; whatever else does not fit a
//! table is found by the engine, and refuses the piece.

use std::{
    borrow::Cow,
    io::{BufRead, Read},
    sync::Arc,
};

use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray},
    compute::{cast, filter_record_batch},
    datatypes::{DataType, Field, Int64Type, Schema, TimeUnit},
};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use parquet::{
    arrow::{
        ARROW_SCHEMA_META_KEY, ProjectionMask,
        arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder},
    },
    file::metadata::ParquetMetaData,
};

use super::{
    FileChunk, ImportBody, ImportColumn, ImportOptions, ImportWrite, KnownTable,
    header::{ColumnRole, FileHeader, has_time},
    report::{Extent, FileShape, LEFT_OUT, Refusal},
    source::ImportSource,
    time::{DECIDING_ROWS, NumberForm, TimeReader},
};
use crate::{
    Result,
    ingest::{ArrowReader, FileStream, INTEGER_WIDTH, KEEP, TimeRules, needs_footer, odd_columns},
    model::{TIME_COLUMN, check_type, row_bytes},
};

/// Most rows of a piece.
const MAX_ROWS: usize = 1 << 16;
const DAY_NS: i64 = 86_400_000_000_000;
/// What pandas calls an index that has no name.
const PANDAS_INDEX: &str = "__index_level_0__";

/// Reads a Parquet file, and hands over piece after piece until `emit` says to stop.
pub(super) fn read_parquet(
    source: &ImportSource,
    options: &ImportOptions,
    table: &str,
    known: &KnownTable,
    emit: &mut dyn FnMut(FileChunk) -> bool,
) -> Result<()> {
    let not_parquet = |error: parquet::errors::ParquetError| source.bad(format!("it is no good Parquet file: {error}"));
    let file = source.seekable(options)?;
    // By the types of Parquet itself, which has few.
    let own = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let mut metadata = ArrowReaderMetadata::load(&file, own).map_err(not_parquet)?;
    let header = header_of(source, options, metadata.schema())?;
    let odd = carried(metadata.metadata());
    for ((name, role), reason) in header.names.iter().zip(&header.roles).zip(&odd) {
        if let (Some(reason), true) = (reason, *role != ColumnRole::LeftOut) {
            return Err(source.bad(format!("column {name:?} {reason}; leave it out (exclude)")));
        }
    }
    if odd.iter().all(Option::is_none) {
        let parquet = Arc::clone(metadata.metadata());
        metadata = ArrowReaderMetadata::try_new(parquet, ArrowReaderOptions::new()).map_err(not_parquet)?;
    }
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata);
    let kept = header.roles.iter().enumerate().filter(|(_, role)| **role != ColumnRole::LeftOut);
    let kept: Vec<usize> = kept.map(|(index, _)| index).collect();
    // A file says so in a few bytes, and readers make room for the rows of a batch.
    let fields = builder.schema().project(&kept)?.fields;
    let wide = fields.iter().try_for_each(|field| check_type(field.name(), field.data_type()));
    wide.map_err(|reason| source.bad(reason))?;
    let file = builder.metadata();
    let bytes: i64 = file.row_groups().iter().map(parquet::file::metadata::RowGroupMetaData::total_byte_size).sum();
    let rows = usize::try_from(file.file_metadata().num_rows()).unwrap_or(0).max(1);
    // Repeated values and nulls take next to nothing in the file, and their bytes in memory.
    let row_bytes =
        row_bytes(fields.iter().map(|field| field.data_type())).max(usize::try_from(bytes).unwrap_or(0) / rows);
    let mask = ProjectionMask::roots(builder.parquet_schema(), kept);
    let reader = builder.with_projection(mask).with_batch_size(rows_of(options, row_bytes)).build();
    let reader = reader.map_err(not_parquet)?;
    let mut pieces = Pieces::new(source, options, table, known);
    pieces.left_out = header.left_out();
    pieces.header = Some(header.kept());
    for batch in reader {
        let batch = batch.map_err(|error| source.bad(format!("after row {}: {error}", pieces.row)))?;
        if !pieces.add(&batch, emit)? {
            break;
        }
    }
    Ok(())
}

/// Returns of each column why Arrow cannot have its type, by the schema of Arrow's that a file may carry: the library
/// panics at it.
fn carried(metadata: &ParquetMetaData) -> Vec<Option<String>> {
    let pairs = metadata.file_metadata().key_value_metadata().into_iter().flatten();
    let text = pairs.filter(|pair| pair.key == ARROW_SCHEMA_META_KEY).find_map(|pair| pair.value.as_deref());
    let Some(bytes) = text.and_then(|text| BASE64_STANDARD.decode(text).ok()) else { return Vec::new() };
    let message = bytes.strip_prefix(&[0xFF; 4]).and_then(|rest| rest.get(4..)).unwrap_or(&bytes);
    let message = arrow::ipc::root_as_message(message).ok();
    message.and_then(|message| message.header_as_schema()).map(odd_columns).unwrap_or_default()
}

/// Reads an Arrow file, in the same way.
pub(super) fn read_arrow(
    source: &ImportSource,
    options: &ImportOptions,
    table: &str,
    known: &KnownTable,
    emit: &mut dyn FnMut(FileChunk) -> bool,
) -> Result<()> {
    let mut bytes = source.read()?;
    let head = bytes.fill_buf().map_err(|error| source.bad(format!("cannot read: {error}")))?;
    let needs_footer = needs_footer(head);
    let mut bytes: Box<dyn Read> = Box::new(bytes);
    if needs_footer {
        bytes = Box::new(FileStream::new(source.seekable(options)?).map_err(|reason| source.bad(reason))?);
    }
    let mut reader = ArrowReader::new(bytes);
    let mut pieces = Pieces::new(source, options, table, known);
    loop {
        let batch = reader.next().map_err(|reason| source.bad(format!("after row {}: {reason}", pieces.row)))?;
        let Some(batch) = batch else { return Ok(()) };
        let row_bytes = batch.get_array_memory_size() / batch.num_rows().max(1);
        let rows = rows_of(options, row_bytes);
        for start in (0..batch.num_rows()).step_by(rows) {
            let piece = batch.slice(start, rows.min(batch.num_rows() - start));
            if !pieces.add(&piece, emit)? {
                return Ok(());
            }
        }
    }
}

fn rows_of(options: &ImportOptions, row_bytes: usize) -> usize {
    (options.chunk_bytes / row_bytes.max(1)).clamp(1, MAX_ROWS)
}

fn header_of(source: &ImportSource, options: &ImportOptions, schema: &Schema) -> Result<FileHeader> {
    let names = || schema.fields().iter().map(|field| field.name().as_str());
    let is_time =
        |field: &Field| matches!(field.data_type(), DataType::Timestamp(..) | DataType::Date32 | DataType::Date64);
    let has_times = |name: &str| schema.field_with_name(name).is_ok_and(is_time);
    if options.time_column.is_some() || has_time(options, names()) || !has_times(PANDAS_INDEX) {
        let header = FileHeader::new(source, options, names())?;
        let is_guess = options.time_column.is_none() && !has_times("");
        return header.without_time(source).filter(|_| is_guess).map_or(Ok(header), Err);
    }
    FileHeader::new(source, options, names().map(|name| if name == PANDAS_INDEX { "" } else { name }))
}

/// Makes pieces of batches.
struct Pieces<'a> {
    source: &'a ImportSource,
    options: &'a ImportOptions,
    table: &'a str,
    rules: TimeRules,
    header: Option<FileHeader>,
    /// Columns that the file has and its batches do not.
    left_out: Vec<ImportColumn>,
    times: TimeColumns,
    /// Rows before the next one.
    row: u64,
}

impl<'a> Pieces<'a> {
    fn new(source: &'a ImportSource, options: &'a ImportOptions, table: &'a str, known: &KnownTable) -> Self {
        let (rules, times) = (TimeRules::new(&known.types), TimeColumns::default());
        Self { source, options, table, rules, header: None, left_out: Vec::new(), times, row: 0 }
    }

    /// Hands over a batch; returns whether more are wanted.
    fn add(&mut self, batch: &RecordBatch, emit: &mut dyn FnMut(FileChunk) -> bool) -> Result<bool> {
        let is_first = self.row == 0;
        let header = match self.header.take() {
            Some(header) => header,
            None => header_of(self.source, self.options, &batch.schema())?,
        };
        let columns: Vec<&ArrayRef> = header.times.iter().map(|index| batch.column(*index)).collect();
        let times = self.times.read(self.options, &header, &columns);
        let mut times = times.map_err(|reason| self.source.bad(format!("column {:?}: {reason}", header.time_name)))?;
        for time in &mut times {
            *time = std::mem::replace(time, Ok(0)).and_then(|time| self.rules.fit(time));
        }
        let (offset, mut extent, mut refusals) = (self.row, Extent::default(), Vec::new());
        for time in &times {
            self.row += 1;
            match time {
                Ok(time) => extent.add_time(*time),
                Err(reason) => {
                    let (row, column) = (self.row, header.time_name.clone());
                    refusals.push(Refusal { row, column, reason: (*reason).clone() });
                }
            }
        }
        let good: BooleanArray = times.iter().map(|time| Some(time.is_ok())).collect();
        let times: TimestampNanosecondArray = times.into_iter().flatten().map(Some).collect();
        let mut chunk = FileChunk {
            first_row: offset + 1,
            position: self.source.position(),
            extent,
            refusals,
            shape: is_first.then(|| self.shape(&header, batch)),
            ..FileChunk::default()
        };
        if !times.is_empty() {
            let batch = if chunk.refusals.is_empty() { batch.clone() } else { filter_record_batch(batch, &good)? };
            let body =
                ImportBody::Rows { table: self.table.to_owned(), batch: self.with_time(&header, &batch, times)? };
            let options = self.options.write(self.source.format, self.source.key(self.options, offset));
            chunk.write = Some(ImportWrite { database: self.options.database.clone(), body, options });
        }
        self.header = Some(header);
        Ok(emit(chunk))
    }

    fn shape(&mut self, header: &FileHeader, batch: &RecordBatch) -> FileShape {
        let mut columns = std::mem::take(&mut self.left_out);
        let schema = batch.schema();
        let taken = header.roles.iter().zip(schema.fields()).map(|(role, field)| {
            let kind = match role {
                ColumnRole::Time => "time".to_owned(),
                ColumnRole::LeftOut => LEFT_OUT.to_owned(),
                ColumnRole::Value if self.options.tags.contains(field.name()) => "tag".to_owned(),
                ColumnRole::Value => field.data_type().to_string(),
            };
            ImportColumn { name: field.name().clone(), kind, decided_by: None }
        });
        columns.extend(taken);
        FileShape { columns, times: self.times.reader.as_ref().and_then(TimeReader::decided) }
    }

    /// Puts the time first, under its name in a table.
    fn with_time(
        &self,
        header: &FileHeader,
        batch: &RecordBatch,
        times: TimestampNanosecondArray,
    ) -> Result<RecordBatch> {
        let mut columns = vec![(TIME_COLUMN, Arc::new(times.with_timezone("UTC")) as ArrayRef)];
        let named = header.names.iter().zip(&header.roles).zip(batch.columns());
        let values = named.filter(|((_, role), _)| **role == ColumnRole::Value);
        columns.extend(values.map(|((name, _), array)| (name.as_str(), Arc::clone(array))));
        // A file says the width of its integers on purpose, and ClickBench's take a twentieth less processor time.
        let keep = [(INTEGER_WIDTH.to_owned(), KEEP.to_owned())].into();
        let batch = RecordBatch::try_from_iter(columns).and_then(|batch| {
            let schema = batch.schema().as_ref().clone().with_metadata(keep);
            batch.with_schema(Arc::new(schema))
        });
        batch.map_err(|error| self.source.bad(error.to_string()))
    }
}

/// Reads the columns that make the time.
#[derive(Default)]
struct TimeColumns {
    /// Of texts and numbers, once some have come.
    reader: Option<TimeReader>,
}

impl TimeColumns {
    /// Returns the time of each row in nanoseconds, or why it has none.
    fn read(
        &mut self,
        options: &ImportOptions,
        header: &FileHeader,
        columns: &[&ArrayRef],
    ) -> Result<Vec<Result<i64, String>>, String> {
        if let [array] = columns
            && let Some(times) = timestamps(array)?
        {
            return Ok(times);
        }
        if let ([array], Some(NumberForm::Epoch(unit))) = (columns, self.reader.as_ref().and_then(TimeReader::numbers))
            && array.data_type().is_integer()
        {
            let integers = cast(array, &DataType::Int64).map_err(unreadable)?;
            return Ok(scaled(array, integers.as_primitive::<Int64Type>(), unit.nanoseconds()));
        }
        let texts = columns.iter().map(|array| texts(array)).collect::<Result<Vec<_>, _>>()?;
        let text = |row: usize| match texts.as_slice() {
            [texts] => Cow::Borrowed(value(texts, row)),
            all => Cow::Owned(header.joined(all.iter().map(|texts| value(texts, row)))),
        };
        let rows = columns.first().map_or(0, |array| array.len());
        let reader = match &self.reader {
            Some(reader) => reader.clone(),
            None => {
                let deciding: Vec<_> = (0..rows.min(DECIDING_ROWS)).map(&text).collect();
                let reader = TimeReader::decide(options, header.has_years(), deciding.iter().map(AsRef::as_ref))?;
                self.reader = Some(reader.clone()).filter(|_| deciding.iter().any(|text| !text.is_empty()));
                reader
            }
        };
        Ok((0..rows).map(|row| reader.read(&text(row))).collect())
    }
}

/// Returns the text of a row, which is empty where there is none.
fn value(texts: &StringArray, row: usize) -> &str {
    if texts.is_null(row) { "" } else { texts.value(row) }
}

fn unreadable(error: arrow::error::ArrowError) -> String {
    format!("it cannot be read: {error}")
}

/// Reads a column whose type says that it has times; nothing of another one.
fn timestamps(array: &ArrayRef) -> Result<Option<Vec<Result<i64, String>>>, String> {
    let (integers, unit) = match array.data_type() {
        DataType::Timestamp(unit, _) => (cast(array, &DataType::Int64).map_err(unreadable)?, unit_ns(*unit)),
        DataType::Date64 => (cast(array, &DataType::Int64).map_err(unreadable)?, 1_000_000),
        DataType::Date32 => {
            let days = cast(array, &DataType::Int32).map_err(unreadable)?;
            (cast(&days, &DataType::Int64).map_err(unreadable)?, DAY_NS)
        }
        _ => return Ok(None),
    };
    Ok(Some(scaled(array, integers.as_primitive::<Int64Type>(), unit)))
}

/// Returns the values of a column that may be part of a time as texts.
fn texts(array: &ArrayRef) -> Result<StringArray, String> {
    let data_type = array.data_type();
    if !(is_text(data_type) || data_type.is_numeric() || data_type.is_temporal()) {
        return Err(format!("it is {data_type}, expected timestamps, numbers or text"));
    }
    Ok(cast(array, &DataType::Utf8).map_err(unreadable)?.as_string::<i32>().clone())
}

fn scaled(given: &ArrayRef, integers: &Int64Array, unit: i64) -> Vec<Result<i64, String>> {
    let read = |(row, value): (usize, Option<i64>)| match value.and_then(|value| value.checked_mul(unit)) {
        Some(time) => Ok(time),
        None if given.is_null(row) => Err("the time is missing".to_owned()),
        None => Err("the time is outside the range of 64-bit nanoseconds".to_owned()),
    };
    integers.iter().enumerate().map(read).collect()
}

fn unit_ns(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}
