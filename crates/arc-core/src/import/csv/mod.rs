//! CSV in pieces: names on the first line, then rows of typed values.
//!
//! The grammar is that of the crate `csv`; here is what a value means. The types of columns are
//! what the import or the table says, else the narrowest that all values of the file fit, which
//! takes a reading of its own.

mod column;
mod infer;
mod rows;

use std::{
    borrow::Cow,
    io::{BufReader, ErrorKind},
    sync::Arc,
};

use arrow::{
    array::{ArrayRef, RecordBatch, TimestampNanosecondArray},
    datatypes::DataType,
};
use csv::{ByteRecord, StringRecord, Trim};
use encoding_rs_io::DecodeReaderBytesBuilder;

use self::{
    column::{CellColumn, CellType, CsvCell},
    infer::infer,
    rows::RowBytes,
};
use super::{
    FileChunk, ImportBody, ImportColumn, ImportFormat, ImportOptions, ImportType, ImportWrite, KnownTable,
    header::{ColumnRole, FileHeader, has_time},
    report::{Extent, FileShape, LEFT_OUT, Refusal},
    source::ImportSource,
    time::{DECIDING_ROWS, MAX_TEXT_BYTES, TimeReader},
};
use crate::{
    Error, Result,
    ingest::TimeRules,
    model::{ColumnKind, TIME_COLUMN},
};

/// Most rows of a piece, however short they are.
const MAX_ROWS: usize = 1 << 16;
/// What may stand between values, unless it is said.
const DELIMITERS: [u8; 4] = *b",;\t|";
/// What UTF-16 begins with, if it says so.
const UTF16: [[u8; 2]; 2] = [[0xff, 0xfe], [0xfe, 0xff]];

type CsvReader = csv::Reader<RowBytes>;

/// Reads all of `source`, and hands over piece after piece until `emit` says to stop.
pub(super) fn read(
    source: &ImportSource,
    options: &ImportOptions,
    table: &str,
    known: &KnownTable,
    emit: &mut dyn FnMut(FileChunk) -> bool,
) -> Result<()> {
    let file = CsvFile::new(source, options)?;
    let time = file.time_reader()?;
    let mut types = CsvTypes::new(&file, known)?;
    let decided = if types.some_unknown(&file) { infer(&file, &time, &mut types.0)? } else { Vec::new() };
    let shape = file.shape(&types, decided, &time);
    let mut piece = CsvPiece::new(&file, table, types, time, TimeRules::new(&known.types));
    let mut shape = Some(shape);
    let (mut reader, mut record) = (file.open()?, ByteRecord::new());
    while file.next(&mut reader, &mut record)? {
        let start = record.position().map_or(0, csv::Position::byte);
        piece.add(&record, start, || file.line_of(&reader, &record))?;
        if piece.is_full(reader.position().byte()) && !emit(FileChunk { shape: shape.take(), ..piece.take()? }) {
            return Ok(());
        }
    }
    emit(FileChunk { shape, ..piece.take()? });
    Ok(())
}

fn open(source: &ImportSource, options: &ImportOptions, delimiter: u8, trim: Trim) -> Result<CsvReader> {
    let mut bytes = source.read()?;
    let head = bytes.fill_buf().map_err(|error| Error::io("read", &source.name, error))?;
    if UTF16.iter().any(|mark| head.starts_with(mark)) {
        bytes = Box::new(BufReader::new(DecodeReaderBytesBuilder::new().build(bytes)));
    }
    let mut bytes = RowBytes::new(bytes, options.longest_record());
    for line in 1..=options.skip_rows {
        bytes.skip_line().map_err(|error| match error.kind() {
            ErrorKind::InvalidData => source.bad(format!("line {line}: {error}")),
            _ => Error::io("read", &source.name, error),
        })?;
    }
    let mut builder = csv::ReaderBuilder::new();
    // Rows of another length are refused one by one, rather than with the file.
    Ok(builder.delimiter(delimiter).trim(trim).flexible(true).from_reader(bytes))
}

/// A file, and how it is laid out.
struct CsvFile<'a> {
    source: &'a ImportSource,
    options: &'a ImportOptions,
    delimiter: u8,
    /// Whether blanks around values are not part of them.
    is_spaced: bool,
    header: FileHeader,
}

impl<'a> CsvFile<'a> {
    fn new(source: &'a ImportSource, options: &'a ImportOptions) -> Result<Self> {
        let mut found: Option<((bool, usize), u8, StringRecord)> = None;
        let asked = options.delimiter.or(source.is_tabbed().then_some(b'\t'));
        for delimiter in asked.map_or(DELIMITERS.to_vec(), |delimiter| vec![delimiter]) {
            let mut reader = open(source, options, delimiter, Trim::None)?;
            let names = reader.headers();
            let names = names.map_err(|error| source.bad(format!("its first line has no names: {error}")))?.clone();
            let fit = (has_time(options, names.iter()), names.len());
            if found.as_ref().is_none_or(|(best, ..)| fit > *best) {
                found = Some((fit, delimiter, names));
            }
        }
        let (_, delimiter, names) = found.unwrap_or_default();
        // A blank before a name stands before values, too.
        let is_spaced = names.iter().skip(1).any(|name| name.starts_with(' '));
        let mut names = names.into_byte_record();
        if is_spaced {
            unquote(&mut names);
        }
        let names = StringRecord::from_byte_record_lossy(names);
        let header = FileHeader::new(source, options, names.iter())?;
        Ok(Self { source, options, delimiter, is_spaced, header })
    }

    /// Returns a reader of the rows.
    fn open(&self) -> Result<CsvReader> {
        let trim = if self.is_spaced { Trim::Fields } else { Trim::None };
        open(self.source, self.options, self.delimiter, trim)
    }

    /// Reads the next row; returns whether there is one.
    fn next(&self, reader: &mut CsvReader, record: &mut ByteRecord) -> Result<bool> {
        reader.get_mut().next_row();
        let after = reader.position().line();
        let is_there = reader.read_byte_record(record);
        let is_there = is_there.map_err(|error| self.source.bad(format!("from line {after} on: {error}")))?;
        if self.is_spaced && record.iter().any(|value| value.starts_with(b"\"")) {
            unquote(record);
        }
        Ok(is_there)
    }

    /// Returns the line that a row begins at: blank lines before it are not part of the row, and
    /// the reader counts them as if they were. A last row without a line feed may be one less.
    fn line_of(&self, reader: &CsvReader, record: &ByteRecord) -> u64 {
        let inner = record.as_slice().iter().filter(|byte| **byte == b'\n').count() as u64;
        let behind = reader.position().line().saturating_sub(inner + 1);
        self.options.skip_rows + record.position().map_or(0, csv::Position::line).max(behind)
    }

    /// Returns whether a row has as many values as there are columns. A delimiter behind the last
    /// one, of the names or of the row, makes no column.
    fn fits(&self, record: &ByteRecord) -> bool {
        let (found, expected) = (record.len(), self.header.names.len());
        found == expected
            || (found + 1 == expected && self.header.names.last().is_some_and(String::is_empty))
            || (found == expected + 1 && record.get(expected).is_some_and(<[u8]>::is_empty))
    }

    /// Returns the text that has the time of a row.
    fn time<'r>(&self, record: &'r ByteRecord) -> Result<Cow<'r, str>, String> {
        let part = |place: &usize| std::str::from_utf8(record.get(*place).unwrap_or_default());
        let text = match self.header.times.as_slice() {
            [place] => part(place).map(Cow::Borrowed),
            places => {
                let parts = places.iter().map(part).collect::<Result<Vec<_>, _>>();
                parts.map(|parts| Cow::Owned(self.header.joined(parts.into_iter())))
            }
        };
        text.map_err(|_| "the value is not UTF-8".to_owned())
    }

    /// Lets the first rows decide what times are.
    fn time_reader(&self) -> Result<TimeReader> {
        let mut texts = Vec::new();
        let (mut reader, mut record) = (self.open()?, ByteRecord::new());
        while texts.len() < DECIDING_ROWS && self.next(&mut reader, &mut record)? {
            if self.fits(&record) {
                texts.extend(self.time(&record).ok().filter(|text| text.len() <= MAX_TEXT_BYTES).map(Cow::into_owned));
            }
        }
        let texts = texts.iter().map(String::as_str);
        let decided = TimeReader::decide(self.options, self.header.has_years(), texts.clone());
        match self.header.without_time(self.source).filter(|_| self.options.time_column.is_none()) {
            Some(missing) => decided.ok().filter(|reader| reader.reads_most(texts)).ok_or(missing),
            None => decided.map_err(|reason| self.source.bad(format!("column {:?}: {reason}", self.header.time_name))),
        }
    }

    fn shape(&self, types: &CsvTypes, decided: Vec<Option<(u64, String)>>, time: &TimeReader) -> FileShape {
        let mut decided = decided.into_iter();
        let columns = self.header.names.iter().zip(&self.header.roles).zip(&types.0).map(|((name, role), cell)| {
            let decided_by = decided.next().flatten().filter(|_| *role == ColumnRole::Value);
            let kind = match (role, cell) {
                (ColumnRole::Time, _) => "time".to_owned(),
                (ColumnRole::LeftOut, _) => LEFT_OUT.to_owned(),
                (ColumnRole::Value, None) => "empty".to_owned(),
                (ColumnRole::Value, Some(cell)) => cell.kind(),
            };
            ImportColumn { name: name.clone(), kind, decided_by }
        });
        FileShape { columns: columns.collect(), times: time.decided() }
    }
}

/// Takes the quotes away that stand behind blanks, which the crate takes for part of a value.
fn unquote(record: &mut ByteRecord) {
    let mut unquoted = ByteRecord::with_capacity(record.as_slice().len(), record.len());
    for value in record.iter().map(<[u8]>::trim_ascii) {
        let inner = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
        let inner = inner.and_then(|inner| std::str::from_utf8(inner).ok()).map(|inner| inner.replace("\"\"", "\""));
        unquoted.push_field(inner.as_ref().map_or(value, |inner| inner.as_bytes()));
    }
    unquoted.set_position(record.position().cloned());
    *record = unquoted;
}

/// What the columns of a file are; none where that is to be found out.
struct CsvTypes(Vec<Option<CellType>>);

impl CsvTypes {
    fn new(file: &CsvFile<'_>, known: &KnownTable) -> Result<Self> {
        let (source, options) = (file.source, file.options);
        let of = |name: &String| -> Result<Option<CellType>> {
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
        let of = |(name, role): (&String, &ColumnRole)| if *role == ColumnRole::Value { of(name) } else { Ok(None) };
        let mut types = file.header.names.iter().zip(&file.header.roles).map(of).collect::<Result<Vec<_>>>()?;
        if file.delimiter != b',' {
            let floats = types.iter_mut().filter(|cell| **cell == Some(CellType::Float));
            floats.for_each(|cell| *cell = Some(CellType::DecimalComma { is_clear: false }));
        }
        Ok(Self(types))
    }

    fn some_unknown(&self, file: &CsvFile<'_>) -> bool {
        self.0.iter().zip(&file.header.roles).any(|(cell, role)| cell.is_none() && *role == ColumnRole::Value)
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

/// A column of the file, and the values for the next piece; none of one that is empty, left out, or has the time.
struct FileColumn<'a> {
    name: &'a str,
    values: Option<CellColumn>,
}

/// The rows that make the next piece.
struct CsvPiece<'a> {
    file: &'a CsvFile<'a>,
    table: &'a str,
    time: TimeReader,
    rules: TimeRules,
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
    fn new(file: &'a CsvFile<'a>, table: &'a str, types: CsvTypes, time: TimeReader, rules: TimeRules) -> Self {
        let columns = file.header.names.iter().zip(&file.header.roles).zip(types.0).map(|((name, role), cell)| {
            let cell = cell.filter(|_| *role == ColumnRole::Value);
            FileColumn { name, values: cell.map(CellColumn::new) }
        });
        Self {
            file,
            table,
            time,
            rules,
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
        self.rows >= MAX_ROWS || end.saturating_sub(self.start) >= self.file.options.chunk_bytes as u64
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
                let values = self.columns.iter_mut().filter_map(|column| column.values.as_mut());
                values.zip(cells).try_for_each(|(column, cell)| column.push(cell))?;
            }
        }
        Ok(())
    }

    /// Reads all values of a row, so that it is taken as a whole or not at all.
    fn cells<'r>(&self, record: &'r ByteRecord) -> Result<(i64, Vec<CsvCell<'r>>), (&'a str, String)> {
        if !self.file.fits(record) {
            let (found, expected) = (record.len(), self.columns.len());
            return Err(("", format!("the row has {found} values, expected {expected}")));
        }
        let time = self.file.time(record).and_then(|text| self.rules.fit(self.time.read(&text)?));
        let time = time.map_err(|reason| (self.file.header.time_name.as_str(), reason))?;
        let mut cells = Vec::with_capacity(record.len());
        for (text, column) in record.iter().zip(&self.columns) {
            let Some(values) = &column.values else { continue };
            let text = std::str::from_utf8(text).map_err(|_| (column.name, "the value is not UTF-8".to_owned()))?;
            cells.push(match self.file.options.nulls.iter().any(|null| null == text) {
                true => CsvCell::Null,
                false => values.read(text).map_err(|reason| (column.name, reason))?,
            });
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
            if let Some(values) = &mut column.values {
                columns.push((column.name, values.finish()?));
            }
        }
        let chunk = FileChunk {
            first_row: self.first_row,
            position: self.file.source.position(),
            extent: std::mem::take(&mut self.extent),
            refusals: std::mem::take(&mut self.refusals),
            ..FileChunk::default()
        };
        self.rows = 0;
        if is_empty {
            return Ok(chunk);
        }
        let body = ImportBody::Rows { table: self.table.to_owned(), batch: RecordBatch::try_from_iter(columns)? };
        let CsvFile { source, options, .. } = self.file;
        let write = options.write(ImportFormat::Csv, source.key(options, self.start));
        let write = ImportWrite { database: options.database.clone(), body, options: write };
        Ok(FileChunk { write: Some(write), ..chunk })
    }
}
