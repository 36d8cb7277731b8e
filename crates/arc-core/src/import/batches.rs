//! Parquet and Arrow files in pieces: their record batches, cut to size, with the time as a table
//! has it.
//!
//! Rows without a time that can be stored are refused one by one; whatever else does not fit a
//! table is found by the engine, and refuses the piece.

use std::{
    io::{BufRead, Read},
    sync::Arc,
};

use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, TimestampNanosecondArray},
    compute::{cast, filter_record_batch},
    datatypes::{DataType, Int64Type, TimeUnit},
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::{
    FileChunk, ImportBody, ImportOptions, ImportWrite,
    report::{Extent, Refusal},
    second_time,
    source::ImportSource,
    time::TimeReader,
};
use crate::{
    Precision, Result,
    ingest::{ArrowReader, FileStream, needs_footer},
    model::{TIME_COLUMN, check_type, row_bytes},
};

/// Most rows of a piece.
const MAX_ROWS: usize = 1 << 16;
const DAY_NS: i64 = 86_400_000_000_000;

/// Reads a Parquet file, and hands over piece after piece until `emit` says to stop.
pub(super) fn read_parquet(
    source: &ImportSource,
    options: &ImportOptions,
    table: &str,
    emit: &mut dyn FnMut(FileChunk) -> bool,
) -> Result<()> {
    let not_parquet = |error: parquet::errors::ParquetError| source.bad(format!("it is no good Parquet file: {error}"));
    let builder = ParquetRecordBatchReaderBuilder::try_new(source.seekable()?).map_err(not_parquet)?;
    // A file says so in a few bytes, and readers make room for the rows of a batch.
    let fields = builder.schema().fields();
    let wide = fields.iter().try_for_each(|field| check_type(field.name(), field.data_type()));
    wide.map_err(|reason| source.bad(reason))?;
    let file = builder.metadata();
    let bytes: i64 = file.row_groups().iter().map(parquet::file::metadata::RowGroupMetaData::total_byte_size).sum();
    let rows = usize::try_from(file.file_metadata().num_rows()).unwrap_or(0).max(1);
    // Repeated values and nulls take next to nothing in the file, and their bytes in memory.
    let row_bytes =
        row_bytes(fields.iter().map(|field| field.data_type())).max(usize::try_from(bytes).unwrap_or(0) / rows);
    let reader = builder.with_batch_size(rows_of(options, row_bytes)).build().map_err(not_parquet)?;
    let mut pieces = Pieces::new(source, options, table);
    for batch in reader {
        let batch = batch.map_err(|error| source.bad(format!("after row {}: {error}", pieces.row)))?;
        if !pieces.add(&batch, emit)? {
            break;
        }
    }
    Ok(())
}

/// Reads an Arrow file, in the same way.
pub(super) fn read_arrow(
    source: &ImportSource,
    options: &ImportOptions,
    table: &str,
    emit: &mut dyn FnMut(FileChunk) -> bool,
) -> Result<()> {
    let mut bytes = source.read()?;
    let head = bytes.fill_buf().map_err(|error| source.bad(format!("cannot read: {error}")))?;
    let needs_footer = needs_footer(head);
    let mut bytes: Box<dyn Read> = Box::new(bytes);
    if needs_footer {
        bytes = Box::new(FileStream::new(source.seekable()?).map_err(|reason| source.bad(reason))?);
    }
    let mut reader = ArrowReader::new(bytes);
    let mut pieces = Pieces::new(source, options, table);
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

/// Makes pieces of batches.
struct Pieces<'a> {
    source: &'a ImportSource,
    options: &'a ImportOptions,
    table: &'a str,
    time: TimeColumn,
    /// Rows before the next one.
    row: u64,
}

impl<'a> Pieces<'a> {
    fn new(source: &'a ImportSource, options: &'a ImportOptions, table: &'a str) -> Self {
        Self { source, options, table, time: TimeColumn { unit: options.precision }, row: 0 }
    }

    /// Hands over a batch; returns whether more are wanted.
    fn add(&mut self, batch: &RecordBatch, emit: &mut dyn FnMut(FileChunk) -> bool) -> Result<bool> {
        let name = self.options.time_column.as_str();
        let time = batch.column_by_name(name).ok_or_else(|| {
            let names: Vec<String> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
            self.source.bad(format!("there is no column {name:?} for the time; there are {}", names.join(", ")))
        })?;
        let times = self.time.read(time).map_err(|reason| self.source.bad(format!("column {name:?} {reason}")))?;
        let (offset, mut extent, mut refusals) = (self.row, Extent::default(), Vec::new());
        for time in &times {
            self.row += 1;
            match time {
                Ok(time) => extent.add_time(*time),
                Err(reason) => {
                    refusals.push(Refusal { row: self.row, column: name.to_owned(), reason: (*reason).clone() });
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
            ..FileChunk::default()
        };
        if !times.is_empty() {
            let batch = if chunk.refusals.is_empty() { batch.clone() } else { filter_record_batch(batch, &good)? };
            let body = ImportBody::Rows { table: self.table.to_owned(), batch: self.with_time(&batch, times)? };
            let options = self.options.write(self.source.format, self.source.key(self.options, offset));
            chunk.write = Some(ImportWrite { database: self.options.database.clone(), body, options });
        }
        Ok(emit(chunk))
    }

    /// Puts the time first, under its name in a table.
    fn with_time(&self, batch: &RecordBatch, times: TimestampNanosecondArray) -> Result<RecordBatch> {
        let mut columns: Vec<(String, ArrayRef)> =
            vec![(TIME_COLUMN.to_owned(), Arc::new(times.with_timezone("UTC")) as ArrayRef)];
        for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
            if *field.name() != self.options.time_column {
                if field.name() == TIME_COLUMN {
                    return Err(second_time(self.source, self.options));
                }
                columns.push((field.name().clone(), Arc::clone(array)));
            }
        }
        RecordBatch::try_from_iter(columns).map_err(|error| self.source.bad(error.to_string()))
    }
}

/// Reads the time column.
struct TimeColumn {
    /// Of integers; guessed by the first one if the import does not say it.
    unit: Option<Precision>,
}

impl TimeColumn {
    /// Returns the time of each row in nanoseconds, or why it has none.
    fn read(&mut self, array: &ArrayRef) -> Result<Vec<Result<i64, String>>, String> {
        let failed = |error: arrow::error::ArrowError| format!("cannot be read: {error}");
        let (integers, unit) = match array.data_type() {
            DataType::Timestamp(unit, _) => (cast(array, &DataType::Int64).map_err(failed)?, unit_ns(*unit)),
            DataType::Date64 => (cast(array, &DataType::Int64).map_err(failed)?, 1_000_000),
            DataType::Date32 => {
                let days = cast(array, &DataType::Int32).map_err(failed)?;
                (cast(&days, &DataType::Int64).map_err(failed)?, DAY_NS)
            }
            other if other.is_integer() => {
                let integers = cast(array, &DataType::Int64).map_err(failed)?;
                let first = integers.as_primitive::<Int64Type>().iter().flatten().next();
                let unit = *self.unit.get_or_insert(Precision::of_magnitude(first.unwrap_or(0)));
                (integers, unit.nanoseconds())
            }
            other if is_text(other) => {
                let text = cast(array, &DataType::Utf8).map_err(failed)?;
                let mut reader = TimeReader::new(self.unit);
                let read = text.as_string::<i32>().iter().map(|text| reader.read(text.unwrap_or_default()));
                let times = read.collect();
                self.unit = reader.unit();
                return Ok(times);
            }
            other => return Err(format!("is {other}, expected timestamps, integers or text")),
        };
        Ok(scaled(array, integers.as_primitive::<Int64Type>(), unit))
    }
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
