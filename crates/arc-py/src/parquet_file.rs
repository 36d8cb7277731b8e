//! Rows into one Parquet file.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use arc_core::{Error, Result};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    errors::ParquetError,
    file::properties::WriterProperties,
};
use pyo3::{prelude::*, pybacked::PyBackedStr};
use tempfile::NamedTempFile;

use crate::{
    errors::{Raise as _, invalid},
    owned::Owned,
    schema::Schema,
    table::Table,
};

/// A Parquet file that gets rows part by part, and its name once ``finish`` has all of them on disk.
///
/// A file that has the name already is there until then.
#[pyclass(frozen, module = "arc")]
#[derive(Debug)]
pub(crate) struct ParquetFile {
    path: PathBuf,
    unfinished: Owned<Mutex<Option<Unfinished>>>,
}

#[derive(Debug)]
struct Unfinished {
    writer: ArrowWriter<File>,
    file: NamedTempFile,
}

#[pymethods]
impl ParquetFile {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, schema: &Schema, compression: PyBackedStr) -> PyResult<Self> {
        let compression = codec(&compression).raise(py)?;
        let unfinished = py.detach(|| Unfinished::create(&path, schema, compression)).raise(py)?;
        Ok(Self { path, unfinished: Owned::new(Mutex::new(Some(unfinished))) })
    }

    /// Adds rows.
    fn write(&self, py: Python<'_>, rows: &Table) -> PyResult<()> {
        let mut unfinished = self.lock(py)?;
        let Some(unfinished) = unfinished.as_mut() else { return Ok(()) };
        let write = || rows.batches.iter().try_for_each(|batch| unfinished.writer.write(batch));
        py.detach(write).map_err(|error| failed(&self.path, error)).raise(py)
    }

    /// Has all rows on disk under the name of the file.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let Some(unfinished) = self.lock(py)?.take() else { return Ok(()) };
        py.detach(|| unfinished.finish(&self.path)).raise(py)
    }

    /// Removes what was written, unless it is finished.
    fn discard(&self, py: Python<'_>) -> PyResult<()> {
        self.lock(py).map(|mut unfinished| drop(unfinished.take()))
    }
}

impl ParquetFile {
    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Option<Unfinished>>> {
        Ok(self.unfinished.get(py)?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Unfinished {
    fn create(path: &Path, schema: &Schema, compression: Compression) -> Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        builder.prefix(".arc-").suffix(".parquet.part");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            // As any new file: less what the process takes away.
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let io = |source| Error::Io { action: "write", path: path.to_owned(), source };
        let file = builder.tempfile_in(folder).map_err(io)?;
        let properties = WriterProperties::builder().set_compression(compression).build();
        let writer = ArrowWriter::try_new(file.reopen().map_err(io)?, schema.0.clone(), Some(properties))
            .map_err(|error| failed(path, error))?;
        Ok(Self { writer, file })
    }

    fn finish(self, path: &Path) -> Result<()> {
        let io = |source| Error::Io { action: "write", path: path.to_owned(), source };
        self.writer.into_inner().map_err(|error| failed(path, error))?.sync_all().map_err(io)?;
        self.file.persist(path).map(drop).map_err(|error| io(error.error))
    }
}

fn codec(name: &str) -> Result<Compression> {
    Ok(match name {
        "zstd" => Compression::ZSTD(ZstdLevel::default()),
        "snappy" => Compression::SNAPPY,
        "lz4" => Compression::LZ4_RAW,
        "none" => Compression::UNCOMPRESSED,
        other => {
            let reason = format!("{other:?} is none, expected \"zstd\", \"snappy\", \"lz4\" or \"none\"");
            return Err(invalid("compression", reason));
        }
    })
}

/// Tells the operating system's errors from those of types that Parquet does not have.
fn failed(path: &Path, error: ParquetError) -> Error {
    let source = match error {
        ParquetError::External(source) => {
            source.downcast::<io::Error>().map_or_else(io::Error::other, |source| *source)
        }
        error => return invalid("rows", format!("{error}: Parquet does not hold them; cast them in the statement")),
    };
    Error::Io { action: "write", path: path.to_owned(), source }
}
