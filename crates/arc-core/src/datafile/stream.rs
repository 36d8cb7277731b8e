//! Reads a data file piece by piece: its bytes for their checksum, its rows batch by batch, in
//! bounded memory.
//!
//! For those who check or rewrite files; queries read through DataFusion instead. Never holds a
//! whole file, never allocates more than the file has bytes.

use std::{
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow::{
    array::{AsArray, RecordBatch, RecordBatchReader, TimestampNanosecondArray},
    compute::{CastOptions, cast_with_options},
    datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimestampNanosecondType},
    error::ArrowError,
};
use bytes::{Buf as _, Bytes, buf::Reader};
use parquet::{
    arrow::{
        ProjectionMask,
        arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, RowGroups as _},
        parquet_to_arrow_field_levels,
    },
    basic::Encoding,
    errors::ParquetError,
    file::{
        metadata::{ColumnChunkMetaData, PageIndexPolicy},
        reader::{ChunkReader, Length},
    },
};

use super::{DataFile, HourlyBlock, blocks::WHOLE_BYTES, hourly, pack::open_data_file, pages::SharedRowGroups};
use crate::{
    Error, FileTimeUnit, Result,
    sync::Mutex,
    vfs::{Vfs, VfsFile},
};

/// Bytes read at a time for the checksum.
const PIECE_BYTES: usize = 1 << 20;

/// Times that are read at once.
const TIMES_AT_ONCE: usize = 8192;

/// A data file of which the footer has been read.
pub(crate) struct OpenDataFile {
    path: PathBuf,
    chunks: Arc<FileChunks>,
    footer: ArrowReaderMetadata,
}

impl OpenDataFile {
    /// Opens a data file as Parquet.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if it cannot be read, [`Error::Parquet`] if it is no Parquet file.
    pub(crate) fn open(vfs: &dyn Vfs, path: &Path) -> Result<Self> {
        Self::of(path, FileChunks::open(vfs, path)?)
    }

    fn of(path: &Path, chunks: FileChunks) -> Result<Self> {
        let footer = ArrowReaderMetadata::load(&chunks, reader_options());
        let footer = footer.map_err(|source| read_error(path, &chunks.refused, source))?;
        Ok(Self { path: path.to_owned(), chunks: Arc::new(chunks), footer })
    }

    /// Returns its columns, with the time in nanoseconds, as rows have it.
    pub(crate) fn schema(&self) -> SchemaRef {
        FileTimeUnit::Nanosecond.in_schema(self.footer.schema())
    }

    /// Returns the unit in which the file has its times.
    pub(crate) fn time_unit(&self) -> FileTimeUnit {
        let first = self.footer.schema().fields().first();
        first.and_then(|time| FileTimeUnit::of_type(time.data_type())).unwrap_or_default()
    }

    /// Returns what the file says of itself.
    pub(crate) fn footer(&self) -> &ArrowReaderMetadata {
        &self.footer
    }

    /// Returns the aggregates by hour that are said to be in some bytes of the file, and to be of so
    /// many cells.
    ///
    /// # Errors
    ///
    /// As [`OpenDataFile::open`].
    pub(super) fn hourly(&self, block: HourlyBlock, cells: usize) -> Result<RecordBatch> {
        let bytes = usize::try_from(block.bytes).unwrap_or(usize::MAX);
        let read = || hourly::decode(self.chunks.get_bytes(block.offset, bytes)?, cells);
        read().map_err(|source| read_error(&self.path, &self.chunks.refused, source))
    }

    /// Has columns be of the types of `schema` from now on, which differs from the file's own in
    /// those that it may be read as.
    fn read_as(&mut self, schema: &SchemaRef) -> Result<()> {
        if schema != self.footer.schema() {
            let options = reader_options().with_schema(Arc::clone(schema));
            let footer = ArrowReaderMetadata::try_new(Arc::clone(self.footer.metadata()), options);
            self.footer = footer.map_err(|source| read_error(&self.path, &self.chunks.refused, source))?;
        }
        Ok(())
    }

    /// Returns the rows of some columns, in batches of at most `batch_rows` rows.
    ///
    /// # Errors
    ///
    /// As [`OpenDataFile::open`].
    pub(crate) fn rows(&self, columns: ProjectionMask, batch_rows: usize) -> Result<DataFileRows> {
        let rows = || {
            let hint = Some(self.footer.schema().fields());
            let levels = parquet_to_arrow_field_levels(self.footer.parquet_schema(), columns, hint)?;
            let groups = SharedRowGroups::new(Arc::clone(&self.chunks), Arc::clone(self.footer.metadata()));
            // Room for a whole batch is made for each column.
            let batch_rows = batch_rows.min(groups.num_rows()).max(1);
            let reader = ParquetRecordBatchReader::try_new_with_row_groups(&levels, &groups, batch_rows, None)?;
            let schema = FileTimeUnit::Nanosecond.in_schema(&reader.schema());
            Ok(DataFileRows { is_scaled: schema != reader.schema(), schema, reader })
        };
        rows().map_err(|source| read_error(&self.path, &self.chunks.refused, source))
    }
}

/// Some columns of a data file, batch by batch.
pub(crate) struct DataFileRows {
    /// With the time in nanoseconds.
    schema: SchemaRef,
    /// Whether the file has it in another unit.
    is_scaled: bool,
    reader: ParquetRecordBatchReader,
}

impl DataFileRows {
    /// Returns the schema of all batches.
    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Iterator for DataFileRows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.reader.next()?.and_then(|batch| {
            if !self.is_scaled {
                return Ok(batch);
            }
            let (_, mut columns, _) = batch.into_parts();
            if let (Some(time), Some(field)) = (columns.first_mut(), self.schema.fields().first()) {
                let checked = CastOptions { safe: false, ..CastOptions::default() };
                *time = cast_with_options(time, field.data_type(), &checked)?;
            }
            RecordBatch::try_new(Arc::clone(&self.schema), columns)
        }))
    }
}

/// Hands the first `most_bytes` of a file to `take`, in order and in pieces; returns their number
/// and crc32c.
///
/// # Errors
///
/// [`Error::Io`] if the file cannot be read; what `take` returns.
pub(crate) fn read_pieces(
    vfs: &dyn Vfs,
    path: &Path,
    most_bytes: u64,
    mut take: impl FnMut(&[u8], u64) -> Result<()>,
) -> Result<(u64, u32)> {
    let file = open_data_file(vfs, path).map_err(|e| Error::io("open", path, e))?;
    let (mut offset, mut crc) = (0, 0);
    let len = file.len().map_err(|e| Error::io("read", path, e))?;
    // Of a small file, the room would cost more than the bytes.
    let piece_bytes = usize::try_from(len).unwrap_or(usize::MAX).clamp(1, PIECE_BYTES);
    let mut piece = vec![0; piece_bytes];
    loop {
        let wanted = usize::try_from(most_bytes.saturating_sub(offset)).unwrap_or(usize::MAX).min(piece_bytes);
        piece.truncate(wanted);
        let read = file.read_at(&mut piece, offset).map_err(|e| Error::io("read", path, e))?;
        let found = piece.get(..read).unwrap_or_default();
        if found.is_empty() {
            return Ok((offset, crc));
        }
        take(found, offset)?;
        crc = crc32c::crc32c_append(crc, found);
        offset += read as u64;
    }
}

/// The rows of one data file, in its order.
pub(crate) struct DataFileStream {
    path: PathBuf,
    expected_rows: u64,
    seen_rows: u64,
    schema: SchemaRef,
    reader: DataFileRows,
    refused: Refused,
}

/// What the file system refused, on its way past the Parquet reader, which keeps only the text of
/// an error.
type Refused = Arc<Mutex<Option<io::Error>>>;

/// A data file whose bytes are what the manifest says, and whose footer is read.
pub(crate) struct CheckedDataFile {
    expected_rows: u64,
    file: OpenDataFile,
}

impl CheckedDataFile {
    /// Opens a data file and reads all of its bytes for their checksum.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be read; [`Error::Corrupt`] if its size or checksum is not
    /// what `data_file` says; [`Error::Parquet`] if it matches and yet is no Parquet file.
    pub(crate) fn open(vfs: &dyn Vfs, root: &Path, data_file: &DataFile) -> Result<Self> {
        let path = root.join(&data_file.path);
        let chunks = if data_file.bytes <= WHOLE_BYTES {
            FileChunks::in_memory(checked_bytes(vfs, &path, data_file)?)
        } else {
            check_bytes(vfs, &path, data_file)?;
            FileChunks::open(vfs, &path)?
        };
        Ok(Self { expected_rows: data_file.rows, file: OpenDataFile::of(&path, chunks)? })
    }

    /// Returns whether all texts of a column are in small dictionaries, so that it can be had as
    /// their dictionaries.
    pub(crate) fn has_dictionary(&self, column: &str) -> bool {
        let Ok(index) = self.file.footer.schema().index_of(column) else { return false };
        // A column of numbers, which its table has as text by now, may be in dictionaries as well.
        if *self.file.footer.schema().field(index).data_type() != DataType::Utf8 {
            return false;
        }
        self.file.footer.metadata().row_groups().iter().all(|row_group| {
            // Data files have one leaf for each column of text, but a library's nested types would
            // have more.
            row_group.columns().len() == self.file.footer.schema().fields().len()
                && row_group.columns().get(index).is_some_and(is_in_small_dictionary)
        })
    }

    /// Returns the times of its rows, in nanoseconds.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] and [`Error::Parquet`] as [`open`](Self::open).
    pub(crate) fn times(self) -> Result<impl Iterator<Item = Result<TimestampNanosecondArray>>> {
        let time = ProjectionMask::roots(self.file.footer.parquet_schema(), [0]);
        let batches = self.file.rows(time, TIMES_AT_ONCE)?;
        Ok(batches.map(|batch| {
            let batch = batch?;
            let times = batch.columns().first().and_then(|time| time.as_primitive_opt::<TimestampNanosecondType>());
            times.cloned().ok_or_else(|| Error::internal("a data file does not begin with a time"))
        }))
    }

    /// Returns its rows, in batches of `batch_rows`. Columns of text are dictionaries in
    /// dictionaries where `schema` says so.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] and [`Error::Parquet`] as [`open`](Self::open).
    pub(crate) fn stream(self, batch_rows: usize, schema: &Schema) -> Result<DataFileStream> {
        let Self { expected_rows, mut file } = self;
        let wanted = |field: &FieldRef| schema.field_with_name(field.name()).ok().map(Field::data_type);
        let fields = file.footer.schema().fields().iter().map(|field| match wanted(field) {
            Some(wanted) if field.data_type() == &DataType::Utf8 && *wanted == text_dictionary() => {
                Arc::new(field.as_ref().clone().with_data_type(text_dictionary()))
            }
            _ => Arc::clone(field),
        });
        let metadata = file.footer.schema().metadata().clone();
        file.read_as(&Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), metadata)))?;
        let reader = file.rows(ProjectionMask::all(), batch_rows)?;
        let (schema, refused) = (reader.schema(), Refused::clone(&file.chunks.refused));
        Ok(DataFileStream { path: file.path, expected_rows, seen_rows: 0, schema, reader, refused })
    }
}

/// The type of texts that are dictionaries in a dictionary.
pub(crate) fn text_dictionary() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// Bytes of a dictionary page, as they are in the file, up to which its texts are few.
const SMALL_DICTIONARY_BYTES: i64 = 64 << 10;

fn is_in_small_dictionary(chunk: &ColumnChunkMetaData) -> bool {
    let is_small = |start: i64| chunk.data_page_offset() - start <= SMALL_DICTIONARY_BYTES;
    // Levels are in RLE, a dictionary page is PLAIN.
    let dictionaries = [Encoding::RLE_DICTIONARY, Encoding::PLAIN_DICTIONARY, Encoding::RLE, Encoding::PLAIN];
    chunk.dictionary_page_offset().is_some_and(is_small)
        && chunk.encodings().all(|encoding| dictionaries.contains(&encoding))
}

impl DataFileStream {
    /// Returns the schema of all batches.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn check_rows(&self) -> Result<()> {
        if self.seen_rows == self.expected_rows {
            return Ok(());
        }
        let reason = format!("it has {} rows, the manifest says {}", self.seen_rows, self.expected_rows);
        Err(Error::corrupt(&self.path, 0, reason))
    }
}

impl Iterator for DataFileStream {
    type Item = Result<RecordBatch>;

    /// Fails at the end if there were not as many rows as the manifest says.
    fn next(&mut self) -> Option<Self::Item> {
        match self.reader.next() {
            Some(Ok(batch)) => {
                self.seen_rows += batch.num_rows() as u64;
                Some(Ok(batch))
            }
            Some(Err(error)) => {
                let error = ParquetError::ArrowError(error.to_string());
                Some(Err(read_error(&self.path, &self.refused, error)))
            }
            None => self.check_rows().err().map(Err),
        }
    }
}

/// Rows are read from the first to the last, so of the page index only the dictionaries of pages
/// are of use.
fn reader_options() -> ArrowReaderOptions {
    ArrowReaderOptions::new()
        .with_offset_index_policy(PageIndexPolicy::Optional)
        .with_column_index_policy(PageIndexPolicy::Skip)
}

/// A rewrite must not turn damaged bytes into a sound file: all of them are read before the first
/// row is decoded.
fn check_bytes(vfs: &dyn Vfs, path: &Path, data_file: &DataFile) -> Result<()> {
    let (bytes, crc32c) = read_pieces(vfs, path, u64::MAX, |_, _| Ok(()))?;
    compare_bytes(path, data_file, bytes, crc32c)
}

/// Returns all bytes of a small file, which is read once.
fn checked_bytes(vfs: &dyn Vfs, path: &Path, data_file: &DataFile) -> Result<Bytes> {
    let mut all = Vec::with_capacity(usize::try_from(data_file.bytes).unwrap_or(0));
    let (bytes, crc32c) = read_pieces(vfs, path, data_file.bytes + 1, |piece, _| {
        all.extend_from_slice(piece);
        Ok(())
    })?;
    compare_bytes(path, data_file, bytes, crc32c)?;
    Ok(all.into())
}

/// Compares size and checksum of a file with what the manifest says.
///
/// # Errors
///
/// [`Error::Corrupt`] if they differ.
pub(crate) fn compare_bytes(path: &Path, data_file: &DataFile, bytes: u64, crc32c: u32) -> Result<()> {
    if bytes != data_file.bytes {
        let reason = format!("it has {bytes} bytes, the manifest says {}", data_file.bytes);
        return Err(Error::corrupt(path, bytes.min(data_file.bytes), reason));
    }
    if crc32c != data_file.crc32c {
        let reason = format!("its crc32c is {crc32c:08x}, the manifest says {:08x}", data_file.crc32c);
        return Err(Error::corrupt(path, 0, reason));
    }
    Ok(())
}

fn read_error(path: &Path, refused: &Refused, source: ParquetError) -> Error {
    match refused.lock().take() {
        Some(source) => Error::io("read", path, source),
        None => Error::Parquet { path: path.to_owned(), source },
    }
}

/// A file as the Parquet library reads it.
#[derive(Debug)]
pub(crate) struct FileChunks {
    source: StreamSource,
    len: u64,
    refused: Refused,
}

#[derive(Debug)]
enum StreamSource {
    File(Arc<dyn VfsFile>),
    /// All of it.
    Memory(Bytes),
}

impl FileChunks {
    fn open(vfs: &dyn Vfs, path: &Path) -> Result<Self> {
        let file = open_data_file(vfs, path).map_err(|e| Error::io("open", path, e))?;
        let len = file.len().map_err(|e| Error::io("read", path, e))?;
        Ok(Self { source: StreamSource::File(file.into()), len, refused: Refused::default() })
    }

    fn in_memory(bytes: Bytes) -> Self {
        Self { len: bytes.len() as u64, source: StreamSource::Memory(bytes), refused: Refused::default() }
    }
}

impl Length for FileChunks {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for FileChunks {
    type T = StreamRest;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(match &self.source {
            StreamSource::File(file) => StreamRest::File(BufReader::new(FileRest {
                file: Arc::clone(file),
                offset: start,
                refused: Arc::clone(&self.refused),
            })),
            StreamSource::Memory(bytes) => {
                let start = usize::try_from(start).unwrap_or(usize::MAX).min(bytes.len());
                StreamRest::Memory(bytes.slice(start..).reader())
            }
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        // Lengths come from the file's own footer.
        if start.checked_add(length as u64).is_none_or(|end| end > self.len) {
            return Err(ParquetError::EOF(format!("{length} bytes from {start} on, in a file of {}", self.len)));
        }
        let file = match &self.source {
            StreamSource::File(file) => file,
            StreamSource::Memory(bytes) => {
                let start = usize::try_from(start).unwrap_or(usize::MAX);
                return Ok(bytes.slice(start..start + length));
            }
        };
        let mut bytes = vec![0; length];
        let read = file.read_at(&mut bytes, start).map_err(|e| note(&self.refused, e))?;
        if read < length {
            return Err(ParquetError::EOF(format!("{length} bytes from {start} on, got {read}")));
        }
        Ok(bytes.into())
    }
}

/// What comes from some offset on.
#[derive(Debug)]
pub(crate) enum StreamRest {
    File(BufReader<FileRest>),
    Memory(Reader<Bytes>),
}

impl Read for StreamRest {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buf),
            Self::Memory(bytes) => bytes.read(buf),
        }
    }
}

/// A file from some offset on.
#[derive(Debug)]
pub(crate) struct FileRest {
    file: Arc<dyn VfsFile>,
    offset: u64,
    refused: Refused,
}

impl Read for FileRest {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buf, self.offset).map_err(|e| note(&self.refused, e))?;
        self.offset += read as u64;
        Ok(read)
    }
}

/// Keeps an error for the caller and returns one of its kind for the reader in between.
fn note(refused: &Refused, error: io::Error) -> io::Error {
    let kind = error.kind();
    *refused.lock() = Some(error);
    kind.into()
}
