//! CSV in pieces: names on the first line, then rows of typed values.
//!
//! The grammar is that of the crate `csv`; here is what a value means. The types of columns are
//! what the import or the table says, else the narrowest that all values of the file fit, which
//! takes a reading of its own.

mod column;
mod infer;
mod rows;

use std::{collections::HashSet, io::ErrorKind, sync::Arc};

use arrow::{
    array::{ArrayRef, RecordBatch, TimestampNanosecondArray},
    datatypes::DataType,
};
use csv::ByteRecord;

use self::{
    column::{CellColumn, CellType, CsvCell},
    infer::infer,
    rows::RowBytes,
};
use super::{
    FileChunk, ImportBody, ImportFormat, ImportOptions, ImportType, ImportWrite, KnownTable,
    report::{Extent, Refusal},
    second_time,
    source::ImportSource,
    time::TimeReader,
};
use crate::{
    Error, Result,
    ingest::MAX_COLUMNS,
    model::{ColumnKind, TIME_COLUMN},
};

/// Most rows of a piece, however short they are.
const MAX_ROWS: usize = 1 << 16;

type CsvReader = csv::Reader<RowBytes>;

/// Reads all of `source`, and hands over piece after piece until `emit` says to stop.
pub(super) fn read(
    source: &ImportSource,
    options: &ImportOptions,
    table: &str,
    known: &KnownTable,
    emit: &mut dyn FnMut(FileChunk) -> bool,
) -> Result<()> {
    let mut reader = open(source, options)?;
    let names = names(source, options, &mut reader)?;
    let mut types = CsvTypes::new(source, options, known, &names)?;
    if types.some_unknown() {
        infer(source, &mut open(source, options)?, &mut types.0, options)?;
    }
    let mut piece = CsvPiece::new(source, options, table, &names, types);
    let mut record = ByteRecord::new();
    while next(source, &mut reader, &mut record)? {
        let start = record.position().map_or(0, csv::Position::byte);
        piece.add(&record, start, || options.skip_rows + line_of(&record, reader.position().line()))?;
        if piece.is_full(reader.position().byte()) && !emit(piece.take()?) {
            return Ok(());
        }
    }
    emit(piece.take()?);
    Ok(())
}

/// Returns the line that a row begins at, given the one after it: blank lines before it are not
/// part of the row, and the reader counts them as if they were. A last row without a line feed may
/// be one less.
fn line_of(record: &ByteRecord, behind: u64) -> u64 {
    let inner = record.as_slice().iter().filter(|byte| **byte == b'\n').count() as u64;
    record.position().map_or(0, csv::Position::line).max(behind.saturating_sub(inner + 1))
}

fn open(source: &ImportSource, options: &ImportOptions) -> Result<CsvReader> {
    let mut bytes = RowBytes::new(source.read()?, options.longest_record());
    for line in 1..=options.skip_rows {
        bytes.skip_line().map_err(|error| match error.kind() {
            ErrorKind::InvalidData => source.bad(format!("line {line}: {error}")),
            _ => Error::io("read", &source.name, error),
        })?;
    }
    let mut builder = csv::ReaderBuilder::new();
    // Rows of another length are refused one by one, rather than with the file.
    Ok(builder.delimiter(options.delimiter).flexible(true).from_reader(bytes))
}

/// Reads the next row; returns whether there is one.
fn next(source: &ImportSource, reader: &mut CsvReader, record: &mut ByteRecord) -> Result<bool> {
    reader.get_mut().next_row();
    let after = reader.position().line();
    reader.read_byte_record(record).map_err(|error| source.bad(format!("from line {after} on: {error}")))
}

/// Returns the names of the columns; exactly one is that of the time.
fn names(source: &ImportSource, options: &ImportOptions, reader: &mut CsvReader) -> Result<Vec<String>> {
    let header = reader.headers().map_err(|error| source.bad(format!("its first line has no names: {error}")))?;
    let names: Vec<String> = header.iter().map(str::to_owned).collect();
    if names.len() > MAX_COLUMNS {
        return Err(source.bad(format!("it has {} columns, and a table up to {MAX_COLUMNS}", names.len())));
    }
    let mut seen = HashSet::new();
    if let Some(name) = names.iter().find(|name| !seen.insert(name.as_str())) {
        return Err(source.bad(format!("column {name:?} comes twice")));
    }
    if !names.contains(&options.time_column) {
        let shown = names.join(", ");
        let time = &options.time_column;
        return Err(source.bad(format!("there is no column {time:?} for the time; there are {shown}")));
    }
    if options.time_column != TIME_COLUMN && names.iter().any(|name| name == TIME_COLUMN) {
        return Err(second_time(source, options));
    }
    let wanted = options.tags.iter().chain(options.types.iter().map(|(name, _)| name));
    match wanted.filter(|name| !names.contains(name)).min() {
        Some(name) => Err(source.bad(format!("there is no column {name:?}"))),
        None => Ok(names),
    }
}

/// What the columns of a file are; none where that is to be found out.
struct CsvTypes(Vec<Option<CellType>>);

impl CsvTypes {
    fn new(source: &ImportSource, options: &ImportOptions, known: &KnownTable, names: &[String]) -> Result<Self> {
        let of = |name: &String| -> Result<Option<CellType>> {
            if *name == options.time_column {
                return Ok(Some(CellType::Time));
            }
            let column = known.columns.iter().find(|column| column.name.as_ref() == name);
            if options.tags.contains(name) || column.is_some_and(|column| column.kind == ColumnKind::Tag) {
                return Ok(Some(CellType::Tag));
            }
            if let Some((_, given)) = options.types.iter().find(|(other, _)| other == name) {
                return Ok(Some((*given).into()));
            }
            let of_table = column.map(|column| &column.data_type);
            if of_table.is_none_or(|of_table| *of_table == DataType::Utf8) && known.types.is_string(name) {
                return Ok(Some(CellType::Text));
            }
            // What the values are decides what the column becomes.
            let of_table = of_table.filter(|of_table| !known.types.lets_change(of_table)).map(CellType::of);
            of_table.transpose().map_err(|reason| source.bad(format!("column {name:?} {reason}")))
        };
        names.iter().map(of).collect::<Result<_>>().map(Self)
    }

    fn some_unknown(&self) -> bool {
        self.0.contains(&None)
    }
}

impl From<ImportType> for CellType {
    fn from(given: ImportType) -> Self {
        match given {
            ImportType::Float => Self::Float,
            ImportType::Integer => Self::Integer,
            ImportType::Unsigned => Self::Unsigned,
            ImportType::Boolean => Self::Boolean,
            ImportType::String => Self::Text,
        }
    }
}

/// A column of the file.
struct FileColumn<'a> {
    name: &'a str,
    cells: Cells,
}

enum Cells {
    Time,
    /// Empty in all rows of the file.
    None,
    Values(Box<CellColumn>),
}

/// The rows that make the next piece.
struct CsvPiece<'a> {
    source: &'a ImportSource,
    options: &'a ImportOptions,
    table: &'a str,
    time: TimeReader,
    columns: Vec<FileColumn<'a>>,
    times: Vec<i64>,
    /// Where it begins in the file, decompressed.
    start: u64,
    rows: usize,
    first_row: u64,
    extent: Extent,
    refusals: Vec<Refusal>,
}

impl<'a> CsvPiece<'a> {
    fn new(
        source: &'a ImportSource,
        options: &'a ImportOptions,
        table: &'a str,
        names: &'a [String],
        types: CsvTypes,
    ) -> Self {
        let columns = names.iter().zip(types.0).map(|(name, cell)| {
            let cells = match cell {
                Some(CellType::Time) => Cells::Time,
                Some(cell) => Cells::Values(Box::new(CellColumn::new(cell))),
                None => Cells::None,
            };
            FileColumn { name, cells }
        });
        Self {
            source,
            options,
            table,
            time: TimeReader::new(options.precision),
            columns: columns.collect(),
            times: Vec::new(),
            start: 0,
            rows: 0,
            first_row: 0,
            extent: Extent::default(),
            refusals: Vec::new(),
        }
    }

    fn is_full(&self, end: u64) -> bool {
        self.rows >= MAX_ROWS || end.saturating_sub(self.start) >= self.options.chunk_bytes as u64
    }

    /// Adds a row, which lies at byte `start` of the file, or notes why it is refused.
    fn add(&mut self, record: &ByteRecord, start: u64, line: impl Fn() -> u64) -> Result<()> {
        if self.rows == 0 {
            (self.first_row, self.start) = (line(), start);
        }
        self.rows += 1;
        match self.cells(record) {
            Err((column, reason)) => self.refusals.push(Refusal { row: line(), column: column.to_owned(), reason }),
            Ok((time, cells)) => {
                self.times.push(time);
                self.extent.add_time(time);
                let values = self.columns.iter_mut().filter_map(|column| match &mut column.cells {
                    Cells::Values(values) => Some(values),
                    Cells::Time | Cells::None => None,
                });
                values.zip(cells).try_for_each(|(column, cell)| column.push(cell))?;
            }
        }
        Ok(())
    }

    /// Reads all values of a row, so that it is taken as a whole or not at all.
    fn cells<'r>(&mut self, record: &'r ByteRecord) -> Result<(i64, Vec<CsvCell<'r>>), (&'a str, String)> {
        if record.len() != self.columns.len() {
            let (found, expected) = (record.len(), self.columns.len());
            return Err(("", format!("the row has {found} values, expected {expected}")));
        }
        let (mut time, mut cells) = (0, Vec::with_capacity(record.len()));
        for (text, column) in record.iter().zip(&self.columns) {
            let text = std::str::from_utf8(text).map_err(|_| (column.name, "the value is not UTF-8".to_owned()))?;
            match &column.cells {
                Cells::Time => time = self.time.read(text).map_err(|reason| (column.name, reason))?,
                Cells::None => {}
                Cells::Values(_) if self.options.nulls.iter().any(|null| null == text) => cells.push(CsvCell::Null),
                Cells::Values(values) => cells.push(values.read(text).map_err(|reason| (column.name, reason))?),
            }
        }
        Ok((time, cells))
    }

    /// Returns the rows so far as a piece, and begins the next one.
    fn take(&mut self) -> Result<FileChunk> {
        let times = std::mem::take(&mut self.times);
        let is_empty = times.is_empty();
        let mut columns: Vec<(&str, ArrayRef)> =
            vec![(TIME_COLUMN, Arc::new(TimestampNanosecondArray::from(times).with_timezone("UTC")))];
        for column in &mut self.columns {
            if let Cells::Values(values) = &mut column.cells {
                columns.push((column.name, values.finish()?));
            }
        }
        let chunk = FileChunk {
            first_row: self.first_row,
            position: self.source.position(),
            extent: std::mem::take(&mut self.extent),
            refusals: std::mem::take(&mut self.refusals),
            ..FileChunk::default()
        };
        self.rows = 0;
        if is_empty {
            return Ok(chunk);
        }
        let body = ImportBody::Rows { table: self.table.to_owned(), batch: RecordBatch::try_from_iter(columns)? };
        let options = self.options.write(ImportFormat::Csv, self.source.key(self.options, self.start));
        let write = ImportWrite { database: self.options.database.clone(), body, options };
        Ok(FileChunk { write: Some(write), ..chunk })
    }
}
