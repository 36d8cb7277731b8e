//! One task from its inputs to its durable outputs.

use std::{
    iter::from_fn,
    path::Path,
    sync::{Arc, atomic::AtomicBool},
};

use arrow::{
    array::RecordBatch,
    datatypes::{DataType, FieldRef, Schema, SchemaRef},
};

use super::{
    assemble::Assembler,
    cursor::Cursor,
    live_rows::{Keep, Part, live_rows},
    merge::Merge,
    order::MergeOutput,
    plan::MergeTask,
};
use crate::{
    Error, FileTimeUnit, Result, SequenceNumber, Tombstone,
    datafile::{
        CheckedDataFile, DataFileSpec, Owner, PackWriter, ParquetOptions, pack_data_file, text_dictionary,
        write_data_file,
    },
    model::{DataFile, TIME_COLUMN, TableSchema, row_bytes},
    vfs::Vfs,
};

/// Most bytes that the batches of all inputs take together, roughly.
pub(crate) const MAX_BATCH_BYTES: u64 = 64 << 20;
/// How much larger rows are in memory than in a file, at most, for the above.
const EXPANSION: u64 = 8;
const MIN_BATCH_ROWS: u64 = 64;
const MAX_BATCH_ROWS: u64 = 4096;

/// Where data files are read and written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MergeSource<'a> {
    pub(crate) vfs: &'a dyn Vfs,
    pub(crate) root: &'a Path,
}

/// A task and what is needed to do it.
pub(crate) struct MergeJob<'a> {
    pub(crate) source: MergeSource<'a>,
    /// The schema that the manifest has: files may have columns of narrower types.
    pub(crate) schema: &'a TableSchema,
    pub(crate) task: &'a MergeTask,
    pub(crate) keep: Keep,
    /// Deletes of the table that the manifest has.
    pub(crate) tombstones: &'a [Arc<Tombstone>],
    /// Bytes that the batches of all inputs may take together, roughly.
    pub(crate) batch_bytes: u64,
    /// Size of a file to aim at.
    pub(crate) target_bytes: u64,
    pub(crate) options: &'a ParquetOptions,
    /// Unit in which the new files are to have their times, if it has all of them.
    pub(crate) time_unit: FileTimeUnit,
    /// Where the new files lie, if they are not to be files of their own.
    pub(crate) pack: Option<&'a PackWriter<'a>>,
    /// Ends the job once set.
    pub(crate) cancelled: &'a AtomicBool,
}

/// Merges the inputs into new files, durable once this returns, or once their pack is. `path` gives
/// the path of each of them.
///
/// Returns no file where no row stays. When it fails, no new file is left, as far as the file
/// system lets us remove it.
///
/// # Errors
///
/// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) if an input is not what the manifest says it
/// is, with its path; [`ErrorKind::Io`](crate::ErrorKind::Io);
/// [`ErrorKind::Closed`](crate::ErrorKind::Closed) if cancelled.
pub(crate) fn run(job: &MergeJob<'_>, path: impl FnMut() -> String) -> Result<Vec<DataFile>> {
    let mut written = Vec::new();
    match job.write(path, &mut written) {
        Ok(()) => Ok(written),
        Err(error) => {
            for file in written.iter().filter(|file| file.packed().is_none()) {
                // What stays is in no manifest and is removed as an orphan on the next open.
                let _ = job.source.vfs.remove_file(&job.source.root.join(&file.path));
            }
            Err(error)
        }
    }
}

impl MergeJob<'_> {
    /// Returns about how many bytes the merge holds at a time: rows that were read, and as many
    /// that are being encoded.
    pub(crate) fn memory_bytes(&self) -> usize {
        let rows: u64 = self.task.files.iter().map(|file| EXPANSION * file.bytes).sum();
        usize::try_from(2 * rows.min(self.batch_bytes)).unwrap_or(usize::MAX)
    }

    fn write(&self, mut path: impl FnMut() -> String, written: &mut Vec<DataFile>) -> Result<()> {
        let columns = OutputColumns::of(self.schema, &self.task.files, self.common_unit()?)?;
        let mut from_ns = i64::MIN;
        for cut in self.task.cuts.iter().copied() {
            self.write_part(&columns, Part { from_ns, before_ns: Some(cut) }, &mut path, written)?;
            from_ns = cut;
        }
        self.write_part(&columns, Part { from_ns, before_ns: None }, &mut path, written)
    }

    /// Returns the unit that has the times of all inputs: some may have been written before another
    /// was asked for.
    fn common_unit(&self) -> Result<FileTimeUnit> {
        let mut unit = self.time_unit;
        for file in &self.task.files {
            if file.time_unit < unit {
                let mut times = CheckedDataFile::open(self.source.vfs, self.source.root, file)?.times()?;
                unit = times.try_fold(unit, |unit, times| Ok::<_, Error>(unit.that_has(times?.values())))?;
            }
        }
        Ok(unit)
    }

    /// Writes the rows of some time.
    fn write_part(
        &self,
        columns: &OutputColumns<'_>,
        part: Part,
        path: &mut impl FnMut() -> String,
        written: &mut Vec<DataFile>,
    ) -> Result<()> {
        let rows_per_file = self.rows_per_file();
        let mut merge = self.open(columns, part)?.peekable();
        while merge.peek().is_some() {
            let spec = self.spec(path(), columns);
            let mut left = rows_per_file;
            let batches = from_fn(|| {
                let batch = if left > 0 { merge.next()? } else { return None };
                left = left.saturating_sub(batch.as_ref().map_or(0, |batch| batch.num_rows() as u64));
                Some(batch)
            });
            written.push(self.write_file(&spec, batches)?);
        }
        Ok(())
    }

    fn write_file(
        &self,
        spec: &DataFileSpec<'_>,
        batches: impl Iterator<Item = Result<RecordBatch>>,
    ) -> Result<DataFile> {
        let Some(pack) = self.pack else {
            return write_data_file(self.source.vfs, self.source.root, spec, batches, self.options);
        };
        let owner = Owner { database: &self.schema.database, table: &self.schema.table, day: self.task.day };
        pack_data_file(pack, owner, spec, batches, self.options)
    }

    fn open<'a>(&'a self, columns: &OutputColumns<'_>, part: Part) -> Result<Merge<'a>> {
        let batch_rows = self.batch_rows();
        let has_rows =
            |file: &&Arc<DataFile>| part.overlaps(file) && !self.tombstones.iter().any(|t| t.takes_all_of(file));
        let files = self.task.files.iter().filter(has_rows);
        let checked = |file: &'a Arc<DataFile>| {
            Ok((file.as_ref(), CheckedDataFile::open(self.source.vfs, self.source.root, file)?))
        };
        let files = files.map(checked).collect::<Result<Vec<_>>>()?;
        let schema = columns.with_dictionaries(&files);
        let cursor = |(rank, (file, checked)): (usize, (&DataFile, CheckedDataFile))| {
            let rows = live_rows(self, file, part, checked.stream(batch_rows, &schema)?, &schema);
            Cursor::open(rows, rank, &columns.tags, self.schema.has_primary_key)
        };
        let cursors = files.into_iter().enumerate().map(cursor);
        let cursors = cursors.filter_map(Result::transpose).collect::<Result<Vec<_>>>()?;
        let assembler = Assembler::new(schema, columns.tags.len());
        Ok(Merge::new(cursors, self.schema.has_primary_key, 2 * batch_rows, assembler, self.cancelled))
    }

    fn spec<'s>(&self, path: String, columns: &'s OutputColumns<'_>) -> DataFileSpec<'s> {
        let files = &self.task.files;
        DataFileSpec {
            path,
            schema: Arc::clone(&columns.schema),
            time_unit: columns.time_unit,
            sorted_by: columns.tags.iter().copied().chain([TIME_COLUMN]).map(str::to_owned).collect(),
            min_seq: SequenceNumber(files.iter().map(|file| file.min_seq).min().unwrap_or(0)),
            max_seq: SequenceNumber(files.iter().map(|file| file.max_seq).max().unwrap_or(0)),
            late: self.task.output == MergeOutput::Late,
            hourly: self.task.output == MergeOutput::OnTime && self.pack.is_none(),
            tags: &columns.all_tags,
        }
    }

    /// Returns how many rows make a file, so that all of them have about the same size. One late
    /// file stays one, unless it is parted by time: two that share a time would have one version.
    fn rows_per_file(&self) -> u64 {
        let sum = |of: fn(&DataFile) -> u64| self.task.files.iter().map(|file| of(file)).sum::<u64>();
        let files = match self.task.output {
            MergeOutput::Late => 1,
            MergeOutput::OnTime => (sum(|file| file.bytes) + self.target_bytes / 2) / self.target_bytes.max(1),
        };
        sum(|file| file.rows).div_ceil(files.max(1)).max(1)
    }

    /// Returns how many rows of each input are in memory at a time.
    fn batch_rows(&self) -> usize {
        let files = &self.task.files;
        // Some values take as much where they are null, and next to nothing of a file.
        let fixed = row_bytes(self.schema.columns.iter().map(|column| &column.data_type)) as u64;
        let of_file = |file: &Arc<DataFile>| EXPANSION * file.bytes / file.rows.max(1) + 16 * file.columns.len() as u64;
        let row_bytes = files.iter().map(of_file).max().unwrap_or(1).max(fixed).max(1);
        let rows = self.batch_bytes / files.len().max(1) as u64 / row_bytes;
        let min = (MAX_BATCH_BYTES / fixed.max(1)).clamp(1, MIN_BATCH_ROWS);
        usize::try_from(rows.clamp(min, MAX_BATCH_ROWS)).unwrap_or(1)
    }
}

/// The columns of the outputs: those that any input has, in the table's order.
struct OutputColumns<'a> {
    schema: SchemaRef,
    time_unit: FileTimeUnit,
    /// Tags among them.
    tags: Vec<&'a str>,
    /// Tags of the table.
    all_tags: Vec<&'a str>,
}

impl<'a> OutputColumns<'a> {
    fn of(table: &'a TableSchema, files: &[Arc<DataFile>], time_unit: FileTimeUnit) -> Result<Self> {
        let arrow = table.arrow();
        for file in files {
            if let Some(unknown) = file.columns.iter().find(|column| arrow.index_of(&column.name).is_err()) {
                let reason = format!("it has a column {:?}, which its table has not", unknown.name);
                return Err(Error::corrupt(&file.path, 0, reason));
            }
        }
        let is_used = |name: &str| files.iter().flat_map(|file| &file.columns).any(|column| column.name == name);
        let fields: Vec<FieldRef> = arrow.fields().iter().filter(|field| is_used(field.name())).cloned().collect();
        let all_tags: Vec<&str> = table.tags().map(|tag| tag.name.as_ref()).collect();
        let tags = all_tags.iter().copied().filter(|tag| is_used(tag)).collect();
        Ok(Self { schema: Arc::new(Schema::new(fields)), time_unit, tags, all_tags })
    }

    /// Returns the schema of the merge: that of the outputs, but fields of texts stay codes in
    /// dictionaries where all inputs have them so.
    fn with_dictionaries(&self, files: &[(&DataFile, CheckedDataFile)]) -> SchemaRef {
        let is_in_dictionaries = |name: &String| {
            files
                .iter()
                .all(|(file, checked)| checked.has_dictionary(name) || !file.columns.iter().any(|c| c.name == *name))
        };
        let field = |field: &FieldRef| match field.data_type() {
            DataType::Utf8 if is_in_dictionaries(field.name()) => {
                Arc::new(field.as_ref().clone().with_data_type(text_dictionary()))
            }
            _ => Arc::clone(field),
        };
        Arc::new(Schema::new(self.schema.fields().iter().map(field).collect::<Vec<_>>()))
    }
}
