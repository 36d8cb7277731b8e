//! Reads a data file whole, checked: for tests, verification and compaction. Queries read through
//! DataFusion instead.

use std::path::Path;

use arrow::{
    array::{RecordBatch, RecordBatchReader},
    datatypes::SchemaRef,
};
use bytes::Bytes;
use parquet::{arrow::arrow_reader::ParquetRecordBatchReaderBuilder, errors::ParquetError};

use super::DataFile;
use crate::{Error, Result, vfs::Vfs};

/// Returns the schema and all rows of a data file. The whole file and all rows are in memory at
/// once.
///
/// # Errors
///
/// [`Error::Io`] if the file cannot be read; [`Error::Corrupt`] if its size, checksum or number of
/// rows is not what `data_file` says; [`Error::Parquet`] if it matches and yet is no Parquet file.
pub(crate) fn read_data_file(
    vfs: &dyn Vfs,
    root: &Path,
    data_file: &DataFile,
) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    let path = root.join(&data_file.path);
    let contents = vfs.read(&path).map_err(|e| Error::io("read", &path, e))?;
    let bytes = contents.len() as u64;
    if bytes != data_file.bytes {
        let reason = format!("it has {bytes} bytes, the manifest says {}", data_file.bytes);
        return Err(Error::corrupt(path, bytes.min(data_file.bytes), reason));
    }
    let crc32c = crc32c::crc32c(&contents);
    if crc32c != data_file.crc32c {
        let reason = format!("its crc32c is {crc32c:08x}, the manifest says {:08x}", data_file.crc32c);
        return Err(Error::corrupt(path, 0, reason));
    }
    let (schema, batches) =
        decode(Bytes::from(contents)).map_err(|source| Error::Parquet { path: path.clone(), source })?;
    let rows: u64 = batches.iter().map(|batch| batch.num_rows() as u64).sum();
    if rows != data_file.rows {
        return Err(Error::corrupt(path, 0, format!("it has {rows} rows, the manifest says {}", data_file.rows)));
    }
    Ok((schema, batches))
}

fn decode(contents: Bytes) -> Result<(SchemaRef, Vec<RecordBatch>), ParquetError> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(contents)?.build()?;
    let schema = reader.schema();
    Ok((schema, reader.collect::<Result<_, _>>()?))
}
