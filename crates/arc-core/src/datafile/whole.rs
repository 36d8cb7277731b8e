//! Data files as they are, byte for byte: read, and written at another place. Never decodes one.

use std::{io::Write, path::Path};

use super::{
    DataFile,
    stream::{compare_bytes, read_pieces},
    writer::publish_file,
};
use crate::{Error, Result, vfs::Vfs};

/// Returns all bytes of a data file.
///
/// # Errors
///
/// [`Error::Io`] if it cannot be read; [`Error::Corrupt`] if its size or checksum is not what
/// `file` says.
pub(crate) fn read_whole(vfs: &dyn Vfs, root: &Path, file: &DataFile) -> Result<Vec<u8>> {
    let path = root.join(&file.path);
    let mut found = Vec::new();
    let (bytes, crc32c) = read_pieces(vfs, &path, u64::MAX, |piece, _| {
        found.extend_from_slice(piece);
        Ok(())
    })?;
    compare_bytes(&path, file, bytes, crc32c)?;
    Ok(found)
}

/// Writes a data file of these bytes; leaves the folders to the caller, as
/// [`DataFileWriter::write`](super::DataFileWriter::write) does.
///
/// # Errors
///
/// [`Error::Io`]; then no file is left, as far as the file system lets us remove it.
pub(crate) fn write_whole(vfs: &dyn Vfs, root: &Path, path: &str, bytes: &[u8]) -> Result<()> {
    publish_file(vfs, root, path, |mut sink, temporary| {
        sink.write_all(bytes).map_err(|e| Error::io("write", temporary, e))?;
        sink.finish().map(drop).map_err(|e| Error::io("sync", temporary, e))
    })
}
