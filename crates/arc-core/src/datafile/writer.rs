//! Publishes a data file: all of it durable under its name, or nothing.

use std::path::{Path, PathBuf};

use arrow::{
    array::RecordBatch,
    datatypes::{DataType, FieldRef, Fields, SchemaRef, TimeUnit},
};

use super::{
    DataFile, FileTail, ParquetOptions,
    blocks::WHOLE_BYTES,
    encode::Scratch,
    folders::{SYNC_FOLDER, create_with_folders},
    pack::{Owner, PackWriter},
    parquet_file::Totals,
    row_groups::{RowGroupWriter, write_columns},
    sink::{Finished, Sink},
    stream::text_dictionary,
};
use crate::{Error, FileTimeUnit, Result, SequenceNumber, arrays::Columns, model::TEMPORARY_SUFFIX, vfs::Vfs};

/// Writes data files of sorted rows that are all in memory, one after the other, and uses its
/// memory for each again.
#[derive(Default)]
pub(crate) struct DataFileWriter(Option<Scratch>);

/// What a data file is to be.
#[derive(Debug, Clone)]
pub(crate) struct DataFileSpec<'a> {
    /// Path below the data directory, of [`data_file_path`](super::data_file_path); in a pack that
    /// of the pack.
    pub(crate) path: String,
    /// Schema of every batch: the time in nanoseconds first, then any columns. A column that is
    /// null throughout may be left out. Texts may come as indices in a dictionary.
    pub(crate) schema: SchemaRef,
    /// Unit of the times in the file, which has all of them.
    pub(crate) time_unit: FileTimeUnit,
    /// Columns by which the rows are sorted, ascending, nulls first; may name tags that are left
    /// out.
    pub(crate) sorted_by: Vec<String>,
    /// First sequence number whose rows may be in the file.
    pub(crate) min_seq: SequenceNumber,
    /// Last sequence number whose rows may be in the file.
    pub(crate) max_seq: SequenceNumber,
    /// Whether rows may have the primary key of rows in older files.
    pub(crate) late: bool,
    /// Whether it is to have aggregates by hour, where its order and its rows are such that these pay.
    pub(crate) hourly: bool,
    /// Names of the table's tags.
    pub(crate) tags: &'a [&'a str],
}

/// Writes sorted batches to a new data file and returns what the manifest records of it.
///
/// The file is written under a temporary name, synced and renamed; then its folder and the folders
/// above it are synced. When this returns `Ok` the file survives a loss of power; when it fails no
/// file is left, as far as the file system lets us remove it. Memory is bounded by the batches (16
/// MiB of them are gathered) and one encoded row group.
///
/// # Errors
///
/// [`ErrorKind::Io`](crate::ErrorKind::Io) with the path where the file system refuses, the error
/// of `batches` where one is an error, and [`ErrorKind::Internal`](crate::ErrorKind::Internal)
/// where the rows are none, have a time that is null, another schema than announced or a type that
/// Parquet has not (see [`is_storable`](super::is_storable)).
pub(crate) fn write_data_file(
    vfs: &dyn Vfs,
    root: &Path,
    spec: &DataFileSpec<'_>,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    options: &ParquetOptions,
) -> Result<DataFile> {
    let data_file = publish(vfs, root, spec, options, |sink| write_batches(sink, spec, batches, options))?;
    let path = root.join(&spec.path);
    sync_folders(vfs, root, &path).inspect_err(|_| {
        // Best effort, as below.
        let _ = vfs.remove_file(&path);
    })?;
    Ok(data_file)
}

/// Does as [`write_data_file`] into a pack: the data file is durable once that is.
///
/// # Errors
///
/// As [`write_data_file`].
pub(crate) fn pack_data_file(
    pack: &PackWriter<'_>,
    owner: Owner<'_>,
    spec: &DataFileSpec<'_>,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    options: &ParquetOptions,
) -> Result<DataFile> {
    check(spec, options)?;
    publish_in(pack, owner, spec, |sink| write_batches(sink, spec, batches, options))
}

fn write_batches(
    sink: &mut Sink,
    spec: &DataFileSpec<'_>,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    options: &ParquetOptions,
) -> Result<Totals> {
    let mut writer = RowGroupWriter::new(sink, spec, options);
    for batch in batches {
        let batch = batch?;
        if !fits(batch.schema_ref().fields(), spec.schema.fields()) {
            return Err(Error::internal(format!("a batch for {} has another schema than announced", spec.path)));
        }
        writer.push(&batch)?;
    }
    writer.finish()
}

/// Returns whether a batch has the columns of a file. Texts may come as indices in a dictionary.
fn fits(batch: &Fields, file: &Fields) -> bool {
    let fits = |(given, wanted): (&FieldRef, &FieldRef)| {
        given == wanted
            || (wanted.data_type() == &DataType::Utf8
                && given.data_type() == &text_dictionary()
                && given.name() == wanted.name()
                && given.is_nullable() == wanted.is_nullable())
    };
    batch.len() == file.len() && batch.iter().zip(file).all(fits)
}

impl DataFileWriter {
    /// Does as [`write_data_file`], column after column, of which one is held encoded.
    ///
    /// Leaves the folders to the caller: the file survives a loss of power once those above it are
    /// synced ([`FolderSyncs`](super::FolderSyncs)).
    ///
    /// # Errors
    ///
    /// As [`write_data_file`].
    pub(crate) fn write(
        &mut self,
        vfs: &dyn Vfs,
        root: &Path,
        spec: &DataFileSpec<'_>,
        columns: &dyn Columns,
        options: &ParquetOptions,
    ) -> Result<DataFile> {
        publish(vfs, root, spec, options, |sink| write_columns(sink, spec, columns, options, &mut self.0))
    }

    /// Does as [`write`](Self::write) into a pack: the data file is durable once that is.
    ///
    /// # Errors
    ///
    /// As [`write_data_file`].
    pub(crate) fn write_to_pack(
        &mut self,
        pack: &PackWriter<'_>,
        owner: Owner<'_>,
        spec: &DataFileSpec<'_>,
        columns: &dyn Columns,
        options: &ParquetOptions,
    ) -> Result<DataFile> {
        check(spec, options)?;
        publish_in(pack, owner, spec, |sink| write_columns(sink, spec, columns, options, &mut self.0))
    }
}

fn publish_in(
    pack: &PackWriter<'_>,
    owner: Owner<'_>,
    spec: &DataFileSpec<'_>,
    write: impl FnOnce(&mut Sink) -> Result<Totals>,
) -> Result<DataFile> {
    let mut sink = Sink::in_memory();
    let totals = write(&mut sink)?;
    let file = &sink.into_bytes();
    let tail = totals.tail_start.and_then(|start| file.get(usize::try_from(start).ok()?..));
    let tail = tail.map(|tail| FileTail { bytes: tail.len() as u64, crc32c: crc32c::crc32c(tail) });
    let finished = Finished { bytes: file.len() as u64, crc32c: crc32c::crc32c(file), tail };
    let data_file = data_file(spec, totals, &finished)?;
    Ok(DataFile { path: pack.append(owner, file)?, ..data_file })
}

fn publish(
    vfs: &dyn Vfs,
    root: &Path,
    spec: &DataFileSpec<'_>,
    options: &ParquetOptions,
    write: impl FnOnce(&mut Sink) -> Result<Totals>,
) -> Result<DataFile> {
    check(spec, options)?;
    publish_file(vfs, root, &spec.path, |sink, temporary| write_rows(sink, spec, temporary, write))
}

/// Has a file written and synced under a temporary name, and gives it its own. Where that fails no
/// file is left, as far as the file system lets us remove it.
pub(super) fn publish_file<T>(
    vfs: &dyn Vfs,
    root: &Path,
    path: &str,
    write: impl FnOnce(Sink, &Path) -> Result<T>,
) -> Result<T> {
    let (path, temporary) = (root.join(path), root.join(format!("{path}{TEMPORARY_SUFFIX}")));
    let file = create_with_folders(vfs, &temporary)?;
    let publish = || -> Result<T> {
        let written = write(Sink::new(file), &temporary)?;
        vfs.rename(&temporary, &path).map_err(|e| Error::io("rename", &temporary, e))?;
        Ok(written)
    };
    publish().inspect_err(|_| {
        // Best effort: what stays is in no manifest and is removed as an orphan on the next open.
        let _ = vfs.remove_file(&temporary);
        let _ = vfs.remove_file(&path);
    })
}

fn check(spec: &DataFileSpec<'_>, options: &ParquetOptions) -> Result<()> {
    options.validate()?;
    match spec.schema.fields().first().map(|first| first.data_type()) {
        Some(DataType::Timestamp(TimeUnit::Nanosecond, _)) => Ok(()),
        _ => Err(Error::internal(format!("data file {} does not begin with a time in nanoseconds", spec.path))),
    }
}

fn write_rows(
    mut sink: Sink,
    spec: &DataFileSpec<'_>,
    temporary: &Path,
    write: impl FnOnce(&mut Sink) -> Result<Totals>,
) -> Result<DataFile> {
    let totals = write(&mut sink)?;
    let written = sink.finish().map_err(|e| Error::io("sync", temporary, e))?;
    data_file(spec, totals, &written)
}

fn data_file(spec: &DataFileSpec<'_>, totals: Totals, finished: &Finished) -> Result<DataFile> {
    let Totals { rows, time_bounds, columns, hourly, .. } = totals;
    let Finished { bytes, crc32c, tail } = *finished;
    let Some((min_time, max_time)) = time_bounds else {
        return Err(Error::internal(format!("rows for {} have no time", spec.path)));
    };
    Ok(DataFile {
        path: spec.path.clone(),
        bytes,
        crc32c,
        // One that is read whole needs none, and the manifest has an entry for each file.
        tail: tail.filter(|_| bytes > WHOLE_BYTES),
        hourly,
        rows,
        time_unit: spec.time_unit,
        min_time,
        max_time,
        min_seq: spec.min_seq.0,
        max_seq: spec.max_seq.0,
        deleted_seq: 0,
        late: spec.late,
        sorted_by: spec.sorted_by.clone(),
        columns,
    })
}

/// Syncs the file's folder and those above it, up to but without the data directory itself.
///
/// The folders above are synced even if they were there: a crash of an earlier process may have
/// left them in the cache only. A folder that did not change costs what the disk takes to empty its
/// cache, 0.05 to 4 ms where it was measured.
fn sync_folders(vfs: &dyn Vfs, root: &Path, path: &Path) -> Result<()> {
    let folders = path.ancestors().skip(1).take_while(|folder| *folder != root);
    for folder in folders {
        vfs.sync_dir(folder).map_err(|e| Error::io(SYNC_FOLDER, PathBuf::from(folder), e))?;
    }
    Ok(())
}
