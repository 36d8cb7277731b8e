//! A state that another directory may begin with: its data files, and the frames of the log after it.
//!
//! Owns which frames these are, for an engine that writes and for one that reads. Never changes
//! anything; whoever has one keeps what it needs on disk.

use std::{
    fmt::Debug,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{Engine, EngineRole, history::FoundAt, log::PinnedLog, shared::Shared};
#[cfg(feature = "object-store")]
use crate::store::OpenStorage;
use crate::{
    Result, SequenceNumber,
    catalog::ManifestState,
    model::{PastMoment, WAL_DIR},
    random::RandomSource,
    vfs::Vfs,
    wal::{LogTail, ReplayedFrame, TailEnd},
};

/// A state of a directory. Its data files, and its part of the log, stay as long as this is held.
#[derive(Debug)]
pub(crate) struct Origin<'a> {
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) root: PathBuf,
    /// The commit of the manifest whose state it is.
    pub(crate) number: u64,
    pub(crate) state: ManifestState,
    /// The last frame that belongs to it.
    through: SequenceNumber,
    /// The time that it is of, if it was asked for by that.
    pub(crate) until_ns: Option<i64>,
    pub(crate) random: Arc<dyn RandomSource>,
    /// Where its data files are, if not in the directory.
    #[cfg(feature = "object-store")]
    pub(crate) storage: Option<OpenStorage>,
    _files: Arc<dyn Debug + Send + Sync>,
    _log: Option<PinnedLog<'a>>,
}

impl<'a> Origin<'a> {
    /// Returns the state of a commit, whose files `files` keeps, with no frames after it.
    pub(in crate::engine) fn new(
        (vfs, root, random): (&Arc<dyn Vfs>, &Path, &Arc<dyn RandomSource>),
        number: u64,
        state: ManifestState,
        files: Arc<dyn Debug + Send + Sync>,
    ) -> Self {
        let through = state.flushed;
        let (vfs, root) = (Arc::clone(vfs), root.to_owned());
        Self {
            vfs,
            root,
            number,
            state,
            through,
            until_ns: None,
            random: Arc::clone(random),
            #[cfg(feature = "object-store")]
            storage: None,
            _files: files,
            _log: None,
        }
    }

    /// Adds the frames up to `through`, the last that came by `until_ns`.
    pub(in crate::engine) fn up_to(self, through: SequenceNumber, until_ns: Option<i64>) -> Self {
        Self { through, until_ns, ..self }
    }

    /// Adds the log that has the frames, which stay as long as this is held.
    fn with_log(self, log: PinnedLog<'a>) -> Self {
        Self { _log: Some(log), ..self }
    }

    /// Lets go of the log, whose frames have been read.
    pub(crate) fn without_log(self) -> Self {
        Self { _log: None, ..self }
    }

    /// Says in which store the data files are, if they are in one.
    #[cfg(feature = "object-store")]
    pub(in crate::engine) fn in_store(self, storage: Option<&OpenStorage>) -> Self {
        Self { storage: storage.cloned(), ..self }
    }

    /// Hands each frame after the state to `visit`, in order; returns false if one is not there any
    /// more, as when the process that writes has flushed meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`], [`Error::Io`], and what `visit` returns.
    pub(crate) fn visit_frames(&self, visit: &mut dyn FnMut(&ReplayedFrame<'_>) -> Result<()>) -> Result<bool> {
        let dir = self.root.join(WAL_DIR);
        let mut tail = LogTail::new(dir, self.state.flushed);
        let end = tail.read_through(self.vfs.as_ref(), self.through, &mut |frame| visit(&frame))?;
        Ok(end == TailEnd::Reached)
    }
}

impl Engine {
    /// Returns the state of now, with every point that was acknowledged before the call, or an older
    /// one. A reader knows of no points that are acknowledged for memory only.
    ///
    /// # Errors
    ///
    /// [`Error::OutsideHistory`], [`Error::SnapshotNotFound`]; [`Error::Closed`], [`Error::Corrupt`] and
    /// [`Error::Io`].
    pub(crate) fn origin(&self, moment: Option<&PastMoment>) -> Result<Origin<'_>> {
        self.check_open()?;
        match &self.inner.role {
            EngineRole::Writer(shared) => shared.origin(moment),
            EngineRole::Reader(reader) => reader.origin(moment),
        }
    }
}

impl Shared {
    fn origin(&self, moment: Option<&PastMoment>) -> Result<Origin<'_>> {
        let origin = self.origin_at(moment);
        #[cfg(feature = "object-store")]
        let origin = origin.map(|origin| origin.in_store(self.storage.as_ref()));
        origin
    }

    fn origin_at(&self, moment: Option<&PastMoment>) -> Result<Origin<'_>> {
        let place = (&self.vfs, self.root.as_path(), &self.random);
        match moment {
            None => self.origin_of_now(),
            Some(PastMoment::Snapshot(name)) => {
                // All that it has was flushed for it.
                let (number, state, files) = self.state_of_snapshot(name)?;
                Ok(Origin::new(place, number, state, files))
            }
            Some(PastMoment::Time(time_ns)) => {
                let FoundAt { number, state, through, log, files, .. } = self.found_at(*time_ns)?;
                Ok(Origin::new(place, number, state, files).up_to(through, Some(*time_ns)).with_log(log))
            }
        }
    }

    fn origin_of_now(&self) -> Result<Origin<'_>> {
        if self.unflushed.any_in_memory_only() {
            self.flush()?;
        }
        let manifest = self.manifest.lock_patiently()?;
        let state = manifest.state().clone();
        let files = Arc::new(self.retired.hold(manifest.number()));
        let log = self.log.pin(state.flushed);
        let place = (&self.vfs, self.root.as_path(), &self.random);
        Ok(Origin::new(place, manifest.number(), state, files).up_to(log.last_seq, None).with_log(log))
    }
}
