//! The log's files as they are, for a process on another machine that reads on in them.
//!
//! Only reads. Takes no word for a path: a name counts if it is that of a segment. Never says which
//! frames are acknowledged, and never looks into one.

use std::{io, path::Path};

use bytes::Bytes;

use super::segment::{self, SegmentName};
use crate::{Error, Result, vfs::Vfs};

/// Returns the names of all segments in `dir`, each with its size in bytes.
///
/// # Errors
///
/// [`Error::Io`].
pub(crate) fn segment_files(vfs: &dyn Vfs, dir: &Path) -> Result<Vec<(String, u64)>> {
    let found = segment::list(vfs, dir)?;
    Ok(found.into_iter().map(|found| (found.name.file_name(), found.size)).collect())
}

/// Reads up to `len` bytes of the segment `name` from `offset` on; fewer where it ends. `None` if there
/// is no such segment.
///
/// # Errors
///
/// [`Error::Io`].
pub(crate) fn read_segment(
    (vfs, dir): (&dyn Vfs, &Path),
    name: &str,
    offset: u64,
    len: usize,
) -> Result<Option<Bytes>> {
    let Some(path) = SegmentName::parse(name).map(|name| name.path(dir)) else { return Ok(None) };
    let file = match vfs.open_read(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|e| Error::io("open", &path, e))?,
    };
    let size = file.len().map_err(|e| Error::io("look at", &path, e))?;
    let rest = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX);
    let mut bytes = vec![0; len.min(rest)];
    let read = file.read_at(&mut bytes, offset).map_err(|e| Error::io("read", &path, e))?;
    bytes.truncate(read);
    Ok(Some(bytes.into()))
}
