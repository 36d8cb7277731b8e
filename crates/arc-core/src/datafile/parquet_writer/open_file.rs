//! A file under way: rows are gathered up to a few megabytes, encoded column after column, and
//! written by row groups.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow::{
    array::{ArrayRef, RecordBatch},
    datatypes::{FieldRef, Schema},
};
use parquet::errors::ParquetError;

use super::{
    FileStatistics,
    assembly::Assembly,
    column::{ColumnSpec, OpenColumn},
    distinct::Distinct,
    parallel::for_each,
    split::{FileLimits, part},
};
use crate::{
    Error, Result,
    datafile::{ParquetOptions, encode::Scratch, row_groups::slice_bytes, sink::Sink},
    model::{ColumnStatistics, StatisticsValue},
    vfs::VfsFile,
};

/// Rows that are encoded at least before the size of the file is estimated again.
const MIN_ROUND_ROWS: u64 = 32;
/// About what the footer says of a column chunk, and of a page, in bytes.
const CHUNK_FOOTER_BYTES: usize = 250;
const PAGE_FOOTER_BYTES: usize = 50;

/// What all files of a writer have in common.
#[derive(Debug)]
pub(super) struct FileSpec {
    pub(super) columns: Vec<Arc<ColumnSpec>>,
    pub(super) options: ParquetOptions,
    pub(super) limits: FileLimits,
    /// Place of the time column.
    pub(super) time: Option<usize>,
    /// Places of the columns whose distinct values are wanted, and how many at most.
    pub(super) distinct: Vec<usize>,
    pub(super) max_distinct: usize,
}

/// A finished file that is durable under its temporary name.
#[derive(Debug)]
pub(super) struct Complete {
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) statistics: FileStatistics,
    pub(super) scale: Scale,
}

/// By how much sizes differ from what was expected: of what was not compressed yet, and of the
/// footer. Handed from file to file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    pending: f64,
    footer: f64,
}

impl Default for Scale {
    /// The first file may rather be too small than too large.
    fn default() -> Self {
        Self { pending: 1.0, footer: 1.0 }
    }
}

impl Scale {
    fn apply(self, pending: usize, footer: usize) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a size in memory, four times at most"
        )]
        let bytes = (pending as f64 * self.pending + footer as f64 * self.footer) as u64;
        bytes
    }

    fn of(written: usize, expected: usize) -> f64 {
        (written as f64 / expected.max(1) as f64).clamp(0.25, 4.0)
    }
}

/// A file that rows are added to.
pub(super) struct GrowingFile {
    spec: Arc<FileSpec>,
    /// Where it is written, for errors.
    path: PathBuf,
    assembly: Assembly,
    columns: Vec<OpenColumn>,
    gathered: Vec<RecordBatch>,
    gathered_rows: usize,
    gathered_bytes: usize,
    /// Encoded rows of the row group under way.
    encoded_rows: usize,
    /// Rows of the row groups before it.
    written_rows: u64,
    scale: Scale,
}

impl GrowingFile {
    pub(super) fn new(spec: &Arc<FileSpec>, path: &Path, file: Box<dyn VfsFile>, scale: Scale) -> Result<Self> {
        let column = |(place, column): (usize, &Arc<ColumnSpec>)| {
            let wanted = spec.distinct.contains(&place);
            let distinct = wanted.then(|| Distinct::new(&column.carrier, spec.max_distinct)).flatten();
            OpenColumn::new(column, distinct)
        };
        Ok(Self {
            columns: spec.columns.iter().enumerate().map(column).collect(),
            assembly: Assembly::new(Sink::new(file)).map_err(|e| write_error(path, e))?,
            spec: Arc::clone(spec),
            path: path.to_owned(),
            gathered: Vec::new(),
            gathered_rows: 0,
            gathered_bytes: 0,
            encoded_rows: 0,
            written_rows: 0,
            scale,
        })
    }

    pub(super) fn rows(&self) -> u64 {
        self.encoded() + self.gathered_rows as u64
    }

    fn encoded(&self) -> u64 {
        self.written_rows + self.encoded_rows as u64
    }

    /// Returns how many of the next rows the file has room for, at least until it is asked again; 0
    /// if it is full.
    pub(super) fn remaining(&mut self, next: &RecordBatch, scratches: &mut [Scratch]) -> Result<usize> {
        let by_rows = self.spec.limits.rows.saturating_sub(self.rows());
        let mut by_bytes = self.rows_until(self.spec.limits.bytes, next);
        while self.gathered_rows > 0 && by_bytes <= self.gathered_rows as u64 {
            // As many rows are gathered as were expected to fill the file: their size is known once
            // they are encoded.
            self.encode_gathered(scratches)?;
            by_bytes = self.rows_until(self.spec.limits.bytes, next);
        }
        let remaining = by_rows.min(by_bytes.saturating_sub(self.gathered_rows as u64));
        Ok(usize::try_from(remaining).unwrap_or(usize::MAX))
    }

    /// Returns how many rows beyond those that are encoded fill the file up to a size, going by
    /// what rows took so far.
    fn rows_until(&self, bytes: u64, next: &RecordBatch) -> u64 {
        if bytes == u64::MAX {
            return u64::MAX;
        }
        let (size, rows) = match self.encoded() {
            0 if self.gathered_rows > 0 => (self.gathered_bytes as u64, self.gathered_rows as u64),
            0 => (slice_bytes(next) as u64, next.num_rows() as u64),
            rows => (self.size(), rows),
        };
        // Estimates are off by some hundredths.
        let bytes = bytes - bytes / 32;
        let left = if self.encoded() == 0 { bytes } else { bytes.saturating_sub(size) };
        let expected = u128::from(left) * u128::from(rows) / u128::from(size.max(1));
        let expected = u64::try_from(expected).unwrap_or(u64::MAX);
        // What comes may be larger than what was: look again before the file is full.
        let expected = if left > bytes / 16 { expected / 2 } else { expected };
        if left == 0 { 0 } else { expected.max(MIN_ROUND_ROWS) }
    }

    /// Returns about how large the file is with the rows that are encoded.
    fn size(&self) -> u64 {
        let pending = self.pending_bytes();
        let compressed = self.assembly.bytes() + self.open_bytes() - pending;
        compressed as u64 + self.scale.apply(pending, self.footer_bytes())
    }

    fn footer_bytes(&self) -> usize {
        let columns = self.columns.iter().filter(|column| column.has_values()).count();
        let rows = usize::try_from(self.encoded()).unwrap_or(usize::MAX);
        let row_groups = rows.div_ceil(self.spec.options.row_group_rows).max(1);
        let pages = rows.div_ceil(self.spec.options.page_rows);
        columns * (row_groups * CHUNK_FOOTER_BYTES + pages * PAGE_FOOTER_BYTES)
    }

    fn open_bytes(&self) -> usize {
        self.columns.iter().map(OpenColumn::bytes).sum()
    }

    fn pending_bytes(&self) -> usize {
        self.columns.iter().map(OpenColumn::pending_bytes).sum()
    }

    /// Takes rows, encoding them once enough are there.
    pub(super) fn push(&mut self, rows: &RecordBatch, scratches: &mut [Scratch]) -> Result<()> {
        let mut offset = 0;
        while offset < rows.num_rows() {
            let remaining = self.spec.options.row_group_rows - self.encoded_rows - self.gathered_rows;
            let count = remaining.min(rows.num_rows() - offset);
            self.gather(part(rows, offset, count));
            offset += count;
            let row_group_is_full = self.encoded_rows + self.gathered_rows >= self.spec.options.row_group_rows;
            if row_group_is_full || self.gathered_bytes >= self.spec.options.gather_bytes {
                self.encode_gathered(scratches)?;
                if row_group_is_full || self.open_bytes() >= self.spec.options.row_group_bytes {
                    self.end_row_group(true, scratches)?;
                }
            }
        }
        Ok(())
    }

    fn gather(&mut self, rows: RecordBatch) {
        self.gathered_rows += rows.num_rows();
        self.gathered_bytes += slice_bytes(&rows);
        self.gathered.push(rows);
    }

    fn encode_gathered(&mut self, scratches: &mut [Scratch]) -> Result<()> {
        if self.gathered_rows == 0 {
            return Ok(());
        }
        let gathered = &self.gathered;
        for_each(largest_first(&mut self.columns), scratches, |(place, column), scratch| {
            let arrays: Vec<&ArrayRef> = gathered.iter().filter_map(|rows| rows.columns().get(place)).collect();
            column.encode(&arrays, scratch)
        })?;
        self.encoded_rows += self.gathered_rows;
        self.gathered.clear();
        self.gathered_rows = 0;
        self.gathered_bytes = 0;
        Ok(())
    }

    /// Ends the row group; `more` may come.
    fn end_row_group(&mut self, more: bool, scratches: &mut [Scratch]) -> Result<()> {
        let pending = self.pending_bytes();
        let compressed = self.assembly.bytes() + self.open_bytes() - pending;
        for_each(largest_first(&mut self.columns), scratches, |(_, column), scratch| {
            column.end_row_group(more, scratch)
        })?;
        let leaves = self.columns.iter_mut().map(OpenColumn::take_finished);
        self.assembly.append(self.encoded_rows, leaves).map_err(|e| write_error(&self.path, e))?;
        self.scale.pending = Scale::of(self.assembly.bytes().saturating_sub(compressed), pending);
        self.written_rows += std::mem::take(&mut self.encoded_rows) as u64;
        Ok(())
    }

    /// Writes what is left and the footer, and makes the file durable under the name it has.
    pub(super) fn finish(mut self, scratches: &mut [Scratch]) -> Result<Complete> {
        self.encode_gathered(scratches)?;
        if !self.columns.iter().any(OpenColumn::has_values) {
            // There are no files without columns.
            self.columns.iter_mut().take(1).for_each(OpenColumn::keep);
        }
        if self.encoded_rows > 0 {
            self.end_row_group(false, scratches)?;
        }
        let (rows, before, expected) = (self.written_rows, self.assembly.bytes(), self.footer_bytes());
        let seen: Vec<bool> = self.columns.iter().map(OpenColumn::has_values).collect();
        let fields: Vec<FieldRef> = self
            .columns
            .iter()
            .filter(|column| column.has_values())
            .map(|column| Arc::clone(&column.spec.field))
            .collect();
        let sink = self.assembly.finish(&Schema::new(fields), &seen).map_err(|e| write_error(&self.path, e))?;
        let bytes = sink.finish().map_err(|e| Error::io("sync", &self.path, e))?.bytes;
        let footer = Scale::of(usize::try_from(bytes).unwrap_or(usize::MAX).saturating_sub(before), expected);
        let scale = Scale { footer, ..self.scale };
        Ok(Complete { rows, bytes, statistics: statistics(&self.spec, self.columns), scale })
    }
}

/// Returns the columns with their places, those first that take longest: no thread is left with one
/// of them at the end.
fn largest_first(columns: &mut [OpenColumn]) -> impl Iterator<Item = (usize, &mut OpenColumn)> {
    let mut columns: Vec<(usize, &mut OpenColumn)> = columns.iter_mut().enumerate().collect();
    columns.sort_by_key(|(_, column)| std::cmp::Reverse(column.bytes()));
    columns.into_iter()
}

fn statistics(spec: &FileSpec, columns: Vec<OpenColumn>) -> FileStatistics {
    let mut statistics = FileStatistics::default();
    let mut distinct: Vec<_> = spec.distinct.iter().map(|_| None).collect();
    for (place, column) in columns.into_iter().enumerate() {
        let has_values = column.has_values();
        let (of_column, values) = column.finish();
        if spec.time == Some(place) {
            (statistics.first_time, statistics.last_time) = times(&of_column);
        }
        if has_values {
            statistics.columns.push(of_column);
        }
        if let Some(slot) = spec.distinct.iter().position(|wanted| *wanted == place).and_then(|at| distinct.get_mut(at))
        {
            *slot = values;
        }
    }
    statistics.distinct = distinct.into_iter().flatten().collect();
    statistics
}

fn times(column: &ColumnStatistics) -> (Option<i64>, Option<i64>) {
    let time = |bound: &Option<StatisticsValue>| match bound {
        Some(StatisticsValue::Integer(time)) => Some(*time),
        _ => None,
    };
    (time(&column.min), time(&column.max))
}

/// What the file system refused is told as such.
fn write_error(path: &Path, error: ParquetError) -> Error {
    match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(source) => Error::io("write", path, *source),
            Err(source) => Error::internal(format!("cannot write {}: {source}", path.display())),
        },
        other => Error::internal(format!("cannot write {}: {other}", path.display())),
    }
}
