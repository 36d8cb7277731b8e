//! Bulk import: files of line protocol, CSV, Parquet or Arrow, plain, gzip, zstd or zip, into an engine
//! or another target.
//!
//! A file is read in pieces of a few MiB, one ahead of what is stored, and each piece is one write
//! under an idempotency key that is made of the file and its place in it. So an import that was
//! interrupted is simply begun again: what is stored is passed over, for as long as the target
//! remembers its keys. Nothing else keeps track of how far it came.
//!
//! Never looks for files, never opens a socket, and decides nothing about a row that the engine
//! decides for other writes.
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("pump.csv");
//! use arc_core::{Engine, import::{ImportFile, ImportOptions, import}};
//!
//! std::fs::write(&path, "time,id,rpm\n2024-01-01T00:00:00Z,7,1450\nyesterday,7,1451\n")?;
//! let engine = Engine::open(dir.path().join("data"))?;
//! let mut options = ImportOptions::new();
//! options.table = Some("pump".to_owned());
//! let report = import(&engine, ImportFile::open(&path)?, &options, &mut |_| {})?;
//! assert_eq!((report.rows, report.refused, report.refusals[0].row), (1, 1, 3));
//! let again = import(&engine, ImportFile::open(&path)?, &options, &mut |_| {})?;
//! assert_eq!((again.rows, again.rows_before), (0, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batches;
mod csv;
mod gzip;
mod header;
mod lines;
mod options;
mod report;
mod source;
mod target;
#[cfg(test)]
mod tests;
mod time;
mod zip;

use std::{
    collections::VecDeque,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
    time::Duration,
};

use crate::{ColumnTypes, Error, Result, model::Column};

pub use gzip::GzipMembers;
pub use options::{ImportFormat, ImportOptions, ImportType};
pub use report::{ImportColumn, ImportEvent, ImportReport, MAX_REFUSALS, Refusal};
pub use source::ImportFile;
pub use target::{ImportAnswer, ImportBody, ImportReceipt, ImportTarget, ImportWrite};
pub use time::TimeFormat;

use self::{
    report::{Extent, FileShape},
    source::ImportSource,
};

/// Writes whose answers are waited for at a time: enough to read and decode while the log is
/// synced.
const WINDOW: usize = 3;
/// How long a target may be busy with nothing stored.
const PATIENCE: Duration = Duration::from_secs(600);

/// A piece of a file, as its reader hands it over.
#[derive(Debug, Default)]
struct FileChunk {
    /// Nothing if all of its rows are refused.
    write: Option<ImportWrite>,
    /// Line or row that it begins with, counted from 1.
    first_row: u64,
    /// How far the file was read for it.
    position: u64,
    extent: Extent,
    refusals: Vec<Refusal>,
    /// With the first piece of a file.
    shape: Option<FileShape>,
}

impl FileChunk {
    fn of(write: ImportWrite) -> Self {
        Self { write: Some(write), ..Self::default() }
    }
}

/// Imports a file to its end; `on_event` is told of progress and of every row that is refused.
///
/// Pieces are stored in the order of the file, so that of two points with the same tags and time
/// the later one counts. Holds a few pieces in memory, whatever the size of the file. A target that
/// is busy is waited for.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for a file that cannot be read as
/// what it is said to be, for a table or columns that are missing, and where the file was imported
/// before with other settings. What the target says of a piece that it does not take, with the rows
/// it has. What is before that is stored, and another call goes on there.
pub fn import(
    target: &dyn ImportTarget,
    file: ImportFile,
    options: &ImportOptions,
    on_event: &mut dyn FnMut(ImportEvent<'_>),
) -> Result<ImportReport> {
    let source = ImportSource::new(file, options)?;
    let mut report = ImportReport::default();
    let known = match (&options.table, source.format) {
        (_, ImportFormat::LineProtocol) => KnownTable::default(),
        (None, _) => return Err(source.bad("which table it is for has to be said")),
        (Some(table), _) => KnownTable {
            columns: target.columns(&options.database, table)?,
            types: target.column_types(&options.database, table)?,
        },
    };
    thread::scope(|scope| {
        let (sender, chunks) = sync_channel(1);
        let (source, known) = (&source, &known);
        let reader = scope.spawn(move || read(source, options, known, &sender));
        let mut flow = ImportFlow {
            target,
            file: &source.name,
            on_event,
            report: &mut report,
            extent: Extent::default(),
            pending: VecDeque::new(),
        };
        // What was read before the reader failed is stored, as it would be in another try.
        let stored = flow.run(chunks);
        // A damaged file may take a library for Parquet further than an error.
        let read = reader.join().unwrap_or_else(|_| Err(source.bad("it is damaged in a way that nothing is known of")));
        flow.finish();
        stored.and(read)
    })?;
    Ok(report)
}

/// What a target has said of the table.
#[derive(Debug, Default)]
struct KnownTable {
    columns: Vec<Column>,
    types: ColumnTypes,
}

fn read(source: &ImportSource, options: &ImportOptions, known: &KnownTable, to: &SyncSender<FileChunk>) -> Result<()> {
    let emit = &mut |chunk: FileChunk| to.send(chunk).is_ok();
    let table = options.table.as_deref().unwrap_or_default();
    match source.format {
        ImportFormat::LineProtocol => lines::read(source, options, emit),
        ImportFormat::Csv => csv::read(source, options, table, known, emit),
        ImportFormat::Parquet => batches::read_parquet(source, options, table, known, emit),
        ImportFormat::Arrow => batches::read_arrow(source, options, table, known, emit),
    }
}

/// Pieces on their way to the target.
struct ImportFlow<'a> {
    target: &'a dyn ImportTarget,
    file: &'a str,
    on_event: &'a mut dyn FnMut(ImportEvent<'_>),
    report: &'a mut ImportReport,
    extent: Extent,
    pending: VecDeque<(FileChunk, ImportAnswer)>,
}

impl ImportFlow<'_> {
    fn run(&mut self, chunks: Receiver<FileChunk>) -> Result<()> {
        for chunk in chunks {
            self.submit(chunk)?;
            while self.pending.len() > WINDOW {
                self.settle()?;
            }
        }
        while !self.pending.is_empty() {
            self.settle()?;
        }
        Ok(())
    }

    /// Hands a piece over; waits as long as the target is busy.
    #[expect(clippy::disallowed_methods, reason = "an import waits on a thread of its own, outside of the engine")]
    fn submit(&mut self, chunk: FileChunk) -> Result<()> {
        let mut waited = Duration::ZERO;
        let Some(write) = &chunk.write else {
            self.pending.push_back((chunk, Box::new(|| Ok(ImportReceipt::default()))));
            return Ok(());
        };
        loop {
            match self.target.submit(write) {
                Ok(answer) => {
                    self.pending.push_back((chunk, answer));
                    return Ok(());
                }
                Err(Error::Busy { reason, retry_after }) if waited < PATIENCE => {
                    (self.on_event)(ImportEvent::Waiting { reason });
                    waited += retry_after.max(Duration::from_millis(100));
                    // What is under way may be what it is busy with.
                    while !self.pending.is_empty() {
                        self.settle()?;
                    }
                    thread::sleep(retry_after);
                }
                Err(error) => return Err(self.stopped(&chunk, error)),
            }
        }
    }

    /// Waits for the oldest piece under way.
    fn settle(&mut self) -> Result<()> {
        let Some((chunk, answer)) = self.pending.pop_front() else { return Ok(()) };
        let receipt = answer().map_err(|error| self.stopped(&chunk, error))?;
        let rows = if receipt.replayed { &mut self.report.rows_before } else { &mut self.report.rows };
        *rows += receipt.points;
        self.report.refused += receipt.refused;
        for refusal in chunk.refusals {
            self.report.refused += 1;
            self.refuse(refusal);
        }
        let named = receipt.refusals.len() as u64;
        let mut last = chunk.first_row;
        for rejected in receipt.refusals {
            let column = if rejected.column == 0 { String::new() } else { rejected.column.to_string() };
            last = chunk.first_row + rejected.line.saturating_sub(1);
            self.refuse(Refusal { row: last, column, reason: rejected.reason });
        }
        if receipt.refused > named {
            (self.on_event)(ImportEvent::AlsoRefused { count: receipt.refused - named, after: last });
        }
        if let Some(ImportWrite { body: ImportBody::Rows { table, batch }, .. }) = &chunk.write
            && self.report.columns.is_empty()
        {
            self.report.tables.insert(table.clone());
            self.report.columns = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
        }
        if let Some(FileShape { columns, times }) = chunk.shape {
            (self.report.types, self.report.time_form) = (columns, times);
        }
        self.extent.add(chunk.extent);
        let rows = self.report.rows + self.report.rows_before;
        (self.on_event)(ImportEvent::Progress { bytes: chunk.position, rows });
        Ok(())
    }

    fn refuse(&mut self, refusal: Refusal) {
        (self.on_event)(ImportEvent::Refused(&refusal));
        if self.report.refusals.len() < MAX_REFUSALS {
            self.report.refusals.push(refusal);
        }
    }

    fn stopped(&self, chunk: &FileChunk, error: Error) -> Error {
        Error::ImportStopped { file: self.file.to_owned(), row: chunk.first_row, source: Box::new(error) }
    }

    fn finish(&mut self) {
        let extent = std::mem::take(&mut self.extent);
        self.report.times = extent.times;
        self.report.days = extent.days();
        self.report.tables.extend(extent.tables);
    }
}
