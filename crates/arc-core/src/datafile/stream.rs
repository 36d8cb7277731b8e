//! Reads a data file piece by piece: its bytes for their checksum, its rows batch by batch.
//!
//! Never holds a whole file, never allocates more than the file has bytes. For those who check or rewrite files; queries
//! read through DataFusion instead.

use std::{
    io::{self, BufReader, Read},
    path::Path,
    sync::Arc,
};

use bytes::Bytes;
use parquet::{
    arrow::arrow_reader::ParquetRecordBatchReaderBuilder,
    errors::{ParquetError, Result as ParquetResult},
    file::reader::{ChunkReader, Length},
};

use crate::{
    Error, Result,
    vfs::{Vfs, VfsFile},
};

/// Bytes read at a time.
const PIECE_BYTES: usize = 1 << 20;

/// A reader of the rows of a data file.
pub(crate) type RowReaderBuilder = ParquetRecordBatchReaderBuilder<FileChunks>;

/// Opens a data file as Parquet: reads the footer.
///
/// # Errors
///
/// [`Error::Io`] if it cannot be opened, [`Error::Parquet`] if it is no Parquet file.
pub(crate) fn read_rows(vfs: &dyn Vfs, path: &Path) -> Result<RowReaderBuilder> {
    let file = vfs.open_read(path).map_err(|e| Error::io("open", path, e))?;
    let bytes = file.len().map_err(|e| Error::io("read", path, e))?;
    let chunks = FileChunks { file: file.into(), bytes };
    RowReaderBuilder::try_new(chunks).map_err(|source| Error::Parquet { path: path.to_owned(), source })
}

/// Hands all bytes of a file to `take`, in order and in pieces; returns their number and crc32c.
///
/// # Errors
///
/// [`Error::Io`] if the file cannot be read; what `take` returns.
pub(crate) fn read_pieces(
    vfs: &dyn Vfs,
    path: &Path,
    mut take: impl FnMut(&[u8], u64) -> Result<()>,
) -> Result<(u64, u32)> {
    let file = vfs.open_read(path).map_err(|e| Error::io("open", path, e))?;
    let (mut offset, mut crc) = (0, 0);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
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

/// A file as the Parquet library reads it.
#[derive(Debug)]
pub(crate) struct FileChunks {
    file: Arc<dyn VfsFile>,
    bytes: u64,
}

impl Length for FileChunks {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for FileChunks {
    type T = BufReader<FilePart>;

    fn get_read(&self, start: u64) -> ParquetResult<BufReader<FilePart>> {
        Ok(BufReader::new(FilePart { file: Arc::clone(&self.file), offset: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let end = start.checked_add(length as u64);
        if end.is_none_or(|end| end > self.bytes) {
            return Err(ParquetError::EOF(format!("{length} bytes at byte {start} of a file of {}", self.bytes)));
        }
        let mut bytes = vec![0; length];
        let read = self.file.read_at(&mut bytes, start)?;
        if read < length {
            return Err(ParquetError::EOF(format!("only {read} of {length} bytes at byte {start}")));
        }
        Ok(bytes.into())
    }
}

/// The bytes of a file from some place on.
#[derive(Debug)]
pub(crate) struct FilePart {
    file: Arc<dyn VfsFile>,
    offset: u64,
}

impl Read for FilePart {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buf, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}
