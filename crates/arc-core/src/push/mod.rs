//! Push: hands the rows of this data directory to another one, each exactly once.
//!
//! Asks the other directory what it has, sends the data files between that and a new cut, and has
//! them adopted there by one commit (docs/decisions/040-push.md). Owns the order of these steps and
//! the pace; `engine` makes cuts and adopts, a [`PushTarget`] carries. Never opens a connection.

mod target;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

pub use crate::{
    datafile::Upload,
    engine::{AdoptOutcome, AdoptReport},
};
pub use target::PushTarget;

use crate::{
    Engine, Error, Result,
    catalog::{Adoption, AdoptionTable},
    crash::crash_point,
    engine::CutFiles,
    model::DataFile,
    sync::{self, Instant},
};

/// How often files are sent again that have not arrived as they are.
const TRIES: usize = 3;
/// The cut that was under way, and a new one.
const MAX_CUTS: usize = 2;

/// How rows are handed over.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PushOptions {
    /// Bytes that are sent at a time, and held in memory. 1 MiB by default; more costs memory on both
    /// sides, less costs more requests.
    pub piece_bytes: usize,
    /// Bytes to be sent in a second, on average over a piece; as many as there can be by default.
    pub bytes_per_second: Option<u64>,
}

impl Default for PushOptions {
    fn default() -> Self {
        Self { piece_bytes: 1 << 20, bytes_per_second: None }
    }
}

/// How far a push is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PushProgress {
    /// Data files of the cut.
    pub files: u64,
    /// Files of it that are there.
    pub files_there: u64,
    /// Bytes of the cut.
    pub bytes: u64,
    /// Bytes of it that are there.
    pub bytes_there: u64,
}

/// What a push did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PushReport {
    /// Commits of the other directory: 0 if it had everything.
    pub cuts: u64,
    /// Data files that it adopted.
    pub files: u64,
    /// Rows of them.
    pub rows: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Bytes that were sent; fewer where some were there of a push that was cut off.
    pub sent_bytes: u64,
}

impl Engine {
    /// Hands all rows that were written by now to another data directory, and that were not handed
    /// to it before.
    ///
    /// Flushes first. Tables and columns that are not there are made; a conflict names its column,
    /// and nothing changes then. Rows that were deleted here by now are not sent; deletes and drops
    /// of rows that were sent before are not. There, rows come after all that was written before, and
    /// fields of rows with the same primary key overwrite those. However a push ends, the next one
    /// goes on where it was. One push at a time; another one waits.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options.clone()).open()?;
    /// # let centre = arc_core::Engine::builder(dir.path().join("centre")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use arc_core::PushOptions;
    ///
    /// let report = engine.push(&centre, &PushOptions::default(), &mut |_| {})?;
    /// assert_eq!((report.cuts, report.rows), (1, 1));
    /// let again = engine.push(&centre, &PushOptions::default(), &mut |_| {})?;
    /// assert_eq!((again.cuts, again.rows), (0, 0));
    /// assert_eq!(centre.data_files("plant", "pump")?[0].rows, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Diverged`] if either directory was restored from a backup, or copied, and they do not
    /// agree on what was sent; [`Error::SchemaConflict`]; those of the target, of a flush and a merge.
    pub fn push(
        &self,
        target: &dyn PushTarget,
        options: &PushOptions,
        progress: &mut dyn FnMut(&PushProgress),
    ) -> Result<PushReport> {
        let _pushing = self.lock_pushing()?;
        let mut sender =
            Sender { engine: self, target, options, progress, origin: self.push_origin()?, pace: Pace::default() };
        let mut report = PushReport::default();
        for _ in 0..MAX_CUTS {
            let there = target.adopted(&sender.origin)?;
            let Some(cut) = self.begin_cut(there.as_ref())? else { break };
            let is_new = cut.is_new;
            sender.hand_over(cut, &mut report)?;
            if is_new {
                break;
            }
        }
        Ok(report)
    }
}

/// One push under way.
struct Sender<'a> {
    engine: &'a Engine,
    target: &'a dyn PushTarget,
    options: &'a PushOptions,
    progress: &'a mut dyn FnMut(&PushProgress),
    origin: String,
    pace: Pace,
}

impl Sender<'_> {
    /// Sends all files of a cut and has them adopted.
    fn hand_over(&mut self, cut: CutFiles, report: &mut PushReport) -> Result<()> {
        let files: Vec<Arc<DataFile>> = cut.tables.iter().flat_map(|(_, files)| files.iter().cloned()).collect();
        let bytes = files.iter().map(|file| file.bytes).sum();
        let adoption = Bytes::from(self.adoption(&cut).encode()?);
        let mut to_send = files.clone();
        for _ in 0..TRIES {
            let mut progress = PushProgress { files: files.len() as u64, bytes, ..PushProgress::default() };
            let rest = files.iter().filter(|file| !to_send.iter().any(|other| Arc::ptr_eq(file, other)));
            for file in rest {
                progress.files_there += 1;
                progress.bytes_there += file.bytes;
            }
            for file in &to_send {
                report.sent_bytes += self.send(&cut, file, &mut progress)?;
                progress.files_there += 1;
                (self.progress)(&progress);
            }
            crash_point("push::sent");
            let missing = match self.target.adopt(&adoption)? {
                AdoptOutcome::Adopted(_) => {
                    crash_point("push::adopted");
                    self.engine.confirm_cut(&cut.cut)?;
                    report.cuts += 1;
                    report.files += files.len() as u64;
                    report.rows += files.iter().map(|file| file.rows).sum::<u64>();
                    report.bytes += bytes;
                    return Ok(());
                }
                AdoptOutcome::Missing(missing) => missing,
            };
            to_send = files.iter().filter(|file| missing.contains(&Upload::name_of(file))).cloned().collect();
        }
        let path = to_send.first().map(|file| self.engine.path().join(&file.path)).unwrap_or_default();
        Err(Error::corrupt(path, 0, "what arrives of it is not what the manifest says"))
    }

    fn adoption(&self, cut: &CutFiles) -> Adoption {
        let table = |(schema, files): &(Arc<_>, Vec<Arc<DataFile>>)| AdoptionTable {
            schema: Arc::clone(schema),
            files: files.iter().map(|file| DataFile::clone(file)).collect(),
        };
        Adoption {
            arc_push: Adoption::VERSION,
            origin: self.origin.clone(),
            from: cut.from.clone(),
            cut: cut.cut.clone(),
            tables: cut.tables.iter().map(table).collect(),
        }
    }

    /// Sends what is not there of a file; returns how many bytes that was.
    fn send(&mut self, cut: &CutFiles, file: &DataFile, progress: &mut PushProgress) -> Result<u64> {
        let (origin, cut) = (self.origin.clone(), cut.cut.id.clone());
        let upload = Upload { origin, cut, name: Upload::name_of(file), bytes: file.bytes };
        let mut there = self.target.received(&upload)?;
        progress.bytes_there += there;
        let (mut sent, mut idle) = (0, 0);
        while there < file.bytes {
            let piece = self.engine.read_file(file, there, self.options.piece_bytes.max(1))?;
            if piece.is_empty() {
                return Err(Error::corrupt(self.engine.path().join(&file.path), there, "it ends early"));
            }
            self.pace.wait(piece.len(), self.options.bytes_per_second);
            sent += piece.len() as u64;
            let now_there = self.target.send(&upload, there, &piece)?;
            // Another one may have sent it, or what was there is gone.
            idle = if now_there > there { 0 } else { idle + 1 };
            if idle > TRIES {
                return Err(Error::internal("the target takes no more of a file, and has not all of it"));
            }
            progress.bytes_there =
                progress.bytes_there.saturating_add_signed(now_there.cast_signed() - there.cast_signed());
            there = now_there;
            (self.progress)(progress);
        }
        Ok(sent)
    }
}

/// Keeps to so many bytes in a second.
#[derive(Debug, Default)]
struct Pace {
    /// When the next piece may go.
    free_at: Option<Instant>,
}

impl Pace {
    fn wait(&mut self, bytes: usize, per_second: Option<u64>) {
        let Some(per_second) = per_second else { return };
        let now = sync::now();
        let from = self.free_at.filter(|free_at| *free_at > now).unwrap_or(now);
        sync::thread::sleep(from.saturating_duration_since(now));
        let nanos = (bytes as u128 * 1_000_000_000) / u128::from(per_second.max(1));
        self.free_at = from.checked_add(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)));
    }
}
