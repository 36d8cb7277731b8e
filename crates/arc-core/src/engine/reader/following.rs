//! Keeping up with the process that writes: its manifest, its log, and the files that it may
//! remove.
//!
//! Each look takes these in one order (see [`Following::look`]), on which all depends: a row is in
//! the manifest's files or in the frames after its `flushed`, never in both, and what the log lets
//! go of is in a manifest that is there already.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use super::{
    past::PastHold,
    version::{Version, damaged},
};
use crate::{
    Error, Options, Result, SequenceNumber,
    catalog::{Advance, Manifest, ManifestEdit, ManifestHistory, ManifestState, ReadLease, TableEdit},
    memory::MemoryBudget,
    model::DataFile,
    sync,
    vfs::Vfs,
    wal::{LogTail, ReplayedFrame, TailEnd, acknowledged},
};

/// How long a look waits for queries that are being planned before it leaves them the version that
/// they have, and makes another one.
const PLANNING_PATIENCE: Duration = Duration::from_millis(50);

/// How often a look begins anew because the writer has moved on meanwhile, and the longest pause.
pub(super) const TRIES: u32 = 40;
const LONGEST_PAUSE: Duration = Duration::from_millis(25);

/// Waits a little before look `attempt` is done again.
pub(super) fn pause(attempt: u32) {
    sync::thread::sleep((Duration::from_millis(1) * attempt).min(LONGEST_PAUSE));
}

/// What a reader knows of the process that writes.
#[derive(Debug)]
pub(super) struct Following {
    vfs: Arc<dyn Vfs>,
    pub(super) manifest: Manifest,
    /// The next frame that the version does not have.
    pub(super) tail: LogTail,
    /// What was made of both; `None` if it has to be made anew.
    pub(super) version: Option<Arc<Version>>,
    /// The last frame that was seen: later looks see no less.
    pub(super) seen: SequenceNumber,
    /// Files that are in the manifest no more, with the last commit that had them: those that
    /// nothing here reads any longer may go.
    outlived: Vec<(u64, Weak<DataFile>)>,
    /// Older states that are read.
    pub(super) past: Vec<Weak<PastHold>>,
    lease: Option<ReadLease>,
    /// The commit that was handed out at rest last.
    rested_at: u64,
    /// The directory that the log beside the reader is of, where another one may take the manifest over.
    log_of: Option<String>,
    memory: Arc<MemoryBudget>,
    /// Who has the log, if that is on another machine.
    #[cfg(feature = "object-store")]
    pub(super) owner: Option<super::owner::LogAsked>,
}

impl Following {
    /// `tail` begins after what the manifest says is flushed.
    pub(super) fn new(
        vfs: Arc<dyn Vfs>,
        manifest: Manifest,
        tail: LogTail,
        lease: ReadLease,
        memory: Arc<MemoryBudget>,
    ) -> Self {
        let seen = manifest.state().flushed;
        Self {
            vfs,
            manifest,
            tail,
            version: None,
            seen,
            outlived: Vec::new(),
            past: Vec::new(),
            lease: Some(lease),
            rested_at: 0,
            log_of: None,
            memory,
            #[cfg(feature = "object-store")]
            owner: None,
        }
    }

    /// Has each look make sure that manifest and log are still of one directory.
    #[cfg(feature = "object-store")]
    pub(super) fn beside_log(self) -> Self {
        Self { log_of: self.manifest.state().directory.clone(), ..self }
    }

    fn check_is_of_log(&self) -> Result<()> {
        let of = &self.manifest.state().directory;
        if self.log_of.is_none() || self.log_of == *of {
            return Ok(());
        }
        let by = of.as_deref().unwrap_or("without a name");
        let reason = format!(
            "the data directory {by} has taken the object store over, and its log is not here: open a reader anew, in an empty folder or beside that log"
        );
        Err(Error::OtherStore { path: self.tail.dir().into(), reason })
    }

    /// Returns the tables with all that is acknowledged by now, and no less than before.
    ///
    /// What is acknowledged is asked first. The manifest comes next, and the log last: a frame that
    /// was released since is in a later commit of the manifest, so both are looked at again.
    pub(super) fn look(&mut self, now_ns: i64, options: &Options) -> Result<Arc<Version>> {
        self.hold(now_ns)?;
        #[cfg(feature = "object-store")]
        if self.owner.is_some() {
            return self.look_at_owner(options);
        }
        let said = acknowledged(self.vfs.as_ref(), self.tail.dir())?;
        for attempt in 0..TRIES {
            self.catch_up_manifest()?;
            self.check_is_of_log()?;
            let version = self.version(options);
            let proven = self.proven(said)?;
            let last = said.max(proven).max(self.seen);
            let version = if self.tail.next() <= last { self.growing(version, options) } else { version };
            match self.apply_through(&version, last)? {
                TailEnd::Reached => {
                    self.seen = last.max(self.manifest.state().flushed);
                    return Ok(version);
                }
                TailEnd::Missing => pause(attempt),
            }
        }
        let reason = format!(
            "frame {} is not there, though it was acknowledged: open the directory for writing, which tells what is lost",
            self.tail.next()
        );
        Err(Error::corrupt(self.tail.dir(), 0, reason))
    }

    /// Renews the lease, for what is needed now: not for what an idle reader has not looked at.
    pub(super) fn renew(&mut self, now_ns: i64) -> Result<()> {
        self.hold(now_ns)?;
        let advanced = self.catch_up_manifest();
        self.renew_lease(now_ns)?;
        advanced
    }

    /// Has the lease hold all that is read now.
    pub(super) fn renew_lease(&mut self, now_ns: i64) -> Result<()> {
        let number = self.oldest_read();
        let closed = || Error::Closed { reason: "the engine is closed".into() };
        self.lease.as_mut().ok_or_else(closed)?.renew(number, now_ns);
        Ok(())
    }

    /// Returns the oldest commit of which anything is read, or the newest of all.
    fn oldest_read(&mut self) -> u64 {
        self.outlived.retain(|(_, file)| file.strong_count() > 0);
        self.past.retain(|held| held.strong_count() > 0);
        let outlived = self.outlived.iter().map(|(number, _)| *number);
        let past = self.past.iter().filter_map(|held| Some(held.upgrade()?.number));
        outlived.chain(past).fold(self.manifest.number(), u64::min)
    }

    /// Returns the newest commit that was seen.
    pub(super) fn number(&self) -> u64 {
        self.manifest.number()
    }

    /// Returns what the manifest said after it.
    pub(super) fn state(&self) -> &ManifestState {
        self.manifest.state()
    }

    /// Returns the last frame that was seen.
    pub(super) fn seen(&self) -> SequenceNumber {
        self.seen
    }

    /// Returns the older states of the manifest.
    pub(super) fn history(&self) -> Arc<ManifestHistory> {
        self.manifest.history()
    }

    /// Returns what the manifest says alone, if nothing was looked at since it has moved on; once for
    /// each time that it has.
    pub(super) fn at_rest(&mut self, options: &Options) -> Option<Arc<Version>> {
        let number = self.manifest.number();
        if self.version.is_some() || std::mem::replace(&mut self.rested_at, number) == number {
            return None;
        }
        Some(Arc::new(Version::of(self.manifest.state(), &self.memory, options.memory_bytes)))
    }

    /// Gives the lease up.
    pub(super) fn end(&mut self) {
        self.lease = None;
    }

    /// Takes a lease where none holds. It is for what was seen last, and the caller looks at the
    /// manifest afterwards: whichever files that names were there when the lease was.
    fn hold(&mut self, now_ns: i64) -> Result<()> {
        if self.lease.as_ref().is_some_and(|lease| lease.holds(now_ns)) {
            return Ok(());
        }
        self.renew_lease(now_ns)
    }

    /// Returns up to where the log itself proves that it was synced, where the writer does not say
    /// how far it has acknowledged, or says less: it may be of a build that does not.
    fn proven(&self, said: SequenceNumber) -> Result<SequenceNumber> {
        if said > self.seen || (said == self.seen && said.0 > 0 && !self.tail.proves_more_than(said)?) {
            return Ok(said);
        }
        self.tail.proven(self.vfs.as_ref())
    }

    /// Reads what was committed since.
    pub(super) fn catch_up_manifest(&mut self) -> Result<()> {
        let (number, flushed) = (self.manifest.number(), self.manifest.state().flushed);
        let mut removed = Vec::new();
        let advance = self.manifest.advance(&mut removed);
        self.outlived.extend(removed.iter().map(|file| (number, Arc::downgrade(file))));
        let is_kept = match &advance {
            Ok(Advance::Edits(edits)) => edits.is_empty() || self.swap_in_place(edits, flushed),
            // Some commits may have been read before the one that could not be.
            Ok(Advance::Anew) | Err(_) => false,
        };
        if !is_kept {
            self.version = None;
        }
        advance.map(drop)
    }

    /// Makes changes in the version that is there, if they are only about files, as those of
    /// compaction are: its rows need not be read from the log again.
    fn swap_in_place(&self, edits: &[ManifestEdit], flushed: SequenceNumber) -> bool {
        let Some(version) = &self.version else { return false };
        let is_simple = edits.iter().all(|edit| is_about_files(edit, flushed));
        if !is_simple || !version.wait_unpinned(PLANNING_PATIENCE) {
            return false;
        }
        edits.iter().flat_map(|edit| &edit.tables).all(|edit| version.swap(edit))
    }

    /// Returns the version, made from the manifest if there is none.
    pub(super) fn version(&mut self, options: &Options) -> Arc<Version> {
        if let Some(version) = &self.version {
            return Arc::clone(version);
        }
        let state = self.manifest.state();
        let version = Arc::new(Version::of(state, &self.memory, options.memory_bytes));
        self.tail.restart(state.flushed);
        self.version = Some(Arc::clone(&version));
        version
    }

    /// Returns a version to which frames can be applied now: another one where a query that is
    /// planned keeps this one as it is.
    pub(super) fn growing(&mut self, version: Arc<Version>, options: &Options) -> Arc<Version> {
        if version.wait_unpinned(PLANNING_PATIENCE) {
            return version;
        }
        self.version = None;
        self.version(options)
    }

    pub(super) fn apply_through(&mut self, version: &Version, last: SequenceNumber) -> Result<TailEnd> {
        let dir = self.tail.dir().to_owned();
        let mut apply =
            |frame: ReplayedFrame<'_>| version.apply(&frame).map_err(|reason| damaged(&dir, &frame, &reason));
        let read = self.tail.read_through(self.vfs.as_ref(), last, &mut apply);
        if read.is_err() {
            // It may have half of a frame.
            self.version = None;
        }
        read
    }
}

/// Returns whether an edit changes nothing but which files have the rows that were in files before.
fn is_about_files(edit: &ManifestEdit, flushed: SequenceNumber) -> bool {
    let ManifestEdit { flushed: now, opened, dropped, databases_added, tables, .. } = edit;
    let is_about_files = |edit: &TableEdit| edit.schema.is_none() && edit.tombstones_added.is_empty();
    now.is_none_or(|now| now == flushed)
        && opened.is_none()
        // Adopted rows make others late.
        && edit.adopted.is_none()
        && dropped.is_empty()
        && databases_added.is_empty()
        && edit.retentions.is_empty()
        && edit.durabilities.is_empty()
        && edit.column_types.is_empty()
        && tables.iter().all(is_about_files)
}
